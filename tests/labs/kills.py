# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.labs.kills`: whether a campaign that is killed again and again loses a trial or counts one twice.

A real campaign in namespaces, small and quick, is killed with SIGKILL at random moments and resumed (root; about
3 s a kill). `--workers 2` spreads it over two workers of this machine, and kills these instead: that costs the cell run
of the worker, and no repetition that ended. After each kill the journal must be readable, and still have every whole
line it had before. When a campaign has ended, each repetition that was asked for must be there once, and its results
folder must have each of its trials once. Campaigns follow each other until there were enough kills.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
from tests.labs.program import begins, command_line, small_plan

from natgauge import cleaning
from natgauge.campaigns.journal import entries
from natgauge.campaigns.state import status
from natgauge.errors import NatgaugeError
from natgauge.labs.common import namespaces
from natgauge.records.store import JOURNAL
from natgauge.spread.worker import Offer
from natgauge.tester.own_rates import cable_name

NAME: Final = "kills"
PLAN: Final = small_plan("kills", NAME, ["nftables-nat44", "linux-ipv4"], 2_000)
#: Longest time from the beginning of a session, or from the last kill of a worker, to the next kill, seconds.
LATEST_SECONDS: Final = 4.0
#: Share of the kills of workers that come at any moment. The others come soon after the first trial since the last
#: kill, because workers need longer to come up than their trials take.
AT_ANY_MOMENT: Final = 0.2
#: The part of the longest time between kills within which they come after a trial has begun.
SOON: Final = 0.25
#: Nobody waits longer for the next trial of a worker, seconds.
TRIAL_SECONDS: Final = 60.0
#: Nobody waits longer for the end of a session that is killed no more.
END_SECONDS: Final = 600.0
#: Exit status of a session whose workers did not come up.
_NOT_UP: Final = 3
#: What a worker of Dask's looks like: a program of its own that Python's multiprocessing starts.
_WORKER: Final = b"spawn_main"
#: A line of the journal has this when a trial begins.
_BEGUN: Final = b'"event":"trial"'
#: What the names of the tester's own cables begin with.
CABLES: Final = cable_name().removesuffix(str(os.getpid()))
#: Number of dead workers after which Dask gives a task up: they are killed on purpose here.
_NEVER: Final = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1000000"}


@dataclass(slots=True)
class Killed:
    """What became of all kills.

    Attributes:
        moments: of each random choice.
        most: number of kills.
        until: no kill after this moment of the monotonic clock.
        latest: seconds from the beginning of a session, or from one kill to the next, at most.
        workers: of this machine that are killed; 0 = the campaign itself is.
        kills: so far.
        caught: what was going on when it was killed, by the last line of the journal.
        campaigns: that have ended.
        trials: of these, in their results.
        dropped: trials that count for nothing, because the repetition began again.
        faults: what must not be.
    """

    moments: random.Random
    most: int
    until: float = float("inf")
    latest: float = LATEST_SECONDS
    workers: int = 0
    kills: int = 0
    caught: Counter[str] = field(default_factory=Counter)
    campaigns: int = 0
    trials: int = 0
    dropped: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def goes_on(self) -> bool:
        """Whether there are kills left."""
        return self.kills < self.most and time.monotonic() < self.until

    def run(self, folder: Path) -> None:
        """Kill until there were enough, and look at every campaign that has ended."""
        while self.goes_on:
            here = folder / f"campaign-{self.campaigns + 1}"
            here.mkdir()
            (here / "plan.toml").write_text(PLAN)
            one = _Campaign(here, self)
            one.run()
            self.campaigns += 1
            found = faults(here / "out")
            self.faults += [f"{here.name}: {fault}" for fault in found]
            answers, counted = _answered(here / "out")
            self.trials += counted
            self.dropped += answers - counted
            if not (here / "out" / "campaign.json").exists():
                # The next one would not begin, either.
                return

    def lines(self) -> Iterator[str]:
        yield f"{self.kills} kills of {'a worker' if self.workers else 'the campaign'}, {self.campaigns} campaigns"
        for what, number in self.caught.most_common():
            yield f"  {number:>4}  {what}"
        yield f"{self.trials} trials in the results, each once; {self.dropped} more in repetitions that began again"
        yield from (f"! {fault}" for fault in self.faults)


