# SPDX-License-Identifier: Apache-2.0
"""The traffic of the trials from the user's options: four tuples, number of connections, frames.

Every wrong option is refused here, before anything starts; each rule has its own message.

RFC 9693 section 4.1: the source port range should be large (tens of thousands), the destination port range small (from
one to a few thousands), because together they make the number of connections. When the user chooses only a number of
connections, the plan has source ports 1024 to 65535 of one address, and the least number of destination ports, from 1
upward.
"""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from natgauge.errors import UsageError
from natgauge.ethernet import FRAME_OVERHEAD, LARGEST_FRAME, LEAST_OCTETS, ONE_PAGE
from natgauge.figure_text import with_noun
from natgauge.inputs.input import spoken as spoken_name
from natgauge.inputs.input import wrong
from natgauge.inputs.measuring_types import SizeMix, parse_frame_sizes
from natgauge.inputs.question import MIXES, RANGES, FrameOptions, TrafficOptions
from natgauge.labs.contract import Addresses, Link
from natgauge.setup.traffic.addresses import (
    LAST_PORT,
    LAST_VLAN,
    MOST_BESIDE_MTU,
    AddressPlan,
    Range,
    customer_edges,
    fewest_destination_ports,
    octets_of_tags,
    parse_addresses,
    parse_ports,
    ports_of_sets,
    refuse_small_sets,
    shared_addresses,
    source_hosts,
    spoken,
    vlans,
)
from natgauge.words import DEFAULT_CONNECTIONS, MAXIMUM_CONNECTIONS, OUTSIDE_PORTS, Family, Order, Side, Transport

if TYPE_CHECKING:
    # What may be asked is known without what reads recipes.
    from natgauge.gateways.port_sets import PortSets
    from natgauge.port_blocks import PortBlocks

#: RFC 4814 section 4.5: pseudorandom source ports exclude the well-known ports.
FIRST_SOURCE_PORT = 1024
#: Four tuples of each emulated customer edge on average: with fewer drawn at random, some edges would have none.
CONNECTIONS_PER_EDGE = 16
#: Hosts of a network of 16 bits, without its first and last address and the device's
#: (draft-lencse-bmwg-multiple-ip-addresses: pseudorandom addresses on both sides, as RFC 4814 has pseudorandom ports).
DRAFT_ADDRESSES = 65_533


def hosts_of(options: TrafficOptions, families: tuple[Family, Family]) -> int:
    """Return the number of the tester's addresses on both sides together."""
    if options.addresses == "draft":
        return 2 * DRAFT_ADDRESSES
    # The user writes the Responder's addresses with IPv4 where either side has it.
    written: Family = "ipv4" if "ipv4" in families else "ipv6"
    named = (
        ("source_addresses", options.source_addresses, families[0], options.subscribers),
        ("destination_addresses", options.destination_addresses, written, None),
    )
    return sum(
        max(1, number or 1) if text is None else parse_addresses(name, text, family).count
        for name, text, family, number in named
    )


