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
from functools import partial

from natgauge.errors import UsageError
from natgauge.measurer import TrialOutcome
from natgauge.procedures.kit.binary_search import SearchPlan, search
from natgauge.procedures.kit.events import Bounds
from natgauge.procedures.kit.notes import repetitions_note, tolerance_note
from natgauge.procedures.kit.phase1 import Phase1Settings
from natgauge.procedures.kit.phase2 import Phase2Settings
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.rate_search import SearchSettings, top_rate
from natgauge.procedures.kit.results import Measurement
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.procedures.kit.settings import about
from natgauge.procedures.kit.standing import Standing
from natgauge.procedures.kit.throughput_shares import ThroughputShareSettings, throughput_of
from natgauge.procedures.kit.values import in_range, positive

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
class Settings(ThroughputShareSettings, Phase2Settings, Phase1Settings, SearchSettings):
    """Settings of the back-to-back frames.

    Attributes:
        error: the most by which the lengths of the longest passing and the shortest failing burst differ, as a share
            or in frames.
        burst_seconds: the longest burst that is tried, 0.001 to 30.
        burst_rate: frames/s of each direction in a burst; None = half of the tester's highest.
    """

    burst_seconds: float = field(
        default=2.0,
        metadata=about(
            "the longest burst that is tried",
            "s",
            partial(in_range, lowest=0.001, highest=LONGEST_BURST_SECONDS, unit="s"),
        ),
    )
    burst_rate: float | None = field(
        default=None,
        metadata=about(
            "rate of the burst; half of the tester's highest when not given",
            "frames/s",
            partial(positive, unit="frames/s"),
        ),
    )

    def __post_init__(self) -> None:
        """Refuse what says nothing."""
        super().__post_init__()
        if self.placement == "shared":
            raise UsageError(
                "placement: shared has no queue before the device, so a burst says nothing; choose isolated"
            )

    def notes(self) -> list[str]:
        """None: a burst's length is not asked for but searched."""
        return []


class _BackToBack(Standing[Settings]):
    """The longest burst without loss, in frames of each active direction."""

    def __init__(self, runner: TrialRunner, settings: Settings) -> None:
        super().__init__(runner, settings)
        self.throughput = throughput_of(self, settings)
        self.rate = settings.burst_rate or BURST_SHARE * top_rate(runner.measurer) / settings.active

    def once(self, known: float | None) -> Measurement:
        found = search(self._plan(known), self._burst, lambda _: None)
        implied, corrected = buffer_times(found.value, self.rate, self.throughput)
        figures = {"implied_buffer_seconds": implied, "corrected_buffer_seconds": corrected}
        return replace(found, figures=figures)

    def notes(self, measurements: Sequence[Measurement]) -> Sequence[str]:
        return [
            f"bursts at {self.rate:.0f} frames/s in each direction; throughput {self.throughput:.0f} frames/s",
            *buffer_notes([one.value for one in measurements], self.rate, self.throughput),
            *repetitions_note(self.settings, RFC_REPETITIONS, "RFC 9004 section 5"),
            *tolerance_note(self.settings),
        ]

    def _plan(self, known: float | None) -> SearchPlan:
        settings = self.settings
        top = max(float(int(settings.burst_seconds * self.rate)), 1.0)
        return SearchPlan(
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

    def _burst(self, frames: float, _short: bool, bounds: Bounds) -> TrialOutcome:  # noqa: FBT001 - the search's signature
        return self.trial(frames, self.settings.plan(self.preparation.rate, self.rate, frames / self.rate), bounds)


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


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    summary="longest burst at full speed without loss, and the buffer it tells of",
    source="RFC 9004",
    settings=Settings,
    start=_BackToBack,
    profiles={
        "quick": {"burst_seconds": 0.5},
        # RFC 9004 section 5: 50 repetitions.
        "rfc": {"repeat": RFC_REPETITIONS, "burst_seconds": 2.0},
    },
)
