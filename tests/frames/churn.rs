// SPDX-License-Identifier: Apache-2.0
//! Churn: connections that are opened in phase 2 while the oldest leave, through a NAT44 that this file is.

use std::collections::HashMap;
use std::mem::{offset_of, MaybeUninit};

use natgauge_engine::flow::{of_churn, Flow};
use natgauge_engine::programs::Received;
use natgauge_engine::shared::{
    CLOSING, INITIATOR, PHASE1, PHASE2, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER, STREAM_BITS,
};
use natgauge_engine::tester::types;

use crate::frame::ones_complement;
use crate::harness::{flow, request, Loaded, INITIATOR_MACS, REDIRECT, RESPONDER_MACS};

const OPEN: u64 = 3000;
/// 4,000 connections in 2 s, and 20 frames to each that is open then.
const NEW: u64 = 4000;
const FRAMES: u64 = 40_000;
/// Of 20 ms, and one more.
const GUARDED: u64 = 41;
const OUTSIDE: [u8; 4] = [198, 19, 0, 1];
const FIRST_PORT: u16 = 10_000;
/// Of the ports that connections get later.
const SECOND_PORT: u16 = 60_000;

/// What is wrong with a gateway, by the number of the connection in the order of opening, from 0.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The first frame of each 1,000th connection is lost.
    LosesOpenings,
    /// Each 1,000th connection is forgotten at its third frame, which is lost, and never opened again.
    Forgets,
    /// Each 1,000th connection gets another outside port at its third frame.
    Remaps,
}

#[derive(Default)]
struct Connection {
    outside: u16,
    frames: u32,
    forgotten: bool,
    closed: bool,
}

/// A NAT44: addresses and ports inside by the port outside, and what it dropped.
struct Nat {
    fault: Fault,
    tcp: bool,
    inside: HashMap<[u8; 12], Connection>,
    outside: HashMap<u16, [u8; 12]>,
    /// Numbers of the connections.
    seen: HashMap<[u8; 12], usize>,
    dropped: [u64; 2],
    dropped_openings: u64,
}

impl Nat {
    fn new(fault: Fault, tcp: bool) -> Self {
        let (inside, outside) = (HashMap::new(), HashMap::new());
        Self { fault, tcp, inside, outside, seen: HashMap::new(), dropped: [0; 2], dropped_openings: 0 }
    }

    fn faulty(number: usize) -> bool {
        number % 1000 == 999
    }

    fn up(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let tuple: [u8; 12] = frame[26..38].try_into().unwrap();
        let (next, fault) = (self.seen.len(), self.fault);
        let number = *self.seen.entry(tuple).or_insert(next);
        let (first, second) = (FIRST_PORT + number as u16, SECOND_PORT + (number / 1000) as u16);
        let opens = number == next;
        if opens && fault == Fault::LosesOpenings && Self::faulty(number) {
            self.dropped_openings += 1;
            return None;
        }
        self.outside.insert(first, tuple);
        let connection =
            self.inside.entry(tuple).or_insert_with(|| Connection { outside: first, ..Default::default() });
        connection.frames += 1;
        let at_fault = Self::faulty(number) && connection.frames == 3;
        connection.forgotten |= fault == Fault::Forgets && at_fault;
        if connection.forgotten {
            self.dropped[INITIATOR] += 1;
            return None;
        }
        if fault == Fault::Remaps && at_fault {
            connection.outside = second;
            self.outside.insert(second, tuple);
        }
        let outside = connection.outside;
        connection.closed |= self.tcp && frame[47] & 5 != 0;
        let mut out = frame.to_vec();
        out[..6].copy_from_slice(&RESPONDER_MACS.0);
        out[6..12].copy_from_slice(&RESPONDER_MACS.1);
        out[26..30].copy_from_slice(&OUTSIDE);
        out[34..36].copy_from_slice(&outside.to_be_bytes());
        Some(self.checked(out))
    }

    fn down(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let port = u16::from_be_bytes([frame[36], frame[37]]);
        let tuple = *self.outside.get(&port).expect("only outside ports that were used");
        if self.inside[&tuple].forgotten {
            self.dropped[RESPONDER] += 1;
            return None;
        }
        let mut out = frame.to_vec();
        out[..6].copy_from_slice(&INITIATOR_MACS.0);
        out[6..12].copy_from_slice(&INITIATOR_MACS.1);
        out[30..34].copy_from_slice(&tuple[..4]);
        out[36..38].copy_from_slice(&tuple[8..10]);
        Some(self.checked(out))
    }

