# SPDX-License-Identifier: Apache-2.0
"""Doubts about repetitions and their trials: the spread of the values, the verdicts, and what happened meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from natgauge.doubts.doubt import Doubt, Facts, Said, count_of
from natgauge.figure_text import in_percent, with_noun
from natgauge.figure_text import number as written
from natgauge.interval_text import readings_of
from natgauge.metrics.catalogue import FEW_FRAMES, RFC_TAGS, TIMED_FRAMES, TOO_FEW_FRAMES
from natgauge.other_traffic import other_traffic_note
from natgauge.procedures.kit.results import Measurement
from natgauge.statistics.ranks import are_autocorrelated, autocorrelation, mann_kendall
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
    values_and_errors = sorted((each.value, each.error) for each in measurements if each.error is not None)
    return any(
        other - value > error + its_error for (value, error), (other, its_error) in combinations(values_and_errors, 2)
    )


def _causes(facts: Facts) -> str:
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


def _collapsed(facts: Facts) -> Iterator[Said]:
    """Only trials of which frames were sent show a collapse; a device that did not come back gets no other ones.

    A crash between two trials is in none of them.
    """
    collapses = [outcome for outcome in facts.counted if outcome.verdict is Verdict.COLLAPSED]
    unbegun = sum(not outcome.begun for outcome in collapses)
    collapsed, number = facts.measured.trials[Verdict.COLLAPSED] - unbegun, sum(facts.measured.trials.values())
    said = []
    if collapsed:
        more = f"; {unbegun} more could not begin, because it did not come back" if unbegun else ""
        said.append(f"the device collapsed in {collapsed} of {number - unbegun} trials{more}")
    elif unbegun:
        # The trial before lost frames with the link, and is INVALID.
        said.append(f"{unbegun} of {number} trials could not begin, because the device forwarded nothing any more")
    every = [attempt.outcome for repetition in facts.measured.measurements for attempt in repetition.attempts]
    if gone := sum(outcome.gone_before and outcome.begun for outcome in every):
        said.append(f"the device was gone {gone} x between two trials, and came back")
    if said:
        yield Said("; ".join(said))


def _invalid(facts: Facts) -> Iterator[Said]:
    if invalid := facts.measured.trials[Verdict.INVALID]:
        yield Said(f"{invalid} of {sum(facts.measured.trials.values())} trials were INVALID and not counted")


def _disturbed(facts: Facts) -> Iterator[Said]:
    if disturbed := facts.disturbed:
        yield Said(f"{disturbed} of {sum(facts.measured.trials.values())} trials were disturbed")


def _contradictions(facts: Facts) -> Iterator[Said]:
    if number := count_of(facts.measured.notes, "contradictions"):
        text = f"{number} loads passed one trial and failed another; the majority counts (--json names each load)"
        yield Said(text, number)


def _other_traffic(facts: Facts) -> Iterator[Said]:
    """Frames that are not the test's take part of the device's time."""
    for note in other_traffic_note((outcome.other_traffic for outcome in facts.counted), "trials"):
        yield Said(note.text, note.count, note.value, note.grade)


def _unexpected_count(facts: Facts) -> Iterator[Said]:
    """Connections that the device forgot too early or too late: open ones, or those that left."""
    # Of a trial that failed, openings were lost or late, and the device holds other numbers for that.
    passed = [outcome for outcome in facts.counted if outcome.verdict is Verdict.PASS]
    read = [counted for outcome in passed if (counted := outcome.readings.count_in_churn) is not None]
    deviating = [counted for counted in read if counted.deviates]
    if not deviating:
        return
    worst = max(deviating, key=lambda counted: abs(counted.deviation))
    yield Said(
        f"in {len(deviating)} of {len(read)} trials with new connections the device held another number than expected, "
        f"at worst {worst.count} instead of {written(worst.expected)} ({in_percent(worst.deviation)})",
        len(deviating),
        worst.deviation,
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
    Doubt(
        word="collapsed",
        plainly="the gateway stopped forwarding after some trials",
        grade="answer",
        about="trial",
        holds=_collapsed,
        meaning=(
            "after some trials the device forwarded no frame any more. In a search each such trial counts as a load "
            "too high, and is tried again like any other. Trials that could not begin because the device did not come "
            "back are counted separately"
        ),
        remedy="See the trials of the results folder for the load at which the device collapsed.",
    ),
    Doubt(
        word="INVALID trials",
        plainly="the machine spoiled trials, which were not counted",
        grade="information",
        about="trial",
        holds=_invalid,
        cause_of="wide spread",
        told_by=("undecided", "excused trials"),
        meaning="the tester or the machine spoiled trials, which were not counted",
    ),
    Doubt(
        word="disturbed trials",
        plainly="the machine disturbed trials",
        grade="information",
        about="trial",
        holds=_disturbed,
        cause_of="wide spread",
        told_by=("undecided", "excused trials"),
        meaning="stalls or stolen time were seen during trials, whatever their verdict",
    ),
    Doubt(
        word="contradictions",
        plainly="some loads passed and failed when they were tried again",
        grade="interval",
        about="trial",
        holds=_contradictions,
        cause_of="wide spread",
        meaning="loads passed and failed when they were tried again",
        sums=True,
    ),
    Doubt(
        word="unexpected count",
        plainly="the gateway held another number of connections than its time-out allows",
        grade="interval",
        about="trial",
        holds=_unexpected_count,
        meaning=(
            "while connections came and went, the device's own count differed by more than 1 % from the connections "
            "that should be open or not yet forgotten: the device forgets them earlier or later than its time-out says"
        ),
        remedy="Compare the time-outs of the device with --udp-timeout; a table may fill earlier than computed.",
        not_stored="a procedure may take a stored trial for another verdict, so which trials count is not known",
    ),
    Doubt(
        word="other traffic",
        plainly="frames of others arrived on the links",
        grade="interval",
        about="trial",
        holds=_other_traffic,
        grades="`answer` from 1 % of the offered frames on",
        meaning=(
            "frames that are not the test's (foreign) arrived at the tester's ports: more than 0.1 % of the offered "
            "frames of a trial that counts, and more than the 20 frames/s that are usual on a link (ARP, NDP, "
            "multicast, the protocols of switches). A foreign frame costs the gateway about as much work as a frame of "
            "the test, so 0.1 % makes a rate too low by a tenth of the usual error of a search. The text has the "
            "number and the share. Of an audit: so much other traffic arrived that the audit could not decide some "
            "requirements"
        ),
        remedy="Remove its source, or look whether the device itself sends it.",
        not_stored="a procedure may take a stored trial for another verdict, so which trials count is not known",
    ),
    Doubt(
        word="log dropped",
        plainly="the gateway's log lost messages",
        grade="answer",
        about="trial",
        meaning=(
            "during slices (`compare`, `cost`) the socket of a log was full, so that messages were dropped. That costs "
            "less than to write them. Slices do not compare a log with the connections"
        ),
        remedy="Give the log's program a larger buffer or a core for it alone, or compare --by rates.",
    ),
)
