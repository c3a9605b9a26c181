# SPDX-License-Identifier: Apache-2.0
"""What both methods of comparing gateways share; `by_slices` and `by_rates` have the same methods.

Within the `with` block of a method labs and gateways may be up. `round` measures each gateway once, stores the evidence
and adds it to the estimates; NotMadeAgainError of a later round than the first leaves what the rounds before it gave,
any other error ends the comparison. `first_analysis` rounds are measured before the first interim analysis. `estimates`
has the A/A control's last. `findings` is asked while the labs are up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from natgauge.errors import BrokenError, NatgaugeError
from natgauge.gateways.limits import shares_table
from natgauge.gateways.recipe import Recipe
from natgauge.notes import Note
from natgauge.records.comparison import BaselineCost, Method, SliceCounts
from natgauge.records.parameters import Parameters
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
