# SPDX-License-Identifier: Apache-2.0
"""Results as plain text: a verdict in words, the table of RFC 9693 section 6, and the form of Internet-Drafts.

A draft has at most 72 characters per line (RFC 7994 section 4.3). Columns that do not fit into one table follow in
further tables, each with the row labels.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final

from pydantic import JsonValue

from natgauge.analysis.contrast import drift, search_error, unfailed
from natgauge.analysis.derived import LOADS, by_load
from natgauge.analysis.unit_frames import drawn_frames
from natgauge.device_work import LEAST_CONNECTIONS
from natgauge.figure_text import in_full, in_percent, number, with_noun
from natgauge.interval_text import figure_and_interval
from natgauge.metrics import declared
from natgauge.metrics.metric import OCTETS_PER_CONNECTION
from natgauge.notes import GRADES, Grade, NoteWord
from natgauge.records.measurement import SHARE_OF_LINK, Result
from natgauge.records.parameters import METHODS
from natgauge.reports import labels, main_figure
from natgauge.reports.answers import Sentence, answers, not_sure
from natgauge.reports.graded_doubts import graded
from natgauge.reports.rows import (
    CACHES,
    Cell,
    filling,
    open_at_once,
    own_share,
    printed,
    ranged,
    unit_of,
    unit_of_frames,
)
from natgauge.reports.sheet import Sheet, SheetRow, sheet
from natgauge.statistics.summary import FigureSummary
from natgauge.tables import aligned

#: Reported parameters of each link.
_OF_LINKS: Final = ("media", "link_speeds", "port_drivers", "flow_control")

#: One load or step of a series.
SeriesRow = Mapping[str, Cell]

#: Indentation of a series, and of a sentence below its row.
_INDENT: Final = "    "
#: A cell with more characters is a sentence, not a word or a number.
_LONGEST_WORDS: Final = 24
#: The most rows of a series that are shown; the results folder has all.
_MOST_ROWS: Final = 24
#: Subjects of notes that say something of the device; the others repeat the settings and the method.
_ON_DEVICE: Final[frozenset[NoteWord]] = frozenset({"device", "throughput", "own delay"})
#: Ends of names of columns for one direction, which are not shown; the worse direction has its own column.
_DIRECTIONS: Final = ("_from_initiator", "_from_responder")


def verdict(result: Result, *, brief: bool = False, width: int | None = None) -> str:
    """Return the result as text: the answer in the first line, then limit, doubts by grade, and conditions.

    Args:
        brief: whether to name doubts that could not change the answer by their words alone, and to leave out
            the trials, the memory of a connection, and the notes that are the same for every run with these settings.
        width: most characters of a line of a series, as for `render`.
    """
    first, *lines = answer(result)
    lines += [*doubt_lines([result], brief=brief), *sentences(result, brief=brief)]
    lines += [f"Note: {note}." for note in notes_of(result, brief=brief)]
    return "\n".join([first, *(f"  {line}" for line in lines), *_series(result, width)])


def answer(result: Result) -> list[str]:
    """Return the answer of one result, and what limited it."""
    return [sentence.text for sentence in answers([result])]


def answered(sentences: Sequence[Sentence], shown: Sheet, width: int | None = None, measured: str = "") -> str:
    """Return answers, then the doubts of a sheet, then its table; a table that leads is above them.

    Args:
        width: most characters of a line of the table, as for `render`.
        measured: when and where it was measured, as a sentence; empty = others say it.
    """
    reasons = not_sure(sentences, listed=bool(shown.doubts))
    said, table = [sentence.text for sentence in sentences], render(replace(shown, doubts=()), width)
    if shown.leads:
        return "\n".join([*filter(None, [measured]), "", table, "", *said, *filter(None, [reasons]), *shown.doubts])
    return "\n".join([*said, *filter(None, [reasons, measured]), *shown.doubts, "", table])


def doubt_lines(results: Sequence[Result], *, brief: bool = False, grades: Collection[Grade] = GRADES) -> list[str]:
    """Return the doubts of results by grade, those that could change the answer first; each word once.

    Args:
        brief: whether only doubts that could change the answer have their text, others only their word, and those that
            change nothing of the first line none.
        grades: those of the doubts that have lines.
    """

    def having(found: Sequence[int]) -> str:
        return f" ({len(found)} of {len(results)} results)" if len(results) > 1 else ""

    def called(at: int) -> str:
        return f"{results[at].metric} of {labels.names_of(results)[at]}"

    every = [(at, main_figure.in_summary(result) if brief else result.doubts) for at, result in enumerate(results)]
    return graded(every, having, called=called, brief=brief, grades=grades)


def sentences(result: Result, *, brief: bool = False) -> list[str]:
    """Return sentences on uncertainty, further figures, and conditions; unless `brief` also on memory and trials."""
    figures = [_certainty(result), *_latency(result), *_deletions(result)]
    place = [_conditions(result), *_link(result)]
    if brief:
        return figures + place
    trials = ", ".join(f"{count} {name}" for name, count in result.trials.items() if count)
    return [*figures, *_memory(result), *place, f"Trials: {trials or 'none'}."]


def notes_of(result: Result, *, brief: bool = False) -> list[str]:
    """Return the notes that are no doubts; with `brief` only those on the device."""
    return [note.text for note in result.notes if note.word in _ON_DEVICE or not (brief or note.is_doubt)]


def _series(result: Result, width: int | None) -> list[str]:
    """Return the table of a series: by load, or that of the repetition whose value is nearest to the median."""
    values = result.values
    loads = by_load(result) if len(values) > 1 else None
    series: Sequence[SeriesRow]
    if loads is None:
        nearest = min(range(len(values)), key=lambda at: abs(values[at] - result.median))
        series = result.repetitions[nearest].series
        which = "" if len(values) == 1 else f" of repetition {nearest + 1} of {len(values)}, the nearest to the median"
    else:
        series = [
            {loads.column: load, **{name: ranged(summary) for name, summary in figures.items()}}
            for load, figures in loads.at.items()
        ]
        which = f", medians of {len(values)} repetitions with their range"
    if not series:
        return []
    step = -(-len(series) // _MOST_ROWS)
    each = "" if step == 1 else f"; one in {step} of {len(series):,} rows, and the last"
    shown = series[::step] if (len(series) - 1) % step == 0 else [*series[::step], series[-1]]
    rows = series_rows(shown)
    lines = _with_sentences(rows, None if width is None else width - len(_INDENT))
    return [f"  Series{which}{each}{rates_of(series, result)}:", *(f"{_INDENT}{line}".rstrip() for line in lines)]


def _with_sentences(rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Return the lines of a series; where they are wider than `width`, sentences are below their rows."""
    columns = range(len(rows[0]))
    said = {column for column in columns if any(len(row[column]) > _LONGEST_WORDS for row in rows[1:])}
    short = [[row[column] for column in columns if column not in said] for row in rows]
    lines = aligned(short, right=range(len(short[0])))
    if width is None or len(said) in (0, len(columns)) or _widest(aligned(rows)) <= width or _widest(lines) > width:
        return fitted(rows, right=columns, width=width)
    found = lines[:1]
    for line, row in zip(lines[1:], rows[1:], strict=True):
        found.append(line)
        for column in sorted(said):
            if row[column] not in ("", "-"):
                found += textwrap.wrap(row[column], width, initial_indent=_INDENT, subsequent_indent=_INDENT)
    return found


