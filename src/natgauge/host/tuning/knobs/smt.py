# SPDX-License-Identifier: Apache-2.0
"""Simultaneous multithreading (hyper-threading)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from natgauge.host.tuning.contract import CheckedSetting, TunedMachine, TuningKnob

_CONTROL: Final = "/sys/devices/system/cpu/smt/control"


class Smt(TuningKnob):
    """Whether two hardware threads share a core (SMT)."""

    name = "smt"
    why = "two threads share one core's units, so what one does slows the other"
    source = "Linux: ABI/testing/sysfs-devices-system-cpu; a constant test system, RFC 8219 section 5"

    def find(self, machine: TunedMachine, ports: Sequence[str]) -> Iterator[CheckedSetting]:
        """Yield the machine's only SMT switch."""
        del ports
        value = self.read(machine, "machine")
        if value is None or value.startswith("not"):
            yield self.found("machine", None, remark="no two threads share a core here")
        else:
            yield self.found("machine", value, "off" if value == "on" else None)

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """Return "on", "off", "forceoff", "notsupported" or "notimplemented"."""
        del key
        return machine.text(_CONTROL)

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Switch; cores go offline, or come back."""
        del key
        machine.write(_CONTROL, value)
