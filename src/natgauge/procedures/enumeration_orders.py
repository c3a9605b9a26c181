# SPDX-License-Identifier: Apache-2.0
"""Orders of enumeration compared: what RFC 9693 section 4.4 asks of phase 1, and what happens without it.

docs/method/enumeration-orders.md has the method. Of the last of N = S random draws only 1/e = 36.8 % open a connection,
so the rate that is measured with draws is a mixture of opening and forwarding. The share of new connections among the
last frames of the draws comes from a second trial with a few frames less and the same seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

from natgauge.errors import BrokenError
from natgauge.figure_text import in_percent
from natgauge.inputs.input import whole
from natgauge.metrics.catalogue import ENUMERATION_ORDERS
from natgauge.metrics.metric import HELD_FIGURE
from natgauge.notes import Note
from natgauge.procedures.kit import rate_search
from natgauge.procedures.kit.held_connections import HeldConnections, all_at_no_rate
from natgauge.procedures.kit.phases import (
    DrawSettings,
    Phase1Settings,
    Preparation,
    expected_connections,
    expected_new,
    measure_first,
    safely_below,
)
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.results import Measurement
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.words import DRAWN, Order

#: The last frames of the draws: enough to count new ones among them, few enough to be the end.
ENDING_SHARE = 0.02


@dataclass(frozen=True, kw_only=True)
class EnumerationOrdersSettings(DrawSettings, Phase1Settings, rate_search.SearchSettings):
    """Settings of the comparison; draws are those of the one order that draws."""

    always_draws = True
    measures_connection_rate = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.four_tuples is not None:
            whole("four tuples", self.four_tuples, self.connections, 2**32)

    @property
    def unused(self) -> dict[str, str]:
        """The connection rate: each order has one of its own."""
        return super().unused | {"connection_rate": "that of each order is measured"}


class _EnumerationOrders(HeldConnections[EnumerationOrdersSettings]):
    """The share of connections that draws with replacement created, in %, and each order's rate."""

    def __init__(self, runner: TrialRunner, settings: EnumerationOrdersSettings) -> None:
        # Each order has a phase 1 of its own, so none is looked for here.
        super().__init__(runner, settings, Preparation(1.0, 1.0))

    def once(self, _known: float | None) -> Measurement:
        rows = []
        figures: dict[str, float] = {}
        for order in get_args(Order):
            ordered = replace(self.settings, order=order)
            rate = self._connection_rate(ordered)
            self.preparation = safely_below(rate)
            frames = ordered.phase1_frames
            created = self._created(ordered, frames)
            name = order.replace("-", "_")
            figures |= {f"rate_{name}": rate, f"created_percent_{name}": 100 * created / frames}
            rows.append(
                {
                    "order": order,
                    "frames": float(frames),
                    "rate": rate,
                    "connections": float(created),
                    "connections_expected": ordered.expected_connections,
                }
            )
            if order == DRAWN:
                last = max(1, round(ENDING_SHARE * frames))
                earlier = frames - last
                before = self._created(ordered, earlier) if earlier else 0
                figures["ending_new_percent"] = 100 * (created - before) / last
        return self.measurement(figures["created_percent_with_replacement"], figures=figures, series=rows)

    def notes(self, _measurements: Sequence[Measurement]) -> Sequence[Note]:
        drawn = replace(self.settings, order=DRAWN)
        draws, space = drawn.phase1_frames, drawn.space
        text = (
            f"expected of {draws} draws out of {space} four tuples: "
            f"{in_percent(expected_connections(draws, space) / draws)} "
            f"create a connection, of the last ones {in_percent(expected_new(draws, space))}"
        )
        return [Note("method", text)]

    def phase1_notes(self) -> Sequence[Note]:
        """None: each order's is in its row."""
        return ()

    def _connection_rate(self, settings: EnumerationOrdersSettings) -> float:
        result = measure_first(
            "connection-rate",
            self.runner,
            settings,
            error=settings.error,
            loss_verifications=settings.loss_verifications,
            confirm=settings.confirm,
            draws=settings.draws if settings.order == DRAWN else None,
            four_tuples=settings.four_tuples,
        )
        if result.summary.median == 0:
            reason = all_at_no_rate(result.notes, held=HELD_FIGURE in result.figures)
            raise BrokenError(f"{ENUMERATION_ORDERS}: order {settings.order}: {reason}")
        advice = rate_search.length_of_connections(settings.phase1_frames).advice
        what = f"the rate of order {settings.order}"
        short = rate_search.short_note(result.measurements, settings.placement, settings.error, advice, what)
        self.repetition_notes.extend(short)
        return result.summary.median

    def _created(self, settings: EnumerationOrdersSettings, frames: int) -> int:
        """Connections after that number of frames, by the device's own count if it has one."""
        rate = self.preparation.rate
        outcome = self.must(rate, replace(settings.phase1_plan(rate), connections=frames))
        if outcome.table_count is not None:
            return outcome.table_count
        if settings.order == DRAWN:
            # The Responder counts draws, not the four tuples among them.
            raise BrokenError(
                f"{ENUMERATION_ORDERS}: the device does not report its connections, so those of draws are not known"
            )
        return outcome.stored


PROCEDURE = Procedure(
    ENUMERATION_ORDERS,
    settings=EnumerationOrdersSettings,
    start=_EnumerationOrders,
    profiles={"standard": {"repeat": 3}, "rfc": {"repeat": 10}},
)
