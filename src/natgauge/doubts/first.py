# SPDX-License-Identifier: Apache-2.0
"""The doubt of rates that are shares of a throughput, which was measured first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from natgauge.doubts.doubt import Doubt, Facts, Said, by_grade


def _of_first(facts: Facts) -> Iterator[Said]:
    """A wrong throughput makes every share of it a wrong rate."""
    others = by_grade(facts.of_first)
    if others:
        words = dict.fromkeys(doubt.word for doubt in others)
        text = (
            f"the throughput was measured first, and has doubts of its own ({', '.join(words)}), so that rates which "
            "are shares of it may be wrong; measure the metric throughput to see what they say"
        )
        yield Said(text, grade=others[0].grade)


DOUBTS: Final = (
    Doubt(
        word="throughput doubted",
        grade="answer",
        about="result",
        quotes=True,
        holds=_of_first,
        grades="`interval` or `information` if the throughput's doubts have no higher grade",
        meaning=(
            "the throughput was measured first, and has the doubts that the text names. So the rates that are shares "
            "of it (`100 %`) may be wrong; measure `throughput` by itself to see these doubts in full"
        ),
        not_stored="the result of a throughput that was measured first is not stored",
    ),
)
