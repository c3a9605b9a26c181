// SPDX-License-Identifier: Apache-2.0
//! Sender threads, each pinned to a CPU, which run the generator in chunks until its schedule is done.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::failure::{Failure, Outcome};
use crate::flow::{fastest, Flow};
use crate::host;
use crate::programs::Control;
use crate::shared::DUE_FRACTION;
use crate::tester::types;

/// Program runs per call. A run takes at least 30 ns, so a sender ends within milliseconds of its last frame. A call costs
/// about 10 us, because the generator stays attached elsewhere.
const CHUNK: i32 = 1 << 16;

/// Runs one BPF program as live frames.
pub fn run(program: RawFd, frame: &[u8], repeat: i32, batch: u32) -> Result<(), i32> {
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
        data_in: frame.as_ptr().cast(),
        data_size_in: frame.len() as u32,
        repeat,
        flags: libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES,
        batch_size: batch,
        ..Default::default()
    };
    // SAFETY: the options and the frame outlive the call; their lengths are given; the kernel only reads the frame.
    match unsafe { libbpf_sys::bpf_prog_test_run_opts(program, &raw mut options) } {
        0 => Ok(()),
        error => Err(-error),
    }
}

/// Failure of a run that the kernel refused.
pub fn refused(cpu: usize, error: i32) -> Failure {
    Failure::Host(format!("CPU {cpu}: live frames cannot be run: {}", std::io::Error::from_raw_os_error(error)))
}

/// How senders catch up after a stall.
#[derive(Debug, Clone, Copy, Default)]
pub struct CatchUp {
    /// Highest rate, in % of theirs; None: unlimited.
    pub percent: Option<u64>,
    /// Overdue frames that a sender sends at once.
    pub frames: u32,
}

/// The state of a sender at the start of a phase. Frame i is sent at i / rate by sender i modulo the number of senders.
pub fn state(number: usize, senders: usize, start_ns: u64, flows: &[Flow], catch_up: CatchUp) -> types::sender {
    let mut state = types::sender {
        start_ns,
        number: number as u32,
        senders: senders as u32,
        active: 1,
        catch_up_percent: catch_up.percent.unwrap_or(0),
        slack_ns: (f64::from(catch_up.frames) * 1e9 * senders as f64 / fastest(flows)) as u64,
        ..Default::default()
    };
    for flow in flows {
        let (number, senders) = (number as u64, senders as u64);
        let fine = f64::from(1 << DUE_FRACTION);
        let share = |frames: u64| Flow::share(frames, number, senders);
        // Frames that open connections continue the numbers of those that opened the others.
        let before = flow.first_sequence(number, senders);
        let interval = |rate: f64| (1e9 * fine / rate * senders as f64).round() as u64;
        let schedule = &mut state.schedule[flow.schedule()];
        schedule.first = flow.first + before;
        schedule.frames = share(flow.opened + flow.intended()) - before;
        schedule.interval = interval(flow.rate);
        schedule.next_due = (flow.due_ns(before * senders + number - flow.opened) * fine).round() as u64;
        schedule.step_at = u64::MAX;
        if let Some(step) = flow.step {
            schedule.step_at = share(flow.frames);
            schedule.step_due = (flow.due_ns(schedule.step_at * senders + number) * fine).round() as u64;
            schedule.step_interval = interval(step.rate);
        }
        schedule.stream = types::stream(flow.stream as u32);
    }
    state
}

/// A running sender.
pub struct Sender {
    cpu: usize,
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Outcome<u64>>,
}

impl Sender {
    /// Start sender `number` on `cpu`; its end unparks the calling thread.
    pub fn start(
        number: usize,
        cpu: usize,
        program: RawFd,
        octets: usize,
        batch: u32,
        control: Control,
    ) -> Outcome<Self> {
        let work = move || {
            host::pin(cpu)?;
            host::raise_priority();
            let frame = vec![0_u8; octets];
            while !control.done(number) && !host::interrupted() {
                match run(program, &frame, CHUNK, batch) {
                    Ok(()) | Err(libc::EINTR) => {}
                    Err(error) => return Err(refused(cpu, error)),
                }
            }
            Ok(host::waited_ns())
        };
        let (ended, starter) = (Arc::new(AtomicBool::new(false)), thread::current());
        let ending = Arc::clone(&ended);
        let thread = host::in_thread(move || {
            let outcome = work();
            ending.store(true, Ordering::Release);
            starter.unpark();
            outcome
        })?;
        Ok(Self { cpu, ended, thread })
    }

    /// Whether its thread has ended or is ending.
    pub fn finished(&self) -> bool {
        self.ended.load(Ordering::Acquire) || self.thread.is_finished()
    }

    /// Wait for its end; returns its CPU, and the time in which it was runnable but did not run, ns.
    pub fn join(self) -> Outcome<(usize, u64)> {
        let waited = self.thread.join().map_err(|_| Failure::Broke(format!("CPU {}: the sender failed", self.cpu)))?;
        Ok((self.cpu, waited?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Step;
    use crate::shared::{INITIATOR, PHASE1};

    const FLOW: Flow =
        Flow { side: INITIATOR, stream: PHASE1, first: 0, opened: 0, frames: 1000, rate: 1e6, step: None };
    const STEP: Step = Step { frames: 500, rate: 5e5 };

    /// Due time of each frame, in us, computed like `schedule_next` in bpf/generate.h.
    fn schedule(number: usize, senders: usize, flow: Flow) -> Vec<u64> {
        let state = state(number, senders, 0, &[flow], CatchUp::default()).schedule[INITIATOR];
        let mut due = state.next_due;
        let next = |at: u64| {
            let now = due;
            due = if at + 1 < state.step_at {
                due + state.interval
            } else if at + 1 == state.step_at {
                state.step_due
            } else {
                due + state.step_interval
            };
            (now >> DUE_FRACTION).div_ceil(1000)
        };
        (0..state.frames).map(next).collect()
    }

    #[test]
    fn after_a_step_frames_are_due_at_the_new_rate_without_a_pause() {
        for senders in [1, 2, 3] {
            let mut all: Vec<u64> =
                (0..senders).flat_map(|number| schedule(number, senders, Flow { step: Some(STEP), ..FLOW })).collect();
            all.sort_unstable();
            let wanted: Vec<u64> = (0..1000).chain((0..500).map(|at| 1000 + 2 * at)).collect();
            assert_eq!(all, wanted, "{senders} senders");
        }
    }

    #[test]
    fn a_flow_without_a_step_keeps_its_rate_in_a_plan_that_has_one() {
        assert_eq!(schedule(0, 1, FLOW), (0..1000).collect::<Vec<u64>>());
    }
}
