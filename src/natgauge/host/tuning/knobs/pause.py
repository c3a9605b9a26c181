# SPDX-License-Identifier: Apache-2.0
"""Flow control of a port (PAUSE frames)."""

from __future__ import annotations

import re
from typing import Final

from natgauge.host.tuning.contract import TunedMachine
from natgauge.host.tuning.of_ports import OfPorts

_OFF: Final = "autoneg off rx off tx off"
_LINES: Final = {"autoneg": "Autonegotiate", "rx": "RX", "tx": "TX"}


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
        output = machine.get_ethtool("-a", key) or ""
        words = {name: re.search(rf"^{line}:\s+(on|off)", output, re.MULTILINE) for name, line in _LINES.items()}
        return " ".join(f"{name} {word[1]}" for name, word in words.items() if word) or None

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Switch it; some drivers take the link down and up."""
        machine.set_ethtool("-A", key, *value.split())
