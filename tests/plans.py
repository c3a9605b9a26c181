# SPDX-License-Identifier: Apache-2.0
"""Single trials: the one place from which tests below `natgauge.measure` have the types of a trial and its plan."""

from __future__ import annotations

from natgauge import Result
from natgauge.agreement.generated import StreamCounts
from natgauge.procedures.kit.results import Measurement
from natgauge.trials import Trial, TrialPlan

#: One elementary test: connections, the rate of phase 1, phase 2, and what else is asked of it.
PlanOfTrial = TrialPlan
#: What the engine counted of the frames of a phase and direction.
CountsOfStream = StreamCounts
#: A trial that has ended, with its verdict.
OneTrial = Trial

__all__ = ["CountsOfStream", "OneTrial", "PlanOfTrial", "with_trials"]


def with_trials(result: Result) -> list[Measurement]:
    """The repetitions of a result that was measured just now; those of a stored one have no trials."""
    return [repetition for repetition in result.repetitions if isinstance(repetition, Measurement)]
