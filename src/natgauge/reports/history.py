# SPDX-License-Identifier: Apache-2.0
"""Ratios over dates and commits: sentences on the changes, a table, CSV, JSON, and figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from natgauge.analysis.history import Dated, HistoryPoint, HistorySeries
from natgauge.figure_text import given, with_noun
from natgauge.interval_text import percent
from natgauge.plain_text import capital
from natgauge.records.comparison import FRAME_OF, commit_of
from natgauge.reports.answers import Sentence
from natgauge.reports.collected import StoredComparison
from natgauge.reports.comparison import change, interval
from natgauge.reports.csv_table import written
from natgauge.reports.html import charts
from natgauge.reports.html.charts import ChartAxis, ChartLine
from natgauge.reports.html.figures import Figure, FigureGroup
from natgauge.reports.sheet import Sheet, SheetRow
from natgauge.statistics.summary import CONFIDENCE, finite
from natgauge.words import listed

TITLE: Final = "Costs over commits"
HISTORY_SCHEMA: Final = "natgauge-history-1"
#: Of the table, and of the data of a figure.
_HEAD: Final = ("date (UTC)", "commit", "cost, compared with the baseline", "interval", "change")
_COLUMNS: Final = (
    "series", "baseline", "gateway", "quantity", "by", "unlike", "date", "commit", "ratio", "low", "high", "level",
    "corrected_low", "corrected_high", "change", "factor", "folder",
)  # fmt: skip


def dated(every: Sequence[StoredComparison]) -> list[Dated]:
    """Return each comparison with its date: of the commit, or else of its first round."""
    found = {}
    for stored in every:
        record, folder = stored.record, stored.folder
        name, date = ("", None) if record.commit is None else _commit(record.commit)
        date = date or datetime.fromtimestamp(record.began, UTC)
        found[folder.resolve()] = Dated(record, date, name, str(folder))
    return list(found.values())


def _commit(text: str) -> tuple[str, datetime | None]:
    """The name and the date (UTC) of a commit; what strangers wrote otherwise is a name."""
    try:
        name, date = commit_of(text)
        # The first and the last day of all dates have hours that UTC has not.
        return name, None if date is None else date.astimezone(UTC)
    except (ValueError, OverflowError):
        return text, None


def sentences(every: Sequence[HistorySeries]) -> list[Sentence]:
    """Return a sentence for each series, those with changes first."""
    ordered = sorted(every, key=lambda series: not series.changes)
    return [Sentence(f"{_said(series)}.", leads=at == 0) for at, series in enumerate(ordered)]


def _said(series: HistorySeries) -> str:
    points = with_noun(len(series.points), "comparisons")
    if unknown := sum(map(_is_open, series.points)):
        points += f", of which {unknown} {'has' if unknown == 1 else 'have'} no interval"
    if not series.changes:
        return f"{title(series)}: no change is marked in {points}"
    changes = [f"{point.change} since {when(point)}{_by(point)}" for point in series.changes[-3:] if point.change]
    number = with_noun(len(series.changes), "changes")
    return f"{title(series)}: {number} in {points}, the last: {listed(changes[::-1])}"


def _is_open(point: HistoryPoint) -> bool:
    """Whether an end of the corrected interval is not known."""
    return math.isinf(point.high) or not point.low


def _by(point: HistoryPoint) -> str:
    return "" if point.factor is None else f" ({percent(point.factor - 1, sign=True)})"


def _compared(point: HistoryPoint) -> str:
    return "-" if point.estimate.ratio is None else change(point.estimate, point.estimate.ratio)


def title(series: HistorySeries) -> str:
    """Return the names of a series, and how it is set up otherwise than the first one of these names."""
    names = (
        f"{capital(FRAME_OF[series.quantity])} through {series.gateway}, compared with {series.baseline} by {series.by}"
    )
    return f"{names} ({'; '.join(map(str, series.unlike))})" if series.unlike else names


def when(point: HistoryPoint) -> str:
    """Return the commit, or the date where there is none."""
    return point.at.commit or _date(point)


def _date(point: HistoryPoint) -> str:
    return f"{point.at.date:%Y-%m-%d %H:%M}"


def _cells(point: HistoryPoint) -> tuple[str, ...]:
    """The columns of `_HEAD` but for the last."""
    return _date(point), point.at.commit or "-", _compared(point), interval(point.estimate)


def sheet(every: Sequence[HistorySeries], margin: float) -> Sheet:
    """Return a table of all points, series by series."""
    lines = [SheetRow(_HEAD[0], _HEAD[1:])]
    for series in every:
        lines.append(SheetRow(f"{title(series)}:", ()))
        for point in series.points:
            date, *cells = _cells(point)
            changed = f"{point.change}{_by(point)}" if point.change else ""
            lines.append(SheetRow(date, (*cells, changed)))
    return Sheet(tuple(lines), (rule(margin),))


def rule(margin: float) -> str:
    """Return in words when a change is marked."""
    return (
        "A change is marked where a corrected interval does not meet those since the last change. All marks together "
        f"are wrong with at most {given(1 - CONFIDENCE)} probability, if two runs differ by no more than "
        f"{given(margin)} beyond their intervals, and rounds are normally distributed, with one spread in all "
        "comparisons of a line."
    )


def csv_table(every: Sequence[HistorySeries]) -> str:
    """Return a line for each point, figures in full; an end that is not known is empty."""
    return written([_COLUMNS, *([row[name] for name in _COLUMNS] for row in _rows(every))])


def document(every: Sequence[HistorySeries], margin: float) -> dict[str, Any]:
    """Return everything as plain JSON values."""
    answers = [sentence.text for sentence in sentences(every)]
    return {"schema": HISTORY_SCHEMA, "margin": margin, "answers": answers, "points": _rows(every)}


def _rows(every: Sequence[HistorySeries]) -> list[dict[str, Any]]:
    return [
        {
            "series": number,
            **{name: getattr(series, name) for name in ("baseline", "gateway", "quantity", "by")},
            "unlike": "; ".join(map(str, series.unlike)),
            "date": point.at.date.isoformat(),
            "commit": point.at.commit or None,
            **{name: getattr(point.estimate, name) for name in ("ratio", "low", "high", "level")},
            "corrected_low": point.low,
            "corrected_high": finite(point.high),
            "change": point.change,
            "factor": point.factor,
            "folder": point.at.folder,
        }
        for number, series in enumerate(every, start=1)
        for point in series.points
    ]


def groups(every: Sequence[HistorySeries], margin: float) -> list[FigureGroup]:
    """Return a figure for each series; those without any known ratio are left out."""
    figures = tuple(figure for series in every if (figure := _figure(series)) is not None)
    points = [point for series in every for point in series.points]
    drawn = [point for point in points if point.estimate.ratio]
    unknown = len(points) - len(drawn)
    caption = (
        "The stroke is the interval of a comparison, the thin one is corrected for the number of comparisons. "
        f"{rule(margin)} A line across is the baseline."
        f"{' An arrow marks an unknown end.' * any(map(_is_open, drawn))}"
        f"{f' Not drawn: {unknown} without a known ratio.' if unknown else ''}"
    )
    return [FigureGroup("Cost, compared with the baseline", caption, "cost-over-commits", figures)] if figures else []


def _figure(series: HistorySeries) -> Figure | None:
    known = [point for point in series.points if point.estimate.ratio]
    if not known:
        return None
    rows = []
    for at, point in enumerate(known, start=1):
        row = {"x": at, "y": point.estimate.ratio, "when": when(point)}
        ends = {"low": point.estimate.low, "high": point.estimate.high}
        ends |= {"wide_low": point.low, "wide_high": finite(point.high)}
        row |= {name: end for name, end in ends.items() if end}
        row["tip"] = f"{when(point)}: {_compared(point)} ({interval(point.estimate)})"
        row["mark"] = "" if point.change is None else ("▲" if point.change == "costs more" else "▼")
        rows.append(row)
    data = tuple((*_cells(point), point.change or "") for point in series.points)
    axis = ChartAxis(_HEAD[2], marks=(ChartLine(1.0, ""),), is_change=True)
    return Figure(title(series), f"{_said(series)}.", _HEAD, data, charts.over_commits(rows, axis))
