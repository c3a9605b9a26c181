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

from natgauge.audits.kit.examiner import Examiner
from natgauge.audits.kit.flows import Flow, is_same, is_tcp, lone_packet
from natgauge.audits.kit.observations import AloneError, NotSeenError
from natgauge.audits.kit.packets import SYN, Endpoint, Packet
from natgauge.audits.kit.rivals import ALONE, compete, rival_of

Dependence = Literal["endpoint-independent", "address-dependent", "address and port-dependent"]
PortClass = Literal["preserving", "overloading", "contiguous", "predictable", "random"]
HairpinClass = Literal["external source", "internal source", "another source", "none"]

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
#: Most flows that one inside host opens for the class of mapping, where ports come from a wide range.
MAPPING_FLOWS: Final = 9 + 2 * _LEAST_PAIRS


@dataclass(frozen=True, slots=True)
class MappingSeen:
    """The mapping behaviour of a gateway.

    Attributes:
        alone: its class while no other flow has the outside port of the first one; None = not examined.
        further: flows that were opened to see whether one gets the outside endpoint of another one.
    """

    kind: Dependence
    alone: Dependence | None
    outside: tuple[tuple[Endpoint, Endpoint], ...]
    further: int = 0

    @property
    def words(self) -> str:
        """The mappings as a sentence, without its full stop."""
        seen = ", ".join(f"{outside} to {remote}" for remote, outside in self.outside)
        same = "" if self.alone in (None, self.kind) else f"; without another flow on the same port: {self.alone}"
        none = f"; none of {self.further} further flows had the outside port of another one" if self.further else ""
        return f"{self.kind}: one inside endpoint had {seen}{same}{none}"


def mapping(examiner: Examiner) -> MappingSeen:
    """Find the mapping class.

    A gateway that keeps the source port looks endpoint-independent as long as nobody else uses the port. So a second
    inside host with the same outside address takes the same port towards the other remote endpoints in between.

    A gateway that gives ports of a range looks so until another flow, maybe of the same host, has the outside port. So
    flows to two remote endpoints are opened until one has the outside port of another one, whose turn is then the next.
    """
    own = examiner.endpoint()
    first, second = examiner.remote(0), examiner.remote(0)
    third = examiner.remote(1, first.port)
    remotes = (first, third) if examiner.transport == "icmp" else (first, second, third)
    flows = [examiner.open(own, first)]
    alone: Dependence | None = None
    rival: Flow | None = None
    if len(examiner.hosts("initiator")) > 1:
        other = examiner.endpoint()
        alone = _dependence([examiner.open(other, remote) for remote in remotes])
        rival = rival_of(examiner, own, flows[0].mapped.address, remotes[1])
        if rival is not None:
            for remote in remotes[2:]:
                examiner.open(rival.inside, remote)
    flows += [examiner.open(own, remote) for remote in remotes[1:]]
    kind = _dependence(flows)
    if kind == "endpoint-independent":
        # A pool can choose the outside address by the remote one, and it may choose the same for two of them.
        further = range(2, len(examiner.hosts("responder")))
        flows += [examiner.open(own, examiner.remote(index)) for index in further]
        if len({flow.mapped for flow in flows}) > 1:
            kind = "address-dependent"
    if kind == "endpoint-independent" and flows[0].mapped.port == own.port:
        # The port was kept, which shows nothing without the second host.
        examiner.host(1)
        if rival is None:
            raise AloneError(f"{own} kept its port at {flows[0].mapped}; {ALONE}")
    seen = MappingSeen(kind, alone, _outside(flows))
    shared = rival is not None and rival.mapped == flows[0].mapped
    return _contested(examiner, seen, remotes) if kind == "endpoint-independent" and not shared else seen


def _outside(flows: Iterable[Flow]) -> tuple[tuple[Endpoint, Endpoint], ...]:
    return tuple((flow.remote, flow.mapped) for flow in flows)


def _contested(examiner: Examiner, seen: MappingSeen, remotes: Sequence[Endpoint]) -> MappingSeen:
    """Return the class of a gateway whose mapping looked endpoint-independent, when another flow has the port."""
    clash, further = _clash(examiner, remotes[0], remotes[-1])
    if clash is None:
        return replace(seen, further=further)
    flow, other = clash
    for remote in remotes[1:-1]:
        examiner.open(other, remote)
    flows = [flow, *(examiner.open(flow.inside, remote) for remote in remotes[1:])]
    return MappingSeen(_dependence(flows), seen.kind, _outside(flows))


def _clash(examiner: Examiner, first: Endpoint, second: Endpoint) -> tuple[tuple[Flow, Endpoint] | None, int]:
    """Open flows of one host to two remote endpoints until one has the outside endpoint of one to the other.

    The source port of a flow to the second remote endpoint is the outside port of one to the first: Linux keeps a port
    that lies in its range. Elsewhere chance decides.

    Return the flow to the first remote endpoint with the inside endpoint of the other one, or None where there is no
    clash; and the number of flows.
    """
    ours, theirs = dict[Endpoint, Flow](), dict[Endpoint, Flow]()
    for number in range(1, _MOST_PAIRS + 1):
        flow = examiner.open(examiner.spare(), first)
        other = examiner.open(examiner.twin(flow), second)
        ours[flow.mapped], theirs[other.mapped] = flow, other
        for mapped in (flow.mapped, other.mapped):
            if mapped in ours and mapped in theirs and ours[mapped].inside != theirs[mapped].inside:
                return (ours[mapped], theirs[mapped].inside), 2 * number
        if number >= _LEAST_PAIRS and _have_shown(number, (*ours, *theirs)):
            break
    return None, 2 * number


