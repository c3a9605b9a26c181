# SPDX-License-Identifier: Apache-2.0
"""First-packet delay: the time that a new connection needs through the gateway, at shares of the connection rate.

A trial for each load has phase 1 alone, whose frames are timed: with TCP from the SYN to the ACK that ends the
handshake, which passes the gateway three times; otherwise from the frame to its arrival. In a second trial the
Initiator sends at the same rate over established connections, and the delays are those of later frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from natgauge.delays import Delays
from natgauge.errors import BrokenError
from natgauge.figure_text import number as written
from natgauge.inputs.measuring_types import shares
from natgauge.metrics.catalogue import FIRST_PACKET_DELAY
from natgauge.notes import Note
from natgauge.procedures.kit.delays import (
    ABOUT_LOADS,
    ALONE_SHARE,
    TYPICAL,
    WORST_CASE,
    Timing,
    longer_trials,
    percentile_within,
    together_note,
    too_high_note,
    typical_ends,
    unseen_stalls_note,
)
from natgauge.procedures.kit.frame_counts import deciding_counts, lost_share
from natgauge.procedures.kit.held_connections import HeldConnections
from natgauge.procedures.kit.phases import ABOUT_TRIAL_SECONDS, Phase1Settings
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.rate_search import rounded_up
from natgauge.procedures.kit.results import Measurement, tolerance_note
from natgauge.procedures.kit.runner import Bounds, TimeUpError, TrialRunner, left_out
from natgauge.records.repetition import Row
from natgauge.trials import Phase2Plan, Trial, TrialPlan
from natgauge.words import Verdict


@dataclass(frozen=True, kw_only=True)
class FirstPacketDelaySettings(Phase1Settings):
    """Settings of the first-packet delay."""

    loads: str = field(default="100%,50%,10%", metadata=ABOUT_LOADS)
    trial_seconds: float = field(default=2.0, metadata=ABOUT_TRIAL_SECONDS)
    times_frames = True

    @property
    def phase2_seconds(self) -> float:
        """Seconds for which later frames are sent."""
        return self.trial_seconds

    def first_plan(self, rate: float, *, alone: bool) -> TrialPlan:
        """A trial that opens connections at this rate, and times the frames that do."""
        return replace(self.phase1_plan(rate), record_delays=True, at_rate=True, single_frames=alone)

    def later_plan(self, phase1_rate: float, rate: float, *, alone: bool) -> TrialPlan:
        """A trial that times frames at this rate over established connections."""
        phase2 = Phase2Plan(initiator_rate=rate, responder_rate=0.0, seconds=self.trial_seconds)
        return replace(self.first_plan(phase1_rate, alone=alone), phase2=phase2)


def read(delays: Delays) -> dict[str, float]:
    """Percentiles and extremes, in us."""
    return {
        "typical_us": percentile_within(delays, TYPICAL) * 1e6,
        "p99_us": percentile_within(delays, 99.0) * 1e6,
        "worst_case_us": percentile_within(delays, WORST_CASE) * 1e6,
        "minimum_us": delays.minimum * 1e6,
        "maximum_us": delays.maximum * 1e6,
    }


_TIMING: Final = Timing(FIRST_PACKET_DELAY, read, ("typical_us", "p99_us", "worst_case_us"), ends=typical_ends)


class _FirstPacketDelay(HeldConnections[FirstPacketDelaySettings]):
    """Delays of first and later frames at each load; the value is the median of the first ones at the highest."""

    def __init__(self, runner: TrialRunner, settings: FirstPacketDelaySettings) -> None:
        super().__init__(runner, settings)
        if self.preparation.rough is not None:
            # The loads are shares of it.
            runner.first.append(self.preparation.rough)

    def once(self, _known: float | None) -> Measurement:
        every, rows = shares("loads", self.settings.loads), list[Row]()
        figures: dict[str, float] = {}
        for number, share in enumerate(every):
            rate, alone = self.preparation.connection_rate * share, share <= ALONE_SHARE
            first = self.settings.first_plan(rate, alone=alone)
            later = self.settings.later_plan(self.preparation.rate, rate, alone=alone)
            try:
                opened = self.at(rate, first) if figures else self.must(rate, first)
                used = self.at(rate, later)
            except TimeUpError as error:
                if not figures:
                    raise
                missing = ", ".join(f"{load * 100:g} %" for load in every[number:])
                self.repetition_notes.append(left_out(f"the loads {missing}", error))
                break
            own = {**self._figures(opened, "first", share, is_value=not figures), **self._figures(used, "later", share)}
            if not figures and opened is not None:
                figures = {**own, **_TIMING.of_headline(opened.delays.values())}
                if opened.verdict is Verdict.FAIL:
                    self.repetition_notes.append(too_high_note(opened, share, deciding_counts(opened)))
            if opened is not None and opened.delays:
                rows.append({"load_percent": share * 100, "rate": rate, "verdict": str(opened.verdict), **own})
        return self.measurement(figures["first_typical_us"], figures=figures, series=rows)

    def trial(self, load: float, plan: TrialPlan, bounds: Bounds) -> Trial:
        """Run a trial; a phase 1 that is timed prepares nothing, so it is not slowed down."""
        return self.runner.run(plan, load, bounds) if plan.phase2 is None else super().trial(load, plan, bounds)

    def notes(self, measurements: Sequence[Measurement]) -> Sequence[Note]:
        attempts = (attempt for each in measurements for attempt in each.attempts)
        # The first delay of a TCP connection is that of all its messages.
        passages = max((len(attempt.outcome.phase1.messages) for attempt in attempts), default=0)
        return [self._full_note(), *self._wait_notes(max(1, passages)), *tolerance_note(self.settings.loss_tolerance)]

    def _full_note(self) -> Note:
        """What 100 % is; a doubt where it is only what the device surely reaches."""
        full = f"100 % is {written(self.preparation.connection_rate)} connections/s"
        if self.preparation.rough is not None:
            return Note("phase 1", f"{full}, measured within 10 %")
        if self.settings.connection_rate is not None:
            # Who chose it is not known here: a campaign hands on the one that it measured.
            return Note("phase 1", full)
        text = (
            f"{full}, which the device surely reaches; its trials were too short to measure its connection rate, so "
            "that may be higher: use more connections, or give --connection-rate"
        )
        return Note("connection rate doubted", text)

    def _wait_notes(self, passages: int) -> list[Note]:
        """Notes on the part of first and later delays that may not be the device's own."""
        settings, full = self.settings, self.preparation.connection_rate
        placement, loads = settings.placement, shares("loads", settings.loads)
        # The trial of first frames at the highest load is the shortest.
        fastest = full * loads[0]

        def more_connections(least: float) -> str:
            return f"{rounded_up(least * fastest):,} connections or more (--connections)"

        return [
            *together_note(placement, loads, full, "connection rate", passages),
            *unseen_stalls_note(placement, settings.phase1_frames / fastest, more_connections),
            *unseen_stalls_note(placement, settings.trial_seconds, longer_trials),
        ]

    def _figures(self, outcome: Trial | None, which: str, share: float, *, is_value: bool = False) -> dict[str, float]:
        """The figures of the timed frames of a trial, and its loss; a note where none came, or they were due in stalls.

        Where none came in the trial of the value, there is no value.
        """
        if outcome is None:
            return {}
        if not outcome.delays:
            text = f"no {which} frame came back at {100 * share:g} %: {outcome.reason}"
            if is_value:
                raise BrokenError(f"{FIRST_PACKET_DELAY.name}: {text}")
            self.repetition_notes.append(Note("device", text))
            return {}
        (delays,) = outcome.delays.values()
        for name, value, without in _TIMING.moved(outcome):
            rest = "unknown" if without is None else f"{written(without)} us"
            figures = f"the {name} is {written(value)} us, and {rest} without as many of the slowest frames"
            text = f"at {100 * share:g} % {which} frames were due while a core was stalled: {figures}"
            self.repetition_notes.append(Note("frames in stalls", text))
        lost = max(map(lost_share, deciding_counts(outcome)), default=0.0)
        return {f"{which}_{name}": each for name, each in _TIMING.figures(delays).items()} | {
            f"{which}_lost_percent": 100 * lost
        }


PROCEDURE = Procedure(
    FIRST_PACKET_DELAY,
    settings=FirstPacketDelaySettings,
    start=_FirstPacketDelay,
    profiles={"quick": {"loads": "100%,10%"}},
)
