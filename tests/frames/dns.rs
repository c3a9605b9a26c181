// SPDX-License-Identifier: Apache-2.0
//! Queries and answers: messages spelled out from RFC 1035 and RFC 3596, and how each is answered or sorted.

use std::mem::MaybeUninit;

use natgauge_engine::programs::Received;
use natgauge_engine::shared::{INITIATOR, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER};

use crate::frame::{v4, v6, Udp, MARK};
use crate::harness::{flow, request, Loaded, DROP, IPV6, NAT64, PASS, REDIRECT};
use crate::receiver::risen;

const CONNECTION: u32 = 5;
const A: u16 = 1;
const AAAA: u16 = 28;
/// Where a message has what.
const FLAGS: usize = 2;
const LABEL: usize = 13;
const ZONE: usize = 50;
const TYPE: usize = 64;
const TTL: usize = 74;
const ADDRESS: usize = 80;

/// A trial whose Initiator asks for one type, over IPv4 or through a NAT64.
fn asking(query: &str, through: &[(&str, &str)], more: &[(&str, &str)]) -> natgauge_engine::request::Request {
    let size = if through.is_empty() { 114 } else { 134 };
    let frame = format!(r#"{{"size":{size},"side":"initiator","query":"{query}"}}"#);
    let own = [("/frame", frame.as_str()), ("/phase2/responder", "null"), ("/mark", "305419896")];
    request(&[through, &own, more].concat())
}

/// The tag in letters: a to p, four bits each.
fn letters(udp: &Udp) -> Vec<u8> {
    udp.tag().iter().flat_map(|octet| [b'a' + (octet >> 4), b'a' + (octet & 15)]).collect()
}

/// Header and question; `flags` and the number of answers as given.
fn message(udp: &Udp, record_type: u16, flags: u16, answers: u8) -> Vec<u8> {
    let identifier = (udp.sequence ^ udp.mark) as u16;
    let mut octets = identifier.to_le_bytes().to_vec();
    octets.extend(flags.to_be_bytes());
    octets.extend([0, 1, 0, answers, 0, 0, 0, 0, 36]);
    octets.extend(letters(udp));
    octets.extend(b"\x08natgauge\x04test\x00");
    octets.extend(record_type.to_be_bytes());
    octets.extend([0, 1]);
    octets
}

fn question(udp: &Udp, record_type: u16) -> Vec<u8> {
    message(udp, record_type, 0x0100, 0)
}

fn answer(udp: &Udp, record_type: u16) -> Vec<u8> {
    let mut octets = message(udp, record_type, 0x8500, 1);
    octets.extend([0xc0, 12]);
    octets.extend(record_type.to_be_bytes());
    octets.extend([0, 1, 0, 0, 0, 60]);
    match record_type {
        A => octets.extend([0, 4, 198, 18, 0, 53]),
        _ => octets.extend([0, 16, 0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x53]),
    }
    octets
}

/// What the Initiator sends for connection 5, as it was made.
fn sent(loaded: &Loaded, header: usize) -> (Vec<u8>, Udp) {
    let frame = loaded.generate(&[flow(PHASE1, 6)]).remove(CONNECTION as usize);
    let two = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let own = Udp {
        to: [2, 0, 0, 0, 1, 1],
        from: [2, 0, 0, 0, 0, 1],
        source: if header == 20 { v4("10.0.0.2") } else { v6("2001:2::2") },
        destination: if header == 20 { v4("198.19.0.2") } else { v6("2001:2:0:1::c613:2") },
        ports: (two(14 + header), two(14 + header + 2)),
        mark: MARK,
        connection: CONNECTION,
        sequence: 5,
        stream: PHASE1,
        sender: 0,
        sent_ns: sent_ns(&frame[14 + header + 8..]),
        ttl: 10,
        octets: 0,
    };
    (frame, own)
}

/// The sending time is the clock's: the last five octets of the tag.
fn sent_ns(message: &[u8]) -> u64 {
    let time = message[LABEL + 26..LABEL + 36].chunks(2).map(|two| (two[0] - b'a') << 4 | (two[1] - b'a'));
    time.rev().fold(0, |ns, octet| ns << 8 | u64::from(octet))
}

/// The same query as a NAT44 hands it to the Responder.
fn outside(inside: &Udp) -> Udp {
    Udp {
        to: [2, 0, 0, 0, 0, 2],
        from: [2, 0, 0, 0, 1, 2],
        source: v4("198.19.0.1"),
        destination: v4("198.19.0.2"),
        ports: (33_333, inside.ports.1),
        ttl: 9,
        ..inside.clone()
    }
}

/// From the other end: addresses of both layers and ports change places.
fn back(udp: &Udp) -> Udp {
    Udp {
        to: udp.from,
        from: udp.to,
        source: udp.destination,
        destination: udp.source,
        ports: (udp.ports.1, udp.ports.0),
        ttl: 10,
        ..udp.clone()
    }
}

#[test]
fn every_octet_of_a_query_is_as_the_rfcs_say() {
    for (query, record_type) in [("a", A), ("aaaa", AAAA)] {
        for (through, header) in [(&[][..], 20), (NAT64, 40)] {
            let mut place = MaybeUninit::uninit();
            let loaded = Loaded::new(&mut place, asking(query, through, &[]));
            let (frame, own) = sent(&loaded, header);
            assert_eq!(frame, own.with(&question(&own, record_type)), "{query} {header}");
        }
    }
}

#[test]
fn every_octet_of_an_answer_is_as_the_rfcs_say_and_its_connection_is_learned() {
    for (query, record_type) in [("a", A), ("aaaa", AAAA)] {
        for (through, header) in [(&[][..], 20), (NAT64, 40)] {
            let mut place = MaybeUninit::uninit();
            let loaded = Loaded::new(&mut place, asking(query, through, &[]));
            let asked = outside(&sent(&loaded, header).1);
            let frame = asked.with(&question(&asked, record_type));
            let (verdict, reply, after) = loaded.receive(RESPONDER, &frame);
            assert_eq!(verdict, REDIRECT);
            assert_eq!(reply, back(&asked).with(&answer(&asked, record_type)), "{query} {header}");
            assert_eq!(risen(&Received::default(), &after), ["stored", "queries"]);
            let (_, _, ns) = loaded.run(loaded.programs.receivers()[RESPONDER], &frame, 1);
            println!("{ns:5} ns  {query} answered");
        }
    }
}

#[test]
fn a_query_for_a_real_server_goes_on_as_it_came_and_nothing_else_does() {
    let mut place = MaybeUninit::uninit();
    let handed_on = [("/frame/handed_on", "true")];
    let loaded = Loaded::new(&mut place, asking("aaaa", &[], &handed_on));
    let asked = outside(&sent(&loaded, 20).1);
    let frame = asked.with(&question(&asked, AAAA));
    let (verdict, same, after) = loaded.receive(RESPONDER, &frame);
    assert_eq!((verdict, same), (PASS, frame));
    assert_eq!(risen(&Received::default(), &after), ["stored", "queries"]);
    for (sentence, change, _) in UNANSWERED {
        let mut message = question(&asked, AAAA);
        change(&mut message);
        let (verdict, _, _) = loaded.receive(RESPONDER, &asked.with(&message));
        assert_eq!(verdict, DROP, "{sentence}");
    }
    let right = answered(&loaded);
    let (verdict, _, last) = loaded.receive(INITIATOR, &right.with(&answer(&right, AAAA)));
    assert_eq!((verdict, last.tally[PHASE1].received), (DROP, 1));
}

#[test]
fn over_ipv6_a_query_is_answered_too() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, asking("aaaa", IPV6, &[("/translation", r#"{"source":"translated"}"#)]));
    let (_, inside) = sent(&loaded, 40);
    let asked = Udp { source: v6("2001:2:0:8000::1"), destination: v6("2001:2:0:8000::2"), ..outside(&inside) };
    let (verdict, reply, _) = loaded.receive(RESPONDER, &asked.with(&question(&asked, AAAA)));
    assert_eq!(verdict, REDIRECT);
    assert_eq!(reply, back(&asked).with(&answer(&asked, AAAA)));
}

/// A sentence, the change to the right message, the counts that must rise (no others may).
type Row = (&'static str, fn(&mut Vec<u8>), &'static [&'static str]);

const UNANSWERED: &[Row] = &[
    ("another type is not what was sent", |m| m[TYPE + 1] = 15, &["wrong queries"]),
    ("another name is not what was sent", |m| m[ZONE] = b'm', &["wrong queries"]),
    ("a cut message is not what was sent", |m| m.truncate(66), &["wrong queries"]),
    ("a mark of another trial is none of ours", |m| m[LABEL] ^= 2, &["foreign"]),
    ("a sequence number that the tester did not write is none of ours", |m| m[LABEL + 17] ^= 1, &["foreign"]),
    ("a name that is not in our letters is none of ours", |m| m[LABEL + 3] = b'z', &["foreign"]),
];

#[test]
fn what_is_no_query_of_ours_is_not_answered() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, asking("aaaa", &[], &[]));
    let right = outside(&sent(&loaded, 20).1);
    for (sentence, change, expected) in UNANSWERED {
        let before = loaded.programs.received();
        let mut message = question(&right, AAAA);
        change(&mut message);
        let (verdict, _, after) = loaded.receive(RESPONDER, &right.with(&message));
        assert_eq!((verdict, risen(&before, &after).as_slice()), (DROP, *expected), "{sentence}");
    }
    let leaks = [(v4("10.0.0.2"), "untranslated"), (v4("198.19.0.77"), "mistranslated")];
    for (source, expected) in leaks {
        let before = loaded.programs.received();
        let wrong = Udp { source, ..right.clone() };
        let (verdict, _, after) = loaded.receive(RESPONDER, &wrong.with(&question(&wrong, AAAA)));
        assert_eq!((verdict, risen(&before, &after)), (DROP, vec![expected]));
    }
    let mut broken = right.with(&question(&right, AAAA));
    broken[100] ^= 1;
    let before = loaded.programs.received();
    let (verdict, _, after) = loaded.receive(RESPONDER, &broken);
    assert_eq!((verdict, risen(&before, &after)), (DROP, vec!["damaged"]));
}

const ANSWERS: &[Row] = &[
    ("the right answer is received", |_| (), &["received"]),
    ("the same answer again is a duplicate", |_| (), &["duplicates"]),
    (
        "an answer of a cache is right, whatever its age",
        |m| (m[FLAGS], m[FLAGS + 1], m[TTL + 3]) = (0x81, 0x80, 7),
        &["received"],
    ),
    ("another address is wrong", |m| m[ADDRESS + 15] ^= 1, &["wrong responses"]),
    ("another identifier is wrong", |m| m[0] ^= 1, &["wrong responses"]),
    ("a truncated one is wrong", |m| m[FLAGS] |= 2, &["wrong responses"]),
    ("a failure of the server is wrong", |m| m[FLAGS + 1] |= 2, &["wrong responses"]),
    ("a failure without an answer is wrong", |m| (m[FLAGS + 1], m[7]) = (2, 0), &["wrong responses"]),
    ("no answer is wrong", |m| no_answer(m), &["wrong responses"]),
    ("the query itself is wrong", |m| *m = as_asked(m), &["wrong responses"]),
    ("more than was asked for is wrong", |m| m.extend([0; 16]), &["wrong responses"]),
    ("another trial's is foreign", |m| m[LABEL] ^= 2, &["foreign"]),
    ("a name that is not in our letters is foreign", |m| m[LABEL + 3] = b'z', &["foreign"]),
];

fn no_answer(message: &mut Vec<u8>) {
    message[7] = 0;
    message.truncate(68);
}

fn as_asked(message: &[u8]) -> Vec<u8> {
    let mut query = message[..68].to_vec();
    (query[FLAGS], query[FLAGS + 1], query[7]) = (1, 0, 0);
    query
}

/// The right answer to connection 5 at the Initiator; each of another sequence is the answer to another query.
fn answered(loaded: &Loaded) -> Udp {
    back(&sent(loaded, 20).1)
}

#[test]
fn what_comes_back_to_the_initiator_is_sorted_as_each_row_says() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, asking("aaaa", &[], &[]));
    let mut right = answered(&loaded);
    for (number, (sentence, change, expected)) in ANSWERS.iter().enumerate() {
        // The first two are one frame.
        right.sequence = 100 + number.max(1) as u32;
        let before = loaded.programs.received();
        let mut message = answer(&right, AAAA);
        change(&mut message);
        let (verdict, _, after) = loaded.receive(INITIATOR, &right.with(&message));
        assert_eq!((verdict, risen(&before, &after).as_slice()), (DROP, *expected), "{sentence}");
    }
}

#[test]
fn a_broken_a_misdelivered_and_a_strange_answer_are_told_apart() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, asking("a", &[], &[]));
    let right = answered(&loaded);
    let rise = |frame: &[u8]| {
        let before = loaded.programs.received();
        let (_, _, after) = loaded.receive(INITIATOR, frame);
        risen(&before, &after)
    };
    let whole = right.with(&answer(&right, A));
    let mut broken = whole.clone();
    broken[42 + ADDRESS + 3] ^= 1;
    assert_eq!(rise(&broken), ["damaged"]);
    let cut = &whole[..whole.len() - 4];
    assert_eq!(rise(cut), ["damaged"]);
    let wrong = Udp { ports: (right.ports.0, right.ports.1 ^ 1), ..right.clone() };
    assert_eq!(rise(&wrong.with(&answer(&wrong, A))), ["mistranslated"]);
    let strange = Udp { stream: PHASE2_RESPONDER, ..right.clone() };
    assert_eq!(rise(&strange.with(&answer(&strange, A))), ["mistranslated"]);
    assert_eq!(rise(&right.with(&answer(&right, A)[..12])), ["foreign"]);
    assert_eq!(rise(&whole), ["received"]);
}

