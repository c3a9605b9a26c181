# SPDX-License-Identifier: Apache-2.0
"""The two ports of the tester in an audit: send packets, wait for packets, answer ARP and NDP, keep every frame."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, Protocol

from natgauge.audits.kit.flows import described
from natgauge.audits.kit.packets import ICMPV6, Packet, read_packet, upper_checksum
from natgauge.audits.kit.pcapng import CapturedFrame
from natgauge.errors import UnreachableError
from natgauge.words import Address, Side

SIDES: Final[tuple[Side, ...]] = ("initiator", "responder")
_IPV4, _ARP, _IPV6 = b"\x08\x00", b"\x08\x06", b"\x86\xdd"
_ARP_IPV4: Final = struct.pack("!HHBB", 1, 0x0800, 6, 4)
_BROADCAST: Final = b"\xff" * 6
_SOLICITATION, _ADVERTISEMENT = 135, 136
#: Override flag and solicited flag of an advertisement (RFC 4861 section 4.4).
_SOLICITED_OVERRIDE: Final = 0x60000000
#: Shortest frame without FCS; shorter ones are padded as a network card does.
_LEAST_OCTETS: Final = 60
_RESOLVE_TRIES: Final = 5
_RESOLVE_SECONDS: Final = 1.0


class TesterPorts(Protocol):
    """The tester's two ports. Tests replace them by a simulated gateway with a clock of its own."""

    def now(self) -> float:
        """Return the seconds of a monotonic clock."""

    def epoch(self) -> float:
        """Return the seconds since the Epoch, for captures."""

    def mac(self, side: Side) -> bytes:
        """Return the address of a port."""

    def send(self, side: Side, octets: bytes) -> None:
        """Send a frame."""

    def receive(self, until: float) -> tuple[Side, bytes] | None:
        """Return the next frame that arrives at either port; None = none arrived until `until` of the clock."""


@dataclass(frozen=True, slots=True)
class AuditSide:
    """One side of the gateway.

    Attributes:
        hosts: the tester's addresses on this side.
        gateway: the gateway's address on this side.
        gateway_mac: destination of frames; None = ARP or NDP finds it.
    """

    hosts: tuple[Address, ...]
    gateway: Address | None
    gateway_mac: bytes | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """A packet that arrived.

    Attributes:
        side: port at which it arrived.
        packet: the packet.
        number: its place in the frames of the network.
        seconds: its time of the ports' clock.
    """

    side: Side
    packet: Packet
    number: int
    seconds: float


def sides(*, up: bool) -> tuple[Side, Side]:
    """Return the sending side and the receiving side of a direction."""
    return ("initiator", "responder") if up else ("responder", "initiator")


