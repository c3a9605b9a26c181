# SPDX-License-Identifier: Apache-2.0
"""The machine that a device of another place runs on: its memory, its global settings, and snippets run there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from natgauge import table_memory
from natgauge.errors import BrokenError, HostError
from natgauge.host.limits import memory_octets
from natgauge.host.settings import MachineSetting
from natgauge.labs.contract import CommandResult
from natgauge.labs.ssh.remote import Remote
from natgauge.table_memory import ObjectCaches

#: Records how to undo a change before it is made: the shell text, and the sentence to print then.
Remember = Callable[[str, str], None]


class RemoteMachine:
    """A machine locked by one lab, so no other natgauge changes its settings at the same time."""

    has_tester_files: bool = False

    def __init__(self, remote: Remote, remember: Remember) -> None:
        self.system = "Linux"
        self._remote = remote
        self._remember = remember

    def free_octets(self) -> int:
        """Return MemAvailable of the machine; on systems other than Linux, free and inactive memory."""
        if self.system != "Linux":
            octets = _of_pages(self._remote.run("vmstat -s", 30.0).stdout)
            if octets is None:
                raise HostError(f"ssh host {self._remote.host}: its `vmstat -s` prints no free pages")
            return octets
        octets = memory_octets("MemAvailable", self._remote.run("cat /proc/meminfo", 30.0).stdout)
        if octets is None:
            raise HostError(f"ssh host {self._remote.host}: its /proc/meminfo has no MemAvailable")
        return octets

    def object_caches(self) -> ObjectCaches:
        """Return the object caches of a Linux kernel; empty where they are not readable."""
        return table_memory.read(self._remote.run("cat /proc/slabinfo 2> /dev/null || :", 30.0).stdout)

    def setting(self, name: str, paths: Sequence[str], module: str | None) -> RemoteSetting:
        """A global setting of it; nothing is touched yet."""
        return RemoteSetting(self._remote, self._remember, name, paths, module)


def _of_pages(text: str) -> int | None:
    """Octets that can be had, of what vmstat(8) -s prints on OpenBSD and FreeBSD; None where it does not say."""
    pages = {
        what: int(number) for number, what in re.findall(r"^\s*(\d+) (bytes per page|pages \w+)$", text, re.MULTILINE)
    }
    if "bytes per page" not in pages or "pages free" not in pages:
        return None
    return pages["bytes per page"] * (pages["pages free"] + pages.get("pages inactive", 0))


class RemoteSetting(MachineSetting):
    """A global setting of another machine, which its lock keeps from other natgauge processes."""

    def __init__(self, remote: Remote, remember: Remember, name: str, paths: Sequence[str], module: str | None) -> None:
        super().__init__(name, paths, module, f" of ssh host {remote.host}")
        self._remote = remote
        self._remember_undo = remember
        self._remembered: set[Path] = set()

    def available(self) -> bool:
        """Whether the machine has the setting; a missing kernel module is loaded first."""
        condition = " && ".join(f"[ -e {shlex.quote(str(path))} ]" for path in self.paths)
        load = f"modprobe {shlex.quote(self.module)} 2> /dev/null" if self.module else "false"
        return self._remote.run(f"{{ {condition}; }} || {{ {load} && {condition}; }}", 30.0).status == 0

    def values(self) -> dict[str, int]:
        """The present values by name of their files."""
        result = self._cat()
        if result.status and self.available():
            result = self._cat()
        if result.status:
            hint = f'try "modprobe {self.module}" there' if self.module else "use another kernel there"
            raise HostError(f"{self.name}: cannot be read ({result.said}); {hint}")
        try:
            values = [int(line) for line in result.stdout.split()]
            return {path.name: value for path, value in zip(self.paths, values, strict=True)}
        except ValueError as error:
            raise HostError(f"{self.name}: cannot be read ({error})") from error

    def _remember(self, path: Path, value: int) -> None:
        if path in self._remembered:
            return
        quoted = shlex.quote(str(path))
        self._remember_undo(
            f'[ "$(cat {quoted})" = {value} ] || echo {value} > {quoted}',
            f"restored {path} of {self._remote.host} to {value}",
        )
        self._remembered.add(path)

    def _put(self, path: Path, value: int) -> None:
        result = self._remote.run(f"echo {value} > {shlex.quote(str(path))}", 60.0)
        if result.status:
            raise HostError(
                f"{self.name}: {path} cannot be set to {value} ({result.said}); log in as root there, outside of "
                "containers and network namespaces"
            )

    def _cat(self) -> CommandResult:
        return self._remote.run(f"cat {shlex.join(map(str, self.paths))}", 30.0)


@dataclass(slots=True)
class RemoteDevice:
    """A device on another machine (see `natgauge.labs.contract.Device`).

    Attributes:
        netns: the machine's namespace that is the device; None = the machine itself.
    """

    name: str
    netns: str | None
    inside: str
    outside: str
    environment: Mapping[str, str]
    remote: Remote = field(compare=False)
    machine: RemoteMachine = field(compare=False)

    def run(
        self, snippet: str, *, environment: Mapping[str, str] | None = None, timeout: float = 60.0
    ) -> CommandResult:
        """Run a POSIX shell snippet (`sh -eu`) in the device's place over there, in its private directory.

        `timeout` is in seconds of that machine. Programs that the snippet leaves running end with the lab.
        """
        variables = {**self.environment, **(environment or {})}
        try:
            return self.remote.run(snippet, timeout, variables=variables, netns=self.netns)
        except HostError as error:
            # For the driver of a gateway, the device does not answer.
            raise BrokenError(f"device {self.name}: {error}") from error

    def frame_processes(self) -> tuple[str, ...]:
        """Return nothing: no core of this machine works for the device, so nothing depends on it."""
        return ()
