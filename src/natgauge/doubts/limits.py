# SPDX-License-Identifier: Apache-2.0
"""Doubts about what limited: not the device, or not always the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from natgauge.doubts.doubt import Doubt, Facts, Said
from natgauge.words import LimitedBy


def _limited(by: LimitedBy, text: str) -> Callable[[Facts], Iterator[Said]]:
    """The condition of a doubt that holds where this limited the result."""

    def holds(facts: Facts) -> Iterator[Said]:
        if facts.measured.limited_by == by:
            yield Said(text)

    return holds


def _several(facts: Facts) -> Iterator[Said]:
    limited_by = facts.measured.limited_by
    limits = Counter(measurement.limited_by for measurement in facts.measured.measurements)
    others = {limit: number for limit, number in limits.items() if limit != limited_by}
    if others:
        named = " and ".join(f"of {number} the {limit}" for limit, number in others.items())
        most = f"of {limits[limited_by]} of {limits.total()} repetitions was the {limited_by}"
        yield Said(f"the bottleneck {most}, {named}")


DOUBTS: Final = (
    Doubt(
        word="tester limited",
        grade="answer",
        about="result",
        holds=_limited("tester", "the bottleneck was the tester, not the device, which may do better"),
        meaning="the bottleneck was the tester: the gateway may be faster",
        remedy="Give the tester more cores, or the device fewer.",
        leaves="at least",
        ended_by="the tester",
    ),
    Doubt(
        word="server limited",
        grade="answer",
        about="result",
        holds=_limited("server", "the bottleneck was the real server, not the device, which may do more"),
        meaning="the server limited; the gateway may be faster",
        remedy="Use a faster server, or measure with the tester as the far side.",
        leaves="at least",
        ended_by="the server",
    ),
    Doubt(
        word="host limited",
        grade="answer",
        about="result",
        holds=_limited("host", "disturbances of this host were the bottleneck, not the device"),
        meaning="the bottleneck was the machine, not the gateway",
        remedy="Measure on a quieter machine, or keep other work off its cores (natgauge doctor).",
        leaves="at least",
        ended_by="the host",
    ),
    Doubt(
        word="several limits",
        grade="interval",
        about="repetition",
        holds=_several,
        meaning="not all repetitions had the same limit; the text says how many had which",
    ),
)
