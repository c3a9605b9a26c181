# SPDX-License-Identifier: Apache-2.0
"""The command line around a measurement: what is printed, how signals and errors end it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from rich.console import Console
from tests.simulated_lab import NAT44, ROUTING, Simulation, measure, simulated
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway
from tests.unit.test_procedure_connection_rate import Observed

from natgauge import cli
from natgauge.agreement.generated import Progress
from natgauge.cli import run
from natgauge.cli.progress import ProgressDisplay
from natgauge.errors import BrokenError, FaultError, HostError, NatgaugeError
from natgauge.inputs.measuring_types import SearchError
from natgauge.inputs.question import Question
from natgauge.labs import netns
from natgauge.measurements.measure import answer
from natgauge.measurements.prepared import LabBench
from natgauge.reports.text import table, verdict
from natgauge.trial.bench import Ready
from natgauge.trial.lab_measurer import Recorder
from natgauge.trial.planned import Planned
from natgauge.trial.question import ask

ASKED = ["measure", "throughput", "--gateway", "nftables-nat44", "--connections", "1000", "--repeat", "2"]
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


@pytest.fixture
def instead(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Question, Any], Any]], None]:
    """Has what is given answer questions, in place of a measurement."""

    def put(answer: Callable[[Question, Any], Any]) -> None:
        monkeypatch.setattr(
            "natgauge.measurements.measure.answer", lambda asked, observer, **_others: answer(asked, observer)
        )

    return put


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


def test_options_reach_the_question_and_what_was_not_given_does_not(instead: Any) -> None:
    asked: list[Question] = []

    def answer(question: Question, _observer: Any) -> Any:
        asked.append(question)
        raise BrokenError("asked")

    instead(answer)
    run([*ASKED, "--error", "2%", "--direction", "up", "--cores", "0", "--udp-timeout", "100", "--seed", "7"])
    (question,) = asked
    assert question.settings == {"error": SearchError(share=0.02), "repeat": 2, "directions": "up"}
    assert question.cell.traffic.connections == 1000
    assert question.cell.traffic.source_ports is None
    assert question.cell.kind_options == netns.NetnsOptions(cores=(0,))
    assert (question.cell.device.named(), question.cell.lab.seed) == ({"udp_timeout": 100}, 7)


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


OPENED: dict[str, Any] = {"connections": 1000, "connection_rate": 100_000.0}


@pytest.mark.parametrize("width", [100, 40])
def test_on_a_terminal_one_live_line_shows_rate_bounds_and_time_left_and_a_narrow_one_cuts_it(
    width: int, golden: Golden
) -> None:
    console, observed = Console(force_terminal=True, width=width), Observed()
    measure("throughput", Gateway(forwards=400_000.0, placement="shared"), observe=observed, **OPENED)
    begun = [event for event in observed.events if event.outcome is None and event.bounds.upper is not None][-1]
    with console.capture() as shown, ProgressDisplay(console) as display:
        display.event(begun)
        frames = {"intended_frames": 3000, "made_frames": 2000, "received_frames": 1999}
        display.running(Progress.model_validate({"phase": "phase2", "seconds": 1.5, **frames}))
        live = display._live
        assert live is not None
        live.refresh()
        display.stage("taking the lab down")
        live.refresh()
    line, *_ = (line for line in re.split(r"[\r\n]|\x1b\[[\d?]*\w", shown.get()) if "throughput" in line)
    assert line.startswith("throughput 1/1: ")
    assert line.endswith("…") == (width == 40)
    assert len(line) <= width
    if width == 100:
        for part in ("frames/s in each direction", "between", " s left", "trial 1", "1.5 s"):
            assert part in line
    golden(shown.get())


def test_a_part_of_the_work_with_a_long_name_is_cut_on_the_live_line() -> None:
    console = Console(force_terminal=True, width=60)
    with console.capture() as shown, ProgressDisplay(console) as display:
        display.stage(f"measuring throughput of {'long-' * 40}")
        live = display._live
        assert live is not None
        live.refresh()
    lines = [line for line in re.split(r"[\r\n]|\x1b\[[\d?]*\w", shown.get()) if "measuring" in line]
    assert {len(line) for line in lines} == {60}


def test_without_a_terminal_work_without_trials_says_now_and_then_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("natgauge.cli.progress.time.monotonic", lambda: clock[0])
    console = Console(width=60)
    with console.capture() as shown, ProgressDisplay(console, stage_seconds=60.0) as display:
        for part in range(130):
            display.stage(f"part {part}")
            clock[0] += 1.0
    assert shown.get().splitlines() == ["part 60", "part 120"]


@pytest.mark.parametrize("verbose", [False, True])
def test_on_a_terminal_trials_are_lines_only_when_the_user_wants_them(*, verbose: bool) -> None:
    console = Console(force_terminal=True, width=200)
    with console.capture() as shown, ProgressDisplay(console, verbose=verbose) as display:
        measure("throughput", Gateway(forwards=400_000.0, placement="shared"), observe=display, **OPENED)
        display.interim("an interim result")
    kept = re.findall(r"trial \d+: (?:\x1b\[[\d;]*m)?(?:ok|too fast)", shown.get())
    assert bool(kept) == verbose


def _lines_of_periods(periods: int, loses_in: frozenset[int] = frozenset()) -> list[str]:
    console = Console(width=400)
    with console.capture() as shown, ProgressDisplay(console) as display:
        rates = {"connection_rate": 1e6, "throughput_rate": 1e6, "hours": periods / 3600}
        measure("stability", Gateway(loses_in=loses_in), gateway=ROUTING, connections=1000, observe=display, **rates)
    return shown.get().splitlines()


def test_of_many_periods_those_with_another_verdict_than_the_one_before_are_lines_with_their_numbers(
    golden: Golden,
) -> None:
    failed, passed = (line for line in _lines_of_periods(6, loses_in=frozenset({2, 3})) if "period" in line)
    golden(failed)
    golden(passed)


def test_every_hundredth_period_is_a_line_so_that_hours_without_a_failure_are_not_silent() -> None:
    lines = [line for line in _lines_of_periods(250) if "period" in line]
    assert [line.partition(":")[0].partition(", ")[2] for line in lines] == ["period 100 of 250", "period 200 of 250"]


def failing(error: Exception) -> Callable[[Question, Any], Any]:
    def fail(_question: Question, observer: Any) -> Any:
        observer.stage("making lab default")
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "status"), [(HostError("lab default: in use by process 1"), 3), (BrokenError("gone"), 4)]
)
def test_errors_on_the_way_end_with_their_status_and_one_line_alone(
    error: NatgaugeError, status: int, instead: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    instead(failing(error))
    assert run(ASKED) == status
    assert capsys.readouterr().err == f"natgauge: {error}\n"


def test_what_nobody_foresaw_is_one_line_that_names_a_fault_of_natgauge_and_where_its_traceback_is(
    instead: Any, capsys: pytest.CaptureFixture[str], in_an_empty_folder: Path, golden: Golden
) -> None:
    instead(failing(KeyError("table_size\n" + 5000 * "x")))
    assert run(ASKED) == 4
    line = capsys.readouterr().err
    golden(line)
    assert line.count("\n") == 1
    assert len(line) < 600
    kept = next(in_an_empty_folder.glob("natgauge-traceback-*.txt"))
    assert str(kept) in line
    assert "raise error" in kept.read_text()


@pytest.mark.parametrize("measured", [False, True])
def test_a_fault_in_a_measurement_keeps_its_traceback_beside_the_evidence(
    *, measured: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Faulty(LabBench):
        def __enter__(self) -> Self:
            return self

        def ready(self, _planned: Planned, recorder: Recorder, *, prove: bool = True) -> Ready:
            if measured and prove:
                recorder.add_trial({"verdict": "PASS"})
            raise KeyError("table_size")

    monkeypatch.setattr("natgauge.measurements.measure.LabBench", Faulty)
    monkeypatch.setattr("natgauge.measurements.measure.check_host", lambda: None)
    with pytest.raises(FaultError, match="KeyError: 'table_size'") as caught:
        answer(ask("throughput", "nftables-nat44", {"connections": 1000}), results=tmp_path)
    folder = next(tmp_path.iterdir())
    assert str(folder / "traceback.txt") in str(caught.value)
    assert "KeyError: 'table_size'" in (folder / "traceback.txt").read_text()
    assert (folder / "trials.jsonl").exists() == measured


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_undo_first_and_then_end_with_their_own_status(number: int, status: int, tmp_path: Path) -> None:
    """In a process of its own: a second signal while undoing must not break the undoing off."""
    script = f"""
