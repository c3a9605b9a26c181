# SPDX-License-Identifier: Apache-2.0
"""Every frame size of RFC 8219 section 5.1 that can be made, and the largest one, through real devices, both ways."""

from __future__ import annotations

from typing import Any

import pytest

from natgauge.bench.bench import Bench
from natgauge.bench.question import ask
from natgauge.campaigns.store import Memory, plain
from natgauge.measurer import Direction, Phase2Plan, TrialPlan, Verdict

pytestmark = [pytest.mark.slow]

#: Sizes on the Initiator's side. A NAT64's IPv6 frames are 20 octets longer than the IPv4 ones.
SIZES = {
    "nftables-nat44": (64, 128, 256, 512, 768, 1024, 1280, 1518, 1522, 2048, 3412),
    "linux-ipv6": (84, 1518, 3412),
}


CASES = [(dut, size, "pseudorandom") for dut, sizes in SIZES.items() for size in sizes]


@pytest.mark.parametrize(("dut", "size", "order"), [*CASES, ("nftables-nat44", 64, "increasing")])
def test_a_frame_of_this_size_goes_both_ways_whatever_the_reading_order(dut: str, size: int, order: Any) -> None:
    question = ask("throughput", dut, {"lab_name": "sizes", "connections": 500, "frame_size": size})
    bench, kept = Bench(question.cell), Memory()
    planned = bench.plan("throughput", {})
    with bench:
        measurer = bench.ready(planned, kept).measurer
        outcome = measurer.measure(TrialPlan(500, 2000.0, Phase2Plan(2000.0, 2000.0, 0.5, reading_order=order)))
    for direction in (Direction.INITIATOR, Direction.RESPONDER):
        counts = outcome.phase2[direction]
        assert counts.received == counts.offered > 0
        assert counts.damaged == 0
    assert outcome.verdict in {Verdict.PASS, Verdict.INVALID}, outcome.reason
    (trial,) = map(plain, kept.trials)
    assert trial["request"]["frame"]["size"] == size
    assert trial["request"]["phase2"]["responder"]["reading_order"] == order
