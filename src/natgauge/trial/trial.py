# SPDX-License-Identifier: Apache-2.0
"""One trial before its verdict: the engine's counts, and the readings before and after."""

from __future__ import annotations

from dataclasses import dataclass

from natgauge.agreement import TrialRequest, TrialResult
from natgauge.measurer import Restart
from natgauge.readings import Readings


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial before its verdict."""

    request: TrialRequest
    result: TrialResult
    readings: Readings
    restart: Restart | None = None
