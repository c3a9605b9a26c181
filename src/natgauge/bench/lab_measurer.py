# SPDX-License-Identifier: Apache-2.0
"""The real measurer: performs a procedure's trials on one device in one lab, with the engine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Protocol, runtime_checkable

from natgauge.bench.restart import RestartInTrial
from natgauge.bench.traffic import Addresses, TrafficPlan
from natgauge.bench.watch import Silent, Watch
from natgauge.counts import counts_of, delays_by_direction, facts_of, phase2_counts, stalls_of
from natgauge.errors import BrokenError, NatgaugeError, UsageError
from natgauge.labs.base import Port
from natgauge.measurer import (
    Ability,
    CountAt,
    Counts,
    Delays,
    Direction,
    Measurer,
    Phase2Plan,
    Restart,
    TearDown,
    TrialOutcome,
    TrialPlan,
)
from natgauge.trials import (
    AddressRange,
    Background,
    DelaySamples,
    Frame,
    GatewaySide,
    InitiatorSide,
    InitiatorStream,
    Limits,
    Phase1,
    Phase2,
    PortCounters,
    PortRange,
    Progress,
    ResponderSide,
    ResponderStream,
    Senders,
    Step,
    StreamCounts,
    Translation,
    TrialRequest,
    TrialResult,
    phase1_of,
    run,
)
from natgauge.verdicts import Judgement, TrialEvidence, judge
from natgauge.words import Family, Placement

#: Frames each way that prove that the device forwards at all, and their rate: slow enough for any device.
_PROBES: Final = 8
_PROBE_RATE: Final = 100.0
#: Beyond twice its nominal length a trial is broken off after this many seconds more.
_SLACK_SECONDS: Final = 60.0
_GAP_MS: Final = 100
#: The tester's own delay is looked at for no longer than this.
_OWN_SECONDS: Final = 2.0
#: What this tester can do beyond plain trials, whatever the device.
TESTER_ABILITIES: Final = frozenset(
    {Ability.VARIATION, Ability.LOSS_TIMES, Ability.RATE_STEP, Ability.TAGGED_DELAYS, Ability.STATELESS}
)
#: And in a lab of ours, where the device is played by a recipe that can.
ABILITIES: Final = TESTER_ABILITIES | {
    Ability.EMPTY_TIMED,
    Ability.WATCH_COUNT,
    Ability.RESTART,
    Ability.RESTART_IN_TRIAL,
    Ability.OWN_DELAYS,
    Ability.BACKGROUND,
}
#: Foreground and background frames alternate in a pattern no longer than this.
_MOST_MIXED: Final = 1000
#: Stands for phase 1 in trials that have none.
_NO_FRAMES: Final = Counts(intended=0, offered=0, received=0)
#: How labs name the tester's own ports.
_TESTER_PLACES: Final = ("initiator port", "responder port")


class Place(Protocol):
    """What the measurer needs of a lab."""

    placement: Placement
    initiator: Port
    responder: Port

    def dropped(self) -> Mapping[str, int]:
        """Frames dropped so far at places of the lab."""


class TableControl(Protocol):
    """What the measurer needs of a device."""

    def empty(self) -> None:
        """Empty the connection tracking table.

        Raises:
            BrokenError: it is not empty afterwards.
        """

    def count(self) -> int | None:
        """Connections in the table; None where the device cannot tell."""

    def faults(self) -> Mapping[str, int]:
        """Frames the device refused so far, by its own names of causes; empty when it cannot tell."""


@runtime_checkable
class PlayedDevice(TableControl, Protocol):
    """A device that a recipe plays: it can be timed and restarted."""

    @property
    def empties(self) -> bool:
        """Whether it has connections to forget."""

    @property
    def counts(self) -> bool:
        """Whether it tells how many it has."""

    def empty_timed(self) -> float:
        """Empty the table with one command; its seconds, as timed on the device.

        Raises:
            BrokenError: the command fails.
        """

    def restart(self) -> None:
        """Start the device anew with the same settings.

        Raises:
            BrokenError: it does not come back.
        """

    def restart_under_load(self) -> None:
        """Stop and start the device while frames flow.

        Raises:
            BrokenError: it does not come back.
        """


@dataclass(frozen=True, slots=True)
class TrialConstants:
    """What is the same for every trial of a measurement.

    Attributes:
        initiator_family: of the Initiator's port.
        responder_family: of the Responder's port.
        translated: whether the device replaces the Initiator's source.
        pool: outside addresses the device may use; None = not checked.
        sender_cpus: the tester's sending CPUs.
        watch_cpus: the device's other CPUs, whose stalls are recorded.
        seed: of all pseudorandom choices: same seed, same frames.
        first_mark: run mark of the first trial, 1 to 2**32 - 1; each trial takes the next one.
        grace_seconds: wait for the last frames of each phase (RFC 2544 section 23 wants 2 s on a wire).
        table_limit: the most connections the device is set to hold; None where unknown.
        udp_timeout: seconds after which the device forgets a connection; None where unknown.
        highest_phase1_rate: the tester's own, frames/s.
        highest_phase2_rate: the tester's own, frames/s, all directions together.
        batch: frames that leave together; None = the engine's choice.
        background: the tester's hosts of native IPv6 on the Initiator's and the Responder's side; None = the device
            does not route it.
    """

    initiator_family: Family
    responder_family: Family
    translated: bool
    pool: Addresses | None
    sender_cpus: tuple[int, ...]
    watch_cpus: tuple[int, ...]
    seed: int
    first_mark: int
    grace_seconds: float
    table_limit: int | None
    udp_timeout: int | None
    highest_phase1_rate: float
    highest_phase2_rate: float
    batch: int | None = None
    background: tuple[Addresses, Addresses] | None = None


class Recorder(Protocol):
    """Where trials are written as they end."""

    def add_trial(self, trial: Mapping[str, object]) -> None:
        """Keep one trial."""


class OwnDelays(Protocol):
    """Measures the tester's own delays."""

    def __call__(self, rate: float, seconds: float, *, variation: bool) -> Delays:
        """Send at this rate, in frames/s, for so long; with the differences between delays, or without.

        Raises:
            NatgaugeError: it could not be measured.
        """


