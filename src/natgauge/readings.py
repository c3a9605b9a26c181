# SPDX-License-Identifier: Apache-2.0
"""Readings of one trial: what the bench read of the gateway, the lab and this host, before and after the engine ran.

They travel as a whole, from the bench to the verdict and to the figures. A further reading is a field here, which
`natgauge.trial.trial_run` fills in; verdicts, procedures and doubts use it without another copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from natgauge.churn import CountInChurn
from natgauge.core_work import WorkByCore
from natgauge.log_counts import LogCounts, LogError
from natgauge.power import Energy

#: What a server's recipe calls queries that were lost before its sockets (gateways/recipes/common/far-side.toml).
_SOCKET: Final = "socket"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Readings of one trial.

    Attributes:
        count_before: the device's own count before phase 1; None where the device does not report it.
        count_after: the same after phase 1, or at the end of a period.
        established: the device's own number of open TCP connections after the trial; None where it is not known.
        strays: connections in parts of the device that must hold none, by name of the part.
        dropped_before: frames dropped at the device's places of the lab before the trial, by the place's name; the
            tester's own ports are in the engine's result. Frames of the engine's self-test are included.
        faults: frames that the device refused during the trial, and other events that it counts, by its own names; 0
            where there were none. Empty = not known.
        device_error: error of the device's controls; empty where they answered, None for an external device.
        forwards: whether single frames came back after the trial; None = not tried, or `unprobed` gives the reason. Of
            a period false: nothing came back in it since a link of the tester's ports went down.
        unprobed: error that kept the tester from sending single frames after the trial; empty = none.
        core_work: work of each core of the devices during the trial; empty = not known.
        octets_per_connection: memory of a connection in the kernel of the device's machine, by its growth during the
            trial; None = not known.
        server_refused: queries that a real server did not answer as it should, by cause; empty without a server.
        free_octets: available memory of the device's machine after a period; None = not read.
        network_counters: counters of the devices' kernels that rose during the trial, by device; None = not read.
        counts_taken: the tester's own ports ("Initiator", "Responder") whose drivers count frames as dropped that a
            receiver took; their received drops say nothing.
        found_changed: global setting of the device's machine that others changed since it was set; empty = none.
        link_losses: how often the link of each of the tester's own ports went down, by port; only where it did.
        throttled_seconds: time for which a CPU quota stopped the tester and the device's processes.
        read_late_seconds: time of a period in which natgauge still read device and lab after the period before it, on
            the device's cores.
        energy: what the device took during the trial; None = no meter was read.
        count_in_churn: the device's own count in a phase 2 with churn; None = it was not read.
        log: the device's log next to the connections of the trial; None = it does not log, or it was not compared.
        log_error: why its log was not compared; None = it was, or nobody tried.
    """

    count_before: int | None = None
    count_after: int | None = None
    established: int | None = None
    strays: Mapping[str, int] = field(default_factory=dict)
    dropped_before: Mapping[str, int] = field(default_factory=dict)
    dropped_after: Mapping[str, int] = field(default_factory=dict)
    faults: Mapping[str, int] = field(default_factory=dict)
    device_error: str | None = None
    forwards: bool | None = None
    unprobed: str = ""
    core_work: WorkByCore = field(default_factory=dict)
    octets_per_connection: float | None = None
    server_refused: Mapping[str, int] = field(default_factory=dict)
    free_octets: int | None = None
    network_counters: Mapping[str, Mapping[str, int]] | None = None
    taps: bool = False
    counts_taken: Sequence[str] = ()
    found_changed: str = ""
    link_losses: Mapping[str, int] = field(default_factory=dict)
    throttled_seconds: float = 0.0
    read_late_seconds: float = 0.0
    energy: Energy | None = None
    count_in_churn: CountInChurn | None = None
    log: LogCounts | None = None
    log_error: LogError | None = None

    @property
    def dropped(self) -> dict[str, int]:
        """Number of frames dropped during the trial, by place, which begins with the device's name."""
        return {place: count - self.dropped_before.get(place, 0) for place, count in self.dropped_after.items()}

    @property
    def device_alive(self) -> bool | None:
        """Whether the device still answers its controls; None where it has none."""
        return None if self.device_error is None else not self.device_error

    @property
    def server_dropped(self) -> int:
        """Queries that a real server behind the device did not read in time."""
        return self.server_refused.get(_SOCKET, 0)

    @property
    def unread(self) -> int:
        """Datagrams that a device which answers queries itself did not read in time."""
        return self.faults.get(_SOCKET, 0)


#: Nothing was read.
NO_READINGS: Final = Readings()
