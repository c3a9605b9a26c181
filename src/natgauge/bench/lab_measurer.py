# SPDX-License-Identifier: Apache-2.0
"""The real measurer: performs a procedure's trials on one device in one lab, with the engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from natgauge.bench import forwarding
from natgauge.bench.costs import Beside
from natgauge.bench.evidence import Evidence, record_of_none
from natgauge.bench.needs import DeviceControl, OwnDelays, Place, ServerControl
from natgauge.bench.pacing import learned, pacing
from natgauge.bench.requests import SLACK_SECONDS, Requests, TrialConstants, longest_seconds
from natgauge.bench.restart import RestartInTrial
from natgauge.bench.traffic import TrafficPlan
from natgauge.bench.watch import Silent, Watch
from natgauge.counts import received_in_all, streams_of
from natgauge.errors import BrokenError, NatgaugeError, UsageError
from natgauge.measurer import (
    Ability,
    CountAt,
    Counts,
    Delays,
    Direction,
    Measurer,
    Restart,
    TearDown,
    TrialOutcome,
    TrialPlan,
    Verdict,
)
from natgauge.slices import CostPlan, CostRound
from natgauge.trials import (
    Progress,
    ReceiverTime,
    StreamCounts,
    TrialRequest,
    TrialResult,
    run,
)

#: The tester's own delay is looked at for no longer than this.
_OWN_SECONDS: Final = 2.0
#: What this tester can do beyond plain trials, whatever the device.
TESTER_ABILITIES: Final = frozenset(
    {
        Ability.VARIATION,
        Ability.LOSS_TIMES,
        Ability.RATE_STEP,
        Ability.TAGGED_DELAYS,
        Ability.STATELESS,
        Ability.QUERIES,
    }
)
#: And with a device that is ours.
DEVICE_ABILITIES: Final = frozenset(
    {Ability.EMPTY_TIMED, Ability.WATCH_COUNT, Ability.RESTART, Ability.RESTART_IN_TRIAL}
)
#: How labs name the tester's own ports.
_TESTER_PLACES: Final = ("initiator port", "responder port")


class Recorder(Protocol):
    """Where trials are written as they end."""

    def add_trial(self, trial: Mapping[str, object]) -> None:
        """Keep one trial."""

    def add_round(self, comparison_round: Mapping[str, object]) -> None:
        """Keep one round of slices."""


Runner = Callable[[TrialRequest, Callable[[Progress], None], float], TrialResult]


def _run_engine(request: TrialRequest, progress: Callable[[Progress], None], seconds: float) -> TrialResult:
    return run(request, progress=progress, seconds=seconds)


@dataclass(slots=True)
class LabMeasurer(Measurer):
    """Performs trials: empties the device's table, runs the engine, reads the device's count, judges, records.

    Attributes:
        place: the lab.
        device: controls of the device whose table holds the connections; None = it cannot be reached.
        traffic: the four tuples and the frame.
        settings: what all trials share.
        recorder: keeps every trial, the invalid ones too.
        watch: is told.
        phase1_only: whether trials have no phase 2, which decides which of the tester's own rates is the ceiling.
        runner: performs one request; the tests hand in their own.
        number: of the last trial, from 1.
        own: measures the tester's own delays; None = it cannot be done here.
        beside: what stands beside the device when its frames are timed; None = they cannot be timed here.
        collapsed: the device did not stand any more after the last trial.
        passed: the plan of the last trial that passed.
        sleep: waits while a device settles; the tests hand in their own.
        own_drops: where the lab counts the frames of the engine's self-test as dropped, and how many.
        server: the real one behind the device, that answers queries; None = the tester itself does.
        known_rates: what the device did when it was asked for more, in `shared` placement, by whether that was phase 1
            alone: opening a connection costs it more than forwarding.
    """

    place: Place
    device: DeviceControl | None
    traffic: TrafficPlan
    settings: TrialConstants
    recorder: Recorder
    watch: Watch = field(default_factory=Silent)
    phase1_only: bool = False
    runner: Runner = _run_engine
    number: int = 0
    own: OwnDelays | None = None
    beside: Beside | None = None
    collapsed: bool = False
    passed: TrialPlan | None = None
    sleep: Callable[[float], None] = time.sleep
    own_drops: Mapping[str, int] = field(default_factory=dict)
    server: ServerControl | None = None
    known_rates: dict[bool, float | None] = field(default_factory=dict)

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it can do beyond plain trials with this device."""
        device = self.device
        found = TESTER_ABILITIES | (set() if self.own is None else {Ability.OWN_DELAYS})
        found |= set() if self.settings.background is None else {Ability.BACKGROUND}
        found |= set() if self.beside is None else {Ability.COSTS}
        found |= set() if self.server is None else {Ability.REAL_SERVER}
        if device is None:
            return found
        lacking = (set() if device.empties else {Ability.EMPTY_TIMED}) | (
            set() if device.counts else {Ability.WATCH_COUNT}
        )
        return found | (DEVICE_ABILITIES - lacking)

    @property
    def highest_rate(self) -> float:
        """The tester's own highest rate in frames/s, all directions together."""
        return self.settings.highest_phase1_rate if self.phase1_only else self.settings.highest_phase2_rate

    @property
    def ring(self) -> int | None:
        """Frames that wait before each core of the device at most, as far as the lab knows."""
        return self.settings.ring

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """Run one trial; a device that collapsed in the one before is started anew first, where it is ours.

        Raises:
            UsageError: the device would forget connections before the trial's end, or the trial is stateless and the
                device is not.
            NatgaugeError: it could not be run at all.
        """
        self.number += 1
        request = self.request(plan)
        self._refuse_long(request)
        began = time.time()
        notes: tuple[str, ...] = ()
        if self.collapsed and self.device is not None:
            if said := self._bring_back():
                outcome = _gone_for_good(said)
                self.recorder.add_trial(record_of_none(plan, outcome, self.place.placement, began))
                return outcome
            notes = ("the device had collapsed and was started anew before this trial",)
        evidence = self._perform(request, plan.restart_at_seconds, plan.settle_seconds)
        outcome = self._judged(evidence, plan)
        last = _last_phase(evidence.result)
        if outcome.verdict is Verdict.FAIL and not received_in_all(last):
            evidence = replace(evidence, forwards=self._forwards(last))
            outcome = self._judged(evidence, plan)
        outcome = replace(outcome, notes=(*notes, *outcome.notes))
        self.collapsed = outcome.verdict is Verdict.COLLAPSED
        self.passed = plan if outcome.verdict is Verdict.PASS else self.passed
        if self.place.placement == "shared":
            alone = plan.phase2 is None
            self.known_rates[alone] = learned(self.known_rates.get(alone), plan, outcome)
        seconds = time.time() - began
        self.recorder.add_trial(
            evidence.record(plan, outcome, placement=self.place.placement, began=began, seconds=seconds)
        )
        return outcome

    def time_receivers(self, plan: TrialPlan) -> ReceiverTime | None:
        """How long the tester's receivers ran in a trial of this plan, which nobody judges; None = not told.

        Raises:
            NatgaugeError: it could not be run.
        """
        if self.collapsed:
            self.restart()
        self.number += 1
        request = self.request(plan).model_copy(update={"record_receiver_time": True})
        return self._perform(request).result.receiver_time

    def _judged(self, evidence: Evidence, plan: TrialPlan) -> TrialOutcome:
        taps = self.place.initiator.tap
        return evidence.judged(plan, self.place.placement, self.settings.table_limit, taps=taps)

    def _bring_back(self) -> str:
        """Start a collapsed device anew; what was said when it did not come back, else nothing."""
        try:
            self.restart()
        except NatgaugeError as error:
            return str(error)
        return ""

    def _forwards(self, streams: Iterable[Direction | None]) -> bool:
        """Whether any of a handful of single frames of these streams comes back; the table is as after a trial."""
        self.number += 1
        try:
            found = streams_of(self._perform(self._probe()).result)
        except BrokenError:
            return False
        return any(found[stream].received_frames for stream in streams)

    def empty_timed(self) -> TearDown:
        """Empty the device's table with one command, timed on the device.

        Raises:
            UsageError: the device cannot be told to.
            BrokenError: the command fails.
        """
        device = self._played()
        before = device.count()
        seconds = device.empty_timed()
        return TearDown(seconds, before, device.count())

    def watch_count(self, interval_seconds: float, longest_seconds: float) -> tuple[CountAt, ...]:
        """Read the device's count until it is 0 or the time is over.

        Raises:
            UsageError: the device cannot tell.
            BrokenError: the device does not tell.
        """
        device = self._played()
        seen: list[CountAt] = []
        began = time.monotonic()
        while True:
            count = device.count()
            now = time.monotonic() - began
            if count is None:
                raise UsageError("the device cannot tell its own number of connections; choose another metric")
            seen.append(CountAt(now, count))
            if count == 0 or now >= longest_seconds:
                return tuple(seen)
            time.sleep(max(0.0, len(seen) * interval_seconds - now))

    def own_delays(self, plan: TrialPlan) -> dict[Direction, Delays]:
        """What the tester itself adds in each active direction of phase 2.

        Raises:
            UsageError: it cannot be measured here, or the plan has no phase 2.
            BrokenError: the engine broke.
        """
        if self.own is None or plan.phase2 is None:
            raise UsageError("the tester's own delay cannot be measured here")
        rates = {Direction.INITIATOR: plan.phase2.initiator_rate, Direction.RESPONDER: plan.phase2.responder_rate}
        # The cable carries one direction; with both, the sender is as busy as with one of their sum.
        total = sum(rates.values())
        found = self.own(total, min(plan.phase2.seconds, _OWN_SECONDS), variation=plan.record_variation)
        return {direction: found for direction, rate in rates.items() if rate > 0}

    def costs(self, plan: CostPlan) -> CostRound:
        """What frames cost the device, in one round of slices.

        Raises:
            UsageError: its frames cannot be timed here.
            NatgaugeError: it could not be run.
        """
        if self.beside is None:
            return Measurer.costs(self, plan)
        if self.collapsed:
            self.restart()
        try:
            found = self.beside.round(self, plan)
        except NatgaugeError:
            self._note_collapse()
            raise
        if found.fault:
            self._note_collapse()
        return found

    def _note_collapse(self) -> None:
        """A device that did not outlive slices is started anew before what follows."""
        try:
            if self.device is not None:
                self.device.confirm_standing()
        except NatgaugeError:
            self.collapsed = True

    def restart(self) -> None:
        """Start the device anew, and see that it forwards.

        Raises:
            UsageError: the device cannot be told to.
            BrokenError: it does not come back.
        """
        self._played().restart()
        self.check_forwarding()
        self.collapsed = False

    def _played(self) -> DeviceControl:
        if self.device is None:
            raise UsageError("this device is not ours, so it cannot be told to do that; choose another metric")
        return self.device

    def check_forwarding(self) -> None:
        """Prove with a handful of frames each way that the device forwards each once, then empty its table again.

        A device may lose a frame now and then, and how many is what the trials are for. So where some of each stream
        came back but not all, another handful is sent.

        Raises:
            BrokenError: frames of every handful are lost, or every one comes back wrong, too; the message says which
                way and how many.
        """
        for tried in range(1, forwarding.HANDFULS + 1):
            request = self._probe()
            # No device forwards the self-test's frames, one a sender: where they are counted shows when nothing else is
            # dropped.
            self.own_drops = {}
            evidence = self._perform(request)
            self.own_drops = {place: min(count, len(request.senders.cpus)) for place, count in evidence.dropped.items()}
            self._empty()
            if forwarding.whole(evidence.result, last=tried == forwarding.HANDFULS, faults=evidence.faults):
                return
            self.number += 1

    def _probe(self) -> TrialRequest:
        return self.request(forwarding.probe(self.traffic.connections))

    def request(self, plan: TrialPlan) -> TrialRequest:
        """The engine's request for a trial of this plan; each trial's frames carry the next run mark.

        Raises:
            UsageError: it is stateless, and the device is not.
        """
        pace = pacing(plan, self.place.placement, self.settings.ring, self.known_rates.get(plan.phase2 is None))
        requests = Requests(self.settings, self.traffic, self.place.initiator, self.place.responder)
        return requests.of(plan, self.number, pace)

    def _perform(self, request: TrialRequest, restart_at: float | None = None, settle: float = 0.0) -> Evidence:
        count_before = self._empty()
        if settle:
            self.sleep(settle)
        faults_before = self._faults()
        dropped_before = self._dropped()
        refused_before = self._refused()
        if restart_at is None:
            result, restart, error = self._run(request, self.watch.running), None, ""
        else:
            result, restart, error = self._run_restarting(request, restart_at)
        dropped_after = self._dropped()
        if self.server is not None:
            self.server.confirm_standing()
        refused = {cause: number - refused_before.get(cause, 0) for cause, number in self._refused().items()}
        count: int | None = None
        strays: dict[str, int] = {}
        if self.device is not None and not error:
            count, strays, error = self._look_after(self.device, result)
        faults = {name: number - faults_before.get(name, 0) for name, number in self._faults(alive=not error).items()}
        return Evidence(
            request=request,
            result=result,
            count_before=count_before,
            count_after=count,
            strays=strays,
            dropped_before={
                place: before + min(self.own_drops.get(place, 0), max(dropped_after.get(place, before) - before, 0))
                for place, before in dropped_before.items()
            },
            dropped_after=dropped_after,
            faults=faults,
            server_refused=refused,
            device_error=None if self.device is None else error,
            restart=restart,
        )

    def _run(self, request: TrialRequest, told: Callable[[Progress], None]) -> TrialResult:
        return self.runner(request, told, longest_seconds(request) + SLACK_SECONDS)

    def _run_restarting(self, request: TrialRequest, seconds: float) -> tuple[TrialResult, Restart, str]:
        """Run a trial with a restart; the last is what the device said if it did not come back."""

        def told(progress: Progress) -> None:
            restarting.look(progress)
            self.watch.running(progress)

        with RestartInTrial(self._played().restart_under_load, seconds) as restarting:
            result = self._run(request, told)
        return result, restarting.ended(), restarting.said

    def _refuse_long(self, request: TrialRequest) -> None:
        """No entry may expire while it is needed (RFC 9693 section 4.4)."""
        timeout = self.settings.udp_timeout
        if timeout is not None and request.phase1 is not None and request.nominal_seconds >= timeout:
            raise UsageError(
                f"UDP timeout: a trial with phase 1 at {request.phase1.rate:.0f} connections/s takes "
                f"{request.nominal_seconds:.1f} s, but the device forgets connections after {timeout} s; give it a "
                "longer time-out (--udp-timeout; on a wire by its own means) or fewer connections"
            )

    def _faults(self, *, alive: bool = True) -> dict[str, int]:
        return dict(self.device.faults()) if self.device is not None and alive else {}

    def _refused(self) -> Mapping[str, int]:
        return {} if self.server is None else self.server.refused()

    def _dropped(self) -> dict[str, int]:
        """Drops at the device's places; those at the tester's own ports are in the engine's result already."""
        return {place: count for place, count in self.place.dropped().items() if not place.startswith(_TESTER_PLACES)}

    def _empty(self) -> int | None:
        """Each trial starts with an empty table (RFC 9693 section 4.4)."""
        if self.device is None:
            return None
        self.device.empty()
        return self.device.count()

    @staticmethod
    def _look_after(device: DeviceControl, result: TrialResult) -> tuple[int | None, dict[str, int], str]:
        """The device's own count, that of parts that must hold nothing, and what it said where it does not answer.

        Its time-outs were checked to outlast both phases. One whose controls answer although it is gone shows when
        nothing comes back.
        """
        try:
            if not received_in_all(streams_of(result)):
                device.confirm_standing()
            return device.count(), dict(device.strays()), ""
        except NatgaugeError as error:
            return None, {}, str(error)


def _last_phase(result: TrialResult) -> dict[Direction | None, StreamCounts]:
    """The streams that show how the trial ended."""
    streams = streams_of(result)
    return {stream: counts for stream, counts in streams.items() if stream is not None} or streams


def _gone_for_good(said: str) -> TrialOutcome:
    reason = f"the device had collapsed and did not come back ({said})"
    return TrialOutcome(Verdict.COLLAPSED, reason, Counts(intended=0, offered=0, received=0), limited_by="device")
