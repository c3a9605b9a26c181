# SPDX-License-Identifier: Apache-2.0
"""Doubts about the values of the repetitions: too few, too far apart, or changing with time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from natgauge.doubts.doubt import Doubt, Facts, Said, count_of
from natgauge.figure_text import in_percent, with_noun
from natgauge.figure_text import number as written
from natgauge.interval_text import readings_of
from natgauge.metrics.times import FEW_FRAMES, RFC_TAGS, TIMED_FRAMES, TOO_FEW_FRAMES
from natgauge.procedures.kit.result.results import Measurement
from natgauge.statistics.trend import are_autocorrelated, autocorrelation, mann_kendall
from natgauge.words import Verdict, enumerated

#: A doubt reports repetitions whose lowest and highest value differ by more than this share of their median.
WIDE: Final = 0.05


def _single(facts: Facts) -> Iterator[Said]:
    if len(facts.measured.values) == 1 and not facts.measured.is_sampled:
        yield Said("a single repetition says nothing about spread")


def _few_frames(facts: Facts) -> Iterator[Said]:
    """A percentile, or a range, of few frames is that of the slowest one."""
    timed = facts.measured.figures.get(TIMED_FRAMES)
    # A literal measurement of RFC 8219 is no doubtful one.
    enough = FEW_FRAMES if facts.parameters.get("tags") is None else RFC_TAGS
    if timed is None or timed.minimum >= enough:
        return
    number = int(timed.minimum)
    frames, were = ("1 frame", "was") if number == 1 else (f"{number} frames", "were")
    yield Said(
        f"{frames} of a direction {were} timed; of fewer than {FEW_FRAMES:,} the slowest is the worst case, and other "
        "frames may take far longer",
        value=number,
        grade="answer" if number < TOO_FEW_FRAMES else None,
    )


def _wide(facts: Facts) -> Iterator[Said]:
    measured, summary = facts.measured, facts.measured.summary
    spread = summary.maximum - summary.minimum
    disagree = _disagree(measured.measurements)
    if disagree or spread > WIDE * abs(summary.median):
        share = in_percent(spread / abs(summary.median)) if summary.median else "more than all"
        values = ", ".join(readings_of(measured.values))
        beyond = f", which is more than the errors of their searches explain: {values}" if disagree else ""
        yield Said(f"{summary.count} repetitions differ by {share} of their median{beyond}; {_causes(facts)}")


def _disagree(measurements: Sequence[Measurement]) -> bool:
    """Whether two searches found values farther apart than both errors together: the device has no single limit."""
    values_and_errors = sorted(
        (measurement.value, measurement.error) for measurement in measurements if measurement.error is not None
    )
    return any(
        other - value > error + its_error for (value, error), (other, its_error) in combinations(values_and_errors, 2)
    )


def _causes(facts: Facts) -> str:
    """Return the facts of the record that can make repetitions differ."""
    measured = facts.measured
    excused, invalid = measured.excused, measured.trials[Verdict.INVALID]
    # Excused trials are INVALID.
    numbers = {"disturbed": facts.disturbed, "excused": excused if excused < invalid else 0, "INVALID": invalid}
    trials = [f"{number} {'was' if number == 1 else 'were'} {what}" for what, number in numbers.items() if number]
    known = [f"of {with_noun(sum(measured.trials.values()), 'trials')} {enumerated(trials)}"] if trials else []
    if contradictions := count_of(measured.notes, "contradictions"):
        known.append(f"{contradictions} loads passed one trial and failed another")
    if known:
        return f"possible causes: {', '.join(known)}"
    return "no trial was disturbed: the device itself, or its place in memory, may differ between repetitions"


def _autocorrelated(facts: Facts) -> Iterator[Said]:
    """A host that drifts makes neighbours alike, and the interval of the median too narrow."""
    values = facts.measured.values
    if are_autocorrelated(values):
        yield Said(
            f"repetitions resemble the ones before them (lag-1 autocorrelation {autocorrelation(values):.2f}); the "
            "interval of the median assumes that they are independent, and is too narrow"
        )


def _drift(facts: Facts) -> Iterator[Said]:
    """A device or a host that changes with time has no single value that more repetitions would find."""
    values = facts.measured.values
    trend = mann_kendall(values)
    if trend is None or not trend.is_significant:
        return
    change, median = trend.slope * (len(values) - 1), facts.measured.summary.median
    share = f", by {in_percent(abs(change / median))} of their median from the first to the last" if median else ""
    yield Said(
        f"repetitions {'rose' if trend.tau > 0 else 'fell'} with time{share} (Mann-Kendall test: tau {trend.tau:.2f}, "
        f"p {written(trend.probability)}): the device or its host changed while it was measured"
    )


DOUBTS: Final = (
    Doubt(
        word="single repetition",
        plainly="there is one repetition, so that the spread is not known",
        grade="interval",
        about="repetition",
        holds=_single,
        meaning=(
            "nothing is known about the spread; a tear-down rate of one repetition with several deletions does not "
            "have this doubt"
        ),
        of_single=True,
        is_inherited=False,
    ),
    Doubt(
        word="few frames",
        plainly="few frames were timed",
        grade="interval",
        about="repetition",
        holds=_few_frames,
        grades="`answer` of fewer than 100 frames",
        meaning=(
            "delays: fewer than 1,000 frames of a direction were timed, or fewer than 500 tagged ones, so that their "
            "worst case or their variation is that of the slowest one; `value` is the number"
        ),
        remedy=(
            "Time more frames by longer trials (--trial-seconds) or higher loads, with --way rfc8219 by more --tags; "
            "first frames by more connections."
        ),
        foreseen=True,
    ),
    Doubt(
        word="wide spread",
        plainly="repetitions differ by more than 5 % of their median, or two by more than their searches' errors",
        grade="interval",
        about="repetition",
        holds=_wide,
        meaning=(
            "the lowest and the highest repetition differ by more than 5 % of the median, or two repetitions differ by "
            "more than the errors of their searches (then the text has their values). The text also says what the "
            "record knows of the cause: the number of repetitions, and disturbed, excused, INVALID and contradicting "
            "trials"
        ),
        shows_text=True,
    ),
    Doubt(
        word="autocorrelated",
        plainly="repetitions resemble the ones before them, as where the machine drifts",
        grade="answer",
        about="repetition",
        holds=_autocorrelated,
        meaning=(
            "repetitions resemble the ones before them more than chance allows: the host drifted, and the confidence "
            "interval of the median is too narrow"
        ),
        remedy="Measure on a quieter machine, with more repetitions that take turns.",
        of_median=True,
    ),
    Doubt(
        word="drift",
        plainly="the values rose or fell with time",
        grade="answer",
        about="repetition",
        holds=_drift,
        meaning=(
            "six or more repetitions rose or fell with time (Mann-Kendall test, p at most 1 %): the gateway or its "
            "host changed while it was measured. Of independent repetitions without a trend, at most one series in 100 "
            "has this doubt, so that a campaign of 100 series has about one by chance. The text has the direction, "
            "the change, tau and p"
        ),
        remedy="Find what changed while it was measured, and measure again.",
        of_median=True,
    ),
)
