// SPDX-License-Identifier: Apache-2.0
//! The frames of a trial: families, sizes, and the headers in front of the tag.
#![allow(missing_docs, reason = "where a field's name says all, its schema has no description either")]

use schemars::JsonSchema;
use serde::Deserialize;

use super::bounds::Whole;
use crate::dns::{Message, Query};
use crate::shared::TAG_OCTETS;

/// Octets of an Ethernet frame's check sequence.
pub const FCS: u32 = 4;
/// What a page leaves for a live frame (kernel: net/bpf/test_run.c).
pub const LIVE_FRAME_OCTETS: u32 = 3408;
const LONGEST_FRAME: u64 = (LIVE_FRAME_OCTETS + FCS) as u64;
/// Octets of an Ethernet header.
pub const ETHERNET: u32 = 14;

/// The header between IP and the tag.
#[derive(Debug, Clone, Copy)]
pub struct Transport {
    /// As IP calls it.
    pub protocol: u8,
    /// Of its header.
    pub octets: u32,
}

/// RFC 768.
const UDP: Transport = Transport { protocol: 17, octets: 8 };

/// Which protocol a side speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    /// Octets of the IP header.
    pub fn header_octets(self) -> u32 {
        match self {
            Self::Ipv4 => 20,
            Self::Ipv6 => 40,
        }
    }
}

/// One of the two sides, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SideName {
    Initiator,
    Responder,
}

/// How long frames are, and what they say.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// Octets with FCS, on the named side; the other side follows from the families (IPv6 = IPv4 + 20).
    #[serde(with = "Whole::<64, LONGEST_FRAME>")]
    pub size: u32,
    pub side: SideName,
    /// Every frame of the Initiator is a DNS query of this type, whose name carries the tag, and the Responder answers
    /// each at once. What is received then are right answers, each once, at the Initiator, and delays are those of
    /// query and answer together. Absent: plain test frames.
    pub query: Option<Query>,
    /// The Responder answers no query but hands it on to the stack of its port's namespace, where a server answers.
    #[serde(default)]
    pub handed_on: bool,
}

impl Frame {
    /// What follows the IP header.
    pub fn transport(&self) -> Transport {
        UDP
    }

    /// Octets without FCS of the shortest frame of a family: all headers and the tag, or a whole query.
    pub fn least(&self, family: Family) -> u32 {
        let payload = self.query.map_or(TAG_OCTETS, |query| Message::question(query).octets().len() as u32);
        ETHERNET + family.header_octets() + self.transport().octets + payload
    }

    /// The same of the longest.
    pub fn most(&self, family: Family) -> u32 {
        self.query.map_or(LIVE_FRAME_OCTETS, |_| self.least(family))
    }
}
