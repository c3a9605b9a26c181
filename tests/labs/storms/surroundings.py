# SPDX-License-Identifier: Apache-2.0
"""A /run that is full, processes that stop, two natgauges at once, a CPU quota, a container with natgauge as PID 1.

In all of them things of other people stand next to natgauge's: namespaces with natgauge's prefix, one of them the
machine's own, processes in them, a rule set, a link. Nobody may touch them.
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from tests.labs.program import command_line
from tests.labs.storms import groups
from tests.labs.storms.faults import ended, send_signal, wait_for
from tests.labs.storms.host_state import HostState
from tests.labs.storms.remains import FOREIGN, settings_left, values_of
from tests.labs.storms.storm import Storm, Tally
from tests.labs.storms.victims import (
    AUDIT,
    COMPARE,
    MEASURE,
    RUN,
    TABLE,
    Around,
    Run,
    Victim,
    begun,
    examined,
    undisturbed,
)

_VICTIMS: Final = (MEASURE, COMPARE, RUN, AUDIT, TABLE)
_HOLDS: Final = (
    "it ends in one line with exit status 2, 3 or 4, or is not affected; after `natgauge lab clean` the host is as it "
    "was before (`sysctl -a`, links, rule sets, BPF programs, mounts), and nothing of other people was touched"
)
#: The longest time that `natgauge lab clean` may take, seconds.
_CLEAN_SECONDS: Final = 60.0


#: The first is another name for the machine's own namespace, as `ip netns attach` gives it.
_OWN, *_NAMED = FOREIGN


class Foreign:
    """Namespaces, processes, rules and links of other people, some of them with names such as natgauge gives."""

    def __enter__(self) -> Self:
        self._held: list[subprocess.Popen[bytes]] = []
        for name in _NAMED:
            _do("ip", "netns", "add", name)
            _do("ip", "-n", name, "link", "add", "ng0i", "type", "veth", "peer", "name", "ng0r")
            _do("ip", "netns", "exec", name, "nft", "add", "table", "ip", "foreign")
            self._held.append(subprocess.Popen(["ip", "netns", "exec", name, "sleep", "infinity"]))
        self._own = Path("/run/netns") / _OWN
        self._own.touch()
        _do("mount", "--bind", "/proc/self/ns/net", str(self._own))
        self._before = self._look()
        return self

    def __exit__(self, *_error: object) -> None:
        for process in self._held:
            process.kill()
            process.wait()
        subprocess.run(["umount", self._own], check=False)
        self._own.unlink(missing_ok=True)
        for name in _NAMED:
            subprocess.run(["ip", "netns", "delete", name], check=False)

    def _look(self) -> dict[str, str]:
        found = {_OWN: str(self._own.stat().st_ino)}
        for name in _NAMED:
            for command in (("link", "show"), ("addr", "show")):
                found[f"{name} {command}"] = _said("ip", "-n", name, *command)
            found[f"{name} rules"] = _said("ip", "netns", "exec", name, "nft", "list", "ruleset")
        return found

    def touched(self) -> Iterator[str]:
        """What is not as it was made, one sentence each."""
        for process in self._held:
            if process.poll() is not None:
                yield f"a process of other people was ended: {process.args!r}"
        try:
            now = self._look()
        except OSError as error:
            yield f"a namespace of other people is gone: {error}"
            return
        yield from (f"{name} was changed: {now[name]}" for name, value in self._before.items() if now[name] != value)


def _do(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _said(*command: str) -> str:
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


class _Host:
    """The host with other people on it: compared after each disturbance, cleaned by the command line."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def __enter__(self) -> Self:
        with ExitStack() as made:
            self._foreign = made.enter_context(Foreign())
            self._state = HostState()
            self._held = made.pop_all()
        self._tally.notes.append(f"{len(self._state):,} facts of the host are compared after each run")
        return self

    def __exit__(self, *_error: object) -> None:
        self._held.close()

    def clean(self) -> None:
        """Run `natgauge lab clean` as a user does, and compare the host with its state before."""
        try:
            done = subprocess.run(
                command_line(["lab", "clean"]), check=False, capture_output=True, text=True, timeout=_CLEAN_SECONDS
            )
        except subprocess.TimeoutExpired:
            self._tally.blame([f"natgauge lab clean did not end within {_CLEAN_SECONDS:.0f} s"])
            return
        if done.returncode != 0:
            self._tally.blame([f"natgauge lab clean ended with {done.returncode}: {done.stderr[-500:]}"])
        self.compare()

    def compare(self) -> None:
        """Compare the host with its state before."""
        self._tally.blame(self._state.changed())
        self._tally.blame(self._foreign.touched())


