# SPDX-License-Identifier: Apache-2.0
"""The real measurer: performs a procedure's trials on one device in one lab, with the engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from natgauge.agreement.generated import Progress, ReceiverTime, StreamCounts, TrialRequest, TrialResult
from natgauge.agreement.process import run
from natgauge.delays import Delays
from natgauge.errors import BrokenError, HostError, NatgaugeError, NotEmptyError, UnreachableError, UsageError
from natgauge.figure_text import number as written
from natgauge.measurer import Ability, CountAt, Measurer, OutlastingError, TearDown
from natgauge.paired.slices import RoundPlan, TimedRound
from natgauge.readings import IDLE_DRAWS
from natgauge.setup.traffic import TrafficPlan
from natgauge.trial import forwarding
from natgauge.trial.connection_log import ConnectionLog
from natgauge.trial.controls import (
    CommandRetries,
    DeviceControl,
    Observer,
    OwnDelays,
    Place,
    ServerControl,
    Silent,
    SilentControlsError,
    kept_seconds,
    needed_seconds,
    with_expected,
)
from natgauge.trial.requests import (
    SLACK_SECONDS,
    Pacing,
    Requests,
    TrialConstants,
    learned,
    longest_seconds,
    pacing,
    pause_ms,
    with_pauses,
)
from natgauge.trial.trial_run import NOT_OURS, Own, TrialRun, emptied, judged, meter_of, signs_of
from natgauge.trial_record import record_of
from natgauge.trials import Direction, Period, Phase2Plan, Trial, TrialPlan, arrived_in_all, streams_of
from natgauge.verdicts import Limits
from natgauge.words import LimitedBy, Verdict

#: Longest measurement of the tester's own delay, in seconds.
_OWN_SECONDS: Final = 2.0
#: Abilities in addition to plain trials, with any device.
TESTER_ABILITIES: Final = frozenset(
    {
        Ability.VARIATION,
        Ability.LOSS_TIMES,
        Ability.RATE_STEP,
        Ability.TAGGED_DELAYS,
        Ability.STATELESS,
        Ability.QUERIES,
        Ability.PERIODS,
        Ability.CHURN,
    }
)
#: Further abilities with a device that natgauge controls.
DEVICE_ABILITIES: Final = frozenset(
    {Ability.EMPTY_TIMED, Ability.WATCH_COUNT, Ability.RESTART, Ability.RESTART_IN_TRIAL}
)
#: Of these, what needs a device that keeps connections.
OF_TABLE: Final = frozenset({Ability.EMPTY_TIMED, Ability.WATCH_COUNT})
#: Number of consecutive trials with silent controls after which a device that forwards is given up.
MOST_SILENT: Final = 5
#: Share of the connections from which on a table counts as filled with them.
FILLED_SHARE: Final = 0.9
#: Seconds before each further check whether a device that cannot be restarted has recovered: it may boot by itself.
RECHECK_SECONDS: Final = (1.0, 5.0, 20.0)


def abilities_with(*, own: bool, background: bool, costs: bool, server: bool) -> frozenset[Ability]:
    """Return the abilities with any device, where there are the tester's own delays, IPv6, slices and a real server."""
    has = {Ability.OWN_DELAYS: own, Ability.BACKGROUND: background, Ability.COSTS: costs, Ability.REAL_SERVER: server}
    return TESTER_ABILITIES | {ability for ability, there in has.items() if there}


class Recorder(Protocol):
    """Stores trials as they end."""

    def add_trial(self, trial: Mapping[str, object]) -> None:
        """Store a trial."""

    def add_round(self, comparison_round: Mapping[str, object]) -> None:
        """Store a round of slices."""


class SliceRounds(Protocol):
    """Performs rounds of slices."""

    def round(self, measurer: LabMeasurer, plan: RoundPlan) -> TimedRound:
        """Perform one round through this measurer's device, and record it."""


class _Begin:
    """The start of a trial: `at` in s since 1970. That clock may be set while the trial runs, the monotonic one not."""

    def __init__(self) -> None:
        self.at, self._monotonic = time.time(), time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._monotonic


