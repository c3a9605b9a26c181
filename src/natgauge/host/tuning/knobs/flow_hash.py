# SPDX-License-Identifier: Apache-2.0
"""Fields by which a port distributes UDP frames over its queues (receive side scaling)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from natgauge.errors import HostError
from natgauge.host.tuning.contract import TunedMachine
from natgauge.host.tuning.of_ports import OfPorts

#: Addresses and ports of both ends, in the letters of ethtool.
_WANTED: Final = "sdfn"
#: Beginning of a line of ethtool's output, and the letter for it.
_LETTERS: Final = {
    "L2DA": "m",
    "VLAN tag": "v",
    "L3 proto": "t",
    "IP SA": "s",
    "IP DA": "d",
    "L4 bytes 0 & 1": "f",
    "L4 bytes 2 & 3": "n",
    "Discard": "r",
}
FLOWS: Final = ("udp4", "udp6")


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
        lines = [line.strip() for line in (machine.get_ethtool("-n", port, "rx-flow-hash", flow) or "").splitlines()]
        return "".join(letter for words, letter in _LETTERS.items() if any(line.startswith(words) for line in lines))

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Set the header fields that choose the receive queue, in ethtool's letters."""
        if not value:
            raise HostError(f"{self.name}: {key} cannot hash nothing")
        port, flow = key.split()
        machine.set_ethtool("-N", port, "rx-flow-hash", flow, value)
