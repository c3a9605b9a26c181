# SPDX-License-Identifier: Apache-2.0
"""Trials beyond the plain ones, with a stand-in for the engine: steps, samples, loss times, restarts, no state."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.fake_engine import FakeEngine
from tests.unit.fake_measurer import (
    DOWN,
    SETTINGS,
    TRAFFIC,
    UP,
    FakeTable,
    Isolated,
    Measuring,
    Recorder,
    addresses,
    stepped,
    traffic_of,
    with_phase2,
)
from tests.unit.fake_measurer import measurer as made_measurer
from tests.unit.golden import Golden

from natgauge.errors import BrokenError, HostError, UsageError

PLAN = with_phase2(2000.0, 3000.0, 0.5)
#: Of a router: nothing is replaced.
ROUTER = replace(SETTINGS, translated=False)
#: A command that fails is tried so many times.
TRIES = 4


class Played(FakeTable):
    """A device that is played by a recipe; it takes its time to come back, and may not.

    Attributes:
        down: happens when a restart has stopped it.
        up: happens when it is back.
        returns: what it waits for before it comes back; None = nothing.
        takes: seconds a restart then takes.
        error: what it says when it does not come back.
        log: what was done with it, in order.
    """

    empties = True
    counts = True

    def __init__(
        self,
        engine: FakeEngine,
        returns: threading.Event | None = None,
        takes: float = 0.0,
        error: Exception | None = None,
    ) -> None:
        super().__init__(engine)
        self.down, self.up = threading.Event(), threading.Event()
        self.returns = returns
        self.takes = takes
        self.error = error
        self.log: list[str] = []

    def count(self) -> int:
        """After a restart nothing of phase 1 is left."""
        self.log.append("count")
        return 3 if "back" in self.log and self.log[-2] != "empty" else super().count()

    def empty(self) -> None:
        self.log.append("empty")
        super().empty()

    def restart_under_load(self) -> None:
        self.log.append("stop")
        self.down.set()
        assert self.returns is None or self.returns.wait(10), "what it waits for did not happen"
        time.sleep(self.takes)
        if self.error is not None:
            raise self.error
        self.log.append("back")
        self.up.set()


def no_time() -> float:
    """A clock that stands still."""
    return 0.0


def measurer(engine: FakeEngine, device: Any = None, **others: Any) -> Measuring:
    clock = others.pop("clock", no_time)
    made = made_measurer(engine, device=device, **others)
    made.trial_run.clock = clock
    return made


def phase2_of(engine: FakeEngine) -> Any:
    phase2 = engine.requests[-1].phase2
    assert phase2 is not None
    return phase2


# What is asked


def test_a_plain_trial_pays_for_nothing_more() -> None:
    engine = FakeEngine()
    measurer(engine).measure(PLAN)
    (request,) = engine.requests
    assert (request.delay_samples, request.record_variation, request.record_loss_times) == (None, False, False)
    assert phase2_of(engine).step is None
    assert not request.stateless


def test_a_trial_of_fewer_addresses_has_the_first_ones_and_their_four_tuples() -> None:
    engine = FakeEngine()
    traffic = traffic_of(connections=1000, source_addresses="10.0.0.2-10.0.0.21")
    subject = measurer(engine, traffic=traffic)
    subject.measure(replace(PLAN, connections=100, sources=3))
    subject.measure(PLAN)
    asked = [request.initiator.source_addresses for request in engine.requests]
    assert [(str(one.first), str(one.last)) for one in asked] == [("10.0.0.2", "10.0.0.4"), ("10.0.0.2", "10.0.0.21")]
    # However they are drawn, each address has a third of them: 34 ports, and two are left over.
    assert [request.initiator.source_ports.last for request in engine.requests] == [
        traffic.source_ports.first + 33,
        traffic.source_ports.last,
    ]
    assert traffic.of_first(3, 34).space == 102
    assert subject.four_tuples_of_each(replace(PLAN, connections=100, sources=3)) == 34


@pytest.mark.parametrize("step", [-86_400.0, 86_400.0])
def test_the_duration_of_a_trial_does_not_follow_the_clock_of_dates(
    step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is set in the middle of the trial."""
    engine, recorder = FakeEngine(), Recorder()
    dates = iter(1e9 + number * step for number in range(100))
    monkeypatch.setattr("time.time", lambda: next(dates))
    subject = measurer(engine, recorder=recorder)
    subject.measure(PLAN)
    assert [0 <= trial["seconds"] < 60 for trial in recorder.trials] == [True]
    assert recorder.trials[0]["began"] == 1e9


