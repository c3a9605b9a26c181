# SPDX-License-Identifier: Apache-2.0
"""What one trial left: raw counts, the device's own figures before and after, judged and as it is recorded."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from natgauge.counts import (
    counts_of,
    delays_by_direction,
    device_stalled_seconds,
    facts_of,
    phase2_counts,
    stalls_of,
)
from natgauge.facts import TrialEvidence
from natgauge.measurer import MOST_TOGETHER, Counts, Direction, Restart, TrialOutcome, TrialPlan
from natgauge.trials import TrialRequest, TrialResult, phase1_of
from natgauge.verdicts import judge
from natgauge.words import Placement

#: What a server's recipe calls queries that were lost before its sockets (duts/common/far-side.toml).
SOCKET: Final = "socket"
#: Stands for phase 1 in trials that have none.
_NO_FRAMES: Final = Counts(intended=0, offered=0, received=0)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one trial left, before it is judged.

    Attributes:
        request: what the engine was asked.
        result: what it counted.
        count_before: the device's own count before phase 1; None where it cannot tell.
        count_after: the same after the trial.
        strays: connections at parts of the device that must hold none.
        dropped_before: frames dropped so far at places of the lab, and those of the engine's self-test.
        dropped_after: the same after the trial.
        faults: frames the device refused during the trial, by cause.
        device_error: what the device said instead of answering; empty when it did, None where it is not ours.
        restart: of the device in the middle of the trial.
        forwards: whether single frames came back after it; None = not tried, or `unprobed` says why.
        unprobed: what kept the tester from sending single frames after it, in words; empty = nothing did.
        server_refused: queries that a real server did not answer as it should, by cause; none where there is none.
    """

    request: TrialRequest
    result: TrialResult
    count_before: int | None
    count_after: int | None
    dropped_before: Mapping[str, int]
    dropped_after: Mapping[str, int]
    faults: Mapping[str, int]
    device_error: str | None
    strays: Mapping[str, int] = field(default_factory=dict)
    restart: Restart | None = None
    forwards: bool | None = None
    unprobed: str = ""
    server_refused: Mapping[str, int] = field(default_factory=dict)

    @property
    def dropped(self) -> dict[str, int]:
        """Frames dropped during the trial, by place."""
        return {place: count - self.dropped_before.get(place, 0) for place, count in self.dropped_after.items()}

    @property
    def _together(self) -> int:
        """Frames that leave together."""
        return self.request.senders.batch or MOST_TOGETHER

    def judged(
        self, plan: TrialPlan, placement: Placement, table_limit: int | None, *, taps: bool = False
    ) -> TrialOutcome:
        """How the trial ended.

        Args:
            plan: what was tried.
            placement: of the lab.
            table_limit: the most connections the device is set to hold; None where unknown.
            taps: the tester's ports are taps of a guest.
        """
        result = self.result
        phase1 = _NO_FRAMES if plan.stateless else counts_of(phase1_of(result))
        phase2 = phase2_counts(result)
        judgement = judge(
            TrialEvidence(
                placement=placement,
                connections=0 if plan.stateless else plan.connections,
                stored=result.state_table.stored,
                phase1=phase1,
                phase2=phase2,
                preparation=plan.phase2 is not None and plan.phase2.reading_order != "once",
                each_once=plan.order != "with-replacement",
                table_count_before=self.count_before,
                table_count_after=self.count_after,
                table_limit=table_limit,
                strays=self.strays,
                cpus=stalls_of(result),
                ports={
                    "Initiator": facts_of(result.ports.initiator, tap=taps),
                    "Responder": facts_of(result.ports.responder, tap=taps),
                },
                dropped_before=self.dropped_before,
                dropped_after=self.dropped_after,
                lag_share=plan.lag_share,
                loss_tolerance=plan.loss_tolerance,
                device_alive=None if self.device_error is None else not self.device_error,
                device_error=self.device_error or "",
                forwards=self.forwards,
                unprobed=self.unprobed,
                restarted=plan.restart_at_seconds is not None,
                server_dropped=self.server_refused.get(SOCKET, 0),
            )
        )
        return TrialOutcome(
            verdict=judgement.verdict,
            reason=judgement.reason,
            phase1=phase1,
            phase2=phase2,
            stored=result.state_table.stored,
            table_count=self.count_after,
            delays=delays_by_direction(result, self._together if placement == "shared" else None),
            restart=self.restart,
            disturbed=judgement.disturbed,
            excused=judgement.excused,
            excused_frames=judgement.excused_frames,
            excused_by_direction=dict(judgement.excused_by_direction),
            device_stalled_seconds=device_stalled_seconds(result),
            limited_by=judgement.limited_by,
            failed_phase=judgement.failed_phase,
            notes=(
                *judgement.notes,
                *_fault_notes("device", self.faults),
                *_fault_notes("server", self.server_refused),
                *_background_notes(phase2),
                *_query_notes(phase2),
            ),
        )

    def record(
        self, plan: TrialPlan, outcome: TrialOutcome, *, placement: Placement, began: float, seconds: float
    ) -> Mapping[str, object]:
        """The trial as it is kept: `began` in seconds since 1970, `seconds` it took in all."""
        return {
            **_judgement(outcome),
            "began": began,
            "seconds": seconds,
            "placement": placement,
            "plan": plan,
            "device_count_before": self.count_before,
            "device_count_after": self.count_after,
            "device_faults": self.faults,
            "server_refused": self.server_refused,
            "forwards_afterwards": self.forwards,
            "restart": self.restart,
            "dropped": self.dropped,
            "request": self.request,
            "result": self.result,
        }


def record_of_none(plan: TrialPlan, outcome: TrialOutcome, placement: Placement, began: float) -> Mapping[str, object]:
    """A trial that was never begun, as it is kept."""
    seconds = time.time() - began
    trial = {"began": began, "seconds": seconds, "placement": placement, "plan": plan, "request": None, "result": None}
    return {**_judgement(outcome), **trial}


def _judgement(outcome: TrialOutcome) -> dict[str, object]:
    names: tuple[str, ...] = (
        "verdict",
        "reason",
        "limited_by",
        "disturbed",
        "excused",
        "excused_frames",
        "asked_again",
    )
    names = (*names, "notes", "failed_phase")
    return {name: getattr(outcome, name) for name in names}


def _background_notes(phase2: Mapping[Direction, Counts]) -> list[str]:
    """Which part of a loss was native IPv6."""
    return [
        f"{counts.background - counts.background_received} of {counts.background} background frames from the "
        f"{direction.value.capitalize()} were lost"
        for direction, counts in phase2.items()
        if counts.background_received < counts.background
    ]


def _query_notes(phase2: Mapping[Direction, Counts]) -> list[str]:
    """Which way queries were lost, where answers were missing."""
    return [
        f"{counts.lost} of {counts.offered} queries were not answered right and in time: {counts.questions} had come "
        f"to the far side, {counts.wrong_answers} were answered wrong, {counts.late} late"
        for counts in phase2.values()
        if counts.questions is not None and counts.lost
    ]


def _fault_notes(who: str, faults: Mapping[str, int]) -> list[str]:
    return [f"the {who} counted {number} x {name}" for name, number in faults.items() if number > 0]
