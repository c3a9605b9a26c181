// SPDX-License-Identifier: Apache-2.0
//! How what arrives is sorted. Each row: a sentence, what is done to the right frame, and the one count that must rise.

use std::mem::MaybeUninit;

use natgauge_engine::programs::Received;
use natgauge_engine::shared::{CLOSING, INITIATOR, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER};

use crate::frame::{self, ones_complement, v4, v6, Udp};
use crate::harness::{flow, request, Loaded, DROP, NAT64, REDIRECT};

const CONNECTION: u32 = 5;

/// The right frame of connection 5 as it must reach the Responder through a NAT44, and its inside source port.
pub fn outside_frame(loaded: &Loaded, header: usize) -> (Udp, u16) {
    let sent = loaded.generate(&[flow(PHASE1, 6)]).remove(CONNECTION as usize);
    let two = |at: usize| u16::from_be_bytes([sent[at], sent[at + 1]]);
    let frame = Udp {
        to: [2, 0, 0, 0, 0, 2],
        from: [2, 0, 0, 0, 1, 2],
        source: v4("198.19.0.1"),
        destination: v4("198.19.0.2"),
        ports: (33_333, two(14 + header + 2)),
        mark: frame::unsealed_mark(&sent[14 + header + 8..]),
        connection: CONNECTION,
        sequence: 5,
        stream: PHASE1,
        sender: 0,
        sent_ns: 0,
        ttl: 9,
        octets: 60,
    };
    (frame, two(14 + header))
}

/// All counts of all streams by name, so that a row can say which may change.
fn counts(received: &Received) -> Vec<(&'static str, u64)> {
    let sum = |of: fn(&natgauge_engine::tester::types::tally) -> u64| received.tally.iter().map(of).sum::<u64>();
    vec![
        ("received", sum(|tally| tally.received)),
        ("duplicates", sum(|tally| tally.duplicates)),
        ("reordered", sum(|tally| tally.reordered)),
        ("late", sum(|tally| tally.late.count)),
        ("damaged", sum(|tally| tally.damaged) + received.damaged_unmarked.iter().sum::<u64>()),
        ("untranslated", sum(|tally| tally.untranslated)),
        ("mistranslated", sum(|tally| tally.mistranslated)),
        ("foreign", received.foreign.iter().sum()),
        ("stored", received.stored),
        ("queries", sum(|tally| tally.followed[INITIATOR])),
        ("wrong queries", sum(|tally| tally.wrong[INITIATOR])),
        ("wrong responses", sum(|tally| tally.wrong[RESPONDER])),
        ("second messages", sum(|tally| tally.followed[1])),
        ("wrong third messages", sum(|tally| tally.wrong[2])),
        ("wrong data", sum(|tally| tally.wrong[7] + tally.wrong[8])),
        ("unanswered", received.unanswered.iter().sum()),
        ("resets", received.signs.iter().map(|signs| signs.resets).sum()),
        ("renumbered", received.signs.iter().map(|signs| signs.renumbered).sum()),
        ("restamped", received.signs.iter().map(|signs| signs.restamped).sum()),
        ("fragments", received.odd.iter().flatten().map(|odd| odd.fragments).sum()),
        ("tagged", received.odd.iter().flatten().map(|odd| odd.tagged).sum()),
        ("untagged", received.odd.iter().flatten().map(|odd| odd.untagged).sum()),
        ("unchecked", received.odd.iter().flatten().map(|odd| odd.unchecked).sum()),
        ("errors", received.odd.iter().flatten().map(|odd| odd.errors).sum()),
        ("too big", received.odd.iter().flatten().map(|odd| odd.too_big).sum()),
    ]
}

pub fn risen(before: &Received, after: &Received) -> Vec<&'static str> {
    let pairs = counts(before).into_iter().zip(counts(after));
    pairs.filter(|((_, before), (_, after))| after > before).map(|((name, _), _)| name).collect()
}

/// What rises when the Responder's receiver gets the frame.
fn rises(loaded: &Loaded, frame: &mut Udp) -> Vec<&'static str> {
    let before = loaded.programs.received();
    let (_, _, after) = loaded.receive(RESPONDER, &frame.build());
    risen(&before, &after)
}

