// SPDX-License-Identifier: Apache-2.0
//! `natgauge-engine`: reads a trial request from standard input, writes JSON lines to standard output, and failures to
//! standard error.

use std::io::{self, BufRead, Read, Write};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};

use natgauge_engine::failure::{abort_on_panic, Failure, Outcome};
use natgauge_engine::report::{Failed, Line};
use natgauge_engine::{comparison, host, plan, programs, request, schema, trial};

/// Runs one trial: reads a JSON request from standard input, prints JSON lines.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    action: Action,
}

/// What to do instead of running a trial. Only a comparison accesses interfaces and needs privileges.
#[derive(clap::Args)]
#[group(multiple = false)]
struct Action {
    /// Only check the request
    #[arg(long)]
    check: bool,
    /// Only check requests, one per line; prints for each "accepted", or "refused: " and the reason
    #[arg(long)]
    check_lines: bool,
    /// Run one round of a comparison: reads a JSON comparison from standard input, prints one line
    #[arg(long)]
    compare: bool,
    /// Only check the comparison
    #[arg(long)]
    check_comparison: bool,
    /// Only print the plan that the frame programs get, as they read it
    #[arg(long)]
    plan: bool,
    /// Print the JSON schema of the input or the output
    #[arg(long)]
    schema: Option<Published>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Published {
    Request,
    Result,
    Comparison,
    ComparisonResult,
}

fn work(action: &Action, began: Instant) -> Outcome<()> {
    let began_ns = host::now_ns();
    libbpf_rs::set_print(None);
    if let Some(published) = action.schema {
        let schema = match published {
            Published::Request => schema::request(),
            Published::Result => schema::result(),
            Published::Comparison => schema::comparison(),
            Published::ComparisonResult => schema::comparison_result(),
        };
        return print_text(&schema::text(&schema));
    }
    if action.check_lines {
        return check_lines();
    }
    let mut text = Vec::new();
    io::stdin().take(request::LONGEST as u64 + 1).read_to_end(&mut text).map_err(|error| unreadable(&error))?;
    if action.compare || action.check_comparison {
        return compare(&text, action.compare, began);
    }
    let request = request::parse(&text)?;
    if action.check {
        return Ok(());
    }
    if action.plan {
        return print_octets(&programs::bytes(&plan::build(&request, Default::default())));
    }
    let result = trial::run(&request, began, began_ns)?;
    trial::print(&Line::Result(Box::new(result)));
    Ok(())
}

fn compare(text: &[u8], run: bool, began: Instant) -> Outcome<()> {
    let comparison = request::parse_comparison(text)?;
    if !run {
        return Ok(());
    }
    let result = comparison::run(&comparison, began)?;
    let line = serde_json::to_string(&result).map_err(|error| Failure::Broke(format!("result: {error}")))?;
    print_text(&format!("{line}\n"))
}

fn check_lines() -> Outcome<()> {
    for line in io::stdin().lock().split(b'\n') {
        match request::parse(&line.map_err(|error| unreadable(&error))?) {
            Ok(_) => print_text("accepted\n")?,
            Err(refusal) => print_text(&format!("refused: {refusal}\n"))?,
        }
    }
    Ok(())
}

fn unreadable(error: &io::Error) -> Failure {
    Failure::Request(format!("request: cannot be read: {error}"))
}

fn print_text(text: &str) -> Outcome<()> {
    print_octets(text.as_bytes())
}

fn print_octets(octets: &[u8]) -> Outcome<()> {
    io::stdout().write_all(octets).map_err(|error| Failure::Broke(format!("standard output: {error}")))
}

fn main() -> ExitCode {
    let began = Instant::now();
    abort_on_panic();
    match work(&Arguments::parse().action, began) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(port) = failure.port() {
                trial::print(&Line::Failed(Failed { port }));
            }
            eprintln!("natgauge-engine: {failure}");
            ExitCode::from(failure.status())
        }
    }
}
