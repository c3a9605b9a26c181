# SPDX-License-Identifier: Apache-2.0
"""A process of a gateway: returns what a TUN interface gives it, every third packet excepted, or too slowly."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import time

_TUNSETIFF = 0x400454CA
_IFF_TUN_NO_PI = 0x1001


def main(interface: str, behaviour: str) -> None:
    """Handle packets until killed."""
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH", interface.encode(), _IFF_TUN_NO_PI))
    number = 0
    while True:
        packet = os.read(tun, 65536)
        number += 1
        if behaviour == "slow":
            time.sleep(0.002)
        elif number % 3 == 0:
            continue
        os.write(tun, packet)


if __name__ == "__main__":
    main(*sys.argv[1:])
