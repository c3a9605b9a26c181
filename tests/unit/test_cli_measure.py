# SPDX-License-Identifier: Apache-2.0
"""The command line around a measurement: what is printed, how signals and errors end it."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import rich.live
from tests.simulated_lab import NAT44, ROUTING, Simulation, simulated
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_results import kept, made
from tests.unit.simulated import Gateway

import natgauge
from natgauge.cli import run
from natgauge.errors import BrokenError, FaultError, HostError, NatgaugeError

#: Of the simulated gateway of `lab`.
OF_LAB = [
    *("measure", "throughput", "--gateway", str(NAT44), "--lab", "simulated", "--placement", "shared"),
    *("--connections", "1000", "--repeat", "2", "--seed", "7"),
]
KNOWN_RATE = ("--connection-rate", "100000")


@pytest.fixture
def lab(in_an_empty_folder: Path) -> Iterator[Simulation]:
    """A lab with a gateway of 400,000 frames/s on the sender's core, in which the command line measures."""
    assert in_an_empty_folder.is_dir()
    with simulated() as simulation:
        simulation.start = lambda _lab: Gateway(forwards=400_000.0, placement="shared")
        yield simulation


@pytest.mark.usefixtures("lab")
def test_json_is_exactly_one_object_with_the_promised_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*OF_LAB, *KNOWN_RATE, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    promised = "schema metric unit median p1 p99 minimum maximum repetitions error limited_by parameters trials doubts"
    assert set(promised.split()) <= set(document)
    assert (document["metric"], document["unit"]) == ("throughput", "frames/s")
    assert list(document["parameters"]) == ["settings", "traffic", "place", "device"]
    assert document["parameters"]["place"]["placement"] == "shared"
    assert document["parameters"]["settings"]["error"] == "1%"
    values = [one["value"] for one in document["repetitions"]]
    assert (min(values), max(values), len(values)) == (document["minimum"], document["maximum"], 2)
    assert set(document["trials"]) == {"PASS", "FAIL", "INVALID", "COLLAPSED"}


@pytest.mark.usefixtures("lab")
def test_options_reach_the_question_and_what_was_not_given_does_not(ran: Ran) -> None:
    chosen = ["--repeat", "1", "--error", "2%", "--direction", "up", "--frame-size", "128", *KNOWN_RATE]
    found = json.loads(ran([*OF_LAB, *chosen, "--json"]).out)["parameters"]
    assert (found["settings"]["error"], found["traffic"]["directions"]) == ("2%", "up")
    assert (found["traffic"]["connections"], found["traffic"]["frame_size"]) == (1000, 128)
    assert (found["traffic"]["seed"], found["place"]["placement"]) == (7, "shared")
    words = shlex.split(found["place"]["command"])
    asked = {*OF_LAB[2::2], *(word.replace("--direction", "--directions") for word in chosen[::2])}
    assert {word for word in words if word.startswith("--")} == asked
    assert (words[words.index("--repeat") + 1], words[words.index("--directions") + 1]) == ("1", "up")


@pytest.mark.usefixtures("lab")
def test_the_summary_is_in_words_and_with_v_has_all_notes_and_each_trial_is_a_plain_line_on_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([*OF_LAB, *KNOWN_RATE]) == 0
    brief = capsys.readouterr()
    told = [line.strip() for line in brief.out.splitlines()]
    assert told[0].startswith("simulated forwards 398 k frames/s in each direction without loss: ")
    assert "796 k frames/s all directions together." in told[0]
    assert "Bottleneck: a core of the device, which had no time left." in told
    assert any(line.startswith("1,000 connections, 64-octet frames on the inside, ") for line in told)
    assert told[-1].startswith("Evidence: results/")
    lines = [line for line in brief.err.splitlines() if "trial" in line]
    assert sum(": ok " in line or ": too fast " in line for line in lines) == len(lines) > 5
    assert "\x1b" not in "".join(lines)
    assert run([*OF_LAB, *KNOWN_RATE, "-v"]) == 0
    full = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert full[0] == told[0]
    assert set(told[:-1]) < set(full)
    # A note that every run repeats.
    assert [line for line in full if "RFC 2544 section 24 requires 60 s" in line]
    assert not [line for line in told if "RFC 2544 section 24 requires 60 s" in line]


