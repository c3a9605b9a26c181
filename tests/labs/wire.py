# SPDX-License-Identifier: Apache-2.0
"""UDP frames made and read by hand at a lab's tester ports, independent of the engine they help to check."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Self

from natgauge.labs.contract import Port
from natgauge.labs.namespaces import inside

Address = IPv4Address | IPv6Address
_ETHERTYPES = {4: 0x0800, 6: 0x86DD}


@dataclass(frozen=True, slots=True)
class Datagram:
    """One UDP datagram over IPv4 or IPv6."""

    source: Address
    source_port: int
    destination: Address
    destination_port: int
    payload: bytes

    def reply(self) -> Datagram:
        """What the receiver of this one would answer, with the same payload."""
        return Datagram(self.destination, self.destination_port, self.source, self.source_port, self.payload)

    def packet(self) -> bytes:
        """The IP packet, with right checksums."""
        length = 8 + len(self.payload)
        udp = struct.pack("!HHHH", self.source_port, self.destination_port, length, 0) + self.payload
        pseudo = self.source.packed + self.destination.packed + struct.pack("!IHBB", length, 0, 0, 17)
        udp = udp[:6] + struct.pack("!H", _checksum(pseudo + udp) or 0xFFFF) + udp[8:]
        if self.source.version == 6:
            head = struct.pack("!IHBB", 6 << 28, length, 17, 64)
            return head + self.source.packed + self.destination.packed + udp
        # Without "do not fragment" a NAT64 adds a fragment header, which is lawful and not what is tested here.
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 1, 0x4000, 64, 17, 0)
        head += self.source.packed + self.destination.packed
        return head[:10] + struct.pack("!H", _checksum(head)) + head[12:] + udp


def parse(packet: bytes) -> Datagram | None:
    """Read an IP packet; None when it is not UDP. Its checksums must be right."""
    if packet[0] >> 4 == 4:
        begin, end, size, protocol = (packet[0] & 15) * 4, struct.unpack("!H", packet[2:4])[0], 4, packet[9]
        addresses = packet[12:20]
        assert _checksum(packet[:begin]) == 0, "IPv4 header checksum"
    else:
        begin, end, size, protocol = 40, 40 + struct.unpack("!H", packet[4:6])[0], 16, packet[6]
        addresses = packet[8:40]
    if protocol != 17:
        return None
    udp = packet[begin:end]
    assert _checksum(addresses + struct.pack("!IHBB", len(udp), 0, 0, 17) + udp) == 0, "UDP checksum"
    ports = struct.unpack("!HH", udp[:4])
    return Datagram(ip_address(addresses[:size]), ports[0], ip_address(addresses[size:]), ports[1], udp[8:])


class Tap:
    """One tester port: sends datagrams to the device, receives what comes from it."""

    def __init__(self, port: Port) -> None:
        self._gateway = bytes.fromhex((port.gateway_mac or "").replace(":", ""))
        self._socket = inside(
            port.netns, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
        )
        self._socket.bind((port.interface, 0x0003))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.mac: bytes = self._socket.getsockname()[4]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, datagrams: Iterable[Datagram]) -> None:
        """Send them all."""
        for datagram in datagrams:
            ethertype = struct.pack("!H", _ETHERTYPES[datagram.source.version])
            self._socket.send(self._gateway + self.mac + ethertype + datagram.packet())

    def receive(self, count: int, seconds: float = 3.0) -> list[Datagram]:
        """Up to `count` UDP datagrams addressed to this port."""
        found: list[Datagram] = []
        deadline = time.monotonic() + seconds
        while len(found) < count and (left := deadline - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                frame = self._socket.recv(4096)
            except TimeoutError:
                break
            if frame[:6] == self.mac and frame[12:14] in (b"\x08\x00", b"\x86\xdd") and (read := parse(frame[14:])):
                found.append(read)
        return found


def _checksum(octets: bytes) -> int:
    octets += b"\0" * (len(octets) % 2)
    total: int = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
