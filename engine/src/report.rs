// SPDX-License-Identifier: Apache-2.0
//! The engine's output: raw counts, absent where nothing was measured. `trial/result-1.schema.json` is generated from
//! these types.
#![allow(missing_docs, reason = "where a field's name says all, its schema has no description either")]

use std::net::{IpAddr, Ipv4Addr};

use schemars::JsonSchema;
use serde::Serialize;

use crate::messages::MessageName;
use crate::request::{Quantity, Request};
use crate::tester::types;

/// Version of both results.
pub const VERSION: u32 = 1;

/// (lower_ns, upper_ns, frames) in increasing order: lower_ns <= value < upper_ns, for negative values lower_ns < value <=
/// upper_ns. Their relative width is at most 0.8 %.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Buckets(pub Vec<(i64, i64, u64)>);

/// One-way delays of the timed frames. Negative delays are counted and included in the minimum, but are in no bucket.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DelayCounts")]
pub struct Delay {
    pub frames: u64,
    pub negative: u64,
    /// Frames to be timed that were due during a stall, up to 1 ms before it, or for the stall's length after it, as in
    /// lost_in_stalls. Absent: there were too many stalls to record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_in_stalls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_ns: Option<i64>,
    pub buckets: Buckets,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variation: Option<Variation>,
}

/// D(i) - D(i-1), signed, for consecutive frames of a sender that both arrived (RFC 5481 section 4.1).
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "VariationCounts")]
pub struct Variation {
    pub pairs: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_ns: Option<i64>,
    pub buckets: Buckets,
}

/// The longest time between two arrivals; both since the start of the phase.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Silence {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// Frames that were due from the change of the rate on and did not arrive in time.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LostAfterStep {
    pub frames: u64,
    /// Due times of the last ones since the start of the phase, rising: all, or nine.
    pub latest_ns: Vec<u64>,
}

/// Arrivals of one message of a stream's connections.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageCounts {
    pub name: MessageName,
    /// Correct ones.
    pub received: u64,
    /// Intact, but with other content; not part of received.
    pub wrong: u64,
}

/// Frames of one size.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeCounts {
    /// As in the request: with FCS, on frame.side.
    pub octets: u32,
    pub made_frames: u64,
    pub received_frames: u64,
}

/// Delays of the late frames: from the sending of the frame, or of the first message of its connection, to its arrival.
/// Without record_delays and frame_timeout_ms, a sender behind its schedule reads the clock once for a few frames, so a
/// delay may be too long by the time in which they were sent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LateDelay {
    pub minimum_ns: i64,
    pub maximum_ns: i64,
    pub sum_ns: i64,
}

/// Frames of a stream that arrived in another form than that of test frames.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct WrongFrames {
    pub damaged: u64,
    /// IP fragments to the tester's addresses, of any frame. They and the next two are not damaged.
    pub fragments: u64,
    /// Frames to the tester's addresses with other VLAN tags than the side's.
    pub tagged: u64,
    /// Frames to the tester's addresses with fewer VLAN tags than the side's. Absent: no side has tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untagged: Option<u64>,
    /// Frames over IPv6 with a UDP checksum of 0, unless such frames are accepted.
    pub without_checksum: u64,
    pub untranslated: u64,
    pub mistranslated: u64,
}

impl WrongFrames {
    /// From the counts of the receivers; untagged frames are only counted where a side has tags.
    pub fn new(tally: &types::tally, odd: &types::oddities, request: &Request) -> Self {
        Self {
            damaged: tally.damaged,
            fragments: odd.fragments,
            tagged: odd.tagged,
            untagged: request.headers().iter().any(|side| side.vlan.is_some()).then_some(odd.untagged),
            without_checksum: odd.unchecked,
            untranslated: tally.untranslated,
            mistranslated: tally.mistranslated,
        }
    }
}