class _Campaign:
    """One campaign, killed until it has ended."""

    def __init__(self, folder: Path, killed: Killed) -> None:
        self.folder = folder
        self.killed = killed
        self._known = b""

    @property
    def journal(self) -> Path:
        return self.folder / "out" / JOURNAL

    def run(self) -> None:
        """Until nothing is left to do."""
        while True:
            process = self._start()
            try:
                killed = self._kill(process)
            finally:
                # Whoever ends this program ends its sessions, too.
                process.kill()
                process.wait()
            if killed:
                continue
            if process.returncode == _NOT_UP and self.killed.workers:
                # Killed before all workers stood: the session says so, and is begun again.
                continue
            if process.returncode != 0:
                traces = "".join(path.read_text() for path in self.folder.glob("natgauge-traceback-*"))
                said = (self.folder / "log").read_text()[-1000:] + traces
                self.killed.faults.append(f"a session ended with status {process.returncode}: {said}")
            return

    def _start(self) -> subprocess.Popen[bytes]:
        arguments = command_line(["run", "plan.toml", "--out", "out"])
        if (self.folder / "out" / "campaign.json").exists():
            arguments.append("--resume")
        if self.killed.workers:
            arguments.append(f"--on=local:{self.killed.workers}")
        with (self.folder / "log").open("a") as log:
            environment = {**os.environ, **_NEVER, "PYTHONFAULTHANDLER": "1"}
            return subprocess.Popen(arguments, cwd=self.folder, stdout=log, stderr=log, env=environment)

    def _kill(self, process: subprocess.Popen[bytes]) -> bool:
        """Kill it once, or its workers repeatedly; return whether it must be resumed."""
        while self.killed.goes_on:
            latest = self.killed.latest
            if self.killed.workers and self.killed.moments.random() >= AT_ANY_MOMENT:
                self._await_trial(process)
                latest *= SOON
            with suppress(subprocess.TimeoutExpired):
                process.wait(self.killed.moments.uniform(0.0, latest))
            if process.returncode is not None:
                self._look("")
                return False
            if not self.killed.workers:
                doing = self._doing()
                process.kill()
                process.wait()
                self._look(doing)
                return True
            victims = list(children(process.pid))
            if victims:
                doing = self._doing()
                with suppress(ProcessLookupError):
                    os.kill(self.killed.moments.choice(victims), signal.SIGKILL)
                    self._look(doing)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            log = self.folder / "log"
            before = log.stat().st_size
            # Each process of Python's then says what each of its threads is doing (PYTHONFAULTHANDLER).
            for pid in (*children(process.pid), process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGABRT)
            process.wait()
            doing = log.read_bytes()[before:].decode(errors="replace")
            self.killed.faults.append(f"{self.folder.name}: did not end within {END_SECONDS:.0f} s: {doing}")
        self._look("")
        return False

    def _await_trial(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until a worker begins a trial, or the session ends."""
        latest, before = time.monotonic() + TRIAL_SECONDS, self._trials()
        while process.poll() is None and self._trials() == before and time.monotonic() < latest:
            time.sleep(0.05)

    def _trials(self) -> int:
        """Trials that began by the journal."""
        return self.journal.read_bytes().count(_BEGUN) if self.journal.exists() else 0

    def _doing(self) -> str:
        """What the journal says is going on at this moment."""
        if not self.journal.exists():
            return "before the journal"
        try:
            last = [entry["event"] for entry in entries(self.folder / "out")][-1:]
        except NatgaugeError:
            return "unreadable"
        return {
            "session": "start of a session",
            "visit": "bench being made",
            "trial": "a trial running",
            "repetition": "end of a repetition",
            "result": "end of a measurement",
            "session-ended": "start or end of a session",
        }.get(last[0] if last else "session", "something else")

    def _look(self, doing: str) -> None:
        """The journal is readable, and has every whole line that it had."""
        if doing:
            self.killed.kills += 1
            self.killed.caught[doing] += 1
        if not self.journal.exists():
            return
        text = self.journal.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if not whole.startswith(self._known):
            self.killed.faults.append(f"{self.folder.name}, kill {self.killed.kills}: lines of the journal are gone")
        self._known = whole
        try:
            list(entries(self.folder / "out"))
            status(self.folder / "out")
        except NatgaugeError as error:
            self.killed.faults.append(f"{self.folder.name}, kill {self.killed.kills}: {error}")


def children(parent: int) -> Iterator[int]:
    """The workers of Dask's that a process has started."""
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # The name in parentheses may hold anything, so what follows is counted from the last one.
            its = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if its == parent and _WORKER in (path / "cmdline").read_bytes():
                yield int(path.name)


def _lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def _answered(folder: Path) -> tuple[int, int]:
    """Trials that began by the journal, and trials in the results."""
    if not (folder / JOURNAL).exists():
        return 0, 0
    begun = sum(one["event"] == "trial" for one in _lines(folder, JOURNAL))
    return begun, sum(len(_lines(path, "trials.jsonl")) for path in (folder / "results").iterdir())


def faults(folder: Path) -> Iterator[str]:
    """What must not be in a campaign that has ended, going by its files alone."""
    if not (folder / "campaign.json").exists():
        yield "never began"
        return
    asked = json.loads((folder / "campaign.json").read_text())["cells"]
    lines = _lines(folder, JOURNAL)
    seen: Counter[tuple[float, int]] = Counter()
    for cell in asked:
        for measurement in cell["measurements"]:
            name = f"{cell['name']}-{measurement['name']}"
            own = [
                one
                for one in lines
                if one.get("cell") == cell["name"] and one.get("measurement") == measurement["name"]
            ]
            yield from (f"{name}: {fault}" for fault in _faults_of(own, measurement["repetitions"]))
            results = folder / "results" / name
            if not results.is_dir():
                yield f"{name}: has no result"
                continue
            trials = _lines(results, "trials.jsonl")
            yield from (f"{name}: {fault}" for fault in _differences(own, trials))
            seen.update((trial["began"], trial["request"]["mark"]) for trial in trials)
            told = sum(json.loads((results / "summary.json").read_text())["trials"].values())
            if told != (counted := _trials_of(own)):
                yield f"{name}: the result speaks of {told} trials, the journal of {counted} of its metric"
    yield from (
        f"a trial that began at {began} counts {number} times" for (began, _), number in seen.items() if number > 1
    )


def _faults_of(own: list[dict[str, Any]], repetitions: int) -> Iterator[str]:
    ended = [one["repetition"] for one in own if one["event"] == "repetition"]
    if ended != list(range(1, repetitions + 1)):
        yield f"repetitions that ended: {ended}, asked for {repetitions}"
    if number := sum(one["event"] == "broken" for one in own):
        yield f"{number} times broken"


def _trials_of(own: list[dict[str, Any]]) -> int:
    """Trials of the metric in the repetitions that ended; others may have searched for the rate of phase 1 first."""
    number, stored, begun = 0, 0, list[str]()
    for one in own:
        if one["event"] == "trial":
            begun.append(one["metric"])
        elif one["event"] == "repetition":
            # Those that came before belong to a run of the repetition that was killed.
            ended = one["stored"]["trials"] - stored
            number += begun[len(begun) - ended :].count(one["measured"]["metric"])
            stored, begun = one["stored"]["trials"], []
    return number


def _differences(own: list[dict[str, Any]], trials: list[dict[str, Any]]) -> Iterator[str]:
    """Compare the trials of each repetition in the journal with those in the results folder."""
    counted: dict[int, int] = {}
    cores: dict[int, Any] = {}
    for one in own:
        if one["event"] == "repetition":
            counted[one["repetition"]] = one["stored"]["trials"] - sum(counted.values())
            cores[one["repetition"]] = (one.get("worker") or {}).get("cores")
    for trial in trials:
        used, allowed = set(trial["request"]["senders"]["cpus"]), cores.get(trial["repetition"])
        if allowed is not None and not used <= {*allowed}:
            yield f"repetition {trial['repetition']}: a trial ran on cores {used}, its worker has {allowed}"
    expected = [repetition for repetition, number in sorted(counted.items()) for _ in range(number)]
    found = [trial["repetition"] for trial in trials]
    if found != expected or [trial["trial"] for trial in trials] != list(range(1, len(trials) + 1)):
        yield f"its folder has {len(found)} trials, the journal {len(expected)} that count, and they are not the same"


def clean() -> None:
    """Undo what killed sessions left: their labs, and the cables of those that looked up the tester's own rate."""
    own = {NAME, *(Offer(name="", cores=(core,), labs=(), machine_wide=False).lab_name(NAME) for core in range(1024))}
    left = {one.name for one in cleaning.status() if one.state == "left behind"}
    cleaning.clean({name for name in left if name in own or name.startswith(CABLES)})


def main() -> int:
    """Kill; 0 when nothing was lost, and nothing counts twice."""
    parser = argparse.ArgumentParser(description="Whether a campaign that is killed loses a trial or counts one twice.")
    parser.add_argument("--kills", type=int, default=100, help="number of kills (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="time of the last kill (default: no limit)")
    parser.add_argument("--latest", type=float, default=LATEST_SECONDS, help="from kill to kill (default %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="of the moments (default: another one each time)")
    parser.add_argument(
        "--workers",
        type=int,
        default=0,
        help="number of workers, which are killed instead (default: none)",
    )
    asked = parser.parse_args()
    if not begins("kills"):
        return 3
    seed = random.randrange(2**32) if asked.seed is None else asked.seed  # noqa: S311 - any moment will do
    began = time.monotonic()
    moments = random.Random(seed)  # noqa: S311 - any moment will do
    killed = Killed(moments, asked.kills, began + asked.seconds, asked.latest, asked.workers)
    try:
        with tempfile.TemporaryDirectory(prefix="natgauge-kills-") as folder:
            killed.run(Path(folder))
    finally:
        clean()
    left = [name for name in namespaces.names() if name.startswith(f"ng-{NAME}-")]
    killed.faults += [f"namespace {name} is left" for name in left]
    click.echo("\n".join([*killed.lines(), f"seed {seed}, {time.monotonic() - began:.0f} s"]))
    click.echo("! Something was lost or counted twice." if killed.faults else "Nothing lost, nothing counted twice.")
    return 1 if killed.faults else 0


if __name__ == "__main__":
    sys.exit(main())
