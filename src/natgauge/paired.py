# SPDX-License-Identifier: Apache-2.0
"""Ratios of two devices' work in one block."""

from __future__ import annotations

import math


def ratio(here: float, baseline: float, tester: float, baseline_tester: float) -> float | None:
    """Ratio of two devices' work in a block, 0 to infinity; None where neither shows above the tester's own."""
    device, other = here - tester, baseline - baseline_tester
    if other <= 0:
        return math.inf if device > 0 else None
    return max(device, 0.0) / other
