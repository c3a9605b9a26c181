// SPDX-License-Identifier: Apache-2.0
//! What is sent.

use std::collections::HashSet;
use std::mem::{offset_of, MaybeUninit};
use std::net::IpAddr;

use natgauge_engine::flow::Flow;
use natgauge_engine::shared::{PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER, TAG_OCTETS};
use natgauge_engine::tester::types;

use crate::frame::{self, v4, v6, Udp};
use crate::harness::{flow, request, Loaded, INITIATOR_MACS, NAT64, RESPONDER_MACS};

const FIRST: Flow = flow(PHASE1, 1000);

fn ports(frame: &[u8], header: usize) -> (u16, u16) {
    let at = 14 + header;
    let two = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    (two(at), two(at + 2))
}

/// The Initiator's frames arrive behind a NAT that chooses the source.
fn outside_mark(loaded: &Loaded, frame: &[u8], header: usize) -> u32 {
    frame::mark(&loaded.keys, None, (v4("198.19.0.2"), ports(frame, header).1))
}

/// The Responder's frames arrive with what the Initiator wrote, the other way round.
fn inside_mark(loaded: &Loaded, first: &[u8], header: usize, initiator: IpAddr, responder: IpAddr) -> u32 {
    let (source, destination) = ports(first, header);
    frame::mark(&loaded.keys, Some((responder, destination)), (initiator, source))
}

/// The sending time is the clock's; everything else is known.
fn expected(frame: &[u8], header: usize, mut udp: Udp) -> Vec<u8> {
    let tag = &frame[14 + header + 8..];
    let mut time = [0_u8; 8];
    time[..5].copy_from_slice(&tag[offset_of!(types::tag, sent_low)..TAG_OCTETS as usize]);
    udp.sent_ns = u64::from_le_bytes(time);
    udp.ports = ports(frame, header);
    udp.build()
}

fn initiator4(connection: u32) -> Udp {
    Udp {
        to: INITIATOR_MACS.1,
        from: INITIATOR_MACS.0,
        source: v4("10.0.0.2"),
        destination: v4("198.19.0.2"),
        ports: (0, 0),
        mark: 0,
        connection,
        sequence: connection,
        stream: PHASE1,
        sender: 0,
        sent_ns: 0,
        ttl: 10,
        octets: 60,
    }
}

fn mark() -> (&'static str, &'static str) {
    ("/mark", "305419896")
}

#[test]
fn every_octet_of_an_ipv4_frame_is_as_the_rfcs_say() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[mark()]));
    for (connection, frame) in loaded.generate(&[FIRST]).iter().enumerate() {
        let udp = Udp { mark: outside_mark(&loaded, frame, 20), ..initiator4(connection as u32) };
        assert_eq!(frame, &expected(frame, 20, udp), "connection {connection}");
    }
}

#[test]
fn every_octet_of_an_ipv6_frame_is_as_the_rfcs_say() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(NAT64));
    for (connection, frame) in loaded.generate(&[FIRST]).iter().enumerate() {
        let mut udp = initiator4(connection as u32);
        udp.source = v6("2001:2::2");
        udp.destination = v6("2001:2:0:1::c613:2");
        udp.octets = 80;
        udp.mark = outside_mark(&loaded, frame, 40);
        assert_eq!(frame, &expected(frame, 40, udp), "connection {connection}");
    }
}

#[test]
fn the_shorter_side_of_a_nat64_gets_shorter_frames() {
    let mut place = MaybeUninit::uninit();
    let once = r#"{"rate":1000000.0,"frames":1,"reading_order":"once"}"#;
    let changes = [NAT64, &[("/connections", "1"), ("/phase2/responder", once)]].concat();
    let loaded = Loaded::new(&mut place, request(&changes));
    let inside = loaded.generate(&[Flow { frames: 1, ..FIRST }]).remove(0);
    let seen = Udp {
        source: v4("198.19.0.1"),
        ports: (4242, ports(&inside, 40).1),
        mark: outside_mark(&loaded, &inside, 40),
        ..initiator4(0)
    };
    loaded.receive(RESPONDER, &seen.build());
    let back = loaded.generate(&[flow(PHASE2_RESPONDER, 1)]).remove(0);
    let udp = Udp {
        to: RESPONDER_MACS.1,
        from: RESPONDER_MACS.0,
        source: v4("198.19.0.2"),
        destination: v4("198.19.0.1"),
        stream: PHASE2_RESPONDER,
        mark: inside_mark(&loaded, &inside, 40, v6("2001:2::2"), v6("2001:2:0:1::c613:2")),
        ..initiator4(0)
    };
    assert_eq!(back, expected(&back, 20, udp));
    assert_eq!((back.len(), ports(&back, 20).1), (60, 4242));
}

