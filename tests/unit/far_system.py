# SPDX-License-Identifier: Apache-2.0
"""A machine with OpenBSD, FreeBSD or VPP that is none: a folder of commands, each answering as the real one does."""

from __future__ import annotations

import marshal
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from tests.absent import absent
from tests.unit import far_commands

from natgauge.errors import BrokenError
from natgauge.host.settings import MachineSetting
from natgauge.labs.contract import CommandResult
from natgauge.table_memory import ObjectCaches

#: POSIX's own, which those systems have too; nothing else of this machine is in reach of a snippet.
_TOOLS = (
    "awk", "cat", "chmod", "cut", "dd", "df", "du", "env", "grep", "head", "ls", "mkdir", "mv", "readlink", "rm",
    "sed", "sleep", "tail", "timeout", "tr", "wc",
)  # fmt: skip
_STAND_INS = {
    "Linux": ("vpp", "vppctl", "vpp_get_stats", "ip", "ethtool", "taskset"),
    "OpenBSD": ("ifconfig", "pfctl", "route", "sysctl", "uname", "id", "vmstat"),
    "FreeBSD": (
        "ifconfig", "pfctl", "route", "sysctl", "uname", "id", "vmstat", "ipfw", "kldload", "kldstat",
        "kldunload", "kenv",
    ),
}  # fmt: skip
#: Shells that a far side may have.
SHELLS = ("dash", "busybox sh", "mksh")
#: The shell here that is closest to /bin/sh of a system: Debian's own, OpenBSD's Korn shell, FreeBSD's Almquist shell.
OWN_SHELL = {"Linux": "dash", "OpenBSD": "mksh", "FreeBSD": "dash"}


def lives(systems: Mapping[str, str]) -> list[ParameterSet]:
    """Every recipe with every shell; those whose shell is not the system's own are for the soak.

    Args:
        systems: the system of each recipe, by the recipe's name.
    """
    return [
        pytest.param(recipe, shell, marks=() if shell == OWN_SHELL[system] else pytest.mark.soak)
        for recipe, system in systems.items()
        for shell in SHELLS
    ]


def installed(shell: str) -> str:
    """The shell, if it is installed here; else the test is skipped."""
    if absent(shell.split(maxsplit=1)[0]):
        pytest.skip(f"{shell} is not installed")
    return shell


class FarMachine:
    """The machine of such a device."""

    has_tester_files = False

    def __init__(self, system: str) -> None:
        self.system = system

    def free_octets(self) -> int:
        """Enough."""
        return 2**33

    def object_caches(self) -> ObjectCaches:
        """Not known."""
        return {}

    def setting(self, name: str, paths: Sequence[str], module: str | None) -> MachineSetting:
        """There are none."""
        raise AssertionError(f"{name}: {paths}, {module}: no Linux is here")


@dataclass
class FarDevice:
    """As `natgauge.labs.contract.Device`."""

    folder: Path
    machine: FarMachine
    environment: Mapping[str, str]
    shell: str
    name: str = "gateway"
    inside: str = "em1"
    outside: str = "em2"

    @property
    def work(self) -> Path:
        """Its private directory."""
        return self.folder / "work"

    @property
    def state(self) -> dict[str, Any]:
        """What the machine is like now."""
        found: dict[str, Any] = marshal.loads((self.folder / "bin" / "state").read_bytes())  # noqa: S302 - our own
        return found

    def frame_processes(self) -> tuple[str, ...]:
        """None that natgauge could see."""
        return ()

    def change(self, **parts: Mapping[str, Any]) -> None:
        """Change parts of what it is like, e.g. the number of states."""
        state = self.state
        self.replace(**{name: state[name] | values for name, values in parts.items()})

    def replace(self, **parts: object) -> None:
        """Replace parts of what it is like as a whole."""
        (self.folder / "bin" / "state").write_bytes(marshal.dumps(self.state | parts))

    def run(
        self, snippet: str, *, environment: Mapping[str, str] | None = None, timeout: float = 60.0
    ) -> CommandResult:
        """As `natgauge.labs.contract.Device.run`."""
        began = time.monotonic()
        try:
            done = subprocess.run(
                [*self.shell.split(), "-eu", "-c", snippet.replace("/bin/sh", self.shell)],
                env={"PATH": str(self.folder / "bin"), **self.environment, **(environment or {})},
                cwd=self.work,
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            raise BrokenError(f"snippet did not end within {timeout:g} s") from None
        return CommandResult(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


def far_device(folder: Path, system: str, shell: str = "dash", **environment: str) -> FarDevice:
    """A machine whose management interface is em0; em1 and em2 are free.

    Args:
        folder: of its commands and files.
        system: what it runs.
        shell: its /bin/sh.
        environment: what its snippets see.
    """
    commands = folder / "bin"
    commands.mkdir()
    (folder / "work").mkdir()
    program = commands / "far_command"
    # A module, so that Python compiles it once and not for each command.
    shutil.copy(Path(__file__).parent / ("far_vpp.py" if system == "Linux" else "far_commands.py"), commands / "far.py")
    program.write_text(f"#!{sys.executable} -SE\nimport far\nfar.main()\n")
    program.chmod(0o755)
    for name in _STAND_INS[system]:
        (commands / name).symlink_to(program)
    for name in (*_TOOLS, shell.split(maxsplit=1)[0]):
        found = shutil.which(name)
        assert found, name
        (commands / name).symlink_to(found)
    metric = " metric 0" if system == "FreeBSD" else ""
    port: dict[str, Any] = {"up": True, "metric": metric}
    if system == "FreeBSD":
        port["disabled"] = True
    state = {
        "system": system,
        "modules": [],
        "sysctl": {"net.inet.ip.forwarding": "0", "net.inet6.ip6.forwarding": "0", "net.pf.states_hashsize": "131072"}
        | {"hw.model": "Some CPU @ 3 GHz", "hw.ncpu": "4"},
        "interfaces": {
            "lo0": {"up": True, "mtu": 32768, "inet": "127.0.0.1", "metric": metric},
            "em0": {"up": True, "inet": "10.9.0.5", "lines": ["lladdr 52:54:00:00:00:01"], "metric": metric},
            "em1": dict(port),
            "em2": {**port, "up": False},
        },
        "pf": {
            "enabled": False, "states": 0, "forgotten": 0, "forgotten_at": 0, "counters": {}, "rules": [], "nat": [],
            "skip": [], "limit": far_commands.LIMIT, "timeouts": far_commands.TIMEOUTS,
            "purge_seconds": far_commands.PURGE_SECONDS,
        },
        "ipfw": {"rules": {}, "instances": {}},
    }  # fmt: skip
    (commands / "state").write_bytes(marshal.dumps(state))
    links = {
        "em1": {"mac": "02:00:00:00:00:02", "addresses": ["10.0.0.1/16", "2001:2::1/64"]},
        "em2": {"mac": "02:00:00:00:00:03", "addresses": ["198.19.0.1/16"]},
    }
    (commands / "links").write_bytes(marshal.dumps(links))
    seen = {"NG_WORK": str(folder / "work"), "NG_INSIDE": "em1", "NG_OUTSIDE": "em2", **environment}
    return FarDevice(folder, FarMachine(system), seen, shell)
