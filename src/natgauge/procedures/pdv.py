# SPDX-License-Identifier: Apache-2.0
"""Packet delay variation (RFC 8219 section 7.3.1): the 99.9th percentile of all delays - the smallest delay."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from natgauge.delays import Delays
from natgauge.metrics.catalogue import PDV
from natgauge.procedures.kit.delays import (
    WORST_CASE,
    DelaySettings,
    TimedTrials,
    Timing,
    delay_variation,
    ends_of_variation,
    percentile_within,
)
from natgauge.procedures.kit.procedure import Procedure


@dataclass(frozen=True, kw_only=True)
class PdvSettings(DelaySettings):
    """Settings of the packet delay variation: the settings of all measurements of delays."""


def read(delays: Delays) -> dict[str, float]:
    """The packet delay variation and what it is made of, in us."""
    return {
        "pdv_us": delay_variation(delays) * 1e6,
        "minimum_delay_us": delays.minimum * 1e6,
        "delay_99_9_us": percentile_within(delays, WORST_CASE) * 1e6,
    }


PROCEDURE = Procedure(
    PDV,
    settings=PdvSettings,
    # The percentile decides for both: of a variation much smaller than the delays a bucket is more than 1 %.
    start=partial(
        TimedTrials,
        timing=Timing(PDV, read, ("delay_99_9_us",), ("pdv_us",), ends_of_variation, of_slowest=True),
    ),
)
