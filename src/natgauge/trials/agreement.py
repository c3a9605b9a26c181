# SPDX-License-Identifier: Apache-2.0
"""The agreement with `natgauge-engine` as typed values: one trial's request, its progress and its result.

The agreement itself is `trial/request-1.schema.json` and `trial/result-1.schema.json`, which are generated from the
engine's own types. This module has names and types only. The engine checks bounds and rules between fields, and refuses
a wrong request before it touches anything. Times are integers in nanoseconds (`_ns`) or milliseconds (`_ms`), rates are
frames/s. A field that is None is left out of the request, or was absent from the result.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field

from natgauge.errors import BrokenError
from natgauge.words import Close, Family, Order, Query, ReadingOrder, Side, Transport

REQUEST_VERSION: Final = 1
RESULT_VERSION: Final = 1

#: Bounds of the engine's schema that requests are made with. The timer interrupt is no stall.
LEAST_STALL_SECONDS: Final = 10e-6
LONGEST_PHASE_SECONDS: Final = 17_000.0

#: A number that the engine counted; it is never negative.
Count = Annotated[int, Field(ge=0)]
#: (lower_ns, upper_ns, frames) in rising order: lower <= value < upper; below zero lower < value <= upper.
Buckets = tuple[tuple[int, int, Count], ...]


class AgreementPart(BaseModel):
    """Base of all parts of the agreement: no unknown fields, immutable, only numbers that JSON can represent."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class AddressRange(AgreementPart):
    """Addresses `first`, `first + step`, ... up to `last`, both ends included."""

    first: str
    last: str
    step: int | None = None


class PortRange(AgreementPart):
    """UDP ports, both ends included."""

    first: int
    last: int

    @property
    def count(self) -> int:
        """Number of ports in the range."""
        return self.last - self.first + 1


class GatewaySide(AgreementPart):
    """The device's end of one link, one of the two at least. Without `mac` the engine resolves `address`."""

    mac: str | None = None
    address: str | None = None


class CustomerEdges(AgreementPart):
    """Customer edges, emulated or under test, with their basic mapping rule (RFC 7597 section 5).

    Edge 0 has PSID `first_psid` of `first_address`, edge 1 the next PSID, and so on. Lengths are in bits. The edges
    tunnel IPv4 to `relay` (RFC 2473); None = they translate to IPv6 (RFC 7599). Edges before number `first` are not
    used; None = 0.
    """

    number: int
    ipv6_prefix: str
    ipv6_prefix_length: int
    ipv4_prefix: str
    ipv4_prefix_length: int
    psid_length: int
    psid_offset: int
    first_address: str
    first_psid: int
    relay: str | None = None
    first: int | None = None


class InitiatorSide(AgreementPart):
    """The tester's port that opens connections (RFC 9693 section 3) and the four ranges of its frames.

    With `customer_edges`, `source_addresses` is the one address of their router, and `source_ports` are positions in
    each port set, from 1 on.
    """

    interface: str
    netns: str | None = None
    family: Family
    mac: str | None = None
    gateway: GatewaySide
    source_addresses: AddressRange
    source_ports: PortRange
    customer_edges: CustomerEdges | None = None
    destination_addresses: AddressRange
    destination_ports: PortRange


class ResponderSide(AgreementPart):
    """The tester's port that answers, and its own addresses.

    `destination_addresses` (only in stateless trials): the Initiator's addresses as the Responder writes them, in the
    same order; None = the same addresses. With `customer_edges` the device is these edges, one for each of the
    Initiator's addresses, and the Responder is their relay; if it speaks IPv4, the relay is part of the device.
    """

    interface: str
    netns: str | None = None
    family: Family
    mac: str | None = None
    gateway: GatewaySide
    addresses: AddressRange
    destination_addresses: AddressRange | None = None
    customer_edges: CustomerEdges | None = None


class Translation(AgreementPart):
    """Translation of the Initiator's source that the device must make; `pool`: outside addresses it may use."""

    source: Literal["translated", "unchanged"]
    pool: AddressRange | None = None


class Closing(AgreementPart):
    """How TCP connections are closed. `by`: the Initiator's segment that begins to close.

    `request_octets`: each connection is a transaction of phase 1. A request and a response of this many octets follow
    the handshake, then the connection is closed. None = each frame of the Initiator in phase 2 closes a connection.
    """

    by: Close
    request_octets: int | None = None


