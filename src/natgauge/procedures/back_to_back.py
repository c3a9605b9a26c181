# SPDX-License-Identifier: Apache-2.0
"""Back-to-back frames (RFC 9004, which updates RFC 2544 section 26.4): the longest burst that loses nothing.

Frames leave as fast as the tester sends them, over established connections and after a silence; the burst's length is
searched. What a burst beyond the throughput can be long tells how much the device buffers:

* implied buffer time = average burst / rate of the burst (RFC 9004 section 6);
* corrected buffer time = implied * (1 - throughput / rate of the burst), as frames leave while others come.

The benchmark of RFC 9004 is the mean of the repetitions. In `shared` placement nothing queues before the device, so
there is nothing to measure. The tester is late at the start of a burst, which makes a short one slower than its rate:
what was really sent is told, and a burst too slow says nothing. A device that forwards as fast as the burst has no end
to it; that is told.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from natgauge.errors import UsageError
from natgauge.measurer import TrialOutcome, Verdict
from natgauge.procedures.kit.binary_search import SearchPlan, search
from natgauge.procedures.kit.events import Bounds
from natgauge.procedures.kit.notes import repetitions_note, tolerance_note
from natgauge.procedures.kit.phase1 import Phase1Settings
from natgauge.procedures.kit.phase2 import Phase2Settings
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.rate_search import SearchSettings, top_rate
from natgauge.procedures.kit.results import Attempt, Measurement, verdict_counts
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.procedures.kit.settings import about
from natgauge.procedures.kit.standing import Standing
from natgauge.procedures.kit.throughput_shares import ThroughputShareSettings, throughput_of
from natgauge.procedures.kit.time_budget import UNDECIDED
from natgauge.procedures.kit.values import in_range, positive

METRIC = "back-to-back"
UNIT = "frames"

#: The first burst, in frames of each direction: shorter than any card's ring.
FIRST_BURST = 64
LONGEST_BURST_SECONDS = 30.0
#: Bursts run at this share of the tester's highest rate: at the whole of it a burst of less than a millisecond is never
#: on time, because its first batch costs more than the following ones.
BURST_SHARE = 0.5
#: A burst that was sent at less than this share of its rate says nothing: no burst has that length at that rate.
ON_TIME_SHARE = 0.95
#: The figure that holds the real rate of a burst, in frames/s.
SENT_RATE = "sent_frames_per_second"
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

        self.shortest: float | None = None

    def once(self, known: float | None) -> Measurement:
        tried: list[Attempt] = []
        if self.shortest is None:
            self.shortest = self._shortest_on_time(tried)
        if self.shortest is None:
            note = f"no burst of up to {self._longest:.0f} frames could be sent at {self.rate:.0f} frames/s"
            return Measurement(0.0, None, "tester", verdict_counts(tried), tuple(tried), notes=(note,))
        found = search(self._plan(known, self.shortest), self._burst, lambda _: None)
        attempts = (*tried, *found.attempts)
        found = replace(found, attempts=attempts, trials=verdict_counts(attempts))
        if not found.value and self.shortest > 1:
            note = f"{UNDECIDED}the burst is of less than {self.shortest:.0f} frames, the shortest sent at its rate"
            return replace(found, limited_by="tester", notes=(*found.notes, note))
        sent = self._sent_rate(found)
        implied, corrected = buffer_times(found.value, sent, self.throughput)
        figures = {"implied_buffer_seconds": implied, "corrected_buffer_seconds": corrected, SENT_RATE: sent}
        return replace(found, figures=figures)

    def notes(self, measurements: Sequence[Measurement]) -> Sequence[str]:
        rates = [one.figures[SENT_RATE] for one in measurements if SENT_RATE in one.figures]
        sent = statistics.fmean(rates) if rates else self.rate
        told = f", really sent at {sent:.0f} ({sent / self.rate:.1%})" if rates else ""
        shortest = self.shortest or 0.0
        short = [f"bursts of less than {shortest:.0f} frames could not be sent at their rate"] if shortest > 1 else []
        return [
            f"bursts at {self.rate:.0f} frames/s in each direction{told}; throughput {self.throughput:.0f} frames/s",
            *(buffer_notes([one.value for one in measurements], sent, self.throughput) if rates else ()),
            *short,
            *repetitions_note(self.settings, RFC_REPETITIONS, "RFC 9004 section 5"),
            *tolerance_note(self.settings),
        ]

    @property
    def _longest(self) -> float:
        """Frames of the longest burst."""
        return max(float(int(self.settings.burst_seconds * self.rate)), 1.0)

    def _plan(self, known: float | None, shortest: float) -> SearchPlan:
        settings = self.settings
        start = max(float(round(known * 0.9)), 1.0) if known else FIRST_BURST
        return SearchPlan(
            top=self._longest,
            start=min(max(start, shortest), self._longest),
            floor=shortest,
            error=settings.error,
            stride=1.25 if known else 2.0,
            invalid_repeats=settings.invalid_repeats,
            loss_verifications=settings.loss_verifications,
            confirm=settings.confirm,
            unit="frames at once",
            whole=True,
        )

    def _shortest_on_time(self, tried: list[Attempt]) -> float | None:
        """Frames of a burst that is sent at its rate, as all longer ones up to the first; None where none is.

        Args:
            tried: each trial is added.
        """
        frames, shortest = 1.0, None
        while True:
            outcome = self._burst(frames, False, Bounds())  # noqa: FBT003 - the search's signature
            tried.append(Attempt(frames, short=False, outcome=outcome))
            # A trial that speaks of the device was on time, see below.
            shortest = None if outcome.verdict is Verdict.INVALID else shortest or frames
            if frames >= self._longest or (shortest and frames >= FIRST_BURST):
                return shortest
            frames = min(frames * 2, self._longest)

    def _burst(self, frames: float, _short: bool, bounds: Bounds) -> TrialOutcome:  # noqa: FBT001 - the search's signature
        plan = self.settings.plan(self.preparation.rate, self.rate, frames / self.rate)
        outcome = self.trial(frames, plan, bounds)
        if outcome.verdict is Verdict.PASS and outcome.device_stalled_seconds:
            # A queue or a policer that had more time takes more frames; the loss of one that had less is excused.
            stalled = outcome.device_stalled_seconds * 1000
            reason = f"the device's cores stood still for {stalled:.1f} ms, in which more can pass than otherwise"
            return replace(outcome, verdict=Verdict.INVALID, limited_by="host", reason=reason)
        share = _share_of_rate(outcome)
        if outcome.verdict not in {Verdict.PASS, Verdict.FAIL} or share >= ON_TIME_SHARE:
            return outcome
        reason = f"the burst of {frames:.0f} frames was sent at {share:.1%} of its rate"
        cause = "host" if outcome.disturbed else "tester"
        return replace(outcome, verdict=Verdict.INVALID, limited_by=cause, failed_phase=None, reason=reason)

    def _sent_rate(self, found: Measurement) -> float:
        """The lowest rate in frames/s at which the burst that is the answer was really sent."""
        passed = [one.outcome for one in found.attempts if one.load == found.value]
        shares = [_share_of_rate(outcome) for outcome in passed if outcome.verdict is Verdict.PASS]
        return self.rate * min(shares, default=1.0)


def _share_of_rate(outcome: TrialOutcome) -> float:
    """The rate of the slowest direction as a share of what was asked for, 1 where it was not slower."""
    streams = [counts for counts in outcome.phase2.values() if counts.sending_seconds > 0]
    return min([1.0, *(counts.nominal_seconds / counts.sending_seconds for counts in streams)])


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
    better="higher",
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
