// SPDX-License-Identifier: Apache-2.0
//! `natgauge-engine`: one trial request on standard input, JSON lines on standard output, remarks on standard error.

use std::io::Read;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

use natgauge_engine::failure::{Failure, Outcome};
use natgauge_engine::report::Line;
use natgauge_engine::{host, request, trial};

/// Runs one trial: reads a JSON request from standard input, prints JSON lines.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Only check the request; touch nothing
    #[arg(long)]
    check: bool,
}

fn work(arguments: &Arguments, began: Instant) -> Outcome<()> {
    let began_ns = host::now_ns();
    libbpf_rs::set_print(None);
    let mut text = Vec::new();
    std::io::stdin()
        .take(request::LONGEST as u64 + 1)
        .read_to_end(&mut text)
        .map_err(|error| Failure::Request(format!("request: cannot be read: {error}")))?;
    let request = request::parse(&text)?;
    if arguments.check {
        return Ok(());
    }
    let result = trial::run(&request, began, began_ns)?;
    trial::print(&Line::Result(Box::new(result)));
    Ok(())
}

fn main() -> ExitCode {
    let began = Instant::now();
    match work(&Arguments::parse(), began) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("natgauge-engine: {failure}");
            ExitCode::from(failure.status())
        }
    }
}
