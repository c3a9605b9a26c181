# SPDX-License-Identifier: Apache-2.0
"""One run of the engine through the device, the reports of device and lab before and after it, and its verdict.

The verdict has remarks on what was seen beside it, such as what a device does to TCP. The tester's segments carry their
connection in the sequence numbers (`bpf/tcp.h`). A device that changes these numbers, or that opens connections itself,
cannot be measured, and is named.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple, Self

from natgauge.agreement.generated import MessageCounts, Progress, TrialRequest, TrialResult
from natgauge.agreement.trial import nominal_seconds
from natgauge.device_work import LEAST_CONNECTIONS, CoreWork, ObjectCaches, WorkByCore, octets_per_connection
from natgauge.errors import BrokenError, NatgaugeError, UsageError
from natgauge.figure_text import with_noun
from natgauge.host.capabilities import ControlGroups, Throttling
from natgauge.labs.common.links import carrier_losses
from natgauge.labs.common.shell import run_of_user
from natgauge.labs.contract import TESTER_PLACES, LabCounters, NetworkCounters, Port
from natgauge.labs.wire.port_state import counts_taken
from natgauge.readings import CountInChurn, Energy, EnergyOfTrial, LogCounts, LogError, Meter, Readings
from natgauge.trial.connection_log import ConnectionLog, LoggedTrial, logged_trial
from natgauge.trial.controls import CommandRetries, DeviceControl, Place, ServerControl, counted
from natgauge.trials import Restart, Trial, TrialPlan, arrived_in_all, streams_of
from natgauge.verdicts import Limits, judge
from natgauge.words import origin

#: Refusal of a command to an external device.
NOT_OURS: Final = "natgauge does not control this device and cannot do that; choose another metric"
#: Longest reading of a power meter.
_METER_SECONDS: Final = 10.0
#: A trial may last so much longer than planned.
_LATE_SECONDS: Final = 2.0
#: Longest time of a reset command after the trial's end.
_COMMAND_SECONDS: Final = 120.0


def signs_of(result: TrialResult) -> tuple[str, ...]:
    """Return what the tester's segments say of the device, each with its number; empty without phase 1 with TCP."""
    initiator, responder = result.ports.initiator.device_signs, result.ports.responder.device_signs
    if initiator is None or responder is None or result.phase1 is None:
        return ()
    opening, *reactions = result.phase1.messages
    # The Responder answers each SYN that it receives once, where it answers SYNs at once.
    answered, wrong = (reactions[0].received, reactions[0].wrong) if reactions else (0, 0)
    copies = max(0, answered - opening.received)
    # A SYN proxy cannot know the Responder's sequence number, so one with the right number is a copy.
    own = min(wrong, max(0, answered + wrong - opening.received))
    changed = initiator.renumbered + responder.renumbered + wrong - own
    signs = (
        (copies, "more SYN-ACKs arrived than the Responder sent: the gateway duplicates them"),
        (own, "SYN-ACKs were not the Responder's: the gateway answered SYNs itself, as a SYN proxy does"),
        (initiator.resets, "resets arrived at the Initiator: the gateway refuses connections"),
        (responder.resets, "resets arrived at the Responder: the gateway refuses connections"),
        (changed, "segments arrived with other sequence numbers: the gateway changes them"),
        (
            initiator.restamped,
            "SYN-ACKs arrived with other time stamps: the gateway changes them, so delays by TCP are not known",
        ),
    )
    return tuple(f"{number} {means}" for number, means in signs if number)


def judged(trial: Trial, limits: Limits) -> Trial:
    """Return the trial with its verdict, and with remarks on what was seen beside it."""
    trial = judge(trial, limits)
    return replace(trial, remarks=(*trial.remarks, *_remarks(trial), *signs_of(trial.counted)))


