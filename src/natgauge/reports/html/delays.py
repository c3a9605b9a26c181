# SPDX-License-Identifier: Apache-2.0
"""The distribution of delays, from what every trial that timed its frames has on record."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from natgauge.reports.html import charts
from natgauge.reports.html.charts import Axis, Line
from natgauge.reports.html.figures import Figure, Numbered, short
from natgauge.reports.html.limits import limit_of, told
from natgauge.reports.rows import number

#: Points of a line: more are not told from each other on paper.
_MOST_POINTS: Final = 120
#: Percentiles of the table.
_PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9, 100.0)

#: (delay in us, share of the frames that took longer).
Point = tuple[float, float]
Buckets = Sequence[tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class Timed:
    """One trial's delays in one direction.

    Attributes:
        rate: at which frames were sent in this direction, frames/s.
        direction: "initiator" or "responder", that sent them.
        frames: that came and were timed.
        points: the share of frames that took longer, over the delay.
        percentiles: delay in us by percent.
    """

    rate: float
    direction: str
    frames: int
    points: tuple[Point, ...]
    percentiles: Mapping[float, float]


def timed(trial: Mapping[str, Any]) -> Iterator[Timed]:
    """Both directions of a trial that counted and timed its frames; nothing of any other one."""
    phase = (trial.get("result") or {}).get("phase2") or {}
    if trial.get("verdict") in ("INVALID", "COLLAPSED") or not isinstance(phase, dict):
        return
    for direction, counts in phase.items():
        delay = counts.get("delay") if isinstance(counts, dict) else None
        buckets = (delay or {}).get("buckets")
        if buckets:
            yield _timed(direction, float(counts["intended_rate"]), buckets)


def _timed(direction: str, rate: float, buckets: Buckets) -> Timed:
    total = sum(frames for _, _, frames in buckets)
    points: list[Point] = []
    wanted = {percent: math.ceil(round(percent * total / 100, 9)) for percent in _PERCENTILES}
    percentiles: dict[float, float] = {}
    passed = 0
    for lower, upper, frames in buckets:
        passed += frames
        middle = (lower + upper) / 2e3
        points.append((middle, 1 - passed / total))
        for percent, rank in wanted.items():
            if passed >= rank:
                percentiles.setdefault(percent, middle)
    return Timed(rate, direction, total, tuple(_thinned(points)), percentiles)


def _thinned(points: Sequence[Point]) -> Iterator[Point]:
    """No more points than are seen, the first and the last among them; equally far from each other on a log axis."""
    span = math.log(max(points[-1][0], 1e-3) / max(points[0][0], 1e-3)) or 1.0
    last = -math.inf
    for at, (delay, share) in enumerate(points):
        place = math.log(max(delay, 1e-3))
        if at in (0, len(points) - 1) or place - last >= span / _MOST_POINTS:
            last = place
            yield delay, share


def figure(of: Sequence[tuple[Numbered, Sequence[Timed]]]) -> Figure | None:
    """The share of frames slower than a delay, a line for each trial and direction; None without any timed trial."""
    rows: list[dict[str, Any]] = []
    data: list[tuple[str, ...]] = []
    limits: list[Line] = []
    sentences = []
    for one, trials in of:
        loads: dict[tuple[float, str], list[Timed]] = defaultdict(list)
        for trial in trials:
            loads[trial.rate, trial.direction].append(trial)
        for (rate, direction), each in loads.items():
            series = f"{short(one)}, {number(rate)} frames/s"
            for at, trial in enumerate(each, start=1):
                line = f"{series}, from the {direction.capitalize()}, trial {at}"
                rows += _rows(trial, series, line)
                shown = tuple(f"{trial.percentiles[percent]:,.3g}" for percent in _PERCENTILES)
                data.append((series, direction, str(at), f"{trial.frames:,}", *shown))
                sentences.append(f"{line}: median {shown[0]} us, 99.9th percentile {shown[3]} us.")
        limit = limit_of(one[1])
        if trials and limit is not None and not limits:
            limits.append(Line(limit.value, "tester's own part"))
    if not rows:
        return None
    results = [one for one, trials in of if trials]
    least = min(row["y"] for row in rows)
    longer = Axis("frames that took longer (%)", log=True, lowest=least, form="~g")
    axes = (Axis("one-way delay (us)", log=True), longer)
    return Figure(
        title="Distribution of delays",
        alternative=" ".join(sentences),
        caption=(
            "Each line is one direction of a trial that timed its frames; both axes are logarithmic. Delays are those "
            "of the devices and the tester together: "
            + "; ".join(f"{short(one)}: {told(one[1], limit_of(one[1]))}" for one in results)
            + "."
        ),
        head=("series", "from", "trial", "frames", *(_percent(percent) for percent in _PERCENTILES)),
        data=tuple(data),
        draw=lambda width: charts.lines(rows, limits, axes, width),
    )


def _rows(trial: Timed, series: str, line: str) -> Iterator[dict[str, Any]]:
    for delay, share in trial.points:
        if share > 0:
            tip = f"{line}: {share:.3%} took longer than {delay:,.3g} us"
            yield {"x": delay, "y": 100 * share, "series": series, "line": line, "tip": tip}


def _percent(percent: float) -> str:
    return "longest (us)" if percent == 100 else f"{percent:g}th percentile (us)"
