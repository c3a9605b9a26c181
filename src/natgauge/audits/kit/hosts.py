# SPDX-License-Identifier: Apache-2.0
"""The tester's inside hosts: teams that examine one after the other, and what is known of each host.

A gateway can limit the flows of a host. So an audit has several teams of hosts, each examination declares the flows
that it needs, and another team goes on where a host of this one has no flow left. A recipe may declare the blocks of
outside ports that hosts have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Final

from natgauge.audits.kit.packets import Endpoint
from natgauge.labs.contract import Addresses
from natgauge.port_blocks import PortBlock, PortBlocks
from natgauge.words import Address, Transport

#: Inside hosts that an examination uses together.
TEAM: Final = 3
#: Flows that a gateway should at least allow a host. Teams are planned for it: with fewer, the last ones run out.
LEAST_ALLOWANCE: Final = 128
#: Teams for the two examinations that open many flows: sessions of one endpoint, and a crowd.
RESERVED: Final = 2


@dataclass(frozen=True, slots=True)
class Flows:
    """The flows that an examination needs, as it declares them.

    Attributes:
        each: most flows that one inside host opens, with what other examinations share with this one.
        are_many: whether they are as many as the gateway lets a host have, from hosts that opened none before.
    """

    each: int
    are_many: bool = False


def hosts_needed(flows: Iterable[Flows]) -> int:
    """Return the number of inside hosts for examinations that need these flows, where a host may have few.

    One team more is there for examinations that are made again.
    """
    every = list(flows)
    few = sum(one.each for one in every if not one.are_many)
    return TEAM * (-(-few // LEAST_ALLOWANCE) + len({one for one in every if one.are_many}) + 1)


@dataclass(eq=False)
class InsideHosts:
    """The tester's inside hosts.

    Attributes:
        allowance: fewest flows that a host had opened when the gateway refused one; None = it refused none. Flows that
            have expired count, so that a gateway can refuse a host earlier.
    """

    every: tuple[Address, ...]
    allowance: int | None = None
    reserved: int = RESERVED
    used: set[Address] = field(default_factory=set)
    _all: frozenset[Address] = field(init=False)
    _number: int = 0
    _opened: Counter[Address] = field(default_factory=Counter)
    _outside: dict[Address, Address] = field(default_factory=dict)
    _refused: set[Address] = field(default_factory=set)
    _in_vain: set[Transport] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Keep the hosts as a set, too: a look at each of them takes long for each flow."""
        self._all = frozenset(self.every)

    @property
    def team(self) -> tuple[Address, ...]:
        """The hosts that examinations use now."""
        return self.every[self._number * TEAM : (self._number + 1) * TEAM]

    def opened(self, host: Address) -> int:
        """Return how many flows a host has opened so far."""
        return self._opened[host]

    def opens(self, host: Address, outside: Address) -> None:
        """Note a flow of a host, and its outside address; a flow that is not translated is none."""
        if outside != host and outside not in self._all:
            self._opened[host] += 1
            self.used.add(outside)
        self._outside[host] = outside

    def outside(self, host: Address) -> Address | None:
        """Return the outside address that a host had last; None = it had no flow."""
        return self._outside.get(host)

    def note_refusal(self, host: Address) -> None:
        """Note that the gateway refused a flow of a host."""
        self._refused.add(host)

    def has_next(self, transport: Transport, *, for_many: bool) -> bool:
        """Whether another team can go on with a transport, as far as is known; `for_many` = with many flows."""
        left = len(self.every) // TEAM - self._number - 1
        return transport not in self._in_vain and left > (0 if for_many else self.reserved)

    def go_on(self, *, for_many: bool) -> None:
        """Use the next team."""
        self._number += 1
        if for_many:
            self.reserved = max(0, self.reserved - 1)

    def go_back(self, transport: Transport) -> None:
        """Use the team before again, because the gateway does not serve the next one with this transport."""
        self._number -= 1
        self._in_vain.add(transport)

    def learn(self, host: Address) -> None:
        """Note how many flows the gateway lets a host have, which it refused after flows that it had served."""
        if number := self._opened[host]:
            self.allowance = min(number, self.allowance or number)

    def lack(self, flows: Flows) -> bool:
        """Whether a host of this team has too few flows left for an examination, and one that is new has enough."""
        if self.allowance is None or not 0 < flows.each <= self.allowance:
            return False
        return max(self._opened[host] for host in self.team) + flows.each > self.allowance

    def rivals(self, own: Address, outside: Address) -> tuple[Address, ...]:
        """Return the other hosts that may have this outside address, the likely ones first.

        Hosts that had it last come before those that had none, and hosts that were refused come last. A host that was
        refused and never had a flow is left out.
        """

        def rank(host: Address) -> int:
            known = {outside: 0, None: 1}.get(self._outside.get(host), 2)
            return 3 if host in self._refused else known

        others = dict.fromkeys(host for host in (*self.team, *self.every) if host != own)
        return tuple(sorted((one for one in others if self._opened[one] or one not in self._refused), key=rank))


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
