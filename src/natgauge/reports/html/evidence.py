# SPDX-License-Identifier: Apache-2.0
"""Evidence of a result: disturbed and uncounted trials, delays of timed frames, the environment."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from natgauge.figure_text import number
from natgauge.file_access import is_there
from natgauge.records.measurement import Result
from natgauge.records.parameters import shown
from natgauge.records.store import TRIALS
from natgauge.reports.collected import Stored, each_trial, facts_of
from natgauge.words import Verdict

#: Percentiles of the table.
PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9, 100.0)

#: Rates of one load differ by no more than this share, which is that of a clock.
_SAME_RATE: Final = 1e-4
#: (delay in us, share of the frames that took longer).
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Timed:
    """Delays of all trials of one load in one direction.

    Attributes:
        percent: the load as a share of the highest rate of its repetition; None = not known, the load is the rate.
        rates: the lowest and the highest rate of the frames in this direction, frames/s.
        points: the share of frames that took longer, over the delay.
        percentiles: delay in us by percent.
    """

    percent: float | None
    rates: tuple[float, float]
    direction: str
    frames: int
    points: tuple[Point, ...]
    percentiles: Mapping[float, float]


class LoadDelays:
    """Counts of delays by load and direction, summed over trials."""

    def __init__(self, result: Result | None = None) -> None:
        """Without a result, loads are the rates."""
        self._percents = {} if result is None else _percents(result)
        #: By share of the highest rate, or 0 where it is not known; by rate where it is not; and by direction.
        self._buckets: dict[tuple[float, float, str], Counter[tuple[int, int]]] = {}
        self._rates: dict[tuple[float, float, str], set[float]] = {}

    def add(self, trial: Mapping[str, Any]) -> None:
        """Add the delays of a trial, if it was counted and its frames were timed."""
        phase = (trial.get("result") or {}).get("phase2") or {}
        if trial.get("verdict") in ("INVALID", "COLLAPSED") or not isinstance(phase, dict):
            return
        for direction, counts in phase.items():
            delay = counts.get("delay") if isinstance(counts, dict) else None
            if buckets := (delay or {}).get("buckets"):
                rate = float(counts["intended_rate"])
                percent = self._percent(rate, direction)
                key = (percent or 0.0, 0.0 if percent else rate, direction)
                self._rates.setdefault(key, set()).add(rate)
                own = self._buckets.setdefault(key, Counter())
                for lower, upper, frames in buckets:
                    own[lower, upper] += frames
                if own.total() <= 0:
                    raise ValueError("its delays are of no frame")

    def distributions(self) -> list[Timed]:
        """Return the delays of each load and direction, the highest load first."""
        found = []
        for key in sorted(self._buckets, reverse=True):
            percent, _, direction = key
            rates = min(self._rates[key]), max(self._rates[key])
            found.append(_timed(percent or None, rates, direction, sorted(self._buckets[key].items())))
        return found

    def _percent(self, rate: float, direction: str) -> float | None:
        """The load that had this rate in this direction; None = not known."""
        every = self._percents.get(direction, {})
        nearest = min(every, key=lambda known: abs(known - rate), default=0.0)
        return every[nearest] if every and math.isclose(nearest, rate, rel_tol=_SAME_RATE) else None


def _percents(result: Result) -> dict[str, dict[float, float]]:
    """Loads of a result's repetitions as shares of the highest rate, in percent, by direction and rate of a trial."""
    found: dict[str, dict[float, float]] = {}
    down = result.number("down_share")
    both = result.parameter("directions") == "both"
    down = 0.5 if down is None else down
    factors = {"initiator": 2 * (1 - down), "responder": 2 * down} if both else {"initiator": 1.0, "responder": 1.0}
    for row in (row for repetition in result.repetitions for row in repetition.series):
        percent, rate = row.get("load_percent"), row.get("rate")
        if isinstance(percent, int | float) and isinstance(rate, int | float):
            for direction, factor in factors.items():
                found.setdefault(direction, {})[rate * factor] = percent
    return found


