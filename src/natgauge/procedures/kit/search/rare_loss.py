# SPDX-License-Identifier: Apache-2.0
"""Loss of a few frames in a million, which a search takes for the limit of the rate.

An overloaded device forwards a constant number of frames/s, so of a rate x % above its limit it loses x %. Where the
failed trials above the answer lost next to nothing of that, no overload was what they failed for: the loss has another
reason than the rate, and how far down the search went is a matter of chance.

Such a loss can also make the upper bound by itself, twice in a row, with no failed trial close above it. Where the
trials at the upper bound lost fewer frames than any but an unlikely overload does, one more trial a little above it
shows the reason: an overloaded device loses a share there that nobody overlooks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from natgauge.figure_text import number as written
from natgauge.figure_text import with_noun
from natgauge.notes import Note
from natgauge.procedures.kit.result.frame_counts import deciding_counts, least_to_most, lost_at_most
from natgauge.procedures.kit.result.results import Attempt
from natgauge.trials import Trial
from natgauge.words import Verdict

#: Trials from this multiple of the upper bound on are looked at.
ABOVE: Final = 1.005
#: A trial that lost no more than this share of what an overload would have lost was not overloaded.
MOST_SHARE: Final = 0.1
#: Trials at the upper bound that lost no more than this share of what the error of the search allows an overload to
#: lose there, or no more than a frame or two: one overload in a hundred does so by chance.
LEAST_SHARE: Final = 0.01
FEW: Final = 2
#: In `shared` placement an overload slows the sending down, by more than this.
SLOWED: Final = 1.001


def rare_loss_note(attempts: Iterable[Attempt], upper: float | None, unit: str) -> list[Note]:
    """Return a note on the loss of failed trials that overload cannot explain.

    `upper` is the lowest rate that the search found too high, None = none.
    """
    if upper is None:
        return []
    failed = [
        attempt
        for attempt in attempts
        if attempt.outcome.verdict is Verdict.FAIL
        and attempt.outcome.limited_by == "device"
        and attempt.load >= ABOVE * upper
        # Queues before the device take up most of what a short trial loses.
        and not attempt.short
    ]
    rare = [attempt for attempt in failed if _is_rare(attempt.outcome, 1 - upper / attempt.load)]
    if not rare or 2 * len(rare) < len(failed):
        return []
    counts = [stream for attempt in rare for stream in deciding_counts(attempt.outcome)]
    lost, due = sum(stream.lost for stream in counts), sum(stream.due_frames for stream in counts)
    overload = sum(
        stream.due_frames * (1 - upper / attempt.load) * _whole_share(attempt.outcome)
        for attempt in rare
        for stream in deciding_counts(attempt.outcome)
    )
    loads = [attempt.load for attempt in rare]
    rates = least_to_most(loads)
    text = (
        f"{lost:,} of {due:,} frames were lost in {len(rare)} of {with_noun(len(failed), 'failed trials')} at {rates} "
        f"{unit}, where a device that can do {written(upper)} {unit} loses {written(overload)} frames: the loss has "
        "another reason than the rate, and the answer may be far too low"
    )
    return [Note("rare loss", text)]


class Shown(NamedTuple):
    """Lowest rate that an overloaded device failed, as far as is known; a note where the loss has another reason."""

    upper: float
    notes: tuple[Note, ...] = ()


def suspected(attempts: Iterable[Attempt], upper: float, error: float) -> float | None:
    """Return the rate of a trial that shows why the trials at the upper bound failed; None where overload is plain.

    `upper` is the lowest rate that the device failed, > 0; `error` is that of the search there, as a share.
    """
    failed = [
        attempt.outcome
        for attempt in attempts
        if math.isclose(attempt.load, upper) and attempt.outcome.verdict is Verdict.FAIL
    ]
    if failed and all(outcome.limited_by == "device" and _is_few(outcome, error) for outcome in failed):
        return ABOVE * upper
    return None


def untried(attempts: Iterable[Attempt], upper: float | None, error: float, unit: str) -> list[Note]:
    """Return a note where no trial could show the reason of the loss at its upper bound."""
    if not upper or suspected(attempts, upper, error) is None:
        return []
    text = (
        f"every trial that failed at {written(upper)} {unit} lost only a few frames, and no valid trial of a "
        "faster one showed whether the rate is the reason; the answer may be far too low"
    )
    return [Note("rare loss", text)]


def shown(outcome: Trial, load: float, upper: float, unit: str) -> Shown:
    """Return what a trial at the rate that `suspected` returned, `load`, shows of the loss at the upper bound."""
    streams, passed = deciding_counts(outcome), outcome.verdict is Verdict.PASS
    failed = outcome.verdict is Verdict.FAIL and outcome.limited_by == "device"
    if not passed and not (failed and _is_rare(outcome, 1 - upper / load)):
        return Shown(upper=load if failed else upper)
    then = "passed" if passed else f"lost no more than {sum(counts.lost for counts in streams):,}"
    text = (
        f"every trial that failed at {written(upper)} {unit} lost only a few frames, and one at {written(load)} {unit} "
        f"{then}: the loss has another reason than the rate, and the answer may be far too low"
    )
    return Shown(upper, (Note("rare loss", text),))


def _whole_share(outcome: Trial) -> float:
    """Share of the frames that decided a trial that were sent while all groups of its connections sent."""
    phase2 = outcome.plan.phase2
    if phase2 is None or phase2.modifiers is None or outcome.failed_phase == 1:
        return 1.0
    return phase2.modifiers.whole_share(phase2.seconds)


def _is_few(outcome: Trial, error: float) -> bool:
    """Whether a trial lost fewer frames than any but an unlikely overload by the error of the search."""
    return lost_at_most(outcome, LEAST_SHARE * error * _whole_share(outcome), FEW)


def _is_rare(outcome: Trial, overload: float) -> bool:
    """Whether next to nothing was lost of what an overload loses (share of the frames), and nothing waited."""
    streams = deciding_counts(outcome)
    slowed = any(counts.late or counts.busy_seconds > SLOWED * counts.nominal_seconds for counts in streams)
    return not slowed and lost_at_most(outcome, MOST_SHARE * overload * _whole_share(outcome))
