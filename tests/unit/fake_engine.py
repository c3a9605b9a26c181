# SPDX-License-Identifier: Apache-2.0
"""An engine of known behaviour: answers a request with the counts a device of known truth would have caused."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from natgauge.agreement.generated import (
    InitiatorStream,
    Phase2,
    Progress,
    ResponderStream,
    TrialRequest,
    TrialResult,
)
from natgauge.agreement.trial import all_connections
from natgauge.words import WRONG_FRAMES

PORT = {
    "refused": 0,
    "redirect_errors": 0,
    "foreign": 0,
    "neighbour_replies": 0,
    "rx_dropped": 0,
    "tx_dropped": 0,
    "gateway_mac": "02:00:00:00:00:01",
    "icmp_errors": 0,
    "too_big": 0,
}
#: What most streams have none of, also in a comparison. Frames without tags are counted where a side has tags.
CLEAN = dict.fromkeys(("duplicates", "reordered", "late", "skipped", *(WRONG_FRAMES.keys() - {"untagged"})), 0)
NO_FAULTS = {**CLEAN, "stalled_ns": 0}
STALLED = {
    "cpu": 1,
    "role": "watched",
    "stalls": 1,
    "stalled_ns": 20_000_000,
    "worst_stall_ns": 20_000_000,
    "longest_stalls": [],
    "stolen_ns": 0,
}


@dataclass(slots=True)
class FakeEngine:
    """Stands in for the engine; rates in frames/s.

    Attributes:
        capacity: frames beyond this rate are lost; the tester itself sends what it is asked for.
        fastest: the tester sends no faster than this.
        port: what it counted at each of the ports, beside zeros.
        lost: frames lost in each stream, whatever the rate; the last one of them at the very end.
        lost_in_stalls: those of them that a stall of 20 ms on CPU 1 may have lost; None = it cannot tell, and saw none.
        due_in_stalls: timed frames of each direction that were due then; None = it cannot tell.
        delays_ns: of the frames of a stream, the even ones' and the odd ones'; None = it cannot tell.
        silence_ns: when the longest silence of a stream began and ended.
        receiver_time: what it tells of its receivers' running; None = nothing.
        phase2_ends: phase 2 lasts until this happens; None = no time at all.
        answered: happens when it has an answer.
        requests: what it was asked, in order.
        dead: no frame comes back.
        dead_since: the number of requests after which it is dead, and phase 2 takes no time.
        clock: its own time, in seconds, in each line.
    """

    capacity: float = 1e12
    fastest: float = 1e12
    port: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    lost_in_stalls: int | None = None
    due_in_stalls: int | None = None
    delays_ns: tuple[int, int] | None = None
    silence_ns: tuple[int, int] = (100, 700)
    receiver_time: dict[str, int] | None = None
    phase2_ends: threading.Event | None = None
    answered: threading.Event = field(default_factory=threading.Event)
    requests: list[TrialRequest] = field(default_factory=list)
    dead: bool = False
    dead_since: int | None = None
    clock: Callable[[], float] = time.monotonic

    def __call__(
        self, request: TrialRequest, progress: Callable[[Progress], None] | None = None, *_others: object
    ) -> TrialResult:
        if self.dead_since is not None and len(self.requests) >= self.dead_since:
            self.dead, self.phase2_ends = True, None
        self.requests.append(request)
        tell = progress if progress is not None else quiet
        phase1 = None
        if request.phase1 is not None:
            tell(self._began("phase1"))
            phase1 = self._stream(request, request.connections, request.connections / request.phase1.rate)
        phase2 = None
        if request.phase2 is not None:
            tell(self._began("phase2"))
            assert self.phase2_ends is None or self.phase2_ends.wait(10), "what ends phase 2 did not happen"
            tell(self._began("phase2"))
            streams = {"initiator": request.phase2.initiator, "responder": request.phase2.responder}
            phase2 = {
                name: self._stream(request, *_sending(request.phase2, stream))
                for name, stream in streams.items()
                if stream is not None
            }
            if request.phase2.churn is not None:
                frames = all_connections(request) - request.connections
                seconds = frames / request.phase2.churn.new_per_second
                opened = self._stream(request, frames, seconds)
                phase2["openings"] = opened
                if request.phase2.churn.leave != "silent":
                    phase2["closings"] = opened
        answer = {
            "version": 1,
            "engine": "fake",
            "mark": request.mark,
            "seed": request.seed,
            "state_table": {
                "connections": request.connections,
                "stored": phase1["received_frames"] if phase1 else 0,
                "remapped": 0,
                "octets": 8 * request.connections,
            },
            "ports": {"initiator": {**PORT, **self.port}, "responder": {**PORT, **self.port}},
            "cpus": [] if self.lost_in_stalls is None else [STALLED],
            "clock": {"source": "tsc", "steps": 0},
            "start_to_first_frame_ns": 1_000_000,
            "wall_ns": 0,
            "frame": {"initiator_octets": request.frame.size, "responder_octets": request.frame.size},
        }
        if request.record_receiver_time:
            answer["receiver_time"] = self.receiver_time
        phases = {"phase1": phase1, "phase2": phase2}
        for number in range(1, (request.phase2 and request.phase2.periods) or 1):
            tell(self._period({**answer, **phases, "wall_ns": number * 1_100_000_000}))
            answer["wall_ns"] = (number + 1) * 1_100_000_000
        self.answered.set()
        return TrialResult.model_validate({**answer, **{name: one for name, one in phases.items() if one}})

    def _began(self, phase: str) -> Progress:
        counts = {"intended_frames": 0, "made_frames": 0, "received_frames": 0}
        return Progress.model_validate({"phase": phase, "seconds": self.clock(), **counts})

    def _period(self, result: dict[str, Any]) -> Progress:
        return Progress.model_validate({**self._began("phase2").model_dump(), "period": result})

    def _stream(self, request: TrialRequest, frames: int, seconds: float) -> dict[str, Any]:
        rate = frames / seconds
        sent_at = min(rate, self.fastest)
        share = min(1.0, self.capacity / sent_at)
        received = 0 if self.dead else max(0, int(frames * share) - self.lost)
        nominal = round(seconds * 1e9)
        sending = round(frames / sent_at * 1e9)
        return {
            **NO_FAULTS,
            "intended_frames": frames,
            "intended_rate": rate,
            "made_frames": frames,
            "offered_frames": frames,
            "received_frames": received,
            "messages": [{"name": "datagram", "received": received, "wrong": 0}],
            "nominal_ns": nominal,
            "sending_ns": sending,
            "worst_lag_ns": sending - nominal,
            "mean_lag_ns": (sending - nominal) // 2,
            "final_lag_ns": sending - nominal,
            "settled_lag_ns": sending - nominal,
            **({} if self.lost_in_stalls is None else {"lost_in_stalls": self.lost_in_stalls}),
            **self._times(request, frames - received, nominal),
            **self._delays(request, received),
        }

    def _times(self, request: TrialRequest, lost: int, nominal: int) -> dict[str, Any]:
        if not request.record_loss_times:
            return {}
        silence = {"from_ns": self.silence_ns[0], "to_ns": self.silence_ns[1]}
        return {"longest_silence": silence, **({"last_lost_ns": nominal} if lost else {})}

    def _delays(self, request: TrialRequest, received: int) -> dict[str, Any]:
        if not request.record_delays or self.delays_ns is None:
            return {}
        frames = received if request.delay_samples is None else request.delay_samples.frames
        even, odd = self.delays_ns
        times = {even: frames - frames // 2, odd: frames // 2}
        delay: dict[str, Any] = {
            "frames": frames,
            "negative": 0,
            "due_in_stalls": self.due_in_stalls,
            "minimum_ns": min(times),
            "maximum_ns": max(times),
            "sum_ns": sum(ns * number for ns, number in times.items()),
            "buckets": [[ns, ns + 1, number] for ns, number in sorted(times.items())],
        }
        if request.record_variation:
            pairs = frames - 1
            steps = {odd - even: pairs - pairs // 2, even - odd: pairs // 2}
            delay["variation"] = {
                "pairs": pairs,
                "minimum_ns": min(steps),
                "maximum_ns": max(steps),
                "buckets": [[ns - (ns < 0), ns + (ns >= 0), number] for ns, number in sorted(steps.items())],
            }
        return {"delay": delay}


def _sending(phase2: Phase2, stream: InitiatorStream | ResponderStream) -> tuple[int, float]:
    """Frames, and seconds to send them in, of both parts where there is a step."""
    frames, seconds = stream.frames, stream.frames / stream.rate
    if phase2.step is None:
        return frames, seconds
    return frames + round(stream.rate * phase2.step.share * phase2.step.seconds), seconds + phase2.step.seconds


def quiet(_progress: Progress) -> None:
    """A progress callback that does nothing."""