# --- a full /run ------------------------------------------------------------------------------------------------------


@contextmanager
def _filled(folder: Path) -> Iterator[None]:
    """No octet is free in this folder's file system."""
    filler = folder / "filler"
    with filler.open("wb") as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 20))
            file.flush()
    with filler.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1))
    try:
        yield
    finally:
        filler.unlink()


def _full_run(tally: Tally) -> None:
    around = Around()
    with _Host(tally) as host:
        wholes = {victim.name: undisturbed(tally, victim, around) for victim in _VICTIMS}
        while tally.goes_on:
            victim = tally.chance.choice(_VICTIMS)
            at = max(0.0, tally.chance.uniform(-0.3, 1.0)) * wholes[victim.name]
            with begun(tally, victim, around) as run:
                with suppress(subprocess.TimeoutExpired):
                    run.process.wait(at)
                with _filled(Path("/run")):
                    status = wait_for(tally, run)
                    tally.saw(f"{victim.name}: {ended(tally, victim, status, run.end(), {2, 3, 4})}")
                    # There is no room for what it has to write, and still everything goes away.
                    host.clean()
                examined(tally, run)


# --- processes that stop ----------------------------------------------------------------------------------------------


def _stopped(tally: Tally) -> None:
    """SIGSTOP and SIGCONT: of natgauge, of its engine, of all at once, as a debugger or a paused container does."""
    around = Around()
    with _Host(tally) as host:
        wholes = {victim.name: undisturbed(tally, victim, around) for victim in _VICTIMS}
        while tally.goes_on:
            victim = tally.chance.choice(_VICTIMS)
            with begun(tally, victim, around) as run:
                with suppress(subprocess.TimeoutExpired):
                    run.process.wait(tally.chance.uniform(0.0, wholes[victim.name]))
                    continue
                members = run.group.members()
                part = tally.chance.choice(("all", "one"))
                chosen = members if part == "all" else [tally.chance.choice(members)] if members else []
                seconds = tally.chance.choice((0.02, 0.1, 0.5, 2.0, 8.0))
                send_signal(chosen, signal.SIGSTOP)
                time.sleep(seconds)
                send_signal(chosen, signal.SIGCONT)
                status = wait_for(tally, run)
                how = ended(tally, victim, status, run.end(), {3, 4})
                tally.saw(f"{part} of {victim.name} for {seconds} s: {how}")
                examined(tally, run)
            host.clean()


# --- two natgauges at once --------------------------------------------------------------------------------------------

_HIDDEN: Final = ("/run/natgauge", "/run/netns")
#: As a container that shares the host's network has it: files, a /proc and process numbers of its own.
_CONTAINER: Final = (
    *("unshare", "--mount", "--pid", "--ipc", "--fork", "--mount-proc", "--kill-child", "--propagation", "private"),
    *(
        "sh",
        "-c",
        "".join(f"mkdir -p -m 700 {each}; mount -t tmpfs tmpfs {each}; " for each in _HIDDEN) + 'exec "$@"',
        "sh",
    ),
)


def _two_at_once(tally: Tally) -> None:
    """Two runs that overlap: on one /run with one name or two, or in two containers; with and without settings."""
    with _Host(tally) as host:
        while tally.goes_on:
            one, other = tally.chance.choice(_VICTIMS), tally.chance.choice(_VICTIMS)
            where = tally.chance.choice(("one name", "two names", "two containers"))
            name = "" if where == "one name" else "b"
            with ExitStack() as made:
                prefixes = [_CONTAINER] * 2 if where == "two containers" else [()] * 2
                first = made.enter_context(begun(tally, one, Around(), before=prefixes[0]))
                time.sleep(tally.chance.uniform(0.0, 3.0))
                second = made.enter_context(begun(tally, other, Around(_named(other, name)), before=prefixes[1]))
                for each, victim in ((first, one), (second, other)):
                    status = wait_for(tally, each)
                    tally.saw(f"{where}: {ended(tally, victim, status, each.end(), {2, 3, 4})}")
                    examined(tally, each)
            host.clean()


def _named(victim: Victim, name: str) -> list[str]:
    """Options for a lab of another name; a campaign has it in its plan, and a comparison names its labs itself."""
    return [f"--lab-name={name}"] if name and victim not in (RUN, COMPARE) else []


