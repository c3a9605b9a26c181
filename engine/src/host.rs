// SPDX-License-Identifier: Apache-2.0
//! What this host does meanwhile: stalls of CPUs, stolen time, steps of the clock, signals.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use nix::sched::{sched_setaffinity, CpuSet};
use nix::sys::signal::{sigaction, SaFlags, SigAction, SigHandler, SigSet, Signal};
use nix::time::{clock_gettime, ClockId};
use nix::unistd::Pid;

use crate::failure::{Failure, Outcome};
use crate::shared::MOST_STALLS;

/// A watched CPU wakes this often.
pub const BEAT_NS: u64 = 1_000_000;
/// A step of the wall clock against the monotonic one.
const STEP_NS: i64 = 1_000_000;
const TICK_NS: u64 = 10_000_000;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_signal(_: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Let SIGINT and SIGTERM end the trial in order, and die with the process that started us.
pub fn handle_signals() -> Outcome<()> {
    let action = SigAction::new(SigHandler::Handler(note_signal), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
        unsafe { sigaction(signal, &action) }.map_err(|error| Failure::Host(format!("{signal}: {error}")))?;
    }
    // SAFETY: prctl(PR_SET_PDEATHSIG) takes a number and changes only this process.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
    Ok(())
}

/// Whether somebody asked us to stop.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

fn clock(id: ClockId) -> i64 {
    clock_gettime(id).map_or(0, |time| time.tv_sec() * 1_000_000_000 + time.tv_nsec())
}

/// CLOCK_MONOTONIC, the frame programs' clock.
pub fn now_ns() -> u64 {
    clock(ClockId::CLOCK_MONOTONIC) as u64
}

/// The kernel's clock source; "unknown" where it does not say.
pub fn clock_source() -> String {
    fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// Counts steps of the wall clock.
pub struct Steps {
    offset: i64,
    /// Times the clock was stepped so far.
    pub steps: u64,
}

impl Default for Steps {
    fn default() -> Self {
        Self::new()
    }
}

impl Steps {
    /// Start from now.
    pub fn new() -> Self {
        Self { offset: Self::offset(), steps: 0 }
    }

    fn offset() -> i64 {
        clock(ClockId::CLOCK_REALTIME) - clock(ClockId::CLOCK_MONOTONIC)
    }

    /// Look again.
    pub fn look(&mut self) {
        let now = Self::offset();
        self.steps += u64::from((now - self.offset).abs() > STEP_NS);
        self.offset = now;
    }
}

/// Steal time of a CPU in ns, in steps of 10 ms.
pub fn stolen_ns(cpu: usize) -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let prefix = format!("cpu{cpu} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&prefix));
    line.and_then(|rest| rest.split_whitespace().nth(7)?.parse::<u64>().ok()).unwrap_or(0) * TICK_NS
}

/// How long this thread waited for its CPU although it was ready to run.
pub fn waited_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Refuse CPUs that are not there.
pub fn check_cpus(name: &str, cpus: &[usize]) -> Outcome<()> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let online: Vec<(usize, usize)> = text
        .trim()
        .split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some((first.parse().ok()?, last.parse().ok()?))
        })
        .collect();
    match cpus.iter().find(|cpu| !online.iter().any(|(first, last)| (first..=last).contains(cpu))) {
        Some(cpu) => Err(Failure::field(name, cpu, &format!("this host has the CPUs {}", text.trim()))),
        None => Ok(()),
    }
}

/// Pin this thread.
pub fn pin(cpu: usize) -> Outcome<()> {
    let mut set = CpuSet::new();
    set.set(cpu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .map_err(|error| Failure::Host(format!("CPU {cpu}: cannot be used ({error})")))
}

/// Where the kernel groups tasks by session (autogroup), a thread's own priority counts only inside its session: take a
/// session of our own, or the one that we were given, and raise it. A group leader, from a shell, stays as it is.
pub fn leave_session() {
    let given = || nix::unistd::getsid(None).is_ok_and(|session| session == Pid::this());
    if nix::unistd::setsid().is_ok() || given() {
        // Absent or forbidden: then there is nothing to raise.
        let _ = fs::write("/proc/self/autogroup", "-20");
    }
}

/// Go before ordinary tasks on this thread's CPU, as far as we may: foreign load must not look like a slow device. Not
/// real time: with that the kernel would stop a spinning thread for 50 ms every second.
pub fn go_first() {
    const THIS_THREAD: libc::id_t = 0;
    // SAFETY: setpriority takes numbers only; on Linux PRIO_PROCESS with 0 is the calling thread alone.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, THIS_THREAD, -20) };
}

/// One time a CPU did nothing of its task, ns of the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Stall {
    /// When it was last seen at work.
    pub from_ns: u64,
    /// When it was seen at work again.
    pub to_ns: u64,
}

/// What a CPU missed.
#[derive(Debug, Clone, Default)]
pub struct Stalls {
    /// How often.
    pub count: u64,
    /// All together.
    pub total_ns: u64,
    /// The longest.
    pub worst_ns: u64,
    /// Each one, or the first of too many.
    pub each: Vec<Stall>,
}

/// A thread that wakes every millisecond on a CPU and notices when it could not.
pub struct Watcher {
    /// Where it runs.
    pub cpu: usize,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Stalls>,
}

impl Watcher {
    /// Start watching; a CPU that cannot be woken for longer than `stall_ns` stands still.
    pub fn start(cpu: usize, stall_ns: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        Self { cpu, stop, thread: thread::spawn(move || watch(cpu, stall_ns, &seen)) }
    }

    /// Stop and tell.
    pub fn finish(self) -> Stalls {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn watch(cpu: usize, stall_ns: u64, stop: &AtomicBool) -> Stalls {
    let mut stalls = Stalls::default();
    if pin(cpu).is_err() {
        return stalls;
    }
    // Before the device's own threads, so that only interrupts and the hypervisor can hold us up. Without the right
    // to do so we watch all the same.
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter outlives the call; thread 0 is this one.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) };
    let mut last = now_ns();
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(std::time::Duration::from_nanos(BEAT_NS));
        let now = now_ns();
        let late = (now - last).saturating_sub(BEAT_NS);
        if late > stall_ns {
            stalls.count += 1;
            stalls.total_ns += late;
            stalls.worst_ns = stalls.worst_ns.max(late);
            if stalls.each.len() < MOST_STALLS {
                stalls.each.push(Stall { from_ns: last, to_ns: now });
            }
        }
        last = now;
    }
    stalls
}
