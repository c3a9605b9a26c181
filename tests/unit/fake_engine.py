# SPDX-License-Identifier: Apache-2.0
"""An engine of known behaviour: answers a request with the counts a device of known truth would have caused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from natgauge.trials import Progress, TrialRequest, TrialResult

PORT = {"refused": 0, "redirect_errors": 0, "foreign": 0, "neighbour_replies": 0}


@dataclass(slots=True)
class FakeEngine:
    """Stands in for the engine; rates in frames/s.

    Attributes:
        capacity: frames beyond this rate are lost; the tester itself sends what it is asked for.
        fastest: the tester sends no faster than this.
        lost: frames lost in each stream, whatever the rate.
        requests: what it was asked, in order.
    """

    capacity: float = 1e12
    fastest: float = 1e12
    lost: int = 0
    requests: list[TrialRequest] = field(default_factory=list)

    def __call__(self, request: TrialRequest, *_others: object) -> TrialResult:
        """Answer one request."""
        self.requests.append(request)
        phase2 = None
        if request.phase2 is not None:
            streams = {"initiator": request.phase2.initiator, "responder": request.phase2.responder}
            phase2 = {
                name: self._stream(stream.frames, stream.rate) for name, stream in streams.items() if stream is not None
            }
        phase1 = self._stream(request.connections, request.phase1.rate)
        return TrialResult.model_validate(
            {
                "event": "result",
                "version": 1,
                "engine": "fake",
                "mark": request.mark,
                "seed": request.seed,
                "phase1": phase1,
                "phase2": phase2,
                "state_table": {
                    "connections": request.connections,
                    "stored": phase1["received_frames"],
                    "octets": 8 * request.connections,
                },
                "ports": {"initiator": PORT, "responder": PORT},
                "cpus": [],
                "clock": {"source": "tsc"},
            }
        )

    def _stream(self, frames: int, rate: float) -> dict[str, Any]:
        sent_at = min(rate, self.fastest)
        share = min(1.0, self.capacity / sent_at)
        received = max(0, int(frames * share) - self.lost)
        nominal = round(frames / rate * 1e9)
        sending = round(frames / sent_at * 1e9)
        return {
            "intended_frames": frames,
            "intended_rate": rate,
            "offered_frames": frames,
            "received_frames": received,
            "duplicates": 0,
            "reordered": 0,
            "late": 0,
            "damaged": 0,
            "untranslated": 0,
            "mistranslated": 0,
            "nominal_ns": nominal,
            "sending_ns": sending,
            "worst_lag_ns": sending - nominal,
            "mean_lag_ns": (sending - nominal) // 2,
            "final_lag_ns": sending - nominal,
        }


def quiet(_progress: Progress) -> None:
    """A progress callback that does nothing."""
