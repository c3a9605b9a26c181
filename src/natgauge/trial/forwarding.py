# SPDX-License-Identifier: Apache-2.0
"""Check that a device forwards: send a few frames in each direction, slowly, and see which came back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from natgauge.agreement.generated import StreamCounts, TrialResult
from natgauge.agreement.trial import phase1_of
from natgauge.causes.cause import Cause
from natgauge.errors import BrokenError
from natgauge.trial.judging import signs_of
from natgauge.trials import Phase2Plan, TrialPlan
from natgauge.words import Query

#: Number of tries where frames are missing: a device that loses 1 % of its frames passes in 99 % of cases.
HANDFULS: Final = 3
_FRAMES: Final = 8
_RATE: Final = 100.0
#: A device that spoils and copies every frame sends two wrong frames for each.
_MOST_WRONG: Final = 2
#: Kinds of frames that are not counted as received. Anybody may send them.
_FRAGMENTS, _TAGGED = "fragments", "with a VLAN tag"
_IN_ADDITION: Final = frozenset({_FRAGMENTS, _TAGGED})


def probe(connections: int, query: Query | None = None) -> TrialPlan:
    """Return the plan of a trial with frames of a few connections, at most `connections`.

    Args:
        query: type of queries that the device answers itself; None = it forwards frames.
    """
    few = min(_FRAMES, connections)
    if query is not None:
        return TrialPlan(few, _RATE, Phase2Plan(_RATE, 0.0, few / _RATE), stateless=True, query=query)
    return TrialPlan(few, _RATE, Phase2Plan(_RATE, _RATE, few / _RATE))


def whole(result: TrialResult, *, last: bool, faults: Mapping[str, int], stateless: bool = False) -> bool:
    """Return whether every frame of a probe came back.

    Args:
        last: whether this is the last try, so that missing frames are an error.
        faults: frames that the device refused during the probe, by its own names of causes.
    """
    refused = "".join(f"; the device counted {number} x {cause}" for cause, number in faults.items() if number > 0)
    signs = "".join(f"; {sign}" for sign in signs_of(result))
    for name, counts in _streams(result, stateless=stateless).items():
        if counts is None:
            continue
        if counts.received_frames > counts.offered_frames:
            raise BrokenError(
                f"device sends frames that the tester did not send: {name}: {_received_of(counts)}; "
                "look at what else runs on it"
            )
        # A device that damages some frames can be measured. With a device that damages every frame, every trial fails.
        # Fragments and frames with a tag are none of those that came back: where all did, they are other traffic.
        wrong = sum(number for kind, number in _wrong(counts).items() if kind not in _IN_ADDITION)
        if counts.received_frames and wrong > _MOST_WRONG * counts.offered_frames:
            raise BrokenError(
                f"device sends more wrong frames than it received: {name}: {_received_of(counts)}; look at what else "
                "runs on it"
            )
        if counts.received_frames and wrong >= counts.offered_frames:
            raise BrokenError(f"device spoils every frame: {name}: {_received_of(counts)}; look at its rules")
        if counts.received_frames < counts.offered_frames:
            if last or not counts.received_frames:
                raise BrokenError(
                    f"device does not forward: {name}: {_received_of(counts)}{_port_counts(result)}{refused}{signs}"
                )
            return False
    return True


def _streams(result: TrialResult, *, stateless: bool) -> dict[str, StreamCounts | None]:
    phase2 = result.phase2
    return {
        "phase 1, Initiator to Responder": None if stateless else phase1_of(result),
        "phase 2, Initiator to Responder": phase2.initiator if phase2 else None,
        "phase 2, Responder to Initiator": phase2.responder if phase2 else None,
    }


def _wrong(counts: StreamCounts) -> dict[str, int]:
    """Return the numbers of wrong frames that came back, by kind."""
    return {
        "damaged": counts.damaged,
        _FRAGMENTS: counts.fragments or 0,
        _TAGGED: counts.tagged or 0,
        "without a UDP checksum": counts.without_checksum or 0,
        "untranslated": counts.untranslated,
        "mistranslated": counts.mistranslated,
        "duplicated": counts.duplicates,
    }


def _received_of(counts: StreamCounts) -> str:
    faults = "".join(f", {number} {name}" for name, number in {"late": counts.late, **_wrong(counts)}.items() if number)
    return f"{counts.received_frames} of {counts.offered_frames} frames came back{faults}"


def _port_counts(result: TrialResult) -> str:
    """Return the frames that the tester's ports refused, failed to redirect, or received from others; empty = none."""
    sides = (("Initiator", result.ports.initiator), ("Responder", result.ports.responder))
    found = [
        f"{name} port: {count} {kind}"
        for name, port in sides
        for kind, count in (
            ("refused", port.refused),
            ("redirect errors", port.redirect_errors),
            ("foreign frames", port.foreign),
        )
        if count
    ]
    return "".join(f"; {each}" for each in found)


def because(cause: Cause | None) -> str:
    """Return the cause as a part of a sentence, and what changes it; empty = not known."""
    if cause is None or cause.kind == "not known" or not cause.words:
        return ""
    return f"; cause: {cause.words}; to change it: {cause.remedy}"
