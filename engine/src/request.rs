// SPDX-License-Identifier: Apache-2.0
//! The trial request (`trial/request-1.schema.json`): what it holds, and every rule that can be checked without touching
//! an interface.
#![allow(missing_docs, reason = "every field is described in trial/request-1.schema.json")]

use std::net::{IpAddr, Ipv6Addr};

use serde::Deserialize;

use crate::failure::{Failure, Outcome};

/// Most octets a request may have; a valid one has about 2 thousand.
pub const LONGEST: usize = 1 << 20;
const FCS: u32 = 4;
const ETHERNET_IPV6_UDP_TAG: u32 = 14 + 40 + 8 + 18;
const ETHERNET_IPV4_UDP_TAG: u32 = 14 + 20 + 8 + 18;
/// What a page leaves for a live frame (kernel: net/bpf/test_run.c).
const LIVE_FRAME_OCTETS: u32 = 3408;
const MOST_CONNECTIONS: u64 = 1 << 31;
/// `with-replacement` draws 32-bit positions.
const MOST_DRAWN_FROM: u64 = 1 << 32;
const MOST_SPACE: u64 = 1 << 62;
const HIGHEST_RATE: f64 = 2e8;
const MOST_NUMBERED: u64 = 1 << 32;
/// Sending times are kept as 2^-20 ns in 64 bits: 4.8 hours.
const LONGEST_PHASE_SECONDS: f64 = 17_000.0;

/// Which protocol a side speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// RFC 791
    Ipv4,
    /// RFC 8200
    Ipv6,
}

/// First and last, both included.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortRange {
    pub first: u32,
    pub last: u32,
}

impl PortRange {
    /// How many ports.
    pub fn count(&self) -> u64 {
        u64::from(self.last - self.first) + 1
    }

    fn check(&self, name: &str) -> Outcome<()> {
        for (end, value) in [("first", self.first), ("last", self.last)] {
            if value == 0 || value > 65535 {
                return Err(Failure::field(&format!("{name}.{end}"), value, "must be a port from 1 to 65535"));
            }
        }
        if self.first > self.last {
            return Err(Failure::field(name, format!("{}-{}", self.first, self.last), "first must not be above last"));
        }
        Ok(())
    }
}

/// Addresses first, first + step, ... up to last.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddressRange {
    pub first: IpAddr,
    pub last: IpAddr,
    #[serde(default = "one")]
    pub step: u64,
}

/// An address as the frame programs hold it: IPv4 in the lower 32 bits of `low`.
pub fn halves(address: IpAddr) -> (u64, u64) {
    match address {
        IpAddr::V4(v4) => (0, u64::from(u32::from(v4))),
        IpAddr::V6(v6) => {
            let bits = u128::from(v6);
            ((bits >> 64) as u64, bits as u64)
        }
    }
}

impl AddressRange {
    /// How many addresses; the range has been checked.
    pub fn count(&self) -> u64 {
        (halves(self.last).1 - halves(self.first).1) / self.step + 1
    }

    fn check(&self, name: &str, family: Family) -> Outcome<()> {
        for (end, address) in [("first", self.first), ("last", self.last)] {
            if address.is_ipv4() != (family == Family::Ipv4) {
                return Err(Failure::field(&format!("{name}.{end}"), address, "must be of the side's family"));
            }
            if address.is_multicast() || address.is_unspecified() || address.is_loopback() {
                return Err(Failure::field(&format!("{name}.{end}"), address, "must be a unicast address"));
            }
        }
        let (first, last) = (halves(self.first), halves(self.last));
        let text = || format!("{}-{}", self.first, self.last);
        if first.0 != last.0 {
            return Err(Failure::field(name, text(), "both ends must share the upper 64 bits"));
        }
        if first.1 > last.1 {
            return Err(Failure::field(name, text(), "first must not be above last"));
        }
        if self.step == 0 || (last.1 - first.1) % self.step != 0 {
            return Err(Failure::field(
                &format!("{name}.step"),
                self.step,
                "must be at least 1 and lead from first to last",
            ));
        }
        if (last.1 - first.1) / self.step >= 1 << 32 {
            return Err(Failure::field(name, text(), "must hold at most 2^32 addresses"));
        }
        Ok(())
    }

    /// The address at a position below `count`.
    pub fn at(&self, position: u64) -> IpAddr {
        let (high, low) = halves(self.first);
        let low = low + position * self.step;
        match self.first {
            IpAddr::V4(_) => IpAddr::V4((low as u32).into()),
            IpAddr::V6(_) => IpAddr::V6(ipv6(high, low)),
        }
    }

