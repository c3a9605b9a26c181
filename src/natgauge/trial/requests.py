# SPDX-License-Identifier: Apache-2.0
"""Convert a procedure's trial plan to the engine's request: frames, ports, addresses, and the pacing of the senders.

In `shared` placement the device processes a whole batch before the sender continues, so a batch of a slow device looks
like a stall of the sender. In other placements a sender catches up after a stall only a little faster than its rate:
sent at once, the late frames would overflow the ring before the device.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, Literal

from natgauge.agreement.generated import (
    AddressRange,
    Background,
    ChurnRequest,
    CustomerEdges,
    DelaySamples,
    Frame,
    GatewaySide,
    Groups,
    InitiatorSide,
    InitiatorStream,
    ModifiersRequest,
    Phase1,
    Phase2,
    PortRange,
    ResponderSide,
    ResponderStream,
    Senders,
    Step,
    Translation,
    TrialLimits,
    TrialRequest,
)
from natgauge.agreement.trial import LEAST_STALL_SECONDS, frame_of, nominal_seconds
from natgauge.errors import UsageError
from natgauge.ethernet import BROADCAST_EVERY, QUERY_OCTETS
from natgauge.figure_text import in_full
from natgauge.gateways.port_sets import PortSets
from natgauge.labs.contract import Addresses, Port
from natgauge.procedures.kit.delays import ABOVE_WORST_CASE
from natgauge.setup.traffic import TrafficPlan
from natgauge.trials import (
    LEAST_WATCHED_SECONDS,
    LONGEST_PHASE_SECONDS,
    MOST_TOGETHER,
    QUERY_SECONDS,
    Modifiers,
    Phase2Plan,
    Trial,
    TrialPlan,
    together,
)
from natgauge.words import Address, Family, Placement, Query, Side

#: Seconds, in addition to twice its nominal length, after which a trial is aborted.
SLACK_SECONDS: Final = 60.0
#: Longest trial of the engine.
LONGEST_SECONDS: Final = 2_000_000.0
#: Pause before each period of phase 2; between periods device and lab are read.
_GAP_MS: Final = 100
#: Longest pause; controls that are slower reach into the next period, which then says so.
_MOST_GAP_MS: Final = 2000
#: A reading may take longer while the device works.
_READINGS_PER_GAP: Final = 2
#: Foreground and background frames alternate in a pattern no longer than this.
_MOST_MIXED: Final = 1000
#: A CPU that did nothing of its task for longer than this was disturbed. These are the gaps the engine starts to count
#: at: a sender is never without work, a watched CPU is sampled more coarsely. Where a ring before the device would be
#: full sooner, or the device needs longer for a single frame, the sender's follows.
STALL_BOUND_SECONDS: Final[Mapping[Literal["sender", "watched"], float]] = {"sender": 0.001, "watched": 0.005}
#: Batches that the device could have worked off at its rate while a sender did nothing: that was a stall. A search
#: doubles its rates, so an overloaded device needs twice the time for one.
STALL_BATCHES: Final = 10
#: No device needs longer for a frame: where rates are low, it is the sender that was woken late.
LONGEST_FRAME_SECONDS: Final = 0.01
#: Sending that took this many times its nominal length was held up by the device.
HELD_UP: Final = 1.5
#: Percent of the rate at which senders catch up. Below 80 % of the device's capacity that causes no loss, and it ends
#: before the end of most trials.
CATCH_UP_PERCENT: Final = 125
#: The same for a phase 1 that only prepares, at half of the device's capacity: its last frame may be late.
PREPARING_CATCH_UP_PERCENT: Final = 150


@dataclass(frozen=True, slots=True)
class TrialConstants:
    """Constants of all trials of a measurement.

    Attributes:
        pool: outside addresses the device may use; None = not checked.
        first_mark: run mark of the first trial, 1 to 2**32 - 1; each trial takes the next one.
        grace_seconds: wait for the last frames of each phase (RFC 2544 section 23 requires 2 s on a wire).
        table_limit: limit of the device's table, in connections; None = not known.
        udp_timeout: seconds after which the device forgets a connection; None = not known.
        replied_udp_timeout: the same for a connection that had frames both ways, before natgauge raised it; None = not
            known to be another one.
        highest_phase1_rate: the tester's own, frames/s.
        highest_phase2_rate: the tester's own, frames/s, all directions together.
        ring: capacity of the queue before each core of the device, in frames; None = not known.
        lingering_seconds: time for which the device keeps a connection that the trials close; None = not known, or
            connections stay open.
        answers: the address that the device answers each type of query with itself; empty = it answers none, and the
            far side does.
        background: the tester's hosts of native IPv6 on the Initiator's and the Responder's side; None = the device
            does not route it.
        power_command: shell command of the user that reads the device's power meter; None = there is none.
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
    ring: int | None = None
    lingering_seconds: int | None = None
    replied_udp_timeout: int | None = None
    background: tuple[Addresses, Addresses] | None = None
    answers: Mapping[Query, Address] = field(default_factory=dict)
    power_command: str | None = None

    @property
    def replied_timeout(self) -> int | None:
        """Seconds after which the device forgets a connection that had frames both ways; None = not known."""
        return None if self.udp_timeout is None else max(self.udp_timeout, self.replied_udp_timeout or 0)


