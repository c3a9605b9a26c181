# SPDX-License-Identifier: Apache-2.0
"""The two ports of the tester in an audit: send packets, wait for them, answer ARP and NDP, keep every frame.

Frames that decided a verdict have sentences, and become a capture. The ports of a lab are packet sockets, two for each
port. A filter in the kernel gives the first socket what an audit reads. The second one has the opposite filter and is
never read: the kernel counts for it the frames that it gets and has no room for.
"""

from __future__ import annotations

import ctypes
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple, Protocol, Self

from natgauge.audits.kit.packets import (
    ICMP,
    ICMPV6,
    TCP,
    UDP,
    Packet,
    checksummed,
    described,
    has_right_header,
    is_right,
    read_packet,
)
from natgauge.errors import HostError, UnreachableError
from natgauge.labs.common.namespaces import inside
from natgauge.labs.contract import Port
from natgauge.words import Address, Side

#: Blocks, options and directions of the pcapng format (draft-ietf-opsawg-pcapng).
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_COMMENT, _NAME, _FLAGS = 1, 2, 2
_INBOUND, _OUTBOUND = 1, 2
_ETHERNET: Final = 1
#: Interfaces of the capture, in order.
_INTERFACES: Final[tuple[Side, ...]] = ("initiator", "responder")


@dataclass(slots=True)
class CapturedFrame:
    """One IP frame that was sent or received.

    Attributes:
        before, behind: what its sentence says before and behind the packet; both empty = the frame decided nothing.
    """

    side: Side
    seconds: float
    octets: bytes
    packet: Packet
    sent: bool
    before: str = ""
    behind: str = ""
    damaged: bool = False

    @property
    def is_told(self) -> bool:
        """Whether it has a sentence."""
        return bool(self.before or self.behind)

    @property
    def sentence(self) -> str:
        """What the frame is, for people, made only where it is read: of most frames nobody does."""
        return f"{self.before}{described(self.packet)}{self.behind}" if self.is_told else ""


#: In place of a frame that no verdict needs any more.
FORGOTTEN: Final = CapturedFrame("initiator", 0.0, b"", Packet(IPv4Address(0), IPv4Address(0), 0, b""), sent=True)


