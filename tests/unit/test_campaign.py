# SPDX-License-Identifier: Apache-2.0
"""Campaigns on simulated gateways: the order of the cells, what breaks, what comes of it."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.campaigning import ONE_CONNECTION_RATE, PLAN, Benches, Dies, Goes, Killed, asked, campaign, quick_disk
from tests.unit.counted import change_trial
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

from natgauge import foreign
from natgauge.analysis.comparing import comparable
from natgauge.campaigns import cell_run
from natgauge.campaigns.journal import Journal, entries
from natgauge.campaigns.plan import read
from natgauge.campaigns.status import status
from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.inputs.question import Cell
from natgauge.measurer import Ability
from natgauge.records.reading import read_lines
from natgauge.records.store import TRIAL_SCHEMA
from natgauge.reports.failures import not_ended
from natgauge.stored.find_results import find, read_summary

__all__ = ["quick_disk"]


def test_every_measurement_of_every_cell_becomes_a_results_folder_with_all_its_repetitions(tmp_path: Path) -> None:
    benches = Benches()
    campaign(tmp_path, benches)
    folders = sorted(path.name for path in (tmp_path / "out" / "results").iterdir())
    assert folders == sorted(
        f"{device}-connections-{number}-{metric}"
        for device in ("nftables-nat44", "linux-ipv4")
        for number in (1000, 2000)
        for metric in ("connection-rate", "throughput")
    )
    trials = 0
    for name in folders:
        folder = tmp_path / "out" / "results" / name
        found = read_summary(folder)
        assert len(found.repetitions) == 2
        assert found.median == pytest.approx(30_000 if "connection-rate" in name else 60_000, rel=0.35)
        assert "single repetition" not in [doubt.word for doubt in found.doubts]
        assert found.results == str(folder)
        trials += len(list(read_lines(folder / "trials.jsonl", TRIAL_SCHEMA)))
        assert sum(found.trials.values()) <= trials
    assert trials == sum(benches.trials.values())


def test_a_round_visits_every_cell_once_and_rounds_have_orders_of_their_own(tmp_path: Path) -> None:
    benches = Benches()
    campaign(tmp_path, benches, plan=PLAN.replace("repetitions = 2", "repetitions = 6"))
    rounds = [benches.cells[4 * number : 4 * number + 4] for number in range(6)]
    assert all(len(set(one)) == 4 for one in rounds)
    assert len({tuple(one) for one in rounds}) > 1


def test_a_bench_answers_the_connection_rate_before_what_builds_on_it(tmp_path: Path) -> None:
    campaign(tmp_path, Benches())
    order = [entry["measurement"] for entry in entries(tmp_path / "out") if entry["event"] == "repetition"]
    assert order == ["connection-rate", "throughput"] * 8
    given = [entry["given"] for entry in entries(tmp_path / "out") if entry["event"] == "repetition"]
    assert given[0] == {}
    assert given[1]["connection_rate"] == pytest.approx(30_000, rel=0.35)


TWO_GATEWAYS = ONE_CONNECTION_RATE.replace('["linux-ipv4"]', '["nftables-nat44", "linux-ipv4"]')
FIRST_PACKETS = f"""{TWO_GATEWAYS.replace("repetitions = 3", "repetitions = 2")}
[[measure]]
metric = "first-packet-delay"
"""


def test_delays_at_shares_of_the_rates_that_the_rounds_found_can_be_compared(tmp_path: Path) -> None:
    """Each result had connection rates of its own as a setting, and was comparable with no other one."""
    rates = {"nftables-nat44": 30_000, "linux-ipv4": 80_000}
    benches = Benches(gateway=lambda cell: Gateway(establishes=rates[str(cell.gateway)]))
    campaign(tmp_path, benches, plan=FIRST_PACKETS)
    folders = (tmp_path / "out" / "results").glob("*-first-packet-delay")
    first, second = (read_summary(folder) for folder in folders)
    assert first.parameters.get("connection_rate") != second.parameters.get("connection_rate")
    assert comparable(first, second, except_for={"device"}) == []


def test_the_same_seed_gives_the_same_order(tmp_path: Path) -> None:
    orders = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        benches = Benches()
        campaign(tmp_path / name, benches)
        orders.append(benches.cells)
    assert orders[0] == orders[1]


def test_a_device_that_breaks_is_tried_twice_and_other_cells_go_on(tmp_path: Path, golden: Golden) -> None:
    benches = Benches(breaks={"linux-ipv4": BrokenError("linux-ipv4: does not come up: first cause")})
    state = campaign(tmp_path, benches)
    golden(state.broken.devices)
    assert [device for device, _ in benches.cells].count("linux-ipv4") == 2
    found = status(tmp_path / "out")
    assert {bool(one.folder) for one in found.measurements if one.cell.startswith("nftables")} == {True}
    assert {one.broken for one in found.measurements if one.cell.startswith("linux")} == set(
        state.broken.devices.values()
    )
    assert sum(one.left for one in found.measurements) == 0


def test_a_device_that_fails_for_a_moment_is_not_broken(tmp_path: Path, golden: Golden) -> None:
    made = [0]

    def gateway(_cell: Cell) -> Gateway:
        made[0] += 1
        if made[0] in {2, 4}:
            raise BrokenError("device does not forward: 7 of 8 frames came back")
        return Gateway(establishes=30_000, forwards=60_000)

    campaign(tmp_path, Benches(gateway=gateway))
    assert [(one.done, one.broken) for one in status(tmp_path / "out").measurements] == [(2, "")] * 8
    failed = [entry["cause"] for entry in entries(tmp_path / "out") if entry["event"] == "device-failed"]
    golden(failed)


def test_what_cannot_be_measured_leaves_the_other_measurements_of_its_cell(tmp_path: Path, golden: Golden) -> None:
    """A device that forwards first frames only has a connection rate; nothing can be said of its latency."""
    plan = PLAN.replace('metric = "throughput"\nerror = "30%"', 'metric = "latency"')
    benches = Benches(
        gateway=lambda cell: Gateway(establishes=3e4, forwards=3e4 if cell.gateway == "linux-ipv4" else 0.5)
    )
    campaign(tmp_path, benches, plan=plan)
    found = {(one.cell, one.measurement): one for one in status(tmp_path / "out").measurements}
    rate = found["nftables-nat44-connections-1000", "connection-rate"]
    assert rate.folder
    assert not rate.broken
    golden(found["nftables-nat44-connections-1000", "latency"].broken)
    assert found["linux-ipv4-connections-1000", "latency"].folder


def test_repetitions_before_a_break_are_kept_and_say_so(tmp_path: Path, golden: Golden) -> None:
    campaign(tmp_path, Benches(gateway=Goes(8)))
    found = read_summary(tmp_path / "out" / "results" / "linux-ipv4-connections-1000-connection-rate")
    assert len(found.repetitions) == 1
    golden(found.notes)
    assert "single repetition" in [doubt.word for doubt in found.doubts]


def test_what_broke_is_tried_again_when_asked_for(tmp_path: Path) -> None:
    benches = Benches(breaks={"linux-ipv4": HostError("linux-ipv4: nft is not installed")})
    campaign(tmp_path, benches)
    visits = len(benches.cells)
    benches.breaks = {}
    campaign(tmp_path, benches)
    assert len(benches.cells) == visits
    campaign(tmp_path, benches, retry_broken=True)
    assert [(one.done, one.broken) for one in status(tmp_path / "out").measurements] == [(2, "")] * 8


def test_a_result_that_lacked_repetitions_is_made_anew_when_they_are_there(tmp_path: Path) -> None:
    gateway = Goes(8)
    benches = Benches(gateway=gateway)
    campaign(tmp_path, benches)
    gateway.left = 100
    campaign(tmp_path, benches, retry_broken=True)
    for folder in (tmp_path / "out" / "results").iterdir():
        found = read_summary(folder)
        assert len(found.repetitions) == 2
        assert not any("broken" in note.text for note in found.notes)


def test_only_some_cells_are_visited_and_the_rest_is_left_for_later(tmp_path: Path, golden: Golden) -> None:
    benches = Benches()
    campaign(tmp_path, benches, only=["nft*-1000"])
    assert set(benches.cells) == {("nftables-nat44", 1000)}
    assert sum(one.left for one in status(tmp_path / "out").measurements) == 12
    campaign(tmp_path, benches)
    assert sum(one.left for one in status(tmp_path / "out").measurements) == 0
    assert len(asked(tmp_path)) == 16
    with golden.raises(UsageError):
        campaign(tmp_path, benches, only=["tayga"])


def test_repeating_ends_when_the_median_is_known(tmp_path: Path) -> None:
    campaign(tmp_path, Benches(), plan=PLAN.replace("repetitions = 2", 'repetitions = "auto"'))
    found = status(tmp_path / "out")
    assert {one.done for one in found.measurements} == {7}
    assert all(one.folder for one in found.measurements)


def test_a_second_natgauge_is_refused_while_one_measures(tmp_path: Path, golden: Golden) -> None:
    campaign(tmp_path, Benches(), only=["nft*-1000"])
    with Journal(tmp_path / "out"):
        assert status(tmp_path / "out").runs
        with golden.raises(HostError):
            campaign(tmp_path, Benches())
    assert not status(tmp_path / "out").runs


def test_status_tells_the_running_trial_and_the_time_left(tmp_path: Path) -> None:
    seen = []

    def gateway(_cell: object) -> Gateway:
        seen.append(status(tmp_path / "out"))
        return Gateway(establishes=30_000, forwards=60_000)

    campaign(tmp_path, Benches(gateway=gateway))
    assert [sum(one.done for one in each.measurements) for each in seen] == list(range(16))
    assert seen[0].seconds_left is None
    assert seen[5].seconds_left is not None
    assert all(each.runs for each in seen)


def test_status_tells_rates_that_the_tester_limited_as_bounds(tmp_path: Path) -> None:
    """Seen: "58.2 k frames/s", without the directions, of a tester that could do no more."""
    benches = Benches(gateway=lambda _cell: Gateway(establishes=1_000_000, forwards=1_000_000, ceiling=20_000))
    campaign(tmp_path, benches, only=["nft*-1000"])
    done = {one.measurement: one for one in status(tmp_path / "out").measurements if one.done}
    assert {name: one.sending for name, one in done.items()} == {
        "connection-rate": "",
        "throughput": "in each direction",
    }
    assert {one.bounds for one in done.values()} == {(True, True)}


def test_the_time_left_knows_that_large_cells_take_longer(tmp_path: Path) -> None:
    """The small cell is done; going by repetitions alone the large one would take as long as it did."""
    plan = PLAN.replace('["nftables-nat44", "linux-ipv4"]', '["nftables-nat44"]').replace(
        "[1000, 2000]", "[1000, 2000000]"
    )
    campaign(tmp_path, Benches(), plan=plan, only=["*-1000"])
    found = status(tmp_path / "out")
    taken = sum(entry["seconds"] for entry in entries(tmp_path / "out") if entry["event"] == "repetition")
    assert [one.left for one in found.measurements] == [0, 0, 2, 2]
    assert found.seconds_left is not None
    assert taken > 0
    assert found.seconds_left > 3 * taken


def visited_by(workers: int, folder: Path) -> Path:
    """Let so many workers have had the visits of a campaign in turn."""
    path, visits = folder / "journal.jsonl", itertools.count()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["event"] == "visit":
            line["worker"] = f"w{next(visits) % workers}"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def test_the_time_left_is_that_of_all_workers_together_but_of_a_cell_that_of_one(tmp_path: Path) -> None:
    """Seen: it was that of one worker for all, N times too long."""
    campaign(tmp_path, Benches(), only=["nft*-1000"])
    alone = status(tmp_path / "out").seconds_left
    together = status(visited_by(2, tmp_path / "out")).seconds_left
    assert alone is not None
    assert together is not None
    assert 0.499 * alone < together < 0.7 * alone
    (tmp_path / "one").mkdir()
    with pytest.raises(Killed):
        campaign(tmp_path / "one", Benches(killed=Dies(22)), plan=ONE_CONNECTION_RATE)
    alone = status(tmp_path / "one" / "out").seconds_left
    assert alone is not None
    assert status(visited_by(2, tmp_path / "one" / "out")).seconds_left == pytest.approx(alone)


def test_the_folder_tells_plan_and_machine_but_not_the_hosts_name(tmp_path: Path) -> None:
    campaign(tmp_path, Benches(), only=["nft*-1000"])
    document = json.loads((tmp_path / "out" / "campaign.json").read_text())
    assert (document["schema"], document["name"], document["seed"]) == ("natgauge-campaign-1", "small", 5)
    assert len(document["sha256"]) == 64
    assert (tmp_path / "out" / "plan.toml").read_text() == PLAN
    machine = json.loads((tmp_path / "out" / "environment.json").read_text())["machine"]
    assert "kernel" in machine
    assert not {"host", "command_line"} & set(machine)


def test_others_can_run_the_plan_that_a_folder_keeps_and_nothing_needs_it(tmp_path: Path) -> None:
    """Seen: a reviewer with the folder of results had no plan to run; a copy must not get the name of its own file."""
    unnamed = PLAN.replace('name = "small"\n', "")
    with pytest.raises(Killed):
        campaign(tmp_path, Benches(killed=Dies(3)), plan=unnamed, only=["nft*-1000"])
    kept = tmp_path / "out" / "plan.toml"
    assert kept.read_text().endswith(unnamed)
    assert read(kept).digest == read(tmp_path / "small.toml").digest
    kept.unlink()
    campaign(tmp_path, Benches(), plan=unnamed, only=["nft*-1000"])
    assert len(find([tmp_path / "out"]).results) == 2
    assert not kept.exists()


def test_a_trial_that_could_not_be_run_breaks_its_measurement_and_is_begun_anew_when_retried(tmp_path: Path) -> None:
    broken = [True]

    class Breaks(Gateway):
        def measure(self, plan: PlanOfTrial) -> OneTrial:
            if broken[0] and len(self.plans) == 3:
                raise BrokenError("the engine broke")
            return super().measure(plan)

    benches = Benches(gateway=lambda _cell: Breaks(establishes=30_000, forwards=60_000))
    campaign(tmp_path, benches)
    found = status(tmp_path / "out").measurements
    assert {one.broken for one in found} == {"the engine broke"}
    broken[0] = False
    campaign(tmp_path, benches, retry_broken=True)
    assert [(one.done, one.broken) for one in status(tmp_path / "out").measurements] == [(2, "")] * 8


def test_all_cells_of_a_device_that_breaks_have_results_of_what_they_had(tmp_path: Path) -> None:
    benches = Benches()
    made = [0]

    def gateway(cell: Cell) -> Gateway:
        made[0] += 1
        if made[0] > 8 and cell.gateway == "linux-ipv4":
            raise BrokenError("linux-ipv4: gone")
        return Gateway(establishes=30_000, forwards=60_000)

    benches.gateway = gateway
    campaign(tmp_path, benches)
    found = status(tmp_path / "out").measurements
    assert all(one.folder for one in found)
    assert [one.done for one in found] == [2] * 4 + [1] * 4


def test_what_one_metric_wants_in_vain_leaves_the_other_metrics_of_its_cell(tmp_path: Path) -> None:
    benches = Benches(refuses="throughput")
    campaign(tmp_path, benches)
    found = status(tmp_path / "out").measurements
    assert {one.measurement for one in found if one.broken} == {"throughput"}
    assert {one.measurement for one in found if one.folder} == {"connection-rate"}


#: 432 periods of a second.
PERIODS = """
name = "small"
gateways = ["nftables-nat44"]
profile = "quick"
repetitions = 1
seed = 5

