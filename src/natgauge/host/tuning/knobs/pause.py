# SPDX-License-Identifier: Apache-2.0
"""Flow control of a port (PAUSE frames)."""

from __future__ import annotations

from typing import Final

from natgauge.host.tuning.contract import TunedMachine
from natgauge.host.tuning.of_ports import OfPorts, from_words, in_words

_OFF: Final = "autoneg off rx off tx off"


class Pause(OfPorts):
    """Whether a port obeys PAUSE frames and sends them."""

    name = "pause"
    why = "with flow control, frames that the device has no room for wait instead of being lost"
    source = "IEEE 802.3 annex 31B; loss decides a trial, RFC 2544 section 26.1 and RFC 8219 section 7.1"
    absent = "it has no flow control"

    def better(self, _machine: TunedMachine, _key: str, value: str) -> str:
        """Off, and not what the other end would negotiate."""
        return _OFF if " on" in value.removeprefix("autoneg on") else value

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """For example "autoneg on rx on tx off"."""
        return in_words(machine.port_values(key, "pause")) or None

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Switch it; some drivers take the link down and up."""
        machine.set_port(key, "pause", from_words(value))
