# SPDX-License-Identifier: Apache-2.0
"""The tester's ports of a lab as packet sockets."""

from __future__ import annotations

import select
import socket
import time
from contextlib import ExitStack, suppress
from typing import Final, Self

from natgauge.errors import HostError
from natgauge.labs.common.namespaces import inside
from natgauge.labs.contract import Lab, Port
from natgauge.words import Side

_EVERY_PROTOCOL: Final = 0x0003
_RECEIVE_OCTETS: Final = 1 << 22
_LONGEST_FRAME: Final = 65_536
#: Packet sockets would see the packets that this host sent, too (packet(7); since Linux 4.20).
_SOL_PACKET, _PACKET_IGNORE_OUTGOING = 263, 23


class PacketSockets:
    """Both ports of a lab. Use it as a context manager inside of the lab's."""

    def __init__(self, lab: Lab) -> None:
        self._ports: dict[Side, Port] = {"initiator": lab.initiator, "responder": lab.responder}
        self._sockets: dict[Side, socket.socket] = {}
        self._poll = select.poll()
        self._open = ExitStack()

    def __enter__(self) -> Self:
        """Open the sockets.

        Raises:
            HostError: a socket cannot be opened.
        """
        for side, port in self._ports.items():
            try:
                opened = inside(port.netns, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
                self._sockets[side] = self._open.enter_context(opened)
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_OCTETS)
                opened.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
                opened.bind((port.interface, _EVERY_PROTOCOL))
            except OSError as error:
                self._open.close()
                raise HostError(f"audit: port {port.interface}: no packet socket: {error.strerror}") from error
            opened.settimeout(0)
            self._poll.register(opened, select.POLLIN)
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def now(self) -> float:
        """Return the seconds of the monotonic clock."""
        return time.monotonic()

    def mac(self, side: Side) -> bytes:
        """Return the address of a port."""
        address: bytes = self._sockets[side].getsockname()[4]
        return address

    def send(self, side: Side, octets: bytes) -> None:
        """Send a frame.

        Raises:
            HostError: the port is down.
        """
        try:
            self._sockets[side].send(octets)
        except OSError as error:
            name = self._ports[side].interface
            raise HostError(f"audit: port {name}: a frame of {len(octets)} octets: {error.strerror}") from error

    def receive(self, until: float) -> tuple[Side, bytes] | None:
        """Return the next frame that arrives at either port; None = none arrived until `until`."""
        while True:
            for side, opened in self._sockets.items():
                with suppress(BlockingIOError):
                    return side, opened.recv(_LONGEST_FRAME)
            left = until - time.monotonic()
            if left <= 0:
                return None
            self._poll.poll(max(1.0, left * 1000))
