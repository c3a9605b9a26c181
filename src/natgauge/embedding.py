# SPDX-License-Identifier: Apache-2.0
"""IPv4-embedded IPv6 addresses (RFC 6052 section 2.2)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Final

#: Lengths of prefixes that an IPv4 address can follow.
PREFIX_LENGTHS: Final = (32, 40, 48, 56, 64, 96)
#: The length of a prefix behind which neighbours stay neighbours.
NEIGHBOURS_BITS: Final = 96
#: First bit of octet "u", which is 0 in every such address: the IPv4 address continues after it.
_U: Final = 64
_U_BITS: Final = 8


def embedded(prefix: IPv6Network, address: IPv4Address) -> IPv6Address:
    """Return the address that a translator with this prefix has for an IPv4 address; the suffix is 0.

    The prefix has one of `PREFIX_LENGTHS`.
    """
    base, value = int(prefix.network_address), int(address)
    if prefix.prefixlen > _U:
        return IPv6Address(base | value)
    before = _U - prefix.prefixlen
    after = 32 - before
    high, low = value >> after, value & ((1 << after) - 1)
    return IPv6Address(base | high << _U | low << (_U - _U_BITS - after))


def extracted(address: IPv6Address, length: int) -> IPv4Address:
    """Return the IPv4 address in an address that `embedded` returned for a prefix of this length."""
    value = int(address)
    if length < NEIGHBOURS_BITS:
        value = (value >> _U << (_U - _U_BITS) | value & ((1 << (_U - _U_BITS)) - 1)) >> (_U + 24 - length)
    return IPv4Address(value & 0xFFFF_FFFF)
