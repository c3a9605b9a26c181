# SPDX-License-Identifier: Apache-2.0
"""`natgauge run` and `natgauge status`: what is printed, and the exit status."""

from __future__ import annotations

import json
import re
import shlex
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.unit.campaigning import ONE_CONNECTION_RATE, PLAN, Benches, Dies, Killed, Simulated, journal_dies, quick_disk
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_results import made
from tests.unit.simulated import Gateway

from natgauge.campaigns import campaign
from natgauge.campaigns.estimate import checked_estimate
from natgauge.campaigns.journal import Journal, entries
from natgauge.campaigns.status import CampaignStatus, MeasurementStatus
from natgauge.cli import run
from natgauge.cli.status import lines
from natgauge.errors import BrokenError, EndedBySignal, UsageError
from natgauge.host.settings import OccupiedError
from natgauge.labs.common import locks
from natgauge.stored.find_results import find

__all__ = ["quick_disk"]

#: What a campaign says of its duration.
TIMES = r"(?<=Time: )[\d.]+ s"
#: One metric in four cells, and in two.
RATES = PLAN.replace('[[measure]]\nmetric = "throughput"\nerror = "30%"\n', "")
BRIEF = RATES.replace("[1000, 2000]", "[1000]")


@pytest.fixture
def benches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Benches:
    """Those that the command line measures on; the plan lies beside."""
    made = Benches()
    monkeypatch.setattr(campaign, "run", partial(campaign.run, make_bench=made))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(BRIEF)
    return made


@pytest.fixture
def whole(benches: Benches) -> Benches:
    """The same with a plan of two metrics in four cells."""
    Path("small.toml").write_text(PLAN)
    return benches


def test_a_campaign_ends_with_all_its_values_and_the_way_to_the_table(whole: Benches, ran: Ran, golden: Golden) -> None:
    told = ran(["run", "small.toml"])
    golden(told.out, passing=TIMES)
    assert f"{sum(whole.trials.values())} trials" in told.out
    assert "cell nftables-nat44-connections-1000, round 2: " in told.err
    # Seen: thousands of words. A log has a line for each turn of a cell; -v prints every trial.
    assert "trial 1: " not in told.err
    assert sum(": 0 of" not in line and "left" in line for line in told.err.splitlines()) == 7
    assert "number of sessions" in ran(["report", *map(str, sorted(Path("results/small/results").iterdir()))]).out


@pytest.mark.usefixtures("benches")
def test_the_command_at_the_end_names_the_series_of_the_plan(ran: Ran) -> None:
    for number, (plan, against) in enumerate(
        (
            (RATES, ["--against", "connections"]),
            (RATES.replace("[series]", "[traffic]").replace("[1000, 2000]", "1000"), []),
        )
    ):
        assert plan.count("[series]") == bool(against)
        Path("small.toml").write_text(plan)
        (line,) = (
            line for line in ran(["run", "small.toml", "--out", f"out-{number}"]).out.splitlines() if "Tables: " in line
        )
        assert line.split()[1:] == ["natgauge", "report", *against, f"out-{number}"]
        ran(line.split()[2:])


def test_a_gateway_that_carries_nothing_is_told_after_its_first_repetition_and_first_at_the_end(
    whole: Benches, ran: Ran
) -> None:
    """Seen: a plan went on for an hour of zeros, and its end ranked them."""
    whole.gateway = lambda cell: Gateway(establishes=30_000, forwards=60_000 * (cell.gateway == "linux-ipv4"))
    # A result of 0 is one, as of `natgauge measure`.
    told = ran(["run", "small.toml"])
    assert told.out.startswith("0 in every repetition of 2 of 8 results: throughput of nftables-nat44.\n")
    rounds = [line for line in told.err.splitlines() if " repetitions done" in line]
    nothing = [line.startswith("0 in every repetition so far: throughput of nftables-nat44-connec") for line in rounds]
    first = next(at for at, line in enumerate(rounds) if "cell nftables-nat44" in line)
    assert nothing == [at > first for at in range(len(rounds))]
    assert " and 1 more; cell " in rounds[-1]
    # One gateway of which every frame comes through is no matter of this.
    whole.gateway = lambda _cell: Gateway(establishes=30_000, forwards=60_000)
    told = ran(["run", "small.toml", "--out", "other"])
    assert "0 in every repetition" not in told.out + told.err


