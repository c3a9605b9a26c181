# SPDX-License-Identifier: Apache-2.0
"""Plans of single trials: the one place from which tests have the type, for tests below `natgauge.measure`."""

from __future__ import annotations

from natgauge.measurer import TrialPlan

#: One elementary test: connections, the rate of phase 1, phase 2, and what else is asked of it.
PlanOfTrial = TrialPlan

__all__ = ["PlanOfTrial"]