def _remarks(trial: Trial) -> Iterator[str]:
    for who, faults in (("device", trial.readings.faults), ("server", trial.readings.server_refused)):
        yield from (f"the {who} counted {number} x {name}" for name, number in faults.items() if number > 0)
    for direction, counts in trial.phase2.items():
        sent, received = counts.background_frames or 0, counts.background_received or 0
        if received < sent:
            yield f"{sent - received} of {sent} background frames {origin(direction)} were lost"
    queries = trial.counted.ports.initiator.queries
    if queries is not None and queries.answered < queries.sent:
        yield f"{queries.sent - queries.answered} of {queries.sent} management queries were not answered"
    # Connections that the device gave up and made again, which RFC 9693 section 4.10 lets pass.
    if remapped := trial.counted.state_table.remapped:
        yield (
            f"{with_noun(remapped, 'frames of established connections')} came with another outside address or port: "
            "the gateway had forgotten the connections, and made them again"
        )
    for counts in trial.streams:
        if len(counts.messages) > 1 and counts.lost:
            yield (
                f"{counts.lost} of {counts.offered_frames} exchanges of messages were not completed right and in time "
                f"({'; '.join(map(_arrived, counts.messages))}; {counts.late} late)"
            )
    # Frames at the tester's ports that were not the trial's, where they are more than usual.
    if trial.other_traffic.is_doubted:
        for name, port in trial.ports.items():
            yield f"{port.foreign} frames at the {name}'s port were not the trial's"


def _arrived(message: MessageCounts) -> str:
    wrong = f", {message.wrong} with wrong content" if message.wrong else ""
    return f"{message.name}: {message.received} received{wrong}"


class _EngineTime:
    """Tells how long ago the engine printed a line, and began phase 2, by natgauge's clock.

    A line may wait until natgauge reads it. The engine's own time is in each line, and the line that waited least
    shows what that is in natgauge's time.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._began = clock, math.inf
        self._phase2_began: float | None = None

    @property
    def in_phase2(self) -> float | None:
        """Seconds since phase 2 began; None = it has not."""
        return None if self._phase2_began is None else self._clock() - self._phase2_began

    def take(self, progress: Progress) -> None:
        """Take a line when it is read; each must be."""
        self._began = min(self._began, self._clock() - progress.seconds)
        if progress.phase == "phase2" and self._phase2_began is None:
            self._phase2_began = self._began + progress.seconds

    def since(self, progress: Progress) -> float:
        return self._clock() - (self._began + progress.seconds)


class RestartInTrial:
    """Calls `act`, such as a restart, at a given time of phase 2. Use it as a context manager around the engine's run.

    When the `with` block ends, for any reason, `act` has ended or will not begin: nothing else may use the device
    during `act`.
    """

    def __init__(self, act: Callable[[], object], seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare to act so many seconds after the start of phase 2."""
        self._act = act
        self._timer = threading.Timer(seconds, self._restart)
        self._timer.daemon = True
        self._time = _EngineTime(clock)
        self._restarted: Restart | None = None
        self._error: Exception | None = None

    @property
    def said(self) -> str:
        """Error message of a device that did not become ready again; empty where it did."""
        return str(self._error) if isinstance(self._error, BrokenError) else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._timer.ident is None:
            return
        try:
            self._timer.join()
        except BaseException:
            # A second Ctrl-C: the device must not be undone while it is being started.
            self._timer.join()
            raise

    def take(self, progress: Progress) -> None:
        """Start the time when phase 2 begins: the engine reports that at once."""
        self._time.take(progress)
        if self._time.in_phase2 is not None and self._timer.ident is None:
            self._timer.interval -= self._time.in_phase2
            self._timer.start()

    def ended(self) -> Restart:
        """Return the times of the restart, also of a failed restart (see `said`); valid after the `with` block."""
        if self._error is not None and not self.said:
            raise self._error
        if self._restarted is None:
            raise BrokenError("trial: the device was not restarted, because phase 2 was over before or never began")
        return self._restarted

    def _restart(self) -> None:
        began = self._seconds()
        try:
            self._act()
        except Exception as error:  # noqa: BLE001 - it is raised again where the trial is judged
            self._error = error
        self._restarted = Restart(began, self._seconds())

    def _seconds(self) -> float:
        return self._time.in_phase2 or 0.0


def meter_of(command: str) -> Meter:
    """Return what reads a power meter by a command of the user."""
    return lambda: run_of_user(command, _METER_SECONDS, "power command").stdout


class _LabState(NamedTuple):
    """Counters of the lab, losses of its links by port, and the throttling of this host, at one time."""

    counters: LabCounters
    links: Mapping[str, int]
    throttled: Throttling


class Own(NamedTuple):
    """What the engine itself causes: dropped frames of its self-test by place, and losses of links by port."""

    drops: Mapping[str, int]
    links: Mapping[str, int]


