# SPDX-License-Identifier: Apache-2.0
"""Adapter of a started gateway for rounds of slices."""

from __future__ import annotations

from dataclasses import dataclass

from natgauge.agreement import TrialRequest
from natgauge.measurer import TrialPlan
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.rounds import RATE


@dataclass(slots=True)
class TimedGateway:
    """A gateway whose frames are timed."""

    label: str
    measurer: LabMeasurer
    connections: int

    def request(self) -> TrialRequest:
        """Return the gateway's part of the next round, with its own run mark."""
        self.measurer.number += 1
        return self.measurer.request(TrialPlan(self.connections, RATE))

    def empty(self) -> None:
        """Empty the gateway's table."""
        device = self.measurer.device
        if device is not None and device.empties:
            self.measurer.asking(device.empty)

    def count(self) -> int | None:
        """Return the gateway's number of connections; None where it keeps none, or does not report it."""
        device = self.measurer.device
        return None if device is None else self.measurer.asking(device.count)

    def found_changed(self) -> str:
        """Return which global setting was changed by others since it was set; empty = none was."""
        device = self.measurer.device
        return "" if device is None else self.measurer.asking(device.found_changed)

    @property
    def udp_timeout(self) -> int | None:
        """Seconds after which the gateway forgets a connection; None where it keeps none."""
        return self.measurer.settings.udp_timeout
