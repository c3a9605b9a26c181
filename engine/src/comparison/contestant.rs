// SPDX-License-Identifier: Apache-2.0
//! One contestant of a comparison: its frame programs, and slices of its frames.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use libbpf_rs::OpenObject;

use crate::failure::{Failure, Outcome};
use crate::host;
use crate::plan;
use crate::port::{self, Port};
use crate::programs::Programs;
use crate::report::{ContestantCounts, StreamTally, WrongFrames};
use crate::request::{Comparison, Contestant, Quantity};
use crate::selftest;
use crate::sender;
use crate::shared::{BOTH, INITIATOR, PHASE1, PHASE2, RESPONDER, SIDES, STREAMS};
use crate::table::Table;
use crate::tester::types;

/// Longest wait for the last frames of a slice. A device on the sender's core has processed all of them before.
pub const ARRIVAL_TIMEOUT: Duration = Duration::from_millis(20);

/// A contestant with its programs and ports.
pub struct LoadedContestant<'a> {
    pub contestant: &'a Contestant,
    pub programs: Programs<'a>,
    pub ports: [Port; SIDES],
    pub frame: Vec<u8>,
    /// By stream, over all slices so far.
    pub made: [u64; STREAMS],
    pub skipped: [u64; STREAMS],
    received: u64,
    lossy: bool,
}

/// Duration of a slice.
pub struct Slice {
    pub ns: u64,
    /// Not all frames had arrived when the call returned.
    pub waited: bool,
    /// The sender was inactive for more than 1 ms.
    pub interrupted: bool,
}

impl Quantity {
    /// Streams of its frames, by sending side.
    pub fn streams(self) -> [Option<usize>; SIDES] {
        match self {
            Self::New => [Some(PHASE1), None],
            Self::Up => [Some(PHASE2[INITIATOR]), None],
            Self::Down => [None, Some(PHASE2[RESPONDER])],
            Self::Both => PHASE2.map(Some),
        }
    }
}

/// Whether a signal that does not end this process, such as SIGCONT, cut off a call that sends frames.
pub fn was_cut(cpu: usize, sent: Result<(), i32>) -> Outcome<bool> {
    match sent {
        Ok(()) => Ok(false),
        Err(libc::EINTR) if host::interrupted() => Err(Failure::Broke("interrupted".into())),
        Err(libc::EINTR) => Ok(true),
        Err(error) => Err(sender::refused(cpu, error)),
    }
}

impl<'a> LoadedContestant<'a> {
    /// Load its programs; `floor`: and those of the redirect floor, over its ports.
    pub fn load(contestant: &'a Contestant, floor: bool, place: &'a mut MaybeUninit<OpenObject>) -> Outcome<Self> {
        let request = &contestant.trial;
        let ports = port::both(request)?;
        let mut plan = plan::build(request, BOTH.map(|side| (ports[side].mac.0, ports[side].gateway.0)));
        if matches!(plan.reading, types::reading::READING_PSEUDORANDOM) {
            // Draws would answer some connections twice, and others never.
            plan.reading = types::reading::READING_ONCE;
        }
        let mut programs = Programs::load(place, &plan, request, floor, Table::make(request)?)?;
        programs.attach(&ports)?;
        selftest::run(&programs, &ports, &request.senders.cpus)?;
        programs.clear_received()?;
        programs.control.open((1 << STREAMS) - 1);
        let frame = vec![0; request.longest_octets() as usize];
        let (made, skipped) = ([0; STREAMS], [0; STREAMS]);
        Ok(Self { contestant, programs, ports, frame, made, skipped, received: 0, lossy: false })
    }

    /// Send `frames` frames without pacing, and wait until all have arrived.
    pub fn send(&mut self, comparison: &Comparison, quantity: Quantity, frames: u32) -> Outcome<Slice> {
        let (cpu, streams) = (comparison.cpu, quantity.streams());
        let both = streams.iter().flatten().count() == SIDES;
        let mut state = types::sender { senders: 1, active: 1, ..Default::default() };
        for side in BOTH {
            let Some(stream) = streams[side] else { continue };
            // With both sides, frames alternate; an odd frame is the Initiator's.
            let share = if both { (frames + u32::from(side == INITIATOR)) / 2 } else { frames };
            let schedule = &mut state.schedule[side];
            (schedule.made, schedule.skipped) = (self.made[stream], self.skipped[stream]);
            schedule.frames = schedule.made + schedule.skipped + u64::from(share);
            // All frames are due immediately, alternately.
            schedule.interval = 1;
            schedule.step_at = u64::MAX;
            schedule.stream = types::stream(stream as u32);
        }
        state.start_ns = host::now_ns();
        self.programs.set_senders(&[(cpu, state)])?;
        let from = host::now_ns();
        let cut = self.make(comparison, frames)?;
        let mut to = host::now_ns();
        let state = self.sender_state(cpu);
        let mut wanted = self.received;
        for side in BOTH {
            let Some(stream) = streams[side] else { continue };
            wanted += state.schedule[side].made - self.made[stream];
            (self.made[stream], self.skipped[stream]) = (state.schedule[side].made, state.schedule[side].skipped);
        }
        let give_up = Instant::now() + if self.lossy { Duration::ZERO } else { ARRIVAL_TIMEOUT };
        let mut waited = false;
        loop {
            self.received = self.programs.received().tally.iter().map(|tally| tally.received).sum();
            if self.received >= wanted {
                break;
            }
            if Instant::now() >= give_up {
                self.lossy = true;
                break;
            }
            waited = true;
        }
        if waited {
            to = host::now_ns();
        }
        Ok(Slice { ns: to - from, waited, interrupted: cut || state.stalls > 0 })
    }

    /// Make the frames of a slice; return whether signals cut its calls off, as SIGCONT does.
    fn make(&self, comparison: &Comparison, frames: u32) -> Outcome<bool> {
        let (mut left, mut cut) = (u64::from(frames), false);
        while left > 0 {
            let sent = sender::run(self.programs.generator(), &self.frame, left as i32, comparison.batch);
            if !was_cut(comparison.cpu, sent)? {
                break;
            }
            cut = true;
            let schedules = self.sender_state(comparison.cpu).schedule;
            left = schedules.iter().map(|schedule| schedule.frames - schedule.made - schedule.skipped).sum();
        }
        Ok(cut)
    }

    fn sender_state(&self, cpu: usize) -> types::sender {
        self.programs.senders().get(cpu).copied().unwrap_or_default()
    }

    pub fn counts(&self) -> ContestantCounts {
        let (received, offered) = (self.programs.received(), self.programs.offered());
        let request = &self.contestant.trial;
        // Frames whose stream cannot be read are of one that lacks frames, as far as there is one.
        let lacks = self.made[PHASE1] != received.tally[PHASE1].received;
        let of_none = [PHASE2[RESPONDER], if lacks { PHASE1 } else { PHASE2[INITIATOR] }];
        let stream = |number: usize| {
            let unread: Vec<_> = BOTH.into_iter().filter(|&side| of_none[side] == number).collect();
            let (tally, odd) = (&received.tally[number], received.odd_of(number, &unread));
            StreamTally {
                made_frames: self.made[number],
                received_frames: tally.received,
                duplicates: tally.duplicates,
                reordered: tally.reordered,
                late: tally.late.count,
                wrong: WrongFrames::new(tally, &odd, request),
                skipped: self.skipped[number],
            }
        };
        ContestantCounts {
            name: self.contestant.name.clone(),
            mark: request.mark,
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
