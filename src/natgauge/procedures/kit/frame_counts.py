# SPDX-License-Identifier: Apache-2.0
"""Rates and shares computed from the frame counts of a trial."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from natgauge.figure_text import in_full
from natgauge.figure_text import number as written
from natgauge.procedures.kit.results import Attempt
from natgauge.trials import Direction, Trial
from natgauge.words import Verdict

if TYPE_CHECKING:
    from natgauge.agreement.generated import StreamCounts


def forwarding_rate(streams: Iterable[StreamCounts]) -> float | None:
    """The rate in frames/s that came back: what came back over the time that the sending took.

    Of several directions it is the smallest share of the sent rate, as a share of their mean rate.
    """
    busy = [counts for counts in streams if counts.busy_seconds > 0]
    sent = [counts.intended_frames / counts.nominal_seconds if counts.nominal_seconds > 0 else 0.0 for counts in busy]
    back = [counts.received_frames / counts.busy_seconds for counts in busy]
    if len(set(sent)) < 2 or not min(sent):
        return min(back, default=None)
    return min(rate / each for rate, each in zip(back, sent, strict=True)) * statistics.fmean(sent)


def lost_share(counts: StreamCounts, excused: int = 0) -> float:
    """Return the lost frames as a share of the offered frames (RFC 2544 section 26.3); 0 when none was offered.

    Disturbances explain the `excused` ones, 0 to the number lost. With any, the share is that of the frames due outside
    of stalls: right where a stall lost all that was due in it, and where it lost none. The device may have lost some of
    the excused frames itself, so the share is at most that of all frames.
    """
    if not counts.offered_frames:
        return 0.0
    share = counts.lost / counts.offered_frames
    undisturbed = counts.offered_frames - excused
    # Where it is not known which lost frames were due in stalls, the excused ones stand for all that were due in them.
    if counts.lost_in_stalls is not None:
        undisturbed -= max(0, (counts.due_in_stalls or 0) - counts.lost_in_stalls)
    if not excused or undisturbed <= 0:
        return share
    return min(share, (counts.lost - excused) / undisturbed)


def shortfall(counts: StreamCounts, excused: int = 0) -> float:
    """Return the share of the offered rate that was not forwarded; 0 when no frame was offered.

    It contains the lost frames and, in `shared` placement, the frames that the device refused by slowing the sender.
    """
    slowed = min(1.0, counts.nominal_seconds / counts.sending_seconds) if counts.sending_seconds > 0 else 1.0
    return 1 - (1 - lost_share(counts, excused)) * slowed


def shares_by_direction(
    share: Callable[[StreamCounts, int], float], outcome: Trial, excused: Mapping[Direction, int]
) -> dict[Direction, float]:
    """Return `lost_share` or `shortfall` of each direction of phase 2."""
    return {direction: share(counts, excused.get(direction, 0)) for direction, counts in outcome.phase2.items()}


def worst_percent(
    share: Callable[[StreamCounts, int], float], outcome: Trial, excused: Mapping[Direction, int]
) -> float:
    """Return the largest of these shares, in %; 0 without a phase 2."""
    return 100 * max(shares_by_direction(share, outcome, excused).values(), default=0.0)


def lost_by_size(outcome: Trial) -> dict[int, float]:
    """Return the lost share of the frames of each size of a mix, in the direction that lost the larger share of them.

    Empty without a mix, and where frames are excused: the size of an excused frame is not known.
    """
    shares: dict[int, float] = {}
    for size in (size for counts in outcome.phase2.values() for size in counts.sizes or ()):
        if size.made_frames and not outcome.excused_by_direction:
            share = 1 - size.received_frames / size.made_frames
            shares[size.octets] = max(share, shares.get(size.octets, 0.0))
    return dict(sorted(shares.items()))


def deciding_counts(outcome: Trial) -> list[StreamCounts]:
    """Return the counts that decided a trial: those of phase 1 where it failed or was all, otherwise of phase 2."""
    return [*frames_of(outcome), *_of_connections(outcome)]


def frames_of(outcome: Trial) -> list[StreamCounts]:
    """Return the same counts without those of the connections that phase 2 opened and closed."""
    return [outcome.phase1] if outcome.failed_phase == 1 or not outcome.phase2 else list(outcome.phase2.values())


def _of_connections(outcome: Trial) -> list[StreamCounts]:
    """Counts of the connections that phase 2 opened and closed, where it decided the trial."""
    every = () if outcome.failed_phase == 1 else (outcome.openings, outcome.closings)
    return [counts for counts in every if counts is not None]


def lost_of_sent(streams: Iterable[StreamCounts | None]) -> float:
    """Share of the offered frames that was lost.

    Those that nobody could send, because their connection was not opened, would make a loss of openings one of both.
    """
    counts = [each for each in streams if each is not None]
    offered = sum(each.offered_frames for each in counts)
    lost = sum(max(0, each.offered_frames - each.received_frames) for each in counts)
    return lost / offered if offered else 0.0


def lost_of_due(streams: Iterable[StreamCounts | None]) -> float:
    """Share of the frames that was lost as verdicts count them: with those whose connection was not opened."""
    counts = [each for each in streams if each is not None]
    due = sum(each.due_frames for each in counts)
    return sum(each.lost for each in counts) / due if due else 0.0


def lost_at_most(outcome: Trial, share: float, frames: int = 0) -> bool:
    """Whether the counts that decided a trial lost anything, but no more than this share, or than so many frames.

    A device that cannot open connections fast enough loses few frames beside it. So neither may what was lost of the
    connections that were opened, or of those that were closed, be more than this share of their own.
    """
    streams = deciding_counts(outcome)
    lost, due = sum(each.lost for each in streams), sum(each.due_frames for each in streams)
    own = [(each.lost, each.due_frames) for each in _of_connections(outcome)]
    return lost > 0 and all(some <= max(frames, share * of) for some, of in [(lost, due), *own])


def lost_more_connections(outcome: Trial) -> bool:
    """Whether phase 2 lost more of its new or closed connections than the loss of frames of a direction explains."""
    share, sent = max(
        ((lost_of_sent([each]), each.offered_frames) for each in outcome.phase2.values()), default=(0.0, 0)
    )
    # Of few frames the share is not known well.
    share += deviation(share * sent, share) / max(1, sent)
    # A connection is lost where one of its messages is.
    return any(
        not explains(min(1.0, share * max(1, len(each.messages))), each.lost, each.due_frames)
        for each in _of_connections(outcome)
    )


#: Two shares agree within this number of standard deviations, and one frame for a loss that counts instead of drawing
#: lots.
DEVIATIONS: Final = 3.0


def deviation(expected: float, share: float) -> float:
    """Return how far a number of frames may be from the expected one, where each has this probability."""
    return DEVIATIONS * math.sqrt(expected * (1 - share)) + 1


def explains(share: float, lost: int, frames: int) -> bool:
    """Whether a share that is lost explains that so many of these frames were."""
    return lost <= frames * share + deviation(frames * share, share)


def losses(attempts: Sequence[Attempt], unit: str) -> str:
    """Return the frames that the trials of a search lost, as a clause; empty where no failed trial lost a frame."""
    valid = [attempt for attempt in attempts if attempt.outcome.verdict is not Verdict.INVALID]
    lost = {id(each): sum(counts.lost for counts in deciding_counts(each.outcome)) for each in valid}
    failed = [each for each in valid if lost[id(each)] and each.outcome.verdict is not Verdict.PASS]
    if not failed:
        return ""
    rates = f"{least_to_most([each.load for each in valid])} {unit}".rstrip()
    frames = least_to_most(lost.values(), in_full)
    slowest = min(failed, key=lambda attempt: attempt.load)
    due = sum(counts.due_frames for counts in deciding_counts(slowest.outcome))
    if len(valid) == 1:
        return f"1 trial at {rates} lost {frames} of {due:,} frames"
    slow = f"the slowest that failed lost {lost[id(slowest)]:,} of {due:,} at {written(slowest.load)}"
    return f"{len(valid)} trials at {rates} lost {frames} frame{'' if frames == '1' else 's'} each, {slow}"


#: Links and hosts lose frames one by one, too. What that explains with this probability or more is not the device's.
LEAST_CHANCE: Final = 0.01
#: Failed trials of a search that lost no more than this share of their frames, at every rate, were not overloaded.
FEW_LOST: Final = 0.001
#: Least number of such trials, and factor between their rates.
LEAST_OF_FEW: Final = 3
SPAN_OF_FEW: Final = 2.0


def few_lost(attempts: Sequence[Attempt]) -> bool:
    """Whether the slowest failed trials, over a range of rates, lost next to no frame.

    Faster trials may have been overloaded: that says nothing of the slower ones.
    """
    failed = [attempt for attempt in attempts if attempt.outcome.verdict is Verdict.FAIL]
    failed.sort(key=lambda attempt: attempt.load)
    few = list(takewhile(lambda attempt: lost_at_most(attempt.outcome, FEW_LOST), failed))
    return len(few) >= LEAST_OF_FEW and few[-1].load >= SPAN_OF_FEW * few[0].load


def least_to_most(values: Collection[float], write: Callable[[float], str] = written) -> str:
    """Return the least and the greatest, such as "2 to 5"; once where they are written alike."""
    return " to ".join(dict.fromkeys(map(write, (min(values), max(values)))))
