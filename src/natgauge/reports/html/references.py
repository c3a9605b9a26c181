# SPDX-License-Identifier: Apache-2.0
"""What a single gateway is drawn next to: the tester's own limit, and plain forwarding where it is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from natgauge.analysis.claims import routes
from natgauge.metrics import declared
from natgauge.metrics.times import COST
from natgauge.records.measurement import Result
from natgauge.reports.html.charts import ChartLine
from natgauge.reports.html.limits import OWN_PART, limit_of

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
