// SPDX-License-Identifier: Apache-2.0
//! Frames of several sizes: their shares and order, every octet of each, and what a receiver counts of each.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::{offset_of, MaybeUninit};
use std::net::IpAddr;

use natgauge_engine::shared::{INITIATOR, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER, TAG_OCTETS};
use natgauge_engine::tester::types;

use crate::frame::{self, v4, v6, Udp};
use crate::harness::{flow, request, Loaded, INITIATOR_MACS, NAT64, RESPONDER_MACS};

const MIX: &str = r#"{"size":64,"side":"initiator","frame_sizes":"64:7,594:4,1518:1"}"#;
type Changes<'a> = &'a [(&'a str, &'a str)];

const ROUTER: Changes = &[("/translation", r#"{"source":"unchanged"}"#)];
const STATELESS: Changes = &[("/stateless", "true"), ("/phase1", "null")];
const BACKGROUND: &str = r#"{"n":10,"m":9,
    "initiator_addresses":{"first":"2001:2:0:b1::2","last":"2001:2:0:b1::5"},
    "responder_addresses":{"first":"2001:2:0:b2::2","last":"2001:2:0:b2::2"}}"#;
const OVER_IPV6: Changes = &[
    ("/responder/family", r#""ipv6""#),
    ("/responder/gateway", r#"{"mac":"02:00:00:00:01:02"}"#),
    ("/responder/addresses", r#"{"first":"2001:2:0:1::c613:2","last":"2001:2:0:1::c613:2"}"#),
];

fn frame(size: u32, more: &str) -> String {
    format!(r#"{{"size":{size},"side":"initiator",{more}}}"#)
}

/// Frames of each length, octets with FCS.
fn lengths(frames: &[Vec<u8>]) -> BTreeMap<usize, usize> {
    frames.iter().fold(BTreeMap::new(), |mut found, frame| {
        *found.entry(frame.len() + 4).or_default() += 1;
        found
    })
}

#[test]
fn every_twelve_frames_of_a_mix_of_7_4_and_1_have_exactly_these_shares() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[&[("/frame", MIX)], ROUTER, STATELESS].concat()));
    for (stream, side) in [(PHASE2_INITIATOR, RESPONDER), (PHASE2_RESPONDER, INITIATOR)] {
        let sent = loaded.generate(&[flow(stream, 1200)]);
        for twelve in sent.chunks(12) {
            assert_eq!(lengths(twelve), BTreeMap::from([(64, 7), (594, 4), (1518, 1)]));
        }
        // What a filter on sizes loses is 1 of 12: all of 1518 octets, and no other.
        let before = loaded.programs.received();
        for frame in sent.iter().filter(|frame| frame.len() + 4 < 1518) {
            loaded.receive(side, frame);
        }
        let tally = loaded.programs.received().tally[stream];
        assert_eq!((tally.received - before.tally[stream].received, tally.damaged), (1100, 0));
        assert_eq!(tally.sized[..4], [700, 400, 0, 0]);
    }
}

#[test]
fn the_seed_decides_the_order_and_evenly_spaced_frames_have_all_sizes() {
    let order = |seed: &str| {
        let mut place = MaybeUninit::uninit();
        let changes = [&[("/frame", MIX), ("/seed", seed)], ROUTER, STATELESS].concat();
        let sent = Loaded::new(&mut place, request(&changes)).generate(&[flow(PHASE2_INITIATOR, 1200)]);
        sent.iter().map(Vec::len).collect::<Vec<_>>()
    };
    let first = order("7");
    assert_eq!(first, order("7"));
    assert_ne!(first, order("8"));
    assert_eq!(first.iter().step_by(12).collect::<BTreeSet<_>>().len(), 3);
}

/// A frame of the Initiator's in phase 2 with these addresses and nothing else; `macs`: to and from.
fn addressed(macs: ([u8; 6], [u8; 6]), [source, destination]: [IpAddr; 2], ttl: u8) -> Udp {
    Udp {
        to: macs.0,
        from: macs.1,
        source,
        destination,
        ports: (0, 0),
        mark: 0,
        connection: 0,
        sequence: 0,
        stream: PHASE2_INITIATOR,
        sender: 0,
        sent_ns: 0,
        ttl,
        octets: 0,
    }
}

/// The right frame, from the RFCs alone; only ports and tag are read from the one that was sent.
fn expected(sent: &[u8], header: usize, right: &Udp) -> Udp {
    let two = |at: usize| u16::from_be_bytes([sent[at], sent[at + 1]]);
    let tag = &sent[14 + header + 8..][..TAG_OCTETS as usize];
    let four = |at: usize| u32::from_le_bytes([tag[at], tag[at + 1], tag[at + 2], tag[at + 3]]);
    let mut time = [0_u8; 8];
    time[..5].copy_from_slice(&tag[offset_of!(types::tag, sent_low)..]);
    Udp {
        ports: (two(14 + header), two(14 + header + 2)),
        mark: frame::unsealed_mark(tag),
        connection: four(offset_of!(types::tag, connection)),
        sequence: four(offset_of!(types::tag, sequence)),
        sent_ns: u64::from_le_bytes(time),
        octets: sent.len(),
        ..right.clone()
    }
}

#[test]
fn every_octet_of_each_size_is_as_the_rfcs_say_and_a_translated_one_arrives_20_octets_shorter() {
    let mut place = MaybeUninit::uninit();
    let sizes = frame(84, r#""frame_sizes":"84:2,85:1,1535:1,3412:1""#);
    let loaded = Loaded::new(&mut place, request(&[NAT64, &[("/frame", &sizes), ("/connections", "1")]].concat()));
    let inside = addressed((INITIATOR_MACS.1, INITIATOR_MACS.0), [v6("2001:2::2"), v6("2001:2:0:1::c613:2")], 10);
    let outside = addressed(RESPONDER_MACS, [v4("198.19.0.1"), v4("198.19.0.2")], 10);
    let sent = loaded.generate(&[flow(PHASE2_INITIATOR, 50)]);
    for frame in &sent {
        let right = expected(frame, 40, &inside);
        assert_eq!(frame, &right.build(), "{} octets", frame.len());
        let there = Udp { octets: frame.len() - 20, ..expected(frame, 40, &outside) };
        loaded.receive(RESPONDER, &there.build());
    }
    let up = loaded.programs.received().tally[PHASE2_INITIATOR];
    assert_eq!((up.received, &up.sized[..4]), (50, &[20, 10, 10, 10][..]));
    let down = loaded.generate(&[flow(PHASE2_RESPONDER, 50)]);
    assert_eq!(lengths(&down), BTreeMap::from([(64, 20), (65, 10), (1515, 10), (3392, 10)]));
}

#[test]
fn a_frame_of_another_size_of_the_mix_is_damaged() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[&[("/frame", MIX)], ROUTER, STATELESS].concat()));
    let right = addressed(RESPONDER_MACS, [v4("10.0.0.2"), v4("198.19.0.2")], 9);
    for frame in loaded.generate(&[flow(PHASE2_INITIATOR, 12)]) {
        let other = Udp { octets: if frame.len() == 590 { 60 } else { 590 }, ..expected(&frame, 20, &right) };
        loaded.receive(RESPONDER, &other.build());
        loaded.receive(RESPONDER, &expected(&frame, 20, &right).build());
    }
    let tally = loaded.programs.received().tally[PHASE2_INITIATOR];
    assert_eq!((tally.damaged, tally.received, &tally.sized[..3]), (12, 12, &[7, 4, 1][..]));
}

