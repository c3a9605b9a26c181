# SPDX-License-Identifier: Apache-2.0
"""The outcome of a trial from its evidence, and the trial's record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

from natgauge.agreement import NO_FRAMES, MessageCounts, StreamCounts, TrialResult, phase1_of
from natgauge.causes.hops import WRONG, TrialHops, hops_of
from natgauge.counts import (
    delays_by_direction,
    device_stalled_seconds,
    icmp_errors_of,
    other_traffic_of,
    phase2_streams,
    port_drops_of,
    stalls_of,
)
from natgauge.measurer import Direction, TrialOutcome, TrialPlan
from natgauge.readings import Readings
from natgauge.trial.device_signs import signs_of
from natgauge.trial.trial import Trial
from natgauge.trial_evidence import TrialEvidence
from natgauge.verdicts import judge
from natgauge.words import MAXIMUM_CONNECTIONS, Placement

#: Names of readings in a trial's record, where they are others.
_STORED_AS: Final = {
    "count_before": "device_count_before",
    "count_after": "device_count_after",
    "established": "device_established",
    "faults": "device_faults",
    "forwards": "forwards_afterwards",
}
#: Readings that other fields of the record contain, or the reason of the verdict.
_UNSTORED: Final = frozenset({"strays", "dropped_before", "dropped_after", "device_error", "unprobed", "free_octets"})
#: Counts of a stream that its hops follow from.
_COUNTED: Final = {"intended_frames": True, "skipped": True, "received_frames": True, **dict.fromkeys(WRONG, True)}
_ASKED: Final = {"initiator": {"family", "source_addresses"}, "responder": {"family"}, "translation": {"pool"}}
_OPENING: Final = {**_COUNTED, "messages": True}
_BOTH_COUNTED: Final = {"initiator": _COUNTED, "responder": _COUNTED}


def judged(
    trial: Trial,
    plan: TrialPlan,
    placement: Placement,
    table_limit: int | None,
    *,
    four_tuples: int = MAXIMUM_CONNECTIONS,
) -> TrialOutcome:
    """Return the verdict on a trial, with its counts and delays.

    Args:
        table_limit: limit of the device's table; None = not known.
    """
    result, readings = trial.result, trial.readings
    phase1 = NO_FRAMES if plan.stateless else phase1_of(result)
    phase2 = phase2_streams(result)
    judgement = judge(
        TrialEvidence(
            placement=placement,
            connections=0 if plan.stateless else min(plan.connections, four_tuples),
            stored=result.state_table.stored,
            phase1=phase1,
            phase2=phase2,
            readings=readings,
            preparation=plan.phase2 is not None and plan.phase2.reading_order != "once",
            each_once=plan.order != "with-replacement",
            table_limit=table_limit,
            cpus=stalls_of(result),
            ports={
                "Initiator": port_drops_of(result.ports.initiator, tap=readings.taps),
                "Responder": port_drops_of(result.ports.responder, tap=readings.taps),
            },
            lag_share=plan.lag_share,
            loss_tolerance=plan.loss_tolerance,
            frame_timeout_seconds=plan.frame_timeout_seconds,
            restarted=plan.restart_at_seconds is not None,
            closed=plan.close is not None,
            hops=_hops_of(trial),
            icmp_errors=icmp_errors_of(result),
        )
    )
    remarks = (
        *judgement.remarks,
        *_fault_remarks("device", readings.faults),
        *_fault_remarks("server", readings.server_refused),
        *_background_remarks(phase2),
        *_message_remarks([phase1, *phase2.values()]),
        *_foreign_remarks(result),
        *map(str, signs_of(result)),
    )
    return TrialOutcome(
        **judgement.parts | {"remarks": remarks},
        phase1=phase1,
        phase2=phase2,
        frame_timeout_seconds=plan.frame_timeout_seconds,
        stored=result.state_table.stored,
        readings=readings,
        delays=delays_by_direction(result, trial.request.senders.batch if placement == "shared" else None),
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
        **_stored(trial.readings),
        "restart": trial.restart,
        "request": trial.request,
        "result": trial.result,
    }


def _stored(readings: Readings) -> dict[str, object]:
    """Return the readings as a trial's record has them."""
    named = {field.name: getattr(readings, field.name) for field in fields(readings) if field.name not in _UNSTORED}
    return {"dropped": readings.dropped, **{_STORED_AS.get(name, name): value for name, value in named.items()}}


def _hops_of(trial: Trial) -> TrialHops:
    """Return the hops of a trial, from the same fields as those of its record."""
    record: Mapping[str, Any] = {
        **_stored(trial.readings),
        "restart": trial.restart,
        "request": trial.request.model_dump(include=_ASKED),
        "result": trial.result.model_dump(
            include={"phase1": _OPENING, "phase2": _BOTH_COUNTED, "ports": True, "state_table": {"by_source"}}
        ),
    }
    return hops_of(record)


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


def _foreign_remarks(result: TrialResult) -> list[str]:
    """Remarks on frames at the tester's ports that were not the trial's, where they are more than usual."""
    if not other_traffic_of(result).is_doubted:
        return []
    ports = {"Initiator": result.ports.initiator, "Responder": result.ports.responder}
    return [f"{port.foreign} frames at the {name}'s port were not the trial's" for name, port in ports.items()]


def _arrived(message: MessageCounts) -> str:
    wrong = f", {message.wrong} with wrong content" if message.wrong else ""
    return f"{message.name}: {message.received} received{wrong}"


def _fault_remarks(who: str, faults: Mapping[str, int]) -> list[str]:
    return [f"the {who} counted {number} x {name}" for name, number in faults.items() if number > 0]
