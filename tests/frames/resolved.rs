// SPDX-License-Identifier: Apache-2.0
//! Queries that the device answers itself: names that are asked for again, names with an AAAA record of their own, and
//! answers with more than the one record.

use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use natgauge_engine::programs::Received;
use natgauge_engine::shared::{INITIATOR, PHASE1, PHASE2_INITIATOR, RESPONDER};

use crate::frame::Udp;
use crate::harness::{flow, request, Loaded, DROP, IPV6, PASS};
use crate::receiver::risen;

const NAMES: usize = 10;
const QUERIES: usize = 400;
/// Where a message has what.
const LABEL: std::ops::Range<usize> = 13..49;
const PARENT: std::ops::Range<usize> = 50..58;

const MADE: [u8; 16] = [0x20, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0xc6, 0x12, 0, 0x35];
const OWN: [u8; 16] = [0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x53];

/// A trial with a server as device, whose names and queries have these shares (JSON members).
fn resolving<'a>(
    place: &'a mut MaybeUninit<libbpf_rs::OpenObject>,
    families: &[(&str, &str)],
    shares: &str,
    more: &[(&str, &str)],
) -> Loaded<'a> {
    let size = if families.is_empty() { 114 } else { 134 };
    let frame = format!(
        r#"{{"size":{size},"side":"initiator","query":"aaaa","resolved":true,"answer":"2001:2:0:1::c612:35"{shares}}}"#
    );
    let phase1 = if shares.contains("cached") { None } else { Some(("/phase1", "null")) };
    let own = [
        ("/frame", frame.as_str()),
        ("/stateless", "true"),
        ("/translation", r#"{"source":"unchanged"}"#),
        ("/phase2/responder", "null"),
        ("/connections", "10"),
    ];
    Loaded::new(place, request(&[families, &own, phase1.as_slice(), more].concat()))
}

/// Addresses, ports and message of a frame.
fn read(frame: &[u8]) -> (Udp, Vec<u8>) {
    let address = |at: usize, octets: usize| match octets {
        4 => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(&frame[at..at + 4]).unwrap())),
        _ => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&frame[at..at + 16]).unwrap())),
    };
    let (first, octets, header) = if frame[12] == 8 { (26, 4, 20) } else { (22, 16, 40) };
    let two = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let udp = Udp {
        to: frame[..6].try_into().unwrap(),
        from: frame[6..12].try_into().unwrap(),
        source: address(first, octets),
        destination: address(first + octets, octets),
        ports: (two(14 + header), two(14 + header + 2)),
        mark: 0,
        connection: 0,
        sequence: 0,
        stream: PHASE1,
        sender: 0,
        sent_ns: 0,
        ttl: 10,
        octets: 0,
    };
    (udp, frame[14 + header + 8..].to_vec())
}

/// What the server sends back: the message with `address` and `more` after it, in `additional` records.
fn answered(query: &[u8], address: [u8; 16], additional: u8, more: &[u8]) -> Vec<u8> {
    let (asked, mut message) = read(query);
    (message[2], message[3], message[7], message[11]) = (0x81, 0x80, 1, additional);
    message.extend([0xc0, 12, 0, 28, 0, 1, 0, 0, 1, 44, 0, 16]);
    message.extend(address);
    message.extend(more);
    let reply = Udp {
        to: asked.from,
        from: asked.to,
        source: asked.destination,
        destination: asked.source,
        ports: (asked.ports.1, asked.ports.0),
        ..asked
    };
    reply.with(&message)
}

/// The right answer by the name's parent.
fn right(query: &[u8]) -> [u8; 16] {
    if read(query).1[PARENT] == *b"withaaaa" {
        OWN
    } else {
        MADE
    }
}

fn name(frame: &[u8]) -> Vec<u8> {
    read(frame).1[LABEL].to_ascii_lowercase()
}

