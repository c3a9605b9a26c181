# SPDX-License-Identifier: Apache-2.0
"""The real measurer and a device that collapses: brought back before the next trial, or told again; dead data paths."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.fake_engine import FakeEngine
from tests.unit.test_measurer import FakeTable, Recorder, measurer

from natgauge.agreement import TrialRequest, TrialResult
from natgauge.errors import BrokenError, HostError, NatgaugeError, NotEmptyError, UnreachableError
from natgauge.measurements.making import make
from natgauge.measurer import Phase2Plan, TrialPlan
from natgauge.procedures import connection_rate
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.words import Verdict

PLAN = TrialPlan(1000, 500.0)
#: Far more than the handful of frames that prove forwarding.
MANY = 100


class Mortal(FakeTable):
    """A device whose controls fail once it is dead; it may come back when it is started anew.

    Attributes:
        comes_back: whether a restart helps.
        restarts: how many there were.
    """

    def __init__(self, engine: FakeEngine, *, comes_back: bool = True) -> None:
        super().__init__(engine)
        self.comes_back = comes_back
        self.restarts = 0
        self.seen = 0

    def empty(self) -> None:
        """Only while it lives."""
        if self.dead:
            raise BrokenError("device: gone")
        self.seen = len(self.engine.requests)

    def count(self) -> int:
        """What was opened since."""
        if self.dead:
            raise BrokenError("device: gone")
        return self.engine.requests[-1].connections if len(self.engine.requests) > self.seen else 0

    def restart(self) -> None:
        """Comes back, or does not."""
        self.restarts += 1
        if not self.comes_back:
            raise BrokenError("gateway: start failed")
        self.dead = self.engine.dead = False


class Killing(FakeEngine):
    """Forwards, and kills the device with the first large request, or with every one above a rate."""

    victim: Mortal
    above: float = 0.0
    deaths: int = 0
    most_deaths: int = 1

    def __call__(self, request: TrialRequest, *others: Any) -> TrialResult:
        """Answer one request."""
        result = super().__call__(request, *others)
        assert request.phase1 is not None
        if request.connections > MANY and request.phase1.rate > self.above and self.deaths < self.most_deaths:
            self.deaths += 1
            self.victim.dead = self.dead = True
        return result


def mortal(*, comes_back: bool = True, most_deaths: int = 1, above: float = 0.0) -> tuple[LabMeasurer, Mortal]:
    engine = Killing()
    engine.above, engine.most_deaths = above, most_deaths
    engine.victim = Mortal(engine, comes_back=comes_back)
    return measurer(engine, device=engine.victim, recorder=Recorder()), engine.victim


def recorded(meter: LabMeasurer) -> list[Any]:
    assert isinstance(meter.recorder, Recorder)
    return meter.recorder.trials


def test_after_a_collapse_the_device_is_started_anew_for_the_next_trial() -> None:
    meter, device = mortal()
    assert meter.measure(PLAN).verdict is Verdict.COLLAPSED
    outcome = meter.measure(PLAN)
    assert (outcome.verdict, device.restarts) == (Verdict.PASS, 1)
    assert any("the device was restarted" in remark for remark in outcome.remarks)
    assert any("the device was restarted" in remark for remark in recorded(meter)[1]["remarks"])
    assert not any("the device was restarted" in remark for remark in meter.measure(PLAN).remarks)
    assert device.restarts == 1


def test_a_device_that_does_not_come_back_is_collapsed_again_not_an_error() -> None:
    meter, device = mortal(comes_back=False)
    outcomes = [meter.measure(PLAN) for _ in range(3)]
    assert [outcome.verdict for outcome in outcomes] == [Verdict.COLLAPSED] * 3
    assert "did not come back (gateway: start failed)" in outcomes[1].reason
    assert (outcomes[1].limited_by, outcomes[1].phase1.offered_frames) == ("device", 0)
    assert [trial["verdict"] for trial in recorded(meter)] == ["COLLAPSED"] * 3
    assert recorded(meter)[1]["result"] is None
    assert recorded(meter)[1]["plan"]["connections"] == PLAN.connections
    assert device.restarts == 2


def test_who_restarts_the_device_between_trials_need_not_do_it_twice() -> None:
    meter, device = mortal()
    meter.measure(PLAN)
    meter.restart()
    meter.measure(PLAN)
    assert device.restarts == 1


def connection_rate_of(meter: LabMeasurer, **asked: Any) -> Result:
    settings = connection_rate.ConnectionRateSettings(connections=1000, placement="shared", **{"repeat": 1, **asked})
    return make(connection_rate.PROCEDURE.measure(meter, settings), Parameters())


def test_after_three_collapses_the_search_ends() -> None:
    meter, _ = mortal(most_deaths=99, above=100_000)
    result = connection_rate_of(meter)
    assert result.trials[Verdict.COLLAPSED] == 3
    assert any("ended because the device collapsed 3 times" in note.text for note in result.notes)
    assert result.median <= 100_000
    assert {"collapsed", "ended early"} <= {doubt.word for doubt in result.doubts}


def test_a_device_that_does_not_come_back_bounds_the_answer_where_it_collapsed_and_nowhere_else() -> None:
    """Trials that were never begun counted as loads too high, and moved the upper bound down."""
    meter, _ = mortal(comes_back=False, above=100_000)
    result = connection_rate_of(meter)
    began = [trial for trial in recorded(meter) if trial["request"] is not None]
    collapsed = [trial["plan"]["phase1_rate"] for trial in began if trial["verdict"] == "COLLAPSED"]
    assert [one.upper for one in result.repetitions] == collapsed
    assert result.median == max(trial["plan"]["phase1_rate"] for trial in began if trial["verdict"] == "PASS")
    assert {"collapsed", "ended early"} <= {doubt.word for doubt in result.doubts}


def test_a_device_that_is_gone_ends_the_series_of_repetitions_and_adds_no_zeros() -> None:
    """Seen on a wire: 100,000, 0 and 0, with the median 0."""
    meter, _ = mortal(comes_back=False, above=100_000)
    result = connection_rate_of(meter, repeat=3)
    assert [one.value > 0 for one in result.repetitions] == [True]
    (doubt, *_) = (doubt for doubt in result.doubts if doubt.text.startswith("repetitions after 1 of 3"))
    assert doubt.word == "ended early"


def test_only_trials_of_which_frames_were_sent_count_as_collapses() -> None:
    """Seen: trials that never began "count as a load too high", of which they say nothing."""
    meter, _ = mortal(comes_back=False, above=100_000)
    result = connection_rate_of(meter)
    unbegun = sum(trial["request"] is None for trial in recorded(meter))
    assert (unbegun, result.trials[Verdict.COLLAPSED]) == (1, 2)
    (doubt,) = (doubt for doubt in result.doubts if doubt.word == "collapsed")
    assert doubt.text == (
        f"the device collapsed in 1 of {sum(result.trials.values()) - unbegun} trials; 1 more could not begin, "
        "because it did not come back"
    )


def test_a_device_that_is_gone_before_anything_passed_is_an_error() -> None:
    meter, _ = mortal(comes_back=False)
    with pytest.raises(BrokenError, match=r"had collapsed and did not come back \(gateway: start failed\)"):
        connection_rate_of(meter)


class DeadPath(FakeEngine):
    """Loses every frame of phase 2, or all, of large requests; of small ones, too, where the path is dead for good."""

    dead = True
    from_phase = 1

    def __call__(self, request: TrialRequest, *others: Any) -> TrialResult:
        """Answer one request."""
        result = super().__call__(request, *others)
        if request.connections <= MANY and not self.dead:
            return result
        lost = {"received_frames": 0}
        phase1, phase2 = result.phase1, result.phase2
        if phase1 is not None and self.from_phase == 1:
            phase1 = phase1.model_copy(update=lost)
        if phase2 is not None:
            phase2 = phase2.model_copy(
                update={
                    side: one.model_copy(update=lost)
                    for side in ("initiator", "responder")
                    if (one := getattr(phase2, side))
                }
            )
        return result.model_copy(update={"phase1": phase1, "phase2": phase2})


@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("from_phase", [1, 2])
@pytest.mark.parametrize(("dead", "verdict"), [(True, Verdict.COLLAPSED), (False, Verdict.FAIL)])
def test_a_trial_of_which_nothing_came_back_is_followed_by_single_frames(
    from_phase: int, verdict: Verdict, *, dead: bool, ours: bool
) -> None:
    """Seen: a device whose controls answer, but which forwards nothing any more, only failed."""
    engine = DeadPath()
    engine.dead, engine.from_phase = dead, from_phase
    meter = measurer(engine, device=FakeTable(engine) if ours else None)
    plan = TrialPlan(1000, 500.0, Phase2Plan(500.0, 500.0, 1.0))
    outcome = meter.measure(plan)
    assert outcome.verdict is verdict
    assert ("forwards nothing" in outcome.reason) == dead
    assert [request.connections for request in engine.requests] == [1000, 8]
    assert len({request.mark for request in engine.requests}) == 2


class _WithoutCarrier(Killing):
    """The device takes the carrier of the tester's port with it."""

    def __call__(self, request: TrialRequest, *others: Any) -> TrialResult:
        """Answer one request."""
        if self.dead:
            raise UnreachableError("natgauge-engine: initiator.interface: ng0i: is down or has no carrier")
        return super().__call__(request, *others)


