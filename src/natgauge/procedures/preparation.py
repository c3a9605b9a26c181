# SPDX-License-Identifier: Apache-2.0
"""What every measurement over established connections needs: a phase 1 that the device keeps up with.

Phase 1 must be safely below the device's connection rate (RFC 9693 section 4.2), which is taken from an earlier result
or measured roughly first. A trial whose phase 1 fails says nothing about phase 2: it is not counted, and phase 1 gets
slower. A stateless measurement has no phase 1 at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from natgauge.measurer import Ability, Measurer, Phase2Plan, TrialOutcome, TrialPlan, Verdict
from natgauge.procedures import connection_rate
from natgauge.procedures.progress import Observer
from natgauge.procedures.results import MeasurementResult
from natgauge.procedures.search import FULL
from natgauge.procedures.settings import SearchError, TrialSettings, about, in_range, inner, one_of, positive

Directions = Literal["both", "up", "down"]

#: Phase 1 runs at this share of the connection rate: twice as slow as the device can.
SAFE_SHARE = 0.5
#: Error of the connection rate when it is only measured to find a safe phase 1; small beside the safe share.
ROUGH_ERROR = SearchError(share=0.1)
#: After a failed phase 1 the next one is this much slower, this often at most.
SLOWER = 2.0
MOST_FAILED_PREPARATIONS = 4
#: RFC 2544 section 24.
RFC_TRIAL_SECONDS = 60.0
LONGEST_TRIAL_SECONDS = 3600.0
LEAST_FOREGROUND = 0.001
#: What a stateless trial's plan has as the rate of the phase 1 that it does not have.
NO_PHASE_1 = 1.0


@dataclass(frozen=True, kw_only=True)
class EstablishingSettings(TrialSettings):
    """Settings of a measurement that first establishes all connections.

    Attributes:
        connection_rate: the device's maximum connection establishment rate in connections/s; None = measured first.
    """

    connection_rate: float | None = field(
        default=None, metadata=about("connection rate of the device, measured first when not given", "connections/s")
    )

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        super().__post_init__()
        if self.connection_rate is not None:
            positive("connection rate", self.connection_rate, "connections/s")

    @property
    def has_phase1(self) -> bool:
        """Whether connections are established at all."""
        return True

    @property
    def measures_connection_rate(self) -> bool:
        """Whether the connection rate is measured on the way."""
        return self.has_phase1 and self.connection_rate is None

    def parameters(self) -> dict[str, Any]:
        """The settings, and the time limit that frames have where the connection rate is measured on the way."""
        limit = None
        if self.measures_connection_rate:
            limit = inner(connection_rate.Settings, self).with_queue_bound().frame_timeout_seconds
        return {**super().parameters(), "connection_rate_timeout_seconds": limit}

    def phase1_plan(self, rate: float) -> TrialPlan:
        """A trial that establishes the connections at this rate and leaves them in the device's table."""
        return TrialPlan(
            connections=self.connections,
            phase1_rate=rate,
            order=self.order,
            frame_timeout_seconds=self.frame_timeout_seconds,
            loss_tolerance=self.loss_tolerance,
        )


