# SPDX-License-Identifier: Apache-2.0
"""A machine on which labs are in use, are kept, and were left behind, without a network: files stand for namespaces."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import pytest

from natgauge import cleaning
from natgauge.errors import BrokenError, HostError
from natgauge.host import capabilities
from natgauge.host.private_files import private
from natgauge.labs.common import locks, namespaces, processes, register
from natgauge.labs.common import register as registers
from natgauge.labs.common.locks import Lock
from natgauge.labs.common.register import Register
from natgauge.labs.netns import lab as netns_lab
from natgauge.labs.wire.lab import port_lock

#: What a lab did: it wrote down that it makes a namespace of this name, or this folder, or it set a setting.
Item: TypeAlias = str | Path | tuple[Path, int]
#: The name of the user who makes labs.
USER = "somebody"
NOBODY = 65534
#: Command lines, run by nobody.
_READER = """
import os, sys
from pathlib import Path
import natgauge.cli.lab
from natgauge.cli import SUBCOMMANDS, app, run
import natgauge.cleaning
from natgauge.labs.common import locks
# Before it is another user: that one may not be able to read the package. The help lists all commands.
for name in SUBCOMMANDS:
    app.get_command(None, name)
locks.RUN = Path(sys.argv[1])
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for words in sys.argv[2:]:
    print("status", run(words.split()), flush=True)
"""


class Machine:
    """What natgauge finds on it.

    Attributes:
        run: /run/natgauge; nothing of natgauge is made before it is needed.
        netns: /run/netns.
        root: folder of the settings.
        protected: namespaces that must not be deleted.
        lacks: capabilities that natgauge does not have.
        processes: numbers of all processes, as far as natgauge looks for its own.
        programs: names of natgauge's own programs.
        undying: a process does not end.
        meanwhile: is called once, between the decision what is cleaned and its carrying out.
    """

    def __init__(self, folder: Path) -> None:
        self.run, self.netns, self.root = folder / "run", folder / "netns", folder / "root"
        self.protected: set[str] = set()
        self.lacks: tuple[str, ...] = ()
        self.processes: list[int] = []
        self.programs = list(cleaning.PROGRAMS)
        self.undying = False
        self.meanwhile: Callable[[], object] | None = None
        self._held: list[Callable[[], None]] = []
        for made in (self.netns, self.root):
            made.mkdir(parents=True)

    @property
    def labs(self) -> Path:
        """The folder of registers and their locks."""
        return self.run / "labs"

    def use(self, name: str = "x", *items: Item, kept: bool = False) -> Callable[[], None]:
        """Have this process use a lab that did this, in this order.

        Returns:
            What lets the lab go, as a kill would.
        """
        register = Register.begin(name, "netns", {"initiator_family": "ipv4", "responder_family": "ipv4"})
        for item in items:
            match item:
                case str():
                    register.record("namespace", name=item)
                case Path():
                    register.record("directory", path=str(item))
                case path, value:
                    register.set_global(path, value)
        if kept:
            register.keep()
        self._held.append(register.release)
        return register.release

    def leave(self, name: str = "x", *items: Item, kept: bool = False) -> None:
        """Have a lab that nobody uses: kept, or left behind by a run that was killed."""
        self.use(name, *items, kept=kept)()

    def lock(self, name: str, what: str | None = None) -> Callable[[], None]:
        """Hold a lock in this process; return what lets it go."""
        lock = Lock(name, what)
        lock.take()
        self._held.append(lock.release)
        return lock.release

    def port(self, name: str) -> Callable[[], None]:
        """Use a port of the machine in this process; return what lets it go."""
        lock = port_lock(name, None)
        lock.take()
        self._held.append(lock.release)
        return lock.release

    def folder(self, name: str) -> Path:
        """A folder of /run/natgauge that is there."""
        return private(private(self.run) / name)

    def mark(self, name: str) -> None:
        """Mark a namespace as natgauge's, whether it is there or not."""
        namespaces.write_mark(name, namespaces.cookie())

    def namespace(self, name: str, *, marked: bool = True) -> None:
        """Have a namespace; one without a mark is not natgauge's."""
        if marked:
            self.mark(name)
        (self.netns / name).touch()

    def file_of_setting(self, path: Path) -> Path:
        """Where the last value of a setting is."""
        self.folder("settings")
        return register.value_file_of(str(path))

    def release(self) -> None:
        """Let all labs in use go."""
        for let_go in self._held:
            # A test may have put something else in the place of the folder of locks.
            with suppress(OSError):
                let_go()

    def everything(self) -> dict[str, str]:
        """Every file with its content, and every folder."""
        found = [path for top in (self.run, self.netns, self.root) for path in top.rglob("*")]
        return {str(path): path.read_text() if path.is_file() else "" for path in found}

    def left(self) -> list[str]:
        """All files and folders below /run/natgauge, without its subfolders."""
        return sorted(path.name for path in self.run.glob("*/*"))

    def as_nobody(self, *command_lines: str) -> list[str]:
        """What another user is told, and each exit status."""
        command = [sys.executable, "-c", _READER, str(self.run), *command_lines]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.stdout.splitlines()


@contextmanager
def machine_in(folder: Path) -> Iterator[Machine]:
    """Have natgauge find such a machine for as long as the block lasts."""
    made = Machine(folder)
    decide, end = cleaning.decide, namespaces.end_processes

    def refusal(name: str, *, unmarked: bool = False) -> str:
        if name in made.protected:
            return "it is the network of this machine"
        return "" if unmarked or namespaces.is_marked(name) else "natgauge did not make it"

    def create(name: str) -> None:
        raise HostError(f"namespace {name}: cannot be made: this machine has no network")

    def decided(*given: object, **others: object) -> object:
        decisions = decide(*given, **others)  # type: ignore[arg-type]
        if (meanwhile := made.meanwhile) is not None:
            made.meanwhile = None
            meanwhile()
        return decisions

    def end_processes(pids: list[int]) -> object:
        if made.undying:
            raise BrokenError(f"process {pids[0]}: did not end")
        return end(pids)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUDO_USER", USER)
        patch.setattr(capabilities, "missing", lambda *_: made.lacks)
        patch.setattr(cleaning, "PROGRAMS", made.programs)
        patch.setattr(locks, "RUN", made.run)
        patch.setattr(registers, "GLOBAL_ROOTS", (f"{made.root}/",))
        # Another lab of this computer may have raised the real ones meanwhile, and this one would share them.
        patch.setattr(netns_lab, "neighbour_limits", lambda *_: ())
        patch.setattr(namespaces, "_RUN", made.netns)
        patch.setattr(namespaces, "all_processes", lambda: tuple(made.processes))
        patch.setattr(namespaces, "end_processes", end_processes)
        patch.setattr(namespaces, "refusal", refusal)
        patch.setattr(namespaces, "create", create)
        patch.setattr(processes, "name_of", lambda _pid: "sleep")
        patch.setattr(cleaning, "decide", decided)
        try:
            yield made
        finally:
            made.release()
