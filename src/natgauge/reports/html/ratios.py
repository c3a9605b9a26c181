# SPDX-License-Identifier: Apache-2.0
"""Sentences that list ratios of several gateways, as one table of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.reports.answers import Sentence

#: A page with fewer ratios has them in sentences.
_FEW: Final = 2


@dataclass(frozen=True, slots=True)
class RatioTable:
    """Ratios: a row for each gateway, a column for each sentence."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tabled_of(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences that a table says better; none where there are few ratios."""
    having = [one for one in sentences if len(one.ratios) > 1 and not one.leads]
    return having if sum(len(one.ratios) for one in having) > _FEW else []


def ratio_table(sentences: Sequence[Sentence]) -> RatioTable | None:
    """Return the table of the ratios of these sentences; None where there are none."""
    if not sentences:
        return None
    gateways = dict.fromkeys(gateway for one in sentences for gateway, _ in one.ratios)
    columns = [dict(one.ratios) for one in sentences]
    return RatioTable(
        ("gateway", *(one.about for one in sentences)),
        tuple((gateway, *(column.get(gateway, "-") for column in columns)) for gateway in gateways),
    )
