# SPDX-License-Identifier: Apache-2.0
"""Run a tier of the tests: every part of it, whatever another part found, and one verdict at the end.

    python -m tools.run_tests {unit,test,soak} [PYTEST ARGUMENT...]

Tests of labs mostly wait. `test` runs the calm tests and those of the engine meanwhile, in processor time that the
others leave over, and those that hardly do anything but wait in a process of their own.

With arguments only the parts that pytest runs are run, one after the other, each with these arguments. The exit status
is 0 when nothing failed and few enough lab tests needed a second try, 130 after Ctrl-C, otherwise 1. `soak` without
arguments, as root, keeps its figures in benchmarks/results/soak.md if each of its parts ran tests.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import IO, Final

from benchmarks import command, machine

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "benchmarks" / "results" / "soak.md"
#: Names the file into which tests/conftest.py writes what a run of pytest found.
FIGURES: Final = "NATGAUGE_TEST_FIGURES"
#: Second tries that a run may have: a host stalls now and then. Stalls come with time, and soak has no fixed duration.
MOST_RETRIES: Final = 2
SOAK_RETRIES_PER: Final = 1800.0  # seconds for which soak may have as many
_NO_TESTS: Final = 5  # pytest's exit status when its arguments select no test
_CARGO_LINE: Final = re.compile(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;")
#: Each part says which of its tests took longest, in seconds: without that nobody knows where the time goes.
_PYTEST: Final = (sys.executable, "-m", "pytest", "--durations", "20", "--durations-min", "2")
_PARALLEL: Final = ("--numprocesses", "2", "--dist", "loadscope", "--no-loadscope-reorder")
#: Calm tests of labs wait, too, and a third process uses this time.
_CALM: Final = ("--numprocesses", "3", *_PARALLEL[2:])
_AT_ONCE: Final = ("--numprocesses", "6", "--dist", "load")
_LABS: Final = ("tests/labs",)
#: The last place in the queue for a core: nice(1), sched(7) of autogroups.
_LAST: Final = 19


@dataclass(frozen=True, slots=True)
class Figures:
    """What one part found.

    Attributes:
        part: its name.
        passed, failed, skipped: counts of tests.
        retries: lab tests that failed and were tried again, once for each time.
        failures: the names of the tests that failed, as far as they are known.
        seconds: how long the part ran.
        status: the exit status of its program.
        broken: whether its program failed although no test did; `failed` counts that as one.
    """

    part: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    retries: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    seconds: float = 0.0
    status: int = 0
    broken: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A command that runs tests.

    Attributes:
        name: as the summary calls it.
        command: the command.
        paths: where pytest looks for tests unless the user says where; empty = in all of tests/.
        aside: whether it runs at the same time as the parts after it.
        last: whether it runs only when a core has nothing else to do.
        alone: whether it begins when all parts before it have ended, those aside too.
    """

    name: str
    command: tuple[str, ...]
    paths: tuple[str, ...] = ()
    aside: bool = False
    last: bool = False
    alone: bool = False

    @property
    def by_pytest(self) -> bool:
        """Whether pytest runs it."""
        return "pytest" in self.command


def _cargo(*words: str) -> Part:
    return Part("cargo", ("cargo", "test", "--release", "--locked", "--quiet", "--no-fail-fast", *words))


def _tests(name: str, marks: str, *options: str, paths: tuple[str, ...] = ()) -> Part:
    return Part(name, (*_PYTEST, *options, "-m", marks), paths, alone=name == "alone")


TIERS: Final[Mapping[str, tuple[Part, ...]]] = {
    "unit": (_cargo("--lib"), _tests("unit", "not soak", *_PARALLEL, paths=("tests/unit",))),
    "test": (
        replace(_cargo(), aside=True, last=True),
        # Where nobody did that before, each of the processes that begin next would compile all tests.
        Part("collect", ("sh", "-c", 'exec "$0" -m pytest --collect-only -qq >/dev/null', sys.executable)),
        replace(_tests("calm", "calm and not alone and not soak", *_CALM), aside=True, last=True),
        replace(_tests("waiting", "waits and not calm and not alone and not soak", paths=_LABS), aside=True),
        _tests("parallel", "not waits and not calm and not alone and not soak", *_PARALLEL, paths=_LABS),
        _tests("alone", "alone and not soak", paths=_LABS),
    ),
    "soak": (
        replace(_tests("minutes", "soak and minutes and not alone", *_AT_ONCE, paths=_LABS), aside=True),
        _tests("parallel", "soak and not minutes and not alone", *_PARALLEL),
        _tests("alone", "soak and alone", paths=_LABS),
    ),
}


