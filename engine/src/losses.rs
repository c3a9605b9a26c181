// SPDX-License-Identifier: Apache-2.0
//! Which frames were lost, and which of them were due while a CPU stood still.

use crate::flow::{fastest, Flow};
use crate::host::{Stall, BEAT_NS};

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
    use crate::flow::Step;

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
    fn without_a_stall_nothing_is_covered() {
        assert!(!excuses(&[]).cover(0));
    }
}
