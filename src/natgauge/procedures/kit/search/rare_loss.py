# SPDX-License-Identifier: Apache-2.0
"""Loss of a few frames in a million, which a search takes for the limit of the rate.

An overloaded device forwards a constant number of frames/s, so of a rate x % above its limit it loses x %. Where the
failed trials above the answer lost next to nothing of that, no overload was what they failed for: the loss has another
reason than the rate, and how far down the search went is a matter of chance.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from natgauge.measurer import Counts, Verdict
from natgauge.notes import Note
from natgauge.procedures.kit.result.frame_counts import deciding_counts
from natgauge.procedures.kit.result.results import Attempt

#: The option that lets trials pass which lose more than nothing.
LOSS_TOLERANCE: Final = "a --loss-tolerance"
#: Trials from this multiple of the upper bound on are looked at.
ABOVE: Final = 1.005
#: A trial that lost no more than this share of what an overload would have lost was not overloaded.
MOST_SHARE: Final = 0.1
#: In `shared` placement an overload slows the sending down, by more than this.
SLOWED: Final = 1.001


def rare_loss_note(
    attempts: Iterable[Attempt], upper: float | None, unit: str, remedy: str = LOSS_TOLERANCE
) -> list[Note]:
    """Return a note on the loss of failed trials that overload cannot explain.

    Args:
        attempts: trials of the search.
        upper: lowest rate that the search found too high; None = none.
        unit: unit of a rate.
        remedy: options that let trials with some loss pass.
    """
    if upper is None:
        return []
    failed = [
        attempt
        for attempt in attempts
        if attempt.outcome.verdict is Verdict.FAIL
        and attempt.outcome.limited_by == "device"
        and attempt.load >= ABOVE * upper
    ]
    rare = [attempt for attempt in failed if _is_rare(deciding_counts(attempt.outcome), 1 - upper / attempt.load)]
    if not rare or 2 * len(rare) < len(failed):
        return []
    counts = [stream for attempt in rare for stream in deciding_counts(attempt.outcome)]
    lost, offered = sum(stream.lost for stream in counts), sum(stream.offered for stream in counts)
    overload = sum(
        stream.offered * (1 - upper / attempt.load) for attempt in rare for stream in deciding_counts(attempt.outcome)
    )
    loads = [attempt.load for attempt in rare]
    text = (
        f"{lost} of {offered:,} frames were lost in {len(rare)} of {len(failed)} failed trials, from "
        f"{min(loads):,.0f} to {max(loads):,.0f} {unit}, where a device that can do {upper:,.0f} {unit} loses "
        f"{overload:,.0f}: the loss has another reason than the rate, and the answer may be far too low; "
        f"{remedy} above that share lets such trials pass"
    )
    return [Note("rare loss", text)]


def _is_rare(streams: list[Counts], overload: float) -> bool:
    """Whether next to nothing was lost of what an overload loses (share of the frames)."""
    lost, offered = sum(counts.lost for counts in streams), sum(counts.offered for counts in streams)
    slowed = any(counts.busy_seconds > SLOWED * counts.nominal_seconds for counts in streams)
    return 0 < lost <= MOST_SHARE * overload * offered and not slowed
