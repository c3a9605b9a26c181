# SPDX-License-Identifier: Apache-2.0
"""Figures of the page, chosen by what was varied; each with its finding in words, and its data as a table."""

from __future__ import annotations

import math
import re
import statistics
import textwrap
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeVar

from natgauge.analysis import conditions
from natgauge.analysis.conditions import on_one_axis, routes, series, work
from natgauge.analysis.contrast import better
from natgauge.analysis.derived import CORES, NEW, SESSIONS, Axis, loss_figure, varied_with
from natgauge.analysis.ratio_verdicts import doubts_of
from natgauge.figure_text import given, in_full, number, of_whole
from natgauge.interval_text import figure_and_interval, span, with_ends
from natgauge.metrics import declared
from natgauge.metrics.catalogue import SUBSCRIBERS, WITHIN_TOLERANCE, WITHOUT_LOSS
from natgauge.notes import Note
from natgauge.plain_text import capital
from natgauge.records.comparison import FRAME_OF, ComparisonRecord, RatioEstimate
from natgauge.records.measurement import Result
from natgauge.reports import graded_doubts, labels, main_figure
from natgauge.reports.comparison import change, conditions_of, interval
from natgauge.reports.html import charts
from natgauge.reports.html.charts import (
    OWN_PART,
    ChartAxis,
    ChartLine,
    Row,
    drawn_beside,
    limit_of,
    load_limit,
    without_forwarding,
)
from natgauge.reports.html.evidence import PERCENTILES, Timed
from natgauge.reports.labels import grouped
from natgauge.reports.main_figure import in_short, missing, with_bounds
from natgauge.reports.rows import CACHES, filling, unit_of, unit_of_all
from natgauge.words import listed, origin