/// A sentence, the change, the counts that must rise (no others may).
type Row = (&'static str, fn(&mut Udp, u16) -> Vec<u8>, &'static [&'static str]);

const ROWS: &[Row] = &[
    ("the right frame is received and its connection stored", |f, _| f.build(), &["received", "stored"]),
    ("the same frame again is a duplicate", |f, _| f.build(), &["duplicates"]),
    ("a later frame of the stream is received", |f, _| sequence(f, 9), &["received"]),
    ("a frame that comes after a later one is reordered", |f, _| sequence(f, 7), &["received", "reordered"]),
    ("the same sequence of another sender is another frame", |f, _| sender(f, 1), &["received"]),
    ("an inside source outside is a leak", |f, _| source(f, "10.0.0.2"), &["untranslated"]),
    ("a source outside the pool is mistranslated", |f, _| source(f, "198.19.0.77"), &["mistranslated"]),
    ("a wrong destination is mistranslated", |f, _| destination(f, "198.19.0.3"), &["mistranslated"]),
    ("a wrong destination port is mistranslated", |f, _| port(f, 999), &["mistranslated"]),
    (
        "a stream that belongs to the other port is mistranslated",
        |f, _| stream(f, PHASE2_RESPONDER),
        &["mistranslated"],
    ),
    ("a flipped bit in the tag is damage", |f, _| flip(f, 50), &["damaged"]),
    ("a flipped bit in the mark is damage", |f, _| flip(f, 43), &["damaged"]),
    ("a flipped bit in the last octet is damage", |f, _| flip(f, 59), &["damaged"]),
    ("a flipped bit in the UDP ports is damage", |f, _| flip(f, 34), &["damaged"]),
    ("a flipped bit in the TTL is damage", |f, _| flip(f, 22), &["damaged"]),
    ("a cut frame is damage", |f, _| cut(f), &["damaged"]),
    ("an unknown stream is damage", |f, _| stream(f, CLOSING), &["damaged"]),
    ("a connection that does not exist is damage", |f, _| connection(f, 1_000_000), &["damaged"]),
    ("another trial's mark is foreign", |f, _| mark(f, 77), &["foreign"]),
    ("a sequence number that the tester did not write is foreign", |f, _| forged(f, 8, 1), &["foreign"]),
    ("a connection that the tester did not write is foreign", |f, _| forged(f, 4, 1), &["foreign"]),
    ("a stream that the tester did not write is foreign", |f, _| forged(f, 12, 1), &["foreign"]),
    ("a sending time that the tester did not write is foreign", |f, _| forged(f, 13, 1), &["foreign"]),
    (
        "the last octets of a sending time that the tester did not write are foreign",
        |f, _| forged(f, 17, 1),
        &["foreign"],
    ),
    ("another protocol is foreign", |f, _| ethertype(f, [0x88, 0xcc]), &["foreign"]),
    ("IPv4 options are foreign", |f, _| options(f), &["foreign"]),
    ("DSCP and ECN may change on the way", |f, _| service(f), &["received"]),
    ("the source MAC address may be any", |f, _| from(f), &["received"]),
    ("the first fragment of a frame is one", |f, _| fragment(f, 0x2000), &["fragments"]),
    ("a later fragment of a frame is one", |f, _| fragment(f, 0x0003), &["fragments"]),
    ("a fragment for another host is damage", |f, _| foreign_fragment(f), &["damaged"]),
    ("a frame with a VLAN tag is one", |f, _| tagged(f), &["tagged"]),
    ("an error that a frame is too big is one", |f, _| error(f, [3, 4], "198.19.0.2"), &["too big"]),
    ("another error about a frame is one", |f, _| error(f, [3, 1], "198.19.0.2"), &["errors"]),
    ("an error about a frame of another host is foreign", |f, _| error(f, [3, 1], "198.19.0.77"), &["foreign"]),
    ("an Ethernet trailer does no harm", |f, _| trailer(f), &["received"]),
    ("no UDP checksum is legal over IPv4", |f, _| without_checksum(f), &["received"]),
];

/// The frame with this flags and offset field, its header checksum right.
fn fragment(f: &mut Udp, field: u16) -> Vec<u8> {
    let mut frame = f.build();
    frame[20..22].copy_from_slice(&field.to_be_bytes());
    // Half of the frame, as after fragmentation.
    frame[16..18].copy_from_slice(&38u16.to_be_bytes());
    frame[24..26].copy_from_slice(&[0, 0]);
    let sum = ones_complement(&frame[14..34]);
    frame[24..26].copy_from_slice(&(!sum).to_be_bytes());
    frame
}

fn foreign_fragment(f: &mut Udp) -> Vec<u8> {
    f.destination = v4("198.19.0.3");
    fragment(f, 0x2000)
}

fn tagged(f: &mut Udp) -> Vec<u8> {
    let mut frame = f.build();
    frame.splice(12..12, [0x81, 0, 0, 7]);
    frame
}

/// An ICMP error of this type and code about a frame from `quoted`.
fn error(f: &mut Udp, kind: [u8; 2], quoted: &str) -> Vec<u8> {
    let mut about = f.clone();
    (about.source, about.destination) = (v4(quoted), v4("198.19.0.1"));
    let about = about.build();
    let mut frame = f.build();
    frame[23] = 1;
    frame.truncate(34);
    frame.extend([kind[0], kind[1], 0, 0, 0, 0, 0x05, 0x8c]);
    frame.extend(&about[14..]);
    frame
}

fn sequence(f: &mut Udp, value: u32) -> Vec<u8> {
    f.sequence = value;
    f.build()
}

fn sender(f: &mut Udp, value: u8) -> Vec<u8> {
    f.sender = value;
    f.build()
}

fn source(f: &mut Udp, address: &str) -> Vec<u8> {
    f.source = v4(address);
    f.sequence = 100;
    f.build()
}

fn destination(f: &mut Udp, address: &str) -> Vec<u8> {
    f.destination = v4(address);
    f.build()
}

fn port(f: &mut Udp, destination: u16) -> Vec<u8> {
    f.ports.1 = destination;
    f.build()
}

fn stream(f: &mut Udp, value: usize) -> Vec<u8> {
    f.stream = value;
    f.build()
}

fn connection(f: &mut Udp, value: u32) -> Vec<u8> {
    f.connection = value;
    f.build()
}

fn mark(f: &mut Udp, value: u32) -> Vec<u8> {
    f.mark = value;
    f.build()
}

/// The frame with other DSCP and ECN bits, and a right checksum of its IPv4 header.
fn service(f: &mut Udp) -> Vec<u8> {
    f.sequence = 201;
    let mut frame = f.build();
    frame[15] = 0xba | 1;
    frame[24..26].copy_from_slice(&[0, 0]);
    let check = !ones_complement(&frame[14..34]);
    frame[24..26].copy_from_slice(&check.to_be_bytes());
    frame
}

/// The frame with four octets of IPv4 options, and right checksums and lengths.
fn options(f: &mut Udp) -> Vec<u8> {
    let mut frame = f.build();
    frame.splice(34..34, [1, 1, 1, 1]);
    frame[14] = 0x46;
    frame[17] += 4;
    frame[24..26].copy_from_slice(&[0, 0]);
    let check = !ones_complement(&frame[14..38]);
    frame[24..26].copy_from_slice(&check.to_be_bytes());
    frame
}

fn from(f: &mut Udp) -> Vec<u8> {
    f.sequence = 202;
    f.from = [2, 0, 0, 0, 9, 9];
    f.build()
}

/// The frame with another octet in its tag, and a right checksum.
fn forged(f: &mut Udp, at: usize, change: u8) -> Vec<u8> {
    let mut payload = f.build()[14 + 20 + 8..].to_vec();
    payload[at] ^= change;
    f.with(&payload)
}

fn flip(f: &mut Udp, octet: usize) -> Vec<u8> {
    f.sequence = 200;
    let mut frame = f.build();
    frame[octet] ^= 0x10;
    frame
}

fn cut(f: &mut Udp) -> Vec<u8> {
    f.octets = 100;
    let mut frame = f.build();
    frame.truncate(60);
    frame
}

fn ethertype(f: &mut Udp, value: [u8; 2]) -> Vec<u8> {
    let mut frame = f.build();
    frame[12..14].copy_from_slice(&value);
    frame
}

fn trailer(f: &mut Udp) -> Vec<u8> {
    f.sequence = 300;
    let mut frame = f.build();
    frame.extend([0; 4]);
    frame
}

fn without_checksum(f: &mut Udp) -> Vec<u8> {
    f.sequence = 301;
    let mut frame = f.build();
    frame[40..42].copy_from_slice(&[0, 0]);
    frame
}

#[test]
fn what_arrives_at_the_responder_is_sorted_as_each_row_says() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[("/senders/cpus", "[0,1]")]));
    let (right, inside_port) = outside_frame(&loaded, 20);
    for (sentence, change, expected) in ROWS {
        let before = loaded.programs.received();
        let frame = change(&mut right.clone(), inside_port);
        let (verdict, _, after) = loaded.receive(RESPONDER, &frame);
        assert_eq!(verdict, DROP, "{sentence}");
        assert_eq!(&risen(&before, &after), expected, "{sentence}");
        let (_, _, ns) = loaded.run(loaded.programs.receivers()[1], &frame, 10_000);
        println!("{ns:5} ns  {sentence}");
    }
}

