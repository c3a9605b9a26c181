# SPDX-License-Identifier: Apache-2.0
"""What an examination does with a gateway: open flows, send along them, try to enter, compete, and see what arrives."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address, IPv6Network
from itertools import cycle
from typing import Any, Final, TypeVar

from natgauge.audits.kit.hosts import HostBlocks, InsideHosts
from natgauge.audits.kit.network import CapturedFrame, Network, PortTraffic, sides
from natgauge.audits.kit.packets import (
    ACK,
    FIN,
    RST,
    SYN,
    Endpoint,
    Flow,
    Packet,
    SequenceNumber,
    after_syn,
    is_same,
    is_tcp,
    lone_packet,
)
from natgauge.embedding import embedded
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
#: The odd ports between those of the inside, in steps that no small block of ports has room for.
_SPARE_PORTS: Final = tuple(20_001 + 2 * (index * 7_919 % 20_000) for index in range(20_000))
#: Why an examination that needs a rival has no verdict. Two hosts on one source port compete only if the gateway gives
#: them one outside address; behind a pool of addresses the second host can have another one.
ALONE: Final = "no other inside host had its outside address, so no two hosts competed for a port"
#: Hosts whose flow may be refused before the search ends: each takes as long as all tries of a frame.
_MOST_REFUSED: Final = 2


class NotSeenError(Exception):
    """An examination cannot reach a verdict; the text is the reason, without a full stop."""


class FloodError(NotSeenError):
    """Other traffic flooded the tester's ports during an examination."""


class AloneError(NotSeenError):
    """No two inside hosts had one outside address, so nothing shows what the gateway does when they compete."""


class UntranslatedError(NotSeenError):
    """The gateway sent a flow's first frame on with its inside source: that is routing, and shows nothing of a NAT."""


class NotApplicableError(Exception):
    """A requirement does not apply to this gateway; the text is the reason, without a full stop."""


def _from_any(ports: Sequence[int]) -> Iterator[int]:
    """Return an endless iterator over ports that begins at one of the first thousand."""
    start = secrets.randbelow(1000)
    return cycle((*ports[start:], *ports[:start]))


