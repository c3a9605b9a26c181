# SPDX-License-Identifier: Apache-2.0
"""Every frame size of RFC 8219 section 5.1 that can be made, and the largest one, through real devices, both ways.

`make test` has the smallest one, the largest one of Ethernet, and the largest one of all; `make soak` has the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.labs.trying import passing
from tests.plans import PlanOfTrial

from natgauge import cleaning
from natgauge.records.store import Memory, plain
from natgauge.setup.setup import keep_lab
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.trials import Direction, Phase2Plan

#: Sizes on the Initiator's side. A NAT64's IPv6 frames are 20 octets longer than the IPv4 ones.
SIZES = {
    "nftables-nat44": (64, 128, 256, 512, 768, 1024, 1280, 1518, 1522, 2048, 3412),
    "linux-ipv6": (84, 1518, 3412),
}


EDGES = {("nftables-nat44", 64), ("nftables-nat44", 1518), ("nftables-nat44", 3412), ("linux-ipv6", 84)}
CASES = [
    pytest.param(gateway, size, "pseudorandom", marks=() if (gateway, size) in EDGES else pytest.mark.soak)
    for gateway, sizes in SIZES.items()
    for size in sizes
]
LAB = "sizes"


@pytest.fixture(scope="module", params=SIZES)
def gateway(request: pytest.FixtureRequest) -> Iterator[str]:
    """A device's name; its lab is kept up for all frame sizes, and a bench starts the device in it for each."""
    lab = keep_lab(LAB, request.param, {})
    try:
        yield request.param
    finally:
        cleaning.take_down(lab.name)


@pytest.mark.parametrize(
    ("gateway", "size", "order"), [*CASES, ("nftables-nat44", 64, "increasing")], indirect=["gateway"], scope="module"
)
def test_a_frame_of_this_size_goes_both_ways_whatever_the_reading_order(gateway: str, size: int, order: Any) -> None:
    question = ask(
        "throughput", gateway, {"lab_name": LAB, "connections": 500, "frame_size": size, "grace_seconds": 0.1}
    )
    bench, kept = Bench(question.cell), Memory()
    planned = bench.plan("throughput", {})
    with bench:
        measurer = bench.ready(planned, kept).measurer
        plan = PlanOfTrial(500, 5000.0, Phase2Plan(2000.0, 2000.0, 0.1, reading_order=order))
        outcome = passing(measurer, plan)
    for direction in (Direction.INITIATOR, Direction.RESPONDER):
        counts = outcome.phase2[direction]
        assert counts.received_frames == counts.offered_frames > 0
        assert counts.damaged == 0
    for trial in map(plain, kept.trials):
        assert trial["request"]["frame"]["size"] == size
        assert trial["request"]["phase2"]["responder"]["reading_order"] == order
