# SPDX-License-Identifier: Apache-2.0
"""The tables: a row for each limit, a column for each gateway."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.analysis.contrast import Span
from natgauge.analysis.sizing import OF_CORES, Sizing, Use, resource_of
from natgauge.figure_text import at_least, at_most, number
from natgauge.reports.graded_doubts import mark
from natgauge.reports.sizing.facts import grave_doubts
from natgauge.reports.sizing.question import limit_of_frames
from natgauge.reports.sizing.words import cores_in_words, metrics_of, names_of, shown, span_in_words
from natgauge.words import enumerated

#: The heads of the rows of a limit of frames, by how subscribers use the directions.
_UP_AS_DOWN: Final = "frames, up as down"
_NONE_UP: Final = "frames, none up"
#: A limit of this many times the subscribers is far from them.
_FAR: Final = 10
#: Units of bits/s, the largest first.
_PREFIXES: Final = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))
#: A table: its head, and its rows.
Table = tuple[tuple[str, ...], ...]


def tables_of(found: Sequence[Sizing]) -> list[Table]:
    """Return the table of subscribers, with a row for each limit, and where there are some that of cores and bits/s."""
    names, (scale, unit) = names_of(found), _prefix_of(found)
    parts = [("needed", list(_cores(found))), ("carried", list(_bits(found, scale, unit)))]
    others = [row for _, rows in parts for row in rows]
    head = enumerated([of for of, rows in parts if rows])
    tables: list[Table] = [(("subscribers at most", *names), *_limits(found))]
    return [*tables, ((head, *names), *others)] if others else tables


def _limits(found: Sequence[Sizing]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each limit, those that decide first; frames have one for each way of being used."""
    every = [{cell.name: cell for cell in _cells(sizing)} for sizing in found]
    lacking = [{cell.of: cell for cell in _lacking(sizing)} for sizing in found]
    rows = {name: cell.of for cells in every for name, cell in cells.items()}
    rows |= {cell.name: of for cells in lacking for of, cell in cells.items() if of not in rows.values()}
    for name, of in rows.items():
        shown_cells = [cells.get(name) or lacks.get(of) for cells, lacks in zip(every, lacking, strict=True)]
        yield name, *("-" if cell is None else cell.text for cell in shown_cells)


def _cores(found: Sequence[Sizing]) -> Iterator[tuple[str, ...]]:
    """Yield rows of the cores that all need; none where one carries them, or their number is not known."""
    number, limits = found[0].asked.number, [limit for one in found for limit in one.limits]
    if not any(limit.ended in OF_CORES and limit.fits(number) != "carries" for limit in limits):
        return
    uses: Mapping[str, Use | None] = {"cores for all": None}
    if any(limit.busier_share is not None for limit in limits):
        uses = {"cores for all, up as down": "both ways", "cores for all, none up": "one way"}
    for name, use in uses.items():
        cores = [sizing.cores_for(number, use) for sizing in found]
        if any(cores):
            yield name, *("not known" if one is None else cores_in_words(one) for one in cores)


def _bits(found: Sequence[Sizing], scale: float, unit: str) -> Iterator[tuple[str, ...]]:
    """Yield a row of the bits/s of the subscribers whose frames are carried; none where no frames were measured."""
    bits, cells = 1e6 * (found[0].asked.megabits or 0) / scale, list[str]()
    for sizing in found:
        limit = limit_of_frames(sizing)
        both = None if limit is None else limit.both_ways
        sign = "" if limit is None else mark(grave_doubts(limit, sizing.asked))
        cells.append("-" if both is None else f"{_rounded(both.lower * bits, both.upper * bits)}{sign}")
    if set(cells) != {"-"}:
        yield f"{unit} carried each way", *cells


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell of a gateway with the head of its row; `of` is the limit."""

    name: str
    of: str
    text: str


def _cells(sizing: Sizing) -> Iterator[_Cell]:
    """Yield the cells of the limits of a gateway."""
    number = sizing.asked.number
    for limit in sizing.limits:
        sign = mark(grave_doubts(limit, sizing.asked))
        if limit.busier_share is not None:
            yield _Cell(_UP_AS_DOWN, limit.ended, f"{_most(limit.both_ways, number)}{sign}")
            yield _Cell(_NONE_UP, limit.ended, f"{_most(limit.one_way, number)}{sign}")
            continue
        result, name = limit.result, shown(limit.ended)
        resource = None if result is None else resource_of(result)
        if result is not None and resource == limit.ended and result.metric != metrics_of(resource)[0]:
            name += f" ({result.metric})"
        yield _Cell(name, limit.ended, f"{_most(limit.subscribers, number)}{sign}")


def _most(known: Span, number: int) -> str:
    """A number of subscribers; a range far beyond those that are asked for limits nothing, and has three digits."""
    lower, upper = (math.floor(end) if math.isfinite(end) else end for end in (known.lower, known.upper))
    return _rounded(lower, upper) if _FAR * number <= lower < upper else span_in_words(known)


def _lacking(sizing: Sizing) -> Iterator[_Cell]:
    """Yield a cell for each resource that was not measured, or that is no limit of the gateway."""
    known = {limit.ended for limit in sizing.limits}
    for word, needs in (("not measured", sizing.missing), ("no limit", sizing.no_limit)):
        for need in needs:
            if need not in known:
                yield _Cell(shown(need), need, word)


def _prefix_of(found: Sequence[Sizing]) -> tuple[float, str]:
    """The unit of the largest bits/s in the table, and how many bits/s it is."""
    bits = 1e6 * (found[0].asked.megabits or 0)
    carried = [limit.both_ways.upper for one in found for limit in one.limits if limit.busier_share is not None]
    largest = bits * max([found[0].asked.number, *filter(math.isfinite, carried)])
    return next((each for each in _PREFIXES if each[0] <= largest), _PREFIXES[-1])


def _rounded(lower: float, upper: float) -> str:
    """What is carried, rounded outward."""
    if lower <= 0 < upper < math.inf:
        return f"up to {at_most(upper)}"
    if math.isinf(upper):
        return f"{at_least(lower)} or more" if lower > 0 else "any number"
    return number(lower) if lower == upper else f"{at_least(lower)} to {at_most(upper)}"


def transposed(table: Table) -> Table:
    """Return a table whose rows are its columns."""
    return tuple(zip(*table, strict=True))
