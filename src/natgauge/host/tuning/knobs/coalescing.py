# SPDX-License-Identifier: Apache-2.0
"""Time for which a port collects frames before it interrupts (interrupt coalescing)."""

from __future__ import annotations

import re

from natgauge.host.tuning.contract import TunedMachine
from natgauge.host.tuning.of_ports import OfPorts


class Coalescing(OfPorts):
    """Whether a port changes its own waiting time with the load."""

    name = "coalescing"
    why = "a port that adapts its wait to the load makes the delay of one trial unlike that of the next"
    source = "Linux: networking/ethtool-netlink, COALESCE_GET; delays, RFC 8219 sections 7.2 and 7.3"
    absent = "its driver does not adapt when it interrupts"

    def better(self, _machine: TunedMachine, _key: str, value: str) -> str:
        """A wait that stays; how long it is depends on the rate, and is left as it is."""
        return value.replace(" on", " off")

    def remark(self, machine: TunedMachine, key: str) -> str:
        """Return the wait of the port, as a remark."""
        wait = self.wait(machine, key)
        return f"each delay may include {wait} us of it: ethtool -C {key} rx-usecs" if wait else ""

    def wait(self, machine: TunedMachine, key: str) -> int | None:
        """Return the wait of the port in us; None = its driver does not report it."""
        usecs = re.search(r"^rx-usecs:\s+(\d+)$", machine.get_ethtool("-c", key) or "", re.MULTILINE)
        return None if usecs is None else int(usecs[1])

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """For example "adaptive-rx on adaptive-tx off"; what the driver does not have is left out."""
        line = re.search(r"^Adaptive RX: (\S+)\s+TX: (\S+)", machine.get_ethtool("-c", key) or "", re.MULTILINE)
        if line is None:
            return None
        pairs = (("adaptive-rx", line[1]), ("adaptive-tx", line[2]))
        return " ".join(f"{name} {word}" for name, word in pairs if word in {"on", "off"}) or None

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Switch adaptive interrupt coalescing; `value` as `read` returns it."""
        machine.set_ethtool("-C", key, *value.split())
