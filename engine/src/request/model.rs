// SPDX-License-Identifier: Apache-2.0
//! The trial request: fields with descriptions, bounds and defaults. `trial/request-1.schema.json` is generated from these
//! types. Rules between fields are in `schema_rules` and `engine_rules`.
#![allow(missing_docs, reason = "where a field's name says all, its schema has no description either")]

use schemars::JsonSchema;
use serde::Deserialize;

use super::addresses::{halves, AddressRange, Gateway, Mac, PortRange};
use super::bounds::{Cpus, Positive, Rate, Text, Whole, MOST_CPUS};
use super::churn::Churn;
use super::customer_edges::CustomerEdges;
use super::frame::{Frame, Headers, SideName, FCS};
use super::modifiers::Modifiers;
use crate::family::Family;
use crate::messages::Message;
use crate::shared::{CONNECTION_BITS, INITIATOR, MAX_SENDERS, RESPONDER, SIDES};

/// Version of the trial request.
pub const VERSION: u64 = 1;
/// The kernel's IFNAMSIZ without the terminating zero.
pub const LONGEST_NAME: usize = 15;
pub(super) const MOST_CONNECTIONS: u64 = 1 << CONNECTION_BITS;
const MOST_FRAMES: u64 = (1 << 40) - 1;
const LONGEST_GRACE_MS: u64 = 60_000;
const LEAST_STALL_NS: u64 = 10_000;
/// No phase is longer, so no pause is.
const MOST_STALL_NS: u64 = LONGEST_PHASE_SECONDS * 1_000_000_000;
/// Sending times have 64 bits, `DUE_FRACTION` of them for fractions of a ns: 4.8 hours.
pub(super) const LONGEST_PHASE_SECONDS: u64 = 17_000;
/// A shorter stall than the interval between two wake-ups cannot be seen.
const LEAST_WATCHED_STALL_NS: u64 = crate::host::WAKE_INTERVAL_NS;

/// Frames of one stream.
pub type Frames = Whole<1, MOST_FRAMES>;
type Grace = Whole<0, LONGEST_GRACE_MS>;

/// The side that opens connections (RFC 9693 section 3).
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "InitiatorSide")]
pub struct Initiator {
    #[serde(with = "Text::<1, LONGEST_NAME>")]
    pub interface: String,
    /// Name below /run/netns; absent = the engine's own namespace.
    pub netns: Option<String>,
    pub family: Family,
    /// Source MAC; the interface's own when absent.
    pub mac: Option<Mac>,
    pub gateway: Gateway,
    /// With customer_edges: the one address of the router before them, for which neighbour solicitations are answered.
    pub source_addresses: AddressRange,
    /// With customer_edges: positions in each port set, the lowest port has position 1.
    pub source_ports: PortRange,
    pub customer_edges: Option<CustomerEdges>,
    /// The Responder's addresses as the Initiator writes them (NAT64: inside the prefix; in a tunnel: IPv4). The same
    /// number as responder.addresses, in the same order.
    pub destination_addresses: AddressRange,
    pub destination_ports: PortRange,
}

/// The side that answers.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ResponderSide")]
pub struct Responder {
    #[serde(with = "Text::<1, LONGEST_NAME>")]
    pub interface: String,
    /// Name below /run/netns; absent = the engine's own namespace.
    pub netns: Option<String>,
    pub family: Family,
    /// Source MAC; the interface's own when absent.
    pub mac: Option<Mac>,
    pub gateway: Gateway,
    /// The Responder's own addresses. With customer_edges.relay: those of the router before the relay, for which neighbour
    /// solicitations are answered; the relay's IPv4 addresses are initiator.destination_addresses.
    pub addresses: AddressRange,
    /// Only in stateless trials: the Initiator's addresses as the Responder writes them. The same number as
    /// initiator.source_addresses, in the same order. Absent: the same addresses. Required where the families differ.
    pub destination_addresses: Option<AddressRange>,
    /// The device is customer edges, one for each of initiator.source_addresses, and the Responder is their relay. If the
    /// Responder speaks ipv4, the device is these edges and their relay. Frames from ports outside of the sender's port
    /// set are mistranslated.
    pub customer_edges: Option<CustomerEdges>,
}