def test_a_device_that_took_the_carrier_with_it_collapsed_and_comes_back() -> None:
    engine = _WithoutCarrier()
    engine.victim = Mortal(engine)
    meter = measurer(engine, device=engine.victim)
    assert [meter.measure(PLAN).verdict for _ in range(2)] == [Verdict.COLLAPSED, Verdict.PASS]


class _ControlsFail(FakeTable):
    """Its controls fail once a trial is over: emptying raises this error from the second time on."""

    def __init__(self, engine: FakeEngine, error: NatgaugeError) -> None:
        super().__init__(engine)
        self.error = error

    def empty(self) -> None:
        """Once."""
        if self.emptied:
            raise self.error
        super().empty()


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (NotEmptyError("3 connections are left"), Verdict.FAIL),
        (BrokenError("ssh: connection lost"), Verdict.INVALID),
    ],
)
def test_controls_that_fail_after_a_trial_are_no_collapse_while_single_frames_come_back(
    error: NatgaugeError, verdict: Verdict
) -> None:
    """Seen: "forwards nothing any more", though not a single frame had been sent."""
    engine = DeadPath()
    engine.dead = False
    outcome = measurer(engine, device=_ControlsFail(engine, error)).measure(PLAN)
    assert outcome.verdict is verdict
    assert "forwards nothing" not in outcome.reason
    assert [request.connections for request in engine.requests] == [1000, 8]