#[test]
fn after_its_grace_a_frame_is_late() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[]));
    let (right, _) = outside_frame(&loaded, 20);
    loaded.programs.control.open(1 << PHASE2_INITIATOR | 1 << PHASE2_RESPONDER);
    let (_, _, after) = loaded.receive(RESPONDER, &right.build());
    assert_eq!(risen(&Received::default(), &after), ["late"]);
}

#[test]
fn a_frame_of_an_earlier_period_takes_no_place_of_one_of_this_period() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[]));
    let (mut frame, _) = outside_frame(&loaded, 20);
    frame.stream = PHASE2_INITIATOR;
    loaded.programs.control.since(2_000_000_000);
    for (sent_ns, expected) in
        [(1_999_999_000, &[] as &[&str]), (2_000_001_000, &["received"]), (2_000_001_000, &["duplicates"])]
    {
        frame.sent_ns = sent_ns;
        assert_eq!(rises(&loaded, &mut frame), expected, "sent at {sent_ns} ns");
    }
}

#[test]
fn a_frame_that_phase_1_lost_opens_no_connection_in_phase_2_and_its_duplicates_are_counted() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[]));
    let (mut frame, _) = outside_frame(&loaded, 20);
    (frame.sequence, frame.sent_ns) = (3, 1_000_000_000);
    loaded.receive(RESPONDER, &frame.build());
    loaded.programs.control.since(2_000_000_000);
    for (sequence, expected) in [(3, &["duplicates"] as &[&str]), (4, &[])] {
        frame.sequence = sequence;
        assert_eq!(rises(&loaded, &mut frame), expected, "sequence {sequence}");
    }
}

