# SPDX-License-Identifier: Apache-2.0
"""What doubts that could change the answer do to its words ("at least", "doubtful"), and what limited it, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from natgauge.analysis.between_runs import possible_range
from natgauge.analysis.contrast import better, bounds, left, spans
from natgauge.known_doubts import KnownDoubt, known, known_doubts, words_of
from natgauge.notes import Note, NoteWord
from natgauge.records.measurement import FUNCTIONAL, Result
from natgauge.words import NO_DEVICE, OF_SPEED, LimitedBy

#: Doubts of a rate that leave one of its ends certain.
_AT_LEAST: Final = words_of(lambda doubt: doubt.leaves == "at least")
_AT_MOST: Final = words_of(lambda doubt: doubt.leaves == "at most")
#: Doubts that two bounds say by themselves.
_OF_BOUNDS: Final = words_of(lambda doubt: doubt.leaves == "bounds")
#: Doubts whose shares the bounds contain.
_SHARES: Final = words_of(lambda doubt: doubt.share == "too high")

#: Bottlenecks in words.
_BOTTLENECKS: Final[Mapping[LimitedBy, str]] = {
    "device": "the device",
    "table": "the device's connection tracking table, which was full",
    "port pool": "the pool of outside ports",
    "port block": "the port block of a subscriber",
    "log": "the device's log, which lacked connections",
    "tester": "the tester, not the device",
    "host": "disturbances of this host, not the device",
    "server": "the real server, not the device",
    "time": "the available time",
    "ranges": "the ranges of the measurement, not the device",
    "new connections": "the device's rate of new connections",
    "frames": "the device's rate of frames",
}


@dataclass(frozen=True, slots=True)
class Stated:
    """What the first line of a result says of the device's true value.

    Attributes:
        upper: nor more than this; both ends are the median where the line gives the median itself.
    """

    lower: float
    upper: float
    doubtful: bool

    @property
    def is_median(self) -> bool:
        """Whether the line gives the median."""
        return self.lower == self.upper


def stated(result: Result) -> Stated:
    """Return what the first line says: the median, or the bounds that another limit or grave doubts leave.

    A bound alone is that of all repetitions, because a lower one beside them would contradict "at least"; between two
    bounds another run is expected, as within an interval. The value of a
    search is its lower bound, so a bound from above is the search's upper one. Both contain the shares by which doubts
    of any grade may have made the rate too high or too low.
    """
    grave, (least, most) = _grave(result), bounds(result)
    if least != most:
        return _limited(result, grave)
    if _may_be_moved(result) and grave:
        lower, upper = ends(result)
        # Bounds say these by themselves, unless a repetition has none.
        rest = grave - (_OF_BOUNDS - set(left(result).unknown))
        raising = rest & _AT_LEAST
        if raising and rest - raising <= _of_shares(result) and lower > 0:
            return Stated(lower, math.inf, doubtful=False)
        if rest <= _AT_MOST and math.isfinite(upper):
            return Stated(*_in_another_run(result, 0.0 if rest else lower, upper), doubtful=False)
    # A figure of an emulated machine has a stamp of its own.
    return Stated(result.median, result.median, doubtful=bool(grave) and not result.functional)


def in_summary(result: Result) -> tuple[Note, ...]:
    """Return the doubts of a summary: not those that only move an end of the value that others leave open."""
    said = stated(result)
    if not _may_be_moved(result) or said.is_median:
        return result.doubts
    is_open = {"too low": math.isinf(said.upper), "too high": said.lower <= 0}
    return tuple(
        doubt for doubt in result.doubts if doubt.grade == "answer" or not is_open.get(known(doubt.word).share, False)
    )


def ends(result: Result) -> tuple[float, float]:
    """Return the lowest and the highest true value that the repetitions allow, with what hides a part of it."""
    # The median's limits are two of these values.
    (least, most), every = bounds(result), spans(result, seen=True)
    return min(least, *(span.lower for span in every)), max(most, *(span.upper for span in every))


def _limited(result: Result, grave: AbstractSet[NoteWord]) -> Stated:
    """What is left between two bounds, of which doubts may move each."""
    lower, upper = ends(result)
    upper = math.inf if grave & _AT_LEAST and better(result.metric) == "higher" else upper
    if lower <= 0 and math.isinf(upper):
        return Stated(result.median, result.median, doubtful=True)
    rest = grave - _AT_LEAST - _of_shares(result) - _OF_BOUNDS
    return Stated(*_in_another_run(result, lower, upper), doubtful=bool(rest) and not result.functional)


def _in_another_run(result: Result, lower: float, upper: float) -> tuple[float, float]:
    """Widen two bounds to where another run is expected, as intervals are; one bound alone is of these repetitions."""
    if lower <= 0 or math.isinf(upper):
        return lower, upper
    least, most = possible_range(result)
    return (min(lower, least), max(upper, most)) if least > 0 and math.isfinite(most) else (lower, upper)


def _of_shares(result: Result) -> set[NoteWord]:
    """Words of the doubts that are known to have made the rate too high by no more than a share."""
    return {doubt.word for doubt in result.doubts if doubt.word in _SHARES and doubt.value is not None}


def _may_be_moved(result: Result) -> bool:
    """Whether doubts may have moved the value one way, as those of a rate, or of a number that is carried at a rate."""
    return better(result.metric) == "higher" and bool(result.median)


def mark(result: Result) -> str:
    """Return the end of a sentence with a value of an emulated machine, or one that may be higher and lower."""
    return stamp(result) or (" (doubtful)" if stated(result).doubtful else "")


def stamp(result: Result) -> str:
    """Return what belongs to each value of an emulated machine; empty for other values."""
    return f" ({FUNCTIONAL})" if result.functional else ""


def missing(result: Result) -> str:
    """Return the end of a figure that lacks repetitions: " (2 of 3 repetitions)"; empty where none is missing."""
    done, planned = len(result.repetitions), result.planned_repetitions
    return f" ({done} of {planned} repetitions)" if done < planned else ""


def bottleneck(result: Result) -> str:
    """Return what limited a result, as a noun: what a grave doubt names, and its cause with the word of a guess.

    A loss has a cause; a link, single lost frames and a delay are one.
    """
    # A stored cause is of the device: it says nothing where the tester or the host came first.
    cause = result.cause.words if result.cause is not None and result.limited_by not in NO_DEVICE else ""
    doubt = _limiting(result)
    if doubt is None:
        limit = _BOTTLENECKS[result.limited_by]
        both = cause not in {"", limit} and result.limited_by in OF_SPEED - {"device"}
        return f"{limit}: {cause}" if both else cause or limit
    if doubt.has_cause and cause and result.cause is not None and result.cause.kind != "not known":
        return f"{doubt.limit}: {cause}"
    return doubt.limit


def _limiting(result: Result) -> KnownDoubt | None:
    """Return the grave doubt that names a bottleneck instead of the rate of the device; None = no doubt does."""
    grave = _grave(result)
    # The doubts about the ports come last, and no device does more than the link carries.
    return next((doubt for word, doubt in reversed([*known_doubts().items()]) if word in grave and doubt.limit), None)


def _grave(result: Result) -> set[NoteWord]:
    """Words of the doubts that could change the answer."""
    return {doubt.word for doubt in result.doubts if doubt.grade == "answer"}
