// SPDX-License-Identifier: Apache-2.0
//! The redirect floor's slices, over the ports of one contestant.

use std::time::Instant;

use super::contestant::{took, LoadedContestant, Slice, PATIENCE};
use crate::failure::Outcome;
use crate::host;
use crate::port::Port;
use crate::programs::floor::Held;
use crate::report::FloorCounts;
use crate::request::{Comparison, Quantity};
use crate::sender;
use crate::shared::SIDES;

/// What is visited beside the contestants.
pub struct Floor {
    /// Whose ports.
    pub below: usize,
    _held: Held,
    /// Of all slices so far.
    pub counts: FloorCounts,
}

impl Floor {
    /// Below this contestant.
    pub fn lay(below: usize, one: &mut LoadedContestant) -> Outcome<Self> {
        Ok(Self { below, _held: one.programs.hold_floor()?, counts: FloorCounts::default() })
    }

    /// So many frames of the contestant's length, and go on when all have come.
    pub fn send(
        &mut self,
        one: &mut LoadedContestant,
        comparison: &Comparison,
        quantity: Quantity,
        frames: u32,
    ) -> Outcome<Slice> {
        let ifindex = [0, 1].map(|side: usize| one.ports[side].ifindex as u32);
        one.programs.lay_floor(quantity.streams().map(|stream| stream.is_some()))?;
        let before = received(&one.ports)?;
        let from = host::now_ns();
        let sent = sender::run(one.programs.redirector(), &one.frame, frames as i32, comparison.batch);
        let mut to = host::now_ns();
        took(comparison.cpu, sent)?;
        let patience = Instant::now() + PATIENCE;
        let mut waited = false;
        let came = loop {
            let came = received(&one.ports)? - before;
            if came >= u64::from(frames) || Instant::now() >= patience {
                break came;
            }
            waited = true;
        };
        if waited {
            to = host::now_ns();
        }
        one.programs.lift_floor(ifindex)?;
        self.counts.made_frames += u64::from(frames);
        self.counts.received_frames += came;
        // It reads no clock, so it does not know of interruptions.
        Ok(Slice { ns: to - from, waited, interrupted: false })
    }
}

fn received(ports: &[Port; SIDES]) -> Outcome<u64> {
    Ok(ports[0].received()? + ports[1].received()?)
}
