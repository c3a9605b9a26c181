# SPDX-License-Identifier: Apache-2.0
"""What storms look for is found where it is: lost lines, wrong endings, input that is neither read nor refused."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from tests.labs.kills import faults
from tests.labs.storms import STORMS
from tests.labs.storms.mutations import _storm, refused
from tests.labs.storms.storm import Tally
from tests.labs.storms.victims import AUDIT, MEASURE, Run
from tests.unit.campaigning import PLAN, Benches, campaign
from tests.unit.golden import Golden
from tests.unit.made_results import kept_trials
from tests.unit.mutants import mangled
from tests.unit.simulated import LONG_STALL, Gateway

from natgauge.errors import HostError, UsageError


def tally(folder: Path, most: int = 10) -> Tally:
    return Tally(most, Random(1), folder)  # noqa: S311 - nothing secret


def run_in(folder: Path, trials: int, said: str = "") -> Run:
    """A run whose results have some trials, and which said something."""
    results = folder / "results" / "one"
    results.mkdir(parents=True, exist_ok=True)
    (results / "trials.jsonl").unlink(missing_ok=True)
    kept_trials(results, *[{}] * trials)
    (folder / "err").write_text(said)
    nobody: Any = SimpleNamespace(members=list)
    process: subprocess.Popen[str] = SimpleNamespace(pid=0)  # type: ignore[assignment]
    return Run(MEASURE, folder, nobody, process)


def test_each_storm_has_a_name_of_its_own_and_full_storms_are_what_was_promised() -> None:
    assert len({storm.name for storm in STORMS}) == len(STORMS)
    full = {
        kind: sum(storm.full for storm in STORMS if storm.name.startswith(kind))
        for kind in ("kill", "mutate", "frames")
    }
    assert full["kill"] >= 1000
    assert (full["mutate"], full["frames"]) == (150_000, 10**10)
    assert all(0 < storm.soak < storm.full for storm in STORMS)


def test_lines_that_are_gone_are_found(tmp_path: Path) -> None:
    run = run_in(tmp_path, 3)
    assert run.look() == "between two trials"
    assert list(run.lost()) == []
    run_in(tmp_path, 2)
    assert [fault.endswith("lines are gone") for fault in run.lost()] == [True]


def test_a_trial_that_was_shown_and_is_in_no_file_is_found(tmp_path: Path, golden: Golden) -> None:
    shown = "throughput 1/1 trial 1: PASS      x\nthroughput 1/1 trial 2: INVALID   y\n"
    assert list(run_in(tmp_path, 2, shown).lost()) == []
    golden(list(run_in(tmp_path, 1, shown).lost()))


@pytest.mark.parametrize(
    "said", ["Traceback (most recent call last)", "natgauge: a fault of natgauge, not of", "panicked at"]
)
def test_tracebacks_and_panics_are_found(said: str, tmp_path: Path) -> None:
    assert len(list(run_in(tmp_path, 1, f"first\n{said} x\n").misspoken())) == 1
    assert list(run_in(tmp_path, 1, "natgauge: one line\n").misspoken()) == []


def test_a_run_ends_as_it_should_or_says_that_no_load_passed() -> None:
    assert MEASURE.is_right(0, "")
    assert MEASURE.is_right(4, "natgauge: throughput: no result: no load has passed yet")
    assert not MEASURE.is_right(4, "natgauge: engine: broke")
    assert not AUDIT.is_right(2, "natgauge: no result: x")


def test_a_reader_that_neither_reads_nor_refuses_is_found_with_the_text_that_shows_it(
    tmp_path: Path, golden: Golden
) -> None:
    @contextmanager
    def reader(_folder: Path) -> Iterator[Callable[[str, bytes], str]]:
        def read(_name: str, text: bytes) -> str:
            if text == b"3":
                raise KeyError("event")
            return "read"

        yield read

    numbers = iter(range(10))
    storm = _storm("x", "x", 100, lambda _chance: lambda: ("x", str(next(numbers)).encode()), reader)
    found = tally(tmp_path)
    storm.make(found)
    assert found.count == 10
    golden(found.seen)
    (fault,) = found.faults
    assert fault.startswith("4: KeyError: 'event'")
    assert (tmp_path / "x-4").read_bytes() == b"3"


class WordyError(UsageError):
    """A message that nobody shortened, as those of `UsageError` are."""

    def __str__(self) -> str:
        return "x " * 3000


def test_a_refusal_is_a_usage_error_of_some_words() -> None:
    def raises(error: Exception) -> Callable[[], object]:
        def read() -> object:
            raise error

        return read

    assert refused(lambda: None) == "read"
    assert refused(raises(UsageError("plan: x: is wrong"))) == "refused"
    for error in (HostError("no room"), UsageError(""), WordyError("")):
        with pytest.raises(AssertionError):
            refused(raises(error))
    with pytest.raises(KeyError):
        refused(raises(KeyError("x")))


def test_the_same_seed_gives_the_same_mutants_and_they_differ_from_the_text() -> None:
    text = b'{"one": 1}\n{"two": [2, 3]}\n'
    first, second = ([mangled(text, chance) for _ in range(200)] for chance in (Random(5), Random(5)))  # noqa: S311
    assert first == second
    assert sum(mutant != text for mutant in first) > 180


def test_a_storm_ends_at_its_count_or_its_time(tmp_path: Path) -> None:
    found = tally(tmp_path, most=2)
    found.saw("once")
    assert found.goes_on
    found.saw("again")
    assert not found.goes_on
    late = tally(tmp_path)
    late.until = time.monotonic() - 1
    assert not late.goes_on


@pytest.mark.parametrize("searched_first", [False, True])
def test_trials_that_searched_for_the_rate_of_phase_1_are_no_fault_and_one_that_is_missing_is(
    tmp_path: Path, *, searched_first: bool
) -> None:
    plan = PLAN.replace("[1000, 2000]", "[1000]").replace('"nftables-nat44", ', "")
    # A connection rate that the host limited is only a bound: each throughput begins with a search of its own.
    gateway: dict[str, Any] = {
        "establishes": 30_000,
        "forwards": 60_000,
        "cpus": (LONG_STALL,) if searched_first else (),
    }
    campaign(tmp_path, Benches(lambda _: Gateway(**gateway)), plan=plan)
    results = tmp_path / "out" / "results"
    for path in results.glob("*/trials.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        run_by = {"request": {"mark": 0, "senders": {"cpus": [0]}}}
        own = [{**line, **run_by, "began": f"{path.parent.name} {line['trial']}"} for line in lines]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in own))
    assert list(faults(tmp_path / "out")) == []
    summary = results / "linux-ipv4-connections-1000-throughput" / "summary.json"
    said = json.loads(summary.read_text())
    trials = (summary.parent / "trials.jsonl").read_text().splitlines()
    assert (len(trials) > sum(said["trials"].values())) is searched_first
    said["trials"]["PASS"] += 1
    summary.write_text(json.dumps(said))
    (fault,) = faults(tmp_path / "out")
    assert fault.startswith(summary.parent.name)
