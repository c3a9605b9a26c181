# SPDX-License-Identifier: Apache-2.0
"""Requests and results of the engine. Generated from trial/*.schema.json by tools/agreement_types.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from natgauge.trials.part import AgreementPart
from pydantic import NonNegativeInt


class GatewaySide(AgreementPart):
    """The device's end of a link. Without `mac` the engine resolves `address` by ARP or NDP."""

    mac: str | None = None
    address: str | None = None
    """IPv4 or IPv6 address in text form, of the side's family."""


class AddressRange(AgreementPart):
    """Addresses first, first + step, ..., last. IPv6: all have the same upper 64 bits."""

    first: str
    """IPv4 or IPv6 address in text form, of the side's family."""
    last: str
    """IPv4 or IPv6 address in text form, of the side's family."""
    step: int = 1
    """Distance between consecutive addresses."""


class PortRange(AgreementPart):
    """Ports, both ends included."""

    first: int
    last: int


class CustomerEdges(AgreementPart):
    """Customer edges, with the basic mapping rule from which their addresses and port sets follow (RFC 7597 section 5). Edge 0 has the first PSID of first_address, edge 1 the next PSID; after the last PSID of an address follows the first PSID of the next address."""

    number: int
    ipv6_prefix: str
    ipv6_prefix_length: int
    ipv4_prefix: str
    ipv4_prefix_length: int
    psid_length: int
    """"k" of RFC 7597. As many embedded address bits follow the IPv6 prefix as IPv4 suffix and PSID have."""
    psid_offset: int
    """"a" of RFC 7597."""
    first_address: str
    first_psid: int
    relay: str | None = None
    """The relay's IPv6 address: each edge tunnels IPv4 to it, from its MAP address (RFC 2473). Absent: the edges translate IPv4 to IPv6 (RFC 7599)."""
    first: int = 0
    """Number of the first edge that is used."""


class ResponderSide(AgreementPart):
    """The side that answers."""

    interface: str
    netns: str | None = None
    """Name below /run/netns; absent = the engine's own namespace."""
    family: Literal["ipv4", "ipv6"]
    """The IP version of a side."""
    mac: str | None = None
    """Source MAC; the interface's own when absent."""
    gateway: GatewaySide
    addresses: AddressRange
    """The Responder's own addresses. With customer_edges.relay: those of the router before the relay, for which neighbour solicitations are answered; the relay's IPv4 addresses are initiator.destination_addresses."""
    destination_addresses: AddressRange | None = None
    """Only in stateless trials: the Initiator's addresses as the Responder writes them. The same number as initiator.source_addresses, in the same order. Absent: the same addresses. Required where the families differ."""
    customer_edges: CustomerEdges | None = None
    """The device is customer edges, one for each of initiator.source_addresses, and the Responder is their relay. If the Responder speaks ipv4, the device is these edges and their relay. Frames from ports outside of the sender's port set are mistranslated."""


class Phase1(AgreementPart):
    """Opening connections (RFC 9693 section 4.2)."""

    rate: float
    """frames/s"""
    grace_ms: int = 500
    catch_up_percent: int | None = None
    """Highest rate of senders that catch up after a stall, in % of the rate. Absent: unlimited."""


class InitiatorStream(AgreementPart):
    """Frames that the Initiator sends in phase 2."""

    rate: float
    """frames/s"""
    frames: int


class Step(AgreementPart):
    """A change of the rates without a pause after the streams' frames (RFC 2544 section 26.5): the same streams continue at `share` of their rates for `seconds`."""

    share: float
    seconds: float


class Background(AgreementPart):
    """Native IPv6 traffic in phase 2, which the device only routes (RFC 8219 section 5.3). Frame i of a direction belongs to the foreground if i modulo n < m, otherwise to the background. Background frames are part of the counts."""

    n: int
    m: int
    initiator_addresses: AddressRange
    responder_addresses: AddressRange


class DelaySamples(AgreementPart):
    """Number of frames timed per direction, evenly spread over those due from_ms after the start of phase 2 or later (RFC 8219 section 7.2). Absent: all frames are timed."""

    from_ms: int
    frames: int


class Senders(AgreementPart):
    """The tester's senders, one per CPU."""

    cpus: Sequence[int]
    batch: int = 64
    """Frames that leave together; 1 gives the least delay."""
    stall_ns: int = 1000000
    """A sender that is inactive for longer than this has stalled."""


