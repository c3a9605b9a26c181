// SPDX-License-Identifier: Apache-2.0
//! Native IPv6 beside the frames under test: which frames it is made of, and that both ends know it.

use std::mem::MaybeUninit;

use natgauge_engine::shared::{INITIATOR, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER};

use crate::customer_edge::{edges, OF_THE_STANDARD};
use crate::harness::{flow, request, Loaded, DROP, NAT64, REDIRECT};
use crate::tunnel::RELAY;

pub const BACKGROUND: &str = r#"{"n":10,"m":9,
    "initiator_addresses":{"first":"2001:2:0:b1::2","last":"2001:2:0:b1::5"},
    "responder_addresses":{"first":"2001:2:0:b2::2","last":"2001:2:0:b2::2"}}"#;

fn is_background(frame: &[u8]) -> bool {
    frame[12..14] == [0x86, 0xdd] && frame[22..30] == [0x20, 1, 0, 2, 0, 0, 0, 0xb1]
}

#[test]
fn frame_i_is_foreground_when_i_modulo_n_is_below_m() {
    for family in [&[][..], NAT64] {
        let mut place = MaybeUninit::uninit();
        let loaded = Loaded::new(&mut place, request(&[family, &[("/background", BACKGROUND)]].concat()));
        let phase2 = flow(PHASE2_INITIATOR, 60);
        let sent = loaded.generate(&[phase2]);
        let native: Vec<_> = (0..60).filter(|&at| is_background(&sent[at])).collect();
        assert_eq!(native, [9, 19, 29, 39, 49, 59]);
        assert!(native.iter().all(|&at| sent[at].len() == 80), "84 octets with FCS, as the other frames over IPv6");
        let hosts: std::collections::HashSet<_> = native.iter().map(|&at| sent[at][37]).collect();
        assert!(hosts.len() > 1 && hosts.iter().all(|host| (2..=5).contains(host)), "{hosts:?}");
        let phase1 = loaded.generate(&[flow(PHASE1, 60)]);
        assert!(!phase1.iter().any(|frame| is_background(frame)), "phase 1 opens connections, nothing else");
    }
}

#[test]
fn background_frames_arrive_as_they_were_sent_and_open_no_connection() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[("/background", BACKGROUND)]));
    let sent = loaded.generate(&[flow(PHASE2_INITIATOR, 20)]);
    let (verdict, _, after) = loaded.receive(RESPONDER, &sent[9]);
    assert_eq!((verdict, after.stored), (DROP, 0));
    assert_eq!((after.tally[PHASE2_INITIATOR].received, after.tally[PHASE2_INITIATOR].background), (1, 1));
    // Another host's address, with the checksum made right again: two words are exchanged.
    let mut astray = sent[19].clone();
    astray.swap(22, 24);
    astray.swap(23, 25);
    let (_, _, after) = loaded.receive(RESPONDER, &astray);
    assert_eq!((after.tally[PHASE2_INITIATOR].mistranslated, after.tally[PHASE2_INITIATOR].received), (1, 1));
}