#: Colours and shapes of gateways; the signs are those of the legend.
_COLOURS: Final = 8
_SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_SIGNS: Final = dict(zip(_SHAPES, "●■▲◆✚▼", strict=True))
#: The shape of each sign of a legend.
SHAPES: Final = {sign: shape for shape, sign in _SIGNS.items()}
#: Values whose largest is more than this factor above the smallest are drawn on a logarithmic axis.
_MANY_TIMES, _MANY_TIMES_OF_LINES = 50, 10
#: Points of a line of delays, and points of all lines of a page, which must stay small.
_POINTS, _ALL_POINTS, _LEAST_POINTS = 80, 2500, 6
#: One point in this many shows its value under the pointer, so that pointer areas do not overlap.
_SHOWN: Final = 5
#: Factor by which a shared axis of values extends beyond them.
_BEYOND_VALUES: Final = 1.1
#: A bar of reference is cut where it is longer than this factor times the longest one of a result.
_CUT: Final = 2.5
#: Lines of gateways are one up to this ratio of their values.
_ALIKE: Final = 1.1
#: Relative error of arithmetic on floats.
_EXACT: Final = 1e-9
#: Room beyond the farthest ends of ratios, and the least width of what is drawn, as a ratio.
_BEYOND, _LEAST_SPAN = 0.08, 1.02
#: Ratios outside of this range have a logarithmic axis, on which half and twice as much are equally far from 1.
_LINEAR: Final = (0.75, 3.0)
#: What a stroke is.
_STROKE: Final = (
    "A stroke is where another run on this machine is expected or, if that is unknown, the range of the repetitions."
)
#: What is drawn where doubts leave a bound.
_BOUNDED: Final = "a median of which only bounds are known, at the ends of the stroke; an arrow marks an unknown end"
#: Letters in a line of a name.
_LETTERS: Final = 20
_AGAINST: Final = {CORES: "cores", SESSIONS: "connections", NEW: "new connections/s"}
_Kind = TypeVar("_Kind")
#: Name, colour and shape of each gateway, the same throughout a page, as fields of a row.
Looks = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        axis: title of the axis that has none in the drawing, because the title of its group says it.
        caption: caption of the figure without its group and the page, which says everything; empty = that of the group.
    """

    title: str
    finding: str
    head: tuple[str, ...]
    data: tuple[tuple[str, ...], ...]
    spec: Row
    axis: str = ""
    caption: str = ""


@dataclass(frozen=True, slots=True)
class FigureGroup:
    """Figures that answer one question.

    Attributes:
        figures: one at least.
        legend: name, colour and sign of each gateway; empty where rows have names.
        unlike: the different conditions of what is drawn, which the page says once; None = there are none.
        marks: what the marks of doubt are, whose words the page has once, with its answers; empty = there are none.
        name: of its files, by the words of the command line, which stay when titles change.
        cited: title of its files, with the standard's term; empty = the title.
    """

    title: str
    caption: str
    name: str
    figures: tuple[Figure, ...]
    legend: tuple[tuple[str, str, str], ...] = ()
    unlike: conditions.Unlike | None = None
    marks: str = ""
    cited: str = ""


def looks_of(results: Sequence[Result], records: Sequence[ComparisonRecord]) -> Looks:
    """Return the looks of all gateways of a page; a device that only forwards is grey.

    A gateway has the same colour on nearly every page, because its name chooses the colour, if that is still free. A
    page of many gateways has colours twice, but no chart has: a chart has gateways of one kind.
    """
    kinds = {result.gateway: work(result) for result in results}
    forward = {result.gateway for result in results if routes(result)}
    named = [*(result.gateway for result in results), *(each.label for record in records for each in record.compared)]
    numbered = list(enumerate(dict.fromkeys(named)))
    places = _places([(gateway, kinds.get(gateway)) for _, gateway in numbered if gateway not in forward])
    colours = {
        gateway: "var(--muted)" if gateway in forward else f"var(--s{places[gateway] + 1})" for _, gateway in numbered
    }
    return {
        gateway: {"gateway": gateway, "colour": colours[gateway], "shape": _SHAPES[at % len(_SHAPES)]}
        for at, gateway in numbered
    }


def _places(gateways: Sequence[tuple[str, conditions.Work | None]]) -> Mapping[str, int]:
    """Numbers of the colours of gateways with their kinds; all different where there are enough colours."""
    if len(gateways) > _COLOURS:
        by_kind = grouped((kind, gateway) for gateway, kind in gateways)
        return {gateway: at % _COLOURS for own in by_kind.values() for at, gateway in enumerate(own)}
    places: dict[str, int] = {}
    for gateway, _ in gateways:
        free = [at for at in range(_COLOURS) if at not in places.values()]
        places[gateway] = min(free, key=lambda at: (at - zlib.crc32(gateway.encode())) % _COLOURS)
    return places


def _legend(gateways: Sequence[str], looks: Looks) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (gateway, looks[gateway]["colour"], _SIGNS[looks[gateway]["shape"]]) for gateway in dict.fromkeys(gateways)
    )


def question_figures(
    results: Sequence[Result],
    timed: Sequence[Sequence[Timed]],
    looks: Looks,
    first: str = SUBSCRIBERS.name,
) -> list[FigureGroup]:
    """Return the figures that answer the question: over cores, over connections, by rank, over loads, of delays.

    `first` is the metric that was asked for, or that limits what was asked for; other metrics say why.
    """
    groups = []
    for own in sorted(_by_title(results).values(), key=lambda own: own[0].metric != first):
        drawn = [_over(axis, sets, own, looks) for axis in (CORES, SESSIONS, NEW) if (sets := series(own, axis))]
        drawn += [group for group in (_losses(own, looks),) if group.figures]
        groups += drawn or [_by_rank(own, looks)]
    distributions = [(result, trials) for result, trials in zip(results, timed, strict=True) if trials]
    most = min(_POINTS, max(_LEAST_POINTS, _ALL_POINTS // max(1, sum(len(trials) for _, trials in distributions))))
    names = _names(results)
    if distributions:
        caption = (
            "Each line is one direction at one load, over all trials that timed their frames; its dashes are the load, "
            "a share of the highest rate of its repetition where that is known. "
            "Both axes are logarithmic. Delays are those of the device and the tester together. The dashed upright "
            "line is the tester's own part, where it is known."
        )
        figures = tuple(
            replace(_delays(result, part, names[id(result)], most, looks), caption=f"{caption}{_words([result])}")
            for result, trials in distributions
            for part in _of_loads(trials)
        )
        marks = _marked([result for result, _ in distributions])
        title = "Delays: share of the frames that took longer"
        groups.append(FigureGroup(title, caption, "delays", figures, marks=marks))
    return groups


def title_of(result: Result) -> str:
    """Return what is measured, in plain words, with its unit."""
    return f"{declared(result.metric).plain_name} ({unit_of(result)})"


def _by_title(results: Sequence[Result]) -> Mapping[str, Sequence[Result]]:
    return grouped((title_of(result), result) for result in results)


def _axis(result: Result) -> str:
    """What an axis of a file is, for a paper."""
    metric = declared(result.metric)
    return f"{metric.term or metric.plain_name} ({unit_of(result)})"


def _marked(results: Sequence[Result]) -> str:
    """What the marks of figures are, by what their doubts say."""
    return graded_doubts.explained(result.doubts for result in results)


def _words(results: Sequence[Result]) -> str:
    """The same for a figure without its page."""
    return _after(_marked(results))


def _names(results: Sequence[Result]) -> Mapping[int, str]:
    """Names of results in charts by `id`; they say how many of the repetitions there are."""
    names = labels.names_of(results)
    return {id(result): f"{name}{missing(result)}" for result, name in zip(results, names, strict=True)}


def _over(axis: Axis, sets: Sequence[Sequence[Result]], results: Sequence[Result], looks: Looks) -> FigureGroup:
    """Rates against an axis: a chart for each point of the others, a line for each gateway.

    All charts of gateways that are compared with each other have the same axes.
    """
    names = [name for name in labels.differing_within(results) if name != axis.parameter]
    shown = (*names, axis.parameter)
    by_first = {id(each[0]): each for each in sets}
    together = _together([each[0] for each in sets], shown)
    figures: list[Figure] = []
    ideal = " The thin dotted line is the ideal: n cores give n times the rate of the first." * (axis is CORES)
    band = " The pale band joins them." * (axis is SESSIONS)

    # Of several axes a caption of all says only what each of them is.
    logs = [_spans(_flat([by_first[id(first)] for first in firsts]), _MANY_TIMES_OF_LINES) for _, firsts in together]

    def caption(drawn: Sequence[Result], limited: Sequence[Result], marks: str, *, spans: bool) -> str:
        which = (
            "Both axes are" if spans and axis is SESSIONS else f"The axis of {'values' if spans else 'connections'} is"
        )
        log = f" {which} logarithmic." * (spans or axis is SESSIONS)
        single = any(len(result.repetitions) == 1 for result in drawn)
        kinds = [*(["a single repetition"] if single else []), *([_BOUNDED] if any(map(_is_bound, drawn)) else [])]
        hollow = f" A hollow mark is {', or '.join(kinds)}." * bool(kinds)
        return f"The line goes through the medians. {_STROKE}{band}{hollow}{ideal}{log}{marks}{_limits(limited)[1]}"

    for (head, firsts), spans in zip(together, logs, strict=True):
        own = [by_first[id(first)] for first in firsts]
        axes = _axes(axis, own)
        panels = grouped((_joined(head, labels.words(each[0], names)), each) for each in own)
        for title, every in panels.items():
            for part in _chunks(every, charts.MOST_LINES):
                alone = f"{caption(_flat(part), _flat(own), _words(_flat(part)), spans=spans)}"
                alone += _after(_unlike(_flat(part), *shown))
                figures.append(replace(_lines(title, part, axis, axes, looks), caption=alone))
    drawn = _flat(sets)
    return FigureGroup(
        f"{declared(results[0].metric).plain_name} against {_AGAINST[axis]} ({unit_of(results[0])})",
        caption(drawn, results, "", spans=all(logs)),
        f"{results[0].metric}-against-{_AGAINST[axis]}",
        tuple(figures),
        _legend([each[0].gateway for each in sets], looks),
        _unlike(drawn, *shown, apart=len(together) > 1),
        _marked(drawn),
        f"{declared(results[0].metric).cited} against {_AGAINST[axis]} ({unit_of(results[0])})",
    )


def _flat(sets: Sequence[Sequence[Result]]) -> list[Result]:
    return [result for each in sets for result in each]


def _is_bound(result: Result) -> bool:
    """Whether only bounds of the median are known."""
    return not main_figure.statement_of(result).is_median


def _axes(axis: Axis, sets: Sequence[Sequence[Result]]) -> tuple[ChartAxis, ChartAxis]:
    """Axes that fit all of these results."""
    results = _flat(sets)
    ticks = tuple(sorted({_at(result, axis) for result in results}))
    limits, spans = _limits(results)[0], _spans(results, _MANY_TIMES_OF_LINES)
    strokes = map(main_figure.stroke_of, results)
    values = [end for each in strokes for end in (each.low, each.high) if end > 0 or not spans]
    values += [result.median for result in results if result.median > 0 or not spans]
    # On a log axis, the line of ideal scaling needs little room.
    values += [point["y"] for each in sets for point in _ideal(axis, each) if spans]
    highest = _BEYOND_VALUES * max(*values, *(mark.value for mark in limits))
    domain = (min(filter(None, values)) / _BEYOND_VALUES if spans else 0.0, highest) if highest > 0 else None
    return (
        ChartAxis(_AGAINST[axis], log=axis is SESSIONS, ticks=ticks),
        ChartAxis("", log=spans, domain=domain, marks=limits),
    )


def _ideal(axis: Axis, each: Sequence[Result]) -> list[dict[str, float]]:
    if axis is not CORES or not each[0].unit.endswith("/s"):
        return []
    per_core = each[0].median / _at(each[0], axis)
    return [{"x": x, "y": per_core * x} for x in (_at(result, axis) for result in each)]


def _at(result: Result, axis: Axis) -> float:
    return result.number(axis.parameter) or 0.0


def _lines(
    title: str, sets: Sequence[Sequence[Result]], axis: Axis, axes: tuple[ChartAxis, ChartAxis], looks: Looks
) -> Figure:
    what, unit = _AGAINST[axis], unit_of(sets[0][0])
    rows: list[Row] = []
    ideal: list[Row] = []
    findings, data = [], []
    for at, each in enumerate(sets):
        first, last, gateway = each[0], each[-1], each[0].gateway
        look = {**looks[gateway], "line": f"{gateway}-{at}"}
        for result in each:
            where = in_full(_at(result, axis))
            steps = what if where != "1" else what.removesuffix("s")
            text = f"{gateway}, {where} {steps}: {with_bounds(result)} {unit}, {main_figure.spread(result)}"
            place = {"x": _at(result, axis), "y": result.median, **asdict(main_figure.stroke_of(result))}
            hollow = len(result.repetitions) == 1 or _is_bound(result)
            rows.append({**place, "tip": text, "hollow": hollow, "mark": graded_doubts.mark(result.doubts), **look})
            data.append((gateway, where, *_cells(result)))
        ends = [
            f"{with_bounds(end)}{graded_doubts.mark(end.doubts)} with {in_full(_at(end, axis))} {what}"
            for end in (first, last)
        ]
        findings.append(f"{gateway}: {ends[0]}, {ends[1]} ({unit}).")
        ideal += [{**point, **look} for point in _ideal(axis, each)]
    across, up = axes
    marks = _caches(sets, across.ticks, looks) if axis is SESSIONS else ()
    findings += [f"From {number(mark.value)} connections on: {mark.label}." for mark in marks]
    spec = charts.lines(rows, (replace(across, marks=marks), up), band=axis is SESSIONS, ideal=ideal)
    head = ("gateway", what, *_HEAD)
    return Figure(title, " ".join(findings), head, tuple(data), spec, _axis(sets[0][0]))


_HEAD: Final = ("median", "repetitions", "tester's own limit")


def _cells(result: Result) -> tuple[str, ...]:
    limit = limit_of(result)
    known = "-" if limit is None else number(limit.value) if limit.known else f"not known; {number(limit.value)} tried"
    median = f"{with_bounds(result)}{graded_doubts.mark(result.doubts)}"
    return median, "; ".join(main_figure.repetitions(result)), known


def _spans(results: Sequence[Result], times: float = _MANY_TIMES) -> bool:
    """Whether values need a logarithmic axis."""
    values = [value for result in results for value in result.values]
    return min(values) > 0 and max(values) > times * min(values)


def _limits(results: Sequence[Result]) -> tuple[tuple[ChartLine, ...], str]:
    """The lowest limit of the tester as a line, where it is near the values, and a sentence on all its limits."""
    limits = sorted((limit for result in results if (limit := limit_of(result))), key=lambda limit: limit.value)
    if not limits:
        return (), ""
    what = limits[0].label
    near = charts.near(limits[0].value, [value for result in results for value in result.values])
    ends = span(limits[0].value, limits[-1].value)
    marks = (ChartLine(limits[0].value, what),) if near else ()
    lowest = "" if limits[-1].value <= _ALIKE * limits[0].value else ", at the lowest of these"
    return marks, f" The {what}, {ends}, is {f'the dashed line{lowest}' if near else 'far beyond the values'}."


def _caches(sets: Sequence[Sequence[Result]], drawn: Sequence[float], looks: Looks) -> tuple[ChartLine, ...]:
    """The fewest connections that fill a cache of the device's cores, as far as they are drawn.

    Gateways whose numbers are alike have one line. Where others have another number, or none is known of them, a line
    has the names of its gateways, and of one gateway its colour.
    """
    gateways = {each[0].gateway for each in sets}
    lines = []
    for level in CACHES:
        fewest: dict[str, float] = {}
        for result in _flat(sets):
            if count := filling(result, level):
                fewest[result.gateway] = min(count, fewest.get(result.gateway, math.inf))
        alike: list[list[str]] = []
        for gateway in sorted(fewest, key=lambda name: fewest[name]):
            if not alike or fewest[gateway] > _ALIKE * fewest[alike[-1][0]]:
                alike.append([])
            alike[-1].append(gateway)
        for names in alike:
            of_all = len(names) == len(gateways)
            look = {} if of_all or len(names) > 1 else {"colour": looks[names[0]]["colour"]}
            lines.append(
                ChartLine(
                    fewest[names[0]],
                    f"table fills the {level} cache" if of_all else f"{listed(names)} fills {level} cache",
                    **look,
                )
            )
    return tuple(line for line in lines if min(drawn) <= line.value <= max(drawn))


def _together(results: Sequence[Result], varied: Sequence[str]) -> list[tuple[str, Sequence[Result]]]:
    """Return sets of results that may share an axis, each with the work of its gateways where sets differ in it."""
    sets = on_one_axis(results, varied)
    names = conditions.named_works([work(own[0]) for own in sets])
    names = {done: "plain forwarding" if done.forwards else name for done, name in names.items()}
    return [(names[work(own[0])] if len(names) > 1 else "", own) for own in sets]


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _unlike(results: Sequence[Result], *shown: str, apart: bool = False) -> conditions.Unlike | None:
    """Return the conditions in which drawn results differ, but for parameters that charts show.

    `apart` is whether these results are on several axes.
    """
    except_for = frozenset[str]().union(*map(varied_with, shown))
    so = conditions.NOT_ON_ONE_AXIS if apart else conditions.ORDERED
    return conditions.unlike(list(map(conditions.figure_of, results)), except_for=except_for, so=so)


def _after(sentence: str | conditions.Unlike | None) -> str:
    """Return a sentence with the space between it and the one before; empty where there is none."""
    return f" {sentence}" if sentence else ""


def _by_rank(results: Sequence[Result], looks: Looks) -> FigureGroup:
    """Bars by rank: a chart for each set of comparable results, the best first.

    Charts that differ in what was varied share a scale.
    """

    def by_rank(some: Sequence[Result]) -> Sequence[Result]:
        return sorted(some, key=lambda result: result.median, reverse=better(results[0].metric) != "lower")

    # What is comparable with no other comes behind the others.
    shown = labels.differing_within(results)
    together = sorted(_together(results, shown), key=lambda own: len(own[1]) == 1)
    references = [drawn_beside(own) for _, own in together]
    points = [sorted(map(by_rank, on_one_axis(own)), key=lambda point: len(point) == 1) for _, own in together]
    named = [name for every in points for point in every for name in _names(point).values()]
    named += [mark.label for marks in references for mark in marks]
    letters = max(len(line) for name in named for line in _wrapped(name).split("|"))
    figures: list[Figure] = []
    first = "the largest" if better(results[0].metric) is None else "the best"

    def caption(drawn: Sequence[Result], marks: str, *, several: bool, limited: bool) -> str:
        bounded = " An arrow marks an end that doubts leave unknown." * any(map(_is_bound, drawn))
        text = f"Bars are medians{f', {first} first' if several else ''}. {_STROKE}{bounded}{marks}"
        return text + (_limits(drawn)[1] if limited else "")

    forwarding = _after(without_forwarding(results))
    for (head, own), every, reference in zip(together, points, references, strict=True):
        highest = max(max(main_figure.stroke_of(result).high, result.median) for result in own)
        end = max(highest, *(min(mark.value, _CUT * highest) for mark in reference)) if reference else highest
        scale = None if _spans(own) or not end else (_BEYOND_VALUES * end, letters)
        for part in (part for point in every for part in _chunks(point, charts.MOST_ROWS)):
            bars = _bars(part, _names(results), labels.differing(results), looks, scale=scale, reference=reference)
            alone = caption(part, _words(part), several=len(part) > 1, limited=not reference)
            alone += f"{_after(_unlike(part, *shown))}{forwarding}"
            figures.append(replace(bars, title=_joined(head, bars.title), caption=alone))
    several = any(len(point) > 1 for every in points for point in every)
    of_all = caption(results, "", several=several, limited=not any(references))
    return FigureGroup(
        title_of(results[0]),
        f"{of_all}{forwarding}",
        results[0].metric,
        tuple(figures),
        unlike=_unlike(results, *shown, apart=len(together) > 1),
        marks=_marked(results),
        cited=f"{declared(results[0].metric).cited} ({unit_of(results[0])})",
    )


def _bars(  # noqa: PLR0913 - what distinguishes the figure, by keyword
    results: Sequence[Result],
    names: Mapping[int, str],
    differing: Sequence[str],
    looks: Looks,
    *,
    scale: tuple[float, int] | None = None,
    every: bool = False,
    reference: Sequence[ChartLine] = (),
) -> Figure:
    """Bars with what distinguishes them; what they share, and others lack, is the title.

    Charts share a `scale`, the end of the axis and the longest name, so that a longer bar is a larger value in each.
    A `reference` is one more bar, in grey, which is cut where it would squeeze the others.
    """
    rows, points = [], []
    own, unlike = _names(results), labels.differing(results)
    for result in results:
        name, unit = names[id(result)], unit_of(result)
        common = {
            "name": f"{_wrapped(own[id(result)])}|{_figure_in_lines(result)}",
            **looks[result.gateway],
        }
        text = f"{name}: median {with_bounds(result)} {unit}, {main_figure.spread(result)}"
        of_all = main_figure.Stroke(result.minimum, result.maximum)
        ends = of_all if every else main_figure.stroke_of(result)
        rows.append({**common, "value": result.median, **asdict(ends), "tip": text})
        points += [
            {**common, "value": value, "tip": f"{name}, repetition {at}: {text} {unit}"}
            for at, (value, text) in enumerate(
                zip(result.values, main_figure.repetitions(result), strict=True) if every else (), start=1
            )
        ]
    for mark in reference:
        end = min(mark.value, scale[0] / _BEYOND_VALUES) if scale else mark.value
        is_cut = mark.value > end * (1 + _EXACT)
        said = f"{number(mark.value)}{' (bar cut)' if is_cut else ''}"
        tip = f"{mark.label}: {number(mark.value)} {unit_of(results[0])}"
        place = {"name": f"{_wrapped(mark.label)}|{said}", "value": end, "tip": tip, "open_high": is_cut}
        rows.append({**place, "low": end, "high": end, "colour": "var(--muted)", "shape": "circle"})
    data = tuple((names[id(result)], *_cells(result)) for result in results)
    domain = (0.0, scale[0]) if scale else None
    axis = ChartAxis(
        "", log=scale is None and _spans(results), domain=domain, marks=() if reference else _limits(results)[0]
    )
    finding = "; ".join(f"{row[0]}: {row[1]} {unit_of(results[0])}" for row in data) + "."
    shared = labels.words(results[0], [name for name in differing if name not in unlike])
    spec = charts.ranked(rows, axis, points, scale[1] if scale else 0)
    return Figure(shared, finding, ("result", *_HEAD), data, spec, _axis(results[0]))


def evidence_figures(results: Sequence[Result], looks: Looks) -> list[FigureGroup]:
    """Return every repetition of every result."""
    names, groups = _names(results), []
    caption = "Each point is a repetition, the upright stroke their median."
    for title, every in _by_title(results).items():
        differing, shown, figures = labels.differing(every), labels.differing_within(every), []
        together = _together(every, shown)
        for head, own in together:
            bars = [_bars(part, names, differing, looks, every=True) for part in _chunks(own, charts.MOST_ROWS)]
            figures += [replace(each, title=_joined(head, each.title)) for each in bars]
        unlike = _unlike(every, *shown, apart=len(together) > 1)
        what, name = f"Every repetition of {title}", f"{every[0].metric}-repetitions"
        groups.append(FigureGroup(what, caption, name, tuple(figures), unlike=unlike, marks=_marked(every)))
    return groups


def _losses(results: Sequence[Result], looks: Looks) -> FigureGroup:
    curves = [result for result in results if declared(result.metric).draws_loss and result.repetitions[0].series]
    together = _together(curves, labels.differing_within(curves))
    parts = [(head, part) for head, own in together for part in _chunks(own, charts.MOST_LINES)]

    def caption(drawn: Sequence[Result], marks: str) -> str:
        shared = " In shared placement it is the share of the offered rate that was not forwarded." * any(
            result.placement == "shared" for result in drawn
        )
        return (
            "The line goes through the medians at each load, which is a share of the highest one of its repetition; "
            f"strokes are the range of the repetitions.{shared}{marks}"
        )

    def alone(drawn: Sequence[Result]) -> str:
        return f"{caption(drawn, _words(drawn))}{_after(_unlike(drawn))}"

    return FigureGroup(
        "Loss against load",
        caption(curves, ""),
        "loss-against-load",
        tuple(replace(_loss(part, looks), title=head, caption=alone(part)) for head, part in parts),
        _legend([result.gateway for result in curves], looks),
        _unlike(curves, apart=len(together) > 1),
        _marked(curves),
    )


def _loss(results: Sequence[Result], looks: Looks) -> Figure:
    rows: list[dict[str, Any]] = []
    data, findings = [], []
    for name, result in zip(labels.names_of(results), results, strict=True):
        figure = loss_figure(result)
        # Each repetition of a campaign has a highest load of its own.
        by_load: dict[float, list[tuple[float, float]]] = {}
        for row in (row for repetition in result.repetitions for row in repetition.series):
            load, rate, share = (row.get(column) for column in ("offered_percent", "offered_rate", figure))
            if isinstance(load, float | int) and isinstance(rate, float | int) and isinstance(share, float | int):
                by_load.setdefault(float(load), []).append((float(rate), float(share)))
        at_top = ""
        for load, points in sorted(by_load.items()):
            rates, values = ([point[of] for point in points] for of in (0, 1))
            rate, middle = statistics.median(rates), statistics.median(values)
            tip = f"{name}, {number(rate)} frames/s: {with_ends(middle, min(values), max(values))} %"
            look = {**looks[result.gateway], "line": name}
            rows.append({"x": rate, "y": middle, "low": min(values), "high": max(values), "tip": tip, **look})
            rows[-1]["mark"] = graded_doubts.mark(result.doubts) if load == max(by_load) else ""
            offered = span(min(rates), max(rates))
            data.append((name, f"{load:g}", offered, "; ".join(of_whole(value, 100) for value in values)))
            at_top = f", {of_whole(middle, 100)} % at {offered} frames/s"
        findings.append(f"{name}: {_highest_free(result)}{at_top}.")
    limits = [limit for result in results if (limit := load_limit(result)) is not None]
    lowest = min(limits, key=lambda limit: limit.value, default=None)
    near = lowest is not None and charts.near(lowest.value, [row["x"] for row in rows])
    marks = (ChartLine(lowest.value, lowest.label),) if lowest is not None and near else ()
    unit = unit_of_all(results)
    axes = (ChartAxis(f"load ({unit})", marks=marks), ChartAxis("loss (%)", form=".3~g"))
    head = ("gateway", "load (% of the highest)", f"offered load ({unit})", "loss (%)")
    return Figure("", " ".join(findings), head, tuple(data), charts.lines(rows, axes, band=False))


def _highest_free(result: Result) -> str:
    """Up to which rate trials lost no more than a passing one may, in words."""
    lost = main_figure.tolerance(result)
    free = result.figures.get(WITHIN_TOLERANCE if lost else WITHOUT_LOSS, result.figures.get(WITHOUT_LOSS))
    if free is None:
        return f"{'loss' if lost is None else f'more than {main_figure.percent(lost)} lost'} at the lowest load"
    highest, interval = figure_and_interval(free.median, free.minimum, free.maximum)
    some = f" in {free.count} of {len(result.repetitions)} repetitions" * (free.count < len(result.repetitions))
    return f"{main_figure.most_lost(result)} up to {highest} frames/s{interval}{some}"


def _of_loads(trials: Sequence[Timed]) -> Iterator[Sequence[Timed]]:
    """Distribute delays over figures whose loads have dashes of their own."""
    by_load = grouped((trial.percent or trial.rates, trial) for trial in trials)
    for part in _chunks(list(by_load.values()), charts.MOST_LINES):
        yield [trial for own in part for trial in own]


def _delays(result: Result, trials: Sequence[Timed], name: str, points: int, looks: Looks) -> Figure:
    rows: list[dict[str, Any]] = []
    data, findings = [], []
    for at, trial in enumerate(trials):
        rate = f"{span(*trial.rates)} frames/s"
        load = rate if trial.percent is None else f"load {trial.percent:g} %"
        line = f"{load}{'' if load == rate else f' ({rate})'}, {origin(trial.direction)}"
        known = [point for point in trial.points if point[1] > 0] or [(trial.points[0][0], 1.0)]
        for place, (delay, share) in enumerate(_thinned(known, points)):
            rows.append({"x": delay, "y": 100 * share, "line": at, "load": load, **looks[result.gateway]})
            if place % _SHOWN == 0:
                rows[-1]["tip"] = f"{line}: {number(100 * share)} % took longer than {number(delay)} us"
        shown = tuple(number(trial.percentiles[each]) for each in PERCENTILES)
        percent = "-" if trial.percent is None else f"{trial.percent:g}"
        data.append((percent, rate, origin(trial.direction), f"{trial.frames:,}", *shown))
        findings.append(f"{line}: median {shown[0]} us, 99.9th percentile {shown[3]} us.")
    limit = limit_of(result)
    marks = () if limit is None else (ChartLine(limit.value, OWN_PART),)
    axes = (
        ChartAxis("one-way delay (us)", log=True, marks=marks),
        ChartAxis("frames that took longer (%)", log=True, form=".3~g"),
    )
    percentiles = (f"{each:g}th percentile (us)" for each in PERCENTILES[:-1])
    head = ("load (% of the highest)", "rate of the direction", "direction", "frames", *percentiles, "longest (us)")
    loads = list(dict.fromkeys(row["load"] for row in rows))
    spec = charts.steps(rows, axes, loads)
    return Figure(
        f"{name}{graded_doubts.mark(result.doubts)}, {result.metric}", " ".join(findings), head, tuple(data), spec
    )


def _thinned(points: Sequence[tuple[float, float]], most: int) -> Iterator[tuple[float, float]]:
    """No more points than are seen, the first and the last among them; equally far from each other on a log axis."""
    span = math.log(max(points[-1][0], 1e-3) / max(points[0][0], 1e-3)) or 1.0
    last = -math.inf
    for at, (delay, share) in enumerate(points):
        place = math.log(max(delay, 1e-3))
        if at in (0, len(points) - 1) or place - last >= span / most:
            last = place
            yield delay, share


def forest_figures(number_of: str, record: ComparisonRecord, looks: Looks) -> FigureGroup:
    """Return the ratios of a comparison around 1 (0 %), quantity by quantity, in each the A/A control last."""
    every = (*record.estimates, *record.control)
    ordered = sorted(every, key=lambda estimate: (estimate in record.control, estimate.ratio or math.inf))
    by_quantity = {each.quantity: [one for one in ordered if one.quantity == each.quantity] for each in every}
    caption = (
        f"The point is the median change, the stroke its {given(every[0].level)} interval. "
        "Left of 0 % a gateway costs less than the baseline, right of it more. Grey is the A/A control: the baseline "
        f"compared with itself.{' An arrow marks an unknown end.' * any(not each.is_bounded for each in every)}"
    )
    marks = [ChartLine(1.0, "")]
    if record.fail_above is not None:
        marks.append(ChartLine(1 + record.fail_above, f"--fail-above {given(record.fail_above)}"))
    ends = [end for each in every for end in (each.low, each.high) if end] + [mark.value for mark in marks]
    room = max((max(ends) / min(ends)) ** _BEYOND, math.sqrt(_LEAST_SPAN))
    domain = (min(ends) / room, max(ends) * room)
    log = domain[0] < _LINEAR[0] or domain[1] > _LINEAR[1]
    caption += " The axis is logarithmic." * log
    unlike = conditions_of(record)

    def doubts(shown: Sequence[RatioEstimate]) -> list[Sequence[Note]]:
        return [doubts_of(record, each) for each in shown]

    def alone(shown: Sequence[RatioEstimate]) -> str:
        return f"{caption}{_after(graded_doubts.explained(doubts(shown)))}{_after(unlike)}"

    axis = ChartAxis("cost against the baseline", log=log, domain=domain, marks=tuple(marks), is_change=True)
    parts = [part for own in by_quantity.values() for part in _chunks(own, charts.MOST_ROWS)]
    figures = (replace(figure, caption=alone(part)) for part in parts if (figure := _forest(record, part, axis, looks)))
    of = "work of the device" if record.by == "slices" else "time"
    title = capital(f"{number_of}cost of a frame ({of}), compared with {record.baseline.label}")
    signs = graded_doubts.explained(doubts(every))
    return FigureGroup(title, caption, f"cost-by-{record.by}", tuple(figures), unlike=unlike, marks=signs)


def _forest(
    record: ComparisonRecord, estimates: Sequence[RatioEstimate], axis: ChartAxis, looks: Looks
) -> Figure | None:
    """Ratios of one quantity; None where no end of an interval is known."""
    known = [estimate for estimate in estimates if estimate.low or estimate.high is not None]
    if not known:
        return None
    first, last = axis.domain or (0.0, math.inf)
    rows, data, frame = [], [], FRAME_OF[estimates[0].quantity]
    for each in estimates:
        changed = "-" if each.ratio is None else change(each, each.ratio)
        data.append((each.gateway, frame, changed, interval(each), each.verdict))
        if each in known:
            ratio = {} if each.ratio is None else {"value": each.ratio}
            unknown = {"open_low": not each.low, "open_high": each.high is None}
            its_ends = {"low": each.low or first, "high": last if each.high is None else each.high}
            colour = "var(--muted)" if record.gateway(each.gateway).role == "control" else looks[each.gateway]["colour"]
            tip = f"{each.gateway}, {frame}: {changed} ({interval(each)}), {each.verdict}"
            said = "" if each.ratio is None else f"|{changed}{graded_doubts.mark(doubts_of(record, each))}"
            name = f"{_wrapped(each.gateway)}{said}"
            rows.append({"name": name, **ratio, **its_ends, **unknown, "colour": colour, "tip": tip})
    finding = " ".join(f"{estimate.text}." for estimate in estimates)
    head = ("gateway", "of", "change", "interval", "verdict")
    return Figure(frame, finding, head, tuple(data), charts.ranked(rows, axis))


def _wrapped(name: str) -> str:
    """A name in lines that leave room for the plot, joined by "|"."""
    lines = [""]
    for word in re.findall(r"[^-/_., ]*[-/_., ]|[^-/_., ]+", name.replace("|", "/")):
        if lines[-1] and len(f"{lines[-1]}{word}".rstrip()) > _LETTERS:
            lines.append("")
        lines[-1] += word
    return "|".join(part for line in lines for part in textwrap.wrap(line, _LETTERS)) or "-"


def _figure_in_lines(result: Result) -> str:
    """A figure with its mark in lines that leave room for the plot, as of a name; no line ends within a number."""
    text = f"{in_short(result)}{graded_doubts.mark(result.doubts)}"
    return "|".join(textwrap.wrap(text, _LETTERS, break_long_words=False, break_on_hyphens=False))


def _chunks(every: Sequence[_Kind], most: int) -> Iterator[Sequence[_Kind]]:
    """Distribute items evenly over figures of at most `most` items."""
    parts = math.ceil(len(every) / most)
    for at in range(parts):
        yield every[at * len(every) // parts : (at + 1) * len(every) // parts]
