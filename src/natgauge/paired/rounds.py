# SPDX-License-Identifier: Apache-2.0
"""Rounds added up: ratios, void places, and what disturbed them; one policy for costs and comparisons by slices.

A place whose frames were lost or wrong in a round is void in it: its slices say nothing, those of the others count. A
ratio that lacks a place in a round is measured again in a further round. A place that is void in three rounds in a row
ends the measurement, and so does a ratio that more rounds lack than have, because places are void in turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from natgauge.errors import BrokenError
from natgauge.figure_text import in_percent
from natgauge.notes import Note
from natgauge.other_traffic import OtherTraffic, other_traffic_note
from natgauge.paired.ratios import KindT, PairedRatios, PlaceKind, Seating
from natgauge.paired.slices import TimedRound

#: A place that is void in this many rounds in a row ends the measurement.
MOST_VOID: Final = 3
#: More rounds than these that a ratio lacks end the measurement, if fewer rounds have it.
MOST_LACKED: Final = 8
#: What to do where a place without a gateway is void, the likeliest cause first; of gateways each method says it.
_REMEDIES: Final[Mapping[PlaceKind, str]] = {
    "cable": "a cable has no gateway in it, so the fault is in this host: end other work on it, and see "
    '"natgauge selftest" and "natgauge doctor"',
    "plain forwarding": "plain forwarding has no gateway in it, so the fault is in this host: end other work on it, "
    'and see what it does with "natgauge measure throughput --gateway linux-ipv4" (or linux-ipv6)',
}
#: A larger share of interrupted slices makes intervals visibly wider.
_MANY_INTERRUPTED: Final = 0.05


class Void(NamedTuple):
    """A place that is void in a round: what it is, and why it is void."""

    kind: PlaceKind
    why: str


_VALID: Final = Void("gateway", "")


@dataclass(slots=True)
class VoidRounds:
    """Notes void rounds, and counts those of a place in a row, and those that a ratio lacks.

    A message that ends the measurement begins with the command and ends with the remedy, which for a gateway is the
    `remedy` of its place; `what` is void: "round" or "search".
    """

    command: str
    what: str
    remedy: Callable[[str], str]
    notes: list[Note] = field(default_factory=list)
    _in_a_row: dict[str, int] = field(default_factory=dict)
    _having: Counter[str] = field(default_factory=Counter)
    _lacking: dict[str, list[Mapping[str, Void]]] = field(default_factory=dict)

    def judge(self, place: str, why: str, kind: PlaceKind = "gateway") -> None:
        """Take a round into account: `why` it is void for this place, or empty; BrokenError ends the measurement."""
        self._in_a_row[place] = self._in_a_row.get(place, 0) + 1 if why else 0
        if self._in_a_row[place] >= MOST_VOID:
            plural = "searches" if self.what == "search" else f"{self.what}s"
            raise BrokenError(
                f"{self.command}: {place}: {why}, in {MOST_VOID} {plural} in a row; {self._to_do(place, kind)}"
            )
        if why:
            self.notes.append(Note("trials", f"a {self.what} of {place} is void: {why}"))

    def judge_ratio(self, ratio: str, void: Mapping[str, Void]) -> None:
        """Take a round into account: the void places, by label, that a ratio lacks in it.

        BrokenError ends the measurement: the ratio lacks too many rounds.
        """
        if not void:
            self._having[ratio] += 1
            return
        lacking, having = self._lacking.setdefault(ratio, []), self._having[ratio]
        lacking.append(void)
        if len(lacking) <= max(MOST_LACKED, having):
            return
        numbers = Counter(place for each in lacking for place in each)
        places = ", ".join(f"{place} in {number}" for place, number in numbers.most_common())
        kinds = {one.kind for each in lacking for one in each.values()}
        # A host that spoils frames where there is no gateway may spoil those of gateways as well.
        kind: PlaceKind = next((kind for kind in _REMEDIES if kind in kinds), "gateway")
        place, last = next(iter(void.items()))
        raise BrokenError(
            f"{self.command}: {ratio}: {len(lacking)} of {len(lacking) + having} rounds are void, more than are valid "
            f"({places}); the last: {place}: {last.why}; {self._to_do(place, kind)}"
        )

    def _to_do(self, place: str, kind: PlaceKind) -> str:
        return _REMEDIES.get(kind) or self.remedy(place)


class RoundSums:
    """All rounds of one measurement.

    Attributes:
        slices: of all rounds, also those of void places; `waited` and `interrupted` as in `TimedRound`.
    """

    def __init__(self, voids: VoidRounds, seating: Seating[KindT], ratios: PairedRatios) -> None:
        self.voids = voids
        self.ratios = ratios
        self._labels, self._kinds = seating.labels, seating.kinds
        self.slices = self.interrupted = self.waited = 0
        self.others: list[OtherTraffic] = []
        self.log_drops: Counter[str] = Counter()

    def add(self, done: TimedRound) -> bool:
        """Add a round; return whether every place was valid. BrokenError: a place was void too often in a row."""
        # Several cables share a label, and so may several devices that only forward: each label is judged once.
        void = self._void(done, frozenset(done.faults))
        for label in dict.fromkeys(self._labels):
            found = void.get(label, _VALID)
            self.voids.judge(label, found.why, found.kind)
        baseline, *others = self.ratios.places
        for place in others:
            self.voids.judge_ratio(place.label, self._void(done, baseline.needs | place.needs))
        self.ratios.add(done.work, frozenset(done.faults))
        self.slices += done.slices
        self.interrupted += done.interrupted
        self.waited += done.waited
        self.others.append(done.other_traffic)
        for position, dropped in done.log_drops.items():
            self.log_drops[self._labels[position]] += dropped
        return not done.faults

    def _void(self, done: TimedRound, positions: frozenset[int]) -> dict[str, Void]:
        void: dict[str, Void] = {}
        for position, fault in sorted(done.faults.items()):
            if position in positions:
                label = self._labels[position]
                before = f"{void[label].why}; " if label in void else ""
                void[label] = Void(self._kinds[position], before + fault)
        return void


def disturbance_notes(sums: Iterable[RoundSums]) -> tuple[list[Note], list[Note]]:
    """Return notes on other traffic and logs, and on slices with an interruption of over 1 ms, if there were many."""
    every = list(sums)
    others = [*other_traffic_note([other for one in every for other in one.others], "rounds"), *_log_note(every)]
    interrupted, slices = sum(one.interrupted for one in every), sum(one.slices for one in every)
    if interrupted <= _MANY_INTERRUPTED * slices:
        return others, []
    share = interrupted / slices
    text = f"the core was taken away for more than 1 ms in {in_percent(share)} of all slices; intervals are wider"
    return others, [Note("trials", text, interrupted)]


def _log_note(sums: Iterable[RoundSums]) -> list[Note]:
    """Return the doubt about records that logs dropped, or else a note that nobody compared the logs; none without."""
    logs: Counter[str] = Counter()
    for one in sums:
        logs.update(one.log_drops)
    dropped = {label: number for label, number in logs.items() if number}
    if not dropped:
        text = (
            f"slices compare no log with the connections, so nobody knows whether that of {', '.join(logs)} was whole"
        )
        return [Note("method", text)] if logs else []
    said = ", ".join(f"{label} {number:,}" for label, number in dropped.items())
    # A message may have a hundred records (nfnetlink_log), so nobody knows which share of the connections that is.
    text = (
        f"logs had no room for messages ({said}; each has a record or more), which costs less than to write them: "
        "with a whole log the cost is higher"
    )
    return [Note("log dropped", text, sum(dropped.values()), None, "answer")]
