# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG, and what a gateway is drawn next to in them: the tester's own limit, and plain forwarding.

Vega-Lite draws them when the page is made, which needs no script and no library in the browser. A chart has the width
of a phone; the page shows as many next to each other as fit. Colours are variables of the page's style, so that one
drawing serves light, dark and paper.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from natgauge.analysis.conditions import routes
from natgauge.analysis.unit_frames import highest_value
from natgauge.figure_text import number
from natgauge.metrics import declared
from natgauge.metrics.catalogue import COST
from natgauge.metrics.metric import IN_ALL
from natgauge.plain_text import visible
from natgauge.records.measurement import Result
from natgauge.reports.optional_deps import need

_WIDTH: Final = 340
_HEIGHT: Final = 220
#: Height of a line of a name, space between rows, and width of the widest letter of a name.
_LINE, _GAP, _LETTER = 15, 11, 7.4
_VERSION: Final = "6.4"
#: Factor by which a log axis extends beyond the values.
_BESIDE: Final = 1.3
#: A limit farther above all values than this factor is not drawn: the values would be squeezed.
_FAR: Final = 1.5
#: Ends of the two intervals of a ratio.
_ENDS: Final = ("low", "high", "wide_low", "wide_high")
#: Form of labels with a prefix.
_PREFIXED: Final = "~s"
#: Ticks of an axis, as far as that goes.
_TICKS: Final = 4
#: More lines in one chart could not be distinguished, and more rows would not fit on a screen.
MOST_LINES: Final = 6
MOST_ROWS: Final = 20

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChartLine:
    """A straight line across the chart, such as the tester's own limit: its value, description and colour."""

    value: float
    label: str
    colour: str = "var(--limit)"


@dataclass(frozen=True, slots=True)
class ChartAxis:
    """An axis of a chart.

    Attributes:
        title: with its unit; empty where the figure's title says it.
        ticks: values with labels; empty = automatic.
        domain: first and last drawn value; None = automatic.
        is_change: whether values are ratios, and labels the changes in percent.
    """

    title: str
    log: bool = False
    ticks: tuple[float, ...] = ()
    form: str = _PREFIXED
    domain: tuple[float, float] | None = None
    marks: tuple[ChartLine, ...] = ()
    is_change: bool = False


def _harmless(part: Any) -> Any:
    """A specification whose texts have no separators of lines, which the converter takes for ends of its statements."""
    if isinstance(part, str):
        return visible(part)
    if isinstance(part, Mapping):
        return {name: _harmless(inner) for name, inner in part.items()}
    return [_harmless(inner) for inner in part] if isinstance(part, list | tuple) else part


def svg(spec: Row) -> str:
    """A chart as SVG."""
    text: str = need("vl_convert", "report", "a figure").vegalite_to_svg(_harmless(spec), vl_version=_VERSION)
    return text


def pdf(spec: Row) -> bytes:
    """A chart as PDF."""
    content: bytes = need("vl_convert", "report", "a figure").vegalite_to_pdf(_harmless(spec), vl_version=_VERSION)
    return content


def drawn(spec: Row, name: str) -> str:
    """The SVG of a chart within a page."""
    # All drawings of a page share one name space: a mark would be clipped by a shape of another drawing.
    text = re.sub(r'(\bid="|url\(#|href="#)([\w-]+)', rf"\g<1>{name}-\g<2>", svg(spec))
    return re.sub(r'(<svg\b[^>]*?) width="\d+(?:\.\d+)?" height="\d+(?:\.\d+)?"', r"\1", text, count=1)


