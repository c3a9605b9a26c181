# SPDX-License-Identifier: Apache-2.0
"""Interface of the knobs of a machine, and the machine as knobs use it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from socket import if_nameindex
from typing import ClassVar

from natgauge.errors import HostError
from natgauge.finding import Finding
from natgauge.host import ethtool
from natgauge.host.uplinks import uplink_names
from natgauge.inputs.cores import parse_cores


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSetting(Finding):
    """The finding on one setting, named as its knob; a warning if there is a better value, or if it cannot be read.

    Attributes:
        value: present value; None = this machine has no such setting, or it cannot be read.
        better: value to measure with; None = the present one, or not known.
    """

    value: str | None = None
    better: str | None = None
    source: str

    @property
    def key(self) -> str:
        """The setting among those of its knob; "-" = the knob could not be looked at."""
        return self.at or "-"


class TuningKnob(ABC):
    """A kind of setting of the tester machine, such as the clock governor: how to read, judge and change it.

    Attributes:
        moves_interrupts: whether its change takes interrupts to other cores, or makes them anew.
        is_of_port: whether the first word of its keys is a port; False = its settings are the machine's.
    """

    name: str
    why: str
    source: str
    moves_interrupts: ClassVar[bool] = False
    is_of_port: ClassVar[bool] = False

    @abstractmethod
    def find(self, machine: TunedMachine, ports: Sequence[str]) -> Iterator[CheckedSetting]:
        """Every setting of this kind: of the machine, or of these ports; HostError if it cannot be looked at."""

    @abstractmethod
    def read(self, machine: TunedMachine, key: str) -> str | None:
        """The present value; None = it is gone. HostError if it cannot be looked at."""

    @abstractmethod
    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Set it; HostError if the kernel or the driver refuses."""

    def port_of(self, key: str) -> str | None:
        """Return the port of a setting; None = it is one of the machine."""
        return key.split(maxsplit=1)[0] if self.is_of_port else None

    def found(self, key: str, value: str | None, better: str | None = None, remark: str = "") -> CheckedSetting:
        """Return the finding on a setting with this value; of one that the machine does not have, the remark."""
        text = value if better is None else f"{value}; better: {better}"
        return CheckedSetting(
            name=self.name,
            state="ok" if better is None else "warning",
            what=remark if text is None else f"{text} ({remark})" if remark else text,
            at=key,
            cause=self.why,
            value=value,
            better=better,
            source=self.source,
        )


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
        """Return the values of a part of a port's settings, by name; empty where the driver has nothing of it.

        HostError if they cannot be read.
        """
        return ethtool.read(port, part) or {}

    def set_port(self, port: str, part: ethtool.Part, values: Mapping[str, str]) -> None:
        """Set values of a part of a port's settings."""
        ethtool.write(port, part, values)

    def cpus(self) -> tuple[int, ...]:
        """Cores that the kernel runs on now."""
        return parse_cores(self.text("/sys/devices/system/cpu/online") or "0")

    def uplinks(self) -> frozenset[str]:
        """Ports that have the default route, also by way of a bond, a bridge or a VLAN above them."""
        return uplink_names()

    def has_port(self, port: str) -> bool:
        """Whether there is such an interface."""
        return self.path(f"/sys/class/net/{port}").is_dir()

    def hides_port(self, port: str) -> bool:
        """Whether there is such an interface, though /sys was mounted in another network namespace and lacks it."""
        return self.root == Path("/") and not self.has_port(port) and any(port == name for _, name in if_nameindex())
