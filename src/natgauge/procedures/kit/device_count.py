# SPDX-License-Identifier: Apache-2.0
"""The device's own count against the traffic: one that cannot be true ends the measurement."""

from __future__ import annotations

from natgauge.errors import BrokenError
from natgauge.measurer import TrialOutcome, TrialPlan


def refuse_contradiction(metric: str, plan: TrialPlan, outcome: TrialOutcome) -> None:
    """Refuse a device that counts no connection after it forwarded all of them.

    A count of some, but too few, is a table that is full or drops what is old; a count of none is read from the wrong
    place, or the frames went around the device.

    Raises:
        BrokenError: count and traffic contradict each other.
    """
    if outcome.table_count != 0 or not outcome.stored or outcome.phase1.lost or plan.restart_at_seconds is not None:
        return
    raise BrokenError(
        f"{metric}: the device's own count is 0 after it forwarded {outcome.stored} connections without a loss: count "
        "and traffic contradict each other; check the recipe's count command, that the frames pass the device, and "
        "that it keeps connections for longer than a trial"
    )