#[test]
fn past_its_timeout_a_frame_is_late() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[("/frame_timeout_ms", "10")]));
    let (mut right, _) = outside_frame(&loaded, 20);
    let now = natgauge_engine::host::now_ns();
    right.sent_ns = now - 20_000_000;
    let (_, _, late) = loaded.receive(RESPONDER, &right.build());
    assert_eq!(risen(&Received::default(), &late), ["late"]);
    right.sent_ns = natgauge_engine::host::now_ns();
    right.sequence += 1;
    let (_, _, after) = loaded.receive(RESPONDER, &right.build());
    assert_eq!(risen(&late, &after), ["received", "stored"]);
}

#[test]
fn the_delays_of_late_frames_are_told_with_and_without_a_timeout() {
    let of_timeout = [("/frame_timeout_ms", "10"), ("/senders/cpus", "[0,1]")];
    for (wanted, closed) in [(&of_timeout[..], false), (&[], true)] {
        let mut place = MaybeUninit::uninit();
        let loaded = Loaded::new(&mut place, request(wanted));
        let (mut right, _) = outside_frame(&loaded, 20);
        right.sent_ns = natgauge_engine::host::now_ns();
        loaded.receive(RESPONDER, &right.build());
        if closed {
            loaded.programs.control.open(1 << PHASE2_INITIATOR | 1 << PHASE2_RESPONDER);
        }
        let before = loaded.programs.received().tally[PHASE1];
        for delay_ms in [2000, 1000, 6000] {
            right.sequence += 1;
            right.sent_ns = natgauge_engine::host::now_ns() - delay_ms * 1_000_000;
            loaded.receive(RESPONDER, &right.build());
            loaded.receive(RESPONDER, &right.build());
        }
        let tally = loaded.programs.received().tally[PHASE1];
        assert_eq!((before.late.count, tally.late.count, tally.duplicates), (0, 3, 3), "{wanted:?}");
        // Between reading the clock here and there lie microseconds, on a bad day milliseconds.
        let near = |ns: i64, ms: i64| (0..400_000_000).contains(&(ns - ms * 1_000_000));
        assert!(near(tally.late.minimum, 1000), "{}", tally.late.minimum);
        assert!(near(tally.late.maximum, 6000), "{}", tally.late.maximum);
        assert!(near(tally.late.sum, 9000), "{}", tally.late.sum);
        assert_eq!((tally.delays.count, tally.delays.sum), (0, 0), "those in time are told elsewhere");
    }
}

