# SPDX-License-Identifier: Apache-2.0
"""Addresses, ports and VLAN tags of the traffic: as the user writes them, and as lab, gateway, subscribers need them.

An address is "A", a range of them "A-B"; some may not carry test traffic. VLAN tags (IEEE 802.1Q): "100", behind a
service tag "9.100", one for each source address "100+". The lab's and the gateway's properties decide the addresses and
sizes of the traffic.

Of a device that shares IPv4 addresses (MAP, lw4o6), each of the Initiator's addresses is a subscriber, which can use
only the ports of its set. Before one half of such a device the tester emulates the subscribers' customer edges instead.
Then each edge has the address and the ports that follow from the device's rule, and the Initiator's own address is that
of their router.
"""

from __future__ import annotations

import ipaddress
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from natgauge.errors import UsageError
from natgauge.ethernet import IP_HEADER, tag_octets
from natgauge.figure_text import with_noun
from natgauge.inputs.input import wrong
from natgauge.inputs.question import FrameOptions
from natgauge.labs.contract import Addresses, Ground, Link
from natgauge.words import Address, Family, Network, Side

if TYPE_CHECKING:
    from natgauge.gateways.port_sets import PortSets
    from natgauge.gateways.recipe import Recipe
    from natgauge.inputs.question import DeviceOptions, TrafficOptions
    from natgauge.port_blocks import PortBlocks

LAST_PORT = 65535
#: Ranges that may carry test traffic: benchmarking (RFC 2544, RFC 5180 as corrected by RFC 8219 section 14), private,
#: shared (RFC 6598), documentation and the well-known NAT64 prefix. Other addresses may be in use.
_TEST_NETWORKS: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "198.18.0.0/15",
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "192.0.2.0/24",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "2001:2::/48",
        "2001:db8::/32",
        "fc00::/7",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
    )
)
_PORTS = re.compile(r"^\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?$")
#: VLANs 0 and 4095 are reserved.
LAST_VLAN: Final = 4094
#: Octets by which a frame may exceed its port's MTU for its tags: every port takes one (kernel: xdp_ok_fwd_dev()).
MOST_BESIDE_MTU: Final = 4
_VLAN: Final = re.compile(r"(?:([1-9]\d{0,3})\.)?([1-9]\d{0,3})(\+?)", re.ASCII)
_SIDES: Final[tuple[Side, ...]] = get_args(Side)


@dataclass(frozen=True, slots=True)
class Range:
    """Integers or addresses from `first` to `last`, both included."""

    first: int
    last: int

    @property
    def count(self) -> int:
        """Number of values in the range."""
        return self.last - self.first + 1


def parse_ports(name: str, text: str) -> Range:
    """Read "A" or "A-B"."""
    match = _PORTS.match(text)
    if match is None:
        raise wrong(name, f"{text!r} is not a port range; write A-B, for example 1024-65535")
    first = int(match[1])
    last = int(match[2]) if match[2] is not None else first
    for port in (first, last):
        if not 1 <= port <= LAST_PORT:
            raise wrong(name, f"port {port} in {text!r} is outside of 1 to {LAST_PORT}")
    if first > last:
        raise wrong(name, f"{text!r} is reversed; write the lower port first")
    return Range(first, last)


def parse_addresses(name: str, text: str, family: Family) -> Addresses:
    """Read "A" or "A-B" of one family."""
    parts = [part.strip() for part in text.split("-")]
    if len(parts) > 2 or not all(parts):
        raise wrong(name, f"{text!r} is not an address range; write A or A-B")
    first, last = _address(name, parts[0], family), _address(name, parts[-1], family)
    if int(first) > int(last):
        raise wrong(name, f"{text!r} is reversed; write the lower address first")
    if family == "ipv6" and int(first) >> 64 != int(last) >> 64:
        raise wrong(name, f"{text!r} differs in the upper 64 bits; both ends must share them")
    return Addresses(first, last)


def _address(name: str, text: str, family: Family) -> Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise wrong(name, f"{text!r} is not an IP address{_meant_range(text)}") from None
    if address.version != (4 if family == "ipv4" else 6):
        raise wrong(name, f"{text} is IPv{address.version}, this side of the device uses {spoken(family)}")
    if not any(address in network for network in _TEST_NETWORKS if network.version == address.version):
        raise wrong(
            name,
            f"{text} is not a test address; use a benchmarking (198.18.0.0/15, 2001:2::/48), private or "
            "documentation range",
        )
    return address