class TrialLimits(AgreementPart):
    """Limits of a trial."""

    seconds: float | None = None
    """The trial is aborted after this time."""


class Slices(AgreementPart):
    """Blocks of slices. A block has one slice per contestant in a random order, then one more in the reverse order."""

    frames: int
    """Frames per slice."""
    lead: int = 0
    """Warm-up frames before each slice, which are not timed: they load the caches that other contestants have used."""
    new: int
    """Blocks in which each contestant's last connections are opened; earlier ones are opened before the first block."""
    up: int
    """Blocks with frames of established connections from the Initiator."""
    down: int
    both: int


class LateDelay(AgreementPart):
    """Delays of the late frames: from the sending of the frame, or of the first message of its connection, to its arrival. Without record_delays and frame_timeout_ms, a sender behind its schedule reads the clock once for a few frames, so a delay may be too long by the time in which they were sent."""

    minimum_ns: int
    maximum_ns: int
    sum_ns: int


class Silence(AgreementPart):
    """The longest time between two arrivals; both since the start of the phase."""

    from_ns: NonNegativeInt
    to_ns: NonNegativeInt


class VariationCounts(AgreementPart):
    """D(i) - D(i-1), signed, for consecutive frames of a sender that both arrived (RFC 5481 section 4.1)."""

    pairs: NonNegativeInt
    minimum_ns: int | None = None
    maximum_ns: int | None = None
    buckets: Sequence[tuple[int, int, NonNegativeInt]]
    """(lower_ns, upper_ns, frames) in increasing order: lower_ns <= value < upper_ns, for negative values lower_ns < value <= upper_ns. Their relative width is at most 0.8 %."""


class SourceCounts(AgreementPart):
    """Connections of one source address."""

    connections: NonNegativeInt
    stored: NonNegativeInt
    """Connections that the Responder learned."""


class DeviceSigns(AgreementPart):
    """Segments at one of the tester's ports that show what a device does to TCP. They are no part of other counts."""

    resets: NonNegativeInt
    """Resets that the tester's other side did not send."""
    renumbered: NonNegativeInt
    """Intact segments to the tester's addresses with a sequence number of no connection, but a time stamp of this trial."""
    restamped: NonNegativeInt
    """SYN-ACKs, counted as arrivals, too, whose time stamp and echo do not belong together."""


class ReceiverTime(AgreementPart):
    """Run time of programs by the kernel's statistics (bpf(2), BPF_ENABLE_STATS). It includes a reading of the clock per run."""

    runs: NonNegativeInt
    """Runs of the receivers on both ports in both phases, one per frame."""
    runs_ns: NonNegativeInt
    empty_runs: NonNegativeInt
    """Runs of a program that does nothing, timed in the same way, to subtract the cost of timing."""
    empty_runs_ns: NonNegativeInt


class Stall(AgreementPart):
    """A stall: from the last activity before it to the first after it, since the start of the latest phase that had begun by its end."""

    phase: Literal["phase1", "gap", "phase2"]
    """A part of a trial."""
    from_ns: int
    to_ns: int


class Clock(AgreementPart):
    """The clocks during the trial."""

    source: str
    steps: NonNegativeInt
    """Number of steps of the wall clock."""


class FrameSizes(AgreementPart):
    """Frame lengths, octets with FCS."""

    initiator_octets: NonNegativeInt
    responder_octets: NonNegativeInt


class StreamTally(AgreementPart):
    """One stream of a contestant over all slices of a round, timed or not."""

    made_frames: NonNegativeInt
    received_frames: NonNegativeInt
    """Expected frames, without duplicates."""
    duplicates: NonNegativeInt
    reordered: NonNegativeInt
    """Part of received: arrived after a later frame of their stream (RFC 4737)."""
    late: NonNegativeInt
    damaged: NonNegativeInt
    untranslated: NonNegativeInt
    mistranslated: NonNegativeInt
    skipped: NonNegativeInt
    """Responder: frames not sent, because no stored connection was found for them."""


class FloorCounts(AgreementPart):
    """Counts of the redirect floor's frames in a round."""

    made_frames: NonNegativeInt
    received_frames: NonNegativeInt
    """From the counters of the interfaces."""


