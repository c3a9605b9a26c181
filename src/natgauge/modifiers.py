# SPDX-License-Identifier: Apache-2.0
"""Conditions of phase 2 beside its rates: modifiers of RFC 2544 section 11, and incremental load of RFC 8219."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

#: Broadcasts, a query of the device each second (management), or both (RFC 2544 sections 11.1 and 11.2).
Beside = Literal["none", "broadcast", "management", "both"]
QUERY_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Modifiers:
    """Conditions of a phase 2.

    Attributes:
        groups: groups of connections whose frames begin one after another (RFC 8219 section 10.2.2); 1 = all at once.
        group_seconds: time between the beginnings of two groups, > 0.
    """

    beside: Beside = "none"
    groups: int = 1
    group_seconds: float = 5.0

    @property
    def broadcast(self) -> bool:
        """Whether broadcasts take the place of some frames."""
        return self.beside in ("broadcast", "both")

    @property
    def queries(self) -> bool:
        """Whether the device is asked."""
        return self.beside in ("management", "both")

    @property
    def ramp_seconds(self) -> float:
        """Time from the beginning of the first group to that of the last, from which on the rate is whole."""
        return (self.groups - 1) * self.group_seconds

    def whole_share(self, seconds: float) -> float:
        """Return the share of a phase's frames that are sent while all groups send; `seconds` = length of the phase."""
        whole = seconds - self.ramp_seconds
        # Until then half of the rate is sent, on average.
        return whole / (whole + self.ramp_seconds / 2)

    @property
    def entries(self) -> int:
        """The most connections that a device keeps of broadcasts from each side, and of queries."""
        return 2 * self.broadcast + self.queries