def _have_shown(pairs: int, seen: Sequence[Endpoint]) -> bool:
    """Whether so many pairs of flows would show a clash of ports that are chosen at random, or could not show it."""
    ports = [end.port for end in seen]
    # The range goes on beyond the lowest and the highest of some ports.
    width = (max(ports) - min(ports) + 1) * (len(ports) + 1) / (len(ports) - 1)
    room = width * len({end.address for end in seen})
    return room > _WIDE_RANGE or pairs**2 >= _CLASHES * room


def _dependence(flows: Sequence[Flow]) -> Dependence:
    mapped = [flow.mapped for flow in flows]
    if len(set(mapped)) == 1:
        return "endpoint-independent"
    # Of ICMP there are two flows, to two addresses: a query has no destination port.
    if len(mapped) == 2 or mapped[0] == mapped[1]:
        return "address-dependent"
    return "address and port-dependent"


def filtering(examiner: Examiner) -> Dependence:
    """Find the filtering class: which outside endpoints reach an inside endpoint through its mapping."""
    inside, remote = examiner.endpoint(), examiner.remote(0)
    flow = examiner.established(inside, remote)
    others = examiner.remote(1), examiner.remote(0)
    address, port = (examiner.enters(other, flow.mapped, inside) for other in others)
    if address:
        return "endpoint-independent"
    return "address-dependent" if port else "address and port-dependent"


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
    overloads, has_others = False, len(examiner.hosts("initiator")) > 1
    try:
        overloads = has_others and examiner.once(overloading) is not None
    except AloneError:
        has_others = False
    entropy: float | None = entropy_of(pairs)
    kind: PortClass | None = "contiguous" if _are_contiguous(pairs) else _BY_RANDOMNESS[are_random(pairs)]
    if sum(inside == outside for inside, outside in pairs) >= _PRESERVED_SHARE * len(pairs):
        kind, entropy = "preserving" if has_others else None, None
    return PortsSeen("overloading" if overloads else kind, pairs, overloads, entropy)


def _steps(numbers: Iterable[int]) -> Counter[int]:
    """Count the steps from one port to the next."""
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


def _are_contiguous(pairs: Sequence[tuple[int, int]]) -> bool:
    return _share_of_one(_steps(outside for _, outside in pairs)) >= _CONTIGUOUS_SHARE


def _share_of_one(counted: Counter[int]) -> float:
    """Return the share of the most frequent step."""
    return counted.most_common(1)[0][1] / counted.total()


def overloading(examiner: Examiner) -> tuple[Endpoint, bool] | None:
    """Return an outside endpoint that two inside hosts had at the same time, and whether towards one remote endpoint.

    Both use the same source port. None = they had different outside endpoints, of one address.
    """
    own, first, second = examiner.endpoint(), examiner.remote(0), examiner.remote(1)
    flow = examiner.open(own, first)
    mine, others = flow.mapped, [compete(examiner, flow, remote).mapped for remote in (second, first)]
    return (mine, mine == others[1]) if mine in others else None


def hairpinned(examiner: Examiner) -> tuple[Flow, Packet] | None:
    """Send between two inside hosts through an outside endpoint; None = the gateway does not deliver it.

    Returns the sender's flow and the packet that arrives at the other host.

    Each of the two hosts sends to the outside endpoint of the other one: a gateway that filters delivers the second
    frame only, after the first one opened its filter.
    """
    first, second = (examiner.established(examiner.endpoint(index), examiner.remote(0)) for index in (0, 1))
    for source, target in ((second, first), (first, second)):
        frame = _across(examiner, source, target)
        if frame is not None:
            return source, frame
    return None


def _across(examiner: Examiner, source: Flow, target: Flow) -> Packet | None:
    packet = lone_packet(source.transport, source.inside, examiner.written(target.mapped), examiner.tag())

    def wanted(seen: Packet) -> bool:
        # A gateway may change sequence numbers, and chooses the source, so the destination decides about TCP.
        same = is_tcp(seen, target.inside, SYN) if source.transport == "tcp" else is_same(seen, packet)
        return same and seen.destination == target.inside.address

    frame = examiner.deliver(
        packet,
        up=True,
        to="initiator",
        wanted=wanted,
        note="to the outside endpoint of the other inside host",
    )
    return None if frame is None else frame.packet


def hairpinning(examiner: Examiner) -> HairpinClass:
    """Find whether an inside host reaches another one through its outside endpoint, and with which source.

    The source is external if it is that of the sender's mapping. A gateway whose mappings depend on the remote endpoint
    makes another mapping for the hairpinned frame, whose address at least is an outside address of the gateway.
    """
    seen = examiner.once(hairpinned)
    if seen is None:
        return "none"
    source, packet = seen
    if packet.sender == examiner.written(source.mapped):
        return "external source"
    if packet.source == source.inside.address:
        return "internal source"
    if examiner.is_inside(packet.source) or packet.source == examiner.network.sides["initiator"].gateway:
        return "another source"
    if not examiner.is_outside(packet.source):
        raise NotSeenError(
            f"a hairpinned frame came from {packet.sender}, which no flow showed to be an address of the gateway"
        )
    same = examiner.once(mapping).kind == "endpoint-independent"
    return "another source" if same else "external source"
