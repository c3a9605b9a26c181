// SPDX-License-Identifier: Apache-2.0
//! Programs with the plan in their instructions do what those do that the compiler made, in fewer instructions.

use std::mem::MaybeUninit;

use libbpf_rs::skel::OpenSkel;
use libbpf_rs::AsRawLibbpf;
use natgauge_engine::failure::{Failure, Outcome};
use natgauge_engine::host;
use natgauge_engine::programs::info;
use natgauge_engine::sender::{self, CatchUp};
use natgauge_engine::shared::{BOTH, INITIATOR, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER};
use natgauge_engine::tester::OpenTesterSkel;

use crate::background::BACKGROUND;
use crate::harness::{flow, request, run, Loaded, IPV6, NAT64, REDIRECT};

type Changes = &'static [(&'static str, &'static str)];

const ROUTED: Changes = &[("/translation", r#"{"source":"unchanged"}"#)];
const FRAMES: u64 = 300;

/// What a generator sends, and what both receivers make of it, at a standing clock.
fn seen(loaded: &Loaded) -> Vec<String> {
    host::pin(0).unwrap();
    let longest = vec![0xee; loaded.request.longest_octets() as usize];
    let mut seen = Vec::new();
    for stream in [PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER] {
        let flows = [flow(stream, 2 * FRAMES)];
        let mut state = sender::state(0, 1, 0, &flows, CatchUp::default());
        // All frames are due, and leave before the clock is read again.
        (state.now_ns, state.credit) = (1 << 50, u32::MAX);
        loaded.programs.set_senders(&[(0, state)]).unwrap();
        for _ in 0..FRAMES {
            let (verdict, frame, _) = run(loaded.programs.generator(), &longest, 1);
            seen.push(format!("{verdict} {frame:x?}"));
            let mut damaged = frame.clone();
            *damaged.last_mut().unwrap() ^= 1;
            for frame in [&frame, &damaged].into_iter().filter(|_| verdict == REDIRECT) {
                for side in [RESPONDER, INITIATOR] {
                    let (verdict, out, _) = run(loaded.programs.receivers()[side], frame, 1);
                    seen.push(format!("{verdict} {out:x?}"));
                }
            }
        }
    }
    seen.push(format!("{:?}", loaded.programs.received()));
    seen
}

/// Octets of the instructions of generator and receivers.
fn lengths(loaded: &Loaded) -> [u32; 3] {
    let [initiator, responder] = BOTH.map(|side| loaded.programs.receivers()[side]);
    [loaded.programs.generator(), initiator, responder].map(|program| info(program).xlated_prog_len)
}

#[test]
fn every_frame_and_every_count_is_as_by_the_programs_as_compiled() {
    let tcp: Changes = &[("/frame", r#"{"size":88,"side":"initiator","transport":"tcp"}"#)];
    let icmp: Changes = &[
        ("/frame", r#"{"size":64,"side":"initiator","transport":"icmp"}"#),
        ("/initiator/destination_ports", r#"{"first":1,"last":1}"#),
    ];
    let addresses: Changes = &[
        ("/initiator/source_addresses", r#"{"first":"10.0.0.2","last":"10.0.0.4"}"#),
        ("/initiator/destination_addresses", r#"{"first":"198.19.0.2","last":"198.19.0.5"}"#),
        ("/responder/addresses", r#"{"first":"198.19.0.2","last":"198.19.0.5"}"#),
        ("/order", r#""decreasing""#),
    ];
    let vlan: Changes = &[("/frame", r#"{"size":72,"side":"initiator","initiator_vlan":"9.7","responder_vlan":"7"}"#)];
    let size84: Changes = &[("/frame", r#"{"size":84,"side":"initiator"}"#)];
    let broadcasts: Changes = &[("/phase2/modifiers", r#"{"broadcast_every":7}"#)];
    let background: Changes = &[("/background", BACKGROUND)];
    let plans: [&[Changes]; 11] = [
        &[],
        &[ROUTED],
        &[IPV6, ROUTED, size84],
        &[NAT64],
        &[addresses, ROUTED],
        &[vlan, ROUTED],
        &[broadcasts, ROUTED],
        &[background, ROUTED],
        &[tcp],
        &[tcp, ROUTED],
        &[icmp, ROUTED],
    ];
    for changes in plans.map(<[Changes]>::concat) {
        let (mut first, mut second) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let compiled = Loaded::as_compiled(&mut first, request(&changes));
        let written = Loaded::new(&mut second, request(&changes));
        for (one, other) in seen(&compiled).into_iter().zip(seen(&written)) {
            assert_eq!(one, other, "{changes:?}");
        }
        for (one, other) in lengths(&compiled).into_iter().zip(lengths(&written)) {
            assert!(10 * other < 9 * one, "{other} of {one} octets of instructions: {changes:?}");
        }
    }
}

/// Programs that return no verdict, which the kernel refuses.
fn refused(open: &mut OpenTesterSkel) -> Outcome<()> {
    let mut exit =
        libbpf_sys::bpf_insn { code: (libbpf_sys::BPF_JMP | libbpf_sys::BPF_EXIT) as u8, ..Default::default() };
    for program in open.open_object_mut().progs_mut().filter(|program| program.autoload()) {
        // SAFETY: the program is not loaded, and libbpf copies its instruction.
        let status =
            unsafe { libbpf_sys::bpf_program__set_insns(program.as_libbpf_object().as_ptr(), &raw mut exit, 1) };
        assert_eq!(status, 0);
    }
    Ok(())
}

#[test]
fn where_the_kernel_refuses_changed_programs_those_of_the_compiler_run() {
    let not_made = |_: &mut OpenTesterSkel| Err(Failure::Host("no instructions".into()));
    for prepare in [refused, not_made] {
        let (mut first, mut second) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let compiled = Loaded::as_compiled(&mut first, request(ROUTED));
        let loaded = Loaded::prepared(prepare, &mut second, request(ROUTED));
        assert_eq!(lengths(&loaded), lengths(&compiled));
        assert_eq!(seen(&loaded), seen(&compiled));
    }
}
