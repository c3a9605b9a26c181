# SPDX-License-Identifier: Apache-2.0
"""Figures for a set of results, each with its data as a table and its text alternative."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from natgauge.analysis import scalability
from natgauge.analysis.comparing import comparable
from natgauge.analysis.contrast import Contrast, contrast
from natgauge.records.measurement import Result
from natgauge.reports import labels
from natgauge.reports.html import charts
from natgauge.reports.html.charts import ChartAxis, ChartLine
from natgauge.reports.html.delays import distributions
from natgauge.reports.html.figure import Figure, Numbered, short
from natgauge.reports.html.limits import Limit, limit_of, limit_sentence, load_limit
from natgauge.reports.html.timed import Timed
from natgauge.reports.rows import CACHES, filling, number, unit_of, whole
from natgauge.statistics.order_statistics import median_interval

#: What grows with the number of connections, and is no other set-up for that.
_WITH_CONNECTIONS: Final = frozenset(
    {
        "connections", "table_size", "hash_size", "udp_timeout", "source_address_count", "source_port_count",
        "destination_address_count", "destination_port_count", "most_seconds",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Against:
    """A parameter that rates are drawn against: its words, its name, what goes with it, whether its axis is log."""

    what: str
    name: str
    about: frozenset[str]
    log: bool


_CORES: Final = _Against("device cores", "device_cores", scalability.varied_with("device_cores"), log=False)
_CONNECTIONS: Final = _Against("connections", "connections", _WITH_CONNECTIONS, log=True)
_Kind = TypeVar("_Kind")


def _by_metric(numbered: Sequence[Numbered]) -> Mapping[tuple[str, str], list[Numbered]]:
    by_metric: dict[tuple[str, str], list[Numbered]] = {}
    for entry in numbered:
        by_metric.setdefault((entry.result.metric, unit_of(entry.result)), []).append(entry)
    return by_metric


def _chunks(every: Sequence[_Kind], most: int) -> Iterator[Sequence[_Kind]]:
    """Distribute items evenly over figures of at most `most` items."""
    number_of = math.ceil(len(every) / most)
    for at in range(number_of):
        yield every[at * len(every) // number_of : (at + 1) * len(every) // number_of]


def _repetitions(numbered: Sequence[Numbered]) -> Iterator[Figure]:
    for (metric, unit), whole_group in _by_metric(numbered).items():
        yield from (_strip(metric, unit, group) for group in _chunks(whole_group, charts.MOST_ROWS))


def _strip(metric: str, unit: str, group: Sequence[Numbered]) -> Figure:
    label = partial(_label, group)
    points = [
        {"label": label(entry), "value": value, "tip": f"{short(entry)}, repetition {at}: {number(value)} {unit}"}
        for entry in group
        for at, value in enumerate(entry.result.values, start=1)
    ]
    medians = [
        {
            "label": label(entry),
            "value": entry.result.median,
            "tip": f"{short(entry)}, median: {number(entry.result.median)} {unit}",
        }
        for entry in group
    ]
    limits = [
        {"label": label(entry), "value": limit.value, "tip": f"{limit.label}: {number(limit.value)} {unit}"}
        for entry in group
        if (limit := limit_of(entry.result)) is not None
    ]
    data = tuple(
        (
            label(entry).replace("|", ", "),
            number(entry.result.median),
            _interval_of_median(entry.result),
            "; ".join(map(number, entry.result.values)),
            _limit_cell(entry.result),
        )
        for entry in group
    )
    spec = partial(charts.strip, points, medians, limits, ChartAxis(f"{metric} ({unit})"))
    return Figure(
        title=f"{metric}: every repetition",
        alternative=" ".join(
            f"{row[0]}: median {row[1]} {unit}, repetitions from {number(entry.result.minimum)} to "
            f"{number(entry.result.maximum)}; {limit_sentence(entry.result, limit_of(entry.result))}."
            for row, entry in zip(data, group, strict=True)
        ),
        caption=f"Each point is a repetition, the thick stroke their median. {_limit_sentences(group, unit, limit_of)}",
        head=("result", f"median ({unit})", "interval of the median", "repetitions", "tester's own limit"),
        data=data,
        draw=spec,
    )


def _over(numbered: Sequence[Numbered], over: _Against) -> Iterator[Figure]:
    """Rates against a parameter, a line for each set of results that differ in nothing else."""
    for (metric, unit), group in _by_metric(numbered).items():
        rated = [entry for entry in group if entry.result.unit.endswith("/s") and entry.result.number(over.name)]
        sets = [
            each for each in _alike(rated, over.about) if len({entry.result.number(over.name) for entry in each}) > 1
        ]
        yield from (_curve(metric, unit, over, some) for some in _chunks(sets, charts.MOST_SERIES))


def _alike(numbered: Sequence[Numbered], about: frozenset[str]) -> list[list[Numbered]]:
    """Results that differ in nothing that moves the figure but what the comparison is about."""
    sets: list[list[Numbered]] = []
    for entry in numbered:
        mine = next((each for each in sets if not comparable(each[0].result, entry.result, except_for=about)), None)
        if mine is None:
            sets.append([entry])
        else:
            mine.append(entry)
    return sets


def _curve(metric: str, unit: str, over: _Against, sets: Sequence[Sequence[Numbered]]) -> Figure:
    what, name = over.what, over.name
    points: list[dict[str, Any]] = []
    medians: list[dict[str, Any]] = []
    limits: list[dict[str, Any]] = []
    data: list[tuple[str, ...]] = []
    names = _series_names(sets)
    for series, each in zip(names, sets, strict=True):
        for entry in sorted(each, key=lambda numbered: numbered.result.number(name) or 0):
            x = entry.result.number(name) or 0
            where = f"{series}, {whole(int(x))} {what}"
            common = {"x": x, "series": series}
            points += [
                {**common, "y": value, "tip": f"{where}, repetition {at}: {number(value)} {unit}"}
                for at, value in enumerate(entry.result.values, start=1)
            ]
            tip = f"{where}, median: {number(entry.result.median)} {unit}"
            medians.append({**common, "y": entry.result.median, "tip": tip})
            limit = limit_of(entry.result)
            if limit is not None:
                tip = f"{where}, {limit.label}: {number(limit.value)} {unit}"
                limits.append({**common, "y": limit.value, "tip": tip, "what": limit.label})
            data.append(
                (
                    series,
                    whole(int(x)),
                    number(entry.result.median),
                    "; ".join(map(number, entry.result.values)),
                    _limit_cell(entry.result),
                )
            )
    ticks = tuple(sorted({row["x"] for row in medians}))
    marks = _caches([entry.result for each in sets for entry in each], ticks) if over is _CONNECTIONS else ()
    axes = (ChartAxis(what, log=over.log, ticks=ticks, marks=marks), ChartAxis(f"{metric} ({unit})"))
    return Figure(
        title=f"{metric} against {what}",
        alternative=" ".join(
            f"{series}: " + ", ".join(f"{row[2]} {unit} with {row[1]} {what}" for row in data if row[0] == series) + "."
            for series in names
        ),
        caption=(
            f"Each point is a repetition, the line goes through the medians{'; the axis is logarithmic' * over.log}. "
            f"{_limit_sentences([entry for each in sets for entry in each], unit, limit_of)}"
            + "".join(f" {mark.label}: from {number(mark.value)} connections on." for mark in marks)
        ),
        head=("series", what, f"median ({unit})", "repetitions", "tester's own limit"),
        data=tuple(data),
        draw=partial(charts.curve, points, medians, limits, axes),
    )


def _caches(results: Sequence[Result], drawn: Sequence[float]) -> tuple[ChartLine, ...]:
    """The fewest connections of any result that fill a cache of the device's cores, as far as they are drawn."""
    found = []
    for level in CACHES:
        fewest = min((count for result in results if (count := filling(result, level)) is not None), default=None)
        if fewest is not None and min(drawn) <= fewest <= max(drawn):
            found.append(ChartLine(fewest, f"table larger than the {level} cache"))
    return tuple(found)