class _Running:
    """A part that has begun.

    Args:
        part: the part.
        arguments: of the user's, for pytest.
        aside: whether it keeps its output until it is asked for. Such a part is a session of its own, which the
            terminal sends no Ctrl-C: for Linux a session is what shares a core with the others.
    """

    def __init__(self, part: Part, arguments: Sequence[str], *, aside: bool) -> None:
        self.part = part
        self.aside = aside
        self._chosen = bool(arguments)
        self._begin = time.monotonic()
        with ExitStack() as undo:
            self._figures = undo.enter_context(tempfile.NamedTemporaryFile("r", prefix="natgauge-figures-"))
            self._output: IO[str] | None = undo.enter_context(tempfile.TemporaryFile("w+")) if aside else None
            self.process = subprocess.Popen(
                [*part.command, *(arguments or part.paths)],
                cwd=ROOT,
                env=_environment() | {FIGURES: self._figures.name},
                stdin=subprocess.DEVNULL if aside else None,
                stdout=self._output if aside else None if part.by_pytest else subprocess.PIPE,
                stderr=subprocess.STDOUT if aside else None,
                text=True,
                start_new_session=aside,
            )
            self._undo = undo.pop_all()
        if aside and part.last:
            _let_others_go_first(self.process.pid)
        self._ended = self._begin
        self._clock = threading.Thread(target=self._note_end, daemon=True)
        self._clock.start()

    def _note_end(self) -> None:
        """Note when it ends; a part aside may have ended long before anybody asks what it found."""
        self.process.wait()
        self._ended = time.monotonic()

    def found(self) -> Figures:
        """Wait until it has ended, and return what it found."""
        with self.process:
            lines = [_echoed(line) for line in self.process.stdout or ()]
        self._clock.join()
        seconds = self._ended - self._begin
        name = self.part.name
        if self._output is not None:
            self._output.seek(0)
            lines = self._output.readlines()
        figures = from_pytest(name, self._figures.read()) if self.part.by_pytest else from_cargo(name, lines)
        return judged(figures, name, seconds, self.process.returncode, chosen=self._chosen)

    def close(self) -> None:
        """Print what it kept, and forget it."""
        with self._undo:
            if self._output is not None:
                self._output.seek(0)
                print(f"\n== {self.part.name}", self._output.read(), sep="\n", end="", flush=True)


def _environment() -> dict[str, str]:
    """The variables of a part: those of this process, with Python free to store what it compiles.

    Tests start Python and natgauge more than a thousand times, and each start would compile all modules again.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _let_others_go_first(pid: int) -> None:
    """Have a process, which leads a session, and all that it will start run only when a core is idle."""
    with suppress(OSError):  # it has ended, or this kernel knows no such thing
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
        # That holds within a session. Between sessions the scheduler divides the time by the figure of each.
        Path(f"/proc/{pid}/autogroup").write_text(str(_LAST))


class Runner:
    """Runs one part after the other, those aside at the same time, and ends with the first one that is interrupted."""

    def __init__(self) -> None:
        self.interrupted = False
        self._running: list[_Running] = []

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take Ctrl-C, and a polite end from elsewhere, as the wish to end after what runs now has cleaned up."""
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # as in what a shell starts in the background
                signal.signal(number, self._end)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self, number: int, _frame: FrameType | None) -> None:
        self.interrupted = True
        for running in self._running:
            # The terminal sends its Ctrl-C to its own session, and a second one would stop tests from cleaning up.
            if number == signal.SIGTERM or running.aside:
                running.process.send_signal(signal.SIGINT)

    def run(self, parts: Sequence[Part], arguments: Sequence[str]) -> list[Figures]:
        """Run the parts and return what each found, in their order; those that were never begun are absent."""
        found: list[Figures] = []
        for part in parts:
            found += self._ended(self._running) if part.alone else []
            if self.interrupted:
                break
            if part.by_pytest or not arguments:
                aside = part.aside and not arguments
                print(f"\n== {part.name}{' runs aside: its output follows' if aside else ''}", flush=True)
                self._running.append(_Running(part, arguments, aside=aside))
                found += [] if aside else self._ended(self._running[-1:])
        found += self._ended(self._running)
        names = [part.name for part in parts]
        return sorted(found, key=lambda one: names.index(one.part))

    def _ended(self, awaited: Sequence[_Running]) -> list[Figures]:
        """Wait for these parts."""
        with ThreadPoolExecutor() as threads:
            found = list(threads.map(_Running.found, awaited))
        for running in awaited:
            running.close()
        self._running = [running for running in self._running if running not in awaited]
        return found


def _echoed(line: str) -> str:
    print(line, end="", flush=True)
    return line


def from_pytest(part: str, text: str) -> Figures | None:
    """Read what tests/conftest.py wrote; None when pytest ended before it could write."""
    if not text:
        return None
    found = json.loads(text)
    retries, failures = (tuple(found[name]) for name in ("retries", "failures"))
    return Figures(part, found["passed"], found["failed"], found["skipped"], retries, failures)


def from_cargo(part: str, lines: Sequence[str]) -> Figures:
    """Read the closing lines that the test programs print, one each."""
    counts = [tuple(map(int, match.groups())) for line in lines if (match := _CARGO_LINE.search(line))]
    passed, failed, ignored = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0, 0)
    return Figures(part, passed, failed, ignored)


