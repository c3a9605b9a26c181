# SPDX-License-Identifier: Apache-2.0
"""Back-to-back frames (RFC 9004, which updates RFC 2544 section 26.4): the longest burst that loses nothing.

Frames leave as fast as the tester sends them, over established connections and after a silence; the burst's length is
searched. What a burst beyond the throughput can be long tells how much the device buffers:

* implied buffer time = average burst / rate of the burst (RFC 9004 section 6);
* corrected buffer time = implied * (1 - throughput / rate of the burst), as frames leave while others come.

The benchmark of RFC 9004 is the mean of the repetitions. In `shared` placement nothing queues before the device, so
there is nothing to measure. A device that forwards as fast as the burst has no end to it; that is told.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from natgauge.errors import UsageError
from natgauge.measurer import Measurer, TrialOutcome
from natgauge.procedures import loaded
from natgauge.procedures.loaded import Loaded, LoadedSettings
from natgauge.procedures.procedure import Procedure
from natgauge.procedures.progress import Bounds, Observer, ignore
from natgauge.procedures.rates import disturbed_note, repeat, tolerance_note, top_rate
from natgauge.procedures.results import Measurement, MeasurementResult, make_result
from natgauge.procedures.search import SearchPlan, search
from natgauge.procedures.settings import RateSettings, about, in_range, positive, refuse_unable

METRIC = "back-to-back"
UNIT = "frames"

#: The first burst, in frames of each direction: shorter than any card's ring.
FIRST_BURST = 64
LONGEST_BURST_SECONDS = 30.0
#: Bursts run at this share of the tester's highest rate: at the whole of it a burst of less than a millisecond is never
#: on time, because its first batch costs more than the following ones.
BURST_SHARE = 0.5
#: RFC 9004 section 5.4 repeats 50 times, as RFC 2544 did.
RFC_REPETITIONS = 50


@dataclass(frozen=True, kw_only=True)
class Settings(LoadedSettings, RateSettings):
    """Settings of the back-to-back frames.

    Attributes:
        error: the most by which the lengths of the longest passing and the shortest failing burst differ, as a share
            or in frames.
        burst_seconds: the longest burst that is tried, 0.001 to 30.
        burst_rate: frames/s of each direction in a burst; None = half of the tester's highest.
    """

    burst_seconds: float = field(default=2.0, metadata=about("the longest burst that is tried", "s"))
    burst_rate: float | None = field(
        default=None, metadata=about("rate of the burst; half of the tester's highest when not given", "frames/s")
    )

    def __post_init__(self) -> None:
        """Refuse what is out of range or says nothing."""
        super().__post_init__()
        in_range("burst seconds", self.burst_seconds, 0.001, LONGEST_BURST_SECONDS, "s")
        if self.burst_rate is not None:
            positive("burst rate", self.burst_rate, "frames/s")
        if self.placement == "shared":
            raise UsageError(
                "placement: shared has no queue before the device, so a burst says nothing; choose isolated"
            )


def run(measurer: Measurer, settings: Settings, observe: Observer = ignore) -> MeasurementResult:
    """Measure the longest burst without loss, in frames of each active direction.

    Raises:
        BrokenError: no phase 1 works, or the device forwards at no rate without loss.
        NatgaugeError: a trial could not be run at all.
    """
    refuse_unable(measurer.abilities, METRIC, settings)
    ready = loaded.start(measurer, METRIC, settings, observe)
    rate = settings.burst_rate or BURST_SHARE * top_rate(measurer) / settings.active
    measurements = repeat(ready.runner, settings.repeat, lambda known: _once(ready, settings, rate, known))
    notes = [
        f"bursts at {rate:.0f} frames/s in each direction; throughput {ready.throughput:.0f} frames/s",
        *buffer_notes([one.value for one in measurements], rate, ready.throughput),
        *_repetitions_note(settings),
        *tolerance_note(settings),
        *ready.preparation.note(),
        *disturbed_note(measurements),
    ]
    return make_result(METRIC, UNIT, settings.parameters(), measurements, notes)


def buffer_times(average_burst: float, rate: float, throughput: float) -> tuple[float, float]:
    """Implied and corrected buffer time in seconds (RFC 9004 section 6).

    Args:
        average_burst: frames.
        rate: of the burst, in frames/s, > 0.
        throughput: in frames/s; where it is not below `rate` nothing was buffered, and the corrected time is 0.
    """
    implied = average_burst / rate
    return implied, implied * max(0.0, 1 - throughput / rate)


def buffer_notes(bursts: Sequence[float], rate: float, throughput: float) -> list[str]:
    """The benchmark and what it says of the buffer."""
    mean = statistics.fmean(bursts)
    implied, corrected = buffer_times(mean, rate, throughput)
    times = f"implied buffer time {implied * 1000:.4g} ms, corrected {corrected * 1000:.4g} ms"
    return [f"mean burst {mean:.0f} frames: {times}"]


def _once(ready: Loaded, settings: Settings, rate: float, known: float | None) -> Measurement:
    ready.start_repetition()
    top = max(float(int(settings.burst_seconds * rate)), 1.0)
    plan = SearchPlan(
        top=top,
        start=min(max(float(round(known * 0.9)), 1.0) if known else FIRST_BURST, top),
        floor=1.0,
        error=settings.error,
        stride=1.25 if known else 2.0,
        invalid_repeats=settings.invalid_repeats,
        loss_verifications=settings.loss_verifications,
        confirm=settings.confirm,
        unit="frames at once",
        whole=True,
    )

    def trial(burst: float, _short: bool, bounds: Bounds) -> TrialOutcome:  # noqa: FBT001 - the search's signature
        asked = settings.plan(ready.preparation.rate, rate, burst / rate)
        return ready.once(burst, asked, bounds)

    found = search(plan, trial, lambda _: None)
    implied, corrected = buffer_times(found.value, rate, ready.throughput)
    figures = {"implied_buffer_seconds": implied, "corrected_buffer_seconds": corrected}
    return replace(found, figures=figures)


def _repetitions_note(settings: Settings) -> list[str]:
    if settings.most_repetitions >= RFC_REPETITIONS:
        return []
    return [f"{settings.most_repetitions} repetitions; RFC 9004 section 5 wants {RFC_REPETITIONS}"]


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    summary="longest burst at full speed without loss, and the buffer it tells of",
    source="RFC 9004",
    settings=Settings,
    run=run,
)
