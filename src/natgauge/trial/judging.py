# SPDX-License-Identifier: Apache-2.0
"""The verdict on a trial, with remarks on what was seen beside it, such as what a device does to TCP.

The tester's segments carry their connection in the sequence numbers (`bpf/tcp.h`). A device that changes these numbers,
or that opens connections itself, cannot be measured, and is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from natgauge.agreement.generated import DeviceSigns, MessageCounts, StreamCounts, TrialResult
from natgauge.agreement.trial import phase1_of
from natgauge.figure_text import with_noun
from natgauge.trials import Direction, Trial
from natgauge.verdicts import Limits, judge
from natgauge.words import origin


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign, the number of segments that show it, > 0, and what it says of the device."""

    segments: int
    means: str

    def __str__(self) -> str:
        return f"{self.segments} {self.means}"


def signs_of(result: TrialResult) -> tuple[Sign, ...]:
    """Return the signs of a trial; empty where it had no phase 1 with TCP."""
    initiator, responder = result.ports.initiator.device_signs, result.ports.responder.device_signs
    if initiator is None or responder is None or result.phase1 is None:
        return ()
    return tuple(sign for sign in _signs_of(result, initiator, responder) if sign.segments)


def _signs_of(result: TrialResult, initiator: DeviceSigns, responder: DeviceSigns) -> Iterator[Sign]:
    opening, *reactions = phase1_of(result).messages
    # The Responder answers each SYN that it receives once, where it answers SYNs at once.
    answered, wrong = (reactions[0].received, reactions[0].wrong) if reactions else (0, 0)
    # A SYN proxy cannot know the Responder's sequence number, so one with the right number is a copy.
    own = min(wrong, max(0, answered + wrong - opening.received))
    yield Sign(
        max(0, answered - opening.received),
        "more SYN-ACKs arrived than the Responder sent: the gateway duplicates them",
    )
    yield Sign(own, "SYN-ACKs were not the Responder's: the gateway answered SYNs itself, as a SYN proxy does")
    for signs, side in ((initiator, "Initiator"), (responder, "Responder")):
        yield Sign(signs.resets, f"resets arrived at the {side}: the gateway refuses connections")
    changed = initiator.renumbered + responder.renumbered + wrong - min(own, wrong)
    yield Sign(changed, "segments arrived with other sequence numbers: the gateway changes them")
    yield Sign(
        initiator.restamped,
        "SYN-ACKs arrived with other time stamps: the gateway changes them, so delays by TCP are not known",
    )


def judged(trial: Trial, limits: Limits) -> Trial:
    """Return the trial with its verdict, and with remarks on what was seen beside it."""
    trial, readings = judge(trial, limits), trial.readings
    remarks = (
        *trial.remarks,
        *_fault_remarks("device", readings.faults),
        *_fault_remarks("server", readings.server_refused),
        *_background_remarks(trial.phase2),
        *_query_remarks(trial),
        *_source_remarks(trial),
        *_message_remarks(trial.streams),
        *_foreign_remarks(trial),
        *map(str, signs_of(trial.counted)),
    )
    return replace(trial, remarks=remarks)


def _background_remarks(phase2: Mapping[Direction, StreamCounts]) -> list[str]:
    background = {
        direction: (counts.background_frames or 0, counts.background_received or 0)
        for direction, counts in phase2.items()
    }
    return [
        f"{sent - received} of {sent} background frames {origin(direction)} were lost"
        for direction, (sent, received) in background.items()
        if received < sent
    ]


def _query_remarks(trial: Trial) -> list[str]:
    queries = None if trial.result is None else trial.result.ports.initiator.queries
    if queries is None or queries.answered >= queries.sent:
        return []
    return [f"{queries.sent - queries.answered} of {queries.sent} management queries were not answered"]


def _source_remarks(trial: Trial) -> list[str]:
    """Remarks on connections that the device gave up and made again, which RFC 9693 section 4.10 lets pass."""
    remapped = 0 if trial.result is None else trial.result.state_table.remapped
    text = (
        f"{with_noun(remapped, 'frames of established connections')} came with another outside address or port: the "
        "gateway had forgotten the connections, and made them again"
    )
    return [text] if remapped else []


def _message_remarks(streams: Iterable[StreamCounts]) -> list[str]:
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
