# SPDX-License-Identifier: Apache-2.0
"""Inter packet delay variation (RFC 8219 section 7.3.2): D(i) - D(i-1) of frames sent one after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from natgauge.delays import Delays
from natgauge.errors import BrokenError
from natgauge.measurer import Ability
from natgauge.metrics.catalogue import IPDV
from natgauge.procedures.kit.delays import TYPICAL, DelaySettings, TimedTrials, Timing, percentile_within
from natgauge.procedures.kit.procedure import Procedure
from natgauge.trials import TrialPlan


@dataclass(frozen=True, kw_only=True)
class IpdvSettings(DelaySettings):
    """Settings of the inter packet delay variation: the settings of all measurements of delays."""

    def needs(self) -> frozenset[Ability]:
        """Differences can only be measured if frames arrive."""
        return super().needs() | {Ability.VARIATION}

    def timed_plan(self, phase1_rate: float, rate: float, share: float) -> TrialPlan:
        """A trial whose delays and their differences are recorded."""
        return replace(super().timed_plan(phase1_rate, rate, share), record_variation=True)


#: Figures that stalls can move.
EXTREMES = ("ipdv_spread_us", "ipdv_minimum_us", "ipdv_maximum_us")


def read(delays: Delays) -> dict[str, float]:
    """Smallest, median and largest difference and their spread, in us; signed."""
    variation = delays.variation
    if variation is None:
        raise BrokenError(f"{IPDV}: the trial left no differences between delays, although they were requested")
    return {
        "ipdv_spread_us": (variation.maximum - variation.minimum) * 1e6,
        "ipdv_minimum_us": variation.minimum * 1e6,
        "ipdv_median_us": percentile_within(variation, TYPICAL) * 1e6,
        "ipdv_maximum_us": variation.maximum * 1e6,
    }


PROCEDURE = Procedure(
    IPDV,
    settings=IpdvSettings,
    # One frame may have waited behind an earlier one, and the next one before a later one.
    start=partial(TimedTrials, timing=Timing(IPDV, read, EXTREMES, waits=2, of_slowest=True)),
)