#[test]
fn delays_are_exact_at_their_ends_and_negative_ones_are_counted() {
    let mut place = MaybeUninit::uninit();
    let loaded =
        Loaded::new(&mut place, request(&[("/record_delays", "true"), ("/initiator/source_ports/last", "65535")]));
    let (mut right, _) = outside_frame(&loaded, 20);
    right.stream = PHASE2_INITIATOR;
    for (sequence, before) in [(1, 5_000_000_i64), (2, 900_000_000), (3, -1_000_000_000)] {
        right.sequence = sequence;
        right.sent_ns = (natgauge_engine::host::now_ns() as i64 - before) as u64;
        loaded.receive(RESPONDER, &right.build());
    }
    let tally = loaded.programs.received().tally[PHASE2_INITIATOR];
    assert_eq!((tally.delays.count, tally.negative, tally.received), (3, 1, 3));
    // Between reading the clock here and there lie microseconds, on a bad day milliseconds.
    assert!((900_000_000..1_100_000_000).contains(&tally.delays.maximum), "{}", tally.delays.maximum);
    assert!((-1_000_000_000..-800_000_000).contains(&tally.delays.minimum), "{}", tally.delays.minimum);
}

#[test]
fn a_router_must_leave_the_source_alone() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[("/translation", r#"{"source":"unchanged"}"#)]));
    let (mut frame, inside_port) = outside_frame(&loaded, 20);
    let (_, _, changed) = loaded.receive(RESPONDER, &frame.build());
    assert_eq!(risen(&Received::default(), &changed), ["mistranslated"]);
    frame.source = v4("10.0.0.2");
    frame.ports.0 = inside_port;
    let (_, _, kept) = loaded.receive(RESPONDER, &frame.build());
    assert_eq!(risen(&changed, &kept), ["received", "stored"]);
}

#[test]
fn back_at_the_initiator_everything_must_be_as_it_was() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[]));
    let (outside, inside_port) = outside_frame(&loaded, 20);
    loaded.receive(RESPONDER, &outside.build());
    let right = Udp {
        source: v4("198.19.0.2"),
        destination: v4("10.0.0.2"),
        ports: (outside.ports.1, inside_port),
        stream: PHASE2_RESPONDER,
        mark: frame::mark(&loaded.keys, Some((v4("198.19.0.2"), outside.ports.1)), (v4("10.0.0.2"), inside_port)),
        ..outside.clone()
    };
    let leak = Udp { destination: v4("198.19.0.1"), ports: (outside.ports.1, 33_333), sequence: 6, ..right.clone() };
    let wrong = Udp { ports: (outside.ports.1, inside_port.wrapping_add(1)), sequence: 7, ..right.clone() };
    for (frame, expected) in [(right, "received"), (leak, "untranslated"), (wrong, "mistranslated")] {
        let before = loaded.programs.received();
        let (_, _, after) = loaded.receive(INITIATOR, &frame.build());
        assert_eq!(risen(&before, &after), [expected]);
    }
}

#[test]
fn through_a_nat64_an_ipv6_frame_outside_is_a_leak_and_ipv4_is_right() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(NAT64));
    let (right, inside_port) = outside_frame(&loaded, 40);
    let leak = Udp {
        source: v6("2001:2::2"),
        destination: v6("2001:2:0:1::c613:2"),
        ports: (inside_port, right.ports.1),
        octets: 80,
        ..right.clone()
    };
    let (_, _, leaked) = loaded.receive(RESPONDER, &leak.build());
    assert_eq!(risen(&Received::default(), &leaked), ["untranslated"]);
    let (_, _, after) = loaded.receive(RESPONDER, &right.build());
    assert_eq!(risen(&leaked, &after), ["received", "stored"]);
}

