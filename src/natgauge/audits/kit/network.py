# SPDX-License-Identifier: Apache-2.0
"""The two ports of the tester in an audit: send packets, wait for packets, answer ARP and NDP, keep every frame."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple, Protocol

from natgauge.audits.kit.capture import FORGOTTEN, CapturedFrame
from natgauge.audits.kit.packets import (
    ICMP,
    ICMPV6,
    TCP,
    UDP,
    Packet,
    checksummed,
    has_right_header,
    is_right,
    read_packet,
)
from natgauge.errors import UnreachableError
from natgauge.words import Address, Side

#: Frames that a gateway may send for each frame of the audit: the packet in two fragments, or with an ICMP error.
_EACH: Final = 2
#: Other frames that disturb no verdict: a burst, and a rate in frames/s. Each is as many frames as the kernel's queue
#: of a port has room for (net.core.netdev_max_backlog, 1000).
_BURST, _RATE = 1000, 1000
_IPV4, _ARP, _IPV6 = b"\x08\x00", b"\x08\x06", b"\x86\xdd"
_ARP_IPV4: Final = struct.pack("!HHBB", 1, 0x0800, 6, 4)
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
        kind, body = octets[12:14], octets[14:]
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

    def _put(self, side: Side, destination: bytes, kind: bytes, body: bytes) -> bytes:
        octets = (destination + self.ports.mac(side) + kind + body).ljust(_LEAST_OCTETS, b"\0")
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
