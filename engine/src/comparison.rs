// SPDX-License-Identifier: Apache-2.0
//! One round of a comparison: several devices up at once, visited in slices of a fraction of a millisecond that
//! alternate. What slows the host down for longer than a block slows all of them alike, so ratios within a block stand.

mod floor;

use std::mem::MaybeUninit;
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::OpenObject;

use self::floor::Floor;
use crate::failure::{Failure, Outcome};
use crate::host;
use crate::plan::{self, Keys};
use crate::port::{self, Port};
use crate::programs::Programs;
use crate::report::{Block, ComparisonResult, ContestantCounts, StreamTally, VERSION};
use crate::request::{Comparison, Contestant, Quantity};
use crate::selftest;
use crate::sender;
use crate::shared::{BOTH, INITIATOR, PHASE1, PHASE2, RESPONDER, SIDES, STREAMS};
use crate::table::Table;
use crate::tester::types;

/// How long the last frames of a slice are waited for; a device that works on the sender's core has none left by then.
const PATIENCE: Duration = Duration::from_millis(20);

/// Connections that are opened in one call before the first slice, at least: a call has some 10 us of its own.
const OPENED_TOGETHER: u32 = 512;

/// One contestant with its programs.
struct Visited<'a> {
    contestant: &'a Contestant,
    programs: Programs<'a>,
    ports: [Port; SIDES],
    frame: Vec<u8>,
    /// Of each stream, over all slices so far.
    made: [u64; STREAMS],
    skipped: [u64; STREAMS],
    received: u64,
    lossy: bool,
}

/// One that was loaded in a thread of its own.
struct Loaded<'a>(Visited<'a>);

// SAFETY: what libbpf keeps of programs and maps belongs to no thread, and the one that loaded them has ended when
// another one gets them.
unsafe impl Send for Loaded<'_> {}

/// What a slice took.
struct Slice {
    ns: u64,
    /// Not all frames had come when the call returned.
    waited: bool,
    /// The sender did nothing for more than 1 ms.
    interrupted: bool,
}

impl Quantity {
    /// Which streams its frames are of, by the side that sends.
    fn streams(self) -> [Option<usize>; SIDES] {
        match self {
            Self::New => [Some(PHASE1), None],
            Self::Up => [Some(PHASE2[INITIATOR]), None],
            Self::Down => [None, Some(PHASE2[RESPONDER])],
            Self::Both => PHASE2.map(Some),
        }
    }
}

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
        contestants: all.iter().map(Visited::counts).collect(),
        floor: round.floor.map(|floor| floor.counts),
        blocks,
        wall_ns: began.elapsed().as_nanos() as u64,
    })
}