def lines(rows: Sequence[Row], axes: tuple[ChartAxis, ChartAxis], *, band: bool, ideal: Sequence[Row] = ()) -> Row:
    """A line for each `line` through its medians, with the range of the repetitions as a stroke at each point.

    Args:
        rows: `x`, `y`, `low`, `high`, `line`, `colour`, `shape` and `tip`; the point of a `hollow` one is hollow, an
            end of the range that is not known is `open_low` or `open_high`, a `mark` is above its point.
        ideal: `x`, `y`, `line` and `colour` of lines that are drawn thin and dashed.
    """
    x, y = _encoding("x", axes[0]), _encoding("y", axes[1])
    colour = {"field": "colour", "type": "nominal", "scale": None}
    shape = {"field": "shape", "type": "nominal", "scale": None}
    line = {"field": "line", "type": "nominal"}
    extent = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}
    hollow: Row = {"type": "point", "filled": True, "size": 16, "opacity": 1, "color": "var(--paper)"}
    sign: Row = {"type": "text", "dx": 8, "dy": -8, "fontSize": 13, "color": "var(--ink)"}
    thin = {"type": "line", "strokeDash": [2, 3], "strokeWidth": 1, "clip": True}
    arrows = {
        end: {"type": "point", "filled": True, "shape": f"triangle-{way}", "size": 40, "opacity": 1}
        for end, way in (("low", "down"), ("high", "up"))
    }
    layers = [
        *_across(axes[0].marks, x, "x"),
        *_across(axes[1].marks, y, "y"),
        _layer(ideal, thin, x=x, y=y, color=colour, detail=line),
        _layer(rows if band else [], {"type": "area", "opacity": 0.18}, **extent, detail=line),
        _layer(rows, {"type": "rule", "strokeWidth": 2, "opacity": 0.8}, **extent, detail=line),
        _layer(rows, {"type": "line", "strokeWidth": 2}, x=x, y=y, color=colour, detail=line),
        _layer(rows, {"type": "point", "filled": True, "size": 55, "opacity": 1}, x=x, y=y, color=colour, shape=shape),
        _layer([row for row in rows if row.get("hollow")], hollow, x=x, y=y),
        *(
            _layer([row for row in rows if row.get(f"open_{end}")], arrow, x=x, y={**y, "field": end}, color=colour)
            for end, arrow in arrows.items()
        ),
        _layer([row for row in rows if row.get("mark")], sign, x=x, y=y, text={"field": "mark"}),
    ]
    return _spec(layers, _HEIGHT)


def over_commits(rows: Sequence[Row], axis: ChartAxis) -> Row:
    """A line through ratios in order of their commits, with both intervals of each, and a mark at each change.

    Args:
        rows: `x` from 1, `when`, `y`, `tip`, and `mark`, a sign or empty; `low`, `high`, `wide_low` and `wide_high` as
            far as they are known: a stroke of another end is drawn to the edge, with an arrow.
    """
    ends = [row[name] for row in rows for name in ("y", *_ENDS) if name in row] + [mark.value for mark in axis.marks]
    room = (max(ends) - min(ends)) / 10 or 0.01
    domain = (min(ends) - room, max(ends) + 2 * room)
    y = _encoding("y", replace(axis, domain=domain))
    drawn = [{name: domain[name.endswith("high")] for name in _ENDS} | dict(row) for row in rows]
    names = json.dumps({str(row["x"]): row["when"] for row in rows})
    below: Row = {
        "labelExpr": f"{names}[datum.label] || ''", "labelAngle": -40, "labelOverlap": True, "labelLimit": 110,
        "tickMinStep": 1, "format": "d", "grid": False,
    }  # fmt: skip
    scale = {"type": "linear", "domain": [0.5, len(rows) + 0.5], "nice": False}
    x: Row = {"field": "x", "type": "quantitative", "scale": scale, "title": "commit, or date", "axis": below}
    colour = {"value": "var(--s1)"}

    def stroke(width: int, low: str, high: str, shown: str) -> Row:
        mark = {"type": "rule", "strokeWidth": width}
        return _layer(drawn, mark, x=x, y={**y, "field": low}, y2={"field": high}, color={"value": shown})

    def arrow(end: str, sign: str, place: str) -> Row:
        mark = {"type": "text", "text": sign, "fontSize": 14, "baseline": place, "dx": 6, "color": "var(--muted)"}
        is_open = [own for row, own in zip(rows, drawn, strict=True) if end not in row]
        return _layer(is_open, mark, x=x, y={**y, "field": end})

    sign: Row = {"type": "text", "dy": -8, "fontSize": 15, "baseline": "bottom", "color": "var(--limit)"}
    marked = [row for row in drawn if row["mark"]]
    layers = [
        *_across(axis.marks, y, "y"),
        stroke(1, "wide_low", "wide_high", "var(--muted)"),
        stroke(3, "low", "high", "var(--s1)"),
        arrow("wide_low", "↓", "bottom"),
        arrow("wide_high", "↑", "top"),
        _layer(drawn, {"type": "line", "strokeWidth": 1.5}, x=x, y=y, color=colour),
        _layer(drawn, {"type": "point", "filled": True, "size": 35, "opacity": 1}, x=x, y=y, color=colour),
        _layer(marked, sign, x=x, y={**y, "field": "wide_high"}, text={"field": "mark"}),
    ]
    return _spec(layers, _HEIGHT)


