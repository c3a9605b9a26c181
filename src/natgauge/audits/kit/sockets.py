# SPDX-License-Identifier: Apache-2.0
"""The tester's ports of a lab as packet sockets.

Each port has two sockets. A filter in the kernel gives the first socket what an audit reads. The second one has the
opposite filter and is never read: the kernel counts for it the frames that it gets and has no room for.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import deque
from contextlib import ExitStack, suppress
from typing import Final, Protocol, Self

from natgauge.audits.kit.other_traffic import Missed
from natgauge.audits.kit.port_filter import attach
from natgauge.errors import HostError
from natgauge.labs.common.namespaces import inside
from natgauge.labs.contract import Port
from natgauge.words import Side

_EVERY_PROTOCOL: Final = 0x0003
_RECEIVE_OCTETS: Final = 1 << 20
_LONGEST_FRAME: Final = 65_536
#: Frames that are read from a socket at once while there is time, and the most that its queue has room for.
_AT_ONCE, _MOST_QUEUED = 64, 4096
#: Sets the size of a queue also above net.core.rmem_max, which has room for some hundred frames only (socket(7)).
_SO_RCVBUFFORCE: Final = 33
#: Packet sockets would see the packets that this host sent, too (packet(7); since Linux 4.20).
_SOL_PACKET, _PACKET_STATISTICS, _PACKET_IGNORE_OUTGOING = 263, 6, 23


class TwoPorts(Protocol):
    """A lab with the tester's two ports."""

    @property
    def initiator(self) -> Port:
        """The port of the inside."""

    @property
    def responder(self) -> Port:
        """The port of the outside."""


class PacketSockets:
    """Both ports of a lab. Use it as a context manager inside of the lab's."""

    def __init__(self, lab: TwoPorts) -> None:
        self._ports: dict[Side, Port] = {"initiator": lab.initiator, "responder": lab.responder}
        self._sockets: dict[Side, socket.socket] = {}
        self._counters: list[socket.socket] = []
        self._queue: deque[tuple[Side, bytes]] = deque()
        self._emptied_for: float | None = None
        self._others = self._dropped = 0
        self._poll = select.poll()
        self._open = ExitStack()

    def __enter__(self) -> Self:
        """Open the sockets."""
        for side, port in self._ports.items():
            try:
                self._sockets[side] = self._opened(port, wanted=True)
                self._counters.append(self._opened(port, wanted=False))
            except OSError as error:
                self._open.close()
                raise HostError(f"audit: port {port.interface}: no packet socket: {error.strerror}") from error
            self._poll.register(self._sockets[side], select.POLLIN)
        self.missed()
        self._others = self._dropped = 0
        return self

    def _opened(self, port: Port, *, wanted: bool) -> socket.socket:
        opened = inside(port.netns, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
        self._open.enter_context(opened)
        opened.settimeout(0)
        opened.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_OCTETS if wanted else 0)
        # Protocol 0: the socket receives nothing before it has its filter.
        opened.bind((port.interface, 0))
        attach(opened, opened.getsockname()[4], wanted=wanted)
        opened.bind((port.interface, _EVERY_PROTOCOL))
        return opened

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
        """Send a frame."""
        try:
            self._sockets[side].send(octets)
        except OSError as error:
            name = self._ports[side].interface
            raise HostError(f"audit: port {name}: a frame of {len(octets)} octets: {error.strerror}") from error

    def receive(self, until: float) -> tuple[Side, bytes] | None:
        """Return the next frame that arrives at either port; None = none arrived until `until`.

        After `until` it reads what the queues hold then, once, and no frame that arrives later.
        """
        while not self._queue:
            left = until - time.monotonic()
            if left > 0:
                self._read(_AT_ONCE)
                if not self._queue:
                    self._poll.poll(max(1.0, left * 1000))
            elif self._emptied_for == until:
                return None
            else:
                self._emptied_for = until
                self._read(_MOST_QUEUED)
        return self._queue.popleft()

    def _read(self, most: int) -> None:
        for side, opened in self._sockets.items():
            with suppress(BlockingIOError):
                for _ in range(most):
                    self._queue.append((side, opened.recv(_LONGEST_FRAME)))

    def missed(self) -> Missed:
        """Return the number of frames so far that the filter dropped, and that found no room in a queue."""
        self._others += sum(_statistics(counter)[0] for counter in self._counters)
        self._dropped += sum(_statistics(opened)[1] for opened in self._sockets.values())
        return Missed(self._others, self._dropped)


def _statistics(opened: socket.socket) -> tuple[int, int]:
    """Return frames that arrived, and those of them that found no room, since the last call (packet(7))."""
    arrived, dropped = struct.unpack("II", opened.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
    return arrived, dropped
