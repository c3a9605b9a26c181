# SPDX-License-Identifier: Apache-2.0
"""Traffic at the tester's ports that is not the audit's, and when there is too much of it for a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Frames that a gateway may send for each frame of the audit: the packet in two fragments, or with an ICMP error.
_EACH: Final = 2
#: Other frames that disturb no verdict: a burst, and a rate in frames/s. Each is as many frames as the kernel's queue
#: of a port has room for (net.core.netdev_max_backlog, 1000).
_BURST, _RATE = 1000, 1000


@dataclass(frozen=True, slots=True)
class Missed:
    """Frames at the tester's ports that an audit does not read.

    Attributes:
        others: frames to other hosts, or of protocols that are no part of an audit; a filter in the kernel drops them.
    """

    others: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class PortTraffic:
    """Counts of an audit so far."""

    seconds: float
    sent: int
    arrived: int
    dropped: int

    def flood(self, since: PortTraffic) -> str:
        """Return why nothing that was not seen since an earlier time can be trusted, as a sentence; empty = it can."""
        sent, arrived = self.sent - since.sent, self.arrived - since.arrived
        dropped, seconds = self.dropped - since.dropped, self.seconds - since.seconds
        if not dropped and arrived <= _EACH * sent + _BURST + _RATE * seconds:
            return ""
        return (
            f"other traffic flooded the tester's ports: {arrived} frames arrived while the audit sent {sent}, and "
            f"{dropped} of them were lost before the audit saw them"
        )
