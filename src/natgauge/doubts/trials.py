# SPDX-License-Identifier: Apache-2.0
"""Doubts about trials: their verdicts, and what happened during them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from natgauge.doubts.doubt import Doubt, Facts, Said, count_of
from natgauge.figure_text import in_percent
from natgauge.figure_text import number as written
from natgauge.other_traffic import other_traffic_note
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.words import Verdict


def _collapsed(facts: Facts) -> Iterator[Said]:
    """Only trials of which frames were sent show a collapse; a device that did not come back gets no other ones.

    A crash between two trials is in none of them.
    """
    collapses = [outcome for outcome in facts.counted if outcome.verdict is Verdict.COLLAPSED]
    unbegun = sum(not outcome.begun for outcome in collapses)
    collapsed, number = facts.measured.trials[Verdict.COLLAPSED] - unbegun, _number(facts.measured)
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
        yield Said(f"{invalid} of {_number(facts.measured)} trials were INVALID and not counted")


def _disturbed(facts: Facts) -> Iterator[Said]:
    if disturbed := facts.disturbed:
        yield Said(f"{disturbed} of {_number(facts.measured)} trials were disturbed")


def _number(measured: MeasurementResult) -> int:
    return sum(measured.trials.values())


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
