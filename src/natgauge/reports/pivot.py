# SPDX-License-Identifier: Apache-2.0
"""Tables that print figures in columns by what was varied: the pivoted table, and that of many gateways.

The pivoted table has a column for each value of a parameter, such as cores, and a block for each metric and device.
Publications print measurement series like this. Rows that all results of a column share are above the blocks. Against
metrics, it is a matrix of devices and metrics.

The table of many gateways has a line for each, with the words of the doubts that could change the answer, and why
there is no result.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from pydantic import JsonValue

from natgauge.analysis import conditions
from natgauge.analysis.derived import AXES, comparable, varied_with
from natgauge.errors import UsageError
from natgauge.interval_text import significant
from natgauge.metrics import declared
from natgauge.records.measurement import Result
from natgauge.records.parameters import describe, is_fact
from natgauge.reports import main_figure
from natgauge.reports.failures import BrokenMeasurement
from natgauge.reports.graded_doubts import graded, of_columns
from natgauge.reports.heading import SAID_ROWS, unit_of_caption
from natgauge.reports.labels import differing_within, grouped, in_words, names_of, text_of
from natgauge.reports.main_figure import in_cell
from natgauge.reports.rows import IN_UNIT, Cell, ResultRow, row_of, rows, unit_of, unit_of_all
from natgauge.reports.sheet import OF_VALUES, Sheet, SheetRow, notes, of_runs, printed
from natgauge.words import listed

#: What the heading of a block says.
_IN_HEADING: Final = frozenset({"gateway", "metric", "unit"})
#: Rows that explain missing figures; they are below the table.
_LEFT_OUT: Final = frozenset({"not compared"})
#: Rows that follow from others, or that cells say.
_FOLLOWING: Final = frozenset(
    {
        "sessions per hash", "table limit per hash", "table limit per session", "number of experiments",
        "experiments planned",
    }
)  # fmt: skip
#: Inputs that a paper's table has elsewhere.
_NOT_IN_PAPER: Final = SAID_ROWS | _IN_HEADING | _FOLLOWING
#: Where one of these says nothing, there was none, which is another set-up; a device may well lack a knob.
_NONE_IS_A_VALUE: Final = frozenset({describe("frame_timeout_seconds").heading})
#: A narrow table prints rates from here on in thousands, with four digits that count.
_MANY: Final = 10_000
_THOUSAND: Final = 1000
#: Parameters that have a shorter name on the command line.
_SHORT: Final[Mapping[str, str]] = {"cores": "device_cores"}


def sheet(results: Sequence[Result], against: str, *, narrow: bool = False) -> Sheet:
    """Return the table of results, at least one, that form measurement series."""
    every_row, name = rows(results), _parameter_of(against, results)
    heading = row_of(name)
    columns = _columns_of(name, results)
    blocks = blocks_of(name, against, results)
    indices = [[at for block in blocks if (at := block.at.get(column)) is not None] for column in columns]
    lines = [SheetRow(heading, tuple(columns))]
    own = []
    for row in every_row:
        if row.heading in _IN_HEADING | _LEFT_OUT | {heading}:
            continue
        if not row.measured and _is_common(row, indices):
            _add(lines, row, [_first(row, column) for column in indices])
        else:
            own.append(row)
    for block in blocks:
        of_block = [results[at] for at in block.at.values()]
        many = narrow and min(result.median for result in of_block) >= _MANY
        lines.append(SheetRow(f"{block.named()} ({_unit(of_block, many=many)})", ()))
        for row in own:
            places = [block.at.get(column) for column in columns]
            in_thousands = many and row.label in IN_UNIT
            shown = _in_thousands(row) if in_thousands else row
            _add(lines, row, places, printed(shown, results, 1 / _THOUSAND if in_thousands else 1.0))
    placed = [
        (block.named(), column, results[block.at[column]])
        for block in blocks
        for column in columns
        if column in block.at
    ]
    doubts, of_paper = of_columns([(block, column, result.doubts) for block, column, result in placed])
    names = [f"{block}, {in_words(name, result.parameter(name))}" for block, _, result in placed]
    below = notes([result for _, _, result in placed], lambda column, _: names[column - 1])
    return Sheet(tuple(lines), tuple(below), doubts, of_paper, OF_VALUES)


def of_medians(results: Sequence[Result], against: str) -> Sheet:
    """Return the series alone: a row for each metric and device, with a median for each value of a parameter.

    Inputs that change with the columns stand above them; below is what all have, and what differs in a column. There
    is at least one result.
    """
    name = _parameter_of(against, results)
    columns, blocks = _columns_of(name, results), blocks_of(name, against, results)
    heading, unit = row_of(name), unit_of_caption(results)
    indices = [[at for block in blocks if (at := block.at.get(column)) is not None] for column in columns]
    # The caption of a paper names connections so.
    lines = [SheetRow(name if name == "connections" else heading, tuple(columns))]
    for row in rows(results):
        is_input = not row.measured and row.heading not in _IN_HEADING | _LEFT_OUT | {heading} | _FOLLOWING
        if is_input and len({row.cells[at] for own in indices for at in own}) > 1 and _is_common(row, indices):
            _add(lines, row, [_first(row, own) for own in indices])
    for block in blocks:
        own = {column: results[at] for column, at in block.at.items()}
        called = block.named(with_metric=not unit)
        in_unit = "" if unit else f" ({_unit(list(own.values()), many=False)})"
        lines.append(SheetRow(f"{called}, median{in_unit}", _cells(own, columns, in_cell)))
        if any(len(result.repetitions) > 1 for result in own.values()):
            lines.append(SheetRow("its 1st and 99th percentile", _cells(own, columns, _percentiles)))
    below = []
    for metric in dict.fromkeys(block.metric for block in blocks):
        alike_in = [block for block in blocks if block.metric == metric]
        shown = {other for block in alike_in for other in block.others}
        columned = ([results[block.at[column]] for block in alike_in if column in block.at] for column in columns)
        below += [f"{metric}: {said}" for said in dict.fromkeys(_unlike(own, shown) for own in columned) if said]
    doubts, of_paper = of_columns(
        [
            (block.named(with_metric=not unit), column, results[at].doubts)
            for block in blocks
            for column, at in block.at.items()
        ],
        brief=True,
    )
    ranges = [*alike(results, except_for=_NOT_IN_PAPER), of_runs(results), _of_percentiles(results)]
    return Sheet(tuple(lines), tuple(below), doubts, of_paper, " ".join(filter(None, ranges)))


def _cells(own: Mapping[str, Result], columns: Sequence[str], text: Callable[[Result], str]) -> tuple[str, ...]:
    return tuple(text(own[column]) if column in own else "-" for column in columns)


def _percentiles(result: Result) -> str:
    return ", ".join(main_figure.value(result, each) for each in (result.p1, result.p99))


def _of_percentiles(results: Sequence[Result]) -> str:
    """What percentiles of few repetitions are; empty where they are no ends."""
    repeated = [result for result in results if len(result.repetitions) > 1]
    are_ends = all((result.p1, result.p99) == (result.minimum, result.maximum) for result in repeated)
    return (
        "The 1st and 99th percentile of so few values are the lowest and the highest." if repeated and are_ends else ""
    )


def of_metrics(results: Sequence[Result], names: Sequence[str] = ()) -> Sheet:
    """Return the matrix of results: a row for each device, a column for each metric, medians as cells.

    Below it is what all results have, and in which conditions those of a column differ.

    Args:
        results: at least one, at most one for each device and metric.
        names: names of the results, each of which has a row instead of its device.
    """
    columns, by_gateway = matrix(results, names)
    headings = [_heading_of(result) for result in results]
    lines = [SheetRow("median of", columns)]
    lines += [SheetRow(gateway, _cells(own, columns, in_cell)) for gateway, own in by_gateway.items()]
    if names and len(columns) == 1 and any(len(result.repetitions) > 1 for result in results):
        (metric,) = columns
        lines[0] = SheetRow("median of", (metric, "1st and 99th percentile"))
        lines[1:] = [
            replace(line, cells=(*line.cells, _percentiles(by_gateway[line.heading][metric]))) for line in lines[1:]
        ]
    same = alike(results, except_for=_NOT_IN_PAPER if names else ())
    # A paper has it in the caption.
    notes = [] if names else same
    by_column = grouped(zip(headings, results, strict=True))
    differing = grouped((_unlike(own, differing_within(own) if names else ()), name) for name, own in by_column.items())
    notes += [f"{', '.join(own)}: {said}" for said, own in differing.items() if said]
    # The names tell results of a metric apart, of a single one by themselves.
    heads = ["" if len(columns) == 1 else result.metric for result in results] if names else headings
    called = names or [result.gateway for result in results]
    places = list(zip(called, heads, (result.doubts for result in results), strict=True))
    doubts, of_paper = of_columns(places, brief=True)
    ranges = " ".join(filter(None, [*(same if names else []), of_runs(results)]))
    return Sheet(tuple(lines), tuple(notes), doubts, of_paper, ranges)


def _unlike(results: Sequence[Result], shown: Collection[str] = ()) -> str:
    """Return the conditions in which results of a metric differ, but for those that are shown; empty = in none."""
    except_for = frozenset[str]().union(*map(varied_with, shown))
    said = conditions.sentence(list(map(conditions.figure_of, results)), except_for=except_for)
    return f"{said[:1].lower()}{said[1:]}"


def _heading_of(result: Result) -> str:
    """Return the head of the column of a result's metric, with its unit."""
    return f"{result.metric} ({unit_of(result)})"


