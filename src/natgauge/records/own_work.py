# SPDX-License-Identifier: Apache-2.0
"""The tester's own work in a rate in `shared` placement, where it is done on the device's core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from natgauge.records.parameters import Parameters

#: Parameter with the rate of the tester by itself, by the metric whose searches end there at the latest.
_ALONE: Final[Mapping[str, str]] = {
    "connection-rate": "tester_highest_phase1_rate",
    "validated-connection-rate": "tester_highest_phase1_rate",
    "transaction-rate": "tester_highest_phase1_rate",
    "throughput": "tester_highest_phase2_rate",
    "resolution-rate": "tester_highest_phase2_rate",
}


@dataclass(frozen=True, slots=True)
class OwnWork:
    """The tester's own work for a unit of a rate, and all work for it.

    Attributes:
        own_ns: time of the tester by itself, ns.
        whole_ns: time at the rate that was found, ns.
    """

    own_ns: float
    whole_ns: float

    @property
    def share(self) -> float:
        """Share of the time that is the tester's, above 0."""
        return self.own_ns / self.whole_ns


def own_work(metric: str, rate: float, parameters: Parameters) -> OwnWork | None:
    """Return the tester's own work in a rate; None where it is done elsewhere, or is not known.

    A process of the device waits while the tester works, so the times of both do not add up.

    Args:
        metric: metric of the rate.
        rate: all directions together, per second.
        parameters: of the result.
    """
    alone = parameters.get(_ALONE.get(metric, ""))
    if parameters.get("placement") != "shared" or parameters.get("own_processes"):
        return None
    if not isinstance(alone, int | float) or rate <= 0 or alone <= 0:
        return None
    cores = parameters.get("sender_cores")
    number = cores if isinstance(cores, int) and cores > 0 else 1
    return OwnWork(1e9 * number / alone, 1e9 * number / rate)
