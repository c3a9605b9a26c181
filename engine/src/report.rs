// SPDX-License-Identifier: Apache-2.0
//! What the engine prints (`trial/result-1.schema.json`): raw counts, absent where nothing was measured.
#![allow(missing_docs, reason = "every field is described in trial/result-1.schema.json")]

use serde::Serialize;

/// One-way delays of one stream.
#[derive(Debug, Default, Serialize)]
pub struct Delay {
    pub frames: u64,
    pub negative: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_ns: Option<i64>,
    /// lower end, upper end (excluded), frames
    pub buckets: Vec<(i64, i64, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variation: Option<Variation>,
}

/// Differences between the delays of frames sent one after the other.
#[derive(Debug, Default, Serialize)]
pub struct Variation {
    pub pairs: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_ns: Option<i64>,
    /// lower end, upper end, pairs
    pub buckets: Vec<(i64, i64, u64)>,
}

/// The longest time between two arrivals of a stream.
#[derive(Debug, Serialize)]
pub struct Silence {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// One direction of one phase.
#[derive(Debug, Default, Serialize)]
pub struct Counts {
    pub intended_frames: u64,
    pub intended_rate: f64,
    pub made_frames: u64,
    pub offered_frames: u64,
    pub received_frames: u64,
    pub duplicates: u64,
    pub reordered: u64,
    pub late: u64,
    pub damaged: u64,
    pub untranslated: u64,
    pub mistranslated: u64,
    pub skipped: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_frames: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_received: Option<u64>,
    pub nominal_ns: u64,
    pub sending_ns: u64,
    pub worst_lag_ns: u64,
    pub mean_lag_ns: u64,
    pub final_lag_ns: u64,
    pub stalled_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_lost_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_silence: Option<Silence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
}

/// Phase 2, by sending side.
#[derive(Debug, Serialize)]
pub struct Phase2 {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiator: Option<Counts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responder: Option<Counts>,
}

/// The state table.
#[derive(Debug, Serialize)]
pub struct StateTable {
    pub connections: u64,
    pub stored: u64,
    pub remapped: u64,
    pub octets: u64,
}

/// What a port did.
#[derive(Debug, Serialize)]
pub struct Port {
    pub refused: u64,
    pub redirect_errors: u64,
    pub foreign: u64,
    pub neighbour_replies: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub gateway_mac: String,
}

/// Both ports.
#[derive(Debug, Serialize)]
pub struct Ports {
    pub initiator: Port,
    pub responder: Port,
}

/// How undisturbed a CPU was.
#[derive(Debug, Serialize)]
pub struct Cpu {
    pub cpu: usize,
    pub role: &'static str,
    pub stalls: u64,
    pub stalled_ns: u64,
    pub worst_stall_ns: u64,
    pub stolen_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
}

/// The clocks.
#[derive(Debug, Serialize)]
pub struct Clock {
    pub source: String,
    pub steps: u64,
}

/// Octets with FCS.
#[derive(Debug, Serialize)]
pub struct Frame {
    pub initiator_octets: u32,
    pub responder_octets: u32,
}

/// A line on standard output.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Line {
    Progress { phase: &'static str, seconds: f64, intended_frames: u64, made_frames: u64, received_frames: u64 },
    Result(Box<TrialResult>),
}

/// The whole trial.
#[derive(Debug, Serialize)]
pub struct TrialResult {
    pub version: u32,
    pub engine: &'static str,
    pub mark: u32,
    pub seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase1: Option<Counts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase2: Option<Phase2>,
    pub state_table: StateTable,
    pub ports: Ports,
    pub cpus: Vec<Cpu>,
    pub clock: Clock,
    pub start_to_first_frame_ns: u64,
    pub wall_ns: u64,
    pub frame: Frame,
}
