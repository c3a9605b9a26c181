# SPDX-License-Identifier: Apache-2.0
"""The address plan of the labs natgauge makes, as data.

Private addresses inside and the benchmarking blocks outside: 198.18.0.0/15 (RFC 2544 appendix C.2.2), 2001:2::/48
(RFC 5180 section 8, used by RFC 8219), a range of hosts on both sides (RFC 9693 section 3.1). Links between two devices
of a chain use 192.0.2.0/24 (RFC 5737), cut in /30 networks, and one /64 each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network
from typing import Final

from natgauge.embedding import NEIGHBOURS_BITS, PREFIX_LENGTHS
from natgauge.errors import UsageError
from natgauge.words import Address, Family, Interface

#: Links between devices that the plan has addresses for.
INNER_LINKS: Final = 64


@dataclass(frozen=True, slots=True)
class LinkSide:
    """One family on one side of the chain: the device's own address and the tester's hosts behind the port.

    Attributes:
        device: address and prefix length of the device's interface; the first address of its network.
    """

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

INNER4: Final = IPv4Network("192.0.2.0/24")
_INNER6: Final = IPv6Network("2001:2:0:64::/64")


def nat64_prefix(text: str) -> IPv6Network:
    """Return the NAT64 prefix that a user writes."""
    try:
        prefix = IPv6Network(text)
    except ValueError:
        raise UsageError(
            f"NAT64 prefix: {text!r} is no IPv6 network; write it as 64:ff9b::/96", at="nat64_prefix"
        ) from None
    if prefix.prefixlen not in PREFIX_LENGTHS:
        *shorter, longest = map(str, PREFIX_LENGTHS)
        raise UsageError(
            f"NAT64 prefix: {prefix} has {prefix.prefixlen} bits; choose {', '.join(shorter)} or {longest} bits (RFC "
            "6052 section 2.2)",
            at="nat64_prefix",
        )
    if prefix.prefixlen == NEIGHBOURS_BITS and prefix.network_address.packed[8]:
        raise UsageError(
            f"NAT64 prefix: {prefix} has bits in 64 to 71, which are zero (RFC 6052 section 2.2); choose another",
            at="nat64_prefix",
        )
    if prefix.is_multicast or prefix.is_link_local or prefix.network_address.is_loopback:
        raise UsageError(
            f"NAT64 prefix: {prefix} holds no unicast addresses of hosts; choose another", at="nat64_prefix"
        )
    for network in _own_networks():
        if prefix.overlaps(network):
            raise UsageError(
                f"NAT64 prefix: {prefix} overlaps {network}, which the lab uses itself; choose another",
                at="nat64_prefix",
            )
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
        base4 = INNER4.network_address + 4 * index
        return IPv4Interface((base4 + 1, 30)), IPv4Interface((base4 + 2, 30))
    # The fourth group counts the links: 2001:2:0:64::, 2001:2:0:65:: ...
    base6 = _INNER6.network_address + (index << 64)
    return IPv6Interface((base6 + 1, 64)), IPv6Interface((base6 + 2, 64))