def seconds_limit(engine: FakeEngine) -> float:
    limits = engine.requests[-1].limits
    assert limits is not None
    assert limits.seconds is not None
    return limits.seconds


def test_a_step_is_a_share_of_both_rates_and_counted_in_the_trials_length() -> None:
    engine = FakeEngine()
    subject = measurer(engine)
    outcome = subject.measure(stepped(PLAN, 0.5, 4.0))
    step, limit = phase2_of(engine).step, seconds_limit(engine)
    assert step is not None
    assert (step.share, step.seconds) == (0.5, 4.0)
    assert outcome.phase2[UP].intended_frames == 1000 + 4000
    subject.measure(PLAN)
    assert limit == pytest.approx(seconds_limit(engine) + 2 * 4.0)


@pytest.mark.parametrize(
    ("plan", "begin", "asked", "samples"),
    [
        (PLAN, 0.25, 100, (250, 100)),
        # As many as the slower direction has left: 100 frames in all, and the first 11 are due before 1 s.
        (with_phase2(10.04, 3000.0, 10.0), 1.0, None, (1000, 89)),
    ],
)
def test_samples_are_of_the_frames_from_a_time_on(
    plan: PlanOfTrial, begin: float, asked: int | None, samples: tuple[int, int]
) -> None:
    engine = FakeEngine(delays_ns=(10_000, 20_000))
    timed = replace(plan, record_delays=True, delays_from_seconds=begin, delay_samples=asked)
    outcome = measurer(engine).measure(timed)
    found = engine.requests[0].delay_samples
    assert found is not None
    assert (found.from_ms, found.frames) == samples
    assert outcome.delays[UP].frames == samples[1]


def test_differences_are_signed_and_their_extremes_exact() -> None:
    engine = FakeEngine(delays_ns=(10_000, 12_500))
    subject = measurer(engine)
    timed = replace(PLAN, record_delays=True)
    outcome = subject.measure(replace(timed, record_variation=True))
    assert engine.requests[0].record_variation
    variation = outcome.delays[DOWN].variation
    assert variation is not None
    assert (variation.pairs, variation.minimum, variation.maximum) == (1499, -2.5e-6, 2.5e-6)
    lowers = [lower for lower, _, _ in variation.buckets]
    assert lowers == sorted(lowers)
    assert sum(pairs for _, _, pairs in variation.buckets) == 1499
    # Without pairs, and where none is asked for, there is no variation.
    one = replace(with_phase2(2.0, 0.0, 0.5), record_delays=True, record_variation=True)
    assert subject.measure(one).delays[UP].variation is None
    assert subject.measure(timed).delays[UP].variation is None
    # The device is watched more closely where frames are timed.
    subject.measure(PLAN)
    assert [request.watch_stall_ns for request in engine.requests[-2:]] == [2_000_000, 5_000_000]


@pytest.mark.parametrize(("due", "held_up"), [(900, 64), (12, 12), (None, None)])
def test_a_stall_of_the_core_that_sends_and_forwards_holds_up_one_batch(due: int | None, held_up: int | None) -> None:
    engine = FakeEngine(delays_ns=(10_000, 12_500), lost_in_stalls=0, due_in_stalls=due)
    timed = replace(with_phase2(1e6, 0.0, 0.001), record_delays=True)
    assert measurer(engine).measure(timed).delays[UP].due_in_stalls == held_up
    assert measurer(engine, place=Isolated()).measure(timed).delays[UP].due_in_stalls == due


def test_times_of_losses_and_silences_are_in_seconds_of_the_phase() -> None:
    engine = FakeEngine(lost=2, silence_ns=(200_000_000, 450_000_000))
    outcome = measurer(engine).measure(replace(PLAN, record_loss_times=True))
    assert engine.requests[0].record_loss_times
    assert outcome.phase2[UP].last_lost_ns == 500_000_000
    silence = outcome.phase2[UP].longest_silence
    assert silence is not None
    assert (silence.from_ns, silence.to_ns) == (200_000_000, 450_000_000)
    whole = measurer(FakeEngine()).measure(replace(PLAN, record_loss_times=True))
    assert whole.phase2[UP].last_lost_ns is None
    assert measurer(engine).measure(PLAN).phase2[UP].longest_silence is None


# Stateless