def rates_of(series: Sequence[SeriesRow], result: Result) -> str:
    """Return the unit of the rates in a series over loads, for its title; "" for other series."""
    over_loads = bool(series) and not series[0].keys().isdisjoint(LOADS)
    return f" (rates: {declared(result.metric).series_rates or unit_of_frames(result)})" if over_loads else ""


def series_rows(series: Sequence[SeriesRow]) -> list[list[str]]:
    """Return the heads of the columns of a series, in the order of first appearance, then its rows.

    Single directions, and columns without a value, are left out.
    """
    names = dict.fromkeys(
        name
        for row in series
        for name, cell in row.items()
        if not name.endswith(_DIRECTIONS) and cell not in (None, "")
    )
    cells = [[(row.get(name), "_percent" in name) for name in names] for row in series]
    return [
        [name.replace("_", " ") for name in names],
        *(["-" if cell is None else printed(cell, _in_series, ends=share) for cell, share in row] for row in cells),
    ]


def _in_series(value: Cell) -> str:
    """A value of a series: loads and counts are whole numbers, and have all digits."""
    return in_full(value) if isinstance(value, int | float) and float(value).is_integer() else number(value)


def spread_text(result: Result) -> str:
    """Return how far repetitions are from their median, in words; empty where the median is 0.

    Values of searches that differ by less than the error say nothing of a smaller spread.
    """
    if not result.median:
        return ""
    if result.maximum - result.minimum < (search_error(result) or 0.0):
        return "they differ by less than the search error"
    if result.minimum == result.maximum:
        return "they agree"
    return f"they lie within {main_figure.margin(result, result.minimum, result.maximum)}"


