# SPDX-License-Identifier: Apache-2.0
"""Base of the knobs of ports: every port is read, and a setting that its driver lacks is reported."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from natgauge.host.tuning.contract import CheckedSetting, TunedMachine, TuningKnob


class OfPorts(TuningKnob):
    """A knob that each port has separately; `absent` is the remark on a port without this setting."""

    absent: str

    def find(self, machine: TunedMachine, ports: Sequence[str]) -> Iterator[CheckedSetting]:
        """Yield each port's settings with their present and better values."""
        for key in (key for port in ports for key in self.keys(port)):
            value = self.read(machine, key)
            if not value:
                yield self.found(key, None, remark=self.absent)
                continue
            better = self.better(machine, key, value)
            yield self.found(key, value, None if better == value else better, self.remark(machine, key))

    def keys(self, port: str) -> Sequence[str]:
        """Return the keys of this knob's settings of a port; the port's name where it has one setting."""
        return (port,)

    def remark(self, _machine: TunedMachine, _key: str) -> str:
        """Return further information on a setting for people; empty = none."""
        return ""

    @abstractmethod
    def better(self, machine: TunedMachine, key: str, value: str) -> str:
        """The value to measure with; the present one where it is as good."""


def in_words(values: Mapping[str, object]) -> str:
    """Return values as a setting of a port has them: "rx 1 tx 1"."""
    return " ".join(f"{name} {value}" for name, value in values.items())


def from_words(value: str) -> dict[str, str]:
    """Return the values of a setting by name."""
    words = value.split()
    return dict(zip(words[::2], words[1::2], strict=True))
