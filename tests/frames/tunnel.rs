// SPDX-License-Identifier: Apache-2.0
//! The tester as customer edges that tunnel IPv4 over IPv6 (MAP-E, lw4o6, DS-Lite), against models of a relay. The models
//! compute addresses with the rule of `sharing`, and write each outer header octet by octet (RFC 2473).

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use natgauge_engine::shared::{INITIATOR, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER};

use crate::customer_edge::{edges, rule, Division, Whole, OF_THE_STANDARD, WITHOUT_OFFSET, WITHOUT_SHARING};
use crate::frame::v4;
use crate::harness::{flow, request, Loaded, INITIATOR_MACS, NAT64, RESPONDER_MACS};

const FRAMES: u64 = 4000;
pub const OUTER: usize = 40;
const OCTETS4: usize = 60;
pub const RELAY: &str = "2001:db8:ffff::1";
const IPV4_IN_IPV6: u8 = 4;

/// `source`: "unchanged" (MAP-E, lw4o6), or "translated" by an AFTR.
fn load<'a>(place: &'a mut MaybeUninit<libbpf_rs::OpenObject>, division: Division, source: &str) -> Loaded<'a> {
    let emulated = edges(division, 100, Some(RELAY));
    let ports = format!(r#"{{"first":1,"last":{}}}"#, division.3);
    let translation = format!(r#"{{"source":"{source}"}}"#);
    let changes = [
        NAT64,
        &[
            ("/initiator/customer_edges", &emulated[..]),
            ("/initiator/source_ports", &ports[..]),
            ("/initiator/destination_addresses", r#"{"first":"198.19.0.2","last":"198.19.0.2"}"#),
            ("/frame", r#"{"size":104,"side":"initiator"}"#),
            ("/translation", &translation[..]),
            ("/connections", "30000"),
        ],
    ];
    let stateless = [("/stateless", "true"), ("/phase1", "null")];
    let more = if source == "unchanged" { &stateless[..] } else { &[("/connections", "1000")] };
    Loaded::new(place, request(&[&changes.concat(), more].concat()))
}

/// The MAP address of the edge with this address and port: its end of the tunnel.
fn tunnel(division: Division, address: IpAddr, port: u16) -> Ipv6Addr {
    let found = rule(division);
    found.address(Whole::four(address), found.sets().psid(port).unwrap()).unwrap()
}

/// The IPv4 frame in a frame of the Initiator, whose outer header is checked.
fn unwrap(division: Division, frame: &[u8]) -> Whole {
    let six = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&frame[at..at + 16]).unwrap());
    assert_eq!(frame.len(), OCTETS4 + OUTER);
    assert_eq!(frame[..14], [&INITIATOR_MACS.1[..], &INITIATOR_MACS.0, &[0x86, 0xdd]].concat());
    assert_eq!(frame[14..20], [0x60, 0, 0, 0, 0, (OCTETS4 - 14) as u8]);
    assert_eq!(frame[20], IPV4_IN_IPV6);
    let inner = [&RESPONDER_MACS.1[..], &RESPONDER_MACS.0, &[8, 0], &frame[54..]].concat();
    let mut whole = Whole::read(&inner);
    assert_eq!(six(22), tunnel(division, whole.udp.source, whole.udp.ports.0), "not the edge's end of the tunnel");
    assert_eq!(six(38), RELAY.parse::<Ipv6Addr>().unwrap());
    (whole.udp.to, whole.udp.from) = RESPONDER_MACS;
    whole
}

/// The frame in a tunnel from the relay.
pub fn wrap(inner: &[u8], from: Ipv6Addr, to: Ipv6Addr) -> Vec<u8> {
    let packet = &inner[14..];
    let length = (packet.len() as u16).to_be_bytes();
    let outer = [&[0x60, 0, 0, 0][..], &length, &[IPV4_IN_IPV6, 64], &from.octets(), &to.octets()].concat();
    [&INITIATOR_MACS.0[..], &INITIATOR_MACS.1, &[0x86, 0xdd], &outer, packet].concat()
}

pub fn relay() -> Ipv6Addr {
    RELAY.parse().unwrap()
}

#[test]
fn every_edge_sends_from_its_own_end_of_the_tunnel_and_all_its_ports() {
    for division in [WITHOUT_OFFSET, OF_THE_STANDARD, WITHOUT_SHARING] {
        let mut place = MaybeUninit::uninit();
        let loaded = load(&mut place, division, "unchanged");
        let (mut edges, mut ports) = (BTreeSet::new(), BTreeSet::new());
        for frame in loaded.generate(&[flow(PHASE2_INITIATOR, FRAMES)]) {
            let mut inner = unwrap(division, &frame);
            inner.udp.ttl = 10;
            assert_eq!(inner.build()[14..], frame[54..], "the inner packet has a wrong checksum");
            edges.insert(tunnel(division, inner.udp.source, inner.udp.ports.0));
            ports.insert(inner.udp.ports.0);
        }
        assert_eq!(edges.len(), 100, "{division:?}");
        assert!(ports.len() > 3000.min(division.3 as usize * 5 / 6), "{division:?}: {} ports", ports.len());
    }
}

#[test]
fn frames_out_of_the_tunnel_are_received_and_leaks_are_mistranslated() {
    let mut place = MaybeUninit::uninit();
    let loaded = load(&mut place, WITHOUT_OFFSET, "unchanged");
    let mut leaks = 0;
    for frame in loaded.generate(&[flow(PHASE2_INITIATOR, FRAMES)]) {
        let mut inner = unwrap(WITHOUT_OFFSET, &frame);
        if inner.udp.ports.0 % 10 == 3 {
            inner.udp.source = Ipv4Addr::from_bits(Whole::four(inner.udp.source).to_bits() + 1).into();
            leaks += 1;
        }
        loaded.receive(RESPONDER, &inner.build());
    }
    let tally = &loaded.programs.received().tally[PHASE2_INITIATOR];
    assert!(leaks > 0);
    assert_eq!([tally.received, tally.mistranslated], [FRAMES - leaks, leaks]);
}

/// A sentence, and the ends of the tunnel of a frame whose right end is this one.
type Ends = (&'static str, fn(Ipv6Addr) -> (Ipv6Addr, Ipv6Addr), bool);

const ENDS: &[Ends] = &[
    ("a relay without faults", |edge| (relay(), edge), true),
    ("into the tunnel of another set of the same address", |edge| (relay(), (edge.to_bits() ^ 1).into()), false),
    ("into the tunnel of another address", |edge| (relay(), (edge.to_bits() ^ 1 << 16).into()), false),
    ("into a tunnel with another prefix", |edge| (relay(), (edge.to_bits() ^ 1 << 66).into()), false),
    ("from another relay", |edge| ((relay().to_bits() ^ 2).into(), edge), false),
];

#[test]
fn frames_towards_the_edges_are_received_only_in_their_own_tunnel() {
    for (sentence, ends, right) in ENDS {
        let mut place = MaybeUninit::uninit();
        let loaded = load(&mut place, WITHOUT_OFFSET, "unchanged");
        for frame in loaded.generate(&[flow(PHASE2_RESPONDER, 200)]) {
            assert_eq!(frame.len(), OCTETS4);
            let inner = Whole::read(&frame).udp;
            let (from, to) = ends(tunnel(WITHOUT_OFFSET, inner.destination, inner.ports.1));
            loaded.receive(INITIATOR, &wrap(&frame, from, to));
        }
        let tally = &loaded.programs.received().tally[PHASE2_RESPONDER];
        let expected = if *right { [200, 0] } else { [0, 200] };
        assert_eq!([tally.received, tally.mistranslated], expected, "{sentence}");
    }
}

#[test]
fn frames_that_stay_in_the_tunnel_or_enter_none_are_untranslated() {
    let mut place = MaybeUninit::uninit();
    let loaded = load(&mut place, WITHOUT_OFFSET, "unchanged");
    for frame in loaded.generate(&[flow(PHASE2_INITIATOR, 20)]) {
        loaded.receive(RESPONDER, &frame);
    }
    for frame in loaded.generate(&[flow(PHASE2_RESPONDER, 20)]) {
        loaded.receive(INITIATOR, &frame);
    }
    let tally = &loaded.programs.received().tally;
    assert_eq!(tally[PHASE2_INITIATOR].untranslated, 20);
    assert_eq!(tally[PHASE2_RESPONDER].untranslated, 20);
}

#[test]
fn a_frame_damaged_in_the_tunnel_is_damaged() {
    let mut place = MaybeUninit::uninit();
    let loaded = load(&mut place, WITHOUT_OFFSET, "unchanged");
    for frame in loaded.generate(&[flow(PHASE2_RESPONDER, 50)]) {
        let inner = Whole::read(&frame).udp;
        let right = wrap(&frame, relay(), tunnel(WITHOUT_OFFSET, inner.destination, inner.ports.1));
        for at in [19, right.len() - 1] {
            let mut wrong = right.clone();
            wrong[at] ^= 1;
            loaded.receive(INITIATOR, &wrong);
        }
    }
    let found = loaded.programs.received();
    assert_eq!(found.tally[PHASE2_RESPONDER].damaged + found.damaged_unmarked[INITIATOR], 100);
}

/// An AFTR gives every connection a port of one address.
#[test]
fn connections_of_an_aftr_are_learned_and_come_back_through_their_own_tunnels() {
    let mut place = MaybeUninit::uninit();
    let loaded = load(&mut place, WITHOUT_SHARING, "translated");
    let outside = v4("198.19.0.1");
    let mut inside = Vec::new();
    for frame in loaded.generate(&[flow(PHASE1, 1000)]) {
        let mut inner = unwrap(WITHOUT_SHARING, &frame);
        let own = (inner.udp.source, inner.udp.ports.0);
        loaded.receive(RESPONDER, &inner.build());
        (inner.udp.source, inner.udp.ports.0) = (outside, 1024 + inside.len() as u16);
        loaded.receive(RESPONDER, &inner.build());
        inside.push(own);
    }
    let found = loaded.programs.received();
    let tally = &found.tally[PHASE1];
    assert_eq!([tally.untranslated, tally.received, found.stored], [1000, 1000, 1000]);
    let mut edges = BTreeSet::new();
    let mut stray = 0;
    for frame in loaded.generate(&[flow(PHASE2_RESPONDER, 500)]) {
        let mut back = Whole::read(&frame);
        assert_eq!(back.udp.destination, outside);
        (back.udp.destination, back.udp.ports.1) = inside[usize::from(back.udp.ports.1) - 1024];
        let own = tunnel(WITHOUT_SHARING, back.udp.destination, back.udp.ports.1);
        edges.insert(own);
        let to = if back.udp.ports.1 % 5 == 0 { Ipv6Addr::from_bits(own.to_bits() ^ 3 << 64) } else { own };
        stray += u64::from(to != own);
        loaded.receive(INITIATOR, &wrap(&back.build(), relay(), to));
    }
    let tally = &loaded.programs.received().tally[PHASE2_RESPONDER];
    assert!(edges.len() > 90 && stray > 0);
    assert_eq!([tally.received, tally.mistranslated], [500 - stray, stray]);
}
