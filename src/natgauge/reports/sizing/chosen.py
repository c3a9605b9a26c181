# SPDX-License-Identifier: Apache-2.0
"""Which results say something of the subscribers, and why the others are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from natgauge.analysis.sizing import (
    Sizing,
    Subscribers,
    Unused,
    keeps_connections,
    resource_of,
    sizings,
    why_unused,
    with_asked,
)
from natgauge.errors import UsageError
from natgauge.metrics.metric import Resource
from natgauge.records.measurement import Result
from natgauge.reports.sizing.words import metrics_of

#: Options that ask for a resource.
_OPTIONS: Final[Mapping[Resource, str]] = {
    "new connections": "--new-each",
    "open connections": "--connections-each",
    "frames": "--mbit-each",
}
#: Why results are left out; those of which nothing is asked have the option instead.
_LEFT_OUT: Final[Mapping[Unused, str]] = {
    "other metric": "no measure of subscribers",
    "own profile": "its number is the answer for subscribers of its own profile",
    "no limit": "the gateway keeps no connections, so they are no limit",
    "drawn frames": "its frames drew their four tuples (order with-replacement), so some opened no connection",
    "routed frames": "native IPv6 among its frames, which is only routed",
    "unknown size": "the size of its frames is not known",
}


def sized(results: Sequence[Result], asked: Subscribers) -> list[Sizing]:
    """Return what these results say of the subscribers, a sizing for each gateway, machine and number of cores."""
    found = sizings(results, asked)
    if not found:
        keeps = not results or any(map(keeps_connections, results))
        if asked.megabits is None and not keeps:
            names = " and ".join(dict.fromkeys(result.gateway for result in results))
            raise UsageError(
                f"size: {names}: keeps no connections, so neither open nor new ones are a limit; give --mbit-each, and "
                "a result of throughput",
                at="mbit_each",
            )
        needs = asked.needs() if keeps else ("frames",)
        wanted = " or ".join(name for need in needs for name in metrics_of(need))
        have = left_out(results, asked) or "none"
        raise UsageError(f"size: needs results of {wanted}; given: {have}; measure one, or name its folder")
    return found


def unused_of(results: Sequence[Result], asked: Subscribers) -> list[tuple[Result, Unused]]:
    """The results that say nothing of these subscribers, with the reason."""
    of = {id(result): own for group in with_asked(results, asked) for result, own in group}
    found = ((result, why_unused(result, of[id(result)])) for result in results)
    return [(result, why) for result, why in found if why is not None]


def left_out(results: Sequence[Result], asked: Subscribers) -> str:
    """The results that say nothing of these subscribers, with the reason; empty where there are none."""
    several = len({result.gateway for result in results}) > 1
    names: dict[str, dict[str, None]] = {}
    for result, why in unused_of(results, asked):
        name = f"{result.metric} of {result.gateway}" if several else result.metric
        names.setdefault(reason_of(result, why), {})[name] = None
    return "; ".join(f"{', '.join(own)} ({reason})" for reason, own in names.items())


def reason_of(result: Result, why: Unused) -> str:
    """Why a result is left out, in words."""
    resource = resource_of(result)
    return f"no {_OPTIONS[resource]}" if why == "not asked" and resource is not None else _LEFT_OUT[why]
