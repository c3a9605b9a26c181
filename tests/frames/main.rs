// SPDX-License-Identifier: Apache-2.0
//! Frame in, frame out: the frame programs run by the kernel on single frames, each row one sentence about what they do.
//! Needs CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN; says so and fails without. `-- --nocapture` prints ns per frame.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod background;
mod choice;
mod churn;
mod constants;
mod customer_edge;
mod dns;
mod edge_device;
mod embedding;
mod floor;
mod frame;
mod generator;
mod harness;
mod icmp;
mod modifiers;
mod receiver;
mod resolved;
mod sizes;
mod softwire;
mod tcp;
mod times;
mod tunnel;
mod vlan;