def spoken(family: Family) -> str:
    """Return a family's usual spelling."""
    return "IPv4" if family == "ipv4" else "IPv6"


def _meant_range(text: str) -> str:
    """Return "; write FIRST-LAST" for a network; empty where none was meant."""
    if "/" not in text:
        return ""
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return ""
    first, last = network.network_address, network.broadcast_address
    if network.num_addresses > 2:
        first, last = first + 1, last - (1 if network.version == 4 else 0)
    return f"; write {first}-{last}" if first != last else f"; write {first}"


@dataclass(frozen=True, slots=True)
class Vlan:
    """VLAN tags of one side.

    Attributes:
        first: of the tag next to the packet, 1 to 4094.
        service: of a tag before it; None = there is none.
        each_source: whether each source address has a VLAN of its own, from `first` on.
    """

    first: int
    service: int | None = None
    each_source: bool = False

    def __str__(self) -> str:
        return f"{self.first}" if self.service is None else f"{self.service}.{self.first}"


def _parse_vlan(name: str, text: str) -> Vlan:
    """Return the tags that the input `name` has; UsageError where the text is none, or a number is out of range."""
    found = _VLAN.fullmatch(text)
    numbers = [int(number) for number in (found.groups()[:2] if found else ()) if number is not None]
    if found is None or not all(1 <= number <= LAST_VLAN for number in numbers):
        raise wrong(name, f"{text} is no VLAN; give 1 to {LAST_VLAN}, such as 100, or 9.100 behind a service tag")
    each = bool(found.group(3))
    if each and name != "initiator_vlan":
        raise wrong(name, f"{text}, but only source addresses have VLANs of their own; leave out the +")
    return Vlan(numbers[-1], numbers[0] if len(numbers) > 1 else None, each)


def vlans(frames: FrameOptions) -> dict[Side, Vlan]:
    """Return the tags of the sides that have some."""
    texts = {side: (f"{side}_vlan", getattr(frames, f"{side}_vlan")) for side in _SIDES}
    return {side: _parse_vlan(name, text) for side, (name, text) in texts.items() if text is not None}


def octets_of_tags(frames: FrameOptions) -> dict[Side, int]:
    """Return the octets that the tags of each side's frames have."""
    found = vlans(frames)
    return {side: tag_octets(str(found[side])) if side in found else 0 for side in _SIDES}


@dataclass(frozen=True, slots=True)
class AddressPlan:
    """Properties of lab and gateway that the traffic must fit.

    Attributes:
        prefix: NAT64 prefix (RFC 6052) with which the side that uses IPv6 writes the IPv4 addresses of the other side;
            None when both sides use the same family.
        translated: whether the device replaces the Initiator's source by a source that becomes known only in phase 1.
        pool: outside addresses the device may use; None = not checked.
        mtu: MTU of the lab's interfaces, in octets.
        mapped: addresses that a stateless translator assigns to the Initiator's hosts, from the first host on; None =
            the device is not such a translator, or they are not known.
        mapped_in_order: whether `mapped` belong to the source addresses one by one, whichever these are.
        port_sets: port sets of the device's subscribers, from which the pool follows; None = no subscribers.
        half: whether the Initiator emulates the customer edges of the subscribers, and is their router on the inside.
        answers: whether the device answers DNS queries itself, so that they are sent to its own address.
        tunnelled: whether customer edges tunnel IPv4 over IPv6, so that frames of the IPv6 side have two IP headers.
        port_blocks: blocks of outside ports that hosts have; None = they share the ports.
        embedded: IPv6 network of the Responder's IPv4 addresses as the Initiator writes them, where the Responder's own
            addresses are behind the prefix; None = the Initiator writes the Responder's own addresses, or not known.
    """

    inside: Link
    outside: Link
    prefix: ipaddress.IPv6Network | None = None
    translated: bool = True
    pool: Addresses | None = None
    mtu: int = 1500
    mapped: Addresses | None = None
    mapped_in_order: bool = False
    port_sets: PortSets | None = None
    embedded: Link | None = None
    half: bool = False
    answers: bool = False
    tunnelled: bool = False
    port_blocks: PortBlocks | None = None
    reuses_ports: bool = True

    @property
    def subscribers_pool(self) -> bool:
        """Whether the outside addresses are those of the port sets: the device has no others to translate to."""
        return self.port_sets is not None and not (self.half and self.translated)

    @property
    def seen_pool(self) -> Addresses | None:
        """The outside addresses as the Responder sees them; None = not checked, or translated to another family."""
        pool = self.pool
        return None if pool is None or pool.first.version != self.outside.tester.version else pool

    def octets(self, ipv4: int, family: Family) -> int:
        """Return the octets of a frame on links of a family, from those of the same frame over IPv4.

        An IPv6 header has 20 octets more than an IPv4 header, which is after it in a tunnel.
        """
        if family == "ipv4":
            return ipv4
        return ipv4 + IP_HEADER["ipv6"] - (0 if self.tunnelled else IP_HEADER["ipv4"])