def matrix(
    results: Sequence[Result], names: Sequence[str] = ()
) -> tuple[tuple[str, ...], Mapping[str, Mapping[str, Result]]]:
    """Return the heads of the columns of metrics, and by name, if none are given by gateway, and head the result."""
    by_gateway: dict[str, dict[str, Result]] = {}
    for name, result in zip(names or (result.gateway for result in results), results, strict=True):
        heading, own = _heading_of(result), by_gateway.setdefault(name, {})
        if heading in own:
            raise UsageError(
                f"report: --against metrics: two results are of {result.metric} of {result.gateway}; name folders "
                "of one set-up, or leave out --against"
            )
        own[heading] = result
    return tuple(dict.fromkeys(map(_heading_of, results))), by_gateway


def alike(results: Sequence[Result], *, except_for: Collection[str] = ()) -> list[str]:
    """Return a sentence with what is set alike in all results; none where nothing is."""
    same = [
        f"{row.heading} {row.printed[0]}"
        for row in rows(results)
        if not row.measured and row.label not in except_for and len(set(row.cells)) == 1 and row.cells[0] is not None
    ]
    return [f"All: {', '.join(same)}."] if same else []


def _unit(results: Sequence[Result], *, many: bool) -> str:
    """The unit of a block; directions that differ between its columns are not named, other units all."""
    units = list(dict.fromkeys(map(unit_of, results)))
    of_several = {"frames/s": unit_of_all(results), "frames": "frames"}.get(results[0].unit, " or ".join(units))
    unit = units[0] if len(units) == 1 else of_several
    return f"{_THOUSAND:,} {unit}" if many else unit


