// SPDX-License-Identifier: Apache-2.0
//! Churn: connections that are opened in phase 2, while the oldest leave.
#![allow(missing_docs, reason = "where a field's name says all, its schema has no description either")]

use schemars::JsonSchema;
use serde::Deserialize;

use super::bounds::{Rate, Whole};
use crate::transport::{Transport, Way};

const LEAST_GUARD_MS: u64 = 1;
const LONGEST_GUARD_MS: u64 = 60_000;

/// How a connection leaves: no further frames, or the Initiator closes it by a FIN or a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names of the flags")]
pub enum Leave {
    Silent,
    Fin,
    Reset,
}

impl Leave {
    /// The segment with which a TCP connection leaves.
    pub fn way(self) -> Option<Way> {
        match self {
            Self::Silent => None,
            Self::Fin => Some(Way::Fin),
            Self::Reset => Some(Way::Rst),
        }
    }

    /// Whether connections of a transport can leave like this.
    pub fn fits(self, transport: Transport) -> bool {
        (self == Self::Silent) == (transport != Transport::Tcp)
    }
}

/// Connections opened evenly during phase 2, in the order of their numbers. With each, the oldest one leaves, so the number
/// of open ones stays. Streams send to open ones, in a pseudorandom order.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ChurnRequest")]
pub struct Churn {
    /// Connections/s
    #[serde(with = "Rate")]
    pub new_per_second: f64,
    /// UDP and ICMP: silent. TCP: fin or reset.
    pub leave: Leave,
    /// A connection gets frames from this time after its opening until this time before it leaves.
    #[serde(default = "tenth_of_a_second", with = "Whole::<LEAST_GUARD_MS, LONGEST_GUARD_MS>")]
    pub guard_ms: u64,
    /// Connections/s that the host with the address after the last source address opens in addition, with the lowest ports
    /// first. They get no further frames. Absent: it opens none.
    #[serde(default, with = "Rate")]
    pub flood_per_second: Option<f64>,
}

fn tenth_of_a_second() -> u64 {
    100
}

impl Churn {
    /// Connections that are opened, and that leave, in this time.
    pub fn openings(&self, seconds: f64) -> u64 {
        whole(self.new_per_second * seconds)
    }

    /// Connections that the flood opens in this time.
    pub fn flood(&self, seconds: f64) -> u64 {
        whole(self.flood_per_second.unwrap_or_default() * seconds)
    }

    /// Connections that are too young, or about to leave, to get frames: so many of each.
    pub fn guarded(&self) -> u64 {
        (self.new_per_second * self.guard_ms as f64 / 1e3).ceil() as u64 + 1
    }
}

/// Half a frame's time is no time: rates divide the number of frames only up to the last bits.
fn whole(frames: f64) -> u64 {
    (frames + 1e-6).floor() as u64
}