def _timed(
    load: float | None,
    rates: tuple[float, float],
    direction: str,
    buckets: Sequence[tuple[tuple[int, int], int]],
) -> Timed:
    total = sum(frames for _, frames in buckets)
    points: list[Point] = []
    wanted = {percent: math.ceil(round(percent * total / 100, 9)) for percent in PERCENTILES}
    percentiles: dict[float, float] = {}
    passed = 0
    for (lower, upper), frames in buckets:
        passed += frames
        middle = (lower + upper) / 2e3
        points.append((middle, 1 - passed / total))
        for percent, rank in wanted.items():
            if passed >= rank:
                percentiles.setdefault(percent, middle)
    return Timed(load, rates, direction, total, tuple(points), percentiles)


#: The most trials of a result that are listed, of all results together, and of each however many there are; the results
#: folder has all.
_MOST_LISTED: Final = 50
_ALL_LISTED: Final = 1000
_LEAST_LISTED: Final = 5
#: Facts of a machine that change while it is the same.
_FLEETING: Final = frozenset({"load_average", "memory_available_octets"})


@dataclass(slots=True)
class Trials:
    """All trials of one result.

    Attributes:
        odd: number, load, verdict, "yes" if disturbed, and reason of the first trials that were disturbed or did not
            count.
        stored: False where the folder has no trials.
    """

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    disturbed: int = 0
    odd: list[tuple[str, ...]] = field(default_factory=list)
    more: int = 0
    delays: LoadDelays = field(default_factory=LoadDelays)
    stored: bool = True


def listed_of_each(number_of: int) -> int:
    """Return the number of odd trials that a page can list for each of `number_of` results."""
    return min(_MOST_LISTED, max(_LEAST_LISTED, _ALL_LISTED // number_of))


def trials_of(stored: Stored, most: int) -> Trials:
    """Read the trials once, from the first to the last; no more than `most` are listed."""
    trials = Trials(stored=is_there(stored.folder / TRIALS), delays=LoadDelays(stored.result))
    if trials.stored:
        for _ in each_trial(stored, lambda trial: _add(trials, trial, most, timed=stored.result.unit == "us")):
            pass
    return trials


def _add(trials: Trials, trial: Mapping[str, Any], most: int, *, timed: bool) -> None:
    verdict, disturbed = Verdict(trial["verdict"]), bool(trial.get("disturbed"))
    trials.verdicts[verdict] += 1
    trials.disturbed += disturbed
    if timed:
        trials.delays.add(trial)
    if not disturbed and verdict in (Verdict.PASS, Verdict.FAIL):
        return
    if len(trials.odd) < most:
        reason = str(trial.get("reason") or "; ".join(map(str, trial.get("remarks") or ())) or "-")
        trials.odd.append((str(int(trial["trial"])), _load(trial), verdict, "yes" if disturbed else "no", reason))
    else:
        trials.more += 1


def _load(trial: Mapping[str, Any]) -> str:
    """The rate of the phase that decides, of each direction that sends."""
    plan = trial.get("plan") or {}
    phase2 = plan.get("phase2") or {}
    rates = [phase2.get("initiator_rate"), phase2.get("responder_rate")]
    rate = max((rate for rate in rates if rate), default=None)
    if rate:
        return f"{number(rate)} frames/s"
    first, opened = plan.get("phase1_rate"), "connections" if plan.get("request_octets") is None else "transactions"
    return f"{number(first)} {opened}/s" if first else "-"


@dataclass(frozen=True, slots=True)
class Environment:
    """Settings of one machine or device, and the names of the results that were measured on it."""

    what: str
    names: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


def environments_of(stored: Sequence[Stored], names: Sequence[str]) -> list[Environment]:
    """Each environment once; folders without one are left out."""
    by_facts: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for name, result in zip(names, stored, strict=True):
        for what in ("machine", "device"):
            if facts := tuple(_facts(facts_of(result.folder, what))):
                by_facts.setdefault((what, facts), []).append(name)
    every = (Environment(what, tuple(dict.fromkeys(of)), facts) for (what, facts), of in by_facts.items())
    return sorted(every, key=lambda environment: environment.what, reverse=True)


def _facts(document: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Name and value, what is inside of another one behind its name."""
    for name, value in document.items():
        if name in _FLEETING:
            continue
        label = f"{above} {name.replace('_', ' ')}".strip()
        if isinstance(value, dict):
            yield from _facts(value, label)
        else:
            yield label, shown(value)
