# SPDX-License-Identifier: Apache-2.0
"""A disk that is full, memory that ends, a clock that steps, a link that flaps, a machine behind ssh that hangs."""

from __future__ import annotations

import os
import re
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tests.labs.program import command_line
from tests.labs.storms import groups
from tests.labs.storms.remains import labs_left
from tests.labs.storms.storm import Storm, Tally, cores_missing
from tests.labs.storms.victims import (
    AUDIT,
    COMPARE,
    END_SECONDS,
    MEASURE,
    RUN,
    SSH,
    Around,
    Run,
    Victim,
    begun,
    cleaned,
    ends_rightly,
    examined,
    no_sshd,
    program_of,
    undisturbed,
)
from tests.plans import PlanOfTrial

from natgauge.errors import NatgaugeError
from natgauge.labs.netns.lab import NetnsLab
from natgauge.records.record import read_lines
from natgauge.records.store import TRIAL_SCHEMA, Memory
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.trials import Phase2Plan
from natgauge.words import Verdict

_VICTIMS: Final = (MEASURE, COMPARE, RUN, AUDIT)
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
#: A run that is disturbed ends after this time at the latest, seconds.
_LATEST: Final = 400.0
_ENDS: Final = (
    "it ends in one line with exit status 2, 3 or 4, or is not affected; nothing is left; no ended trial is lost; "
    "`natgauge report` reads the results"
)


def ended(tally: Tally, victim: Victim, status: int, last: str, allowed: set[int]) -> str:
    """Count how a run ended, and look whether it said why."""
    if victim.is_right(status, last):
        return "not affected"
    tally.said[re.sub(r"\S*\d\S*", "N", last)] += 1
    if status not in allowed:
        tally.blame([f"{victim.name} ended with {status}: {last}"])
    elif status > 0 and not last.startswith("natgauge: "):
        tally.blame([f"{victim.name} ended with {status}, and its last line is {last!r}"])
    return f"exit status {status}" if status >= 0 else f"killed by signal {-status}"


def wait_for(tally: Tally, run: Run) -> int:
    """Return the exit status of a run; one that does not end is asked what it does (PYTHONFAULTHANDLER), and ends."""
    with suppress(subprocess.TimeoutExpired):
        return run.process.wait(_LATEST)
    run.process.send_signal(signal.SIGABRT)
    status = run.process.wait()
    tally.blame([f"{run.victim.name} did not end within {_LATEST:.0f} s: {run.said[-2000:]}"])
    return status


# --- a full disk ------------------------------------------------------------------------------------------------------


