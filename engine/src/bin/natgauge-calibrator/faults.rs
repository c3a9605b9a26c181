// SPDX-License-Identifier: Apache-2.0
//! Attaches `bpf/calibrator.bpf.c` to the egress of an interface (tcx), reads its counts, detaches it. It is attached
//! without a pin and without a link, so it exists as long as the interface.

use std::mem::{offset_of, MaybeUninit};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use clap::ValueEnum;
use libbpf_rs::query::ProgramInfo;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags};
use serde::Serialize;

use crate::common::{map_of, program, u64_at, unreadable, Failure, Outcome, Place};

/// Generated from `bpf/calibrator.bpf.c`.
#[allow(warnings, clippy::all, clippy::restriction)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/calibrator.skel.rs"));
}
use skeleton::types::{self, rodata, tally};
use skeleton::{CalibratorSkel, CalibratorSkelBuilder};

/// The name of the program, as the kernel shows it (at most 15 characters).
const NAME: &str = "natgauge_truth";

/// Most programs at one egress; the kernel allows 63.
const MOST_PROGRAMS: usize = 64;

/// What happens to a chosen frame.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// It is dropped
    Drop,
    /// It is sent twice
    Duplicate,
    /// It is sent after its successor
    Swap,
    /// Bits of one octet are flipped; checksums are unchanged
    Damage,
    /// It is sent with its private source and correct checksums
    Untranslated,
    /// It is sent to a neighbouring destination port with correct checksums
    Mistranslate,
    /// It is dropped, and all frames after it (--every: number of frames before it)
    StopAfter,
}

/// What to do to which frames.
#[derive(clap::Args)]
pub struct Faults {
    /// What happens to a chosen frame
    #[arg(long)]
    mode: Mode,
    /// Choose test frames K, 2K, ...
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Leave the first J test frames unchanged and count K after them
    #[arg(long, value_name = "J", default_value_t = 0)]
    offset: u64,
    /// damage: which octet, from the start of the UDP payload; negative numbers are in the headers
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true,
          value_parser = clap::value_parser!(i32).range(-62..=4095))]
    octet: i32,
    /// damage: which of its bits are flipped, 1 to 255
    #[arg(long, value_name = "MASK", default_value_t = 0xff, value_parser = clap::value_parser!(u8).range(1..))]
    bits: u8,
    /// untranslated: the private source address
    #[arg(long, value_name = "ADDRESS", required_if_eq("mode", "untranslated"))]
    source: Option<IpAddr>,
    /// untranslated: the private source port; the frame's own when absent
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    source_port: Option<u16>,
}

/// Frame counts since it was attached.
#[derive(Serialize)]
struct Tally {
    seen: u64,
    acted: u64,
}

/// Attach the program to the interface's egress.
pub fn attach(place: &Place, faults: &Faults) -> Outcome<()> {
    if faults.mode == Mode::Swap && faults.every < 2 {
        return Err(Failure::Request(
            "--every 1: with --mode swap it must be at least 2; a successor is needed".into(),
        ));
    }
    let index = place.enter()?;
    if find(index)?.is_some() {
        return Err(Failure::Request(format!(
            "interface {}: has a calibrator already; detach it first",
            place.interface
        )));
    }
    let mut storage = MaybeUninit::uninit();
    let skeleton = load(&mut storage, faults).map_err(|error| {
        Failure::Host(format!("the calibrator's BPF program cannot be loaded ({error:#}); needs root and Linux 6.6"))
    })?;
    let program = skeleton.progs.natgauge_truth.as_fd().as_raw_fd();
    // SAFETY: `program` is open as long as `skeleton` lives; a null pointer means no options.
    let outcome =
        unsafe { libbpf_sys::bpf_prog_attach_opts(program, index, libbpf_sys::BPF_TCX_EGRESS, std::ptr::null()) };
    checked(outcome, &format!("interface {}: does not accept a program at its egress", place.interface))
        .map_err(Failure::Host)
}

/// The message of a failed libbpf call, which returns a negative error number.
fn checked(outcome: i32, what: &str) -> Result<(), String> {
    if outcome < 0 {
        return Err(format!("{what} ({})", libbpf_rs::Error::from_raw_os_error(-outcome)));
    }
    Ok(())
}

