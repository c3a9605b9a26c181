// SPDX-License-Identifier: Apache-2.0
//! One round of a comparison: several devices run at the same time, and slices of a fraction of a millisecond alternate
//! between them. A disturbance longer than a block slows all of them equally, so ratios within a block are unaffected.

mod contestant;
mod floor;

use std::mem::MaybeUninit;
use std::thread;
use std::time::Instant;

use libbpf_rs::OpenObject;

use self::contestant::{LoadedContestant, Slice};
use self::floor::Floor;
use crate::failure::{Failure, Outcome};
use crate::host;
use crate::plan::SplitMix64;
use crate::report::{Block, ComparisonResult, VERSION};
use crate::request::{Comparison, Contestant, Quantity};
use crate::shared::{PHASE1, PHASE2, RESPONDER};
use crate::table::Table;

/// Least number of frames per call before slices, because each call costs some 10 us.
const OPENED_TOGETHER: u32 = 512;

/// A contestant that was loaded in another thread.
struct Sendable<'a>(LoadedContestant<'a>);

// SAFETY: libbpf's data on programs and maps is not bound to a thread, and the thread that loaded them has ended before
// they are used.
unsafe impl Send for Sendable<'_> {}

/// Run the round.
pub fn run(comparison: &Comparison, began: Instant) -> Outcome<ComparisonResult> {
    host::check_cpus("cpu", &[comparison.cpu])?;
    host::handle_signals()?;
    host::check_priorities(false)?;
    host::raise_session();
    let mut places: Vec<MaybeUninit<OpenObject>> =
        comparison.contestants.iter().map(|_| MaybeUninit::uninit()).collect();
    let mut all = load(comparison, &mut places)?;
    host::pin(comparison.cpu)?;
    host::raise_priority();
    let floor = comparison.floor.map(|position| Floor::new(position, &mut all[position])).transpose()?;
    let mut round = Round { comparison, began, keys: SplitMix64(comparison.seed), floor };
    let blocks = round.blocks(&mut all)?;
    Ok(ComparisonResult {
        version: VERSION,
        engine: env!("CARGO_PKG_VERSION"),
        contestants: all.iter().map(LoadedContestant::counts).collect(),
        floor: round.floor.map(|floor| floor.counts),
        blocks,
        wall_ns: began.elapsed().as_nanos() as u64,
    })
}

/// Load all contestants in parallel, because loading mostly waits for the kernel.
fn load<'a>(
    comparison: &'a Comparison,
    places: &'a mut [MaybeUninit<OpenObject>],
) -> Outcome<Vec<LoadedContestant<'a>>> {
    let contestants = &comparison.contestants;
    // Checked for all together, because each would find the memory of the others still free.
    Table::check(contestants.iter().map(|contestant| &contestant.trial))?;
    thread::scope(|scope| {
        let load = |(at, place): (usize, &'a mut MaybeUninit<OpenObject>)| {
            let (contestant, floor) = (&contestants[at], comparison.floor == Some(at));
            thread::Builder::new()
                .spawn_scoped(scope, move || LoadedContestant::load(contestant, floor, place).map(Sendable))
                .map_err(host::no_thread)
        };
        let loading: Vec<_> = (0..).zip(places).map(load).collect();
        let loaded = loading.into_iter().zip(contestants).map(|(loader, contestant)| {
            let broke = |_| Err(Failure::Broke("the thread that loads its programs failed".into()));
            loader
                .and_then(|loader| loader.join().unwrap_or_else(broke))
                .map(|Sendable(loaded)| loaded)
                .map_err(|failure| with_name(contestant, failure))
        });
        // Wait for all threads, also after a failure.
        loaded.collect::<Vec<_>>().into_iter().collect()
    })
}

fn with_name(contestant: &Contestant, failure: Failure) -> Failure {
    failure.reworded(|message| format!("{}: {message}", contestant.name))
}

struct Round<'a> {
    comparison: &'a Comparison,
    began: Instant,
    keys: SplitMix64,
    floor: Option<Floor>,
}