/// Frames of phase 1 and phase 2, each with its octets checked but those of the name.
fn asked(loaded: &Loaded) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let first = loaded.generate(&[flow(PHASE1, NAMES as u64)]);
    let then = loaded.generate(&[flow(PHASE2_INITIATOR, QUERIES as u64)]);
    for frame in first.iter().chain(&then) {
        let (udp, message) = read(frame);
        assert_eq!(*frame, udp.with(&message));
        assert!(matches!(&message[PARENT], b"natgauge" | b"withaaaa"));
        assert_eq!(message[58..], *b"\x04test\x00\x00\x1c\x00\x01");
    }
    (first, then)
}

#[test]
fn a_share_of_the_queries_has_names_that_phase_1_asked_for_and_each_answer_is_judged_by_its_name() {
    for families in [&[][..], IPV6] {
        let mut place = MaybeUninit::uninit();
        let loaded = resolving(&mut place, families, r#","aaaa_share":0.25,"cached_share":0.5"#, &[]);
        let (first, then) = asked(&loaded);
        let known: HashSet<_> = first.iter().map(|frame| name(frame)).collect();
        assert_eq!(known.len(), NAMES);
        let (again, new): (Vec<_>, Vec<_>) = then.iter().partition(|frame| known.contains(&name(frame)));
        assert!((QUERIES / 2).abs_diff(again.len()) <= 2, "{}", again.len());
        assert_eq!(new.iter().map(|frame| name(frame)).collect::<HashSet<_>>().len(), new.len());
        let own = |frames: &[&Vec<u8>]| frames.iter().filter(|frame| right(frame) == OWN).count();
        assert!((new.len() / 4).abs_diff(own(&new)) <= 4, "{}", own(&new));
        let mut parents = HashMap::new();
        for frame in first.iter().chain(again.iter().copied()) {
            assert_eq!(*parents.entry(name(frame)).or_insert_with(|| right(frame)), right(frame));
        }
        // Queries for one name differ.
        assert_eq!(then.iter().map(|frame| read(frame).1).collect::<HashSet<_>>().len(), QUERIES);
        for frame in first.iter().chain(&then) {
            let before = loaded.programs.received();
            let wrong = if right(frame) == OWN { MADE } else { OWN };
            let (verdict, _, after) = loaded.receive(INITIATOR, &answered(frame, wrong, 0, &[]));
            assert_eq!((verdict, risen(&before, &after).as_slice()), (DROP, &["wrong responses"][..]));
            let (_, _, last) = loaded.receive(INITIATOR, &answered(frame, right(frame), 0, &[]));
            assert_eq!(risen(&after, &last), ["received"]);
            let (_, _, twice) = loaded.receive(INITIATOR, &answered(frame, right(frame), 0, &[]));
            assert_eq!(risen(&last, &twice), ["duplicates"]);
        }
        let received = loaded.programs.received();
        let streams = [PHASE1, PHASE2_INITIATOR].map(|stream| received.tally[stream].received);
        assert_eq!(streams, [NAMES as u64, QUERIES as u64]);
    }
}

#[test]
fn with_a_share_of_1_every_query_of_phase_2_has_a_name_of_phase_1() {
    let mut place = MaybeUninit::uninit();
    let loaded = resolving(&mut place, IPV6, r#","aaaa_share":1,"cached_share":1"#, &[]);
    let (first, then) = asked(&loaded);
    let known: HashSet<_> = first.iter().map(|frame| name(frame)).collect();
    assert!(then.iter().all(|frame| known.contains(&name(frame)) && right(frame) == OWN));
}

#[test]
fn an_answer_from_a_cache_that_comes_late_is_late() {
    let mut place = MaybeUninit::uninit();
    let loaded = resolving(&mut place, IPV6, r#","cached_share":1"#, &[("/frame_timeout_ms", "1")]);
    let query = loaded.generate(&[flow(PHASE2_INITIATOR, 1)]).remove(0);
    std::thread::sleep(std::time::Duration::from_millis(5));
    let (_, _, after) = loaded.receive(INITIATOR, &answered(&query, MADE, 0, &[]));
    assert_eq!(risen(&Received::default(), &after), ["late"]);
    let late = after.tally[PHASE2_INITIATOR].late.sum;
    assert!((5_000_000..60_000_000_000).contains(&late), "{late}");
}

#[test]
fn a_name_in_another_case_is_none_of_ours_unless_it_was_sent_so() {
    let mut place = MaybeUninit::uninit();
    let loaded = resolving(&mut place, IPV6, r#","cached_share":0.5"#, &[]);
    let (first, then) = asked(&loaded);
    let known: HashSet<_> = first.iter().map(|frame| name(frame)).collect();
    let new = then.iter().find(|frame| !known.contains(&name(frame))).unwrap();
    assert!(read(new).1[LABEL].iter().all(u8::is_ascii_lowercase));
    let (udp, mut message) = read(new);
    message[LABEL.start] = message[LABEL.start].to_ascii_uppercase();
    let before = loaded.programs.received();
    let (_, _, after) = loaded.receive(INITIATOR, &answered(&udp.with(&message), MADE, 0, &[]));
    assert_eq!(risen(&before, &after), ["foreign"]);
}

#[test]
fn records_in_other_sections_may_follow_the_one_right_answer() {
    for families in [&[][..], IPV6] {
        let mut place = MaybeUninit::uninit();
        let loaded = resolving(&mut place, families, "", &[]);
        let queries = loaded.generate(&[flow(PHASE2_INITIATOR, 9)]);
        let rows: [(&str, [u8; 16], u8, usize, &str); 9] = [
            ("the answer alone", MADE, 0, 0, "received"),
            ("an even number of octets more", MADE, 1, 50, "received"),
            ("an odd one", MADE, 1, 51, "received"),
            ("as much as fits", MADE, 255, 512, "received"),
            ("too much", MADE, 255, 513, "wrong responses"),
            ("octets of no record", MADE, 0, 50, "wrong responses"),
            ("records without octets", MADE, 1, 0, "wrong responses"),
            ("another address", OWN, 1, 50, "wrong responses"),
            ("broken", MADE, 1, 51, "damaged"),
        ];
        for (query, (sentence, address, records, more, expected)) in queries.iter().zip(rows) {
            let before = loaded.programs.received();
            let mut frame = answered(query, address, records, &vec![0xa5; more]);
            if expected == "damaged" {
                *frame.last_mut().unwrap() ^= 1;
            }
            let (verdict, _, after) = loaded.receive(INITIATOR, &frame);
            assert_eq!((verdict, risen(&before, &after).as_slice()), (DROP, &[expected][..]), "{sentence}");
        }
        let cut = answered(&queries[0], MADE, 1, &[0xa5; 50]);
        let before = loaded.programs.received();
        let (_, _, after) = loaded.receive(INITIATOR, &cut[..cut.len() - 2]);
        assert_eq!(risen(&before, &after), ["damaged"]);
    }
}

#[test]
fn what_the_server_asks_the_far_side_is_counted_and_goes_on() {
    for families in [&[][..], IPV6] {
        let mut place = MaybeUninit::uninit();
        let loaded = resolving(&mut place, families, "", &[]);
        let (udp, message) = read(&loaded.generate(&[flow(PHASE2_INITIATOR, 1)]).remove(0));
        loaded.programs.control.open(1 << PHASE2_INITIATOR);
        let to = |port| Udp { ports: (udp.ports.0, port), ..udp.clone() }.with(&message);
        for (frame, counted) in [(to(53), 1), (to(5353), 1), (to(53), 2)] {
            let (verdict, same, after) = loaded.receive(RESPONDER, &frame);
            assert_eq!((verdict, same == frame, after.tally[PHASE2_INITIATOR].asked), (PASS, true, counted));
        }
    }
}

#[test]
fn programs_with_all_of_that_are_verified_with_room_to_spare() {
    for families in [&[][..], IPV6] {
        let mut place = MaybeUninit::uninit();
        let shares = r#","aaaa_share":0.25,"cached_share":0.5"#;
        let loaded = resolving(&mut place, families, shares, &[("/frame_timeout_ms", "1000")]);
        for instructions in loaded.programs.verified_instructions() {
            println!("{instructions} instructions verified");
            // The kernel follows a million.
            assert!(instructions < 300_000, "{instructions}");
        }
    }
}
