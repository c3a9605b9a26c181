# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG, drawn by Vega-Lite when the page is made: it needs no script and no library in the browser.

Colours are variables of the page's style, so one drawing serves light, dark and paper. Each chart is drawn twice, wide
and narrow, because text in a drawing that is made smaller becomes too small to read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from natgauge.reports.optional_deps import need

WIDE: Final = 720
NARROW: Final = 340
_VERSION: Final = "6.4"
#: A limit this many times above all values is drawn at the edge with a remark; otherwise the values would be squeezed.
_FAR: Final = 3.0
#: Factor by which a log axis extends beyond the values.
_BESIDE: Final = 1.3
#: More series would share colours, and more rows would not fit on a screen.
MOST_SERIES: Final = 6
MOST_ROWS: Final = 20
_SERIES: Final = [f"var(--s{number})" for number in range(1, MOST_SERIES + 1)]
_SHAPES: Final = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChartAxis:
    """An axis of a chart.

    Attributes:
        title: with its unit.
        log: whether equal distances are equal ratios.
        ticks: values with labels; empty = automatic.
        lowest: beginning of a log axis; None = the lowest value.
        form: number format of the labels; SI prefixes by default.
        domain: first and last drawn value; None = automatic.
        marks: values at which a line crosses the chart.
    """

    title: str
    log: bool = False
    ticks: tuple[float, ...] = ()
    lowest: float | None = None
    form: str = "~s"
    domain: tuple[float, float] | None = None
    marks: tuple[ChartLine, ...] = ()


@dataclass(frozen=True, slots=True)
class ChartLine:
    """A straight line across the chart, such as the tester's own limit: its value and its description."""

    value: float
    label: str


def drawn(spec: Row, name: str) -> str:
    """The SVG of a chart.

    Args:
        spec: Vega-Lite.
        name: name of the drawing, unique in its page.

    Raises:
        HostError: vl-convert is not installed.
    """
    svg: str = need("vl_convert", "report", "the page").vegalite_to_svg(dict(spec), vl_version=_VERSION)
    # All drawings of a page share one name space: a mark would be clipped by a shape of another, maybe hidden drawing.
    svg = re.sub(r'(\bid="|url\(#|href="#)([\w-]+)', rf"\g<1>{name}-\g<2>", svg)
    return re.sub(r'(<svg\b[^>]*?) width="\d+(?:\.\d+)?" height="\d+(?:\.\d+)?"', r"\1", svg, count=1)


def strip(points: Sequence[Row], medians: Sequence[Row], limits: Sequence[Row], axis: ChartAxis, width: int) -> Row:
    """A row for each result: every repetition as a point, the median as a stroke, the tester's limit as a thin one.

    Args:
        points: `label`, `value` and `tip` of each repetition.
        medians: the same of each result.
        limits: the same of each result that has one.
        axis: axis of the values.
        width: width of the whole drawing.
    """
    y = _labelled(medians, width)
    shown = _near(limits, "value", max((row["value"] for row in points), default=0))
    x = {"field": "value", "type": "quantitative", **_scale(axis, width)}
    tick = {"type": "tick", "thickness": 3, "size": 26, "color": "var(--ink)"}
    layers: list[Row] = [
        _layer(shown, {**tick, "color": "var(--limit)", "thickness": 2}, x=x, y=y),
        _layer([row for row in shown if row["far"]], _text("→", 8), x=x, y=y),
        _layer(medians, tick, x=x, y=y),
        _layer(points, _point("var(--s1)"), x=x, y=y),
    ]
    return _rows_spec(layers, medians, width)


