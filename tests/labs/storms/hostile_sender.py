# SPDX-License-Identifier: Apache-2.0
"""A process of a device that sends hostile frames out of the device's own ports: `hostile_sender.py COUNT RATE FILE`.

COUNT frames, RATE of them per second, are random, of odd protocols and lengths, with a VLAN tag, or forged: frames that
the device has just sent, with other octets in the payload and a right checksum. None of them is a frame of the tester.
FILE has the number of frames that were sent so far. The process uses the time that nobody else needs.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import sys
import time
from collections import deque
from pathlib import Path

#: Frames between two looks at the clock, and forwarded frames that are kept as patterns.
_AT_ONCE, _KEPT = 64, 64
_EVERY_PROTOCOL = 3
_OUTGOING = 4
_UDP, _PAYLOAD = 17, 42


def checksum(octets: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    octets += b"\0" * (len(octets) % 2)
    total: int = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def forged(frame: bytes, chance: random.Random) -> bytes:
    """Return an IPv4 frame with UDP and other octets in its first 18 octets of payload, and a right checksum."""
    octets = bytearray(frame)
    for at in chance.sample(range(18), chance.randint(1, 4)):
        octets[_PAYLOAD + at] ^= chance.randint(1, 255)
    length = int.from_bytes(octets[38:40], "big")
    octets[40:42] = bytes(2)
    pseudo = bytes(octets[26:34]) + struct.pack("!HH", _UDP, length)
    octets[40:42] = struct.pack("!H", checksum(pseudo + bytes(octets[34 : 34 + length])) or 0xFFFF)
    return bytes(octets)


def other(frame: bytes, chance: random.Random) -> bytes:
    """Return a frame to the same port of the tester that is none of a test."""
    head = frame[:12]
    body = chance.randbytes(chance.choice((0, 1, 20, 40, 46, 100, 1000, 1480)))
    kinds = (
        b"\x81\x00\x00\x07\x08\x00" + frame[14:],
        b"\x88\xcc" + body,
        b"\x86\xdd" + body,
        b"\x08\x06" + body,
        chance.randbytes(2) + body,
        # IPv4 of another protocol, with the addresses of the test.
        b"\x08\x00" + frame[14:23] + bytes([chance.choice((1, 2, 6, 58, 132))]) + frame[24:34] + body,
    )
    return head + chance.choice(kinds)


def main() -> None:
    """Send frames at their rate, until all are sent."""
    count, rate, told = int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    chance = random.Random(count)  # noqa: S311 - any frames will do
    ports = []
    for name in (os.environ["NG_INSIDE"], os.environ["NG_OUTSIDE"]):
        port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_EVERY_PROTOCOL))
        port.bind((name, 0))
        port.settimeout(0)
        ports.append((port, deque[bytes](maxlen=_KEPT)))
    sent, began = 0, time.monotonic()
    while sent < count:
        for port, kept in ports:
            for _ in range(_AT_ONCE):
                try:
                    frame, address = port.recvfrom(2048)
                except BlockingIOError:
                    break
                if address[2] == _OUTGOING and frame[12:14] == b"\x08\0" and frame[23] == _UDP and len(frame) >= 60:
                    kept.append(frame)
            for _ in range(_AT_ONCE if kept else 0):
                pattern = chance.choice(kept)
                try:
                    port.send(forged(pattern, chance) if chance.random() < 0.5 else other(pattern, chance))
                    sent += 1
                except OSError:
                    pass
        told.write_text(str(sent))
        ahead = sent / rate - (time.monotonic() - began)
        time.sleep(max(0.001, ahead))
    signal_never = 3600
    while True:
        time.sleep(signal_never)


if __name__ == "__main__":
    main()
