# SPDX-License-Identifier: Apache-2.0
"""Declaration of the reset: forwarding outage after a restart of the device, in each direction."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import DeclaredFigure, Metric

METRIC: Final = Metric(
    name="reset",
    unit="ms",
    summary="forwarding outage after a restart of the device, in each direction",
    title="Outage after a restart",
    source="RFC 6201, RFC 8219 section 7.7",
    better="lower",
    does="forwards nothing for {value} after a restart",
    best="forwards soonest after a restart",
    figures=(DeclaredFigure("surviving_percent", "connections that survive", "%"),),
    moved_by=frozenset(),
)
