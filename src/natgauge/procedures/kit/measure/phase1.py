# SPDX-License-Identifier: Apache-2.0
"""A safe phase 1 for trials that are about something else: below the device's connection rate (RFC 9693 section 4.2).

That rate is taken from an earlier result or measured roughly first. A trial whose phase 1 fails says nothing about
phase 2: it is not counted, and phase 1 gets slower until that is seen to be no remedy. A stateless measurement has no
phase 1 at all.

Where the device loses a share of the frames at every rate, no phase 1 is safe. A metric that measures loss goes on
without the connections that were not established; any other one has nothing to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Final

from natgauge import procedures
from natgauge.causes.cause import FULL
from natgauge.figure_text import in_percent, number
from natgauge.inputs.checks import paced
from natgauge.inputs.input import chosen
from natgauge.inputs.measuring_types import SearchError
from natgauge.metrics.shared_figures import HIGHEST_FIGURE, SHARE_FIGURE
from natgauge.notes import Note
from natgauge.procedures.kit.events import Bounds
from natgauge.procedures.kit.measure.prerequisite import inner, measure_first
from natgauge.procedures.kit.result.frame_counts import lost_of_due
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.procedures.kit.runner import GoneError, TrialRunner
from natgauge.procedures.kit.search.late_frames import ShortTrialsError
from natgauge.procedures.kit.search.permanent_loss import BELOW, MOST_MISSED, no_more_than
from natgauge.procedures.kit.settings import MOST_TOLERATED, TrialSettings
from natgauge.procedures.kit.time_budget import TimeUpError
from natgauge.trials import Trial, TrialPlan
from natgauge.words import Verdict

#: The metric that a safe phase 1 is a share of.
CONNECTION_RATE = "connection-rate"
#: Phase 1 runs at this share of the connection rate: twice as slow as the device can.
SAFE_SHARE = 0.5
#: Error of the connection rate when it is only measured to find a safe phase 1; small compared with the safe share.
ROUGH_ERROR = SearchError(share=0.1)
#: After a failed phase 1 the next one is this much slower, this often at most.
SLOWER = 2.0
MOST_FAILED_PREPARATIONS = 4
#: Where a slower one is no remedy, and chance may let it pass, it is repeated so often at most.
MOST_BY_CHANCE = 10
#: What a stateless trial's plan has as the rate of the phase 1 that it does not have.
NO_PHASE_1 = 1.0
#: So many failed trials, whose rates span this factor, show a loss that a slower phase 1 does not cure.
LEAST_FAILED: Final = 3
SPAN: Final = 4.0
#: At the highest of these rates no more than this share may be lost.
MOST_LOST: Final = 1 - 1 / SPAN
#: The loss is no smaller where it is this part of the other one at least.
ALIKE: Final = 0.5


@dataclass(frozen=True, kw_only=True)
class Phase1Settings(TrialSettings):
    """Settings of a measurement that first establishes all connections."""

    connection_rate: float | None = chosen(
        None,
        "maximum connection rate of the device",
        "connections/s",
        partial(paced, unit="connections/s"),
        default="measured first",
        # It only makes phase 1 slow enough.
        moves_figures=False,
    )

    #: Whether loss is the measured quantity, so that permanent loss in phase 1 does not end the measurement.
    measures_loss: ClassVar[bool] = False

    @property
    def unused(self) -> dict[str, str]:
        """The connection rate, where no phase 1 takes it."""
        return super().unused | ({} if self.has_phase1 else {"connection_rate": "a stateless trial has no phase 1"})

    @property
    def measures_connection_rate(self) -> bool:
        """Whether the connection rate is measured on the way."""
        return self.has_phase1 and self.connection_rate is None

    def parameters(self) -> dict[str, Any]:
        """The settings, and the time limit that frames have where the connection rate is measured on the way."""
        limit = None
        if self.measures_connection_rate:
            limit = inner(procedures.get("connection-rate").settings, self).as_run().frame_timeout_seconds
        return {**super().parameters(), "connection_rate_timeout_seconds": limit}


def _failed(outcome: Trial) -> bool:
    of_phase1 = outcome.verdict is Verdict.FAIL and outcome.failed_phase == 1
    return of_phase1 and outcome.limited_by == "device" and outcome.phase1.lost > 0


def _share(outcomes: Iterable[Trial]) -> float:
    return lost_of_due(outcome.phase1 for outcome in outcomes)


@dataclass(slots=True)
class SteadyLoss:
    """What phase 1 lost in the trials so far, by its rate, and whether a slower one would cure it.

    A device that is overloaded at a rate, and still forwards a quarter of the frames, loses nothing at a quarter of
    that rate. What a full queue loses of a burst becomes less with the rate as well. So a loss that is no smaller there
    has another reason.
    """

    _outcomes: list[Trial] = field(default_factory=list)

    def add(self, outcome: Trial) -> None:
        """Take a trial into account; of one that says nothing of the device only a phase 1 without a loss counts."""
        phase1 = outcome.phase1
        if phase1.due_frames and (outcome.verdict in {Verdict.PASS, Verdict.FAIL} or not phase1.lost):
            self._outcomes.append(outcome)

    @property
    def rates(self) -> tuple[float, float] | None:
        """The lowest and the highest rate, between which the loss is no smaller at lower ones; None = it may be."""
        rates = [outcome.plan.phase1_rate for outcome in self._outcomes if _failed(outcome)]
        if len(rates) < LEAST_FAILED or max(rates) < BELOW * SPAN * min(rates):
            return None
        slow, fast = (
            _share(outcome for outcome in self._outcomes if outcome.plan.phase1_rate == rate)
            for rate in (min(rates), max(rates))
        )
        return (min(rates), max(rates)) if ALIKE * fast <= slow and fast < MOST_LOST else None

    @property
    def may_pass(self) -> bool:
        """Whether a trial of as many connections as the last one may lose none of them by chance."""
        return _share(self._outcomes) * self._outcomes[-1].phase1.due_frames <= MOST_MISSED

    def words(self, unit: str) -> str:
        """Return the loss in words; empty where a slower phase 1 may help."""
        if self.rates is None:
            return ""
        lowest, highest = map(number, self.rates)
        share = in_percent(_share(self._outcomes))
        return f"phase 1 loses {share} of its frames at every rate from {lowest} to {highest} {unit}"

    @property
    def remedy(self) -> str:
        """What helps, in words."""
        zero = any(outcome.phase1.without_checksum for outcome in self._outcomes if _failed(outcome))
        helps = ["--zero-checksum accept"] if zero else []
        if _share(self._outcomes) < MOST_TOLERATED:
            helps.append("a --loss-tolerance above that")
        return f"a slower one is no remedy: give {', or '.join([*helps, 'fewer --connections'])}"


class UnpreparableError(GoneError):
    """Phase 1 cannot establish the connections, so nothing is known of phase 2.

    The outcome of the last trial says why.
    """

    def __init__(self, metric: str, preparation: Preparation, outcome: Trial, *, measures_loss: bool = False) -> None:
        # The search for the rate finds that share, and the loss is measured all the same.
        other = "none" if measures_loss and preparation.rough is None else "a --loss-tolerance"
        mend = f"give a lower --connection-rate, or {other} if the device loses such a share at every rate"
        if known := preparation.remedy:
            mend = f"{known}, or no --connection-rate" if other == "none" and not preparation.losses.may_pass else known
        super().__init__(
            f"{metric}: phase 1 could not {preparation.does} (failed in a row: {preparation.failures}, at "
            f"{number(preparation.rate)} {preparation.unit} at last), so no rate of phase 2 could be judged: "
            f"{outcome.reason}{'' if outcome.limited_by in FULL else f'; {mend}'}"
        )
        self.outcome = outcome


@dataclass(slots=True)
class Preparation:
    """The rate of phase 1, how often it failed in a row, and whether a slower one would help.

    Attributes:
        hopeless: a slower phase 1 would fail, too.
        rough: the connection rate as measured first; None when it was given, or there is no phase 1.
        unavoidable: share of the frames of phase 1 that is lost at every rate.
    """

    #: What phase 1 does, and the unit of its rate.
    does: ClassVar[str] = "establish the connections"
    unit: ClassVar[str] = "connections/s"

    rate: float
    connection_rate: float
    failures: int = 0
    hopeless: bool = False
    rough: MeasurementResult | None = None
    unavoidable: float = 0.0
    losses: SteadyLoss = field(default_factory=SteadyLoss)

    @property
    def is_none(self) -> bool:
        """Whether there is no phase 1."""
        return self.rate == NO_PHASE_1

    def run(
        self,
        runner: TrialRunner,
        plan: TrialPlan,
        load: float,
        bounds: Bounds,
        judged: Callable[[Trial], Trial] | None = None,
    ) -> Trial:
        """Run one trial as the runner does; where the time is over, what helps is said of phase 1."""
        try:
            return runner.run(plan, load, bounds, judged)
        except TimeUpError as error:
            known = self.remedy
            if known and error.remedy:
                error.remedy = f"{known}; or {error.remedy}" if self.losses.may_pass else known
            raise

    @property
    def remedy(self) -> str:
        """The loss that no slower phase 1 cures, and what helps, in words; empty = none is known."""
        known = self.losses.words(self.unit)
        return f"{known}; {self.losses.remedy}" if known else ""

    def judge(self, outcome: Trial) -> Trial:
        """Take a failed phase 1 out of the count, and slow down for the next trial where that may help."""
        self.losses.add(outcome)
        if outcome.verdict is not Verdict.FAIL or outcome.failed_phase != 1:
            self.failures, self.hopeless = 0, False
            return outcome
        if self.unavoidable and outcome.limited_by == "device" and no_more_than(outcome.phase1, self.unavoidable):
            self.failures = 0
            return _of_phase2(outcome)
        self.failures += 1
        steady = self.losses.rates
        most = MOST_BY_CHANCE if steady is not None and self.losses.may_pass else MOST_FAILED_PREPARATIONS
        self.hopeless = self.failures > most or outcome.limited_by in FULL
        if steady is not None:
            self.rate = steady[1]
        elif not self.hopeless:
            # Failures that chance scatters over many trials would otherwise slow phase 1 down without end.
            slowest = SAFE_SHARE * self.connection_rate / SLOWER**MOST_FAILED_PREPARATIONS
            self.rate = max(self.rate / SLOWER, slowest)
        return replace(outcome, verdict=Verdict.INVALID, reason=f"phase 2 was not prepared: {outcome.reason}")

    def resume(self, rate: float) -> None:
        """Go on at this rate: the rate was not why phase 1 failed."""
        self.rate, self.failures, self.hopeless, self.losses = rate, 0, False, SteadyLoss()

    def notes(self) -> list[Note]:
        """Return notes on the rate of phase 1; empty without a phase 1."""
        if self.is_none:
            return [Note("phase 1", "stateless: there was no phase 1")]
        if self.unavoidable:
            text = (
                f"phase 1 at {number(self.rate)} connections/s lost {in_percent(self.unavoidable)} of its frames, "
                "as at every rate; of connections that it did not establish, only the Initiator sent frames"
            )
            rough = () if self.rough is None else self.rough.notes
            return [Note("phase 1", text), *(note for note in rough if note.word == "loss at every rate")]
        share = self.rate / self.connection_rate
        text = f"phase 1 at {number(self.rate)} connections/s, {number(share)} of the connection rate"
        return [Note("phase 1", "; ".join(filter(None, (text, self.losses.words(self.unit)))))]


def safely_below(connection_rate: float) -> Preparation:
    """Phase 1 for a device that establishes `rate` connections/s."""
    return Preparation(connection_rate * SAFE_SHARE, connection_rate)


def prepare(runner: TrialRunner, settings: Phase1Settings, share: float | None = None) -> Preparation:
    """Find a safe rate of phase 1; 0 when the device establishes no connections at any rate.

    `share` is of the time that is left, where a lower bound suffices; None = the search must be done.
    """
    if not settings.has_phase1:
        return Preparation(NO_PHASE_1, NO_PHASE_1)
    if settings.connection_rate:
        return safely_below(settings.connection_rate)
    try:
        rough = measure_first(CONNECTION_RATE, runner, settings, share=share, error=ROUGH_ERROR, confirm=False)
    except ShortTrialsError as error:
        # Where nothing is lost but time, what the device surely did is safe enough.
        return safely_below(error.least_rate)
    if settings.measures_loss and SHARE_FIGURE in rough.figures:
        preparation = safely_below(rough.figures[HIGHEST_FIGURE].median)
        return replace(preparation, rough=rough, unavoidable=rough.figures[SHARE_FIGURE].median)
    return replace(safely_below(rough.summary.median), rough=rough)


def _of_phase2(outcome: Trial) -> Trial:
    """Return the outcome without phase 2, for a trial whose phase 1 had no more than the tolerated loss."""
    streams = outcome.phase2.values()
    lost, offered = sum(counts.lost for counts in streams), sum(counts.offered_frames for counts in streams)
    if any(counts.offered_frames != counts.intended_frames - counts.skipped for counts in streams):
        reason = (
            f"phase 2: {offered} frames were offered instead of {sum(counts.intended_frames for counts in streams)}"
        )
        return replace(outcome, verdict=Verdict.INVALID, reason=reason, limited_by="tester", failed_phase=None)
    if lost:
        return replace(outcome, reason=f"phase 2: {lost} of {offered} frames lost", failed_phase=2)
    return replace(outcome, verdict=Verdict.PASS, reason="", limited_by=None, failed_phase=None)
