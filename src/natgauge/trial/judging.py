# SPDX-License-Identifier: Apache-2.0
"""The outcome of a trial, and the trial's record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from natgauge.agreement import MessageCounts, StreamCounts
from natgauge.counts import delays_by_direction, device_stalled_seconds, other_traffic_of
from natgauge.measurer import Direction, TrialOutcome, TrialPlan
from natgauge.one_trial import Trial
from natgauge.trial.device_signs import signs_of
from natgauge.verdicts import Limits, judge
from natgauge.words import Placement


def judged(trial: Trial, limits: Limits) -> TrialOutcome:
    """Return the verdict on a trial, with its counts and delays."""
    plan, result, readings = trial.plan, trial.result, trial.readings
    phase1, phase2 = trial.phase1, trial.phase2
    judgement = judge(trial, limits)
    remarks = (
        *judgement.remarks,
        *_fault_remarks("device", readings.faults),
        *_fault_remarks("server", readings.server_refused),
        *_background_remarks(phase2),
        *_message_remarks([phase1, *phase2.values()]),
        *_foreign_remarks(trial),
        *map(str, signs_of(result)),
    )
    return TrialOutcome(
        **judgement.parts | {"remarks": remarks},
        phase1=phase1,
        phase2=phase2,
        frame_timeout_seconds=plan.frame_timeout_seconds,
        stored=trial.stored,
        readings=readings,
        delays=delays_by_direction(result, trial.request.senders.batch if limits.placement == "shared" else None),
        restart=trial.restart,
        device_stalled_seconds=device_stalled_seconds(result),
        other_traffic=other_traffic_of(result),
    )


def record_of(  # noqa: PLR0913 - what is kept of a trial
    plan: TrialPlan,
    outcome: TrialOutcome,
    trial: Trial | None,
    *,
    placement: Placement,
    began: float,
    seconds: float,
) -> Mapping[str, object]:
    """Return the trial's record, as `trials.jsonl` stores it.

    Args:
        trial: the trial before its verdict; None = the trial did not begin.
        began: start time, seconds since 1970.
    """
    common = {**_judgement(outcome), "began": began, "seconds": seconds, "placement": placement, "plan": plan}
    if trial is None:
        return {**common, "request": None, "result": None}
    return {
        **common,
        **trial.stored_readings,
        "restart": trial.restart,
        "request": trial.request,
        "result": trial.result,
    }


def _judgement(outcome: TrialOutcome) -> dict[str, object]:
    names: tuple[str, ...] = (
        "verdict",
        "reason",
        "limited_by",
        "disturbed",
        "excused",
        "excused_frames",
        "command_failures",
    )
    names = (*names, "raised_timeout", "remarks", "failed_phase", "cause")
    return {name: getattr(outcome, name) for name in names}


def _background_remarks(phase2: Mapping[Direction, StreamCounts]) -> list[str]:
    """Remarks on the part of a loss that was native IPv6."""
    background = {
        direction: (counts.background_frames or 0, counts.background_received or 0)
        for direction, counts in phase2.items()
    }
    return [
        f"{sent - received} of {sent} background frames from the {direction.value.capitalize()} were lost"
        for direction, (sent, received) in background.items()
        if received < sent
    ]


def _message_remarks(streams: Iterable[StreamCounts]) -> list[str]:
    """Remarks on the messages that were lost, where frames are followed by reactions."""
    return [
        f"{counts.lost} of {counts.offered_frames} exchanges of messages were not completed right and in time "
        f"({'; '.join(map(_arrived, counts.messages))}; {counts.late} late)"
        for counts in streams
        if len(counts.messages) > 1 and counts.lost
    ]


def _foreign_remarks(trial: Trial) -> list[str]:
    """Remarks on frames at the tester's ports that were not the trial's, where they are more than usual."""
    if not other_traffic_of(trial.result).is_doubted:
        return []
    return [f"{port.foreign} frames at the {name}'s port were not the trial's" for name, port in trial.ports.items()]


def _arrived(message: MessageCounts) -> str:
    wrong = f", {message.wrong} with wrong content" if message.wrong else ""
    return f"{message.name}: {message.received} received{wrong}"


def _fault_remarks(who: str, faults: Mapping[str, int]) -> list[str]:
    return [f"the {who} counted {number} x {name}" for name, number in faults.items() if number > 0]
