# SPDX-License-Identifier: Apache-2.0
"""The lab's and the gateway's properties that decide the addresses and sizes of the traffic."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from natgauge.errors import UsageError
from natgauge.ethernet import IP_HEADER
from natgauge.inputs.checks import wrong
from natgauge.labs.contract import Addresses, Ground, Link
from natgauge.words import Family

if TYPE_CHECKING:
    # What may be asked is known without what reads recipes.
    from natgauge.gateways.port_sets import PortSets
    from natgauge.gateways.recipe import Recipe
    from natgauge.port_blocks import PortBlocks


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
        edges: whether the device is the customer edges of the subscribers, and the Responder emulates their relay.
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
    edges: bool = False
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
        edges=recipe.edges_alone,
        answers=recipe.answers_queries,
        tunnelled=recipe.tunnelled,
        port_blocks=recipe.limits.port_blocks,
        reuses_ports=recipe.limits.reuses_ports,
    )
