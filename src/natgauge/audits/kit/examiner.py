# SPDX-License-Identifier: Apache-2.0
"""What an examination does with a gateway: open flows, send along them, try to enter, and see what arrives."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from ipaddress import IPv6Address
from typing import Any, Final, TypeVar

from natgauge.audits.kit.flows import (
    Endpoint,
    Flow,
    RemoteEndpoint,
    SequenceNumber,
    along,
    carries,
    destination_of,
    is_tcp,
    number_after_syn,
    numbered,
    simple_segment,
    source_of,
)
from natgauge.audits.kit.network import Arrival, Network, sides
from natgauge.audits.kit.packets import ACK, FIN, RST, SYN, Packet, Segment, embedded, make_packet
from natgauge.audits.kit.pcapng import CapturedFrame
from natgauge.words import Address, Side, Transport

_T = TypeVar("_T")
#: A frame that does not arrive is sent again, because the host may stall or lose a frame.
TRIES: Final = 3
PATIENCE_SECONDS: Final = 1.0
#: Wait for a frame after the control frames that were sent behind it have arrived.
SETTLE_SECONDS: Final = 0.05
#: First port of the inside; ports that no rule treats in a special way.
_FIRST_PORT: Final = 20_000
_LAST_PORT: Final = 60_000
_FIRST_REMOTE_PORT: Final = 7_000
_LAST_REMOTE_PORT: Final = 19_999


class NotSeenError(Exception):
    """An examination cannot reach a verdict; the text is the reason, without a full stop."""


class Examiner:
    """Opens flows through the gateway and sees what arrives.

    All methods that wait for a frame which a gateway has to deliver, or for control frames, raise `NotSeenError` if
    the frame does not arrive.

    Attributes:
        network: the tester's ports.
        prefix: NAT64 prefix in which the inside writes outside addresses; None = it writes them as they are.
        configured: the gateway's own settings in s, by name.
        timers: measured time-outs by name (see `natgauge.audits.kit.timers`).
        mappings: most flows of a crowd (see `natgauge.audits.kit.crowd`).
        narrow: makes the MTU of the gateway's outside link smaller within its `with` block; None = not possible.
    """

    def __init__(
        self,
        network: Network,
        *,
        prefix: IPv6Address | None = None,
        mappings: int = 64_512,
        narrow: Callable[[int], AbstractContextManager[None]] | None = None,
    ) -> None:
        self.network = network
        self.prefix = prefix
        self.narrow = narrow
        self.mappings = mappings
        self.configured: Mapping[str, int] = {}
        self.timers: dict[str, Any] = {}
        self._seen: dict[tuple[Callable[..., Any], tuple[Any, ...]], tuple[Any, range]] = {}
        self._cited: set[int] = set()
        self._begun = 0
        start = secrets.randbelow(2000)
        self._port = _FIRST_PORT + start // 2 * 2
        self._remote_port = _FIRST_REMOTE_PORT + start
        self._control: Flow | None = None

    def once(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Return the function's value for this examiner and these arguments; it is called only once.

        Raises:
            NotSeenError: the function raised it.
        """
        key = (function, arguments)
        if key not in self._seen:
            first = len(self.network.frames)
            value: Any
            try:
                value = function(self, *arguments)
            except NotSeenError as error:
                value = error
            self._seen[key] = (value, range(first, len(self.network.frames)))
        value, frames = self._seen[key]
        self.cite(frames)
        if isinstance(value, NotSeenError):
            raise NotSeenError(*value.args)
        seen: _T = value
        return seen

    # Evidence

    def begin(self) -> None:
        """Begin a verdict: frames from now on, and frames that are cited, are its evidence if they have a sentence."""
        self._begun, self._cited = len(self.network.frames), set()

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
        """Return the tester's addresses on a side."""
        return self.network.sides[side].hosts

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
        if port is None:
            self._port = self._port + 2 if self._port < _LAST_PORT else _FIRST_PORT
            port = self._port
        return Endpoint(self.host(host), port)

    def remote(self, host: int = 0, port: int | None = None) -> RemoteEndpoint:
        """Return an outside endpoint; without a port, one that was not used before."""
        if port is None:
            self._remote_port = self._remote_port + 1 if self._remote_port < _LAST_REMOTE_PORT else _FIRST_REMOTE_PORT
            port = self._remote_port
        own = Endpoint(self.host(host, "responder"), port)
        return RemoteEndpoint(own, self.written(own))

    def written(self, own: Endpoint) -> Endpoint:
        """Return an outside endpoint as the inside writes it."""
        return own if self.prefix is None else Endpoint(embedded(self.prefix, own.address), own.port)

    def tag(self) -> bytes:
        """Return 8 octets that no other frame of the audit carries."""
        return secrets.token_bytes(8)

    # Sending

    def put(self, source: Endpoint, destination: Endpoint, segment: Segment, *, up: bool, note: str = "") -> None:
        """Send a segment between two endpoints as its sender writes them; `up` = from the inside."""
        self.network.send(sides(up=up)[0], make_packet(source.address, destination.address, segment), note)

    def send(self, flow: Flow, segment: Segment, *, up: bool, note: str = "") -> None:
        """Send a segment from one end of a flow to the other."""
        self.put(*flow.ends(up=up), segment, up=up, note=note)

    @property
    def mark(self) -> int:
        """Number of arrivals so far."""
        return len(self.network.arrivals)

    def delivered(
        self,
        send: Callable[[bytes], object],
        side: Side,
        wanted: Callable[[Packet, bytes], bool] = carries,
        *,
        may_drop: bool = True,
        first: int | None = None,
    ) -> Arrival | None:
        """Return the arrival of a frame, which is sent again if it does not arrive; None = no try arrived.

        Args:
            send: sends the frame with this tag.
            side: port at which it may arrive.
            wanted: whether a packet is the one with the tag.
            may_drop: whether the gateway may drop the frame. Then control frames follow it, so that a host that stalls
                is not taken for a gateway that drops.
            first: number of arrivals that are left out; None = all before a try.
        """
        for _ in range(2 if may_drop else TRIES):
            tag, since = self.tag(), self.mark
            send(tag)
            if may_drop:
                self.control()
            arrival = self.network.wait(
                side,
                lambda packet: wanted(packet, tag),  # noqa: B023 - called in this turn
                SETTLE_SECONDS if may_drop else PATIENCE_SECONDS,
                since=since if first is None else first,
            )
            if arrival is not None:
                return arrival
        return None

    def parts(self, side: Side, since: int, wanted: Callable[[Packet], bool]) -> list[Packet]:
        """Return all wanted packets after the first `since` arrivals; control frames follow what was sent."""
        self.control()
        self.network.pause(self.network.now() + SETTLE_SECONDS)
        arrivals = self.network.arrivals[since:]
        found = [arrival for arrival in arrivals if arrival.side == side and wanted(arrival.packet)]
        for arrival in found:
            self.network.received(arrival)
        return [arrival.packet for arrival in found]

    def control(self) -> None:
        """Send a UDP frame each way over a flow of its own, and wait until both have arrived."""
        with self.network.aside():
            if self._control is not None and self._round(self._control):
                return
            self._control = self.open("udp", self.endpoint(), self.remote())
            if not self._round(self._control):
                raise NotSeenError("control frames over an open UDP flow did not arrive")

    def _round(self, flow: Flow) -> bool:
        return self.passes(flow, up=True) and self.passes(flow, up=False)

    # Flows

    def open(self, transport: Transport, inside: Endpoint, remote: RemoteEndpoint) -> Flow:
        """Send the first segment of a flow until it arrives at the outside."""
        first, tags = self.mark, list[bytes]()

        def send(tag: bytes) -> None:
            tags.append(tag)
            segment = simple_segment(transport, inside, remote.written, tag, up=True)
            self.put(inside, remote.written, segment, up=True)

        def wanted(packet: Packet, tag: bytes) -> bool:
            # A gateway may change sequence numbers, so the endpoint decides about TCP.
            return is_tcp(packet, remote.own, SYN) if transport == "tcp" else carries(packet, tag)

        arrival = self.delivered(send, "responder", wanted, may_drop=False)
        mapped = None if arrival is None else source_of(arrival.packet)
        if arrival is None or mapped is None:
            raise NotSeenError(
                f"the first {transport.upper()} frame from {inside} to {remote} did not arrive outside"
                f"{self._answer_to(inside, first)}"
            )
        up = SequenceNumber(int.from_bytes(tags[-1][-4:], "big") + 1, number_after_syn(arrival.packet))
        return Flow(transport, inside, remote, mapped, first, up)

    def _answer_to(self, inside: Endpoint, since: int) -> str:
        """Return what came back to an inside endpoint instead, as the end of a sentence."""
        packets = [arrival.packet for arrival in self.network.arrivals[since:]]
        if any(is_tcp(packet, inside, SYN | ACK) for packet in packets):
            return "; the gateway itself answered with SYN and ACK, as a SYN proxy does"
        reset = any(is_tcp(packet, inside, flags) for packet in packets for flags in (RST, RST | ACK))
        return "; a reset came back" * reset

    def accept(self, flow: Flow) -> None:
        """Send the SYN and ACK of the outside host until the inside sees it."""
        if self.syn(flow, SYN | ACK) is None:
            raise NotSeenError(f"the SYN and ACK from {flow.remote} to {flow.mapped} did not arrive inside")

    def syn(self, flow: Flow, flags: int) -> Arrival | None:
        """Return the arrival of the first segment of the outside host, which has these flags."""
        flow.down.written = int.from_bytes(self.tag()[-4:], "big") % 2**31
        arrival = self.sends(flow, flags, up=False)
        if arrival is not None:
            flow.down.seen = number_after_syn(arrival.packet)
        return arrival

    def finish_handshake(self, flow: Flow) -> None:
        """Send the third segment of a handshake. A gateway that ends connections itself sends its own one earlier."""
        if self.sends(flow, ACK, up=True, since=flow.since) is None:
            raise NotSeenError(f"the third segment from {flow.inside} to {flow.remote} did not arrive outside")

    def close(self, flow: Flow) -> str:
        """Close an open TCP connection by FINs of both ends; return the first segment that did not pass, or nothing."""
        steps = (
            ("a FIN of the inside", True, FIN | ACK),
            ("a FIN of the outside", False, FIN | ACK),
            ("the last ACK", True, ACK),
        )
        return next((name for name, up, flags in steps if not self.sends(flow, flags, up=up)), "")

    def sends(self, flow: Flow, flags: int, *, up: bool, back: int = 0, since: int | None = None) -> Arrival | None:
        """Return the arrival of a TCP segment with these flags; its SYN or FIN takes one sequence number.

        A gateway that drops it still has to deliver control frames.

        Args:
            flow: a TCP flow.
            flags: flags of the segment.
            up: whether the inside host sends it.
            back: 1 = its sequence number was used already, by a SYN without ACK.
            since: number of arrivals that are left out; None = all before the segment.
        """
        end = flow.remote.own if up else flow.inside
        arrival = self.delivered(
            lambda _: self.send(flow, numbered(flow, flags, up=up, back=back), up=up),
            sides(up=up)[1],
            lambda packet, _: is_tcp(packet, end, flags),
            may_drop=False,
            first=since,
        )
        if arrival is None:
            self.control()
        elif flags & (SYN | FIN) and not back:
            flow.numbers(up=up)[0].advance(1)
        return arrival

    def flow(self, transport: Transport) -> Flow:
        """Open a flow of the first inside host to the first outside host, over which both sides have sent."""
        return self.established(transport, self.endpoint(), self.remote())

    def established(self, transport: Transport, inside: Endpoint, remote: RemoteEndpoint) -> Flow:
        """Open a flow over which both sides have sent, of TCP with its handshake."""
        flow = self.open(transport, inside, remote)
        if transport == "tcp":
            self.accept(flow)
            self.finish_handshake(flow)
        elif not self.passes(flow, up=False):
            raise NotSeenError(f"the answer from {remote} to {flow.mapped} did not arrive inside")
        return flow

    def passes(self, flow: Flow, *, up: bool) -> bool:
        """Whether a segment over an open flow arrives at its end; it is sent up to three times."""
        arrival = self.delivered(
            lambda tag: self.send(flow, along(flow, tag, up=up), up=up), sides(up=up)[1], may_drop=False
        )
        return arrival is not None

    def enters(self, transport: Transport, source: Endpoint, target: Endpoint, inside: Endpoint) -> bool:
        """Whether a frame from an outside endpoint to an endpoint of the gateway reaches the inside endpoint."""
        arrival = self.delivered(
            lambda tag: self.put(source, target, simple_segment(transport, source, target, tag, up=False), up=False),
            "initiator",
            lambda packet, tag: destination_of(packet) == inside and carries(packet, tag),
        )
        return arrival is not None