/// One direction of one phase.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StreamCounts")]
pub struct Counts {
    pub intended_frames: u64,
    pub intended_rate: f64,
    /// Frames sent to the port by the generator; offered frames are those that the port accepted.
    pub made_frames: u64,
    pub offered_frames: u64,
    /// Expected frames, without duplicates.
    pub received_frames: u64,
    pub duplicates: u64,
    /// Part of received: arrived after a later frame of the same sender in their stream (RFC 4737).
    pub reordered: u64,
    /// Arrived after the end of grace, after the frame timeout, or too late to recognize duplicates.
    pub late: u64,
    /// Absent: no frame was late, or the phase is one of several periods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_delay: Option<LateDelay>,
    #[serde(flatten)]
    pub wrong: WrongFrames,
    /// Part of received: over IPv6 with a UDP checksum of 0. Absent: such frames are damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zero_checksums: Option<u64>,
    /// Queries of the device at the Responder's port while the stream's frames were under way. Absent: the device does not
    /// answer queries itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
    /// The message that the side sends, and its reactions, in their order. The correct ones of the last are `received`.
    pub messages: Vec<MessageCounts>,
    /// Made and received frames by size. Absent: the stream's frames have one size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<SizeCounts>>,
    /// Responder: frames not sent, because no stored connection was found for them.
    pub skipped: u64,
    /// Responder, with churn: frames that were not sent, because the opening of their connection had not arrived a guard
    /// after it was due. They are no part of offered, and are lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unopened: Option<u64>,
    /// Broadcasts in place of frames. Absent: none were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broadcast_frames: Option<u64>,
    /// Part of made: native IPv6. Absent: no background was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_frames: Option<u64>,
    /// Part of received: native IPv6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_received: Option<u64>,
    pub nominal_ns: u64,
    /// From the schedule's start to one interval after the sending of the last frame; without delay as long as nominal_ns.
    pub sending_ns: u64,
    pub worst_lag_ns: u64,
    pub mean_lag_ns: u64,
    /// Lag of the last frame.
    pub final_lag_ns: u64,
    /// From the due time of the phase's last frame until its batch was sent to the port; in placement `shared`: until the
    /// device had processed it. The same for all directions.
    pub settled_lag_ns: u64,
    /// Total time of a sender's stalls in this phase, each longer than senders.stall_ns; the largest of all senders.
    pub stalled_ns: u64,
    /// Part of offered - received: due during a stall, up to 1 ms before it, or for the stall's length after it. A
    /// sender's stalls in which no more than a batch of frames was due are ignored. Absent: there were too many stalls or
    /// lost frames to record, some frames were not made or not offered, or more arrived than were offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_in_stalls: Option<u64>,
    /// Frames of the plan due in the times that lost_in_stalls counts. Absent: there were too many stalls to record, or the phase
    /// has broadcasts or groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_in_stalls: Option<u64>,
    /// Due time of the last lost frame since the start of the phase. Absent: none was lost, some were not made, or it
    /// was not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_lost_ns: Option<u64>,
    /// Absent: the rate did not change, or which frames were lost after that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_after_step: Option<LostAfterStep>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_silence: Option<Silence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
}

/// Phase 2, by sending side, and its churn. Absent: such frames are not sent. Frames that a port did not accept are missing
/// in the direction of its side.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Phase2Counts")]
pub struct Phase2 {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiator: Option<Counts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responder: Option<Counts>,
    /// With churn: frames, or with TCP handshakes, that open connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openings: Option<Counts>,
    /// With churn of TCP: segments that close connections, and the reactions to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closings: Option<Counts>,
    /// Frames that open the flood's connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flood: Option<Counts>,
}

/// The Responder's state table (RFC 9693 section 4.10).
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateTable {
    pub connections: u64,
    /// Connections that the Responder learned in phase 1, and with churn in phase 2.
    pub stored: u64,
    /// Frames of phase 2 whose outside source differed from the one learned.
    pub remapped: u64,
    pub octets: u64,
    /// Connections of each source address, in the order of the addresses. Absent: all were stored, there is one source
    /// address or more than 256, connections are more than 16,777,216, or four tuples may occur twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_source: Option<Vec<SourceCounts>>,
}