def _series_names(sets: Sequence[Sequence[Numbered]]) -> list[str]:
    """Devices; where one has several sets, with the columns of the tables."""
    duts = [each[0].result.dut for each in sets]
    return [
        dut if duts.count(dut) == 1 else f"{dut} (columns {', '.join(str(entry.number) for entry in each)})"
        for dut, each in zip(duts, sets, strict=True)
    ]


def _losses(numbered: Sequence[Numbered]) -> Iterator[Figure]:
    every = [entry for entry in numbered if entry.result.metric == "frame-loss" and entry.result.repetitions[0].series]
    yield from (_loss(group) for group in _chunks(every, charts.MOST_SERIES))


def _loss(group: Sequence[Numbered]) -> Figure:
    points: list[dict[str, Any]] = []
    medians: list[dict[str, Any]] = []
    data: list[tuple[str, ...]] = []
    for entry in group:
        # In shared placement a busy device slows the sender, so lost frames alone are not all that is missing.
        name = "shortfall_percent" if entry.result.placement == "shared" else "lost_percent"
        by_load: dict[float, list[float]] = {}
        for repetition in entry.result.repetitions:
            for row in repetition.series:
                load, share = row.get("offered_rate"), row.get(name)
                if isinstance(load, float | int) and isinstance(share, float | int):
                    by_load.setdefault(float(load), []).append(float(share))
        series = short(entry)
        for load, values in sorted(by_load.items()):
            where = f"{series}, {number(load)} frames/s"
            middle = statistics.median(values)
            medians.append({"x": load, "y": middle, "series": series, "tip": f"{where}: {number(middle)} %"})
            points += [{"x": load, "y": value, "series": series, "tip": f"{where}: {value:.4g} %"} for value in values]
            data.append((series, number(load), "; ".join(f"{value:.4g}" for value in values)))
    upright, each = _uprights(group), "frames/s in each direction"
    axes = (ChartAxis("offered load (frames/s, each direction)"), ChartAxis("loss (%)"))
    shared = any(entry.result.placement == "shared" for entry in group)
    why = " In shared placement, shown is the share of the offered rate that was not forwarded." * shared
    return Figure(
        title="Loss against load",
        alternative=" ".join(f"{row[0]}: {row[2]} % at {row[1]} frames/s." for row in data),
        caption=f"Each point is a load of a repetition.{why} {_limit_sentences(group, each, load_limit)}",
        head=("result", "offered load (frames/s, each direction)", "loss (%)"),
        data=tuple(data),
        draw=lambda width: charts.loss(points, medians, upright, axes, width),
    )


