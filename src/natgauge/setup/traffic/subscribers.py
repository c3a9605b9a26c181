# SPDX-License-Identifier: Apache-2.0
"""Subscribers of a device that shares IPv4 addresses (MAP, lw4o6): each of the Initiator's addresses is a subscriber.

Before one half of such a device the tester emulates the subscribers' customer edges instead. Then each edge has the
address and the ports that follow from the device's rule, and the Initiator's own address is that of their router.

The user may choose the PSID's length and offset (RFC 7597 section 5.1).

A subscriber can use only the ports of its set, so a plan that needs more towards one remote endpoint is refused.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from natgauge.errors import UsageError
from natgauge.figure_text import with_noun
from natgauge.inputs.checks import wrong
from natgauge.labs.contract import Addresses, Link
from natgauge.setup.traffic.ranges import Range

if TYPE_CHECKING:
    # What may be asked is known without what reads recipes.
    from natgauge.gateways.port_sets import PortSets
    from natgauge.gateways.recipe import Recipe
    from natgauge.inputs.question import DeviceOptions, TrafficOptions


def chosen_sets(recipe: Recipe, options: DeviceOptions) -> PortSets | None:
    """Return the port sets of the recipe, with the user's PSID length and offset; None = it has no subscribers."""
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


def source_addresses(subscribers: int | None, named: Addresses | None, sets: PortSets | None, link: Link) -> Addresses:
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


def destination_ports(connections: int, subscribers: int, responders: int, sets: PortSets) -> int:
    """Return the least number of destination ports with which half of each port set stays free.

    A NAT that searches for a free port gives up when its set is nearly full.
    """
    return math.ceil(connections / (subscribers * _comfortable(sets) * responders))


def source_ports(connections: int | None, subscribers: int, endpoints: int, sets: PortSets, first: int) -> Range:
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


def pool(sets: PortSets, subscribers: int) -> Addresses:
    """Return the outside addresses that `subscribers` share."""
    return Addresses(sets.of(0)[0], sets.of(subscribers - 1)[0])


def _comfortable(sets: PortSets) -> int:
    return max(1, sets.ports // 2)
