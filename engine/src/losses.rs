// SPDX-License-Identifier: Apache-2.0
//! Which frames were lost, and which of them were due while a CPU stood still.

use std::mem::offset_of;

use crate::host::{Stall, BEAT_NS};
use crate::sender::{fastest, Flow};
use crate::shared::{LOST_WORDS, WINDOW_WORDS, WORD_FRAMES};
use crate::tester::types;

/// What came of one stream of one sender, as it was when it was read.
pub struct Window(Vec<u8>);

/// A word of consecutive frames by its number, and flags of those that did not come in time.
type Missing = (u64, u32);

impl Window {
    /// From the bytes of the programs' map.
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    fn array<const OCTETS: usize>(&self, offset: usize) -> [u8; OCTETS] {
        self.0.get(offset..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; OCTETS])
    }

    fn word(&self, first: usize, at: u64) -> u64 {
        u64::from_ne_bytes(self.array(first + at as usize * size_of::<u64>()))
    }

    /// The flags of what came of a word still in the window; None where its place holds another one, with that one.
    fn held(&self, place: u64) -> Option<Missing> {
        let word = self.word(offset_of!(types::window, words), place);
        (word != 0).then_some((word >> WORD_FRAMES, !(word as u32)))
    }

    /// The last of the `made` frames that did not come in time; None when all did.
    pub fn last_lost(&self, made: u64) -> Option<u64> {
        let came = |sequence: u64| {
            let number = sequence / WORD_FRAMES;
            self.held(number % WINDOW_WORDS)
                .is_some_and(|(held, missing)| held == number && missing >> (sequence % WORD_FRAMES) & 1 == 0)
        };
        let seen = made.saturating_sub(WINDOW_WORDS * WORD_FRAMES);
        let missing = (seen..made).rev().find(|&sequence| !came(sequence));
        missing.max(self.word(offset_of!(types::window, lost), 0).checked_sub(1))
    }

    /// All of the `made` frames that did not come in time, in no order; None where there were too many to remember.
    pub fn lost(&self, made: u64) -> Option<Vec<u64>> {
        let losses = u64::from(u32::from_ne_bytes(self.array(offset_of!(types::window, losses))));
        if losses > LOST_WORDS || made > u64::from(u32::MAX) {
            return None;
        }
        let left = (0..losses).map(|at| self.word(offset_of!(types::window, missing), at));
        let mut words: Vec<Missing> = left.map(|word| (word >> WORD_FRAMES, word as u32)).collect();
        let end = made.div_ceil(WORD_FRAMES);
        for newest in end.saturating_sub(WINDOW_WORDS)..end {
            let held = self.held(newest % WINDOW_WORDS);
            // A word of which nothing came leaves the one before in its place.
            let numbers = (0..).map_while(|age| newest.checked_sub(age * WINDOW_WORDS));
            let unseen = numbers.take_while(|&number| held.is_none_or(|(other, _)| other < number));
            words.extend(unseen.map(|number| (number, u32::MAX)));
            words.extend(held);
        }
        let frames = |(number, missing): Missing| {
            let some = (0..WORD_FRAMES).filter(move |bit| missing >> bit & 1 == 1);
            some.map(move |bit| number * WORD_FRAMES + bit)
        };
        Some(words.into_iter().flat_map(frames).filter(|&sequence| sequence < made).collect())
    }
}

/// Whether a sender's stall was followed by more frames at once than leave together anyway: with fewer, no queue is
/// fuller than in peace.
pub fn makes_burst(stall: &Stall, flows: &[Flow], senders: usize, batch: u32) -> bool {
    (stall.to_ns - stall.from_ns) as f64 / 1e9 * fastest(flows) / senders as f64 > f64::from(batch)
}

/// A sender's stall and the time in which it makes up for it; what leaves at once is over soon.
pub fn until_caught_up(stall: &Stall, catch_up_percent: Option<u64>) -> Stall {
    let Some(percent) = catch_up_percent else { return Stall { ..*stall } };
    let faster = percent.saturating_sub(100).max(1);
    let making_up = (stall.to_ns - stall.from_ns).saturating_mul(100) / faster;
    Stall { to_ns: stall.to_ns + making_up, ..*stall }
}

/// Times in which a stall may have lost frames: the clock is read that often before it, and as long again a burst or a
/// full queue lasts behind it.
pub struct Excuses(Vec<(u64, u64)>);

