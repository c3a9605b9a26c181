# SPDX-License-Identifier: Apache-2.0
"""One trial before its verdict: the engine's counts, and the device's own figures before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from natgauge.core_work import WorkByCore
from natgauge.labs.contract import NetworkCounters
from natgauge.measurer import Restart
from natgauge.trials import TrialRequest, TrialResult

#: What a server's recipe calls queries that were lost before its sockets (gateways/recipes/common/far-side.toml).
SOCKET: Final = "socket"


@dataclass(frozen=True, slots=True)
class RawTrial:
    """One trial before its verdict.

    Attributes:
        request: the engine's request.
        result: the engine's result.
        count_before: the device's own count before phase 1; None where the device does not report it.
        count_after: the same after the trial.
        established: the device's own number of open TCP connections after the trial; None where it is not known.
        strays: connections at parts of the device that must hold none.
        dropped_before: frames dropped before the trial by place of the lab, including frames of the engine's self-test.
        dropped_after: the same after the trial.
        faults: frames the device refused during the trial, by cause.
        device_error: error of the device's controls; empty where they answered, None for an external device.
        restart: restart of the device in the middle of the trial.
        forwards: whether single frames came back after the trial; None = not tried, or not known (see `unprobed`).
        unprobed: error that kept the tester from sending single frames after the trial; empty = none did.
        core_work: work of each core of the devices during the trial; empty = not known.
        octets_per_connection: memory of a connection in the kernel of the device's machine; None = not known.
        server_refused: queries that a real server did not answer as it should, by cause; empty without a server.
        free_octets: available memory of the device's machine after a period; None = not read.
        network_counters: counters of the devices' kernels that rose during the trial, see `LabCounters`.
        taps: whether the tester's ports are taps of a guest.
        found_changed: global setting of the device's machine that others changed since it was set; empty = none.
        link_losses: how often the link of each of the tester's ports went down during the trial, by the port's name.
        throttled_seconds: time for which a CPU quota stopped natgauge's control group during the trial.
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
    core_work: WorkByCore = field(default_factory=dict)
    octets_per_connection: float | None = None
    server_refused: Mapping[str, int] = field(default_factory=dict)
    free_octets: int | None = None
    network_counters: NetworkCounters | None = None
    taps: bool = False
    link_losses: Mapping[str, int] = field(default_factory=dict)
    established: int | None = None
    found_changed: str = ""
    throttled_seconds: float = 0.0

    @property
    def dropped(self) -> dict[str, int]:
        """Number of frames dropped during the trial, by place."""
        return {place: count - self.dropped_before.get(place, 0) for place, count in self.dropped_after.items()}