def test_a_stateless_trial_has_no_phase_1_and_expects_no_connections(golden: Golden) -> None:
    engine, recorder = FakeEngine(), Recorder()
    outcome = measurer(engine, settings=ROUTER, recorder=recorder).measure(replace(PLAN, stateless=True))
    (request,) = engine.requests
    assert request.stateless
    assert request.phase1 is None
    assert (outcome.verdict, outcome.stored) == ("PASS", 0)
    assert (outcome.phase1.intended_frames, outcome.phase1.offered_frames, outcome.phase1.received_frames) == (0, 0, 0)
    assert outcome.phase2[DOWN].received_frames == 1500
    golden(outcome.remarks)
    assert "phase1" not in recorder.trials[0]["result"]


def test_a_stateless_trial_fails_in_phase_2_and_needs_no_connection_of_the_device() -> None:
    stateless = replace(PLAN, stateless=True)
    outcome = measurer(FakeEngine(lost=1), settings=ROUTER).measure(stateless)
    assert (outcome.verdict, outcome.failed_phase, outcome.limited_by) == ("FAIL", 2, "device")
    engine = FakeEngine()
    subject = measurer(engine, FakeTable(engine), settings=replace(ROUTER, udp_timeout=1))
    outcome = subject.measure(stateless)
    assert (outcome.table_count, outcome.verdict) == (1000, "PASS")
    with pytest.raises(UsageError, match="UDP timeout"):
        subject.measure(PLAN)


@pytest.mark.parametrize(
    "settings", [SETTINGS, replace(SETTINGS, initiator_family="ipv6"), replace(ROUTER, initiator_family="ipv6")]
)
def test_a_stateless_trial_of_a_translator_is_refused_before_it_runs(settings: Any, golden: Golden) -> None:
    engine = FakeEngine()
    with golden.raises(UsageError):
        measurer(engine, settings=settings).measure(replace(PLAN, stateless=True))
    assert engine.requests == []


def test_in_a_stateless_trial_the_responder_writes_the_mapped_addresses_and_others_learn_them() -> None:
    engine = FakeEngine()
    mapped = addresses("198.18.0.2", "198.18.0.2")
    settings = replace(ROUTER, initiator_family="ipv6", pool=mapped)
    subject = measurer(engine, settings=settings, traffic=replace(TRAFFIC, mapped_addresses=mapped))
    subject.measure(replace(PLAN, stateless=True))
    subject.measure(PLAN)
    stateless, learned = engine.requests
    written, pool = stateless.responder.destination_addresses, learned.translation.pool
    assert written == pool
    assert written is not None
    assert (written.first, written.last) == ("198.18.0.2", "198.18.0.2")
    assert (learned.responder.destination_addresses, learned.translation.source) == (None, "unchanged")


def test_a_result_without_phase_1_is_broken_where_one_was_asked_for(golden: Golden) -> None:
    engine = FakeEngine()

    def forgetful(request: Any, *others: Any) -> Any:
        return engine(request, *others).model_copy(update={"phase1": None})

    with golden.raises(BrokenError):
        measurer(engine, runner=forgetful).measure(PLAN)


# Restarts


RESET = replace(PLAN, record_loss_times=True, restart_at_seconds=0.02)


def lasted(trial: OneTrial) -> float:
    """Return the seconds of the restart in a trial."""
    assert trial.restart is not None
    return trial.restart.ended - trial.restart.began


def test_the_device_is_restarted_so_long_after_the_first_word_of_phase_2() -> None:
    engine = FakeEngine(lost=100)
    device, recorder = Played(engine, takes=0.1), Recorder()
    engine.phase2_ends = device.up
    outcome = measurer(engine, device, recorder=recorder).measure(RESET)
    assert outcome.restart is not None
    assert outcome.restart.began >= 0.02
    assert lasted(outcome) >= 0.1
    assert device.log == ["empty", "count", "stop", "back", "count"]
    assert recorder.trials[0]["restart"] == {"began": outcome.restart.began, "ended": outcome.restart.ended}


def test_the_trial_waits_for_a_device_that_is_slower_than_the_trial() -> None:
    engine = FakeEngine()
    device = Played(engine, returns=engine.answered, takes=0.1)
    engine.phase2_ends = device.down
    assert lasted(measurer(engine, device).measure(RESET)) >= 0.1
    assert device.log[-2:] == ["back", "count"]


