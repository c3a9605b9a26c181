# SPDX-License-Identifier: Apache-2.0
"""Whether two results contain the variation between runs, or only the variation within a run.

The interval of a contrast assumes independent repetitions. Repetitions of one run are not independent: repetitions in
one lab share its place in memory, and repetitions of one sitting share a period of time, during which hosts drift.
Where two results alternate in labs of their own, neither a lab nor a period of time favours one of the results.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, Literal

from natgauge.metrics import declared
from natgauge.records.measurement import Result

#: What repetitions of two results do not sample; "" where they took turns in labs of their own.
Sitting = Literal["", "one lab each", "one sitting each"]

#: By how much the speed of a virtual machine changes from one sitting to the next, as a share of a figure, each way:
#: twice the standard deviation that medians of runs had beyond that of their repetitions (5.0 and 5.3 %).
DRIFT: Final = 0.10
#: Seconds between the first and the last repetition that contain this change.
CONTAINS_DRIFT: Final = 600.0


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
    begins = [begin for begin in begun if isinstance(begin, int | float)] if isinstance(begun, list) else []
    return [float(begin) for begin in begins] if len(begins) == len(result.repetitions) else []
