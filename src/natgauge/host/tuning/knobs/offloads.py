# SPDX-License-Identifier: Apache-2.0
"""Offloads of a port that change frames before a program sees them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from natgauge.host.tuning.contract import TunedMachine
from natgauge.host.tuning.of_ports import OfPorts

#: Names that ethtool sets, and their lines in its list of features.
_OFFLOADS: Final = {"rxvlan": "rx-vlan-offload", "lro": "large-receive-offload", "rx-gro-hw": "rx-gro-hw"}


class Offloads(OfPorts):
    """Whether a port removes VLAN tags and joins frames that it receives."""

    name = "offloads"
    why = "a port that removes VLAN tags or joins frames hands the tester other frames than came over the link"
    source = "Linux: networking/segmentation-offloads; XDP programs see frames after these offloads"
    absent = "its driver has no such offload"

    def keys(self, port: str) -> Sequence[str]:
        """Return a key for each offload."""
        return [f"{port} {name}" for name in _OFFLOADS]

    def better(self, machine: TunedMachine, key: str, value: str) -> str:
        """Off, unless the driver fixes it."""
        return value if "[fixed]" in self._line(machine, key) else "off"

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """Return "on" or "off"."""
        found = re.match(r"on|off", self._line(machine, key))
        return found[0] if found else None

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Switch it."""
        port, name = key.split()
        machine.set_ethtool("-K", port, name, value)

    @staticmethod
    def _line(machine: TunedMachine, key: str) -> str:
        port, name = key.split()
        line = re.search(rf"^{_OFFLOADS[name]}:\s+(.*)$", machine.get_ethtool("-k", port) or "", re.MULTILINE)
        return line[1] if line else ""
