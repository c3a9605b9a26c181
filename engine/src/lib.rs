// SPDX-License-Identifier: Apache-2.0
//! The trial storey: from a request to the frame programs and back to a result. `natgauge-engine` is its only user; it is
//! a library so that the frame tests can load the same programs. The reference softwire in `softwire` is no part of it.

pub mod comparison;
pub mod dns;
pub mod failure;
pub mod flow;
pub mod host;
pub mod losses;
pub mod neighbour;
pub mod netns;
pub mod plan;
pub mod port;
pub mod programs;
pub mod report;
pub mod request;
pub mod run_time;
pub mod schema;
pub mod selftest;
pub mod sender;
pub mod shared;
pub mod softwire;
pub mod table;
pub mod trial;

/// The frame programs and the structs they share with us, generated from bpf/ at build time.
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
