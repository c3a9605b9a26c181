// SPDX-License-Identifier: Apache-2.0
//! A forwarder with a known delay: a transparent bridge between two interfaces, which sends each frame a given time after
//! its arrival. XDP time-stamps arrivals, and a busy loop waits on the same clock. Its error is measured and reported.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;
use std::mem::{offset_of, MaybeUninit};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, RingBuffer, RingBufferBuilder};
use nix::sched::{sched_setaffinity, CpuSet};
use nix::sys::signal::{sigaction, SaFlags, SigAction, SigHandler, SigSet, Signal};
use nix::sys::socket::{send, socket, AddressFamily, MsgFlags, SockFlag, SockType};
use nix::time::{clock_gettime, ClockId};
use nix::unistd::Pid;
use serde::Serialize;

use crate::common::{enter, index_of, u64_at, unreadable, Failure, Outcome};
use crate::timer_error::{Summary, TimerErrors};

/// Generated from `bpf/holder.bpf.c`.
#[allow(warnings, clippy::all, clippy::restriction)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/holder.skel.rs"));
}
use skeleton::types::held_frame;
use skeleton::{HolderSkel, HolderSkelBuilder};

/// Forward frames between two interfaces with a known delay.
#[derive(clap::Args)]
pub struct Hold {
    /// Network namespace of both interfaces, a name below /run/netns; the caller's own when absent
    #[arg(long)]
    netns: Option<String>,
    /// One of the two interfaces
    #[arg(long)]
    inside: String,
    /// The other one
    #[arg(long)]
    outside: String,
    /// From arrival to departure, in microseconds, both ways
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u64).range(..=60_000_000))]
    delay_us: u64,
    /// Additional delay of every K-th frame, in microseconds
    #[arg(long, value_name = "J", requires = "every", value_parser = clap::value_parser!(u64).range(1..=60_000_000))]
    jitter_us: Option<u64>,
    /// Frames with the additional delay: K, 2K, ... of both directions together
    #[arg(long, value_name = "K", requires = "jitter_us", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// CPU to wait on; any when absent
    #[arg(long)]
    cpu: Option<usize>,
}

/// Result of the forwarder, printed when it ends.
#[derive(Serialize)]
struct Report {
    event: &'static str,
    delay_us: u64,
    jitter_us: u64,
    /// Forwarded frames.
    frames: u64,
    /// Part of frames: those with the additional delay.
    jittered: u64,
    /// Frames that were too long or for which the ring had no room.
    refused: u64,
    /// Frames that the outgoing interface did not accept.
    failed: u64,
    /// Frames not yet due at the end.
    kept: usize,
    /// Sending time - due time; absent when no frame was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    timer_error_ns: Option<Summary>,
}

/// Set by SIGTERM and SIGINT.
static ENDING: AtomicBool = AtomicBool::new(false);

extern "C" fn end(_signal: libc::c_int) {
    ENDING.store(true, Ordering::Relaxed);
}

/// A received frame, ordered by due time, then by arrival.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    due_ns: u64,
    number: u64,
    interface: i32,
    octets: Vec<u8>,
}

/// Forward until a signal arrives, then print the report.
pub fn hold(request: &Hold) -> Outcome<()> {
    if request.inside == request.outside {
        return Err(Failure::Request(format!(
            "--outside {}: is also --inside; two interfaces are needed",
            request.outside
        )));
    }
    prepare(request)?;
    let interfaces = [index_of(&request.inside)?, index_of(&request.outside)?];
    let senders = [sender(interfaces[0])?, sender(interfaces[1])?];
    let mut storage = MaybeUninit::uninit();
    let skeleton = HolderSkelBuilder::default().open(&mut storage).and_then(OpenSkel::load).map_err(|error| {
        Failure::Host(format!("the forwarder's BPF program cannot be loaded ({error:#}); needs root and Linux 6.6"))
    })?;
    let arrivals = RefCell::new(Vec::new());
    let ring = ring(&skeleton, &arrivals)?;
    // The links end with this process, and detach the programs.
    let _links =
        [attached(&skeleton, &request.inside, interfaces[0])?, attached(&skeleton, &request.outside, interfaces[1])?];
    print_line(r#"{"event":"ready"}"#)?;
    let mut forwarder = Forwarder::new(request, interfaces, &senders);
    forwarder.forward(&ring, &arrivals)?;
    let refused = skeleton.maps.bss_data.as_deref().map_or(0, |counts| counts.refused);
    print_line(&serde_json::to_string(&forwarder.report(refused)).map_err(unreadable)?)
}

/// Set the process's signals, priority, CPU and namespace.
fn prepare(request: &Hold) -> Outcome<()> {
    let action = SigAction::new(SigHandler::Handler(end), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
        unsafe { sigaction(signal, &action) }.map_err(|error| Failure::Host(format!("{signal}: {error}")))?;
    }
    nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)
        .map_err(|error| Failure::Host(format!("the end of the parent cannot be watched ({error})")))?;
    // Above other tasks of this CPU, because a forwarder that does not run is late.
    // SAFETY: the call takes numbers only.
    let outcome = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
    nix::errno::Errno::result(outcome)
        .map_err(|error| Failure::Host(format!("the highest priority is not granted ({error}); root is needed")))?;
    if let Some(cpu) = request.cpu {
        let mut cpus = CpuSet::new();
        cpus.set(cpu)
            .and_then(|()| sched_setaffinity(Pid::from_raw(0), &cpus))
            .map_err(|error| Failure::Request(format!("--cpu {cpu}: cannot be used ({error})")))?;
    }
    enter(request.netns.as_deref())
}

