// SPDX-License-Identifier: Apache-2.0
//! What a comparison request holds: several trial requests whose devices are up at once, and the slices that visit them
//! in turn. From these types `trial/comparison-1.schema.json` is generated.
#![allow(missing_docs, reason = "where a field's name says all, its schema has no description either")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bounds::{Text, Whole, MOST_CPUS};
use super::document::{check_shape, document, typed};
use super::model::{default_batch, Limits, Request};
use super::trial::check as check_trial;
use crate::failure::{Failure, Outcome};

/// Of the agreement.
pub const VERSION: u64 = 1;
/// Devices that are up at once.
pub const MOST_CONTESTANTS: usize = 16;
/// As many as the receivers tell duplicates apart in.
const MOST_SLICE_FRAMES: u64 = 1 << 20;
const MOST_BLOCKS: u64 = 100_000;

/// What a slice's frames are: first frames of connections, or frames of standing connections from the Initiator, from
/// the Responder, or from both, one in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Quantity {
    New,
    Up,
    Down,
    Both,
}

/// One of the devices, or none: a cable.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contestant {
    /// Not told apart by it; in messages.
    #[serde(with = "Text::<1, 64>")]
    pub name: String,
    /// Ports, four tuples and frames. Slices are sent without pacing: rates, graces, gap and phase 2 are not read.
    pub trial: Request,
}

/// Blocks of slices. A block visits each contestant once in a random order, then once more in the reverse order.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slices {
    /// Frames of one slice.
    #[serde(with = "Whole::<16, MOST_SLICE_FRAMES>")]
    pub frames: u32,
    /// Frames ahead of those of a slice that are not timed: they find in the caches what others left there.
    #[serde(default, with = "Whole::<0, MOST_SLICE_FRAMES>")]
    pub lead: u32,
    /// Blocks that open each contestant's last connections; those before are opened untold.
    #[serde(with = "Whole::<0, MOST_BLOCKS>")]
    pub new: u32,
    /// Blocks over standing connections, each quantity by itself.
    #[serde(with = "Whole::<0, MOST_BLOCKS>")]
    pub up: u32,
    #[serde(with = "Whole::<0, MOST_BLOCKS>")]
    pub down: u32,
    #[serde(with = "Whole::<0, MOST_BLOCKS>")]
    pub both: u32,
}

impl Slices {
    /// Connections of a contestant that the told blocks open.
    pub fn opened(&self) -> u64 {
        2 * (u64::from(self.frames) + u64::from(self.lead)) * u64::from(self.new)
    }
}

/// One round of a comparison.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "natgauge comparison request, version 1")]
pub struct Comparison {
    #[allow(dead_code, reason = "checked before the rest is read")]
    #[serde(with = "Whole::<VERSION, VERSION>")]
    pub version: u64,
    /// Of the orders of visits; frames have their trial's own.
    #[serde(with = "Whole::<0, { u64::MAX }>")]
    pub seed: u64,
    /// Sends all slices; in `shared` placement the devices work on it.
    #[serde(with = "Whole::<0, { MOST_CPUS as u64 - 1 }>")]
    pub cpu: usize,
    /// Frames that leave together.
    #[serde(default = "default_batch", with = "Whole::<1, 128>")]
    pub batch: u32,
    #[schemars(length(min = 1, max = MOST_CONTESTANTS))]
    pub contestants: Vec<Contestant>,
    /// Position of a contestant whose ports each block visits twice more, with a program that only redirects to one that
    /// only drops: what the kernel takes of any frame. Its own position in blocks is that behind the last contestant.
    #[serde(default)]
    pub floor: Option<usize>,
    pub slices: Slices,
    #[serde(default)]
    pub limits: Limits,
}

/// Texts of the rules that the schema does not say.
pub const BEYOND_COMPARISON: [&str; 4] = [
    "too few for the blocks of new ones",
    "must be the comparison's cpu alone",
    "must be a contestant's position",
    "slices are of plain frames: leave it out",
];

/// Read a comparison and check every rule that needs no interface.
pub fn parse(text: &[u8]) -> Outcome<Comparison> {
    let value = document(text, "comparison request", VERSION)?;
    // Lists in place of objects are looked for in each trial by itself, by its own rules.
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
    let [few, alone, position, plain] = BEYOND_COMPARISON;
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
        if trial.connections < comparison.slices.opened() {
            return Err(named(Failure::field("connections", trial.connections, few)));
        }
    }
    Ok(())
}