impl Round<'_> {
    /// New connections first, then the other quantities alternately, a block each. Before these all connections have been
    /// answered: until then many devices treat their frames like those of new ones.
    fn blocks(&mut self, all: &mut [LoadedContestant]) -> Outcome<Vec<Block>> {
        let slices = &self.comparison.slices;
        self.together(all, Quantity::New, PHASE1, slices.opened())?;
        let mut blocks = Vec::new();
        for _ in 0..slices.new {
            blocks.push(self.block(all, Quantity::New)?);
        }
        if slices.up > 0 || slices.down > 0 || slices.both > 0 {
            self.together(all, Quantity::Down, PHASE2[RESPONDER], 0)?;
        }
        let mut left = [(Quantity::Up, slices.up), (Quantity::Down, slices.down), (Quantity::Both, slices.both)];
        while left.iter().any(|(_, blocks)| *blocks > 0) {
            for (quantity, left) in left.iter_mut().filter(|(_, left)| *left > 0) {
                *left -= 1;
                blocks.push(self.block(all, *quantity)?);
            }
        }
        Ok(blocks)
    }

    /// Send a frame of each connection but each contestant's `last` ones, alternately. Devices may share a table, as those
    /// of one kernel share the buckets of connection tracking, where later entries are found after fewer steps.
    fn together(&mut self, all: &mut [LoadedContestant], quantity: Quantity, stream: usize, last: u64) -> Outcome<()> {
        let left = |loaded: &LoadedContestant| {
            loaded.contestant.trial.connections.saturating_sub(last + loaded.made[stream] + loaded.skipped[stream])
        };
        while all.iter().any(|loaded| left(loaded) > 0) {
            for at in self.order(all.len()) {
                self.check_limits()?;
                let together = self.comparison.slices.frames.max(OPENED_TOGETHER);
                let frames = left(&all[at]).min(u64::from(together)) as u32;
                if frames > 0 {
                    self.send(all, at, quantity, frames)?;
                }
            }
        }
        Ok(())
    }

    fn block(&mut self, all: &mut [LoadedContestant], quantity: Quantity) -> Outcome<Block> {
        let order = self.order(all.len() + usize::from(self.floor.is_some()));
        let (mut ns, mut waited, mut interrupted) = (Vec::with_capacity(2 * all.len()), 0, 0);
        for &at in order.iter().chain(order.iter().rev()) {
            self.check_limits()?;
            let slice = self.slice(all, at, quantity)?;
            ns.push(slice.ns);
            waited += u32::from(slice.waited);
            interrupted += u32::from(slice.interrupted);
        }
        Ok(Block { quantity, order, ns, waited, interrupted })
    }

    /// A slice, after its warm-up frames.
    fn slice(&mut self, all: &mut [LoadedContestant], at: usize, quantity: Quantity) -> Outcome<Slice> {
        let slices = &self.comparison.slices;
        if slices.lead > 0 {
            self.send(all, at, quantity, slices.lead)?;
        }
        self.send(all, at, quantity, slices.frames)
    }

    /// Send frames of a contestant, or of the floor, whose position follows the last contestant's.
    fn send(&mut self, all: &mut [LoadedContestant], at: usize, quantity: Quantity, frames: u32) -> Outcome<Slice> {
        match (all.get_mut(at), &mut self.floor) {
            (None, Some(floor)) => floor.send(&mut all[floor.contestant], self.comparison, quantity, frames),
            _ => {
                let loaded = &mut all[at];
                let sent = loaded.send(self.comparison, quantity, frames);
                sent.map_err(|failure| with_name(loaded.contestant, failure))
            }
        }
    }

    /// A random order (Fisher and Yates), because later slices find warmer caches.
    fn order(&mut self, contestants: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..contestants).collect();
        for last in (1..contestants).rev() {
            order.swap(last, (self.keys.next() % (last as u64 + 1)) as usize);
        }
        order
    }

    fn check_limits(&self) -> Outcome<()> {
        if host::interrupted() {
            return Err(Failure::Broke("interrupted".into()));
        }
        match self.comparison.limits.seconds {
            Some(limit) if self.began.elapsed().as_secs_f64() > limit => {
                Err(Failure::Broke(format!("limits.seconds: {limit}: the round was not over by then and was aborted")))
            }
            _ => Ok(()),
        }
    }
}