@dataclass(slots=True)
class _Evidence:
    """What one trial left, before it is judged."""

    result: TrialResult
    count_before: int | None
    count_after: int | None
    dropped_before: Mapping[str, int]
    dropped_after: Mapping[str, int]
    faults: Mapping[str, int]
    device_error: str
    restart: Restart | None


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
    """

    place: Place
    device: TableControl | None
    traffic: TrafficPlan
    settings: TrialConstants
    recorder: Recorder
    watch: Watch = field(default_factory=Silent)
    phase1_only: bool = False
    runner: Runner = _run_engine
    number: int = 0
    own: OwnDelays | None = None

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it can do beyond plain trials with this device."""
        device = self.device
        found = TESTER_ABILITIES | (set() if self.own is None else {Ability.OWN_DELAYS})
        found |= set() if self.settings.background is None else {Ability.BACKGROUND}
        if not isinstance(device, PlayedDevice):
            return found
        found |= {Ability.RESTART, Ability.RESTART_IN_TRIAL}
        found |= {Ability.EMPTY_TIMED} if device.empties else set()
        found |= {Ability.WATCH_COUNT} if device.counts else set()
        return found

    @property
    def highest_rate(self) -> float:
        """The tester's own highest rate in frames/s, all directions together."""
        return self.settings.highest_phase1_rate if self.phase1_only else self.settings.highest_phase2_rate

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """Run one trial.

        Raises:
            UsageError: the device would forget connections before the trial's end, or the trial is stateless and the
                device is not.
            NatgaugeError: it could not be run at all.
        """
        self.number += 1
        request = self.request(plan)
        self._refuse_long(request)
        began = time.time()
        evidence = self._perform(request, plan.restart_at_seconds)
        outcome = self._judged(plan, evidence)
        self._record(plan, request, evidence, outcome, began)
        return outcome

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

    def restart(self) -> None:
        """Start the device anew, and see that it forwards.

        Raises:
            UsageError: the device cannot be told to.
            BrokenError: it does not come back.
        """
        self._played().restart()
        self.check_forwarding()

    def _played(self) -> PlayedDevice:
        if not isinstance(self.device, PlayedDevice):
            raise UsageError("this device is not ours, so it cannot be told to do that; choose another metric")
        return self.device

    def check_forwarding(self) -> None:
        """Prove with a handful of frames each way that the device forwards, then empty its table again.

        Raises:
            BrokenError: frames are lost or come back wrong; the message says which way and how many.
        """
        connections = min(_PROBES, self.traffic.connections)
        probe = Phase2Plan(_PROBE_RATE, _PROBE_RATE, connections / _PROBE_RATE)
        request = self.request(TrialPlan(connections, _PROBE_RATE, probe))
        result = self._perform(request).result
        self._empty()
        phase2 = result.phase2
        streams = {
            "phase 1, Initiator to Responder": phase1_of(result),
            "phase 2, Initiator to Responder": phase2.initiator if phase2 else None,
            "phase 2, Responder to Initiator": phase2.responder if phase2 else None,
        }
        for name, counts in streams.items():
            if counts is not None and counts.received_frames < counts.offered_frames:
                raise BrokenError(f"device does not forward: {name}: {_received_of(counts)}; {_port_facts(result)}")

    def request(self, plan: TrialPlan) -> TrialRequest:
        """The engine's request for a trial of this plan; each call's frames carry the next run mark.

        Raises:
            UsageError: it is stateless, and the device is not.
        """
        settings = self.settings
        if plan.stateless:
            refuse_stateless(
                settings.initiator_family,
                settings.responder_family,
                translated=settings.translated,
                mapped=self.traffic.mapped_addresses is not None,
            )
        grace = round(settings.grace_seconds * 1000)
        request = TrialRequest(
            mark=(settings.first_mark - 1 + self.number) % 0xFFFF_FFFF + 1,
            seed=settings.seed,
            initiator=self._initiator(),
            responder=self._responder(self.traffic.mapped_addresses if plan.stateless else None),
            translation=Translation(
                source="translated" if settings.translated else "unchanged",
                pool=_range(settings.pool) if settings.pool is not None else None,
            ),
            stateless=plan.stateless,
            connections=plan.connections,
            order=plan.order,
            frame=Frame(size=self.traffic.frame_size, side=self.traffic.frame_side),
            phase1=None if plan.stateless else Phase1(rate=plan.phase1_rate, grace_ms=grace),
            gap_ms=None if plan.phase2 is None else _GAP_MS,
            phase2=None if plan.phase2 is None else _phase2(plan, plan.phase2, grace),
            background=self._background(plan),
            record_delays=plan.record_delays,
            delay_samples=_samples(plan),
            record_variation=plan.record_variation,
            record_loss_times=plan.record_loss_times,
            frame_timeout_ms=None if plan.frame_timeout_seconds is None else plan.frame_timeout_seconds * 1000,
            senders=Senders(cpus=settings.sender_cpus, batch=settings.batch),
            watch_cpus=settings.watch_cpus,
        )
        return request.model_copy(update={"limits": Limits(seconds=_limit(request))})

    def _background(self, plan: TrialPlan) -> Background | None:
        if plan.foreground_share >= 1 or self.settings.background is None:
            return None
        share = Fraction(plan.foreground_share).limit_denominator(_MOST_MIXED)
        initiator, responder = self.settings.background
        return Background(
            n=share.denominator,
            m=share.numerator,
            initiator_addresses=_range(initiator),
            responder_addresses=_range(responder),
        )

    def _initiator(self) -> InitiatorSide:
        port, traffic = self.place.initiator, self.traffic
        return InitiatorSide(
            interface=port.interface,
            netns=port.netns,
            family=self.settings.initiator_family,
            gateway=GatewaySide(mac=port.gateway_mac, address=port.gateway_address),
            source_addresses=_range(traffic.source_addresses),
            source_ports=PortRange(first=traffic.source_ports.first, last=traffic.source_ports.last),
            destination_addresses=_range(traffic.destination_addresses),
            destination_ports=PortRange(first=traffic.destination_ports.first, last=traffic.destination_ports.last),
        )

    def _responder(self, destinations: Addresses | None) -> ResponderSide:
        port = self.place.responder
        return ResponderSide(
            interface=port.interface,
            netns=port.netns,
            family=self.settings.responder_family,
            gateway=GatewaySide(mac=port.gateway_mac, address=port.gateway_address),
            addresses=_range(self.traffic.responder_addresses),
            destination_addresses=None if destinations is None else _range(destinations),
        )

    def _perform(self, request: TrialRequest, restart_at: float | None = None) -> _Evidence:
        before = self._empty()
        faults_before = self._faults()
        dropped_before = self._dropped()
        if restart_at is None:
            result, restart, error = self._run(request, self.watch.running), None, ""
        else:
            result, restart, error = self._run_restarting(request, restart_at)
        dropped_after = self._dropped()
        count, error = (None, error) if error else self._count_after()
        faults = {name: number - faults_before.get(name, 0) for name, number in self._faults(alive=not error).items()}
        return _Evidence(result, before, count, dropped_before, dropped_after, faults, error, restart)

    def _run(self, request: TrialRequest, told: Callable[[Progress], None]) -> TrialResult:
        return self.runner(request, told, _limit(request) + _SLACK_SECONDS)

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
                f"{request.nominal_seconds:.1f} s, but the device forgets connections after {timeout} s; give a "
                "longer --udp-timeout or fewer connections"
            )

    def _faults(self, *, alive: bool = True) -> dict[str, int]:
        return dict(self.device.faults()) if self.device is not None and alive else {}

    def _dropped(self) -> dict[str, int]:
        """Drops at the device's places; those at the tester's own ports are in the engine's result already."""
        return {place: count for place, count in self.place.dropped().items() if not place.startswith(_TESTER_PLACES)}

    def _empty(self) -> int | None:
        """Each trial starts with an empty table (RFC 9693 section 4.4)."""
        if self.device is None:
            return None
        self.device.empty()
        return self.device.count()

    def _count_after(self) -> tuple[int | None, str]:
        """The device's own count, or what it said instead; its timeouts were checked to outlast both phases."""
        if self.device is None:
            return None, ""
        try:
            return self.device.count(), ""
        except NatgaugeError as error:
            return None, str(error)

    def _judged(self, plan: TrialPlan, evidence: _Evidence) -> TrialOutcome:
        result = evidence.result
        phase1 = _NO_FRAMES if plan.stateless else counts_of(phase1_of(result))
        phase2 = phase2_counts(result)
        judgement = judge(
            TrialEvidence(
                placement=self.place.placement,
                connections=0 if plan.stateless else plan.connections,
                stored=result.state_table.stored,
                phase1=phase1,
                phase2=phase2,
                preparation=plan.phase2 is not None and plan.phase2.reading_order != "once",
                each_once=plan.order != "with-replacement",
                table_count_before=evidence.count_before,
                table_count_after=evidence.count_after,
                table_limit=self.settings.table_limit,
                cpus=stalls_of(result),
                ports={
                    "Initiator": facts_of(result.ports.initiator),
                    "Responder": facts_of(result.ports.responder),
                },
                dropped_before=evidence.dropped_before,
                dropped_after=evidence.dropped_after,
                loss_tolerance=plan.loss_tolerance,
                device_alive=not evidence.device_error if self.device is not None else None,
                device_error=evidence.device_error,
                restarted=plan.restart_at_seconds is not None,
            )
        )
        return _outcome(judgement, evidence, phase1, phase2)

    def _record(
        self, plan: TrialPlan, request: TrialRequest, evidence: _Evidence, outcome: TrialOutcome, began: float
    ) -> None:
        self.recorder.add_trial(
            {
                "began": began,
                "seconds": time.time() - began,
                "verdict": outcome.verdict,
                "reason": outcome.reason,
                "limited_by": outcome.limited_by,
                "disturbed": outcome.disturbed,
                "notes": outcome.notes,
                "failed_phase": outcome.failed_phase,
                "placement": self.place.placement,
                "plan": plan,
                "device_count_before": evidence.count_before,
                "device_count_after": evidence.count_after,
                "device_faults": evidence.faults,
                "restart": evidence.restart,
                "dropped": {
                    place: count - evidence.dropped_before.get(place, 0)
                    for place, count in evidence.dropped_after.items()
                },
                "request": request,
                "result": evidence.result,
            }
        )


