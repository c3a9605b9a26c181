# SPDX-License-Identifier: Apache-2.0
"""Forest plots of comparisons: each ratio of costs with its confidence interval, around 1."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from natgauge.records.comparison import ComparisonRecord, RatioEstimate
from natgauge.reports.comparison import interval, number
from natgauge.reports.html import charts
from natgauge.reports.html.charts import ChartAxis, ChartLine
from natgauge.reports.html.figure import Figure
from natgauge.words import FRAME_OF

#: Room beyond the farthest ends, as a share of what is drawn, and the least width of what is drawn, as a ratio.
_BEYOND: Final = 0.08
_LEAST_SPAN: Final = 1.02
_HEAD: Final = ("gateway", "of", "ratio", "interval", "verdict")


def forests(records: Sequence[ComparisonRecord]) -> Iterator[Figure]:
    """Yield the figures of comparisons: one for each, more where one has too many ratios for one."""
    for number_of, record in enumerate(records, start=1):
        every = _in_order(record)
        parts = math.ceil(len(every) / charts.MOST_ROWS)
        for at in range(parts):
            yield _forest(number_of, record, every[at * len(every) // parts : (at + 1) * len(every) // parts])


def _in_order(record: ComparisonRecord) -> list[RatioEstimate]:
    """All estimates, quantity by quantity, in each the A/A control last."""
    every = (*record.estimates, *record.control)
    quantities = dict.fromkeys(estimate.quantity for estimate in every)
    return [estimate for quantity in quantities for estimate in every if estimate.quantity == quantity]


def _forest(at: int, record: ComparisonRecord, estimates: Sequence[RatioEstimate]) -> Figure:
    upright = [ChartLine(1.0, "")]
    if record.fail_above is not None:
        upright.append(ChartLine(1 + record.fail_above, f"--fail-above {100 * record.fail_above:g}%"))
    domain = _domain(estimates, [line.value for line in upright])
    control = {gateway.label for gateway in record.gateways if gateway.role == "control"}
    rows = [
        _row(estimate, domain, control=estimate.gateway in control)
        for estimate in estimates
        if estimate.low or estimate.high is not None
    ]
    data = tuple(
        (estimate.gateway, FRAME_OF[estimate.quantity], number(estimate.ratio, 4), interval(estimate), estimate.verdict)
        for estimate in estimates
    )
    level = estimates[0].level
    axis = ChartAxis("cost / cost of the baseline (logarithmic)", log=True, form=".4~g", domain=domain)
    return Figure(
        title=f"Comparison {at}: costs compared with {record.baseline.label}",
        alternative=" ".join(f"{estimate.text}." for estimate in estimates),
        caption=(
            f"The point is the median ratio of costs, the stroke its confidence interval ({level:.0%}). The dashed "
            "line at 1 is the baseline: left of it a gateway costs less, right of it a gateway costs more. Grey is the "
            "A/A control: the baseline compared with itself. An arrow marks an end of an interval that is not known."
        ),
        head=_HEAD,
        data=data,
        draw=partial(charts.forest, rows, upright, axis),
    )


def _row(estimate: RatioEstimate, domain: tuple[float, float], *, control: bool) -> dict[str, Any]:
    known = {} if estimate.ratio is None else {"value": estimate.ratio}
    frame = FRAME_OF[estimate.quantity]
    tip = f"{estimate.gateway}, {frame}: {number(estimate.ratio, 4)} ({interval(estimate)}), {estimate.verdict}"
    return {
        "label": f"{estimate.gateway}|{frame}",
        **known,
        "lower": estimate.low or domain[0],
        "upper": domain[1] if estimate.high is None else estimate.high,
        "open_low": not estimate.low,
        "open_high": estimate.high is None,
        "control": control,
        "tip": tip,
    }


def _domain(estimates: Sequence[RatioEstimate], marks: Sequence[float]) -> tuple[float, float]:
    """The first and the last ratio that is drawn; 1 lies between them."""
    ends = [end for estimate in estimates for end in (estimate.low, estimate.high) if end]
    first, last = min(*ends, *marks, 1.0), max(*ends, *marks, 1.0)
    room = max((last / first) ** _BEYOND, math.sqrt(_LEAST_SPAN))
    return first / room, last * room
