// SPDX-License-Identifier: Apache-2.0
//! State of the host during a trial: stalls of CPUs, steal time, steps of the clock, signals; and CPUs and priorities of
//! threads.

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

/// Interval at which watched CPUs are woken.
pub const WAKE_INTERVAL_NS: u64 = 1_000_000;
/// Least change of wall clock minus monotonic clock that counts as a step.
const STEP_NS: i64 = 1_000_000;
const TICK_NS: u64 = 10_000_000;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_signal(_: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Let signals end the trial in an orderly way, and receive SIGTERM when the parent process ends.
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

/// Whether a signal has asked the engine to stop.
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

/// A time of the monotonic clock as that of dates: ns since 1970.
pub fn since_1970_ns(monotonic_ns: u64) -> u64 {
    monotonic_ns.saturating_add_signed(ClockSteps::offset())
}

/// The kernel's clock source; "unknown" where it cannot be read.
pub fn clock_source() -> String {
    fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// Counts steps of the wall clock.
pub struct ClockSteps {
    offset: i64,
    /// Number of steps so far.
    pub steps: u64,
}

impl Default for ClockSteps {
    fn default() -> Self {
        Self::new()
    }
}

impl ClockSteps {
    /// Start counting.
    pub fn new() -> Self {
        Self { offset: Self::offset(), steps: 0 }
    }

    fn offset() -> i64 {
        clock(ClockId::CLOCK_REALTIME) - clock(ClockId::CLOCK_MONOTONIC)
    }

    /// Count a step since the last check.
    pub fn check(&mut self) {
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

/// Time in which this thread was runnable but did not run.
pub fn waited_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Refuse CPUs that are not online.
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
        Some(_) if online.is_empty() => Err(Failure::Host(
            "/sys/devices/system/cpu/online cannot be read, so the CPUs of this host are not known: mount -t sysfs sysfs \
             /sys"
                .to_owned(),
        )),
        Some(cpu) => Err(Failure::field(name, cpu, &format!("this host has the CPUs {}", text.trim()))),
        None => Ok(()),
    }
}

/// Pin this thread to a CPU.
pub fn pin(cpu: usize) -> Outcome<()> {
    let mut set = CpuSet::new();
    set.set(cpu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .map_err(|error| Failure::Host(format!("CPU {cpu}: cannot be used ({error})")))
}

/// Raise the priority of the engine's session. Where the kernel groups tasks by session (autogroup), a thread's priority
/// counts only inside its session. A process group leader, such as one started by a shell, cannot make its own session and
/// is left unchanged.
pub fn raise_session() {
    let leads_session = || nix::unistd::getsid(None).is_ok_and(|session| session == Pid::this());
    if nix::unistd::setsid().is_ok() || leads_session() {
        // Without autogroup or the privilege there is nothing to raise.
        let _ = fs::write("/proc/self/autogroup", "-20");
    }
}

/// Raise this thread's priority above ordinary tasks, so that other load on its CPU does not look like a slow device; and
/// return whether that is permitted. Not to real time, because the kernel stops such threads for 50 ms per second.
pub fn raise_priority() -> bool {
    const THIS_THREAD: libc::id_t = 0;
    // SAFETY: setpriority takes numbers only; on Linux PRIO_PROCESS with 0 is the calling thread alone.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, THIS_THREAD, -20) == 0 }
}

/// Let this thread run above the device's threads, so that only interrupts and the hypervisor can delay it; and return
/// whether that is permitted.
fn watch_in_real_time() -> bool {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter outlives the call; thread 0 is this one.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) == 0 }
}

/// Refuse a host that does not let the engine raise priorities: other load would look like the device's.
///
/// # Arguments
///
/// * `watches`: whether CPUs are watched, which needs real time.
pub fn check_priorities(watches: bool) -> Outcome<()> {
    // In a thread that ends at once, so that nothing of this one changes.
    in_thread(move || {
        if !raise_priority() {
            return refused("priority -20", "run natgauge as root, in a container with --cap-add SYS_NICE");
        }
        if watches && !watch_in_real_time() {
            let remedy = "run natgauge as root, or allow it to this cgroup: sysctl -w kernel.sched_rt_runtime_us=-1";
            return refused("real-time priority", remedy);
        }
        Ok(())
    })?
    .join()
    .unwrap_or_else(|_| Err(Failure::Broke("the thread that tries priorities ended early".to_owned())))
}

/// Start a thread; `thread::spawn` would panic where the host permits no further one.
pub fn in_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Outcome<JoinHandle<T>> {
    thread::Builder::new().spawn(work).map_err(no_thread)
}

/// Why no thread could be made.
pub fn no_thread(error: std::io::Error) -> Failure {
    Failure::Host(format!("no thread can be made ({error}): raise the limit of processes (ulimit -u, pids.max)"))
}

fn refused(what: &str, remedy: &str) -> Outcome<()> {
    let error = std::io::Error::last_os_error();
    Err(Failure::Host(format!(
        "the kernel refuses {what} ({error}), without which other load would look like the device's: {remedy}"
    )))
}

/// An interval in which a CPU was inactive, ns of the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Stall {
    /// Last activity before it.
    pub from_ns: u64,
    /// First activity after it.
    pub to_ns: u64,
}

/// Stalls of a CPU.
#[derive(Debug, Clone, Default)]
pub struct Stalls {
    /// Number of stalls.
    pub count: u64,
    /// Sum of their durations.
    pub total_ns: u64,
    /// Duration of the longest.
    pub worst_ns: u64,
    /// Each stall; the first MOST_STALLS where there are more.
    pub each: Vec<Stall>,
}

/// A thread that wakes every millisecond on a CPU and records when it woke late.
pub struct Watcher {
    /// Its CPU.
    pub cpu: usize,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Stalls>,
}

impl Watcher {
    /// Start watching; a delay of more than `stall_ns` is a stall.
    pub fn start(cpu: usize, stall_ns: u64) -> Outcome<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        Ok(Self { cpu, stop, thread: in_thread(move || watch(cpu, stall_ns, &seen))? })
    }

    /// Stop and return the stalls.
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
    // `check_priorities` has refused hosts that do not permit it.
    watch_in_real_time();
    let mut last = now_ns();
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(std::time::Duration::from_nanos(WAKE_INTERVAL_NS));
        let now = now_ns();
        let late = (now - last).saturating_sub(WAKE_INTERVAL_NS);
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