#[test]
fn every_transport_and_family_and_the_background_has_the_shares_and_arrives() {
    let icmp = frame(64, r#""transport":"icmp","frame_sizes":"64:1,1518:1""#);
    let tcp = frame(88, r#""transport":"tcp","frame_sizes":"88:1,1518:1""#);
    let plain = frame(64, r#""frame_sizes":"64:1,1518:1""#);
    let wide = frame(84, r#""frame_sizes":"84:1,1518:1""#);
    let one = ("/initiator/destination_ports", r#"{"first":7,"last":7}"#);
    let rows: [(&str, &[Changes]); 5] = [
        ("ICMP", &[&[("/frame", &icmp), one], STATELESS]),
        ("TCP", &[&[("/frame", &tcp)]]),
        ("IPv6", &[NAT64, OVER_IPV6, &[("/frame", &wide)], STATELESS]),
        ("background", &[&[("/frame", &plain), ("/background", BACKGROUND)], STATELESS]),
        (
            "all sizes",
            &[&[("/frame", &plain), ("/frame/frame_sizes", r#""64:1,65:1,66:1,67:1,600:1,1518:1,2000:1,3412:1""#)]],
        ),
    ];
    for (name, changes) in rows {
        let mut place = MaybeUninit::uninit();
        let loaded = Loaded::new(&mut place, request(&[&changes.concat(), ROUTER].concat()));
        let sent = loaded.generate(&[flow(PHASE2_INITIATOR, 160)]);
        for frame in &sent {
            loaded.receive(RESPONDER, frame);
        }
        let tally = loaded.programs.received().tally[PHASE2_INITIATOR];
        let each = if name == "all sizes" { vec![20; 8] } else { vec![80, 80, 0, 0, 0, 0, 0, 0] };
        assert_eq!((tally.received, tally.sized.to_vec()), (160, each), "{name}");
        for instructions in loaded.programs.verified_instructions() {
            println!("{instructions:7} instructions verified, {name}");
            assert!(instructions < 500_000, "{instructions}");
        }
    }
}

#[test]
fn phase_1_has_the_mix_only_where_nothing_follows_it_and_each_direction_may_have_its_own() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[("/frame", MIX)]));
    assert_eq!(lengths(&loaded.generate(&[flow(PHASE1, 120)])), BTreeMap::from([(64, 120)]));
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[("/frame", MIX), ("/phase2", "null")]));
    assert_eq!(lengths(&loaded.generate(&[flow(PHASE1, 120)])), BTreeMap::from([(64, 70), (594, 40), (1518, 10)]));
    let mut place = MaybeUninit::uninit();
    let down = frame(100, r#""down_frame_sizes":"594:1,1518:3""#);
    let loaded = Loaded::new(&mut place, request(&[&[("/frame", &down[..])], ROUTER, STATELESS].concat()));
    let of = |stream| lengths(&loaded.generate(&[flow(stream, 120)]));
    assert_eq!(of(PHASE2_INITIATOR), BTreeMap::from([(100, 120)]));
    assert_eq!(of(PHASE2_RESPONDER), BTreeMap::from([(594, 30), (1518, 90)]));
}
