# SPDX-License-Identifier: Apache-2.0
"""Check that one half of a chain serves each subscriber, and name those it does not.

A device that forgets one port set of 60,000 forwards the few frames of the usual check, and then no trial passes. So
each subscriber gets one frame in each direction; where frames are missing, halves of the subscribers are tried again
until single ones are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from natgauge.agreement.generated import StreamCounts, TrialResult
from natgauge.agreement.trial import phase1_of
from natgauge.errors import BrokenError
from natgauge.gateways.port_sets import PortSets
from natgauge.labs.contract import Addresses
from natgauge.setup.traffic import Range, TrafficPlan
from natgauge.trials import Phase2Plan, TrialPlan

#: Most subscribers of one trial: a NAT behind one outside address has a port for each.
MOST: Final = 30_000
#: Subscribers that are named.
_NAMED: Final = 3
#: Tries of a single subscriber: a device that loses one frame in a hundred loses four in a row once in 10^8 cases.
_TRIES: Final = 4
#: Frames/s.
_RATE: Final = 20_000.0


@dataclass(frozen=True, slots=True)
class Missing:
    """Subscribers without a right frame, of those that were tried once in each direction."""

    number: int
    kinds: tuple[str, ...]
    causes: Mapping[str, int]


#: Tries `number` subscribers from the first one, counted from 0.
Try = Callable[[int, int], Missing]


def trial(subscribers: int) -> TrialPlan:
    """Return the plan of a trial with one connection for each of these subscribers, used once in each direction."""
    phase2 = Phase2Plan(0.0, _RATE, subscribers / _RATE, reading_order="once")
    return TrialPlan(subscribers, _RATE, phase2, order="increasing")


def traffic_of(plan: TrafficPlan, first: int, number: int, seed: int) -> TrafficPlan:
    """Return traffic whose connection i is that of subscriber `first` + i, with one source port."""
    port = plan.source_ports.first + seed % plan.source_ports.count
    plan = replace(plan, subscribers=number, first_edge=first, source_ports=Range(port, port), connections=number)
    if plan.tested_edges is None:
        return plan
    host = plan.source_addresses.first + first
    return replace(plan, source_addresses=Addresses(host, host + (number - 1)))


def missing_of(result: TrialResult, causes: Mapping[str, int]) -> Missing:
    """Return the subscribers without a right frame in a trial of `trial`.

    A subscriber whose first frame did not arrive gets none from the Responder, so none is counted twice.
    """
    back = None if result.phase2 is None else result.phase2.responder
    kinds: list[str] = []
    number = 0
    for direction, counts in (("to the Responder", phase1_of(result)), ("to the Initiator", back)):
        if counts is None or counts.received_frames >= counts.offered_frames:
            continue
        number += counts.offered_frames - counts.received_frames
        kinds += [f"{kind} {direction}" for kind in _kinds(counts)]
    return Missing(number, tuple(kinds), {cause: count for cause, count in causes.items() if count > 0})


def _kinds(counts: StreamCounts) -> Iterator[str]:
    wrong = {
        "damaged": counts.damaged,
        "untranslated": counts.untranslated,
        "mistranslated": counts.mistranslated,
        "late": counts.late,
    }
    yield from (kind for kind, number in wrong.items() if number)
    if counts.received_frames + sum(wrong.values()) < counts.offered_frames:
        yield "lost"


def check(sets: PortSets, number: int, most: int, tried: Try) -> None:
    """Check that a device forwards for each subscriber."""
    parts = [(first, min(most, number - first)) for first in range(0, number, most)]
    faulty = [(first, size, found.number) for first, size in parts if (found := tried(first, size)).number]
    named: list[tuple[int, Missing]] = []
    for first, size, _ in faulty:
        at, end = first, first + size
        while len(named) < _NAMED and (one := _first_missing(at, end, tried)) is not None:
            named.append(one)
            at = one[0] + 1
    if named:
        raise BrokenError(_sentence(sets, number, max(len(named), sum(lost for _, _, lost in faulty)), named))


def _first_missing(first: int, end: int, tried: Try) -> tuple[int, Missing] | None:
    """Return the first subscriber of `first` to `end` - 1 without a right frame; None = no frame is always missing."""
    if first >= end or not tried(first, end - first).number:
        return None
    while end - first > 1:
        middle = (first + end) // 2
        if tried(first, middle - first).number:
            end = middle
        else:
            first = middle
    results = [tried(first, 1) for _ in range(_TRIES)]
    return (first, results[-1]) if all(result.number for result in results) else None


def _sentence(sets: PortSets, number: int, lost: int, named: list[tuple[int, Missing]]) -> str:
    ones = []
    for subscriber, missing in named:
        address, psid = sets.of(subscriber)
        causes = "".join(f", the device counted {cause}" for cause in missing.causes)
        map_address = f", {sets.map_address(subscriber)}" if sets.has_map_addresses else ""
        ones.append(
            f"subscriber {subscriber} ({address}, PSID {psid}{map_address}): {' and '.join(missing.kinds)}{causes}"
        )
    more = "; ..." if lost > len(named) else ""
    return (
        f"device does not forward for {lost} of {number} subscribers: {'; '.join(ones)}{more}; look at its rules or "
        "binding table"
    )
