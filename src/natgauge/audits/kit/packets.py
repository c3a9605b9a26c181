# SPDX-License-Identifier: Apache-2.0
"""IP packets of an audit, octet by octet, and its flows: the packets that open a flow, go over it, try to enter it.

The packets are UDP, TCP, ICMP echo and ICMP errors over IPv4 and IPv6. An audit needs packets that common libraries
refuse or mend: a UDP checksum of zero, quoted packets that are cut off, fragments in any order, wrong checksums inside
of ICMP errors. Scapy can make them, but its licence (GPL-2.0-only) does not allow natgauge (Apache-2.0) to import it.
"""

from __future__ import annotations

import secrets
import struct
from dataclasses import dataclass, field, replace
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

from natgauge.words import Address, Transport

TCP: Final = 6
UDP: Final = 17
ICMPV6: Final = 58
#: ICMP and ICMPv6, by IP version.
ICMP: Final = {4: 1, 6: ICMPV6}
_FRAGMENT_HEADER: Final = 44
#: Headers before the upper-layer header that are skipped: hop-by-hop, routing, destination options.
_SKIPPED: Final = frozenset({0, 43, 60})

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
_FLAGS: Final = {SYN: "SYN", FIN: "FIN", RST: "RST", ACK: "ACK"}
_WINDOW: Final = 65535

#: Types of echo request and reply, by IP version (RFC 792, RFC 4443).
_ECHO: Final = {4: (8, 0), 6: (128, 129)}
#: ICMP types of errors, which quote a packet.
_ERRORS: Final = {4: frozenset({3, 4, 5, 11, 12}), 6: frozenset({1, 2, 3, 4})}

#: Source and destination port, or of an echo message behind its checksum, the identifier.
_PORTS: Final = struct.Struct("!HHH")
_LEAST_HEADER4: Final = 20
_MORE_FRAGMENTS: Final = 0x2000
_DO_NOT_FRAGMENT: Final = 0x4000


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """An address with a port; of ICMP, the port is the identifier of the query."""

    address: Address
    port: int

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if self.address.version == 6 else f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class Packet:
    """One IP packet.

    Attributes:
        payload: octets behind the IP header (of IPv6: behind the fragment header, where there is one).
        dont_fragment: IPv4's DF bit.
        offset: octets of the original payload before this fragment's; a multiple of 8.
        fragment_header: whether an IPv6 packet has a fragment header although it is whole (RFC 6946).
        options: IPv4 options; a multiple of 4 octets.
    """

    source: Address
    destination: Address
    protocol: int
    payload: bytes
    ttl: int = 64
    identification: int = 0
    dont_fragment: bool = False
    more_fragments: bool = False
    offset: int = 0
    fragment_header: bool = False
    options: bytes = b""

    @property
    def is_fragment(self) -> bool:
        """Whether it is a part of a packet."""
        return self.more_fragments or self.offset > 0

    @property
    def segment(self) -> Segment | None:
        """What it carries, which may be cut off behind its first 8 octets; None where it is something else."""
        octets, version = self.payload, self.source.version
        if self.offset or len(octets) < 8:
            return None
        if self.protocol == UDP:
            return UdpSegment(octets[8:], int.from_bytes(octets[6:8], "big"))
        if self.protocol == TCP:
            sequence, acknowledgement, size, flags = struct.unpack_from("!IIBB", octets.ljust(20, b"\0"), 4)
            return TcpSegment(flags, sequence, acknowledgement, octets[(size >> 4) * 4 :] if len(octets) >= 20 else b"")
        kind, code, _, rest = struct.unpack_from("!BBHI", octets)
        if self.protocol == ICMP[version] and kind in _ECHO[version]:
            return EchoMessage(kind == _ECHO[version][0], octets[8:], rest & 0xFFFF)
        is_error = self.protocol == ICMP[version] and kind in _ERRORS[version]
        return ErrorMessage(kind, code, rest, octets[8:]) if is_error else None

    @property
    def sender(self) -> Endpoint | None:
        """The source with its port; None where it has none."""
        ports = self._ports()
        return None if ports is None else Endpoint(self.source, ports[0])

    @property
    def receiver(self) -> Endpoint | None:
        """The destination with its port; None where it has none."""
        ports = self._ports()
        return None if ports is None else Endpoint(self.destination, ports[1])

    def _ports(self) -> tuple[int, int] | None:
        # As of `segment`, which takes longer to make than each look at a packet needs.
        if self.offset or len(self.payload) < 8:
            return None
        first, second, third = _PORTS.unpack_from(self.payload)
        if self.protocol in (UDP, TCP):
            return first, second
        version = self.source.version
        return (third, third) if self.protocol == ICMP[version] and self.payload[0] in _ECHO[version] else None

    def octets(self) -> bytes:
        """Return the packet as it is sent."""
        addresses = self.source.packed + self.destination.packed
        if self.source.version == 6:
            payload, following = self.payload, self.protocol
            if self.is_fragment or self.fragment_header:
                field = self.offset | int(self.more_fragments)
                payload = struct.pack("!BBHI", following, 0, field, self.identification) + payload
                following = _FRAGMENT_HEADER
            return struct.pack("!IHBB", 6 << 28, len(payload), following, self.ttl) + addresses + payload
        words, field = 5 + len(self.options) // 4, self.offset // 8
        field |= _MORE_FRAGMENTS * self.more_fragments | _DO_NOT_FRAGMENT * self.dont_fragment
        sizes = 0x40 | words, 0, 4 * words + len(self.payload)
        head = struct.pack("!BBHHHBBH", *sizes, self.identification & 0xFFFF, field, self.ttl, self.protocol, 0)
        head += addresses + self.options
        return head[:10] + checksum(head).to_bytes(2, "big") + head[12:] + self.payload

    def cut(self, octets: int) -> tuple[Packet, ...]:
        """Return the packet in fragments.

        Args:
            octets: payload of each fragment but the last one; a multiple of 8.
        """
        whole, parts = replace(self, dont_fragment=False), range(0, len(self.payload), octets)
        return tuple(
            replace(whole, payload=self.payload[at : at + octets], offset=at, more_fragments=at != parts[-1])
            for at in parts
        )


