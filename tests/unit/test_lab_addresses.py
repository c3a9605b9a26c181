# SPDX-License-Identifier: Apache-2.0
"""The address plan of the labs, and IPv4 addresses in IPv6 ones (RFC 6052 sections 2.2 and 2.4)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natgauge.embedding import PREFIX_LENGTHS, embedded, extracted
from natgauge.errors import UsageError
from natgauge.labs.common.addresses import (
    INNER_LINKS,
    INSIDE,
    MAPPED,
    NAT64_PREFIX,
    OUTSIDE,
    LinkSide,
    inner_link,
)
from natgauge.words import Family


@pytest.mark.parametrize(
    ("side", "device", "first", "last"),
    [
        (INSIDE["ipv4"], "10.0.0.1", "10.0.0.2", "10.0.255.254"),
        (OUTSIDE["ipv4"], "198.19.0.1", "198.19.0.2", "198.19.255.254"),
        (MAPPED["ipv4"], "198.18.0.1", "198.18.0.2", "198.18.255.254"),
        (INSIDE["ipv6"], "2001:2::1", "2001:2::2", "2001:2::ffff:ffff:ffff:fffe"),
        (OUTSIDE["ipv6"], "2001:2:0:8000::1", "2001:2:0:8000::2", "2001:2:0:8000:ffff:ffff:ffff:fffe"),
    ],
)
def test_sides(side: LinkSide, device: str, first: str, last: str) -> None:
    assert side.device.ip == ip_address(device)
    assert side.range(side.hosts) == (ip_address(first), ip_address(last))


@pytest.mark.parametrize("side", [*INSIDE.values(), *OUTSIDE.values(), *MAPPED.values()])
@pytest.mark.parametrize("beyond", [-1, 0])
def test_no_host_beyond_the_network(side: LinkSide, beyond: int) -> None:
    index = side.hosts if beyond == 0 else beyond
    with pytest.raises(UsageError, match="use fewer addresses"):
        side.host(index)
    with pytest.raises(UsageError):
        side.range(0)


def test_no_two_networks_overlap() -> None:
    networks = [side.device.network for side in (*INSIDE.values(), *OUTSIDE.values(), *MAPPED.values())]
    networks += [NAT64_PREFIX]
    networks += [inner_link(index, family)[0].network for index in range(INNER_LINKS) for family in INSIDE]
    for index, one in enumerate(networks):
        assert not any(one.version == other.version and one.overlaps(other) for other in networks[index + 1 :])


@pytest.mark.parametrize(
    ("family", "first"),
    [("ipv4", ["192.0.2.1/30", "192.0.2.2/30"]), ("ipv6", ["2001:2:0:64::1/64", "2001:2:0:64::2/64"])],
)
def test_inner_links_join_two_addresses_of_one_network_and_the_first_is_the_documented_one(
    family: Family, first: list[str]
) -> None:
    near, far = inner_link(63, family)
    assert near.network == far.network
    assert near.ip + 1 == far.ip
    with pytest.raises(UsageError, match="use fewer devices"):
        inner_link(64, family)
    assert [str(end) for end in inner_link(0, family)] == first


def test_outside_networks_are_for_benchmarking_only() -> None:
    assert OUTSIDE["ipv4"].device in ip_network("198.18.0.0/15")
    assert MAPPED["ipv4"].device in ip_network("198.18.0.0/15")
    assert OUTSIDE["ipv6"].device in ip_network("2001:2::/48")


#: RFC 6052 section 2.4, table 2: of 192.0.2.33.
TABLE2 = {
    "2001:db8::/32": "2001:db8:c000:221::",
    "2001:db8:100::/40": "2001:db8:1c0:2:21::",
    "2001:db8:122::/48": "2001:db8:122:c000:2:2100::",
    "2001:db8:122:300::/56": "2001:db8:122:3c0:0:221::",
    "2001:db8:122:344::/64": "2001:db8:122:344:c0:2:2100::",
    "2001:db8:122:344::/96": "2001:db8:122:344::192.0.2.33",
}


@pytest.mark.parametrize("prefix", TABLE2)
def test_embedding_as_in_rfc6052_section_2_4(prefix: str) -> None:
    assert embedded(IPv6Network(prefix), IPv4Address("192.0.2.33")) == IPv6Address(TABLE2[prefix])


@given(st.sampled_from(PREFIX_LENGTHS), st.integers(0, 2**32 - 1))
def test_the_octets_of_the_address_follow_the_prefix_around_a_zero_octet_u(length: int, value: int) -> None:
    octets = embedded(IPv6Network((0x20010DB8_01220344 << 64, length), strict=False), IPv4Address(value)).packed
    assert octets[8] == 0
    without_u = octets if length == 96 else octets[:8] + octets[9:]
    first = length // 8
    assert without_u[first : first + 4] == value.to_bytes(4, "big")
    assert not any(without_u[first + 4 :])
    assert extracted(IPv6Address(octets), length) == IPv4Address(value)
