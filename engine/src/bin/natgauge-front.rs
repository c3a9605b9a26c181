// SPDX-License-Identifier: Apache-2.0
//! Stands in for the device's network card in the `isolated` placement: attaches `bpf/front.bpf.c` to an interface, reads
//! its counts, detaches it. It is attached without a pin and without a link, so it exists as long as the interface.

mod common;

use std::collections::BTreeSet;
use std::mem::{offset_of, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use common::{map_of, program, run, u64_at, unreadable, Failure, Outcome, Place};
use libbpf_rs::query::ProgramInfo;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{num_possible_cpus, ErrorKind, MapCore, MapFlags, MapHandle, Xdp, XdpFlags};
use serde::Serialize;

/// Generated from `bpf/front.bpf.c`.
#[allow(warnings, clippy::all, clippy::restriction)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/front.skel.rs"));
}
use skeleton::types::ring_counts;
use skeleton::{FrontSkel, FrontSkelBuilder};

/// The name of the program on the interface, as the kernel shows it (at most 15 characters).
const NAME: &str = "natgauge_front";

/// Stands in for the device's network card: hashes frames onto CPUs, each with a ring of a given depth.
#[derive(Parser)]
#[command(version, arg_required_else_help = false)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Attach the card to an interface
    Attach {
        #[command(flatten)]
        place: Place,
        /// CPUs that process the frames, e.g. 1,2
        #[arg(long, value_delimiter = ',', required = true)]
        cpus: Vec<u32>,
        /// Depth of each CPU's ring, 1 to 16384 frames
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=16384))]
        ring: u32,
    },
    /// Print the card's counts since it was attached, as one JSON object
    Read {
        #[command(flatten)]
        place: Place,
    },
    /// Detach the card from the interface
    Detach {
        #[command(flatten)]
        place: Place,
    },
}

/// Frame counts since the card was attached.
#[derive(Serialize)]
struct Counts {
    /// Depth of a CPU's ring, frames.
    ring: u32,
    redirected: u64,
    processed: u64,
    /// Dropped by full rings; includes frames that are in a ring at this moment.
    dropped: u64,
    per_cpu: Vec<CpuCounts>,
}

/// Frame counts of one CPU's ring.
#[derive(Serialize)]
struct CpuCounts {
    cpu: u32,
    redirected: u64,
    processed: u64,
}

fn main() -> ExitCode {
    run(|arguments: Arguments| match arguments.verb {
        Verb::Attach { place, cpus, ring } => attach(&place, &cpus, ring),
        Verb::Read { place } => read(&place),
        Verb::Detach { place } => detach(&place),
    })
}

fn attach(place: &Place, cpus: &[u32], ring: u32) -> Outcome<()> {
    check_cpus(cpus)?;
    let index = place.enter()?;
    if let Some(other) = attached(index)? {
        let name = other.name.to_string_lossy();
        return Err(Failure::Request(format!(
            "interface {}: has the XDP program {name} already; detach it first",
            place.interface
        )));
    }
    let mut storage = MaybeUninit::uninit();
    let skeleton = load(&mut storage, cpus).map_err(|error| {
        Failure::Host(format!(
            "the card's BPF programs cannot be loaded ({error:#}); needs root and Linux 6.6 or newer"
        ))
    })?;
    fill_rings(&skeleton, cpus, ring)?;
    raise_ring_threads(&skeleton, cpus)?;
    let program = skeleton.progs.natgauge_front.as_fd();
    Xdp::new(program).attach(index, XdpFlags::DRV_MODE | XdpFlags::UPDATE_IF_NOEXIST).map_err(|error| {
        Failure::Host(format!("interface {}: its driver does not accept an XDP program ({error:#})", place.interface))
    })
}

fn check_cpus(cpus: &[u32]) -> Outcome<()> {
    let online = online_cpus()?;
    let mut seen = BTreeSet::new();
    for cpu in cpus {
        if !online.contains(cpu) {
            let text = online.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            return Err(Failure::Request(format!("--cpus {cpu}: is not online; online are {text}")));
        }
        if !seen.insert(cpu) {
            return Err(Failure::Request(format!("--cpus {cpu}: is named twice")));
        }
    }
    Ok(())
}

