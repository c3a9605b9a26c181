# SPDX-License-Identifier: Apache-2.0
"""The self-test's arithmetic and memory, with a stand-in for the engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.fake_engine import FakeEngine

from natgauge.errors import UsageError
from natgauge.host import programs
from natgauge.labs.contract import Port
from natgauge.tester import selftest
from natgauge.tester.cable import BEYOND_REACH, CableTester, FrameKind
from natgauge.tester.highest import HighestRates, highest_rates
from natgauge.tester.selftest import run_selftest

PROFILE = FrameKind("ipv6", 84, delays=True)


class FakeCable:
    """Two ports that nothing is behind."""

    initiator = Port("a", "ng-x", "02:00:00:00:00:02", None)
    responder = Port("b", "ng-x", "02:00:00:00:00:01", None)


def test_the_highest_rate_is_what_was_offered_over_the_time_it_took() -> None:
    engine = FakeEngine(fastest=5e6)
    figures = CableTester(FakeCable(), (0,), engine).figures(PROFILE)
    assert figures.frames_per_second == pytest.approx(5e6)
    assert figures.rate_at_90_percent == pytest.approx(4.5e6)
    assert figures.lost_at_90_percent == 0
    assert figures.worst_lag_ns == 0
    assert engine.requests[0].phase1 is not None
    assert engine.requests[0].phase1.rate == BEYOND_REACH
    assert all(request.record_delays and request.frame.size == 84 for request in engine.requests)


def test_frames_lost_at_90_percent_are_counted_to_the_frame() -> None:
    figures = CableTester(FakeCable(), (0,), FakeEngine(fastest=5e6, lost=3)).figures(PROFILE, 1_000_000_000)
    assert (figures.lost_at_90_percent, figures.frames_at_90_percent) == (3, 1_000_000_000)


@pytest.mark.parametrize("frames", [0, -1, 2**40])
def test_an_impossible_number_of_frames_is_refused(frames: int) -> None:
    with pytest.raises(UsageError, match=str(frames)):
        run_selftest(frames_at_90=frames)


def test_a_core_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="core 4095"):
        run_selftest(sender_cpus=(4095,))


def test_highest_rates_are_remembered_for_the_same_setting_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine_file = tmp_path / "natgauge-engine"
    engine_file.write_text("one build")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(programs, "find", lambda _name: engine_file)
    measured: list[FrameKind] = []

    class Lab(FakeCable):
        def __init__(self, _name: str) -> None: ...
        def __enter__(self) -> FakeCable:
            return self

        def __exit__(self, *_exception: object) -> None: ...

    def highest(_self: CableTester, profile: FrameKind, _pick: object) -> tuple[float, float]:
        measured.append(profile)
        return 1e6 * len(measured), 2e6

    monkeypatch.setattr(selftest, "CableLab", Lab)
    monkeypatch.setattr(CableTester, "highest", highest)
    assert highest_rates(PROFILE, (0,)) == HighestRates(1e6, 2e6)
    assert highest_rates(PROFILE, (0,)) == HighestRates(1e6, 2e6)
    assert len(measured) == 1
    highest_rates(PROFILE, (0, 1))
    engine_file.write_text("another build")
    highest_rates(PROFILE, (0,))
    assert len(measured) == 3
    (tmp_path / "natgauge" / "selftest.json").write_text("damaged {")
    highest_rates(PROFILE, (0,))
    assert len(measured) == 4