def curve(
    points: Sequence[Row], medians: Sequence[Row], limits: Sequence[Row], axes: tuple[ChartAxis, ChartAxis], width: int
) -> Row:
    """A line for each series through its medians, every repetition as a point, the tester's limit dashed.

    Args:
        points: `x`, `y`, `series` and `tip` of each repetition.
        medians: the same of each result.
        limits: the same, and `what` it is, where the tester's limit, or the highest rate tried, is known.
        axes: axes of x and y; that of x may have marks.
        width: width of the whole drawing.
    """
    names = list(dict.fromkeys(row["series"] for row in medians))
    colour = {**_series(names), "legend": _legend(names, width)}
    shape = {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": names, "range": _SHAPES},
        "legend": colour["legend"],
    }
    shown = _near(limits, "y", max((row["y"] for row in points), default=0))
    far = any(row["far"] for row in shown)
    what = " or ".join(dict.fromkeys(row["what"] for row in shown))
    x = {"field": "x", "type": "quantitative", **_scale(axes[0], width)}
    y = {"field": "y", "type": "quantitative", **_scale(axes[1])}
    dashed = {"type": "line", "strokeDash": [5, 4], "color": "var(--limit)", "strokeWidth": 2, "clip": True}
    layers: list[Row] = [
        _layer(shown, dashed, x=x, y=y, detail={"field": "series"}),
        _layer(shown, {"type": "point", "color": "var(--limit)", "shape": "stroke", "size": 90}, x=x, y=y),
        _layer(_last(shown), _text(what + " ↑ beyond" * far, -6), x=x, y=y),
        _layer(medians, {"type": "line", "strokeWidth": 2}, x=x, y=y, color=colour, detail={"field": "series"}),
        _layer(medians, {"type": "tick", "orient": "horizontal", "thickness": 3, "size": 18}, x=x, y=y, color=colour),
        _layer(points, _point(None), x=x, y=y, color=colour, shape=shape),
        *_uprights(axes[0].marks, x, {"align": "left", "dx": 4, "y": "height", "dy": -10}),
    ]
    return _spec([layer for layer in layers if layer["data"]["values"]], width, 320)


def lines(rows: Sequence[Row], upright: Sequence[ChartLine], axes: tuple[ChartAxis, ChartAxis], width: int) -> Row:
    """Lines without points, one for each `line`, in the colour of its `series`; upright ones where a limit is.

    Args:
        rows: `x`, `y`, `series` and `line`, in the order in which they are joined; a `tip` is shown on hover.
        upright: values of x.
        axes: axes of x and y.
        width: width of the whole drawing.
    """
    names = list(dict.fromkeys(row["series"] for row in rows))
    colour = {**_series(names), "legend": _legend(names, width)}
    x = {"field": "x", "type": "quantitative", **_scale(axes[0], width)}
    y = {"field": "y", "type": "quantitative", **_scale(axes[1])}
    order = {"field": "at", "type": "quantitative"}
    numbered = [{**row, "at": at} for at, row in enumerate(rows)]
    path = {"type": "line", "strokeWidth": 1.6, "interpolate": "step-after"}
    # Invisible points that show a tip on hover.
    hidden = {"type": "point", "filled": True, "size": 90, "opacity": 0}
    layers = [
        _layer(numbered, path, x=x, y=y, color=colour, detail={"field": "line"}, order=order),
        _layer([row for row in numbered if "tip" in row], hidden, x=x, y=y),
        *_uprights(upright, x, {"align": "left", "dx": 4, "y": "height", "dy": -10}),
    ]
    return _spec(layers, width, 320)


def loss(
    points: Sequence[Row],
    medians: Sequence[Row],
    upright: Sequence[ChartLine],
    axes: tuple[ChartAxis, ChartAxis],
    width: int,
) -> Row:
    """Return a chart like `curve`, with the tester's limit as an upright line, because the rate is on the x axis."""
    chart = dict(curve(points, medians, [], axes, width))
    x = {"field": "x", "type": "quantitative", **_scale(axes[0], width)}
    top = max((row["x"] for row in points), default=0)
    near = [line if line.value <= top * _FAR else ChartLine(top * 1.1, f"{line.label} → beyond") for line in upright]
    place = {"align": "right", "dx": -4, "y": "height", "dy": -10}
    return {**chart, "layer": [*_uprights(near, x, place), *chart["layer"]]}