def _certainty(result: Result) -> str:
    """The number of repetitions, their largest deviation from the median, and the error of the search."""
    count, of = len(result.repetitions), result.planned_repetitions
    one = "One repetition" if of == count else f"One of {of} repetitions"
    text = one if count == 1 else f"Median of {count if of == count else f'{count} of {of}'} repetitions"
    if count > 1:
        spread = spread_text(result)
        text += f" ({spread})" if spread else ""
    if (error := search_error(result)) is not None:
        unit = result.unit if drawn_frames(result.metric, result.parameters) is None else "frames/s"
        text += f"; error of the search {with_noun(number(error), unit)}"
    elif unbounded := unfailed(result):
        what = "rate" if result.unit.endswith("/s") else f"number of {result.unit}"
        text += f"; no {what} failed{'' if unbounded == count else f' in {unbounded} of {count} repetitions'}"
    drifts = drift(result)
    return f"{text}; drift of a virtual machine {in_percent(drifts)}." if drifts else f"{text}."


def _latency(result: Result) -> Iterator[str]:
    """Both latencies of RFC 8219 section 7.2, and the definition of RFC 1242 that a report must state."""
    figures = [result.figures.get(name) for name in ("typical_latency_us", "worst_case_latency_us")]
    typical, worst = (None if summary is None else _spread(summary, "us") for summary in figures)
    if typical is None or worst is None:
        return
    count = len(result.repetitions)
    of = "" if count == 1 else f"; each is the median of {count} repetitions, with their range"
    yield f"Typical latency (median) {typical}, worst case latency (99.9th percentile) {worst}{of}."
    yield "Delays run from sending to arrival: latency of store and forward devices (RFC 1242 section 3.8)."


def _deletions(result: Result) -> Iterator[str]:
    """Times of emptying a full and an empty table, each deletion counted (RFC 9693 section 4.8)."""
    full, empty = result.figures.get("full_seconds"), result.figures.get("empty_seconds")
    if full is None or empty is None:
        return
    times = f"a full table in {_spread(full, 's')}, an empty one in {_spread(empty, 's')}"
    yield f"Medians of {full.count} deletions, with their range: {times}."


def _memory(result: Result) -> Iterator[str]:
    """Memory of a connection, and the number of connections that no cache of the device's cores holds any more."""
    octets = result.figures.get(OCTETS_PER_CONNECTION)
    if octets is None:
        if declared(result.metric).shows_memory and (result.number("connections") or 0) >= LEAST_CONNECTIONS:
            yield "The device's memory for a connection is not known."
        return
    caches = result.parameter("device_caches")
    sizes = caches if isinstance(caches, dict) else {}
    levels = [(level, sizes[level], count) for level in CACHES if (count := filling(result, level)) is not None]
    beyond = "; ".join(
        f"{number(count)} connections fill the {level} cache of {_mib(size)}" for level, size, count in levels
    )
    trials = with_noun(octets.count, "trials")
    yield (
        f"A connection takes {_spread(octets, 'octets')} of the memory of the device's kernel, by {trials}; "
        f"{beyond or 'the caches of its cores are not known'}."
    )