class TcpUse(Protocol):
    """Use of TCP connections, as in `natgauge.measurer.TrialPlan`."""

    @property
    def half_open(self) -> bool:
        """Whether connections stay half-open."""
        ...

    @property
    def close(self) -> Close | None:
        """The Initiator's segment that begins to close; None = connections stay open."""
        ...

    @property
    def request_octets(self) -> int | None:
        """Octets of the request of a transaction; None = there is none."""
        ...


class Frame(AgreementPart):
    """Octets with FCS on the named side; the other side follows from the families (IPv6 = IPv4 + 20).

    `transport`: what the frames are; None = UDP datagrams.
    `query`: the Initiator sends DNS queries of this type, which the Responder answers; None = plain frames.
    `handed_on`: a server behind the Responder's port answers the queries.
    `half_open`: a SYN gets no answer in phase 1, and the Responder's frames of phase 2 are the SYN-ACKs.
    `closing`: how connections are closed; None = they stay open.
    """

    size: int
    side: Side
    transport: Transport | None = None
    query: Query | None = None
    half_open: bool | None = None
    closing: Closing | None = None
    handed_on: bool = False

    def using(self, tcp: TcpUse) -> Self:
        """Return the same frame with this use of TCP connections."""
        closing = None if tcp.close is None else Closing(by=tcp.close, request_octets=tcp.request_octets)
        return self.model_copy(update={"closing": closing, "half_open": tcp.half_open or None})


class Phase1(AgreementPart):
    """Phase 1 (RFC 9693 section 4.2): `rate` in frames/s, `grace_ms` of waiting for the last frames.

    Senders make up for a stall at `catch_up_percent` of the rate at most; None = as fast as they can.
    """

    rate: float
    grace_ms: int | None = None
    catch_up_percent: int | None = None


class InitiatorStream(AgreementPart):
    """Frames that the Initiator sends in phase 2; `rate` in frames/s."""

    rate: float
    frames: int


class ResponderStream(InitiatorStream):
    """Frames that the Responder sends in phase 2; `reading_order` of its state table as in RFC 9693 section 4.10."""

    reading_order: ReadingOrder | None = None


class Step(AgreementPart):
    """Second part of phase 2, without a pause before it (RFC 2544 section 26.5): `share` of the streams' rates."""

    share: float
    seconds: float


class Phase2(AgreementPart):
    """Phase 2 (RFC 9693 section 4.7); a side that is absent is silent. `catch_up_percent` as in phase 1.

    `periods`: how often phase 2 is run, one period after the other, over the same connections; None = once.
    """

    initiator: InitiatorStream | None = None
    responder: ResponderStream | None = None
    grace_ms: int | None = None
    catch_up_percent: int | None = None
    step: Step | None = None
    periods: int | None = None


class Background(AgreementPart):
    """Native IPv6 in phase 2 that the device only routes (RFC 8219 section 5.3): every frame i with i mod n >= m."""

    n: int
    m: int
    initiator_addresses: AddressRange
    responder_addresses: AddressRange


class DelaySamples(AgreementPart):
    """Time `frames` frames of each direction, evenly spaced, starting `from_ms` into phase 2."""

    from_ms: int
    frames: int


class Senders(AgreementPart):
    """The tester's sending CPUs, each with a pinned thread, and the number of frames per batch.

    A sender that did nothing for longer than `stall_ns` has stalled.
    """

    cpus: tuple[int, ...]
    batch: int | None = None
    stall_ns: int | None = None


class TrialLimits(AgreementPart):
    """The engine breaks the trial off after `seconds`."""

    seconds: float


