// SPDX-License-Identifier: Apache-2.0
//! Which of the frame programs run. The others are not loaded: the kernel's verifier takes milliseconds for each large one.

use crate::request::Request;
use crate::transport::Transport;

/// What decides which programs run.
pub struct Choice {
    /// Of the test frames.
    pub transport: Transport,
    /// The kernel times the receivers.
    receiver_time: bool,
    /// The redirect floor uses the same ports.
    floor: bool,
}

/// When a program runs.
type When = fn(&Choice) -> bool;

const ALWAYS: When = |_| true;
const UDP: When = |choice| choice.transport == Transport::Udp;
const ICMP: When = |choice| choice.transport == Transport::Icmp;
const TCP: When = |choice| choice.transport == Transport::Tcp;

/// Each program of `bpf/tester.bpf.c`.
const PROGRAMS: [(&str, When); 13] = [
    ("generate_udp", UDP),
    ("generate_icmp", ICMP),
    ("generate_tcp", TCP),
    ("receive_udp_initiator", UDP),
    ("receive_udp_responder", UDP),
    ("receive_icmp_initiator", ICMP),
    ("receive_icmp_responder", ICMP),
    ("receive_tcp_initiator", TCP),
    ("receive_tcp_responder", TCP),
    ("count_offered", ALWAYS),
    ("count_redirect_errors", ALWAYS),
    ("receive_nothing", |choice| choice.receiver_time || choice.floor),
    ("redirect_only", ALWAYS),
];

impl Choice {
    /// For a request; `floor`: the redirect floor uses its ports, too.
    pub fn of(request: &Request, floor: bool) -> Self {
        Self { transport: request.frame.transport, receiver_time: request.record_receiver_time, floor }
    }

    /// Whether the program of this name runs.
    pub fn has(&self, program: &str) -> bool {
        PROGRAMS.iter().any(|(name, when)| *name == program && when(self))
    }
}
