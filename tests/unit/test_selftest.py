# SPDX-License-Identifier: Apache-2.0
"""The tester's own highest rates: how they are sought, and when they are remembered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.fake_engine import FakeEngine
from tests.unit.made_cable import FakeCable, FloorEngine

from natgauge.agreement.generated import Closing
from natgauge.host import programs
from natgauge.tester import highest
from natgauge.tester.cable import CableTester, FloorShare, FrameKind
from natgauge.tester.highest import DISTURBED_ENOUGH, HighestRates, highest_rates
from natgauge.tester.selftest import FloorTester

PROFILE = FrameKind("ipv6", 84, delays=True)
N = 100_000
SHARE = FloorShare(7e6, 0.5, 0.49, 0.51)


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

    monkeypatch.setattr(highest, "CableLab", FakeCable)
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


def test_the_floor_is_of_as_many_connections_and_rounds_as_are_named() -> None:
    engine = FloorEngine()
    FloorTester(FakeCable(), 3, engine, connections=5000).share(PROFILE, rounds=3)
    assert [request.contestants[0].trial.connections for request in engine.requests] == [5000] * 3
