# SPDX-License-Identifier: Apache-2.0
"""What one trial left: raw counts, and the device's own figures before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from natgauge.measurer import Restart
from natgauge.trials import TrialRequest, TrialResult

#: What a server's recipe calls queries that were lost before its sockets (duts/recipes/common/far-side.toml).
SOCKET: Final = "socket"


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