def read_packet(octets: bytes) -> Packet | None:
    """Read an IP packet, which may be cut off behind its IP header, as in an ICMP error; None where it is none."""
    version = octets[0] >> 4 if octets else 0
    try:
        return _read4(octets) if version == 4 else _read6(octets) if version == 6 else None
    except (struct.error, ValueError):
        return None


def _read4(octets: bytes) -> Packet:
    first, _, length, identification, field, ttl, protocol, _ = struct.unpack_from("!BBHHHBBH", octets)
    head = (first & 15) * 4
    if not _LEAST_HEADER4 <= head <= min(length, len(octets)):
        raise ValueError("malformed header")
    ends = _address(octets[12:16]), _address(octets[16:20])
    bits = bool(field & _DO_NOT_FRAGMENT), bool(field & _MORE_FRAGMENTS), (field & 0x1FFF) * 8
    return Packet(*ends, protocol, octets[head:length], ttl, identification, *bits, options=octets[20:head])


@lru_cache(maxsize=1024)
def _address(packed: bytes) -> Address:
    """The address of these octets; the packets of an audit have few addresses between them."""
    return ip_address(packed)


def _read6(octets: bytes) -> Packet:
    _, length, following, ttl = struct.unpack_from("!IHBB", octets)
    packet = Packet(_address(octets[8:24]), _address(octets[24:40]), following, octets[40 : 40 + length], ttl)
    while packet.protocol in _SKIPPED:
        following, size = struct.unpack_from("!BB", packet.payload)
        packet = replace(packet, protocol=following, payload=packet.payload[8 * (size + 1) :])
    if packet.protocol != _FRAGMENT_HEADER:
        return packet
    following, _, field, identification = struct.unpack_from("!BBHI", packet.payload)
    packet = replace(packet, protocol=following, payload=packet.payload[8:], identification=identification)
    return replace(packet, more_fragments=bool(field & 1), offset=field & 0xFFF8, fragment_header=True)


@dataclass(frozen=True, slots=True)
class UdpSegment:
    """A UDP datagram; `checksum` None = the right one."""

    data: bytes
    checksum: int | None = None


@dataclass(frozen=True, slots=True)
class TcpSegment:
    """A TCP segment; options that it had are left out."""

    flags: int
    sequence: int = 0
    acknowledgement: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class EchoMessage:
    """An ICMP echo request or reply."""

    is_request: bool
    data: bytes
    sequence: int = 1


@dataclass(frozen=True, slots=True)
class ErrorMessage:
    """An ICMP error.

    Attributes:
        rest: the 32 bits behind the checksum: MTU, pointer, or unused.
    """

    kind: int
    code: int
    rest: int
    quoted: bytes

    @property
    def packet(self) -> Packet | None:
        """The quoted packet, cut off; None where it cannot be read."""
        return read_packet(self.quoted)


