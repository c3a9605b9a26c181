// SPDX-License-Identifier: Apache-2.0
//! Runs trials: loads the frame programs for a request, runs them and reports the result. It is a library so that the frame
//! tests can load the same programs; `natgauge-engine` is its only other user. `softwire` is not part of the tester: it has
//! the reference softwire, a device.

pub mod comparison;
mod connections;
pub mod disturbance;
pub mod dns;
pub mod failure;
pub mod family;
pub mod flow;
pub mod host;
pub mod messages;
pub mod modifiers;
pub mod neighbour;
pub mod netns;
mod outside_ports;
pub mod plan;
pub mod port;
pub mod programs;
pub mod receiver_time;
pub mod report;
pub mod request;
pub mod schema;
pub mod selftest;
pub mod sender;
pub mod shared;
pub mod softwire;
mod sources;
pub mod table;
pub mod transport;
pub mod trial;

/// The frame programs and the structs that they share with the engine, generated from bpf/ at build time.
#[allow(
    missing_docs,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "generated"
)]
pub mod tester {
    include!(concat!(env!("OUT_DIR"), "/tester.skel.rs"));
}
