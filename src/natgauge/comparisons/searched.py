# SPDX-License-Identifier: Apache-2.0
"""What searches for one rate of one gateway left: bounds of each, doubts of all, and the ratio to another gateway's."""

from __future__ import annotations

import math
import statistics as plain
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from natgauge.comparisons.asked import ComparisonGoal
from natgauge.errors import UsageError
from natgauge.notes import Note, NoteWord
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.result.results import Measurement, make_result
from natgauge.procedures.kit.search.late_frames import rounded_up
from natgauge.procedures.kit.search.rate_search import SearchSettings
from natgauge.procedures.kit.search.searched_rate import most_too_high
from natgauge.records import doubts
from natgauge.records.comparison import SearchLimit
from natgauge.records.parameters import Parameters
from natgauge.statistics.interval import ConfidenceInterval, MedianEstimate, relative_half_width
from natgauge.statistics.order_statistics import median_estimate
from natgauge.words import Quantity

#: Doubts that say that a search did not end at the rate that the device can do, and what ended it instead.
_NOT_THE_DEVICE: Final[Mapping[NoteWord, str]] = {
    "tester limited": "the tester",
    "host limited": "the host",
    "server limited": "the server",
    "link limited": "the link",
    # Where single frames are lost at rates that do not overload the device, chance makes the bound.
    "rare loss": "rare loss",
}
#: A doubt that says why no rate passed.
_NO_RATE: Final[NoteWord] = "loss at every rate"
#: A doubt of the interval of a median; the ratios of a comparison are of rounds, within which a drift cancels out.
_OF_MEDIANS: Final[NoteWord] = "autocorrelated"
#: A single search is no repetition of anything, and here others follow.
_OF_SEVERAL: Final[NoteWord] = "single repetition"


@dataclass(frozen=True, slots=True)
class RateBounds:
    """Between which rates, in frames/s of each direction, the device's own lies after one search.

    Attributes:
        lower: the device surely does this.
        passed: the highest rate that passed; queues and tolerated lag may have raised it above the device's own.
        upper: the lowest rate that the device failed; infinite where it failed none.
        limit: what ended the search instead of the device: "the tester", "the host", "the server", "the link",
            "rare loss" or "the time"; "" = the device did.
    """

    lower: float
    passed: float
    upper: float
    limit: str = ""

    @property
    def middle(self) -> float:
        """The rate as one figure."""
        return self.passed if math.isinf(self.upper) else math.sqrt(self.passed * self.upper)


@dataclass(slots=True)
class Searched:
    """The searches for one rate of one gateway, round by round.

    Attributes:
        label: the gateway's.
        quantity: whose rate it is.
        rounds: what each search left; None where it left nothing.
        measurements: of the searches that left something.
        parameters: under which they ran; None before the first one.
    """

    label: str
    quantity: Quantity
    rounds: list[RateBounds | None] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    procedure: Procedure[SearchSettings] | None = None
    parameters: Parameters | None = None

    def add(
        self, procedure: Procedure[SearchSettings], settings: SearchSettings, parameters: Parameters, found: Measurement
    ) -> str:
        """Take a search into account; why it is void, or nothing.

        Args:
            procedure: that searched.
            settings: it ran with.
            parameters: under which it ran.
            found: what it found.
        """
        self.procedure, self.parameters = procedure, parameters
        words = {doubt.word: doubt.text for doubt in _doubts(procedure, parameters, [found])}
        if not found.value:
            self.add_void()
            return words.get(_NO_RATE, "no rate passed")
        ended = "the time" if found.upper is None else ""
        limit = next((_NOT_THE_DEVICE[word] for word in words if word in _NOT_THE_DEVICE), ended)
        upper = math.inf if limit or found.upper is None else found.upper
        lower = found.value / (1 + most_too_high(found, settings))
        self.rounds.append(RateBounds(lower, found.value, upper, limit))
        self.measurements.append(found)
        return ""

    def add_void(self) -> None:
        """Note that a search left nothing."""
        self.rounds.append(None)

    @property
    def bounds(self) -> list[RateBounds]:
        """Of the searches that left something."""
        return [one for one in self.rounds if one is not None]

    @property
    def rate(self) -> float | None:
        """Median over rounds, in frames/s of each direction; None before there is one."""
        return plain.median(one.middle for one in self.bounds) if self.bounds else None

    @property
    def nanoseconds(self) -> float | None:
        """For a frame at the highest rate; None where the rate is not known, or only that it is at least so high."""
        rate = self.rate
        if rate is None or math.isinf(plain.median_high(one.upper for one in self.bounds)):
            return None
        # Both directions have frames, and the rate is that of each.
        return 1e9 / rate / (2 if self.quantity == "both" else 1)

    @property
    def limits(self) -> tuple[SearchLimit, ...]:
        """What ended searches instead of the device."""
        of: dict[str, list[float]] = {}
        for one in self.bounds:
            if one.limit:
                of.setdefault(one.limit, []).append(one.lower)
        return tuple(
            SearchLimit(
                gateway=self.label,
                quantity=self.quantity,
                limited_by=by,
                searches=len(rates),
                of=len(self.bounds),
                at_least=plain.median(rates),
            )
            for by, rates in of.items()
        )

    @property
    def doubts(self) -> tuple[Note, ...]:
        """What `measure` says of such searches, by the same rules; each word once."""
        if not self.measurements or self.procedure is None or self.parameters is None:
            return ()
        found = _doubts(self.procedure, self.parameters, self.measurements)
        number = len(self.measurements)
        return tuple(_once_each([one for one in found if one.word != _OF_SEVERAL or number == 1], number))