#: Segments between two endpoints.
Query = UdpSegment | TcpSegment | EchoMessage
Segment = Query | ErrorMessage


def make_packet(source: Endpoint, destination: Endpoint, segment: Query) -> Packet:
    """Return a packet between two endpoints, with its right checksum unless the segment has another one."""
    ends, version = (source.address, destination.address), source.address.version
    if isinstance(segment, UdpSegment):
        head = struct.pack("!HHHH", source.port, destination.port, 8 + len(segment.data), segment.checksum or 0)
        if segment.checksum is not None:
            return Packet(*ends, UDP, head + segment.data)
        return checksummed(*ends, UDP, head + segment.data, 6)
    if isinstance(segment, TcpSegment):
        numbers = segment.sequence & 0xFFFFFFFF, segment.acknowledgement & 0xFFFFFFFF
        rest = 5 << 4, segment.flags, _WINDOW, 0, 0
        head = struct.pack("!HHIIBBHHH", source.port, destination.port, *numbers, *rest)
        return checksummed(*ends, TCP, head + segment.data, 16)
    kind, identifier = (0, source.port) if segment.is_request else (1, destination.port)
    head = struct.pack("!BBHHH", _ECHO[version][kind], 0, 0, identifier, segment.sequence)
    return checksummed(*ends, ICMP[version], head + segment.data, 2)


def make_error(source: Address, destination: Address, error: ErrorMessage) -> Packet:
    """Return a packet with an ICMP error and its right checksum."""
    octets = struct.pack("!BBHI", error.kind, error.code, 0, error.rest) + error.quoted
    return checksummed(source, destination, ICMP[source.version], octets, 2)


def checksummed(source: Address, destination: Address, protocol: int, octets: bytes, place: int) -> Packet:
    """Return a packet with these octets and their right checksum, which is at this place; they have 0 there."""
    value = _upper_checksum(source, destination, protocol, octets)
    # A computed 0 is sent as all ones, because 0 means that there is none (RFC 768).
    value = 0xFFFF if value == 0 and protocol == UDP else value
    return Packet(source, destination, protocol, octets[:place] + value.to_bytes(2, "big") + octets[place + 2 :])


def has_right_header(octets: bytes) -> bool:
    """Whether the header checksum of a packet that `read_packet` reads is right; IPv6 has none."""
    return octets[0] >> 4 != 4 or checksum(octets[: (octets[0] & 15) * 4]) == 0


def is_right(packet: Packet) -> bool:
    """Whether the checksum of a whole packet's segment is right, or absent where IPv4 allows it."""
    if packet.protocol == UDP and packet.source.version == 4 and packet.payload[6:8] == b"\0\0":
        return True
    return _upper_checksum(packet.source, packet.destination, packet.protocol, packet.payload) == 0


def _upper_checksum(source: Address, destination: Address, protocol: int, octets: bytes) -> int:
    """Return the checksum of an upper-layer segment with its pseudo header; 0 for octets that contain their own."""
    total = _sum(octets)
    if protocol != ICMP[4]:
        total += int(source) + int(destination) + len(octets) + protocol
    return _complement(total)


def checksum(octets: bytes) -> int:
    """Return the Internet checksum (RFC 1071); 0 for octets that contain their own."""
    return _complement(_sum(octets))


def _sum(octets: bytes) -> int:
    """Return a number with the same remainder of 0xFFFF as the sum of the 16-bit words: that of 0x10000 is 1."""
    return int.from_bytes(octets, "big") << 8 * (len(octets) % 2)


def _complement(total: int) -> int:
    """Return the complement of a sum; that of words that are not all zero is never zero (RFC 1071 section 2)."""
    return 0xFFFF - ((total - 1) % 0xFFFF + 1) if total else 0xFFFF


@dataclass(slots=True)
class SequenceNumber:
    """Next TCP sequence number of one end of a flow, as it writes the number, and as the other end sees it.

    A gateway may change sequence numbers.
    """

    written: int = 0
    seen: int = 0

    def advance(self, octets: int) -> None:
        """Add octets; SYN and FIN count as one."""
        self.written += octets
        self.seen += octets