def _is_common(row: ResultRow, columns: Sequence[Sequence[int]]) -> bool:
    """Whether all non-empty values of each column are equal."""
    counts = row.label in _NONE_IS_A_VALUE
    return all(len({row.cells[at] for at in column if counts or row.cells[at] is not None}) <= 1 for column in columns)


def _first(row: ResultRow, column: Sequence[int]) -> int | None:
    return next((at for at in column if row.cells[at] is not None), None)


def _add(
    lines: list[SheetRow], row: ResultRow, places: Sequence[int | None], texts: Sequence[str] | None = None
) -> None:
    """Append the row of these results, unless all its cells are empty; `texts` are its cells as text."""
    own = row.printed if texts is None else texts
    cells = tuple("-" if at is None else own[at] for at in places)
    if any(cell != "-" for cell in cells):
        lines.append(SheetRow(row.heading, cells, column=row.column))


def _in_thousands(row: ResultRow) -> ResultRow:
    cells = tuple(cell / _THOUSAND if isinstance(cell, int | float) else cell for cell in row.cells)
    return replace(row, cells=cells, text=_four_digits, own=())


def _four_digits(value: Cell) -> str:
    return significant(value) if isinstance(value, int | float) and value else str(value)


@dataclass(frozen=True, slots=True)
class SeriesBlock:
    """Results of one metric and one device that differ in the parameter of the columns.

    Attributes:
        others: values that distinguish the block from others of this metric and device, by name of the parameter.
    """

    metric: str
    gateway: str
    others: Mapping[str, JsonValue]
    at: Mapping[str, int]

    def named(self, *, with_metric: bool = True) -> str:
        """Metric, device and distinguishing values, as text; without the metric where the caption has it."""
        of = f" of {self.gateway}" if self.gateway else ""
        head = f"{self.metric}{of}" if with_metric or not self.gateway else self.gateway
        return ", ".join([head, *(in_words(name, value) for name, value in self.others.items())])