/// Connections of one source address.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceCounts {
    pub connections: u64,
    /// Connections that the Responder learned.
    pub stored: u64,
    /// Outside ports that they have, in increasing order, cut where the largest gaps of at least 64 ports are. Absent: the
    /// Responder uses IPv6, or there are too many addresses to look at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub outside: Vec<OutsideRange>,
}

/// Ports of one outside address.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutsideRange {
    pub address: Ipv4Addr,
    pub first: u16,
    pub last: u16,
}

/// Counts of one of the tester's ports.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PortCounters")]
pub struct Port {
    /// Frames that the port did not accept (drops of xdp_devmap_xmit), and frames whose reaction could not be written.
    pub refused: u64,
    pub redirect_errors: u64,
    /// Frames without a mark of this trial.
    pub foreign: u64,
    pub neighbour_replies: u64,
    /// Interface counter, during the trial.
    pub rx_dropped: u64,
    /// Interface counter, during the trial.
    pub tx_dropped: u64,
    pub gateway_mac: String,
    /// Source address of a mistranslated frame at this port. Absent: there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mistranslated_address: Option<IpAddr>,
    /// Its source port, or its identifier with ICMP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mistranslated_port: Option<u16>,
    /// ICMP errors about frames of this port, but those that a frame is too big. They are no part of other counts.
    pub icmp_errors: u64,
    /// ICMP errors that a frame of this port is too big.
    pub too_big: u64,
    /// The least MTU that such an error named. Absent: none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_mtu: Option<u64>,
    /// Management queries that the port sent, and the device's answers. Absent: none were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries: Option<QueryCounts>,
    /// Present with TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_signs: Option<DeviceSigns>,
}

/// ICMP echo requests to the device.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryCounts {
    pub sent: u64,
    pub answered: u64,
}

/// Segments at one of the tester's ports that show what a device does to TCP. They are no part of other counts.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceSigns {
    /// Resets that the tester's other side did not send.
    pub resets: u64,
    /// Intact segments to the tester's addresses with a sequence number of no connection, but a time stamp of this trial.
    pub renumbered: u64,
    /// SYN-ACKs, counted as arrivals, too, whose time stamp and echo do not belong together.
    pub restamped: u64,
}

/// Both ports.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ports {
    pub initiator: Port,
    pub responder: Port,
}

/// Run time of programs by the kernel's statistics (bpf(2), BPF_ENABLE_STATS). It includes a reading of the clock per
/// run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReceiverTime {
    /// Runs of the receivers on both ports in both phases, one per frame.
    pub runs: u64,
    pub runs_ns: u64,
    /// Runs of a program that does nothing, timed in the same way, to subtract the cost of timing.
    pub empty_runs: u64,
    pub empty_runs_ns: u64,
}

/// Use of a CPU.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Sender,
    Watched,
}

/// A stall: from the last activity before it to the first after it, since the start of the latest phase that had begun by
/// its end.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    pub phase: PhaseName,
    pub from_ns: i64,
    pub to_ns: i64,
}

/// Disturbances of a CPU.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    pub cpu: usize,
    pub role: Role,
    /// Number of times that the CPU was inactive for more than senders.stall_ns (watched CPUs: watch_stall_ns).
    pub stalls: u64,
    pub stalled_ns: u64,
    pub worst_stall_ns: u64,
    /// The 64 longest stalls, in order of time.
    pub longest_stalls: Vec<Stall>,
    /// Steal time of /proc/stat, in units of 10 ms.
    pub stolen_ns: u64,
    /// Senders: time in which the thread was runnable but another task ran on its CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
}

/// The clocks during the trial.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    pub source: String,
    /// Number of steps of the wall clock.
    pub steps: u64,
}

/// Frame lengths, octets with FCS.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "FrameSizes")]
pub struct Frame {
    pub initiator_octets: u32,
    pub responder_octets: u32,
}

/// A part of a trial.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PhaseName {
    Phase1,
    Gap,
    Phase2,
}

