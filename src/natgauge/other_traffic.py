# SPDX-License-Identifier: Apache-2.0
"""Traffic at the tester's ports that is not the test's: how much of it can change a figure, and the doubt about it.

A foreign frame costs a device about as much work as a frame of the test. A share of foreign frames therefore makes a
rate too low by about this share. Hosts and switches send a few frames per second whatever is measured (ARP, NDP, LLDP,
spanning tree); these change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from natgauge.figure_text import in_percent
from natgauge.notes import Grade, Note

#: Share of the offered frames from which foreign frames are a doubt: a tenth of the usual error of a search (1 %).
DOUBTED_SHARE: Final = 0.001
#: Share from which foreign frames could change the answer: the usual error of a search.
GRAVE_SHARE: Final = 0.01
#: Foreign frames/s at both ports together that are usual on a link: twice those of a busy segment with ARP for others,
#: multicast DNS, router advertisements, and the switches' own protocols.
USUAL_RATE: Final = 20.0


class OtherTraffic(NamedTuple):
    """Foreign frames of a trial or a round."""

    foreign: int = 0
    offered: int = 0
    seconds: float = 0.0

    @property
    def share(self) -> float:
        """Foreign frames as a share of the offered frames; 0 where none was offered."""
        return self.foreign / self.offered if self.offered else 0.0

    @property
    def is_doubted(self) -> bool:
        """Whether there are more foreign frames than usual, and enough to change a figure."""
        return self.foreign > max(DOUBTED_SHARE * self.offered, USUAL_RATE * max(1.0, self.seconds))


#: Nothing arrived that was not the test's.
NO_OTHER_TRAFFIC: Final = OtherTraffic()


def other_traffic_note(every: Iterable[OtherTraffic], what: str) -> list[Note]:
    """Return the doubt about foreign frames; empty where no one of `what` ("trials" or "rounds") has too many."""
    seen = list(every)
    doubted = [one for one in seen if one.is_doubted]
    if not doubted:
        return []
    worst = max(doubted, key=lambda one: one.share)
    text = (
        f"frames that are not the test's arrived at the tester's ports in {len(doubted)} of {len(seen)} {what}: up to "
        f"{worst.foreign:,} for {worst.offered:,} offered frames ({in_percent(worst.share)}); the device or the link "
        "carried them too, so rates may be too low"
    )
    grade: Grade = "answer" if worst.share >= GRAVE_SHARE else "interval"
    return [Note("other traffic", text, len(doubted), worst.share, grade)]
