# SPDX-License-Identifier: Apache-2.0
"""Time for which a port collects frames before it interrupts (interrupt coalescing)."""

from __future__ import annotations

from natgauge.host.tuning.contract import TunedMachine
from natgauge.host.tuning.of_ports import OfPorts, from_words, in_words


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
        usecs = machine.port_values(key, "coalescing").get("rx-usecs")
        return None if usecs is None else int(usecs)

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """For example "adaptive-rx on adaptive-tx off"; what the driver does not have is left out."""
        values = machine.port_values(key, "coalescing").items()
        return in_words({name: value for name, value in values if name.startswith("adaptive")}) or None

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Switch adaptive interrupt coalescing; `value` as `read` returns it."""
        machine.set_port(key, "coalescing", from_words(value))
