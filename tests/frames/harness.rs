// SPDX-License-Identifier: Apache-2.0
//! The frame programs loaded for one plan, and single runs of them.

use std::mem::MaybeUninit;
use std::os::fd::RawFd;

use libbpf_rs::OpenObject;
use natgauge_engine::failure::Outcome;
use natgauge_engine::flow::Flow;
use natgauge_engine::programs::{Programs, Received};
use natgauge_engine::request::{self, Request};
use natgauge_engine::sender;
use natgauge_engine::shared::{BOTH, INITIATOR, PHASE2_RESPONDER, RESPONDER, STREAMS};
use natgauge_engine::table::Table;
use natgauge_engine::tester::{types, OpenTesterSkel};
use natgauge_engine::{host, plan};

use crate::frame::SEAL_KEYS;

pub const INITIATOR_MACS: ([u8; 6], [u8; 6]) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 1, 1]);
pub const RESPONDER_MACS: ([u8; 6], [u8; 6]) = ([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 1, 2]);

pub const DROP: u32 = 1;
pub const PASS: u32 = 2;
pub const REDIRECT: u32 = 4;

/// A NAT44 request as text; `changes` are JSON pointers and their new values.
pub fn request(changes: &[(&str, &str)]) -> Request {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../trial/examples/nat44-both-phases.json"))
            .unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json["connections"] = 1000.into();
    json["record_delays"] = false.into();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        json.pointer_mut(parent).unwrap()[key] = serde_json::from_str(value).unwrap();
        if *value == "null" {
            json.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key);
        }
    }
    request::parse(json.to_string().as_bytes()).unwrap()
}

