# SPDX-License-Identifier: Apache-2.0
"""The interface of a comparison method; `by_slices` and `by_rates` implement it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, Self

from natgauge.comparisons.request import ComparisonGoal
from natgauge.errors import BrokenError, NatgaugeError
from natgauge.gateways.limits import shares_table
from natgauge.gateways.recipe import Recipe
from natgauge.notes import Note
from natgauge.procedures.kit.time_budget import TimeBudget
from natgauge.records.comparison import BaselineCost, Method, RatioEstimate, SliceCounts
from natgauge.records.parameters import Parameters
from natgauge.records.store import Store
from natgauge.words import Quantity


class NotMadeAgainError(BrokenError):
    """The labs of a later round could not be made; the text is that of the error that prevented it."""


@contextmanager
def making_again(number: int) -> Iterator[None]:
    """Make the labs of round `number`, counted from 0, within the block."""
    try:
        yield
    except NatgaugeError as error:
        if not number:
            raise
        raise NotMadeAgainError(str(error)) from error


@contextmanager
def named(label: str, recipe: str) -> Iterator[None]:
    """Put a gateway's label in front of each error of the block, unless its recipe has the same name.

    Two versions of a gateway have recipes of the same name, and messages name the recipe.
    """
    try:
        yield
    except NatgaugeError as error:
        if label != recipe:
            error.args = (f"{label}: {error}",)
        raise


def sharing(recipes: Iterable[Recipe]) -> int:
    """Return the number of gateways that share a table of the whole machine, at least 1.

    The table gets that many times the buckets, so that each gateway has the buckets that it has alone.
    """
    return max(1, sum(map(shares_table, recipes)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """Results of all rounds in addition to ratios; fields as those of `ComparisonRecord` and `GatewayRecord`.

    Attributes:
        parameters: all that was set for each gateway, by its label: the baseline first, the A/A control last.
        rates: highest rates by the label of the gateway; empty by slices.
    """

    by: Method
    parameters: Mapping[str, Parameters]
    baseline_costs: tuple[BaselineCost, ...]
    forwarding_nanoseconds: dict[Quantity, float | None] = field(default_factory=dict)
    slices: SliceCounts | None = None
    rates: Mapping[str, dict[Quantity, float | None]] = field(default_factory=dict)
    doubts: Mapping[str, dict[Quantity, tuple[Note, ...]]] = field(default_factory=dict)


class ComparisonMethod(Protocol):
    """A method of comparing gateways; within its `with` block labs and gateways may be up.

    Attributes:
        stage: the work in words, for the progress.
        first_analysis: rounds before the first interim analysis.
    """

    stage: str
    first_analysis: int

    @property
    def notes(self) -> Sequence[Note]:
        """Notes on the rounds so far."""

    def __enter__(self) -> Self:
        """Make all labs and start all gateways.

        Raises:
            NatgaugeError: as `Bench`.
        """

    def __exit__(self, *exception: object) -> None:
        """Stop all gateways and undo all labs."""

    def conditions(self) -> Mapping[str, object]:
        """Return all choices, for the results folder."""

    def devices(self) -> Mapping[str, object]:
        """Return the configuration of each gateway, by its label."""

    def round(self, store: Store, number: int, budget: TimeBudget) -> None:
        """Measure each gateway once, store the evidence and add it to the estimates; `number` is counted from 0.

        What does not fit into the time that is left is left out, and the estimates say so.

        Raises:
            NatgaugeError: the round failed.
            NotMadeAgainError: the labs of a later round than the first could not be made.
            BrokenError: a gateway loses frames, or has no rate, so it cannot be compared; or the time ended in the
                first round.
        """

    def least_rounds(self, alpha: float) -> int:
        """Return the rounds that an interval needs if there is a single analysis; `alpha` as in `estimates`."""

    def estimates(self, goal: ComparisonGoal, alpha: float) -> list[RatioEstimate]:
        """Return the estimates of all gateways but the baseline, the A/A control's last; see `goal` and `alpha`."""

    def findings(self) -> Findings:
        """Return what the record contains in addition to ratios, while the labs are up."""
