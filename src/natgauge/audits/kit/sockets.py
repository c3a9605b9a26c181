# SPDX-License-Identifier: Apache-2.0
"""The tester's ports of a lab as packet sockets.

Each port has two sockets. A filter in the kernel gives the first socket what an audit reads. The second one has the
opposite filter and is never read: the kernel counts for it the frames that it gets and has no room for.
"""

from __future__ import annotations

import ctypes
import select
import socket
import struct
import time
from collections import deque
from contextlib import ExitStack, suppress
from typing import Final, Self

from natgauge.audits.kit.network import ArrivedFrame, Missed
from natgauge.errors import HostError
from natgauge.labs.common.namespaces import inside
from natgauge.labs.contract import Port
from natgauge.words import Side

_SO_ATTACH_FILTER: Final = 26
#: Instructions: load a word, half or octet at a place; jump if equal, above or equal; return (linux/filter.h).
_LOAD_WORD, _LOAD_HALF, _LOAD_OCTET = 0x20, 0x28, 0x30
_IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x15, 0x35, 0x06
_ALL: Final = 0xFFFFFFFF
#: Place of a value that is not in the frame: whether the kernel took a VLAN tag out of it (SKF_AD_VLAN_TAG_PRESENT).
_VLAN_TAG: Final = 0xFFFFF000 + 48
_ETHERTYPE, _IPV4, _ARP, _IPV6 = 12, 0x0800, 0x0806, 0x86DD
_NEXT_HEADER, _ICMPV6 = 20, 58
#: Place of ICMPv6's type; types of NDP's messages (RFC 4861 section 4).
_ICMPV6_TYPE, _FIRST_NDP, _BEHIND_NDP = 54, 133, 138
_TAKE, _LEAVE = "take", "leave"

#: Instruction, value, and where to go if the comparison holds and if it does not: a label, or "" = to the next one.
_Step = tuple[int, int, str, str]
_EVERY_PROTOCOL: Final = 0x0003
_RECEIVE_OCTETS: Final = 1 << 20
_LONGEST_FRAME: Final = 65_536
#: Frames that are read from a socket at once while there is time, and the most that its queue has room for.
_AT_ONCE, _MOST_QUEUED = 64, 4096
#: Sets the size of a queue also above net.core.rmem_max, which has room for some hundred frames only (socket(7)).
_SO_RCVBUFFORCE: Final = 33
#: Packet sockets would see the packets that this host sent, too (packet(7); since Linux 4.20).
_SOL_PACKET, _PACKET_STATISTICS, _PACKET_AUXDATA, _PACKET_IGNORE_OUTGOING = 263, 6, 8, 23
#: What the kernel tells of a frame (struct tpacket_auxdata), and the bit of its status that says that the kernel left
#: the checksum to a network card (linux/if_packet.h).
_AUXILIARY: Final = struct.Struct("=IIIHHHH")
_AUXILIARY_OCTETS: Final = socket.CMSG_SPACE(_AUXILIARY.size)
_CHECKSUM_NOT_READY: Final = 8


def _steps(mac: bytes) -> list[tuple[str, _Step]]:
    high, low = struct.unpack("!HI", mac)
    return [
        ("", (_LOAD_WORD, _VLAN_TAG, "", "")),
        ("", (_IF_EQUAL, 0, "", _LEAVE)),
        ("", (_LOAD_HALF, _ETHERTYPE, "", "")),
        ("", (_IF_EQUAL, _ARP, _TAKE, "")),
        ("", (_IF_EQUAL, _IPV4, "address", "")),
        ("", (_IF_EQUAL, _IPV6, "", _LEAVE)),
        ("", (_LOAD_OCTET, _NEXT_HEADER, "", "")),
        ("", (_IF_EQUAL, _ICMPV6, "", "address")),
        ("", (_LOAD_OCTET, _ICMPV6_TYPE, "", "")),
        ("", (_IF_AT_LEAST, _FIRST_NDP, "", "address")),
        ("", (_IF_AT_LEAST, _BEHIND_NDP, "address", _TAKE)),
        ("address", (_LOAD_WORD, 2, "", "")),
        ("", (_IF_EQUAL, low, "own", "")),
        ("", (_IF_EQUAL, _ALL, "", _LEAVE)),
        ("", (_LOAD_HALF, 0, "", "")),
        ("", (_IF_EQUAL, 0xFFFF, _TAKE, _LEAVE)),
        ("own", (_LOAD_HALF, 0, "", "")),
        ("", (_IF_EQUAL, high, _TAKE, _LEAVE)),
    ]


def program(mac: bytes, *, wanted: bool) -> bytes:
    """Return the filter for a port with this address.

    Args:
        wanted: whether the filter takes what an audit reads, or all other frames. Both leave out frames that are too
            short for a comparison.
    """
    steps = _steps(mac)
    ends = {_TAKE: len(steps), _LEAVE: len(steps) + 1}
    places = {label: number for number, (label, _) in enumerate(steps) if label} | ends
    octets = b""
    for number, (_, (code, value, then, otherwise)) in enumerate(steps):
        jumps = (places[label] - number - 1 if label else 0 for label in (then, otherwise))
        octets += struct.pack("=HBBI", code, *jumps, value)
    taken, left = (_ALL, 0) if wanted else (0, _ALL)
    return octets + struct.pack("=HBBI", _RETURN, 0, 0, taken) + struct.pack("=HBBI", _RETURN, 0, 0, left)


def attach(opened: socket.socket, mac: bytes, *, wanted: bool) -> None:
    """Attach the filter to a packet socket; arguments as of `program`."""
    code = program(mac, wanted=wanted)
    memory = ctypes.create_string_buffer(code)
    instructions = len(code) // 8
    opened.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", instructions, ctypes.addressof(memory)))


class PacketSockets:
    """Both ports of a lab. Use it as a context manager inside of the lab's."""

    def __init__(self, initiator: Port, responder: Port) -> None:
        self._ports: dict[Side, Port] = {"initiator": initiator, "responder": responder}
        self._sockets: dict[Side, socket.socket] = {}
        self._counters: list[socket.socket] = []
        self._queue: deque[ArrivedFrame] = deque()
        self._emptied_for: float | None = None
        self._others = self._dropped = 0
        self._poll = select.poll()
        self._open = ExitStack()

    def __enter__(self) -> Self:
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
        opened.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, int(wanted))
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

    def receive(self, until: float) -> ArrivedFrame | None:
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
                    octets, told, *_ = opened.recvmsg(_LONGEST_FRAME, _AUXILIARY_OCTETS)
                    self._queue.append(ArrivedFrame(side, octets, is_partial(told)))

    def missed(self) -> Missed:
        """Return the number of frames so far that the filter dropped, and that found no room in a queue."""
        self._others += sum(_statistics(counter)[0] for counter in self._counters)
        self._dropped += sum(_statistics(opened)[1] for opened in self._sockets.values())
        return Missed(self._others, self._dropped)


def is_partial(told: list[tuple[int, int, bytes]]) -> bool:
    """Whether the kernel left the checksum of a frame to a network card, by what it tells of the frame (packet(7))."""
    return any(
        level == _SOL_PACKET
        and kind == _PACKET_AUXDATA
        and len(octets) >= _AUXILIARY.size
        and bool(_AUXILIARY.unpack_from(octets)[0] & _CHECKSUM_NOT_READY)
        for level, kind, octets in told
    )


def _statistics(opened: socket.socket) -> tuple[int, int]:
    """Return frames that arrived, and those of them that found no room, since the last call (packet(7))."""
    arrived, dropped = struct.unpack("II", opened.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
    return arrived, dropped