@dataclass(frozen=True, slots=True)
class Requests:
    """Makes the engine's requests."""

    constants: TrialConstants
    traffic: TrafficPlan
    initiator: Port
    responder: Port

    def of(self, plan: TrialPlan, number: int, pace: Pacing) -> TrialRequest:
        """Return the request for a trial of this plan; each trial number, from 1, has its own run mark."""
        if plan.sources is not None:
            traffic = self.traffic.of_first(plan.sources, plan.of_each_source)
            return replace(self, traffic=traffic).of(replace(plan, sources=None), number, pace)
        settings = self.constants
        if plan.stateless:
            refuse_stateless(
                settings.initiator_family,
                settings.responder_family,
                translated=settings.translated,
                mapped=self.traffic.mapping_known,
            )
        _refuse_long(plan)
        _refuse_few_four_tuples(plan, self.traffic.space)
        grace = round(settings.grace_seconds * 1000)
        request = TrialRequest(
            mark=(settings.first_mark - 1 + number) % 0xFFFF_FFFF + 1,
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
            frame=self._frame(plan),
            phase1=None
            if not plan.has_phase1
            else Phase1(rate=plan.phase1_rate, grace_ms=grace, catch_up_percent=pace.phase1_catch_up_percent),
            gap_ms=0 if plan.phase2 is None else _GAP_MS,
            phase2=None if plan.phase2 is None else _phase2(plan, plan.phase2, pace, grace),
            background=self._background(plan),
            record_delays=plan.record_delays,
            delay_samples=_samples(plan),
            record_variation=plan.record_variation,
            record_loss_times=plan.record_loss_times,
            accept_zero_checksum=plan.accept_zero_checksum,
            frame_timeout_ms=None if plan.frame_timeout_seconds is None else plan.frame_timeout_seconds * 1000,
            senders=Senders(cpus=settings.sender_cpus, batch=pace.batch, stall_ns=round(pace.stall_seconds * 1e9)),
            watch_cpus=settings.watch_cpus,
            watch_stall_ns=round(watched_bound(plan) * 1e9),
        )
        return _limited(request)

    def _frame(self, plan: TrialPlan) -> Frame:
        families = (self.constants.initiator_family, self.constants.responder_family)
        answer = self.constants.answers.get(plan.query) if plan.query is not None else None
        frame = traffic_frame(self.traffic, families, plan.query, handed_on=plan.handed_on and answer is None)
        if answer is not None:
            shares = {"aaaa_share": plan.aaaa_share or None, "cached_share": plan.cached_share or None}
            frame = frame.model_copy(update={"resolved": True, "answer": str(answer), **shares})
        return frame_of(frame, plan.close, plan.request_octets, half_open=plan.half_open)

    def _background(self, plan: TrialPlan) -> Background | None:
        if plan.foreground_share >= 1 or self.constants.background is None:
            return None
        share = Fraction(plan.foreground_share).limit_denominator(_MOST_MIXED)
        initiator, responder = self.constants.background
        return Background(
            n=share.denominator,
            m=share.numerator,
            initiator_addresses=_range(initiator),
            responder_addresses=_range(responder),
        )

    def _initiator(self) -> InitiatorSide:
        port, traffic = self.initiator, self.traffic
        return InitiatorSide(
            interface=port.interface,
            netns=port.netns,
            family=self.constants.initiator_family,
            gateway=GatewaySide(mac=port.gateway_mac, address=port.gateway_address),
            source_addresses=_range(traffic.source_addresses),
            source_ports=PortRange(first=traffic.source_ports.first, last=traffic.source_ports.last),
            customer_edges=_edges(traffic, traffic.edges),
            destination_addresses=_range(traffic.destination_addresses),
            destination_ports=PortRange(first=traffic.destination_ports.first, last=traffic.destination_ports.last),
        )

    def _responder(self, destinations: Addresses | None) -> ResponderSide:
        port = self.responder
        return ResponderSide(
            interface=port.interface,
            netns=port.netns,
            family=self.constants.responder_family,
            gateway=GatewaySide(mac=port.gateway_mac, address=port.gateway_address),
            addresses=_range(self.traffic.responder_addresses),
            destination_addresses=None if destinations is None else _range(destinations),
            customer_edges=_edges(self.traffic, self.traffic.tested_edges),
        )


