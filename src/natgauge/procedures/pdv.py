# SPDX-License-Identifier: Apache-2.0
"""Packet delay variation (RFC 8219 section 7.3.1): the 99.9th percentile of all delays - the smallest delay.

Every frame of phase 2 is timed. Lost frames have no delay and are left out; how many there were is told
(RFC 5481 section 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass

from natgauge.measurer import Delays, Measurer
from natgauge.procedures import timed
from natgauge.procedures.delays import WORST_CASE, delay_variation, percentile_within
from natgauge.procedures.procedure import Procedure
from natgauge.procedures.progress import Observer, ignore
from natgauge.procedures.results import MeasurementResult
from natgauge.procedures.timed import UNIT, TimedSettings, Timing

METRIC = "pdv"


@dataclass(frozen=True, kw_only=True)
class Settings(TimedSettings):
    """Settings of the packet delay variation; all those of a measurement of delays."""


def read(delays: Delays) -> dict[str, float]:
    """The packet delay variation and what it is made of, in us."""
    return {
        "pdv_us": delay_variation(delays) * 1e6,
        "minimum_delay_us": delays.minimum * 1e6,
        "delay_99_9_us": percentile_within(delays, WORST_CASE) * 1e6,
    }


def run(measurer: Measurer, settings: Settings, observe: Observer = ignore) -> MeasurementResult:
    """Measure the packet delay variation at the highest load, of the worse direction, in us.

    Raises:
        BrokenError: no phase 1 works, or no trial at the highest load speaks of the device.
        NatgaugeError: a trial could not be run at all.
    """
    timing = Timing(METRIC, "pdv_us", read)
    return timed.measure(measurer, timing, settings, observe, settings.timed_plan)


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    summary="packet delay variation at the throughput",
    source="RFC 8219 section 7.3.1, RFC 5481 section 4.2",
    settings=Settings,
    run=run,
)