def steps(rows: Sequence[Row], axes: tuple[ChartAxis, ChartAxis], dashes: Sequence[str]) -> Row:
    """A stepped line for each `line`, dashed by its `load`; points with a `tip` show it.

    Args:
        rows: `x`, `y`, `line`, `load` and `colour`, in the order in which they are joined.
    """
    x, y = _encoding("x", axes[0]), _encoding("y", axes[1])
    numbered = [{**row, "at": at} for at, row in enumerate(rows)]
    patterns = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3], [12, 4]]
    legend = {"title": None, "orient": "bottom", "columns": 2, "labelLimit": 160}
    scale = {"domain": list(dashes), "range": [patterns[at % len(patterns)] for at in range(len(dashes))]}
    encoding: Row = {
        "color": {"field": "colour", "type": "nominal", "scale": None},
        "detail": {"field": "line"},
        "order": {"field": "at", "type": "quantitative"},
        "strokeDash": {"field": "load", "type": "nominal", "scale": scale, "legend": legend},
    }
    # Invisible points that show a tip on hover.
    hidden = {"type": "point", "filled": True, "size": 90, "opacity": 0}
    layers = [
        *_across(axes[0].marks, x, "x"),
        _layer(numbered, {"type": "line", "strokeWidth": 1.5, "interpolate": "step-after"}, x=x, y=y, **encoding),
        _layer([row for row in numbered if "tip" in row], hidden, x=x, y=y),
    ]
    return _spec(layers, _HEIGHT + 20 * math.ceil(len(dashes) / 2))


def ranked(rows: Sequence[Row], axis: ChartAxis, points: Sequence[Row] = (), letters: int = 0) -> Row:
    """A row for each name: the value as a bar (with axis `marks`, or a log axis, as a point), its range as a stroke.

    Args:
        rows: `name`, `low`, `high`, `colour` and `tip`; `value` where it is known; `open_low` and `open_high` where
            that end of the range is not known and the stroke ends at the edge. The lines of a name, which are left of
            the plot, are joined by "|".
        letters: longest line of a name in charts whose plots have the same width.
    """
    names = list(dict.fromkeys(row["name"] for row in rows))
    left = 8 + _LETTER * max(letters, *(len(line) for name in names for line in name.split("|")))
    height = _LINE * max(1 + name.count("|") for name in names) + _GAP
    y = {"field": "name", "type": "nominal", "sort": names, "axis": None}
    x = _encoding("value", axis)
    colour = {"field": "colour", "type": "nominal", "scale": None}
    known = [row for row in rows if "value" in row]
    ratios = axis.domain is not None and axis.domain[0] > 0
    bars = not axis.log and not points and not ratios
    mark: Row = {"type": "bar", "size": 12} if bars else {"type": "tick", "thickness": 3, "size": 14}
    if ratios:
        # Small, so that the stroke of a narrow interval is longer than the point.
        mark = {"type": "point", "filled": True, "size": 35}
    ends = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y}
    # Several lines of text have the place of the first one.
    up = {"expr": f"-{_LINE / 2} * (length(split(datum.name, '|')) - 1)"}
    text: Row = {"type": "text", "fontSize": 12, "lineHeight": _LINE, "lineBreak": "|", "color": "var(--ink)"}
    layers = [
        *_across(axis.marks, x, "x"),
        _layer(known, {**mark, "opacity": 0.85}, x=x, y=y, color=colour),
        _layer(rows, {"type": "rule", "strokeWidth": 2, "color": "var(--ink)"}, **ends),
        _layer(points, {"type": "point", "filled": True, "size": 45, "opacity": 0.8}, x=x, y=y, color=colour),
        _layer(rows, {**text, "align": "left", "x": -left, "dy": up}, y=y, text={"field": "name"}),
    ]
    for end, sign, align in (("low", "←", "left"), ("high", "→", "right")):
        arrow = {"type": "text", "text": sign, "fontSize": 16, "align": align, "dy": -7}
        layers.append(_layer([row for row in rows if row.get(f"open_{end}")], arrow, x={**x, "field": end}, y=y))
    return _spec(layers, height * len(names) + 50)