@contextmanager
def _disk(folder: Path, octets: int) -> Iterator[Path]:
    """A file system of a few octets."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={octets}", "storm", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)
        folder.rmdir()


def _used(folder: Path) -> int:
    done = subprocess.run(["df", "--block-size=1", "--output=used", folder], check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1])


def _full_disk(tally: Tally) -> None:
    around = Around()
    sizes: dict[str, int] = {}
    for victim in _VICTIMS:
        with _disk(tally.folder / "disk", 1 << 28) as disk, begun(tally, victim, around, results=disk) as run:
            ends_rightly(tally, run)
            sizes[victim.name] = _used(disk)
    tally.notes.append(f"octets that an undisturbed run writes: {sizes}")
    resumed = 0
    while tally.goes_on:
        victim = tally.chance.choice(_VICTIMS)
        octets = tally.chance.randrange(_PAGE, sizes[victim.name] + _PAGE)
        with ExitStack() as made:
            disk = made.enter_context(_disk(tally.folder / "disk", octets))
            # Half of the runs have their temporary files there, too.
            temporary = {"TMPDIR": str(disk)} if tally.chance.random() < 0.5 else {}
            run = made.enter_context(begun(tally, victim, around, results=disk, environment=temporary))
            status = wait_for(tally, run)
            last = run.end()
            tally.saw(f"{victim.name}: {ended(tally, victim, status, last, {3})}")
            if not victim.is_right(status, last) and "No space left on device" not in last:
                tally.blame([f"{victim.name}: does not say that the disk is full: {last}"])
            examined(tally, run)
            if victim is RUN and status not in victim.ends and (disk / "campaign.json").exists():
                subprocess.run(["mount", "-o", f"remount,size={1 << 28}", disk], check=True)
                again = run.group.start(
                    command_line([*victim.arguments, "--resume"]),
                    cwd=run.folder,
                    stdout=(run.folder / "out").open("a"),
                    stderr=(run.folder / "err").open("a"),
                )
                if (status := again.wait(END_SECONDS)) != 0:
                    tally.blame([f"with room, --resume ended with {status}: {run.end()}"])
                resumed += 1
                examined(tally, run)
        cleaned(tally, around)
    tally.notes.append(f"{resumed} campaigns were resumed after room was made, and ended")


# --- memory that ends -------------------------------------------------------------------------------------------------


def _memory_ends(tally: Tally) -> None:
    around = Around()
    most: dict[str, int] = {}
    for victim in _VICTIMS:
        with begun(tally, victim, around, octets=1 << 32) as run:
            ends_rightly(tally, run)
            most[victim.name] = run.group.most_octets()
    tally.notes.append(f"MiB that an undisturbed run takes: { {name: value >> 20 for name, value in most.items()} }")
    while tally.goes_on:
        victim = tally.chance.choice(_VICTIMS)
        octets = int(most[victim.name] * tally.chance.uniform(0.3, 1.05))
        with begun(tally, victim, around, octets=octets) as run:
            status = wait_for(tally, run)
            killed = " (the kernel killed a process of it)" if run.group.out_of_memory() else ""
            how = ended(tally, victim, status, run.end(), {2, 3, 4, -signal.SIGKILL})
            tally.saw(f"{victim.name}: {how}{killed}")
            examined(tally, run)
        cleaned(tally, around)


# --- the end of one process -------------------------------------------------------------------------------------------


def _part_killed(tally: Tally) -> None:
    """SIGKILL of one process that a run has started, such as the kernel chooses one when memory ends."""
    around = Around()
    wholes = {victim.name: undisturbed(tally, victim, around) for victim in _VICTIMS}
    while tally.goes_on:
        victim = tally.chance.choice(_VICTIMS)
        with begun(tally, victim, around) as run:
            with suppress(subprocess.TimeoutExpired):
                run.process.wait(tally.chance.uniform(0.0, wholes[victim.name]))
                continue
            deadline = time.monotonic() + wholes[victim.name]
            while run.process.poll() is None and time.monotonic() < deadline:
                if others := [pid for pid in run.group.members() if pid != run.process.pid]:
                    chosen = tally.chance.choice(others)
                    name = program_of(chosen)
                    with suppress(ProcessLookupError):
                        os.kill(chosen, signal.SIGKILL)
                        status = wait_for(tally, run)
                        how = ended(tally, victim, status, run.end(), {3, 4})
                        tally.saw(
                            f"{name.rstrip('0123456789.') or 'a shell that had just begun'} of {victim.name}: {how}"
                        )
                        examined(tally, run)
                        break
                time.sleep(0.001)
        # Here it has undone everything by itself.
        tally.blame(labs_left())
        cleaned(tally, around)


# --- a clock that steps -----------------------------------------------------------------------------------------------

#: By how much the clock of dates is wrong after a step, seconds.
_STEPS: Final = (-86400 * 365, -86400, -3600, -2, -0.3, 0.3, 2, 3600, 86400, 86400 * 365)
_CLOCK: Final = Path(__file__).with_name("dates.c")


def _clock_steps(tally: Tally) -> None:
    """The host's own clock stays: what is started reads a date that is moved (`dates.c`)."""
    around = Around()
    moved, offset = tally.folder / "dates.so", tally.folder / "offset"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", moved, _CLOCK], check=True)

    def step_to(seconds: float) -> None:
        # Written in place: the programs have the file in their memory.
        with offset.open("r+b" if offset.exists() else "wb") as file:
            file.write(struct.pack("q", int(seconds * 1e9)))

    while tally.goes_on:
        victim = tally.chance.choice(_VICTIMS)
        step_to(0)
        environment = {"LD_PRELOAD": str(moved), "STORM_CLOCK": str(offset)}
        began = time.monotonic()
        with begun(tally, victim, around, environment=environment) as run:
            while run.process.poll() is None and time.monotonic() < began + _LATEST:
                with suppress(subprocess.TimeoutExpired):
                    run.process.wait(tally.chance.uniform(0.05, 1.0))
                step = tally.chance.choice(_STEPS)
                step_to(step)
                if run.process.poll() is None:
                    tally.saw(f"{victim.name}: {'back' if step < 0 else 'forward'}")
            seconds = time.monotonic() - began
            status = run.process.poll()
            if status is None or not victim.is_right(status, run.end()):
                tally.blame([f"{victim.name} ended with {status}: {run.end()}"])
            examined(tally, run)
            tally.blame(_impossible(run.folder / "results", seconds))
        cleaned(tally, around)


def _impossible(results: Path, most: float) -> Iterator[str]:
    """Durations of trials that cannot be: below 0, or longer than the whole run."""
    for path in results.glob("**/trials.jsonl"):
        for trial in read_lines(path, TRIAL_SCHEMA):
            if not 0 <= trial["seconds"] <= most:
                yield f"trial {trial['trial']} of {path.parent.name} took {trial['seconds']} s"


# --- a link that flaps ------------------------------------------------------------------------------------------------