class Failed(AgreementPart):
    """What a failure is of, for programs; its sentence is on standard error."""

    event: Literal["failed"] = "failed"
    port: str
    """The port that failed: "initiator" or "responder"."""


class InitiatorSide(AgreementPart):
    """The side that opens connections (RFC 9693 section 3)."""

    interface: str
    netns: str | None = None
    """Name below /run/netns; absent = the engine's own namespace."""
    family: Literal["ipv4", "ipv6"]
    """The IP version of a side."""
    mac: str | None = None
    """Source MAC; the interface's own when absent."""
    gateway: GatewaySide
    source_addresses: AddressRange
    """With customer_edges: the one address of the router before them, for which neighbour solicitations are answered."""
    source_ports: PortRange
    """With customer_edges: positions in each port set, the lowest port has position 1."""
    customer_edges: CustomerEdges | None = None
    destination_addresses: AddressRange
    """The Responder's addresses as the Initiator writes them (NAT64: inside the prefix; in a tunnel: IPv4). The same number as responder.addresses, in the same order."""
    destination_ports: PortRange


class Translation(AgreementPart):
    """The translation expected from the device."""

    source: Literal["translated", "unchanged"]
    """Whether the device must translate the Initiator's source (NAT) or must not change it (routing)."""
    pool: AddressRange | None = None
    """Outside addresses that the device may use; frames with another source are mistranslated."""


class Closing(AgreementPart):
    """How TCP connections are closed: in phase 1 as the end of a transaction, or in phase 2."""

    by: Literal["fin", "rst"]
    """The Initiator's segment that begins to close a connection."""
    request_octets: int | None = None
    """Octets of the request in the ACK of each handshake, and of the Responder's response to it. The Initiator reacts to the response and closes the connection. Absent: there are no requests, and each of the Initiator's frames of phase 2 closes one connection, in the order in which they were opened."""


class ResponderStream(AgreementPart):
    """Frames that the Responder sends in phase 2."""

    rate: float
    """frames/s"""
    frames: int
    reading_order: Literal["pseudorandom", "increasing", "once"] = "pseudorandom"
    """How the Responder reads its state table. once: each stored four tuple exactly once; frames must equal connections."""


class MessageCounts(AgreementPart):
    """Arrivals of one message of a stream's connections."""

    name: Literal["datagram", "query", "response", "request", "reply", "syn", "syn-ack", "ack", "fin", "fin-ack", "rst", "last-ack", "segment"]
    """Names of messages."""
    received: NonNegativeInt
    """Correct ones."""
    wrong: NonNegativeInt
    """Intact, but with other content; not part of received."""


class DelayCounts(AgreementPart):
    """One-way delays of the timed frames. Negative delays are counted and included in the minimum, but are in no bucket."""

    frames: NonNegativeInt
    negative: NonNegativeInt
    due_in_stalls: NonNegativeInt | None = None
    """Frames to be timed that were due during a stall, up to 1 ms before it, or for the stall's length after it, as in lost_in_stalls. Absent: there were too many stalls to record."""
    minimum_ns: int | None = None
    maximum_ns: int | None = None
    sum_ns: int | None = None
    buckets: Sequence[tuple[int, int, NonNegativeInt]]
    """(lower_ns, upper_ns, frames) in increasing order: lower_ns <= value < upper_ns, for negative values lower_ns < value <= upper_ns. Their relative width is at most 0.8 %."""
    variation: VariationCounts | None = None


class StateTable(AgreementPart):
    """The Responder's state table (RFC 9693 section 4.10)."""

    connections: NonNegativeInt
    stored: NonNegativeInt
    """Connections that the Responder learned in phase 1."""
    remapped: NonNegativeInt
    """Frames of phase 2 whose outside source differed from the one learned."""
    octets: NonNegativeInt
    by_source: Sequence[SourceCounts] | None = None
    """Connections of each source address, in the order of the addresses. Absent: all were stored, there is one source address or more than 256, connections are more than 16,777,216, or four tuples may occur twice."""


