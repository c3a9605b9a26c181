# SPDX-License-Identifier: Apache-2.0
"""The self-test: the tester's own rates, and its share of the redirect floor, of what engines of known speed answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.conftest import Ran
from tests.unit.fake_engine import FakeEngine
from tests.unit.golden import Golden
from tests.unit.made_cable import FloorEngine, cable

BEYOND_REACH = 60_000_000.0
#: The smallest frames of both families, not timed and timed.
CELLS = [("ipv4", 64, False), ("ipv4", 64, True), ("ipv6", 84, False), ("ipv6", 84, True)]

pytestmark = pytest.mark.usefixtures("four_cores")


def selftest(folder: Path, ran: Ran, *words: str, floor: FloorEngine, engine: FakeEngine | None = None) -> Any:
    """What the self-test tells of the smallest frames."""
    with cable(folder, FakeEngine(fastest=5e6) if engine is None else engine, floor):
        return json.loads(ran(["selftest", "--quick", "--json", *words]).out)


def cells(told: Any) -> list[Any]:
    """The figures of frames without queries, in order."""
    found = [one for one in told["cable"] if one["query"] is None]
    assert [(one["family"], one["frame_size"], one["delays"]) for one in found] == CELLS
    return found


def test_the_share_is_of_rates_and_does_not_move_with_the_host(tmp_path: Path, ran: Ran) -> None:
    for one in cells(selftest(tmp_path, ran, floor=FloorEngine(400, 160))):
        share = one["share_of_floor"]
        assert share == pytest.approx(0.4, rel=1e-3)
        assert one["share_of_floor_low"] <= share <= one["share_of_floor_high"]
        assert one["share_of_floor_high"] - one["share_of_floor_low"] < 0.002
        assert 1e9 / 160 / 2 < one["floor_frames_per_second"] < 2 * 1e9 / 160
        assert one["floor_ns"] == pytest.approx(1e9 / one["floor_frames_per_second"])
        assert one["own_ns"] == pytest.approx(one["floor_ns"] * (1 / share - 1))


def test_floor_and_tester_have_the_same_ports_core_and_frames(tmp_path: Path, ran: Ran) -> None:
    floor = FloorEngine()
    assert selftest(tmp_path, ran, "--cores", "2,3", floor=floor)["sender_cpus"] == [2, 3]
    assert len(floor.requests) == 4 * len(CELLS)
    for at, request in enumerate(floor.requests):
        (only,) = request.contestants
        trial = only.trial
        assert (request.floor, request.cpu, trial.senders.cpus) == (0, 2, (2,))
        of_cell = (trial.initiator.family, trial.frame.size, trial.record_delays)
        assert (of_cell, trial.connections) == (CELLS[at // 4], 100_000)
        assert trial.frame.transport == "udp"
        # Or the frames of phase 1 would be the ones that are timed.
        assert trial.phase2 is not None
        slices = request.slices
        assert (slices.frames, slices.new, slices.up, slices.down) == (4_096, 0, 0, 0)
    assert len({request.contestants[0].trial.mark for request in floor.requests}) > 1
    floor = FloorEngine()
    selftest(tmp_path, ran, "--transport", "tcp", floor=floor)
    assert {request.contestants[0].trial.frame.transport for request in floor.requests} == {"tcp"}


@pytest.mark.parametrize("changes", [{"lost": 1}, {"floor_lost": 1}, {"answered": 1}])
def test_slices_with_a_lost_frame_and_a_handful_of_slices_say_nothing(
    changes: dict[str, int], tmp_path: Path, ran: Ran, golden: Golden
) -> None:
    with cable(tmp_path, FakeEngine(fastest=5e6), FloorEngine(**changes)):
        golden(ran(["selftest", "--quick"], status=4).err)


def test_rounds_that_disagree_make_the_interval_wider(tmp_path: Path, ran: Ran) -> None:
    agreed, apart = (
        cells(selftest(tmp_path, ran, floor=FloorEngine(1000, 500, apart=share)))[0] for share in (0, 0.02)
    )
    assert apart["share_of_floor_high"] - apart["share_of_floor_low"] > 2 * (
        agreed["share_of_floor_high"] - agreed["share_of_floor_low"]
    )
    assert apart["share_of_floor_low"] < apart["share_of_floor"] < apart["share_of_floor_high"]


def test_the_highest_rate_is_what_was_offered_over_the_time_it_took(tmp_path: Path, ran: Ran) -> None:
    engine = FakeEngine(fastest=5e6)
    for one in cells(selftest(tmp_path, ran, floor=FloorEngine(), engine=engine)):
        assert one["frames_per_second"] == pytest.approx(5e6)
        assert one["rate_at_90_percent"] == pytest.approx(4.5e6)
        assert (one["lost_at_90_percent"], one["frames_at_90_percent"]) == (0, 2_250_000)
        assert one["worst_lag_ns"] == 0
    first, *_ = engine.requests
    assert first.phase1 is not None
    assert (first.phase1.rate, first.connections) == (BEYOND_REACH, 1_000_000)
    # Five trials for each kind of frames, queries last.
    frames = [(one.initiator.family, one.frame.size, one.record_delays) for one in engine.requests[::5]]
    assert frames[:4] == CELLS
    assert [one.frame.query for one in engine.requests[::5]] == [None, None, None, None, "aaaa", "aaaa"]


def test_frames_lost_at_90_percent_are_counted_to_the_frame(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    engine = FakeEngine(fastest=5e6, lost=3)
    words = ["--frames-at-90", "1000000000"]
    for one in cells(selftest(tmp_path, ran, *words, floor=FloorEngine(), engine=engine)):
        assert (one["lost_at_90_percent"], one["frames_at_90_percent"]) == (3, 1_000_000_000)
    with cable(tmp_path, engine, FloorEngine()):
        golden(ran(["selftest", "--quick", *words]).out.splitlines()[-2:])


@pytest.mark.parametrize(("transport", "least"), [("udp", 64), ("icmp", 64), ("tcp", 88)])
def test_the_self_test_has_the_least_frames_of_each_transport(
    transport: str, least: int, tmp_path: Path, ran: Ran
) -> None:
    engine = FakeEngine(fastest=5e6)
    told = selftest(tmp_path, ran, "--transport", transport, floor=FloorEngine(), engine=engine)
    assert told["transport"] == transport
    plain = [one for one in told["cable"] if one["query"] is None]
    assert {(one["family"], one["frame_size"]) for one in plain} == {("ipv4", least), ("ipv6", least + 20)}
    assert {one.frame.transport for one in engine.requests} == {transport}
    assert (len(told["cable"]) > len(plain)) == (transport == "udp")