@dataclass(slots=True)
class Flow:
    """A flow through the gateway.

    Attributes:
        written: the outside host's endpoint as the inside writes it; another one behind a NAT64 prefix.
    """

    transport: Transport
    inside: Endpoint
    remote: Endpoint
    written: Endpoint
    mapped: Endpoint
    since: int = 0
    up: SequenceNumber = field(default_factory=SequenceNumber)
    down: SequenceNumber = field(default_factory=SequenceNumber)

    def numbers(self, *, up: bool) -> tuple[SequenceNumber, SequenceNumber]:
        """Return the numbers of the sender of this direction and of the receiver."""
        return (self.up, self.down) if up else (self.down, self.up)

    def ends(self, *, up: bool) -> tuple[Endpoint, Endpoint]:
        """Return source and destination as the sender of this direction writes them."""
        return (self.inside, self.written) if up else (self.remote, self.mapped)

    def packet(self, data: bytes, *, up: bool) -> Packet:
        """Return a packet with data over the open flow; of TCP, the numbers advance by its data."""
        if self.transport != "tcp":
            return lone_packet(self.transport, *self.ends(up=up), data, up=up)
        packet = self.tcp(PSH | ACK, up=up, data=data)
        self.numbers(up=up)[0].advance(len(data))
        return packet

    def tcp(self, flags: int, *, up: bool, back: int = 0, data: bytes = b"") -> Packet:
        """Return the next TCP segment; with `back`, its sequence number is one that was used already."""
        own, other = self.numbers(up=up)
        acknowledged = other.seen if flags & ACK else 0
        return make_packet(*self.ends(up=up), TcpSegment(flags, own.written - back, acknowledged, data))

    def datagram(self, data: bytes, *, up: bool, dont_fragment: bool = False) -> Packet:
        """Return a UDP datagram, with an identification from 1024 on that changes from call to call."""
        number = 1024 + secrets.randbelow(65536 - 1024)
        packet = make_packet(*self.ends(up=up), UdpSegment(data))
        return replace(packet, dont_fragment=dont_fragment, identification=number)


def lone_packet(
    transport: Transport, source: Endpoint, destination: Endpoint, data: bytes, *, up: bool = True
) -> Packet:
    """Return a packet that needs none before it: a UDP datagram, a SYN, an echo request (up) or reply (down).

    A SYN has the last four octets of the data as its sequence number.
    """
    segments: dict[Transport, Query] = {
        "udp": UdpSegment(data),
        "tcp": TcpSegment(SYN, int.from_bytes(data[-4:], "big")),
        "icmp": EchoMessage(is_request=up, data=data),
    }
    return make_packet(source, destination, segments[transport])


def after_syn(packet: Packet) -> int:
    """Return the sequence number behind a SYN."""
    segment = packet.segment
    return segment.sequence + 1 if isinstance(segment, TcpSegment) else 0


def is_same(packet: Packet, sent: Packet) -> bool:
    """Whether a packet begins with the data of another one, or of TCP without data, has its sequence number."""
    seen, own = packet.segment, sent.segment
    if isinstance(own, TcpSegment) and not own.data:
        return isinstance(seen, TcpSegment) and not seen.data and seen.sequence == own.sequence
    return isinstance(seen, Query) and isinstance(own, Query) and seen.data[: len(own.data)] == own.data


def is_tcp(packet: Packet, target: Endpoint, flags: int) -> bool:
    """Whether a packet is a TCP segment to this endpoint that has just these flags, whether or not it has PSH."""
    segment = packet.segment
    same = isinstance(segment, TcpSegment) and segment.flags & sum(_FLAGS) == flags & sum(_FLAGS)
    return same and packet.receiver == target


def described(packet: Packet, *, is_quoted: bool = False) -> str:
    """Return a packet in words, as a part of a sentence; `is_quoted` = another one quotes it.

    What a quoted packet quotes is left out: a device can nest quotations as deeply as a frame is long.
    """
    segment = packet.segment
    where = f"from {packet.sender or packet.source} to {packet.receiver or packet.destination}"
    if packet.is_fragment:
        return f"octets {packet.offset} to {packet.offset + len(packet.payload) - 1} of a packet {where}"
    if isinstance(segment, ErrorMessage):
        quotes = None if is_quoted else segment.packet
        quoted = "" if quotes is None else f", which quotes {described(quotes, is_quoted=True)}"
        return f"an ICMP error with type {segment.kind} and code {segment.code} {where}{quoted}"
    if isinstance(segment, EchoMessage):
        return f"an echo {'request' if segment.is_request else 'reply'} {where}"
    if isinstance(segment, TcpSegment):
        flags = " and ".join(name for flag, name in _FLAGS.items() if segment.flags & flag)
        return f"TCP {flags}{' with data' * bool(segment.data)} {where}"
    return f"UDP of {len(packet.payload)} octets {where}"