OF_TERMINAL = re.compile(r"[\r\n]|\x1b\[[\d?;]*\w")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes standard error a terminal of this width, on which every change of the live line is drawn at once."""
    update = rich.live.Live.update

    def of(width: int) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr(rich.live.Live, "update", lambda live, shown: update(live, shown, refresh=True))

    return of


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("width", [100, 40])
def test_on_a_terminal_one_live_line_shows_rate_bounds_and_time_left_and_a_narrow_one_cuts_it(
    width: int, terminal: Callable[[int], None], ran: Ran, golden: Golden
) -> None:
    terminal(width)
    drawn = ran([*OF_LAB, *KNOWN_RATE, "--repeat", "1"]).err
    lines = [line for line in OF_TERMINAL.split(drawn) if "throughput 1/1: " in line]
    assert len(lines) > 20
    assert max(map(len, lines)) <= width
    running = [line for line in lines if line.endswith(", trial 14, 0.0 s" if width == 100 else "…")][-1]
    golden(running)
    if width == 100:
        for part in ("frames/s in each direction", "between", " s left"):
            assert part in running
    # It disappears at the end.
    assert drawn.endswith("\x1b[1A\x1b[2K")


def test_a_part_of_the_work_with_a_long_name_is_cut_on_the_live_line(
    lab: Simulation, terminal: Callable[[int], None], tmp_path: Path, ran: Ran
) -> None:
    name = f"{'long-' * 12}one"
    (tmp_path / f"{name}.toml").write_text(NAT44.read_text().replace('name = "simulated"', f'name = "{name}"'))
    lab.start = lambda _lab: Gateway(forwards=400_000.0, placement="shared")
    terminal(60)
    asked = [word if word != str(NAT44) else f"./{name}.toml" for word in OF_LAB]
    drawn = OF_TERMINAL.split(ran([*asked, *KNOWN_RATE, "--repeat", "1"]).err)
    lines = [line for line in drawn if "measuring throughput of long-" in line]
    assert {(len(line), line[-1]) for line in lines} == {(60, "…")}


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("verbose", [False, True])
def test_on_a_terminal_trials_are_lines_only_when_the_user_wants_them(
    *, verbose: bool, terminal: Callable[[int], None], ran: Ran
) -> None:
    terminal(200)
    drawn = ran([*OF_LAB, *KNOWN_RATE, *(["-v"] if verbose else [])]).err
    assert "throughput 1/2: " in drawn
    assert bool(re.findall(r"trial \d+: (?:\x1b\[[\d;]*m)?(?:ok|too fast)", drawn)) == verbose


def _lines_of_periods(lab: Simulation, ran: Ran, periods: int, loses_in: frozenset[int] = frozenset()) -> list[str]:
    lab.start = lambda _lab: Gateway(loses_in=loses_in)
    asked = ["measure", "stability", "--gateway", str(ROUTING), "--lab", "simulated", "--connections", "1000"]
    rates = ["--connection-rate", "1000000", "--throughput-rate", "1000000", "--hours", str(periods / 3600)]
    return [line for line in ran([*asked, *rates, "--repeat", "1"]).err.splitlines() if "period" in line]


def test_of_many_periods_those_with_another_verdict_than_the_one_before_are_lines_with_their_numbers(
    lab: Simulation, ran: Ran, golden: Golden
) -> None:
    failed, passed = _lines_of_periods(lab, ran, 6, frozenset({2, 3}))
    golden(failed)
    golden(passed)


def test_every_hundredth_period_is_a_line_so_that_hours_without_a_failure_are_not_silent(
    lab: Simulation, ran: Ran
) -> None:
    lines = _lines_of_periods(lab, ran, 250)
    assert [line.partition(":")[0].partition(", ")[2] for line in lines] == ["period 100 of 250", "period 200 of 250"]


def failing(error: Exception) -> Callable[[str], None]:
    def fail(_lab: str) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "status"), [(HostError("lab default: in use by process 1"), 3), (BrokenError("gone"), 4)]
)
def test_errors_on_the_way_end_with_their_status_and_one_line_alone(
    error: NatgaugeError, status: int, lab: Simulation, ran: Ran
) -> None:
    lab.enters = failing(error)
    assert ran(OF_LAB, status=status).err == f"natgauge: {error}\n"


def test_what_nobody_foresaw_is_one_line_that_names_a_fault_of_natgauge_and_where_its_traceback_is(
    monkeypatch: pytest.MonkeyPatch, ran: Ran, in_an_empty_folder: Path, golden: Golden
) -> None:
    monkeypatch.setattr(json, "dumps", lambda *_, **__: failing(KeyError("table_size\n" + 5000 * "x"))(""))
    line = ran(["gateways", "show", "linux-ipv4", "--json"], status=4).err
    golden(line)
    assert line.count("\n") == 1
    assert len(line) < 600
    kept = next(in_an_empty_folder.glob("natgauge-traceback-*.txt"))
    assert str(kept) in line
    assert "raise error" in kept.read_text()


@pytest.mark.parametrize("measured", [False, True])
def test_a_fault_in_a_measurement_keeps_its_traceback_beside_the_evidence(
    *, measured: bool, lab: Simulation, tmp_path: Path
) -> None:
    def says(snippet: str, trials: int) -> str:
        if snippet == ("empty" if measured else "start") and bool(trials) == measured:
            raise KeyError("table_size")
        return ""

    lab.start = lambda _lab: Gateway(says=says)
    with pytest.raises(FaultError, match="KeyError: 'table_size'") as caught:
        natgauge.measure("throughput", NAT44, lab="simulated", connections=1000, results=tmp_path)
    folder = next(tmp_path.iterdir())
    assert str(folder / "traceback.txt") in str(caught.value)
    assert "KeyError: 'table_size'" in (folder / "traceback.txt").read_text()
    assert (folder / "trials.jsonl").exists() == measured


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_undo_first_and_then_end_with_their_own_status(number: int, status: int, tmp_path: Path) -> None:
    """In a process of its own: a second signal while undoing must not break the undoing off."""
    script = f"""
