# SPDX-License-Identifier: Apache-2.0
"""Commands of natgauge that storms disturb, each as data, and one run of such a command in a control group."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.labs.far import SSHD, FarMachine, far_machine
from tests.labs.program import command_line, small_plan
from tests.labs.storms import groups
from tests.labs.storms.remains import labs_left, processes_left, programs_left, programs_of
from tests.labs.storms.storm import Tally, nothing_missing

from natgauge import cleaning
from natgauge.cli import run as run_in_this_process
from natgauge.errors import NatgaugeError
from natgauge.labs.common import locks
from natgauge.labs.vm import image
from natgauge.labs.vm.lab import PROGRAM
from natgauge.records.record import read_lines
from natgauge.records.store import JOURNAL, JOURNAL_SCHEMA, ROUND_SCHEMA, TRIAL_SCHEMA

#: No undisturbed run takes longer, seconds.
END_SECONDS: Final = 600.0
#: Files to which natgauge appends a line for each trial, round or event that has ended.
APPENDED: Final[Mapping[str, str]] = {
    "trials.jsonl": TRIAL_SCHEMA,
    "rounds.jsonl": ROUND_SCHEMA,
    JOURNAL: JOURNAL_SCHEMA,
}
#: How progress shows a trial that has ended.
#: Share of the runs that begin without the tester's own highest rates of earlier runs.
_UNKNOWN_RATES: Final = 0.2
_ENDED_TRIAL: Final = re.compile(r" trial \d+: (?:PASS|FAIL|INVALID|COLLAPSED) ")
_FAULT: Final = re.compile(r"Traceback \(most recent call last\)|a fault of natgauge|panicked at")


@dataclass(slots=True)
class Around:
    """What surrounds the runs of a command.

    Attributes:
        options: further options of the command.
        left: returns what a run left in it.
        far: the machine of the lab `ssh`.
    """

    options: Sequence[str] = ()
    left: Callable[[], list[str]] = list
    far: FarMachine | None = None


@contextmanager
def nowhere(_folder: Path) -> Iterator[Around]:
    """Nothing surrounds the runs."""
    yield Around()


@contextmanager
def far_away(folder: Path) -> Iterator[Around]:
    """A machine that is reached by ssh."""
    with far_machine("sshkill", folder / "keys") as machine:

        def left() -> list[str]:
            command = ["ip", "-n", machine.tester, "-j", "link", "show"]
            shown = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            attached = [f"an XDP program is left at {each['ifname']}" for each in shown if "xdp" in each]
            return [*machine.left(), *attached]

        options = [f"--{name.replace('_', '-')}={value}" for name, value in machine.chosen.items()]
        yield Around([*options, "--lab-name=sshkill"], left, machine)


def no_sshd() -> str:
    """Why there is no far machine; empty = there is."""
    return "" if Path(SSHD).exists() else "openssh-server is not installed"


def no_guest() -> str:
    """Why there is no guest; empty = there is."""
    if shutil.which(PROGRAM) is None:
        return f"{PROGRAM} is not installed"
    try:
        image.find()
    except NatgaugeError as error:
        return str(error)
    return ""


@dataclass(frozen=True, slots=True)
class Victim:
    """One command.

    Attributes:
        name: of the storms that use it.
        arguments: of natgauge.
        ends: exit statuses of a run that nothing disturbs.
        around: makes what surrounds the runs.
        plan: text of `plan.toml` in the run's folder; empty = none.
        missing: returns why it cannot run here; empty = it can.
        changes: settings of the host that a run changes while it lasts; all natgauges of the host share them.
        stays: whether the device is a process that stays until the lab is cleaned.
        latest: no kill comes later in a run, seconds; None = a run that nothing disturbs says how long it takes.
    """

    name: str
    arguments: tuple[str, ...]
    ends: frozenset[int] = frozenset({0})
    around: Callable[[Path], AbstractContextManager[Around]] = nowhere
    plan: str = ""
    missing: Callable[[], str] = nothing_missing
    changes: tuple[str, ...] = ()
    stays: bool = False
    latest: float | None = None

    def is_right(self, status: int, last: str) -> bool:
        """Whether an undisturbed run may end so: on a busy host no load may pass within the time that it has."""
        return status in self.ends or (status == 4 and ": no result: " in last)

    @property
    def command(self) -> str:
        return f"natgauge {' '.join(word for word in self.arguments[:3] if not word.startswith('--out'))}"


_QUICK: Final = ("--profile=quick", "--connections=2000", "--error=50%")
MEASURE: Final = Victim(
    "measure",
    ("measure", "throughput", "--gateway=nftables-nat44", *_QUICK, "--trial-seconds=0.2", "--most-seconds=3"),
)
COMPARE: Final = Victim(
    "compare",
    (
        *("compare", "nftables-nat44", "linux-ipv4", "--quantities=up", "--connections=2000"),
        *("--most-seconds=1", "--fail-above=100%", "--unlike"),
    ),
    ends=frozenset({0, 10, 11}),
)
RUN: Final = Victim(
    "run",
    ("run", "plan.toml", "--out=results"),
    # 4: on a busy host a measurement ends without a result, and is broken.
    ends=frozenset({0, 4}),
    plan=small_plan("storm", "storm", ["nftables-nat44"], 2000, throughput=False) + "most_seconds = 3.0\n",
)
AUDIT: Final = Victim("audit", ("audit", "--gateway=nftables-nat44", "--wait=0", "--mappings=128"))
SSH: Final = Victim(
    "ssh",
    ("measure", "connection-rate", "--gateway=nftables-nat44", *_QUICK, "--connections=500", "--most-seconds=3"),
    around=far_away,
    missing=no_sshd,
)
VM: Final = Victim(
    "vm",
    (
        "measure",
        "connection-rate",
        "--gateway=nftables-nat44",
        *_QUICK,
        "--lab=vm",
        "--lab-name=vm",
        "--most-seconds=3",
    ),
    missing=no_guest,
    # An emulated guest boots for half a minute or longer, and answers after minutes.
    latest=40.0,
    stays=True,
)
#: The device must know 2,000 neighbours.
NEIGHBOURS: Final = Victim(
    "neighbours",
    (
        "measure",
        "throughput",
        "--gateway=linux-ipv6",
        *MEASURE.arguments[3:],
        "--source-addresses=2001:2::2-2001:2::7d1",
    ),
    changes=tuple(f"/proc/sys/net/ipv6/neigh/default/gc_thresh{number}" for number in (1, 2, 3)),
)
#: Its table must have room for more connections than the kernel's default.
TABLE: Final = Victim(
    "table",
    (*MEASURE.arguments, "--table-size=300000", "--hash-size=131072"),
    changes=("/proc/sys/net/netfilter/nf_conntrack_max", "/sys/module/nf_conntrack/parameters/hashsize"),
)
VICTIMS: Final = (MEASURE, COMPARE, RUN, AUDIT, SSH, VM, NEIGHBOURS, TABLE)


@dataclass(slots=True)
class Run:
    """One run of a command.

    Attributes:
        victim: the command.
        folder: where it runs; its results are in `results`.
        group: the control group of its processes.
        process: its first process.
        programs: BPF programs that were loaded when its process was disturbed.
        known: whole lines of each appended file at that moment.
    """

    victim: Victim
    folder: Path
    group: groups.Group
    process: subprocess.Popen[str]
    programs: set[int] = field(default_factory=set)
    known: dict[Path, bytes] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """Its standard error."""
        return (self.folder / "err").read_text(errors="replace")

    def look(self) -> str:
        """Remember what there is at this moment, just before a disturbance; return what is going on."""
        members = self.group.members()
        self.programs = programs_of(members)
        self.known = {path: _whole(path.read_bytes()) for path in self._appended()}
        works = any(program_of(pid) == "natgauge-engine" for pid in members)
        if works:
            return "while the engine ran"
        if any(self.known.values()):
            return "between two trials"
        made = any(locks.folder("labs").glob("*.json"))
        return "while a lab was made or undone" if made else "before the first lab, or after the last one"

    def _appended(self) -> list[Path]:
        return [path for name in APPENDED for path in (self.folder / "results").glob(f"**/{name}")]

    def lost(self) -> Iterator[str]:
        """Ended trials, rounds and events that its files no longer have; files that cannot be read."""
        for path, before in self.known.items():
            if not path.exists():
                # A folder without a trial is discarded; of a measurement under way a campaign writes the results last.
                if before:
                    yield f"{path} is gone, which had {len(before.splitlines())} lines"
                continue
            if not path.read_bytes().startswith(before):
                yield f"{path}: lines are gone"
        shown = len(_ENDED_TRIAL.findall(self.said))
        kept = 0
        for path in self._appended():
            try:
                lines = list(read_lines(path, APPENDED[path.name]))
            except NatgaugeError as error:
                yield str(error)
                continue
            if path.name == JOURNAL:
                kept += sum(line["event"] == "trial" for line in lines)
            elif "rounds" not in path.name and not any(part.name == JOURNAL for part in path.parents[2].glob("*")):
                kept += len(lines)
        if shown > kept:
            yield f"{shown} trials were shown as ended, {kept} are in the files"

    def misreported(self) -> Iterator[str]:
        """What `natgauge report` says of its results where it should not."""
        results = self.folder / "results"
        if not results.is_dir() or not any(results.iterdir()):
            return
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            status = run_in_this_process(["report", str(results)])
        if status not in {0, 2} or _FAULT.search(err.getvalue()):
            yield f"natgauge report ended with {status}: {err.getvalue()[-500:]}"

    def misspoken(self) -> Iterator[str]:
        """Tracebacks and panics in what it said."""
        if match := _FAULT.search(self.said):
            yield f"it said: {self.said[match.start() :][:1500]}"

    def end(self) -> str:
        """The last line that it said."""
        return next((line for line in reversed(self.said.splitlines()) if line.strip()), "")


def _whole(octets: bytes) -> bytes:
    return octets[: octets.rfind(b"\n") + 1]


def program_of(pid: int) -> str:
    """Name of the file that a process runs; empty = it has ended."""
    try:
        return Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return ""


@contextmanager
def begun(
    tally: Tally,
    victim: Victim,
    around: Around,
    *,
    octets: int | None = None,
    cores: float | None = None,
    before: Sequence[str] = (),
    results: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Run]:
    """Start a command in a folder and a control group of its own, and end what is left of it in the group.

    Args:
        tally: the storm's.
        victim: the command.
        around: what surrounds it.
        octets: limit of the memory of all its processes; None = no limit.
        cores: quota of the processor time of all its processes, cores; None = no quota.
        before: a command that runs it, such as one that makes a container.
        results: a folder, maybe of another file system, for its results; None = one below its own folder.
        environment: further variables of its environment.
    """
    number = len(list(tally.folder.glob("run-*"))) + 1
    folder = tally.folder / f"run-{number}"
    folder.mkdir()
    if results is not None:
        (folder / "results").symlink_to(results)
    (folder / "plan.toml").write_text(victim.plan)
    name = f"natgauge-storm-{os.getpid()}-{number}"
    with (
        groups.Group(name, octets, cores) as group,
        (folder / "out").open("w") as out,
        (folder / "err").open("w") as err,
    ):
        command = [*before, *command_line([*victim.arguments, *around.options])]
        # Now and then the tester's own highest rates are not known yet, and are measured first.
        known = {} if tally.chance.random() > _UNKNOWN_RATES else {"XDG_CACHE_HOME": str(folder / "cache")}
        variables = {**known, **(environment or {})}
        process = group.start(command, cwd=folder, stdout=out, stderr=err, environment=variables)
        try:
            yield Run(victim, folder, group, process)
        finally:
            process.kill()
            process.wait()
    # The name stays, for the number of the next one.
    shutil.rmtree(folder)
    folder.mkdir()


def ends_rightly(tally: Tally, run: Run) -> None:
    """Wait for the end of a run that nothing disturbs; it must end as it should."""
    status = run.process.wait(END_SECONDS)
    if not run.victim.is_right(status, run.end()):
        tally.blame([f"undisturbed, {run.victim.name} ended with {status}: {run.end()}"])


def undisturbed(tally: Tally, victim: Victim, around: Around) -> float:
    """Run a command to its end, and return its duration in seconds; it must end as it should, and leave nothing."""
    began = time.monotonic()
    with begun(tally, victim, around) as run:
        ends_rightly(tally, run)
        seconds = time.monotonic() - began
        tally.blame(processes_left(run.group))
        tally.blame(labs_left())
        tally.blame(around.left())
    tally.notes.append(f"an undisturbed run took {seconds:.1f} s")
    return seconds


def examined(tally: Tally, run: Run) -> None:
    """Look for what a run that was killed, or ended after a disturbance, left, and for what it lost."""
    tally.blame(processes_left(run.group))
    tally.blame(programs_left(run.programs))
    tally.blame(run.lost())
    tally.blame(run.misspoken())
    tally.blame(run.misreported())


def cleaned(tally: Tally, around: Around) -> None:
    """Clean up as `natgauge lab clean` does; nothing may be left then."""
    try:
        cleaning.clean()
    except NatgaugeError as error:
        tally.blame([f"natgauge lab clean: {error}"])
    tally.blame(labs_left())
    tally.blame(around.left())
