# SPDX-License-Identifier: Apache-2.0
"""New connections in phase 2 through real gateways: their own count is that of open and of lingering connections."""

from __future__ import annotations

from typing import Any

import pytest
from tests.labs.known_answers.mixed_load_rows import MIXED_LOAD_ROWS
from tests.labs.program import own
from tests.labs.trying import decided, passing
from tests.plans import OneTrial, PlanOfTrial

from natgauge.labs.netns.lab import NetnsLab
from natgauge.readings import Churn
from natgauge.records.store import Memory
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.trials import Phase2Plan
from natgauge.words import Verdict

NAME = own("e2e-churn")
OPEN = 500
#: Frames/s each way: ten for each connection.
RATE = 5_000.0


def measured(churn: Churn, seconds: float, **inputs: Any) -> OneTrial:
    question = ask(
        "connection-rate", "nftables-nat44", {"lab_name": NAME, "connections": 10_000, "grace_seconds": 0.3, **inputs}
    )
    lab = NetnsLab(NAME, initiator_family="ipv4", responder_family="ipv4")
    bench = Bench(question.cell, lab=lab)
    with bench:
        measurer = bench.ready(bench.plan(question.metric, {}), Memory()).measurer
        return passing(measurer, PlanOfTrial(OPEN, 10_000.0, Phase2Plan(RATE, RATE, seconds, churn=churn)))


def test_a_flood_is_opened_beside_the_connections_of_the_others() -> None:
    trial = measured(Churn(200.0, flood_per_second=3000.0), 1.0)
    assert trial.flood is not None
    assert trial.flood.received_frames == trial.flood.intended_frames == 3000
    reading = trial.readings.count_in_churn
    assert reading is not None
    assert reading.expected is None
    assert reading.count == pytest.approx(OPEN + 3200 * min(reading.seconds, 1.0), abs=3200 * 0.2)


@pytest.mark.parametrize("name", ["each host", pytest.param("all", marks=pytest.mark.soak)])
def test_with_a_limit_for_each_host_a_flood_costs_the_others_nothing(name: str) -> None:
    (row,) = (each for each in MIXED_LOAD_ROWS if each.name == f"mixed load beside a flood with a limit for {name}")
    churn = Churn(200.0, flood_per_second=3000.0)
    plan = PlanOfTrial(100, 300.0, Phase2Plan(1500.0, 1500.0, 1.0, churn=churn))
    with row.device.stand("throughput", {}) as standing:
        trial = passing(standing.measurer, plan) if name == "each host" else decided(standing.measurer, plan)
    assert trial.openings is not None
    assert trial.flood is not None
    if name == "all":
        assert trial.openings.lost > 0
    else:
        # A bucket of 20, and what it gets in a second.
        assert 0 < trial.flood.received_frames <= 425
        assert trial.openings.lost == 0


@pytest.mark.parametrize(
    ("leave", "inputs", "seconds", "held"),
    [
        # Forgotten 4 s after their last frame, which came a guard and 0.05 s before they left.
        ("silent", {"udp_timeout": 4}, 5.0, 3.85),
        # Kept for 10 s after the reset, longer than phase 2.
        pytest.param("reset", {"transport": "tcp"}, 1.5, None, marks=pytest.mark.soak),
    ],
)
def test_linux_holds_the_open_connections_and_those_that_it_has_not_forgotten(
    leave: Any, inputs: dict[str, Any], seconds: float, held: float | None
) -> None:
    trial = measured(Churn(200.0, leave), seconds, **inputs)
    assert trial.verdict is Verdict.PASS
    assert trial.openings is not None
    assert trial.openings.received_frames == trial.openings.intended_frames == 200 * seconds
    assert (trial.closings is None) == (leave == "silent")
    reading = trial.readings.count_in_churn
    assert reading is not None
    assert reading.expected is not None
    assert not reading.deviates, (reading, trial.remarks)
    # It is read after the last frame.
    assert reading.seconds > seconds
    forgotten = 0.0 if held is None else reading.seconds - held
    assert reading.expected == pytest.approx(OPEN + 200 * (min(reading.seconds, seconds) - forgotten), abs=1)
