# SPDX-License-Identifier: Apache-2.0
"""`natgauge run` and `natgauge status`: what is printed, and the exit status."""

from __future__ import annotations

import fcntl
import json
import re
import shlex
import shutil
import signal
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.unit.campaigning import (
    ONE_CONNECTION_RATE,
    PLAN,
    Benches,
    Dies,
    Killed,
    Simulated,
    campaign,
    journal_dies,
    occupied,
    quick_disk,
    simulated_benches,
)
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_registers import is_used, own_labs, used
from tests.unit.made_results import made
from tests.unit.simulated import Gateway

from natgauge.cli import run
from natgauge.errors import BrokenError, EndedBySignal, HostError

__all__ = ["own_labs", "quick_disk", "simulated_benches"]

#: What a campaign says of its duration.
TIMES = r"(?<=Time: )[\d.]+ s"
#: One metric in four cells, and in two.
RATES = PLAN.replace('[[measure]]\nmetric = "throughput"\nerror = "30%"\n', "")
BRIEF = RATES.replace("[1000, 2000]", "[1000]")


@pytest.fixture
def benches(simulated_benches: Benches) -> Benches:
    """Those that the command line measures on; the plan lies beside."""
    Path("small.toml").write_text(BRIEF)
    return simulated_benches


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


@pytest.mark.usefixtures("own_labs")
def test_the_lab_of_a_campaign_is_its_own_from_the_first_cell_to_the_last(
    benches: Benches, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: another natgauge took its name between two cells."""
    before, labs = [], ExitStack()

    def enter(bench: Simulated) -> Simulated:
        before.append(is_used("mine"))
        labs.enter_context(used(bench.cell.lab.lab_name))
        return bench

    monkeypatch.setattr(Simulated, "__enter__", enter)
    monkeypatch.setattr(Simulated, "__exit__", lambda *_: labs.close())
    ran(["run", "small.toml", "--lab-name", "mine"])
    assert before == [False, *([True] * (len(benches.trials) * 2 - 1))]
    assert not is_used("mine")


def test_an_error_that_passes_names_how_much_is_done_and_the_way_on(benches: Benches, ran: Ran, golden: Golden) -> None:
    """Seen: the lab was taken by another natgauge after half of the campaign, and nothing said how to go on."""
    passes = HostError("lab mine: in use by process 7; wait until it has ended", at="lab_name")
    passes.another = "lab_name"
    benches.killed = Dies(20, by=passes)
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


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Have something happen before the next folder is made, which is after natgauge has looked whether it is free."""
    make = Path.mkdir

    def happens(what: Callable[[], object]) -> None:
        def mkdir(path: Path, *given: Any, **options: Any) -> None:
            monkeypatch.setattr(Path, "mkdir", make)
            what()
            make(path, *given, **options)

        monkeypatch.setattr(Path, "mkdir", mkdir)

    return happens


def test_a_signal_before_the_campaign_has_a_folder_names_a_command_that_is_not_refused(
    benches: Benches, ran: Ran, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    """Seen: it named one with --resume, and there was nothing to resume."""

    def end() -> None:
        raise EndedBySignal(signal.SIGINT)

    meanwhile(end)
    said = ran(["run", "small.toml", "--only", "nft*"], 130).err
    (way_on,) = [line for line in said.splitlines() if " with: " in line]
    words = shlex.split(way_on.partition("begin again with: ")[2])
    assert words == ["natgauge", "run", "small.toml", "--only", "nft*"]
    assert not benches.cells
    assert run(words[1:]) == 0


@pytest.mark.parametrize("options", [[], ["--only", "nothing"]], ids=["lab", "cell"])
def test_a_campaign_that_was_refused_before_its_first_trial_leaves_nothing(
    benches: Benches, options: list[str]
) -> None:
    """Seen: the lab was in use, and the next run said that the folder held a campaign already."""
    benches.breaks = dict.fromkeys(("linux-ipv4", "nftables-nat44"), occupied())
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
    with (folder / "journal.jsonl").open("rb") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        assert run(["run", "small.toml"]) == 3
    (folder / "notes.txt").touch()
    assert run(["run", "small.toml"]) == 2
    assert (folder / "campaign.json").read_text() == first
    (folder / "notes.txt").unlink()
    assert run(["run", "small.toml"]) == 0
    events = [json.loads(line)["event"] for line in (folder / "journal.jsonl").read_text().splitlines()]
    assert events.count("session") == 1


def test_a_plan_that_the_user_wrote_into_the_folder_is_never_removed(
    benches: Benches, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    """`natgauge run study/plan.toml --out study` removed its own plan where the lab was in use."""
    benches.breaks = dict.fromkeys(("linux-ipv4", "nftables-nat44"), occupied())
    study = Path("study")
    study.mkdir()
    (study / "plan.toml").write_text(BRIEF)
    for plan in ("study/plan.toml", "small.toml"):
        assert run(["run", plan, "--out", "study"]) == 2
        assert [path.name for path in study.iterdir()] == ["plan.toml"]
    # One that was not there when natgauge looked.
    (study / "plan.toml").unlink()
    meanwhile(lambda: (study / "plan.toml").write_text(BRIEF))
    assert run(["run", "small.toml", "--out", "study"]) == 2
    assert (study / "plan.toml").read_text() == BRIEF


def test_the_copy_of_a_plan_in_the_folder_of_its_campaign_is_not_replaced_by_itself(benches: Benches, ran: Ran) -> None:
    ended: Any = EndedBySignal(signal.SIGTERM)
    benches.breaks = dict.fromkeys(("linux-ipv4", "nftables-nat44"), ended)
    assert run(["run", "small.toml"]) == 143
    kept, changed = Path("results/small/plan.toml"), BRIEF.replace("seed = 5", "seed = 6")
    kept.write_text(changed)
    benches.breaks = dict.fromkeys(benches.breaks, occupied())
    assert "campaign: results/small holds one already; " in ran(["run", str(kept)], 2).err
    assert kept.read_text() == changed


@pytest.mark.usefixtures("benches")
def test_a_campaign_that_began_in_the_folder_meanwhile_is_not_overwritten(
    ran: Ran, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    """Seen: its plan and its machine were replaced, and its journal stayed."""
    meanwhile(lambda: ran(["run", "small.toml", "--only", "nft*-1000"]))
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


def test_cells_that_a_session_leaves_out_decide_its_exit_status_only_when_they_have_ended(
    benches: Benches, ran: Ran
) -> None:
    """Seen: two repetitions of three, of a cell that --only left out, ended a good session with 5."""
    Path("small.toml").write_text(ONE_DEMANDED)
    benches.killed = Dies(22)
    with pytest.raises(Killed):
        run(["run", "small.toml", "--only", "linux*"])
    every = json.loads(ran(["status", "--json", "results/small"]).out)["measurements"]
    assert [(one["done"], one["most_repetitions"]) for one in every if one["done"]] == [(2, 3)]
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
    several.breaks = {"linux-ipv4": occupied()}
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


# The status of campaigns that have been: their folders, with other figures.

#: One measurement of seven repetitions.
SEVEN = ONE_CONNECTION_RATE.replace("repetitions = 3", "repetitions = 7")
THROUGHPUT = ONE_CONNECTION_RATE.replace('"connection-rate"', '"throughput"')
Line: TypeAlias = dict[str, Any]


def edited(folder: Path, change: Callable[[list[Line]], Iterable[Line]]) -> str:
    """Change the lines of the journal; what to call `natgauge status` with."""
    path = folder / "out" / "journal.jsonl"
    lines = change([json.loads(line) for line in path.read_text().splitlines()])
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return str(folder / "out")


@pytest.fixture(scope="module")
def seven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign that has ended."""
    folder = tmp_path_factory.mktemp("seven")
    campaign(folder, Benches(), plan=SEVEN)
    return folder


def test_a_single_measurement_that_broke_is_no_plural(benches: Benches, ran: Ran) -> None:
    benches.breaks = {"linux-ipv4": BrokenError("does not come up")}
    ran(["run", "small.toml"], 4)
    first, *_, last = ran(["status", "results/small"]).out.splitlines()
    assert first.startswith("small: ended, 1 measurement broke; ")
    assert last.startswith("  broken: connection-rate of linux-ipv4-connections-1000: ")


def test_a_repetition_that_its_time_cut_off_is_its_bounds(seven: Path, tmp_path: Path, ran: Ran) -> None:
    def cut(lines: list[Line]) -> Iterable[Line]:
        last = [line for line in lines if line["event"] == "repetition"][-1]
        last["measured"]["measurements"][0] |= {"limited_by": "time", "value": 1234.0, "upper": 5678.0}
        return lines

    said = ran(["status", edited(shutil.copytree(seven, tmp_path / "x"), cut)]).out
    assert "; 1 cut off by its time, 1,234 to 5,678 connections/s" in said.splitlines()[-1]


@pytest.fixture(scope="module")
def third(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign that was killed in a trial of its third repetition."""
    folder, benches, begun = tmp_path_factory.mktemp("third"), Benches(), []

    def gateway(_cell: object) -> Gateway:
        begun.append(1)
        benches.killed = Dies(2 if len(begun) == 3 else None)
        return Gateway(establishes=30_000, forwards=60_000)

    benches.gateway = gateway
    with pytest.raises(Killed):
        campaign(folder, benches, plan=THROUGHPUT)
    return folder


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
def test_the_load_and_the_bounds_of_the_running_trial_have_units(  # noqa: PLR0917 - one per column
    metric: str, rates: tuple[float, float] | None, of_load: str, of_bounds: str, third: Path, tmp_path: Path, ran: Ran
) -> None:
    def running(lines: list[Line]) -> Iterable[Line]:
        # The last one says that the session has ended.
        now, plan = lines[-2], lines[-2]["plan"]
        assert (now["event"], now["repetition"]) == ("trial", 3)
        frames = next(line["plan"]["phase2"] for line in lines if line["event"] == "trial" and line["plan"]["phase2"])
        now |= {"metric": metric, "trial": 3, "load": 4406.0}
        now["bounds"] = {"lower": 2203.0, "upper": None, "trials_left": 4}
        plan["phase2"] = rates and {**frames, "initiator_rate": rates[0], "responder_rate": rates[1]}
        for line, limit in zip(
            (one for one in lines if one["event"] == "repetition"), ("device", "tester"), strict=True
        ):
            line["measured"]["measurements"][0] |= {"value": 58_190.0, "limited_by": limit}
        return lines[:-1]

    folder = edited(shutil.copytree(third, tmp_path / "x"), running)
    with Path(folder, "journal.jsonl").open("rb") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        _, now, table = ran(["status", folder]).out.splitlines()
    said = f"at 4,406 {of_load}, above 2,203 {of_bounds}"
    assert now == f"  now: linux-ipv4 throughput, repetition 3: {metric} trial 3 {said}, about 4 trials left"
    assert table.endswith("2 of 3: 58.2 k, at least 58.1 k frames/s in each direction")


@pytest.mark.parametrize(
    ("word", "value", "end"),
    [
        ("bucket", 0.2, ", in doubt: at most 102"),
        ("rare loss", None, ", in doubt: at least 99"),
        ("queues", 0.02, "/s"),
    ],
)
def test_values_of_a_status_have_the_bound_that_doubts_leave_of_them_in_the_report(  # noqa: PLR0917 - one per column
    word: str, value: float | None, end: str, seven: Path, tmp_path: Path, ran: Ran
) -> None:
    """Seen: a run ended with 284.2 k (278.9 k to 289.5 k), and its report said at most 317 k of the same result."""
    values = (99.0, 100.0, 101.0, 102.0)
    grade = "interval" if word == "queues" else "answer"
    doubts, unit = [{"word": word, "text": "x", "value": value, "grade": grade}], "connections/s"
    result = made(values, median=100.5, metric="connection-rate", unit=unit, doubts=doubts)
    folder = shutil.copytree(seven / "out", tmp_path / "out")
    (summary,) = folder.glob("results/*/summary.json")
    summary.write_text(json.dumps(result.document()))
    assert ran(["status", str(folder)]).out.rstrip().endswith(end)
    summary.unlink()
    assert ran(["status", str(folder)]).out.rstrip().endswith(" connections/s")


def test_the_status_of_gateways_with_long_names_and_many_values_fits(seven: Path, tmp_path: Path, ran: Ran) -> None:
    names = [f"a-gateway-with-a-name-of-sixty-letters-which-is-longer-than-any-{at}" for at in range(40)]

    def of_many(lines: list[Line]) -> Iterable[Line]:
        ended = [line for line in lines if line["event"] == "repetition"]
        for size, line in enumerate(ended):
            line["measured"]["measurements"][0]["value"] = 1.5 * 10.0**size
        return [{**line, "cell": name} for name in names for line in ended]

    folder = shutil.copytree(seven, tmp_path / "x")
    path = folder / "out" / "campaign.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "cells": [{**document["cells"][0], "name": name} for name in names]}))
    shown = ran(["status", edited(folder, of_many)]).out.splitlines()
    assert max(map(len, shown)) <= 100
    assert sum("7 of 7: median 1,500, all 1.5 to 1.5 M connections/s" in line for line in shown) == 40
