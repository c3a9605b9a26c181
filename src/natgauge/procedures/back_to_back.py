# SPDX-License-Identifier: Apache-2.0
"""Back-to-back frames (RFC 9004, which updates RFC 2544 section 26.4): the longest burst that loses nothing.

docs/method/back-to-back.md has the method. The additional length of bursts faster than the throughput shows how much
the device buffers:

* implied buffer time = average burst / rate of the burst (RFC 9004 section 6);
* corrected buffer time = implied * (1 - throughput / rate of the burst), as frames leave while others come. The
  throughput is known within the error of its search. Near the rate of the burst that moves this time by a multiple, so
  it has both ends.

The benchmark of RFC 9004 is the mean of the repetitions. Each burst has a phase 1 of its own, which takes most of a
trial's time, so the search begins near its end, and metrics that must be measured first have a share of the time only.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from natgauge.figure_text import at_least, at_most, in_percent
from natgauge.figure_text import number as written
from natgauge.inputs.input import chosen, paced, wrong
from natgauge.metrics.catalogue import BACK_TO_BACK
from natgauge.notes import Note
from natgauge.procedures.kit.binary_search import SearchPlan, search
from natgauge.procedures.kit.held_connections import HeldConnections, ThroughputShareSettings, throughput_of
from natgauge.procedures.kit.phases import Phase1Settings, Phase2Settings, prepare
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.rate_search import SearchSettings, near, top_rate
from natgauge.procedures.kit.results import Attempt, Measurement, repetitions_note, tolerance_note, verdict_counts
from natgauge.procedures.kit.runner import Bounds, TimeUpError, TrialRunner, left_out
from natgauge.trials import Trial
from natgauge.words import NO_DEVICE, LimitedBy, Verdict

#: The first burst where no ring is known, in frames of each direction: the default size of the rings of cards.
FIRST_BURST = 512
#: Shares of the remaining time that the search for a safe phase 1 and then the search for the throughput may take.
PHASE1_TIME_SHARE = 0.4
THROUGHPUT_TIME_SHARE = 0.5
#: Bursts run at this share of the tester's highest rate: at the whole of it a burst of less than a millisecond is never
#: on time, because its first batch costs more than the following ones.
BURST_SHARE = 0.5
#: Before the first search the rate is lowered this often at most, where the tester does not reach it: to this share of
#: what it did reach, and not below this share of what it was, nor below this multiple of the throughput.
MOST_SLOWER = 3
SAFELY_REACHED = 0.9
STEEPEST_SLOWER = 0.5
LEAST_ABOVE_THROUGHPUT = 1.5
#: A burst that was sent at less than this share of its rate says nothing: no burst has that length at that rate.
ON_TIME_SHARE = 0.95
#: The figure that holds the real rate of a burst, in frames/s.
SENT_RATE = "sent_frames_per_second"
#: RFC 9004 section 5.4 repeats 50 times, as RFC 2544 did.
RFC_REPETITIONS = 50


@dataclass(frozen=True, kw_only=True)
class BackToBackSettings(ThroughputShareSettings, Phase2Settings, Phase1Settings, SearchSettings):
    """Settings of the back-to-back frames. The error is of the length of bursts, as a share or in frames."""

    burst_seconds: float = chosen(2.0, "longest burst to try", "s", (0.001, 30.0))
    burst_rate: float | None = chosen(
        None,
        "rate of the burst in each direction",
        "frames/s",
        partial(paced, unit="frames/s"),
        default="half of the tester's highest rate",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.placement == "shared":
            raise wrong("placement", "shared has no queue before the device, so a burst says nothing; choose isolated")
        if not self.is_balanced:
            raise wrong("down_share", "a burst has equally many frames in each direction; leave it out")

    @property
    def unused(self) -> dict[str, str]:
        """The length of trials, where no throughput is measured first."""
        given = {} if self.throughput_rate is None else {"trial_seconds": "bursts are as long as their frames take"}
        return super().unused | given

    def notes(self) -> list[Note]:
        """None: the length of a burst is searched, not set."""
        return []


class _BackToBack(HeldConnections[BackToBackSettings]):
    """The longest burst without loss, in frames of each active direction."""

    def __init__(self, runner: TrialRunner, settings: BackToBackSettings) -> None:
        super().__init__(runner, settings, prepare(runner, settings, PHASE1_TIME_SHARE))
        self.rate = settings.burst_rate or BURST_SHARE * top_rate(runner.measurer) / settings.active
        self.throughput = self._throughput()
        #: Frames/s above which the throughput surely is not; None = not known.
        self.throughput_upper = self.throughput
        if not settings.throughput_rate and self.throughput is not None:
            self.throughput_upper = runner.first[-1].measurements[-1].upper
        self._meant = self.rate
        #: A burst that was tried before the search, and how that ended.
        self._tried: tuple[float, Trial] | None = None
        #: Frames of the longest burst that could not be sent in time, while every longer one could; 0 = none.
        self.late = 0.0

    def _throughput(self) -> float | None:
        """Return the throughput, frames/s of each direction; None where the time did not suffice for a bound."""
        try:
            return throughput_of(self, self.settings, THROUGHPUT_TIME_SHARE)
        except TimeUpError as error:
            self.first_notes.append(left_out("the throughput, and with it the corrected buffer time,", error))
            return None

    def once(self, known: float | None) -> Measurement:
        slow = self._slowed_down() if known is None and self.settings.burst_rate is None else []
        repetition = search(self._plan(known), self._burst, _least_received)
        attempts = (*slow, *repetition.attempts)
        repetition = replace(repetition, attempts=attempts, trials=verdict_counts(attempts))
        self.late = max([self.late, *_late_loads(repetition)])
        if repetition.value:
            return replace(repetition, figures=self._figures(repetition))
        if repetition.upper is None or not self.late:
            return repetition
        text = (
            f"the burst is of less than {written(repetition.upper)} frames; "
            f"{written(self.late)} and less could not be sent at their rate"
        )
        return replace(repetition, limited_by="tester").adding(Note("undecided", text))

    def _slowed_down(self) -> list[Attempt]:
        """Lower the rate to what the tester reaches in this lab; the bursts that were too slow."""
        slow: list[Attempt] = []
        while len(slow) < MOST_SLOWER:
            frames = min(float(round(self._expected() or FIRST_BURST)), self._longest)
            outcome = self._sent(frames, Bounds())
            share = _share_of_rate(outcome)
            if share >= ON_TIME_SHARE:
                self._tried = frames, outcome
                break
            slow.append(Attempt(frames, short=False, outcome=self._in_time(frames, outcome)))
            if not any(counts.stalled_seconds for counts in outcome.phase2.values()):
                lower = self.rate * max(share * SAFELY_REACHED, STEEPEST_SLOWER)
                self.rate = min(self.rate, max(lower, LEAST_ABOVE_THROUGHPUT * (self.throughput or 0.0)))
        return slow

    def _figures(self, repetition: Measurement) -> dict[str, float]:
        """The rate of the burst, and the buffer times in seconds."""
        # The lowest rate at which the burst that is the answer was really sent.
        sent = self.rate * min(map(_share_of_rate, repetition.passed), default=1.0)
        implied, corrected = buffer_times(repetition.value, sent, self.throughput or 0.0)
        figures = {"implied_buffer_seconds": implied, SENT_RATE: sent}
        if self.throughput is None:
            return figures
        _, least = buffer_times(repetition.value, sent, self.throughput_upper or math.inf)
        return {**figures, "corrected_buffer_seconds": corrected, "corrected_buffer_least_seconds": least}

    def notes(self, measurements: Sequence[Measurement]) -> Sequence[Note]:
        found = [repetition for repetition in measurements if SENT_RATE in repetition.figures]
        sent = statistics.fmean(each.figures[SENT_RATE] for each in found) if found else self.rate
        meant = "" if self.rate == self._meant else f", as the tester did not reach {written(self._meant)}"
        sent_rate = f", really sent at {written(sent)} ({in_percent(sent / self.rate)})" if found else ""
        late = f"bursts of {written(self.late)} frames and less could not be sent at their rate"
        unit = self.settings.rate_unit
        throughput = "not known" if self.throughput is None else f"{written(self.throughput)} {unit}"
        bursts_at = f"bursts at {written(self.rate)} {unit}{sent_rate}{meant}; throughput {throughput}"
        notes = [Note("method", bursts_at)]
        if found:
            bursts, longest = [each.value for each in found], statistics.fmean(map(_longest, found))
            notes += buffer_notes(bursts, sent, self.throughput, self.throughput_upper, longest=longest)
        return [
            *notes,
            *([Note("tester", late)] if self.late else ()),
            *repetitions_note(self.settings, RFC_REPETITIONS, "RFC 9004 section 5"),
            *tolerance_note(self.settings.loss_tolerance),
        ]

    @property
    def _longest(self) -> float:
        """Frames of the longest burst."""
        return max(float(int(self.settings.burst_seconds * self.rate)), 1.0)

    def _plan(self, known: float | None) -> SearchPlan:
        settings = self.settings
        return SearchPlan(
            top=self._longest,
            start=min(FIRST_BURST, self._longest),
            floor=1.0,
            error=settings.error,
            invalid_repeats=settings.invalid_repeats,
            loss_verifications=settings.loss_verifications,
            confirm=settings.confirm,
            unit="frames at once",
            expected=near(known, settings.error, self.runner.draw) if known else self._expected(),
            whole=True,
        )

    def _expected(self) -> float | None:
        """Frames of a burst that fills the ring before the device; None where none is known."""
        ring, throughput = self.runner.measurer.ring, self.throughput
        if throughput is not None and throughput >= self.rate:
            return self._longest
        if ring is None or throughput is None:
            return None
        return min(ring / (1 - throughput / self.rate), self._longest)

    def _burst(self, frames: float, _short: bool, bounds: Bounds) -> Trial:  # noqa: FBT001 - the search's signature
        tried, self._tried = self._tried, None
        if tried is not None and tried[0] == frames:
            return self._in_time(*tried)
        return self._in_time(frames, self._sent(frames, bounds))

    def _sent(self, frames: float, bounds: Bounds) -> Trial:
        return self.trial(frames, self.settings.plan(self.preparation.rate, self.rate, frames / self.rate), bounds)

    def _in_time(self, frames: float, outcome: Trial) -> Trial:
        """The outcome; INVALID where the sender or the device's cores were late, and that may have decided."""
        if outcome.verdict is Verdict.PASS and outcome.device_stalled_seconds:
            # A queue or a policer that had more time takes more frames; the loss of one that had less is excused.
            stalled = outcome.device_stalled_seconds * 1000
            reason = f"the device's cores stalled for {stalled:.1f} ms, in which more can pass than otherwise"
            return replace(outcome, verdict=Verdict.INVALID, limited_by="host", reason=reason)
        share = _share_of_rate(outcome)
        if outcome.verdict not in {Verdict.PASS, Verdict.FAIL} or share >= ON_TIME_SHARE or self._lost_anyway(outcome):
            return outcome
        reason = f"the burst of {written(frames)} frames was sent at {in_percent(share)} of its rate"
        cause: LimitedBy = "host" if outcome.disturbed else "tester"
        return replace(outcome, verdict=Verdict.INVALID, limited_by=cause, failed_phase=None, reason=reason)

    def _lost_anyway(self, outcome: Trial) -> bool:
        """Whether more frames were lost than the device would have forwarded while it waited for a late sender."""
        rate = self.rate if self.throughput is None else self.throughput
        return any(
            counts.lost > rate * (counts.worst_lag_ns / 1e9) for counts in outcome.phase2.values() if counts.lost
        )