# --- a CPU quota ------------------------------------------------------------------------------------------------------


def _quota(tally: Tally) -> None:
    """A control group takes the cores away for a part of each tenth of a second."""
    with _Host(tally) as host:
        named = 0
        while tally.goes_on:
            victim = tally.chance.choice(_VICTIMS)
            cores = tally.chance.choice((0.2, 0.5, 0.8, 1.5))
            with begun(tally, victim, Around(), cores=cores) as run:
                status = wait_for(tally, run)
                tally.saw(f"{victim.name}, {cores} cores: {ended(tally, victim, status, run.end(), {3, 4})}")
                named += bool(re.search("quota", run.said + (run.folder / "out").read_text()))
                examined(tally, run)
            host.clean()
        tally.notes.append(f"{named} of {tally.count} runs name the quota")


# --- a container ------------------------------------------------------------------------------------------------------


def _container(tally: Tally) -> None:
    """A container with natgauge as PID 1. At any moment a second natgauge cleans there, or the container is killed."""
    with _Host(tally) as host:
        wholes = {victim.name: undisturbed(tally, victim, Around()) for victim in _VICTIMS}
        before, stayed = values_of(TABLE.changes), 0
        while tally.goes_on:
            victim = tally.chance.choice(_VICTIMS)
            cleans = tally.chance.random() < 0.6
            with begun(tally, victim, Around(), before=_CONTAINER) as run:
                with suppress(subprocess.TimeoutExpired):
                    run.process.wait(tally.chance.uniform(0.0, wholes[victim.name]))
                    continue
                first = _first_of(run)
                if cleans and first is not None:
                    _clean_inside(tally, first)
                    status = wait_for(tally, run)
                    tally.saw(f"a second natgauge cleans next to {victim.name}: not affected")
                    if not victim.is_right(status, run.end()):
                        tally.blame([f"{victim.name} next to lab clean ended with {status}: {run.end()}"])
                else:
                    run.look()
                    run.process.kill()
                    run.process.wait()
                    tally.saw(f"the container of {victim.name} is killed")
                    # The register with the first values ended with the container's files.
                    stayed += any(settings_left(before))
                    for path, value in before.items():
                        Path(path).write_text(value)
                examined(tally, run)
            host.clean()
        tally.notes.append(f"{stayed} containers were killed while settings of the host were changed, and these stayed")


def _first_of(run: Run) -> int | None:
    """PID 1 of the run's container, as this process sees it."""
    listed = _said("pgrep", "-P", str(run.process.pid)).split()
    return int(listed[0]) if listed else None


def _clean_inside(tally: Tally, first: int) -> None:
    for arguments in (["lab", "status"], ["lab", "clean"]):
        command = ["nsenter", "-t", str(first), "-p", "-m", *command_line(arguments)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_CLEAN_SECONDS)
        # The container may have ended before, or meanwhile: then the kernel kills all that is in it.
        if done.returncode not in {0, 1, -signal.SIGKILL} or "Traceback" in done.stderr:
            tally.blame([f"natgauge {' '.join(arguments)} in the container: {done.returncode}: {done.stderr[-500:]}"])
        if "ended process" in done.stdout:
            tally.blame([f"natgauge lab clean in the container: {done.stdout}"])


def _storm(name: str, disturbed: str, counts: tuple[int, int], make: Callable[[Tally], None], **others: Any) -> Storm:
    started = "`natgauge measure` (two of them, one with a larger table), `compare`, `run` and `audit`"
    full, soak = counts
    missing: Callable[[], str] = others.get("missing", groups.missing)
    return Storm(name, started, disturbed, _HOLDS, others.get("unit", "runs"), full, soak, make, missing)


SURROUNDINGS: Final = (
    _storm("full-run", "/run is full from a random moment on, also while `lab clean` runs", (60, 4), _full_run),
    _storm("stop", "SIGSTOP of one process or all at a random moment, SIGCONT after 0.02 to 8 s", (60, 4), _stopped),
    _storm("two", "two runs overlap, with one name, two names, or in two containers", (120, 6), _two_at_once),
    _storm("quota", "a quota of 0.2 to 1.5 cores", (60, 4), _quota, missing=groups.cpu_missing),
    _storm("container", "as PID 1 of a container, in which another natgauge cleans, or which is killed", (60, 4),
           _container),
)  # fmt: skip
