# SPDX-License-Identifier: Apache-2.0
"""Which inside hosts lost connections in phase 1, and whether each kept the same number: a limit for each host."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final, Literal

from natgauge.figure_text import with_noun
from natgauge.words import enumerated

#: Hosts that are named; of more, only their number.
_MOST_NAMES: Final = 4
#: Share by which the numbers of connections that hosts keep may differ, where each host has the same limit.
_TOLERANCE: Final = 0.002
#: Ports of the widest range that may be blocks of one host; wider ones are those of an outside address.
_WIDEST_BLOCKS: Final = 1 << 15
#: Chances that a loss by share leaves numbers as equal: below the first, the limit is seen; below the second, a guess.
_SEEN, _GUESS = 0.01, 0.1


@dataclass(frozen=True, slots=True)
class HostPorts:
    """Outside ports of one address that an inside host used; the block that they are of may have some more."""

    address: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.address}, ports {self.first} to {self.last}"

    def overlaps(self, other: HostPorts) -> bool:
        """Whether another range has ports between these."""
        return self.address == other.address and self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class HostCounts:
    """Connections of one inside host: those that phase 1 opened, and those that arrived, with their outside ports.

    No ports = none arrived, or not known.
    """

    address: str
    connections: int
    stored: int
    outside: tuple[HostPorts, ...] = ()


@dataclass(frozen=True, slots=True)
class HostLosses:
    """Connections of each inside host in phase 1, and the gateway's pool in words; empty = not known, or no loss."""

    hosts: tuple[HostCounts, ...] = ()
    pool: str = ""

    @property
    def losing(self) -> tuple[HostCounts, ...]:
        """Hosts that lost connections."""
        return tuple(host for host in self.hosts if host.stored < host.connections)

    @property
    def words(self) -> str:
        """The hosts that lost connections, such as "10.0.0.2 and 10.0.0.3 of 4 inside hosts"; empty = not known."""
        losing = self.losing
        if not losing:
            return ""
        if len(losing) > _MOST_NAMES or len(losing) == len(self.hosts):
            return f"{len(losing)} of {with_noun(len(self.hosts), 'inside hosts')}"
        return f"{enumerated([host.address for host in losing])} of {with_noun(len(self.hosts), 'inside hosts')}"

    @property
    def have_blocks(self) -> bool:
        """Whether most lost connections are of hosts that share an address, but none of its ranges of ports."""
        lost, own = (
            sum(host.connections - host.stored for host in hosts)
            for hosts in (self.losing, [host for host in self.losing if self._has_block(host)])
        )
        return own > lost / 2

    def _has_block(self, host: HostCounts) -> bool:
        others = [each for other in self.hosts if other is not host for each in other.outside]
        return (
            any(each.address == own.address for each in others for own in host.outside)
            and all(own.last - own.first < _WIDEST_BLOCKS for own in host.outside)
            and not any(each.overlaps(own) for each in others for own in host.outside)
        )

    @property
    def block(self) -> str:
        """A host that lost connections, with the outside ports that it used; empty = not known.

        The block itself may have more: a port may be reserved, or its frame lost.
        """
        host = next((host for host in self.losing if host.outside), None)
        return "" if host is None else f"{host.address} used {', and '.join(map(str, host.outside))}"

    @property
    def limit(self) -> tuple[int, Literal["seen", "guess"]] | None:
        """The number of connections that each losing host kept, and how sure it is that the number is a limit.

        A loss by share, by rate or by a full table leaves numbers that differ by chance. The gateway may limit some of
        the hosts only.
        """
        losing = self.losing
        most = max((host.stored for host in losing), default=0)
        room = max(1.0, _TOLERANCE * most)
        apart = most - min((host.stored for host in losing), default=0)
        if len(losing) < 2 or not most or apart > room:
            return None
        opened = sum(host.connections for host in losing)
        share = sum(host.stored for host in losing) / opened
        deviation = math.sqrt(opened / len(losing) * share * (1 - share))
        chance = min(1.0, (2 * apart + 1) / (math.sqrt(2 * math.pi) * deviation)) ** (len(losing) - 1)
        return None if chance > _GUESS else (most, "seen" if chance <= _SEEN else "guess")


#: Of a trial whose hosts are not known, or that lost no connection.
NO_HOSTS: Final = HostLosses()


def hosts_of(trial: Mapping[str, Any]) -> HostLosses:
    """Return the losses of each inside host from the record of a trial."""
    counts: Sequence[Mapping[str, Any]] = (trial["result"].get("state_table") or {}).get("by_source") or ()
    addresses = ((trial.get("request") or {}).get("initiator") or {}).get("source_addresses") or {}
    if not counts or "first" not in addresses:
        return NO_HOSTS
    first, step = ip_address(addresses["first"]), addresses.get("step") or 1
    pool = ((trial.get("request") or {}).get("translation") or {}).get("pool")
    return HostLosses(
        tuple(_host(str(first + at * step), host) for at, host in enumerate(counts)),
        f"{pool['first']} to {pool['last']}" if pool else "",
    )


def _host(address: str, counts: Mapping[str, Any]) -> HostCounts:
    outside = tuple(HostPorts(str(one["address"]), one["first"], one["last"]) for one in counts.get("outside") or ())
    return HostCounts(address, counts["connections"], counts["stored"], outside)
