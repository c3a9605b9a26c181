# SPDX-License-Identifier: Apache-2.0
"""The verdict on a trial, with remarks on what was seen beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from natgauge.agreement import MessageCounts, StreamCounts
from natgauge.trial.device_signs import signs_of
from natgauge.trials import Direction, Trial
from natgauge.verdicts import Limits, judge


def judged(trial: Trial, limits: Limits) -> Trial:
    """Return the trial with its verdict, and with remarks on what was seen beside it."""
    trial, readings = judge(trial, limits), trial.readings
    remarks = (
        *trial.remarks,
        *_fault_remarks("device", readings.faults),
        *_fault_remarks("server", readings.server_refused),
        *_background_remarks(trial.phase2),
        *_message_remarks(trial.streams),
        *_foreign_remarks(trial),
        *map(str, signs_of(trial.counted)),
    )
    return replace(trial, remarks=remarks)


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
    if not trial.other_traffic.is_doubted:
        return []
    return [f"{port.foreign} frames at the {name}'s port were not the trial's" for name, port in trial.ports.items()]


def _arrived(message: MessageCounts) -> str:
    wrong = f", {message.wrong} with wrong content" if message.wrong else ""
    return f"{message.name}: {message.received} received{wrong}"


def _fault_remarks(who: str, faults: Mapping[str, int]) -> list[str]:
    return [f"the {who} counted {number} x {name}" for name, number in faults.items() if number > 0]
