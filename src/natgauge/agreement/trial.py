# SPDX-License-Identifier: Apache-2.0
"""What follows from a request or a result of one trial, and counts of a phase in which nothing was sent."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel

from natgauge.agreement.generated import (
    Clock,
    Closing,
    Frame,
    FrameSizes,
    Phase2,
    Phase2Counts,
    PortCounters,
    Ports,
    StateTable,
    StreamCounts,
    TrialRequest,
    TrialResult,
)
from natgauge.errors import BrokenError
from natgauge.words import Close

#: A bound of the engine's schema that requests are made with. The timer interrupt is no stall.
LEAST_STALL_SECONDS: Final = 10e-6


def frame_of(frame: Frame, close: Close | None, request_octets: int | None, *, half_open: bool) -> Frame:
    """Return the same frame with this use of TCP connections, as in `natgauge.trials.TrialPlan`."""
    closing = None if close is None else Closing(by=close, request_octets=request_octets)
    return frame.model_copy(update={"closing": closing, "half_open": half_open})


def nominal_seconds(request: TrialRequest) -> float:
    """Return the duration of an undisturbed trial in s: phase 1, periods of phase 2, gaps, waits for last frames."""
    gap, seconds = request.gap_ms / 1e3, 0.0
    if request.phase1 is not None:
        seconds += _sending(request.connections, request.phase1.rate) + request.phase1.grace_ms / 1e3
    if request.phase2 is None:
        return seconds + gap
    period = _streaming(request.phase2) + request.phase2.grace_ms / 1e3
    period += request.phase2.step.seconds if request.phase2.step is not None else 0.0
    return seconds + request.phase2.periods * (gap + period)


def all_connections(request: TrialRequest) -> int:
    """Return the connections that a trial opens, in both phases."""
    phase2 = request.phase2
    if phase2 is None or phase2.churn is None:
        return request.connections
    return request.connections + round(phase2.churn.new_per_second * _streaming(phase2))


def _streaming(phase2: Phase2) -> float:
    """Return the seconds that the frames of the longer stream take."""
    streams = [stream for stream in (phase2.initiator, phase2.responder) if stream is not None]
    return max((_sending(stream.frames, stream.rate) for stream in streams), default=0.0)


def _sending(frames: int, rate: float) -> float:
    """Return the seconds that the frames take; 0 at a rate that the engine refuses."""
    return frames / rate if rate > 0 else 0.0


def _zeros(kind: type[BaseModel]) -> dict[str, object]:
    return {name: 0 for name, field in kind.model_fields.items() if field.is_required()}


_NO_COUNTS: Final = _zeros(StreamCounts) | {"messages": []}
_NO_COUNTER: Final = PortCounters.model_validate(_zeros(PortCounters) | {"gateway_mac": ""})
_NO_COUNTERS: Final = Ports(initiator=_NO_COUNTER, responder=_NO_COUNTER)


def result_of(connections: int, stored: int, phase1: StreamCounts | None, phase2: Phase2Counts | None) -> TrialResult:
    """Return the result of a trial that no engine ran, of which only these counts are known; the others are 0."""
    table = StateTable(connections=connections, stored=stored, remapped=0, octets=0)
    known = {"phase1": phase1, "phase2": phase2, "state_table": table, "ports": _NO_COUNTERS}
    clock, sizes = Clock(source="none", steps=0), FrameSizes(initiator_octets=0, responder_octets=0)
    rest = {"mark": 0, "seed": 0, "cpus": (), "start_to_first_frame_ns": 0, "wall_ns": 0}
    return TrialResult.model_validate({"version": 1, "engine": "none", "clock": clock, "frame": sizes, **rest, **known})


def stream_of(**counts: object) -> StreamCounts:
    """Return counts of which only these are known; the others are 0, or absent."""
    return StreamCounts.model_validate(_NO_COUNTS | counts)


#: Counts of a phase in which nothing was sent.
NO_FRAMES: Final = stream_of()


def phase1_of(result: TrialResult) -> StreamCounts:
    """Return the counts of phase 1, for trials that have a phase 1."""
    if result.phase1 is None:
        raise BrokenError("trial: natgauge-engine left phase 1 out of its result")
    return result.phase1
