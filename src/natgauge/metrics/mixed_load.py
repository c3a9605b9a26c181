# SPDX-License-Identifier: Apache-2.0
"""Declaration of the mixed load: highest frame rate while connections are opened and leave."""

from __future__ import annotations

from typing import Final

from natgauge.metrics import floods
from natgauge.metrics.metric import Criterion, DeclaredFigure, Metric
from natgauge.metrics.shared_figures import CONNECTIONS_PER_SECOND, GIGABITS, OPEN_CONNECTIONS

METRIC: Final = Metric(
    name="mixed-load",
    unit="frames/s",
    summary="highest frame rate without loss while connections are opened and leave",
    source="RFC 9693 section 4.7, with connections that come and go",
    better="higher",
    does="forwards {value} while connections are opened and leave",
    criterion=Criterion(strict=" without losing a frame or a new connection"),
    best="forwards most frames while connections are opened and leave",
    figures=(
        DeclaredFigure(CONNECTIONS_PER_SECOND, "new connections", "connections/s", answer="{} new connections/s"),
        DeclaredFigure(OPEN_CONNECTIONS, "open connections", "connections", answer="{} open connections"),
        DeclaredFigure(GIGABITS, "IP packets of both directions", "Gbit/s"),
        *floods.FIGURES,
    ),
    moved_by=frozenset(),
    is_bounded=True,
    counts="frames",
)
