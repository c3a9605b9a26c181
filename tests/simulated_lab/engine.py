# SPDX-License-Identifier: Apache-2.0
"""Answers requests for trials with what the gateway in the named lab would have caused, in no time."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from pathlib import Path
from random import Random
from typing import Self

from tests.simulated_lab.lab import CLOCK, LABS, SimulatedDevice
from tests.unit.counted import change_trial, make_counts, make_trial, timed
from tests.unit.made_logs import entry, record
from tests.unit.simulated import PERIOD_PAUSE_SECONDS, Gateway

from natgauge.agreement import generated as agreement
from natgauge.agreement.generated import Progress, ReceiverTime, TrialRequest, TrialResult
from natgauge.agreement.trial import nominal_seconds
from natgauge.readings import Churn
from natgauge.trial import forwarding
from natgauge.trials import Phase2Plan, RateStep, Restart, Trial, TrialPlan

#: Frames that prove that a gateway forwards; no trial of a test is so slow.
_PROBE = forwarding.probe(8)
#: What the engine says first of each trial.
_BEGUN = Progress(phase="phase1", seconds=0.0, intended_frames=0, made_frames=0, received_frames=0)


def run(request: TrialRequest, progress: Callable[[Progress], None], seconds: float) -> TrialResult:
    """Stand in for `natgauge-engine`, with its request and its result."""
    del seconds
    device = LABS[request.initiator.interface].device
    assert device.truth is not None, "a trial of a gateway that was not started"
    plan = _plan_of(request)
    if plan.phase1_rate == _PROBE.phase1_rate and not plan.stateless:
        _log(request, plan, device)
        return _result(_probed(plan, device), request)
    if request.record_receiver_time:
        # Timing the tester's own receivers is no trial.
        result = _result(_copied(device.truth)._trial(plan), request)
        each = device.truth.receiver_seconds
        if each is None:
            return result
        time = ReceiverTime(runs=1000, runs_ns=round(each * 1e12), empty_runs=1000, empty_runs_ns=0)
        return result.model_copy(update={"receiver_time": time})
    periods = 1 if plan.phase2 is None else plan.phase2.periods
    if periods == 1:
        progress(_BEGUN)
    CLOCK.sleep(nominal_seconds(request) + device.truth.more_seconds)
    for number in range(periods):
        if device.truth.ages is not None:
            device.truth.ages(device.truth, number)
        result = _result(_trial(plan, device, device.truth), request, number)
        if not number:
            _log(request, plan, device)
        if number < periods - 1:
            progress(_BEGUN.model_copy(update={"phase": "phase2", "period": result}))
    return result


def _log(request: TrialRequest, plan: TrialPlan, device: SimulatedDevice) -> None:
    """List the trial's connections, and have the device log them."""
    if request.connections_file is None or device.truth is None:
        return
    numbers = range(request.connections)
    listed = [entry(number) for number in numbers] if device.truth.lists is None else device.truth.lists(len(numbers))
    Path(request.connections_file).write_bytes(b"".join(listed))
    device.log.take(device.truth.logs([record(number) for number in numbers], plan))


def _copied(gateway: Gateway) -> Gateway:
    """The same gateway, whose trials leave the choices of the given one as they are."""
    same = copy(gateway)
    same._random = Random()  # noqa: S311 - a simulation, nothing secret
    same._random.setstate(gateway._random.getstate())
    return same


class Restarting:
    """Restarts the device in the middle of a trial, when it was to be, and takes an eighth of a second for it."""

    said = ""

    def __init__(self, act: Callable[[], None], seconds: float) -> None:
        """Keep what is to be done, and when, in seconds of phase 2."""
        self._act, self._seconds = act, seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._act()

    def take(self, progress: Progress) -> None: ...

    def ended(self) -> Restart:
        late = max(lab.device.truth.restart_late for lab in LABS.values() if lab.device.truth is not None)
        return Restart(self._seconds + late, self._seconds + late + 0.125)


def _probed(plan: TrialPlan, device: SimulatedDevice) -> Trial:
    """A few frames, which come back unless the gateway has collapsed."""
    truth = device.truth
    alive = not device.dead
    if truth is not None and truth.probed is not None:
        alive = truth.probed(len(truth.plans))
    came = plan.connections if alive else 0
    device.held = came
    counts = make_counts(plan.connections, plan.connections, came, nominal_seconds=0.1, sending_seconds=0.1)
    directions = Gateway()._trial(plan).phase2
    return make_trial(plan, phase1=counts, phase2=dict.fromkeys(directions, counts), stored=came)


def _trial(plan: TrialPlan, device: SimulatedDevice, gateway: Gateway) -> Trial:
    """One trial, or one period of it."""
    trial = gateway.trial(plan)
    gateway.plans.append(plan)
    for cause, number in gateway.refused.items():
        device.faults[cause] = device.faults.get(cause, 0) + number
    device.fill(trial.readings.count_after or 0)
    device.machine.memory = gateway.free_octets or device.machine.memory
    device.dead = trial.readings.forwards is False
    if not plan.record_delays:
        return trial
    if not trial.phase2:
        return change_trial(trial, phase1=timed(trial.phase1, gateway._delays(plan, trial.phase1)))
    return change_trial(trial, delays={name: gateway._delays(plan, counts) for name, counts in trial.phase2.items()})


def _result(trial: Trial, request: TrialRequest, number: int = 0) -> TrialResult:
    """The result as the engine would have printed it at the end of this period, from 0."""
    result = trial.counted
    seconds = 0.0 if trial.plan.phase2 is None else trial.plan.phase2.seconds
    return result.model_copy(
        update={
            "engine": "simulated",
            "mark": request.mark,
            "seed": request.seed,
            "wall_ns": round((number + 1) * (seconds + PERIOD_PAUSE_SECONDS) * 1e9),
        }
    )


def _churn_of(churn: agreement.ChurnRequest) -> Churn:
    return Churn(churn.new_per_second, churn.leave, churn.guard_ms / 1e3, churn.flood_per_second or 0.0)


def _plan_of(request: TrialRequest) -> TrialPlan:
    """What the gateway is asked for; what only a verdict needs is not known here."""
    phase2, closing = request.phase2, request.frame.closing
    streams = () if phase2 is None else (phase2.initiator, phase2.responder)
    rates = [0.0 if stream is None else stream.rate for stream in streams]
    planned = None
    if phase2 is not None:
        planned = Phase2Plan(
            rates[0],
            rates[1],
            max(stream.frames / stream.rate for stream in streams if stream is not None),
            "pseudorandom" if phase2.responder is None else phase2.responder.reading_order,
            step=None if phase2.step is None else RateStep(phase2.step.share, phase2.step.seconds),
            periods=phase2.periods,
            churn=None if phase2.churn is None else _churn_of(phase2.churn),
        )
    return TrialPlan(
        request.connections,
        1e-9 if request.phase1 is None else request.phase1.rate,
        planned,
        request.order,
        record_delays=request.record_delays,
        frame_timeout_seconds=None if request.frame_timeout_ms is None else request.frame_timeout_ms / 1e3,
        stateless=request.stateless,
        delay_samples=None if request.delay_samples is None else request.delay_samples.frames,
        record_variation=request.record_variation,
        query=request.frame.query,
        aaaa_share=request.frame.aaaa_share or 0.0,
        cached_share=request.frame.cached_share or 0.0,
        accept_zero_checksum=request.accept_zero_checksum,
        close=None if closing is None else closing.by,
        request_octets=None if closing is None else closing.request_octets,
        half_open=request.frame.half_open,
        record_loss_times=request.record_loss_times,
    )
