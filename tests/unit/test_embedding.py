# SPDX-License-Identifier: Apache-2.0
"""IPv4-embedded IPv6 addresses against the table of RFC 6052 section 2.4, and against its layout in section 2.2."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natgauge.embedding import PREFIX_LENGTHS, embedded, extracted

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
