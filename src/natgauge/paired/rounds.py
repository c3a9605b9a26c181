# SPDX-License-Identifier: Apache-2.0
"""Rounds added up: ratios, void places, and what disturbed them; one policy for costs and comparisons by slices.

A place whose frames were lost or wrong in a round is void in it: its slices say nothing, those of the others count. A
ratio that lacks a place in a round is measured again in a further round. A place that is void in three rounds in a row
ends the measurement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from natgauge.errors import BrokenError
from natgauge.notes import Note
from natgauge.other_traffic import OtherTraffic, other_traffic_note
from natgauge.paired.ratios import PairedRatios
from natgauge.paired.slices import TimedRound

#: A place that is void in this many rounds in a row ends the measurement.
MOST_VOID: Final = 3
#: A larger share of interrupted slices makes intervals visibly wider.
_MANY_INTERRUPTED: Final = 0.05


@dataclass(slots=True)
class VoidRounds:
    """Notes void rounds, and counts those in a row.

    A message that ends the measurement begins with the command and ends with the remedy; `what` is void: "round" or
    "search".
    """

    command: str
    what: str
    remedy: str
    notes: list[Note] = field(default_factory=list)
    _in_a_row: dict[str, int] = field(default_factory=dict)

    def judge(self, place: str, why: str) -> None:
        """Take a round into account: `why` it is void for this place, or empty; BrokenError ends the measurement."""
        self._in_a_row[place] = self._in_a_row.get(place, 0) + 1 if why else 0
        if self._in_a_row[place] >= MOST_VOID:
            plural = "searches" if self.what == "search" else f"{self.what}s"
            raise BrokenError(f"{self.command}: {place}: {why}, in {MOST_VOID} {plural} in a row; {self.remedy}")
        if why:
            self.notes.append(Note("trials", f"a {self.what} of {place} is void: {why}"))


class RoundSums:
    """All rounds of one measurement.

    Attributes:
        slices: of all rounds, also those of void places; `waited` and `interrupted` as in `TimedRound`.
    """

    def __init__(self, voids: VoidRounds, labels: Sequence[str], ratios: PairedRatios) -> None:
        """Add no round yet; `labels` are the names of all positions."""
        self.voids = voids
        self.ratios = ratios
        self._labels = labels
        self.slices = self.interrupted = self.waited = 0
        self.others: list[OtherTraffic] = []

    def add(self, done: TimedRound) -> bool:
        """Add a round; return whether every place was valid. BrokenError: a place was void too often in a row."""
        # Several cables share a label, and so may several devices that only forward: each label is judged once.
        faults: dict[str, list[str]] = {label: [] for label in self._labels}
        for position, fault in sorted(done.faults.items()):
            faults[self._labels[position]].append(fault)
        for label, found in faults.items():
            self.voids.judge(label, "; ".join(found))
        self.ratios.add(done.work, frozenset(done.faults))
        self.slices += done.slices
        self.interrupted += done.interrupted
        self.waited += done.waited
        self.others.append(done.other_traffic)
        return not done.faults


def disturbance_notes(sums: Iterable[RoundSums]) -> tuple[list[Note], list[Note]]:
    """Return notes on other traffic, and on slices with an interruption of more than 1 ms, where there were many."""
    every = list(sums)
    others = other_traffic_note([other for one in every for other in one.others], "rounds")
    interrupted, slices = sum(one.interrupted for one in every), sum(one.slices for one in every)
    if interrupted <= _MANY_INTERRUPTED * slices:
        return list(others), []
    share = interrupted / slices
    text = f"the core was taken away for more than 1 ms in {share:.0%} of all slices; intervals are wider"
    return list(others), [Note("trials", text, interrupted)]