#[test]
fn long_frames_carry_counting_octets_with_right_checksums() {
    for size in [65, 66, 67, 68, 127, 512, 1518, 3412] {
        let mut place = MaybeUninit::uninit();
        let size_text = format!(r#"{{"size":{size},"side":"initiator"}}"#);
        let loaded = Loaded::new(&mut place, request(&[("/frame", &size_text)]));
        for (connection, frame) in loaded.generate(&[Flow { frames: 10, ..FIRST }]).iter().enumerate() {
            let mark = outside_mark(&loaded, frame, 20);
            let udp = Udp { octets: size - 4, mark, ..initiator4(connection as u32) };
            assert_eq!(frame, &expected(frame, 20, udp), "{size} octets");
        }
    }
}

#[test]
fn a_period_continues_with_the_connections_after_those_of_the_period_before() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[]));
    let period = |first, frames| loaded.generate(&[Flow { first, ..flow(PHASE2_INITIATOR, frames) }]);
    let tuples = |frames: &[Vec<u8>]| frames.iter().map(|frame| frame[26..38].to_vec()).collect::<Vec<_>>();
    let (whole, one, two) = (period(0, 20), period(0, 10), period(10, 10));
    assert_eq!(tuples(&whole), [tuples(&one), tuples(&two)].concat());
    assert_ne!(tuples(&one), tuples(&two));
}

#[test]
fn senders_take_the_frames_in_turn_wherever_their_schedules_begin() {
    let mut place = MaybeUninit::uninit();
    for order in ["permutation", "decreasing", "with-replacement"].map(|order| format!("{order:?}")) {
        let loaded =
            Loaded::new(&mut place, request(&[("/order", &order), ("/stateless", "true"), ("/phase1", "null")]));
        for stream in [PHASE2_INITIATOR, PHASE2_RESPONDER] {
            let sent = |number, senders, first, frames| {
                loaded.begin(number, senders, &[Flow { first, ..flow(stream, frames) }]);
                let frames = (0..frames / senders as u64).map(|_| loaded.next().unwrap()[26..38].to_vec());
                frames.collect::<Vec<_>>()
            };
            let whole = sent(0, 1, 0, 300);
            for (number, first) in [(0, 0), (1, 5), (2, 33)] {
                let one = sent(number, 3, first, 3 * 60);
                let expected = (first as usize..first as usize + 60).map(|at| whole[3 * at + number].clone());
                assert_eq!(one, expected.collect::<Vec<_>>(), "{order} {stream} {number}");
            }
        }
    }
}

