# SPDX-License-Identifier: Apache-2.0
"""Interface of the knobs of a machine, and the machine as knobs use it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from socket import if_nameindex
from typing import Final, Protocol

from natgauge.errors import HostError
from natgauge.inputs.cores import parse_cores

_SECONDS: Final = 20.0
#: ethtool lies where a user's own PATH does not look.
_PATH: Final = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"])


@dataclass(frozen=True, slots=True)
class FoundSetting:
    """One setting as it is now.

    Attributes:
        key: key of the setting for `TuningKnob.read` and `TuningKnob.put`.
        value: value for `TuningKnob.put`; None = this machine has no such setting, and `remark` says so.
        better: recommended value for measurements; None = the present value, or not known.
        remark: further information on the setting.
    """

    key: str
    value: str | None
    better: str | None = None
    remark: str = ""


class TuningKnob(Protocol):
    """A kind of setting of the tester machine, such as the clock governor: how to read, judge and change it."""

    @property
    def name(self) -> str:
        """Unique name of the knob."""

    @property
    def why(self) -> str:
        """Effect of the knob on figures."""

    @property
    def source(self) -> str:
        """Standard or document that describes the effect."""

    def find(self, machine: TunedMachine, ports: Sequence[str]) -> Iterator[FoundSetting]:
        """Every setting of this kind: of the machine, or of these ports.

        Raises:
            HostError: it cannot be looked at.
        """

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """The present value; None = it is gone.

        Raises:
            HostError: it cannot be looked at.
        """

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Set it.

        Raises:
            HostError: the kernel or the driver refuses.
        """


@dataclass(frozen=True, slots=True)
class TunedMachine:
    """The machine whose knobs are read and set; tests use a simulated machine.

    Attributes:
        root: folder in place of "/".
        ethtool: name or path of the program.
    """

    root: Path = Path("/")
    ethtool: str = "ethtool"

    def path(self, path: str) -> Path:
        """Return the path of a file of this machine."""
        return self.root / path.lstrip("/")

    def text(self, path: str) -> str | None:
        """Return a file's text, stripped; None = it cannot be read."""
        try:
            return self.path(path).read_text().strip()
        except OSError:
            return None

    def write(self, path: str, value: str) -> None:
        """Set a file."""
        try:
            self.path(path).write_text(value)
        except OSError as error:
            raise HostError(f"{path}: cannot be set to {value} ({error.strerror})") from error

    def get_ethtool(self, *arguments: str) -> str | None:
        """Return the output of ethtool; None = the driver has no such setting.

        Raises:
            HostError: there is no ethtool.
        """
        done = self._run(arguments)
        return done.stdout if done.returncode == 0 else None

    def set_ethtool(self, *arguments: str) -> None:
        """Set something with ethtool.

        Raises:
            HostError: the driver refuses, or there is no ethtool.
        """
        done = self._run(arguments)
        if done.returncode:
            output = " ".join((done.stderr or done.stdout).split()) or f"exit status {done.returncode}"
            raise HostError(f"ethtool {' '.join(arguments)}: {output}")

    def cpus(self) -> tuple[int, ...]:
        """Cores that the kernel runs on now."""
        return parse_cores(self.text("/sys/devices/system/cpu/online") or "0")

    def has_port(self, port: str) -> bool:
        """Whether there is such an interface."""
        return self.path(f"/sys/class/net/{port}").is_dir()

    def hides_port(self, port: str) -> bool:
        """Whether there is such an interface, though /sys was mounted in another network namespace and lacks it."""
        return self.root == Path("/") and not self.has_port(port) and any(port == name for _, name in if_nameindex())

    def _run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": _PATH, "LC_ALL": "C"}
        try:
            return subprocess.run(
                [self.ethtool, *arguments],
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
                env=environment,
            )
        except FileNotFoundError:
            raise HostError("ethtool: is not installed; run: apt-get install ethtool") from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HostError(f"ethtool {' '.join(arguments)}: does not run: {error}") from error
