# SPDX-License-Identifier: Apache-2.0
"""Interface of the knobs of a machine, and the machine as knobs use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from socket import if_nameindex
from typing import Protocol

from natgauge.errors import HostError
from natgauge.host import ethtool
from natgauge.inputs.cores import parse_cores


@dataclass(frozen=True, slots=True)
class FoundSetting:
    """One setting as it is now.

    Attributes:
        value: value for `TuningKnob.put`; None = this machine has no such setting, and `remark` says so.
        better: recommended value for measurements; None = the present value, or not known.
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
        """Every setting of this kind: of the machine, or of these ports; HostError if it cannot be looked at."""

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """The present value; None = it is gone. HostError if it cannot be looked at."""

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Set it; HostError if the kernel or the driver refuses."""


@dataclass(frozen=True, slots=True)
class TunedMachine:
    """The machine whose knobs are read and set; tests use a simulated machine."""

    root: Path = Path("/")

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

    def port_values(self, port: str, part: ethtool.Part) -> Mapping[str, str]:
        """Return the values of a part of a port's settings, by name; empty where the driver has nothing of it."""
        return ethtool.read(port, part) or {}

    def set_port(self, port: str, part: ethtool.Part, values: Mapping[str, str]) -> None:
        """Set values of a part of a port's settings."""
        ethtool.write(port, part, values)

    def cpus(self) -> tuple[int, ...]:
        """Cores that the kernel runs on now."""
        return parse_cores(self.text("/sys/devices/system/cpu/online") or "0")

    def has_port(self, port: str) -> bool:
        """Whether there is such an interface."""
        return self.path(f"/sys/class/net/{port}").is_dir()

    def hides_port(self, port: str) -> bool:
        """Whether there is such an interface, though /sys was mounted in another network namespace and lacks it."""
        return self.root == Path("/") and not self.has_port(port) and any(port == name for _, name in if_nameindex())