fn tuples(order: &str, seed: u64, sources: &str, frames: u64) -> Vec<(Vec<u8>, (u16, u16))> {
    let mut place = MaybeUninit::uninit();
    let seed = seed.to_string();
    let connections = frames.to_string();
    let loaded = Loaded::new(
        &mut place,
        request(&[
            ("/order", &format!("{order:?}")),
            ("/seed", &seed),
            ("/connections", &connections),
            ("/initiator/source_addresses", sources),
            ("/initiator/source_ports", r#"{"first":1024,"last":1033}"#),
            ("/initiator/destination_addresses", r#"{"first":"198.19.0.2","last":"198.19.0.5"}"#),
            ("/responder/addresses", r#"{"first":"198.19.0.2","last":"198.19.0.5"}"#),
            ("/initiator/destination_ports", r#"{"first":1,"last":5}"#),
        ]),
    );
    let flow = Flow { frames, ..FIRST };
    loaded.generate(&[flow]).iter().map(|frame| (frame[26..34].to_vec(), ports(frame, 20))).collect()
}

const THREE: &str = r#"{"first":"10.0.0.2","last":"10.0.0.4"}"#;

#[test]
fn each_four_tuple_of_the_whole_space_comes_exactly_once() {
    for order in ["permutation", "increasing", "decreasing"] {
        let all = tuples(order, 3, THREE, 600);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 600, "{order}");
        for (addresses, (source, destination)) in &all {
            assert!((2..=4).contains(&addresses[3]) && (2..=5).contains(&addresses[7]), "{addresses:?}");
            assert!((1024..=1033).contains(source) && (1..=5).contains(destination));
        }
    }
}

#[test]
fn increasing_is_the_reverse_of_decreasing_and_permutation_is_neither() {
    let increasing = tuples("increasing", 1, THREE, 600);
    let mut decreasing = tuples("decreasing", 1, THREE, 600);
    decreasing.reverse();
    assert_eq!(increasing, decreasing);
    assert_eq!(increasing[0].1, (1024, 1));
    let permuted = tuples("permutation", 1, THREE, 600);
    let same = permuted.iter().zip(&increasing).filter(|(a, b)| a == b).count();
    assert!(same < 20, "{same} of 600 stand where they stood");
}

#[test]
fn the_first_n_of_a_larger_space_are_the_same_whatever_n() {
    assert_eq!(tuples("permutation", 5, THREE, 100)[..], tuples("permutation", 5, THREE, 600)[..100]);
}

#[test]
fn same_seed_same_frames_other_seed_other_frames() {
    assert_eq!(tuples("permutation", 9, THREE, 300), tuples("permutation", 9, THREE, 300));
    assert_ne!(tuples("permutation", 9, THREE, 300), tuples("permutation", 10, THREE, 300));
}

#[test]
fn drawing_with_replacement_leaves_about_a_third_of_the_tuples_out() {
    // 1 - 1/e of 600 is 379; the standard deviation is below 10.
    let distinct = tuples("with-replacement", 1, THREE, 600).into_iter().collect::<HashSet<_>>().len();
    assert!((330..430).contains(&distinct), "{distinct}");
}

#[test]
fn more_draws_than_four_tuples_leave_few_of_them_out() {
    // e^-10 of 600 four tuples is 0.03.
    let distinct = tuples("with-replacement", 1, THREE, 6000).into_iter().collect::<HashSet<_>>().len();
    assert!((598..=600).contains(&distinct), "{distinct}");
}

#[test]
fn the_responder_sends_only_what_it_learned_each_once_when_asked() {
    let mut place = MaybeUninit::uninit();
    let once = r#"{"rate":1000000.0,"frames":1000,"reading_order":"once"}"#;
    let loaded = Loaded::new(&mut place, request(&[("/phase2/responder", once)]));
    let first = loaded.generate(&[FIRST]);
    for (connection, frame) in first.iter().enumerate() {
        let (_, destination) = ports(frame, 20);
        let seen = Udp {
            source: v4("198.19.0.1"),
            ports: (20_000 + connection as u16, destination),
            mark: outside_mark(&loaded, frame, 20),
            ..initiator4(connection as u32)
        };
        loaded.receive(RESPONDER, &seen.build());
    }
    let sent = loaded.generate(&[flow(PHASE2_RESPONDER, 1000)]);
    let mut used = HashSet::new();
    for (turn, frame) in sent.iter().enumerate() {
        let at = 14 + 20 + 8 + offset_of!(types::tag, connection);
        let connection = u32::from_le_bytes(frame[at..at + 4].try_into().unwrap());
        let udp = Udp {
            to: RESPONDER_MACS.1,
            from: RESPONDER_MACS.0,
            source: v4("198.19.0.2"),
            destination: v4("198.19.0.1"),
            sequence: turn as u32,
            stream: PHASE2_RESPONDER,
            mark: inside_mark(&loaded, &first[connection as usize], 20, v4("10.0.0.2"), v4("198.19.0.2")),
            ..initiator4(connection)
        };
        assert_eq!(frame, &expected(frame, 20, udp));
        assert_eq!(ports(frame, 20).1, 20_000 + connection as u16);
        used.insert(connection);
    }
    assert_eq!(used.len(), 1000);
}

#[test]
fn a_thread_that_comes_late_to_its_schedule_stood_still_until_then() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[]));
    // The harness lets every schedule have begun a second ago.
    loaded.generate(&[Flow { frames: 1, ..FIRST }]);
    let sender = loaded.programs.senders()[0];
    assert_eq!(sender.stalls, 1);
    assert!((1_000_000_000..60_000_000_000).contains(&sender.worst_stall_ns), "{}", sender.worst_stall_ns);
}

#[test]
fn a_phase_is_settled_a_whole_batch_behind_its_last_frame() {
    const FRAMES: u64 = 10;
    for batch in [1, 7, 64] {
        let mut place = MaybeUninit::uninit();
        let senders = format!(r#"{{"cpus":[0],"batch":{batch}}}"#);
        let loaded = Loaded::new(&mut place, request(&[("/senders", &senders)]));
        loaded.generate(&[Flow { frames: FRAMES, ..FIRST }]);
        let sender = || loaded.programs.senders()[0];
        let idle = || loaded.run(loaded.programs.generator(), &[0; 60], 1);
        for turn in 1..batch {
            idle();
            assert!(!loaded.programs.control.done(0) && sender().settled_ns == 0, "turn {turn} of {batch}");
        }
        idle();
        let last = sender().schedule[0].last_ns;
        assert!(loaded.programs.control.done(0) && sender().settled_ns >= last && last > 0, "batch {batch}");
    }
}