class Network:
    """The tester's ports with the tester's hosts behind them.

    Attributes:
        frames: every IP frame that was sent or received, in order. Frames with a sentence are evidence.
        arrivals: every packet that arrived, in order.
    """

    def __init__(self, ports: TesterPorts, sides: Mapping[Side, AuditSide]) -> None:
        self.ports = ports
        self.sides = dict(sides)
        self.frames: list[CapturedFrame] = []
        self.arrivals: list[Arrival] = []
        self._is_aside = False

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Send and wait for frames that decide nothing within the `with` block: they get no sentence."""
        before, self._is_aside = self._is_aside, True
        try:
            yield
        finally:
            self._is_aside = before

    def now(self) -> float:
        """Return the seconds of the ports' clock."""
        return self.ports.now()

    def resolve(self) -> None:
        """Find the gateway's link-layer address on both sides.

        Raises:
            UnreachableError: the gateway does not answer.
        """
        for side, there in self.sides.items():
            for _ in range(_RESOLVE_TRIES):
                if self.sides[side].gateway_mac is None and there.gateway is not None:
                    self._ask(side, there.hosts[0], there.gateway)
                    self._pump(self.now() + _RESOLVE_SECONDS, lambda: self.sides[side].gateway_mac is not None)  # noqa: B023
            if self.sides[side].gateway_mac is None:
                raise UnreachableError(
                    f"audit: the gateway does not answer for {there.gateway} at the {side}'s port; look at its "
                    "interface and address on that side"
                )

    def send(self, side: Side, packet: Packet, note: str = "") -> None:
        """Send a packet to the gateway; `note` says what is special about it."""
        kind = _IPV4 if packet.source.version == 4 else _IPV6
        octets = self._put(side, self.sides[side].gateway_mac or _BROADCAST, kind, packet.octets())
        self.frames.append(CapturedFrame(side, self.ports.epoch(), octets, sent=True))
        if not self._is_aside:
            host = "inside" if side == "initiator" else "outside"
            self.explain(len(self.frames) - 1, f"the {host} sends {described(packet)}{f': {note}' * bool(note)}")

    def explain(self, number: int, sentence: str) -> None:
        """Say what a frame is; frames with a sentence are evidence."""
        self.frames[number] = replace(self.frames[number], sentence=sentence)

    def received(self, arrival: Arrival) -> None:
        """Say of an arrival that it is one that was looked for."""
        if not self._is_aside:
            host = "inside" if arrival.side == "initiator" else "outside"
            self.explain(arrival.number, f"the {host} receives {described(arrival.packet)}")

    def wait(self, side: Side, wanted: Callable[[Packet], bool], seconds: float, *, since: int) -> Arrival | None:
        """Return the first packet that is wanted after the first `since` arrivals.

        `since` is `len(network.arrivals)` before the question was sent.
        """
        seen = since
        found: Arrival | None = None

        def look() -> bool:
            nonlocal seen, found
            for arrival in self.arrivals[seen:]:
                seen += 1
                if arrival.side == side and wanted(arrival.packet):
                    found = arrival
                    return True
            return False

        self._pump(self.now() + seconds, look)
        if found is not None:
            self.received(found)
        return found

    def pause(self, until: float) -> None:
        """Answer ARP and NDP until this time of the clock."""
        self._pump(until, lambda: False)

    def _pump(self, until: float, done: Callable[[], bool]) -> None:
        while not done():
            received = self.ports.receive(until)
            if received is None:
                return
            self._take(*received)

    def _take(self, side: Side, octets: bytes) -> None:
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
        self.frames.append(CapturedFrame(side, self.ports.epoch(), octets))
        self.arrivals.append(Arrival(side, packet, len(self.frames) - 1, self.now()))

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
        if operation == b"\0\x01" and sender != bytes(4) and IPv4Address(target) in there.hosts:
            mac = self.ports.mac(side)
            answer = _ARP_IPV4 + struct.pack("!H", 2) + mac + target + sender_mac + sender
            self._put(side, sender_mac, _ARP, answer)

    def _answer_solicitation(self, side: Side, sender_mac: bytes, packet: Packet) -> bool:
        """Answer a neighbour solicitation, take an advertisement; whether the packet was one of NDP's."""
        if packet.protocol != ICMPV6 or not 133 <= packet.payload[0] <= 137:
            return False
        there, target = self.sides[side], ip_address(packet.payload[8:24]) if len(packet.payload) >= 24 else None
        if packet.payload[0] == _ADVERTISEMENT and target == there.gateway and there.gateway_mac is None:
            self.sides[side] = replace(there, gateway_mac=sender_mac)
        if packet.payload[0] == _SOLICITATION and target in there.hosts and int(packet.source):
            message = struct.pack("!BBHI", _ADVERTISEMENT, 0, 0, _SOLICITED_OVERRIDE) + packet.payload[8:24]
            message += b"\x02\x01" + self.ports.mac(side)
            self._send_neighbour(side, sender_mac, ip_address(packet.payload[8:24]), packet.source, message)
        return True

    def _send_neighbour(self, side: Side, mac: bytes, source: Address, destination: Address, message: bytes) -> None:
        value = struct.pack("!H", upper_checksum(source, destination, ICMPV6, message))
        packet = Packet(source, destination, ICMPV6, message[:2] + value + message[4:], ttl=255)
        self._put(side, mac, _IPV6, packet.octets())
