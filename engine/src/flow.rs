// SPDX-License-Identifier: Apache-2.0
//! Frames that a side sends in a phase, and their due times.

use crate::request::Request;
use crate::shared::{CLOSING, CLOSING_SCHEDULE, INITIATOR, OPENING_SCHEDULE, PHASE1};

/// Frames of one direction of a phase.
#[derive(Debug, Clone, Copy)]
pub struct Flow {
    /// Sending side.
    pub side: usize,
    /// Stream of its frames.
    pub stream: usize,
    /// Frames of earlier periods, of each sender; they decide which connections follow.
    pub first: u64,
    /// Of frames that open connections in phase 2: connections opened before; otherwise 0.
    pub opened: u64,
    /// Frames of all senders together.
    pub frames: u64,
    /// Frames/s of all senders together.
    pub rate: f64,
    /// Frames at another rate that follow without a pause.
    pub step: Option<Step>,
}

/// Frames of a flow after a change of its rate.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Frames of all senders together.
    pub frames: u64,
    /// Frames/s of all senders together.
    pub rate: f64,
}

impl Flow {
    /// Its place among the schedules of a sender.
    pub fn schedule(&self) -> usize {
        match self.stream {
            PHASE1 if self.opened > 0 => OPENING_SCHEDULE,
            CLOSING => CLOSING_SCHEDULE,
            _ => self.side,
        }
    }

    /// Frames of sender `number`, if the senders take `frames` frames in turn.
    pub fn share(frames: u64, number: u64, senders: u64) -> u64 {
        frames / senders + u64::from(number < frames % senders)
    }

    /// Sequence number of a sender's first frame in its stream.
    pub fn first_sequence(&self, number: u64, senders: u64) -> u64 {
        Self::share(self.opened, number, senders)
    }

    /// Frames before and after the step.
    pub fn intended(&self) -> u64 {
        self.frames + self.step.map_or(0, |step| step.frames)
    }

    /// Due time of frame `number`, counted over all senders; ns since the start.
    pub fn due_ns(&self, number: u64) -> f64 {
        match self.step {
            Some(step) if number > self.frames => {
                1e9 * (self.frames as f64 / self.rate + (number - self.frames) as f64 / step.rate)
            }
            _ => 1e9 * number as f64 / self.rate,
        }
    }

    /// Frames that are due before a time, ns since the start.
    pub fn due_before(&self, ns: f64) -> u64 {
        let first = 1e9 * self.frames as f64 / self.rate;
        let due = match self.step {
            Some(step) if ns > first => self.frames as f64 + (ns - first) / 1e9 * step.rate,
            _ => ns / 1e9 * self.rate,
        };
        (due.ceil() as u64).min(self.intended())
    }
}

/// Flows that open further connections in phase 2, and that close the oldest or flood.
pub fn of_churn(request: &Request) -> Vec<Flow> {
    let Some((churn, phase2)) = request.churn() else { return Vec::new() };
    let opening = Flow {
        side: INITIATOR,
        stream: PHASE1,
        first: 0,
        opened: request.connections,
        frames: churn.openings(phase2.sending_seconds()),
        rate: churn.new_per_second,
        step: None,
    };
    let closing = Flow { stream: CLOSING, opened: 0, ..opening };
    let flood = churn.flood_per_second.map(|rate| Flow { frames: request.flood(), rate, ..closing });
    std::iter::once(opening).chain(flood.or(churn.leave.way().map(|_| closing))).collect()
}

/// Frames/s of all flows and senders together; with a step, the higher of both rates.
pub fn fastest(flows: &[Flow]) -> f64 {
    flows.iter().map(|flow| flow.step.map_or(flow.rate, |step| step.rate.max(flow.rate))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn frames_due_before_a_time_follow_a_step_of_the_rate() {
        let flow = Flow { side: 0, stream: 0, first: 0, opened: 0, frames: 1_000, rate: 10_000.0, step: None };
        let stepped = Flow { step: Some(Step { frames: 500, rate: 5_000.0 }), ..flow };
        let at = |flow: Flow, ms: u64| flow.due_before((ms * MS) as f64);
        assert_eq!([0, 1, 50, 100, 500].map(|ms| at(flow, ms)), [0, 10, 500, 1_000, 1_000]);
        assert_eq!([50, 100, 150, 200, 900].map(|ms| at(stepped, ms)), [500, 1_000, 1_250, 1_500, 1_500]);
    }
}
