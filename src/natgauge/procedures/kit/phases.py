# SPDX-License-Identifier: Apache-2.0
"""The two phases of a trial: a safe phase 1 or one with draws, and frames over the established connections.

A safe phase 1 is for trials that are about something else: below the device's connection rate (RFC 9693 section 4.2).
That rate is taken from an earlier result or measured roughly first, as any metric that a measurement needs first. A
trial whose phase 1 fails says nothing about phase 2: it is not counted, and phase 1 gets slower until that is seen to
be no remedy. A stateless measurement has no phase 1 at all.

Where the device loses a share of the frames at every rate, no phase 1 is safe. A metric that measures loss goes on
without the connections that were not established; any other one has nothing to say.

RFC 9693 section 4.4 requires that each frame of phase 1 opens a connection. Draws with replacement do not, since their
frames select their four tuples independently of each other: of S four tuples, N draws select S * (1 - (1 - 1/S)^N) on
average, which is S * (1 - e^(-N/S)) for large S. N may be larger than S, as in Table 23 of Lencse, Shima, Cho (Computer
Communications 210, 2023).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypeVar

from natgauge import procedures
from natgauge.causes.cause import FULL
from natgauge.ethernet import BROADCAST_EVERY
from natgauge.figure_text import in_percent, number
from natgauge.inputs.input import chosen, described, paced, wrong
from natgauge.inputs.measuring_types import SearchError
from natgauge.measurer import Ability
from natgauge.metrics.metric import HIGHEST_FIGURE, SHARE_FIGURE
from natgauge.notes import Note
from natgauge.procedures.kit.frame_counts import lost_of_due
from natgauge.procedures.kit.losses import BELOW, MOST_MISSED, no_more_than
from natgauge.procedures.kit.rate_search import ShortTrialsError
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.procedures.kit.runner import Bounds, GoneError, TimeUpError, TrialRunner
from natgauge.procedures.kit.settings import COMMON, MOST_TOLERATED, Profile, TrialSettings
from natgauge.trials import LONGEST_PHASE_SECONDS, Beside, Modifiers, Phase2Plan, Trial, TrialPlan
from natgauge.words import DRAWN, MAXIMUM_CONNECTIONS, SENDING, TcpState, Verdict, sending

#: What of `ReadingOrder` may be chosen; "once" belongs to validation.
Reading = Literal["pseudorandom", "increasing"]

#: RFC 2544 section 24.
RFC_TRIAL_SECONDS = 60.0
LEAST_TRIAL_SECONDS = 0.01
LONGEST_TRIAL_SECONDS = 3600.0
LEAST_FOREGROUND = 0.001
LEAST_OF_A_DIRECTION = 0.01
_USUAL_GROUP_SECONDS: Final = 5.0
#: Metrics with another default use this description for their own field.
ABOUT_TRIAL_SECONDS: Final = described("duration of phase 2", "s", (LEAST_TRIAL_SECONDS, LONGEST_TRIAL_SECONDS))


@dataclass(frozen=True, kw_only=True)
class Phase2Settings(TrialSettings):
    """Settings of a measurement over established connections.

    RFC 2544 section 24 requires trials of 60 s, RFC 8219 section 5.3 foreground shares of 1, 0.9, 0.5 and 0.1. A rate
    of phase 2 is the mean of both directions, so their sum does not depend on the down share. The increasing reading
    order is round robin (RFC 9693 section 4.10).
    """

    trial_seconds: float = field(default=2.0, metadata=ABOUT_TRIAL_SECONDS)
    directions: Literal["both", "up", "down"] = chosen(
        "both",
        "senders in phase 2: both, the Initiator only (up), or the Responder only (down)",
        group="traffic",
        also=("--direction",),
    )
    down_share: float = chosen(
        0.5,
        "share of the frames that the Responder sends, where both directions send",
        "share",
        (LEAST_OF_A_DIRECTION, 1 - LEAST_OF_A_DIRECTION),
        group="traffic",
    )
    reading_order: Reading = chosen(
        "pseudorandom", "order in which the Responder reads its state table", group="traffic"
    )
    stateless: bool = chosen(False, "skip phase 1, for devices without connection tracking", group="traffic")
    foreground_share: float = chosen(
        1.0,
        "share of translated frames; the other frames are native IPv6",
        "share",
        (LEAST_FOREGROUND, 1),
        group="traffic",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if 1 - LEAST_FOREGROUND < self.foreground_share < 1:
            raise wrong(
                "foreground_share",
                f"{self.foreground_share:g} leaves less than {LEAST_FOREGROUND:.1%} of the frames to native IPv6; "
                f"use at most {1 - LEAST_FOREGROUND:g}, or 1",
            )
        if self.directions != "both" and not self.is_balanced:
            raise wrong("down_share", f"with directions {self.directions} one side sends all frames; leave it out")
        if self.reading_order == "pseudorandom":
            return
        if self.stateless:
            raise wrong("reading_order", "a stateless trial has no state table to read; leave it out")
        if self.directions == "up":
            raise wrong("reading_order", "with directions up the Responder sends nothing; leave it out")
        # A frame's number is its turn in the table and in the mix, so some connections would have no frame under test.
        if self.foreground_share < 1:
            raise wrong(
                "reading_order",
                f"{self.reading_order}, but a foreground share of {in_percent(self.foreground_share)} needs "
                "pseudorandom frames; leave it out",
            )

    @classmethod
    def traffic_of(cls, chosen: Mapping[str, object]) -> Mapping[str, object]:
        """Refuse sizes of frames that nobody sends."""
        sizes = chosen.get("down_frame_sizes")
        if chosen.get("directions") == "up" and sizes is not None:
            raise wrong(
                "down_frame_sizes", f"{sizes}, but with directions up the Responder sends nothing; leave it out"
            )
        return super().traffic_of(chosen)

    def needs(self) -> frozenset[Ability]:
        """Return the abilities that the settings require."""
        stateless = {Ability.STATELESS} if self.stateless else set()
        background = {Ability.BACKGROUND} if self.foreground_share < 1 else set()
        return super().needs() | stateless | background

    @property
    def has_phase1(self) -> bool:
        """Whether connections are established at all."""
        return not self.stateless

    @property
    def phase2_seconds(self) -> float:
        """Seconds of phase 2, as the user chose."""
        return self.trial_seconds

    @property
    def active(self) -> int:
        """Number of directions that send, 1 or 2."""
        return 2 if self.directions == "both" else 1

    @property
    def is_balanced(self) -> bool:
        """Whether both directions have the same rate, if both send."""
        return self.down_share == 0.5

    @property
    def rate_unit(self) -> str:
        """Unit of a rate of phase 2, with the directions that it is of."""
        return f"frames/s {sending(self.directions, is_balanced=self.is_balanced)}"

    def rates(self, rate: float) -> tuple[float, float]:
        """The rates of the Initiator and the Responder whose mean over the active directions is `rate`."""
        if self.directions != "both":
            return (rate, 0.0) if self.directions == "up" else (0.0, rate)
        return 2 * rate * (1 - self.down_share), 2 * rate * self.down_share

    def notes(self) -> list[Note]:
        """Return notes on unequal rates, on frames not under test, and on trials shorter than the RFC requires."""
        notes = super().notes()
        if not self.is_balanced:
            text = f"{number(self.down_share)} of the frames {SENDING['down']}, the others {SENDING['up']}"
            notes.append(Note("settings", text))
        if self.foreground_share < 1:
            text = f"{number(self.foreground_share)} of the frames under test, the others native IPv6"
            text += "; delays are those of both" * self.times_frames
            notes.append(Note("settings", text))
        if self.trial_seconds < RFC_TRIAL_SECONDS:
            text = f"trials of {self.trial_seconds:g} s; RFC 2544 section 24 requires {RFC_TRIAL_SECONDS:g} s"
            notes.append(Note("settings", text))
        return notes

    def phase2(self, rate: float, seconds: float) -> Phase2Plan:
        """Phase 2 at this rate, the mean of the active directions."""
        initiator_rate, responder_rate = self.rates(rate)
        return Phase2Plan(
            initiator_rate=initiator_rate,
            responder_rate=responder_rate,
            seconds=seconds,
            reading_order=self.reading_order,
        )

    def plan(self, phase1_rate: float, rate: float, seconds: float) -> TrialPlan:
        """The trial that tries this rate, the mean of the active directions."""
        return replace(
            self.phase1_plan(phase1_rate),
            phase2=self.phase2(rate, seconds),
            stateless=self.stateless,
            foreground_share=self.foreground_share,
        )


@dataclass(frozen=True, kw_only=True)
class ModifiedSettings(Phase2Settings):
    """Settings of phase 2 with conditions beside its rates (RFC 2544 section 11, RFC 8219 section 10.2.2).

    A rate counts the test frames; broadcasts, of which none comes back, are sent in addition.
    """

    modifiers: Beside = chosen(
        "none",
        "beside the frames: broadcasts in place of 1 % of them, an ICMP echo request to the device each second "
        "(management), or both (RFC 2544 section 11)",
        group="traffic",
    )
    groups: int = chosen(
        1,
        "groups of connections whose frames begin one after another (RFC 8219 section 10.2.2)",
        "groups",
        (1, 1000),
        group="traffic",
    )
    group_seconds: float = chosen(
        _USUAL_GROUP_SECONDS, "time between the beginnings of two groups", "s", (0.01, 600), group="traffic"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.groups == 1 and self.group_seconds != _USUAL_GROUP_SECONDS:
            raise wrong(
                "group_seconds",
                f"{self.group_seconds:g} s, but one group has all connections; leave it out, or give more groups",
            )
        ramp = 0.0 if self.conditions is None else self.conditions.ramp_seconds
        if ramp + self.trial_seconds > LONGEST_PHASE_SECONDS:
            raise wrong(
                "group_seconds",
                f"{self.group_seconds:g} s between {self.groups} groups, so a trial takes "
                f"{ramp + self.trial_seconds:,.0f} s, more than {LONGEST_PHASE_SECONDS:,.0f} s; choose fewer",
            )
        if self.groups > self.connections:
            raise wrong("groups", f"{self.groups} of {self.connections} connections; use fewer")
        if self.groups > 1 and self.loss_tolerance:
            raise wrong(
                "loss_tolerance",
                f"{in_percent(self.loss_tolerance)} of all frames of a trial, most of which are sent before the last "
                "group begins; leave it out",
            )
        if self.conditions is not None and self.reading_order != "pseudorandom":
            raise wrong(
                "reading_order",
                f"{self.reading_order}, but modifiers and groups need pseudorandom frames; leave it out",
            )

    @property
    def conditions(self) -> Modifiers | None:
        """Conditions beside the rates; None = there are none."""
        if self.modifiers == "none" and self.groups == 1:
            return None
        return Modifiers(self.modifiers, self.groups, self.group_seconds)

    @property
    def test_share(self) -> float:
        """Share of the frames sent that are test frames, above 0: broadcasts take the place of the others."""
        broadcasts = self.conditions is not None and self.conditions.broadcast
        return 1 - 1 / BROADCAST_EVERY if broadcasts else 1.0

    @property
    def sent_seconds(self) -> float:
        """Seconds of phase 2, with the beginnings of all groups."""
        return self.phase2(1.0, self.phase2_seconds).seconds

    def phase2(self, rate: float, seconds: float) -> Phase2Plan:
        """Phase 2 at this rate of test frames, for these seconds after the beginning of the last group."""
        conditions = self.conditions or Modifiers()
        plan = super().phase2(rate / self.test_share, seconds + conditions.ramp_seconds)
        return replace(plan, modifiers=self.conditions)

    def notes(self) -> list[Note]:
        """Return notes on the conditions, too."""
        notes, conditions = super().notes(), self.conditions
        if conditions is None:
            return notes
        texts = [f"each {BROADCAST_EVERY}th frame is a broadcast"] if conditions.broadcast else []
        texts += ["an ICMP echo request to the device each second"] if conditions.queries else []
        if self.groups > 1:
            texts.append(f"{self.groups} groups of connections, one more each {self.group_seconds:g} s")
        return [*notes, *(Note("settings", text) for text in texts)]


def left_in(state: TcpState, plan: TrialPlan, rate: float) -> TrialPlan:
    """Return a trial that leaves its connections in a state.

    Before them the plan has phase 1 alone. Phase 2, at `rate` connections/s, sends the SYN-ACK of each ("half-open"),
    or closes each ("fin", "rst").
    """
    if state == "established":
        return plan
    seconds = plan.connections / rate
    phase2 = Phase2Plan(initiator_rate=rate, responder_rate=0.0, seconds=seconds)
    if state == "half-open":
        phase2 = Phase2Plan(initiator_rate=0.0, responder_rate=rate, seconds=seconds, reading_order="once")
    return replace(plan, phase2=phase2)


SettingsT = TypeVar("SettingsT", bound=TrialSettings)

#: What both must have alike, so that the result of one holds for the same device, frames and connections as the other.
_ALIKE_GROUPS: Final = (TrialSettings, Phase2Settings)
#: Trials of a prerequisite search may be shorter than trials whose delays or losses are reported.
LONGEST_FIRST_SECONDS = 2.0
#: But with the profile that takes the RFCs to the letter, what is measured first is literal, too.
LITERAL: Final[Profile] = "rfc"


def inner(kind: type[SettingsT], settings: TrialSettings, **own: Any) -> SettingsT:
    """Settings of a measurement that another one needs first: once, in trials of at most 2 s, with `rfc` 60 s."""
    alike = [group for group in _ALIKE_GROUPS if isinstance(settings, group) and issubclass(kind, group)]
    shared = {item.name: getattr(settings, item.name) for group in alike for item in dataclasses.fields(group)}
    if "trial_seconds" in shared:
        longest = COMMON[LITERAL]["trial_seconds"] if settings.profile == LITERAL else LONGEST_FIRST_SECONDS
        shared["trial_seconds"] = min(shared["trial_seconds"], longest)
    # What is demanded of a figure is not demanded of another one.
    return kind(**{**shared, "repeat": 1, "at_least": None, "at_most": None, **own})


def measure_first(
    metric: str, runner: TrialRunner, settings: TrialSettings, *, share: float | None = None, **own: Any
) -> MeasurementResult:
    """Measure a metric that the runner's measurement needs first; the same observer receives its trials.

    Of the remaining time it gets a `share`, 0 < share <= 1, where a bound suffices: then the result may be limited by
    the time. None = the search must end within all of it. Raises TimeUpError with the bounds found so far.
    """
    procedure = procedures.get(metric)
    inner_settings = inner(procedure.settings, settings, **own)
    budget = runner.budget if share is None else runner.budget.part(share)
    try:
        result = procedure.measure(runner.measurer, inner_settings, runner.observe, budget)
    except TimeUpError as error:
        needed = TimeUpError(f"of the {metric} that it needs first: {error}")
        needed.remedy = error.remedy
        raise needed from None
    undecided = [note for note in result.notes if note.word == "undecided"]
    if undecided and share is None:
        raise TimeUpError(f"the {metric} that it needs first is {undecided[0]}")
    return result


@dataclass(frozen=True, kw_only=True)
class DrawSettings(TrialSettings):
    """Settings of a metric whose phase 1 may draw four tuples."""

    draws: int | None = chosen(
        None,
        "frames of phase 1 with order with-replacement; may exceed the number of four tuples",
        "frames",
        (1, MAXIMUM_CONNECTIONS),
        default="the number of connections",
        group="traffic",
    )
    four_tuples: int | None = chosen(
        None, "four tuples to draw from", group="traffic", default="the number of connections"
    )

    @property
    def phase1_frames(self) -> int:
        """Number of draws where phase 1 draws, otherwise the number of connections."""
        return self.draws if self.draws is not None and self.order == DRAWN else self.connections

    @property
    def held_at_least(self) -> int:
        """N, or as many as the draws are expected to open."""
        return max(self.connections, round(expected_connections(self._drawn, self.space)))

    def held_at_most(self, top: float) -> int:  # noqa: ARG002 - the draws are as many at every load
        """N, or as many as the draws can open."""
        return max(self.connections, min(self._drawn, self.space))

    def most_opened(self, top: float, sources: int, timeout: int | None) -> int:
        """All that are opened in turn, or all draws."""
        return max(super().most_opened(top, sources, timeout), self._drawn)

    def fewer_by(self, most: int) -> Mapping[str, Mapping[str, Any]]:
        """Draws, too, where their number was chosen."""
        return {**super().fewer_by(most), **({} if self.draws is None else {"fewer --draws": {"draws": 1}})}

    @property
    def _drawn(self) -> int:
        """Number of draws; 0 = nothing is drawn."""
        return (self.draws or self.connections) if self.always_draws or self.order == DRAWN else 0

    @property
    def space(self) -> int:
        """S, the number of four tuples to choose from."""
        return self.four_tuples or self.connections

    @property
    def expected_connections(self) -> float:
        """Expected number of connections after phase 1."""
        return expected_connections(self.phase1_frames, self.space) if self.order == DRAWN else float(self.connections)


def expected_connections(draws: int, space: int) -> float:
    """Expected number of distinct four tuples of `space` after `draws` independent draws."""
    return -space * math.expm1(draws * math.log1p(-1 / space)) if space > 1 else 1.0


def expected_new(draws: int, space: int) -> float:
    """Probability that the next draw selects a four tuple not drawn before."""
    return math.exp(draws * math.log1p(-1 / space)) if space > 1 else 0.0


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
        intended = sum(counts.intended_frames for counts in streams)
        reason = f"phase 2: {offered} frames were offered instead of {intended}"
        return replace(outcome, verdict=Verdict.INVALID, reason=reason, limited_by="tester", failed_phase=None)
    if lost:
        return replace(outcome, reason=f"phase 2: {lost} of {offered} frames lost", failed_phase=2)
    return replace(outcome, verdict=Verdict.PASS, reason="", limited_by=None, failed_phase=None)
