# SPDX-License-Identifier: Apache-2.0
"""What a gateway is drawn next to: the tester's own limit, in the result's unit, and plain forwarding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from natgauge.analysis.claims import routes
from natgauge.analysis.unit_frames import highest_value
from natgauge.metrics import declared
from natgauge.metrics.shared_figures import IN_ALL
from natgauge.metrics.times import COST
from natgauge.records.measurement import Result
from natgauge.reports.html.charts import ChartLine

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
    known: bool

    @property
    def label(self) -> str:
        """Label of the line in figures."""
        return "tester's own limit" if self.known else "highest rate tried"


def limit_of(result: Result) -> Limit | None:
    """Return the tester's own limit; None where the metric has none, or it was not measured."""
    if result.unit == "us":
        # The tester's own delay is never subtracted.
        own_delays = (note.value for note in result.notes if note.word == "own delay" and note.value is not None)
        return next((Limit(delay, known=True) for delay in own_delays), None)
    metric = declared(result.metric)
    # The tester's rate of phase 2 counts frames, and a query is one of two.
    return _rate(result, metric.phase) if metric.is_bounded and metric.counts != "queries" else None


def load_limit(result: Result) -> Limit | None:
    """The highest rate at which the tester offers frames of phase 2 in each active direction, frames/s."""
    return _rate(result, 2)


def _rate(result: Result, phase: int) -> Limit | None:
    for name, known in (("tester_highest", True), ("search_top", False)):
        rate = result.number(f"{name}_phase{phase}_rate")
        if rate:
            # The rates of phase 2 count the frames of all directions and kinds together.
            if phase == 2 and IN_ALL in result.figures and result.median:
                return Limit(highest_value(rate, result.median, result.figures, result.parameters), known)
            both = phase == 2 and (result.parameter("directions") == "both" or declared(result.metric).counts == "load")
            return Limit(rate / 2 if both else rate, known)
    return None


#: A reference that is farther above a single value is not drawn next to it.
_FAR: Final = 30


def drawn_beside(results: Sequence[Result]) -> tuple[ChartLine, ...]:
    """Return the grey bars next to results of one scale.

    A cost is relative to plain forwarding. Next to a single result there is the tester's own limit, where it is not too
    far away to be seen.
    """
    if results[0].metric == COST.name:
        return (ChartLine(1.0, "plain forwarding"),)
    limit = limit_of(results[0]) if len(results) == 1 else None
    if limit is None or not 0 < limit.value <= _FAR * results[0].median:
        return ()
    return (ChartLine(limit.value, OWN_PART if results[0].unit == "us" else limit.label),)


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
