// SPDX-License-Identifier: Apache-2.0
//! Devices with known faults: a BPF program that drops, duplicates, reorders, damages or mistranslates every k-th frame of
//! a forwarding device, and a forwarder with a known delay. A tester's results can be compared with the known faults.

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod hold;
mod timer_error;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use common::{run, Place};

/// Devices with known faults, to check a tester against.
#[derive(Parser)]
#[command(version, arg_required_else_help = false)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Change every k-th UDP frame that leaves an interface, and count
    Attach {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        faults: faults::Faults,
    },
    /// Print the numbers of test frames and changed frames since it was attached, as one JSON object
    Read {
        #[command(flatten)]
        place: Place,
    },
    /// Stop changing frames
    Detach {
        #[command(flatten)]
        place: Place,
    },
    /// Forward frames between two interfaces with a known delay, until SIGTERM or SIGINT
    Hold(hold::Hold),
}

fn main() -> ExitCode {
    run(|arguments: Arguments| match arguments.verb {
        Verb::Attach { place, faults } => faults::attach(&place, &faults),
        Verb::Read { place } => faults::read(&place),
        Verb::Detach { place } => faults::detach(&place),
        Verb::Hold(request) => hold::hold(&request),
    })
}