def traffic_frame(
    traffic: TrafficPlan, families: tuple[Family, Family], query: Query | None = None, *, handed_on: bool = False
) -> Frame:
    """Return the frame of a request with this traffic; `query` None = plain frames."""
    frames = traffic.frames.stated
    if query is None:
        return Frame(size=traffic.frame_size, side=traffic.frame_side, **frames)
    side: Side = "responder" if traffic.tunnelled and families[0] == "ipv6" else "initiator"
    octets = QUERY_OCTETS[families[side == "responder"]] + traffic.tag_octets[side]
    return Frame(size=octets, side=side, query=query, handed_on=handed_on, **frames)


def _edges(traffic: TrafficPlan, sets: PortSets | None) -> CustomerEdges | None:
    if sets is None:
        return None
    address, psid = sets.of(0)
    prefix = sets.fitting_prefix
    return CustomerEdges(
        number=traffic.sources,
        ipv6_prefix=str(prefix.network_address),
        ipv6_prefix_length=prefix.prefixlen,
        ipv4_prefix=str(sets.addresses.network_address),
        ipv4_prefix_length=sets.addresses.prefixlen,
        psid_length=sets.psid_length,
        psid_offset=sets.psid_offset,
        first_address=str(address),
        first_psid=psid,
        relay=sets.relay if traffic.tunnelled else None,
        first=traffic.first_edge,
    )


def _refuse_long(plan: TrialPlan) -> None:
    """Refuse a phase that is longer than the engine can pace."""
    rates = {"connections/s": plan.phase1_rate} if plan.has_phase1 else {}
    if plan.phase2 is not None and plan.phase2.reading_order == "once":
        rates["frames/s"] = plan.phase2.responder_rate
    for unit, rate in rates.items():
        seconds = plan.connections / rate
        if seconds > LONGEST_PHASE_SECONDS:
            raise UsageError(
                f"connections: {plan.connections} at {in_full(rate)} {unit} take {seconds:.0f} s, and a phase can last "
                f"{LONGEST_PHASE_SECONDS:.0f} s; choose fewer connections, or a higher rate",
                at="connections",
            )


