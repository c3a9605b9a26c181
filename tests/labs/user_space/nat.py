# SPDX-License-Identifier: Apache-2.0
"""A NAT44 of UDP over IPv4 in Python: packets come by a TUN interface, and leave by it with another address."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import sys
from pathlib import Path

_TUNSETIFF = 0x400454CA
_IFF_TUN_NO_PI = 0x1001


def _changed(packet: bytearray, at: int, address: bytes) -> None:
    """Write an address, and what follows from it for both checksums (RFC 1624)."""
    old, new = struct.unpack("!HH", packet[at : at + 4]), struct.unpack("!HH", address)
    for place in (10, 26):
        total = (~struct.unpack_from("!H", packet, place)[0] & 0xFFFF) + sum(~word & 0xFFFF for word in old) + sum(new)
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        struct.pack_into("!H", packet, place, ~total & 0xFFFF)
    packet[at : at + 4] = address


def _tell(number: int) -> None:
    """Write the number of connections to a file, as a whole."""
    Path("count.new").write_text(str(number), encoding="ascii")
    Path("count.new").rename("count")


def main(interface: str, outside: str) -> None:
    """Translate until killed. SIGUSR1 empties the table, SIGUSR2 asks for the number of connections."""
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH", interface.encode(), _IFF_TUN_NO_PI))
    own = socket.inet_aton(outside)
    hosts: dict[tuple[bytes, bytes, bytes], bytes] = {}
    signal.signal(signal.SIGUSR1, lambda *_: hosts.clear())
    signal.signal(signal.SIGUSR2, lambda *_: _tell(len(hosts)))
    _tell(0)
    while True:
        packet = bytearray(os.read(tun, 65536))
        if packet[0] != 0x45 or packet[9] != socket.IPPROTO_UDP:
            continue
        source, destination, ports = bytes(packet[12:16]), bytes(packet[16:20]), bytes(packet[20:24])
        if destination != own:
            hosts[destination, ports[2:], ports[:2]] = source
            _changed(packet, 12, own)
        elif (host := hosts.get((source, ports[:2], ports[2:]))) is not None:
            _changed(packet, 16, host)
        else:
            continue
        os.write(tun, packet)


if __name__ == "__main__":
    main(*sys.argv[1:])
