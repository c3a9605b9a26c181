# SPDX-License-Identifier: Apache-2.0
"""Neighbours of an audit's hosts: the gateway learns of each host before the host's first packet."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from natgauge.audits.kit.network import AuditSide, Missed, Network
from natgauge.words import Side

GATEWAY_MAC = bytes.fromhex("026e67000002")


class SilentPorts:
    """Ports at which nothing arrives; they record what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[Side, bytes]] = []

    def now(self) -> float:
        return 0.0

    def epoch(self) -> float:
        return 0.0

    def mac(self, side: Side) -> bytes:
        return bytes.fromhex("026e67000001" if side == "initiator" else "026e67000102")

    def send(self, side: Side, octets: bytes) -> None:
        self.sent.append((side, octets))

    def receive(self, until: float) -> None:
        assert until >= 0

    def missed(self) -> Missed:
        return Missed()


@pytest.mark.parametrize(("family", "count"), [(6, 2), (4, 0)])
def test_each_ipv6_host_solicits_the_gateway_once_even_if_its_address_is_known(family: int, count: int) -> None:
    """VPP's NAT64 drops advertisements to its link-local address, so its answers reached no inside host."""
    ports = SilentPorts()
    first = ip_address("2001:2::1" if family == 6 else "10.0.0.1")
    hosts = (first + 1, first + 2)
    outside = AuditSide((ip_address("198.19.0.2"),), ip_address("198.19.0.1"), GATEWAY_MAC)
    network = Network(ports, {"initiator": AuditSide(hosts, first, GATEWAY_MAC), "responder": outside})
    network.resolve()
    assert [side for side, _ in ports.sent] == ["initiator"] * count
    for host, (_, octets) in zip(hosts, ports.sent, strict=False):
        assert octets[:6] == bytes.fromhex("3333ff000001"), "the group of solicited nodes, RFC 4291 section 2.7.1"
        assert octets[22:38] == host.packed
        # Solicitation, and the host's link-layer address, from which the gateway learns (RFC 4861 section 4.3).
        assert (octets[54], octets[62:78]) == (135, first.packed)
        assert octets[78:] == b"\x01\x01" + ports.mac("initiator")
    assert network.frames == []
