# SPDX-License-Identifier: Apache-2.0
"""What a device does to TCP besides translating it, by the segments that arrive at the tester's ports.

The tester's segments carry their connection in the sequence numbers (`bpf/tcp.h`). A device that changes these numbers,
or that opens connections itself, cannot be measured, and is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from natgauge.agreement import DeviceSigns, TrialResult, phase1_of


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign, the number of segments that show it, > 0, and what it says of the device."""

    segments: int
    means: str

    def __str__(self) -> str:
        """As a sentence."""
        return f"{self.segments} {self.means}"


def signs_of(result: TrialResult) -> tuple[Sign, ...]:
    """Return the signs of a trial; empty where it had no phase 1 with TCP."""
    initiator, responder = result.ports.initiator.device_signs, result.ports.responder.device_signs
    if initiator is None or responder is None or result.phase1 is None:
        return ()
    return tuple(sign for sign in _signs(result, initiator, responder) if sign.segments)


def _signs(result: TrialResult, initiator: DeviceSigns, responder: DeviceSigns) -> Iterator[Sign]:
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