def _uprights(group: Sequence[Numbered]) -> list[ChartLine]:
    """The lowest limit of all results, for one line."""
    limits = [limit for entry in group if (limit := load_limit(entry.result)) is not None]
    lowest = min(limits, key=lambda limit: limit.value, default=None)
    return [] if lowest is None else [ChartLine(lowest.value, lowest.label)]


def _ratios(numbered: Sequence[Numbered]) -> Iterator[Figure]:
    results = [entry.result for entry in numbered]
    kinds: tuple[tuple[str, str, float, Any, Callable[[Result], float]], ...] = (
        ("Relative scale-up", "", 1.0, scalability.scale_up, lambda result: 1 / result.device_cores),
        ("Percent of forwarding", "%", 100.0, scalability.of_forwarding, lambda _: 100.0),
    )
    for title, unit, same, compare, factor in kinds:
        rows: list[dict[str, Any]] = []
        limits: list[dict[str, Any]] = []
        for entry in numbered:
            comparison: scalability.Comparison = compare(entry.result, results)
            if comparison.value is None or comparison.reference is None:
                continue
            ratio = contrast(comparison.reference, entry.result)
            if ratio.kind != "ratio":
                continue
            rows.append(_ratio_row(entry, ratio, factor(entry.result), comparison.bound))
            limit = limit_of(entry.result)
            if limit is not None and comparison.reference.median:
                value = limit.value / comparison.reference.median * factor(entry.result)
                tip = f"{limit.label}: {value:.3g}"
                limits.append({"label": rows[-1]["label"], "value": value, "tip": tip})
        yield from (_ratio_figure(title, unit, same, some, limits) for some in _chunks(rows, charts.MOST_ROWS))


