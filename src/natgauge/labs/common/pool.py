# SPDX-License-Identifier: Apache-2.0
"""Pools of outside IPv4 addresses (RFC 9693 section 3.2) in the labs natgauge makes."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, ip_address, summarize_address_range
from typing import Final

from natgauge.errors import UsageError
from natgauge.inputs.checks import wrong
from natgauge.labs.common.addresses import INNER4, INSIDE, OUTSIDE
from natgauge.labs.contract import Addresses
from natgauge.words import MOST_OUTSIDE_ADDRESSES, Family, Network

#: First outside address of a gateway that has several. A power of 2 of them is one prefix.
_FIRST: Final = IPv4Address("198.19.128.0")
#: The tester's first addresses on the outside, which it uses whatever the user chooses.
_FIRST_HOSTS: Final = 3


def pool_of(number: int) -> Addresses:
    """Return `number` outside addresses of a gateway, 1 to `MOST_OUTSIDE_ADDRESSES`; a single one is the device's."""
    first = OUTSIDE["ipv4"].device.ip if number == 1 else _FIRST
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
        ("the links between devices", _all_of(INNER4)),
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
