# SPDX-License-Identifier: Apache-2.0
"""Doubts about searches: disturbances that excused failed trials, other limits than the device, notes of procedures.

What only the procedure knows it writes as notes on its result, where it sees what they say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from natgauge.analysis.unit_frames import unit_with_direction
from natgauge.doubts.doubt import LONGER_TRIALS, Doubt, Facts, Said
from natgauge.figure_text import at_least, at_most, in_full, in_percent
from natgauge.metrics.metric import HELD_FIGURE, SHARE_FIGURE
from natgauge.notes import Note, NoteWord
from natgauge.procedures.kit.frame_counts import least_to_most
from natgauge.procedures.kit.results import Measurement, MeasurementResult, excused_text
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
    Doubt(
        word="ended early",
        plainly="the measurement ended before it was complete",
        grade="answer",
        about="repetition",
        meaning=(
            "a search or a series ended before it was complete (three collapses, 200 trials, a device that did not "
            "come back, a lab that could not be made again, Ctrl-C during `stability`); the text has the bounds or the "
            "number of periods that it reached"
        ),
        remedy="Measure again; the reason is in the doubt.",
    ),
    Doubt(
        word="incomplete",
        plainly="repetitions are missing",
        grade="interval",
        about="repetition",
        meaning="the campaign has not ended: the text says how many of the repetitions have",
        remedy="Continue the campaign: `natgauge run PLAN --resume`.",
    ),
    Doubt(
        word="time used up",
        plainly="the time was too short for all loads or repetitions",
        grade="interval",
        about="repetition",
        meaning="the time was too short for all loads, repetitions or confirmations; the text names the missing ones",
    ),
    Doubt(
        word="late at every rate",
        plainly="the gateway's delay is above the time limit of a frame at every rate",
        grade="answer",
        about="repetition",
        meaning=(
            "no frame came back within the time limit for a frame (`--frame-timeout-seconds`; 10 to 20 ms unless you "
            "give one), at rates a factor of 8 apart, or the same share was late at every rate. The frames came back "
            "later: the gateway, or the way through it, has a delay above the limit. The note says how long after "
            "their sending they arrived (mean, least, largest). A TCP connection, a transaction and a DNS query have "
            "one limit for all their messages, and the note has the mean delay of a message. The value is 0; a longer "
            "limit measures the gateway's rate"
        ),
        remedy="Give frames more time, by the option that the doubt names.",
        limit="a delay above the time that a frame has, not the rate",
        hides=True,
    ),
    Doubt(
        word="loss at every rate",
        plainly="the gateway lost frames at every rate",
        grade="answer",
        about="repetition",
        meaning=(
            "the gateway loses or spoils the same share of frames at every rate: a slower rate does not help, and the "
            "value is 0"
        ),
        remedy=(
            "Find out why the device loses frames at every rate: natgauge explain shows at which hop. Of a log, "
            "tolerate the share that it lacks (--log-tolerance)."
        ),
        limit="a loss that no rate cures",
        has_cause=True,
    ),
    Doubt(
        word="rare loss",
        plainly="a few frames were lost whatever the rate, which may have ended the search too low",
        grade="answer",
        about="repetition",
        meaning=(
            "at least half of the failed trials above the answer lost no more than a tenth of what an overload loses "
            "there; or the trials at the upper bound lost a few frames only, and a slightly faster one passed, lost no "
            "more either, or did not fit into the time; or, of a table, a trial kept more connections than its answer. "
            "Such loss is not caused by the rate, or want of room, and the answer may be far too low. The text has its "
            "cause, and what changes that, where counters know it"
        ),
        remedy=(
            "Remove the cause that is named. If none is, find it (natgauge explain), or tolerate the loss "
            "(--loss-tolerance)."
        ),
        leaves="at least",
        limit="rare loss, not the rate",
        has_cause=True,
        hides=True,
        # If single frames are lost at rates that do not overload the device, chance decides the bound.
        ended_by="rare loss",
    ),
    Doubt(
        word="bucket",
        plainly="the gateway takes a burst of connections faster than what lasts",
        grade="answer",
        about="repetition",
        meaning=(
            "the gateway takes a number of connections at once beyond its rate, as the token bucket of a policer does, "
            "or as the buffer of its log. Failed trials lost less than an overload loses, and a quarter of the "
            "connections passed at 1.25 times the rate, or could not be tried. The rate without loss then depends on "
            "N; the text has what lasts, `value` is the share by which the rate is higher"
        ),
        remedy="Use more connections (--connections): the more there are, the closer the rate is to what lasts.",
        share="too high",
        leaves="at most",
    ),
    Doubt(
        word="short trials",
        plainly="trials were so short that lag may have raised the rate",
        grade="interval",
        about="trial",
        grades="`answer` if the share is 5 % or more",
        meaning=(
            "in `shared` placement: trials were so short, or connections so few, that the tolerated lag may have "
            "raised the rate by more than the requested error. `value` is the share"
        ),
        remedy=LONGER_TRIALS,
        share="too high",
        leaves="at most",
        foreseen=True,
        is_inherited=False,
    ),
    Doubt(
        word="table inferred",
        plainly="the size of the gateway's table was inferred",
        grade="information",
        about="repetition",
        meaning=(
            "nobody named the limit of the connection tracking table. The table was found full because the gateway "
            "kept the same number of connections at every rate, and kept all of a smaller number"
        ),
    ),
    Doubt(
        word="time-out unknown",
        plainly="the gateway's time-out of connections is not known",
        grade="answer",
        about="result",
        meaning=(
            "subscribers: nobody named the time after which the gateway forgets a connection. The trials filled its "
            "table with the open connections of the subscribers only. It also holds those that left until then, so it "
            "may have room for fewer subscribers"
        ),
        remedy="Give the time-out, where an option names it (--device-timeout on a wire, of UDP).",
        leaves="at most",
    ),
    Doubt(
        word="unreliable",
        plainly="the difference of times is within their spread",
        grade="answer",
        about="repetition",
        meaning=(
            "tear-down rate: the time that a full table takes beyond an empty one is not larger than the spread of the "
            "times"
        ),
        remedy="Use more connections.",
    ),
    Doubt(
        word="between readings",
        plainly="the connections ended between two readings of their number",
        grade="answer",
        about="repetition",
        meaning=(
            "expiry: the device forgot its connections between two readings of its count, so that nobody saw how fast; "
            "the value is at least what the time between the readings allows"
        ),
        remedy="Read the count more often (--interval-seconds), or use more connections.",
        leaves="at least",
        limit="the time between two readings of the count, not the device",
    ),
    Doubt(
        word="as fast as opened",
        plainly="the connections ended as fast as they had been opened",
        grade="answer",
        about="repetition",
        meaning=(
            "expiry: the connections went as fast as the tester had opened or closed them, within 10 %, as those of "
            "exact timers do. The gateway may be faster"
        ),
        remedy="Open the connections faster (--connection-rate).",
        leaves="at least",
        limit="the rate at which the connections were opened, not the device",
    ),
    Doubt(
        word="excused frames",
        plainly="disturbances of the machine explain some of the lost frames",
        grade="interval",
        about="trial",
        meaning=(
            "frame loss rate: disturbances explain some of the lost frames, and the gateway may have lost a part of "
            "those itself. The text has the range of the share; the value is that of frames due outside of stalls. "
            "`diff` uses the range"
        ),
    ),
    Doubt(
        word="frames in stalls",
        plainly="the machine stalled while frames were timed",
        grade="interval",
        about="trial",
        meaning=(
            "delays: in every trial at a load, timed frames were due while a core was stalled, and moved a percentile "
            "by more than 1 %, or may have. The figures named `without_stalls` omit an equal number of the slowest "
            "frames; the gateway's own figure lies between the two. Also: trials were so short (less than 2 s) that a "
            "stall too short to be seen may be the whole 99.9th percentile"
        ),
    ),
    Doubt(
        word="load too high",
        plainly="the gateway failed at this load, and lost frames have no delay",
        grade="answer",
        about="trial",
        meaning=(
            "delays: the gateway failed the trial at the load of the value: it lost frames, which have no delay, or "
            "held the sender up, so that the load was less. Delays are of those that came; `value` is the share lost"
        ),
        remedy="Measure at lower --loads, or with the device's own --throughput-rate.",
    ),
    Doubt(
        word="batches",
        plainly="frames waited for others that left together with them",
        grade="interval",
        about="trial",
        meaning=(
            "delays in `shared` placement at loads above 50 %: the text says how much of them may be the wait "
            "for frames that left together"
        ),
    ),
)

#: Figures that tell the reasons of loss at every rate apart, and the words of the notes on them.
_REASONS: Final = (HELD_FIGURE, SHARE_FIGURE)
_OF_REASON: Final = frozenset[NoteWord]({"loss at every rate", "table inferred"})


def of_one_reason(notes: Iterable[Note], repetitions: Sequence[Measurement]) -> Iterator[Note]:
    """Yield notes, with one in place of those by which repetitions name different reasons for loss at every rate."""
    numbers, shares = ([each.figures[name] for each in repetitions if name in each.figures] for name in _REASONS)
    for note in notes:
        if not (numbers and shares and note.word in _OF_REASON):
            yield note
    if numbers and shares:
        of = len(numbers) + len(shares)
        lost, kept = least_to_most(shares, in_percent), least_to_most(numbers, "{:,.0f}".format)
        text = (
            f"the repetitions disagree on the reason: {len(shares)} of {of} lost {lost} of the frames at every rate, "
            f"and {len(numbers)} kept about {kept} connections at every rate, and all of fewer"
        )
        yield Note("loss at every rate", text)