@dataclass(eq=False)
class Examiner:
    """Opens flows through the gateway, sees what arrives, and keeps what verdicts share and their evidence.

    All methods that wait for a frame which a gateway has to deliver, or for control frames, raise `NotSeenError` if
    the frame does not arrive, and those that open flows also if it arrives with its inside source.

    Attributes:
        transport: transport of the verdict, and of flows for which no other one is named.
        floods: how often other traffic at the tester's ports kept the examiner from a verdict.
        prefix: NAT64 prefix in which the inside writes outside addresses; None = it writes them as they are.
        blocks: port blocks of the inside hosts; None = the recipe declares none.
        wait: longest wait for something that ends, in s; 0 = there is none.
        knobs: values that the user has set for knobs of the device, by name.
        pool: outside addresses that the gateway has; 0 = not known.
        teams: inside hosts that examinations use in teams, the first ones; None = all.
        forwarded: transports of which the gateway has translated a flow; those of others say that it does not.
        accepted: by transport, the only ports outside to which the gateway's rules let flows go; others go to any.
        narrow: makes the MTU of the gateway's outside link smaller within its `with` block; None = not possible.
    """

    network: Network
    transport: Transport = "udp"
    prefix: IPv6Network | None = None
    narrow: Callable[[int], AbstractContextManager[None]] | None = None
    mappings: int = 64_512
    configured: Mapping[str, int] = field(default_factory=dict)
    timers: dict[str, Any] = field(default_factory=dict)
    blocks: HostBlocks | None = None
    wait: float = 0.0
    knobs: Mapping[str, int] = field(default_factory=dict)
    pool: int = 0
    teams: int | None = None
    forwarded: set[Transport] = field(default_factory=set)
    accepted: Mapping[Transport, Sequence[int]] = field(default_factory=dict)
    control_by: Transport = "udp"
    fragments_entered: bool = False
    floods: int = 0
    inside: InsideHosts = field(init=False)
    _seen: dict[tuple[Any, ...], tuple[Any, range]] = field(default_factory=dict)
    _used: set[tuple[Any, ...]] = field(default_factory=set)
    _cited: set[int] = field(default_factory=set)
    _begun: int = 0
    #: Outside ports that the present look has given, by host and transport, where only some may be used.
    _given: set[tuple[int, Transport, int]] = field(default_factory=set)
    _ports: Iterator[int] = field(default_factory=lambda: _from_any(_PORTS))
    _remote_ports: Iterator[int] = field(default_factory=lambda: _from_any(_REMOTE_PORTS))
    _spare_ports: Iterator[int] = field(default_factory=lambda: _from_any(_SPARE_PORTS))
    _control: Flow | None = None
    _every: frozenset[Address] = frozenset()

    def __post_init__(self) -> None:
        self.inside = InsideHosts(self.every_host[: self.teams])
        self._every = frozenset(self.every_host)

    # Observations

    @property
    def mark(self) -> int:
        """Number of frames so far."""
        return len(self.network.frames)

    def once(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Return the function's value for this transport and these arguments; it is called only once."""
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
            raise type(value)(*value.args)
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
        """Return what a function sees."""
        before, outer, self._given = self.network.load(), self._given, set()
        try:
            seen = look()
        except NotSeenError:
            self._refuse_flood(before)
            raise
        finally:
            self._given = outer
        self._refuse_flood(before)
        return seen

    def _refuse_flood(self, before: PortTraffic) -> None:
        if flood := self.network.load().flood(before):
            self.floods += 1
            raise FloodError(flood)

    def begin(self, transport: Transport) -> None:
        """Begin a verdict: frames from now on, and frames that are cited, are its evidence if they have a sentence."""
        self.transport, self._given = transport, set()
        self.network.forget()
        self._begun, self._cited, self._used = self.mark, set(), set()

    def cite(self, numbers: Iterable[int]) -> None:
        """Add earlier frames to the evidence."""
        self._cited.update(numbers)

    def evidence(self) -> tuple[CapturedFrame, ...]:
        """Return the frames that decided the verdict, in order."""
        frames = self.network.frames
        numbers = sorted(self._cited | set(range(self._begun, len(frames))))
        return tuple(frames[number] for number in numbers if frames[number].is_told)

    # Endpoints

    @property
    def every_host(self) -> tuple[Address, ...]:
        """All inside hosts of the tester."""
        return self.network.sides["initiator"].hosts

    def hosts(self, side: Side) -> tuple[Address, ...]:
        """Return the tester's addresses on a side; on the inside, those that examinations use now."""
        return self.network.sides[side].hosts if side == "responder" else self.inside.team

    def is_inside(self, address: Address) -> bool:
        """Whether this is the address of any inside host."""
        return address in self._every

    def is_outside(self, address: Address) -> bool:
        """Whether a flow or the link shows that this, as the inside writes it, is an outside address of the gateway."""
        known = (*self.inside.used, self.network.sides["responder"].gateway)
        return any(one is not None and self.written(Endpoint(one, 0)).address == address for one in known)

    def serves(self, transport: Transport) -> bool:
        """Whether each inside host that examinations use now opens another flow, which is translated.

        The first host that does not shows how many flows the gateway lets a host have.
        """
        with self.network.aside():
            for host in self.inside.team:
                try:
                    remote = self.remote(transport=transport, again=True)
                    self.open(Endpoint(host, next(self._ports)), remote, transport)
                except UntranslatedError:
                    return False
                except NotSeenError:
                    if transport in self.forwarded:
                        self.inside.learn(host)
                    return False
        return True

    def relieve(self, transport: Transport, *, for_many: bool = False) -> bool:
        """Go on with other inside hosts, which have opened few flows; whether the gateway serves such hosts.

        Some are left for the examinations that open many flows: `for_many` = this is one of them.
        """
        if not self.inside.has_next(transport, for_many=for_many):
            return False
        self.inside.go_on(for_many=for_many)
        if self.serves(transport):
            return True
        self.inside.go_back(transport)
        return False

    def host(self, index: int = 0, side: Side = "initiator") -> Address:
        """Return one of the tester's addresses."""
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

    def remote(
        self, host: int = 0, port: int | None = None, *, transport: Transport | None = None, again: bool = False
    ) -> Endpoint:
        """Return an outside endpoint to which flows may go; without a port, one that was not used before.

        Args:
            again: whether it may have been used, because the flow is from an inside endpoint that was not.
        """
        address, transport = self.host(host, "responder"), transport or self.transport
        if port is None:
            ports = self.accepted.get(transport)
            port = next(self._remote_ports) if not ports else self._accepted_port(host, transport, ports, again=again)
        return Endpoint(address, port)

    def _accepted_port(self, host: int, transport: Transport, ports: Sequence[int], *, again: bool) -> int:
        """Return a port that the rules accept; without `again`, one that this look has not given for the host."""
        own = (port for port in ports if (host, transport, port) not in self._given)
        port = next(own, ports[0] if again else None)
        if port is None:
            raise NotSeenError(
                f"needs more {transport.upper()} ports of an outside host than the {len(ports)} that the recipe names "
                "(destination_ports)"
            )
        self._given.add((host, transport, port))
        return port

    def stranger(self, host: int = 0) -> Endpoint:
        """Return an outside endpoint that no flow goes to, with a port that was not used before."""
        return Endpoint(self.host(host, "responder"), next(self._remote_ports))

    def spare(self) -> Endpoint:
        """Return another inside endpoint of the first host, whose port is odd, and far from that of the last one."""
        return Endpoint(self.host(), next(self._spare_ports))

    def twin(self, flow: Flow) -> Endpoint:
        """Return an inside endpoint with the flow's outside port, or a spare one if another flow may use that port."""
        port = flow.mapped.port
        return self.spare() if port in (0, flow.inside.port) or port in _PORTS else replace(flow.inside, port=port)

    def written(self, remote: Endpoint) -> Endpoint:
        """Return an outside endpoint as the inside writes it."""
        if self.prefix is None or isinstance(remote.address, IPv6Address):
            return remote
        return Endpoint(embedded(self.prefix, remote.address), remote.port)

    def tag(self) -> bytes:
        """Return 8 octets that no other frame of the audit carries."""
        return secrets.token_bytes(8)

    # Sending

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
        settle: float = SETTLE_SECONDS,
        since: int | None = None,
        note: str = "",
    ) -> CapturedFrame | None:
        """Send a packet until it arrives, and return the frame that arrives; None = no try arrived.

        Args:
            to: port at which it may arrive; None = that of the other side.
            wanted: whether a packet that arrives is the one; None = its data decide.
            may_drop: whether the gateway may drop it. Then control frames follow it, so that a host that stalls is not
                taken for a gateway that drops.
            settle: seconds to wait for it after control frames that followed it.
            since: number of frames that are left out; None = all so far.
        """
        since = self.mark if since is None else since
        for _ in range(2 if may_drop else TRIES):
            self.send(packet, up=up, note=note)
            if may_drop:
                self.control()
            frame = self.network.wait(
                to or sides(up=up)[1],
                wanted or (lambda seen: is_same(seen, packet)),
                settle if may_drop else PATIENCE_SECONDS,
                since=since,
            )
            if frame is not None:
                return frame
        return None

    def control(self) -> None:
        """Send a frame each way over a flow of its own, of UDP where that is carried; wait until both have arrived."""
        with self.network.aside():
            if self._control is not None and self._round(self._control):
                return
            by = self.control_by
            opened = self.established if by == "tcp" else self.open
            self._control = opened(self.endpoint(), self.remote(transport=by, again=True), by)
            if not self._round(self._control):
                raise NotSeenError(f"control frames over an open {by.upper()} flow did not arrive")

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
        if self.is_inside(mapped.address):
            whose = f" of {inside.address}" if transport in self.forwarded else ""
            raise UntranslatedError(
                f"the gateway does not translate {transport.upper()}{whose}: a frame arrived outside with the source "
                f"{mapped.address}, which is that of the inside host"
            )
        self.forwarded.add(transport)
        self.inside.opens(inside.address, mapped.address)
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

    def flow(self, transport: Transport | None = None, *, turn: int = 0) -> Flow:
        """Open a flow between the first hosts of both sides, over which both have sent; `turn` 1 = the second ones, ...

        Where a side has fewer hosts, its turns begin again.
        """
        inside, outside = (turn % len(self.hosts(side)) for side in ("initiator", "responder"))
        remote = self.remote(outside, transport=transport, again=True)
        return self.established(self.endpoint(inside), remote, transport)

    def passes(self, flow: Flow, *, up: bool) -> bool:
        """Whether data over an open flow arrive at its end; they are sent up to three times."""
        return self.deliver(flow.packet(self.tag(), up=up), up=up, may_drop=False) is not None

    def enters(self, source: Endpoint, target: Endpoint, inside: Endpoint) -> bool:
        """Whether a packet from an outside endpoint to an endpoint of the gateway reaches the inside endpoint."""
        packet, sender = lone_packet(self.transport, source, target, self.tag(), up=False), self.written(source)

        def wanted(seen: Packet) -> bool:
            # A gateway may change sequence numbers, so the endpoints decide about TCP.
            is_new = is_tcp(seen, inside, SYN) and seen.sender == sender
            return is_new or (seen.receiver == inside and is_same(seen, packet))

        return self.deliver(packet, up=False, wanted=wanted) is not None

    # TCP

    def sends(
        self, flow: Flow, flags: int, *, up: bool, back: int = 0, since: int | None = None
    ) -> CapturedFrame | None:
        """Return the arrival of a TCP segment with these flags; its SYN or FIN takes one sequence number.

        A gateway that drops it still has to deliver control frames.

        Args:
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

    def close(self, flow: Flow, *, up: bool = True, half: bool = False, is_acknowledged: bool = True) -> str:
        """Close an open TCP connection by FINs of both ends; return the first segment that did not pass, or nothing.

        `up` = the inside closes first; `half` = the other end sends data before it closes as well; `is_acknowledged` =
        the last FIN is acknowledged, after which the connection is in TIME_WAIT.
        """
        own, other = ("inside", "outside") if up else ("outside", "inside")
        if not self.sends(flow, FIN | ACK, up=up):
            return f"a FIN of the {own}"
        if half and not self.passes(flow, up=not up):
            return f"data of the {other} after a FIN of the {own}"
        since = self.mark
        if not self.sends(flow, FIN | ACK, up=not up):
            return f"a FIN of the {other}"
        if not is_acknowledged:
            return ""
        # A gateway that ends connections itself acknowledges the last FIN before its receiver does.
        return "" if self.sends(flow, ACK, up=up, since=since) else "the last ACK"


def rival_of(
    examiner: Examiner, own: Endpoint, outside: Address, remote: Endpoint, transport: Transport | None = None
) -> Flow | None:
    """Open flows of other inside hosts from the source port of an inside endpoint until one has its outside address.

    Args:
        transport: their transport; None = the examiner's.

    Returns:
        The flow that has this address; None = no host has it.
    """
    examiner.host(1)
    refusals: list[NotSeenError] = []
    for host in examiner.inside.rivals(own.address, outside):
        try:
            flow = examiner.open(Endpoint(host, own.port), remote, transport)
        except UntranslatedError:
            # It took no time.
            examiner.inside.note_refusal(host)
            continue
        except NotSeenError as error:
            examiner.inside.note_refusal(host)
            refusals.append(error)
            if len(refusals) < _MOST_REFUSED:
                continue
            raise
        if flow.mapped.address == outside:
            return flow
    if refusals:
        raise refusals[0]
    return None


def compete(examiner: Examiner, flow: Flow, remote: Endpoint) -> Flow:
    """Return a flow of another inside host from the source port of this flow, with its outside address."""
    found = rival_of(examiner, flow.inside, flow.mapped.address, remote)
    if found is None:
        raise AloneError(f"{flow.inside} had {flow.mapped} outside; {ALONE}")
    return found