class Written(threading.Event):
    """Happens when a file is there."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def wait(self, timeout: float | None = None) -> bool:
        """Look at it now and then."""
        end = time.monotonic() + (timeout or 0)
        while not self.path.exists() and time.monotonic() < end:
            time.sleep(0.01)
        return self.path.exists()


def test_a_command_of_the_user_restarts_the_device_in_place_of_natgauge(tmp_path: Path) -> None:
    engine = FakeEngine()
    device, mark = Played(engine), tmp_path / "mark"
    command = f"sleep 0.1; echo done > {mark}"
    engine.phase2_ends = Written(mark)
    outcome = measurer(engine, device).measure(replace(RESET, restart_command=command))
    assert lasted(outcome) >= 0.1
    assert mark.read_text() == "done\n"
    assert device.log == ["empty", "count", "count"]


def test_a_command_that_fails_ends_the_measurement_with_its_words(tmp_path: Path) -> None:
    engine, mark = FakeEngine(), tmp_path / "mark"
    engine.phase2_ends = Written(mark)
    with pytest.raises(HostError, match="reset command: failed with exit status 3: no such outlet"):
        measurer(engine, None).measure(replace(RESET, restart_command=f"touch {mark}; echo no such outlet >&2; exit 3"))


def test_a_restarted_device_is_not_blamed_for_an_empty_table_but_for_what_it_lost() -> None:
    engine = FakeEngine()
    outcome = measurer(engine, until_up(engine)).measure(RESET)
    assert (outcome.verdict, outcome.table_count) == ("PASS", 3)
    engine = FakeEngine()
    outcome = measurer(engine, until_up(engine), runner=Losing(engine)).measure(RESET)
    assert (outcome.verdict, outcome.limited_by, outcome.failed_phase) == ("FAIL", "device", 2)
    assert "3 untranslated" in outcome.reason


def until_up(engine: FakeEngine) -> Played:
    """A device whose restart the trial outlasts."""
    device = Played(engine)
    engine.phase2_ends = device.up
    return device


class Losing:
    """Hands on to a fake engine; phase 2 of what comes back has lost and leaked frames."""

    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine

    def __call__(self, request: Any, *others: Any) -> Any:
        result = self.engine(request, *others)
        assert result.phase2 is not None
        assert result.phase2.initiator is not None
        lost = {"received_frames": result.phase2.initiator.received_frames - 10, "untranslated": 3}
        initiator = result.phase2.initiator.model_copy(update=lost)
        return result.model_copy(update={"phase2": result.phase2.model_copy(update={"initiator": initiator})})


def test_a_device_that_does_not_come_back_collapsed_for_its_own_reason(golden: Golden) -> None:
    engine = FakeEngine(dead_since=1)
    device = Played(engine, error=BrokenError("x on device gateway: start failed with exit status 1: no rules"))
    engine.phase2_ends = device.down
    outcome = measurer(engine, device).measure(RESET)
    assert outcome.verdict == "COLLAPSED"
    golden(outcome.reason)
    assert device.log[-1] == "stop", "a dead device is not asked for its count"


def test_what_the_host_cannot_do_while_it_restarts_is_no_collapse() -> None:
    engine = FakeEngine()
    device = Played(engine, error=HostError("memory is short"))
    engine.phase2_ends = device.down
    with pytest.raises(HostError, match="memory is short"):
        measurer(engine, device).measure(RESET)


def test_a_restart_that_the_trial_leaves_no_time_for_is_told(golden: Golden) -> None:
    engine = FakeEngine()
    device = Played(engine)
    with golden.raises(BrokenError):
        measurer(engine, device).measure(replace(RESET, restart_at_seconds=60.0))
    with golden.raises(BrokenError):
        measurer(engine, device).measure(replace(RESET, phase2=None))
    assert "stop" not in device.log
    assert not restarts_to_come()


def restarts_to_come() -> list[threading.Thread]:
    """The clocks that still run; one that was stopped ends by itself, a moment later."""
    clocks = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    return [clock for clock in clocks if not clock.finished.is_set()]


@pytest.mark.parametrize("error", [BrokenError("engine gone"), KeyboardInterrupt()])
@pytest.mark.parametrize("has_begun", [True, False])
def test_whatever_ends_the_engine_waits_for_a_restart_that_has_begun_and_another_one_does_not_begin_any_more(
    error: BaseException, *, has_begun: bool
) -> None:
    engine = FakeEngine()
    device = Played(engine, takes=0.1)

    def breaks(request: Any, progress: Any, *_others: object) -> Any:
        engine(request, progress)
        assert not has_begun or device.down.wait(10)
        raise error

    plan = RESET if has_begun else replace(RESET, restart_at_seconds=60.0)
    with pytest.raises(type(error)):
        measurer(engine, device, runner=breaks).measure(plan)
    assert device.log == ["empty", "count", *(["stop", "back"] if has_begun else [])]
    assert not restarts_to_come()


def test_only_a_device_of_ours_can_be_restarted(golden: Golden) -> None:
    with golden.raises(UsageError):
        measurer(FakeEngine()).measure(RESET)


# Many periods over the same connections

MANY = with_phase2(2000.0, 3000.0, 0.5, periods=3)


def test_periods_are_one_request_and_each_is_a_trial_with_count_and_memory() -> None:
    engine, kept = FakeEngine(), Recorder()
    heard: list[Any] = []
    subject = measurer(engine, FakeTable(engine), recorder=kept)

    def hear(period: Any) -> bool:
        heard.append(period)
        return True

    found = subject.periods(MANY, hear)
    assert (len(engine.requests), phase2_of(engine).periods) == (1, 3)
    # Phase 1, and three times the gap, half a second and the grace; twice that, and a minute.
    assert seconds_limit(engine) == pytest.approx(60 + 2 * (2 + 0.25 + 3 * (0.1 + 0.5 + 0.25)))
    assert found == tuple(heard)
    assert [period.seconds for period in found] == pytest.approx([0.5, 1.6, 2.7])
    for period in found:
        assert (period.outcome.verdict, period.outcome.table_count, period.free_octets) == ("PASS", 1000, 1 << 30)
        assert (period.outcome.phase2[UP].offered_frames, period.outcome.phase1.offered_frames) == (1000, 1000)
    assert [trial["request"] is None for trial in kept.trials] == [False, True, True]
    assert subject.number == 1
    subject.measure(PLAN)
    assert phase2_of(engine).periods == 1


def test_a_period_with_loss_fails_and_one_that_a_stall_spoiled_is_invalid() -> None:
    def verdicts(**engine: Any) -> set[str]:
        subject = measurer(FakeEngine(lost=7, **engine), place=Isolated())
        return {period.outcome.verdict for period in subject.periods(MANY, lambda _period: True)}

    assert verdicts(lost_in_stalls=0) == {"FAIL"}
    assert verdicts(lost_in_stalls=7) == {"INVALID"}


class SlowTable(FakeTable):
    """A device whose counts take so many seconds, one after the other; the engine prints lines at these times."""

    def __init__(self, engine: FakeEngine, counts: list[float], lines: list[float]) -> None:
        super().__init__(engine)
        self.now = 0.0
        self.takes, self.lines = iter(counts), iter(lines)
        engine.clock = self.print

    def count(self) -> int:
        self.now += next(self.takes, 0.0)
        return super().count()

    def print(self) -> float:
        """A line that is printed while natgauge reads waits for it."""
        printed = next(self.lines)
        self.now = max(self.now, 100 + printed)
        return printed

    def measurer(self, **others: Any) -> Measuring:
        return measurer(self.engine, self, clock=lambda: self.now, **others)


#: When the lines of phases 1 and 2 are printed, then those of all periods but the last.
LINES = [0.0, 2.25, 2.25, 3.0, 3.85]
WITHOUT_PHASE_1 = replace(MANY, stateless=True)


def test_a_pause_between_periods_is_twice_as_long_as_a_reading_of_the_device() -> None:
    """Pauses of 100 ms ended before a device had answered through ssh: its core worked for natgauge in the next one."""
    engine = FakeEngine()
    table = SlowTable(engine, [0.2] * 5, LINES)
    found = table.measurer().periods(MANY, lambda _period: True)
    (request,) = engine.requests
    assert request.gap_ms == 400
    assert seconds_limit(engine) == pytest.approx(60 + 2 * (2 + 0.25 + 3 * (0.4 + 0.5 + 0.25)))
    assert [one.outcome.readings.read_late_seconds for one in found] == [0, 0, 0]
    assert {one.outcome.verdict for one in found} == {"PASS"}


class WalkedTable(FakeTable):
    """A device whose count walks its table, and takes 0.2 ms for each connection; the first counts may fail."""

    counts = True

    def __init__(self, engine: FakeEngine, silent: int = 0) -> None:
        super().__init__(engine)
        self.now, self.silent = 0.0, silent

    def count(self) -> int:
        if self.silent:
            self.silent -= 1
            raise BrokenError("no answer")
        found = super().count()
        self.now += 0.0002 * found
        return found


@pytest.mark.parametrize("before", [[], [replace(PLAN, phase2=None)], [replace(PLAN, connections=10)]])
def test_a_reading_of_the_device_is_timed_with_the_connections_in_its_table(before: list[PlanOfTrial]) -> None:
    """With both rates given no trial came before: the count of an empty table was fast, and later ones were late."""
    engine = FakeEngine()
    table = WalkedTable(engine)
    table.held = 0
    subject = measurer(engine, table, clock=lambda: table.now)
    for plan in before:
        subject.measure(plan)
    found = subject.periods(MANY, lambda _period: True)
    assert engine.requests[-1].gap_ms == pytest.approx(400, abs=1)
    assert [period.outcome.table_count for period in found] == [1000] * 3
    # Where the trial before opened them, nothing is opened once more.
    opened = [request.connections for request in engine.requests if request.phase2 is None]
    assert opened == [1000]


def test_controls_that_are_silent_before_the_periods_end_nothing() -> None:
    """The reading of which only the time is taken ended the measurement."""
    engine = FakeEngine()
    # Silent for one command with its tries.
    table = WalkedTable(engine, silent=TRIES)
    assert len(measurer(engine, table).periods(MANY, lambda _period: True)) == 3
    assert not table.silent


def test_a_pause_between_periods_is_not_as_long_as_controls_that_hang() -> None:
    engine = FakeEngine()
    SlowTable(engine, [60.0], LINES).measurer().periods(MANY, lambda _period: True)
    assert engine.requests[0].gap_ms == 2000


def test_a_period_into_which_a_reading_reached_has_a_remark_and_is_invalid_if_it_lost_frames(golden: Golden) -> None:
    """The device's core worked for natgauge while frames flowed, and what it lost then was held against it."""

    def found(lost: int) -> list[Any]:
        table = SlowTable(FakeEngine(lost=lost), [0.01, 0.0, 0.15], LINES[1:])
        subject = table.measurer(place=Isolated(), settings=ROUTER)
        return list(subject.periods(WITHOUT_PHASE_1, lambda _period: True))

    lost = [period.outcome for period in found(7)]
    assert [(trial.verdict, trial.limited_by) for trial in lost] == [
        ("FAIL", "device"),
        ("INVALID", "host"),
        ("FAIL", "device"),
    ]
    golden(lost[1].reason)
    whole = [period.outcome for period in found(0)]
    assert [trial.verdict for trial in whole] == ["PASS"] * 3
    golden([remark for trial in whole for remark in trial.remarks])