def address_plan(ground: Ground, recipe: Recipe) -> AddressPlan:
    """Return the properties of a lab and its gateway that the traffic must fit."""
    if recipe.kind == "softwire":
        raise UsageError(
            f"{recipe.name}: is one end of a softwire and does nothing without the other one; name both in a "
            "[[chain]], or choose a gateway whose other half the tester emulates, of kind map-t-br, map-e-br, lwaftr, "
            "aftr, map-t-ce, map-e-ce, lwb4 or b4"
        )
    crosses = (recipe.initiator_family, recipe.responder_family)
    if crosses == ("ipv4", "ipv6") and ground.embedded is None:
        raise UsageError(
            f"{recipe.name}: translates ipv4 to ipv6, and this lab does not say where the Responder's IPv4 addresses "
            "are there; choose a lab that does, such as --lab netns"
        )
    if ground.mapped_in_order and (recipe.source != "mapped" or recipe.relay_alone):
        raise wrong(
            "mapped_addresses",
            f"{recipe.name} does not map each source address to an address of its own; leave them out",
        )
    mapped = ground.mapped if recipe.source == "mapped" and not recipe.relay_alone else None
    # An unknown mapping is judged like any translation. Within one family an untranslated source is an error.
    one_family = recipe.initiator_family == recipe.responder_family
    translated = recipe.source != "unchanged" and (mapped is None or one_family)
    if recipe.half:
        translated = recipe.source == "translated"
    # The IPv6 addresses of an emulated relay's router are behind the prefix, too.
    embedded = not one_family and not (recipe.tunnelled and recipe.relay_alone)
    return AddressPlan(
        inside=ground.inside,
        outside=ground.outside,
        prefix=ground.nat64_prefix if embedded else None,
        translated=translated,
        pool=ground.pool if translated and mapped is None else None,
        mtu=ground.mtu,
        mapped=mapped,
        mapped_in_order=ground.mapped_in_order,
        port_sets=recipe.port_sets,
        embedded=ground.embedded,
        half=recipe.relay_alone,
        answers=recipe.answers_queries,
        tunnelled=recipe.tunnelled,
        port_blocks=recipe.limits.port_blocks,
        reuses_ports=recipe.limits.reuses_ports,
    )


def chosen_sets(recipe: Recipe, options: DeviceOptions) -> PortSets | None:
    """Return the port sets of the recipe; None = it has no subscribers.

    The user may choose the PSID's length and offset (RFC 7597 section 5.1).
    """
    # What may be asked is known without it.
    from pydantic import ValidationError  # noqa: PLC0415

    sets = recipe.port_sets
    if sets is None:
        refuse_sets(recipe, options)
        return None
    try:
        chosen = sets.chosen(options.psid_length, options.psid_offset)
        if chosen is not sets and (recipe.half or recipe.kind.startswith("map-")):
            chosen.refuse_long_rule()
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"port sets of {recipe.name}: {fault}") from None
    except ValueError as error:
        raise UsageError(f"port sets of {recipe.name}: {error}") from None
    return chosen


def refuse_sets(recipe: Recipe, options: DeviceOptions) -> None:
    """Refuse a PSID length or offset of a device whose subscribers are not known."""
    for at, name, value in (
        ("psid_length", "PSID length", options.psid_length),
        ("psid_offset", "PSID offset", options.psid_offset),
    ):
        if value is not None:
            raise UsageError(
                f"{name}: {value} asked for, but the port sets of {recipe.name} are not known here, or it has none; "
                "leave it out, or choose a gateway of ours of kind lw4o6, map-e or map-t",
                at=at,
            )


