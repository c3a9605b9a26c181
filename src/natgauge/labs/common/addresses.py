# SPDX-License-Identifier: Apache-2.0
"""The address plan of the labs natgauge makes, as data.

Private addresses inside and the benchmarking blocks outside: 198.18.0.0/15 (RFC 2544 appendix C.2.2), 2001:2::/48
(RFC 5180 section 8, used by RFC 8219), a range of hosts on both sides (RFC 9693 section 3.1). Links between two devices
of a chain use 192.0.2.0/24 (RFC 5737), cut in /30 networks, and one /64 each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Interface,
    IPv6Network,
    ip_address,
    summarize_address_range,
)
from typing import Final

from natgauge.embedding import NEIGHBOURS_BITS, PREFIX_LENGTHS
from natgauge.errors import UsageError
from natgauge.inputs.input import wrong
from natgauge.labs.contract import Addresses
from natgauge.words import MOST_OUTSIDE_ADDRESSES, Address, Family, Interface, Network

#: Links between devices that the plan has addresses for.
INNER_LINKS: Final = 64


@dataclass(frozen=True, slots=True)
class LinkSide:
    """One family on one side of the chain: the device's address, its network's first, and the tester's hosts."""

    device: Interface

    @property
    def hosts(self) -> int:
        """Addresses the tester may use: all of the network but the network's, the device's and the last one."""
        return self.device.network.num_addresses - 3

    def host(self, index: int) -> Address:
        """Host `index` (0 .. hosts - 1) of the tester."""
        if not 0 <= index < self.hosts:
            raise UsageError(
                f"host {index} of {self.device.network}: the lab has hosts 0 to {self.hosts - 1}; use fewer addresses"
            )
        return self.device.ip + 1 + index

    def range(self, count: int) -> tuple[Address, Address]:
        """First and last of the first `count` hosts, `count` >= 1."""
        return self.host(0), self.host(count - 1)


INSIDE: Final[dict[Family, LinkSide]] = {
    "ipv4": LinkSide(IPv4Interface("10.0.0.1/16")),
    "ipv6": LinkSide(IPv6Interface("2001:2::1/64")),
}
OUTSIDE: Final[dict[Family, LinkSide]] = {
    "ipv4": LinkSide(IPv4Interface("198.19.0.1/16")),
    "ipv6": LinkSide(IPv6Interface("2001:2:0:8000::1/64")),
}

#: Where a stateless translator has the hosts of the inside: host k there is host k here (RFC 7757, RFC 6296).
MAPPED: Final[dict[Family, LinkSide]] = {
    "ipv4": LinkSide(IPv4Interface("198.18.0.1/16")),
    "ipv6": LinkSide(IPv6Interface("2001:2:0:9::1/64")),
}

#: Native IPv6 in addition to the frames under test, from the same block (RFC 8219 section 5.3).
BACKGROUND_INSIDE: Final = LinkSide(IPv6Interface("2001:2:0:b1::1/64"))
BACKGROUND_OUTSIDE: Final = LinkSide(IPv6Interface("2001:2:0:b2::1/64"))

#: Where a NAT64 finds the IPv4 hosts of the outside (RFC 6052 section 2.2).
NAT64_PREFIX: Final = IPv6Network("2001:2:0:1::/96")

_INNER4: Final = IPv4Network("192.0.2.0/24")
_INNER6: Final = IPv6Network("2001:2:0:64::/64")


def wrong_prefix(what: str) -> UsageError:
    """Return the error of a NAT64 prefix."""
    return UsageError(f"NAT64 prefix: {what}", at="nat64_prefix")


def nat64_prefix(text: str) -> IPv6Network:
    """Return the NAT64 prefix that a user writes."""
    try:
        prefix = IPv6Network(text)
    except ValueError:
        raise wrong_prefix(f"{text!r} is no IPv6 network; write it as 64:ff9b::/96") from None
    if prefix.prefixlen not in PREFIX_LENGTHS:
        *shorter, longest = map(str, PREFIX_LENGTHS)
        bits = f"{', '.join(shorter)} or {longest} bits"
        raise wrong_prefix(f"{prefix} has {prefix.prefixlen} bits; choose {bits} (RFC 6052 section 2.2)")
    if prefix.prefixlen == NEIGHBOURS_BITS and prefix.network_address.packed[8]:
        raise wrong_prefix(f"{prefix} has bits in 64 to 71, which are zero (RFC 6052 section 2.2); choose another")
    if prefix.is_multicast or prefix.is_link_local or prefix.network_address.is_loopback:
        raise wrong_prefix(f"{prefix} holds no unicast addresses of hosts; choose another")
    for network in _own_networks():
        if prefix.overlaps(network):
            raise wrong_prefix(f"{prefix} overlaps {network}, which the lab uses itself; choose another")
    return prefix


