# SPDX-License-Identifier: Apache-2.0
"""Fields by which a port distributes UDP frames over its queues (receive side scaling)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from natgauge.errors import HostError
from natgauge.host.ethtool import FLOWS
from natgauge.host.tuning.contract import TunedMachine
from natgauge.host.tuning.of_ports import OfPorts

#: Addresses and ports of both ends, in the letters of ethtool.
_WANTED: Final = "sdfn"


class FlowHash(OfPorts):
    """Fields of a UDP frame that choose its queue."""

    name = "rss"
    why = "frames of two addresses and many ports all fall into one queue unless ports are hashed, too"
    source = "Linux: networking/scaling; pseudorandom ports, RFC 4814 section 4"
    absent = "its driver does not report what it hashes"

    def keys(self, port: str) -> Sequence[str]:
        """Return a key for each version of IP."""
        return [f"{port} {flow}" for flow in FLOWS]

    def better(self, _machine: TunedMachine, _key: str, value: str) -> str:
        """Return the fields for measurements: addresses and ports."""
        return value if set(value) == set(_WANTED) else _WANTED

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """Letters as ethtool takes them: s and d for the addresses, f and n for the ports."""
        port, flow = key.split()
        return machine.port_values(port, "hash").get(flow)

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Set the header fields that choose the receive queue, in ethtool's letters."""
        if not value:
            raise HostError(f"{self.name}: {key} cannot hash nothing")
        port, flow = key.split()
        machine.set_port(port, "hash", {flow: value})
