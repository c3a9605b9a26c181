// SPDX-License-Identifier: Apache-2.0
//! Slices of the redirect floor, over the ports of one contestant.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::contestant::{was_cut, LoadedContestant, Slice, ARRIVAL_TIMEOUT};
use crate::failure::Outcome;
use crate::host;
use crate::port::Port;
use crate::programs::floor::KeptAttached;
use crate::report::FloorCounts;
use crate::request::{Comparison, Quantity};
use crate::sender;
use crate::shared::SIDES;

/// Time in which the frames of a batch that has ended arrive, unless the host stalls.
const BATCH_ARRIVES: Duration = Duration::from_millis(1);

/// The redirect floor.
pub struct Floor {
    /// Position of the contestant whose ports it uses.
    pub contestant: usize,
    _attached: KeptAttached,
    /// Counts of all slices so far.
    pub counts: FloorCounts,
}

impl Floor {
    /// Use the ports of the contestant at this position.
    pub fn new(position: usize, contestant: &mut LoadedContestant) -> Outcome<Self> {
        Ok(Self {
            contestant: position,
            _attached: contestant.programs.keep_attached()?,
            counts: FloorCounts::default(),
        })
    }

    /// Send `frames` frames of the contestant's length, and wait until all have arrived.
    pub fn send(
        &mut self,
        contestant: &mut LoadedContestant,
        comparison: &Comparison,
        quantity: Quantity,
        frames: u32,
    ) -> Outcome<Slice> {
        let ifindex = [0, 1].map(|side: usize| contestant.ports[side].ifindex as u32);
        contestant.programs.switch_to_floor(quantity.streams().map(|stream| stream.is_some()))?;
        let before = received(&contestant.ports)?;
        let from = host::now_ns();
        let mut interrupted = false;
        let mut left = u64::from(frames);
        while left > 0 {
            let redirector = contestant.programs.redirector();
            let sent = sender::run(redirector, &contestant.frame, left as i32, comparison.batch);
            if !was_cut(comparison.cpu, sent)? {
                break;
            }
            interrupted = true;
            // Its program counts no frames. Those of a batch have arrived by then.
            sleep(BATCH_ARRIVES);
            left = u64::from(frames).saturating_sub(received(&contestant.ports)? - before);
        }
        let mut to = host::now_ns();
        let give_up = Instant::now() + ARRIVAL_TIMEOUT;
        let mut waited = false;
        let arrived = loop {
            let arrived = received(&contestant.ports)? - before;
            if arrived >= u64::from(frames) || Instant::now() >= give_up {
                break arrived;
            }
            waited = true;
        };
        if waited {
            to = host::now_ns();
        }
        contestant.programs.switch_to_receivers(ifindex)?;
        self.counts.made_frames += u64::from(frames);
        self.counts.received_frames += arrived;
        // Its program reads no clock, so other interruptions are not seen.
        Ok(Slice { ns: to - from, waited, interrupted })
    }
}

fn received(ports: &[Port; SIDES]) -> Outcome<u64> {
    Ok(ports[0].received()? + ports[1].received()?)
}