#[test]
fn the_responder_sends_its_share_of_the_background_too() {
    let mut place = MaybeUninit::uninit();
    let stateless = [("/stateless", "true"), ("/phase1", "null"), ("/translation", r#"{"source":"unchanged"}"#)];
    let loaded = Loaded::new(&mut place, request(&[&stateless[..], &[("/background", BACKGROUND)]].concat()));
    let sent = loaded.generate(&[flow(PHASE2_RESPONDER, 10)]);
    let (_, _, before) = loaded.receive(INITIATOR, &sent[8]);
    assert_eq!((before.tally[PHASE2_RESPONDER].received, before.tally[PHASE2_RESPONDER].background), (1, 0));
    let (_, _, after) = loaded.receive(INITIATOR, &sent[9]);
    assert_eq!((after.tally[PHASE2_RESPONDER].received, after.tally[PHASE2_RESPONDER].background), (2, 1));
}

#[test]
fn damaged_background_frames_and_errors_about_them_are_no_other_traffic() {
    for family in [&[][..], NAT64] {
        let mut place = MaybeUninit::uninit();
        let loaded = Loaded::new(&mut place, request(&[family, &[("/background", BACKGROUND)]].concat()));
        let sent = loaded.generate(&[flow(PHASE2_INITIATOR, 20)]);
        let mut damaged = sent[9].clone();
        damaged[14 + 40 + 8] ^= 1; // the mark
        let (_, _, after) = loaded.receive(RESPONDER, &damaged);
        assert_eq!((after.damaged_unmarked[RESPONDER], after.foreign[RESPONDER]), (1, 0));
        // Packet too big (RFC 4443 section 3.2), from the Responder's gateway to the host that sent what it quotes.
        let quoted = [&sent[9][14..22], &sent[9][38..54], &sent[9][22..38], &sent[9][54..62]].concat();
        let icmp = [&[2, 0, 0, 0, 0, 0, 5, 0][..], &quoted].concat();
        let mut error = [&sent[9][..12], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, icmp.len() as u8, 58, 64]].concat();
        error.extend([&sent[9][22..38], &sent[9][38..54], &icmp].concat());
        let (_, _, after) = loaded.receive(RESPONDER, &error);
        assert_eq!((after.odd[RESPONDER][4].too_big, after.foreign[RESPONDER]), (1, 0));
    }
}

#[test]
fn neighbours_of_the_background_are_answered() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[("/background", BACKGROUND)]));
    let host = "2001:2:0:b2::2".parse::<std::net::Ipv6Addr>().unwrap().octets();
    let asker = "fe80::1".parse::<std::net::Ipv6Addr>().unwrap().octets();
    let icmp = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &host, &[1, 1, 2, 0, 0, 0, 1, 2]].concat();
    let mut frame = [&[0x33, 0x33, 0xff, 0, 0, 2][..], &[2, 0, 0, 0, 1, 2], &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
    frame.extend([0, icmp.len() as u8, 58, 255]);
    frame.extend([&asker[..], &host, &icmp].concat());
    let (verdict, _, after) = loaded.receive(RESPONDER, &frame);
    assert_eq!((verdict, after.neighbour_replies[RESPONDER]), (REDIRECT, 1));
}

/// The kernel refused the receivers of most of these once: it takes a frame for one of the background and for none.
#[test]
fn frames_arrive_beside_those_of_customer_edges_whether_emulated_or_under_test() {
    const STATELESS: &[(&str, &str)] = &[("/stateless", "true"), ("/phase1", "null")];
    const LONG: &[(&str, &str)] = &[("/frame", r#"{"size":104,"side":"initiator"}"#)];
    let source = |found| [("/translation", found)];
    let (unchanged, translated) = (source(r#"{"source":"unchanged"}"#), source(r#"{"source":"translated"}"#));
    let [translating, tunnelling] = [None, Some(RELAY)].map(|relay| edges(OF_THE_STANDARD, 100, relay));
    let ports = format!(r#"{{"first":1,"last":{}}}"#, OF_THE_STANDARD.3);
    let [emulated, tunnelled] = [&translating, &tunnelling]
        .map(|own| [("/initiator/customer_edges", &own[..]), ("/initiator/source_ports", &ports[..])]);
    let outside = [("/initiator/destination_addresses", r#"{"first":"198.19.0.2","last":"198.19.0.2"}"#)];
    let hosts = r#"{"first":"10.0.0.2","last":"10.0.0.101"}"#;
    let under_test = [("/responder/customer_edges", &translating[..]), ("/initiator/source_addresses", hosts)];
    let forms: [&[&[(&str, &str)]]; 4] = [
        &[NAT64, &emulated, &unchanged, STATELESS],
        &[NAT64, &tunnelled, &outside, &unchanged, STATELESS, LONG],
        &[NAT64, &tunnelled, &outside, &translated, LONG],
        &[&under_test, &translated],
    ];
    for changes in forms {
        let mut place = MaybeUninit::uninit();
        let loaded =
            Loaded::new(&mut place, request(&[&changes.concat()[..], &[("/background", BACKGROUND)]].concat()));
        let sent = loaded.generate(&[flow(PHASE2_INITIATOR, 10)]);
        let (_, _, after) = loaded.receive(RESPONDER, &sent[9]);
        let tally = &after.tally[PHASE2_INITIATOR];
        assert_eq!((tally.received, tally.background), (1, 1), "{changes:?}");
    }
}