def _parameter_of(against: str, results: Sequence[Result]) -> str:
    """Return the name of the parameter that the user named as on the command line, such as "cores" or "frame-size"."""
    name = _SHORT.get(against, against.replace("-", "_"))
    for result in results:
        if name == "device_cores" and not result.device_cores:
            raise UsageError(
                f"report: --against {against}: the number of cores of {result.metric} of {result.gateway} is not "
                "known; leave out its folder, or choose another --against"
            )
    if all(result.parameter(name) is None for result in results):
        differing = ", ".join(_differing(results)) or "no parameter that moves a figure"
        raise UsageError(
            f"report: --against {against}: no result has such a parameter; name one in which the results differ "
            f"({differing}), or metrics"
        )
    return name


def _columns_of(name: str, results: Sequence[Result]) -> list[str]:
    """Return the texts of a parameter's values, each once: numbers in rising order, then others as they appear."""
    values = {text_of(result.parameter(name)): result.parameter(name) for result in results}
    return sorted(values, key=lambda text: _place(values[text]))


def blocks_of(name: str, against: str, results: Sequence[Result]) -> list[SeriesBlock]:
    """Return the blocks of results, in the order of their first results.

    Where two results of a metric and a device have the same value, a parameter in which they differ makes a block for
    each of its values: first the number of cores, connections and hosts.
    """
    subjects = grouped(
        ((result.metric, "" if name == "gateway" else result.gateway), at) for at, result in enumerate(results)
    )
    blocks = []
    for (metric, gateway), every in subjects.items():
        names = _distinguishing(name, against, [results[at] for at in every])
        by_block: dict[tuple[str, ...], dict[str, int]] = {}
        for at in every:
            key = tuple(text_of(results[at].parameter(other)) for other in names)
            by_block.setdefault(key, {})[text_of(results[at].parameter(name))] = at
        for at_column in by_block.values():
            first = results[next(iter(at_column.values()))]
            blocks.append(SeriesBlock(metric, gateway, {other: first.parameter(other) for other in names}, at_column))
    return blocks


def _distinguishing(name: str, against: str, results: Sequence[Result]) -> list[str]:
    """Names of the parameters that keep results with the same value of `name` apart."""
    names: list[str] = []
    for first, second in combinations(results, 2):
        if any(first.parameter(each) != second.parameter(each) for each in (name, *names)):
            continue
        differing_names = [difference.name for difference in comparable(first, second)]
        if not differing_names:
            raise UsageError(
                f"report: --against {against}: two results of {first.metric} of {first.gateway} have "
                f"{in_words(name, first.parameter(name))} and differ in no parameter that moves the figure; name "
                "folders of one measurement series, or leave out --against"
            )
        axes = [axis.parameter for axis in AXES]
        names.append(min(differing_names, key=lambda each: (each not in axes, is_fact(each))))
    return names


def _differing(results: Sequence[Result]) -> list[str]:
    """Names of the parameters in which results of one metric and device differ, as on the command line."""
    texts = dict.fromkeys(
        difference.name
        for first, second in combinations(results, 2)
        if (first.metric, first.gateway) == (second.metric, second.gateway)
        for difference in comparable(first, second)
        if not is_fact(difference.name) or difference.name in _SHORT.values()
    )
    short = {name: word for word, name in _SHORT.items()}
    return [short.get(name, name.replace("_", "-")) for name in texts]


def _place(value: JsonValue) -> tuple[int, float]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 0, float(value)
    return (2, 0.0) if value is None else (1, 0.0)


#: So many results can be read next to each other.
_FEW: Final = 8
#: The most characters of the reason why there is no result; `natgauge status` prints all.
_REASON: Final = 60


def is_for_many(results: Sequence[Result]) -> bool:
    """Return whether results are too many to be read next to each other, and differ by gateway: one for each metric."""
    gateways, metrics = ({getattr(result, name) for result in results} for name in ("gateway", "metric"))
    own = {(result.gateway, result.metric) for result in results}
    return len(results) > _FEW and len(own) == len(results) and len(gateways) >= len(metrics)