def intervals(rows: Sequence[Row], limits: Sequence[Row], same: float, axis: ChartAxis, width: int) -> Row:
    """A row for each ratio: its value as a point, its interval as a stroke, and where nothing would differ.

    Args:
        rows: `label`, `value`, `lower`, `upper` and `tip`.
        limits: `label` and `value` that the tester allows, with `tip`.
        same: the value where nothing differs.
        axis: axis of the values.
        width: width of the whole drawing.
    """
    y = _labelled(rows, width)
    x = {"field": "value", "type": "quantitative", **_scale(axis, width)}
    near = _near(limits, "value", max([same, *(row["upper"] for row in rows)]))
    tick = {"type": "tick", "thickness": 2, "size": 26, "color": "var(--limit)"}
    between = {"field": "lower", "type": "quantitative", **_scale(axis, width)}
    layers: list[Row] = [
        {
            "data": {"values": [{"x": same}]},
            "mark": {"type": "rule", "color": "var(--muted)", "strokeDash": [2, 2]},
            "encoding": {"x": {"field": "x", "type": "quantitative", **_scale(axis, width)}},
        },
        _layer(near, tick, x=x, y=y),
        _layer([row for row in near if row["far"]], _text("→", 8), x=x, y=y),
        _layer(rows, {"type": "rule", "strokeWidth": 3, "color": "var(--s1)"}, x=between, x2={"field": "upper"}, y=y),
        _layer(rows, {**_point("var(--s1)"), "size": 110}, x=x, y=y),
    ]
    return _rows_spec(layers, rows, width)


def forest(rows: Sequence[Row], upright: Sequence[ChartLine], axis: ChartAxis, width: int) -> Row:
    """A forest plot: a row for each ratio, its confidence interval as a stroke, its median as a point.

    Args:
        rows: `label`, `lower`, `upper`, `control` and `tip`; `value` where the ratio is known; `open_low` and
            `open_high` where that end of the interval is not known and the stroke ends at the edge.
        upright: values that ratios are compared with, such as 1.
        axis: axis of the ratios, with its domain.
        width: width of the whole drawing.
    """
    y = _labelled(rows, width)
    x = {"field": "value", "type": "quantitative", **_scale(axis, width)}
    between = {"field": "lower", "type": "quantitative", **_scale(axis, width)}
    upper = {"field": "upper", "type": "quantitative", **_scale(axis, width)}
    mark = {"field": "x", "type": "quantitative", **_scale(axis, width)}
    layers = [part for line in upright for part in _uprights([line], mark, _beside(line, axis))]
    for control, colour in ((False, "var(--s1)"), (True, "var(--muted)")):
        some = [row for row in rows if bool(row["control"]) is control]
        known = [row for row in some if "value" in row]
        stroke = {"type": "rule", "strokeWidth": 3, "color": colour}
        layers += [
            _layer(some, stroke, x=between, x2={"field": "upper"}, y=y),
            _layer(known, {**_point(colour), "opacity": 1}, x=x, y=y),
            _layer([row for row in some if row["open_low"]], _arrow("←", "left", colour), x=between, y=y),
            _layer([row for row in some if row["open_high"]], _arrow("→", "right", colour), x=upper, y=y),
        ]
    return _rows_spec(layers, rows, width)


def _beside(line: ChartLine, axis: ChartAxis) -> Row:
    """Return the position of the label of an upright line: the side towards the middle of the drawing."""
    first, last = axis.domain or (line.value, line.value)
    right = line.value > math.sqrt(first * last)
    return {"align": "right" if right else "left", "dx": -4 if right else 4, "y": "height", "dy": -8}


def _arrow(sign: str, align: str, colour: str) -> Row:
    """Return the mark for an end of an interval outside the drawing."""
    return {"type": "text", "text": sign, "fontSize": 16, "color": colour, "align": align, "dy": -8}


def _labelled(rows: Sequence[Row], width: int) -> Row:
    """The axis that names each row; "|" begins a second line."""
    labels = list(dict.fromkeys(row["label"] for row in rows))
    axis = {"labelExpr": "split(datum.label, '|')", "labelLimit": width * 0.4, "grid": False}
    return {"field": "label", "type": "nominal", "sort": labels, "title": None, "axis": axis}


def _rows_spec(layers: Sequence[Row], rows: Sequence[Row], width: int) -> Row:
    """A drawing with a labelled row for each result."""
    labels = {row["label"] for row in rows}
    longest = max(len(part) for label in labels for part in label.split("|"))
    return _spec([layer for layer in layers if layer["data"]["values"]], width, 46 * len(labels) + 60, 6 + 2 * longest)


def _near(limits: Sequence[Row], name: str, top: float) -> list[dict[str, Any]]:
    """Limits that are far beyond `top` are moved to the edge, beyond all that is drawn where it is."""
    far = [row[name] > top * _FAR for row in limits]
    edge = 1.15 * max([top, *(row[name] for row, beyond in zip(limits, far, strict=True) if not beyond)])
    return [
        {**row, name: edge, "far": True} if beyond else {**row, "far": False}
        for row, beyond in zip(limits, far, strict=True)
    ]