def test_what_broke_is_told_and_ends_with_its_own_status(
    whole: Benches, capsys: pytest.CaptureFixture[str], golden: Golden, ran: Ran
) -> None:
    whole.breaks = {"linux-ipv4": BrokenError("linux-ipv4: does not come up")}
    told = ran(["run", "small.toml"], 4).out
    golden(told, passing=TIMES)
    # Seen: the command that it named had results only, and said nothing of what is missing.
    assert run(shlex.split(told.partition("Tables: natgauge ")[2].splitlines()[0])) == 0
    # Seen: the status called a campaign ended whose report said that measurements have not ended.
    assert ": 4 of 8 measurements broke; mend what natgauge status names, then " in capsys.readouterr().err
    assert "small: ended, 4 measurements broke; " in ran(["status", "results/small"]).out


def test_a_campaign_of_which_everything_broke_has_no_report_and_keeps_why(
    benches: Benches, ran: Ran, golden: Golden
) -> None:
    benches.breaks = dict.fromkeys(("linux-ipv4", "nftables-nat44"), BrokenError("does not come up"))
    ran(["run", "small.toml"], 4)
    for options in ([], ["--like", "v6ops-mail-forwarding"]):
        golden(ran(["report", *options, "results/small"], 2).err)
    kept = Path("results/small/campaign.json")
    first = kept.read_text()
    assert run(["run", "small.toml"]) == 2
    assert kept.read_text() == first


def test_a_signal_names_the_way_on_and_nothing_is_repeated(benches: Benches, ran: Ran, golden: Golden) -> None:
    benches.killed = Dies(5, by=EndedBySignal(signal.SIGINT))
    golden(ran(["run", "small.toml", "--out", "here"], 130).err)
    golden(ran(["run", "small.toml", "--out", "here"], 2).err)
    benches.killed = Dies()
    assert "4 repetitions done" in ran(["run", "small.toml", "--out", "here", "--resume"]).out


def test_the_way_on_after_a_signal_has_all_options_that_its_session_had(benches: Benches, ran: Ran) -> None:
    """Seen: without --only it went on with all cells."""
    Path("small.toml").write_text(RATES)
    benches.killed = Dies(5, by=EndedBySignal(signal.SIGINT))
    options = ["--out", "my folder", "--only", "nft*", "--only", "linux-ipv4-connections-1000", "--host-name"]
    (way_on,) = [
        line for line in ran(["run", "small.toml", *options], 130).err.splitlines() if "continue with: " in line
    ]
    words = shlex.split(way_on.partition("continue with: ")[2])
    assert words == ["natgauge", "run", "small.toml", *options, "--resume"]
    benches.killed = Dies()
    assert run(words[1:]) == 0
    assert len({(device, connections) for device, connections in benches.cells}) == 3