def judged(figures: Figures | None, part: str, seconds: float, status: int, *, chosen: bool) -> Figures:
    """Add time and exit status. A part whose program failed although no test did counts as one failure.

    Args:
        figures: what the program wrote; None when it wrote nothing, which is a failure whatever its exit status is.
        part: its name.
        seconds: how long it ran.
        status: the exit status of its program.
        chosen: whether the user chose the tests. A part then need not have any of them.
    """
    found = figures or Figures(part)
    unselected = chosen and status == _NO_TESTS
    broken = not unselected and (figures is None or (status != 0 and not found.failed))
    failures = found.failures
    if broken:
        silence = " and wrote no figures" if figures is None else ""
        failures = (*failures, f"{part}: its program ended with exit status {status}{silence}")
    return replace(
        found, failed=found.failed + broken, failures=failures, seconds=seconds, status=status, broken=broken
    )


def most_retries(tier: str, seconds: float) -> int:
    """Second tries that a run of this duration may have."""
    return MOST_RETRIES * (1 + int(seconds // SOAK_RETRIES_PER)) if tier == "soak" else MOST_RETRIES


def _total(found: Sequence[Figures], count: Callable[[Figures], float]) -> float:
    return sum(count(figures) for figures in found)


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def table(found: Sequence[Figures]) -> list[tuple[str, ...]]:
    """A head and a row for each part."""
    rows = [
        (one.part, str(one.passed), str(one.failed), str(one.skipped), str(len(one.retries)), _duration(one.seconds))
        for one in found
    ]
    return [("part", "passed", "failed", "skipped", "retries", "time"), *rows]


def closing_line(found: Sequence[Figures]) -> str:
    """The sums over all parts, in the words of pytest's last line, which programs read."""
    passed, failed, skipped = (
        int(_total(found, count)) for count in (lambda one: one.passed, lambda one: one.failed, lambda one: one.skipped)
    )
    return f"{passed} passed, {failed} failed, {skipped} skipped"


def retries_line(tier: str, found: Sequence[Figures]) -> str:
    """How many lab tests were tried again, and how many may be."""
    retries = int(_total(found, lambda one: len(one.retries)))
    return f"retries of lab tests: {retries} (at most {most_retries(tier, _total(found, lambda one: one.seconds))})"


def complaints(tier: str, found: Sequence[Figures]) -> list[str]:
    """Reasons for which the run fails, one line each; empty when it passes."""
    lines = [f"failed: {name}" for one in found for name in one.failures]
    names = [name for one in found for name in one.retries]
    if len(names) > most_retries(tier, _total(found, lambda one: one.seconds)):
        lines.append(f"too many lab tests were tried again: {', '.join(names)}")
    if not any(one.passed or one.failed for one in found):
        lines.append("no test was run")
    return lines


def page(found: Sequence[Figures], described: Mapping[str, str | int | float]) -> str:
    """The figures of a run of soak, in Markdown."""
    head, *rows = table(found)
    lines = command.heading("The last run of make soak", described)
    lines += [f"| {' | '.join(head)} |", "|---|--:|--:|--:|--:|--:|", *(f"| {' | '.join(row)} |" for row in rows), ""]
    lines += [f"{closing_line(found)}; {retries_line('soak', found)}"]
    if reasons := complaints("soak", found):
        lines += ["", *(f"- {reason}" for reason in reasons)]
    return "\n".join(lines) + "\n"


def no_page(found: Sequence[Figures]) -> str | None:
    """Why the figures of a run of soak prove nothing; None when they are worth a page."""
    if os.geteuid() != 0:
        return "without root the tests of labs are skipped"
    if empty := [one.part for one in found if one.passed + one.failed - one.broken == 0]:
        return f"no test ran in: {', '.join(empty)}"
    return None


def _commit() -> str:
    asked = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    done = subprocess.run(asked, cwd=ROOT, check=False, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def _print_summary(tier: str, found: Sequence[Figures], reasons: Sequence[str]) -> None:
    widths = (10, 8, 8, 8, 8, 9)
    print()
    for row in table(found):
        print(
            "".join(
                f"{word:>{width}}" if at else f"{word:<{width}}"
                for at, (word, width) in enumerate(zip(row, widths, strict=True))
            )
        )
    print(*reasons, retries_line(tier, found), closing_line(found), sep="\n", flush=True)


def main(words: Sequence[str] | None = None) -> int:
    """Run the tier and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tier", choices=list(TIERS))
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="passed on to pytest")
    given = parser.parse_args(words)
    described = machine.describe() | {"commit": _commit()}
    runner = Runner()
    with runner.listening():
        found = runner.run(TIERS[given.tier], given.arguments)
    reasons = complaints(given.tier, found)
    notes = ["interrupted"] if runner.interrupted else []
    if given.tier == "soak" and not given.arguments and not runner.interrupted:
        if obstacle := no_page(found):
            notes.append(f"{PAGE.name} is kept as it was: {obstacle}")
        else:
            PAGE.write_text(page(found, described))
    _print_summary(given.tier, found, [*reasons, *notes])
    if runner.interrupted:
        return 128 + signal.SIGINT
    return 1 if reasons or any(one.failed for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