def prefix_parameter(prefix: IPv6Network) -> dict[str, str]:
    """Return the NAT64 prefix as a parameter of a result; empty for the lab's own."""
    return {} if prefix == NAT64_PREFIX else {"nat64_prefix": str(prefix)}


def _own_networks() -> Iterator[IPv6Network]:
    """The IPv6 networks of this plan, without the NAT64 prefix."""
    for side in (INSIDE["ipv6"], OUTSIDE["ipv6"], MAPPED["ipv6"], BACKGROUND_INSIDE, BACKGROUND_OUTSIDE):
        network = side.device.network
        if isinstance(network, IPv6Network):
            yield network
    # All links between devices: 2001:2:0:64:: to 2001:2:0:a3::.
    for index in range(INNER_LINKS):
        yield IPv6Network((_INNER6.network_address + (index << 64), 64))


def inner_link(index: int, family: Family) -> tuple[Interface, Interface]:
    """Addresses of link `index` (0 .. INNER_LINKS - 1): of the device nearer the Initiator, and of the next one."""
    if not 0 <= index < INNER_LINKS:
        raise UsageError(f"link {index} between devices: the plan has links 0 to {INNER_LINKS - 1}; use fewer devices")
    if family == "ipv4":
        base4 = _INNER4.network_address + 4 * index
        return IPv4Interface((base4 + 1, 30)), IPv4Interface((base4 + 2, 30))
    # The fourth group counts the links: 2001:2:0:64::, 2001:2:0:65:: ...
    base6 = _INNER6.network_address + (index << 64)
    return IPv6Interface((base6 + 1, 64)), IPv6Interface((base6 + 2, 64))


#: First outside address of a gateway that has several. A power of 2 of them is one prefix.
_FIRST_OF_POOL: Final = IPv4Address("198.19.128.0")
#: The tester's first addresses on the outside, which it uses whatever the user chooses.
_FIRST_HOSTS: Final = 3


def pool_of(number: int) -> Addresses:
    """Return `number` outside addresses of a gateway, 1 to `MOST_OUTSIDE_ADDRESSES`; a single one is the device's."""
    first = OUTSIDE["ipv4"].device.ip if number == 1 else _FIRST_OF_POOL
    return Addresses(first, first + (number - 1))


def parse_range(name: str, text: str, family: Family) -> Addresses:
    """Return the address range that a user writes, of an input of this name."""
    first, _, last = text.partition("-")
    try:
        ends = ip_address(first.strip()), ip_address((last or first).strip())
    except ValueError:
        raise wrong(name, f"{text!r} is not an address range; write A or A-B") from None
    for end in ends:
        if end.version != (4 if family == "ipv4" else 6):
            raise wrong(name, f"{end} is IPv{end.version}; name IPv{10 - end.version} addresses there")
    if int(ends[0]) > int(ends[1]):
        raise wrong(name, f"{text!r} is reversed; write the lower address first")
    return Addresses(*ends)


def refuse_pool(what: str, pool: Addresses) -> None:
    """Refuse a pool that holds addresses which the lab uses itself; `what` names the pool."""
    outside = OUTSIDE["ipv4"]
    if pool == pool_of(1):
        return
    if pool.count > MOST_OUTSIDE_ADDRESSES:
        raise UsageError(f"{what}: {pool} has {pool.count} addresses; the most is {MOST_OUTSIDE_ADDRESSES}")
    if pool.first.is_multicast or pool.first.is_loopback or pool.first.is_unspecified:
        raise UsageError(f"{what}: {pool} holds no unicast addresses of hosts; choose others")
    first, broadcast = outside.device.network.network_address, outside.device.network.broadcast_address
    own = (
        ("the outside link's first addresses", Addresses(first, outside.host(_FIRST_HOSTS - 1))),
        ("the outside link's broadcast address", Addresses(broadcast, broadcast)),
        ("the inside network", _all_of(INSIDE["ipv4"].device.network)),
        ("the links between devices", _all_of(_INNER4)),
    )
    for words, used in own:
        if pool.overlaps(used):
            raise UsageError(f"{what}: {pool} overlaps {words}, {used}, which the lab uses itself; choose others")


def _all_of(network: Network) -> Addresses:
    return Addresses(network.network_address, network.broadcast_address)


def prefixes_of(pool: Addresses) -> tuple[IPv4Network, ...]:
    """Return the fewest prefixes that have the addresses of an IPv4 pool, and no others."""
    return tuple(summarize_address_range(IPv4Address(int(pool.first)), IPv4Address(int(pool.last))))


def pool_parameter(pool: Addresses | None) -> dict[str, int]:
    """Return the number of outside addresses as a parameter of a result; empty for the device's own alone."""
    return {} if pool is None or pool.count == 1 else {"outside_addresses": pool.count}