/// Whether the device must translate the Initiator's source (NAT) or must not change it (routing).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Translated,
    Unchanged,
}

/// The translation expected from the device.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Translation {
    pub source: Source,
    /// Outside addresses that the device may use; frames with another source are mistranslated.
    pub pool: Option<AddressRange>,
}

/// Order in which phase 1 uses the four tuples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    Permutation,
    Increasing,
    Decreasing,
    WithReplacement,
}

/// How the Responder reads its state table. once: each stored four tuple exactly once; frames must equal connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    #[default]
    Pseudorandom,
    Increasing,
    Once,
}

/// With less than one hundredth above its rate, a sender would hardly catch up.
const LEAST_CATCH_UP: u64 = 101;
const MOST_CATCH_UP: u64 = 1000;

/// Opening connections (RFC 9693 section 4.2).
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phase1 {
    /// frames/s
    #[serde(with = "Rate")]
    pub rate: f64,
    #[serde(default = "half_a_second", with = "Grace")]
    pub grace_ms: u64,
    /// Highest rate of senders that catch up after a stall, in % of the rate. Absent: unlimited.
    #[serde(default, with = "Whole::<LEAST_CATCH_UP, MOST_CATCH_UP>")]
    pub catch_up_percent: Option<u64>,
}

fn half_a_second() -> u64 {
    500
}

/// Frames that the Initiator sends in phase 2.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InitiatorStream {
    /// frames/s
    #[serde(with = "Rate")]
    pub rate: f64,
    #[serde(with = "Frames")]
    pub frames: u64,
}

/// Frames that the Responder sends in phase 2.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponderStream {
    /// frames/s
    #[serde(with = "Rate")]
    pub rate: f64,
    #[serde(with = "Frames")]
    pub frames: u64,
    #[serde(default)]
    pub reading_order: Reading,
}

/// A change of the rates without a pause after the streams' frames (RFC 2544 section 26.5): the same streams continue at
/// `share` of their rates for `seconds`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    #[serde(with = "Positive::<100>")]
    pub share: f64,
    #[serde(with = "Positive::<3600>")]
    pub seconds: f64,
}

impl Step {
    /// Frames that a stream of this rate sends after the step.
    pub fn frames(&self, rate: f64) -> u64 {
        (rate * self.share * self.seconds).round() as u64
    }
}

/// Native IPv6 traffic in phase 2, which the device only routes (RFC 8219 section 5.3). Frame i of a direction, without
/// broadcasts, belongs to the foreground if i modulo n < m, otherwise to the background. Background frames are part of the
/// counts.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Background {
    #[serde(with = "Whole::<2, 1_000_000>")]
    pub n: u32,
    #[serde(with = "Whole::<1, 999_999>")]
    pub m: u32,
    pub initiator_addresses: AddressRange,
    pub responder_addresses: AddressRange,
}

/// Number of frames timed per direction, evenly spread over those due from_ms after the start of phase 2 or later (RFC
/// 8219 section 7.2). Their distance has no divisor in common with the cycles of background and groups, so where they
/// are close they end earlier. Absent: all frames are timed.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelaySamples {
    #[serde(with = "Whole::<0, 17_000_000>")]
    pub from_ms: u64,
    #[serde(with = "Frames")]
    pub frames: u64,
}

impl DelaySamples {
    /// Number of the first timed frame of a stream with this rate.
    pub fn first(&self, rate: f64) -> u64 {
        (self.from_ms as f64 / 1e3 * rate).ceil() as u64
    }

    /// Distance between timed frames of a stream with this rate and number of frames. It has no divisor in common with
    /// these cycles, in which frames differ in kind: otherwise some kinds would be timed more often than others, or never.
    pub fn every(&self, rate: f64, frames: u64, cycles: &[u64]) -> u64 {
        let most = (frames.saturating_sub(self.first(rate)) / self.frames).max(1);
        let even = |every: &u64| cycles.iter().all(|&cycle| common_divisor(*every, cycle) == 1);
        (1..=most).rev().find(even).unwrap_or(1)
    }

    /// Timed frames among the first `number` frames of a stream, which are `every` apart.
    pub fn before(&self, number: u64, rate: f64, every: u64) -> u64 {
        number.saturating_sub(self.first(rate)).div_ceil(every).min(self.frames)
    }
}