def _limit(request: TrialRequest) -> float:
    return min(86_400.0, request.nominal_seconds * 2 + _SLACK_SECONDS)


def _range(addresses: Addresses) -> AddressRange:
    return AddressRange(first=str(addresses.first), last=str(addresses.last))


def _phase2(plan: TrialPlan, phase2: Phase2Plan, grace_ms: int) -> Phase2:
    """Frames of each direction from rate and seconds; "once" is one frame per connection (RFC 9693 section 4.6)."""
    initiator = responder = None
    if phase2.initiator_rate > 0:
        frames = max(1, round(phase2.initiator_rate * phase2.seconds))
        initiator = InitiatorStream(rate=phase2.initiator_rate, frames=frames)
    if phase2.responder_rate > 0:
        frames = max(1, round(phase2.responder_rate * phase2.seconds))
        responder = ResponderStream(
            rate=phase2.responder_rate,
            frames=plan.connections if phase2.reading_order == "once" else frames,
            reading_order=phase2.reading_order,
        )
    step = None if phase2.step is None else Step(share=phase2.step.share, seconds=phase2.step.seconds)
    return Phase2(initiator=initiator, responder=responder, grace_ms=grace_ms, step=step)


def _samples(plan: TrialPlan) -> DelaySamples | None:
    """Which frames are timed; None = every one."""
    phase2, begin = plan.phase2, plan.delays_from_seconds
    if phase2 is None or (plan.delay_samples is None and begin == 0):
        return None
    from_ms = round(begin * 1000)
    rates = [rate for rate in (phase2.initiator_rate, phase2.responder_rate) if rate > 0]
    left = min(round(rate * phase2.seconds) - math.ceil(rate * from_ms / 1000) for rate in rates)
    return DelaySamples(from_ms=from_ms, frames=plan.delay_samples or max(left, 1))


