# SPDX-License-Identifier: Apache-2.0
"""What makes a NAT64 of the simulated NAT44: IPv6 inside, translated host by host (RFC 7915)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Final

from natgauge.audits.kit.packets import (
    ICMP,
    TCP,
    UDP,
    EchoMessage,
    ErrorMessage,
    Packet,
    checksum,
    checksummed,
    make_error,
    read_packet,
)
from natgauge.embedding import embedded
from natgauge.words import Address

PREFIX: Final = IPv6Network("64:ff9b::/96")
INSIDE: Final = IPv4Address("10.0.0.1")
INSIDE6: Final = IPv6Address("2001:db8::1")
#: Inside hosts with an address in both families.
_HOSTS: Final = 256
#: Types and codes of ICMP errors and of ICMPv6 errors (RFC 7915 sections 4.2 and 5.2).
_ERRORS: Final = {(3, 3): (1, 4), (3, 1): (1, 0), (3, 13): (1, 1), (3, 4): (2, 0), (11, 0): (3, 0)}
_TOO_BIG: Final = ((3, 4), (2, 0))
_HEADER4, _HEADER6, _FRAGMENT_HEADER = 20, 40, 8
_CHECKSUM_AT: Final = {UDP: 6, TCP: 16}


@dataclass(frozen=True, kw_only=True)
class Nat64:
    """How the translation behaves; the defaults meet all requirements.

    Attributes:
        adds_checksum: whether UDP without a checksum gets one, or is dropped.
        largest_without_df: octets of the largest IPv4 packet that is sent without DF.
        added_to_mtu: octets that are added to the MTU in an error.
        least_mtu: octets of the largest IPv6 packet that is made of an IPv4 packet without DF.
    """

    adds_checksum: bool = True
    largest_without_df: int = 1260
    added_to_mtu: int = 20
    least_mtu: int = 1280

    def to_ipv4(self, packet: Packet) -> Packet:
        """Return an IPv6 packet of an inside host as IPv4."""
        ends = _address4(packet.source), _address4(packet.destination)
        large = _HEADER4 + len(packet.payload) > self.largest_without_df
        whole = not (packet.is_fragment or packet.fragment_header)
        return replace(self._translated(packet, *ends), fragment_header=False, dont_fragment=large and whole)

    def to_ipv6(self, packet: Packet) -> tuple[Packet, ...]:
        """Return an IPv4 packet to an inside host as IPv6, in fragments if it is large and may be fragmented."""
        translated = self._translated(packet, _address6(packet.source), _address6(packet.destination))
        may_be_cut = not (packet.dont_fragment or packet.is_fragment)
        if may_be_cut and _HEADER6 + len(translated.payload) > self.least_mtu:
            return translated.cut((self.least_mtu - _HEADER6 - _FRAGMENT_HEADER) // 8 * 8)
        return (translated,)

    def _translated(self, packet: Packet, source: Address, destination: Address) -> Packet:
        made = replace(packet, source=source, destination=destination, options=b"", dont_fragment=False)
        place, segment = _CHECKSUM_AT.get(packet.protocol), packet.segment
        if place is not None:
            return made if packet.offset else replace(made, payload=_adjusted(packet, made, place))
        if isinstance(segment, ErrorMessage):
            return replace(self._error(segment, source, destination), ttl=packet.ttl)
        protocol = ICMP[source.version]
        if isinstance(segment, EchoMessage):
            payload = _echo_type(packet.payload, source.version)
            made = checksummed(source, destination, protocol, payload[:2] + bytes(2) + payload[4:], 2)
            return replace(made, ttl=packet.ttl)
        return replace(made, protocol=protocol)

    def _error(self, error: ErrorMessage, source: Address, destination: Address) -> Packet:
        """Return an ICMP error of the other family, with what it quotes."""
        numbers = dict(_ERRORS) if source.version == 6 else {new: old for old, new in _ERRORS.items()}
        kind, code = numbers.get((error.kind, error.code), (error.kind, error.code))
        more = self.added_to_mtu if source.version == 6 else -self.added_to_mtu
        rest = error.rest + more if (error.kind, error.code) in _TOO_BIG else 0
        return make_error(source, destination, ErrorMessage(kind, code, rest, self._quoted(error.quoted)))

    def _quoted(self, quoted: bytes) -> bytes:
        """Return the beginning of a quoted packet in the other family, with the length that its header states."""
        inner = read_packet(quoted)
        assert inner is not None
        address = _address6 if inner.source.version == 4 else _address4
        made = replace(inner, source=address(inner.source), destination=address(inner.destination), options=b"")
        if inner.protocol in ICMP.values():
            version = made.source.version
            made = replace(made, protocol=ICMP[version], payload=_echo_type(inner.payload, version))
        octets = made.octets()
        if inner.source.version == 4:
            length = int.from_bytes(quoted[2:4], "big") - (quoted[0] & 15) * 4
            return octets[:4] + length.to_bytes(2, "big") + octets[6:]
        length = int.from_bytes(quoted[4:6], "big") + _HEADER4
        return octets[:2] + length.to_bytes(2, "big") + octets[4:]


def _address4(address: Address) -> IPv4Address:
    number = int(address) - int(INSIDE6)
    if 0 <= number < _HOSTS:
        return INSIDE + number
    return IPv4Address(int(address) & 0xFFFFFFFF)


def _address6(address: Address) -> Address:
    number = int(address) - int(INSIDE)
    return INSIDE6 + number if 0 <= number < _HOSTS else embedded(PREFIX, IPv4Address(int(address)))


def _echo_type(payload: bytes, version: int) -> bytes:
    """Return an echo message with the type of this family; its checksum stays."""
    types = {8: 128, 0: 129} if version == 6 else {128: 8, 129: 0}
    return bytes((types.get(payload[0], payload[0]),)) + payload[1:]


def _adjusted(before: Packet, after: Packet, place: int) -> bytes:
    """Return a segment whose checksum is as right or as wrong as it was (RFC 1624)."""
    payload = before.payload
    if len(payload) < place + 2 or not any(payload[place : place + 2]):
        return payload
    old, new = (checksum(one.source.packed + one.destination.packed) for one in (before, after))
    total = (int.from_bytes(payload[place : place + 2], "big") ^ 0xFFFF) + old + (new ^ 0xFFFF)
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return payload[:place] + ((total ^ 0xFFFF) or 0xFFFF).to_bytes(2, "big") + payload[place + 2 :]