def _link_flaps(tally: Tally) -> None:
    """The device's end of a cable goes down during a trial, so the tester's own port loses its link."""
    question = ask("throughput", "linux-ipv4", {"lab_name": "flap", "placement": "isolated", "connections": 100})
    lab = NetnsLab("flap", initiator_family="ipv4", responder_family="ipv4", placement="isolated")
    seconds = 1.0
    with Bench(question.cell, lab=lab) as bench:
        measurer = bench.ready(bench.plan(question.metric, {}), Memory()).measurer
        plan = PlanOfTrial(100, 1000.0, Phase2Plan(1000.0, 0.0, seconds))
        device = lab.devices[0]
        while tally.goes_on:
            begin, down = tally.chance.uniform(0.0, 2 * seconds), tally.chance.uniform(0.005, 0.2)

            def flap(begin: float = begin, down: float = down) -> None:
                time.sleep(begin)
                device.run(f"ip link set {device.outside} down; sleep {down:.3f}; ip link set {device.outside} up")

            other = threading.Thread(target=flap)
            other.start()
            try:
                outcome = measurer.measure(plan)
            except NatgaugeError as error:
                tally.saw(f"no verdict, in one line: {type(error).__name__}")
                tally.notes.append(str(error))
                continue
            finally:
                other.join()
            lost = sum(each.lost for each in outcome.phase2.values()) + outcome.phase1.lost
            tally.saw(f"{outcome.verdict}, {'frames lost' if lost else 'no frame lost'}")
            if outcome.verdict in {Verdict.FAIL, Verdict.COLLAPSED} or (lost and outcome.verdict is Verdict.PASS):
                tally.blame([f"{outcome.verdict}, {lost} lost: {outcome.reason}"])


# --- a machine behind ssh that hangs ----------------------------------------------------------------------------------


def _ssh_hangs(tally: Tally) -> None:
    """All processes of sshd stop at a random moment: its connections stay, and nothing answers."""
    longest = 0.0
    with SSH.around(tally.folder) as around:
        assert around.far is not None
        whole = undisturbed(tally, SSH, around)
        while tally.goes_on:
            for_ever = tally.chance.random() < 0.5
            seconds = _LATEST if for_ever else tally.chance.uniform(0.2, 5.0)
            with begun(tally, SSH, around) as run:
                with suppress(subprocess.TimeoutExpired):
                    run.process.wait(tally.chance.uniform(0.0, whole))
                    continue
                stopped = _daemons(around.far.sshd.pid)
                send_signal(stopped, signal.SIGSTOP)
                began = time.monotonic()
                try:
                    status = _wait(run.process, seconds)
                    if status is None:
                        send_signal(stopped, signal.SIGCONT)
                        status = _wait(run.process, _LATEST)
                finally:
                    send_signal(stopped, signal.SIGCONT)
                took = time.monotonic() - began
                longest = max(longest, took)
                if status is None:
                    tally.blame([f"it did not end within {took:.0f} s after the machine hung"])
                    status = -1
                how = ended(tally, SSH, status, run.end(), {3, 4})
                tally.saw(f"{'for ever' if for_ever else 'for some seconds'}: {how}")
                examined(tally, run)
            cleaned(tally, around)
    tally.notes.append(f"it ended {longest:.0f} s after the machine hung at the latest")


def _wait(process: subprocess.Popen[str], seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _daemons(sshd: int) -> list[int]:
    """The server and the processes of its connections."""
    listed = subprocess.run(["pgrep", "-P", str(sshd)], check=False, capture_output=True, text=True).stdout.split()
    return [sshd, *map(int, listed)]


def send_signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _storm(name: str, started: str, disturbed: str, unit: str, counts: tuple[int, int], **others: Any) -> Storm:
    make: Callable[[Tally], None] = others["make"]
    missing: Callable[[], str] = others.get("missing", groups.missing)
    full, soak = counts
    return Storm(name, started, disturbed, others.get("holds", _ENDS), unit, full, soak, make, missing)


_ALL: Final = "`natgauge measure`, `compare`, `run` and `audit`"
FAULTS: Final = (
    _storm("full-disk", _ALL, "the disk of the results is full after a random part of them", "runs", (100, 6),
           make=_full_disk),
    _storm("no-memory", _ALL, "a control group ends their memory at a random amount", "runs", (100, 6),
           make=_memory_ends, missing=groups.memory_missing),
    _storm("kill-part", _ALL, "SIGKILL of one process that it has started, at a random moment", "kills", (100, 6),
           make=_part_killed),
    _storm("clock-steps", _ALL, "the clock of dates steps by 0.3 s to a year, back or forward, several times in a run",
           "steps", (1000, 60), make=_clock_steps,
           holds=f"the result is there, and each trial has a possible duration; {_ENDS}"),
    _storm("link-flaps", "trials over a forwarding namespace",
           "the link of the tester's own port goes down for 5 to 200 ms", "flaps", (100, 10),
           make=_link_flaps, missing=cores_missing,
           holds="a trial that lost frames meanwhile is INVALID; none is FAIL, COLLAPSED or a false PASS"),
    _storm("ssh-hangs", f"`{SSH.command} --lab ssh`", "each sshd process over there stops, for seconds or for ever",
           "hangs", (40, 3), make=_ssh_hangs, missing=lambda: groups.missing() or no_sshd()),
)  # fmt: skip
