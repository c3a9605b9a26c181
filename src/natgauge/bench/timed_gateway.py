# SPDX-License-Identifier: Apache-2.0
"""A started gateway as rounds of slices visit it."""

from __future__ import annotations

from dataclasses import dataclass

from natgauge.bench.lab_measurer import LabMeasurer
from natgauge.bench.rounds import RATE
from natgauge.measurer import TrialPlan
from natgauge.trials import TrialRequest


@dataclass(slots=True)
class TimedGateway:
    """A gateway whose frames are timed.

    Attributes:
        label: its name in the round.
        measurer: of its bench.
        connections: N.
    """

    label: str
    measurer: LabMeasurer
    connections: int

    def request(self) -> TrialRequest:
        """Its part of the next round, with a run mark of its own."""
        self.measurer.number += 1
        return self.measurer.request(TrialPlan(self.connections, RATE))

    def empty(self) -> None:
        """Forget all connections.

        Raises:
            BrokenError: some are left.
        """
        device = self.measurer.device
        if device is not None and device.empties:
            self.measurer.asking(device.empty)

    def count(self) -> int | None:
        """Its own number of connections; None where it keeps none, or does not report it."""
        device = self.measurer.device
        return None if device is None else self.measurer.asking(device.count)

    @property
    def udp_timeout(self) -> int | None:
        """Seconds after which it forgets a connection; None where it keeps none."""
        return self.measurer.settings.udp_timeout