import json, pathlib, signal, sys, time
from natgauge.cli import main

# Under `nohup make test` it is ignored, and natgauge leaves it so.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

def work(*_, **__):
    try:
        pathlib.Path({str(tmp_path / "began")!r}).touch()
        time.sleep(60)
    finally:
        pathlib.Path({str(tmp_path / "undoing")!r}).touch()
        time.sleep(1.0)
        pathlib.Path({str(tmp_path / "undone")!r}).touch()

json.dumps = work
sys.argv = ["natgauge", "gateways", "show", "linux-ipv4", "--json"]
main()
"""
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    for name in ("began", "undoing"):
        deadline = time.monotonic() + 300
        while not (tmp_path / name).exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
    _, shown = process.communicate(timeout=300)
    assert process.returncode == status
    assert (tmp_path / "undone").exists()
    assert "everything is undone" in shown


def test_help_and_refusals_come_without_loading_what_measures() -> None:
    """Startup must be quick: neither pydantic nor netlink nor rich is needed to show help."""
    script = "import sys; from natgauge.cli import run; run(['measure', 'throughput', '--help']); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    loaded = set(shown.splitlines()[-1].split())
    assert "click" in loaded
    assert not loaded & {"pydantic", "pyroute2", "rich"}


@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        (["--version"], "natgauge.inputs"),
        (["gateways", "--help"], "natgauge.inputs"),
        (["run", "--help"], "natgauge.spread"),
        (["worker", "--help"], "natgauge.spread"),
        (["compare", "--help"], "natgauge.trial.lab_measurer"),
    ],
    ids=str,
)
def test_a_start_loads_only_what_it_answers_with(words: list[str], unneeded: str) -> None:
    """A shell starts natgauge at each TAB, too."""
    script = f"import sys; from natgauge.cli import run; run({words}); print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    loaded = shown.splitlines()[-1].split()
    assert "natgauge.cli.names" in loaded
    assert [name for name in loaded if name.startswith(unneeded)] == []


def test_every_subcommand_shows_its_help(ran: Ran) -> None:
    names = re.findall(r"^  ([a-z]+)  +[A-Z]", ran(["--help"]).out, re.MULTILINE)
    assert len(names) > 20
    for name in names:
        assert f"natgauge {name}" in ran([name, "--help"]).out


def test_the_table_has_the_rows_of_the_rfc_and_one_column_a_result(tmp_path: Path, ran: Ran) -> None:
    result = made([4e5, 4e5], parameters={"hash_size": 512, "table_size": 2048})
    shown = ran(["report", str(kept(tmp_path, result, result))]).out
    rows = {name: rest.split() for name, _, rest in (line.partition("  ") for line in shown.splitlines())}
    assert rows["number of sessions"] == ["1,000", "1,000"]
    assert rows["sessions per hash"] == ["1.95", "1.95"]
    assert rows["number of experiments"] == ["2", "2"]
    assert {"median", "1st percentile", "99th percentile"} <= set(rows)


@pytest.mark.parametrize(("limit", "named"), [("tester", "the tester"), ("ranges", "the ranges of the measurement")])
def test_a_result_says_who_limited_it_and_asks_for_more_of_that(
    limit: str, named: str, tmp_path: Path, ran: Ran
) -> None:
    answer, bottleneck, *_ = ran(["report", str(kept(tmp_path, made([4e5], limited_by=limit)))]).out.splitlines()
    assert "forwards at least" in answer
    assert bottleneck == f"Bottleneck: {named}, not the device."
    assert "cores" not in answer


def test_an_answer_of_0_is_one_and_only_a_demand_gives_it_another_status(
    lab: Simulation, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of `natgauge run`; see `test_cli_campaign.py`."""
    lab.start = lambda _lab: Gateway(passes=lambda _load: False)
    for demand, status in (([], 0), (["--at-least", "1"], 5)):
        assert run([*OF_LAB, *demand, "--json"]) == status
        assert json.loads(capsys.readouterr().out)["median"] == 0
