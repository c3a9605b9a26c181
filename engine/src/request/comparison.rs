// SPDX-License-Identifier: Apache-2.0
//! The comparison request: several trial requests, whose devices run at the same time, and slices of frames that alternate
//! between them. `trial/comparison-1.schema.json` is generated from these types.
#![allow(missing_docs, reason = "where a field's name says all, its schema has no description either")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bounds::{Text, Whole, MOST_CPUS};
use super::document::{check_shape, document, typed};
use super::model::{default_batch, Limits, Request};
use super::trial::check as check_trial;
use crate::failure::{Failure, Outcome};

/// Version of the comparison request.
pub const VERSION: u64 = 1;
/// Most devices that run at the same time.
pub const MOST_CONTESTANTS: usize = 16;
/// Frames within which the receivers recognize duplicates.
const MOST_SLICE_FRAMES: u64 = 1 << 20;
const MOST_BLOCKS: u64 = 100_000;

/// Frames of a slice: the first frames of new connections, or frames of established connections from the Initiator, from
/// the Responder, or alternately from both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Quantity {
    New,
    Up,
    Down,
    Both,
}

/// A device to compare, or a cable without a device.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contestant {
    /// Used in messages only.
    #[serde(with = "Text::<1, 64>")]
    pub name: String,
    /// Ports, four tuples and frames. Slices are sent without pacing, so rates, grace, gap and phase 2 are not used.
    pub trial: Request,
}

/// Blocks of slices. A block has one slice per contestant in a random order, then one more in the reverse order.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slices {
    /// Frames per slice.
    #[serde(with = "Whole::<16, MOST_SLICE_FRAMES>")]
    pub frames: u32,
    /// Warm-up frames before each slice, which are not timed: they load the caches that other contestants have used.
    #[serde(default, with = "Whole::<0, MOST_SLICE_FRAMES>")]
    pub lead: u32,
    /// Blocks in which each contestant's last connections are opened; earlier ones are opened before the first block.
    #[serde(with = "Whole::<0, MOST_BLOCKS>")]
    pub new: u32,
    /// Blocks with frames of established connections from the Initiator. Each connection was answered once before.
    #[serde(with = "Whole::<0, MOST_BLOCKS>")]
    pub up: u32,
    #[serde(with = "Whole::<0, MOST_BLOCKS>")]
    pub down: u32,
    #[serde(with = "Whole::<0, MOST_BLOCKS>")]
    pub both: u32,
}

impl Slices {
    /// Connections of a contestant that are opened in blocks.
    pub fn opened(&self) -> u64 {
        2 * (u64::from(self.frames) + u64::from(self.lead)) * u64::from(self.new)
    }
}

/// One round of a comparison.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ComparisonRequest", title = "natgauge comparison request, version 1")]
pub struct Comparison {
    #[allow(dead_code, reason = "checked before the rest is read")]
    #[serde(with = "Whole::<VERSION, VERSION>")]
    pub version: u64,
    /// Seed of the order of slices; each trial has its own seed for its frames.
    #[serde(with = "Whole::<0, { u64::MAX }>")]
    pub seed: u64,
    /// CPU that sends all slices; in placement `shared` the devices use it, too.
    #[serde(with = "Whole::<0, { MOST_CPUS as u64 - 1 }>")]
    pub cpu: usize,
    /// Frames that leave together.
    #[serde(default = "default_batch", with = "Whole::<1, 128>")]
    pub batch: u32,
    #[schemars(length(min = 1, max = MOST_CONTESTANTS))]
    pub contestants: Vec<Contestant>,
    /// Position of a contestant whose ports are also used for the redirect floor: each block has two more slices, in which
    /// one program only redirects frames and another only drops them. They measure the kernel's own cost of a frame. The
    /// floor's position in blocks follows the last contestant's.
    #[serde(default)]
    pub floor: Option<usize>,
    pub slices: Slices,
    #[serde(default)]
    pub limits: Limits,
}

/// Texts of the rules that the schema does not contain.
pub const COMPARISON_RULES: [&str; 4] = [
    "too few for the blocks of new ones",
    "must be the comparison's cpu alone",
    "must be a contestant's position",
    "slices are of plain frames: leave it out",
];

/// Read a comparison and check all rules that need no interface.
pub fn parse(text: &[u8]) -> Outcome<Comparison> {
    let value = document(text, "comparison request", VERSION)?;
    // The structure of each trial is checked separately, by the rules for trial requests.
    for one in value.get("contestants").and_then(Value::as_array).into_iter().flatten() {
        if let Some(trial) = one.get("trial") {
            check_shape("", trial).map_err(|failure| within(one, failure))?;
        }
    }
    let comparison = typed(text)?;
    check(&comparison)?;
    Ok(comparison)
}

fn within(contestant: &Value, failure: Failure) -> Failure {
    let name = contestant.get("name").and_then(Value::as_str).unwrap_or("contestant");
    Failure::Request(format!("{name}: {failure}"))
}

fn check(comparison: &Comparison) -> Outcome<()> {
    let contestants = &comparison.contestants;
    let [few, alone, position, plain] = COMPARISON_RULES;
    if !(1..=MOST_CONTESTANTS).contains(&contestants.len()) {
        let rule = format!("must be 1 to {MOST_CONTESTANTS}");
        return Err(Failure::field("contestants", contestants.len(), &rule));
    }
    if let Some(at) = comparison.floor.filter(|&at| at >= contestants.len()) {
        return Err(Failure::field("floor", at, position));
    }
    for Contestant { name, trial } in contestants {
        let named = |failure: Failure| Failure::Request(format!("{name}: {failure}"));
        check_trial(trial).map_err(named)?;
        if trial.senders.cpus != [comparison.cpu] {
            return Err(named(Failure::field("senders.cpus", format!("{:?}", trial.senders.cpus), alone)));
        }
        if trial.frame.query.is_some() {
            return Err(named(Failure::field("frame.query", "{}", plain)));
        }
        let beyond = [
            ("phase2.modifiers", trial.modifiers().is_some()),
            ("phase2.churn", trial.churn().is_some()),
            ("frame.half_open", trial.frame.half_open),
            ("frame.closing", trial.frame.closing.is_some()),
        ];
        if let Some((name, _)) = beyond.into_iter().find(|&(_, is_there)| is_there) {
            return Err(named(Failure::field(name, "{}", plain)));
        }
        if trial.connections < comparison.slices.opened() {
            return Err(named(Failure::field("connections", trial.connections, few)));
        }
    }
    Ok(())
}
