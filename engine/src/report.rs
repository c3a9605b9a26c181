// SPDX-License-Identifier: Apache-2.0
//! What the engine prints: the types from which `trial/result-1.schema.json` is generated. Raw counts, absent where
//! nothing was measured.
#![allow(missing_docs, reason = "where a field's name says all, its schema has no description either")]

use schemars::JsonSchema;
use serde::Serialize;

use crate::request::Quantity;

/// Of the agreement.
pub const VERSION: u32 = 1;

/// (lower_ns, upper_ns, frames) in rising order: lower_ns <= value < upper_ns, where negative lower_ns < value <=
/// upper_ns; relative width <= 0.8 %.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Buckets(pub Vec<(i64, i64, u64)>);

/// One-way delays of the timed frames. Negative ones are counted, and are in minimum, but in no bucket.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delay {
    pub frames: u64,
    pub negative: u64,
    /// Of the frames to be timed: due during a stall, up to 1 ms before it, or as long again behind it, as in
    /// lost_in_stalls. Absent: the stalls were too many to remember.
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

/// D(i) - D(i-1), signed, of frames that one sender sent one after the other and that both came (RFC 5481 section 4.1).
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variation {
    pub pairs: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_ns: Option<i64>,
    pub buckets: Buckets,
}

/// The two arrivals with the longest time between them, since the start of the phase.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Silence {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// One direction of one phase.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    pub intended_frames: u64,
    pub intended_rate: f64,
    /// What the generator handed to the port; offered is what the port accepted.
    pub made_frames: u64,
    pub offered_frames: u64,
    /// Expected frames, each once.
    pub received_frames: u64,
    pub duplicates: u64,
    /// Part of received: came after a later frame of its stream (RFC 4737).
    pub reordered: u64,
    /// After the end of grace, past the frame timeout, or too old to be judged.
    pub late: u64,
    pub damaged: u64,
    pub untranslated: u64,
    pub mistranslated: u64,
    /// Queries that reached the Responder as they should; received are their right answers. Absent: plain frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions_received: Option<u64>,
    /// Whole answers that say something else than they must; not part of received. Absent: plain frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong_answers: Option<u64>,
    /// Responder: readings that found no stored connection.
    pub skipped: u64,
    /// Part of made: native IPv6. Absent: no background was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_frames: Option<u64>,
    /// Part of received: native IPv6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_received: Option<u64>,
    pub nominal_ns: u64,
    /// From the schedule's start to the last frame's sending.
    pub sending_ns: u64,
    pub worst_lag_ns: u64,
    pub mean_lag_ns: u64,
    /// Of the last frame when it was made.
    pub final_lag_ns: u64,
    /// From when the phase's last frame was due to when the batch that held it had been handed to its port; between
    /// namespaces without cores of the device's own: when the device had worked it off. Of all directions alike.
    pub settled_lag_ns: u64,
    /// The most any sender stood still for more than senders.stall_ns at a time, summed over this phase.
    pub stalled_ns: u64,
    /// Part of offered - received: due during a stall, up to 1 ms before it, or as long again behind it. Stalls of a
    /// sender in which no more than a batch of frames was due do not count. Absent: the stalls or the lost frames were
    /// too many to remember, or not all made frames were offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_in_stalls: Option<u64>,
    /// When the last lost frame was due, since the start of the phase. Absent: none was lost, or it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_lost_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_silence: Option<Silence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
}

/// Phase 2, by sending side; a silent side is absent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phase2 {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiator: Option<Counts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responder: Option<Counts>,
}

/// The Responder's state table (RFC 9693 section 4.10).
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateTable {
    pub connections: u64,
    /// Connections the Responder learned in phase 1.
    pub stored: u64,
    /// Frames of phase 2 whose outside source differed from the one learned.
    pub remapped: u64,
    pub octets: u64,
}

/// What happened at one of the tester's own ports.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Frames the port did not accept (xdp_devmap_xmit drops), and queries that the Responder could not answer.
    pub refused: u64,
    pub redirect_errors: u64,
    /// Frames that carry no mark of this trial.
    pub foreign: u64,
    pub neighbour_replies: u64,
    /// Interface counter, during the trial.
    pub rx_dropped: u64,
    /// Interface counter, during the trial.
    pub tx_dropped: u64,
    pub gateway_mac: String,
}

