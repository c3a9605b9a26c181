# SPDX-License-Identifier: Apache-2.0
"""Running snippets in a device's namespace."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from natgauge import table_memory
from natgauge.errors import BrokenError, HostError
from natgauge.host import process_files, programs
from natgauge.host.limits import memory_octets
from natgauge.host.settings import LocalSetting, Remembers
from natgauge.labs.common.frame_processes import WORK, frame_processes, keep_on
from natgauge.labs.common.namespaces import inside, within
from natgauge.labs.common.processes import all_processes
from natgauge.labs.common.shell import SNIPPET_VARIABLES, run_shell, title
from natgauge.labs.contract import CommandResult
from natgauge.table_memory import ObjectCaches

_CLONE_NEWNS = 0x00020000
_MS_SLAVE_ALL = (1 << 19) | (1 << 14)  # MS_SLAVE | MS_REC
_MS_BIND = 1 << 12
#: Where eBPF programs and maps are pinned.
_BPFFS = "/sys/fs/bpf"


class ThisMachine:
    """The machine of every device in a namespace of the tester's host."""

    system: str = os.uname().sysname
    has_tester_files: bool = True

    def __init__(self, memory: Callable[[], Remembers]) -> None:
        """Take the way to the `memory` that stores global settings before their change; a lab has it once it is up."""
        self._memory = memory

    def free_octets(self) -> int:
        """Return MemAvailable in octets."""
        octets = memory_octets("MemAvailable")
        if octets is None:
            raise HostError("/proc/meminfo: has no MemAvailable; natgauge needs Linux 6.6 or later")
        return octets

    def object_caches(self) -> ObjectCaches:
        """Return the kernel's object caches; empty where they are not readable."""
        with suppress(OSError):
            return table_memory.read(Path("/proc/slabinfo").read_text(encoding="ascii"))
        return {}

    def setting(self, name: str, paths: Sequence[str], module: str | None) -> LocalSetting:
        """Return a global setting; nothing is changed yet."""
        return LocalSetting(name, paths, module=module, memory=self._memory)


@dataclass(slots=True)
class NamespaceDevice:
    """A device whose home is a network namespace of this machine (see `natgauge.labs.contract.Device`).

    Attributes:
        nice: priority of its snippets and of their processes, -20 (highest) to 19.
    """

    name: str
    netns: str
    inside: str
    outside: str
    environment: Mapping[str, str]
    machine: ThisMachine = field(compare=False)
    nice: int = 0
    #: Processes of its snippets, with their start times.
    _running: dict[int, str] = field(default_factory=dict, init=False, compare=False, repr=False)

    def run(
        self, snippet: str, *, environment: Mapping[str, str] | None = None, timeout: float = 60.0
    ) -> CommandResult:
        """Run a POSIX shell snippet (`sh -eu`) in the namespace, as we are, in the device's private directory.

        Programs it leaves running exist in the namespace until the lab is removed; they need not close their output.
        It sees PATH, `SNIPPET_VARIABLES`, `self.environment` and `environment`, and nothing else of ours.
        """
        variables = {"PATH": programs.search_path(), **SNIPPET_VARIABLES, **self.environment, **(environment or {})}
        before = set(all_processes())
        what = f"device {self.name}: snippet {title(snippet)!r}"
        try:
            result = run_shell(
                lambda out, err: inside(self.netns, lambda: self._start(snippet, variables, out, err)), timeout, what
            )
        finally:
            self._rank(set(all_processes()) - before)
        if result is None:
            raise BrokenError(f"{what} did not end within {timeout:g} s and was killed")
        return result

    def frame_processes(self) -> tuple[str, ...]:
        """Return the names of the processes that handle the device's frames, and keep them on its cores.

        They may live in another namespace, and count as `nice` says there, too.
        """
        found = frame_processes(self.netns, self.environment.get(WORK, ""))
        cpus = [int(cpu) for cpu in self.environment.get("NG_CPUS", "").split(",") if cpu]
        for pid in found if cpus else ():
            keep_on(pid, cpus)
        self._write_ranks(found)
        return tuple(sorted(set(found.values())))

    def _rank(self, new: set[int]) -> None:
        """Let what a snippet left running count as `nice` says.

        Where the kernel groups tasks by session (autogroup), a process's own priority counts only inside its session,
        and a daemon has one of its own. Written after every snippet: a daemon may have made it since.
        """
        self._write_ranks(within(self.netns, new) if new else ())

    def _write_ranks(self, found: Iterable[int]) -> None:
        """Write the priority of the processes that were found now and earlier, and forget those that have ended."""
        self._running |= {pid: process_files.began(Path(f"/proc/{pid}")) for pid in found}
        for pid, began in tuple(self._running.items()):
            process = Path(f"/proc/{pid}")
            # The number of one that has ended may be that of another process.
            same = process_files.began(process) == began != ""
            try:
                if same:
                    (process / "autogroup").write_text(str(self.nice))
            except OSError:
                # It has just ended, or this kernel has no such groups.
                same = False
            if not same:
                del self._running[pid]

    def _start(self, snippet: str, variables: Mapping[str, str], out: int, err: int) -> subprocess.Popen[bytes]:
        """Start the shell from a thread that is in the namespace: the child inherits it."""
        _see_own_sysfs()
        # Of the calling thread alone; the child inherits it.
        os.setpriority(os.PRIO_PROCESS, 0, self.nice)
        folder = variables.get("NG_WORK", "/")
        if not Path(folder).is_dir():
            raise BrokenError(
                f"device {self.name}: its private directory {folder} is gone; a recipe must not remove $NG_WORK"
            )
        return subprocess.Popen(
            ["/bin/sh", "-eu", "-c", snippet],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=variables,
            cwd=folder,
            # Ctrl-C is for natgauge, which then ends the snippet itself.
            start_new_session=True,
        )


def _see_own_sysfs() -> None:
    """Give the calling thread a /sys that shows the interfaces of its namespace (/sys/class/net is fixed at mounting).

    Where eBPF programs and maps are pinned is in it as outside: what a snippet pins is there for the next one.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def need(refused: int) -> None:
        if refused:
            raise BrokenError(f"/sys of the device's namespace cannot be mounted ({os.strerror(ctypes.get_errno())})")

    need(libc.unshare(_CLONE_NEWNS))
    need(libc.mount(b"none", b"/", None, _MS_SLAVE_ALL, None))
    # Held, for it lies below what comes over it.
    pinned = os.open(_BPFFS, os.O_PATH) if os.path.ismount(_BPFFS) else None
    try:
        need(libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None))
        if pinned is not None:
            need(libc.mount(f"/proc/thread-self/fd/{pinned}".encode(), _BPFFS.encode(), None, _MS_BIND, None))
    finally:
        if pinned is not None:
            os.close(pinned)
