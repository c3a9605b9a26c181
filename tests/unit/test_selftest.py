# SPDX-License-Identifier: Apache-2.0
"""The self-test's arithmetic and memory, with a stand-in for the engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.fake_engine import FakeEngine

from natgauge.agreement.generated import Closing
from natgauge.host import programs
from natgauge.labs.contract import Port
from natgauge.tester import highest, selftest
from natgauge.tester.cable import BEYOND_REACH, CableFigures, CableTester, FloorShare, FrameKind
from natgauge.tester.highest import DISTURBED_ENOUGH, HighestRates, highest_rates
from natgauge.tester.selftest import FloorTester, run_selftest
from natgauge.words import Transport

PROFILE = FrameKind("ipv6", 84, delays=True)
N = 100_000
SHARE = FloorShare(7e6, 0.5, 0.49, 0.51)


class FakeCable:
    """Two ports that nothing is behind."""

    initiator = Port("a", "ng-x", "02:00:00:00:00:02", None)
    responder = Port("b", "ng-x", "02:00:00:00:00:01", None)


def test_the_highest_rate_is_what_was_offered_over_the_time_it_took() -> None:
    engine = FakeEngine(fastest=5e6)
    figures = CableTester(FakeCable(), (0,), engine).figures(PROFILE, SHARE)
    assert figures.frames_per_second == pytest.approx(5e6)
    assert figures.rate_at_90_percent == pytest.approx(4.5e6)
    assert figures.lost_at_90_percent == 0
    assert figures.worst_lag_ns == 0
    assert (figures.floor_frames_per_second, figures.share_of_floor) == (7e6, 0.5)
    assert (figures.share_of_floor_low, figures.share_of_floor_high) == (0.49, 0.51)
    assert (figures.floor_ns, figures.own_ns) == pytest.approx((1e3 / 7, 1e3 / 7))
    assert engine.requests[0].phase1 is not None
    assert engine.requests[0].phase1.rate == BEYOND_REACH
    assert all(request.record_delays and request.frame.size == 84 for request in engine.requests)


def test_frames_lost_at_90_percent_are_counted_to_the_frame() -> None:
    figures = CableTester(FakeCable(), (0,), FakeEngine(fastest=5e6, lost=3)).figures(PROFILE, SHARE, 1_000_000_000)
    assert (figures.lost_at_90_percent, figures.frames_at_90_percent) == (3, 1_000_000_000)


def test_transactions_are_sent_in_phase_1_and_are_no_plain_segments_to_the_cache() -> None:
    plain = FrameKind("ipv4", 88, delays=False, transport="tcp")
    transactions = replace(plain, close="fin", request_octets=100)
    engine = FakeEngine(fastest=5e6)
    assert CableTester(FakeCable(), (0,), engine).highest(transactions) == pytest.approx((5e6, 5e6))
    for request in engine.requests:
        assert (request.phase2, request.frame.closing) == (None, Closing(by="fin", request_octets=100))
    others = [plain, transactions, replace(transactions, request_octets=0), replace(transactions, close="rst")]
    others.append(replace(plain, half_open=True))
    assert len({highest._cache_key(kind, (0,), N) for kind in others}) == len(others)


@pytest.mark.parametrize(("transport", "least"), [("udp", 64), ("icmp", 64), ("tcp", 88)])
def test_the_self_test_has_the_least_frames_of_each_transport(
    transport: Transport, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: list[FrameKind] = []

    def figures(_tester: CableTester, kind: FrameKind, *_arguments: object) -> CableFigures:
        kinds.append(kind)
        return CableFigures("ipv4", kind.frame_size, kind.delays, 1e6, 1e6, 9e5, 1, 0, None, None)

    monkeypatch.setattr(programs, "find", lambda _name: Path("natgauge-engine"))
    monkeypatch.setattr(selftest, "CableLab", NoCable)
    monkeypatch.setattr(FloorTester, "share", lambda *_arguments: SHARE)
    monkeypatch.setattr(CableTester, "figures", figures)
    test = run_selftest(transport=transport, quick=True)
    assert test.transport == transport
    plain = [kind for kind in kinds if kind.query is None]
    assert {(kind.family, kind.frame_size) for kind in plain} == {("ipv4", least), ("ipv6", least + 20)}
    assert {kind.transport for kind in plain} == {transport}
    assert (len(kinds) > len(plain)) == (transport == "udp")


class NoCable(FakeCable):
    """Stands for a lab of one cable."""

    def __init__(self, _name: str) -> None: ...
    def __enter__(self) -> FakeCable:
        return self

    def __exit__(self, *_exception: object) -> None: ...


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[FrameKind]:
    """What was measured on the cable, in order; each time phase 1 is a million faster."""
    engine_file = tmp_path / "natgauge-engine"
    engine_file.write_text("one build")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(programs, "find", lambda _name: engine_file)
    kinds: list[FrameKind] = []

    def measure(tester: CableTester, kind: FrameKind, _pick: object) -> tuple[float, float]:
        kinds.append(kind)
        tester.disturbed = (tmp_path / "busy").exists()
        return 1e6 * len(kinds), 2e6

    monkeypatch.setattr(highest, "CableLab", NoCable)
    monkeypatch.setattr(CableTester, "highest", measure)
    return kinds


def test_highest_rates_are_remembered_for_the_same_setting_only(tmp_path: Path, measured: list[FrameKind]) -> None:
    assert highest_rates(PROFILE, (0,), N) == HighestRates(1e6, 2e6)
    assert highest_rates(PROFILE, (0,), N) == HighestRates(1e6, 2e6)
    assert len(measured) == 1
    highest_rates(PROFILE, (0, 1), N)
    (tmp_path / "natgauge-engine").write_text("another build")
    highest_rates(PROFILE, (0,), N)
    assert len(measured) == 3
    (tmp_path / "natgauge" / "selftest.json").write_text("damaged {")
    highest_rates(PROFILE, (0,), N)
    assert len(measured) == 4


@pytest.mark.parametrize("fact", ["governor", "smt", "clock_source", "kernel_parameters", "mitigations"])
def test_highest_rates_of_other_settings_of_the_machine_are_measured_anew(
    fact: str, measured: list[FrameKind], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rates of a slow machine limited every search after its settings were mended."""
    for value in ("before", "after", "before"):
        monkeypatch.setattr(highest, "facts", lambda value=value: {fact: value, "load_average": [len(measured)]})
        highest_rates(PROFILE, (0,), N)
    assert len(measured) == 2