def _spec(layers: Sequence[Row], width: int, height: int, left: int = 6) -> Row:
    """Return one drawing.

    Args:
        layers: marks from the back to the front.
        width: width of the drawing.
        height: height of the drawing.
        left: space for the labels; browsers use wider letters than the measured ones.
    """
    axis = {
        "labelColor": "var(--ink)",
        "titleColor": "var(--ink)",
        "domainColor": "var(--muted)",
        "tickColor": "var(--muted)",
        "gridColor": "var(--rule)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelFont": "sans-serif",
        "titleFont": "sans-serif",
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": width,
        "height": height,
        "autosize": {"type": "fit", "contains": "padding"},
        "background": "transparent",
        "padding": {"left": left, "top": 6, "right": 12, "bottom": 6},
        "layer": list(layers),
        "config": {
            "view": {"stroke": None},
            "axis": axis,
            "legend": {"labelColor": "var(--ink)", "labelFontSize": 12, "labelLimit": 300, "symbolStrokeWidth": 2},
        },
    }


def _layer(rows: Sequence[Row], mark: Row, **encoding: Row) -> Row:
    more = {"description": {"field": "tip", "type": "nominal"}} if rows and "tip" in rows[0] else {}
    return {"data": {"values": list(rows)}, "mark": mark, "encoding": {**encoding, **more}}


def _point(colour: str | None) -> Row:
    fixed = {} if colour is None else {"color": colour}
    return {"type": "point", "filled": True, "size": 60, "opacity": 0.75, **fixed}


def _text(words: str, dy: int) -> Row:
    across = {"dx": 8} if words == "→" else {"align": "right", "dy": dy}
    return {"type": "text", "text": words, "fontSize": 12, "color": "var(--limit)", **across}


def _last(rows: Sequence[Row]) -> list[Row]:
    return [max(rows, key=lambda row: row["x"])] if rows else []


def _uprights(upright: Sequence[ChartLine], x: Row, place: Row) -> list[Row]:
    if not upright:
        return []
    values = [
        {"x": line.value, "label": line.label, "tip": f"{line.label or 'line'}: {line.value:,.4g}"} for line in upright
    ]
    text = {"type": "text", "fontSize": 12, "color": "var(--limit)", **place}
    rule = {"type": "rule", "strokeDash": [5, 4], "color": "var(--limit)", "strokeWidth": 2}
    return [
        _layer(values, rule, x=x),
        _layer(values, text, x=x, text={"field": "label", "type": "nominal"}),
    ]


def _series(names: Sequence[str]) -> dict[str, Any]:
    return {"field": "series", "type": "nominal", "scale": {"domain": list(names), "range": _SERIES}}


def _legend(names: Sequence[str], width: int) -> Row | None:
    if len(names) < 2:
        return None
    return {"title": None, "orient": "bottom", "columns": 1 if width < WIDE else 2, "columnPadding": 40}


def _scale(axis: ChartAxis, width: int = WIDE) -> dict[str, Any]:
    """Return the scale of an axis; on a narrow drawing the unit is below the title."""
    scale: dict[str, Any] = {"type": "log", "nice": False} if axis.log else {"zero": True}
    if axis.domain is not None:
        scale = {"type": "log" if axis.log else "linear", "domain": list(axis.domain), "nice": False}
    elif axis.log and axis.ticks:
        # Room for the points of the first and the last value.
        scale |= {"domainMin": axis.ticks[0] / _BESIDE, "domainMax": axis.ticks[-1] * _BESIDE}
    elif axis.log and axis.lowest is not None:
        scale["domainMin"] = axis.lowest
    more: dict[str, Any] = {
        "format": axis.form,
        "labelOverlap": True,
        "labelSeparation": 6,
        "labelExpr": "datum.value == 0 ? '0' : datum.label",
        "tickCount": 6,
    }
    if axis.ticks:
        more["values"] = list(axis.ticks)
    title = axis.title if width >= WIDE else [part for part in re.split(r" (?=\()", axis.title) if part]
    return {"scale": scale, "title": title, "axis": more}