def _ratio_row(entry: Numbered, ratio: Contrast, factor: float, bound: scalability.Bound) -> dict[str, Any]:
    value, lower = ratio.value * factor, ratio.interval.lower * factor
    # An unbounded end is drawn as far from the value as the other end, and its text is "more".
    bounded = ratio.interval.upper != float("inf")
    upper = ratio.interval.upper * factor if bounded else 2 * value - lower
    upper_text = f"{upper:.4g}" if bounded else "more"
    where = f"{short(entry)}, {entry.result.metric}"
    value_text = f"{bound} {value:.4g}" if bound else f"{value:.4g}"
    tip = f"{where}: {value_text}, interval {lower:.4g} to {upper_text} ({ratio.interval.coverage:.1%})"
    return {
        "label": f"{short(entry)}|{entry.result.metric}",
        "value": value,
        "lower": lower,
        "upper": upper,
        "tip": tip,
        "cells": (where, value_text, f"{lower:.4g} to {upper_text}", f"{ratio.interval.coverage:.1%}"),
    }


def _ratio_figure(
    title: str, unit: str, same: float, rows: Sequence[dict[str, Any]], limits: Sequence[dict[str, Any]]
) -> Figure:
    its = {row["label"] for row in rows}
    limits = [limit for limit in limits if limit["label"] in its]
    plain = [{name: value for name, value in row.items() if name != "cells"} for row in rows]
    axis = ChartAxis(f"{title.lower()}{f' ({unit})' if unit else ''}")
    data = tuple(
        (*row["cells"], next((limit["tip"].split(": ")[1] for limit in limits if limit["label"] == row["label"]), "-"))
        for row in rows
    )
    return Figure(
        title=title,
        alternative=" ".join(f"{row['tip']}." for row in rows),
        caption=(
            "The point is the ratio of the medians, the stroke an interval that holds the true ratio with the "
            "probability in the table (Mann-Whitney, no distribution assumed; errors of searches are in it). The "
            "thin stroke is what the tester itself would reach."
        ),
        head=("result", axis.title, "interval", "probability", "tester's own limit"),
        data=data,
        draw=lambda width: charts.intervals(plain, limits, same, axis, width),
    )


def _label(group: Sequence[Numbered], entry: Numbered) -> str:
    """Return column and device; the second line has parameters that differ from other results of the figure."""
    difference = labels.words(entry.result, labels.differing([entry.result for entry in group]))
    return "|".join([short(entry), *([difference] if difference else [])])


def _interval_of_median(result: Result) -> str:
    interval = median_interval(result.values)
    if interval is None:
        return "-"
    return f"{number(interval.lower)} to {number(interval.upper)} ({interval.coverage:.1%})"


def _limit_cell(result: Result) -> str:
    limit = limit_of(result)
    if limit is None:
        return "-"
    return number(limit.value) if limit.known else f"not known; {number(limit.value)} tried"


def _limit_sentences(group: Sequence[Numbered], unit: str, read: Callable[[Result], Limit | None]) -> str:
    """Return sentences on the limit line next to the values, or on the reason why there is none."""
    limits = [read(entry.result) for entry in group]
    known = [limit for limit in limits if limit is not None]
    if not known:
        return "There is no line of the tester's own limit: it is not known here, or the metric has none."
    unknown = any(not limit.known for limit in known)
    tried = " Where nobody knows it, it is the highest rate that was tried." if unknown else ""
    least, most = min(limit.value for limit in known), max(limit.value for limit in known)
    span = number(least) if least == most else f"{number(least)} to {number(most)}"
    what = "part" if unit == "us" else "limit"
    return (
        f"The thin or dashed line is the tester's own {what}, {span} {unit}; where that is far beyond all values, it "
        f"stands at the edge, with an arrow.{tried}"
    )


#: Each makes the figures of one kind, in the order of the page.
COLLECTORS: Final[tuple[Callable[[Sequence[Numbered]], Iterator[Figure]], ...]] = (
    _repetitions,
    partial(_over, over=_CORES),
    partial(_over, over=_CONNECTIONS),
    _losses,
    _ratios,
    distributions,
)


def figures(results: Sequence[Result], timed: Sequence[Sequence[Timed]] = ()) -> list[Figure]:
    """Every figure that results and their trials hold the data of.

    Args:
        results: in the order of the tables.
        timed: delays of each result's trials; empty where they are not known.
    """
    numbered = [
        Numbered(*entry) for entry in zip(itertools.count(1), results, timed or [()] * len(results), strict=False)
    ]
    return [figure for collect in COLLECTORS for figure in collect(numbered)]