def near(limit: float, values: Sequence[float]) -> bool:
    """Whether a limit is near enough to the values to be drawn."""
    return limit <= _FAR * max(values, default=0)


def _encoding(field: str, axis: ChartAxis) -> dict[str, Any]:
    scale: dict[str, Any] = {"type": "log", "nice": False} if axis.log else {"zero": True}
    if axis.domain is not None:
        # An axis from 0 ends at a tick with a label.
        nice = _TICKS if not axis.log and axis.domain[0] == 0 else False
        scale = {"type": "log" if axis.log else "linear", "domain": list(axis.domain), "nice": nice}
    elif axis.log and axis.ticks:
        # Room for the points of the first and the last value.
        scale |= {"domainMin": axis.ticks[0] / _BESIDE, "domainMax": axis.ticks[-1] * _BESIDE}
    elif axis.ticks:
        room = (axis.ticks[-1] - axis.ticks[0]) / 8 or 1
        scale = {"type": "linear", "domain": [axis.ticks[0] - room, axis.ticks[-1] + room], "nice": False}
    more: dict[str, Any] = {"format": axis.form, "labelOverlap": True, "tickCount": _TICKS}
    more["labelSeparation"] = 6 if field == "y" else 14
    # A prefix of small numbers, such as "50m" of a percent, is not understood.
    small = "datum.label && datum.value < 1 ? format(datum.value, '.3~g') : " if axis.form == _PREFIXED else ""
    more["labelExpr"] = f"datum.value == 0 ? '0' : {small}datum.label"
    if axis.is_change:
        more["labelExpr"] = "datum.value == 1 ? '0 %' : format(100 * (datum.value - 1), '+.3~f') + ' %'"
    if axis.ticks:
        more["values"] = list(axis.ticks)
    return {"field": field, "type": "quantitative", "scale": scale, "title": axis.title or None, "axis": more}


def _spec(layers: Sequence[Row], height: float) -> Row:
    axis = {
        "labelColor": "var(--ink)", "titleColor": "var(--ink)", "domainColor": "var(--muted)",
        "tickColor": "var(--muted)", "gridColor": "var(--rule)", "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "labelFont": "sans-serif", "titleFont": "sans-serif", "titleLimit": _WIDTH - 40,
    }  # fmt: skip
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": _WIDTH,
        "height": height,
        "autosize": {"type": "fit", "contains": "padding"},
        "background": "transparent",
        "padding": {"left": 6, "top": 6, "right": 14, "bottom": 6},
        "layer": [layer for layer in layers if layer["data"]["values"]],
        "config": {
            "view": {"stroke": None},
            "axis": axis,
            "legend": {"labelColor": "var(--ink)", "labelFontSize": 12, "symbolStrokeColor": "var(--ink)"},
        },
    }


def _layer(rows: Sequence[Row], mark: Row, **encoding: Row) -> Row:
    more = {"description": {"field": "tip", "type": "nominal"}} if rows and "tip" in rows[0] else {}
    return {"data": {"values": list(rows)}, "mark": mark, "encoding": {**encoding, **more}}