class PortCounters(AgreementPart):
    """Counts of one of the tester's ports."""

    refused: NonNegativeInt
    """Frames that the port did not accept (drops of xdp_devmap_xmit), and frames whose reaction could not be written."""
    redirect_errors: NonNegativeInt
    foreign: NonNegativeInt
    """Frames without a mark of this trial."""
    neighbour_replies: NonNegativeInt
    rx_dropped: NonNegativeInt
    """Interface counter, during the trial."""
    tx_dropped: NonNegativeInt
    """Interface counter, during the trial."""
    gateway_mac: str
    mistranslated_address: str | None = None
    """Source address of a mistranslated frame at this port. Absent: there was none."""
    mistranslated_port: NonNegativeInt | None = None
    """Its source port, or its identifier with ICMP."""
    icmp_errors: NonNegativeInt
    """ICMP errors about frames of this port, but those that a frame is too big. They are no part of other counts."""
    too_big: NonNegativeInt
    """ICMP errors that a frame of this port is too big."""
    path_mtu: NonNegativeInt | None = None
    """The least MTU that such an error named. Absent: none did."""
    device_signs: DeviceSigns | None = None
    """Present with TCP."""


class Cpu(AgreementPart):
    """Disturbances of a CPU."""

    cpu: NonNegativeInt
    role: Literal["sender", "watched"]
    """Use of a CPU."""
    stalls: NonNegativeInt
    """Number of times that the CPU was inactive for more than senders.stall_ns (watched CPUs: watch_stall_ns)."""
    stalled_ns: NonNegativeInt
    worst_stall_ns: NonNegativeInt
    longest_stalls: Sequence[Stall]
    """The 64 longest stalls, in order of time."""
    stolen_ns: NonNegativeInt
    """Steal time of /proc/stat, in units of 10 ms."""
    waited_ns: NonNegativeInt | None = None
    """Senders: time in which the thread was runnable but another task ran on its CPU."""


class ContestantCounts(AgreementPart):
    """Counts of a contestant's frames in a round."""

    name: str
    mark: NonNegativeInt
    new: StreamTally
    """First frames of new connections."""
    initiator: StreamTally
    """Frames of established connections from the Initiator."""
    responder: StreamTally
    """Frames of established connections from the Responder."""
    stored: NonNegativeInt
    """Connections that the Responder learned."""
    remapped: NonNegativeInt
    """Frames of established connections whose outside source differed from the one learned."""
    damaged_unmarked: NonNegativeInt
    """Frames too damaged to read their stream."""
    foreign: NonNegativeInt
    """Frames without a mark of this contestant."""
    offered_frames: NonNegativeInt
    """Frames that the ports accepted, including the two frames of the self-test."""
    refused_frames: NonNegativeInt
    """Frames that the ports did not accept, and failed redirects."""
    gateway_macs: Sequence[str]
    """Of the Initiator's and the Responder's gateway."""


class Block(AgreementPart):
    """Consecutive slices of one quantity: each contestant once in `order`, then once in the reverse order."""

    quantity: Literal["new", "up", "down", "both"]
    """Frames of a slice: the first frames of new connections, or frames of established connections from the Initiator, from the Responder, or alternately from both."""
    order: Sequence[NonNegativeInt]
    """Positions of contestants; the redirect floor's follows the last contestant's."""
    ns: Sequence[NonNegativeInt]
    """Duration of each slice, in order of time: from the call that sends until all its frames have arrived."""
    waited: NonNegativeInt
    """Slices whose last frames arrived after the call that sent them had returned."""
    interrupted: NonNegativeInt
    """Slices in which the sender was inactive for more than 1 ms."""


class Frame(AgreementPart):
    """Length and content of frames."""

    size: int
    """Octets with FCS, on the named side; the other side follows from the families (IPv6 = IPv4 + 20, IPv4 in IPv6 = IPv4 + 40)."""
    side: Literal["initiator", "responder"]
    """One of the two sides, by name."""
    transport: Literal["udp", "icmp", "tcp"] = "udp"
    """What test frames are: UDP datagrams; ICMP echo requests and replies, whose identifier is the Initiator's port; or TCP segments, after a handshake in phase 1."""
    query: Literal["a", "aaaa"] | None = None
    """Each frame of the Initiator is a DNS query of this type, with the tag in its name, and the Responder answers at once. Received frames are then correct responses at the Initiator, and delays are those of query and response together. Absent: plain test frames."""
    half_open: bool = False
    """With transport tcp: connections stay half-open. A SYN of phase 1 gets no answer at once; each frame of the Responder in phase 2 is the SYN-ACK of one connection, to which the Initiator does not react."""
    closing: Closing | None = None
    """With transport tcp: how connections are closed. Absent: they stay open, and phase 2 sends data."""
    handed_on: bool = False
    """The Responder does not answer queries but passes them to the network stack of its port's namespace, where a DNS server answers."""


