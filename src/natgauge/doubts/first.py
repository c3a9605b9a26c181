# SPDX-License-Identifier: Apache-2.0
"""The doubts of rates that are shares of another rate, which was measured first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from natgauge.doubts.doubt import Doubt, Facts, Said, by_grade


def _doubts_of(metric: str, rate: str) -> Callable[[Facts], Iterator[Said]]:
    """Return what yields the doubt: a wrong rate makes every share of it wrong."""

    def holds(facts: Facts) -> Iterator[Said]:
        others = by_grade(facts.of_first)
        if others and any(result.metric == metric for result in facts.measured.first):
            words = dict.fromkeys(doubt.word for doubt in others)
            text = (
                f"the {rate} was measured first, and has doubts of its own ({', '.join(words)}), so that rates which "
                f"are shares of it may be wrong; measure the metric {metric} to see what they say"
            )
            yield Said(text, grade=others[0].grade)

    return holds


DOUBTS: Final = (
    Doubt(
        word="throughput doubted",
        plainly="the throughput, of which the loads are shares, is in doubt itself",
        grade="answer",
        about="result",
        holds=_doubts_of("throughput", "throughput"),
        grades="`interval` or `information` if the throughput's doubts have no higher grade",
        meaning=(
            "the throughput was measured first, and has the doubts that the text names. So the rates that are shares "
            "of it (`100 %`) may be wrong; measure `throughput` by itself to see these doubts in full"
        ),
        not_stored="the result of a throughput that was measured first is not stored",
    ),
    Doubt(
        word="connection rate doubted",
        plainly="the connection rate, of which the loads are shares, is in doubt itself",
        grade="answer",
        about="result",
        holds=_doubts_of("connection-rate", "connection rate"),
        grades="`interval` or `information` if the connection rate's doubts have no higher grade",
        meaning=(
            "first-packet delay: the connection rate was measured first, and has the doubts that the text names, or "
            "its trials were too short to measure it. So the rates that are shares of it (`100 %`) may be wrong"
        ),
        not_stored="the result of a connection rate that was measured first is not stored",
    ),
)
