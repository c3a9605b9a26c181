// SPDX-License-Identifier: Apache-2.0
//! Shared by `natgauge-front`, `natgauge-softwire` and `natgauge-calibrator`: interfaces and namespaces, attached BPF
//! programs and their maps, and how failures are reported.

use std::fmt::Display;
use std::fs::File;
use std::process::ExitCode;

use clap::Parser;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::{MapCore, MapHandle};
use nix::net::if_::if_nametoindex;
use nix::sched::{setns, CloneFlags};

use natgauge_engine::failure::abort_on_panic;
pub use natgauge_engine::failure::{Failure, Outcome};

/// Failure of reading counts back, which happens only when programs or maps are removed at the same time.
pub fn unreadable(error: impl Display) -> Failure {
    Failure::Broke(format!("the counts cannot be read: {error}"))
}

/// Read the command line, do `work`, and print a failure as one line on standard error.
pub fn run<T: Parser>(work: impl FnOnce(T) -> Outcome<()>) -> ExitCode {
    abort_on_panic();
    // libbpf's own messages would be printed in addition to that line.
    libbpf_rs::set_print(None);
    let arguments = match T::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refused(&error),
    };
    match work(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.status())
        }
    }
}

/// Print clap's message on one line; help and version unchanged.
fn refused(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    let message = text.split("\nUsage:").next().unwrap_or(&text).split("\nFor more").next().unwrap_or(&text);
    eprintln!("{}", message.trim_start_matches("error: ").split_whitespace().collect::<Vec<_>>().join(" "));
    ExitCode::from(2)
}

/// The interface of a program.
#[derive(Debug, clap::Args)]
pub struct Place {
    /// Network namespace of the interface, a name below /run/netns; the caller's own when absent
    #[arg(long)]
    pub netns: Option<String>,
    /// Interface inside that namespace
    #[arg(long)]
    pub interface: String,
}

impl Place {
    /// Enter the namespace and return the interface's index.
    pub fn enter(&self) -> Outcome<i32> {
        enter(self.netns.as_deref())?;
        index_of(&self.interface)
    }
}

/// Move this thread into a network namespace, if one is given.
pub fn enter(netns: Option<&str>) -> Outcome<()> {
    let Some(name) = netns else { return Ok(()) };
    if name.is_empty() || name.contains('/') {
        return Err(Failure::Request(format!("--netns {name}: must be a name below /run/netns, not a path")));
    }
    let file = File::open(format!("/run/netns/{name}")).map_err(|error| {
        Failure::Request(format!("--netns {name}: there is no such namespace ({error}); see: ip netns list"))
    })?;
    setns(file, CloneFlags::CLONE_NEWNET)
        .map_err(|error| Failure::Host(format!("--netns {name}: cannot be entered ({error}); root is needed")))
}

/// Index of an interface in this thread's namespace.
pub fn index_of(interface: &str) -> Outcome<i32> {
    let unknown = |error: nix::Error| {
        Failure::Request(format!("interface {interface}: there is none of this name in the namespace ({error})"))
    };
    let index = if_nametoindex(interface).map_err(unknown)?;
    i32::try_from(index).map_err(|_| Failure::Broke(format!("interface {interface}: its number {index} is too large")))
}

/// A loaded BPF program, by its id.
pub fn program(id: u32) -> Outcome<ProgramInfo> {
    ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_map_ids(true))
        .find(|info| info.id == id)
        .ok_or_else(|| Failure::Host(format!("BPF program {id}: cannot be read; root is needed")))
}

/// The program's map of this name.
pub fn map_of(program: &ProgramInfo, name: &str) -> Outcome<MapHandle> {
    for &id in &program.map_ids {
        let map = MapHandle::from_map_id(id).map_err(unreadable)?;
        if map.name() == name {
            return Ok(map);
        }
    }
    Err(Failure::Broke(format!("BPF program {}: has no map {name}; is it of another version?", program.id)))
}

/// Integer at an offset of a map's value, in the machine's byte order.
pub fn u64_at(value: &[u8], offset: usize) -> Outcome<u64> {
    value
        .get(offset..offset + 8)
        .and_then(|octets| octets.try_into().ok())
        .map(u64::from_ne_bytes)
        .ok_or_else(|| Failure::Broke(format!("a map's value has {} octets, too few", value.len())))
}