class Phase2(AgreementPart):
    """The real test phase (RFC 9693 section 4.7); at least one side sends."""

    initiator: InitiatorStream | None = None
    responder: ResponderStream | None = None
    grace_ms: int = 2000
    catch_up_percent: int | None = None
    """See phase 1."""
    step: Step | None = None
    periods: int = 1
    """Times that phase 2 is run, one after the other, after a gap each, over the same connections."""


class ComparisonResult(AgreementPart):
    """The result of one round of a comparison."""

    version: Literal[1]
    engine: str
    contestants: Sequence[ContestantCounts]
    """In the request's order."""
    floor: FloorCounts | None = None
    """Absent: it was not requested."""
    blocks: Sequence[Block]
    """In order of time."""
    wall_ns: NonNegativeInt


class StreamCounts(AgreementPart):
    """One direction of one phase."""

    intended_frames: NonNegativeInt
    intended_rate: float
    made_frames: NonNegativeInt
    """Frames sent to the port by the generator; offered frames are those that the port accepted."""
    offered_frames: NonNegativeInt
    received_frames: NonNegativeInt
    """Expected frames, without duplicates."""
    duplicates: NonNegativeInt
    reordered: NonNegativeInt
    """Part of received: arrived after a later frame of their stream (RFC 4737)."""
    late: NonNegativeInt
    """Arrived after the end of grace, after the frame timeout, or too late to recognize duplicates."""
    late_delay: LateDelay | None = None
    """Absent: no frame was late, or the phase is one of several periods."""
    damaged: NonNegativeInt
    fragments: NonNegativeInt
    """IP fragments to the tester's addresses, of any frame. They and the next two are not damaged."""
    tagged: NonNegativeInt
    """Frames to the tester's addresses with a VLAN tag."""
    without_checksum: NonNegativeInt
    """Frames over IPv6 with a UDP checksum of 0, unless such frames are accepted."""
    untranslated: NonNegativeInt
    mistranslated: NonNegativeInt
    zero_checksums: NonNegativeInt | None = None
    """Part of received: over IPv6 with a UDP checksum of 0. Absent: such frames are damaged."""
    messages: Sequence[MessageCounts]
    """The message that the side sends, and its reactions, in their order. The correct ones of the last are `received`."""
    skipped: NonNegativeInt
    """Responder: frames not sent, because no stored connection was found for them."""
    background_frames: NonNegativeInt | None = None
    """Part of made: native IPv6. Absent: no background was requested."""
    background_received: NonNegativeInt | None = None
    """Part of received: native IPv6."""
    nominal_ns: NonNegativeInt
    sending_ns: NonNegativeInt
    """From the schedule's start to the sending of the last frame."""
    worst_lag_ns: NonNegativeInt
    mean_lag_ns: NonNegativeInt
    final_lag_ns: NonNegativeInt
    """Lag of the last frame."""
    settled_lag_ns: NonNegativeInt
    """From the due time of the phase's last frame until its batch was sent to the port; in placement `shared`: until the device had processed it. The same for all directions."""
    stalled_ns: NonNegativeInt
    """Total time of a sender's stalls in this phase, each longer than senders.stall_ns; the largest of all senders."""
    lost_in_stalls: NonNegativeInt | None = None
    """Part of offered - received: due during a stall, up to 1 ms before it, or for the stall's length after it. A sender's stalls in which no more than a batch of frames was due are ignored. Absent: there were too many stalls or lost frames to record, or not all made frames were offered."""
    last_lost_ns: NonNegativeInt | None = None
    """Due time of the last lost frame since the start of the phase. Absent: none was lost, or it was not requested."""
    longest_silence: Silence | None = None
    delay: DelayCounts | None = None


class Phase2Counts(AgreementPart):
    """Phase 2, by sending side. Absent: the side does not send."""

    initiator: StreamCounts | None = None
    responder: StreamCounts | None = None


class Ports(AgreementPart):
    """Both ports."""

    initiator: PortCounters
    responder: PortCounters


