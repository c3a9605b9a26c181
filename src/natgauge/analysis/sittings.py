# SPDX-License-Identifier: Apache-2.0
"""Whether two results sample what differs from run to run, or only what differs within a run.

The interval of a contrast supposes independent repetitions. Repetitions of one run are not independent: those in one
lab share its place in memory, and those of one sitting share its minutes, over which hosts drift. Where two results
take turns in labs of their own, neither a lab nor a minute favours one of them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from natgauge.records.measurement import Result

#: What repetitions of two results do not sample; "" where they took turns in labs of their own.
Sitting = Literal["", "one lab each", "one sitting each"]


def sitting_of(first: Result, second: Result) -> Sitting:
    """How the repetitions of two results were measured.

    Returns:
        "one lab each" where the repetitions of a result share one lab, or nobody recorded whether they do; "one
        sitting each" where they had labs of their own, but the two results did not take turns; "" where they did.
    """
    if any(_labs(one) < len(one.repetitions) for one in (first, second)):
        return "one lab each"
    return "" if take_turns(first, second) else "one sitting each"


def take_turns(first: Result, second: Result) -> bool:
    """Whether each repetition of both results began before the next one of either did, as in rounds of a campaign."""
    begun = [_begun(one) for one in (first, second)]
    if not begun[0] or len(begun[0]) != len(begun[1]):
        return False
    rounds = list(zip(*begun, strict=True))
    return all(max(one) < min(following) for one, following in pairwise(rounds))


def _labs(result: Result) -> int:
    labs = result.number("labs")
    return 0 if labs is None else int(labs)


def _begun(result: Result) -> list[float]:
    """Seconds since the epoch at which each repetition began; none where nobody recorded them."""
    begun = result.parameter("begun")
    found = [one for one in begun if isinstance(one, int | float)] if isinstance(begun, list) else []
    return [float(one) for one in found] if len(found) == len(result.repetitions) else []