/// A socket that only sends, through one interface, without its queueing discipline.
fn sender(interface: i32) -> Outcome<OwnedFd> {
    let refused = |error| Failure::Host(format!("a packet socket cannot be made ({error}); root is needed"));
    let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None).map_err(refused)?;
    let one: libc::c_int = 1;
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: 0, // receives nothing
        sll_ifindex: interface,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: both pointers are to values of the stated sizes that outlive the calls; the kernel only reads them.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_QDISC_BYPASS,
            (&raw const one).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        ) | libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    nix::errno::Errno::result(outcome).map_err(refused)?;
    Ok(socket)
}

fn attached(skeleton: &HolderSkel<'_>, name: &str, index: i32) -> Outcome<Link> {
    skeleton
        .progs
        .natgauge_holder
        .attach_xdp(index)
        .map_err(|error| Failure::Host(format!("interface {name}: does not accept an XDP program ({error:#})")))
}

/// The ring of received frames; each reading appends its records to `arrivals`.
fn ring<'a>(skeleton: &'a HolderSkel<'_>, arrivals: &'a RefCell<Vec<Waiting>>) -> Outcome<RingBuffer<'a>> {
    let mut builder = RingBufferBuilder::new();
    builder
        .add(&skeleton.maps.held, |record| {
            arrivals.borrow_mut().extend(arrival(record));
            0
        })
        .and_then(|builder| std::mem::take(builder).build())
        .map_err(|error| Failure::Host(format!("the ring of frames cannot be mapped ({error:#})")))
}

/// Reads a record of the ring. Its due time is the arrival time, until the forwarder adds the delay.
fn arrival(record: &[u8]) -> Option<Waiting> {
    let due_ns = u64_at(record, offset_of!(held_frame, received_ns)).ok()?;
    let interface = u32_at(record, offset_of!(held_frame, interface))?;
    let length = u32_at(record, offset_of!(held_frame, length))? as usize;
    let octets = record.get(offset_of!(held_frame, octets)..)?.get(..length)?.to_vec();
    Some(Waiting { due_ns, number: 0, interface: i32::try_from(interface).ok()?, octets })
}

fn u32_at(record: &[u8], offset: usize) -> Option<u32> {
    record.get(offset..offset + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

/// Print one line and flush standard output.
fn print_line(line: &str) -> Outcome<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")
        .and_then(|()| output.flush())
        .map_err(|error| Failure::Broke(format!("standard output: {error}")))
}

/// Nanoseconds of the clock that XDP uses.
fn now() -> Outcome<u64> {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(|error| Failure::Broke(format!("clock: {error}")))?;
    Ok(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

struct Forwarder<'a> {
    request: &'a Hold,
    interfaces: [i32; 2],
    senders: &'a [OwnedFd; 2],
    waiting: BinaryHeap<Reverse<Waiting>>,
    arrived: u64,
    sent: u64,
    jittered: u64,
    failed: u64,
    errors: TimerErrors,
}

impl<'a> Forwarder<'a> {
    fn new(request: &'a Hold, interfaces: [i32; 2], senders: &'a [OwnedFd; 2]) -> Self {
        Self {
            request,
            interfaces,
            senders,
            waiting: BinaryHeap::new(),
            arrived: 0,
            sent: 0,
            jittered: 0,
            failed: 0,
            errors: TimerErrors::new(),
        }
    }

    fn forward(&mut self, ring: &RingBuffer<'_>, arrivals: &RefCell<Vec<Waiting>>) -> Outcome<()> {
        while !ENDING.load(Ordering::Relaxed) {
            let outcome = ring.consume_raw();
            if outcome < 0 {
                return Err(Failure::Broke(format!("the ring of frames: error {outcome}")));
            }
            for frame in arrivals.borrow_mut().drain(..) {
                self.admit(frame);
            }
            self.send_due()?;
        }
        Ok(())
    }

    fn admit(&mut self, mut frame: Waiting) {
        self.arrived += 1;
        frame.number = self.arrived;
        frame.due_ns += self.request.delay_us * 1000;
        if let (Some(every), Some(jitter_us)) = (self.request.every, self.request.jitter_us) {
            if self.arrived % every == 0 {
                frame.due_ns += jitter_us * 1000;
                self.jittered += 1;
            }
        }
        self.waiting.push(Reverse(frame));
    }

    fn send_due(&mut self) -> Outcome<()> {
        while let Some(Reverse(first)) = self.waiting.peek() {
            let time = now()?;
            if time < first.due_ns {
                return Ok(());
            }
            // Frames leave through the other interface.
            let sender = &self.senders[usize::from(first.interface == self.interfaces[0])];
            match send(sender.as_raw_fd(), &first.octets, MsgFlags::MSG_DONTWAIT) {
                Ok(_) => {
                    self.sent += 1;
                    self.errors.add(time - first.due_ns);
                }
                Err(_) => self.failed += 1,
            }
            self.waiting.pop();
        }
        Ok(())
    }

    fn report(&self, refused: u64) -> Report {
        Report {
            event: "result",
            delay_us: self.request.delay_us,
            jitter_us: self.request.jitter_us.unwrap_or(0),
            frames: self.sent,
            jittered: self.jittered,
            refused,
            failed: self.failed,
            kept: self.waiting.len(),
            timer_error_ns: self.errors.summary(),
        }
    }
}
