# SPDX-License-Identifier: Apache-2.0
"""A lab's tester ports in the hands of a test: what it sends, and what comes back from the device."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from typing import Self

from tests.labs.datagrams import Datagram, parse

from natgauge.labs.common.namespaces import inside
from natgauge.labs.contract import Port


class Tap:
    """One tester port: sends datagrams to the device, receives what comes from it."""

    def __init__(self, port: Port) -> None:
        self._gateway = port.gateway_mac or ""
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

    def send(self, datagrams: Iterable[Datagram], pause: float = 0.0) -> None:
        """Send them all, with `pause` seconds after each."""
        for datagram in datagrams:
            self._socket.send(datagram.frame(self.mac.hex(), self._gateway))
            if pause:
                time.sleep(pause)

    def receive(self, count: int, seconds: float = 20.0) -> list[Datagram]:
        """Return as soon as `count` UDP datagrams came to this port, or what came in `seconds`; checksums are right.

        Whoever expects fewer than `count` names the seconds. The usual ones are those of a host without a free core.
        """
        found: list[Datagram] = []
        deadline = time.monotonic() + seconds
        while len(found) < count and (left := deadline - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                frame = self._socket.recv(4096)
            except TimeoutError:
                break
            if frame[:6] == self.mac and (read := parse(frame)):
                assert read.checksums_right, read
                found.append(read)
        return found
