# SPDX-License-Identifier: Apache-2.0
"""Series over loads, summarized over all repetitions: loss and delays at each load, with their spread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from natgauge.records.measurement import Result
from natgauge.statistics.figure import FigureSummary
from natgauge.statistics.summary import summarize

#: Columns of a series that contain the load, in percent. A series without such a column is not one over loads.
LOADS: Final = ("offered_percent", "load_percent")
#: Column of a frame loss series: the share of the frames that the device lost (RFC 2544 section 26.3).
LOST: Final = "lost_percent"


@dataclass(frozen=True, slots=True)
class ByLoad:
    """A series over loads.

    Attributes:
        at: summary of each other number of the rows, by load in percent and by name, in the order of the rows.
    """

    column: str
    at: Mapping[float, Mapping[str, FigureSummary]]
    of_value: float


def loss_figure(result: Result) -> str:
    """Return the column of a frame loss series that its value is from.

    RFC 2544 section 26.3 counts lost frames. In shared placement a busy device slows the sender, so they are not all
    that is missing there.
    """
    return "shortfall_percent" if result.placement == "shared" else LOST


def by_load(result: Result) -> ByLoad | None:
    """Return a result's series over loads, summarized over all repetitions; None where it has no such series."""
    rows = [row for repetition in result.repetitions for row in repetition.series]
    column = next((name for name in LOADS if rows and name in rows[0]), None)
    if column is None:
        return None
    values: dict[float, dict[str, list[float]]] = {}
    for row in rows:
        load = row.get(column)
        if not isinstance(load, int | float):
            continue
        at_load = values.setdefault(load, {})
        for name, value in row.items():
            if name != column and isinstance(value, int | float):
                at_load.setdefault(name, []).append(value)
    if not values:
        return None
    summaries = {
        load: {name: summarize(numbers) for name, numbers in at_load.items()} for load, at_load in values.items()
    }
    return ByLoad(column, summaries, next(iter(values)))