    fn holds(&self, address: IpAddr) -> bool {
        let (first, last, asked) = (halves(self.first), halves(self.last), halves(address));
        self.first.is_ipv4() == address.is_ipv4()
            && asked.0 == first.0
            && (first.1..=last.1).contains(&asked.1)
            && (asked.1 - first.1) % self.step == 0
    }
}

fn one() -> u64 {
    1
}

/// An Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Mac(pub [u8; 6]);

impl TryFrom<String> for Mac {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let octets: Vec<u8> = text
            .split(':')
            .filter(|part| part.len() == 2)
            .filter_map(|part| u8::from_str_radix(part, 16).ok())
            .collect();
        match <[u8; 6]>::try_from(octets) {
            Ok(mac) if text.len() == 17 => Ok(Self(mac)),
            _ => Err(format!("{text}: must be six octets such as 02:00:00:00:00:01")),
        }
    }
}

impl std::fmt::Display for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The device's end of a link.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    pub mac: Option<Mac>,
    pub address: Option<IpAddr>,
}

/// The port that opens connections and the ranges of its four tuples.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Initiator {
    pub interface: String,
    pub netns: Option<String>,
    pub family: Family,
    pub mac: Option<Mac>,
    pub gateway: Gateway,
    pub source_addresses: AddressRange,
    pub source_ports: PortRange,
    pub destination_addresses: AddressRange,
    pub destination_ports: PortRange,
}

/// The port that answers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Responder {
    pub interface: String,
    pub netns: Option<String>,
    pub family: Family,
    pub mac: Option<Mac>,
    pub gateway: Gateway,
    pub addresses: AddressRange,
    pub destination_addresses: Option<AddressRange>,
}

/// What must happen to the Initiator's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Translated,
    Unchanged,
}

/// What the device is to do.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Translation {
    pub source: Source,
    pub pool: Option<AddressRange>,
}

/// In which order phase 1 goes through the four tuples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    Permutation,
    Increasing,
    Decreasing,
    WithReplacement,
}

/// How the Responder reads its state table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    #[default]
    Pseudorandom,
    Increasing,
    Once,
}

/// One of the two sides, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SideName {
    Initiator,
    Responder,
}

/// Length with FCS on the named side.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    pub size: u32,
    pub side: SideName,
}

/// Rate in frames/s; grace in ms.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase1 {
    pub rate: f64,
    #[serde(default = "half_a_second")]
    pub grace_ms: u64,
}

/// What one side sends in phase 2.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InitiatorStream {
    pub rate: f64,
    pub frames: u64,
}

/// What the Responder sends in phase 2.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponderStream {
    pub rate: f64,
    pub frames: u64,
    #[serde(default)]
    pub reading_order: Reading,
}

/// What follows the streams' own frames without a pause: `share` of their rates.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub share: f64,
    pub seconds: f64,
}

impl Step {
    /// Frames a stream of this rate sends after the step.
    pub fn frames(&self, rate: f64) -> u64 {
        (rate * self.share * self.seconds).round() as u64
    }
}

/// Native IPv6 beside the frames under test: frame i of a direction is foreground when i modulo `n` is below `m`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    pub n: u32,
    pub m: u32,
    pub initiator_addresses: AddressRange,
    pub responder_addresses: AddressRange,
}

/// Which frames of each direction are timed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelaySamples {
    pub from_ms: u64,
    pub frames: u64,
}

impl DelaySamples {
    /// The first frame of a stream of this rate that is due late enough.
    pub fn first(&self, rate: f64) -> u64 {
        (self.from_ms as f64 / 1e3 * rate).ceil() as u64
    }
}

/// The real test; at least one side sends.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase2 {
    pub initiator: Option<InitiatorStream>,
    pub responder: Option<ResponderStream>,
    pub step: Option<Step>,
    #[serde(default = "two_seconds")]
    pub grace_ms: u64,
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
    /// Those that send, the Initiator's first.
    pub fn streams(&self) -> impl Iterator<Item = Stream> {
        let of = |name, side, rate, frames| Stream { name, side, rate, frames };
        let initiator = self.initiator.as_ref().map(|one| of("phase2.initiator", 0, one.rate, one.frames));
        let responder = self.responder.as_ref().map(|one| of("phase2.responder", 1, one.rate, one.frames));
        initiator.into_iter().chain(responder)
    }
}