@dataclass(frozen=True, kw_only=True)
class PreparedSettings(EstablishingSettings):
    """Settings of a measurement over established connections.

    Attributes:
        trial_seconds: nominal length of phase 2, 0.01 to 3600; RFC 2544 section 24 wants 60.
        directions: who sends in phase 2: both, up (Initiator only) or down (Responder only).
        stateless: no phase 1; for routing and stateless translation.
        foreground_share: share of the frames of phase 2 that are under test, 0.001 to 1; the others are native IPv6.
            RFC 8219 section 5.3 wants 1, 0.9, 0.5 and 0.1.
    """

    trial_seconds: float = field(default=2.0, metadata=about("length of phase 2", "s"))
    directions: Directions = field(default="both", metadata=about("who sends in phase 2: both, up or down"))
    stateless: bool = field(default=False, metadata=about("no phase 1: for devices that keep no connections"))
    foreground_share: float = field(
        default=1.0, metadata=about("share of frames under test; the others are native IPv6", "share")
    )

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        super().__post_init__()
        in_range("trial seconds", self.trial_seconds, 0.01, LONGEST_TRIAL_SECONDS, "s")
        one_of("directions", self.directions, get_args(Directions))
        in_range("foreground share", self.foreground_share, LEAST_FOREGROUND, 1)

    def needs(self) -> frozenset[Ability]:
        """As the settings say."""
        stateless = {Ability.STATELESS} if self.stateless else set()
        background = {Ability.BACKGROUND} if self.foreground_share < 1 else set()
        return super().needs() | stateless | background

    @property
    def has_phase1(self) -> bool:
        """Whether connections are established at all."""
        return not self.stateless

    @property
    def phase2_seconds(self) -> float:
        """As asked for."""
        return self.trial_seconds

    @property
    def active(self) -> int:
        """Directions that send."""
        return 2 if self.directions == "both" else 1

    def phase2(self, rate: float, seconds: float) -> Phase2Plan:
        """Phase 2 at this rate in each active direction."""
        return Phase2Plan(
            initiator_rate=rate if self.directions in {"both", "up"} else 0.0,
            responder_rate=rate if self.directions in {"both", "down"} else 0.0,
            seconds=seconds,
        )

    def plan(self, phase1_rate: float, rate: float, seconds: float) -> TrialPlan:
        """The trial that tries this rate in each active direction."""
        return TrialPlan(
            connections=self.connections,
            phase1_rate=phase1_rate,
            phase2=self.phase2(rate, seconds),
            order=self.order,
            frame_timeout_seconds=self.frame_timeout_seconds,
            loss_tolerance=self.loss_tolerance,
            stateless=self.stateless,
            foreground_share=self.foreground_share,
        )


class UnpreparableError(Exception):
    """Phase 1 cannot establish the connections; the outcome of the last trial says why."""

    def __init__(self, outcome: TrialOutcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


@dataclass(slots=True)
class Preparation:
    """The rate of phase 1, how often it failed in a row, and whether a slower one would help.

    Attributes:
        rate: of phase 1, in connections/s.
        connection_rate: what it was derived from.
        failures: failed ones in a row.
        hopeless: a slower phase 1 would fail, too.
        rough: the connection rate as measured first; None when it was given, or there is no phase 1.
    """

    rate: float
    connection_rate: float
    failures: int = 0
    hopeless: bool = False
    rough: MeasurementResult | None = None

    def judge(self, outcome: TrialOutcome) -> TrialOutcome:
        """Take a failed phase 1 out of the count, and slow down for the next trial."""
        if outcome.verdict is not Verdict.FAIL or outcome.failed_phase != 1:
            self.failures = 0
            return outcome
        self.failures += 1
        self.hopeless = self.failures > MOST_FAILED_PREPARATIONS or outcome.limited_by in FULL
        if not self.hopeless:
            self.rate /= SLOWER
        return replace(outcome, verdict=Verdict.INVALID, reason=f"phase 2 was not prepared: {outcome.reason}")

    def note(self) -> list[str]:
        """How fast phase 1 was, if there was one."""
        if self.rate == NO_PHASE_1:
            return ["stateless: there was no phase 1"]
        share = self.rate / self.connection_rate
        return [f"phase 1 at {self.rate:.0f} connections/s, {share:.3g} of the connection rate"]


def prepare(measurer: Measurer, settings: EstablishingSettings, observe: Observer) -> Preparation:
    """Find a safe rate of phase 1; 0 when the device establishes no connections at any rate.

    Raises:
        NatgaugeError: a trial could not be run at all.
    """
    if not settings.has_phase1:
        return Preparation(NO_PHASE_1, NO_PHASE_1)
    if settings.connection_rate:
        return Preparation(settings.connection_rate * SAFE_SHARE, settings.connection_rate)
    rough = connection_rate.run(
        measurer, inner(connection_rate.Settings, settings, error=ROUGH_ERROR, confirm=False), observe
    )
    found = rough.summary.median
    return Preparation(found * SAFE_SHARE, found, rough=rough)


def phase2_notes(settings: PreparedSettings) -> list[str]:
    """What its frames are where not all are under test, and that trials are shorter than the RFC wants."""
    notes = []
    if settings.foreground_share < 1:
        notes.append(f"{settings.foreground_share:.4g} of the frames under test, the others native IPv6")
    if settings.trial_seconds < RFC_TRIAL_SECONDS:
        notes.append(f"trials of {settings.trial_seconds:g} s; RFC 2544 section 24 wants {RFC_TRIAL_SECONDS:g} s")
    return notes
