// SPDX-License-Identifier: Apache-2.0
//! One round of a comparison: several devices up at once, visited in slices of a fraction of a millisecond that
//! alternate. What slows the host down for longer than a block slows all of them alike, so ratios within a block stand.

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
use crate::plan::Keys;
use crate::report::{Block, ComparisonResult, VERSION};
use crate::request::{Comparison, Contestant, Quantity};
use crate::shared::PHASE1;
use crate::table::Table;

/// Connections that are opened in one call before the first slice, at least: a call has some 10 us of its own.
const OPENED_TOGETHER: u32 = 512;

/// One that was loaded in a thread of its own.
struct Sendable<'a>(LoadedContestant<'a>);

// SAFETY: what libbpf keeps of programs and maps belongs to no thread, and the one that loaded them has ended when
// another one gets them.
unsafe impl Send for Sendable<'_> {}

/// Run the whole round.
pub fn run(comparison: &Comparison, began: Instant) -> Outcome<ComparisonResult> {
    host::check_cpus("cpu", &[comparison.cpu])?;
    host::handle_signals()?;
    host::leave_session();
    let mut places: Vec<MaybeUninit<OpenObject>> =
        comparison.contestants.iter().map(|_| MaybeUninit::uninit()).collect();
    let mut all = load(&comparison.contestants, &mut places)?;
    host::pin(comparison.cpu)?;
    host::go_first();
    let floor = comparison.floor.map(|below| Floor::lay(below, &mut all[below])).transpose()?;
    let mut round = Round { comparison, began, keys: Keys(comparison.seed), floor };
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

/// Load all side by side: what takes the time is waiting for all CPUs, again and again.
fn load<'a>(
    contestants: &'a [Contestant],
    places: &'a mut [MaybeUninit<OpenObject>],
) -> Outcome<Vec<LoadedContestant<'a>>> {
    // Each by itself would find the others' room still free.
    Table::check(contestants.iter().map(|contestant| &contestant.trial))?;
    thread::scope(|scope| {
        let loading: Vec<_> = contestants
            .iter()
            .zip(places)
            .map(|(contestant, place)| scope.spawn(move || LoadedContestant::load(contestant, place).map(Sendable)))
            .collect();
        let loaded = loading.into_iter().zip(contestants).map(|(loader, contestant)| {
            let broke = |_| Err(Failure::Broke("the thread that loads its programs broke".into()));
            loader.join().unwrap_or_else(broke).map(|Sendable(one)| one).map_err(|failure| named(contestant, failure))
        });
        // Each is waited for, whatever became of the others.
        loaded.collect::<Vec<_>>().into_iter().collect()
    })
}

fn named(contestant: &Contestant, failure: Failure) -> Failure {
    let text = |said: String| format!("{}: {said}", contestant.name);
    match failure {
        Failure::Request(said) => Failure::Request(text(said)),
        Failure::Host(said) => Failure::Host(text(said)),
        Failure::Broke(said) => Failure::Broke(text(said)),
        Failure::Unreachable(said) => Failure::Unreachable(text(said)),
    }
}

struct Round<'a> {
    comparison: &'a Comparison,
    began: Instant,
    keys: Keys,
    floor: Option<Floor>,
}

impl Round<'_> {
    /// First the connections, then all other quantities in turn, a block each.
    fn blocks(&mut self, all: &mut [LoadedContestant]) -> Outcome<Vec<Block>> {
        let slices = &self.comparison.slices;
        self.open(all, slices.opened())?;
        let mut blocks = Vec::new();
        for _ in 0..slices.new {
            blocks.push(self.block(all, Quantity::New)?);
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

    /// Open all connections but each contestant's last ones, in turn: devices that share a table, as those of one kernel
    /// share the buckets of its connection tracking, would otherwise find the first one's entries behind all others.
    fn open(&mut self, all: &mut [LoadedContestant], last: u64) -> Outcome<()> {
        let left = |one: &LoadedContestant| one.contestant.trial.connections.saturating_sub(last + one.made[PHASE1]);
        while all.iter().any(|one| left(one) > 0) {
            for at in self.order(all.len()) {
                self.may_go_on()?;
                let together = self.comparison.slices.frames.max(OPENED_TOGETHER);
                let frames = left(&all[at]).min(u64::from(together)) as u32;
                if frames > 0 {
                    self.send(all, at, Quantity::New, frames)?;
                }
            }
        }
        Ok(())
    }

    fn block(&mut self, all: &mut [LoadedContestant], quantity: Quantity) -> Outcome<Block> {
        let order = self.order(all.len() + usize::from(self.floor.is_some()));
        let (mut ns, mut waited, mut interrupted) = (Vec::with_capacity(2 * all.len()), 0, 0);
        for &at in order.iter().chain(order.iter().rev()) {
            self.may_go_on()?;
            let slice = self.visit(all, at, quantity)?;
            ns.push(slice.ns);
            waited += u32::from(slice.waited);
            interrupted += u32::from(slice.interrupted);
        }
        Ok(Block { quantity, order, ns, waited, interrupted })
    }

    /// One slice, behind the frames that lead it.
    fn visit(&mut self, all: &mut [LoadedContestant], at: usize, quantity: Quantity) -> Outcome<Slice> {
        let slices = &self.comparison.slices;
        if slices.lead > 0 {
            self.send(all, at, quantity, slices.lead)?;
        }
        self.send(all, at, quantity, slices.frames)
    }

    /// Frames through a contestant; behind the last one comes the floor.
    fn send(&mut self, all: &mut [LoadedContestant], at: usize, quantity: Quantity, frames: u32) -> Outcome<Slice> {
        match (all.get_mut(at), &mut self.floor) {
            (None, Some(floor)) => floor.send(&mut all[floor.below], self.comparison, quantity, frames),
            _ => {
                let one = &mut all[at];
                let sent = one.send(self.comparison, quantity, frames);
                sent.map_err(|failure| named(one.contestant, failure))
            }
        }
    }

    /// A random order (Fisher and Yates): who comes second finds warmer caches.
    fn order(&mut self, contestants: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..contestants).collect();
        for last in (1..contestants).rev() {
            order.swap(last, (self.keys.next() % (last as u64 + 1)) as usize);
        }
        order
    }

    fn may_go_on(&self) -> Outcome<()> {
        if host::interrupted() {
            return Err(Failure::Broke("interrupted".into()));
        }
        match self.comparison.limits.seconds {
            Some(limit) if self.began.elapsed().as_secs_f64() > limit => Err(Failure::Broke(format!(
                "limits.seconds: {limit}: the round was not over by then and was broken off"
            ))),
            _ => Ok(()),
        }
    }
}