fn half_a_second() -> u64 {
    500
}

fn two_seconds() -> u64 {
    2000
}

/// The sending CPUs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Senders {
    pub cpus: Vec<usize>,
    #[serde(default = "default_batch")]
    pub batch: u32,
}

fn default_batch() -> u32 {
    64
}

/// When to give up.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub seconds: Option<f64>,
}

/// One trial.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    #[allow(dead_code, reason = "checked before the rest is read")]
    pub version: u64,
    pub mark: u32,
    pub seed: u64,
    pub initiator: Initiator,
    pub responder: Responder,
    pub translation: Translation,
    pub connections: u64,
    pub order: Order,
    pub frame: Frame,
    #[serde(default)]
    pub stateless: bool,
    pub phase1: Option<Phase1>,
    #[serde(default)]
    pub gap_ms: u64,
    pub phase2: Option<Phase2>,
    pub background: Option<Background>,
    #[serde(default)]
    pub record_delays: bool,
    pub delay_samples: Option<DelaySamples>,
    #[serde(default)]
    pub record_variation: bool,
    #[serde(default)]
    pub record_loss_times: bool,
    pub frame_timeout_ms: Option<f64>,
    pub senders: Senders,
    #[serde(default)]
    pub watch_cpus: Vec<usize>,
    #[serde(default)]
    pub limits: Limits,
}

#[derive(Deserialize)]
struct OnlyVersion {
    version: serde_json::Value,
}

/// Read a request and check every rule that needs no interface.
pub fn parse(text: &[u8]) -> Outcome<Request> {
    if text.len() > LONGEST {
        return Err(Failure::Request(format!("request: longer than {LONGEST} octets: send one JSON object")));
    }
    let wrong = |error: serde_json::Error| Failure::Request(format!("request: not a valid trial request: {error}"));
    let only: OnlyVersion = serde_json::from_slice(text).map_err(wrong)?;
    if only.version != serde_json::json!(1) {
        return Err(Failure::field("version", only.version, "this engine reads version 1"));
    }
    let request: Request = serde_json::from_slice(text).map_err(wrong)?;
    request.check()?;
    Ok(request)
}

impl Request {
    /// All four tuples of the ranges.
    pub fn space(&self) -> Option<u64> {
        [
            self.initiator.source_ports.count(),
            self.initiator.source_addresses.count(),
            self.initiator.destination_ports.count(),
            self.initiator.destination_addresses.count(),
        ]
        .into_iter()
        .try_fold(1_u64, u64::checked_mul)
    }

    /// Length of the background's frames without FCS: as the frames under test have, or would have, over IPv6.
    pub fn background_octets(&self) -> u32 {
        let sides = [self.initiator.family, self.responder.family].into_iter().zip(self.octets());
        sides.map(|(family, octets)| if family == Family::Ipv6 { octets } else { octets + 20 }).max().unwrap_or(0)
    }

    /// Length of the longest frames without FCS.
    pub fn longest_octets(&self) -> u32 {
        let [initiator, responder] = self.octets();
        let background = self.background.as_ref().map_or(0, |_| self.background_octets());
        initiator.max(responder).max(background)
    }

    /// Frame length without FCS, Initiator's side first. The request has been checked.
    pub fn octets(&self) -> [u32; 2] {
        let given = self.frame.size - FCS;
        let taller = |from: Family, to: Family| match (from, to) {
            (Family::Ipv4, Family::Ipv6) => given + 20,
            (Family::Ipv6, Family::Ipv4) => given.saturating_sub(20),
            _ => given,
        };
        let (initiator, responder) = (self.initiator.family, self.responder.family);
        match self.frame.side {
            SideName::Initiator => [given, taller(initiator, responder)],
            SideName::Responder => [taller(responder, initiator), given],
        }
    }

    fn check(&self) -> Outcome<()> {
        if self.mark == 0 {
            return Err(Failure::field("mark", 0, "must be from 1 to 4294967295"));
        }
        self.check_sides()?;
        self.check_connections()?;
        self.check_frame()?;
        self.check_phases()?;
        self.check_recording()?;
        self.check_background()?;
        self.check_host_parts()
    }