def refuse_stateless(initiator: Family, responder: Family, *, translated: bool, mapped: bool) -> None:
    """Refuse a trial without phase 1 of a device whose outside addresses only phase 1 can tell.

    Args:
        initiator: family on the Initiator's side.
        responder: family on the Responder's side.
        translated: whether the device replaces the Initiator's source.
        mapped: whether it is known what it makes of the Initiator's addresses.

    Raises:
        UsageError: it is one.
    """
    if initiator != responder and not mapped:
        raise UsageError(
            "stateless: of a translator between IPv6 and IPv4 it needs the Initiator's mapped addresses, which are "
            "known only of kind siit in a lab of ours; leave stateless out"
        )
    if translated:
        raise UsageError(
            "stateless: this device replaces the Initiator's source, so it keeps connections; leave stateless out"
        )


def _outcome(
    judgement: Judgement, evidence: _Evidence, phase1: Counts, phase2: dict[Direction, Counts]
) -> TrialOutcome:
    return TrialOutcome(
        verdict=judgement.verdict,
        reason=judgement.reason,
        phase1=phase1,
        phase2=phase2,
        stored=evidence.result.state_table.stored,
        table_count=evidence.count_after,
        delays=delays_by_direction(evidence.result),
        restart=evidence.restart,
        disturbed=judgement.disturbed,
        limited_by=judgement.limited_by,
        failed_phase=judgement.failed_phase,
        notes=(*judgement.notes, *_fault_notes(evidence.faults), *_background_notes(phase2)),
    )


def _background_notes(phase2: Mapping[Direction, Counts]) -> list[str]:
    """Which part of a loss was native IPv6."""
    return [
        f"{counts.background - counts.background_received} of {counts.background} background frames from the "
        f"{direction.value.capitalize()} were lost"
        for direction, counts in phase2.items()
        if counts.background_received < counts.background
    ]


def _fault_notes(faults: Mapping[str, int]) -> list[str]:
    return [f"the device counted {number} x {name}" for name, number in faults.items() if number > 0]


def _received_of(counts: StreamCounts) -> str:
    wrong = {
        "late": counts.late,
        "damaged": counts.damaged,
        "untranslated": counts.untranslated,
        "mistranslated": counts.mistranslated,
    }
    found = "".join(f", {number} {name}" for name, number in wrong.items() if number)
    return f"{counts.received_frames} of {counts.offered_frames} frames came back{found}"


def _port_facts(result: TrialResult) -> str:
    sides: Sequence[tuple[str, PortCounters]] = (
        ("Initiator", result.ports.initiator),
        ("Responder", result.ports.responder),
    )
    return "; ".join(
        f"{name} port: {port.refused} refused, {port.redirect_errors} redirect errors, {port.foreign} foreign frames"
        for name, port in sides
    )
