// SPDX-License-Identifier: Apache-2.0
//! The frames of a trial: families, sizes, and headers before the tag.
#![allow(missing_docs, reason = "where a field's name says all, its schema has no description either")]

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Deserialize;

use super::bounds::{Address, Positive, Whole};
use super::frame_sizes::SizeMix;
use super::vlan::Vlan;
use crate::dns::{Query, Question};
use crate::family::Family;
use crate::messages::{Message, Payload};
use crate::shared::{RESPONDER, TAG_OCTETS};
use crate::transport::{Closing, Transport, Way};

/// Octets of an Ethernet frame's check sequence.
pub const FCS: u32 = 4;
/// Most octets of a live frame, which shares a page with other data (kernel: net/bpf/test_run.c).
pub const LIVE_FRAME_OCTETS: u32 = 3408;
const LONGEST_FRAME: u64 = (LIVE_FRAME_OCTETS + FCS) as u64;
/// Octets of an Ethernet header.
pub const ETHERNET: u32 = 14;

/// What is before the transport header of a side's frames, but for MAC addresses and EtherType.
#[derive(Debug, Clone, Copy)]
pub struct Headers {
    /// Of the header before the transport header.
    pub family: Family,
    /// Whether an IPv6 header is before it (RFC 2473).
    pub tunnelled: bool,
    /// VLAN tags before all IP headers.
    pub vlan: Option<Vlan>,
}

impl Headers {
    /// Those of native packets in the same VLAN.
    pub fn of_native(self, family: Family) -> Self {
        Self { family, tunnelled: false, ..self }
    }

    /// Octets of all VLAN tags.
    pub fn vlan_octets(self) -> u32 {
        self.vlan.map_or(0, Vlan::octets)
    }

    /// Octets of all IP headers.
    pub fn octets(self) -> u32 {
        self.family.header_octets() + if self.tunnelled { Family::Ipv6.header_octets() } else { 0 }
    }

    /// The family of the outermost header.
    pub fn link(self) -> Family {
        if self.tunnelled {
            Family::Ipv6
        } else {
            self.family
        }
    }
}

impl From<Family> for Headers {
    fn from(family: Family) -> Self {
        Self { family, tunnelled: false, vlan: None }
    }
}

/// One of the two sides, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SideName {
    Initiator,
    Responder,
}

/// Length and content of frames.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// Octets with FCS and VLAN tags, on the named side; the other side follows from the families (IPv6 = IPv4 + 20, IPv4
    /// in IPv6 = IPv4 + 40) and from its tags, of 4 octets each.
    #[serde(with = "Whole::<64, LONGEST_FRAME>")]
    pub size: u32,
    pub side: SideName,
    /// Several sizes and their weights, such as 64:7,594:4,1518:1, of the frames of phase 2, or of phase 1 where there is
    /// no phase 2; the others have size. As many consecutive frames as the sum of the weights have exactly these shares;
    /// the order follows from the seed.
    pub frame_sizes: Option<SizeMix>,
    /// The same of the Responder's frames. Absent: frame_sizes.
    pub down_frame_sizes: Option<SizeMix>,
    /// VLAN tags of the Initiator's frames (IEEE 802.1Q): a VLAN from 1 to 4094, such as 100; behind a service tag, such as
    /// 9.100; or one for each source address, 100+ from VLAN 100 on. Frames that arrive there with other tags, or with
    /// fewer, are not received. Absent: no tags.
    pub initiator_vlan: Option<Vlan>,
    /// The same of the Responder's frames, but one VLAN for all.
    pub responder_vlan: Option<Vlan>,
    #[serde(default)]
    pub transport: Transport,
    /// Each frame of the Initiator is a DNS query of this type, with the tag in its name, and the Responder answers at
    /// once. Received frames are then correct responses at the Initiator, and delays are those of query and response
    /// together. Absent: plain test frames.
    pub query: Option<Query>,
    /// With transport tcp: connections stay half-open. A SYN of phase 1 gets no answer at once; each frame of the
    /// Responder in phase 2 is the SYN-ACK of one connection, to which the Initiator does not react.
    #[serde(default)]
    pub half_open: bool,
    /// With transport tcp: how connections are closed. Absent: they stay open, and phase 2 sends data.
    pub closing: Option<Closing>,
    /// The Responder does not answer queries but passes them to the network stack of its port's namespace, where a DNS
    /// server answers.
    #[serde(default)]
    pub handed_on: bool,
    /// The device answers the queries itself. All frames at the Responder's port go to the network stack of its namespace,
    /// where a server may answer what the device asks.
    #[serde(default)]
    pub resolved: bool,
    /// The one right address in answers, of the query's type; absent: natgauge's own, 198.18.0.53 or 2001:2::53.
    #[serde(default, with = "Address")]
    pub answer: Option<IpAddr>,
    /// Share of the names that have an AAAA record of their own, natgauge's address: below withaaaa.test instead of
    /// natgauge.test. Which ones follows from their index: the number of the query, or of the connection whose name it
    /// has. Absent: none.
    #[serde(default, with = "Positive::<1>")]
    pub aaaa_share: Option<f64>,
    /// Share of the queries of phase 2 with the name of their connection, for which phase 1 asks first, once for each
    /// connection; the others have names of their own. Such queries differ in the case of the letters only, so answers
    /// must keep it. Absent: none, and there is no phase 1.
    #[serde(default, with = "Positive::<1>")]
    pub cached_share: Option<f64>,
}

impl Frame {
    /// The messages of a connection; `leave`: how open TCP connections leave.
    pub fn messages(&self, leave: Option<Way>) -> Vec<Message> {
        let (answer, with_aaaa, additions) = (self.answer, self.aaaa_share.is_some(), self.resolved);
        let question = self.query.map(|query| Question { query, answer, with_aaaa, additions });
        self.transport.messages(question, self.half_open, self.closing, leave)
    }

    /// The mix of sizes of a side's frames; None where they have one size.
    pub fn mix(&self, side: usize) -> Option<&SizeMix> {
        let own = if side == RESPONDER { self.down_frame_sizes.as_ref() } else { None };
        own.or(self.frame_sizes.as_ref())
    }

    /// All sizes, with the fields that have them.
    pub fn sizes(&self) -> impl Iterator<Item = (&'static str, u32)> + '_ {
        let of = |name, mix: &Option<SizeMix>| {
            mix.iter().flat_map(|mix| &mix.0).map(|(size, _)| (name, *size)).collect::<Vec<_>>()
        };
        let up = of("frame.frame_sizes", &self.frame_sizes);
        [("frame.size", self.size)].into_iter().chain(up).chain(of("frame.down_frame_sizes", &self.down_frame_sizes))
    }

    /// Octets without FCS and VLAN tags of the shortest frame with these headers: IP headers and the tag, or a whole
    /// query.
    pub fn least(&self, headers: Headers) -> u32 {
        let octets = |message: &Message| {
            let payload = match &message.payload {
                Payload::Tagged => TAG_OCTETS,
                Payload::Dns(content) => content.octets().len() as u32,
                Payload::Untagged(octets) => *octets,
            };
            self.transport.header_octets(message, headers.family) + payload
        };
        let messages = self.messages(None);
        let sent = messages.iter().filter(|message| !message.reacts());
        ETHERNET + headers.octets() + sent.map(octets).max().unwrap_or_default()
    }

    /// Octets without FCS and VLAN tags of the longest frame with these headers.
    pub fn most(&self, headers: Headers) -> u32 {
        self.query.map_or(LIVE_FRAME_OCTETS - headers.vlan_octets(), |_| self.least(headers))
    }
}