[traffic]
connections = 1000

[[measure]]
metric = "stability"
hours = 0.12
throughput_rate = 1e6
connection_rate = 1e6
"""


def test_very_many_periods_are_few_in_the_journal_and_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: a day of them was a line of more than 64 MiB, which status, --resume and report refused for ever."""

    def gateway(_cell: Cell) -> Gateway:
        abilities = frozenset({Ability.PERIODS})
        return Gateway(abilities=abilities, disturbed=0.1, alters=foreign_in_some)

    def foreign_in_some(number: int, trial: OneTrial) -> OneTrial:
        return change_trial(trial, foreign=20_000 + number) if number % 50 == 3 else trial

    said, longest = [], []
    # A fifth of the periods, and of the most attempts that are kept one by one.
    for most in (cell_run.MOST_ATTEMPTS // 5, 10_000):
        monkeypatch.setattr(cell_run, "MOST_ATTEMPTS", most)
        folder = tmp_path / str(most)
        folder.mkdir()
        campaign(folder, Benches(gateway=gateway), plan=PERIODS)
        found = read_summary(folder / "out" / "results" / "nftables-nat44-stability")
        assert found.figures["periods"].median == 432
        said.append((found.median, found.trials, found.disturbed, found.figures, found.doubts, found.notes))
        longest.append(max(map(len, (folder / "out" / "journal.jsonl").read_text().splitlines())))
    assert said[0] == said[1]
    assert {doubt.word for doubt in said[0][4]} >= {"other traffic", "disturbed trials", "INVALID trials"}
    # The rows of the periods stay.
    assert longest[0] < longest[1] / 3


def test_a_line_that_nobody_could_read_is_refused_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "LINES", replace(foreign.LINES, line_octets=8000))
    with pytest.raises(UsageError, match=r"the most of a line is .* MiB; give it fewer trials or periods$"):
        campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE)
    assert [entry["event"] for entry in entries(tmp_path / "out")][-2:] == ["trial", "session-ended"]


