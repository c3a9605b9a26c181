# SPDX-License-Identifier: Apache-2.0
"""The real measurer with a stand-in for the engine: requests, counts, records and refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.plans import PlanOfTrial
from tests.unit.fake_engine import FakeEngine
from tests.unit.fake_measurer import (
    OPENED,
    SETTINGS,
    FakeLab,
    FakeTable,
    Guest,
    Isolated,
    Recorder,
    Spoiling,
    counted,
    counting_taken,
    measurer,
    with_phase2,
)
from tests.unit.golden import Golden

from natgauge.errors import BrokenError, HostError, UsageError


def test_once_sends_exactly_one_frame_for_each_connection() -> None:
    engine = FakeEngine()
    measurer(engine).measure(with_phase2(0.0, 3000.0, 99.0, reading_order="once"))
    phase2 = engine.requests[0].phase2
    assert phase2 is not None
    assert phase2.responder is not None
    assert (phase2.responder.frames, phase2.responder.reading_order) == (1000, "once")


def test_a_setting_of_the_machine_that_others_changed_spoils_the_trial(
    monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    engine, recorder = FakeEngine(), Recorder()
    meter = measurer(engine, recorder=recorder)
    monkeypatch.setattr(FakeTable, "found_changed", lambda _self: "table_size: was 3 and is 2 now")
    outcome = meter.measure(OPENED)
    assert (outcome.verdict, outcome.limited_by) == ("INVALID", "host")
    golden(outcome.reason)
    golden(recorder.trials[0]["found_changed"])


@pytest.mark.parametrize(("in_stalls", "verdict"), [(3, "INVALID"), (2, "FAIL"), (0, "FAIL")])
def test_a_trial_is_excused_by_stalls_only_for_what_was_lost_in_them(in_stalls: int, verdict: str) -> None:
    engine, recorder = FakeEngine(lost=3, lost_in_stalls=in_stalls), Recorder()
    meter = measurer(engine, recorder=recorder, device=None, place=Isolated())
    outcome = meter.measure(OPENED)
    assert (outcome.verdict, outcome.excused, outcome.excused_frames) == (verdict, in_stalls == 3, in_stalls)
    assert outcome.disturbed
    (trial,) = recorder.trials
    assert (trial["excused"], trial["excused_frames"]) == (in_stalls == 3, in_stalls)


def test_ports_whose_drivers_count_what_receivers_took_are_recorded_with_every_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counting_taken("ng0r", monkeypatch)
    recorder = Recorder()
    engine = FakeEngine(lost=100, port={"rx_dropped": 900})
    trial = measurer(engine, recorder=recorder, place=Isolated()).measure(PlanOfTrial(1000, 1e4))
    assert recorder.trials[0]["counts_taken"] == ["Responder"]
    assert trial.verdict == "FAIL"


def test_the_work_of_each_device_core_and_the_memory_of_a_connection_are_recorded_with_every_trial() -> None:
    engine, recorder, lab = FakeEngine(), Recorder(), FakeLab()
    lab.work = {0: (10, 1.0), 3: (20, 1.0)}

    def trial(*arguments: Any) -> Any:
        lab.work = {0: (110, 1.5), 3: (320, 1.0)}
        return engine(*arguments)

    meter = measurer(engine, recorder=recorder, runner=trial, place=lab)
    read = meter.measure(PlanOfTrial(20_000, 500.0)).readings
    assert {core: (one.frames, one.busy_seconds) for core, one in read.core_work.items()} == {
        0: (100, 0.5),
        3: (300, 0.0),
    }
    # A few connections are too few to tell it.
    assert (read.octets_per_connection, meter.measure(OPENED).readings.octets_per_connection) == (320, None)
    assert [trial["octets_per_connection"] for trial in recorder.trials] == [320, None]
    assert recorder.trials[0]["core_work"] == {
        "0": {"frames": 100, "busy_seconds": 0.5, "devices": ""},
        "3": {"frames": 300, "busy_seconds": 0.0, "devices": ""},
    }
    # Drops at the tester's own ports are left to the engine's counters.
    assert recorder.trials[0]["dropped"] == {"gateway inside received": 0}


class SilentLab(FakeLab):
    """A lab whose machine does not answer for its work."""

    def counters(self) -> Any:
        return replace(super().counters(), error="far: no counts")


class SilentTable(FakeTable):
    """A device whose machine does not answer for its memory."""

    def object_caches(self) -> Any:
        raise HostError("far: no memory")


def test_work_and_memory_that_cannot_be_read_are_unknown_and_each_failure_is_reported(golden: Golden) -> None:
    """Seen: both were silently empty, as on a machine that has neither."""
    engine, recorder = FakeEngine(), Recorder()
    meter = measurer(engine, recorder=recorder, device=SilentTable(engine), place=SilentLab())
    outcome = meter.measure(PlanOfTrial(20_000, 500.0))
    assert (outcome.verdict, outcome.readings.core_work, outcome.readings.octets_per_connection) == (
        "PASS",
        {},
        None,
    )
    # Work before and after the trial, and the memory before it, without which it is not read after it.
    assert outcome.command_failures == 3
    golden(outcome.remarks[-1])


def test_frames_of_the_engines_self_test_are_no_drops_of_the_trial(golden: Golden) -> None:
    """Seen: "1 at gateway inside received" in the reason of every trial that lost a frame."""
    engine, recorder = FakeEngine(), Recorder()
    meter = measurer(engine, recorder=recorder, device=None)
    drops = {
        "initiator port received": 0,
        "gateway inside received": 3,
        "gateway outside received": 3,
        "gateway card ring": 7,
    }
    more = {"gateway inside received": 1, "gateway outside received": 1, "gateway card ring": 0}

    def trial(*arguments: Any) -> Any:
        drops.update({place: drops[place] + frames for place, frames in more.items()})
        return engine(*arguments)

    meter.place.counters = lambda: counted(drops)  # type: ignore[method-assign]
    meter.runner = trial
    meter.check_forwarding()
    engine.lost = 5
    outcome = meter.measure(OPENED)
    assert " at gateway" not in outcome.reason
    assert set(recorder.trials[0]["dropped"].values()) == {0}
    more |= {"gateway inside received": 3, "gateway card ring": 2, "gateway outside received": 0}
    outcome = meter.measure(OPENED)
    golden(outcome.reason)
    assert "outside" not in outcome.reason


def test_no_more_drops_than_the_self_test_has_frames_are_taken_for_its_own(golden: Golden) -> None:
    engine = FakeEngine()
    meter = measurer(engine, device=None)
    counts = iter([0, 40, 40, 80])
    meter.place.counters = lambda: counted({"gateway inside received": next(counts)})  # type: ignore[method-assign]
    meter.check_forwarding()
    engine.lost = 40
    golden(meter.measure(OPENED).reason)


def test_what_the_device_refused_during_the_trial_is_noted(golden: Golden) -> None:
    engine, recorder = FakeEngine(), Recorder()
    meter = measurer(engine, recorder=recorder)
    meter.measure(OPENED)
    outcome = meter.measure(OPENED)
    golden(outcome.remarks)
    assert recorder.trials[1]["device_faults"] == {"insert_failed": 2, "drop": 0}


def test_a_trial_longer_than_the_devices_timeout_is_refused_before_it_runs() -> None:
    engine = FakeEngine()
    meter = measurer(engine)
    meter.settings = replace(SETTINGS, udp_timeout=2)
    with pytest.raises(UsageError, match=r"takes 2\.2 s.*after 2 s"):
        meter.measure(OPENED)
    assert engine.requests == []


def test_a_timeout_that_is_natgauges_own_is_raised_for_a_long_trial_and_stays(golden: Golden) -> None:
    engine = FakeEngine()
    table = FakeTable(engine)
    meter = measurer(engine, device=table)
    meter.settings = replace(SETTINGS, udp_timeout=2)
    table.timeout = 40
    outcome = meter.measure(OPENED)
    golden(outcome.remarks[0])
    second = meter.measure(PlanOfTrial(1000, 400.0))
    assert not any("raised" in remark for remark in second.remarks)
    assert (outcome.raised_timeout, second.raised_timeout) == (40, 40)
    with pytest.raises(UsageError, match="after 40 s"):
        meter.measure(PlanOfTrial(1000, 20.0))
    assert len(engine.requests) == 2


def test_a_device_that_cannot_be_reached_is_measured_without_counts() -> None:
    outcome = measurer(FakeEngine(), device=None).measure(OPENED)
    assert (outcome.verdict, outcome.table_count) == ("PASS", None)


def test_the_ceiling_is_the_testers_own_rate_of_the_phase_that_is_measured() -> None:
    assert (measurer(FakeEngine()).highest_rate, measurer(FakeEngine(), phase1_only=True).highest_rate) == (16e6, 10e6)


def test_forwarding_is_proved_with_a_handful_of_frames_each_way() -> None:
    engine = FakeEngine()
    table = FakeTable(engine)
    measurer(engine, device=table).check_forwarding()
    (request,) = engine.requests
    assert request.connections <= 10
    assert request.phase2 is not None
    assert request.phase2.initiator is not None
    assert request.phase2.responder is not None
    assert table.emptied == 2


def test_a_device_that_does_not_forward_is_told_with_direction_and_figures(golden: Golden) -> None:
    kept = Recorder()
    meter = measurer(FakeEngine(lost=100), recorder=kept)
    with golden.raises(BrokenError):
        meter.check_forwarding()
    assert kept.trials == []
    with pytest.raises(BrokenError, match="does not forward"):
        meter.check_forwarding(store=True)
    (trial,) = kept.trials
    assert trial["verdict"] == "FAIL"
    assert trial["result"] is not None


def test_frames_of_the_engines_self_test_are_no_loss_of_the_check_that_is_stored() -> None:
    kept, engine, lab = Recorder(), FakeEngine(lost=100), FakeLab()
    meter = measurer(engine, recorder=kept, place=lab)

    def trial(*arguments: Any) -> Any:
        lab.drops["gateway inside received"] += 1  # no device forwards the frame of the self-test
        return engine(*arguments)

    meter.runner = trial
    with pytest.raises(BrokenError, match="does not forward"):
        meter.check_forwarding(store=True)
    assert [stored["dropped"] for stored in kept.trials] == [{"gateway inside received": 0}]


@pytest.mark.parametrize("how", ["untranslated", "mistranslated", "damaged", "duplicates"])
def test_a_device_that_spoils_every_frame_is_refused_before_the_first_trial(how: str, golden: Golden) -> None:
    """It passed, and then every trial failed."""
    engine = FakeEngine()
    with golden.raises(BrokenError):
        measurer(engine, runner=Spoiling(engine, how, 8)).check_forwarding()
    measurer(engine, runner=Spoiling(engine, how, 1)).check_forwarding()  # is measured: a finding


@pytest.mark.parametrize("how", ["tagged", "fragments"])
def test_frames_that_come_next_to_all_of_the_first_handful_are_other_traffic(how: str) -> None:
    """Seen: "device sends more wrong frames than it received: 8 of 8 frames came back, 950 with a VLAN tag"."""
    measurer(runner := FakeEngine(), runner=Spoiling(runner, how, 950)).check_forwarding()


@pytest.mark.parametrize(
    ("lost", "asked"),
    [
        # Seen: "does not forward: 7 of 8 frames came back" of a router whose counter drops its first frame of 1,000.
        ([1, 0], 2),
        ([1, 1, 0], 3),
        # A gateway that lost each 10th frame had no frame loss rate.
        ([1, 1, 1], 3),
    ],
)
def test_a_device_that_loses_a_frame_now_and_then_forwards_all_the_same(lost: list[int], asked: int) -> None:
    engine = FakeEngine()

    def trial(*arguments: Any) -> Any:
        engine.lost = lost[len(engine.requests)]
        return engine(*arguments)

    measurer(engine, runner=trial).check_forwarding()
    marks = [request.mark for request in engine.requests]
    assert len(marks) == len(set(marks)) == asked


@pytest.mark.parametrize(("lost", "asked"), [(5, 3), (8, 1)])
def test_a_device_that_loses_most_frames_of_every_handful_is_refused_and_one_that_loses_all_is_asked_once(
    lost: int, asked: int, golden: Golden
) -> None:
    engine = FakeEngine(lost=lost)
    with golden.raises(BrokenError):
        measurer(engine).check_forwarding()
    assert len(engine.requests) == asked


def test_batches_of_an_overloaded_device_get_smaller_in_shared_placement() -> None:
    engine = FakeEngine(fastest=50_000.0)
    meter = measurer(engine)
    meter.measure(PlanOfTrial(1000, 5e6))
    meter.measure(PlanOfTrial(1000, 5e6))
    meter.measure(with_phase2(5e6, 0.0, 0.01, phase1_rate=1000.0))
    # 20 us a frame: 64 frames would look like a stall. What phase 1 takes says nothing of phase 2.
    assert [request.senders.batch for request in engine.requests] == [64, 5, 64]
    assert [request.senders.stall_ns for request in engine.requests] == [1_000_000] * 3


@pytest.mark.parametrize(
    ("port", "on_taps", "elsewhere"),
    [
        # Whatever a receiver took, the tap's driver counts as dropped: that explains no loss.
        ({"rx_dropped": 900}, "FAIL", "INVALID"),
        ({"tx_dropped": 900}, "INVALID", "INVALID"),
        # What a tap refuses it also counts as dropped; the queue is the one before the guest.
        ({"refused": 900, "tx_dropped": 900}, "FAIL", "INVALID"),
        ({"redirect_errors": 1}, "INVALID", "INVALID"),
    ],
)
def test_what_taps_count_is_the_guests_doing(port: dict[str, int], on_taps: str, elsewhere: str) -> None:
    found = {}
    for place in (Guest(), Isolated()):
        engine = FakeEngine(lost=100, port=port)
        meter = measurer(engine, place=place)
        found[place.placement] = meter.measure(PlanOfTrial(connections=1000, phase1_rate=1e4)).verdict
    assert found == {"external": on_taps, "isolated": elsewhere}
