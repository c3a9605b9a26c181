# SPDX-License-Identifier: Apache-2.0
"""Latency (RFC 8219 section 7.2): typical latency is the median, worst case latency the 99.9th percentile.

docs/method/delays.md has the method. With 500 tags the 99.9th percentile is the maximum; with every frame it is a
percentile. At the throughput rate the smallest disturbance overloads the device, so lower loads are measured too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from natgauge.delays import Delays
from natgauge.inputs.input import chosen, in_range
from natgauge.measurer import Ability
from natgauge.metrics.catalogue import LATENCY, RFC_TAGS
from natgauge.procedures.kit.delays import (
    ABOUT_LOADS,
    TYPICAL,
    WORST_CASE,
    DelaySettings,
    TimedTrials,
    Timing,
    percentile_within,
    typical_ends,
)
from natgauge.procedures.kit.procedure import Procedure
from natgauge.trials import TrialPlan

#: RFC 8219 section 7.2.
RFC_STREAM_SECONDS = 120.0
RFC_TAGS_FROM_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class LatencySettings(DelaySettings):
    """Settings of the latency. RFC 8219 requires the load of 100 % only."""

    loads: str = field(default="100%,90%,50%,10%", metadata=ABOUT_LOADS)
    way: Literal["every-frame", "rfc8219"] = chosen(
        "every-frame", "frames to time: every frame, or tagged frames (rfc8219)"
    )
    tags: int = chosen(RFC_TAGS, "tagged frames in each direction, with rfc8219", "frames", (RFC_TAGS, 1_000_000))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.way == "rfc8219":
            in_range("trial seconds (way rfc8219)", self.trial_seconds, RFC_STREAM_SECONDS, 3600, "s")

    @property
    def unused(self) -> dict[str, str]:
        """The number of tags, where every frame is timed."""
        return super().unused | ({"tags": "way every-frame times all frames"} if self.way == "every-frame" else {})

    def needs(self) -> frozenset[Ability]:
        """Return the required abilities; "rfc8219" also needs tagged frames (RFC 8219 section 7.2)."""
        return super().needs() | (frozenset({Ability.TAGGED_DELAYS}) if self.way == "rfc8219" else frozenset())

    def timed_plan(self, phase1_rate: float, rate: float, share: float) -> TrialPlan:
        """A trial whose delays are recorded, of every frame or of the tags."""
        plan = super().timed_plan(phase1_rate, rate, share)
        if self.way == "every-frame":
            return plan
        return replace(plan, delays_from_seconds=RFC_TAGS_FROM_SECONDS, delay_samples=self.tags)


#: What stalls can move, and what repeats a trial.
PERCENTILES = ("typical_latency_us", "worst_case_latency_us")
#: What nearly every stall moves: no trial is repeated for these.
OTHERS = ("maximum_us", "mean_us")


def read(delays: Delays) -> dict[str, float]:
    """Typical and worst case latency, and the extremes, in us."""
    return {
        "typical_latency_us": percentile_within(delays, TYPICAL) * 1e6,
        "worst_case_latency_us": percentile_within(delays, WORST_CASE) * 1e6,
        "minimum_us": delays.minimum * 1e6,
        "maximum_us": delays.maximum * 1e6,
        "mean_us": delays.mean * 1e6,
    }


PROCEDURE = Procedure(
    LATENCY,
    settings=LatencySettings,
    start=partial(TimedTrials, timing=Timing(LATENCY, read, PERCENTILES, OTHERS, typical_ends)),
    profiles={
        "quick": {"loads": "100%,50%"},
        # RFC 8219 section 7.2: 500 tags of a stream of 120 s, at the throughput.
        "rfc": {"loads": "100%", "way": "rfc8219", "trial_seconds": 120.0},
    },
)