def test_a_reading_of_several_periods_reached_into_each_of_them() -> None:
    """The engine's lines waited meanwhile, so each of them seemed to be read at once."""
    table = SlowTable(FakeEngine(), [0.0, 0.0, 2.0], [*LINES, 4.7, 5.55])
    plan = with_phase2(2000.0, 3000.0, 0.5, periods=5)
    found = table.measurer().periods(plan, lambda _period: True)
    late = [one.outcome.readings.read_late_seconds for one in found]
    assert late == pytest.approx([0, 1.9, 1.05, 0.2, 0])


def test_a_caller_that_has_heard_enough_ends_the_trial() -> None:
    assert len(measurer(FakeEngine()).periods(MANY, lambda _period: False)) == 1


def test_a_device_that_does_not_answer_between_periods_has_no_count_then() -> None:
    engine = FakeEngine()
    table = FakeTable(engine)

    def die(_period: Any) -> bool:
        table.dead = True
        return True

    found = measurer(engine, table).periods(MANY, die)
    assert [(one.outcome.table_count, one.free_octets) for one in found] == [
        (1000, 1 << 30),
        (None, None),
        (None, None),
    ]
    assert [one.outcome.command_failures for one in found] == [0, 1, 1]
    assert {one.outcome.verdict for one in found} == {"PASS"}


def test_periods_in_which_a_connection_may_be_forgotten_are_refused(golden: Golden) -> None:
    # 1,000 connections share 5,000 frames/s: 30 mean intervals between the frames of a connection are 6 s, and the
    # pauses of 0.1 s after each 0.5 s are 1.2 s more.
    subject = measurer(FakeEngine(), settings=replace(SETTINGS, udp_timeout=7))
    with golden.raises(UsageError):
        subject.periods(MANY, lambda _period: True)
    subject = measurer(FakeEngine(), settings=replace(SETTINGS, udp_timeout=8))
    assert len(subject.periods(MANY, lambda _period: True)) == 3


def test_a_trial_without_phase_2_has_no_periods(golden: Golden) -> None:
    with golden.raises(UsageError):
        measurer(FakeEngine()).periods(replace(PLAN, phase2=None), lambda _period: True)
