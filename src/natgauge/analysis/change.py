# SPDX-License-Identifier: Apache-2.0
"""Changes from a first run to a second one: two records with the same key, their contrast, and the conclusion."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from natgauge.analysis.between_runs import Sitting
from natgauge.analysis.comparing import Difference
from natgauge.analysis.contrast import Contrast
from natgauge.metrics.metric import Better

#: Conclusion; "different" = verdicts or classes of behaviour differ, and neither is better.
Outcome = Literal["better", "worse", "changed", "no difference seen", "different", "cannot tell", "not compared"]

#: Reason why there is no conclusion; "" where there is one.
Reason = Literal[
    "",
    "one lab each",
    "one sitting each",
    "few repetitions",
    "limits",
    "doubts",
    "set up differently",
    "functional",
    "control",
]

#: Exit statuses for continuous integration; 2 to 4 are errors, as everywhere.
ALIKE: Final = 0
WORSE: Final = 1
UNKNOWN: Final = 5

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Conclusion from a change.

    Attributes:
        reason: word for the reason why there is none; "" otherwise.
        why: the same as a sentence, or the change that the noise may hide; empty otherwise.
        sitting: word for how results were measured in time; "" where their repetitions alternated.
    """

    outcome: Outcome
    reason: Reason = ""
    why: str = ""
    sitting: Sitting = ""


@dataclass(frozen=True, slots=True)
class Change(Generic[Thing]):
    """What two runs say of one thing, and the conclusion.

    Attributes:
        second: the thing in the second run.
        contrast: the second figure compared with the first; None where they have none, or must not be compared.
        control: factor (1 or more) by which the A/A controls of both runs differ from 1; infinite = not known.
    """

    first: Thing
    second: Thing
    conclusion: Conclusion
    contrast: Contrast | None = None
    differences: tuple[Difference, ...] = ()
    about: tuple[Difference, ...] = ()
    control: float = 1.0

    @property
    def outcome(self) -> Outcome:
        """The conclusion in a word."""
        return self.conclusion.outcome


@dataclass(frozen=True, slots=True)
class Changes(Generic[Thing]):
    """All changes in things of one kind, and the things that only one run has."""

    lines: tuple[Change[Thing], ...] = ()
    only_first: tuple[Thing, ...] = ()
    only_second: tuple[Thing, ...] = ()


def matched(
    first: Sequence[Thing],
    second: Sequence[Thing],
    key: Callable[[Thing], Hashable],
    unlike: Callable[[Thing, Thing], tuple[int, ...]] = lambda _mine, _its: (),
) -> tuple[list[tuple[Thing, Thing]], tuple[Thing, ...], tuple[Thing, ...]]:
    """Give each thing the partner with the same key that is most like it; each thing has at most one partner.

    Returns:
        The pairs in the order of the first run, and the things of each run without a partner.
    """
    candidates = sorted(
        (*unlike(mine, its), abs(at - place), at, place)
        for at, mine in enumerate(first)
        for place, its in enumerate(second)
        if key(mine) == key(its)
    )
    partners: dict[int, int] = {}
    taken: set[int] = set()
    for *_, at, place in candidates:
        if at not in partners and place not in taken:
            partners[at] = place
            taken.add(place)
    return (
        [(first[at], second[partners[at]]) for at in sorted(partners)],
        tuple(mine for at, mine in enumerate(first) if at not in partners),
        tuple(its for place, its in enumerate(second) if place not in taken),
    )


def split(
    kept: Sequence[Difference], every: Sequence[Difference]
) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    """Return the differences that forbid a comparison, and those of all differences that the comparison allows."""
    return tuple(kept), tuple(difference for difference in every if difference not in kept)


def side(contrast: Contrast, margin: float, control: float = 1.0) -> int:
    """Return 1 where the second figure is larger beyond the margins, -1 where it is smaller, 0 where neither is sure.

    Args:
        margin: share (0 to below 1) by which a figure may change; of a difference, a share of the larger median.
        control: further factor (1 or more) by which a ratio may differ from 1.
    """
    lowest, highest = -margin * contrast.larger, margin * contrast.larger
    if contrast.kind == "ratio":
        lowest, highest = (1 - margin) / control, control / (1 - margin)
    return (contrast.interval.lower > highest) - (contrast.interval.upper < lowest)


def verdict(side: int, wanted: Better | None) -> Outcome:
    """Return the outcome of a figure that is larger (1) or smaller (-1), by the values that are better."""
    if wanted is None:
        return "changed"
    return "better" if (side > 0) == (wanted == "higher") else "worse"
