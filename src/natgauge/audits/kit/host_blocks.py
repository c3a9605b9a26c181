# SPDX-License-Identifier: Apache-2.0
"""Port blocks of the inside hosts, as the gateway's recipe declares them."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

from natgauge.audits.kit.packets import Endpoint
from natgauge.gateways.port_blocks import PortBlock, PortBlocks
from natgauge.labs.contract import Addresses
from natgauge.words import Address


@dataclass(frozen=True, slots=True)
class HostBlocks:
    """Blocks of a gateway.

    Attributes:
        first_host: inside host 0.
    """

    sizes: PortBlocks
    first_host: Address
    pool: Addresses

    @property
    def number(self) -> int:
        """Number of all blocks."""
        return self.pool.count * self.sizes.per_address

    def hosts_for(self, teams: int) -> int:
        """Return the number of hosts that show all computed blocks, or that find no free block next to these teams."""
        return self.number if self.sizes.deterministic else self.number + teams

    def of(self, host: Address) -> PortBlock:
        """Return the block that the arithmetic gives to an inside host."""
        return self.sizes.of(int(host) - int(self.first_host), IPv4Address(int(self.pool.first)))

    def has(self, host: Address, outside: Endpoint) -> bool:
        """Whether an outside endpoint lies in the computed block of a host."""
        block = self.of(host)
        return outside.address == block.address and block.first <= outside.port <= block.last