    fn check_sides(&self) -> Outcome<()> {
        let (i, r) = (&self.initiator, &self.responder);
        i.source_addresses.check("initiator.source_addresses", i.family)?;
        i.destination_addresses.check("initiator.destination_addresses", i.family)?;
        i.source_ports.check("initiator.source_ports")?;
        i.destination_ports.check("initiator.destination_ports")?;
        r.addresses.check("responder.addresses", r.family)?;
        if i.destination_addresses.count() != r.addresses.count() {
            return Err(Failure::field(
                "initiator.destination_addresses",
                format!("{} addresses", i.destination_addresses.count()),
                &format!("must be as many as responder.addresses, {}", r.addresses.count()),
            ));
        }
        if let Some(pool) = &self.translation.pool {
            pool.check("translation.pool", r.family)?;
        }
        self.check_stateless_addresses()?;
        if (i.interface.as_str(), i.netns.as_deref()) == (r.interface.as_str(), r.netns.as_deref()) {
            return Err(Failure::field("responder.interface", &r.interface, "must differ from initiator.interface"));
        }
        for (name, interface, gateway, own) in [
            ("initiator", &i.interface, &i.gateway, &i.source_addresses),
            ("responder", &r.interface, &r.gateway, &r.addresses),
        ] {
            check_port(name, interface, gateway, own)?;
        }
        Ok(())
    }

    fn check_stateless_addresses(&self) -> Outcome<()> {
        const NAME: &str = "responder.destination_addresses";
        let (i, r) = (&self.initiator, &self.responder);
        match (&r.destination_addresses, self.stateless) {
            (Some(_), false) => Err(Failure::field(NAME, "{}", "only for stateless trials: others learn them")),
            (None, true) if i.family != r.family => {
                Err(Failure::Request(format!("{NAME}: needed in a stateless trial whose families differ")))
            }
            (Some(there), true) => {
                there.check(NAME, r.family)?;
                if there.count() == i.source_addresses.count() {
                    return Ok(());
                }
                let rule = format!("must be as many as initiator.source_addresses, {}", i.source_addresses.count());
                Err(Failure::field(NAME, format!("{} addresses", there.count()), &rule))
            }
            _ => Ok(()),
        }
    }

    fn check_connections(&self) -> Outcome<()> {
        if self.connections == 0 || self.connections > MOST_CONNECTIONS {
            return Err(Failure::field("connections", self.connections, "must be from 1 to 2147483648"));
        }
        let most = if self.order == Order::WithReplacement { MOST_DRAWN_FROM } else { MOST_SPACE };
        let space = self.space().filter(|&space| space <= most);
        let Some(space) = space else {
            return Err(Failure::Request(format!(
                "initiator: the ranges hold more than {most} four tuples: narrow them"
            )));
        };
        if space < self.connections {
            return Err(Failure::field(
                "connections",
                self.connections,
                &format!("the ranges hold only {space} four tuples: widen them or ask for fewer"),
            ));
        }
        Ok(())
    }

    fn check_frame(&self) -> Outcome<()> {
        if self.frame.size < 64 || self.frame.size > LIVE_FRAME_OCTETS + FCS {
            return Err(Failure::field("frame.size", self.frame.size, "must be from 64 to 3412 octets with FCS"));
        }
        let families = [self.initiator.family, self.responder.family];
        for ((octets, family), side) in self.octets().into_iter().zip(families).zip(["Initiator", "Responder"]) {
            let least = match family {
                Family::Ipv4 => ETHERNET_IPV4_UDP_TAG,
                Family::Ipv6 => ETHERNET_IPV6_UDP_TAG,
            };
            if octets < least || octets > LIVE_FRAME_OCTETS {
                return Err(Failure::field(
                    "frame.size",
                    self.frame.size,
                    &format!(
                        "would be {} octets on the {side}'s side, where {} to {} are possible (IPv6 = IPv4 + 20)",
                        octets + FCS,
                        least + FCS,
                        LIVE_FRAME_OCTETS + FCS
                    ),
                ));
            }
        }
        Ok(())
    }