/// State of a running trial.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    pub phase: PhaseName,
    pub seconds: f64,
    pub intended_frames: u64,
    pub made_frames: u64,
    pub received_frames: u64,
    /// Result of a period of phase 2 that has ended and is not the last: counts, ports and CPUs of this period alone,
    /// and phase 1 of the trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<Box<TrialResult>>,
}

/// The result of a trial; with several periods of phase 2, that of the last one.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialResult {
    #[schemars(extend("const" = VERSION))]
    pub version: u32,
    pub engine: &'static str,
    pub mark: u32,
    pub seed: u64,
    /// Absent in stateless trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase1: Option<Counts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase2: Option<Phase2>,
    pub state_table: StateTable,
    pub ports: Ports,
    /// Absent: it was not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_time: Option<ReceiverTime>,
    pub cpus: Vec<Cpu>,
    pub clock: Clock,
    pub start_to_first_frame_ns: u64,
    pub wall_ns: u64,
    pub frame: Frame,
}

/// A line on standard output.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "lowercase")]
#[schemars(title = "natgauge trial result and progress lines, version 1")]
pub enum Line {
    Progress(Progress),
    Result(Box<TrialResult>),
    Failed(Failed),
}

/// What a failure is of, for programs; its sentence is on standard error.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// The port that failed: "initiator" or "responder".
    pub port: &'static str,
}

/// One stream of a contestant over all slices of a round, timed or not.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamTally {
    pub made_frames: u64,
    /// Expected frames, without duplicates.
    pub received_frames: u64,
    pub duplicates: u64,
    /// Part of received: arrived after a later frame of the same sender in their stream (RFC 4737).
    pub reordered: u64,
    pub late: u64,
    #[serde(flatten)]
    pub wrong: WrongFrames,
    /// Responder: frames not sent, because no stored connection was found for them.
    pub skipped: u64,
}

/// Counts of a contestant's frames in a round.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContestantCounts {
    pub name: String,
    pub mark: u32,
    /// First frames of new connections.
    pub new: StreamTally,
    /// Frames of established connections from the Initiator.
    pub initiator: StreamTally,
    /// Frames of established connections from the Responder.
    pub responder: StreamTally,
    /// Connections that the Responder learned.
    pub stored: u64,
    /// Frames of established connections whose outside source differed from the one learned.
    pub remapped: u64,
    /// Frames too damaged to read their stream.
    pub damaged_unmarked: u64,
    /// Frames without a mark of this contestant.
    pub foreign: u64,
    /// Frames that the ports accepted, including the two frames of the self-test.
    pub offered_frames: u64,
    /// Frames that the ports did not accept, and failed redirects.
    pub refused_frames: u64,
    /// Of the Initiator's and the Responder's gateway.
    pub gateway_macs: Vec<String>,
}

/// Consecutive slices of one quantity: each contestant once in `order`, then once in the reverse order.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Block {
    pub quantity: Quantity,
    /// Positions of contestants; the redirect floor's follows the last contestant's.
    pub order: Vec<usize>,
    /// Duration of each slice, in order of time: from the call that sends until all its frames have arrived.
    pub ns: Vec<u64>,
    /// Slices whose last frames arrived after the call that sent them had returned.
    pub waited: u32,
    /// Slices in which the sender was inactive for more than 1 ms.
    pub interrupted: u32,
}

/// Counts of the redirect floor's frames in a round.
#[derive(Debug, Default, Clone, Copy, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FloorCounts {
    pub made_frames: u64,
    /// From the counters of the interfaces.
    pub received_frames: u64,
}

/// The result of one round of a comparison.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "natgauge comparison result, version 1")]
pub struct ComparisonResult {
    #[schemars(extend("const" = VERSION))]
    pub version: u32,
    pub engine: &'static str,
    /// In the request's order.
    pub contestants: Vec<ContestantCounts>,
    /// Absent: it was not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<FloorCounts>,
    /// In order of time.
    pub blocks: Vec<Block>,
    pub wall_ns: u64,
}
