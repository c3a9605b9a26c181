# SPDX-License-Identifier: Apache-2.0
"""What an examination does with a gateway: open flows, send along them, try to enter, and see what arrives."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from itertools import cycle
from typing import Any, Final, TypeVar

from natgauge.audits.kit.flows import Flow, SequenceNumber, after_syn, is_same, is_tcp, lone_packet
from natgauge.audits.kit.network import Network, sides
from natgauge.audits.kit.other_traffic import PortTraffic
from natgauge.audits.kit.packets import ACK, FIN, RST, SYN, UDP, Endpoint, Packet, embedded
from natgauge.audits.kit.pcapng import CapturedFrame
from natgauge.words import Address, Side, Transport

_T = TypeVar("_T")
#: A frame that does not arrive is sent again, because the host may stall or lose a frame.
TRIES: Final = 3
PATIENCE_SECONDS: Final = 1.0
#: Wait for a frame after the control frames that were sent behind it have arrived.
SETTLE_SECONDS: Final = 0.05
#: Ports of the inside, all even, and of the outside; ports that no rule treats in a special way.
_PORTS: Final = range(20_000, 60_002, 2)
_REMOTE_PORTS: Final = range(7_000, 20_000)
_UDP_HEADER_OCTETS: Final = 8
#: Inside hosts that an examination uses together. An audit with more of them goes on with others where a gateway
#: refuses these further flows.
TEAM: Final = 3


class NotSeenError(Exception):
    """An examination cannot reach a verdict; the text is the reason, without a full stop."""


class FloodError(NotSeenError):
    """Other traffic flooded the tester's ports during an examination."""


@dataclass(frozen=True, slots=True)
class Carried:
    """How a datagram went through a gateway.

    Attributes:
        packets: packets in which it arrived as it was sent, in their order; empty = it did not.
        is_changed: whether it arrived whole with other data.
    """

    packets: tuple[Packet, ...] = ()
    is_changed: bool = False

    def __str__(self) -> str:
        """What happened to it, as the end of a sentence."""
        return "was delivered" if self.packets else "arrived with other data" if self.is_changed else "was dropped"


def _from_any(ports: range) -> Iterator[int]:
    """Return an endless iterator over ports that begins at one of the first thousand."""
    start = secrets.randbelow(1000)
    return cycle((*ports[start:], *ports[:start]))


