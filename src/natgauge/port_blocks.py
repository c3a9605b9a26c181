# SPDX-License-Identifier: Apache-2.0
"""Blocks of outside ports, each for one inside host: arithmetic of RFC 7422 section 2 without dynamic ports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Annotated, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

_PORTS = 1 << 16
#: No host of a plan has more connections than its share and so many standard deviations, but once in 1000 trials.
_DEVIATIONS = 5


class PortBlock(NamedTuple):
    """Ports of an outside address that belong to one inside host."""

    address: IPv4Address
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.address}, ports {self.first} to {self.last}"


class PortBlocks(BaseModel):
    """Division of the ports of a pool into blocks of one size. Block 0 is the first one of the first address.

    Attributes:
        first_port: lowest port of the first block of each address, 1 to 65535.
        deterministic: whether host k, from 0, of the inside network has block k at any time.
        counts_connections: whether a host may have as many connections as its blocks have ports, whatever their remote
            endpoints; otherwise as many for each remote endpoint.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    size: Annotated[int, Field(ge=1, le=_PORTS - 1)]
    first_port: Annotated[int, Field(ge=1, le=_PORTS - 1)] = 1024
    each: Annotated[int, Field(ge=1, le=64)] = 1
    deterministic: bool = False
    counts_connections: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.per_address:
            raise ValueError(f"a block of {self.size} ports from {self.first_port} on does not fit below port 65536")
        if self.deterministic and self.each > 1:
            raise ValueError(f"each {self.each}: in a deterministic NAT a host has one block; make it larger instead")
        return self

    @property
    def per_address(self) -> int:
        """Number of blocks of an address."""
        return (_PORTS - self.first_port) // self.size

    @property
    def ports(self) -> int:
        """Most ports of an inside host."""
        return self.size * self.each

    def each_for(self, connections: float) -> int:
        """Return the number of blocks in which this many connections fit, > 0, each with a port of its own."""
        return math.ceil(connections / self.size)

    @staticmethod
    def most_of_host(connections: int, hosts: int, four_tuples: int) -> int:
        """Return how many connections one of several hosts may have of `connections` in pseudorandom order.

        Each host has so many four tuples.
        """
        mean = connections / hosts
        by_chance = math.ceil(mean + _DEVIATIONS * math.sqrt(mean))
        return min(connections, max(math.ceil(mean), min(four_tuples, by_chance)))

    def hosts_of(self, each: int) -> int:
        """Return how many hosts an address serves that take so many blocks each: all are of one address (REQ-2)."""
        return self.per_address // each

    def of(self, host: int, first_address: IPv4Address) -> PortBlock:
        """Return the block of an inside host, from 0, in a pool that begins with this address."""
        number, at = divmod(host, self.per_address)
        first = self.first_port + at * self.size
        return PortBlock(first_address + number, first, first + self.size - 1)

    def environment(self) -> Mapping[str, str]:
        """Return the variables that describe the blocks to snippets."""
        return {
            "NG_BLOCK_SIZE": str(self.size),
            "NG_BLOCK_FIRST_PORT": str(self.first_port),
            "NG_BLOCKS_PER_ADDRESS": str(self.per_address),
            "NG_BLOCKS_OF_HOST": str(self.each),
        }

    def __str__(self) -> str:
        return f"{self.each} x {self.size} ports" if self.each > 1 else f"{self.size} ports"
