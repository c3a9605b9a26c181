# SPDX-License-Identifier: Apache-2.0
"""Offloads of a port that change frames before a program sees them."""

from __future__ import annotations

from collections.abc import Sequence

from natgauge.host.ethtool import FIXED, OFFLOADS
from natgauge.host.tuning.contract import TunedMachine
from natgauge.host.tuning.of_ports import OfPorts


class Offloads(OfPorts):
    """Whether a port removes VLAN tags and joins frames that it receives."""

    name = "offloads"
    why = "a port that removes VLAN tags or joins frames hands the tester other frames than came over the link"
    source = "Linux: networking/segmentation-offloads; XDP programs see frames after these offloads"
    absent = "its driver has no such offload"

    def keys(self, port: str) -> Sequence[str]:
        """Return a key for each offload."""
        return [f"{port} {name}" for name in OFFLOADS]

    def better(self, machine: TunedMachine, key: str, value: str) -> str:
        """Off, unless the driver fixes it."""
        port, name = key.split()
        return value if machine.port_values(port, "offloads")[name].endswith(FIXED) else "off"

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """Return "on" or "off"."""
        port, name = key.split()
        value = machine.port_values(port, "offloads").get(name)
        return None if value is None else value.removesuffix(FIXED)

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Switch it."""
        port, name = key.split()
        machine.set_port(port, "offloads", {name: value})