def _doubts(
    procedure: Procedure[SearchSettings], parameters: Parameters, measurements: Sequence[Measurement]
) -> tuple[Note, ...]:
    measured = make_result(procedure.metric, procedure.unit, {}, measurements)
    return tuple(one for one in doubts.find(measured, parameters) if one.word != _OF_MEDIANS)


def _once_each(found: Sequence[Note], searches: int) -> Iterator[Note]:
    """The first doubt of each word, and how many searches have such a doubt with other figures."""
    for word in dict.fromkeys(one.word for one in found):
        alike = [one for one in found if one.word == word]
        text = alike[0].text
        yield Note(word, text if len(alike) == 1 else f"{text} (so in {len(alike)} of {searches} searches)")


def pairs(baseline: Searched, other: Searched) -> list[tuple[RateBounds, RateBounds]]:
    """Of the rounds in which both have a rate."""
    both = zip(baseline.rounds, other.rounds, strict=False)
    return [(first, one) for first, one in both if first is not None and one is not None]


def ratio_of(baseline: Searched, other: Searched, alpha: float) -> MedianEstimate | None:
    """Of the median ratio of costs: its ends are those of the lowest and the highest ratios that the bounds allow."""
    both = pairs(baseline, other)
    middle = median_estimate([first.middle / one.middle for first, one in both], alpha)
    lowest = median_estimate([first.lower / one.upper for first, one in both], alpha)
    highest = median_estimate([first.upper / one.lower for first, one in both], alpha)
    if middle is None or lowest is None or highest is None:
        return None
    interval = ConfidenceInterval(lowest.lower, highest.upper, middle.interval.coverage)
    return MedianEstimate(middle.value, interval, len(both))


def refuse_too_few(baseline: Searched, other: Searched, connections: Mapping[str, int], goal: ComparisonGoal) -> None:
    """Refuse connections so few that no number of rounds could answer, however alike these were.

    Queues and tolerated lag may raise a rate by more the shorter its trials are. Here that alone makes half of the
    ratio's interval wider than asked for. Only the first pair of rates is looked at. With `fail_above` a wide interval
    may answer, too; where the searches alone leave more than is asked for, more connections are no remedy.

    Args:
        baseline: rates of new connections.
        other: the same of another gateway.
        connections: N of each gateway, by label.
        goal: how narrow an interval must be.

    Raises:
        UsageError: they are too few; the text says how many would do.
    """
    both = pairs(baseline, other)
    if goal.fail_above is not None or len(both) != 1:
        return
    first, one = both[0]
    queued = _half_width(*(replace(each, upper=each.passed) for each in (first, one)))
    searched = _half_width(*(replace(each, lower=each.passed) for each in (first, one)))
    if not queued > goal.resolve > searched:
        return
    side, bounds = max(((baseline, first), (other, one)), key=lambda pair: pair[1].passed / pair[1].lower)
    number = connections[side.label]
    # Half of what the searches leave: the other half is for what differs from round to round.
    enough = number * queued / ((goal.resolve - searched) / 2)
    raise UsageError(
        f"connections: {number} of {side.label} are established within {number / bounds.passed * 1000:.3g} ms, so "
        f"queues and tolerated lag may have raised its rate by up to {bounds.passed / bounds.lower - 1:.1%}, and no "
        f"ratio can be known to {goal.resolve:.1%} (--resolve); choose at least {rounded_up(enough):,} connections"
    )


def _half_width(first: RateBounds, one: RateBounds) -> float:
    """Of the interval that one pair leaves, as a share of the larger cost."""
    ratio, low, high = first.middle / one.middle, first.lower / one.upper, first.upper / one.lower
    return relative_half_width(ratio, low, high)