def pcapng(frames: Iterable[CapturedFrame]) -> bytes:
    """Return a capture of these frames; interface 0 is the Initiator's port, interface 1 the Responder's."""
    blocks = [_block(_SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for side in _INTERFACES:
        options = _option(_NAME, side.encode()) + _option(0, b"")
        blocks.append(_block(_INTERFACE, struct.pack("<HHI", _ETHERNET, 0, 0) + options))
    for frame in frames:
        microseconds = int(frame.seconds * 1e6)
        size = len(frame.octets)
        head = struct.pack(
            "<IIIII", _INTERFACES.index(frame.side), microseconds >> 32, microseconds & 0xFFFFFFFF, size, size
        )
        options = _option(_COMMENT, frame.sentence.encode()) if frame.sentence else b""
        options += _option(_FLAGS, struct.pack("<I", _OUTBOUND if frame.sent else _INBOUND)) + _option(0, b"")
        blocks.append(_block(_PACKET, head + _padded(frame.octets) + options))
    return b"".join(blocks)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _padded(octets: bytes) -> bytes:
    return octets + b"\0" * (-len(octets) % 4)


#: Frames that a gateway may send for each frame of the audit: the packet in two fragments, or with an ICMP error.
_EACH: Final = 2
#: Other frames that disturb no verdict: a burst, and a rate in frames/s. Each is as many frames as the kernel's queue
#: of a port has room for (net.core.netdev_max_backlog, 1000).
_BURST, _RATE = 1000, 1000
_IPV4, _ARP, _IPV6 = 0x0800, 0x0806, 0x86DD
_ARP_IPV4: Final = struct.pack("!HHBB", 1, _IPV4, 6, 4)
_BROADCAST: Final = b"\xff" * 6
_SOLICITATION, _ADVERTISEMENT = 135, 136
#: Types of NDP's messages, and octets of the shortest of the two above (RFC 4861 section 4).
_NEIGHBOURS: Final = range(133, 138)
_SOLICITATION_OCTETS: Final = 24
#: Override flag and solicited flag of an advertisement (RFC 4861 section 4.4).
_SOLICITED_OVERRIDE: Final = 0x60000000
#: Shortest frame without FCS; shorter ones are padded as a network card does.
_LEAST_OCTETS: Final = 60
#: Received frames that are kept for a verdict, and their octets: more than twice the flows of the largest crowd.
_MOST_KEPT, _MOST_OCTETS = 1 << 17, 1 << 24
#: Frames with a wrong checksum that are evidence of one verdict at most: a device may send them without end.
_MOST_DAMAGED: Final = 1000
_RESOLVE_TRIES: Final = 5
_RESOLVE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Missed:
    """Frames at the tester's ports that an audit does not read.

    Attributes:
        others: frames to other hosts, or of protocols that are no part of an audit; a filter in the kernel drops them.
    """

    others: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class PortTraffic:
    """Counts of an audit so far."""

    seconds: float
    sent: int
    arrived: int
    dropped: int

    def flood(self, since: PortTraffic) -> str:
        """Return why nothing that was not seen since an earlier time can be trusted, as a sentence; empty = it can."""
        sent, arrived = self.sent - since.sent, self.arrived - since.arrived
        dropped, seconds = self.dropped - since.dropped, self.seconds - since.seconds
        if not dropped and arrived <= _EACH * sent + _BURST + _RATE * seconds:
            return ""
        return (
            f"other traffic flooded the tester's ports: {arrived} frames arrived while the audit sent {sent}, and "
            f"{dropped} of them were lost before the audit saw them"
        )


class ArrivedFrame(NamedTuple):
    """A frame as it arrives at a port.

    Attributes:
        is_partial: whether the kernel left the segment's checksum to a network card, which a virtual link lacks. A
            host that gets such a frame takes it.
    """

    side: Side
    octets: bytes
    is_partial: bool = False


class TesterPorts(Protocol):
    """The tester's two ports. Tests replace them by a simulated gateway with a clock of its own."""

    def now(self) -> float:
        """Return the seconds of a monotonic clock."""

    def mac(self, side: Side) -> bytes:
        """Return the address of a port."""

    def send(self, side: Side, octets: bytes) -> None:
        """Send a frame."""

    def receive(self, until: float) -> ArrivedFrame | None:
        """Return the next frame that arrives at either port; None = none arrived until `until` of the clock.

        It returns None some time after `until` even if frames arrive without end.
        """

    def missed(self) -> Missed:
        """Return the number of frames so far that `receive` does not return."""


@dataclass(frozen=True, slots=True)
class AuditSide:
    """One side of the gateway.

    Attributes:
        gateway_mac: destination of frames; None = ARP or NDP finds it.
    """

    hosts: tuple[Address, ...]
    gateway: Address | None
    gateway_mac: bytes | None = None


def sides(*, up: bool) -> tuple[Side, Side]:
    """Return the sending side and the receiving side of a direction."""
    return ("initiator", "responder") if up else ("responder", "initiator")


class Network:
    """The tester's ports with the tester's hosts behind them.

    Attributes:
        frames: IP frames that were sent or received, in order. Frames with a sentence are evidence. In place of a
            forgotten frame there is one that says nothing.
    """

    def __init__(self, ports: TesterPorts, sides: Mapping[Side, AuditSide]) -> None:
        self.ports = ports
        self.sides = dict(sides)
        self._hosts = {side: frozenset(there.hosts) for side, there in sides.items()}
        self.frames: list[CapturedFrame] = []
        self._is_aside = self._takes_damaged = False
        self._sent = self._received = self._not_kept = 0
        self._kept = self._octets = self._forgotten = self._damaged = 0

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Send and wait for frames that decide nothing within the `with` block: they get no sentence."""
        before, self._is_aside = self._is_aside, True
        try:
            yield
        finally:
            self._is_aside = before

    @contextmanager
    def damaged_too(self) -> Iterator[None]:
        """Take frames with a wrong checksum as well within the `with` block: what the gateway sent is the question."""
        before, self._takes_damaged = self._takes_damaged, True
        try:
            yield
        finally:
            self._takes_damaged = before

    def now(self) -> float:
        """Return the seconds of the ports' clock."""
        return self.ports.now()

    def resolve(self) -> None:
        """Find the gateway's link-layer address on both sides.

        Each IPv6 host solicits the gateway, as a host does before its first packet. VPP's NAT64 learns its neighbours
        only from solicitations: it drops advertisements to its link-local address.
        """
        for side, there in self.sides.items():
            for _ in range(_RESOLVE_TRIES):
                if self.sides[side].gateway_mac is None and there.gateway is not None:
                    self._ask(side, there.hosts[0], there.gateway)
                    until = self.now() + _RESOLVE_SECONDS
                    while self.sides[side].gateway_mac is None and self._receive(until):
                        pass
            if self.sides[side].gateway_mac is None:
                raise UnreachableError(
                    f"audit: the gateway does not answer for {there.gateway} at the {side}'s port; look at its "
                    "interface and address on that side"
                )
            if there.gateway is not None and there.gateway.version == 6:
                for host in there.hosts:
                    self._ask(side, host, there.gateway)

    def send(self, side: Side, packet: Packet, note: str = "") -> None:
        """Send a packet to the gateway; `note` says what is special about it."""
        kind = _IPV4 if packet.source.version == 4 else _IPV6
        octets = self._put(side, self.sides[side].gateway_mac or _BROADCAST, kind, packet.octets())
        self._sent += 1
        frame = CapturedFrame(side, time.time(), octets, packet, sent=True)
        self.frames.append(frame)
        self._explain(frame, "sends", f": {note}" * bool(note))

    def load(self) -> PortTraffic:
        """Return how many frames were sent and arrived so far."""
        missed = self.ports.missed()
        arrived = self._received + missed.others + missed.dropped
        return PortTraffic(self.now(), self._sent, arrived, missed.dropped + self._not_kept)

    def forget(self) -> None:
        """Forget the frames so far that are no evidence; the numbers of all frames stay."""
        for number in range(self._forgotten, len(self.frames)):
            if not self.frames[number].is_told:
                self.frames[number] = FORGOTTEN
        self._forgotten, self._kept, self._octets, self._damaged = len(self.frames), 0, 0, 0

    def received(self, frame: CapturedFrame) -> None:
        """Say of a frame that arrived that it was looked for."""
        self._explain(frame, "receives")

    def _explain(self, frame: CapturedFrame, verb: str, note: str = "") -> None:
        if not self._is_aside:
            host = "inside" if frame.side == "initiator" else "outside"
            frame.before, frame.behind = f"the {host} {verb} ", note

    def arrived(self, since: int, side: Side) -> list[CapturedFrame]:
        """Return the frames that arrived at a side, without the first `since` frames of the network.

        As a host does, it leaves out frames with a wrong checksum (RFC 1122 sections 3.2.1.2, 4.1.3.4 and 4.2.2.7).
        """
        return [
            frame
            for frame in self.frames[since:]
            if frame.side == side and not frame.sent and (self._takes_damaged or not frame.damaged)
        ]

    def damage(self, frame: CapturedFrame) -> None:
        """Say of a frame that arrived that its checksum is wrong; it is evidence also where frames decide nothing."""
        frame.damaged, self._damaged = True, self._damaged + 1
        if self._damaged <= _MOST_DAMAGED:
            frame.before, frame.behind = "", " comes with a wrong checksum"

    def wait(self, side: Side, wanted: Callable[[Packet], bool], seconds: float, *, since: int) -> CapturedFrame | None:
        """Return the first frame that arrives with a packet that is wanted.

        `since` is `len(network.frames)` before the question was sent.
        """
        until = self.now() + seconds
        while True:
            for frame in self.arrived(since, side):
                if wanted(frame.packet):
                    self.received(frame)
                    return frame
            since = len(self.frames)
            if not self._receive(until):
                return None

    def pause(self, until: float) -> None:
        """Answer ARP and NDP until this time of the clock."""
        while self._receive(until):
            pass

    def _receive(self, until: float) -> bool:
        """Take the next frame; whether there was one until this time of the clock."""
        received = self.ports.receive(until)
        if received is not None:
            self._take(*received)
        return received is not None

    def _take(self, side: Side, octets: bytes, is_partial: bool = False) -> None:  # noqa: FBT001, FBT002 - a tuple's
        self._received += 1
        kind, body = int.from_bytes(octets[12:14], "big"), octets[14:]
        if kind == _ARP:
            self._answer_arp(side, body)
            return
        packet = read_packet(body) if kind in (_IPV4, _IPV6) else None
        is_ours = octets[:6] in (self.ports.mac(side), _BROADCAST)
        # Solicitations come to a multicast address.
        if packet is None or not (is_ours or kind == _IPV6):
            return
        if self._answer_solicitation(side, octets[6:12], packet) or not is_ours:
            return
        # As a host does: what is not for one of its addresses, or of a protocol that it does not know, it drops.
        known = packet.protocol in (UDP, TCP, ICMP[packet.source.version])
        if known and packet.destination in self._hosts[side]:
            frame = CapturedFrame(side, time.time(), octets, packet, sent=False)
            # The checksum of a segment in fragments is looked at where they are put together.
            if not has_right_header(body) or not (is_partial or packet.is_fragment or is_right(packet)):
                self.damage(frame)
            self._keep(frame)

    def _keep(self, frame: CapturedFrame) -> None:
        if self._kept >= _MOST_KEPT or self._octets >= _MOST_OCTETS:
            self._not_kept += 1
            return
        self._kept += 1
        self._octets += len(frame.octets)
        self.frames.append(frame)

    def _put(self, side: Side, destination: bytes, kind: int, body: bytes) -> bytes:
        octets = (destination + self.ports.mac(side) + kind.to_bytes(2, "big") + body).ljust(_LEAST_OCTETS, b"\0")
        self.ports.send(side, octets)
        return octets

    # Neighbours

    def _ask(self, side: Side, own: Address, gateway: Address) -> None:
        mac = self.ports.mac(side)
        if gateway.version == 4:
            body = _ARP_IPV4 + struct.pack("!H", 1) + mac + own.packed + bytes(6) + gateway.packed
            self._put(side, _BROADCAST, _ARP, body)
            return
        group = IPv6Address(int(IPv6Address("ff02::1:ff00:0")) | int(gateway) & 0xFFFFFF)
        message = struct.pack("!BBHI", _SOLICITATION, 0, 0, 0) + gateway.packed + b"\x01\x01" + mac
        self._send_neighbour(side, b"\x33\x33" + group.packed[12:], own, group, message)

    def _answer_arp(self, side: Side, body: bytes) -> None:
        if len(body) < 28 or body[:6] != _ARP_IPV4:
            return
        operation, sender_mac, sender, target = body[6:8], body[8:14], body[14:18], body[24:28]
        there = self.sides[side]
        if there.gateway is not None and sender == there.gateway.packed and there.gateway_mac is None:
            self.sides[side] = replace(there, gateway_mac=sender_mac)
        if operation == b"\0\x01" and sender != bytes(4) and IPv4Address(target) in self._hosts[side]:
            mac = self.ports.mac(side)
            answer = _ARP_IPV4 + struct.pack("!H", 2) + mac + target + sender_mac + sender
            self._put(side, sender_mac, _ARP, answer)

    def _answer_solicitation(self, side: Side, sender_mac: bytes, packet: Packet) -> bool:
        """Answer a neighbour solicitation, take an advertisement; whether the packet was one of NDP's."""
        payload = packet.payload
        if packet.protocol != ICMPV6 or packet.source.version != 6 or not payload or payload[0] not in _NEIGHBOURS:
            return False
        if len(payload) < _SOLICITATION_OCTETS or packet.is_fragment:
            return True
        there, target = self.sides[side], IPv6Address(payload[8:24])
        if payload[0] == _ADVERTISEMENT and target == there.gateway and there.gateway_mac is None:
            self.sides[side] = replace(there, gateway_mac=sender_mac)
        if payload[0] == _SOLICITATION and target in self._hosts[side] and int(packet.source):
            message = struct.pack("!BBHI", _ADVERTISEMENT, 0, 0, _SOLICITED_OVERRIDE) + target.packed
            message += b"\x02\x01" + self.ports.mac(side)
            self._send_neighbour(side, sender_mac, target, packet.source, message)
        return True

    def _send_neighbour(self, side: Side, mac: bytes, source: Address, destination: Address, message: bytes) -> None:
        packet = replace(checksummed(source, destination, ICMPV6, message, 2), ttl=255)
        self._put(side, mac, _IPV6, packet.octets())


# The filter of a port, and its packet sockets

_SO_ATTACH_FILTER: Final = 26
#: Instructions: load a word, half or octet at a place; jump if equal, above or equal; return (linux/filter.h).
_LOAD_WORD, _LOAD_HALF, _LOAD_OCTET = 0x20, 0x28, 0x30
_IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x15, 0x35, 0x06
_ALL: Final = 0xFFFFFFFF
#: Place of a value that is not in the frame: whether the kernel took a VLAN tag out of it (SKF_AD_VLAN_TAG_PRESENT).
_VLAN_TAG: Final = 0xFFFFF000 + 48
#: Places of the frame's type, and of an IPv6 packet's protocol and ICMPv6 type.
_ETHERTYPE, _NEXT_HEADER, _ICMPV6_TYPE = 12, 20, 54
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
        ("", (_IF_EQUAL, ICMPV6, "", "address")),
        ("", (_LOAD_OCTET, _ICMPV6_TYPE, "", "")),
        ("", (_IF_AT_LEAST, _NEIGHBOURS.start, "", "address")),
        ("", (_IF_AT_LEAST, _NEIGHBOURS.stop, "address", _TAKE)),
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
    opened.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(code) // 8, ctypes.addressof(memory)))


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
