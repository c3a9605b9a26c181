// SPDX-License-Identifier: Apache-2.0
//! Devices of known truth: a BPF program that loses, doubles, swaps, damages, leaks or misdirects every k-th frame of a
//! forwarding device, and a forwarder that holds each frame for a known time. What a tester reports of them can be
//! compared with what was really done.

#[path = "../common/mod.rs"]
mod common;
mod hold;
mod timer_error;
mod truth;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use common::{run, Place};

/// Devices of known truth, to check a tester against.
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
        truth: truth::Truth,
    },
    /// Print what was seen and acted on since it was attached, as one JSON object
    Read {
        #[command(flatten)]
        place: Place,
    },
    /// Leave the frames alone again
    Detach {
        #[command(flatten)]
        place: Place,
    },
    /// Forward frames between two interfaces, each after a known time, until SIGTERM or SIGINT
    Hold(hold::Hold),
}

fn main() -> ExitCode {
    run(|arguments: Arguments| match arguments.verb {
        Verb::Attach { place, truth } => truth::attach(&place, &truth),
        Verb::Read { place } => truth::read(&place),
        Verb::Detach { place } => truth::detach(&place),
        Verb::Hold(request) => hold::hold(&request),
    })
}
