# SPDX-License-Identifier: Apache-2.0
"""Doubts about excused trials: disturbances explain why they failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from natgauge.doubts.doubt import Doubt, Facts, Said
from natgauge.figure_text import number
from natgauge.procedures.kit.result.notes import excused_text
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.words import Verdict

#: Largest share of excused trials among the deciding trials; above it, the remaining trials decide nothing.
EXCUSED_TOO_OFTEN: Final = 1 / 3


def _too_often(facts: Facts) -> Iterator[Said]:
    """An excused trial is repeated, and one that passes in spite of disturbances counts: the best of several."""
    if _decide_nothing(facts.measured):
        yield Said(f"{_between(facts.measured)}{_text(facts.measured)}")


def _excused(facts: Facts) -> Iterator[Said]:
    if facts.measured.excused and not _decide_nothing(facts.measured):
        yield Said(_text(facts.measured))


def _decide_nothing(measured: MeasurementResult) -> bool:
    """Whether too many of the trials that would have decided were excused."""
    decided = sum(measured.trials.values()) - measured.trials[Verdict.INVALID]
    return measured.excused > EXCUSED_TOO_OFTEN * (decided + measured.excused)


def _text(measured: MeasurementResult) -> str:
    return excused_text(measured.excused, sum(measured.trials.values()))


def _between(measured: MeasurementResult) -> str:
    """Return the remaining interval with a colon, where the metric has one."""
    known = [measurement.upper for measurement in measured.measurements if measurement.upper is not None]
    if len(known) < len(measured.measurements):
        return ""
    lower, upper = map(number, (measured.summary.minimum, max(known)))
    return f"between {lower} and {upper} {measured.unit}: "


DOUBTS: Final = (
    Doubt(
        word="undecided",
        grade="answer",
        about="trial",
        holds=_too_often,
        meaning=(
            "the text names the interval in which the answer lies. Reasons: no trial decided; more than a third of the "
            "periods of a `stability` were INVALID; more than a third of the trials that would have decided were "
            "excused; or the time ended before the bounds were close enough (the value is the lower bound)"
        ),
        remedy="Measure again on a quieter machine, or with more time (--most-seconds).",
        leaves="bounds",
        not_stored="a procedure may take a stored trial for another verdict, so which trials count is not known",
    ),
    Doubt(
        word="excused trials",
        grade="information",
        about="trial",
        holds=_excused,
        meaning="trials would have failed, but disturbances explain that; they were repeated",
        not_stored="a procedure may take a stored trial for another verdict, so which trials count is not known",
    ),
)
