# SPDX-License-Identifier: Apache-2.0
"""Parts of a rate: the tester's own work where it is done on the device's core, and the device that limits a chain.

And what is part of no rate: work of a log's programs on other cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from natgauge.metrics import declared
from natgauge.metrics.shared_figures import LOST_PERCENT_AT
from natgauge.records.parameters import Parameters

#: A device limits a chain if at least this share of the lost frames was dropped there, in percent.
LEAST_PERCENT: Final = 50.0


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
        rate: all directions together, per second.
    """
    known = declared(metric)
    # The rate of the tester by itself, where the searches of this metric end at the latest.
    alone = parameters.get(f"tester_highest_phase{known.phase}_rate") if known.is_bounded else None
    if parameters.get("placement") != "shared" or parameters.get("own_processes"):
        return None
    if not isinstance(alone, int | float) or rate <= 0 or alone <= 0:
        return None
    cores = parameters.get("sender_cores")
    number = cores if isinstance(cores, int) and cores > 0 else 1
    return OwnWork(1e9 * number / alone, 1e9 * number / rate)


def log_work(parameters: Parameters) -> str | None:
    """Return a sentence on programs that write a log on cores that no figure counts; None where there are none.

    In `shared` placement they have every core, because the device's is that of the sender.
    """
    way = parameters.get("logging")
    if not isinstance(way, str) or parameters.get("placement") != "shared":
        return None
    return (
        f"placement shared: programs that write the log ({way}) run on any core, and the figure leaves out what they "
        "take of other cores than the device's"
    )


def limiting_device(figures: Mapping[str, float]) -> tuple[str, float] | None:
    """Return the device that dropped most of the lost frames, and its share in percent; None = not known."""
    shares = {
        name.removeprefix(LOST_PERCENT_AT): share for name, share in figures.items() if name.startswith(LOST_PERCENT_AT)
    }
    device = max(shares, key=lambda name: shares[name], default=None)
    return None if device is None or shares[device] < LEAST_PERCENT else (device, shares[device])
