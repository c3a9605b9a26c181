# SPDX-License-Identifier: Apache-2.0
"""Energy Efficient Ethernet of a port."""

from __future__ import annotations

from natgauge.host.tuning.contract import TunedMachine
from natgauge.host.tuning.of_ports import OfPorts


class EnergySaving(OfPorts):
    """Whether a link sleeps between frames."""

    name = "eee"
    why = "a link that sleeps between frames delays the frame that wakes it by microseconds"
    source = "IEEE 802.3 clause 78"
    absent = "its link cannot sleep"

    def better(self, _machine: TunedMachine, _key: str, _value: str) -> str:
        """Off."""
        return "off"

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """Return "on" or "off"."""
        return machine.port_values(key, "eee").get("eee")

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Switch it; most drivers take the link down and up."""
        machine.set_port(key, "eee", {"eee": value})