@dataclass(slots=True)
class TrialRun:
    """Runs trials.

    Attributes:
        device: controls of the device; None = it cannot be reached.
        server: the real server behind the device; None = the tester answers.
        meter: what reads the device's power meter; None = there is none. `metered` tells that a trial has read it.
        log: the device's log; None = it does not log.
        clock: monotonic clock, seconds.
    """

    place: Place
    device: DeviceControl | None
    server: ServerControl | None
    asking: CommandRetries
    run: Callable[[TrialRequest, Callable[[Progress], None]], TrialResult]
    progress: Callable[[Progress], None]
    own: Own = field(default_factory=lambda: Own({}, {}))
    meter: Meter | None = None
    metered: bool = False
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    throttling: Callable[[], Throttling] = ControlGroups().throttling
    log: ConnectionLog | None = None
    _taken: Sequence[str] | None = field(default=None, init=False)

    def perform(self, plan: TrialPlan, request: TrialRequest, keeps: float | None = None) -> Trial:
        """Empty the device's table, run the engine, and read the counters of device and lab, and the device's log.

        `keeps` is the shortest time for which the device keeps a connection that leaves, in s; None = not known.
        """
        # Frames of phase 2 open connections again after a restart, of which the tester has no list.
        with logged_trial(self.log if plan.restart_at_seconds is None else None, request) as logged:
            count_before = self._emptied(plan, logged)
            faults_before = {} if self.device is None else self.asking(self.device.faults)
            refused_before = self._refused()
            memory_before = self._memory(request)
            before = self._lab_state()
            times = _EngineTime(time.monotonic)
            with nullcontext() if self.meter is None else EnergyOfTrial(self.meter, is_proven=self.metered) as metered:
                if plan.restart_at_seconds is None:
                    result, restart, error = self.run(logged.request, self._telling(times)), None, ""
                else:
                    result, restart, error = self._run_restarting(plan, request, plan.restart_at_seconds)
            self.metered = metered is not None
            energy: Energy | None = None if metered is None else metered.energy()
            in_churn = self._counted_in_churn(plan, request, times, keeps)
            after = self._lab_state()
            if self.server is not None:
                self.server.confirm_ready()
            readings = replace(
                self._of_lab(before, after),
                count_before=count_before,
                server_refused={cause: n - refused_before.get(cause, 0) for cause, n in self._refused().items()},
                energy=energy,
                count_in_churn=in_churn,
            )
            if self.device is not None and not error:
                try:
                    readings = self._with_report(readings, self.device, request, result, memory_before)
                except NatgaugeError as failed:
                    error = str(failed)
            if not error:
                log, log_error = logged.compared(result)
                readings = replace(readings, log=log, log_error=log_error)
            faults = {name: number - faults_before.get(name, 0) for name, number in readings.faults.items()}
            readings = replace(readings, faults=faults, device_error=None if self.device is None else error)
            return Trial(plan, request, result, readings, restart, placement=self.place.placement)

    def perform_periods(self, plan: TrialPlan, request: TrialRequest, ended: Callable[[Trial], None]) -> None:
        """Empty the device's table and run a trial of several periods.

        The counters of device and lab are read in the pause after each period. If a reading outlasts the pause, the
        next period has `read_late_seconds`. A device that does not answer does not end the trial: its count and memory
        are then not known. `ended` is called with each period as a trial of its own; an exception that it raises ends
        the trial.
        """
        with logged_trial(self.log, request) as logged:
            count_before = self._emptied(plan, logged)
            state, periods, number = self._lab_state(), 1 if plan.phase2 is None else plan.phase2.periods, 0
            times, pause, overrun = _EngineTime(self.clock), request.gap_ms / 1000, 0.0

            def period(
                result: TrialResult,
                line: Progress | None,
                log: LogCounts | None = None,
                log_error: LogError | None = None,
            ) -> None:
                nonlocal state, number, overrun
                before, state, number = state, self._lab_state(), number + 1
                count, free_octets, error = self._resources()
                changed = self._found_changed()
                late, overrun = overrun, 0.0 if line is None else max(0.0, times.since(line) - pause)
                readings = replace(
                    self._of_lab(before, state, is_first=number == 1, is_last=number == periods),
                    count_before=count_before,
                    count_after=count,
                    device_error=error,
                    found_changed=changed,
                    free_octets=free_octets,
                    read_late_seconds=late,
                    log=log,
                    log_error=log_error,
                )
                ended(Trial(plan, request, result, readings, placement=self.place.placement))

            def report(progress: Progress) -> None:
                times.take(progress)
                if progress.period is None:
                    self.progress(progress)
                else:
                    period(progress.period, progress)

            # Connections open before the first period, and their list is written after the last.
            last = self.run(logged.request, report)
            period(last, None, *logged.compared(last))

    def _emptied(self, plan: TrialPlan, logged: LoggedTrial) -> int | None:
        """Empty the device's table, then its log; return its count, as `emptied`."""
        count = emptied(self.device, self.asking)
        if plan.settle_seconds:
            self.sleep(plan.settle_seconds)
        logged.begin()
        return count

    def reading_seconds(self) -> float:
        """Read device and lab as after a period, and return how long that takes, in s."""
        began = self.clock()
        self._lab_state()
        self._resources()
        self._found_changed()
        return self.clock() - began

    def _resources(self) -> tuple[int | None, int | None, str | None]:
        """Return the device's count, the available memory of its machine, and the error of its controls."""
        if self.device is None:
            return None, None, None
        try:
            return self.device.count(), self.device.free_octets(), ""
        except NatgaugeError as error:
            self.asking.failures.append(str(error))
            return None, None, str(error)

    def _found_changed(self) -> str:
        """Return the setting that others changed; empty where that cannot be found out, which the outcome reports."""
        return "" if self.device is None else self.asking.once(self.device.found_changed, "")

    def _counted_in_churn(
        self, plan: TrialPlan, request: TrialRequest, times: _EngineTime, keeps: float | None
    ) -> CountInChurn | None:
        """Return the device's count after a phase 2 with churn; None = it is not known."""
        phase2, elapsed = plan.phase2, times.in_phase2
        if phase2 is None or phase2.churn is None or elapsed is None or self.device is None or not self.device.counts:
            return None
        # Since the first connection was opened; a power meter may have taken its time.
        lasts = nominal_seconds(request) - phase2.seconds + elapsed + _LATE_SECONDS
        expires = keeps is None or lasts >= keeps
        return counted(phase2, self.device, self.asking, began=time.monotonic() - elapsed, expires=expires)

    def _restarting(self, plan: TrialPlan) -> Callable[[], object]:
        """Return what restarts the device: natgauge, or a command of the user's."""
        if plan.restart_command is not None:
            longest = _COMMAND_SECONDS + (plan.phase2.seconds if plan.phase2 else 0.0)
            own = [device.environment for device in self.place.devices]
            variables = {**os.environ, **(own[0] if own else {})}
            return partial(run_of_user, plan.restart_command, longest, "reset command", variables)
        if self.device is None:
            raise UsageError(NOT_OURS)
        return self.device.restart_under_load

    def _run_restarting(
        self, plan: TrialPlan, request: TrialRequest, seconds: float
    ) -> tuple[TrialResult, Restart, str]:
        """Run a trial with a restart; the last value is the error of a device that did not become ready again."""
        with RestartInTrial(self._restarting(plan), seconds) as restarting:
            result = self.run(request, self._telling(restarting))
        return result, restarting.ended(), restarting.said

    def _telling(self, taker: _EngineTime | RestartInTrial) -> Callable[[Progress], None]:
        """Return what hears the engine's lines: it passes each to `taker`, and then on."""

        def report(progress: Progress) -> None:
            taker.take(progress)
            self.progress(progress)

        return report

    def _refused(self) -> Mapping[str, int]:
        return {} if self.server is None else self.server.refused()

    def _counters(self) -> LabCounters:
        """Return the lab's counters, with the drops at the device's places alone.

        The engine's result has the drops at the tester's own ports. The outcome reports a failure to read the work.
        """
        counters = self.place.counters()
        if counters.error:
            self.asking.failures.append(counters.error)
        at_devices = {name: frames for name, frames in counters.dropped.items() if not name.startswith(TESTER_PLACES)}
        return replace(counters, dropped=at_devices)

    @property
    def _ports(self) -> Mapping[str, Port]:
        """The tester's own ports, by the names that readings have for them."""
        return {"Initiator": self.place.initiator, "Responder": self.place.responder}

    def _counts_taken(self) -> Sequence[str]:
        """Return the ports whose drivers count what receivers took; a driver is asked once, not after each trial."""
        if self._taken is None:
            self._taken = [name for name, port in self._ports.items() if counts_taken(port.netns, port.interface)]
        return self._taken

    def _lab_state(self) -> _LabState:
        links = {name: carrier_losses(port.netns, port.interface) for name, port in self._ports.items()}
        return _LabState(self._counters(), links, self.throttling())

    def _of_lab(self, before: _LabState, after: _LabState, *, is_first: bool = True, is_last: bool = True) -> Readings:
        """Return what changed in the lab in a period, besides what the engine itself causes.

        It tests itself and attaches its programs before the first period, and detaches them after the last one.
        """
        drops = self.own.drops if is_first else {}
        links = {name: is_first * (n - n // 2) + is_last * (n // 2) for name, n in self.own.links.items()}
        lost = {name: n - before.links[name] - links.get(name, 0) for name, n in after.links.items()}
        dropped = after.counters.dropped
        return Readings(
            dropped_before={
                place: count + min(drops.get(place, 0), max(dropped.get(place, count) - count, 0))
                for place, count in before.counters.dropped.items()
            },
            dropped_after=dropped,
            core_work=since(before.counters.core_work, after.counters.core_work),
            network_counters=_risen(before.counters.network, after.counters.network),
            taps=self.place.initiator.tap,
            counts_taken=self._counts_taken(),
            link_losses={name: number for name, number in lost.items() if number > 0},
            throttled_seconds=after.throttled.since(before.throttled).seconds,
        )

    def _memory(self, request: TrialRequest) -> ObjectCaches:
        """Return the object caches of the kernel that holds the table, if the trial fills it enough to show them."""
        fills = request.phase1 is not None and request.connections >= LEAST_CONNECTIONS
        return self.asking.once(self.device.object_caches, {}) if fills and self.device is not None else {}

    def _with_report(
        self,
        readings: Readings,
        device: DeviceControl,
        request: TrialRequest,
        result: TrialResult,
        memory_before: ObjectCaches,
    ) -> Readings:
        """Read the device's report after a trial, too; `memory_before` = object caches with an empty table.

        Its time-outs were checked before: they are longer than both phases. A device whose controls answer although it
        has collapsed is detected when no frame returns.
        """
        if not arrived_in_all(streams_of(result)):
            self.asking(device.confirm_ready)
        count, strays = self.asking(device.count), self.asking(device.strays)
        after: ObjectCaches = self.asking.once(device.object_caches, {}) if memory_before else {}
        return replace(
            readings,
            count_after=count,
            strays=strays,
            octets_per_connection=octets_per_connection(memory_before, after, count or 0, _kept_once(request)),
            established=self.asking(device.count_established) if request.frame.transport == "tcp" else None,
            found_changed=self.asking(device.found_changed),
            faults=self.asking(device.faults),
        )


def _kept_once(request: TrialRequest) -> int:
    """Return the number of connections that a trial opens and the device keeps; 0 = not known."""
    churns = request.phase2 is not None and request.phase2.churn is not None
    return 0 if churns or request.order == "with-replacement" else request.connections


def emptied(device: DeviceControl | None, asking: CommandRetries) -> int | None:
    """Empty the device's table before a trial (RFC 9693 section 4.4); return its count then, None = no controls."""
    if device is None:
        return None
    asking(device.empty)
    return asking(device.count)


def since(before: WorkByCore, after: WorkByCore) -> dict[int, CoreWork]:
    """Return the work between two readings; empty where a core is missing or its counts fell (it was rebooted)."""
    by_core: dict[int, CoreWork] = {}
    for core, end in after.items():
        begin = before.get(core)
        if begin is None or end.frames < begin.frames:
            return {}
        seconds = None
        if end.busy_seconds is not None and begin.busy_seconds is not None:
            seconds = max(0.0, end.busy_seconds - begin.busy_seconds)
        by_core[core] = CoreWork(end.frames - begin.frames, seconds, end.devices)
    return by_core


def _risen(before: NetworkCounters | None, after: NetworkCounters | None) -> NetworkCounters | None:
    """Return the counters of the network stacks that rose between two readings, by how much; None = one is missing."""
    if before is None or after is None:
        return None
    return {
        device: {name: rise for name, count in now.items() if (rise := count - earlier.get(name, 0)) > 0}
        for device, now in after.items()
        for earlier in [before.get(device, {})]
    }