@pytest.mark.parametrize("error", [NotEmptyError("3 connections are left"), BrokenError("ssh: connection lost")])
def test_controls_that_fail_after_a_trial_do_not_hide_a_dead_path(error: NatgaugeError) -> None:
    engine = DeadPath(dead=True)
    outcome = measurer(engine, device=_ControlsFail(engine, error)).measure(PLAN)
    assert outcome.verdict is Verdict.COLLAPSED
    assert ("although it answers its controls" in outcome.reason) == isinstance(error, NotEmptyError)
    assert [request.connections for request in engine.requests] == [1000, 8]


class _EndedByTheKernel(DeadPath):
    """Loses the frames of a large trial; the engine does not survive a small one."""

    error: NatgaugeError = BrokenError("trial: natgauge-engine was ended by SIGKILL")

    def __call__(self, request: TrialRequest, *others: Any) -> TrialResult:
        """Answer one request."""
        if request.connections <= MANY:
            raise self.error
        return super().__call__(request, *others)


@pytest.mark.parametrize("error", [BrokenError("engine: SIGKILL"), HostError("engine: no memory")])
@pytest.mark.parametrize("alive", [True, False])
def test_an_engine_that_breaks_before_single_frames_were_sent_says_nothing_of_the_device(
    error: NatgaugeError, *, alive: bool
) -> None:
    engine = _EndedByTheKernel()
    engine.error = error
    table = FakeTable(engine)

    def trial(request: TrialRequest, *others: Any) -> TrialResult:
        result = engine(request, *others)
        table.dead = not alive
        return result

    outcome = measurer(engine, device=table, runner=trial).measure(PLAN)
    assert (outcome.verdict, outcome.limited_by) == (Verdict.INVALID, "host")
    assert str(error) in outcome.reason
    assert "forwards nothing" not in outcome.reason


def test_an_engine_that_breaks_while_the_controls_are_silent_is_named() -> None:
    engine = _EndedByTheKernel()
    device = _ControlsFail(engine, BrokenError("ssh: connection lost"))
    device.emptied = 1
    with pytest.raises(BrokenError, match="SIGKILL"):
        measurer(engine, device=device).measure(PLAN)


def test_the_note_on_failed_commands_counts_tries_and_not_commands() -> None:
    """Seen: "4 commands failed and were tried again", of one command whose fourth try was the last one."""
    engine = FakeEngine()
    device = _ControlsFail(engine, BrokenError("ssh: connection lost"))
    device.emptied = 1
    outcome = measurer(engine, device=device).measure(PLAN)
    (remark,) = (remark for remark in outcome.remarks if "to the device failed" in remark)
    assert remark.startswith("4 tries of commands to the device failed")
    assert outcome.command_failures == 4


def test_a_trial_of_which_something_came_back_is_followed_by_nothing() -> None:
    engine = FakeEngine(lost=999)
    assert measurer(engine).measure(PLAN).verdict is Verdict.FAIL
    assert len(engine.requests) == 1
