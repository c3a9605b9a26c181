// SPDX-License-Identifier: Apache-2.0
//! Distribution of the delays between due times and sending times.

use serde::Serialize;

/// Width of a class, in nanoseconds.
const WIDTH: u64 = 100;
/// Number of classes; larger errors (over 10 ms) are counted in the last.
const CLASSES: usize = 100_000;

/// Errors of frames: sent - due, which is never negative.
pub struct TimerErrors {
    frames: u64,
    sum: u64,
    minimum: u64,
    maximum: u64,
    classes: Vec<u64>,
}

/// Error of a forwarder's timer, in nanoseconds.
#[derive(Serialize)]
pub struct Summary {
    min: u64,
    mean: f64,
    /// Nearest rank, rounded up to a class of 100 ns.
    p50: u64,
    /// Rounded as `p50`.
    p99: u64,
    max: u64,
}

impl TimerErrors {
    /// Without frames.
    pub fn new() -> Self {
        Self { frames: 0, sum: 0, minimum: u64::MAX, maximum: 0, classes: vec![0; CLASSES] }
    }

    /// One frame was sent `nanoseconds` after it was due.
    pub fn add(&mut self, nanoseconds: u64) {
        self.frames += 1;
        self.sum = self.sum.saturating_add(nanoseconds);
        self.minimum = self.minimum.min(nanoseconds);
        self.maximum = self.maximum.max(nanoseconds);
        let class = usize::try_from(nanoseconds / WIDTH).unwrap_or(usize::MAX).min(CLASSES - 1);
        self.classes[class] += 1;
    }

    /// Summary of the errors; None when no frame was sent.
    pub fn summary(&self) -> Option<Summary> {
        (self.frames > 0).then(|| Summary {
            min: self.minimum,
            mean: self.sum as f64 / self.frames as f64,
            p50: self.rank(self.frames.div_ceil(2)),
            p99: self.rank(self.frames - self.frames / 100),
            max: self.maximum,
        })
    }

    /// Upper end of the class that contains the frame of this rank (from 1), at most the maximum.
    fn rank(&self, rank: u64) -> u64 {
        let mut passed = 0;
        for (upper, count) in (1..).zip(&self.classes) {
            passed += count;
            if passed >= rank {
                return (upper * WIDTH).min(self.maximum);
            }
        }
        self.maximum
    }
}

#[cfg(test)]
mod tests {
    use super::TimerErrors;

    #[test]
    fn nothing_sent_has_no_summary() {
        assert!(TimerErrors::new().summary().is_none());
    }

    #[test]
    fn summary_of_a_thousand_frames() {
        let mut errors = TimerErrors::new();
        (1..=1000).for_each(|number| errors.add(number * 1000));
        let summary = errors.summary();
        let ranks = summary.map(|summary| (summary.min, summary.mean, summary.p50, summary.p99, summary.max));
        assert_eq!(ranks, Some((1000, 500_500.0, 500_100, 990_100, 1_000_000)));
    }

    #[test]
    fn an_error_beyond_the_last_class_is_kept_as_maximum() {
        let mut errors = TimerErrors::new();
        errors.add(u64::from(u32::MAX));
        assert_eq!(errors.summary().map(|summary| (summary.p99, summary.max)), Some((10_000_000, 4_294_967_295)));
    }
}
