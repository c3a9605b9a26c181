# SPDX-License-Identifier: Apache-2.0
"""The table: a row for each limit, a column for each gateway."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.analysis.sizing import OF_CORES, Ended, Sizing, Use, resource_of
from natgauge.figure_text import at_least, at_most, exact, number
from natgauge.metrics.metric import Resource
from natgauge.reports.graded_doubts import mark
from natgauge.reports.sizing.facts import grave_doubts
from natgauge.reports.sizing.words import cores_in_words, figure_in_words, metrics_of, names_of, span_in_words

#: The heads of the table, before those of the gateways.
_AT_MOST: Final = "subscribers at most"
_NEEDED: Final = "needed by all"
#: The last row of the limit of frames; the cores are below it.
_ONE_WAY: Final = "frames, one way idle"
#: Units of bits/s, the largest first.
_PREFIXES: Final = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))


def table_of(found: Sequence[Sizing]) -> Iterator[tuple[str, ...]]:
    """Yield the head, and a row for each limit, those that decide first; frames have one for each way of being used."""
    yield (_AT_MOST, _NEEDED, *names_of(found))
    scale, unit = _prefix_of(found)
    every = [{cell.name: cell for cell in _cells(sizing, scale, unit)} for sizing in found]
    lacking = [{cell.of: cell for cell in _lacking(sizing, scale, unit)} for sizing in found]
    rows = {name: cell.of for cells in every for name, cell in cells.items()}
    rows |= {of: of for cells in lacking for of in cells if of not in rows.values()}
    for name, of in rows.items():
        shown = [cells.get(name) or lacks.get(of) for cells, lacks in zip(every, lacking, strict=True)]
        needed = dict.fromkeys(cell.needed for cell in shown if cell is not None and cell.name in (name, of))
        yield name, " or ".join(needed), *("-" if cell is None else cell.text for cell in shown)
        if name == _ONE_WAY:
            yield from _cores(found, {"cores, both ways busy": "both ways", "cores, one way idle": "one way"})
    if _ONE_WAY not in rows:
        yield from _cores(found, {"cores for all": None})


def _cores(found: Sequence[Sizing], rows: Mapping[str, Use | None]) -> Iterator[tuple[str, ...]]:
    """Yield rows of the cores that all need; none where one carries them, or their number is not known."""
    number, limits = found[0].asked.number, [limit for one in found for limit in one.limits]
    if not any(limit.ended in OF_CORES and limit.fits(number) != "carries" for limit in limits):
        return
    for name, use in rows.items():
        cores = [sizing.cores_for(number, use) for sizing in found]
        if any(cores):
            yield name, "-", *("not known" if one is None else cores_in_words(one) for one in cores)


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell of a gateway with the head of its row; `of` is the limit, and `needed` is what all subscribers need."""

    name: str
    of: str
    needed: str
    text: str


def _cells(sizing: Sizing, scale: float, unit: str) -> Iterator[_Cell]:
    """Yield the cells of the limits of a gateway; `scale` is that of the unit of bits/s."""
    asked = sizing.asked
    bits = 1e6 * (asked.megabits or 0) / scale
    for limit in sizing.limits:
        sign = mark(grave_doubts(limit.result))
        if limit.busier_share is not None:
            both, all_bits = limit.both_ways, number(bits * asked.number)
            frames = f"{number(limit.of_all(asked.number))} {limit.unit}"
            yield _Cell("frames, both ways busy", limit.ended, frames, f"{span_in_words(both)}{sign}")
            carried = _carried_bits(both.lower * bits, both.upper * bits)
            yield _Cell(f"the same in {unit}", limit.ended, all_bits, f"{carried}{sign}")
            yield _Cell(_ONE_WAY, limit.ended, frames, f"{span_in_words(limit.one_way)}{sign}")
            continue
        result, name = limit.result, str(limit.ended)
        resource = None if result is None else resource_of(result)
        if result is not None and resource == limit.ended and result.metric != metrics_of(resource)[0]:
            name += f" ({result.metric})"
        needed = _needed(limit.ended, limit.of_all(asked.number), limit.unit, is_least=limit.is_least)
        yield _Cell(name, limit.ended, needed, f"{span_in_words(limit.subscribers)}{sign}")


def _lacking(sizing: Sizing, scale: float, unit: str) -> Iterator[_Cell]:
    """Yield a cell for each resource that was not measured, or that is no limit of the gateway."""
    asked = sizing.asked
    amounts: Mapping[Resource, tuple[float | None, str]] = {
        "new connections": (asked.new, "connections/s"),
        "open connections": (asked.entries, "connections"),
        "frames": (None if asked.megabits is None else 1e6 * asked.megabits / scale, unit),
    }
    known = {limit.ended for limit in sizing.limits}
    for word, needs in (("not measured", sizing.missing), ("no limit", sizing.no_limit)):
        for need in needs:
            amount, of = amounts[need]
            if need not in known and amount is not None:
                is_least = need == "open connections" and asked.may_take_more
                needed = _needed(need, float(exact(amount) * asked.number), of, is_least=is_least)
                yield _Cell(need, need, needed, word)


def _needed(ended: Ended, amount: float, unit: str, *, is_least: bool) -> str:
    """What all need, without the words that the head of the row has."""
    if ended == "frames":
        return f"{number(amount)} {unit}"
    said = unit.removeprefix("connections") if ended in ("new connections", "open connections") else f" {unit}"
    return f"{figure_in_words(amount)}{said}{' or more' if is_least else ''}"


def _prefix_of(found: Sequence[Sizing]) -> tuple[float, str]:
    """The unit of the largest bits/s in the table, and how many bits/s it is."""
    bits = 1e6 * (found[0].asked.megabits or 0)
    carried = [limit.both_ways.upper for one in found for limit in one.limits if limit.busier_share is not None]
    largest = bits * max([found[0].asked.number, *filter(math.isfinite, carried)])
    return next((each for each in _PREFIXES if each[0] <= largest), _PREFIXES[-1])


def _carried_bits(lower: float, upper: float) -> str:
    """Bits/s that are carried, rounded outward."""
    if lower <= 0 < upper < math.inf:
        return f"up to {at_most(upper)}"
    if math.isinf(upper):
        return f"{at_least(lower)} or more" if lower > 0 else "any number"
    return number(lower) if lower == upper else f"{at_least(lower)} to {at_most(upper)}"


def transposed(table: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Return a table whose rows are its columns."""
    return tuple(zip(*table, strict=True))
