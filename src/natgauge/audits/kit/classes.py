# SPDX-License-Identifier: Apache-2.0
"""Classes of a gateway's behaviour (RFC 4787 sections 4 to 6): mapping, filtering, ports, hairpinning.

All functions that send frames raise `NotSeenError` if a frame of the inside or a control frame does not arrive, or if
the tester has too few addresses.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

from natgauge.audits.kit.examiner import ALONE, AloneError, Examiner, NotSeenError, compete, rival_of
from natgauge.audits.kit.packets import SYN, Endpoint, Flow, Packet, is_same, is_tcp, lone_packet
from natgauge.words import Address

Dependence = Literal["endpoint-independent", "address-dependent", "address and port-dependent"]
_INDEPENDENT: Final[Dependence] = "endpoint-independent"
PortClass = Literal["preserving", "overloading", "contiguous", "predictable", "random"]
HairpinClass = Literal["external source", "internal source", "another source", "none"]
_EXTERNAL: Final[HairpinClass] = "external source"

#: Number of flows whose outside ports show how the gateway assigns ports.
PORT_FLOWS: Final = 64
#: Share of equal steps from port to port from which on the ports are contiguous.
_CONTIGUOUS_SHARE: Final = 0.8
#: Shares of the most entropy that steps from port to port, or distances from the inside ports, can have: from the first
#: one on ports may be random, below the second one they are predictable. Of 40 to 64 flows, random ones of 128 ports
#: have 0.9 and more, and of 64 ports 0.85. Two workers that count have at most 0.65, three about 0.7, eight up to 0.97.
_RANDOM_SHARE: Final = 0.89
_PREDICTABLE_SHARE: Final = 0.7
#: Share of ports that are next to another one in order, at one distance, from which on workers may have counted them:
#: up to a dozen workers leave as many rows of ports. Random ones of 128 ports leave half.
_ROWS_SHARE: Final = 0.7
#: Fewer flows do not show that ports are random: those of a few workers look alike.
_LEAST_FLOWS: Final = 40
_BY_RANDOMNESS: Final[dict[bool | None, PortClass | None]] = {True: "random", False: "predictable", None: None}
#: Share of kept ports from which on they are preserved.
_PRESERVED_SHARE: Final = 0.9
#: Pairs of flows that look for a clash of outside ports, at least and where ports come from a wide range. In a narrower
#: range they go on until so many clashes are likely if ports are chosen at random, as far as a host has flows for it:
#: of a block of 128 ports the most pairs show one in 99 % of cases.
_LEAST_PAIRS, _MOST_PAIRS = 8, 24
_WIDE_RANGE: Final = 1024
_CLASHES: Final = 5
#: Share of ports in order that were opened in order: that of random ones is half, with few exceptions. A dozen workers
#: that count leave as many rows of rising ports.
_RISING_SHARE: Final = 0.75
#: Ports of a host that spread so much wider to a second remote endpoint come from another range.
_SAME_RANGE: Final = 3
#: Most flows that one inside host opens for the class of mapping, where ports come from a wide range.
MAPPING_FLOWS: Final = 9 + 2 * _LEAST_PAIRS
#: Likewise for port overloading.
OVERLOADING_FLOWS: Final = 3 + _LEAST_PAIRS


@dataclass(frozen=True, slots=True)
class MappingSeen:
    """The mapping behaviour of a gateway.

    Attributes:
        alone: its class while no other flow has the outside port of the first one; None = not examined.
        likewise: other inside endpoints, of this and of another host, each with one outside endpoint, too.
        further: flows that were opened to see whether one gets the outside endpoint of another one.
    """

    kind: Dependence
    alone: Dependence | None
    outside: tuple[tuple[Endpoint, Endpoint], ...]
    likewise: int = 0
    further: int = 0

    @property
    def words(self) -> str:
        """The mappings as a sentence, without its full stop."""
        seen = ", ".join(f"{outside} to {remote}" for remote, outside in self.outside)
        same = "" if self.alone in (None, self.kind) else f"; without another flow on the same port: {self.alone}"
        others = f"; {self.likewise} others had one, too" if self.likewise and self.kind == _INDEPENDENT else ""
        none = f"; none of {self.further} further flows had the outside port of another one" if self.further else ""
        return f"{self.kind}: one inside endpoint had {seen}{others}{same}{none}"


def mapping(examiner: Examiner) -> MappingSeen:
    """Find the mapping class.

    A gateway that keeps the source port looks endpoint-independent as long as nobody else uses the port. So a second
    inside host with the same outside address takes the same port towards the other remote endpoints in between.

    A gateway that gives ports of a range looks so until another flow, maybe of the same host, has the outside port. So
    flows to two remote endpoints are opened until one has the outside port of another one, whose turn is then the next.

    The second host's mapping counts, too: a gateway can have a rule for the first host alone.
    """
    own = examiner.endpoint()
    first, second = examiner.remote(0), examiner.remote(0)
    third = examiner.remote(1, first.port)
    remotes = (first, third) if examiner.transport == "icmp" else (first, second, third)
    flows = [examiner.open(own, first)]
    alone: Dependence | None = None
    rival: Flow | None = None
    others: list[list[Flow]] = []
    if len(examiner.hosts("initiator")) > 1:
        other = examiner.endpoint()
        others = [[examiner.open(other, remote) for remote in remotes]]
        alone = _dependence(others[0])
        rival = rival_of(examiner, own, flows[0].mapped.address, remotes[1])
        if rival is not None:
            others.append([rival, *(examiner.open(rival.inside, remote) for remote in remotes[2:])])
    flows += [examiner.open(own, remote) for remote in remotes[1:]]
    if rival is not None:
        others[-1].insert(0, examiner.open(rival.inside, first))
    decisive = next((one for one in (flows, *others) if _dependence(one) != _INDEPENDENT), flows)
    if decisive is not flows:
        # It is that of another inside endpoint, and no change of this one's.
        flows, alone = decisive, None
    kind = _dependence(flows)
    if kind == _INDEPENDENT:
        # A pool can choose the outside address by the remote one, and it may choose the same for two of them.
        further = range(2, len(examiner.hosts("responder")))
        flows += [examiner.open(own, examiner.remote(index)) for index in further]
        if len({flow.mapped for flow in flows}) > 1:
            kind = "address-dependent"
    if kind == _INDEPENDENT and flows[0].mapped.port == own.port:
        # The port was kept, which shows nothing without the second host.
        examiner.host(1)
        if rival is None:
            raise AloneError(f"{own} kept its port at {flows[0].mapped}; {ALONE}")
    seen = MappingSeen(kind, alone, _outside(flows), len(others))
    shared = rival is not None and rival.mapped == flows[0].mapped
    return _contested(examiner, seen, remotes) if kind == _INDEPENDENT and not shared else seen


def _outside(flows: Iterable[Flow]) -> tuple[tuple[Endpoint, Endpoint], ...]:
    return tuple((flow.remote, flow.mapped) for flow in flows)


def _contested(examiner: Examiner, seen: MappingSeen, remotes: Sequence[Endpoint]) -> MappingSeen:
    """Return the class of a gateway whose mapping looked endpoint-independent, when another flow has the port."""
    found = _clash(examiner, examiner.host(), remotes[0], remotes[-1])
    if found.both is None:
        return replace(seen, further=found.flows)
    flow, other = found.both
    for remote in remotes[1:-1]:
        examiner.open(other, remote)
    flows = [flow, *(examiner.open(flow.inside, remote) for remote in remotes[1:])]
    return MappingSeen(_dependence(flows), seen.kind, _outside(flows))


@dataclass(frozen=True, slots=True)
class _Clash:
    """Flows to two remote endpoints that looked for one outside endpoint of two of them.

    Attributes:
        both: the flow to the first remote endpoint that has it, and the inside endpoint of the other; None = none had.
        pairs: outside endpoints of flows to the first and to the second remote endpoint, in order of opening.
    """

    both: tuple[Flow, Endpoint] | None
    pairs: Sequence[tuple[Endpoint, Endpoint]]

    @property
    def flows(self) -> int:
        return 2 * len(self.pairs)

    @property
    def are_counted(self) -> bool:
        """Whether the higher port is the later one, or the earlier one, of most ports that are next to each other."""
        ports = [end.port for pair in self.pairs for end in pair]
        opened = sorted(range(len(ports)), key=ports.__getitem__)
        rising = sum(before < after for before, after in pairwise(opened)) / (len(ports) - 1)
        return not 1 - _RISING_SHARE < rising < _RISING_SHARE

    @property
    def doubt(self) -> str:
        """Why these flows can have found no clash by chance; empty = they would have found one if there was one."""
        if self.are_counted:
            return "the gateway counts ports"
        seen = [end for pair in self.pairs for end in pair]
        return "" if _would_clash(len(self.pairs), seen) else "ports come from a wide range"


def _clash(examiner: Examiner, rival: Address, first: Endpoint, second: Endpoint) -> _Clash:
    """Open flows of the first host to a remote endpoint, and of `rival` to a second one, until two clash.

    The source port of a flow to the second remote endpoint is the outside port of one to the first: Linux keeps a port
    that lies in its range. Elsewhere chance decides.
    """
    ours, theirs = dict[Endpoint, Flow](), dict[Endpoint, Flow]()
    pairs: list[tuple[Endpoint, Endpoint]] = []
    for number in range(1, _MOST_PAIRS + 1):
        flow = examiner.open(examiner.spare(), first)
        other = examiner.open(replace(examiner.twin(flow), address=rival), second)
        ours[flow.mapped], theirs[other.mapped] = flow, other
        pairs.append((flow.mapped, other.mapped))
        for mapped in (flow.mapped, other.mapped):
            if mapped in ours and mapped in theirs and ours[mapped].inside != theirs[mapped].inside:
                return _Clash((ours[mapped], theirs[mapped].inside), pairs)
        seen = (*ours, *theirs)
        if number >= _LEAST_PAIRS and (_room(seen) > _WIDE_RANGE or _would_clash(number, seen)):
            break
    return _Clash(None, pairs)


def _would_clash(pairs: int, seen: Sequence[Endpoint]) -> bool:
    """Whether so many pairs of flows would show a clash of ports that are chosen at random."""
    return pairs**2 >= _CLASHES * _room(seen)


def _room(seen: Sequence[Endpoint]) -> float:
    """Return about how many outside endpoints there are where these come from."""
    # The range goes on beyond the lowest and the highest of some ports.
    width = (_width(seen) + 1) * (len(seen) + 1) / (len(seen) - 1)
    return width * len({end.address for end in seen})


def _width(ends: Sequence[Endpoint]) -> int:
    return max(end.port for end in ends) - min(end.port for end in ends)


def _dependence(flows: Sequence[Flow]) -> Dependence:
    mapped = [flow.mapped for flow in flows]
    if len(set(mapped)) == 1:
        return "endpoint-independent"
    # Of ICMP there are two flows, to two addresses: a query has no destination port.
    if len(mapped) == 2 or mapped[0] == mapped[1]:
        return "address-dependent"
    return "address and port-dependent"


def filtering(examiner: Examiner) -> Dependence:
    """Find the filtering class: which outside endpoints reach an inside endpoint through its mapping.

    It is the strictest one of those of two inside hosts. A frame of each other outside host has to enter.
    """
    examiner.host(1, "responder")
    remotes, kind = range(len(examiner.hosts("responder"))), _INDEPENDENT
    for index in range(min(2, len(examiner.hosts("initiator")))):
        flow = examiner.established(examiner.endpoint(index), examiner.remote(index))
        if not examiner.enters(examiner.stranger(index), flow.mapped, flow.inside):
            return "address and port-dependent"
        if kind == _INDEPENDENT:
            others = (examiner.stranger(one) for one in remotes if one != index)
            if not all(examiner.enters(other, flow.mapped, flow.inside) for other in others):
                kind = "address-dependent"
    return kind


@dataclass(frozen=True, slots=True)
class PortsSeen:
    """The port assignment of a gateway.

    Attributes:
        kind: its class; None = the ports were kept, and no second inside host with the same outside address shows
            whether they are overloaded; or they were not kept, and nothing shows whether they are random.
        pairs: inside and outside ports of flows, in order of opening.
        entropy: bits of entropy of the outside ports (see `entropy_of`); None = preserved.
    """

    kind: PortClass | None
    pairs: tuple[tuple[int, int], ...]
    overloads: bool
    entropy: float | None

    @property
    def words(self) -> str:
        """The assignment as a sentence, without its full stop."""
        kept = sum(inside == outside for inside, outside in self.pairs)
        outsides = [outside for _, outside in self.pairs]
        entropy = "" if self.entropy is None else f"; {self.entropy:.1f} bits of entropy"
        unknown = "preserving or overloading" if self.entropy is None else "predictable or random"
        shared = "; two inside hosts shared one outside endpoint" if self.overloads else ""
        return (
            f"{self.kind or unknown}: {kept} of {len(self.pairs)} flows kept their port, outside "
            f"ports {min(outsides)} to {max(outsides)}{entropy}{shared}"
        )


def ports(examiner: Examiner) -> PortsSeen:
    """Find the port assignment, from flows with source ports in no order and two hosts on one source port."""
    remote = examiner.remote(0)
    # Far apart, so that contiguous outside ports are the gateway's own. No step from one to the next comes twice,
    # because 2 is a primitive root of 67 (a Costas array of Welch): steps that repeat are the gateway's own as well.
    insides = [30_000 + 389 * pow(2, index, 67) for index in range(PORT_FLOWS)]
    pairs = tuple((port, examiner.open(examiner.endpoint(port=port), remote).mapped.port) for port in insides)
    overloaded, has_others = OverloadingSeen(None), len(examiner.hosts("initiator")) > 1
    try:
        overloaded = examiner.once(overloading) if has_others else overloaded
    except AloneError:
        has_others = False
    overloads = overloaded.shared is not None
    entropy: float | None = entropy_of(pairs)
    contiguous = _share_of_one(_steps(outside for _, outside in pairs)) >= _CONTIGUOUS_SHARE
    kind: PortClass | None = "contiguous" if contiguous else _BY_RANDOMNESS[are_random(pairs)]
    if sum(inside == outside for inside, outside in pairs) >= _PRESERVED_SHARE * len(pairs):
        kind, entropy = "preserving" if has_others else None, None
    # A port that a host did not ask for was assigned otherwise, even if another host has it.
    return PortsSeen("overloading" if overloads and not overloaded.further else kind, pairs, overloads, entropy)


def _steps(numbers: Iterable[int]) -> Counter[int]:
    return Counter((after - before) % 65536 for before, after in pairwise(numbers))


def _entropy(counted: Counter[int]) -> float:
    number = counted.total()
    return sum(count / number * math.log2(number / count) for count in counted.values())


def entropy_of(pairs: Sequence[tuple[int, int]]) -> float:
    """Return the bits of entropy of outside ports, of at most log2 of the number of their steps.

    It is that of the steps from one to the next, or of their distances from the inside ports if that is less.

    Args:
        pairs: inside and outside ports in order of opening.
    """
    distances = Counter((outside - inside) % 65536 for inside, outside in pairs)
    return min(_entropy(_steps(outside for _, outside in pairs)), _entropy(distances))


def are_random(pairs: Sequence[tuple[int, int]]) -> bool | None:
    """Whether outside ports are random; False = predictable, None = it cannot be told; arguments as of `entropy_of`."""
    share = entropy_of(pairs) / math.log2(len(pairs) - 1)
    if share < _PREDICTABLE_SHARE:
        return False
    rows = _share_of_one(_steps(sorted(outside for _, outside in pairs)))
    return True if share >= _RANDOM_SHARE and rows < _ROWS_SHARE and len(pairs) >= _LEAST_FLOWS else None


def _share_of_one(counted: Counter[int]) -> float:
    return counted.most_common(1)[0][1] / counted.total()


@dataclass(frozen=True, slots=True)
class OverloadingSeen:
    """Whether two inside hosts had one outside endpoint at one time, `to_one` = both towards one remote endpoint.

    Attributes:
        shared: the outside endpoint that they had; None = they had different ones, of one address.
        further: flows that were opened to see whether one gets the outside endpoint of another host's.
        doubt: why they can have found none by chance; empty = they would show it: the port that both hosts asked for
            was kept for the one, each host has a range of its own, or all ports come from a small one.
    """

    shared: Endpoint | None
    to_one: bool = False
    further: int = 0
    doubt: str = ""
    are_apart: bool = False

    @property
    def words(self) -> str:
        """What was seen as a sentence, without its full stop."""
        if self.shared is not None:
            remotes = "one remote host" if self.to_one else "two remote hosts"
            return f"two inside hosts had the outside endpoint {self.shared} at one time, to {remotes}"
        none = f"; none of {self.further} further flows had that of the other host" if self.further else ""
        none += "; each host had ports of a range of its own" * self.are_apart
        return (
            "two inside hosts with the same source port had different outside endpoints, to one remote endpoint and to "
            f"two{none}"
        )


def overloading(examiner: Examiner) -> OverloadingSeen:
    """Look for an outside endpoint that two inside hosts have at the same time.

    Both use the same source port. A gateway that does not keep it, and gives ports of a range, shows nothing by that.
    So flows of both hosts to two remote endpoints look for a clash, as those of `mapping` do.
    """
    own, first, second = examiner.endpoint(), examiner.remote(0), examiner.remote(1)
    flow = examiner.open(own, first)
    mine, others = flow.mapped, [compete(examiner, flow, remote) for remote in (second, first)]
    if mine in (ends := [other.mapped for other in others]):
        return OverloadingSeen(mine, mine == ends[1])
    if mine.port == own.port:
        return OverloadingSeen(None)
    found = _clash(examiner, others[0].inside.address, first, second)
    if found.both is not None:
        clashing, rival = found.both
        shared = clashing.mapped
        return OverloadingSeen(shared, examiner.open(rival, first).mapped == shared, found.flows)
    before = tuple(zip(*found.pairs, strict=True))
    if found.doubt and not found.are_counted and _are_apart(*before):
        # The range may be that of a host and a remote endpoint, so both hosts have had ports to both.
        more = (mine, examiner.open(examiner.spare(), second).mapped), ends
        after = [(*host, *its) for host, its in zip(before, more, strict=True)]
        wider = [_width(new) > _SAME_RANGE * _width(old) for new, old in zip(after, before, strict=True)]
        if _are_apart(*after) and not any(wider):
            return OverloadingSeen(None, further=found.flows, are_apart=True)
    return OverloadingSeen(None, further=found.flows, doubt=found.doubt)


def _are_apart(one: Sequence[Endpoint], other: Sequence[Endpoint]) -> bool:
    """Whether all ports of the one are above those of the other; of ten random ones each, in one case of 90,000."""
    ports = [sorted(end.port for end in ends) for ends in (one, other)]
    return ports[0][-1] < ports[1][0] or ports[1][-1] < ports[0][0]


@dataclass(frozen=True, slots=True)
class HairpinsSeen:
    """Frames between inside hosts through outside endpoints: senders' flows, and the packets that arrived.

    Attributes:
        dropped: sender and receiver of the frame that was not delivered, after which none was sent; None = each was.
    """

    delivered: tuple[tuple[Flow, Packet], ...]
    dropped: tuple[Address, Address] | None = None


def hairpinned(examiner: Examiner) -> HairpinsSeen:
    """Send between inside hosts through outside endpoints: between two each way, and from a third one."""
    delivered: list[tuple[Flow, Packet]] = []
    pairs = ((1, 0), (0, 1), (2, 0))
    for source, target in pairs[: None if len(examiner.hosts("initiator")) > 2 else 2]:
        seen = _hairpinned(examiner, source, target)
        if seen is None:
            return HairpinsSeen(tuple(delivered), (examiner.host(source), examiner.host(target)))
        delivered.append(seen)
    return HairpinsSeen(tuple(delivered))


def _hairpinned(examiner: Examiner, source: int, target: int) -> tuple[Flow, Packet] | None:
    """Send from an inside host to another one's outside endpoint; None = the gateway does not deliver it.

    A gateway that filters delivers it only after a frame of the other host, which it drops, opened the filter.
    """
    for opens in (False, True):
        ends = examiner.endpoint(source), examiner.endpoint(target)
        own, other = (examiner.established(inside, examiner.remote(0, again=True)) for inside in ends)
        if opens and _across(examiner, other, own) is not None:
            # This frame met no filter, and what comes back now would be its answer.
            return None
        frame = _across(examiner, own, other)
        if frame is not None:
            return own, frame
    return None


def _across(examiner: Examiner, source: Flow, target: Flow) -> Packet | None:
    packet = lone_packet(source.transport, source.inside, examiner.written(target.mapped), examiner.tag())

    def wanted(seen: Packet) -> bool:
        # A gateway may change sequence numbers, and chooses the source, so the destination decides about TCP.
        same = is_tcp(seen, target.inside, SYN) if source.transport == "tcp" else is_same(seen, packet)
        return same and seen.destination == target.inside.address

    frame = examiner.deliver(
        packet, up=True, to="initiator", wanted=wanted, note="to the outside endpoint of the other inside host"
    )
    return None if frame is None else frame.packet


def hairpinning(examiner: Examiner) -> HairpinClass:
    """Find whether an inside host reaches another one through its outside endpoint, and with which source.

    The source is external if it is that of the sender's mapping. A gateway whose mappings depend on the remote endpoint
    makes another mapping for the hairpinned frame, whose address at least is an outside address of the gateway.
    Of several frames, one that has another source decides.
    """
    seen = examiner.once(hairpinned)
    if seen.dropped is not None:
        return "none"
    return _source_of(examiner, *hairpin_of(examiner, seen))


def hairpin_of(examiner: Examiner, seen: HairpinsSeen) -> tuple[Flow, Packet]:
    """Return the frame that decides about the source of hairpinned frames."""
    return next((one for one in seen.delivered if _source_of(examiner, *one) != _EXTERNAL), seen.delivered[0])


def _source_of(examiner: Examiner, source: Flow, packet: Packet) -> HairpinClass:
    if packet.sender == examiner.written(source.mapped):
        return _EXTERNAL
    if packet.source == source.inside.address:
        return "internal source"
    if examiner.is_inside(packet.source) or packet.source == examiner.network.sides["initiator"].gateway:
        return "another source"
    if not examiner.is_outside(packet.source):
        raise NotSeenError(
            f"a hairpinned frame came from {packet.sender}, which no flow showed to be an address of the gateway"
        )
    same = examiner.once(mapping).kind == "endpoint-independent"
    return "another source" if same else _EXTERNAL