@dataclass(eq=False)
class Examiner:
    """Opens flows through the gateway and sees what arrives.

    All methods that wait for a frame which a gateway has to deliver, or for control frames, raise `NotSeenError` if
    the frame does not arrive.

    Attributes:
        network: the tester's ports.
        transport: transport of the verdict, and of flows for which no other one is named.
        prefix: NAT64 prefix in which the inside writes outside addresses; None = it writes them as they are.
        narrow: makes the MTU of the gateway's outside link smaller within its `with` block; None = not possible.
        mappings: most flows of a crowd (see `natgauge.audits.kit.crowd`).
        configured: the gateway's own settings in s, by name.
        timers: measured time-outs by name (see `natgauge.audits.kit.timers`).
        rival: inside host that last had the outside address of another one; None = none had.
        floods: how often other traffic at the tester's ports kept the examiner from a verdict.
    """

    network: Network
    transport: Transport = "udp"
    prefix: IPv6Address | None = None
    narrow: Callable[[int], AbstractContextManager[None]] | None = None
    mappings: int = 64_512
    configured: Mapping[str, int] = field(default_factory=dict)
    timers: dict[str, Any] = field(default_factory=dict)
    rival: Address | None = None
    floods: int = 0
    _seen: dict[tuple[Any, ...], tuple[Any, range]] = field(default_factory=dict)
    _used: set[tuple[Any, ...]] = field(default_factory=set)
    _cited: set[int] = field(default_factory=set)
    _begun: int = 0
    _ports: Iterator[int] = field(default_factory=lambda: _from_any(_PORTS))
    _remote_ports: Iterator[int] = field(default_factory=lambda: _from_any(_REMOTE_PORTS))
    _control: Flow | None = None
    _team: int = 0
    _is_last_team: bool = False

    def once(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Return the function's value for this transport and these arguments; it is called only once.

        Raises:
            NotSeenError: the function raised it.
        """
        key = (function, self.transport, arguments)
        if key not in self._seen:
            first = self.mark
            value: Any
            try:
                value = self.undisturbed(lambda: function(self, *arguments))
            except FloodError:
                raise
            except NotSeenError as error:
                value = error
            self._seen[key] = (value, range(first, self.mark))
        value, frames = self._seen[key]
        self._used.add(key)
        self.cite(frames)
        if isinstance(value, NotSeenError):
            raise NotSeenError(*value.args)
        seen: _T = value
        return seen

    def forget(self, since: int) -> None:
        """Call again, when asked, the functions whose values the verdict has used, or came after `since` frames."""
        self._seen = {
            key: (value, frames)
            for key, (value, frames) in self._seen.items()
            if frames.start < since and key not in self._used
        }

    def undisturbed(self, look: Callable[[], _T]) -> _T:
        """Return what a function sees.

        Raises:
            FloodError: other traffic flooded the tester's ports meanwhile, so that the function may have missed frames.
            NotSeenError: the function raised it.
        """
        before = self.network.load()
        try:
            seen = look()
        except NotSeenError:
            self._refuse_flood(before)
            raise
        self._refuse_flood(before)
        return seen

    def _refuse_flood(self, before: PortTraffic) -> None:
        if flood := self.network.load().flood(before):
            self.floods += 1
            raise FloodError(flood)

    # Evidence

    def begin(self, transport: Transport) -> None:
        """Begin a verdict: frames from now on, and frames that are cited, are its evidence if they have a sentence."""
        self.transport = transport
        self.network.forget()
        self._begun, self._cited, self._used = self.mark, set(), set()

    def cite(self, numbers: Iterable[int]) -> None:
        """Add earlier frames to the evidence."""
        self._cited.update(numbers)

    def evidence(self) -> tuple[CapturedFrame, ...]:
        """Return the frames that decided the verdict, in order."""
        frames = self.network.frames
        numbers = sorted(self._cited | set(range(self._begun, len(frames))))
        return tuple(frames[number] for number in numbers if frames[number].sentence)

    # Endpoints

    def hosts(self, side: Side) -> tuple[Address, ...]:
        """Return the tester's addresses on a side; on the inside, those that examinations use now."""
        every = self.network.sides[side].hosts
        return every if side == "responder" else every[self._team * TEAM : (self._team + 1) * TEAM]

    def others(self) -> tuple[Address, ...]:
        """Return all inside hosts but the first one that examinations use now; those that they use now come first."""
        first, *mine = self.hosts("initiator")
        every = self.network.sides["initiator"].hosts
        return *mine, *(host for host in every if host != first and host not in mine)

    def is_inside(self, address: Address) -> bool:
        """Whether this is the address of any inside host."""
        return address in self.network.sides["initiator"].hosts

    def serves(self, transport: Transport) -> bool:
        """Whether each inside host that examinations use now opens another flow, which is translated."""
        with self.network.aside():
            try:
                flows = [
                    self.open(self.endpoint(index), self.remote(), transport)
                    for index in range(len(self.hosts("initiator")))
                ]
            except NotSeenError:
                return False
        return not any(self.is_inside(flow.mapped.address) for flow in flows)

    def relieve(self) -> bool:
        """Go on with other inside hosts, because these have many flows; whether the gateway serves such hosts."""
        if self._is_last_team or len(self.network.sides["initiator"].hosts) < (self._team + 2) * TEAM:
            return False
        self._team += 1
        if self.serves("udp"):
            return True
        self._team -= 1
        self._is_last_team = True
        return False

    def host(self, index: int = 0, side: Side = "initiator") -> Address:
        """Return one of the tester's addresses.

        Raises:
            NotSeenError: the audit has fewer addresses on this side.
        """
        hosts = self.hosts(side)
        if index >= len(hosts):
            option = "--source-addresses" if side == "initiator" else "--destination-addresses"
            raise NotSeenError(
                f"needs {index + 1} addresses on the {side}'s side, the audit has {len(hosts)}; give more with {option}"
            )
        return hosts[index]

    def endpoint(self, host: int = 0, port: int | None = None) -> Endpoint:
        """Return an inside endpoint; without a port, one that was not used before and is even."""
        return Endpoint(self.host(host), next(self._ports) if port is None else port)

    def remote(self, host: int = 0, port: int | None = None) -> Endpoint:
        """Return an outside endpoint; without a port, one that was not used before."""
        return Endpoint(self.host(host, "responder"), next(self._remote_ports) if port is None else port)

    def written(self, remote: Endpoint) -> Endpoint:
        """Return an outside endpoint as the inside writes it."""
        return remote if self.prefix is None else Endpoint(embedded(self.prefix, remote.address), remote.port)

    def tag(self) -> bytes:
        """Return 8 octets that no other frame of the audit carries."""
        return secrets.token_bytes(8)

    # Sending

    @property
    def mark(self) -> int:
        """Number of frames so far."""
        return len(self.network.frames)

    def send(self, packet: Packet, *, up: bool, note: str = "") -> None:
        """Send a packet; `up` = from the inside; `note` says what is special about it."""
        self.network.send(sides(up=up)[0], packet, note)

    def deliver(  # noqa: PLR0913 - what differs between examinations, each by its name
        self,
        packet: Packet,
        *,
        up: bool,
        to: Side | None = None,
        wanted: Callable[[Packet], bool] | None = None,
        may_drop: bool = True,
        since: int | None = None,
        note: str = "",
    ) -> CapturedFrame | None:
        """Send a packet until it arrives, and return the frame that arrives; None = no try arrived.

        Args:
            packet: the packet.
            up: whether it is sent from the inside.
            to: port at which it may arrive; None = that of the other side.
            wanted: whether a packet that arrives is the one; None = its data decide.
            may_drop: whether the gateway may drop it. Then control frames follow it, so that a host that stalls is not
                taken for a gateway that drops.
            since: number of frames that are left out; None = all so far.
            note: what is special about the packet.
        """
        since = self.mark if since is None else since
        for _ in range(2 if may_drop else TRIES):
            self.send(packet, up=up, note=note)
            if may_drop:
                self.control()
            frame = self.network.wait(
                to or sides(up=up)[1],
                wanted or (lambda seen: is_same(seen, packet)),
                SETTLE_SECONDS if may_drop else PATIENCE_SECONDS,
                since=since,
            )
            if frame is not None:
                return frame
        return None

    def datagram(  # noqa: PLR0913 - one datagram, each property by its name
        self, flow: Flow, octets: int, *, up: bool, cut: int = 0, backwards: bool = False, note: str = ""
    ) -> Carried:
        """Send a UDP datagram over a flow, several times if it does not arrive as it was sent.

        Args:
            flow: the flow.
            octets: octets of its data.
            up: whether the inside sends it.
            cut: octets of the fragments in which it is sent; 0 = it is sent whole, and may be fragmented.
            backwards: whether the last fragment is sent first.
            note: what is special about the datagram.
        """
        end, is_changed = flow.remote if up else flow.inside, False
        for _ in range(TRIES):
            data, since = secrets.token_bytes(octets), self.mark
            whole = flow.datagram(data, up=up)
            parts = whole.cut(cut) if cut else (whole,)
            for part in reversed(parts) if backwards else parts:
                self.send(part, up=up, note=note)
            self.control()
            self.network.pause(self.network.now() + SETTLE_SECONDS)
            packets = []
            for frame in self.network.arrived(since, sides(up=up)[1]):
                # Only the first fragment has the ports.
                if _data(frame.packet) and frame.packet.receiver in (end, None):
                    self.network.received(frame)
                    packets.append(frame.packet)
            arrived = b"".join(map(_data, sorted(packets, key=lambda one: one.offset)))
            if arrived == data:
                return Carried(tuple(packets))
            is_changed |= len(arrived) == len(data)
        return Carried(is_changed=is_changed)

    def control(self) -> None:
        """Send a UDP frame each way over a flow of its own, and wait until both have arrived."""
        with self.network.aside():
            if self._control is not None and self._round(self._control):
                return
            self._control = self.open(self.endpoint(), self.remote(), "udp")
            if not self._round(self._control):
                raise NotSeenError("control frames over an open UDP flow did not arrive")

    def _round(self, flow: Flow) -> bool:
        return self.passes(flow, up=True) and self.passes(flow, up=False)

    # Flows

    def open(self, inside: Endpoint, remote: Endpoint, transport: Transport | None = None) -> Flow:
        """Send the first packet of a flow until it arrives at the outside."""
        transport, written, since = transport or self.transport, self.written(remote), self.mark
        packet = lone_packet(transport, inside, written, self.tag())

        def wanted(seen: Packet) -> bool:
            # A gateway may change sequence numbers, so the endpoint decides about TCP.
            same = is_tcp(seen, remote, SYN) if transport == "tcp" else is_same(seen, packet)
            return same and seen.source.version == remote.address.version

        frame = self.deliver(packet, up=True, wanted=wanted, may_drop=False)
        mapped = None if frame is None else frame.packet.sender
        if frame is None or mapped is None:
            raise NotSeenError(
                f"the first {transport.upper()} frame from {inside} to {remote} did not arrive outside"
                f"{self._answer_to(inside, since)}"
            )
        number = SequenceNumber(after_syn(packet), after_syn(frame.packet))
        return Flow(transport, inside, remote, written, mapped, since, number)

    def _answer_to(self, inside: Endpoint, since: int) -> str:
        """Return what came back to an inside endpoint instead, as the end of a sentence."""
        packets = [frame.packet for frame in self.network.arrived(since, "initiator")]
        if any(is_tcp(packet, inside, SYN | ACK) for packet in packets):
            return "; the gateway itself answered with SYN and ACK, as a SYN proxy does"
        reset = any(is_tcp(packet, inside, flags) for packet in packets for flags in (RST, RST | ACK))
        return "; a reset came back" * reset

    def established(self, inside: Endpoint, remote: Endpoint, transport: Transport | None = None) -> Flow:
        """Open a flow over which both sides have sent, of TCP with its handshake."""
        flow = self.open(inside, remote, transport)
        if flow.transport == "tcp":
            self.shake_hands(flow)
        elif not self.passes(flow, up=False):
            raise NotSeenError(f"the answer from {remote} to {flow.mapped} did not arrive inside")
        return flow

    def flow(self, transport: Transport | None = None) -> Flow:
        """Open a flow of the first inside host to the first outside host, over which both sides have sent."""
        return self.established(self.endpoint(), self.remote(), transport)

    def passes(self, flow: Flow, *, up: bool) -> bool:
        """Whether data over an open flow arrive at its end; they are sent up to three times."""
        return self.deliver(flow.packet(self.tag(), up=up), up=up, may_drop=False) is not None

    def enters(self, source: Endpoint, target: Endpoint, inside: Endpoint) -> bool:
        """Whether a packet from an outside endpoint to an endpoint of the gateway reaches the inside endpoint."""
        packet = lone_packet(self.transport, source, target, self.tag(), up=False)
        return (
            self.deliver(packet, up=False, wanted=lambda seen: seen.receiver == inside and is_same(seen, packet))
            is not None
        )

    # TCP

    def sends(
        self, flow: Flow, flags: int, *, up: bool, back: int = 0, since: int | None = None
    ) -> CapturedFrame | None:
        """Return the arrival of a TCP segment with these flags; its SYN or FIN takes one sequence number.

        A gateway that drops it still has to deliver control frames.

        Args:
            flow: a TCP flow.
            flags: flags of the segment.
            up: whether the inside host sends it.
            back: 1 = its sequence number was used already, by a SYN without ACK.
            since: number of frames that are left out; None = all so far.
        """
        end = flow.remote if up else flow.inside
        packet = flow.tcp(flags, up=up, back=back)
        frame = self.deliver(packet, up=up, wanted=lambda seen: is_tcp(seen, end, flags), may_drop=False, since=since)
        if frame is None:
            self.control()
        elif flags & (SYN | FIN) and not back:
            flow.numbers(up=up)[0].advance(1)
        return frame

    def syn(self, flow: Flow, flags: int) -> CapturedFrame | None:
        """Return the arrival of the first segment of the outside host, which has these flags."""
        flow.down.written = secrets.randbelow(2**31)
        frame = self.sends(flow, flags, up=False)
        if frame is not None:
            flow.down.seen = after_syn(frame.packet)
        return frame

    def accept(self, flow: Flow) -> None:
        """Send the SYN and ACK of the outside host until the inside sees it."""
        if self.syn(flow, SYN | ACK) is None:
            raise NotSeenError(f"the SYN and ACK from {flow.remote} to {flow.mapped} did not arrive inside")

    def shake_hands(self, flow: Flow) -> None:
        """Send the second and the third segment of a handshake.

        A gateway that ends connections itself sends its own third segment earlier.
        """
        self.accept(flow)
        if self.sends(flow, ACK, up=True, since=flow.since) is None:
            raise NotSeenError(f"the third segment from {flow.inside} to {flow.remote} did not arrive outside")

    def close(self, flow: Flow) -> str:
        """Close an open TCP connection by FINs of both ends; return the first segment that did not pass, or nothing."""
        if not self.sends(flow, FIN | ACK, up=True):
            return "a FIN of the inside"
        since = self.mark
        if not self.sends(flow, FIN | ACK, up=False):
            return "a FIN of the outside"
        # A gateway that ends connections itself acknowledges the outside's FIN before the inside host does.
        return "" if self.sends(flow, ACK, up=True, since=since) else "the last ACK"


def reachable(examiner: Examiner) -> bool:
    """Open a flow, or another one if the first is refused.

    Raises:
        NotSeenError: the gateway does not forward the transport.
    """
    with suppress(NotSeenError):
        examiner.open(examiner.endpoint(), examiner.remote())
        return True
    examiner.open(examiner.endpoint(), examiner.remote())
    return True


def forwards_some(examiner: Examiner) -> bool:
    """Whether the gateway has forwarded a flow of the examiner's transport."""
    try:
        return examiner.once(reachable)
    except NotSeenError:
        return False


def _data(packet: Packet) -> bytes:
    """Return the data of a UDP datagram that are in one of its fragments; empty where a packet is none."""
    payload = packet.payload if packet.offset else packet.payload[_UDP_HEADER_OCTETS:]
    return payload if packet.protocol == UDP else b""