def source_hosts(subscribers: int | None, named: Addresses | None, sets: PortSets | None, link: Link) -> Addresses:
    """Return the Initiator's addresses, one for each subscriber.

    Args:
        subscribers: number that the user chose; None = the number of addresses.
        named: addresses that the user chose; None = addresses of the link, from the tester's first address on.
        sets: how subscribers share outside addresses; None = by connections, or not at all.
    """
    if sets is None and subscribers is not None and subscribers < 1:
        raise wrong("subscribers", f"{subscribers} is less than 1")
    if sets is None and (subscribers is None or named is None):
        # Without shared addresses a subscriber is an address, too.
        return named or _from_first(subscribers or 1, link)
    count = subscribers if subscribers is not None else (1 if named is None else named.count)
    if sets is not None:
        _check_count(count, sets)
    if named is None:
        return _from_first(count, link)
    if named.first != link.tester or named.count != count:
        raise wrong(
            "source_addresses",
            f"{named} with {with_noun(count, 'subscribers')}: each address is a subscriber, the first one is "
            f"{link.tester}; leave them out",
        )
    return named


def customer_edges(options: TrafficOptions, sets: PortSets) -> int:
    """Return the number of customer edges that the tester emulates."""
    for name, chosen in (("addresses", options.source_addresses), ("ports", options.source_ports)):
        if chosen is not None:
            raise UsageError(
                f"source {name}: {chosen}: the customer edges have the {name} of the device's rule, {sets}; leave them "
                "out, and choose --subscribers"
            )
    count = 1 if options.subscribers is None else options.subscribers
    _check_count(count, sets)
    return count


def _check_count(count: int, sets: PortSets) -> None:
    if not 1 <= count <= sets.most:
        why = f"sets of {sets}, {sets.per_address} of them on each address of {sets.network}"
        if sets.most == sets.most_subscribers:
            why = "the device serves no more (most_subscribers of its recipe)"
        raise wrong("subscribers", f"{count} is outside of 1 to {sets.most}: {why}")


def _from_first(count: int, link: Link) -> Addresses:
    last = int(link.tester) + count - 1
    end = int(link.network.broadcast_address)
    if last >= end:
        raise wrong(
            "subscribers",
            f"{count} addresses from {link.tester} on are more than the {end - int(link.tester)} of {link.network}; "
            "use fewer",
        )
    return Addresses(link.tester, link.tester + (count - 1))


def needs(connections: int, subscribers: int, endpoints: int) -> int:
    """Return the number of ports that a subscriber needs towards one remote endpoint."""
    return math.ceil(connections / (subscribers * endpoints))


def fewest_destination_ports(connections: int, subscribers: int, responders: int, sets: PortSets) -> int:
    """Return the least number of destination ports with which half of each port set stays free.

    A NAT that searches for a free port gives up when its set is nearly full.
    """
    return math.ceil(connections / (subscribers * _comfortable(sets) * responders))


def ports_of_sets(connections: int | None, subscribers: int, endpoints: int, sets: PortSets, first: int) -> Range:
    """Return the source ports that a subscriber's connections need, from `first` on.

    Without a number of connections, that is half a set. If a single subscriber needs more than half of a set of
    neighbouring ports, they are those of its set: a NAT that searches for a free port would give up now and then, but
    Linux keeps a source port that is in the set (net/netfilter/nf_nat_core.c).
    """
    needed = _comfortable(sets) if connections is None else needs(connections, subscribers, endpoints)
    if connections is not None and needed > sets.ports:
        raise wrong(
            "connections",
            f"{connections} of {with_noun(subscribers, 'subscribers')} towards "
            f"{with_noun(endpoints, 'remote endpoints')} need {with_noun(needed, 'ports')} of a set each, a set has "
            f"{sets}; use at least {needs(connections, subscribers, sets.ports)} destination ports "
            "and addresses, more subscribers, or fewer connections",
        )
    if subscribers == 1 and needed > _comfortable(sets) and not sets.psid_offset:
        first = sets.first * sets.ports
    return Range(first, first + needed - 1)


def refuse_small_sets(named: Range, connections: int, sets: PortSets) -> None:
    """Refuse more source ports than a subscriber's set has."""
    needed = min(named.count, connections)
    if needed > sets.ports:
        raise wrong(
            "source_ports",
            f"{needed} of a subscriber towards one remote endpoint need as many outside ports, a set has {sets}; use "
            "fewer source ports and more destination ports",
        )


def shared_addresses(sets: PortSets, subscribers: int) -> Addresses:
    """Return the outside addresses that `subscribers` share."""
    return Addresses(sets.of(0)[0], sets.of(subscribers - 1)[0])


def _comfortable(sets: PortSets) -> int:
    return max(1, sets.ports // 2)