def _across(marks: Sequence[ChartLine], encoding: Row, channel: str) -> list[Row]:
    """Lines across the chart with their labels."""
    values = [
        {channel: mark.value, "label": mark.label, "tip": f"{mark.label}: {number(mark.value)}", "at": at}
        for at, mark in enumerate(marks)
    ]
    rule = {"type": "rule", "strokeDash": [5, 4], "strokeWidth": 1.5}
    place: Row = {"x": 4, "dy": -6, "align": "left"}
    if channel == "x":
        # Labels are on the side of the line that has more room, each at its own height.
        right = "scale('x', datum.x) > width / 2 ? "
        place = {"y": "height", "align": {"expr": f"{right}'right' : 'left'"}, "dx": {"expr": f"{right}-4 : 4"}}
        place |= {"dy": {"expr": f"-8 - {_LINE} * datum.at"}}
    text = {"type": "text", "fontSize": 12, **place}
    where = {**encoding, "field": channel}
    layers = []
    for colour in dict.fromkeys(mark.colour for mark in marks):
        own = [values[at] for at, mark in enumerate(marks) if mark.colour == colour]
        layers.append(_layer(own, {**rule, "color": colour}, **{channel: where}))
        layers.append(_layer(own, {**text, "color": colour}, **{channel: where}, text={"field": "label"}))
    return layers


#: Name of the tester's limit of a delay.
OWN_PART: Final = "tester's own part"


@dataclass(frozen=True, slots=True)
class Limit:
    """The tester's own limit.

    Attributes:
        value: the highest rate in the result's unit, of each direction where the result is per direction; for a delay,
            the tester's own part in us.
        known: False where the value is only the highest rate tried, because the ports' own limit is not known.
    """

    value: float
    label: str
    known: bool = True


def limit_of(result: Result) -> Limit | None:
    """Return the tester's own limit; None where the metric has none, or it was not measured."""
    if result.unit == "us":
        # The tester's own delay is never subtracted.
        own_delays = (note.value for note in result.notes if note.word == "own delay" and note.value is not None)
        return next((Limit(delay, OWN_PART) for delay in own_delays), None)
    metric = declared(result.metric)
    # The tester's rate of phase 2 counts frames, and a query is one of two.
    return _rate(result, metric.phase) if metric.is_bounded and metric.counts != "queries" else None


def load_limit(result: Result) -> Limit | None:
    """The highest rate at which the tester offers frames of phase 2 in each active direction, frames/s."""
    return _rate(result, 2)


def _rate(result: Result, phase: int) -> Limit | None:
    own, tried = (result.number(f"{name}_phase{phase}_rate") for name in ("tester_highest", "search_top"))
    rate, label = (own, "tester's own limit") if own else (tried, "highest rate tried")
    if not rate:
        return None
    # The rates of phase 2 count the frames of all directions and kinds together.
    if phase == 2 and IN_ALL in result.figures and result.median:
        rate = highest_value(rate, result.median, result.figures, result.parameters)
    elif phase == 2 and (result.parameter("directions") == "both" or declared(result.metric).counts == "load"):
        rate /= 2
    return Limit(rate, label, known=bool(own))


#: A reference that is farther above a single value is not drawn next to it.
_FAR_LIMIT: Final = 30


def drawn_beside(results: Sequence[Result]) -> tuple[ChartLine, ...]:
    """Return the grey bars next to results of one scale.

    A cost is relative to plain forwarding. Next to a single result there is the tester's own limit, where it is not too
    far away to be seen.
    """
    if results[0].metric == COST.name:
        return (ChartLine(1.0, "plain forwarding"),)
    limit = limit_of(results[0]) if len(results) == 1 else None
    if limit is None or not 0 < limit.value <= _FAR_LIMIT * results[0].median:
        return ()
    return (ChartLine(limit.value, limit.label),)


def without_forwarding(results: Sequence[Result]) -> str:
    """Say that plain forwarding is not known, next to which a single gateway's rate would be read; empty elsewhere."""
    first, metric = results[0], declared(results[0].metric)
    # Forwarding answers no queries.
    if not first.unit.endswith("/s") or metric.counts == "queries":
        return ""
    if len({result.gateway for result in results}) > 1 or any(map(routes, results)):
        return ""
    family = first.parameter("initiator_family") or "ipv4"
    return f"Plain forwarding (gateway linux-{family}) was not measured."