fn common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 {
        one
    } else {
        common_divisor(other, one % other)
    }
}

/// The real test phase (RFC 9693 section 4.7); at least one side sends.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phase2 {
    pub initiator: Option<InitiatorStream>,
    pub responder: Option<ResponderStream>,
    #[serde(default = "two_seconds", with = "Grace")]
    pub grace_ms: u64,
    /// See phase 1.
    #[serde(default, with = "Whole::<LEAST_CATCH_UP, MOST_CATCH_UP>")]
    pub catch_up_percent: Option<u64>,
    pub step: Option<Step>,
    pub churn: Option<Churn>,
    pub modifiers: Option<Modifiers>,
    /// Times that phase 2 is run, one after the other, after a gap each, over the same connections.
    #[serde(default = "once", with = "Whole::<1, 10_000_000>")]
    pub periods: u64,
}

fn once() -> u64 {
    1
}

fn two_seconds() -> u64 {
    2000
}

/// One direction of phase 2: its name, the side that sends, and its rate and frames before the step.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    pub name: &'static str,
    pub side: usize,
    pub rate: f64,
    pub frames: u64,
}

impl Phase2 {
    /// The streams of phase 2, the Initiator's first.
    pub fn streams(&self) -> impl Iterator<Item = Stream> {
        let of = |name, side, rate, frames| Stream { name, side, rate, frames };
        let initiator = self.initiator.as_ref().map(|one| of("phase2.initiator", INITIATOR, one.rate, one.frames));
        let responder = self.responder.as_ref().map(|one| of("phase2.responder", RESPONDER, one.rate, one.frames));
        initiator.into_iter().chain(responder)
    }

    /// How long the streams send.
    pub fn sending_seconds(&self) -> f64 {
        self.streams().map(|stream| stream.frames as f64 / stream.rate).fold(0.0, f64::max)
    }

    /// Whether the Responder reads each stored four tuple exactly once.
    pub fn reads_once(&self) -> bool {
        self.responder.as_ref().is_some_and(|stream| stream.reading_order == Reading::Once)
    }
}

/// The tester's senders, one per CPU.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Senders {
    #[serde(with = "Cpus::<1, MAX_SENDERS>")]
    pub cpus: Vec<usize>,
    /// Frames that leave together; 1 gives the least delay.
    #[serde(default = "default_batch", with = "Whole::<1, 128>")]
    pub batch: u32,
    /// A sender that is inactive for longer than this has stalled.
    #[serde(default = "one_millisecond", with = "Whole::<LEAST_STALL_NS, MOST_STALL_NS>")]
    pub stall_ns: u64,
}

pub(super) fn default_batch() -> u32 {
    64
}

fn one_millisecond() -> u64 {
    1_000_000
}

fn five_milliseconds() -> u64 {
    5_000_000
}

/// Limits of a trial.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TrialLimits")]
pub struct Limits {
    /// The trial is aborted after this time.
    #[serde(default, with = "Positive::<2_000_000>")]
    pub seconds: Option<f64>,
}