    /// With the checksums of UDP or TCP in IPv4 computed again.
    fn checked(&self, mut frame: Vec<u8>) -> Vec<u8> {
        let end = 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        let (at, protocol) = if self.tcp { (34 + 16, 6) } else { (34 + 6, 17) };
        for place in [24, at] {
            frame[place..place + 2].fill(0);
        }
        let header = !ones_complement(&frame[14..34]);
        frame[24..26].copy_from_slice(&header.to_be_bytes());
        let length = ((end - 34) as u16).to_be_bytes();
        let pseudo = [&frame[26..34], &[0, protocol], &length, &frame[34..end]].concat();
        let sum = !ones_complement(&pseudo);
        frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        frame
    }
}

/// A trial over the frame programs, frame by frame.
struct Run<'a> {
    loaded: &'a Loaded<'a>,
    nat: Nat,
    skipped: u64,
    /// By stream: frames that schedules sent.
    sent: HashMap<usize, u64>,
}

impl Run<'_> {
    /// Hand a frame on, and all reactions to it.
    fn deliver(&mut self, frame: Vec<u8>) {
        let (mut from, mut frame) = (usize::from(frame[6..12] == RESPONDER_MACS.0), frame);
        loop {
            let passed = if from == INITIATOR { self.nat.up(&frame) } else { self.nat.down(&frame) };
            let Some(passed) = passed else { return };
            let (verdict, out, _) = self.loaded.run(self.loaded.programs.receivers()[1 - from], &passed, 1);
            if verdict != REDIRECT {
                return;
            }
            (frame, from) = (out, 1 - from);
        }
    }

    /// All frames of the flows, in their order; `seen` is called with each that has a tag.
    fn phase(&mut self, flows: &[Flow], mut seen: impl FnMut(usize, u64)) {
        self.loaded.begin(0, 1, flows);
        let total: u64 = flows.iter().map(Flow::intended).sum();
        for _ in 0..total {
            let Some(frame) = self.loaded.next() else {
                self.skipped += 1;
                continue;
            };
            if let Some((stream, connection)) = self.tagged(&frame) {
                *self.sent.entry(stream).or_default() += 1;
                seen(stream, connection);
            }
            self.deliver(frame);
        }
    }

    /// Stream and connection of a frame with a tag.
    fn tagged(&self, frame: &[u8]) -> Option<(usize, u64)> {
        let at = if self.nat.tcp { 34 + 32 } else { 34 + 8 };
        if self.nat.tcp && frame[47] & 7 != 0 {
            return None;
        }
        let kind = frame[at + offset_of!(types::tag, kind)];
        let place = at + offset_of!(types::tag, connection);
        let connection = u32::from_le_bytes(frame[place..place + 4].try_into().unwrap());
        Some((usize::from(kind) & ((1 << STREAM_BITS) - 1), connection.into()))
    }

    fn received(&self, stream: usize) -> u64 {
        self.loaded.programs.received().tally[stream].received
    }
}