def _mib(octets: JsonValue) -> str:
    return f"{number(octets / 2**20)} MiB" if isinstance(octets, int | float) else str(octets)


def _spread(figure: FigureSummary, unit: str) -> str:
    """The median of a figure with its unit, and the range where there are several values."""
    if figure.count == 1:
        return f"{number(figure.median)} {unit}"
    median, interval = figure_and_interval(figure.median, figure.minimum, figure.maximum)
    return f"{median} {unit}{interval}"


def _conditions(result: Result) -> str:
    parameters = result.parameters.flat()
    drawn, held = drawn_frames(result.metric, result.parameters), open_at_once(result)
    parts = [] if held is None else [with_noun(in_full(held), "connections")]
    if drawn is not None:
        parts = [f"{in_full(drawn)} frames of drawn four tuples"]
    if frames := main_figure.frames_in_words(result):
        parts.append(frames)
    cpus, by_device = parameters.get("device_cpus"), parameters.get("cpus_of_devices")
    if isinstance(by_device, dict):
        parts += [
            f"{device} on CPU {', '.join(map(str, own))}" for device, own in by_device.items() if isinstance(own, list)
        ]
    elif isinstance(cpus, list) and cpus:
        parts.append(f"device on CPU {', '.join(map(str, cpus))}")
    share = own_share(result)
    own = "" if share is None else f" (the tester's own work is {in_percent(share)} of the time)"
    parts.append(f"placement {result.placement}{own}")
    method = METHODS.get(str(parameters.get("transport")))
    return ", ".join(parts) + ("." if method is None else f"; {method}.")


def _link(result: Result) -> Iterator[str]:
    """Yield the lab's links and their theoretical maximum (RFC 2544 section 26.1, RFC 8219 section 5.1)."""
    media, speeds, drivers, flows = (_each(result, name) for name in _OF_LINKS)
    if not media:
        return
    links = [
        f"{medium}, {in_full(speed) + ' Mbit/s' if isinstance(speed, int) else 'speed not known'}, driver {driver}, "
        f"flow control {flow}"
        for medium, speed, driver, flow in zip(media, speeds, drivers, flows, strict=False)
    ]
    yield f"Links: {'; '.join(dict.fromkeys(links))}."
    most, share = result.number("theoretical_maximum"), result.figures.get(SHARE_OF_LINK)
    if most is None:
        yield "Their theoretical maximum is not known."
    else:
        part = "" if share is None else f"; the result is {in_percent(share.median)} of it"
        unit = unit_of(result) if main_figure.counts_units(result) else unit_of_frames(result)
        yield f"Their theoretical maximum is {number(most)} {unit}{part}."


def _each(result: Result, name: str) -> list[JsonValue]:
    value = result.parameter(name)
    return value if isinstance(value, list) else []


def table(results: Sequence[Result], width: int | None = None) -> str:
    """Return a column per result, with the rows of RFC 9693 section 6; rows without any value are left out.

    Doubts, and reasons why results are not compared, are below the table; `width` is as for `render`.
    """
    return render(sheet(results), width)


def render(shown: Sheet, width: int | None = None) -> str:
    """Return a sheet as text.

    Args:
        width: most characters of a line of the table: a table that is wider is turned, so that its columns are its
            rows; if that is too wide, too, its columns are in several tables, and long words are broken. None = any.
    """
    if shown.ends_in_words and width is not None and (lines := _with_words(shown.lines, width)):
        below = ["\n".join(textwrap.wrap(sentence, width)) for sentence in shown.below]
        return "\n".join([*lines, *([""] if below else []), *below])
    tables = [_in_full(shown.lines)]
    if width is not None and _widest(tables[0]) > width:
        if all(line.cells for line in shown.lines):
            columns = zip(*((line.heading, *line.cells) for line in shown.lines), strict=True)
            tables.append(_in_full([SheetRow(name, tuple(cells)) for name, *cells in columns]))
        if _widest(tables[-1]) > width:
            return render_unframed(shown, width, indent=0)
    return "\n".join([*tables[-1], *shown.below])


