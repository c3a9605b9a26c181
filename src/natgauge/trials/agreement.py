# SPDX-License-Identifier: Apache-2.0
"""The agreement with `natgauge-engine` as typed values: one trial's request, its progress and its result.

The agreement itself is `trial/request-1.schema.json` and `trial/result-1.schema.json`, which are generated from the
engine's own types. Here are names and types only: bounds and rules between fields are the engine's, which refuses a
wrong request before it touches anything. Times are integers in nanoseconds (`_ns`) or milliseconds (`_ms`), rates are
frames/s; what is None is left out of the request, or was not in the result.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from natgauge.errors import BrokenError
from natgauge.words import Family, Order, Query, ReadingOrder, Side

REQUEST_VERSION: Final = 1
RESULT_VERSION: Final = 1

#: What the engine counted: its type has no sign.
Count = Annotated[int, Field(ge=0)]
#: (lower_ns, upper_ns, frames) in rising order: lower <= value < upper; below zero lower < value <= upper.
Buckets = tuple[tuple[int, int, Count], ...]


class AgreementPart(BaseModel):
    """What every part of the agreement shares: no unknown fields, no change once made, only numbers that JSON has."""

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
        """How many ports the range holds."""
        return self.last - self.first + 1


class GatewaySide(AgreementPart):
    """The device's end of one link, one of the two at least. Without `mac` the engine resolves `address`."""

    mac: str | None = None
    address: str | None = None


class InitiatorSide(AgreementPart):
    """The tester's port that opens connections (RFC 9693 section 3) and the four ranges of its frames."""

    interface: str
    netns: str | None = None
    family: Family
    mac: str | None = None
    gateway: GatewaySide
    source_addresses: AddressRange
    source_ports: PortRange
    destination_addresses: AddressRange
    destination_ports: PortRange


class ResponderSide(AgreementPart):
    """The tester's port that answers, and its own addresses.

    `destination_addresses` (only in stateless trials): the Initiator's addresses as the Responder writes them, in the
    same order; None = the same addresses.
    """

    interface: str
    netns: str | None = None
    family: Family
    mac: str | None = None
    gateway: GatewaySide
    addresses: AddressRange
    destination_addresses: AddressRange | None = None


class Translation(AgreementPart):
    """What the device must do to the Initiator's source; `pool` = outside addresses it may use."""

    source: Literal["translated", "unchanged"]
    pool: AddressRange | None = None


class Frame(AgreementPart):
    """Octets with FCS on the named side; the other side follows from the families (IPv6 = IPv4 + 20).

    `query`: the Initiator sends DNS queries of this type, which the Responder answers; None = plain frames.
    `handed_on`: it does not, but hands them on to a server behind its port.
    """

    size: int
    side: Side
    query: Query | None = None
    handed_on: bool = False


class Phase1(AgreementPart):
    """Phase 1 (RFC 9693 section 4.2): `rate` in frames/s, `grace_ms` of waiting for the last frames.

    Senders make up for a stall at `catch_up_percent` of the rate at most; None = as fast as they can.
    """

    rate: float
    grace_ms: int | None = None
    catch_up_percent: int | None = None


class InitiatorStream(AgreementPart):
    """What the Initiator sends in phase 2: `rate` in frames/s."""

    rate: float
    frames: int


class ResponderStream(InitiatorStream):
    """What the Responder sends in phase 2, and how it reads its state table (RFC 9693 section 4.10)."""

    reading_order: ReadingOrder | None = None


class Step(AgreementPart):
    """Follows without a pause when the streams' frames are sent (RFC 2544 section 26.5): `share` of their rates."""

    share: float
    seconds: float


class Phase2(AgreementPart):
    """Phase 2 (RFC 9693 section 4.7); a side that is absent is silent. `catch_up_percent` as in phase 1."""

    initiator: InitiatorStream | None = None
    responder: ResponderStream | None = None
    grace_ms: int | None = None
    catch_up_percent: int | None = None
    step: Step | None = None


class Background(AgreementPart):
    """Native IPv6 in phase 2 that the device only routes (RFC 8219 section 5.3): frame i is so unless i mod n < m."""

    n: int
    m: int
    initiator_addresses: AddressRange
    responder_addresses: AddressRange


class DelaySamples(AgreementPart):
    """So many frames of each direction are timed, evenly spread over those due from `from_ms` of phase 2 on."""

    from_ms: int
    frames: int


class Senders(AgreementPart):
    """The tester's sending CPUs, one pinned thread each, and how many frames leave together.

    One that did nothing for longer than `stall_ns` stood still.
    """

    cpus: tuple[int, ...]
    batch: int | None = None
    stall_ns: int | None = None


class TrialLimits(AgreementPart):
    """The engine breaks the trial off after `seconds`."""

    seconds: float


