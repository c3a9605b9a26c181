# SPDX-License-Identifier: Apache-2.0
"""Frames over established connections: the settings of phase 2 and its trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from natgauge.ethernet import BROADCAST_EVERY
from natgauge.figure_text import in_percent, number
from natgauge.inputs.checks import wrong
from natgauge.inputs.input import chosen, described
from natgauge.measurer import Ability
from natgauge.notes import Note
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.trials import LONGEST_PHASE_SECONDS, Beside, Modifiers, Phase2Plan, TrialPlan
from natgauge.words import SENDING, TcpState, sending

Directions = Literal["both", "up", "down"]
#: What of `ReadingOrder` may be chosen; "once" belongs to validation.
Reading = Literal["pseudorandom", "increasing"]

#: RFC 2544 section 24.
RFC_TRIAL_SECONDS = 60.0
LEAST_TRIAL_SECONDS = 0.01
LONGEST_TRIAL_SECONDS = 3600.0
LEAST_FOREGROUND = 0.001
LEAST_OF_A_DIRECTION = 0.01
_MOST_GROUPS: Final = 1000
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
    directions: Directions = chosen(
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
        """Refuse a share of one direction, and an order of frames that has no effect because there is no table."""
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
        (1, _MOST_GROUPS),
        group="traffic",
    )
    group_seconds: float = chosen(
        _USUAL_GROUP_SECONDS, "time between the beginnings of two groups", "s", (0.01, 600), group="traffic"
    )

    def __post_init__(self) -> None:
        """Refuse a time between groups where there is one, more groups than connections, and another order."""
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