def fitted(rows: Sequence[Sequence[str]], *, right: Collection[int] = (), width: int | None = None) -> list[str]:
    """Return the lines of a table of at most `width` characters, if need be as several tables with the first column.

    Args:
        rows: all with the same number of cells; the first is the head.
        right: numbers of the columns, from 0, whose cells are aligned to the right where the table is whole.
        width: most characters of a line; None = any.
    """
    lines = aligned(rows, right=right)
    if width is None or _widest(lines) <= width:
        return lines
    return render_unframed(Sheet(tuple(SheetRow(row[0], tuple(row[1:])) for row in rows), ()), width, 0).splitlines()


def _in_full(rows: Sequence[SheetRow]) -> list[str]:
    """Return the lines of a table; rows without cells are headings."""
    columns = len(rows[0].cells)
    printed = iter(aligned([(row.heading, *row.cells) for row in rows if row.cells], right=range(1, columns + 1)))
    return [next(printed) if row.cells else f"\n{row.heading}" for row in rows]


def _widest(lines: Sequence[str]) -> int:
    return max(len(line) for text in lines for line in text.split("\n"))


# Tables of a width: those of Internet-Drafts, and those without frames.

_WIDTH: Final = 72
#: Greatest width of labels and cells; longer texts are broken into several lines.
_LABEL: Final = 24
_CELL: Final = 20
#: A last column with wider cells contains sentences, which get the rest of the line where there are no frames.
_SENTENCE: Final = 2 * _CELL
#: The text of a draft is indented; columns have gaps; narrower labels would be hard to read.
_DRAFT_INDENT: Final = 3
_APART: Final = 2
_LEAST_LABEL: Final = 14
#: A blank at which no line is broken.
_JOINED: Final = "\N{NO-BREAK SPACE}"
#: What the frame adds to each column: "| " and " ", and once the last "|".
_FRAME: Final = 3


def render_draft(shown: Sheet) -> str:
    """Return framed tables of a sheet, each at most `_WIDTH` characters wide."""
    label = min(_LABEL, _label(shown.lines))
    parts = _parts(_widths(shown.lines), _WIDTH - label - _FRAME - 1, _FRAME)
    return _pieces(shown, parts, lambda first, last: _framed(shown.lines, first, last, label))