fn phase2(transport: &str, leave: &str) -> Vec<(&'static str, String)> {
    let stream = format!(r#"{{"rate":20000.0,"frames":{FRAMES}}}"#);
    let churn = format!(r#"{{"new_per_second":2000.0,"leave":"{leave}","guard_ms":20}}"#);
    vec![
        ("/connections", OPEN.to_string()),
        ("/frame", format!(r#"{{"size":88,"side":"initiator","transport":"{transport}"}}"#)),
        ("/phase2", format!(r#"{{"initiator":{stream},"responder":{stream},"churn":{churn}}}"#)),
    ]
}

fn churned(transport: &str, leave: &str) -> natgauge_engine::request::Request {
    let changes = phase2(transport, leave);
    request(&changes.iter().map(|(place, value)| (*place, value.as_str())).collect::<Vec<_>>())
}

fn flows(loaded: &Loaded) -> Vec<Flow> {
    let data = PHASE2.map(|stream| Flow { rate: 20_000.0, ..flow(stream, FRAMES) });
    data.into_iter().chain(of_churn(&loaded.request)).collect()
}

/// Both phases through a gateway; `check` gets it and the counts of the receivers.
fn through(fault: Fault, transport: &str, leave: &str, check: impl FnOnce(&Run, &Received)) {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, churned(transport, leave));
    let verified = loaded.programs.verified_instructions();
    assert!(verified.iter().all(|&followed| followed < 400_000), "{transport} {leave}: {verified:?}");
    let nat = Nat::new(fault, transport == "tcp");
    let mut run = Run { loaded: &loaded, nat, skipped: 0, sent: HashMap::new() };
    run.phase(&[flow(PHASE1, OPEN)], |_, _| ());
    let first = if fault == Fault::LosesOpenings { OPEN - OPEN / 1000 } else { OPEN };
    assert_eq!(run.received(PHASE1), first);
    let mut opened = OPEN;
    let flows = flows(&loaded);
    run.phase(&flows, |stream, connection| match stream {
        PHASE1 => {
            assert_eq!(connection, opened, "connections are opened in the order of their numbers");
            opened += 1;
        }
        // TCP's openings have no tag; the test of UDP shows the order.
        _ if transport == "udp" => {
            let oldest = opened - OPEN;
            let young = opened - connection;
            assert!(young > GUARDED - 2 && connection >= oldest + GUARDED - 2, "{connection} of {oldest} to {opened}");
        }
        _ => (),
    });
    check(&run, &loaded.programs.received());
}

#[test]
fn every_opening_and_every_frame_of_an_open_connection_arrives() {
    through(Fault::None, "udp", "silent", |run, counts| {
        assert_eq!((run.received(PHASE1), run.skipped), (OPEN + NEW, 0));
        assert_eq!(PHASE2.map(|stream| run.received(stream)), [FRAMES; 2]);
        assert_eq!((counts.stored, counts.remapped), (OPEN + NEW, 0));
        assert_eq!(run.nat.inside.len() as u64, OPEN + NEW);
    });
}

#[test]
fn tcp_connections_are_opened_used_and_closed() {
    for leave in ["fin", "reset"] {
        through(Fault::None, "tcp", leave, |run, counts| {
            assert_eq!((run.received(PHASE1), run.received(CLOSING), run.skipped), (OPEN + NEW, NEW, 0), "{leave}");
            assert_eq!(PHASE2.map(|stream| run.received(stream)), [FRAMES; 2], "{leave}");
            assert_eq!((counts.stored, counts.remapped), (OPEN + NEW, 0), "{leave}");
            let left = run.nat.inside.values().filter(|connection| connection.closed).count() as u64;
            assert_eq!(left, NEW, "{leave}");
        });
    }
}

#[test]
fn lost_openings_are_counted_and_so_are_the_frames_down_that_they_prevent() {
    for (transport, leave) in [("udp", "silent"), ("tcp", "fin")] {
        through(Fault::LosesOpenings, transport, leave, |run, counts| {
            let lost = (OPEN + NEW) / 1000;
            assert_eq!((run.nat.dropped_openings, run.received(PHASE1)), (lost, OPEN + NEW - lost), "{transport}");
            assert_eq!(counts.stored, OPEN + NEW - lost, "{transport}");
            assert_eq!(run.received(PHASE2_RESPONDER), run.sent[&PHASE2_RESPONDER], "{transport}");
            assert_eq!(run.sent[&PHASE2_RESPONDER] + run.skipped, FRAMES, "{transport}");
            assert!(run.skipped > 0, "{transport}");
            // A frame up opens the connection of UDP after all; its outside port is learned from openings alone.
            assert_eq!(run.received(PHASE2_INITIATOR), FRAMES, "{transport}");
        });
    }
}

#[test]
fn frames_down_of_unopened_connections_are_those_that_they_would_have_had() {
    let mut whole = HashMap::new();
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, churned("udp", "silent"));
    let mut run = Run { loaded: &loaded, nat: Nat::new(Fault::None, false), skipped: 0, sent: HashMap::new() };
    run.phase(&[flow(PHASE1, OPEN)], |_, _| ());
    let flows = flows(&loaded);
    run.phase(&flows, |stream, connection| {
        if stream == PHASE2_RESPONDER {
            *whole.entry(connection).or_insert(0_u64) += 1;
        }
    });
    let wanted: u64 =
        (0..OPEN + NEW).filter(|number| number % 1000 == 999).map(|it| whole.get(&it).unwrap_or(&0)).sum();
    through(Fault::LosesOpenings, "udp", "silent", |run, _| assert_eq!(run.skipped, wanted));
}

#[test]
fn a_gateway_that_forgets_one_open_connection_in_a_thousand_is_found() {
    through(Fault::Forgets, "udp", "silent", |run, counts| {
        let dropped = run.nat.dropped;
        assert!(dropped.iter().all(|&frames| frames > 0), "{dropped:?}");
        let lost = [PHASE2_INITIATOR, PHASE2_RESPONDER].map(|stream| FRAMES - run.received(stream));
        assert_eq!((lost, run.skipped), (dropped, 0));
        assert_eq!((run.received(PHASE1), counts.stored), (OPEN + NEW, OPEN + NEW));
    });
    through(Fault::Remaps, "udp", "silent", |run, counts| {
        let remapped = run.nat.inside.values().filter(|connection| connection.outside >= SECOND_PORT).count();
        assert!(remapped > 0);
        assert_eq!(counts.remapped, remapped as u64);
        assert_eq!(PHASE2.map(|stream| run.received(stream)), [FRAMES; 2]);
    });
}

#[test]
fn a_flood_is_of_one_host_counted_apart_and_no_matter_to_the_others() {
    const FLOOD: u64 = 6000;
    let mut place = MaybeUninit::uninit();
    let stream = format!(r#"{{"rate":20000.0,"frames":{FRAMES}}}"#);
    let churn = r#"{"new_per_second":2000.0,"leave":"silent","guard_ms":20,"flood_per_second":3000.0}"#;
    let flooded = format!(r#"{{"initiator":{stream},"responder":{stream},"churn":{churn}}}"#);
    let mut changes = phase2("udp", "silent");
    changes.push(("/phase2", flooded));
    let changes: Vec<_> = changes.iter().map(|(place, value)| (*place, value.as_str())).collect();
    let loaded = Loaded::new(&mut place, request(&changes));
    let verified = loaded.programs.verified_instructions();
    assert!(verified.iter().all(|&followed| followed < 400_000), "{verified:?}");
    let mut run = Run { loaded: &loaded, nat: Nat::new(Fault::None, false), skipped: 0, sent: HashMap::new() };
    run.phase(&[flow(PHASE1, OPEN)], |_, _| ());
    let flows = flows(&loaded);
    assert_eq!(flows.iter().find(|flow| flow.stream == CLOSING).map(|flow| flow.frames), Some(FLOOD));
    run.phase(&flows, |_, _| ());
    assert_eq!((run.received(PHASE1), run.received(CLOSING), run.skipped), (OPEN + NEW, FLOOD, 0));
    assert_eq!(PHASE2.map(|stream| run.received(stream)), [FRAMES; 2]);
    let counts = loaded.programs.received();
    assert_eq!((counts.stored, counts.remapped, counts.foreign), (OPEN + NEW, 0, [0; 2]));
    let mut hosts: HashMap<[u8; 4], u64> = HashMap::new();
    for tuple in run.nat.inside.keys() {
        *hosts.entry(tuple[..4].try_into().unwrap()).or_default() += 1;
    }
    let others = loaded.request.initiator.source_addresses.count();
    let std::net::IpAddr::V4(last) = loaded.request.initiator.source_addresses.last else { panic!("IPv4") };
    let host = (u32::from(last) + 1).to_be_bytes();
    assert_eq!((hosts.remove(&host), hosts.len() as u64), (Some(FLOOD), others));
    assert_eq!(hosts.values().sum::<u64>(), OPEN + NEW);
}

#[test]
fn several_senders_open_each_connection_once() {
    let mut place = MaybeUninit::uninit();
    let cpus = r#"{"cpus":[0,1,2]}"#;
    let mut changes = phase2("udp", "silent");
    changes.push(("/senders", cpus.into()));
    let changes: Vec<_> = changes.iter().map(|(place, value)| (*place, value.as_str())).collect();
    let loaded = Loaded::new(&mut place, request(&changes));
    let mut run = Run { loaded: &loaded, nat: Nat::new(Fault::None, false), skipped: 0, sent: HashMap::new() };
    let mut opened = Vec::new();
    for flows in [vec![flow(PHASE1, OPEN)], of_churn(&loaded.request)] {
        for number in 0..3 {
            loaded.begin(number, 3, &flows);
            let total: u64 = flows.iter().map(Flow::intended).sum();
            let share = total / 3 + u64::from((number as u64) < total % 3);
            for _ in 0..share {
                let frame = loaded.next().unwrap();
                opened.push(run.tagged(&frame).unwrap().1);
                run.deliver(frame);
            }
        }
    }
    opened.sort_unstable();
    assert!(opened.iter().copied().eq(0..OPEN + NEW));
    assert_eq!(run.received(PHASE1), OPEN + NEW);
}