class TrialRequest(AgreementPart):
    """One elementary test: phase 1, gap, phase 2."""

    version: Literal[1] = 1
    mark: int
    """Number of the trial, contained in every frame; frames of another trial are foreign."""
    seed: int
    """Seed of all pseudorandom choices: the same seed and mark give the same frames."""
    initiator: InitiatorSide
    responder: ResponderSide
    translation: Translation
    stateless: bool = False
    """No phase 1: both sides compute four tuples themselves (RFC 8219 section 5.1). For devices without connection state."""
    connections: int
    """N, the number of connections: the first N four tuples in the order. With with-replacement: the number of draws, which may exceed the number of four tuples."""
    order: Literal["permutation", "increasing", "decreasing", "with-replacement"]
    """Order in which phase 1 uses the four tuples."""
    frame: Frame
    phase1: Phase1 | None = None
    gap_ms: int = 0
    """Between the end of phase 1's grace and the first frame of phase 2."""
    phase2: Phase2 | None = None
    background: Background | None = None
    record_delays: bool = False
    """Time the frames of phase 2, or of phase 1 where there is no phase 2."""
    delay_samples: DelaySamples | None = None
    record_variation: bool = False
    """Also record delay differences between consecutive frames of a sender (RFC 5481 section 4.1). Requires record_delays without delay_samples."""
    record_loss_times: bool = False
    """Record when the last lost frame was due, and the longest time without an arrival."""
    record_receiver_time: bool = False
    """Measure the run time of the receivers' programs. During the trial the kernel then times all BPF programs of the host, which adds two readings of the clock to each run. Requires CAP_SYS_ADMIN."""
    accept_zero_checksum: bool = False
    """Frames over IPv6 with a UDP checksum of 0 count as received. Otherwise they are damaged (RFC 8200 section 8.1)."""
    frame_timeout_ms: float | None = None
    """A frame with a larger one-way delay is late. Absent: frames are late only after the end of grace."""
    senders: Senders
    watch_cpus: Sequence[int] = []
    """Other CPUs, such as the device's, whose stalls are recorded."""
    watch_stall_ns: int = 5000000
    """A watched CPU on which the engine's thread did not run for longer than this has stalled."""
    limits: TrialLimits | None = None


class Contestant(AgreementPart):
    """A device to compare, or a cable without a device."""

    name: str
    """Used in messages only."""
    trial: TrialRequest
    """Ports, four tuples and frames. Slices are sent without pacing, so rates, grace, gap and phase 2 are not used."""


class TrialResult(AgreementPart):
    """The result of a trial; with several periods of phase 2, that of the last one."""

    event: Literal["result"] = "result"
    version: Literal[1]
    engine: str
    mark: NonNegativeInt
    seed: NonNegativeInt
    phase1: StreamCounts | None = None
    """Absent in stateless trials."""
    phase2: Phase2Counts | None = None
    state_table: StateTable
    ports: Ports
    receiver_time: ReceiverTime | None = None
    """Absent: it was not requested."""
    cpus: Sequence[Cpu]
    clock: Clock
    start_to_first_frame_ns: NonNegativeInt
    wall_ns: NonNegativeInt
    frame: FrameSizes


class Progress(AgreementPart):
    """State of a running trial."""

    event: Literal["progress"] = "progress"
    phase: Literal["phase1", "gap", "phase2"]
    """A part of a trial."""
    seconds: float
    intended_frames: NonNegativeInt
    made_frames: NonNegativeInt
    received_frames: NonNegativeInt
    period: TrialResult | None = None
    """Result of a period of phase 2 that has ended and is not the last: counts, ports and CPUs of this period alone, and phase 1 of the trial."""


class ComparisonRequest(AgreementPart):
    """One round of a comparison."""

    version: Literal[1] = 1
    seed: int
    """Seed of the order of slices; each trial has its own seed for its frames."""
    cpu: int
    """CPU that sends all slices; in placement `shared` the devices use it, too."""
    batch: int = 64
    """Frames that leave together."""
    contestants: Sequence[Contestant]
    floor: int | None = None
    """Position of a contestant whose ports are also used for the redirect floor: each block has two more slices, in which one program only redirects frames and another only drops them. They measure the kernel's own cost of a frame. The floor's position in blocks follows the last contestant's."""
    slices: Slices
    limits: TrialLimits | None = None