class TrialRequest(AgreementPart):
    """One elementary test: phase 1, gap, phase 2. `connections` is N of RFC 9693 section 4, or a number of draws.

    A `stateless` one has no phase 1: both sides make their four tuples themselves (RFC 8219 section 5.1).
    """

    version: Literal[1] = REQUEST_VERSION
    mark: int
    seed: int
    initiator: InitiatorSide
    responder: ResponderSide
    translation: Translation
    stateless: bool = False
    connections: int
    order: Order = "permutation"
    frame: Frame
    phase1: Phase1 | None = None
    gap_ms: int | None = None
    phase2: Phase2 | None = None
    background: Background | None = None
    record_delays: bool = False
    delay_samples: DelaySamples | None = None
    record_variation: bool = False
    record_loss_times: bool = False
    record_receiver_time: bool = False
    accept_zero_checksum: bool | None = None
    frame_timeout_ms: float | None = None
    senders: Senders
    watch_cpus: tuple[int, ...] = ()
    watch_stall_ns: int | None = None
    limits: TrialLimits | None = None

    def to_json(self) -> str:
        """Return the request as one line of JSON; absent fields are left out."""
        return self.model_dump_json(exclude_none=True)

    @property
    def nominal_seconds(self) -> float:
        """Duration of an undisturbed trial in s: phase 1, the periods of phase 2, gaps, and waits for last frames."""
        gap, seconds = (self.gap_ms or 0) / 1e3, 0.0
        if self.phase1 is not None:
            seconds += _sending(self.connections, self.phase1.rate) + (self.phase1.grace_ms or 0) / 1e3
        if self.phase2 is None:
            return seconds + gap
        streams = [s for s in (self.phase2.initiator, self.phase2.responder) if s is not None]
        period = max((_sending(s.frames, s.rate) for s in streams), default=0.0)
        period += (self.phase2.grace_ms or 0) / 1e3
        period += self.phase2.step.seconds if self.phase2.step is not None else 0.0
        return seconds + (self.phase2.periods or 1) * (gap + period)


def _sending(frames: int, rate: float) -> float:
    """Return the seconds that the frames take; 0 at a rate that the engine refuses."""
    return frames / rate if rate > 0 else 0.0


class VariationCounts(AgreementPart):
    """D(i) - D(i-1), signed, of consecutive frames of one sender (RFC 5481 section 4.1)."""

    pairs: Count
    minimum_ns: int | None = None
    maximum_ns: int | None = None
    buckets: Buckets = ()


class DelayCounts(AgreementPart):
    """One-way delays of one direction. Negative delays are counted, and are in `minimum_ns`, but in no bucket.

    `due_in_stalls`: of the frames to be timed, those due during a stall of any CPU, up to 1 ms before it, or within the
    stall's own length after it.
    """

    frames: Count
    negative: Count
    due_in_stalls: Count | None = None
    minimum_ns: int | None = None
    maximum_ns: int | None = None
    sum_ns: int | None = None
    buckets: Buckets = ()
    variation: VariationCounts | None = None


class Silence(AgreementPart):
    """The longest time between two arrivals; both times since the start of the phase."""

    from_ns: Count
    to_ns: Count


class MessageCounts(AgreementPart):
    """Arrivals of one message of a stream's connections; `wrong`: intact, but with other content."""

    name: str
    received: Count
    wrong: Count


class LateDelay(AgreementPart):
    """Delays of late frames; of a connection's messages from the sending of the first to the arrival of the last."""

    minimum_ns: int
    maximum_ns: int
    sum_ns: int


class StreamCounts(AgreementPart):
    """Raw counts of one direction of one phase; a field is None when it was not measured, never zero instead.

    `last_lost_ns`: due time of the last lost frame, since the start of the phase; None also where no frame was lost.
    `zero_checksums`: part of `received_frames`, over IPv6 with a UDP checksum of 0.
    `messages`: the message that the side sends, and the reactions to it; `received_frames` are those of the last.
    `lost_in_stalls`: lost frames that were due during a stall of any CPU, up to 1 ms before it, or within its
    own length after it.
    """

    intended_frames: Count
    intended_rate: float
    made_frames: Count | None = None
    offered_frames: Count
    received_frames: Count
    duplicates: Count
    reordered: Count
    late: Count
    late_delay: LateDelay | None = None
    damaged: Count
    fragments: Count | None = None
    tagged: Count | None = None
    without_checksum: Count | None = None
    untranslated: Count
    mistranslated: Count
    zero_checksums: Count | None = None
    messages: tuple[MessageCounts, ...] = ()
    skipped: Count | None = None
    background_frames: Count | None = None
    background_received: Count | None = None
    nominal_ns: Count | None = None
    sending_ns: Count | None = None
    worst_lag_ns: Count | None = None
    mean_lag_ns: Count | None = None
    final_lag_ns: Count | None = None
    settled_lag_ns: Count | None = None
    stalled_ns: Count | None = None
    lost_in_stalls: Count | None = None
    last_lost_ns: Count | None = None
    longest_silence: Silence | None = None
    delay: DelayCounts | None = None


class Phase2Counts(AgreementPart):
    """Counts of phase 2 by sender; a silent side is absent."""

    initiator: StreamCounts | None = None
    responder: StreamCounts | None = None