/// Load all side by side: what takes the time is waiting for all CPUs, again and again.
fn load<'a>(contestants: &'a [Contestant], places: &'a mut [MaybeUninit<OpenObject>]) -> Outcome<Vec<Visited<'a>>> {
    // Each by itself would find the others' room still free.
    Table::check(contestants.iter().map(|contestant| &contestant.trial))?;
    thread::scope(|scope| {
        let loading: Vec<_> = contestants
            .iter()
            .zip(places)
            .map(|(contestant, place)| scope.spawn(move || Visited::load(contestant, place).map(Loaded)))
            .collect();
        let loaded = loading.into_iter().zip(contestants).map(|(loader, contestant)| {
            let broke = |_| Err(Failure::Broke("the thread that loads its programs broke".into()));
            loader.join().unwrap_or_else(broke).map(|Loaded(one)| one).map_err(|failure| named(contestant, failure))
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

/// What a call that sent a slice came to.
fn took(cpu: usize, sent: Result<(), i32>) -> Outcome<()> {
    match sent {
        Ok(()) => Ok(()),
        Err(libc::EINTR) => Err(Failure::Broke("interrupted".into())),
        Err(error) => Err(sender::refused(cpu, error)),
    }
}

impl<'a> Visited<'a> {
    fn load(contestant: &'a Contestant, place: &'a mut MaybeUninit<OpenObject>) -> Outcome<Self> {
        let request = &contestant.trial;
        let ports = port::both(request)?;
        let plan = plan::build(request, BOTH.map(|side| (ports[side].mac.0, ports[side].gateway.0)));
        let mut programs = Programs::load(place, &plan, 1, Table::make(request)?)?;
        programs.attach(&ports)?;
        selftest::run(&programs, &ports, &request.senders.cpus)?;
        programs.clear_received()?;
        programs.control.open((1 << STREAMS) - 1);
        let frame = vec![0; request.longest_octets() as usize];
        let (made, skipped) = ([0; STREAMS], [0; STREAMS]);
        Ok(Self { contestant, programs, ports, frame, made, skipped, received: 0, lossy: false })
    }

    /// Make so many frames without pacing, and go on when all of them are back.
    fn send(&mut self, comparison: &Comparison, quantity: Quantity, frames: u32) -> Outcome<Slice> {
        let (cpu, streams) = (comparison.cpu, quantity.streams());
        let both = streams.iter().flatten().count() == SIDES;
        let mut state = types::sender { senders: 1, active: 1, ..Default::default() };
        for side in BOTH {
            let Some(stream) = streams[side] else { continue };
            // With both, one in turn; an odd one is the Initiator's.
            let share = if both { (frames + u32::from(side == INITIATOR)) / 2 } else { frames };
            let schedule = &mut state.schedule[side];
            (schedule.made, schedule.skipped) = (self.made[stream], self.skipped[stream]);
            schedule.frames = schedule.made + schedule.skipped + u64::from(share);
            // Due at once, in turn.
            schedule.interval = 1;
            schedule.step_at = u64::MAX;
            state.stream[side] = types::stream(stream as u32);
        }
        state.start_ns = host::now_ns();
        self.programs.set_senders(&[(cpu, state)])?;
        let from = host::now_ns();
        let sent = sender::run(self.programs.generator(), &self.frame, frames as i32, comparison.batch);
        let mut to = host::now_ns();
        took(cpu, sent)?;
        let state = self.programs.senders().get(cpu).copied().unwrap_or_default();
        let mut wanted = self.received;
        for side in BOTH {
            let Some(stream) = streams[side] else { continue };
            wanted += state.schedule[side].made - self.made[stream];
            (self.made[stream], self.skipped[stream]) = (state.schedule[side].made, state.schedule[side].skipped);
        }
        let patience = Instant::now() + if self.lossy { Duration::ZERO } else { PATIENCE };
        let mut waited = false;
        loop {
            self.received = self.programs.received().tally.iter().map(|tally| tally.received).sum();
            if self.received >= wanted {
                break;
            }
            if Instant::now() >= patience {
                self.lossy = true;
                break;
            }
            waited = true;
        }
        if waited {
            to = host::now_ns();
        }
        Ok(Slice { ns: to - from, waited, interrupted: state.stalls > 0 })
    }

    fn counts(&self) -> ContestantCounts {
        let (received, offered) = (self.programs.received(), self.programs.offered());
        let stream = |number: usize| {
            let tally = &received.tally[number];
            StreamTally {
                made_frames: self.made[number],
                received_frames: tally.received,
                duplicates: tally.duplicates,
                reordered: tally.reordered,
                late: tally.late,
                damaged: tally.damaged,
                untranslated: tally.untranslated,
                mistranslated: tally.mistranslated,
                skipped: self.skipped[number],
            }
        };
        ContestantCounts {
            name: self.contestant.name.clone(),
            mark: self.contestant.trial.mark,
            new: stream(PHASE1),
            initiator: stream(PHASE2[INITIATOR]),
            responder: stream(PHASE2[RESPONDER]),
            stored: received.stored,
            remapped: received.remapped,
            damaged_unmarked: received.damaged_unmarked.iter().sum(),
            foreign: received.foreign.iter().sum(),
            offered_frames: offered.iter().map(|port| port.accepted).sum(),
            refused_frames: offered.iter().map(|port| port.refused + port.redirect_errors).sum(),
            gateway_macs: BOTH.map(|side| self.ports[side].gateway.to_string()).to_vec(),
        }
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
    fn blocks(&mut self, all: &mut [Visited]) -> Outcome<Vec<Block>> {
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
    fn open(&mut self, all: &mut [Visited], last: u64) -> Outcome<()> {
        let left = |one: &Visited| one.contestant.trial.connections.saturating_sub(last + one.made[PHASE1]);
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

    fn block(&mut self, all: &mut [Visited], quantity: Quantity) -> Outcome<Block> {
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
    fn visit(&mut self, all: &mut [Visited], at: usize, quantity: Quantity) -> Outcome<Slice> {
        let slices = &self.comparison.slices;
        if slices.lead > 0 {
            self.send(all, at, quantity, slices.lead)?;
        }
        self.send(all, at, quantity, slices.frames)
    }

    /// Frames through a contestant; behind the last one comes the floor.
    fn send(&mut self, all: &mut [Visited], at: usize, quantity: Quantity, frames: u32) -> Outcome<Slice> {
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