fn online_cpus() -> Outcome<BTreeSet<u32>> {
    let path = "/sys/devices/system/cpu/online";
    let text = std::fs::read_to_string(path).map_err(|error| Failure::Host(format!("{path}: {error}")))?;
    parse_cpus(text.trim())
        .ok_or_else(|| Failure::Host(format!("{path}: contains {:?}, which is no list of CPUs", text.trim())))
}

/// "0-3,8" as a set.
fn parse_cpus(text: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

fn load<'a>(
    storage: &'a mut MaybeUninit<libbpf_rs::OpenObject>,
    cpus: &[u32],
) -> Result<FrontSkel<'a>, libbpf_rs::Error> {
    let mut skeleton = FrontSkelBuilder::default().open(storage)?;
    let too_many = |_| libbpf_rs::Error::from_raw_os_error(libc::E2BIG);
    let possible = u32::try_from(num_possible_cpus()?).map_err(too_many)?;
    skeleton.maps.rings.set_max_entries(possible)?;
    skeleton.maps.ring_counts.set_max_entries(possible)?;
    let constants =
        skeleton.maps.rodata_data.as_deref_mut().ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::EINVAL))?;
    let places =
        constants.cpus.get_mut(..cpus.len()).ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::E2BIG))?;
    places.copy_from_slice(cpus);
    constants.cpu_count = u32::try_from(cpus.len()).map_err(too_many)?;
    skeleton.load()
}

/// Set each CPU's ring, with the program that counts the frames taken from it.
fn fill_rings(skeleton: &FrontSkel<'_>, cpus: &[u32], ring: u32) -> Outcome<()> {
    let counter = skeleton.progs.natgauge_ring.as_fd().as_raw_fd();
    // struct bpf_cpumap_val of linux/bpf.h: depth, program descriptor.
    let mut value = [0; 8];
    value[..4].copy_from_slice(&ring.to_ne_bytes());
    value[4..].copy_from_slice(&counter.to_ne_bytes());
    for cpu in cpus {
        skeleton
            .maps
            .rings
            .update(&cpu.to_ne_bytes(), &value, MapFlags::ANY)
            .map_err(|error| Failure::Host(format!("CPU {cpu}: cannot have a ring of {ring} frames ({error:#})")))?;
    }
    Ok(())
}

/// Raise the priority of the kernel threads of the rings above other tasks, as interrupts of a card have.
fn raise_ring_threads(skeleton: &FrontSkel<'_>, cpus: &[u32]) -> Outcome<()> {
    const HIGHEST: i32 = -20;
    let id = skeleton.maps.rings.info().map_err(unreadable)?.info.id;
    // Names given by the kernel (kernel/bpf/cpumap.c).
    let names: BTreeSet<String> = cpus.iter().map(|cpu| format!("cpumap/{cpu}/map:{id}")).collect();
    // A /proc of another PID namespace has other numbers than the calls of this process.
    let own = std::fs::read_link("/proc/self").ok().and_then(|link| link.to_str()?.parse::<u32>().ok());
    if own != Some(std::process::id()) {
        return Err(no_threads());
    }
    let listing = std::fs::read_dir("/proc").map_err(|error| Failure::Host(format!("/proc: {error}")))?;
    let mut found = 0;
    for entry in listing.flatten() {
        let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if !names.contains(name.trim_end()) {
            continue;
        }
        // SAFETY: the call takes numbers only.
        if unsafe { libc::setpriority(libc::PRIO_PROCESS, thread, HIGHEST) } != 0 {
            let error = std::io::Error::last_os_error();
            return Err(Failure::Host(format!("{}: its priority cannot be raised ({error})", name.trim_end())));
        }
        found += 1;
    }
    if found == names.len() {
        return Ok(());
    }
    // Process 2 is kthreadd, the parent of all kernel threads, wherever they are visible.
    if std::fs::read_to_string("/proc/2/comm").unwrap_or_default().trim_end() != "kthreadd" {
        return Err(no_threads());
    }
    Err(Failure::Broke(format!("{found} of {} threads of the rings were found in /proc", names.len())))
}