def broken_cells(folder: Path) -> list[str]:
    """The cells of which a measurement is broken."""
    return sorted({one.cell for one in status(folder / "out").measurements if one.broken})


def test_what_broke_in_cells_that_a_session_leaves_out_stays_broken(tmp_path: Path) -> None:
    """Seen: --retry-broken --only X took nothing for broken any more, and the session ended with status 0."""
    missing = HostError("nft is not installed")
    benches = Benches(breaks=dict.fromkeys(("linux-ipv4", "nftables-nat44"), missing))
    campaign(tmp_path, benches)
    benches.breaks = {}
    campaign(tmp_path, benches, only=["nft*-1000"], retry_broken=True)
    assert broken_cells(tmp_path) == [
        "linux-ipv4-connections-1000", "linux-ipv4-connections-2000", "nftables-nat44-connections-2000"
    ]  # fmt: skip
    assert not_ended(tmp_path / "out").startswith("6 of 8 measurements broke; ")
    campaign(tmp_path, benches, retry_broken=True)
    assert not broken_cells(tmp_path)
    assert not not_ended(tmp_path / "out")


def test_a_device_that_is_tried_again_in_one_cell_is_not_broken_in_its_other_cells(tmp_path: Path) -> None:
    gateway = Goes(8)
    benches = Benches(gateway=gateway)
    campaign(tmp_path, benches)
    gateway.left = 100
    campaign(tmp_path, benches, only=["nft*-1000"], retry_broken=True)
    assert broken_cells(tmp_path) == ["linux-ipv4-connections-1000", "linux-ipv4-connections-2000"]
    said = not_ended(tmp_path / "out")
    assert said.startswith("2 of 8 measurements have not ended, 4 of 8 measurements broke; ")
    assert "natgauge run" in said
    assert "natgauge run" not in not_ended(tmp_path / "out", runs=True)
    campaign(tmp_path, benches)
    done = {one.cell: one.done for one in status(tmp_path / "out").measurements}
    assert done == {name: 2 if name.startswith("nft") else 1 for name in done}


def test_a_measurement_that_has_ended_is_not_broken_by_what_its_device_does_later(tmp_path: Path) -> None:
    """Seen: status and the end of the session counted it as broken, the report did not."""
    campaign(tmp_path, Benches(gateway=Goes(9)))
    found = status(tmp_path / "out").measurements
    assert [(one.measurement, one.done) for one in found if not one.broken] == [("connection-rate", 2)]
    assert not_ended(tmp_path / "out").startswith("7 of 8 measurements broke; ")


def test_the_time_left_has_what_labs_took(tmp_path: Path) -> None:
    """Seen: where a guest boots before each repetition, only the seconds of its trials counted."""
    campaign(tmp_path, Benches(), only=["nft*-1000"])
    path = tmp_path / "out" / "journal.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["event"] == "visit":
            line["at"] -= 100
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    left = status(tmp_path / "out").seconds_left
    assert left is not None
    # Three cells with two rounds each.
    assert 599 < left < 660