import pathlib, signal, sys, time
import natgauge.measurements.measure as measure
from natgauge import cli

# Under `nohup make test` it is ignored, and natgauge leaves it so.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

def answer(question, observer, results, host_name):
    try:
        pathlib.Path({str(tmp_path / "began")!r}).touch()
        time.sleep(60)
    finally:
        pathlib.Path({str(tmp_path / "undoing")!r}).touch()
        time.sleep(1.0)
        pathlib.Path({str(tmp_path / "undone")!r}).touch()

measure.answer = answer
sys.argv = ["natgauge", *{ASKED!r}]
cli.main()
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


def test_every_subcommand_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name in cli.SUBCOMMANDS:
        assert run([name, "--help"]) == 0
        assert f"natgauge {name}" in capsys.readouterr().out


def test_the_table_has_the_rows_of_the_rfc_and_one_column_a_result() -> None:
    result = measure("throughput", Gateway(forwards=400_000.0, placement="shared"), repeat=2, **OPENED).result
    device = {**result.parameters.device, "hash_size": 512, "table_size": 2048}
    result = result.model_copy(update={"parameters": result.parameters.model_copy(update={"device": device})})
    rows = {line[:22].strip(): line[22:].split() for line in table([result, result]).splitlines()}
    assert rows["number of sessions"] == ["1,000", "1,000"]
    assert rows["sessions per hash"] == ["1.95", "1.95"]
    assert rows["number of experiments"] == ["2", "2"]
    assert {"median", "1st percentile", "99th percentile", "error of the search"} <= set(rows)


def test_a_result_says_who_limited_it_and_asks_for_more_of_that() -> None:
    record = measure("throughput", Gateway(forwards=400_000.0, placement="shared"), **OPENED).result
    for limit, named in (("tester", "the tester"), ("ranges", "the ranges of the measurement")):
        said = verdict(record.model_copy(update={"limited_by": limit}))
        assert "forwards at least" in said
        assert f"Bottleneck: {named}, not the device." in said
        assert "cores" not in said


def test_an_answer_of_0_is_one_and_only_a_demand_gives_it_another_status(
    lab: Simulation, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of `natgauge run`; see `test_cli_campaign.py`."""
    lab.start = lambda _lab: Gateway(passes=lambda _load: False)
    for demand, status in (([], 0), (["--at-least", "1"], 5)):
        assert run([*OF_LAB, *demand, "--json"]) == status
        assert json.loads(capsys.readouterr().out)["median"] == 0