@dataclass(slots=True)
class LabMeasurer(Measurer):
    """Performs trials: empties the device's table, runs the engine, reads the device's count, judges, records.

    Attributes:
        device: controls of the device whose table holds the connections; None where there are none, as `server`, `log`,
            `own` (the tester's delays) and `slice_rounds` are.
        phase1_only: whether trials have no phase 2, which decides which of the tester's own rates is the ceiling.
        number: number of the last trial, from 1.
        silent: trials in a row in which the device's controls did not answer, although it forwarded, or its log could
            not be read.
        raised_timeout: UDP time-out of the device in s, where natgauge raised it for a trial; None = it did not.
        known_rates: rate of the device in overloaded trials in `shared` placement, by whether the trial had only
            phase 1: opening a connection costs the device more than forwarding.
    """

    place: Place
    device: DeviceControl | None
    traffic: TrafficPlan
    settings: TrialConstants
    recorder: Recorder
    observer: Observer = field(default_factory=Silent)
    phase1_only: bool = False
    runner: Callable[[TrialRequest, Callable[[Progress], None], float], TrialResult] = run
    number: int = 0
    own: OwnDelays | None = None
    slice_rounds: SliceRounds | None = None
    collapsed: bool = False
    silent: int = 0
    passed: TrialPlan | None = None
    sleep: Callable[[float], None] = time.sleep
    server: ServerControl | None = None
    log: ConnectionLog | None = None
    raised_timeout: int | None = None
    known_rates: dict[bool, float | None] = field(default_factory=dict)
    asking: CommandRetries = field(init=False)
    trial_run: TrialRun = field(init=False)

    def __post_init__(self) -> None:
        """Use the same `sleep` for retries of commands."""
        self.asking = CommandRetries(self.sleep)
        self.trial_run = TrialRun(
            self.place,
            self.device,
            self.server,
            self.asking,
            self._run,
            self.observer.running,
            meter=None if self.settings.power_command is None else meter_of(self.settings.power_command),
            sleep=self.sleep,
            clock=time.monotonic,
            log=self.log,
        )

    @property
    def abilities(self) -> frozenset[Ability]:
        """Abilities in addition to plain trials with this device."""
        abilities = abilities_with(
            own=self.own is not None,
            background=self.settings.background is not None,
            costs=self.slice_rounds is not None,
            server=self.server is not None,
        )
        if self.device is None:
            return abilities
        of_table = {Ability.EMPTY_TIMED: self.device.empties, Ability.WATCH_COUNT: self.device.counts}
        return abilities | DEVICE_ABILITIES - {ability for ability, has in of_table.items() if not has}

    @property
    def highest_rate(self) -> float:
        """The tester's own highest rate in frames/s, all directions together."""
        return self.settings.highest_phase1_rate if self.phase1_only else self.settings.highest_phase2_rate

    @property
    def ring(self) -> int | None:
        """Capacity of the queue before each core of the device, in frames; None = not known."""
        return self.settings.ring

    @property
    def seed(self) -> int:
        """Seed of the lab."""
        return self.settings.seed

    @property
    def timeout_seconds(self) -> int | None:
        """Seconds for which the device keeps a connection that fell silent or got a FIN; None = not known."""
        if self.traffic.transport != "tcp":
            return self.settings.udp_timeout
        return None if self.device is None else self.device.lingering().get("fin")

    @property
    def replied_timeout_seconds(self) -> int | None:
        """The same for a connection that had frames both ways; None = not known."""
        return self.timeout_seconds if self.traffic.transport == "tcp" else self.settings.replied_timeout

    @property
    def table_limit(self) -> int | None:
        """The most connections that the device's table holds; None = not known."""
        return self.settings.table_limit

    @property
    def hosts(self) -> int:
        """Number of the Initiator's addresses."""
        return self.traffic.sources

    def four_tuples_of_each(self, plan: TrialPlan) -> int:
        """Return the four tuples that each of the plan's `sources` has in its trial, at least those that it needs."""
        number = plan.sources or self.hosts
        return self.traffic.of_first(number, plan.of_each_source).space // number

    @property
    def answers_itself(self) -> bool:
        """Whether the device answers the queries itself."""
        return bool(self.settings.answers)

    @property
    def lingering_seconds(self) -> int | None:
        """Time for which the device keeps a connection that the trials close, in s; None = not known."""
        return self.settings.lingering_seconds

    def continue_after(self, before: LabMeasurer) -> None:
        """Continue the trial numbers of `before`, and keep its known rates: device and power meter are the same."""
        self.number, self.known_rates = before.number, dict(before.known_rates)
        self.trial_run.metered = before.trial_run.metered

    def measure(self, plan: TrialPlan) -> Trial:
        """Run one trial; a device that collapsed is restarted first, or waited for if natgauge cannot restart it.

        A command to the device that fails is tried again, and the outcome has the number of failed tries. If every try
        fails, single frames show whether the device still forwards. If it does, the trial is INVALID.
        """
        self.number += 1
        self.asking.begin()
        request = self.request(plan)
        raised = self._outlived(request)
        began = _Begin()
        try:
            brought = self._brought_back()
        except NatgaugeError as error:
            reason = f"the device had collapsed and did not come back ({error})"
            gone = self._unbegun(plan, Verdict.COLLAPSED, reason, limited_by="device")
            return self._ended(gone, began, raised, device_error="")
        remarks = [*raised, *brought]
        # The check that it forwards may have used the four tuples.
        request = self.request(plan) if brought else request
        try:
            churn = None if plan.phase2 is None else plan.phase2.churn
            keeps = None if churn is None or self.device is None else kept_seconds(churn, self.device, self.settings)
            trial = with_expected(self.trial_run.perform(plan, request, keeps), keeps, self.settings)
        except SilentControlsError as error:
            return self._ended(self._unanswered(plan, error), began, raised, device_error=str(error))
        except UnreachableError as error:
            # Frames reached it before: it took the link down, or no longer answers ARP or neighbour solicitations.
            self.collapsed = True
            if not brought:
                return replace(self.measure(plan), gone_before=True)
            reason = f"the device had collapsed, came back, and can be reached no more ({error})"
            gone = self._unbegun(plan, Verdict.COLLAPSED, reason, limited_by="device")
            return self._ended(gone, began, remarks, device_error="")
        trial = judged(trial, self._limits)
        if trial.readings.device_error or _may_be_dead(trial):
            trial = judged(self._probed(trial), self._limits)
        return self._ended(trial, began, remarks, device_error=trial.readings.device_error or "")

    def _ended(self, trial: Trial, began: _Begin, remarks: Sequence[str], *, device_error: str) -> Trial:
        """Store a trial, keep what later trials use of it, and give up a device with silent controls, or a lost log.

        `device_error` is that of its controls; empty = they answered.
        """
        trial = self._with_commands(replace(trial, remarks=(*remarks, *trial.remarks)))
        if trial.result is not None:
            self._learn(trial)
        self._record(trial, began)
        log_error = trial.readings.log_error
        unread = "" if log_error is None or log_error.limited_by == "tester" else log_error.text
        self.silent = self.silent + 1 if (device_error or unread) and trial.verdict is Verdict.INVALID else 0
        if self.silent >= MOST_SILENT:
            if not device_error:
                raise BrokenError(f"in {self.silent} trials in a row the log was not compared; the last one: {unread}")
            raise BrokenError(
                f"the device's controls failed in {self.silent} trials in a row, although it forwards "
                f"({device_error}); see to the way on which it is controlled"
            )
        return trial

    def _record(self, trial: Trial, began: _Begin, **others: object) -> None:
        """Store a trial that has just ended; `others` replace fields of its record."""
        self.recorder.add_trial({**record_of(trial, began=began.at, seconds=began.seconds), **others})

    def periods(self, plan: TrialPlan, heard: Callable[[Period], bool]) -> tuple[Period, ...]:
        """Run one trial with several periods of phase 2, and record each period as a trial.

        A device that crashes may take a link of the tester down, which excuses all loss, and no single frames can be
        sent between periods. So it collapsed in each period from which nothing came back, from the one in which the
        link went down until a frame comes back.
        """
        if plan.phase2 is None:
            raise UsageError("periods: the trial has no phase 2")
        self._brought_back()
        self._fill(plan)
        gap_ms = pause_ms(self.trial_run.reading_seconds())
        # The first period begins after a pause, too.
        self._outlived(with_pauses(self.request(replace(plan, phase2=replace(plan.phase2, periods=1))), gap_ms))
        self._outlive_draws(plan, plan.phase2, gap_ms / 1000)
        self.number += 1
        periods: list[Period] = []
        length, first_ns = plan.phase2.seconds, 0
        link_lost = False
        began = _Begin()

        def seconds_of(wall_ns: int) -> float:
            nonlocal first_ns
            first_ns = first_ns or wall_ns
            return length + (wall_ns - first_ns) / 1e9

        def ended(trial: Trial) -> None:
            nonlocal began, link_lost
            link_lost = link_lost or bool(trial.readings.link_losses)
            self.collapsed = link_lost and _nothing_came(trial)
            if self.collapsed:
                trial = _read(trial, forwards=False)
            link_lost = self.collapsed or bool(trial.readings.link_losses)
            read = trial.readings
            trial = replace(self._with_commands(judged(_established(trial), self._limits)), readings=read)
            self.passed = plan if trial.verdict is Verdict.PASS else self.passed
            # The request is the same for all periods.
            self._record(trial, began, **({"request": None} if periods else {}))
            began = _Begin()
            self.asking.begin()
            periods.append(Period(trial, seconds_of(trial.counted.wall_ns), read.free_octets))
            if not heard(periods[-1]):
                raise _EnoughError

        self.asking.begin()
        with suppress(_EnoughError):
            self.trial_run.perform_periods(plan, with_pauses(self.request(plan), gap_ms), ended)
        return tuple(periods)

    def _fill(self, plan: TrialPlan) -> None:
        """Open a plan's connections where the device lacks most of them: a count that walks its table is slower then.

        Where all rates are given, no trial comes before.
        """
        device = self.device
        if plan.stateless or device is None or not device.counts:
            return
        # As any reading whose time is taken: where the controls are silent, the periods tell it.
        with suppress(SilentControlsError):
            if (self.asking(device.count) or 0) < FILLED_SHARE * plan.connections:
                self.number += 1
                opening = replace(plan, phase2=None)
                request = self.request(opening)
                self._outlived(request)
                self.trial_run.perform(opening, request)

    def _learn(self, trial: Trial) -> None:
        plan = trial.plan
        # The state of a device after a failed restart is not known.
        half_way = bool(trial.readings.device_error) and trial.restart is not None
        self.collapsed = trial.verdict is Verdict.COLLAPSED or half_way
        self.passed = plan if trial.verdict is Verdict.PASS else self.passed
        if self.place.placement == "shared":
            alone = plan.phase2 is None
            self.known_rates[alone] = learned(self.known_rates.get(alone), trial)

    def _with_commands(self, trial: Trial) -> Trial:
        """Return the trial with the number of failed tries of commands, and the time-out that was raised."""
        failures, remarks = self.asking.failures, trial.remarks
        if failures:
            tries = "1 try of a command" if len(failures) == 1 else f"{len(failures)} tries of commands"
            remarks = (*remarks, f"{tries} to the device failed, the last one with: {failures[-1]}")
        return replace(trial, command_failures=len(failures), raised_timeout=self.raised_timeout, remarks=remarks)

    def _unanswered(self, plan: TrialPlan, error: SilentControlsError) -> Trial:
        """Return a trial that could not begin because the device's controls are silent."""
        if not arrived_in_all(self._came_back()):
            raise error
        reason = f"the device did not answer its controls before the trial ({error}), although it forwards"
        return self._unbegun(plan, Verdict.INVALID, reason, limited_by="host")

    def _unbegun(self, plan: TrialPlan, verdict: Verdict, reason: str, *, limited_by: LimitedBy) -> Trial:
        placement = self.place.placement
        return Trial(plan, None, None, placement=placement, verdict=verdict, reason=reason, limited_by=limited_by)

    def time_receivers(self, plan: TrialPlan) -> ReceiverTime | None:
        """Return the receivers' run time in a trial of this plan, without a verdict; None = not known."""
        if self.collapsed:
            self.restart()
        self.number += 1
        request = self.request(plan).model_copy(update={"record_receiver_time": True})
        return self.trial_run.perform(plan, request).counted.receiver_time

    @property
    def _limits(self) -> Limits:
        tolerance = 0.0 if self.log is None else self.log.tolerance
        return Limits(self.settings.table_limit, self.traffic.space, tolerance)

    def _brought_back(self) -> list[str]:
        """Restart a device that collapsed, or wait until it recovers, and return a remark; none where it had not."""
        if not self.collapsed:
            return []
        try:
            self.restart()
        except UsageError as error:
            # The device cannot be restarted, so it has to recover by itself, and may need some time.
            self._recheck(error, RECHECK_SECONDS)
        except NatgaugeError as error:
            self._recheck(error, ())
        else:
            return ["the device was restarted before this trial, because it had collapsed"]
        return ["the device had collapsed and was not restarted, but answers and forwards again"]

    def _recheck(self, error: NatgaugeError, pauses: Sequence[float]) -> None:
        """Check whether a device that was not restarted works again, at once and after each pause.

        Where it does not, `error` is raised, or of a device without controls what the last check found.
        """
        for pause in (0.0, *pauses):
            self.sleep(pause)
            try:
                if self.device is not None:
                    self.asking(self.device.confirm_ready)
                self.check_forwarding()
            except NatgaugeError as found:
                error = found if self.device is None else error
            else:
                self.collapsed = False
                return
        raise error

    def _probed(self, trial: Trial) -> Trial:
        """Return the trial with `forwards` and `unprobed`, from single frames sent after the trial."""
        last = _last_phase(trial)
        try:
            if not trial.readings.device_error:
                trial = self._emptied_again(trial)
            back = self._came_back()
        except (BrokenError, HostError) as error:
            return _read(trial, unprobed=str(error))
        return _read(trial, forwards=any(back[stream].arrived for stream in last if stream in back))

    def _emptied_again(self, trial: Trial) -> Trial:
        """Empty the device's table to have room for single frames; failed controls are added to the trial."""
        try:
            # Where it is not empty, the device may still forward, which the frames show.
            with suppress(NotEmptyError):
                emptied(self.device, self.asking)
        except SilentControlsError as error:
            return _read(trial, device_error=str(error))
        return trial

    def _came_back(self) -> dict[Direction | None, StreamCounts]:
        """Send a few single frames, and return the counts by stream."""
        self.number += 1
        self._note_unlogged()
        try:
            return streams_of(self._run(self.request(self._handful), self.observer.running))
        except UnreachableError:
            # When a device is down, the tester's port may have no carrier, and then no frame can be sent.
            return {}

    def empty_timed(self) -> TearDown:
        """Empty the device's table with one command, timed on the device."""
        device = self._played()
        before = self.asking(device.count)
        seconds = device.empty_timed()
        return TearDown(seconds, before, self.asking(device.count))

    def watch_count(self, interval_seconds: float, longest_seconds: float) -> tuple[CountAt, ...]:
        """Read the device's count until it is 0 or the time is over."""
        device = self._played()
        readings: list[CountAt] = []
        began = time.monotonic()
        while True:
            count = self.asking(device.count)
            now = time.monotonic() - began
            if count is None:
                raise UsageError("the device does not report its number of connections; choose another metric")
            readings.append(CountAt(now, count))
            if count == 0 or now >= longest_seconds:
                return tuple(readings)
            time.sleep(max(0.0, len(readings) * interval_seconds - now))

    def own_delays(self, plan: TrialPlan) -> dict[Direction, Delays]:
        """Measure the tester's own delays in each active direction of phase 2."""
        if self.own is None or plan.phase2 is None:
            raise UsageError("the tester's own delay cannot be measured here")
        rates = {Direction.INITIATOR: plan.phase2.initiator_rate, Direction.RESPONDER: plan.phase2.responder_rate}
        # The cable carries one direction. With both directions the sender is as busy as with one of the sum of rates.
        total = sum(rates.values())
        seconds, batch = min(plan.phase2.seconds, _OWN_SECONDS), self._pacing(plan).batch
        # Frames that leave together wait for each other, here as in the trial.
        delays = self.own(total, seconds, batch=batch, variation=plan.record_variation)
        return {direction: delays for direction, rate in rates.items() if rate > 0}

    def costs(self, plan: RoundPlan) -> TimedRound:
        """Time the device's work for a frame, in one round of slices."""
        if self.slice_rounds is None:
            return Measurer.costs(self, plan)
        if self.collapsed:
            self.restart()
        self._note_unlogged()
        try:
            cost_round = self.slice_rounds.round(self, plan)
        except NatgaugeError:
            self._note_collapse()
            raise
        if cost_round.faults:
            self._note_collapse()
        return cost_round

    def _note_unlogged(self) -> None:
        """Note that frames are sent whose records no trial reads."""
        if self.log is not None:
            self.log.pending = True

    def _note_collapse(self) -> None:
        """Note that the device collapsed during slices, so that it is restarted before the next trial."""
        try:
            if self.device is not None:
                self.asking(self.device.confirm_ready)
        except NatgaugeError:
            self.collapsed = True

    def restart(self) -> None:
        """Restart the device, and check that it forwards."""
        self._played().restart()
        self.check_forwarding()
        self.collapsed = False

    def _played(self) -> DeviceControl:
        if self.device is None:
            raise UsageError(NOT_OURS)
        return self.device

    @property
    def _handful(self) -> TrialPlan:
        return forwarding.probe(self.traffic.connections, "aaaa" if self.settings.answers else None)

    def check_forwarding(self, *, store: bool = False) -> None:
        """Prove that the device forwards a handful of frames in each direction once each, then empty its table again.

        A device may lose a frame now and then, and how many is what the trials are for. So where some of each stream
        came back but not all, another handful is sent. The handful that proves the contrary is stored as a trial where
        `store` is true, so that it can be explained.
        """
        plan = self._handful
        for tried in range(1, forwarding.HANDFULS + 1):
            request, began = self.request(plan), _Begin()
            # No device forwards the self-test's frames, one a sender: where they are counted shows when nothing else is
            # dropped.
            self.trial_run.own = Own({}, {})
            trial = self.trial_run.perform(plan, request)
            drops = {place: min(count, len(request.senders.cpus)) for place, count in trial.readings.dropped.items()}
            # Some drivers (igb, vmxnet3) take the link down when a program is attached or detached.
            self.trial_run.own = Own(drops, trial.readings.link_losses)
            emptied(self.device, self.asking)
            try:
                last, faults = tried == forwarding.HANDFULS, trial.readings.faults
                forwards = forwarding.whole(trial.counted, last=last, faults=faults, stateless=plan.stateless)
            except BrokenError as error:
                before = {place: count + drops[place] for place, count in trial.readings.dropped_before.items()}
                trial = _read(trial, dropped_before=before)
                trial = judged(trial, self._limits)
                if store:
                    self._record(trial, began)
                raise forwarding.NotForwardedError(error, trial.cause) from error
            if forwards:
                if self.log is not None:
                    self.log.refuse_empty(trial.readings)
                return
            self.number += 1

    def check_subscribers(self) -> None:
        """Prove that the device forwards for each of its subscribers, and stays in the subscriber's port set.

        It does nothing without subscribers; and nothing for a single one before a Responder in IPv4, because every
        other frame is a frame of this subscriber, too.
        """
        traffic = self.traffic
        sets = traffic.tested_edges or traffic.edges
        if sets is None or (traffic.sources == 1 and self.settings.responder_family == "ipv4"):
            return

        def tried(first: int, number: int) -> forwarding.Missing:
            self.number += 1
            part = forwarding.traffic_of(traffic, first, number, self.settings.seed)
            plan = forwarding.trial_of_each(number)
            trial = self.trial_run.perform(plan, self.request(plan, part))
            emptied(self.device, self.asking)
            return forwarding.missing_of(trial.counted, trial.readings.faults)

        most = min(forwarding.MOST_SUBSCRIBERS, traffic.connections)
        forwarding.check_each(sets, traffic.sources, most, tried)

    def request(self, plan: TrialPlan, traffic: TrafficPlan | None = None) -> TrialRequest:
        """The engine's request for a trial of this plan and traffic; each trial's frames carry the next run mark."""
        requests = Requests(self.settings, traffic or self.traffic, self.place.initiator, self.place.responder)
        return requests.of(plan, self.number, self._pacing(plan))

    def _pacing(self, plan: TrialPlan) -> Pacing:
        return pacing(plan, self.place.placement, self.settings.ring, self.known_rates.get(plan.phase2 is None))

    def _run(self, request: TrialRequest, progress: Callable[[Progress], None]) -> TrialResult:
        return self.runner(request, progress, longest_seconds(request) + SLACK_SECONDS)

    def _outlived(self, request: TrialRequest) -> list[str]:
        """Raise the device's UDP time-out where it is too short for a trial; return a remark on that.

        No entry may expire while it is needed (RFC 9693 section 4.4).
        """
        timeout, seconds = self.settings.udp_timeout, needed_seconds(request)
        if timeout is None or request.phase1 is None or seconds < timeout:
            return []
        if not self._raise_timeout(seconds):
            raise OutlastingError(
                f"UDP timeout: a trial with phase 1 at {written(request.phase1.rate)} connections/s takes "
                f"{seconds:.1f} s, but the device forgets connections after {timeout} s; give it a longer time-out "
                "if it can have one (--udp-timeout; on a wire by its own means), or fewer connections",
                at="udp_timeout",
            )
        raised = self.settings.udp_timeout
        return [f"the device's UDP time-out was raised from {timeout} to {raised} s, because this trial takes longer"]

    def _raise_timeout(self, seconds: float) -> bool:
        """Raise the device's UDP time-out above `seconds`; return false where natgauge cannot or may not raise it."""
        raised = None if self.device is None else self.device.outlive(seconds)
        if raised is not None:
            self.settings, self.raised_timeout = replace(self.settings, udp_timeout=raised), raised
        return raised is not None

    def _outlive_draws(self, plan: TrialPlan, phase2: Phase2Plan, pause: float) -> None:
        """Raise the device's time-out where a connection of a trial of many periods may get no frame for so long.

        Phase 2 draws connections at random: a connection gets no frame for `IDLE_DRAWS` * N / rate with a probability
        of exp(-`IDLE_DRAWS`). Between periods there is a `pause` without frames, in s.
        """
        timeout, rate = self.settings.udp_timeout, phase2.initiator_rate + phase2.responder_rate
        idle = IDLE_DRAWS * plan.connections / rate * (1 + pause / phase2.seconds)
        if timeout is not None and not plan.stateless and idle >= timeout and not self._raise_timeout(idle):
            raise UsageError(
                f"UDP timeout: {written(rate)} frames/s may leave one of {plan.connections} connections without a "
                f"frame for {idle:.0f} s, but the device forgets connections after {timeout} s; give it a longer "
                "time-out (--udp-timeout; on a wire by its own means), fewer connections or more load",
                at="udp_timeout",
            )


class _EnoughError(Exception):
    """The caller of a trial of several periods has heard enough."""


def _read(trial: Trial, **others: Any) -> Trial:
    return replace(trial, readings=replace(trial.readings, **others))


def _established(trial: Trial) -> Trial:
    """The trial with a count that agrees with phase 1.

    The procedure compares the count of each period with those of the other periods.
    """
    count = None if trial.readings.count_after is None else trial.stored
    return _read(trial, count_after=count, device_error=None)


def _may_be_dead(trial: Trial) -> bool:
    """Whether single frames must show if the device forwards: it lost the whole last phase, or lost frames with a link.

    A device that crashes may take the link down, which excuses all loss.
    """
    if trial.readings.link_losses and trial.plan.restart_at_seconds is None:
        return trial.verdict is not Verdict.PASS
    return trial.verdict is Verdict.FAIL and _nothing_came(trial)


def _nothing_came(trial: Trial) -> bool:
    """Whether no frame of the last phase came back; segments that the device changed arrived all the same."""
    return not arrived_in_all(_last_phase(trial)) and not signs_of(trial.counted)


def _last_phase(trial: Trial) -> Mapping[Direction | None, StreamCounts]:
    return dict(trial.phase2.items()) or {None: trial.phase1}