fn no_threads() -> Failure {
    Failure::Host(
        "/proc has no kernel threads, because this is a PID namespace of its own: start natgauge in the host's PID \
         namespace (docker run --pid=host), or use --placement shared"
            .to_string(),
    )
}

/// The XDP program on an interface, native or generic.
fn attached(index: i32) -> Outcome<Option<ProgramInfo>> {
    let mut opts = libbpf_sys::bpf_xdp_query_opts {
        sz: size_of::<libbpf_sys::bpf_xdp_query_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    // SAFETY: `opts` is a structure of the size it states, which outlives the call.
    let outcome = unsafe { libbpf_sys::bpf_xdp_query(index, 0, &mut opts) };
    if outcome < 0 {
        let error = libbpf_rs::Error::from_raw_os_error(-outcome);
        return Err(Failure::Broke(format!("interface {index}: its XDP programs cannot be queried ({error})")));
    }
    match [opts.prog_id, opts.drv_prog_id, opts.skb_prog_id, opts.hw_prog_id].into_iter().find(|&id| id != 0) {
        Some(id) => program(id).map(Some),
        None => Ok(None),
    }
}

/// The card's program on an interface.
fn card(place: &Place, index: i32) -> Outcome<ProgramInfo> {
    match attached(index)? {
        Some(program) if program.name == NAME => Ok(program),
        Some(other) => Err(Failure::Request(format!(
            "interface {}: its XDP program is {}, not {NAME}",
            place.interface,
            other.name.to_string_lossy()
        ))),
        None => Err(Failure::Request(format!("interface {}: has no card; attach one first", place.interface))),
    }
}

fn read(place: &Place) -> Outcome<()> {
    let index = place.enter()?;
    let card = card(place, index)?;
    let counts = counts(&map_of(&card, "rings")?, &map_of(&card, "ring_counts")?)?;
    println!("{}", serde_json::to_string(&counts).map_err(unreadable)?);
    Ok(())
}

fn counts(rings: &MapHandle, ring_counts: &MapHandle) -> Outcome<Counts> {
    let mut sum = Counts { ring: 0, redirected: 0, processed: 0, dropped: 0, per_cpu: Vec::new() };
    for cpu in 0..rings.max_entries() {
        // CPUs without a ring have no entry.
        let Some(ring) = if_present(rings.lookup(&cpu.to_ne_bytes(), MapFlags::ANY))? else {
            continue;
        };
        let counts = cpu_counts(ring_counts, cpu)?;
        sum.ring = ring.get(..4).and_then(|octets| octets.try_into().ok()).map_or(0, u32::from_ne_bytes);
        sum.redirected += counts.redirected;
        sum.processed += counts.processed;
        sum.per_cpu.push(counts);
    }
    sum.dropped = sum.redirected.saturating_sub(sum.processed);
    Ok(sum)
}

fn if_present<T>(outcome: libbpf_rs::Result<Option<T>>) -> Outcome<Option<T>> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        other => other.map_err(unreadable),
    }
}

fn cpu_counts(ring_counts: &MapHandle, cpu: u32) -> Outcome<CpuCounts> {
    let mut sum = CpuCounts { cpu, redirected: 0, processed: 0 };
    let shares = if_present(ring_counts.lookup_percpu(&cpu.to_ne_bytes(), MapFlags::ANY))?.unwrap_or_default();
    for share in shares {
        sum.redirected += u64_at(&share, offset_of!(ring_counts, redirected))?;
        sum.processed += u64_at(&share, offset_of!(ring_counts, processed))?;
    }
    Ok(sum)
}

fn detach(place: &Place) -> Outcome<()> {
    let index = place.enter()?;
    let card = card(place, index)?;
    let program = libbpf_rs::Program::fd_from_id(card.id).map_err(|error| {
        Failure::Broke(format!("interface {}: its card cannot be opened ({error:#})", place.interface))
    })?;
    Xdp::new(program.as_fd()).detach(index, XdpFlags::DRV_MODE).map_err(|error| {
        Failure::Broke(format!("interface {}: its card cannot be detached ({error:#})", place.interface))
    })
}