def _refuse_few_four_tuples(plan: TrialPlan, space: int) -> None:
    """Refuse churn that needs more four tuples than the ranges have: each connection has one of its own."""
    opened = plan.opened_in_phase2
    if plan.phase2 is not None and opened and plan.connections + opened > space:
        raise UsageError(
            f"connections: {plan.connections} open ones, and {opened} more in {plan.phase2.seconds:g} s of phase 2, "
            f"need as many four tuples, and the ranges have {space}; choose wider ranges, fewer new connections or "
            "less time",
            at="connections",
        )


def pause_ms(reading_seconds: float) -> int:
    """Return the pause between two periods, 100 to 2,000 ms: twice as long as a reading of device and lab takes."""
    return min(max(_GAP_MS, math.ceil(_READINGS_PER_GAP * reading_seconds * 1000)), _MOST_GAP_MS)


def with_pauses(request: TrialRequest, gap_ms: int) -> TrialRequest:
    """Return the request with other pauses before the periods, and the longest time that follows from them."""
    return _limited(request.model_copy(update={"gap_ms": gap_ms}))


def _limited(request: TrialRequest) -> TrialRequest:
    return request.model_copy(update={"limits": TrialLimits(seconds=longest_seconds(request))})


def longest_seconds(request: TrialRequest) -> float:
    """Return the seconds after which the engine aborts a trial; at most `LONGEST_SECONDS`."""
    return min(LONGEST_SECONDS, nominal_seconds(request) * 2 + SLACK_SECONDS)


def _range(addresses: Addresses) -> AddressRange:
    return AddressRange(first=str(addresses.first), last=str(addresses.last), embedded=addresses.embedded)


def _phase2(plan: TrialPlan, phase2: Phase2Plan, pace: Pacing, grace_ms: int) -> Phase2:
    """Frames of each direction from rate and seconds; "once" is one frame per connection (RFC 9693 section 4.6)."""
    initiator = responder = None
    if phase2.initiator_rate > 0:
        frames = phase2.frames(phase2.initiator_rate)
        initiator = InitiatorStream(rate=phase2.initiator_rate, frames=frames)
    if phase2.responder_rate > 0:
        frames = phase2.frames(phase2.responder_rate)
        responder = ResponderStream(
            rate=phase2.responder_rate,
            frames=plan.connections if phase2.reading_order == "once" else frames,
            reading_order=phase2.reading_order,
        )
    step = None if phase2.step is None else Step(share=phase2.step.share, seconds=phase2.step.seconds)
    churn = phase2.churn
    return Phase2(
        periods=phase2.periods,
        initiator=initiator,
        responder=responder,
        grace_ms=grace_ms,
        catch_up_percent=pace.phase2_catch_up_percent,
        step=step,
        modifiers=None if phase2.modifiers is None else _modifiers(phase2.modifiers),
        churn=None
        if churn is None
        else ChurnRequest(
            new_per_second=churn.new_per_second,
            leave=churn.leave,
            guard_ms=max(1, round(churn.guard_seconds * 1000)),
            flood_per_second=churn.flood_per_second or None,
        ),
    )


def _modifiers(chosen: Modifiers) -> ModifiersRequest:
    return ModifiersRequest(
        broadcast_every=BROADCAST_EVERY if chosen.broadcast else None,
        query_ms=round(QUERY_SECONDS * 1000) if chosen.queries else None,
        groups=Groups(number=chosen.groups, seconds=chosen.group_seconds) if chosen.groups > 1 else None,
    )


def _samples(plan: TrialPlan) -> DelaySamples | None:
    """Return the selection of timed frames; None = every frame."""
    phase2, begin = plan.phase2, plan.delays_from_seconds
    if phase2 is None or (plan.delay_samples is None and begin == 0):
        return None
    from_ms = round(begin * 1000)
    rates = [rate for rate in (phase2.initiator_rate, phase2.responder_rate) if rate > 0]
    left = min(phase2.frames(rate) - math.ceil(rate * from_ms / 1000) for rate in rates)
    return DelaySamples(from_ms=from_ms, frames=plan.delay_samples or max(left, 1))


