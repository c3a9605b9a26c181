// SPDX-License-Identifier: Apache-2.0
//! Stalls of CPUs that may cause losses, and the frames due during them.

use crate::flow::{fastest, Flow};
use crate::host::{Stall, WAKE_INTERVAL_NS};

/// Frames that fall due within this time leave together now and then, however well the sender keeps its schedule.
const TOGETHER_SECONDS: f64 = 1e-4;
/// As many frames at once pass the limits of nftables and iptables, unless a rule says otherwise.
const LEAST_BURST: f64 = 5.0;

/// Whether more frames were due during a sender's stall than leave together without one: a batch at the most, and fewer
/// at a low rate. A device may have a queue, or a limit of its rate, that holds no more than those.
pub fn makes_burst(stall: &Stall, flows: &[Flow], senders: usize, batch: u32) -> bool {
    let rate = fastest(flows) / senders as f64;
    let usual = f64::from(batch).min((rate * TOGETHER_SECONDS).max(LEAST_BURST));
    (stall.to_ns - stall.from_ns) as f64 / 1e9 * rate > usual
}

/// A sender's stall, extended by the time of catching up; without a limit of its rate that time is negligible.
pub fn until_caught_up(stall: &Stall, catch_up_percent: Option<u64>) -> Stall {
    let Some(percent) = catch_up_percent else { return Stall { ..*stall } };
    let faster = percent.saturating_sub(100).max(1);
    let catching_up = (stall.to_ns - stall.from_ns).saturating_mul(100) / faster;
    Stall { to_ns: stall.to_ns + catching_up, ..*stall }
}

/// Intervals in which a stall may cause losses. Each begins before the stall by the interval at which activity is observed,
/// and ends after it by the stall's own length, because of the burst and the queue that follow.
pub struct DisturbedTimes(Vec<(u64, u64)>);

impl DisturbedTimes {
    /// Intervals of all stalls of all CPUs.
    pub fn new<'a>(stalls: impl Iterator<Item = &'a Stall>) -> Self {
        let mut each: Vec<(u64, u64)> = stalls
            .map(|stall| (stall.from_ns.saturating_sub(WAKE_INTERVAL_NS), stall.to_ns + (stall.to_ns - stall.from_ns)))
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

    /// Start and end of each interval, ns of the monotonic clock; in order and disjoint.
    pub fn each(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().copied()
    }

    /// Whether a stall may have lost a frame due at this time.
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

    fn disturbed(stalls: &[(u64, u64)]) -> DisturbedTimes {
        let stalls: Vec<Stall> =
            stalls.iter().map(|&(from, to)| Stall { from_ns: from * MS, to_ns: to * MS }).collect();
        DisturbedTimes::new(stalls.iter())
    }

    #[test]
    fn a_stall_covers_a_millisecond_before_it_and_its_own_length_after_it() {
        let found = disturbed(&[(100, 110), (500, 506)]);
        let covered: Vec<u64> = (0..600).filter(|&at| found.cover(at * MS)).collect();
        assert_eq!(covered, (99..=120).chain(499..=512).collect::<Vec<u64>>());
    }

    #[test]
    fn stalls_that_overlap_cover_once() {
        let found = disturbed(&[(100, 150), (120, 122), (130, 140)]);
        let covered: Vec<u64> = (0..300).filter(|&at| found.cover(at * MS)).collect();
        assert_eq!(covered, (99..=200).collect::<Vec<u64>>());
    }

    #[test]
    fn a_stall_in_which_no_more_frames_were_due_than_leave_together_anyway_makes_no_burst() {
        let flow = Flow { side: 0, stream: 0, first: 0, opened: 0, frames: 1, rate: 2500.0, step: None };
        let faster = Flow { step: Some(Step { frames: 1, rate: 5000.0 }), ..flow };
        let stall = |ms: u64| Stall { from_ns: 5 * MS, to_ns: (5 + ms) * MS };
        assert!(!makes_burst(&stall(2), &[flow], 1, 64) && makes_burst(&stall(3), &[flow], 1, 64));
        assert!(makes_burst(&stall(2), &[flow, flow], 1, 64), "both directions leave by one sender");
        assert!(makes_burst(&stall(2), &[faster], 1, 64));
        assert!(!makes_burst(&stall(3), &[flow], 2, 64), "each of two senders has half of the frames");
    }

    #[test]
    fn at_a_low_rate_fewer_frames_than_a_batch_are_a_burst() {
        let flow = Flow { side: 0, stream: 0, first: 0, opened: 0, frames: 1, rate: 8_000.0, step: None };
        let stall = |us: u64| Stall { from_ns: 0, to_ns: us * 1000 };
        assert!(makes_burst(&stall(4_000), &[flow], 1, 64), "32 frames; a policer may take 20 at once");
        let fast = Flow { rate: 500_000.0, ..flow };
        assert!(!makes_burst(&stall(90), &[fast], 1, 64) && makes_burst(&stall(110), &[fast], 1, 64));
        let fastest = Flow { rate: 2_000_000.0, ..flow };
        assert!(makes_burst(&stall(40), &[fastest], 1, 64), "more than a batch");
    }

    #[test]
    fn a_stall_lasts_until_the_sender_has_caught_up() {
        let stall = Stall { from_ns: 5 * MS, to_ns: 9 * MS };
        let ends = |percent| until_caught_up(&stall, percent).to_ns / MS;
        assert_eq!((ends(None), ends(Some(200)), ends(Some(125)), ends(Some(110))), (9, 13, 25, 49));
    }

    #[test]
    fn without_a_stall_nothing_is_covered() {
        assert!(!disturbed(&[]).cover(0));
    }
}