def _least_received(outcome: Trial) -> float | None:
    """Frames that came back of a burst that lost some, of the direction that lost most; None where none was lost.

    The longest burst without loss has no more: a device that holds B frames and forwards a share x of what arrives
    returns B + x * F of a burst of F, and is full after B / (1 - x) of them.
    """
    return min((float(counts.received_frames) for counts in outcome.phase2.values() if counts.lost), default=None)


def _late_loads(repetition: Measurement) -> list[float]:
    """Bursts below the answer's bounds that the tester was always late with."""
    decided = {attempt.load for attempt in repetition.attempts if attempt.outcome.verdict is not Verdict.INVALID}
    late = {attempt.load for attempt in repetition.attempts if attempt.outcome.limited_by == "tester"} - decided
    return [load for load in late if load < min(decided, default=math.inf)]


def _share_of_rate(outcome: Trial) -> float:
    """The rate of the slowest direction as a share of the intended rate; 1 where it was not slower."""
    streams = [counts for counts in outcome.phase2.values() if counts.sending_seconds > 0]
    return min([1.0, *(counts.nominal_seconds / counts.sending_seconds for counts in streams)])


def buffer_times(average_burst: float, rate: float, throughput: float) -> tuple[float, float]:
    """Implied and corrected buffer time in seconds (RFC 9004 section 6).

    Bursts in frames, rates in frames/s. Where the throughput is not below the rate, nothing was buffered.
    """
    implied = average_burst / rate
    return implied, implied * max(0.0, rate - throughput) / rate


