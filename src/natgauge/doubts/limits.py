# SPDX-License-Identifier: Apache-2.0
"""Doubts about what decided: disturbances excuse failed trials, and not the device, or not always the same, limited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from natgauge.analysis.unit_frames import unit_with_direction
from natgauge.doubts.doubt import Doubt, Facts, Said
from natgauge.figure_text import at_least, at_most, in_full
from natgauge.procedures.kit.result.notes import excused_text
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.words import LimitedBy, Verdict

#: Largest share of excused trials among the deciding trials; above it, the remaining trials decide nothing.
EXCUSED_TOO_OFTEN: Final = 1 / 3


def _too_often(facts: Facts) -> Iterator[Said]:
    """An excused trial is repeated, and one that passes in spite of disturbances counts: the best of several."""
    if _decide_nothing(facts.measured):
        text, count = _excuses(facts)
        yield Said(f"{_between(facts)}{text}", count)


def _excused(facts: Facts) -> Iterator[Said]:
    if facts.measured.excused and not _decide_nothing(facts.measured):
        yield Said(*_excuses(facts))


def _decide_nothing(measured: MeasurementResult) -> bool:
    decided = sum(measured.trials.values()) - measured.trials[Verdict.INVALID]
    return measured.excused > EXCUSED_TOO_OFTEN * (decided + measured.excused)


def _excuses(facts: Facts) -> tuple[str, int]:
    """What disturbances did to trials, as a text, and its number of trials; 1 = it does not say all of them."""
    measured = facts.measured
    excused, number, invalid = measured.excused, sum(measured.trials.values()), measured.trials[Verdict.INVALID]
    if facts.disturbed < excused:
        return excused_text(excused, number), 1
    text = f"the machine disturbed {facts.disturbed} of {number} trials; {excused} failed, which disturbances explain"
    more = f"; {invalid} were INVALID" if invalid > excused else ""
    return f"{text}, and were not counted{more}", facts.disturbed


def _between(facts: Facts) -> str:
    """Return the remaining interval with a colon, where the metric has one."""
    measured = facts.measured
    known = [measurement.upper for measurement in measured.measurements if measurement.upper is not None]
    if len(known) < len(measured.measurements):
        return ""
    # Rounded as the first line rounds bounds.
    lower, upper = at_least(measured.summary.minimum), at_most(max(known))
    unit = unit_with_direction(measured.metric, measured.unit, facts.parameters)
    return f"its searches leave between {lower} and {upper} {unit}: "


def _limited(by: LimitedBy, text: str) -> Callable[[Facts], Iterator[Said]]:
    """The condition of a doubt that holds where this limited the result."""

    def holds(facts: Facts) -> Iterator[Said]:
        if facts.measured.limited_by == by:
            yield Said(text)

    return holds


def _of_ranges(facts: Facts) -> Iterator[Said]:
    """Where all connections that were asked for fitted, more of them are a question that nobody asked."""
    measured, asked = facts.measured, facts.parameters.get("connections")
    if measured.limited_by != "ranges":
        return
    if measured.unit == "connections" and isinstance(asked, int) and all(value == asked for value in measured.values):
        yield Said(f"all {in_full(asked)} connections that were asked for fitted; the device may keep more")
    else:
        yield Said("the ranges of the measurement ended the search, not the device, which may do more")


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
        word="undecided",
        plainly="the measurement ended before the answer was found exactly",
        grade="answer",
        about="trial",
        holds=_too_often,
        meaning=(
            "the text names the interval in which the answer lies. Reasons: no trial decided; more than a third of the "
            "periods of a `stability` were INVALID; more than a third of the trials that would have decided were "
            "excused; or the time ended before the bounds were close enough (the value is the lower bound)"
        ),
        remedy=(
            "Measure again on a quieter machine, or with more time (--most-seconds; in a plan most_seconds of "
            "[[measure]])."
        ),
        leaves="bounds",
        # Where the time ended, the text is that of an error.
        quotes=True,
        not_stored="a procedure may take a stored trial for another verdict, so which trials count is not known",
    ),
    Doubt(
        word="excused trials",
        plainly="disturbances of the machine explain failed trials, which were repeated",
        grade="information",
        about="trial",
        holds=_excused,
        cause_of="wide spread",
        meaning="trials would have failed, but disturbances explain that; they were repeated",
        not_stored="a procedure may take a stored trial for another verdict, so which trials count is not known",
    ),
    Doubt(
        word="tester limited",
        plainly="the tester was the limit, so that the gateway may be faster",
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
        plainly="the server was the limit, so that the gateway may be faster",
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
        plainly="the machine was the limit, so that the gateway may be faster",
        grade="answer",
        about="result",
        holds=_limited("host", "disturbances of this host were the bottleneck, not the device"),
        meaning="the bottleneck was the machine, not the gateway",
        remedy="Measure on a quieter machine, or keep other work off its cores (natgauge doctor).",
        leaves="at least",
        ended_by="the host",
    ),
    Doubt(
        word="range limited",
        plainly="the range of the measurement ended before the gateway's limit was found",
        grade="answer",
        about="result",
        holds=_of_ranges,
        meaning="the number of connections, hosts, ports, subscribers or trials ended it: the gateway may do more",
        remedy=(
            "Give more of what ended the search, as its note says: --connections, --destination-ports, "
            "--source-addresses or --most-subscribers."
        ),
        leaves="at least",
    ),
    Doubt(
        word="several limits",
        plainly="the repetitions were limited by different things",
        grade="interval",
        about="repetition",
        holds=_several,
        meaning="not all repetitions had the same limit; the text says how many had which",
    ),
)