impl Excuses {
    /// Of all stalls of all CPUs, ns of the monotonic clock.
    pub fn new<'a>(stalls: impl Iterator<Item = &'a Stall>) -> Self {
        let mut each: Vec<(u64, u64)> = stalls
            .map(|stall| (stall.from_ns.saturating_sub(BEAT_NS), stall.to_ns + (stall.to_ns - stall.from_ns)))
            .collect();
        each.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (from, to) in each {
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        Self(merged)
    }

    /// Each of the times from its beginning to its end, in their order and apart from each other.
    pub fn each(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().copied()
    }

    /// Whether a frame due at this time may have been lost by one.
    pub fn cover(&self, due_ns: u64) -> bool {
        let later = self.0.partition_point(|&(from, _)| from <= due_ns);
        later.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(|&(_, to)| due_ns <= to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::DelaySamples;
    use crate::sender::Step;

    const MS: u64 = 1_000_000;

    fn excuses(stalls: &[(u64, u64)]) -> Excuses {
        let stalls: Vec<Stall> =
            stalls.iter().map(|&(from, to)| Stall { from_ns: from * MS, to_ns: to * MS }).collect();
        Excuses::new(stalls.iter())
    }

    #[test]
    fn a_stall_covers_itself_a_beat_before_and_as_long_again_behind() {
        let found = excuses(&[(100, 110), (500, 506)]);
        let covered: Vec<u64> = (0..600).filter(|&at| found.cover(at * MS)).collect();
        assert_eq!(covered, (99..=120).chain(499..=512).collect::<Vec<u64>>());
    }

    #[test]
    fn stalls_that_overlap_cover_once() {
        let found = excuses(&[(100, 150), (120, 122), (130, 140)]);
        let covered: Vec<u64> = (0..300).filter(|&at| found.cover(at * MS)).collect();
        assert_eq!(covered, (99..=200).collect::<Vec<u64>>());
    }

    #[test]
    fn a_stall_in_which_no_more_than_a_batch_was_due_makes_no_burst() {
        let flow = Flow { side: 0, stream: 0, frames: 1, rate: 32_000.0, step: None };
        let faster = Flow { step: Some(Step { frames: 1, rate: 64_000.0 }), ..flow };
        let stall = |ms: u64| Stall { from_ns: 5 * MS, to_ns: (5 + ms) * MS };
        assert!(!makes_burst(&stall(2), &[flow], 1, 64) && makes_burst(&stall(3), &[flow], 1, 64));
        assert!(makes_burst(&stall(2), &[flow, flow], 1, 64), "both directions leave by one sender");
        assert!(makes_burst(&stall(2), &[faster], 1, 64));
        assert!(!makes_burst(&stall(3), &[flow], 2, 64), "each of two senders has half of the frames");
    }

    #[test]
    fn a_stall_that_is_made_up_for_slowly_lasts_until_that_is_done() {
        let stall = Stall { from_ns: 5 * MS, to_ns: 9 * MS };
        let ends = |percent| until_caught_up(&stall, percent).to_ns / MS;
        assert_eq!((ends(None), ends(Some(200)), ends(Some(125)), ends(Some(110))), (9, 13, 25, 49));
    }

    #[test]
    fn frames_due_before_a_time_follow_a_step_of_the_rate() {
        let flow = Flow { side: 0, stream: 0, frames: 1_000, rate: 10_000.0, step: None };
        let stepped = Flow { step: Some(Step { frames: 500, rate: 5_000.0 }), ..flow };
        let at = |flow: Flow, ms: u64| flow.due_before((ms * MS) as f64);
        assert_eq!([0, 1, 50, 100, 500].map(|ms| at(flow, ms)), [0, 10, 500, 1_000, 1_000]);
        assert_eq!([50, 100, 150, 200, 900].map(|ms| at(stepped, ms)), [500, 1_000, 1_250, 1_500, 1_500]);
    }

    #[test]
    fn samples_before_a_frame_are_those_that_were_timed() {
        let samples = DelaySamples { from_ms: 60, frames: 4 };
        // At 1,000/s the frames 60, 70, 80 and 90 of 100.
        let timed = [0, 60, 61, 70, 71, 95, 100].map(|number| samples.before(number, 1_000.0, 100));
        assert_eq!(timed, [0, 0, 1, 1, 2, 4, 4]);
    }

    #[test]
    fn without_a_stall_nothing_is_covered() {
        assert!(!excuses(&[]).cover(0));
    }
}
