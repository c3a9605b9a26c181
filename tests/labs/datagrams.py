# SPDX-License-Identifier: Apache-2.0
"""UDP frames made and read octet by octet, independent of the engine they help to check.

Not with scapy: it takes half a millisecond for each frame, and tests here make and judge tens of thousands.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address

Address = IPv4Address | IPv6Address
_UDP = 17
_IPV4 = 4
_ETHERTYPES = {4: b"\x08\x00", 6: b"\x86\xdd"}


@dataclass(frozen=True, slots=True)
class Datagram:
    """One UDP datagram over IPv4 or IPv6.

    Attributes:
        tunnel: start and end of the IPv6 tunnel that it is in (RFC 2473); None = it is in none.
        checksums_right: of a received one; what is sent is always right.
        arrived: ns of CLOCK_REALTIME when it was captured; 0 = not told.
    """

    source: Address
    source_port: int
    destination: Address
    destination_port: int
    payload: bytes
    tunnel: tuple[Address, Address] | None = None
    checksums_right: bool = True
    arrived: int = 0

    @property
    def number(self) -> int:
        """What its maker numbered it with, in the first 8 octets of the payload."""
        return int.from_bytes(self.payload[:8], "big")

    def differs(self, **values: object) -> Datagram:
        """The same with other values, and without the time."""
        return replace(self, arrived=0, **values)  # type: ignore[arg-type]

    def reply(self) -> Datagram:
        """What the receiver of this one would answer, with the same payload."""
        tunnel = None if self.tunnel is None else (self.tunnel[1], self.tunnel[0])
        return Datagram(self.destination, self.destination_port, self.source, self.source_port, self.payload, tunnel)

    def frame(self, source_mac: str, destination_mac: str) -> bytes:
        """All octets of the frame but the FCS, checksums right."""
        macs = bytes.fromhex((destination_mac + source_mac).replace(":", ""))
        packet = self._packet()
        if self.tunnel is None:
            return macs + _ETHERTYPES[self.source.version] + packet
        ends = self.tunnel[0].packed + self.tunnel[1].packed
        return macs + _ETHERTYPES[6] + struct.pack("!IHBB", 6 << 28, len(packet), _IPV4, 64) + ends + packet

    def _packet(self) -> bytes:
        length = 8 + len(self.payload)
        addresses = self.source.packed + self.destination.packed
        ports = struct.pack("!HHH", self.source_port, self.destination_port, length)
        # 0 stands for no checksum (RFC 768).
        check = checksum(addresses + struct.pack("!HH", _UDP, length) + ports + self.payload) or 0xFFFF
        segment = ports + struct.pack("!H", check) + self.payload
        if self.source.version == 6:
            return struct.pack("!IHBB", 6 << 28, length, _UDP, 64) + addresses + segment
        # Without "do not fragment" a NAT64 adds a fragment header, which is lawful and not what is tested here.
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 1, 0x4000, 64, _UDP, 0) + addresses
        return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + segment


def parse(frame: bytes, arrived: int = 0) -> Datagram | None:
    """Read a frame and judge its checksums; None when it is no UDP."""
    packet, tunnel = frame[14:], None
    if frame[12:14] == _ETHERTYPES[6] and packet[6] == _IPV4:
        tunnel = (ip_address(packet[8:24]), ip_address(packet[24:40]))
        frame = frame[:12] + _ETHERTYPES[4] + packet[40:]
        packet = frame[14:]
    if frame[12:14] == _ETHERTYPES[4] and packet[9] == _UDP:
        begin, end, addresses = (packet[0] & 15) * 4, struct.unpack("!H", packet[2:4])[0], packet[12:20]
        right = checksum(packet[:begin]) == 0
    elif frame[12:14] == _ETHERTYPES[6] and packet[6] == _UDP:
        begin, end, addresses = 40, 40 + struct.unpack("!H", packet[4:6])[0], packet[8:40]
        right = True
    else:
        return None
    segment, half = packet[begin:end], len(addresses) // 2
    # Over IPv4 a sender may give none (RFC 768); VPP's NAT64 does so.
    given = frame[12:14] == _ETHERTYPES[6] or segment[6:8] != b"\0\0"
    right = right and (not given or checksum(addresses + struct.pack("!HH", _UDP, len(segment)) + segment) == 0)
    source_port, destination_port = struct.unpack("!HH", segment[:4])
    return Datagram(
        ip_address(addresses[:half]),
        source_port,
        ip_address(addresses[half:]),
        destination_port,
        segment[8:],
        tunnel,
        right,
        arrived,
    )


def checksum(octets: bytes) -> int:
    """The Internet checksum (RFC 1071); 0 of what holds its own."""
    octets += b"\0" * (len(octets) % 2)
    total: int = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
