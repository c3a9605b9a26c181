# SPDX-License-Identifier: Apache-2.0
"""How many subscribers gateways carry: the tables, the text for terminals and the page, and a document for programs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from natgauge.analysis.contrast import Span
from natgauge.analysis.sizing import (
    OF_CORES,
    Ended,
    Sizing,
    Subscribers,
    Use,
    addresses_for,
    resource_of,
    sizes_in_words,
)
from natgauge.figure_text import at_least, at_most, in_full, number, with_noun
from natgauge.records.measurement import Result
from natgauge.reports.graded_doubts import mark
from natgauge.reports.sizing.verdict import (
    answer_lines,
    doubt_lines,
    first_metric,
    grave_doubts,
    groups_by_answer,
    most_share,
    sentences_of,
    which_carry,
)
from natgauge.reports.sizing.words import (
    commands_of,
    cores_in_words,
    frames_of_all,
    left_out,
    limit_of_frames,
    metrics_of,
    names_of,
    question_of,
    reason_of,
    shown,
    span_in_words,
    sum_of_all,
    unused_of,
)
from natgauge.statistics.summary import finite
from natgauge.tables import aligned
from natgauge.words import enumerated

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
    every, lacking = list(map(_cells, found)), list(map(_lacking, found))
    rows = dict.fromkeys(row for cells in every for row in cells)
    measured = {of for _, of in rows}
    rows |= dict.fromkeys((shown(of), of) for lacks in lacking for of in lacks if of not in measured)
    tables = list(zip(every, lacking, strict=True))
    for name, of in rows:
        yield name, *(cells.get((name, of)) or lacks.get(of, "-") for cells, lacks in tables)


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


def _cells(sizing: Sizing) -> dict[tuple[str, Ended], str]:
    """Return the cells of the limits of a gateway, by the head of the row and the limit."""
    number, cells = sizing.asked.number, dict[tuple[str, Ended], str]()
    for limit in sizing.limits:
        sign = mark(grave_doubts(limit, sizing.asked))
        if limit.busier_share is not None:
            cells["frames, up as down", limit.ended] = f"{_most(limit.both_ways, number)}{sign}"
            cells["frames, none up", limit.ended] = f"{_most(limit.one_way, number)}{sign}"
            continue
        result, name = limit.result, shown(limit.ended)
        resource = None if result is None else resource_of(result)
        if result is not None and resource == limit.ended and result.metric != metrics_of(resource)[0]:
            name += f" ({result.metric})"
        cells[name, limit.ended] = f"{_most(limit.subscribers, number)}{sign}"
    return cells


def _most(known: Span, number: int) -> str:
    """A number of subscribers; a range far beyond those that are asked for limits nothing, and has three digits."""
    lower, upper = (math.floor(end) if math.isfinite(end) else end for end in (known.lower, known.upper))
    return _rounded(lower, upper) if _FAR * number <= lower < upper else span_in_words(known)


def _lacking(sizing: Sizing) -> dict[Ended, str]:
    """Return a cell for each resource that was not measured, or that is no limit of the gateway."""
    known = {limit.ended for limit in sizing.limits}
    words = (("not measured", sizing.missing), ("no limit", sizing.no_limit))
    return {need: word for word, needs in words for need in needs if need not in known}


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


def _transposed(table: Table) -> Table:
    return tuple(zip(*table, strict=True))


#: The most gateways that are columns of the page's table; of more each is a row.
_MOST_COLUMNS: Final = 4


@dataclass(frozen=True, slots=True)
class SizeAnswer:
    """What results say of subscribers, without their doubts; the question is with the sum of all of them.

    Attributes:
        verdicts: which carry all, if answers differ; then of gateways with the same answer the lines: the answer, the
            cores of all, why, and what limits it.
        tables: each with its head, and a row for each limit; behind its name is a cell for each gateway.
        metric: that of the result that limits first; None = no result does.
    """

    title: str
    question: str
    verdicts: tuple[tuple[str, ...], ...]
    tables: tuple[Table, ...]
    sentences: tuple[str, ...]
    commands: tuple[tuple[str, tuple[str, ...]], ...] = ()
    metric: str | None = None

    @property
    def page_tables(self) -> tuple[Table, ...]:
        """The tables with as many columns as a page has room for."""
        is_wide = len(self.tables[0][0]) - 1 > _MOST_COLUMNS
        return tuple(map(_transposed, self.tables)) if is_wide else self.tables


def answer_of(found: Sequence[Sizing]) -> SizeAnswer:
    """Return the answer on all gateways, of which there is at least one."""
    asked = found[0].asked
    gateways = list(dict.fromkeys(sizing.results[0].gateway for sizing in found))
    subscribers = with_noun(in_full(asked.number), "subscribers")
    title = (
        f"Does {gateways[0]} carry {subscribers}?" if len(gateways) == 1 else f"Which gateway carries {subscribers}?"
    )
    groups = groups_by_answer(found)
    verdicts = [
        *([which_carry(found)] if len(groups) > 1 else []),
        *(answer_lines(group, is_whole=len(groups) == 1) for group in groups),
    ]
    return SizeAnswer(
        title,
        f"{question_of(asked)}{sum_of_all(found)}.",
        tuple(map(tuple, verdicts)),
        tuple(tables_of(found)),
        tuple(sentences_of(found)),
        tuple((what, tuple(own)) for what, own in commands_of(found).items()),
        first_metric(found[0]),
    )


def exit_status(found: Sequence[Sizing], subscribers: int) -> int:
    """0 where every gateway carries them, 1 where one does not, 5 where it cannot be told of one."""
    fits = {sizing.fits(subscribers) for sizing in found}
    return 1 if "does not carry" in fits else 5 if "cannot tell" in fits else 0


def text(found: Sequence[Sizing], asked: Subscribers, given: Sequence[Result] = (), width: int = 100) -> str:
    """Return the answers, one table, and what they rest on; of the results given, which are left out.

    Args:
        width: where a table with a column for each gateway is wider, each gateway is a row, if that is narrower.
    """
    said, left = answer_of(found), left_out(given, asked)
    parts = [
        [said.question],
        *said.verdicts,
        *(_narrow(table, width) for table in said.tables),
        [*said.sentences, *doubt_lines(found)],
        *([f"{what}:", *(f"  {command}" for command in commands)] for what, commands in said.commands),
        [f"Not used: {left}."] if left else [],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _narrow(table: Table, width: int) -> list[str]:
    """The lines of a table, with a row for each gateway where it is too wide and that is narrower."""
    by_gateway, by_limit = (aligned(each, right=range(1, len(each[0]))) for each in (table, _transposed(table)))
    return by_gateway if max(map(len, by_gateway)) <= max(width, *map(len, by_limit)) else by_limit


def document(found: Sequence[Sizing], asked: Subscribers, given: Sequence[Result] = ()) -> dict[str, Any]:
    """Return the answers as JSON objects; an end, and a number of cores, that is not known is null."""
    frames = frames_of_all(found)
    wire = frames and frames.wire
    return {
        "schema": "natgauge-size-1",
        "subscribers": asked.number,
        "each": {
            "connections": asked.connections,
            "new_per_second": asked.new,
            "megabits": asked.megabits,
            "mean_frame": asked.mean_frame,
            "device_timeout": asked.kept,
        },
        "outside_addresses": asked.outside_addresses,
        "all": {
            "megabits": None if asked.megabits is None else asked.number * asked.megabits,
            "wire_megabits": wire and asked.number * wire / 1e6,
            "frames_per_second": frames and asked.number * frames.each,
            "mean_frame": frames and frames.octets,
        },
        "gateways": [_gateway(sizing) for sizing in found],
        "not_used": [
            {
                "metric": result.metric,
                "gateway": result.gateway,
                "result": result.results,
                "reason": reason_of(result, why),
            }
            for result, why in unused_of(given, asked)
        ],
    }


def _gateway(sizing: Sizing) -> dict[str, Any]:
    first, asked = sizing.results[0], sizing.asked
    return {
        "gateway": first.gateway,
        "placement": first.placement,
        "device_cores": first.device_cores or None,
        "logging": first.parameter("logging"),
        "log_tolerance": first.parameter("log_tolerance"),
        "answer": sizing.fits(asked.number),
        "text": " ".join(answer_lines([sizing])),
        "commands": [command for own in commands_of([sizing]).values() for command in own],
        "functional": any(result.functional for result in sizing.results),
        "missing": list(sizing.missing),
        "no_limit": list(sizing.no_limit),
        "not_looked_at": list(sizing.not_looked_at),
        "cores": _cores_in_document(sizing, None),
        "cores_both_ways_busy": _cores_in_document(sizing, "both ways"),
        "cores_one_way_idle": _cores_in_document(sizing, "one way"),
        "tester_share": most_share(sizing),
        "least_outside_addresses": addresses_for(sizing),
        "device_timeout": asked.kept,
        "entries_each": asked.entries,
        "least_entries": asked.least_entries,
        "with_fewer_connections": list(sizing.with_fewer),
        "table_limit": sizing.table_limit,
        "limits": [
            {
                "ended": limit.ended,
                "unit": limit.unit,
                "each": limit.each,
                "all": limit.of_all(asked.number),
                "measured": _ends(limit.measured),
                "subscribers": _ends(limit.subscribers),
                "both_ways_busy": _ends(limit.both_ways) if limit.busier_share else None,
                "one_way_idle": _ends(limit.one_way) if limit.busier_share else None,
                "answer": limit.fits(asked.number),
                "metric": limit.result.metric if limit.result else None,
                "result": limit.result.results if limit.result else None,
                "table_connections": limit.result and limit.result.number("connections"),
                "frames": sizes_in_words(limit.result) if limit.result and limit.frame_octets else None,
            }
            for limit in sizing.limits
        ],
        "doubts": [
            {"metric": result.metric, "word": doubt.word, "grade": doubt.grade, "text": doubt.text}
            for result in sizing.results
            for doubt in result.doubts
        ],
    }


def _cores_in_document(sizing: Sizing, use: Use | None) -> list[float | None] | None:
    cores = sizing.cores_for(sizing.asked.number, use)
    return None if cores is None else _ends(cores)


def _ends(span: Span) -> list[float | None]:
    return [span.lower, finite(span.upper)]
