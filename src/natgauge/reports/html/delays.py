# SPDX-License-Identifier: Apache-2.0
"""The distribution of delays, from what every trial that timed its frames has on record."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from natgauge.reports.html import charts
from natgauge.reports.html.charts import ChartAxis, ChartLine
from natgauge.reports.html.figure import Figure, Numbered, short
from natgauge.reports.html.limits import limit_of, limit_sentence
from natgauge.reports.html.timed import PERCENTILES, Point, Timed
from natgauge.reports.rows import number

#: Points of a line: more could not be distinguished on paper.
_MOST_POINTS: Final = 100
#: Points of all lines of a page, which must stay small, and of each line however many there are.
_ALL_POINTS: Final = 3000
_LEAST_POINTS: Final = 6
#: One point in `_TELLS` shows its value under the pointer, so that pointer areas do not overlap.
_TELLS: Final = 5


def _thinned(points: Sequence[Point], most: int) -> Iterator[Point]:
    """No more points than are seen, the first and the last among them; equally far from each other on a log axis."""
    span = math.log(max(points[-1][0], 1e-3) / max(points[0][0], 1e-3)) or 1.0
    last = -math.inf
    for at, (delay, share) in enumerate(points):
        place = math.log(max(delay, 1e-3))
        if at in (0, len(points) - 1) or place - last >= span / most:
            last = place
            yield delay, share


def distributions(numbered: Sequence[Numbered]) -> Iterator[Figure]:
    """Yield figures of the share of frames slower than a delay, with a line per timed trial and direction."""
    lines = sum(len(entry.timed) for entry in numbered)
    each = min(_MOST_POINTS, max(_LEAST_POINTS, _ALL_POINTS // max(1, lines)))
    yield from (_figure(entry, entry.timed, each) for entry in numbered if entry.timed)


def _figure(entry: Numbered, trials: Sequence[Timed], points: int) -> Figure:
    rows: list[dict[str, Any]] = []
    data: list[tuple[str, ...]] = []
    sentences = []
    loads: dict[tuple[float, str], list[Timed]] = defaultdict(list)
    for trial in trials:
        loads[trial.rate, trial.direction].append(trial)
    for (rate, direction), each in loads.items():
        series = f"{number(rate)} frames/s"
        for at, trial in enumerate(each, start=1):
            line = f"{series}, from the {direction.capitalize()}, trial {at}"
            rows += _rows(trial, series, line, points)
            shown = tuple(f"{trial.percentiles[percent]:,.3g}" for percent in PERCENTILES)
            data.append((series, direction, str(at), f"{trial.frames:,}", *shown))
            sentences.append(f"{line}: median {shown[0]} us, 99.9th percentile {shown[3]} us.")
    limit = limit_of(entry.result)
    limits = [] if limit is None else [ChartLine(limit.value, "tester's own part")]
    longer = ChartAxis("frames that took longer (%)", log=True, lowest=min(row["y"] for row in rows), form="~g")
    axes = (ChartAxis("one-way delay (us)", log=True), longer)
    return Figure(
        title=f"Distribution of delays, {short(entry)}, {entry.result.metric}",
        alternative=" ".join(sentences),
        caption=(
            "Each line is one direction of a trial that timed its frames; both axes are logarithmic. Delays are those "
            f"of the device and the tester together: {limit_sentence(entry.result, limit)}."
        ),
        head=("load in each direction", "from", "trial", "frames", *(_percent(percent) for percent in PERCENTILES)),
        data=tuple(data),
        draw=lambda width: charts.lines(rows, limits, axes, width),
    )


def _rows(trial: Timed, series: str, line: str, most: int) -> Iterator[dict[str, Any]]:
    """The points of a line; one that no frame was slower than has no place on a log axis."""
    shown = [point for point in trial.points if point[1] > 0] or [(trial.points[0][0], 1.0)]
    for at, (delay, share) in enumerate(_thinned(shown, most)):
        tip = {} if at % _TELLS else {"tip": f"{line}: {share:.3%} took longer than {delay:,.3g} us"}
        yield {"x": delay, "y": 100 * share, "series": series, "line": line, **tip}


def _percent(percent: float) -> str:
    return "longest (us)" if percent == 100 else f"{percent:g}th percentile (us)"