/// One elementary test: phase 1, gap, phase 2.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TrialRequest", title = "natgauge trial request, version 1")]
pub struct Request {
    #[allow(dead_code, reason = "checked before the rest is read")]
    #[serde(with = "Whole::<VERSION, VERSION>")]
    pub version: u64,
    /// Number of the trial, contained in every frame; frames of another trial are foreign.
    #[serde(with = "Whole::<1, { u32::MAX as u64 }>")]
    pub mark: u32,
    /// Seed of all pseudorandom choices: the same seed and mark give the same frames.
    #[serde(with = "Whole::<0, { u64::MAX }>")]
    pub seed: u64,
    pub initiator: Initiator,
    pub responder: Responder,
    pub translation: Translation,
    /// No phase 1: both sides compute four tuples themselves (RFC 4814 section 4.5). For devices without connection
    /// state.
    #[serde(default)]
    pub stateless: bool,
    /// N, the number of connections: the first N four tuples in the order. With with-replacement: the number of draws,
    /// which may exceed the number of four tuples.
    #[serde(with = "Whole::<1, MOST_CONNECTIONS>")]
    pub connections: u64,
    pub order: Order,
    pub frame: Frame,
    pub phase1: Option<Phase1>,
    /// Between the end of phase 1's grace and the first frame of phase 2.
    #[serde(default, with = "Whole::<0, 600_000>")]
    pub gap_ms: u64,
    pub phase2: Option<Phase2>,
    pub background: Option<Background>,
    /// Time the frames of phase 2, or of phase 1 where there is no phase 2.
    #[serde(default)]
    pub record_delays: bool,
    pub delay_samples: Option<DelaySamples>,
    /// Also record delay differences between consecutive frames of a sender (RFC 5481 section 4.1). Requires
    /// record_delays without delay_samples.
    #[serde(default)]
    pub record_variation: bool,
    /// Record when the last lost frame was due, and the longest time without an arrival.
    #[serde(default)]
    pub record_loss_times: bool,
    /// Measure the run time of the receivers' programs. During the trial the kernel then times all BPF programs of the
    /// host, which adds two readings of the clock to each run. Requires CAP_SYS_ADMIN.
    #[serde(default)]
    pub record_receiver_time: bool,
    /// Frames over IPv6 with a UDP checksum of 0 count as received. Otherwise they are damaged (RFC 8200 section 8.1).
    #[serde(default)]
    pub accept_zero_checksum: bool,
    /// A frame with a larger one-way delay is late. Absent: frames are late only after the end of grace.
    #[serde(default, with = "Positive::<60_000>")]
    pub frame_timeout_ms: Option<f64>,
    /// Existing file that gets the list of all connections at the end of the trial: inside and outside tuple and time of
    /// each (engine/src/connections.rs).
    pub connections_file: Option<String>,
    pub senders: Senders,
    /// Other CPUs, such as the device's, whose stalls are recorded.
    #[serde(default, with = "Cpus::<0, MOST_CPUS>")]
    pub watch_cpus: Vec<usize>,
    /// A watched CPU on which the engine's thread did not run for longer than this has stalled.
    #[serde(default = "five_milliseconds", with = "Whole::<LEAST_WATCHED_STALL_NS, MOST_STALL_NS>")]
    pub watch_stall_ns: u64,
    #[serde(default)]
    pub limits: Limits,
}

impl Initiator {
    /// Number of source addresses of the Initiator's frames.
    pub fn sources(&self) -> u64 {
        self.customer_edges.as_ref().map_or_else(|| self.source_addresses.count(), |edges| edges.number)
    }

    /// IP headers of the frames on the Initiator's side.
    pub fn headers(&self) -> Headers {
        headers(self.family, self.customer_edges.as_ref())
    }
}

impl Responder {
    /// IP headers of the frames on the Responder's side.
    pub fn headers(&self) -> Headers {
        headers(self.family, self.customer_edges.as_ref())
    }
}

fn headers(family: Family, edges: Option<&CustomerEdges>) -> Headers {
    let tunnelled = edges.is_some_and(|edges| edges.relay.is_some());
    Headers { family: if tunnelled { Family::Ipv4 } else { family }, tunnelled, vlan: None }
}

impl Request {
    /// Number of four tuples in the ranges; None where it exceeds 64 bits.
    pub fn space(&self) -> Option<u64> {
        [
            self.initiator.source_ports.count(),
            self.initiator.sources(),
            self.initiator.destination_ports.count(),
            self.initiator.destination_addresses.count(),
        ]
        .into_iter()
        .try_fold(1_u64, u64::checked_mul)
    }

    /// Connections that the trial opens, in both phases.
    pub fn all_connections(&self) -> u64 {
        self.connections + self.churn().map_or(0, |(churn, phase2)| churn.openings(phase2.sending_seconds()))
    }

    /// Connections of the flood of phase 2. Their indices follow those of all others.
    pub fn flood(&self) -> u64 {
        self.churn().map_or(0, |(churn, phase2)| churn.flood(phase2.sending_seconds()))
    }

    /// The churn of phase 2, with that phase.
    pub fn churn(&self) -> Option<(&Churn, &Phase2)> {
        let phase2 = self.phase2.as_ref()?;
        Some((phase2.churn.as_ref()?, phase2))
    }

    /// Whether all addresses of each range have one upper half.
    pub fn upper_halves_are_equal(&self) -> bool {
        let (inside, outside) = (&self.initiator, &self.responder);
        [&inside.source_addresses, &inside.destination_addresses, &outside.addresses]
            .into_iter()
            .chain(&outside.destination_addresses)
            .all(|range| halves(range.first).0 == halves(range.last).0)
    }

