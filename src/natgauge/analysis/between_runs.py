# SPDX-License-Identifier: Apache-2.0
"""What differs between runs: whether two results contain it, and the range in which another run is expected.

The interval of a contrast assumes independent repetitions. Repetitions of one run are not independent: repetitions in
one lab share its place in memory, and repetitions of one sitting share a period of time, during which hosts drift.
Where two results alternate in labs of their own, neither a lab nor a period of time favours one of the results.

The verdict on a value that was demanded is as strong as the expected range: a threshold within it is neither met nor
missed.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final, Literal

from natgauge.analysis.contrast import is_searched, left, spans
from natgauge.known_doubts import known
from natgauge.metrics import declared
from natgauge.metrics.metric import THRESHOLDS
from natgauge.records.measurement import Result, Threshold, ThresholdVerdict
from natgauge.statistics.interval import finite
from natgauge.words import NO_DEVICE

#: What repetitions of two results do not sample; "" where they took turns in labs of their own.
Sitting = Literal["", "one lab each", "one sitting each"]

#: By how much the speed of a virtual machine changes from one sitting to the next, as a share of a figure, each way:
#: twice the standard deviation that medians of runs had beyond that of their repetitions (5.0 and 5.3 %).
DRIFT: Final = 0.10
#: Seconds between the first and the last repetition that contain this change.
CONTAINS_DRIFT: Final = 600.0
#: Repetitions whose range another run's median leaves more often than not, where no search error or drift widens it.
_FEW: Final = 2
#: Repetitions that are enough for a verdict.
_ENOUGH: Final = 3


def drift(result: Result) -> float:
    """Return by how much another sitting may give more or less than these repetitions, as a share; 0 = not known.

    Other guests share the host of a virtual machine, and its speed changes within minutes.
    """
    if not declared(result.metric).follows_host or not result.parameter("hypervisor"):
        return 0.0
    begun = _begun(result)
    # Only a device on this machine has its speed; its cores are known then.
    if not result.parameter("device_cpus") or (begun and begun[-1] - begun[0] >= CONTAINS_DRIFT):
        return 0.0
    return DRIFT


def sitting_of(first: Result, second: Result) -> Sitting:
    """Return how the repetitions of two results were distributed over labs and time.

    Returns:
        "one lab each" where the repetitions of a result share one lab, or no record says so; "one sitting each" where
        the repetitions had labs of their own, but the two results did not alternate; "" where the results alternated.
    """
    if any(_labs(result) < len(result.repetitions) for result in (first, second)):
        return "one lab each"
    return "" if take_turns(first, second) else "one sitting each"


def take_turns(first: Result, second: Result) -> bool:
    """Whether each repetition of both results began before the next one of either did, as in rounds of a campaign."""
    begun = [_begun(result) for result in (first, second)]
    if not begun[0] or len(begun[0]) != len(begun[1]):
        return False
    rounds = list(zip(*begun, strict=True))
    return all(max(times) < min(following) for times, following in pairwise(rounds))


def _labs(result: Result) -> int:
    labs = result.number("labs")
    return 0 if labs is None else int(labs)


def _begun(result: Result) -> list[float]:
    """Return the seconds since the epoch at which each repetition began; empty where they were not recorded."""
    begun = result.parameter("begun")
    begins: list[float] = [one for one in begun if isinstance(one, int | float)] if isinstance(begun, list) else []
    return begins if len(begins) == len(result.repetitions) else []


def expected_range(result: Result) -> tuple[float, float] | None:
    """Return the lower and the upper end, in the result's unit; None where a value is only a bound.

    Of a single repetition without an error or a drift it is None, too: its readings say nothing of another run.

    It contains every repetition with the bounds of its search and the shares by which doubts may have moved it. Beyond
    that it has the error of the search each way, because near the limit a load passes or fails by chance, and the drift
    of a virtual machine; as these are independent, as the root of the sum of their squares.
    """
    is_single = any(doubt.word == "single repetition" for doubt in result.doubts)
    if is_single and not _error(result) and not drift(result):
        return None
    lower, upper = possible_range(result)
    return None if math.isinf(upper) else (lower, upper)


def possible_range(result: Result) -> tuple[float, float]:
    """Return the same range where a value is only a bound, too: the end that is not known is 0 or infinite."""
    every = spans(result)
    lower, upper = min(span.lower for span in every), max(span.upper for span in every)
    share, error = drift(result), _error(result)
    below, above = (math.hypot(error, share * end) for end in (result.minimum, result.maximum))
    least = min(result.minimum, 0.0)
    return max(min(lower, result.minimum - below), least), max(upper, result.maximum + above)


def widened_by_doubts(result: Result) -> bool:
    """Whether the range is wider because of shares by which doubts may have moved a repetition."""
    others = tuple(doubt for doubt in result.doubts if not known(doubt.word).share)
    return possible_range(result) != possible_range(result.model_copy(update={"doubts": others}))


def search_share(result: Result) -> float:
    """Return the error of the search as a share of the median; 0 without a search."""
    return _error(result) / abs(result.median) if result.median else 0.0


def _error(result: Result) -> float:
    """The error of the search, in the result's unit: the larger of what was found and asked for; 0 without a search."""
    if not is_searched(result):
        return 0.0
    found, asked = result.error or 0.0, str(result.parameter("error") or 0)
    try:
        number = float(asked.removesuffix("%"))
    except ValueError:
        return found
    return max(found, number / 100 * abs(result.median) if asked.endswith("%") else number)