    fn check_phases(&self) -> Outcome<()> {
        match (&self.phase1, self.stateless) {
            (Some(phase1), false) => {
                check_stream("phase1", phase1.rate, self.connections)?;
                check_most("phase1.grace_ms", phase1.grace_ms, 60_000)?;
            }
            (None, false) => return Err(Failure::Request("phase1: missing; only a stateless trial has none".into())),
            (Some(_), true) => return Err(Failure::field("phase1", "{}", "a stateless trial has none: leave it out")),
            (None, true) if self.phase2.is_none() => {
                return Err(Failure::Request("phase2: missing; it is all there is of a stateless trial".into()))
            }
            (None, true) => {}
        }
        check_most("gap_ms", self.gap_ms, 600_000)?;
        if let Some(timeout) = self.frame_timeout_ms {
            if !(timeout > 0.0 && timeout <= 60_000.0) {
                return Err(Failure::field("frame_timeout_ms", timeout, "must be above 0 and at most 60000"));
            }
        }
        let Some(phase2) = &self.phase2 else { return Ok(()) };
        check_most("phase2.grace_ms", phase2.grace_ms, 60_000)?;
        if phase2.initiator.is_none() && phase2.responder.is_none() {
            return Err(Failure::field("phase2", "{}", "at least one side must send; leave phase2 out otherwise"));
        }
        for stream in phase2.streams() {
            check_stream(stream.name, stream.rate, stream.frames)?;
        }
        if let Some(step) = &phase2.step {
            check_step(step, phase2)?;
        }
        match &phase2.responder {
            Some(stream) if stream.reading_order != Reading::Pseudorandom && self.stateless => Err(Failure::field(
                "phase2.responder.reading_order",
                format!("{:?}", stream.reading_order).to_lowercase(),
                "a stateless trial has no state table to read: leave it out",
            )),
            Some(stream) if stream.reading_order == Reading::Once && stream.frames != self.connections => {
                Err(Failure::field(
                    "phase2.responder.frames",
                    stream.frames,
                    &format!("reading order once sends one frame a connection: must be {}", self.connections),
                ))
            }
            Some(stream) if stream.reading_order == Reading::Once && phase2.step.is_some() => {
                Err(Failure::field("phase2.step", "{}", "reading order once leaves nothing to send after a step"))
            }
            _ => Ok(()),
        }
    }

    fn check_background(&self) -> Outcome<()> {
        let Some(background) = &self.background else { return Ok(()) };
        let Some(phase2) = &self.phase2 else {
            return Err(Failure::field("background", "{}", "is part of phase 2: there is none"));
        };
        if phase2.responder.as_ref().is_some_and(|stream| stream.reading_order == Reading::Once) {
            return Err(Failure::field("background", "{}", "reading order once leaves no frames for it"));
        }
        if background.n < 2 || background.n > 1_000_000 {
            return Err(Failure::field("background.n", background.n, "must be from 2 to 1000000"));
        }
        if background.m == 0 || background.m >= background.n {
            let rule = format!("must be from 1 to {}: m of n frames are under test", background.n - 1);
            return Err(Failure::field("background.m", background.m, &rule));
        }
        background.initiator_addresses.check("background.initiator_addresses", Family::Ipv6)?;
        background.responder_addresses.check("background.responder_addresses", Family::Ipv6)?;
        if self.background_octets() > LIVE_FRAME_OCTETS {
            let rule = format!("the background's IPv6 frames would exceed {} octets", LIVE_FRAME_OCTETS + FCS);
            return Err(Failure::field("frame.size", self.frame.size, &rule));
        }
        Ok(())
    }

    fn check_recording(&self) -> Outcome<()> {
        if self.record_variation && !self.record_delays {
            return Err(Failure::field("record_variation", true, "differences of delays need record_delays"));
        }
        if let Some(samples) = &self.delay_samples {
            if !self.record_delays || self.record_variation {
                let rule = "needs record_delays, and no record_variation: samples have no neighbours";
                return Err(Failure::field("delay_samples", "{}", rule));
            }
            let Some(phase2) = &self.phase2 else {
                return Err(Failure::field("delay_samples", "{}", "are frames of phase 2: there is none"));
            };
            check_samples(samples, phase2)?;
        }
        let numbered = self.delay_samples.is_some() || self.record_loss_times || self.record_variation;
        let longest = self.longest_stream();
        if numbered && longest >= MOST_NUMBERED {
            return Err(Failure::Request(format!(
                "phase2: {longest} frames in one stream: at most {} can be told apart in time",
                MOST_NUMBERED - 1
            )));
        }
        Ok(())
    }

    /// Frames of the longest stream.
    fn longest_stream(&self) -> u64 {
        let Some(phase2) = &self.phase2 else { return self.connections };
        let after = |rate| phase2.step.as_ref().map_or(0, |step| step.frames(rate));
        phase2.streams().map(|stream| stream.frames + after(stream.rate)).chain([self.connections]).max().unwrap_or(0)
    }