/// Both ports.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ports {
    pub initiator: Port,
    pub responder: Port,
}

/// How long programs ran, by the kernel's statistics (bpf(2), BPF_ENABLE_STATS), each run's first clock reading with it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReceiverTime {
    /// Frames that the receivers on both ports were run for, in both phases.
    pub runs: u64,
    pub runs_ns: u64,
    /// Runs of a program that does nothing, timed in the same way.
    pub empty_runs: u64,
    pub empty_runs_ns: u64,
}

/// What a CPU was there for.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Sender,
    Watched,
}

/// Between two times that a CPU was seen at its task, since the start of the latest phase that had begun by its end.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    pub phase: PhaseName,
    pub from_ns: i64,
    pub to_ns: i64,
}

/// How undisturbed a CPU was.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    pub cpu: usize,
    pub role: Role,
    /// Times this CPU did nothing of its task for more than senders.stall_ns (watched CPUs: watch_stall_ns).
    pub stalls: u64,
    pub stalled_ns: u64,
    pub worst_stall_ns: u64,
    /// The 64 longest of the stalls, in the order of time.
    pub longest_stalls: Vec<Stall>,
    /// Steal time of /proc/stat (10 ms grain).
    pub stolen_ns: u64,
    /// Senders: time the thread was ready to run but another task had its CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
}

/// The clocks.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    pub source: String,
    /// Times the wall clock was stepped during the trial.
    pub steps: u64,
}

/// Octets with FCS.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
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

/// Where a running trial is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    pub phase: PhaseName,
    pub seconds: f64,
    pub intended_frames: u64,
    pub made_frames: u64,
    pub received_frames: u64,
}

/// The whole trial.
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
    /// Absent: it was not asked for.
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
}

/// One stream of a contestant over all slices of a round, told or not.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamTally {
    pub made_frames: u64,
    /// Expected frames, each once.
    pub received_frames: u64,
    pub duplicates: u64,
    /// Part of received: came after a later frame of its stream (RFC 4737).
    pub reordered: u64,
    pub late: u64,
    pub damaged: u64,
    pub untranslated: u64,
    pub mistranslated: u64,
    /// Responder: readings that found no stored connection.
    pub skipped: u64,
}

/// What came of a contestant's frames in a round.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContestantCounts {
    pub name: String,
    pub mark: u32,
    /// First frames of connections.
    pub new: StreamTally,
    /// Frames of standing connections from the Initiator.
    pub initiator: StreamTally,
    /// And from the Responder.
    pub responder: StreamTally,
    /// Connections the Responder learned.
    pub stored: u64,
    /// Frames of standing connections whose outside source differed from the one learned.
    pub remapped: u64,
    /// Frames too broken to name their stream.
    pub damaged_unmarked: u64,
    /// Frames that carry no mark of this contestant's.
    pub foreign: u64,
    /// What the ports accepted, the two frames of the self-test too.
    pub offered_frames: u64,
    /// What they did not accept, and redirects that failed before.
    pub refused_frames: u64,
    /// The Initiator's, then the Responder's.
    pub gateway_macs: Vec<String>,
}

/// Slices of one quantity that stand side by side: each contestant in `order`, then each in the reverse order.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Block {
    pub quantity: Quantity,
    /// Positions of contestants; the floor's is behind the last one's.
    pub order: Vec<usize>,
    /// What each slice took, in the order of time: from the call that sends until all its frames are back.
    pub ns: Vec<u64>,
    /// Slices whose last frames came only after the call that sent them.
    pub waited: u32,
    /// Slices in which the sender did nothing of its task for more than 1 ms.
    pub interrupted: u32,
}

/// What came of the redirect floor's frames in a round.
#[derive(Debug, Default, Clone, Copy, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FloorCounts {
    pub made_frames: u64,
    /// By the interfaces' own counters.
    pub received_frames: u64,
}

/// One round of a comparison.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "natgauge comparison result, version 1")]
pub struct ComparisonResult {
    #[schemars(extend("const" = VERSION))]
    pub version: u32,
    pub engine: &'static str,
    /// In the request's order.
    pub contestants: Vec<ContestantCounts>,
    /// Absent: it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<FloorCounts>,
    /// In the order of time.
    pub blocks: Vec<Block>,
    pub wall_ns: u64,
}
