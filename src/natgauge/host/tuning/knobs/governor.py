# SPDX-License-Identifier: Apache-2.0
"""The governor of the clock frequency of each core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from natgauge.host.tuning.contract import CheckedSetting, TunedMachine, TuningKnob

_WANTED: Final = "performance"


class Governor(TuningKnob):
    """The governor of each core's clock frequency."""

    name = "governor"
    why = "a core that slows down between trials is slow at the beginning of each, and two runs differ"
    source = "Linux: admin-guide/pm/cpufreq; a constant test system, RFC 8219 section 5"

    def find(self, machine: TunedMachine, ports: Sequence[str]) -> Iterator[CheckedSetting]:
        """Yield one setting for each core whose frequency the kernel may lower."""
        del ports
        governors = [(f"cpu{cpu}", value) for cpu in machine.cpus() if (value := self.read(machine, f"cpu{cpu}"))]
        if not governors:
            yield self.found("machine", None, remark="clock frequencies are not the kernel's to change here")
        for key, value in governors:
            known = (machine.text(f"{_folder(key)}/scaling_available_governors") or _WANTED).split()
            if value == _WANTED or _WANTED in known:
                yield self.found(key, value, None if value == _WANTED else _WANTED)
            else:
                yield self.found(key, value, remark=f"the kernel has no governor {_WANTED}, only {', '.join(known)}")

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """Return the governor's name."""
        return machine.text(f"{_folder(key)}/scaling_governor")

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Set the governor."""
        machine.write(f"{_folder(key)}/scaling_governor", value)


def _folder(key: str) -> str:
    return f"/sys/devices/system/cpu/{key}/cpufreq"