/// Both sides by IPv6.
pub const IPV6: &[(&str, &str)] = &[
    ("/initiator/family", r#""ipv6""#),
    ("/initiator/gateway", r#"{"mac":"02:00:00:00:01:01"}"#),
    ("/initiator/source_addresses", r#"{"first":"2001:2::2","last":"2001:2::2"}"#),
    ("/initiator/destination_addresses", r#"{"first":"2001:2:0:8000::2","last":"2001:2:0:8000::2"}"#),
    ("/responder/family", r#""ipv6""#),
    ("/responder/gateway", r#"{"mac":"02:00:00:00:01:02"}"#),
    ("/responder/addresses", r#"{"first":"2001:2:0:8000::2","last":"2001:2:0:8000::2"}"#),
];

/// The changes that make `request` NAT64: IPv6 inside, IPv4 outside, frames of 84 and 64 octets.
pub const NAT64: &[(&str, &str)] = &[
    ("/initiator/family", r#""ipv6""#),
    ("/initiator/gateway", r#"{"mac":"02:00:00:00:01:01"}"#),
    ("/initiator/source_addresses", r#"{"first":"2001:2::2","last":"2001:2::2"}"#),
    ("/initiator/destination_addresses", r#"{"first":"2001:2:0:1::c613:2","last":"2001:2:0:1::c613:2"}"#),
    ("/frame", r#"{"size":84,"side":"initiator"}"#),
];

/// A stream as fast as it goes.
pub const fn flow(stream: usize, frames: u64) -> Flow {
    let side = if stream == PHASE2_RESPONDER { RESPONDER } else { INITIATOR };
    Flow { side, stream, first: 0, opened: 0, frames, rate: 1e9, step: None }
}

/// One frame in; verdict, frame out and ns per run.
pub fn run(program: RawFd, frame: &[u8], repeat: i32) -> (u32, Vec<u8>, u32) {
    let mut out = vec![0_u8; 4096];
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
        data_in: frame.as_ptr().cast(),
        data_size_in: frame.len() as u32,
        data_out: out.as_mut_ptr().cast(),
        data_size_out: out.len() as u32,
        repeat,
        ..Default::default()
    };
    // SAFETY: both buffers outlive the call and their lengths are given.
    let status = unsafe { libbpf_sys::bpf_prog_test_run_opts(program, &raw mut options) };
    assert_eq!(status, 0, "BPF_PROG_RUN");
    out.truncate(options.data_size_out as usize);
    (options.retval, out, options.duration)
}

pub struct Loaded<'a> {
    pub programs: Programs<'a>,
    pub request: Request,
    /// Of the sums in marks.
    pub keys: Vec<u64>,
}

impl<'a> Loaded<'a> {
    pub fn new(place: &'a mut MaybeUninit<OpenObject>, request: Request) -> Self {
        Self::by(request, |plan, request, table| Programs::load(place, plan, request, false, table))
    }

    /// Programs as the compiler made them, which read the plan for each frame.
    pub fn as_compiled(place: &'a mut MaybeUninit<OpenObject>, request: Request) -> Self {
        Self::prepared(|_| Ok(()), place, request)
    }

    /// Programs with the instructions that `prepare` leaves.
    pub fn prepared(
        prepare: fn(&mut OpenTesterSkel) -> Outcome<()>,
        place: &'a mut MaybeUninit<OpenObject>,
        request: Request,
    ) -> Self {
        Self::by(request, |plan, request, table| Programs::load_prepared(prepare, place, plan, request, false, table))
    }

    fn by(request: Request, load: impl FnOnce(&types::plan, &Request, Table) -> Outcome<Programs<'a>>) -> Self {
        let table = Table::make(&request).unwrap();
        let mut plan = plan::build(&request, [INITIATOR_MACS, RESPONDER_MACS]);
        plan.seal_keys = SEAL_KEYS;
        let programs =
            load(&plan, &request, table).unwrap_or_else(|failure| panic!("the frame tests need root: {failure}"));
        programs.control.open((1 << STREAMS) - 1);
        programs.redirect_to_loopback(&BOTH).unwrap();
        Self { programs, request, keys: plan.mark_keys.to_vec() }
    }

    /// One frame in; verdict, frame out and ns per run.
    pub fn run(&self, program: RawFd, frame: &[u8], repeat: i32) -> (u32, Vec<u8>, u32) {
        run(program, frame, repeat)
    }

    /// Give the frame to a receiver; what changed in the counts.
    pub fn receive(&self, side: usize, frame: &[u8]) -> (u32, Vec<u8>, Received) {
        let (verdict, out, _) = self.run(self.programs.receivers()[side], frame, 1);
        (verdict, out, self.programs.received())
    }

    /// Let sender `number` of `senders` begin these flows on the CPU that this thread is pinned to. All frames are due.
    pub fn begin(&self, number: usize, senders: usize, flows: &[Flow]) {
        host::pin(0).unwrap();
        let long_ago = host::now_ns() - 1_000_000_000_000;
        let state = sender::state(number, senders, long_ago, flows, sender::CatchUp::default());
        self.programs.set_senders(&[(0, state)]).unwrap();
    }

    /// The next frame of the flows that have begun; None: a frame was skipped.
    pub fn next(&self) -> Option<Vec<u8>> {
        let longest = self.request.longest_octets() as usize;
        let (verdict, frame, _) = self.run(self.programs.generator(), &vec![0xee; longest], 1);
        (verdict == REDIRECT).then_some(frame)
    }

    /// The frames a phase would send, in order, from the CPU this thread is pinned to.
    pub fn generate(&self, flows: &[Flow]) -> Vec<Vec<u8>> {
        host::pin(0).unwrap();
        self.programs
            .set_senders(&[(0, sender::state(0, 1, host::now_ns() - 1_000_000_000, flows, sender::CatchUp::default()))])
            .unwrap();
        let longest = self.request.longest_octets() as usize;
        let total: u64 = flows.iter().map(|flow| flow.frames).sum();
        (0..total)
            .map(|_| {
                let (verdict, frame, _) = self.run(self.programs.generator(), &vec![0xee; longest], 1);
                assert_eq!(verdict, REDIRECT);
                frame
            })
            .collect()
    }
}
