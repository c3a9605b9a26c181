# SPDX-License-Identifier: Apache-2.0
"""A chain's rate next to the rates of both its halves, each measured alone (RFC 8219 section 4.2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from natgauge.analysis import derived
from natgauge.analysis.comparing import Difference, comparable
from natgauge.analysis.contrast import left, left_bounds
from natgauge.analysis.scalability import Comparison, DerivedRow
from natgauge.figure_text import number
from natgauge.records.measurement import FUNCTIONAL, Result

#: Kinds of the customers' half and of the provider's half, by kind of the chain.
_HALVES: Final = {
    "464xlat": ("siit", "nat64"),
    "ds-lite": ("b4", "aftr"),
    "lw4o6": ("lwb4", "lwaftr"),
    "map-e": ("map-e-ce", "map-e-br"),
    "map-t": ("map-t-ce", "map-t-br"),
}
#: May differ between a chain and a half: the device, the division of a chain's cores, and whether there is a phase 1.
_ABOUT: Final = frozenset({"device", "cores_of_devices", "stateless", "connection_rate"})
#: Parameters of the device that may not differ.
_SHARED: Final = ("psid_length", "psid_offset")
#: The frames before the provider's half are those of customer edges, in IPv6: it may differ in these as well.
_ABOUT_PROVIDER: Final = _ABOUT | {
    "initiator_family", "frame_size", "connections", "source_port_count", "destination_port_count",
}  # fmt: skip


def kinds_of_halves(kind: object) -> tuple[str, str] | None:
    """Return the kinds of the customers' half and of the provider's half of a chain; None = no such chain."""
    return _HALVES.get(str(kind))


def rows_of_halves(results: Sequence[Result]) -> list[DerivedRow]:
    """Return what both halves alone let expect of each chain among the results.

    If the devices of a chain have cores of their own, the rate is the smaller one of the halves. If they share cores,
    their times for a frame add up.
    """
    return [
        DerivedRow(name, "", tuple(compare(result, results) for result in results))
        for name, compare in (
            ("minimum of the halves", partial(_compare, compute=min)),
            ("1 / (1/CE + 1/PE) of the halves", _in_turns),
        )
    ]


def _in_turns(result: Result, results: Sequence[Result]) -> Comparison:
    if result.parameter("cores_of_devices") is not None:
        return Comparison()
    return _compare(result, results, derived.rate_in_turns)


def _compare(result: Result, results: Sequence[Result], compute: Callable[[float, float], float]) -> Comparison:
    kinds = kinds_of_halves(result.parameter("kind"))
    if kinds is None or not result.unit.endswith("/s"):
        return Comparison()
    halves = []
    for kind, about in zip(kinds, (_ABOUT, _ABOUT_PROVIDER), strict=True):
        found = sorted(
            (
                (_differences(result, other, about), place)
                for place, other in enumerate(results)
                if (other.metric, other.parameter("kind")) == (result.metric, kind)
            ),
            key=lambda candidate: len(candidate[0]),
        )
        if not found:
            return Comparison()
        differences, place = found[0]
        if differences:
            return Comparison(doubt="; ".join(map(str, differences)), other=place)
        if len(found) > 1 and not found[1][0]:
            return Comparison(doubt=f"several results are of kind {kind}")
        halves.append(results[place])
    if any(each.functional for each in (result, *halves)):
        return Comparison(doubt=FUNCTIONAL)
    return _of_halves(result, halves, compute)


def _of_halves(result: Result, halves: Sequence[Result], compute: Callable[[float, float], float]) -> Comparison:
    """The figure of both halves, or the bound that limits and grave doubts leave of it."""
    least, most = (compute(*ends) for ends in zip(*map(left_bounds, halves), strict=True))
    rates = " and ".join(f"{half.gateway} {number(half.median)} {half.unit}" for half in halves)
    note = f"{result.gateway}, {result.metric}: the halves are {rates}"
    # In `shared` placement each half contains the tester's own work, which the chain has once.
    is_shared = result.placement == "shared"
    if least < most and not least:
        doubts = ", ".join(dict.fromkeys(word for half in halves for word in left(half).opened))
        reason = f"doubts leave no such bound of a half: {doubts}"
        return Comparison(doubt=reason) if is_shared or math.isinf(most) else Comparison(most, "<=", note=note)
    return Comparison(least, ">=" if is_shared or least < most else "", note=note)


def _differences(chain: Result, half: Result, about: frozenset[str]) -> list[Difference]:
    """Return the differences that forbid to compare a half with the chain, in the frames of IPv4, too."""
    differences = comparable(chain, half, except_for=about)
    for name in _SHARED:
        mine, its = chain.parameter(name), half.parameter(name)
        # DS-Lite as a chain has no port sets, its halves have one for each host.
        if None not in (mine, its) and mine != its:
            differences.append(Difference(name, name.replace("_", " "), mine, its))
    mine, its = _ipv4_octets(chain), _ipv4_octets(half)
    return differences if mine == its else [*differences, Difference("frame_octets", "frames over IPv4", mine, its)]


def _ipv4_octets(result: Result) -> float | None:
    octets = result.parameter("frame_octets")
    sizes = octets.values() if isinstance(octets, dict) else ()
    return min((size for size in sizes if isinstance(size, int | float)), default=None)