def test_highest_rates_with_the_compiler_of_programs_are_not_those_without(
    tmp_path: Path, measured: list[FrameKind], monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = tmp_path / "bpf_jit_enable"
    monkeypatch.setattr(highest, "_JIT", setting)
    highest_rates(PROFILE, (0,), N)
    for value in ("0\n", "1\n", "0\n"):
        setting.write_text(value)
        highest_rates(PROFILE, (0,), N)
    assert len(measured) == 3


def test_highest_rates_are_those_with_as_many_connections_as_the_measurement_has(
    measured: list[FrameKind], monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers: list[int] = []

    class Counted(CableTester):
        def __init__(self, *given: Any, connections: int) -> None:
            super().__init__(*given, connections=connections)
            numbers.append(connections)

    monkeypatch.setattr(highest, "CableTester", Counted)
    for connections in (50_000, 2_000_000, 50_000, 100, 1, 2**31):
        highest_rates(PROFILE, (0,), connections)
    # Too few to be timed count as the fewest that can be.
    assert numbers == [50_000, 2_000_000, 10_000, 10_000_000]
    assert len(measured) == 4


def test_the_highest_rate_is_sought_with_the_connections_that_are_named() -> None:
    engine = FakeEngine(fastest=1e6)
    CableTester(FakeCable(), (0,), engine, connections=20_000).highest(PROFILE)
    assert {request.connections for request in engine.requests} == {20_000}
    # Long enough to be timed, however few connections there are.
    assert engine.requests[-1].phase2 is not None
    assert engine.requests[-1].phase2.initiator is not None
    assert engine.requests[-1].phase2.initiator.frames == 500_000


def test_disturbed_rates_are_measured_again_a_few_times_and_the_best_is_kept(
    tmp_path: Path, measured: list[FrameKind]
) -> None:
    (tmp_path / "busy").touch()
    assert [highest_rates(PROFILE, (0,), N).phase1 for _ in range(5)] == [1e6, 2e6, 3e6, 3e6, 3e6]
    assert len(measured) == DISTURBED_ENOUGH


def test_rates_measured_in_peace_end_the_trying_and_do_not_fall_below_what_was_seen(
    tmp_path: Path, measured: list[FrameKind]
) -> None:
    (tmp_path / "busy").touch()
    highest_rates(PROFILE, (0,), N)
    (tmp_path / "busy").unlink()
    assert [highest_rates(PROFILE, (0,), N).phase1 for _ in range(3)] == [2e6, 2e6, 2e6]
    assert len(measured) == 2
