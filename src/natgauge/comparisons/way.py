# SPDX-License-Identifier: Apache-2.0
"""What a comparison asks of a way to set gateways beside each other: `by_slices` and `by_rates` are the two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, Self

from natgauge.comparisons.asked import ComparisonGoal
from natgauge.errors import BrokenError, NatgaugeError
from natgauge.notes import Note
from natgauge.records.comparison import BaselineCost, Method, RatioEstimate, SliceCounts
from natgauge.records.parameters import Parameters
from natgauge.records.store import Store
from natgauge.words import Quantity


class NotMadeAgainError(BrokenError):
    """The labs of a further round could not be made; the text is that of the error that kept them from it."""


@contextmanager
def making_again(number: int) -> Iterator[None]:
    """Within the block the labs of a round are made; rounds are counted from 0.

    Raises:
        NatgaugeError: as raised within the block, for the first round.
        NotMadeAgainError: in its place, for any other round.
    """
    try:
        yield
    except NatgaugeError as error:
        if not number:
            raise
        raise NotMadeAgainError(str(error)) from error


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """What rounds found in addition to ratios; fields as those of `ComparisonRecord` and `GatewayRecord`.

    Attributes:
        rates: by the label of the gateway; empty by slices.
        doubts: of those rates, likewise.
    """

    by: Method
    baseline_costs: tuple[BaselineCost, ...]
    forwarding_nanoseconds: dict[Quantity, float | None] = field(default_factory=dict)
    slices: SliceCounts | None = None
    rates: Mapping[str, dict[Quantity, float | None]] = field(default_factory=dict)
    doubts: Mapping[str, dict[Quantity, tuple[Note, ...]]] = field(default_factory=dict)


class Way(Protocol):
    """Gateways that are up at once, within its `with` block, and what rounds told of them.

    Attributes:
        stage: what is done, for the progress.
        labels: of the gateways, the baseline first.
        first_look: after so many rounds.
    """

    stage: str
    labels: list[str]
    first_look: int

    @property
    def notes(self) -> Sequence[Note]:
        """What a reader must know of the rounds so far."""

    def __enter__(self) -> Self:
        """Make all labs and start all gateways.

        Raises:
            NatgaugeError: as `Bench`.
        """

    def __exit__(self, *exception: object) -> None:
        """Undo all."""

    def conditions(self) -> Mapping[str, object]:
        """All that was chosen, for the results folder."""

    def devices(self) -> Mapping[str, object]:
        """How each gateway is set, by its label."""

    def round(self, store: Store, number: int) -> None:
        """Visit each gateway, keep the evidence and take it into account; numbers begin with 0.

        Raises:
            NatgaugeError: it could not be run.
            NotMadeAgainError: the labs of another round than the first one could not be made.
            BrokenError: a gateway does not do what can be compared.
        """

    def least_rounds(self, alpha: float) -> int:
        """Number of rounds that an interval takes at the only look there is; `alpha` as in `figures`."""

    def estimates(self, goal: ComparisonGoal, alpha: float) -> list[RatioEstimate]:
        """Return the estimates of all gateways but the baseline, the A/A control's last; each may err with `alpha`."""

    def parameters(self) -> Mapping[str, Parameters]:
        """Return all that was set for each gateway, by its label: the baseline first, the A/A control last."""

    def findings(self) -> Findings:
        """Return what the record contains in addition to ratios."""