def refuse_stateless(initiator: Family, responder: Family, *, translated: bool, mapped: bool) -> None:
    """Refuse a trial without phase 1 of a device whose outside addresses become known only in phase 1."""
    if initiator != responder and not mapped:
        raise UsageError(
            "stateless: of a translator between IPv6 and IPv4 it needs the Initiator's mapped addresses, which are "
            "known only of kind siit in a lab of ours, or on a wire where you name them (--mapped-addresses); leave "
            "stateless out",
            at="stateless",
        )
    if translated and not mapped:
        raise UsageError(
            "stateless: this device replaces the Initiator's source, so it keeps connections; leave stateless out",
            at="stateless",
        )


@dataclass(frozen=True, slots=True)
class Pacing:
    """Batches and stalls of one trial.

    Attributes:
        batch: frames of a batch, 1 to 64.
        phase1_catch_up_percent: highest rate after a stall, in percent of the intended rate; None = no limit.
        phase2_catch_up_percent: like `phase1_catch_up_percent`, for phase 2.
    """

    batch: int
    stall_seconds: float
    phase1_catch_up_percent: int | None = None
    phase2_catch_up_percent: int | None = None


def pacing(plan: TrialPlan, placement: Placement, ring: int | None = None, known_rate: float | None = None) -> Pacing:
    """Return the pacing of a trial; the ring is that before each core of the device, in frames, None = not known."""
    usual = STALL_BOUND_SECONDS["sender"]
    if placement != "shared":
        stall_seconds = usual if ring is None else _until_full(plan, ring, usual)
        phase1 = CATCH_UP_PERCENT if plan.phase2 is None else PREPARING_CATCH_UP_PERCENT
        return Pacing(MOST_TOGETHER, stall_seconds, phase1, CATCH_UP_PERCENT)
    # Of all directions of phase 2, or of phase 1 where there is no phase 2.
    rate = plan.phase1_rate if plan.phase2 is None else plan.phase2.initiator_rate + plan.phase2.responder_rate
    device = rate if known_rate is None else min(rate, known_rate)
    batch = 1 if plan.single_frames else together(device)
    return Pacing(batch, max(usual, min(STALL_BATCHES * batch / device, LONGEST_FRAME_SECONDS)))


def watched_bound(plan: TrialPlan) -> float:
    """Return the seconds after which a pause of a device's core counts as a stall.

    In a trial with timed frames, a shorter stall must not decide the worst case alone. So the bound is the time in
    which the share of frames above the worst case's percentile falls due, within 2 to 5 ms.
    """
    usual = STALL_BOUND_SECONDS["watched"]
    if not plan.record_delays:
        return usual
    seconds = plan.connections / plan.phase1_rate if plan.phase2 is None else plan.phase2.seconds
    return min(max(ABOVE_WORST_CASE * (seconds - plan.delays_from_seconds), LEAST_WATCHED_SECONDS), usual)


def learned(known_rate: float | None, trial: Trial) -> float | None:
    """Return the highest rate of the device in overloaded trials, frames/s of all directions; None = not known.

    Disturbances only lower the rate, so the highest of several trials counts.
    """
    streams = [trial.phase1] if trial.plan.phase2 is None else list(trial.phase2.values())
    nominal = max((counts.nominal_seconds for counts in streams), default=0.0)
    busy = max((counts.busy_seconds for counts in streams), default=0.0)
    if not nominal or busy < HELD_UP * nominal:
        return known_rate
    return max(known_rate or 0.0, sum(counts.offered_frames for counts in streams) / busy)


def _until_full(plan: TrialPlan, ring: int, usual: float) -> float:
    """Return the seconds in which the frames of a direction fill the ring, with room for one batch."""
    rates = [plan.phase1_rate] if plan.has_phase1 else []
    if plan.phase2 is not None:
        step = 1.0 if plan.phase2.step is None else max(plan.phase2.step.share, 1.0)
        rates += [rate * step for rate in (plan.phase2.initiator_rate, plan.phase2.responder_rate)]
    room = max(ring - MOST_TOGETHER, ring / 2)
    return max(min(usual, room / max(rates)), LEAST_STALL_SECONDS)