    fn check_host_parts(&self) -> Outcome<()> {
        let cpus = &self.senders.cpus;
        if cpus.is_empty() || cpus.len() > 64 {
            return Err(Failure::field("senders.cpus", cpus.len(), "must name 1 to 64 CPUs"));
        }
        for (name, list) in [("senders.cpus", cpus), ("watch_cpus", &self.watch_cpus)] {
            if let Some(twice) = list.iter().enumerate().find(|(at, cpu)| list[..*at].contains(cpu)) {
                return Err(Failure::field(name, twice.1, "each CPU only once"));
            }
        }
        if self.senders.batch == 0 || self.senders.batch > 128 {
            return Err(Failure::field("senders.batch", self.senders.batch, "must be from 1 to 128 frames"));
        }
        match self.limits.seconds {
            Some(seconds) if !(seconds > 0.0 && seconds <= 86_400.0) => {
                Err(Failure::field("limits.seconds", seconds, "must be above 0 and at most 86400"))
            }
            _ => Ok(()),
        }
    }
}

fn check_port(name: &str, interface: &str, gateway: &Gateway, own: &AddressRange) -> Outcome<()> {
    if interface.is_empty() || interface.len() > 15 {
        return Err(Failure::field(&format!("{name}.interface"), interface, "must be 1 to 15 octets long"));
    }
    let field = format!("{name}.gateway");
    match (gateway.mac, gateway.address) {
        (None, None) => Err(Failure::field(&field, "{}", "needs mac or address")),
        (_, Some(address)) if own.holds(address) => {
            Err(Failure::field(&format!("{field}.address"), address, "lies inside the tester's own range"))
        }
        (_, Some(address)) if address.is_ipv4() != own.first.is_ipv4() => {
            Err(Failure::field(&format!("{field}.address"), address, "must be of the side's family"))
        }
        _ => Ok(()),
    }
}

fn check_step(step: &Step, phase2: &Phase2) -> Outcome<()> {
    if !(step.share > 0.0 && step.share <= 100.0) {
        return Err(Failure::field("phase2.step.share", step.share, "must be above 0 and at most 100"));
    }
    if !(step.seconds > 0.0 && step.seconds <= 3600.0) {
        return Err(Failure::field("phase2.step.seconds", step.seconds, "must be above 0 and at most 3600"));
    }
    for Stream { name, rate, frames, .. } in phase2.streams() {
        check_stream(&format!("phase2.step ({name})"), rate * step.share, step.frames(rate))?;
        let seconds = frames as f64 / rate + step.seconds;
        if seconds > LONGEST_PHASE_SECONDS {
            let rule = format!("both parts take {seconds:.0} s; at most {LONGEST_PHASE_SECONDS} s can be paced");
            return Err(Failure::field("phase2.step.seconds", step.seconds, &rule));
        }
    }
    Ok(())
}

fn check_samples(samples: &DelaySamples, phase2: &Phase2) -> Outcome<()> {
    for Stream { name, rate, frames, .. } in phase2.streams() {
        let left = frames.saturating_sub(samples.first(rate));
        if samples.frames == 0 || samples.frames > left {
            let rule = format!("must be from 1 to {left}, the frames of {name} that are due from then on");
            return Err(Failure::field("delay_samples.frames", samples.frames, &rule));
        }
    }
    Ok(())
}

fn check_stream(name: &str, rate: f64, frames: u64) -> Outcome<()> {
    if !(rate > 0.0 && rate <= HIGHEST_RATE) {
        return Err(Failure::field(&format!("{name}.rate"), rate, "must be above 0 and at most 200000000 frames/s"));
    }
    if frames == 0 || frames >= 1 << 40 {
        return Err(Failure::field(&format!("{name}.frames"), frames, "must be from 1 to 1099511627775"));
    }
    let seconds = frames as f64 / rate;
    if seconds > LONGEST_PHASE_SECONDS {
        return Err(Failure::field(
            &format!("{name}.rate"),
            rate,
            &format!("{frames} frames would take {seconds:.0} s; at most {LONGEST_PHASE_SECONDS} s can be paced"),
        ));
    }
    Ok(())
}

fn check_most(name: &str, value: u64, most: u64) -> Outcome<()> {
    if value > most {
        return Err(Failure::field(name, value, &format!("must be at most {most}")));
    }
    Ok(())
}

/// The IPv6 address of two halves.
pub fn ipv6(high: u64, low: u64) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(high) << 64 | u128::from(low))
}