    /// The messages of a connection.
    pub fn messages(&self) -> Vec<Message> {
        self.frame.messages(self.churn().and_then(|(churn, _)| churn.leave.way()))
    }

    /// Frames of phase 2 after which their kinds recur: foreground and background, and groups.
    pub fn cycles(&self) -> Vec<u64> {
        let groups = self.modifiers().and_then(|modifiers| modifiers.groups.as_ref());
        let background = self.background.as_ref().map(|background| background.n.into());
        background.into_iter().chain(groups.map(|groups| groups.number.into())).collect()
    }

    /// The modifiers of phase 2.
    pub fn modifiers(&self) -> Option<&Modifiers> {
        self.phase2.as_ref()?.modifiers.as_ref()
    }

    /// Length of background frames without FCS and VLAN tags: that of the foreground frames, converted to IPv6.
    pub fn background_octets(&self, size: u32) -> u32 {
        self.untagged_octets(size)[INITIATOR] - self.initiator.headers().octets() + Family::Ipv6.header_octets()
    }

    /// Length of the longest frames without FCS.
    pub fn longest_octets(&self) -> u32 {
        let size = self.largest_size();
        let background = self.background.as_ref().map_or(0, |_| self.background_octets(size));
        let sides = self.untagged_octets(size).into_iter().zip(self.headers());
        sides.map(|(octets, headers)| octets.max(background) + headers.vlan_octets()).max().unwrap_or_default()
    }

    /// Headers of the frames, Initiator's side first.
    pub fn headers(&self) -> [Headers; SIDES] {
        let vlans = [self.frame.initiator_vlan, self.frame.responder_vlan];
        let both = [self.initiator.headers(), self.responder.headers()];
        std::array::from_fn(|side| Headers { vlan: vlans[side], ..both[side] })
    }

    /// The largest size of a frame.
    pub fn largest_size(&self) -> u32 {
        self.frame.sizes().map(|(_, size)| size).max().unwrap_or_default()
    }

    /// Length without FCS of frames of a size, Initiator's side first.
    pub fn octets(&self, size: u32) -> [u32; SIDES] {
        let (octets, headers) = (self.untagged_octets(size), self.headers());
        std::array::from_fn(|side| octets[side] + headers[side].vlan_octets())
    }

    /// The same without VLAN tags.
    pub fn untagged_octets(&self, size: u32) -> [u32; SIDES] {
        let named = match self.frame.side {
            SideName::Initiator => INITIATOR,
            SideName::Responder => RESPONDER,
        };
        let headers = self.headers();
        let without = FCS + headers[named].octets() + headers[named].vlan_octets();
        headers.map(|side| (size + side.octets()).saturating_sub(without))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_before_a_frame_are_those_that_were_timed() {
        let samples = DelaySamples { from_ms: 60, frames: 4 };
        // At 1,000 frames/s: frames 60, 70, 80 and 90 of 100.
        let every = samples.every(1_000.0, 100, &[]);
        let timed = [0, 60, 61, 70, 71, 95, 100].map(|number| samples.before(number, 1_000.0, every));
        assert_eq!(timed, [0, 0, 1, 1, 2, 4, 4]);
    }

    /// Every second frame is background, and 12,000 is even: all timed frames would be of one kind.
    #[test]
    fn timed_frames_are_of_each_kind_in_its_share() {
        let samples = DelaySamples { from_ms: 60_000, frames: 500 };
        assert_eq!(samples.every(100_000.0, 12_000_000, &[]), 12_000);
        for cycles in [[2, 1], [10, 1], [100, 7], [1_000_000, 10_000]] {
            let every = samples.every(100_000.0, 12_000_000, &cycles);
            assert!((11_900..=12_000).contains(&every));
            for cycle in cycles.into_iter().filter(|&cycle| cycle <= 500) {
                let places: std::collections::HashSet<_> = (0..500).map(|timed| timed * every % cycle).collect();
                assert_eq!(places.len() as u64, cycle);
            }
        }
        assert_eq!(samples.every(10.0, 1_200, &[2]), 1);
    }
}
