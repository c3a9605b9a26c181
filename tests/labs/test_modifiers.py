# SPDX-License-Identifier: Apache-2.0
"""Conditions of RFC 2544 section 11, and groups of connections (RFC 8219 section 10.2.2), through a real gateway."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.labs.rough import SLOW_RATES
from tests.labs.test_gateways_measured import OPENING_RATE, phase2_of
from tests.labs.test_measure import NAME
from tests.labs.trying import passing
from tests.plans import PlanOfTrial

from natgauge.records.store import Memory
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.trials import Modifiers, Phase2Plan

#: Long enough for a second query.
CONNECTIONS, RATE, SECONDS = 500, 1000.0, 1.2


def modified_by(modifiers: Modifiers) -> Phase2Plan:
    return Phase2Plan(RATE, RATE, SECONDS, modifiers=modifiers)


def test_broadcasts_queries_and_groups_are_counted_exactly() -> None:
    """Of 1200 frames each way, each 100th is a broadcast, and those of groups that have not begun are not sent."""
    kept = Memory()
    choices: dict[str, Any] = {"connections": CONNECTIONS, "lab_name": NAME, "placement": "shared"}
    with Bench(ask("throughput", "nftables-nat44", choices).cell, rates=SLOW_RATES) as made:
        measurer = made.ready(made.plan("throughput", {}), kept).measurer
        plain = PlanOfTrial(CONNECTIONS, OPENING_RATE)
        passing(measurer, replace(plain, phase2=modified_by(Modifiers("both"))))
        modified = kept.trials[-1]
        passing(measurer, replace(plain, phase2=modified_by(Modifiers(groups=4, group_seconds=0.2))))
        grouped = kept.trials[-1]
        short = replace(modified_by(Modifiers("management")), seconds=0.4)
        passing(measurer, replace(plain, phase2=short))
    for counts in phase2_of(modified).values():
        assert (counts.broadcast_frames, counts.made_frames, counts.received_frames) == (12, 1188, 1188)
    result: Any = modified["result"]
    queries = result.ports.initiator.queries
    assert queries.sent >= 2
    assert queries.answered == queries.sent
    # The first query leaves as phase 2 begins (RFC 2544 section 11.2).
    short_result: Any = kept.trials[-1]["result"]
    assert short_result.ports.initiator.queries.sent == 1
    # Group k lacks the frames before k x 0.2 s, a quarter of those.
    for counts in phase2_of(grouped).values():
        assert counts.made_frames == counts.received_frames == counts.intended_frames == 1200 - (50 + 100 + 150)