fn load<'a>(
    storage: &'a mut MaybeUninit<libbpf_rs::OpenObject>,
    faults: &Faults,
) -> Result<CalibratorSkel<'a>, libbpf_rs::Error> {
    let mut skeleton = CalibratorSkelBuilder::default().open(storage)?;
    let constants =
        skeleton.maps.rodata_data.as_deref_mut().ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::EINVAL))?;
    set_constants(constants, faults);
    skeleton.load()
}

fn set_constants(constants: &mut rodata, faults: &Faults) {
    constants.mode = match faults.mode {
        Mode::Drop => types::mode::MODE_DROP,
        Mode::Duplicate => types::mode::MODE_DUPLICATE,
        Mode::Swap => types::mode::MODE_SWAP,
        Mode::Damage => types::mode::MODE_DAMAGE,
        Mode::Untranslated => types::mode::MODE_UNTRANSLATED,
        Mode::Mistranslate => types::mode::MODE_MISTRANSLATE,
        Mode::StopAfter => types::mode::MODE_STOP,
    };
    constants.every = faults.every;
    constants.offset = faults.offset;
    constants.damaged_octet = faults.octet;
    constants.flipped_bits = faults.bits;
    constants.source_port = faults.source_port.unwrap_or(0);
    match faults.source {
        Some(IpAddr::V4(address)) => constants.source[0] = u32::from_ne_bytes(address.octets()),
        Some(IpAddr::V6(address)) => {
            for (word, octets) in constants.source.iter_mut().zip(address.octets().chunks_exact(4)) {
                *word = u32::from_ne_bytes([octets[0], octets[1], octets[2], octets[3]]);
            }
            constants.source_is_ipv6 = 1;
        }
        None => {}
    }
}

/// The calibrator's program at the interface's egress.
fn find(index: i32) -> Outcome<Option<ProgramInfo>> {
    let mut ids = [0; MOST_PROGRAMS];
    let mut query = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
        prog_ids: ids.as_mut_ptr(),
        ..Default::default()
    };
    query.__bindgen_anon_1.count = MOST_PROGRAMS as u32;
    // SAFETY: `query` states its own size and that of `ids`, which it points to; both outlive the call.
    let outcome = unsafe { libbpf_sys::bpf_prog_query_opts(index, libbpf_sys::BPF_TCX_EGRESS, &mut query) };
    checked(outcome, &format!("interface {index}: its egress programs cannot be queried")).map_err(Failure::Host)?;
    for id in ids.into_iter().take_while(|&id| id != 0) {
        let found = program(id)?;
        if found.name == NAME {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn found(place: &Place, index: i32) -> Outcome<ProgramInfo> {
    find(index)?
        .ok_or_else(|| Failure::Request(format!("interface {}: has no calibrator; attach one first", place.interface)))
}

/// Print the counts.
pub fn read(place: &Place) -> Outcome<()> {
    let index = place.enter()?;
    let map = map_of(&found(place, index)?, "tally")?;
    let value = map
        .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(unreadable)?
        .ok_or_else(|| unreadable("the map has no value"))?;
    let counts =
        Tally { seen: u64_at(&value, offset_of!(tally, seen))?, acted: u64_at(&value, offset_of!(tally, acted))? };
    println!("{}", serde_json::to_string(&counts).map_err(unreadable)?);
    Ok(())
}

/// Detach the program.
pub fn detach(place: &Place) -> Outcome<()> {
    let index = place.enter()?;
    let calibrator = found(place, index)?;
    let what = format!("interface {}: its calibrator cannot be detached", place.interface);
    let program =
        libbpf_rs::Program::fd_from_id(calibrator.id).map_err(|error| Failure::Broke(format!("{what} ({error:#})")))?;
    // SAFETY: `program` is open until the end of this function; a null pointer means no options.
    let outcome = unsafe {
        libbpf_sys::bpf_prog_detach_opts(program.as_raw_fd(), index, libbpf_sys::BPF_TCX_EGRESS, std::ptr::null())
    };
    checked(outcome, &what).map_err(Failure::Broke)
}
