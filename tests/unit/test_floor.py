# SPDX-License-Identifier: Apache-2.0
"""The tester's share of the redirect floor: what is asked of the engine, and what is made of its slices."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.unit.fake_engine import CLEAN
from tests.unit.golden import Golden
from tests.unit.test_selftest import FakeCable

from natgauge.agreement.generated import ComparisonRequest, ComparisonResult
from natgauge.errors import BrokenError
from natgauge.tester.cable import FrameKind
from natgauge.tester.selftest import SLICE_FRAMES, FloorPair, FloorTester, share_of

KIND = FrameKind("ipv4", 64, delays=True)


class Engine:
    """Takes so many ns for a frame of the tester's and of the floor's, while the host's speed wanders."""

    def __init__(self, tester: float, floor: float, *, lost: int = 0, floor_lost: int = 0) -> None:
        self.costs = (tester, floor)
        self.lost, self.floor_lost = lost, floor_lost
        self.requests: list[ComparisonRequest] = []
        self.random = random.Random(1)  # noqa: S311 - a host that wanders, no secret

    def __call__(self, request: ComparisonRequest, *, seconds: float) -> ComparisonResult:
        self.requests.append(request)
        assert request.limits is not None
        assert request.limits.seconds is not None
        assert request.limits.seconds < seconds
        blocks = []
        for at in range(request.slices.both):
            order = (at % 2, 1 - at % 2)
            speed = self.random.uniform(0.5, 2)
            took = [request.slices.frames * self.costs[who] * speed for who in (*order, *reversed(order))]
            # What drifts within a block cancels.
            took = [ns * (1 + 0.01 * place) for place, ns in enumerate(took)]
            ns = [round(one) for one in took]
            blocks.append({"quantity": "both", "order": order, "ns": ns, "waited": 0, "interrupted": 0})
        frames = 2 * request.slices.frames * request.slices.both
        stream = {**CLEAN, "made_frames": frames, "received_frames": frames}
        none = {**CLEAN, "made_frames": 0, "received_frames": 0}
        counts: dict[str, Any] = {
            **dict.fromkeys(("mark", "remapped", "damaged_unmarked", "foreign", "refused_frames"), 0),
            "name": "cable",
            "new": none,
            "initiator": {**stream, "received_frames": frames - self.lost},
            "responder": none,
            "stored": 100_000,
            "offered_frames": frames,
            "gateway_macs": ("", ""),
        }
        floor = {"made_frames": frames, "received_frames": frames - self.floor_lost}
        answer = {
            "version": 1,
            "engine": "fake",
            "contestants": [counts],
            "floor": floor,
            "blocks": blocks,
            "wall_ns": 1,
        }
        return ComparisonResult.model_validate(answer)


def test_the_share_is_of_rates_and_does_not_move_with_the_host() -> None:
    engine = Engine(400, 160)
    share = FloorTester(FakeCable(), 3, engine).share(KIND)
    assert share.share == pytest.approx(0.4, rel=1e-3)
    assert share.low <= share.share <= share.high
    assert share.high - share.low < 0.002
    assert 1e9 / 160 / 2 < share.floor_frames_per_second < 2 * 1e9 / 160


def test_floor_and_tester_have_the_same_ports_core_and_frames() -> None:
    engine = Engine(400, 160)
    FloorTester(FakeCable(), 3, engine, connections=5000).share(KIND, rounds=3)
    assert len(engine.requests) == 3
    for request in engine.requests:
        (only,) = request.contestants
        assert (request.floor, request.cpu, only.trial.senders.cpus) == (0, 3, (3,))
        assert (only.trial.connections, only.trial.frame.size, only.trial.record_delays) == (5000, 64, True)
        assert only.trial.frame.transport == "udp"
        # Or the frames of phase 1 would be the ones that are timed.
        assert only.trial.phase2 is not None
        assert (request.slices.frames, request.slices.new, request.slices.up, request.slices.down) == (
            SLICE_FRAMES, 0, 0, 0,
        )  # fmt: skip
    one, two, _three = engine.requests
    assert one.contestants[0].trial.mark != two.contestants[0].trial.mark
    FloorTester(FakeCable(), 3, engine).round(FrameKind("ipv4", 88, delays=False, transport="tcp"))
    assert engine.requests[-1].contestants[0].trial.frame.transport == "tcp"


@pytest.mark.parametrize("engine", [Engine(400, 160, lost=1), Engine(400, 160, floor_lost=1)])
def test_slices_with_a_lost_frame_say_nothing(engine: Engine, golden: Golden) -> None:
    with golden.raises(BrokenError):
        FloorTester(FakeCable(), 0, engine).share(KIND)


def test_rounds_that_disagree_make_the_interval_wider() -> None:
    pairs = [[FloorPair(1000 + at % 7, 500 + at % 3) for at in range(40)] for _ in range(4)]
    agreed = share_of(pairs)
    apart = share_of(
        [[FloorPair(pair.tester + 20 * number, pair.floor) for pair in one] for number, one in enumerate(pairs)]
    )
    assert apart.high - apart.low > 2 * (agreed.high - agreed.low)


def test_a_handful_of_slices_has_no_interval() -> None:
    with pytest.raises(BrokenError, match="too few"):
        share_of([[FloorPair(2, 1)] * 5])