def sheet_of_many(results: Sequence[Result], broken: Sequence[BrokenMeasurement] = ()) -> Sheet:
    """Return a line for each gateway, also for those without a result; the best of the first metric lead each work.

    Args:
        results: at least one, at most one for each gateway and metric.
    """
    columns, by_gateway = matrix(results)
    metrics = {_heading_of(result): result.metric for result in results}
    failed = grouped((one.gateway, one) for one in broken)

    def row(gateway: str) -> SheetRow:
        own, none = by_gateway.get(gateway, {}), failed.get(gateway, [])
        lacking = {one.measurement for one in none}
        cells = (
            in_cell(own[column]) if column in own else "no result" if metrics[column] in lacking else "-"
            for column in columns
        )
        return SheetRow(gateway, (*cells, _words(own, none)))

    groups = _by_work(by_gateway, columns)
    lines = [SheetRow("gateway", (*columns, "doubts"))]
    for title, gateways in groups.items():
        lines += [SheetRow(title, ())] if len(groups) > 1 or failed.keys() - by_gateway.keys() else []
        lines += map(row, gateways)
    if without := [gateway for gateway in failed if gateway not in by_gateway]:
        lines += [SheetRow("without any result", ()), *map(row, without)]
    notes = [*alike(results, except_for=SAID_ROWS), *_unlike_in_groups(groups, by_gateway, columns)]
    return Sheet(tuple(lines), tuple(notes), doubts_of(results), None, of_runs(results), ends_in_words=True)


def doubts_of(results: Sequence[Result], *, each: bool = False, informing: bool = True) -> tuple[str, ...]:
    """Return the doubts of results, with at most four names.

    Args:
        each: whether each text of a doubt has a line, otherwise each word that could change an answer.
        informing: whether those are among them that are for information, and that no cell has a mark of.
    """

    def having(found: Sequence[int]) -> str:
        if len(found) == 1:
            return f" ({called(found[0])})" if len(results) > 1 else ""
        return f" ({len(found)} results: {listed(list(dict.fromkeys(names[at] for at in found)))})"

    def called(at: int) -> str:
        return f"{results[at].metric} of {names[at]}"

    names = [result.gateway for result in results] if is_for_many(results) else names_of(results)
    every = [
        (at, [doubt for doubt in result.doubts if informing or doubt.grade != "information"])
        for at, result in enumerate(results)
    ]
    return tuple(graded(every, having, called=called, brief=not each, each=each, marked=True))


def _words(own: Mapping[str, Result], failed: Sequence[BrokenMeasurement]) -> str:
    """The words of the doubts that could change an answer, and why there is no result or nothing passed."""
    found: dict[str, list[str]] = {}
    for result in own.values():
        words: list[str] = [doubt.word for doubt in result.doubts if doubt.grade == "answer"]
        if not words and not result.median and declared(result.metric).better == "higher":
            words = [main_figure.bottleneck(result)]
        if words:
            found.setdefault(", ".join(dict.fromkeys(words)), []).append(result.metric)
    texts = [f"{'' if len(of) == len(own) else f'{listed(of)}: '}{words}" for words, of in found.items()]
    return "; ".join([*texts, *(_reason(one) for one in failed)])


def _reason(failed: BrokenMeasurement) -> str:
    cause = textwrap.shorten(failed.cause, _REASON, placeholder=" ...")
    return f"{failed.measurement}{failed.where}: {cause}" if failed.where else cause


def _by_work(by_gateway: Mapping[str, Mapping[str, Result]], columns: Sequence[str]) -> Mapping[str, list[str]]:
    """Names of the gateways by their work, in each the best of the first metric first; other metrics break ties."""
    works = {
        name: conditions.work_of(conditions.figure_of(next(iter(own.values())))) for name, own in by_gateway.items()
    }
    named = conditions.named_works(works.values())
    groups = grouped((named[work], gateway) for gateway, work in works.items())
    return {
        title: sorted(names, key=lambda name: [_place_of_cell(by_gateway[name].get(column)) for column in columns])
        for title, names in groups.items()
    }


def _place_of_cell(result: Result | None) -> tuple[bool, float]:
    if result is None:
        return True, 0.0
    return False, -result.median if declared(result.metric).better == "higher" else result.median


def _unlike_in_groups(
    groups: Mapping[str, Sequence[str]], by_gateway: Mapping[str, Mapping[str, Result]], columns: Sequence[str]
) -> list[str]:
    """Sentences on the conditions in which gateways of one work differ, each with its columns."""
    found: dict[tuple[str, str], list[str]] = {}
    for title, names in groups.items():
        for column in columns:
            own = [by_gateway[name][column] for name in names if column in by_gateway[name]]
            if said := _unlike(own):
                found.setdefault((title, said), []).append(column)
    return [
        f"{f'{title}, ' if len(groups) > 1 else ''}{', '.join(own)}: {said}" for (title, said), own in found.items()
    ]
