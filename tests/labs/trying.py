# SPDX-License-Identifier: Apache-2.0
"""Single trials on real labs, repeated where the host disturbed them: what they assert depends on no search."""

from __future__ import annotations

from typing import Final

from tests.plans import OneTrial, PlanOfTrial

from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.words import Verdict

#: On a host that is never calm trials are disturbed.
MOST_TRIALS: Final = 10


def decided(measurer: LabMeasurer, plan: PlanOfTrial) -> OneTrial:
    """The first trial that is not INVALID.

    Raises:
        AssertionError: all `MOST_TRIALS` trials are INVALID.
    """
    for _ in range(MOST_TRIALS):
        outcome = measurer.measure(plan)
        if outcome.verdict is not Verdict.INVALID:
            return outcome
    raise AssertionError(outcome.reason)


def passing(measurer: LabMeasurer, plan: PlanOfTrial) -> OneTrial:
    """The first trial that passes: another process may keep the device's core busy, or a stall may take a frame.

    Raises:
        AssertionError: none of `MOST_TRIALS` trials passes.
    """
    for _ in range(MOST_TRIALS):
        outcome = measurer.measure(plan)
        if outcome.verdict is Verdict.PASS:
            return outcome
    raise AssertionError(outcome.reason)
