// SPDX-License-Identifier: Apache-2.0
//! Run time of the receivers' programs, measured by the kernel, which then times all BPF programs.

use std::os::fd::{FromRawFd, OwnedFd};

use crate::failure::{Failure, Outcome};
use crate::programs::{info, Programs};
use crate::report::ReceiverTime;

/// Runs of the empty program: a few milliseconds.
const EMPTY_RUNS: i32 = 100_000;
/// The shortest Ethernet frame, with FCS.
const EMPTY_FRAME: [u8; 64] = [0; 64];

/// Number of runs and their total time.
#[derive(Clone, Copy, Default)]
struct Runs {
    runs: u64,
    ns: u64,
}

impl Runs {
    fn of(programs: &[i32]) -> Self {
        programs
            .iter()
            .map(|&program| info(program))
            .fold(Self::default(), |sum, info| Self { runs: sum.runs + info.run_cnt, ns: sum.ns + info.run_time_ns })
    }

    fn since(self, before: Self) -> Self {
        Self { runs: self.runs - before.runs, ns: self.ns - before.ns }
    }
}

/// Enables the kernel's timing until it is dropped or the process ends.
pub struct Timing {
    _on: OwnedFd,
    before: Runs,
}

impl Timing {
    /// Enable timing.
    pub fn start(programs: &Programs) -> Outcome<Self> {
        // SAFETY: the call takes a number and returns a descriptor or a negative error.
        let on = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if on < 0 {
            let error = std::io::Error::from_raw_os_error(-on);
            return Err(Failure::Host(format!(
                "record_receiver_time: the kernel does not time BPF programs ({error}): CAP_SYS_ADMIN is needed"
            )));
        }
        // SAFETY: the descriptor is new, valid and has no other owner.
        Ok(Self { _on: unsafe { OwnedFd::from_raw_fd(on) }, before: Runs::of(&programs.receivers()) })
    }

    /// Run time of the receivers since `start`, and of a program that does nothing.
    pub fn finish(self, programs: &Programs) -> Outcome<ReceiverTime> {
        let received = Runs::of(&programs.receivers()).since(self.before);
        let nothing = programs.empty_receiver();
        let before = Runs::of(&[nothing]);
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
            data_in: EMPTY_FRAME.as_ptr().cast(),
            data_size_in: EMPTY_FRAME.len() as u32,
            repeat: EMPTY_RUNS,
            ..Default::default()
        };
        // SAFETY: the options and the frame outlive the call; their lengths are given; the kernel only reads the frame.
        let outcome = unsafe { libbpf_sys::bpf_prog_test_run_opts(nothing, &raw mut options) };
        let empty = Runs::of(&[nothing]).since(before);
        if outcome < 0 || empty.runs == 0 {
            return Err(Failure::Broke("record_receiver_time: an empty program cannot be timed".into()));
        }
        Ok(ReceiverTime { runs: received.runs, runs_ns: received.ns, empty_runs: empty.runs, empty_runs_ns: empty.ns })
    }
}
