# SPDX-License-Identifier: Apache-2.0
"""What knobs of ports have in common: each port is asked, and what its driver does not have is told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from natgauge.host.tuning.contract import FoundSetting, TunedMachine


class OfPorts(ABC):
    """A knob that each port has for itself.

    Attributes:
        absent: what is told of a port without it.
    """

    absent: str

    def find(self, machine: TunedMachine, ports: Sequence[str]) -> Iterator[FoundSetting]:
        """Of each port."""
        for key in (key for port in ports for key in self.keys(port)):
            value = self.read(machine, key)
            if not value:
                yield FoundSetting(key, None, remark=self.absent)
                continue
            better = self.better(machine, key, value)
            yield FoundSetting(key, value, None if better == value else better, self.remark(machine, key))

    def keys(self, port: str) -> Sequence[str]:
        """Its settings of a port."""
        return (port,)

    def remark(self, _machine: TunedMachine, _key: str) -> str:
        """What else is to be known of a setting."""
        return ""

    @abstractmethod
    def read(self, machine: TunedMachine, key: str) -> str | None:
        """The present value; None = there is none."""

    @abstractmethod
    def better(self, machine: TunedMachine, key: str, value: str) -> str:
        """The value to measure with; the present one where it is as good."""
