# SPDX-License-Identifier: Apache-2.0
"""A figure of the page, and the results that figures are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from natgauge.records.measurement import Result
from natgauge.reports.html.charts import Row
from natgauge.reports.html.timed import Timed


class Numbered(NamedTuple):
    """A result with its number in the tables, from 1, and the delays of its trials."""

    number: int
    result: Result
    timed: Sequence[Timed] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        title: quantity and its axis.
        alternative: text alternative: the content in sentences.
        caption: meaning of the marks, and further facts that a reader needs.
        head: names of the columns of its data.
        data: its data, printed.
        draw: makes the Vega-Lite drawing for a width.
    """

    title: str
    alternative: str
    caption: str
    head: tuple[str, ...]
    data: tuple[tuple[str, ...], ...]
    draw: Callable[[int], Row]


def short(numbered: Numbered) -> str:
    """A result's name in figures: its column in the tables, and its device."""
    return f"{numbered.number}. {numbered.result.dut}"