#[test]
fn a_late_answer_is_late_and_delays_are_of_query_and_answer_together() {
    let mut place = MaybeUninit::uninit();
    let more = [("/frame_timeout_ms", "250"), ("/record_delays", "true")];
    let loaded = Loaded::new(&mut place, asking("aaaa", &[], &more));
    let mut right = Udp { stream: PHASE2_INITIATOR, ..answered(&loaded) };
    right.sent_ns = natgauge_engine::host::now_ns() - 300_000_000;
    let (_, _, late) = loaded.receive(INITIATOR, &right.with(&answer(&right, AAAA)));
    assert_eq!(risen(&Received::default(), &late), ["late"]);
    let late_sum = late.tally[PHASE2_INITIATOR].late.sum;
    assert!((300_000_000..900_000_000).contains(&late_sum), "{late_sum}");
    (right.sequence, right.sent_ns) = (6, natgauge_engine::host::now_ns() - 100_000_000);
    let (_, _, after) = loaded.receive(INITIATOR, &right.with(&answer(&right, AAAA)));
    assert_eq!(risen(&late, &after), ["received"]);
    let tally = after.tally[PHASE2_INITIATOR];
    // Between reading the clock here and there lie microseconds, on a bad day milliseconds.
    assert!((100_000_000..200_000_000).contains(&tally.delays.sum), "{}", tally.delays.sum);
}

#[test]
fn programs_that_ask_and_answer_are_verified_with_room_to_spare() {
    for through in [&[][..], NAT64] {
        let mut place = MaybeUninit::uninit();
        let loaded = Loaded::new(&mut place, asking("aaaa", through, &[("/frame_timeout_ms", "250")]));
        for instructions in loaded.programs.verified_instructions() {
            println!("{instructions} instructions verified");
            assert!(instructions < 200_000, "{instructions}");
        }
    }
}
