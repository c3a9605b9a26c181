// SPDX-License-Identifier: Apache-2.0
//! Conditions of phase 2 beside its rates: RFC 2544 section 11, and RFC 8219 section 10.2.2.
#![allow(missing_docs, reason = "where a field's name says all, its schema has no description either")]

use schemars::JsonSchema;
use serde::Deserialize;

use super::bounds::{Positive, Whole};

/// Conditions of phase 2 beside its rates.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ModifiersRequest")]
pub struct Modifiers {
    /// In place of one frame in so many, each side sends a broadcast, over IPv6 one to all nodes (RFC 2544 section 11.1).
    /// They are no part of other counts.
    #[serde(default, with = "Whole::<2, 1_000_000>")]
    pub broadcast_every: Option<u64>,
    /// The Initiator's port sends the device an ICMP echo request after each such time (RFC 2544 section 11.2), from the
    /// start of the trial.
    #[serde(default, with = "Whole::<10, 3_600_000>")]
    pub query_ms: Option<u64>,
    pub groups: Option<Groups>,
}

/// Groups of connections whose frames begin one after another (RFC 8219 section 10.2.2): connection i belongs to group i
/// modulo `number`, and the frames of group k, from 0, begin k times `seconds` after the start of phase 2. Every
/// `number`-th frame of a stream is of one group; those that have not begun are no part of the counts. Each group counts
/// its broadcasts and its background by itself, from another frame.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Groups {
    #[serde(with = "Whole::<2, 10_000>")]
    pub number: u32,
    #[serde(with = "Positive::<3600>")]
    pub seconds: f64,
}
