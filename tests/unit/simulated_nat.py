# SPDX-License-Identifier: Apache-2.0
"""A programmable NAT, NAT44 or NAT64, with a clock of its own: every behaviour that an audit names, right and wrong.

It takes and gives Ethernet frames like the tester's ports in a lab, so an audit of it runs the whole code of an audit
except the packet sockets. A second of its clock takes no time.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
import struct
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address
from typing import Literal

from tests.unit.simulated_nat64 import INSIDE, INSIDE6, PREFIX, Nat64

from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.hosts import HostBlocks, hosts_needed
from natgauge.audits.kit.network import ArrivedFrame, AuditSide, Missed, Network
from natgauge.audits.kit.packets import (
    ACK,
    FIN,
    ICMP,
    RST,
    SYN,
    TCP,
    UDP,
    EchoMessage,
    Endpoint,
    ErrorMessage,
    Packet,
    Query,
    Segment,
    TcpSegment,
    UdpSegment,
    checksum,
    is_right,
    make_error,
    make_packet,
    read_packet,
)
from natgauge.audits.requirements import requirements
from natgauge.labs.contract import Addresses
from natgauge.port_blocks import PortBlocks
from natgauge.words import Address, Side, Transport

Dependence = Literal["endpoint-independent", "address-dependent", "address and port-dependent"]
OUTSIDE = IPv4Address("198.19.0.1")
_MACS: dict[Side, bytes] = {"initiator": b"\x02\0\0\0\0\x01", "responder": b"\x02\0\0\0\0\x02"}
_NAT_MACS: dict[Side, bytes] = {"initiator": b"\x02\0\0\0\0\x11", "responder": b"\x02\0\0\0\0\x12"}
_FRAME_SECONDS = 0.0001
_PCP_PORT = 5351
#: Ports that it tries at random before it looks for any that is free.
_PORT_TRIES = 64
_PROTOCOLS: dict[Transport, int] = {"udp": UDP, "tcp": TCP, "icmp": ICMP[4]}
#: Flows of a crowd: enough to fill a NAT that has a limit.
_CROWD = 1024
#: What a mapping is for: protocol, inside endpoint, and the part of the remote endpoint that counts.
_Key = tuple[int, Endpoint, object]


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """How the NAT behaves; the defaults meet all requirements.

    Attributes:
        elsewhere: how it behaves towards packets for which `is_elsewhere`; None = as to all others.
    """

    elsewhere: Behaviour | None = None
    is_elsewhere: Callable[[Packet], bool] = field(default=lambda _: False)
    nat64: Nat64 | None = None
    mapping: Dependence = "endpoint-independent"
    filtering: Dependence = "endpoint-independent"
    ports: Literal[
        "preserving", "overloading", "contiguous", "offset", "last bits", "workers", "random", "of a range", "drawn"
    ] = "random"
    workers: int = 2
    parity: bool = True
    ranges: bool = True
    overlaps: bool = False
    hairpinning: Literal["external source", "internal source", "source on the LAN", "another port", "none"] = (
        "external source"
    )
    addresses: int = 1
    paired: bool = True
    paired_by_transport: bool = False
    paired_by_remote: bool = False
    paired_by_port: bool = False
    udp_seconds: float = 300.0
    udp_answered_seconds: float | None = None
    icmp_seconds: float = 60.0
    transitory_seconds: float = 240.0
    closed_seconds: float | None = None
    established_seconds: float = 7440.0
    refreshes_outbound: bool = True
    refreshes_inbound: bool = True
    fragments: Literal["all", "in order", "none"] = "all"
    fragment_room: int | None = None
    errors: Literal["right", "inner as outside", "another destination", "too big dropped", "dropped"] = "right"
    error_source_filtered: bool = False
    error_checksum_verified: bool = True
    quoted_header_verified: bool = True
    quoted_segment_verified: bool = False
    extensions_pass: bool = True
    errors_from_inside: bool = True
    inside_errors_from: IPv4Address | None = None
    inside_errors_kill: bool = False
    query_errors_kill: bool = False
    hairpins_errors: bool = True
    icmp_kills: bool = False
    ttl_errors: bool = True
    forwards_expired: bool = False
    error_seconds: float = 0.0
    simultaneous_open: bool = True
    unsolicited_syn: Literal["silent", "late error", "reset", "reset of a port in use", "error"] = "silent"
    fragments_too_big: bool = True
    fragments_in_order: bool = True
    writes_into_fragments: bool = False
    frag_needed: bool = True
    separate_mappings: bool = True
    separate_protocols: bool = True
    separate_filters: bool = True
    new_identification: bool = True
    sets_dont_fragment: bool = False
    resets_pass: bool = True
    fins_pass: bool = True
    half_closed_passes: bool = True
    reset_seconds: float | None = None
    established_at_once: bool = False
    errors_refresh: bool = False
    errors_refresh_queries: bool = False
    port_held_seconds: float = 120.0
    port_range: int = 65536 - 1024
    port_tries: int | None = None
    host_ports: int | None = None
    host_ports_by_remote: bool = False
    spills: bool = False
    host_flows: int | None = None
    blocks: PortBlocks | None = None
    misplaced: int | None = None
    unserved: int | None = None
    takes_blocks: bool = False
    block_seconds: float | None = None
    host_sessions: int | None = None
    refusal_codes: tuple[int, ...] = (1, 13)
    refused_leak: bool = False
    room: int | None = None
    evicts: bool = False
    evicts_answered: bool = True
    forwards: bool = True
    accepts: tuple[tuple[Transport, tuple[int, ...]], ...] = ()
    served_hosts: int | None = None
    unserved_leave: bool = False
    untranslated: tuple[Transport, ...] = ()
    queries: Literal["pass", "dropped", "replies dropped"] = "pass"
    alg: bool = False
    invalid_leaks: bool = False
    sequence_offset: int = 0
    answers_syn: Literal["no", "SYN-ACK", "reset"] = "no"
    ends_connections: bool = False
    pcp: Literal["right", "none", "refuses", "opens nothing", "ignores deletion", "never ends", "any address"] = "right"
    loses: Callable[[int], bool] = field(default=lambda _: False)
    damages: Callable[[Packet, bytes], bytes] = field(default=lambda _, octets: octets)
    leaves_checksums: bool = False


@dataclass(eq=False)
class _Mapping:
    key: _Key
    outside: Endpoint
    remotes: set[Endpoint] = field(default_factory=set)
    last: float = 0.0
    answered: bool = False
    up_flags: int = 0
    sequences: dict[Endpoint, int] = field(default_factory=dict)
    down_flags: int = 0
    closed: bool = False
    leased_until: float | None = None

    @property
    def protocol(self) -> int:
        return self.key[0]

    @property
    def inside(self) -> Endpoint:
        return self.key[1]


class _Mappings:
    """The mappings in the order in which they were made; frames find theirs without a look at all others."""

    def __init__(self) -> None:
        self._all: dict[_Key, _Mapping] = {}
        self._of_port: defaultdict[int, dict[_Key, _Mapping]] = defaultdict(dict)
        self._of_host: defaultdict[Address, dict[_Key, _Mapping]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[_Mapping]:
        return iter(self._all.values())

    def get(self, key: _Key) -> _Mapping | None:
        """Return the mapping that is for this; None = there is none."""
        return self._all.get(key)

    def of_port(self, port: int) -> Collection[_Mapping]:
        """Return the mappings with this outside port or identifier."""
        return self._of_port[port].values()

    def of_host(self, address: Address) -> Collection[_Mapping]:
        """Return the mappings of an inside host."""
        return self._of_host[address].values()

    def add(self, mapping: _Mapping) -> None:
        for index in self._indexes(mapping):
            index[mapping.key] = mapping

    def remove(self, mapping: _Mapping) -> None:
        for index in self._indexes(mapping):
            del index[mapping.key]

    def _indexes(self, mapping: _Mapping) -> tuple[dict[_Key, _Mapping], ...]:
        return self._all, self._of_port[mapping.outside.port], self._of_host[mapping.inside.address]


class SimulatedNat:
    """The NAT between the tester's ports."""

    def __init__(self, behaviour: Behaviour, seed: int = 1) -> None:
        self.behaviour = self._everywhere = behaviour
        self.mappings = _Mappings()
        either = (behaviour,) if behaviour.elsewhere is None else (behaviour, behaviour.elsewhere)
        self._is_selective = any(one.untranslated or one.accepts or one.served_hosts is not None for one in either)
        self._own = frozenset(OUTSIDE + 256 * index for index in range(behaviour.addresses))
        self._time = 1000.0
        self._queue: deque[ArrivedFrame] = deque()
        self._later: list[tuple[float, Side, Packet]] = []
        self._acknowledged: set[int] = set()
        self._random = random.Random(seed)  # noqa: S311 - a simulation
        # The workers' first ports are at different distances, as they are after some time.
        share = 60_000 // behaviour.workers
        self._next_ports = [1024 + share * worker + 31 * worker**2 for worker in range(behaviour.workers)]
        self._frames = 0
        self.mtu = 1500
        self._expiries: list[tuple[float, int, _Mapping]] = []
        self._numbers = itertools.count()
        self._identification = 0
        self._free: dict[int, float] = {}
        self._holding: list[Address] = []
        self._new_at: dict[Address, float] = {}
        self._fragments: dict[tuple[object, ...], list[Packet]] = {}

    @contextmanager
    def narrow(self, mtu: int) -> Iterator[None]:
        """Give the outside another MTU for a while."""
        self.mtu, before = mtu, self.mtu
        try:
            yield
        finally:
            self.mtu = before

    # The tester's ports

    def now(self) -> float:
        return self._time

    def mac(self, side: Side) -> bytes:
        return _MACS[side]

    def send(self, side: Side, octets: bytes) -> None:
        self._frames += 1
        self._time += _FRAME_SECONDS
        if octets[12:14] == b"\x08\x06":
            return
        if not self.behaviour.forwards or self.behaviour.loses(self._frames):
            return
        packet = read_packet(octets[14:])
        assert packet is not None
        assert octets[:6] == _NAT_MACS[side]
        elsewhere, every = self._everywhere.elsewhere, self._everywhere
        self.behaviour = every if elsewhere is None or not every.is_elsewhere(packet) else elsewhere
        self._expire()
        if side == "initiator" and self.behaviour.nat64 is not None:
            packet = self.behaviour.nat64.to_ipv4(packet)
        self._take(side, packet)

    def receive(self, until: float) -> ArrivedFrame | None:
        """Give the next frame, or let the clock go on."""
        due = [one for one in self._later if one[0] <= until]
        if self._queue:
            return self._queue.popleft()
        if due:
            first = min(due, key=lambda one: one[0])
            self._later.remove(first)
            self._time = max(self._time, first[0])
            self._emit(first[1], first[2])
            return self._queue.popleft()
        self._time = max(self._time, until)
        return None

    def missed(self) -> Missed:
        return Missed()

    def _emit(self, side: Side, packet: Packet) -> None:
        rule = self.behaviour.nat64 if side == "initiator" else None
        for one in (packet,) if rule is None else rule.to_ipv6(packet):
            kind = b"\x08\x00" if rule is None else b"\x86\xdd"
            octets = self.behaviour.damages(one, one.octets())
            frame = _MACS[side] + _NAT_MACS[side] + kind + octets
            self._queue.append(ArrivedFrame(side, frame, self.behaviour.leaves_checksums))

    # The NAT

    def _take(self, side: Side, packet: Packet) -> None:
        if packet.is_fragment:
            key = (packet.source, packet.destination, packet.identification, packet.protocol)
            sizes = [len(part.payload) for part in (packet, *self._fragments.get(key, []))]
            whole = self._reassembled(packet)
            if whole is not None:
                self._take_whole(side, whole, cut=max(sizes))
        elif packet.destination == INSIDE and packet.receiver == Endpoint(INSIDE, _PCP_PORT):
            self._answer_pcp(packet)
        else:
            self._take_whole(side, packet)

    def _reassembled(self, packet: Packet) -> Packet | None:
        rule = self.behaviour.fragments
        key = (packet.source, packet.destination, packet.identification, packet.protocol)
        if rule == "none" or (rule == "in order" and packet.offset and key not in self._fragments):
            return None
        room = self.behaviour.fragment_room
        if room is not None and key not in self._fragments and len(self._fragments) >= room:
            return None
        parts = self._fragments.setdefault(key, [])
        parts.append(packet)
        parts.sort(key=lambda one: one.offset)
        octets, last = b"", False
        for part in parts:
            if part.offset != len(octets):
                return None
            octets += part.payload
            last = not part.more_fragments
        if not last:
            return None
        del self._fragments[key]
        return replace(parts[0], payload=octets, offset=0, more_fragments=False)

    def _take_whole(self, side: Side, packet: Packet, cut: int = 0) -> None:
        if packet.ttl <= 1 and not self.behaviour.forwards_expired:
            if self.behaviour.ttl_errors:
                self._error(side, packet, 11, 0, 0)
            return
        segment = packet.segment
        if self._drops(side, segment):
            return
        packet = _changed(packet, ttl=packet.ttl - 1)
        if isinstance(segment, TcpSegment):
            if side == "initiator" and segment.flags == SYN and self.behaviour.answers_syn != "no":
                self._answer_syn(packet, segment)
                return
            packet = self._renumbered(packet, segment)
            if self.behaviour.ends_connections and self._acknowledges(side, packet, segment):
                return
        if side == "responder":
            self._down(packet, cut)
        elif not (self._is_selective and self._is_unserved(packet)):
            self._up(packet, cut)
        elif self.behaviour.unserved_leave:
            self._forward("responder", packet, cut)

    def _drops(self, side: Side, segment: Segment | None) -> bool:
        """Whether the NAT drops packets of this kind, wherever they belong to."""
        rule = self.behaviour
        if isinstance(segment, TcpSegment):
            return bool(segment.flags & ((RST * (not rule.resets_pass)) | (FIN * (not rule.fins_pass))))
        if isinstance(segment, UdpSegment):
            return rule.nat64 is not None and not rule.nat64.adds_checksum and segment.checksum == 0
        return isinstance(segment, EchoMessage) and rule.queries == (
            "dropped" if side == "initiator" else "replies dropped"
        )

    def _is_unserved(self, packet: Packet) -> bool:
        """Whether the NAT has no rule for a protocol or an inside host, whose packets it drops or sends on as is."""
        most, is_error = self.behaviour.served_hosts, isinstance(packet.segment, ErrorMessage)
        if packet.protocol in {_PROTOCOLS[one] for one in self.behaviour.untranslated} and not is_error:
            return True
        if self._is_refused(packet):
            return True
        return most is not None and int(packet.source) - int(INSIDE) > most

    def _is_refused(self, packet: Packet) -> bool:
        """Whether it is the first packet to a port of an outside host that the rules do not accept."""
        ports = {_PROTOCOLS[one]: ports for one, ports in self.behaviour.accepts}.get(packet.protocol)
        if ports is None or packet.receiver is None or packet.receiver.port in ports:
            return False
        is_outside = not self._is_own(packet.destination) and packet.destination not in (INSIDE, INSIDE6)
        return is_outside and all(packet.receiver not in one.remotes for one in self.mappings.of_host(packet.source))

    def _answer_syn(self, packet: Packet, syn: TcpSegment) -> None:
        flags = SYN | ACK if self.behaviour.answers_syn == "SYN-ACK" else RST | ACK
        self._emit("initiator", _answer(packet, TcpSegment(flags, 1, syn.sequence + 1)))

    def _acknowledges(self, side: Side, packet: Packet, segment: TcpSegment) -> bool:
        """Acknowledge the outside's SYN and FIN for the inside host; whether a segment is the host's own ACK."""
        if side == "responder" and segment.flags in (SYN | ACK, FIN | ACK):
            number = segment.sequence + 1
            self._emit("responder", _answer(packet, TcpSegment(ACK, segment.acknowledgement, number)))
            self._acknowledged.add(number)
        return segment.flags == ACK and not segment.data and segment.acknowledgement in self._acknowledged

    def _renumbered(self, packet: Packet, segment: TcpSegment) -> Packet:
        """Add the offset to the sequence numbers of both sides."""
        offset = self.behaviour.sequence_offset
        if not offset:
            return packet
        numbers = (segment.sequence + offset) % 2**32, (segment.acknowledgement - offset) % 2**32
        segment = replace(segment, sequence=numbers[0], acknowledgement=numbers[1])
        return _between(packet, packet.sender, packet.receiver, segment)

    def _error(self, side: Side, packet: Packet, kind: int, code: int, rest: int) -> None:
        own = INSIDE if side == "initiator" else OUTSIDE
        error = make_error(own, packet.source, ErrorMessage(kind, code, rest, packet.octets()[:28]))
        if self.behaviour.error_seconds:
            self._later.append((self._time + self.behaviour.error_seconds, side, error))
        else:
            self._emit(side, error)

    def _up(self, packet: Packet, cut: int) -> None:
        segment = packet.segment
        if isinstance(segment, ErrorMessage):
            self._error_up(segment)
            return
        inside, remote = packet.sender, packet.receiver
        if inside is None or remote is None:
            return
        if isinstance(segment, EchoMessage):
            remote = Endpoint(remote.address, 0)
        mapping = self._mapping(packet.protocol, inside, remote, segment)
        if mapping is None or self._is_invalid(mapping, remote, segment):
            self._refuse(packet, segment)
            return
        mapping.remotes.add(remote)
        if self.behaviour.refreshes_outbound or mapping.last == 0:
            mapping.last = self._time
        if isinstance(segment, TcpSegment):
            mapping.up_flags |= segment.flags
            is_last = segment.flags & (SYN | FIN | RST | ACK) == ACK
            mapping.closed |= is_last and bool(mapping.up_flags & mapping.down_flags & FIN)
        self._will_expire(mapping)
        if self._is_own(packet.destination):
            self._hairpin(packet, mapping)
            return
        # What came in fragments leaves in fragments of that size.
        if 20 + len(packet.options) + (cut or len(packet.payload)) > self.mtu:
            if self._refuses_size(packet):
                return
            cut = (self.mtu - 20) // 8 * 8
        packet = _with_source(self._identified(packet), mapping.outside, alg=self.behaviour.alg)
        self._forward("responder", packet, cut)

    def _is_invalid(self, mapping: _Mapping, remote: Endpoint, segment: object) -> bool:
        """Whether a segment is out of its connection's window, or opens one that both ends have closed.

        A NAT without half-closed connections finds data invalid that are sent after a FIN of the outside.
        """
        if not isinstance(segment, TcpSegment):
            return False
        if not self.behaviour.half_closed_passes and segment.data and mapping.down_flags & FIN:
            return True
        if not self.behaviour.invalid_leaks:
            return False
        before = mapping.sequences.setdefault(remote, segment.sequence)
        if mapping.up_flags & mapping.down_flags & FIN and segment.flags & SYN:
            return True
        if segment.flags & SYN or (segment.sequence - before) % 2**32 < 2**16:
            mapping.sequences[remote] = segment.sequence
            return False
        return True

    def _identified(self, packet: Packet) -> Packet:
        """Give a packet that may be fragmented an identification that no other one has."""
        if self.behaviour.sets_dont_fragment:
            return replace(packet, dont_fragment=True)
        if packet.dont_fragment or not self.behaviour.new_identification:
            return packet
        self._identification = (self._identification + 1) % 65536
        return _changed(packet, identification=self._identification)

    def _refuse(self, packet: Packet, segment: object) -> None:
        """Answer a packet for which there is no room."""
        if isinstance(segment, TcpSegment) and self.behaviour.invalid_leaks:
            self._forward("responder", packet, 0)
            return
        if isinstance(segment, TcpSegment) and segment.flags & (SYN | ACK) != SYN:
            return
        for code in self.behaviour.refusal_codes:
            self._error("initiator", packet, 3, code, 0)
        if self.behaviour.refused_leak:
            self._forward("responder", packet, 0)

    def _refuses_size(self, packet: Packet) -> bool:
        """Whether a packet that is too big for the outside is dropped, with an error if it may not be fragmented."""
        if packet.dont_fragment and self.behaviour.frag_needed:
            self._error("initiator", packet, 3, 4, self.mtu)
        return packet.dont_fragment or not self.behaviour.fragments_too_big

    def _forward(self, side: Side, packet: Packet, cut: int) -> None:
        parts = packet.cut(cut // 8 * 8) if cut else (packet,)
        for part in parts if self.behaviour.fragments_in_order else reversed(parts):
            if part.offset and self.behaviour.writes_into_fragments:
                part = replace(part, payload=bytes(2) + part.payload[2:])  # noqa: PLW2901 - the same part, changed
            self._emit(side, part)

    def _is_own(self, address: object) -> bool:
        return address in self._own

    def _hairpin(self, packet: Packet, mapping: _Mapping) -> None:
        if self.behaviour.hairpinning == "none":
            self._error("initiator", packet, 3, 3, 0)
            return
        if self.behaviour.hairpinning == "external source":
            packet = _with_source(packet, mapping.outside)
        elif self.behaviour.hairpinning == "source on the LAN":
            packet = _with_source(packet, Endpoint(INSIDE, mapping.outside.port))
        elif self.behaviour.hairpinning == "another port":
            packet = _with_source(packet, replace(mapping.outside, port=mapping.outside.port ^ 1))
        target = packet.receiver
        for other in self.mappings:
            if other.protocol == packet.protocol and other.outside == target and self._admits(other, mapping.outside):
                self._emit("initiator", _with_destination(packet, other.inside))
                return

    def _answer_pcp(self, packet: Packet) -> None:
        request, is_deaf = packet.segment, self.behaviour.pcp == "none" or self.behaviour.nat64 is not None
        if isinstance(request, UdpSegment) and not is_deaf and not self._is_unserved(packet):
            self._emit("initiator", _between(packet, packet.receiver, packet.sender, self._lease(packet, request)))

    def _lease(self, packet: Packet, request: UdpSegment) -> UdpSegment:
        """Return the answer to a PCP MAP request (RFC 6887 section 11), which makes, changes or ends a mapping."""
        lifetime, client, nonce, protocol, port = struct.unpack_from("!4xI16s12sB3xH", request.data)
        rule, inside = self.behaviour.pcp, Endpoint(packet.source, port)
        is_own = client[12:] == packet.source.packed or rule == "any address"
        result, outside = (12 if not is_own else 2 if rule == "refuses" else 0), Endpoint(OUTSIDE, 0)
        if result == 0:
            found = self._mapping(protocol, inside, Endpoint(OUTSIDE + 1, 9), TcpSegment(SYN))
            result, outside = (8, outside) if found is None else (0, found.outside)
            if found is not None and not (lifetime == 0 and rule == "ignores deletion"):
                found.leased_until = math.inf if rule == "never ends" and lifetime else self._time + lifetime
                self._will_expire(found)
                if rule == "opens nothing":
                    self.mappings.remove(found)
        head = struct.pack("!BBBBII12x", 2, 0x81, 0, result, lifetime, int(self._time))
        assigned = bytes(10) + b"\xff\xff" + outside.address.packed
        return UdpSegment(head + struct.pack("!12sB3xHH16s", nonce, protocol, port, outside.port, assigned))

    def _admits(self, mapping: _Mapping, source: Endpoint | None) -> bool:
        if source is None:
            return False
        if mapping.leased_until is not None:
            return True
        if self.behaviour.filtering == "endpoint-independent":
            return True
        if self.behaviour.filtering == "address-dependent" or mapping.protocol == ICMP[4]:
            return source.address in {remote.address for remote in self._admitted(mapping)}
        return source in self._admitted(mapping)

    def _admitted(self, mapping: _Mapping) -> set[Endpoint]:
        """Return the remote endpoints that may enter."""
        if self.behaviour.separate_filters:
            return mapping.remotes
        return set().union(*(one.remotes for one in self.mappings if one.inside == mapping.inside))

    def _down(self, packet: Packet, cut: int) -> None:
        segment = packet.segment
        if isinstance(segment, ErrorMessage):
            self._error_down(packet, segment)
            return
        source, target = packet.sender, packet.receiver
        if target is None:
            return
        found = [
            one
            for one in self.mappings.of_port(target.port)
            if one.outside == target
            and (one.protocol == packet.protocol or not self.behaviour.separate_protocols)
            and self._admits(one, source)
        ]
        # Where an outside endpoint is overloaded, the remote endpoint decides.
        found.sort(key=lambda one: source not in one.remotes)
        if found and self._takes(found[0], segment):
            mapping = found[0]
            mapping.answered = True
            if self.behaviour.refreshes_inbound:
                mapping.last = self._time
            if isinstance(segment, TcpSegment):
                mapping.down_flags |= segment.flags
            self._will_expire(mapping)
            self._forward("initiator", _with_destination(packet, mapping.inside), cut)
            return
        if isinstance(segment, TcpSegment) and segment.flags & SYN:
            rule = self.behaviour.unsolicited_syn
            is_used = any(one.outside == target for one in self.mappings.of_port(target.port))
            if rule == "reset" or (rule == "reset of a port in use" and is_used):
                self._emit("responder", _answer(packet, TcpSegment(RST | ACK, 0, segment.sequence + 1)))
            elif rule == "error":
                self._error("responder", packet, 3, 3, 0)
            elif rule == "late error":
                error = ErrorMessage(3, 3, 0, packet.octets()[:28])
                self._later.append((self._time + 6.5, "responder", make_error(OUTSIDE, packet.source, error)))

    def _takes(self, mapping: _Mapping, segment: object) -> bool:
        bare_syn = isinstance(segment, TcpSegment) and segment.flags & (SYN | ACK) == SYN
        return self.behaviour.simultaneous_open or not bare_syn or mapping.up_flags != SYN

    # ICMP errors

    def _takes_error(self, packet: Packet, error: ErrorMessage, inner: Packet) -> bool:
        """Whether the checksums of an ICMP error from outside, and its length, are as this NAT wants them."""
        rule, head = self.behaviour, 20 + len(inner.options)
        if rule.error_checksum_verified and not is_right(packet):
            return False
        if not rule.extensions_pass and len(error.quoted) > int.from_bytes(error.quoted[2:4], "big"):
            return False
        if rule.quoted_header_verified and checksum(error.quoted[:head]):
            return False
        # Of a packet that is cut off, no checksum can be verified.
        is_short = len(error.quoted) < int.from_bytes(error.quoted[2:4], "big")
        return is_short or is_right(inner) or not rule.quoted_segment_verified

    def _error_down(self, packet: Packet, error: ErrorMessage) -> None:
        inner = error.packet
        if inner is None or not self._takes_error(packet, error, inner):
            return
        source, remote = inner.sender, inner.receiver
        found = [one for one in self.mappings if one.protocol == inner.protocol and one.outside == source]
        if not found or source is None or remote is None:
            return
        mapping = next((one for one in found if remote in one.remotes), found[0])
        if self.behaviour.error_source_filtered and packet.source != remote.address:
            return
        if self.behaviour.icmp_kills or (self.behaviour.query_errors_kill and mapping.protocol == ICMP[4]):
            self.mappings.remove(mapping)
        if self.behaviour.errors_refresh_queries and mapping.protocol == ICMP[4]:
            mapping.last = self._time
            self._will_expire(mapping)
        rule, is_too_big = self.behaviour.errors, (error.kind, error.code) == (3, 4)
        if rule == "dropped" or (rule == "too big dropped" and is_too_big):
            return
        quoted = error.quoted
        if rule == "another destination":
            inner = replace(inner, destination=inner.destination + 1)
        if rule != "inner as outside":
            quoted = _inner_with_source(error.quoted, inner, mapping.inside)
        self._emit("initiator", make_error(packet.source, mapping.inside.address, replace(error, quoted=quoted)))

    def _error_up(self, error: ErrorMessage) -> None:
        inner = error.packet
        if inner is None or not self.behaviour.errors_from_inside:
            return
        target = inner.receiver
        found = [one for one in self.mappings if one.protocol == inner.protocol and one.inside == target]
        if not found:
            return
        mapping = found[0]
        if self._is_own(inner.source):
            self._hairpin_error(mapping, inner, error)
            return
        if self.behaviour.errors_refresh:
            mapping.last = self._time
            self._will_expire(mapping)
        if self.behaviour.inside_errors_kill:
            self.mappings.remove(mapping)
        quoted = _inner_with_destination(error.quoted, inner, mapping.outside)
        own = self.behaviour.inside_errors_from or mapping.outside.address
        self._emit("responder", make_error(own, inner.source, replace(error, quoted=quoted)))

    def _hairpin_error(self, mapping: _Mapping, inner: Packet, error: ErrorMessage) -> None:
        """Hand the error of one inside host to the other one, which sent the hairpinned packet."""
        source = inner.sender
        found = [one for one in self.mappings if one.protocol == inner.protocol and one.outside == source]
        if not found or not self.behaviour.hairpins_errors:
            return
        quoted = _inner_with_destination(error.quoted, inner, mapping.outside)
        whole = read_packet(quoted)
        assert whole is not None
        quoted = _inner_with_source(quoted, whole, found[0].inside)
        self._emit(
            "initiator", make_error(mapping.outside.address, found[0].inside.address, replace(error, quoted=quoted))
        )

    # Mappings

    def _will_expire(self, mapping: _Mapping) -> None:
        """Note when a mapping will expire; to be called whenever a frame may have changed that."""
        heapq.heappush(self._expiries, (mapping.last + self._life(mapping), next(self._numbers), mapping))

    def _expire(self) -> None:
        while self._expiries and self._expiries[0][0] <= self._time:
            mapping = heapq.heappop(self._expiries)[2]
            # A later frame may have given it more time, and it may be gone already.
            if self._time - mapping.last >= self._life(mapping) and self.mappings.get(mapping.key) is mapping:
                self._free[mapping.outside.port] = self._time
                self.mappings.remove(mapping)

    def _life(self, mapping: _Mapping) -> float:
        rule = self.behaviour
        if mapping.leased_until is not None:
            return mapping.leased_until - mapping.last
        if mapping.protocol == ICMP[4]:
            return rule.icmp_seconds
        if mapping.protocol == UDP:
            answered = rule.udp_answered_seconds
            return answered if answered is not None and mapping.answered else rule.udp_seconds
        both = mapping.up_flags & mapping.down_flags
        is_reset = (mapping.up_flags | mapping.down_flags) & RST
        ended = rule.reset_seconds if is_reset else rule.closed_seconds if mapping.closed else None
        if ended is not None:
            return ended
        if rule.established_at_once:
            return rule.established_seconds
        closing = (mapping.up_flags | mapping.down_flags) & RST or both & FIN
        return rule.transitory_seconds if closing or not both & ACK or not both & SYN else rule.established_seconds

    def _mapping(self, protocol: int, inside: Endpoint, remote: Endpoint, segment: object) -> _Mapping | None:
        rule = self.behaviour
        part: object = {
            "endpoint-independent": None,
            "address-dependent": remote.address,
            "address and port-dependent": remote,
        }[rule.mapping]
        found = self.mappings.get((protocol, inside, part))
        if found is None and protocol == TCP and isinstance(segment, TcpSegment) and segment.flags & (SYN | ACK) != SYN:
            return None
        if not (self._has_block(inside.address) and self._has_room(inside, remote, found)):
            return None
        if found is None:
            other = self.mappings.get((UDP, inside, part)) if not rule.separate_mappings else None
            choose = self._of_range if rule.ports in ("of a range", "drawn") else self._outside
            outside = choose(protocol, inside, remote) if other is None else other.outside
            if outside is None:
                return None
            found = _Mapping((protocol, inside, part), outside)
            self.mappings.add(found)
            self._new_at[inside.address] = self._time
        return found

    def _has_room(self, inside: Endpoint, remote: Endpoint, found: _Mapping | None) -> bool:
        rule = self.behaviour
        if rule.host_ports is None and rule.host_sessions is None and rule.host_flows is None and rule.room is None:
            return True
        own = self.mappings.of_host(inside.address)
        if found is None and rule.host_flows is not None and len(own) >= rule.host_flows:
            return False
        if rule.host_sessions is not None and sum(len(one.remotes) for one in own) >= rule.host_sessions:
            return found is not None and remote in found.remotes
        most = None if rule.host_ports is None else rule.host_ports // 2 * (rule.addresses if rule.spills else 1)
        if rule.ports in ("of a range", "drawn"):
            # Flows share its ports, which limit it by themselves.
            most = None
        if found is not None or (most is not None and len(own) >= most):
            return found is not None
        if rule.room is not None and len(self.mappings) >= rule.room:
            if rule.evicts:
                self.mappings.remove(next(one for one in self.mappings if rule.evicts_answered or not one.answered))
            return rule.evicts
        return True

    def _has_block(self, host: Address) -> bool:
        """Whether a host has a block, or gets one, if need be that of the host that has its block for longest.

        A host that has opened no new flow for some time may have lost its block.
        """
        rule = self.behaviour
        if rule.block_seconds is not None:
            new_since = self._time - rule.block_seconds
            self._holding = [one for one in self._holding if self._new_at.get(one, self._time) > new_since]
        if rule.blocks is None or rule.blocks.deterministic or host in self._holding:
            return rule.unserved is None or int(host) - int(INSIDE) - 1 != rule.unserved
        if len(self._holding) >= rule.blocks.per_address:
            if not rule.takes_blocks:
                return False
            for mapping in tuple(self.mappings.of_host(self._holding.pop(0))):
                self.mappings.remove(mapping)
        self._holding.append(host)
        return True

    def _counted_port(self) -> int:
        """Return the next port of the only counter, or of that of a worker."""
        counter = self._random.randrange(self.behaviour.workers) if self.behaviour.ports == "workers" else 0
        self._next_ports[counter] = self._next_ports[counter] + 1 if self._next_ports[counter] < 65535 else 1024
        return self._next_ports[counter]

    def _outside(self, protocol: int, inside: Endpoint, remote: Endpoint) -> Endpoint | None:
        rule = self.behaviour
        index = int(inside.address) if rule.paired else self._random.randrange(rule.addresses)
        index += protocol * rule.paired_by_transport + int(remote.address) * rule.paired_by_remote
        index += inside.port % 2 * rule.paired_by_port
        if rule.spills and rule.host_ports is not None:
            index += len(self.mappings.of_host(inside.address)) // (rule.host_ports // 2)
        address = OUTSIDE + 256 * (index % rule.addresses)
        counts = rule.ports in ("contiguous", "workers")

        def is_taken(port: int) -> bool:
            has_other_parity = not counts and rule.parity and port % 2 != inside.port % 2
            if has_other_parity or rule.overlaps:
                return has_other_parity
            if rule.ports != "overloading" and self._time - self._free.get(port, -math.inf) < rule.port_held_seconds:
                return True
            return any(
                one.protocol == protocol
                and one.outside.address == address
                and (rule.ports != "overloading" or remote in one.remotes)
                for one in self.mappings.of_port(port)
            )

        low, high = (1, 1024) if inside.port < 1024 and rule.ranges else (1024, 1024 + rule.port_range)
        wished = low + (inside.port - low + 100) % (high - low) if rule.ports == "offset" else inside.port
        if rule.ports in ("preserving", "overloading", "offset") and not is_taken(wished):
            return Endpoint(address, wished)
        if rule.host_ports is not None and low == 1024:
            number = int(inside.address) - int(INSIDE) + remote.port % 7 * 5 * rule.host_ports_by_remote
            low = 1024 + (0 if number - 1 == rule.misplaced else number) * rule.host_ports
            high = low + rule.host_ports
        for _ in range(_PORT_TRIES if rule.port_tries is None else rule.port_tries):
            port = self._counted_port() if counts else self._random.randrange(low, high)
            if rule.ports == "last bits":
                # The last five bits of the inside port, in a range of a host that has ranges all over (RFC 7597 5.1).
                port = 1024 * (port // 1024) + 96 + inside.port % 32
            if not is_taken(port):
                return Endpoint(address, port)
        # Without a limit of tries, it finds the last port that is free.
        rest = range(low, high) if rule.port_tries is None else ()
        return next((Endpoint(address, port) for port in rest if not is_taken(port)), None)

    def _of_range(self, protocol: int, inside: Endpoint, remote: Endpoint) -> Endpoint | None:
        """Return an outside endpoint of a range that no other flow has to this remote endpoint, as Linux does.

        It is that of an earlier mapping of the inside endpoint if possible, then the inside port unless ports are
        drawn, then any.
        """
        ports = range(1024, 1024 + self.behaviour.port_range)
        if self.behaviour.host_ports is not None:
            number = int(inside.address) - int(INSIDE)
            ports = range(1024 + number * self.behaviour.host_ports, 1024 + (1 + number) * self.behaviour.host_ports)

        def is_free(port: int) -> bool:
            every = (one for one in self.mappings.of_port(port) if one.protocol == protocol)
            if self.behaviour.mapping == "address-dependent":
                return not any(remote.address in {each.address for each in one.remotes} for one in every)
            return not any(remote in one.remotes for one in every)

        own = [one.outside.port for one in self.mappings.of_host(inside.address) if one.key[:2] == (protocol, inside)]
        kept = [inside.port] if inside.port in ports and self.behaviour.ports == "of a range" else []
        drawn = [self._random.choice(ports) for _ in range(_PORT_TRIES)]
        every = itertools.chain(own, kept, drawn, ports)
        return next((Endpoint(OUTSIDE, port) for port in every if is_free(port)), None)


def _answer(packet: Packet, segment: TcpSegment) -> Packet:
    """Return a segment to the sender of a packet."""
    assert packet.sender is not None
    assert packet.receiver is not None
    return make_packet(packet.receiver, packet.sender, segment)


def _between(packet: Packet, source: Endpoint | None, target: Endpoint | None, segment: Query) -> Packet:
    """Return a packet with other endpoints and another segment, and the same IP header besides."""
    assert source is not None
    assert target is not None
    made = make_packet(source, target, segment)
    head = packet.ttl, packet.identification, *_flags(packet)
    return Packet(source.address, target.address, packet.protocol, made.payload, *head)


def _changed(packet: Packet, *, ttl: int | None = None, identification: int | None = None) -> Packet:
    """Return the packet with another header; `replace` takes a tenth of the time of an audit of a simulated NAT."""
    life, number = packet.ttl if ttl is None else ttl, identification
    head = life, packet.identification if number is None else number, *_flags(packet)
    return Packet(packet.source, packet.destination, packet.protocol, packet.payload, *head)


def _flags(packet: Packet) -> tuple[bool, bool, int, bool, bytes]:
    """Return what a NAT leaves as it is in the header."""
    return packet.dont_fragment, packet.more_fragments, packet.offset, packet.fragment_header, packet.options


def _with_source(packet: Packet, source: Endpoint, *, alg: bool = False) -> Packet:
    segment = packet.segment
    if not isinstance(segment, Query):
        return replace(packet, source=source.address)
    if isinstance(segment, UdpSegment):
        segment = UdpSegment(segment.data)
    if alg and not isinstance(segment, EchoMessage):
        before, after = str(packet.source).encode(), str(source.address).encode()
        segment = replace(segment, data=segment.data.replace(before, after))
    return _between(packet, source, packet.receiver, segment)


def _with_destination(packet: Packet, target: Endpoint) -> Packet:
    segment = packet.segment
    if not isinstance(segment, Query):
        return replace(packet, destination=target.address)
    if isinstance(segment, UdpSegment):
        segment = UdpSegment(segment.data)
    return _between(packet, packet.sender, target, segment)


def _port_at(inner: Packet, *, source: bool) -> int:
    """Place of a port, or of an identifier, in a quoted segment."""
    return 4 if inner.protocol == ICMP[4] else 0 if source else 2


def _inner_with_source(quoted: bytes, inner: Packet, source: Endpoint) -> bytes:
    place = _port_at(inner, source=True)
    payload = inner.payload[:place] + source.port.to_bytes(2, "big") + inner.payload[place + 2 :]
    return _shortened(replace(inner, source=source.address, payload=payload), quoted)


def _inner_with_destination(quoted: bytes, inner: Packet, target: Endpoint) -> bytes:
    place = _port_at(inner, source=False)
    payload = inner.payload[:place] + target.port.to_bytes(2, "big") + inner.payload[place + 2 :]
    return _shortened(replace(inner, destination=target.address, payload=payload), quoted)


def _shortened(packet: Packet, quoted: bytes) -> bytes:
    """Keep the length that the quoted header states, which is that of the whole packet."""
    octets = packet.octets()
    return octets[:2] + quoted[2:4] + octets[4:]


def examiner_of(
    behaviour: Behaviour,
    *,
    seed: int = 1,
    inside_hosts: int | None = None,
    outside_hosts: int = 3,
    transport: Transport = "udp",
) -> Examiner:
    """Return an examiner of a NAT with this behaviour; without `inside_hosts`, as many as an audit has."""
    needed = hosts_needed(one.flows for one in requirements() for _ in one.transports)
    teams = needed if inside_hosts is None else inside_hosts
    blocks = None
    if behaviour.blocks is not None:
        blocks = HostBlocks(behaviour.blocks, INSIDE + 1, Addresses(OUTSIDE, OUTSIDE))
    number = teams if blocks is None else blocks.hosts_for(teams)
    rule = behaviour.nat64
    gateway: Address = INSIDE if rule is None else INSIDE6
    inside = tuple(gateway + 1 + index for index in range(number))
    outside = tuple(OUTSIDE + 1 + index for index in range(outside_hosts))
    sides: dict[Side, AuditSide] = {
        "initiator": AuditSide(inside, gateway, _NAT_MACS["initiator"]),
        "responder": AuditSide(outside, OUTSIDE, _NAT_MACS["responder"]),
    }
    nat = SimulatedNat(behaviour, seed)
    prefix = None if rule is None else PREFIX
    network = Network(nat, sides)
    return Examiner(network, transport, prefix, mappings=_CROWD, narrow=nat.narrow, blocks=blocks, teams=teams)


def forgetful(seconds: float) -> Behaviour:
    """A NAT that forgets everything after this time."""
    return Behaviour(udp_seconds=seconds, icmp_seconds=seconds, transitory_seconds=seconds, established_seconds=seconds)


def to_second(packet: Packet) -> bool:
    """Whether a packet goes to or comes from the second remote host."""
    return OUTSIDE + 2 in (packet.source, packet.destination)


def of_host(number: int) -> Callable[[Packet], bool]:
    """Whether an inside host, from 1 on, sends a packet."""
    return lambda packet: packet.source == INSIDE + number


def has_error(packet: Packet, *, but: tuple[int, int] = (0, 0), octets: int | None = None) -> bool:
    """Whether a packet has an ICMP error of another type and code, that quotes so many octets (None = any number)."""
    error = packet.segment
    if not isinstance(error, ErrorMessage):
        return False
    return (error.kind, error.code) != but and octets in (None, len(error.quoted))


def has_source_port(port: int) -> Callable[[Packet], bool]:
    """Whether a packet comes from this port."""
    return lambda packet: packet.sender is not None and packet.sender.port == port


def is_large_fragment(packet: Packet) -> bool:
    """Whether a packet is a fragment of more than 1000 octets."""
    return packet.is_fragment and len(packet.payload) > 1000


#: Blocks of each host that are computed, and blocks of those that ask for one.
COMPUTED = Behaviour(host_ports=1200, blocks=PortBlocks(size=1200, first_port=2224, deterministic=True))
ON_DEMAND = Behaviour(blocks=PortBlocks(size=1000))
