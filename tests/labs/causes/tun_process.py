# SPDX-License-Identifier: Apache-2.0
"""A process of a gateway: returns what a TUN interface gives it, but not all of it, or too slowly.

"drop": every third packet is lost. "slow": each packet takes 2 ms. "limit": the first 1,500 connections pass. "each":
the first 300 connections of each source pass. Connections are forgotten when none comes for a tenth of a second.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import time

_TUNSETIFF = 0x400454CA
_IFF_TUN_NO_PI = 0x1001
_MOST = {"limit": 1500, "each": 300}
_FORGETS = 0.1


def main(interface: str, behaviour: str) -> None:
    """Handle packets until killed."""
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH", interface.encode(), _IFF_TUN_NO_PI))
    number, last = 0, 0.0
    held: dict[bytes, set[bytes]] = {}
    while True:
        packet = os.read(tun, 65536)
        number += 1
        now, before, last = time.monotonic(), last, time.monotonic()
        if now - before > _FORGETS:
            held.clear()
        if behaviour == "slow":
            time.sleep(0.002)
        elif behaviour == "drop":
            if number % 3 == 0:
                continue
        else:
            group = packet[12:16] if behaviour == "each" else b""
            known, connection = held.setdefault(group, set()), packet[12:24]
            if connection not in known and len(known) >= _MOST[behaviour]:
                continue
            known.add(connection)
        os.write(tun, packet)


if __name__ == "__main__":
    main(*sys.argv[1:])