class SourceCounts(AgreementPart):
    """Connections of one source address. `stored`: those that the Responder learned."""

    connections: Count
    stored: Count


class StateTable(AgreementPart):
    """The Responder's state table (RFC 9693 section 4.10): the connections learned in phase 1.

    `by_source`: in the order of the source addresses; None: all were learned, or there are one or too many sources.
    """

    connections: Count
    stored: Count
    remapped: Count | None = None
    octets: Count
    by_source: list[SourceCounts] | None = None


class DeviceSigns(AgreementPart):
    """Segments at one of the tester's ports that show what a device does to TCP.

    `resets`: those that the tester did not send. `renumbered`: intact ones with a sequence number of no connection.
    `restamped`: SYN-ACKs whose time stamp and echo do not belong together.
    """

    resets: Count
    renumbered: Count
    restamped: Count


class PortCounters(AgreementPart):
    """Frame counters of one of the tester's own ports during the trial; `device_signs` with TCP."""

    refused: Count
    redirect_errors: Count
    foreign: Count
    neighbour_replies: Count
    rx_dropped: Count | None = None
    tx_dropped: Count | None = None
    gateway_mac: str | None = None
    mistranslated_address: str | None = None
    mistranslated_port: Count | None = None
    icmp_errors: Count | None = None
    too_big: Count | None = None
    path_mtu: Count | None = None
    device_signs: DeviceSigns | None = None


class Ports(AgreementPart):
    """Counters of the tester's two ports."""

    initiator: PortCounters
    responder: PortCounters


class Stall(AgreementPart):
    """A time in which a CPU did nothing of its task, since the start of the last phase that began before its end."""

    phase: Literal["phase1", "gap", "phase2"]
    from_ns: int
    to_ns: int


class Cpu(AgreementPart):
    """Stalls of one CPU, during which it did nothing of its task; `longest_stalls` in the order of time."""

    cpu: Count
    role: Literal["sender", "watched"]
    stalls: Count
    stalled_ns: Count
    worst_stall_ns: Count
    longest_stalls: tuple[Stall, ...] = ()
    stolen_ns: Count | None = None
    waited_ns: Count | None = None


class ReceiverTime(AgreementPart):
    """Run time of the receivers by the kernel's statistics, and of an empty program for comparison."""

    runs: Count
    runs_ns: Count
    empty_runs: Count
    empty_runs_ns: Count


class Clock(AgreementPart):
    """The kernel's clock source, and the number of steps of the wall clock during the trial."""

    source: str
    steps: Count | None = None


class FrameSizes(AgreementPart):
    """Frame sizes on both sides, in octets with FCS."""

    initiator_octets: Count
    responder_octets: Count


class PeriodResult(AgreementPart):
    """Raw counts of one period of phase 2, and of phase 1. A stateless trial has no `phase1`."""

    version: Literal[1]
    engine: str
    mark: Count
    seed: Count
    phase1: StreamCounts | None = None
    phase2: Phase2Counts | None = None
    state_table: StateTable
    ports: Ports
    receiver_time: ReceiverTime | None = None
    cpus: tuple[Cpu, ...]
    clock: Clock
    start_to_first_frame_ns: Count | None = None
    wall_ns: Count | None = None
    frame: FrameSizes | None = None

    @property
    def as_trial(self) -> TrialResult:
        """The result of a trial with this period alone."""
        return TrialResult(event="result", **dict(self))


class TrialResult(PeriodResult):
    """Raw counts of one trial, with nothing derived; with several periods of phase 2, those of the last one."""

    event: Literal["result"]


class Progress(AgreementPart):
    """Progress of a running trial.

    `period`: result of a period of phase 2 that has ended and is not the last. Its counts, ports and CPUs are of this
    period alone, and its phase 1 is that of the trial.
    """

    event: Literal["progress"]
    phase: Literal["phase1", "gap", "phase2"]
    seconds: float
    intended_frames: Count
    made_frames: Count
    received_frames: Count
    period: PeriodResult | None = None


def phase1_of(result: TrialResult) -> StreamCounts:
    """Return the counts of phase 1, for trials that have a phase 1.

    Raises:
        BrokenError: the engine left them out.
    """
    if result.phase1 is None:
        raise BrokenError("trial: natgauge-engine left phase 1 out of its result")
    return result.phase1
