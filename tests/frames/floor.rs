// SPDX-License-Identifier: Apache-2.0
//! The redirect floor: a program that only redirects, one that only drops.

use std::mem::MaybeUninit;

use natgauge_engine::plan;
use natgauge_engine::programs::Programs;
use natgauge_engine::shared::{INITIATOR, RESPONDER, SIDES};
use natgauge_engine::table::Table;

use crate::harness::{request, run, DROP, INITIATOR_MACS, REDIRECT, RESPONDER_MACS};

const ABORTED: u32 = 0;
const FRAME: [u8; 60] = [0xee; 60];

/// Verdicts of four frames where only one side's port is there: the other side's frames cannot leave.
fn verdicts(there: usize, sides: [bool; SIDES]) -> [u32; 4] {
    let request = request(&[]);
    let mut place = MaybeUninit::uninit();
    let plan = plan::build(&request, [INITIATOR_MACS, RESPONDER_MACS]);
    let mut programs = Programs::load(&mut place, &plan, &request, true, Table::make(&request).unwrap()).unwrap();
    programs.redirect_to_loopback(&[there]).unwrap();
    programs.switch_to_floor(sides).unwrap();
    [(); 4].map(|()| {
        let (verdict, frame, _) = run(programs.redirector(), &FRAME, 1);
        assert_eq!(frame, FRAME);
        verdict
    })
}

#[test]
fn frames_go_to_the_sides_that_send_in_turn() {
    assert_eq!(verdicts(INITIATOR, [true, true]), [REDIRECT, ABORTED, REDIRECT, ABORTED]);
    assert_eq!(verdicts(RESPONDER, [true, true]), [ABORTED, REDIRECT, ABORTED, REDIRECT]);
    assert_eq!(verdicts(INITIATOR, [true, false]), [REDIRECT; 4]);
    assert_eq!(verdicts(RESPONDER, [false, true]), [REDIRECT; 4]);
    assert_eq!(verdicts(INITIATOR, [false, true]), [ABORTED; 4]);
}

#[test]
fn its_receiver_drops_and_changes_nothing() {
    let request = request(&[]);
    let mut place = MaybeUninit::uninit();
    let plan = plan::build(&request, [INITIATOR_MACS, RESPONDER_MACS]);
    let programs = Programs::load(&mut place, &plan, &request, true, Table::make(&request).unwrap()).unwrap();
    let (verdict, frame, _) = run(programs.empty_receiver(), &FRAME, 1);
    assert_eq!((verdict, frame.as_slice()), (DROP, &FRAME[..]));
}
