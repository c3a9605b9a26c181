# SPDX-License-Identifier: Apache-2.0
"""Campaigns on simulated gateways: the order of the cells, what breaks, what comes of it."""

from __future__ import annotations

import fcntl
import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.campaigning import (
    ONE_CONNECTION_RATE,
    PLAN,
    Benches,
    Dies,
    Goes,
    Killed,
    asked,
    campaign,
    events,
    not_ended,
    progress,
    quick_disk,
    summaries,
)
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

from natgauge.cli import run
from natgauge.errors import BrokenError, HostError, UsageError

__all__ = ["quick_disk"]

#: The connection rate alone, in four cells.
RATES = PLAN.replace('[[measure]]\nmetric = "throughput"\nerror = "30%"\n', "")
TWO_CELLS = PLAN.replace("[1000, 2000]", "[1000]")
TWO_GATEWAYS = ONE_CONNECTION_RATE.replace('["linux-ipv4"]', '["nftables-nat44", "linux-ipv4"]')


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Benches]:
    """A campaign that has ended; nothing changes it."""
    folder, benches = tmp_path_factory.mktemp("whole"), Benches()
    campaign(folder, benches)
    return folder, benches


@pytest.fixture
def part(tmp_path: Path, parts: Path) -> Path:
    """A campaign of which one of four cells was measured."""
    shutil.copytree(parts, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("part")
    campaign(folder, Benches(), only=["nft*-1000"])
    return folder


def done(folder: Path) -> list[tuple[int, str]]:
    """How many repetitions of each measurement have ended, and why it goes on no more."""
    return [(one.done, one.broken) for one in progress(folder).measurements]


def broken_cells(folder: Path) -> list[str]:
    """The cells of which a measurement is broken."""
    return sorted({one.cell for one in progress(folder).measurements if one.broken})


def test_every_measurement_of_every_cell_becomes_a_results_folder_with_all_its_repetitions(
    whole: tuple[Path, Benches],
) -> None:
    folder, benches = whole
    found = summaries(folder)
    assert [*found] == sorted(
        f"{device}-connections-{number}-{metric}"
        for device in ("nftables-nat44", "linux-ipv4")
        for number in (1000, 2000)
        for metric in ("connection-rate", "throughput")
    )
    trials = 0
    for name, result in found.items():
        assert len(result.repetitions) == 2
        assert result.median == pytest.approx(30_000 if "connection-rate" in name else 60_000, rel=0.35)
        assert "single repetition" not in [doubt.word for doubt in result.doubts]
        place = folder / "out" / "results" / name
        assert result.results == str(place)
        trials += len((place / "trials.jsonl").read_text().splitlines())
        assert sum(result.trials.values()) <= trials
    assert trials == sum(benches.trials.values())


def test_a_bench_answers_the_connection_rate_before_what_builds_on_it(whole: tuple[Path, Benches]) -> None:
    ended = events(whole[0], "repetition")
    assert [entry["measurement"] for entry in ended] == ["connection-rate", "throughput"] * 8
    assert ended[0]["given"] == {}
    assert ended[1]["given"]["connection_rate"] == pytest.approx(30_000, rel=0.35)


def test_a_round_visits_every_cell_once_and_rounds_have_orders_of_their_own_that_follow_from_the_seed(
    tmp_path: Path,
) -> None:
    orders = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        benches = Benches()
        campaign(tmp_path / name, benches, plan=RATES.replace("repetitions = 2", "repetitions = 4"))
        orders.append(benches.cells)
    assert orders[0] == orders[1]
    rounds = [tuple(orders[0][4 * number : 4 * number + 4]) for number in range(4)]
    assert all(len(set(one)) == 4 for one in rounds)
    assert len(set(rounds)) > 1


def test_delays_at_shares_of_the_rates_that_the_rounds_found_can_be_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each result had connection rates of its own as a setting, and was comparable with no other one."""
    rates = {"nftables-nat44": 30_000, "linux-ipv4": 80_000}
    benches = Benches(gateway=lambda cell: Gateway(establishes=rates[str(cell.gateway)]))
    plan = TWO_GATEWAYS.replace("repetitions = 3", "repetitions = 2") + '[[measure]]\nmetric = "first-packet-delay"\n'
    campaign(tmp_path, benches, plan=plan)
    found = {name: result for name, result in summaries(tmp_path).items() if name.endswith("-first-packet-delay")}
    assert len({result.parameter("connection_rate") for result in found.values()}) == 2
    first, second = (str(tmp_path / "out" / "results" / name) for name in found)
    assert run(["diff", first, second, "--about", "device", "--margin", "50%", "--json"]) in (0, 1, 5)
    (line,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert line["outcome"] != "not compared"


def test_a_device_that_breaks_is_tried_twice_and_other_cells_go_on(tmp_path: Path, golden: Golden) -> None:
    benches = Benches(breaks={"linux-ipv4": BrokenError("linux-ipv4: does not come up: first cause")})
    campaign(tmp_path, benches, plan=RATES)
    assert [device for device, _ in benches.cells].count("linux-ipv4") == 2
    found = progress(tmp_path).measurements
    assert {bool(one.folder) for one in found if one.cell.startswith("nftables")} == {True}
    (cause,) = {one.broken for one in found if one.cell.startswith("linux")}
    golden(cause)
    assert not_ended(tmp_path).startswith("2 of 4 measurements broke; ")


def test_a_device_that_fails_for_a_moment_is_not_broken(tmp_path: Path, golden: Golden) -> None:
    made = itertools.count(1)

    def gateway(_cell: Any) -> Gateway:
        if next(made) in {2, 4}:
            raise BrokenError("device does not forward: 7 of 8 frames came back")
        return Gateway(establishes=30_000, forwards=60_000)

    campaign(tmp_path, Benches(gateway=gateway), plan=TWO_CELLS)
    assert done(tmp_path) == [(2, "")] * 4
    golden([entry["cause"] for entry in events(tmp_path, "device-failed")])


def test_what_cannot_be_measured_leaves_the_other_measurements_of_its_cell(tmp_path: Path, golden: Golden) -> None:
    """A device that forwards first frames only has a connection rate; nothing can be said of its latency."""
    plan = TWO_CELLS.replace('metric = "throughput"\nerror = "30%"', 'metric = "latency"')
    benches = Benches(
        gateway=lambda cell: Gateway(establishes=3e4, forwards=3e4 if cell.gateway == "linux-ipv4" else 0.5)
    )
    campaign(tmp_path, benches, plan=plan)
    found = {(one.cell[:3], one.measurement): one for one in progress(tmp_path).measurements}
    assert (bool(found["nft", "connection-rate"].folder), found["nft", "connection-rate"].broken) == (True, "")
    golden(found["nft", "latency"].broken)
    assert found["lin", "latency"].folder


def test_what_one_metric_wants_in_vain_leaves_the_other_metrics_of_its_cell(tmp_path: Path) -> None:
    campaign(tmp_path, Benches(refuses="throughput"), plan=TWO_CELLS)
    found = progress(tmp_path).measurements
    assert {one.measurement for one in found if one.broken} == {"throughput"}
    assert {one.measurement for one in found if one.folder} == {"connection-rate"}


def test_what_broke_is_tried_again_when_asked_for_and_stays_broken_in_cells_that_are_left_out(tmp_path: Path) -> None:
    """Seen: --retry-broken --only X took nothing for broken any more, and the session ended with status 0."""
    missing = HostError("nft is not installed")
    benches = Benches(breaks=dict.fromkeys(("linux-ipv4", "nftables-nat44"), missing))
    campaign(tmp_path, benches)
    visits = len(benches.cells)
    benches.breaks = {}
    campaign(tmp_path, benches)
    assert len(benches.cells) == visits
    campaign(tmp_path, benches, only=["nft*-1000"], retry_broken=True)
    assert broken_cells(tmp_path) == [
        "linux-ipv4-connections-1000", "linux-ipv4-connections-2000", "nftables-nat44-connections-2000"
    ]  # fmt: skip
    assert not_ended(tmp_path).startswith("6 of 8 measurements broke; ")
    campaign(tmp_path, benches, retry_broken=True)
    assert done(tmp_path) == [(2, "")] * 8
    assert not not_ended(tmp_path)


def test_repetitions_before_a_break_are_kept_and_say_so_until_the_device_is_tried_again_in_each_cell(
    tmp_path: Path, golden: Golden
) -> None:
    gateway = Goes(8)
    benches = Benches(gateway=gateway)
    campaign(tmp_path, benches)
    # All cells of the device have results of what they had.
    assert {one.done for one in progress(tmp_path).measurements} == {1}
    found = summaries(tmp_path)
    assert {len(result.repetitions) for result in found.values()} == {1}
    assert len(found) == 8
    one = found["linux-ipv4-connections-1000-connection-rate"]
    golden(one.notes)
    assert "single repetition" in [doubt.word for doubt in one.doubts]
    gateway.left = 100
    campaign(tmp_path, benches, only=["nft*-1000"], retry_broken=True)
    assert broken_cells(tmp_path) == ["linux-ipv4-connections-1000", "linux-ipv4-connections-2000"]
    said = not_ended(tmp_path)
    assert said.startswith("2 of 8 measurements have not ended, 4 of 8 measurements broke; ")
    assert "natgauge run" in said
    campaign(tmp_path, benches)
    ended = {one.cell: one.done for one in progress(tmp_path).measurements}
    assert ended == {name: 2 if name.startswith("nft") else 1 for name in ended}
    campaign(tmp_path, benches, retry_broken=True)
    for result in summaries(tmp_path).values():
        assert len(result.repetitions) == 2
        assert not any("broken" in note.text for note in result.notes)


def test_a_measurement_that_has_ended_is_not_broken_by_what_its_device_does_later(tmp_path: Path) -> None:
    """Seen: status and the end of the session counted it as broken, the report did not."""
    campaign(tmp_path, Benches(gateway=Goes(9)))
    found = progress(tmp_path).measurements
    assert [(one.measurement, one.done) for one in found if not one.broken] == [("connection-rate", 2)]
    assert not_ended(tmp_path).startswith("7 of 8 measurements broke; ")


def test_a_trial_that_could_not_be_run_breaks_its_measurement_and_is_begun_anew_when_retried(tmp_path: Path) -> None:
    broken = [True]

    class Breaks(Gateway):
        def measure(self, plan: PlanOfTrial) -> OneTrial:
            if broken[0] and len(self.plans) == 3:
                raise BrokenError("the engine broke")
            return super().measure(plan)

    benches = Benches(gateway=lambda _cell: Breaks(establishes=30_000, forwards=60_000))
    campaign(tmp_path, benches, plan=TWO_CELLS)
    assert {cause for _, cause in done(tmp_path)} == {"the engine broke"}
    broken[0] = False
    campaign(tmp_path, benches, plan=TWO_CELLS, retry_broken=True)
    assert done(tmp_path) == [(2, "")] * 4


def test_only_some_cells_are_visited_and_the_rest_is_left_for_later(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    benches = Benches()
    campaign(tmp_path, benches, only=["nft*-1000"])
    assert set(benches.cells) == {("nftables-nat44", 1000)}
    for left in (True, False):
        assert (", 12 left at most" in ran(["status", str(tmp_path / "out")]).out) == left
        campaign(tmp_path, benches)
    assert len(asked(tmp_path)) == 16
    with golden.raises(UsageError):
        campaign(tmp_path, benches, only=["tayga"])


def test_repeating_ends_when_the_median_is_known(tmp_path: Path) -> None:
    campaign(tmp_path, Benches(), plan=ONE_CONNECTION_RATE.replace("repetitions = 3", 'repetitions = "auto"'))
    assert done(tmp_path) == [(7, "")]
    assert len(summaries(tmp_path)) == 1


def test_a_second_natgauge_is_refused_while_one_measures(part: Path, golden: Golden) -> None:
    with (part / "out" / "journal.jsonl").open("rb") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        assert progress(part).runs
        with golden.raises(HostError):
            campaign(part, Benches())
        assert "natgauge run" not in not_ended(part)
    assert not progress(part).runs
    assert "natgauge run" in not_ended(part)


def test_status_tells_the_running_trial_and_the_time_left(tmp_path: Path) -> None:
    seen = []

    def gateway(_cell: object) -> Gateway:
        seen.append(progress(tmp_path))
        return Gateway(establishes=30_000, forwards=60_000)

    campaign(tmp_path, Benches(gateway=gateway), plan=RATES)
    assert [sum(one.done for one in each.measurements) for each in seen] == list(range(8))
    assert seen[0].seconds_left is None
    assert seen[5].seconds_left is not None
    assert all(each.runs for each in seen)


def test_status_tells_rates_that_the_tester_limited_as_bounds(tmp_path: Path) -> None:
    """Seen: "58.2 k frames/s", without the directions, of a tester that could do no more."""
    benches = Benches(gateway=lambda _cell: Gateway(establishes=1_000_000, forwards=1_000_000, ceiling=20_000))
    campaign(tmp_path, benches, only=["nft*-1000"])
    found = {one.measurement: one for one in progress(tmp_path).measurements if one.done}
    sending = {"connection-rate": "", "throughput": "in each direction"}
    assert {name: one.sending for name, one in found.items()} == sending
    assert [one.bounds for one in found.values()] == [[True, True]] * 2


def test_the_time_left_knows_that_large_cells_take_longer(tmp_path: Path) -> None:
    """The small cell is done; going by repetitions alone the large one would take as long as it did."""
    plan = PLAN.replace('["nftables-nat44", "linux-ipv4"]', '["nftables-nat44"]').replace(
        "[1000, 2000]", "[1000, 2000000]"
    )
    campaign(tmp_path, Benches(), plan=plan, only=["*-1000"])
    taken = sum(entry["seconds"] for entry in events(tmp_path, "repetition"))
    assert [ended for ended, _ in done(tmp_path)] == [2, 2, 0, 0]
    assert progress(tmp_path).seconds_left > 3 * taken > 0


def change_visits(folder: Path, **changed: Any) -> Path:
    """Write other fields into each line of a visit; a function is called for each."""
    path = folder / "out" / "journal.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["event"] == "visit":
            line |= {name: value(line) for name, value in changed.items()}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def visited_by(workers: int, folder: Path) -> Path:
    """Let so many workers have had the visits of a campaign in turn."""
    visits = itertools.count()
    return change_visits(folder, worker=lambda _: f"w{next(visits) % workers}")


def test_the_time_left_is_that_of_all_workers_together_but_of_a_cell_that_of_one(part: Path) -> None:
    """Seen: it was that of one worker for all, N times too long."""
    alone = progress(part).seconds_left
    assert 0.499 * alone < progress(visited_by(2, part)).seconds_left < 0.7 * alone
    one = part / "one"
    one.mkdir()
    with pytest.raises(Killed):
        campaign(one, Benches(killed=Dies(22)), plan=ONE_CONNECTION_RATE)
    alone = progress(one).seconds_left
    assert progress(visited_by(2, one)).seconds_left == pytest.approx(alone)


def test_the_time_left_has_what_labs_took(part: Path) -> None:
    """Seen: where a guest boots before each repetition, only the seconds of its trials counted."""
    change_visits(part, at=lambda line: line["at"] - 100)
    # Three cells with two rounds each.
    assert 599 < progress(part).seconds_left < 660


def test_the_folder_tells_plan_and_machine_but_not_the_hosts_name(part: Path) -> None:
    document = json.loads((part / "out" / "campaign.json").read_text())
    assert (document["schema"], document["name"], document["seed"]) == ("natgauge-campaign-1", "small", 5)
    assert len(document["sha256"]) == 64
    assert (part / "out" / "plan.toml").read_text() == PLAN
    machine = json.loads((part / "out" / "environment.json").read_text())["machine"]
    assert "kernel" in machine
    assert not {"host", "command_line"} & set(machine)


def test_others_can_run_the_plan_that_a_folder_keeps_and_nothing_needs_it(tmp_path: Path) -> None:
    """Seen: a reviewer with the folder of results had no plan to run; a copy must not get the name of its own file."""
    unnamed = PLAN.replace('name = "small"\n', "")
    with pytest.raises(Killed):
        campaign(tmp_path, Benches(killed=Dies(3)), plan=unnamed, only=["nft*-1000"])
    kept = tmp_path / "out" / "plan.toml"
    assert kept.read_text().endswith(unnamed)
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(Killed):
        campaign(other, Benches(killed=Dies(3)), plan=kept.read_text(), only=["nft*-1000"])
    first, second = (json.loads((folder / "out" / "campaign.json").read_text()) for folder in (tmp_path, other))
    assert (first["name"], first["sha256"]) == (second["name"], second["sha256"])
    kept.unlink()
    campaign(tmp_path, Benches(), plan=unnamed, only=["nft*-1000"])
    assert len(summaries(tmp_path)) == 2
    assert not kept.exists()