class TrialRequest(AgreementPart):
    """One elementary test: phase 1, gap, phase 2. `connections` is N of RFC 9693 section 4.

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
    frame_timeout_ms: float | None = None
    senders: Senders
    watch_cpus: tuple[int, ...] = ()
    watch_stall_ns: int | None = None
    limits: TrialLimits | None = None

    def to_json(self) -> str:
        """The request as the engine reads it: one line, absent fields left out."""
        return self.model_dump_json(exclude_none=True)

    @property
    def nominal_seconds(self) -> float:
        """How long the trial takes when all goes well: both phases with their graces, and the gap."""
        seconds = (self.gap_ms or 0) / 1e3
        if self.phase1 is not None:
            seconds += _sending(self.connections, self.phase1.rate) + (self.phase1.grace_ms or 0) / 1e3
        if self.phase2 is not None:
            streams = [s for s in (self.phase2.initiator, self.phase2.responder) if s is not None]
            seconds += max((_sending(s.frames, s.rate) for s in streams), default=0.0)
            seconds += (self.phase2.grace_ms or 0) / 1e3
            seconds += self.phase2.step.seconds if self.phase2.step is not None else 0.0
        return seconds


def _sending(frames: int, rate: float) -> float:
    """Seconds; none at a rate that the engine refuses."""
    return frames / rate if rate > 0 else 0.0


class VariationCounts(AgreementPart):
    """D(i) - D(i-1), signed, of frames that one sender sent one after the other (RFC 5481 section 4.1)."""

    pairs: Count
    minimum_ns: int | None = None
    maximum_ns: int | None = None
    buckets: Buckets = ()


class DelayCounts(AgreementPart):
    """One-way delays of one direction. Negative delays are counted, and are in `minimum_ns`, but in no bucket.

    `due_in_stalls`: of the frames to be timed, those due during a stall of any CPU, up to 1 ms before or as long again
    behind it.
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
    """The two arrivals with the longest time between them, since the start of the phase."""

    from_ns: Count
    to_ns: Count


class StreamCounts(AgreementPart):
    """Raw counts of one direction of one phase; a field is None when it was not measured, never zero instead.

    `last_lost_ns`: when the last lost frame was due, since the start of the phase; None also where none was lost.
    `questions_received`: queries that reached the Responder; those answered right are `received_frames`.
    `lost_in_stalls`: lost frames that were due during a stall of any CPU, up to 1 ms before or as long again behind it.
    """

    intended_frames: Count
    intended_rate: float
    made_frames: Count | None = None
    offered_frames: Count
    received_frames: Count
    duplicates: Count
    reordered: Count
    late: Count
    damaged: Count
    untranslated: Count
    mistranslated: Count
    questions_received: Count | None = None
    wrong_answers: Count | None = None
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
    """Counts of phase 2 by who sent; a silent side is absent."""

    initiator: StreamCounts | None = None
    responder: StreamCounts | None = None


class StateTable(AgreementPart):
    """The Responder's state table (RFC 9693 section 4.10): what it learned in phase 1."""

    connections: Count
    stored: Count
    remapped: Count | None = None
    octets: Count


class PortCounters(AgreementPart):
    """What happened at one of the tester's own ports during the trial."""

    refused: Count
    redirect_errors: Count
    foreign: Count
    neighbour_replies: Count
    rx_dropped: Count | None = None
    tx_dropped: Count | None = None
    gateway_mac: str | None = None


class Ports(AgreementPart):
    """Both of the tester's ports."""

    initiator: PortCounters
    responder: PortCounters


class Stall(AgreementPart):
    """Between two times that a CPU was seen at its task, since the start of the latest phase begun by its end."""

    phase: Literal["phase1", "gap", "phase2"]
    from_ns: int
    to_ns: int


class Cpu(AgreementPart):
    """Stalls of one CPU: times it did nothing of its task although it should have; the longest ones by time."""

    cpu: Count
    role: Literal["sender", "watched"]
    stalls: Count
    stalled_ns: Count
    worst_stall_ns: Count
    longest_stalls: tuple[Stall, ...] = ()
    stolen_ns: Count | None = None
    waited_ns: Count | None = None


class ReceiverTime(AgreementPart):
    """How long the receivers ran, by the kernel's statistics, and a program that does nothing beside them."""

    runs: Count
    runs_ns: Count
    empty_runs: Count
    empty_runs_ns: Count


class Clock(AgreementPart):
    """The kernel's clock source, and how often the wall clock was stepped during the trial."""

    source: str
    steps: Count | None = None


class FrameSizes(AgreementPart):
    """Octets with FCS as sent on each side."""

    initiator_octets: Count
    responder_octets: Count


class Progress(AgreementPart):
    """Where a running trial is."""

    event: Literal["progress"]
    phase: Literal["phase1", "gap", "phase2"]
    seconds: float
    intended_frames: Count
    made_frames: Count
    received_frames: Count


class TrialResult(AgreementPart):
    """What the engine counted in one trial: raw integers, nothing derived. A stateless trial has no `phase1`."""

    event: Literal["result"]
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


def phase1_of(result: TrialResult) -> StreamCounts:
    """Counts of phase 1, for trials that have one.

    Raises:
        BrokenError: the engine left them out.
    """
    if result.phase1 is None:
        raise BrokenError("trial: natgauge-engine left phase 1 out of its result")
    return result.phase1