def _longest(found: Measurement) -> float:
    """Where a burst surely ends, in frames; infinite = not known. A search that the time ended may know it."""
    if found.limited_by in NO_DEVICE and (found.limited_by != "time" or found.upper is None):
        return math.inf
    return found.upper or found.value


def buffer_notes(
    bursts: Sequence[float],
    rate: float,
    throughput: float | None,
    throughput_upper: float | None,
    *,
    longest: float,
) -> list[Note]:
    """The benchmark and what it says of the buffer; of a throughput that is not known nothing is corrected.

    `throughput_upper` is where the throughput surely ends; None = not known. `longest` is the mean of the bursts' upper
    bounds, in frames; infinite = something other than the device ended a search, so that the times are lower bounds.
    """
    mean = statistics.fmean(bursts)
    implied, _ = buffer_times(mean, rate, throughput or 0.0)
    _, least = buffer_times(mean, rate, throughput_upper or math.inf)
    if math.isinf(longest):
        times = f"implied buffer time at least {at_least(implied * 1000)} ms"
        times += f", corrected at least {at_least(least * 1000)} ms" if least else ""
        return [Note("method", f"mean burst at least {written(mean)} frames: {times}")]
    times = f"implied buffer time {written(implied * 1000)} ms"
    if throughput is not None:
        _, most = buffer_times(longest, rate, throughput)
        low = f"{at_least(least * 1000)} to" if least else "at most"
        ends = written(most * 1000) if least == most else f"{low} {at_most(most * 1000)}"
        times += f", corrected {ends} ms"
    return [Note("method", f"mean burst {written(mean)} frames: {times}")]


PROCEDURE = Procedure(
    BACK_TO_BACK,
    settings=BackToBackSettings,
    start=_BackToBack,
    profiles={
        "quick": {"burst_seconds": 0.5},
        # RFC 9004 section 5: 50 repetitions.
        "rfc": {"repeat": RFC_REPETITIONS, "burst_seconds": 2.0},
    },
)