@dataclass(frozen=True, slots=True)
class TrafficPlan:
    """The four ranges whose product contains the four tuples, the number of used four tuples, and the frame.

    Attributes:
        connections: N, the number of connections of phase 1.
        responder_addresses: the Responder's own, in the same number and order.
        frame_size: octets with FCS on `frame_side`; with mixes, the least of the Initiator's, which opens connections
            before phase 2.
        order: order of phase 1.
        mapped_addresses: the Initiator's as the Responder writes them, in the same number and order; None where they
            become known only in phase 1.
        subscribers: number of the device's subscribers; None = it has none, or they are not known.
        edges: port sets of the customer edges that the Initiator emulates, one for each subscriber. Then
            `source_addresses` is their router's, and `source_ports` are positions in each set, from 1 on. None = it
            emulates none.
        tested_edges: port sets of the customer edges that are the device or its first part, one for each source.
            Where they are the device, the Responder emulates their relay, and `responder_addresses` are those of the
            router before it. None = the device has no customer edges.
        tunnelled: whether these edges tunnel IPv4 to a relay.
        shared_ports: outside ports that the sources, which share them, should fill at most towards one remote endpoint;
            None = each has ports of its own, which connections to several endpoints share.
    """

    connections: int
    source_addresses: Addresses
    source_ports: Range
    destination_addresses: Addresses
    responder_addresses: Addresses
    destination_ports: Range
    frame_size: int
    frame_side: Side
    frames: FrameOptions
    order: Order
    mapped_addresses: Addresses | None = None
    subscribers: int | None = None
    edges: PortSets | None = None
    tested_edges: PortSets | None = None
    tunnelled: bool = False
    first_edge: int = 0
    ports_chosen: bool = True
    shared_ports: int | None = None

    @property
    def transport(self) -> Transport:
        """What the test frames are."""
        return self.frames.transport

    @property
    def tag_octets(self) -> dict[Side, int]:
        """Octets of the VLAN tags of each side's frames."""
        return octets_of_tags(self.frames)

    @property
    def mixes(self) -> dict[str, SizeMix]:
        """The mixes of the frames up and down; empty where each frame has the frame size."""
        up, down = self.frames.frame_sizes, self.frames.down_frame_sizes
        if up is None:
            return {}
        return {"up": parse_frame_sizes("frame_sizes", up), "down": parse_frame_sizes("down_frame_sizes", down or up)}

    @property
    def sources(self) -> int:
        """Number of source addresses of the Initiator's frames."""
        return self.source_addresses.count if self.edges is None else self.subscribers or 1

    @property
    def mapping_known(self) -> bool:
        """Whether the Initiator's source is known as the Responder sees it, although the device changes it."""
        edges = self.edges is not None or self.tested_edges is not None
        return self.mapped_addresses is not None or (edges and not self.ports_chosen)

    @property
    def remote_endpoints(self) -> int:
        """Number of destination addresses with their ports, as the Responder has them."""
        return self.responder_addresses.count * self.destination_ports.count

    @property
    def space(self) -> int:
        """Number of four tuples in the ranges."""
        return self.sources * self.source_ports.count * self.remote_endpoints

    def of_first(self, number: int, each: int) -> TrafficPlan:
        """The traffic of so many source addresses, or emulated customer edges, from the first one on.

        Each has `each` four tuples, or as few more as the ports allow: with more, some sources would have more
        connections than others, by chance or by order.
        """
        source, destination = self._ports_of_each(number, each)
        narrow = replace(
            self,
            source_ports=replace(self.source_ports, last=self.source_ports.first + source - 1),
            destination_ports=replace(self.destination_ports, last=self.destination_ports.first + destination - 1),
        )
        if self.edges is not None:
            return replace(narrow, subscribers=number)
        sources, mapped = self.source_addresses, self.mapped_addresses
        return replace(
            narrow,
            source_addresses=replace(sources, last=sources.at(number - 1)),
            mapped_addresses=None if mapped is None else replace(mapped, last=mapped.at(number - 1)),
        )

    def _ports_of_each(self, number: int, each: int) -> tuple[int, int]:
        """Return how many source and destination ports give so many sources as few more than `each` four tuples.

        Source ports are the fewest that are enough, or up to twice as many where sources share their outside ports.
        """
        responders, most = self.responder_addresses.count, self.destination_ports.count

        def destinations(ports: int) -> int:
            return max(1, math.ceil(each / (ports * responders)))

        fewest = min(self.source_ports.count, max(1, math.ceil(each / self.remote_endpoints)))
        if self.shared_ports is None:
            return fewest, min(most, destinations(fewest))
        last = min(self.source_ports.count, 2 * fewest, self.shared_ports // number)
        source = min(range(fewest, max(fewest, last) + 1), key=lambda ports: (ports * destinations(ports), ports))
        # With fewer destinations they would fill more of their outside ports towards each.
        spread = math.ceil(number * each / (self.shared_ports * responders))
        return source, min(most, max(destinations(source), spread))


def make_plan(options: TrafficOptions, around: AddressPlan) -> TrafficPlan:
    """Make the traffic of every trial from the user's options."""
    if options.addresses == "draft":
        options = _of_draft(options, around)
    edges = around.port_sets if around.half else None
    if edges is None:
        named = _named_addresses("source_addresses", options.source_addresses, around.inside)
        sources = source_hosts(options.subscribers, named, around.port_sets, around.inside)
        subscribers = sources.count
    else:
        sources = Addresses(around.inside.tester, around.inside.tester)
        subscribers = customer_edges(options, edges)
    hosts = around.embedded or around.outside
    if around.answers and options.destination_addresses is not None:
        text = f"{options.destination_addresses}, but the device answers at its own address; leave them out"
        raise wrong("destination_addresses", text)
    named_hosts = _named_addresses("destination_addresses", options.destination_addresses, hosts)
    responders = named_hosts or Addresses(hosts.tester, hosts.tester)
    if around.pool is not None and around.pool.overlaps(responders):
        text = f"{responders} overlaps {around.pool}, the outside addresses of the gateway"
        raise wrong("destination_addresses", text)
    asked = Addresses(around.inside.device, around.inside.device)
    behind = asked if around.answers else behind_prefix(responders, around.prefix)
    connections = _check_connections(options.connections)
    if edges is None:
        source_ports, destination_ports = _ports(options, connections, sources.count, responders.count, around)
    else:
        source_ports, destination_ports = _ports_of_edges(options, subscribers, responders.count, around, edges)
    size, frames = _sized_frames(options, around)
    plan = TrafficPlan(
        connections=0,
        source_addresses=sources,
        source_ports=source_ports,
        destination_addresses=behind if around.embedded is None else responders,
        responder_addresses=responders if around.embedded is None else behind,
        destination_ports=destination_ports,
        frame_size=size,
        frame_side=options.frame_side,
        frames=frames,
        order=options.order,
        mapped_addresses=_as_responder_writes(sources, around),
        subscribers=None if around.port_sets is None and options.subscribers is None else subscribers,
        edges=edges,
        tested_edges=None if around.half else around.port_sets,
        tunnelled=around.tunnelled,
        ports_chosen=around.translated,
        shared_ports=_shared_ports(around),
    )
    if options.transport == "tcp" and options.order == "with-replacement":
        raise wrong(
            "order",
            "with-replacement, but with transport tcp a four tuple that is drawn twice would open a connection that is "
            "open; choose another order",
        )
    _check_vlans(plan)
    if options.transport == "icmp":
        _check_echoes(plan)
        connections = min(plan.space, DEFAULT_CONNECTIONS) if connections is None else connections
    if edges is not None and connections is None:
        connections = min(plan.space, max(DEFAULT_CONNECTIONS, subscribers * CONNECTIONS_PER_EDGE))
    return _with_connections(plan, connections, with_pool(around, plan), named=_ranges_named(options))


def _check_vlans(plan: TrafficPlan) -> None:
    """Refuse VLANs of their own where sources have none, or where there are too few VLANs."""
    tags = vlans(plan.frames)
    if "initiator" not in tags or not tags["initiator"].each_source:
        return
    if plan.edges is not None or plan.tested_edges is not None:
        raise wrong(
            "initiator_vlan", "subscribers with port sets share the link, so they have one VLAN; leave out the +"
        )
    if plan.sources > (left := LAST_VLAN + 1 - tags["initiator"].first):
        raise wrong("initiator_vlan", f"{plan.sources} source addresses, and {left} VLANs from there on; begin lower")


def _of_draft(options: TrafficOptions, around: AddressPlan) -> TrafficOptions:
    """Return the options with all hosts of both networks as ranges."""
    for name in ("source_addresses", "destination_addresses", "subscribers"):
        if (chosen := getattr(options, name)) is not None:
            raise wrong("addresses", f"draft, and {spoken_name(name)} {chosen}; leave one of them out")
    if around.port_sets is not None or around.answers:
        why = "the gateway answers at its own address; give --source-addresses"
        if around.port_sets is not None:
            why = "each source address of this gateway is a subscriber; give --subscribers"
        raise wrong("addresses", f"draft, but {why}")
    links = {"source_addresses": around.inside, "destination_addresses": around.embedded or around.outside}
    if any(link.network.prefixlen == 0 for link in links.values()):
        names = " and ".join(f"--{name.replace('_', '-')}" for name in links)
        raise wrong("addresses", f"draft, but only you know the networks of these links; give {names}")
    sources, destinations = (
        str(Addresses(link.tester, link.tester + (DRAFT_ADDRESSES - 1))) for link in links.values()
    )
    return replace(
        options,
        addresses="single",
        connections=options.connections or DEFAULT_CONNECTIONS,
        source_addresses=sources,
        destination_addresses=destinations,
    )


def with_pool(around: AddressPlan, plan: TrafficPlan) -> AddressPlan:
    """Return the address_plan with the outside addresses that the plan's subscribers share, if it has subscribers."""
    if around.port_sets is None or not around.subscribers_pool:
        return around
    return replace(around, pool=shared_addresses(around.port_sets, plan.sources))


def _ranges_named(options: TrafficOptions) -> bool:
    """Whether the user chose a range; then all its four tuples are used unless the user chose a number, too."""
    return any(getattr(options, name) is not None for name in RANGES)


def _with_connections(plan: TrafficPlan, connections: int | None, around: AddressPlan, *, named: bool) -> TrafficPlan:
    number, ports = DEFAULT_CONNECTIONS, _outside_ports(around)
    if connections is not None:
        number = connections
    elif named:
        number = plan.space if ports is None else min(plan.space, ports * plan.remote_endpoints)
    if number > MAXIMUM_CONNECTIONS:
        raise wrong(
            "connections",
            f"the ranges hold {plan.space} four tuples, the most is {MAXIMUM_CONNECTIONS} (2^31); give --connections "
            "or narrower ranges",
        )
    if number > plan.space:
        raise wrong(
            "connections",
            f"{number} asked for, but the ranges hold {plan.space} four tuples ("
            f"{with_noun(plan.sources, 'source addresses')} x "
            f"{with_noun(plan.source_ports.count, 'source ports')} x "
            f"{with_noun(plan.responder_addresses.count, 'destination addresses')} x "
            f"{with_noun(plan.destination_ports.count, 'destination ports')}); widen a range or ask for fewer",
        )
    plan = replace(plan, connections=number)
    if around.port_sets is not None and around.translated and plan.edges is None:
        refuse_small_sets(plan.source_ports, number, around.port_sets)
    _check_port_pool(plan, around)
    return plan


def _check_port_pool(plan: TrafficPlan, around: AddressPlan) -> None:
    """Refuse more connections to one remote endpoint than the outside addresses have ports (RFC 9693 section 3.2)."""
    available = _outside_ports(around)
    if around.pool is None or available is None:
        return
    needed = math.ceil(plan.connections / plan.remote_endpoints)
    if needed > available:
        remedy = "more destination ports or addresses" if around.reuses_ports else "fewer connections"
        raise wrong(
            "connections",
            f"{plan.connections} towards {with_noun(plan.remote_endpoints, 'remote endpoints')} need "
            f"{with_noun(needed, 'outside ports')} each, the device's "
            f"{with_noun(around.pool.count, 'outside addresses have', 'outside address has')} {available}; "
            f"use {remedy}",
        )


def _outside_ports(around: AddressPlan, hosts: int = 1) -> int | None:
    """Return the outside ports that so many hosts should fill at most towards one remote endpoint; None = no limit.

    Hosts use the same ports, and Linux gives up its search for others where few are left: half of them stay free.
    """
    if not around.translated or around.pool is None:
        return None
    return around.pool.count * OUTSIDE_PORTS // (2 if hosts > 1 else 1)


def _shared_ports(around: AddressPlan) -> int | None:
    """Return `TrafficPlan.shared_ports`; of a device whose outside addresses are not known, those of one."""
    blocks = around.port_blocks
    if around.subscribers_pool or (blocks is not None and not blocks.counts_connections):
        return None
    return (1 if around.pool is None else around.pool.count) * OUTSIDE_PORTS // 2


def _check_echoes(plan: TrafficPlan) -> None:
    """Refuse several destination ports of ICMP echo: devices identify connections by the identifier alone."""
    ports = plan.destination_ports
    if ports.count > 1:
        raise wrong(
            "destination_ports",
            f"{ports.first}-{ports.last} with transport icmp, which has identifiers in place of source ports and no "
            "destination ports; use one number, which is then the sequence number, and more source or destination "
            "addresses",
        )


def _check_connections(connections: int | None) -> int | None:
    if connections is not None and not 1 <= connections <= MAXIMUM_CONNECTIONS:
        raise wrong("connections", f"{connections} is outside of 1 to {MAXIMUM_CONNECTIONS} (2^31)")
    return connections


def _ports(
    options: TrafficOptions, connections: int | None, sources: int, responders: int, around: AddressPlan
) -> tuple[Range, Range]:
    """Return source and destination ports: the user's, otherwise many source ports and few destination ports.

    Half of the ports that a subscriber may have, or that several share, stay free.
    """
    # A device that does not translate ports, such as a B4, needs no free ones.
    sets = around.port_sets if around.translated else None
    wide = f"{FIRST_SOURCE_PORT}-{LAST_PORT}"
    source = parse_ports("source_ports", wide if options.source_ports is None else options.source_ports)
    wanted = connections
    if options.transport == "icmp":
        wanted = 1
    elif wanted is None:
        wanted = 1 if _ranges_named(options) else DEFAULT_CONNECTIONS
    chosen = sets is not None and options.source_ports is None
    if options.destination_ports is not None:
        destination = parse_ports("destination_ports", options.destination_ports)
    elif sets is not None and chosen:
        destination = Range(1, min(fewest_destination_ports(wanted, sources, responders, sets), LAST_PORT))
    else:
        # Subscribers may share one outside address.
        mapped = sources if options.subscribers is None else 1
        most = mapped * source.count
        # Where a block has room for its ports' number of connections, more endpoints would only spread these by chance.
        if around.port_blocks is not None and not around.port_blocks.counts_connections:
            most = mapped * min(source.count, max(1, around.port_blocks.ports // 2))
        elif sources > 1 and (outside := _outside_ports(around, sources)) is not None:
            most = min(sources * source.count, outside)
        destination = Range(1, min(math.ceil(wanted / (most * responders)), LAST_PORT))
    if around.port_blocks is not None and options.source_ports is None:
        source = _ports_of_blocks(source, wanted, sources, responders * destination.count, around.port_blocks)
    if sets is not None and chosen:
        number = connections if connections is not None or _ranges_named(options) else DEFAULT_CONNECTIONS
        source = ports_of_sets(number, sources, responders * destination.count, sets, FIRST_SOURCE_PORT)
    return source, destination


def _ports_of_blocks(source: Range, wanted: int, sources: int, endpoints: int, blocks: PortBlocks) -> Range:
    """Return the source ports, or as few as each host needs where some would take more blocks than others by chance."""
    most = blocks.most_of_host(wanted, sources, source.count * endpoints)
    if not blocks.counts_connections or blocks.each_for(most) == blocks.each_for(math.ceil(wanted / sources)):
        return source
    return replace(source, last=source.first + min(source.count, math.ceil(wanted / (sources * endpoints))) - 1)


def _ports_of_edges(
    options: TrafficOptions, edges: int, responders: int, around: AddressPlan, sets: PortSets
) -> tuple[Range, Range]:
    """Return all ports of each set, as positions, and the user's or the least number of destination ports."""
    source = Range(1, sets.ports)
    if options.destination_ports is not None:
        return source, parse_ports("destination_ports", options.destination_ports)
    wanted = 1 if options.transport == "icmp" else options.connections
    if wanted is None:
        wanted = max(DEFAULT_CONNECTIONS, edges * CONNECTIONS_PER_EDGE)
    # Towards one remote endpoint: all ports of all edges, or those that the device translates them to.
    inside = edges * source.count
    outside = _outside_ports(around, edges)
    each = inside if outside is None else min(inside, outside)
    return source, Range(1, min(math.ceil(wanted / (each * responders)), LAST_PORT))


def _named_addresses(name: str, text: str | None, link: Link) -> Addresses | None:
    """Return the user's addresses on a link; they must be in its subnet and not include the device's own."""
    if text is None:
        return None
    addresses = parse_addresses(name, text, link.family)
    if link.device in addresses:
        raise wrong(name, f"{addresses} holds {link.device}, which is the device's own address on this side")
    for end in (addresses.first, addresses.last):
        if end not in link.network:
            raise wrong(name, f"{end} is outside of the link's subnet {link.network}")
    for end, what in ((link.network.network_address, "network"), (link.network.broadcast_address, "broadcast")):
        if end in addresses and link.network.num_addresses > 2:
            raise wrong(name, f"{addresses} holds {end}, the {what} address of {link.network}")
    return addresses


def refuse_flood(plan: TrafficPlan, around: AddressPlan) -> None:
    """Refuse a flood that is no host's: it has the address after the last source address, and opens no TCP."""
    if plan.transport == "tcp":
        raise UsageError("flood share: a flood is of udp or icmp, the transport is tcp; choose another", at="transport")
    if around.port_sets is not None:
        raise wrong(
            "flood_share",
            "subscribers of this device have port sets of their own, which a flood cannot exceed; leave it out",
        )
    if (own := vlans(plan.frames).get("initiator")) is not None and own.each_source:
        raise UsageError(
            "flood share: the flood's host would need a VLAN of its own; leave out the + of the Initiator's VLAN",
            at="initiator_vlan",
        )
    link, host = around.inside, plan.source_addresses.last + 1
    if host not in link.network or host in (link.device, link.network.broadcast_address):
        raise UsageError(
            f"flood share: its host has the address after the last source address, and {host} is the device's own or "
            f"outside of the hosts of {link.network}; give fewer source addresses",
            at="source_addresses",
        )


def behind_prefix(responders: Addresses, prefix: ipaddress.IPv6Network | None) -> Addresses:
    """Return IPv4-embedded IPv6 addresses (RFC 6052 section 2.2); without a prefix, the addresses themselves."""
    return responders if prefix is None else Addresses.behind(prefix, responders)


def _as_responder_writes(sources: Addresses, around: AddressPlan) -> Addresses | None:
    """Return the Initiator's addresses as a stateless translator maps them, host by host (RFC 7757)."""
    mapped = around.mapped
    if mapped is None:
        return None
    if around.mapped_in_order:
        if sources.count != mapped.count:
            raise wrong(
                "mapped_addresses",
                f"{mapped} are {mapped.count}, but there are {sources.count} source addresses ({sources}); name as "
                "many, in the same order",
            )
        return mapped
    if sources.first != around.inside.tester or sources.count > mapped.count:
        raise wrong(
            "source_addresses",
            f"{sources} are not those this device maps; use {around.inside.tester} and those after it, at most "
            f"{mapped.count} addresses",
        )
    return Addresses(mapped.first, mapped.first + (sources.count - 1))


def _sized_frames(options: TrafficOptions, around: AddressPlan) -> tuple[int, FrameOptions]:
    """Return the size of frames that have no mix, and the options of all frames with mixes in their one form."""
    named = [(name, getattr(options, name)) for name in MIXES]
    up, down = (None if text is None else parse_frame_sizes(name, text) for name, text in named)
    if up is None and down is None:
        return _frame_size(options.frame_size, options, around), options.frames
    if up is not None and options.frame_size is not None:
        raise wrong(
            "frame_sizes",
            f"{options.frame_sizes}, but a frame size of {options.frame_size} octets, too; leave out one of them",
        )
    for mix, (name, _) in zip((up, down), named, strict=True):
        for size in () if mix is None else mix.sizes:
            _frame_size(size, options, around, name)
    if up is None:
        one = _frame_size(options.frame_size, options, around)
        up = SizeMix(((one, 1),))
    other = None if down in (None, up) else str(down)
    return up.sizes[0], replace(options.frames, frame_sizes=str(up), down_frame_sizes=other)


def _frame_size(chosen: int | None, options: TrafficOptions, around: AddressPlan, name: str = "frame_size") -> int:
    """Return the frame size on the named side, in octets with FCS and VLAN tags.

    By default it is the least of family, transport and tags.
    """
    transport, side, frames = options.transport, options.frame_side, options.frames
    families: dict[Side, Family] = {"initiator": around.inside.family, "responder": around.outside.family}
    shortest = LEAST_OCTETS[transport]
    other: Side = "responder" if side == "initiator" else "initiator"
    tags = octets_of_tags(frames)
    least = around.octets(shortest, families[side]) + tags[side]
    included = "FCS and VLAN tags included" if any(tags.values()) else "FCS included"
    # The sizes of both directions count on one side, which is not the one that sends them.
    counted, of = f"on the {side} side", ""
    if name == "down_frame_sizes":
        counted, of = f"for the Responder's frames, counted as {counted} (--frame-side)", " of the Responder's frames"
    if chosen is None:
        return least
    if chosen < least:
        headers = "IPv4 in IPv6" if around.tunnelled and families[side] == "ipv6" else spoken(families[side])
        over = "TCP over " if transport == "tcp" else ""
        raise wrong(
            name, f"{chosen} octets is too small {counted}; the least with {over}{headers} is {least} ({included})"
        )
    on_other = chosen + around.octets(shortest, families[other]) + tags[other] - least
    for octets, where in ((chosen, side), (on_other, other)):
        carried = around.mtu + FRAME_OVERHEAD + min(tags[where], MOST_BESIDE_MTU)
        if octets > min(LARGEST_FRAME, carried):
            why = ONE_PAGE if carried >= LARGEST_FRAME else f"the ports have an MTU of {around.mtu}"
            raise wrong(
                name,
                f"{octets} octets{of} on the {where} side is too large: {why}; the most is "
                f"{min(LARGEST_FRAME, carried)} ({included})",
            )
    return chosen