def render_unframed(shown: Sheet, width: int = _WIDTH, indent: int = _DRAFT_INDENT) -> str:
    """Return tables of a sheet without frames, so that more columns fit.

    Args:
        width: most characters of a line, at least 50.
    """
    natural = _widths(shown.lines, most=width)
    widths = [min(_CELL, each) for each in natural]
    label = _label(shown.lines)
    room = width - indent - sum(column + _APART for column in widths)
    if room >= min(label, _LEAST_LABEL):
        label = min(label, room)
        parts = [(0, len(widths))]
        if natural[-1] > _SENTENCE:
            widths[-1] = min(natural[-1], widths[-1] + room - label)
    else:
        label = min(label, width // 3)
        parts = _parts(widths, width - indent - label, _APART)
    return _pieces(
        shown, parts, lambda first, last: _unframed(shown.lines, slice(first, last), [label, *widths], indent), width
    )


def _with_words(lines: Sequence[SheetRow], width: int) -> list[str]:
    """Return a table without frames whose last column, of words, gets the rest of the line; none where it has no room.

    Figures are broken before a parenthesis alone.
    """
    head, *rest = lines
    joined = [head, *(replace(line, cells=(*map(_whole, line.cells[:-1]), *line.cells[-1:])) for line in rest)]
    rows = [line.cells[:-1] for line in joined if line.cells]
    widths = [max(len(part) for cell in cells for part in cell.split(" ")) for cells in zip(*rows, strict=True)]
    label = _label(lines)
    room = width - label - sum(widths) - _APART * (len(widths) + 1)
    if room < _CELL:
        return []
    found = _unframed(joined, slice(None), [label, *widths, room], 0, left=(0, len(widths) + 1))
    return [line.replace(_JOINED, " ") for line in found]


def _whole(cell: str) -> str:
    return " (".join(part.replace(" ", _JOINED) for part in cell.split(" ("))


def _pieces(
    shown: Sheet, parts: Sequence[tuple[int, int]], piece: Callable[[int, int], Iterator[str]], width: int = _WIDTH
) -> str:
    """Return a table for each part, with its column numbers where there are several, then the sentences below."""
    text: list[str] = []
    for first, last in parts:
        if len(parts) > 1:
            columns = f"Column {first + 1}" if last == first + 1 else f"Columns {first + 1} to {last}"
            text.append(f"{columns} of {shown.columns}:")
        text += [*piece(first, last), ""]
    for sentence in shown.below:
        text += textwrap.wrap(sentence, width)
    return "\n".join(text).rstrip("\n")


def _unframed(
    lines: Sequence[SheetRow], part: slice, widths: Sequence[int], indent: int, left: Collection[int] = ()
) -> Iterator[str]:
    label, *cells = widths
    own = [label, *cells[part]]
    left = left or {column for column, width in enumerate(own) if column == 0 or width > _CELL}
    for line in lines:
        if not line.cells:
            yield ""
            yield from textwrap.wrap(line.heading, sum(own) + _APART * len(own), initial_indent=" " * indent)
            continue
        heads = textwrap.wrap(line.heading, label, subsequent_indent=" ")
        wrapped = [textwrap.wrap(cell, width) for cell, width in zip(line.cells[part], own[1:], strict=True)]
        for texts in _padded([heads, *wrapped], own, left):
            yield f"{'':{indent}}{(' ' * _APART).join(texts)}".rstrip()


def _padded(cells: Sequence[Sequence[str]], widths: Sequence[int], left: Collection[int] = (0,)) -> Iterator[list[str]]:
    """Yield the texts of each line of a row, padded to the widths; `left`: columns that are aligned to the left."""
    for texts in zip_longest(*cells, fillvalue=""):
        yield [
            f"{text:{'<' if column in left else '>'}{width}}"
            for column, (text, width) in enumerate(zip(texts, widths, strict=True))
        ]


def _label(lines: Sequence[SheetRow]) -> int:
    return max(len(line.heading) for line in lines if line.cells)


def _parts(widths: Sequence[int], room: int, apart: int) -> list[tuple[int, int]]:
    """Return the first column and the one after the last of each table; `room` for columns next to the labels."""
    parts, first, used = [], 0, 0
    for column, width in enumerate(widths):
        if column > first and used + width + apart > room:
            parts.append((first, column))
            first, used = column, 0
        used += width + apart
    return [*parts, (first, len(widths))]


def _widths(lines: Sequence[SheetRow], most: int = _CELL) -> list[int]:
    rows = [line.cells for line in lines if line.cells]
    return [min(most, max(len(cells[column]) for cells in rows)) for column in range(len(rows[0]))]


def _framed(lines: Sequence[SheetRow], first: int, last: int, label: int) -> Iterator[str]:
    """The first row is the heading, as in RFC 9693 section 6."""
    # A row that is empty for these columns is not empty for others; every table has all rows.
    widths = [label, *_widths(lines)[first:last]]
    yield _rule(widths, "=")
    for at, line in enumerate(lines):
        if line.cells:
            yield from _broken((line.heading, *line.cells[first:last]), widths)
        else:
            yield from _broken((line.heading,), [sum(widths) + _FRAME * (len(widths) - 1)])
        yield _rule(widths, "=" if at == 0 else "-")


def _rule(widths: Sequence[int], stroke: str) -> str:
    return "+" + "+".join(stroke * (width + 2) for width in widths) + "+"


def _broken(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
    return ("| " + " | ".join(texts) + " |" for texts in _padded(cells, widths))
