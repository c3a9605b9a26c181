# SPDX-License-Identifier: Apache-2.0
"""Connections that are opened in phase 2 while the oldest leave, and the number that a gateway then holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from natgauge.words import Leave, Transport

#: The least time for which a new connection gets no frames yet, and one that leaves none any more, in s: the engine's.
LEAST_GUARD_SECONDS: Final = 0.001
#: A connection gets no frame for this many times the mean interval between its frames with a probability of 1e-13.
IDLE_DRAWS: Final = 30.0
#: Deviation of the gateway's own count from the expected one that is doubted.
MOST_DEVIATION: Final = 0.01


@dataclass(frozen=True, slots=True)
class Churn:
    """New connections in phase 2, and as many that leave: the oldest ones.

    Attributes:
        new_per_second: connections/s that are opened, > 0.
        leave: a connection falls silent (UDP, ICMP), or the Initiator closes it by a FIN or a reset (TCP).
        guard_seconds: a connection gets frames from this time after its opening until this time before it leaves, > 0,
            in ms; longer than a round trip.
        flood_per_second: connections/s that the host after the last source address opens in addition (not TCP); they
            get no further frame, and their loss fails no trial. 0 = it opens none.
    """

    new_per_second: float
    leave: Leave = "silent"
    guard_seconds: float = 0.1
    flood_per_second: float = 0.0

    def openings(self, seconds: float) -> int:
        """Return the connections that a phase 2 of this length opens."""
        return math.floor(self.new_per_second * seconds + 1e-6)


@dataclass(frozen=True, slots=True)
class CountInChurn:
    """The gateway's own count after a phase 2 with churn.

    Attributes:
        seconds: time of the reading since the start of phase 2.
        changing: how far the count may be off: c times the duration of the reading, or for a gateway that does not say
            which connections are forgotten, c times all the time since phase 2.
        expected: number of connections that the gateway should hold then; None = its time-out is not known.
    """

    seconds: float
    count: int
    expected: float | None = None
    changing: float = 0.0

    @property
    def deviation(self) -> float:
        """Difference to the expected number, as a share of that number; 0 where that is not known."""
        return 0.0 if not self.expected else (self.count - self.expected) / self.expected

    @property
    def deviates(self) -> bool:
        """Whether the difference is doubted: beyond what the duration of the reading explains."""
        expected = self.expected or self.count
        return abs(self.count - expected) > MOST_DEVIATION * expected + self.changing


def most_new(connections: int) -> float:
    """Return the most connections/s that the engine opens while so many are open; 0 = none.

    With the least guard c * guard, rounded up, and one more are too young for frames, as many are about to leave, and
    there must be one between them.
    """
    return max(0, (connections - 3) // 2) / LEAST_GUARD_SECONDS


def leaving(transport: Transport) -> Leave:
    """How connections of a transport leave, where nobody says another way."""
    return "fin" if transport == "tcp" else "silent"


def kept_after(churn: Churn, *, connections: int, rate: float, timeout: float) -> float:
    """Return for how many seconds a gateway keeps a connection that has left.

    Frames go to connections at random, so the last one of a silent connection came on average
    N/r * (1 - exp(-r/c)) before the guard. A closed one is forgotten `timeout` after its end.

    Args:
        rate: r, frames/s to the N open ones, both directions together.
        timeout: s after the last frame of a silent connection, or the end of a closed one.
    """
    if churn.leave != "silent":
        return timeout
    fresh = churn.new_per_second
    drawn = connections - 2 * fresh * churn.guard_seconds
    return max(0.0, timeout - churn.guard_seconds - drawn / rate * -math.expm1(-rate / fresh))


def expected_count(churn: Churn, *, connections: int, kept: float, seconds: float, until: float) -> float:
    """Return the connections that a gateway should hold: the open ones, and those that left and are kept.

    Args:
        kept: s from the time at which a connection leaves (`kept_after`); infinite = it is never forgotten.
        seconds: time since the start of phase 2.
        until: end of phase 2, after which none leaves any more.
    """
    return connections + churn.new_per_second * max(0.0, min(seconds, until) - max(0.0, seconds - kept))