def test_the_lab_of_a_campaign_is_its_own_from_the_first_cell_to_the_last(
    benches: Benches, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Seen: another natgauge took its name between two cells."""
    monkeypatch.setattr(locks, "RUN", tmp_path / "run")
    before, labs = [], []

    def enter(bench: Simulated) -> Simulated:
        before.append(locks.Lock("mine").is_held())
        labs.append(locks.Lock(bench.cell.lab.lab_name))
        labs[-1].take()
        return bench

    monkeypatch.setattr(Simulated, "__enter__", enter)
    monkeypatch.setattr(Simulated, "__exit__", lambda *_: labs[-1].rest())
    assert run(["run", "small.toml", "--lab-name", "mine"]) == 0
    assert before == [False, *([True] * (len(benches.trials) * 2 - 1))]
    assert not locks.Lock("mine").is_held()


def test_an_error_that_passes_names_how_much_is_done_and_the_way_on(benches: Benches, ran: Ran, golden: Golden) -> None:
    """Seen: the lab was taken by another natgauge after half of the campaign, and nothing said how to go on."""
    benches.killed = Dies(
        20, by=locks.InUseError("lab mine: in use by process 7; wait until it has ended", another="lab_name")
    )
    *_, way_on, error = ran(["run", "small.toml", "--lab-name", "mine"], 3).err.splitlines()
    golden(f"{way_on}\n{error}")
    done = json.loads(Path("results/small/campaign.json").read_text())
    assert done["plan"]["lab"] == {"lab_name": "mine"}
    benches.killed = Dies()
    words = shlex.split(way_on.partition("continue with: ")[2])
    assert words == ["natgauge", "run", "small.toml", "--lab-name", "mine", "--resume"]
    assert run(words[1:]) == 0
    # A wrong question is not right later.
    benches.killed, benches.refuses = Dies(), "connection-rate"
    assert "continue with" not in ran(["run", "small.toml"], 2).err


def test_a_signal_before_the_campaign_has_a_folder_names_a_command_that_is_not_refused(
    benches: Benches, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: it named one with --resume, and there was nothing to resume."""

    def end(*_: object) -> None:
        raise EndedBySignal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(campaign, "checked_estimate", end)
        assert run(["run", "small.toml", "--only", "nft*"]) == 130
    (way_on,) = [line for line in capsys.readouterr().err.splitlines() if " with: " in line]
    words = shlex.split(way_on.partition("begin again with: ")[2])
    assert words == ["natgauge", "run", "small.toml", "--only", "nft*"]
    assert not benches.cells
    assert run(words[1:]) == 0


@pytest.mark.parametrize("options", [[], ["--only", "nothing"]], ids=["lab", "cell"])
def test_a_campaign_that_was_refused_before_its_first_trial_leaves_nothing(
    benches: Benches, options: list[str]
) -> None:
    """Seen: the lab was in use, and the next run said that the folder held a campaign already."""
    benches.breaks = dict.fromkeys(("linux-ipv4", "nftables-nat44"), OccupiedError("table_size: is in use"))
    Path("mine").mkdir()
    for out in ("mine", "mine/deeper/small", "results/small"):
        assert run(["run", "small.toml", "--out", out, *options]) in (2, 3)
        assert sorted(map(str, Path().rglob("*"))) == ["mine", "small.toml"]
    benches.breaks = {}
    assert run(["run", "small.toml", "--out", "mine"]) == 0


def test_a_campaign_without_a_trial_is_begun_again_unless_another_natgauge_measures_it(
    benches: Benches,
) -> None:
    ended: Any = EndedBySignal(signal.SIGTERM)
    benches.breaks = dict.fromkeys(("linux-ipv4", "nftables-nat44"), ended)
    assert run(["run", "small.toml"]) == 143
    (folder,) = Path("results").iterdir()
    first = (folder / "campaign.json").read_text()
    benches.breaks = {}
    with Journal(folder):
        assert run(["run", "small.toml"]) == 3
    (folder / "notes.txt").touch()
    assert run(["run", "small.toml"]) == 2
    assert (folder / "campaign.json").read_text() == first
    (folder / "notes.txt").unlink()
    assert run(["run", "small.toml"]) == 0
    assert [line["event"] for line in entries(folder)].count("session") == 1


def test_a_plan_that_the_user_wrote_into_the_folder_is_never_removed(benches: Benches) -> None:
    """`natgauge run study/plan.toml --out study` removed its own plan where the lab was in use."""
    benches.breaks = dict.fromkeys(("linux-ipv4", "nftables-nat44"), OccupiedError("table_size: is in use"))
    study = Path("study")
    study.mkdir()
    (study / "plan.toml").write_text(BRIEF)
    for plan in ("study/plan.toml", "small.toml"):
        assert run(["run", plan, "--out", "study"]) == 2
        assert [path.name for path in study.iterdir()] == ["plan.toml"]
    # One that was not there when natgauge looked.
    with pytest.raises(UsageError, match="refused"), campaign.left_unless_used(study):
        raise UsageError("refused")
    assert (study / "plan.toml").read_text() == BRIEF


def test_the_copy_of_a_plan_in_the_folder_of_its_campaign_is_not_replaced_by_itself(benches: Benches, ran: Ran) -> None:
    ended: Any = EndedBySignal(signal.SIGTERM)
    benches.breaks = dict.fromkeys(("linux-ipv4", "nftables-nat44"), ended)
    assert run(["run", "small.toml"]) == 143
    kept, changed = Path("results/small/plan.toml"), BRIEF.replace("seed = 5", "seed = 6")
    kept.write_text(changed)
    benches.breaks = dict.fromkeys(benches.breaks, OccupiedError("table_size: is in use"))
    assert "campaign: results/small holds one already; " in ran(["run", str(kept)], 2).err
    assert kept.read_text() == changed


def test_a_campaign_that_began_in_the_folder_meanwhile_is_not_overwritten(
    benches: Benches, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: its plan and its machine were replaced, and its journal stayed."""
    del benches

    def meanwhile(*given: Any) -> Any:
        monkeypatch.setattr(campaign, "checked_estimate", checked_estimate)
        campaign.run(campaign.RunOrder(plan=Path("small.toml"), only=["nft*-1000"]))
        return checked_estimate(*given)

    monkeypatch.setattr(campaign, "checked_estimate", meanwhile)
    Path("other.toml").write_text(BRIEF.replace("seed = 5", "seed = 6"))
    assert "campaign: results/small holds one already; " in ran(["run", "other.toml"], 2).err
    assert json.loads(Path("results/small/campaign.json").read_text())["seed"] == 5
    assert run(["run", "small.toml", "--resume"]) == 0


#: One measurement of each of two devices, of which one never has the value that is demanded.
ONE_DEMANDED = (
    ONE_CONNECTION_RATE.replace('["linux-ipv4"]', '["linux-ipv4", "nftables-nat44"]')
    + 'gateways = ["linux-ipv4"]\nat_least = 1e9\n'
    + '[[measure]]\nmetric = "connection-rate"\nerror = "50%"\ngateways = ["nftables-nat44"]\n'
)


def test_cells_that_a_session_leaves_out_decide_its_exit_status_only_when_they_have_ended(benches: Benches) -> None:
    """Seen: two repetitions of three, of a cell that --only left out, ended a good session with 5."""
    Path("small.toml").write_text(ONE_DEMANDED)
    benches.killed = Dies(22)
    with pytest.raises(Killed):
        run(["run", "small.toml", "--only", "linux*"])
    assert [result.is_complete for result in find([Path("results/small")]).results] == [False]
    benches.killed = Dies()
    assert run(["run", "small.toml", "--resume", "--only", "nft*"]) == 0
    assert run(["run", "small.toml", "--resume"]) in (5, 13)


#: Three plans of one short measurement each.
SEVERAL = ["first.toml", "second.toml", "third.toml"]


@pytest.fixture
def several(benches: Benches) -> Benches:
    """The plans lie there; their devices differ."""
    devices = ["nftables-nat44", "linux-ipv4", "iptables-nat44"]
    for name, device in zip(SEVERAL, devices, strict=True):
        text = ONE_CONNECTION_RATE.replace('name = "small"', "").replace("linux-ipv4", device)
        Path(name).write_text(text)
    return benches


def test_several_plans_have_a_folder_each_and_a_report_of_all(several: Benches, ran: Ran) -> None:
    several.breaks = {"linux-ipv4": BrokenError("linux-ipv4: does not come up")}
    told = ran(["run", *SEVERAL, "--out", "all"], 4).out
    assert re.findall(r"^(\w+): ended[^;]*; 1 cell, (\d)", told, re.MULTILINE) == [
        ("first", "3"),
        ("second", "0"),
        ("third", "3"),
    ]
    assert len(re.findall(r"^  Time: [\d.]+ s$", told, re.MULTILINE)) == 3
    assert sorted(path.name for path in Path("all").iterdir()) == ["first", "second", "third"]
    assert re.findall(
        r"^(\w+): ended", ran(["status", *(f"all/{name.removesuffix('.toml')}" for name in SEVERAL)]).out, re.MULTILINE
    ) == ["first", "second", "third"]
    assert "iptables-nat44" in ran(["report", "--against", "gateway", "all"]).out


def test_several_plans_are_resumed_where_a_signal_ended_them(several: Benches, ran: Ran, golden: Golden) -> None:
    trials = Dies(8, by=EndedBySignal(signal.SIGINT))
    several.killed = trials
    golden(ran(["run", *SEVERAL], 130).err)
    begun = sorted(path.name for path in Path("results").iterdir())
    assert begun in (["first"], ["first", "second"])
    # Nothing is measured before all folders are known to be free.
    several.killed = Dies(0)
    golden(ran(["run", *SEVERAL], 2).err)
    several.killed = Dies()
    assert ran(["run", *SEVERAL, "--resume"]).out.count("3 repetitions done") == 3


def test_an_error_in_one_of_several_plans_does_not_end_the_others(several: Benches, ran: Ran, golden: Golden) -> None:
    several.breaks = {"linux-ipv4": ValueError("unforeseen")}
    said = ran(["run", *SEVERAL], 4)
    assert re.findall(r"^(\w+): ended", said.out, re.MULTILINE) == ["first", "third"]
    (error,) = [line for line in said.err.splitlines() if line.startswith("natgauge: ")]
    golden(error)


def test_a_refused_one_of_several_plans_does_not_end_the_others_though_it_leaves_no_folder(
    several: Benches, ran: Ran
) -> None:
    several.breaks = {"linux-ipv4": OccupiedError("table_size: is in use")}
    told = ran(["run", *SEVERAL], 3)
    assert re.findall(r"^(\w+): ended", told.out, re.MULTILINE) == ["first", "third"]
    assert sorted(path.name for path in Path("results").iterdir()) == ["first", "third"]
    several.breaks = {}
    assert (
        ran(shlex.split(told.err.splitlines()[-1].partition("continue with: natgauge ")[2])).out.count(
            "3 repetitions done"
        )
        == 3
    )


@pytest.mark.parametrize(
    ("second", "options", "told"),
    [
        ('gateways = ["linux-ipv9"]\n[[measure]]\nmetric = "throughput"\n', [], "second.toml"),
        (
            'name = "first"\n' + ONE_CONNECTION_RATE.replace('name = "small"', ""),
            [],
            "first.toml are both called first",
        ),
        ("", ["--only", "x"], "--only: x: names a cell of one plan, and 3 are given; give one"),
    ],
)
def test_wrong_plans_among_several_are_refused_before_the_first_one_begins(
    several: Benches, ran: Ran, second: str, options: list[str], told: str
) -> None:
    Path("second.toml").write_text(second)
    (line,) = ran(["run", *SEVERAL, *options], 2).err.splitlines()
    assert told in line
    assert not several.cells
    assert not Path("results").exists()


def test_the_status_of_a_killed_campaign_names_the_trial_and_the_bounds(
    benches: Benches, capsys: pytest.CaptureFixture[str], golden: Golden, ran: Ran
) -> None:
    """The lines are those of the session, of the cell run and of three trials; a killed session writes no last one."""
    benches.killed = Dies(2)
    with pytest.MonkeyPatch.context() as patch:
        journal_dies(patch, Dies(6), octets=0)
        with pytest.raises(Killed):
            run(["run", "small.toml"])
    assert sum(benches.trials.values()) == 2
    capsys.readouterr()
    told = ran(["status", "results/small"]).out
    golden(told, passing=TIMES)
    document = json.loads(ran(["status", "results/small", "--json"]).out)
    assert document["name"] == "small"
    assert document["now"]["trial"] == 3
    assert not document["runs"]
    assert len(document["measurements"]) == 2
    benches.killed = Dies()
    ran(["run", "small.toml", "--resume"])
    assert run(["status", "results/small"]) == 0
    # The trial that the kill ended is not one of them.
    assert f"; {sum(benches.trials.values())} trials" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["status", "nowhere"], ["run", "small.toml", "--resume"], ["run", "nowhere.toml"]])
def test_where_there_is_no_campaign_one_line_says_so(benches: Benches, ran: Ran, command: list[str]) -> None:
    del benches
    told = ran(command, 2).err
    assert told.count("\n") == 1
    assert not Path("results").exists()


def measured(cell: str = "cell", measurement: str = "throughput", **changed: Any) -> MeasurementStatus:
    """The status of a measurement that has ended, if nothing else is said."""
    fields: dict[str, Any] = {
        "done": 1, "most_repetitions": 1, "estimated_seconds": 1.0, "values": (1.0,), "cut_off": 0,
        "unit": "frames/s", "folder": "", "broken": "", "sending": "",
    }  # fmt: skip
    fields = {**fields, **changed}
    return MeasurementStatus(cell, measurement, bounds=fields.pop("bounds", (False,) * len(fields["values"])), **fields)


def told(*measurements: MeasurementStatus, now: Any = None, folder: Path | None = None) -> list[str]:
    """What `natgauge status` prints of them."""
    runs = now is not None
    whole = CampaignStatus(
        "x", folder or Path(), runs, measurements, now=now, beside=(), trials=3, visits=3, seconds_left=None
    )
    return lines(whole)


def test_a_single_measurement_that_broke_is_no_plural() -> None:
    one = measured(most_repetitions=2, broken="does not come up")
    first, *_, last = told(one, measured(measurement="latency", done=2, most_repetitions=2))
    assert first.startswith("x: ended, 1 measurement broke; ")
    assert last == "  broken: throughput of cell: does not come up"
    cut = measured(most_repetitions=2, cut_off=1, cut_off_bounds=((1234.0, 5678.0),))
    assert "1 cut off by its time, 1,234 to 5,678 frames/s" in told(cut)[-1]


@pytest.mark.parametrize(
    ("metric", "rates", "of_load", "of_bounds"),
    [
        ("connection-rate", None, "connections/s", "connections/s"),
        ("table-capacity", None, "connections/s", "connections"),
        ("subscribers", (9e5, 3e6), "subscribers", "subscribers"),
        ("throughput", (4406.0, 4406.0), *["frames/s in each direction"] * 2),
        ("throughput", (2203.0, 6609.0), *["frames/s on average of both directions"] * 2),
        ("latency", (4406.0, 0.0), *["frames/s from inside"] * 2),
    ],
)
def test_the_load_and_the_bounds_of_the_running_trial_have_units(
    metric: str, rates: tuple[float, float] | None, of_load: str, of_bounds: str
) -> None:
    phase2 = None if rates is None else {"initiator_rate": rates[0], "responder_rate": rates[1]}
    bounds = {"lower": 2203.0, "upper": None, "trials_left": 4}
    now = {"cell": "cell", "measurement": "own name", "repetition": 1, "metric": metric, "trial": 3, "load": 4406.0}
    now |= {"bounds": bounds, "plan": {"phase2": phase2}}
    one = measured(
        measurement="own name", done=2, most_repetitions=3, values=(58_190.0, 58_190.0), bounds=(False, True),
        sending="in each direction",
    )  # fmt: skip
    _, running, table = told(one, now=now)
    said = f"at 4,406 {of_load}, above 2,203 {of_bounds}"
    assert running == f"  now: cell own name, repetition 1: {metric} trial 3 {said}, about 4 trials left"
    assert table.endswith("2 of 3: 58.2 k, at least 58.1 k frames/s in each direction")


@pytest.mark.parametrize(
    ("word", "value", "end"),
    [
        ("bucket", 0.2, ", in doubt: at most 102"),
        ("rare loss", None, ", in doubt: at least 99"),
        ("queues", 0.02, "/s"),
    ],
)
def test_values_of_a_status_have_the_bound_that_doubts_leave_of_them_in_the_report(
    tmp_path: Path, word: str, value: float | None, end: str
) -> None:
    """Seen: a run ended with 284.2 k (278.9 k to 289.5 k), and its report said at most 317 k of the same result."""
    values = (99.0, 100.0, 101.0, 102.0)
    grade = "interval" if word == "queues" else "answer"
    doubts, unit = [{"word": word, "text": "x", "value": value, "grade": grade}], "connections/s"
    result = made(values, median=100.5, metric="connection-rate", unit=unit, doubts=doubts)
    (tmp_path / "summary.json").write_text(json.dumps(result.document()))
    one = measured(measurement="connection-rate", done=4, most_repetitions=4, values=values, unit=unit, folder=".")
    assert told(one, folder=tmp_path)[-1].endswith(end)


def test_the_status_of_gateways_with_long_names_and_many_values_fits() -> None:
    values = tuple(1.5 * 10.0**size for size in range(7))
    name = "a-gateway-with-a-name-of-sixty-letters-which-is-longer-than-any"
    shown = told(
        *(
            measured(f"{name}-{at}", done=7, most_repetitions=7, values=values, folder="x", sending="")
            for at in range(40)
        )
    )
    assert max(map(len, shown)) <= 100
    assert sum("7 of 7: median 1,500, all 1.5 to 1.5 M frames/s" in line for line in shown) == 40