def judged(result: Result) -> Threshold | None:
    """Return the verdict on the threshold among the settings of a result; None = there is none."""
    for setting in THRESHOLDS.values():
        value = result.number(setting)
        if value is not None:
            lower, upper, reason = _range(result)
            is_least = setting == "at_least"
            verdict: ThresholdVerdict = "cannot tell"
            if not reason and (lower >= value if is_least else upper <= value):
                verdict = "met"
            elif not reason and (upper < value if is_least else lower > value):
                verdict = "not met"
            return Threshold(
                setting="at_least" if is_least else "at_most",
                value=value,
                verdict=verdict,
                lower=finite(lower),
                upper=finite(upper),
                reason=reason,
            )
    return None


def left_range(result: Result) -> tuple[float, float]:
    """Return `possible_range` with the ends that doubts leave certain; an end that they open is infinite."""
    kept = left(result)
    return (-math.inf, math.inf) if kept.unknown else kept.of(*possible_range(result))


def _range(result: Result) -> tuple[float, float, str]:
    """Return the range, opened by doubts that could change the answer, and the reason why it says nothing."""
    kept = left(result)
    lower, upper = kept.of(*possible_range(result))
    if kept.unknown:
        return lower, upper, f"doubts: {', '.join(kept.unknown)}"
    if not result.is_complete:
        return lower, upper, f"{len(result.repetitions)} of {result.planned_repetitions} repetitions so far"
    if _passed_nothing(result):
        return lower, upper, ""
    if len(result.repetitions) == 1:
        return lower, upper, f"one repetition has no spread; {_more(result)}"
    if len(result.repetitions) == _FEW and not _error(result) and not drift(result):
        return lower, upper, f"two repetitions alone show too little of the spread; {_more(result)}"
    return lower, upper, ""


def _passed_nothing(result: Result) -> bool:
    """Whether the device established the connections at no rate, so that no load was tried: repeating changes nothing.

    Any other rate of 0 has an upper bound, the lowest load that failed.
    """
    is_rate = declared(result.metric).better == "higher"
    exact = all(one.upper is None and one.limited_by not in NO_DEVICE for one in result.repetitions)
    return is_rate and exact and not any(result.values)


def _more(result: Result) -> str:
    """What to do about too few repetitions: more are only asked for where fewer than enough were."""
    if result.planned_repetitions < _ENOUGH:
        return f"give --repeat {_ENOUGH} or more"
    return f"{result.planned_repetitions} were asked for, and the doubts say what ended them"