#[test]
fn over_ipv6_no_checksum_is_damage_unless_the_request_accepts_it() {
    for (accepted, expected, number) in [("false", "unchecked", 0), ("true", "received", 1)] {
        let mut place = MaybeUninit::uninit();
        let loaded = Loaded::new(&mut place, request(&[NAT64, &[("/accept_zero_checksum", accepted)]].concat()));
        let (outside, inside_port) = outside_frame(&loaded, 40);
        loaded.receive(RESPONDER, &outside.build());
        let (source, destination) = (v6("2001:2:0:1::c613:2"), v6("2001:2::2"));
        let right = Udp {
            source,
            destination,
            ports: (outside.ports.1, inside_port),
            octets: 80,
            stream: PHASE2_RESPONDER,
            mark: frame::mark(&loaded.keys, Some((source, outside.ports.1)), (destination, inside_port)),
            ..outside.clone()
        };
        let mut frame = right.build();
        frame[60..62].copy_from_slice(&[0, 0]);
        let before = loaded.programs.received();
        let (_, _, after) = loaded.receive(INITIATOR, &frame);
        assert_eq!(risen(&before, &after), [expected]);
        assert_eq!(after.tally[PHASE2_RESPONDER].zero_checksums, number);
        let mut wrong = Udp { sequence: 9, ..right.clone() }.build();
        wrong[60..62].copy_from_slice(&[0, 1]);
        let (_, _, last) = loaded.receive(INITIATOR, &wrong);
        assert_eq!(risen(&after, &last), ["damaged"]);
        let port = Udp { ports: (outside.ports.1, inside_port.wrapping_add(1)), sequence: 10, ..right };
        let mut other = port.build();
        other[60..62].copy_from_slice(&[0, 0]);
        let (_, _, moved) = loaded.receive(INITIATOR, &other);
        assert_eq!(risen(&last, &moved), [if accepted == "true" { "mistranslated" } else { "unchecked" }]);
    }
}

pub fn arp_request(target: [u8; 4]) -> Vec<u8> {
    let mut frame = [&[0xff; 6][..], &[2, 0, 0, 0, 1, 2], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]].concat();
    frame.extend([2, 0, 0, 0, 1, 2, 198, 19, 0, 1, 0, 0, 0, 0, 0, 0]);
    frame.extend(target);
    frame.resize(60, 0);
    frame
}

#[test]
fn arp_is_answered_for_own_addresses_only() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[]));
    let (verdict, reply, _) = loaded.receive(RESPONDER, &arp_request([198, 19, 0, 2]));
    assert_eq!(verdict, REDIRECT);
    let mut expected = [&[2, 0, 0, 0, 1, 2, 2, 0, 0, 0, 0, 2][..], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2]].concat();
    expected.extend([2, 0, 0, 0, 0, 2, 198, 19, 0, 2, 2, 0, 0, 0, 1, 2, 198, 19, 0, 1]);
    expected.resize(60, 0);
    assert_eq!(reply, expected);
    let (verdict, _, after) = loaded.receive(RESPONDER, &arp_request([198, 19, 0, 3]));
    assert_eq!((verdict, after.foreign[RESPONDER]), (DROP, 1));
}

#[test]
fn neighbour_solicitations_are_answered_with_and_without_their_option() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(NAT64));
    let target = "2001:2::2".parse::<std::net::Ipv6Addr>().unwrap().octets();
    let asker = "fe80::1".parse::<std::net::Ipv6Addr>().unwrap().octets();
    for option in [&[1, 1, 2, 0, 0, 0, 1, 1][..], &[]] {
        let icmp = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &target, option].concat();
        let mut frame = [&[0x33, 0x33, 0xff, 0, 0, 2][..], &[2, 0, 0, 0, 1, 1], &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
        frame.extend([0, icmp.len() as u8, 58, 255]);
        frame.extend([&asker[..], &target, &icmp].concat());
        let (verdict, reply, _) = loaded.receive(INITIATOR, &frame);
        assert_eq!((verdict, reply.len()), (REDIRECT, 86));
        assert_eq!(reply[..14], [2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1, 0x86, 0xdd]);
        assert_eq!((&reply[22..38], &reply[38..54]), (&target[..], &asker[..]));
        assert_eq!(reply[54..56], [136, 0]);
        assert_eq!((&reply[58..62], &reply[62..78]), (&[0x60, 0, 0, 0][..], &target[..]));
        assert_eq!(reply[78..86], [2, 1, 2, 0, 0, 0, 0, 1]);
        let pseudo = [&reply[22..54], &[0, 0, 0, 32, 0, 0, 0, 58], &reply[54..86]].concat();
        assert_eq!(ones_complement(&pseudo), 0xffff);
    }
}
