# SPDX-License-Identifier: Apache-2.0
"""One trial: what was planned, requested and counted, and what was read before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from natgauge.agreement import NO_FRAMES, PortCounters, StreamCounts, TrialRequest, TrialResult, phase1_of
from natgauge.causes.hops import WRONG, TrialHops, hops_of
from natgauge.counts import phase2_streams
from natgauge.measurer import Direction, Restart, TrialPlan
from natgauge.readings import Readings

#: Names of readings in a trial's record, where they are others.
_STORED_AS: Final = {
    "count_before": "device_count_before",
    "count_after": "device_count_after",
    "established": "device_established",
    "faults": "device_faults",
    "forwards": "forwards_afterwards",
}
#: Readings that other fields of the record contain, or the reason of the verdict.
_UNSTORED: Final = frozenset({"strays", "dropped_before", "dropped_after", "device_error", "unprobed", "free_octets"})
#: Counts of a stream that its hops follow from.
_COUNTED: Final = {"intended_frames": True, "skipped": True, "received_frames": True, **dict.fromkeys(WRONG, True)}
_ASKED: Final = {"initiator": {"family", "source_addresses"}, "responder": {"family"}, "translation": {"pool"}}
_OPENING: Final = {**_COUNTED, "messages": True}
_BOTH_COUNTED: Final = {"initiator": _COUNTED, "responder": _COUNTED}


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial; of several periods of phase 2, each is a trial."""

    plan: TrialPlan
    request: TrialRequest
    result: TrialResult
    readings: Readings
    restart: Restart | None = None

    @property
    def phase1(self) -> StreamCounts:
        """Counts of phase 1; nothing was sent in that of a stateless trial."""
        return NO_FRAMES if self.plan.stateless else phase1_of(self.result)

    @property
    def phase2(self) -> dict[Direction, StreamCounts]:
        """Counts per active direction of phase 2; empty when there was no phase 2."""
        return phase2_streams(self.result)

    @property
    def stored(self) -> int:
        """Connections that the Responder learned."""
        return self.result.state_table.stored

    @property
    def ports(self) -> dict[str, PortCounters]:
        """Counts of the tester's own ports, by name."""
        return {"Initiator": self.result.ports.initiator, "Responder": self.result.ports.responder}

    @property
    def queue_full(self) -> int:
        """Frames that met a full queue before the device, where that queue is the port's own: a tap refuses them."""
        return sum(port.refused for port in self.ports.values()) if self.readings.taps else 0

    @property
    def refused(self) -> int:
        """Frames that the tester's own ports refused, but for those of `queue_full`."""
        return 0 if self.readings.taps else sum(port.refused for port in self.ports.values())

    @property
    def port_drops(self) -> dict[str, tuple[int, int]]:
        """Received and sent frames that each of the tester's own ports dropped."""
        if self.readings.taps:
            # The port's drops include the frames that found its queue full, and frames that receivers took.
            return {name: (0, max(0, port.tx_dropped - port.refused)) for name, port in self.ports.items()}
        return {name: (port.rx_dropped, port.tx_dropped) for name, port in self.ports.items()}

    @property
    def stored_readings(self) -> dict[str, object]:
        """The readings as a trial's record has them."""
        read = self.readings
        named = {field.name: getattr(read, field.name) for field in fields(read) if field.name not in _UNSTORED}
        return {"dropped": read.dropped, **{_STORED_AS.get(name, name): value for name, value in named.items()}}

    @property
    def hops(self) -> TrialHops:
        """Hops of the trial, from the same fields as those of its record."""
        record: Mapping[str, Any] = {
            **self.stored_readings,
            "restart": self.restart,
            "request": self.request.model_dump(include=_ASKED),
            "result": self.result.model_dump(
                include={"phase1": _OPENING, "phase2": _BOTH_COUNTED, "ports": True, "state_table": {"by_source"}}
            ),
        }
        return hops_of(record)
