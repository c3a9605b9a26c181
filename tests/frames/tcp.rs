// SPDX-License-Identifier: Apache-2.0
//! TCP: segments spelled out from RFC 9293 and RFC 7323, through a NAT44 and a NAT64.

use std::mem::MaybeUninit;

use natgauge_engine::flow::Flow;
use natgauge_engine::plan;
use natgauge_engine::programs::Received;
use natgauge_engine::request::Request;
use natgauge_engine::shared::{INITIATOR, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER, TAG_OCTETS};

use crate::frame::{ones_complement, v4, v6};
use crate::harness::{flow, request, Loaded, DROP, INITIATOR_MACS, NAT64, REDIRECT, RESPONDER_MACS};
use crate::receiver::risen;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;
const OUTSIDE: u16 = 33_333;
const ONCE: &str = r#"{"rate":1000000.0,"frames":1,"reading_order":"once"}"#;

fn segments(through: &[(&str, &str)], connections: &str, more: &[(&str, &str)]) -> Request {
    let size = if through.is_empty() { 88 } else { 108 };
    closed(through, connections, "", size, more)
}

/// With `closing` as the last field of the frame.
fn closed(through: &[(&str, &str)], connections: &str, closing: &str, size: u32, more: &[(&str, &str)]) -> Request {
    let frame = format!(r#"{{"size":{size},"side":"initiator","transport":"tcp"{closing}}}"#);
    let own = [("/frame", frame.as_str()), ("/connections", connections)];
    let once: &[_] = if connections == "1" { &[("/phase2/responder", ONCE)] } else { &[] };
    request(&[through, &own, once, more].concat())
}

fn octets_of(address: &str) -> Vec<u8> {
    match if address.contains(':') { v6(address) } else { v4(address) } {
        std::net::IpAddr::V4(v4) => v4.octets().to_vec(),
        std::net::IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

#[derive(Clone)]
struct Segment {
    /// Receiver's and sender's MAC address.
    macs: ([u8; 6], [u8; 6]),
    addresses: (&'static str, &'static str),
    ports: (u16, u16),
    sequence: u32,
    acknowledgment: u32,
    flags: u8,
    /// Time stamp and echo.
    stamps: (u32, u32),
    payload: Vec<u8>,
}

impl Segment {
    fn options(&self) -> Vec<u8> {
        let stamps = [&[8, 10][..], &self.stamps.0.to_be_bytes(), &self.stamps.1.to_be_bytes()].concat();
        if self.flags & SYN == 0 {
            return [&[1, 1][..], &stamps].concat();
        }
        let largest: u16 = if self.addresses.0.contains(':') { 1440 } else { 1460 };
        [&[2, 4][..], &largest.to_be_bytes(), &[4, 2], &stamps, &[1, 3, 3, 7]].concat()
    }

    fn build(&self) -> Vec<u8> {
        let options = self.options();
        let window: u16 = match (self.flags, self.addresses.0.contains(':')) {
            (SYN, false) => 64240,                       // 44 segments of 1460 octets
            (SYN, true) => 64800,                        // 45 segments of 1440 octets
            (flags, false) if flags & SYN != 0 => 65160, // 45 segments of 1448 octets
            (flags, true) if flags & SYN != 0 => 64260,  // 45 segments of 1428 octets
            _ => 502,
        };
        let mut tcp = [self.ports.0.to_be_bytes(), self.ports.1.to_be_bytes()].concat();
        tcp.extend([self.sequence.to_be_bytes(), self.acknowledgment.to_be_bytes()].concat());
        tcp.extend([((20 + options.len() as u8) / 4) << 4, self.flags]);
        tcp.extend([&window.to_be_bytes()[..], &[0; 4], &options, &self.payload].concat());
        let addresses = [octets_of(self.addresses.0), octets_of(self.addresses.1)].concat();
        let length = (tcp.len() as u16).to_be_bytes();
        let check = !ones_complement(&[&addresses[..], &[0, 6], &length, &tcp].concat());
        tcp[16..18].copy_from_slice(&check.to_be_bytes());
        let ethernet = [self.macs.0, self.macs.1].concat();
        if addresses.len() == 8 {
            let total = (20 + tcp.len() as u16).to_be_bytes();
            let mut ip = [&[0x45, 0][..], &total, &[0, 0, 0, 0, 10, 6, 0, 0], &addresses].concat();
            let check = !ones_complement(&ip);
            ip[10..12].copy_from_slice(&check.to_be_bytes());
            return [&ethernet[..], &[8, 0], &ip, &tcp].concat();
        }
        let ip = [&[0x60, 0, 0, 0][..], &length, &[6, 10], &addresses].concat();
        [&ethernet[..], &[0x86, 0xdd], &ip, &tcp].concat()
    }

    /// As the device hands it on: to the Responder from outside, to the Initiator as it was.
    fn outside(&self) -> Self {
        let addresses = ("198.19.0.1", "198.19.0.2");
        Self { macs: RESPONDER_MACS, addresses, ports: (OUTSIDE, self.ports.1), ..self.clone() }
    }

    fn inside(&self, syn: &Self) -> Self {
        let addresses = (syn.addresses.1, syn.addresses.0);
        Self { macs: INITIATOR_MACS, addresses, ports: (syn.ports.1, syn.ports.0), ..self.clone() }
    }

    /// The frame that its receiver sends back.
    fn back(&self) -> Self {
        Self {
            macs: (self.macs.1, self.macs.0),
            addresses: (self.addresses.1, self.addresses.0),
            ports: (self.ports.1, self.ports.0),
            ..self.clone()
        }
    }
}

/// A word of a frame.
fn word(frame: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(frame[at..at + 4].try_into().unwrap())
}

const INSIDE4: (&str, &str) = ("10.0.0.2", "198.19.0.2");
const INSIDE6: (&str, &str) = ("2001:2::2", "2001:2:0:1::c613:2");
/// Changes of the request, addresses inside, octets of the IP header inside.
type Through = (&'static [(&'static str, &'static str)], (&'static str, &'static str), usize);
const BOTH_WAYS: [Through; 2] = [(&[], INSIDE4, 20), (NAT64, INSIDE6, 40)];

/// The SYN of a connection as its parts that the tester chooses say, and as it was made.
fn syn(loaded: &Loaded, at: usize, addresses: (&'static str, &'static str), header: usize) -> (Segment, Vec<u8>) {
    let flow = Flow { frames: at as u64 + 1, ..flow(PHASE1, 20) };
    let frame = loaded.generate(&[flow]).remove(at);
    let tcp = 14 + header;
    let ports = word(&frame, tcp);
    let segment = Segment {
        macs: (INITIATOR_MACS.1, INITIATOR_MACS.0),
        addresses,
        ports: ((ports >> 16) as u16, ports as u16),
        sequence: word(&frame, tcp + 4),
        acknowledgment: 0,
        flags: SYN,
        stamps: (word(&frame, tcp + 28), 0),
        payload: Vec::new(),
    };
    (segment, frame)
}

/// The Responder's answer to a SYN from outside.
fn syn_ack(asked: &Segment, reply: &[u8]) -> Segment {
    let (sequence, stamp) = (word(reply, 38), word(reply, 62));
    let (acknowledgment, stamps) = (asked.sequence.wrapping_add(1), (stamp, asked.stamps.0));
    Segment { sequence, acknowledgment, flags: SYN | ACK, stamps, ..asked.back() }
}

/// The Initiator's answer to that, outside.
fn ack(asked: &Segment, answered: &Segment) -> Segment {
    Segment {
        sequence: answered.acknowledgment,
        acknowledgment: answered.sequence.wrapping_add(1),
        flags: ACK,
        stamps: (answered.stamps.1, answered.stamps.0),
        ..asked.clone()
    }
}

/// Both ends of an open connection, as they are outside at the Responder: its SYN, SYN-ACK and ACK.
fn opened(loaded: &Loaded, at: usize) -> [Segment; 3] {
    let (inside, _) = syn(loaded, at, INSIDE4, 20);
    let asked = inside.outside();
    let (_, reply, _) = loaded.receive(RESPONDER, &asked.build());
    let answered = syn_ack(&asked, &reply);
    let third = ack(&asked, &answered);
    [asked, answered, third]
}

#[test]
fn every_octet_of_a_syn_is_as_the_rfcs_say() {
    for (through, addresses, header) in BOTH_WAYS {
        let mut place = MaybeUninit::uninit();
        let loaded = Loaded::new(&mut place, segments(through, "1000", &[]));
        let (first, frame) = syn(&loaded, 0, addresses, header);
        assert_eq!(frame, first.build(), "{addresses:?}");
        assert_eq!(frame.len(), 14 + header + 40, "78 octets with FCS over IPv4");
        let (second, frame) = syn(&loaded, 1, addresses, header);
        assert_eq!(frame, second.build());
        assert_ne!(first.sequence, second.sequence);
    }
}

#[test]
fn each_message_of_the_handshake_follows_from_the_one_before_and_the_third_opens_the_connection() {
    for (through, addresses, header) in BOTH_WAYS {
        let mut place = MaybeUninit::uninit();
        let loaded = Loaded::new(&mut place, segments(through, "1000", &[]));
        let (inside, _) = syn(&loaded, 0, addresses, header);
        let asked = inside.outside();
        let (verdict, reply, after_syn) = loaded.receive(RESPONDER, &asked.build());
        let answered = syn_ack(&asked, &reply);
        assert_eq!((verdict, reply), (REDIRECT, answered.build()), "{addresses:?}");
        assert_eq!(risen(&Received::default(), &after_syn), ["queries"], "a SYN opens no connection");

        let (verdict, reply, after_answer) = loaded.receive(INITIATOR, &answered.inside(&inside).build());
        assert_eq!((verdict, reply), (REDIRECT, ack(&inside, &answered).build()), "{addresses:?}");
        assert_eq!(risen(&after_syn, &after_answer), ["second messages"]);

        let third = ack(&asked, &answered).build();
        let (verdict, _, open) = loaded.receive(RESPONDER, &third);
        assert_eq!((verdict, risen(&after_answer, &open)), (DROP, vec!["received", "stored"]));
        let (_, _, again) = loaded.receive(RESPONDER, &third);
        assert_eq!(risen(&open, &again), ["duplicates"]);
    }
}

/// Segments of a transaction as they are inside, from its SYN on. Each side's number grows by its SYN, octets and FIN.
fn transaction(syn: &Segment, responder: (u32, u32), octets: u32, by: u8) -> Vec<Segment> {
    let push = if octets > 0 { PSH } else { 0 };
    let payload: Vec<u8> = (0..octets).map(|at| at as u8).collect();
    let (first, second) = (syn.sequence, responder.0);
    let segment = |up: bool, flags, from: u32, to: u32, payload: &[u8]| {
        let of = |mine: u32, peers: u32| (mine.wrapping_add(from), peers.wrapping_add(to));
        let (sequence, acknowledgment) = if up { of(first, second) } else { of(second, first) };
        let stamps = if up { (syn.stamps.0, responder.1) } else { (responder.1, syn.stamps.0) };
        let ends = if up { syn.clone() } else { syn.back() };
        Segment { sequence, acknowledgment, flags, stamps, payload: payload.to_vec(), ..ends }
    };
    let mut all = vec![
        syn.clone(),
        segment(false, SYN | ACK, 0, 1, &[]),
        segment(true, push | ACK, 1, 1, &payload),
        segment(false, push | ACK, 1, 1 + octets, &payload),
        segment(true, by | ACK, 1 + octets, 1 + octets, &[]),
    ];
    if by == FIN {
        all.push(segment(false, FIN | ACK, 1 + octets, 2 + octets, &[]));
        all.push(segment(true, ACK, 2 + octets, 2 + octets, &[]));
    }
    all
}

/// A segment of the Initiator (`up`) or of the Responder, in the addresses of the side that receives it.
fn at_receiver(segment: &Segment, up: bool) -> Segment {
    if up {
        segment.outside()
    } else {
        Segment { macs: INITIATOR_MACS, ..segment.clone() }
    }
}

#[test]
fn a_transaction_opens_exchanges_octets_and_closes_by_reactions_alone() {
    for (through, addresses, header) in BOTH_WAYS {
        for (octets, by, name) in [(0, FIN, "fin"), (101, FIN, "fin"), (1360, FIN, "fin"), (10, RST, "rst")] {
            let mut place = MaybeUninit::uninit();
            let closing = format!(r#","closing":{{"by":"{name}","request_octets":{octets}}}"#);
            let size = if through.is_empty() { 88 } else { 108 };
            let loaded = Loaded::new(&mut place, closed(through, "1000", &closing, size, &[("/phase2", "null")]));
            let (syn, _) = syn(&loaded, 0, addresses, header);
            let (_, reply, _) = loaded.receive(RESPONDER, &syn.outside().build());
            let segments = transaction(&syn, (word(&reply, 38), word(&reply, 62)), octets, by);
            let mut before = loaded.programs.received();
            for (at, pair) in segments.windows(2).enumerate() {
                let (side, up) = if at % 2 == 0 { (RESPONDER, true) } else { (INITIATOR, false) };
                let arrived = at_receiver(&pair[0], up);
                let next = &pair[1];
                let ends = arrived.back();
                let sent = Segment { macs: ends.macs, addresses: ends.addresses, ports: ends.ports, ..next.clone() };
                let (verdict, reply, _) = loaded.receive(side, &arrived.build());
                assert_eq!((verdict, reply), (REDIRECT, sent.build()), "{name} {octets}: message {at} {addresses:?}");
            }
            let last = segments.last().unwrap();
            let after = loaded.programs.received();
            assert_eq!(after.tally[PHASE1].received, 0, "not all of it has arrived");
            assert_eq!(after.stored, 1, "the third segment opened the connection");
            before.clone_from(&after);
            let (verdict, _, after) = loaded.receive(RESPONDER, &at_receiver(last, true).build());
            assert_eq!((verdict, risen(&before, &after)), (DROP, vec!["received"]), "{name} {octets}");
        }
    }
}

#[test]
fn connections_of_phase_1_are_closed_in_phase_2_one_by_one_in_their_order() {
    for (by, name, ranges) in [(FIN, "fin", &[][..]), (RST, "rst", &[]), (FIN, "fin", &FILLED)] {
        let mut place = MaybeUninit::uninit();
        let closing = format!(r#","closing":{{"by":"{name}"}}"#);
        let once = [&[("/phase2/responder", "null"), ("/phase2/initiator/frames", "10")], ranges].concat();
        let loaded = Loaded::new(&mut place, closed(&[], "10", &closing, 88, &once));
        for at in [0, 1] {
            let [asked, answered, third] = opened(&loaded, at);
            let (_, _, open) = loaded.receive(RESPONDER, &third.build());
            assert_eq!(open.tally[PHASE1].received, at as u64 + 1, "the third segment is the last of phase 1");
            let flows = [Flow { frames: at as u64 + 1, ..flow(PHASE2_INITIATOR, 10) }];
            let made = loaded.generate(&flows).remove(at);
            let stamps = (word(&made, 58), word(&made, 62));
            let (inside, _) = syn(&loaded, at, INSIDE4, 20);
            let first = Segment { flags: by | ACK, stamps, ..ack(&inside, &answered) };
            assert_eq!(made, first.build());
            let (_, reply, _) = loaded.receive(RESPONDER, &first.outside().build());
            if by == FIN {
                let second = Segment {
                    sequence: answered.sequence.wrapping_add(1),
                    acknowledgment: first.sequence.wrapping_add(1),
                    flags: FIN | ACK,
                    stamps: (stamps.1, stamps.0),
                    ..asked.back()
                };
                assert_eq!(reply, second.build());
                let (_, reply, _) = loaded.receive(INITIATOR, &second.inside(&inside).build());
                let last = Segment {
                    sequence: second.acknowledgment,
                    acknowledgment: second.sequence.wrapping_add(1),
                    flags: ACK,
                    ..first.clone()
                };
                assert_eq!(reply, last.build());
                loaded.receive(RESPONDER, &last.outside().build());
            }
            let after = loaded.programs.received();
            let closed = after.tally[PHASE2_INITIATOR];
            assert_eq!((closed.received, closed.reordered), (at as u64 + 1, 0));
            assert_eq!((after.stored, after.remapped), (at as u64 + 1, 0));
        }
    }
}

#[test]
fn a_half_open_connection_gets_its_syn_ack_in_phase_2_and_no_ack() {
    let once = r#"{"rate":1000000.0,"frames":10,"reading_order":"once"}"#;
    for (through, addresses, header) in BOTH_WAYS {
        let mut place = MaybeUninit::uninit();
        let size = if through.is_empty() { 88 } else { 108 };
        let more = [("/phase2/initiator", "null"), ("/phase2/responder", once)];
        let loaded = Loaded::new(&mut place, closed(through, "10", r#","half_open":true"#, size, &more));
        for at in [0, 1] {
            let before = loaded.programs.received();
            let (inside, _) = syn(&loaded, at, addresses, header);
            let asked = inside.outside();
            let (verdict, _, learned) = loaded.receive(RESPONDER, &asked.build());
            assert_eq!((verdict, risen(&before, &learned)), (DROP, vec!["received", "stored"]), "{addresses:?}");

            let flows = [Flow { frames: at as u64 + 1, ..flow(PHASE2_RESPONDER, 10) }];
            let made = loaded.generate(&flows).remove(at);
            let answered = Segment { stamps: (word(&made, 62), word(&made, 66)), ..syn_ack(&asked, &made) };
            assert_eq!(made, answered.build(), "{addresses:?}");
            let (verdict, _, after) = loaded.receive(INITIATOR, &answered.inside(&inside).build());
            assert_eq!((verdict, risen(&learned, &after)), (DROP, vec!["received"]));
            assert_eq!(after.tally[PHASE2_RESPONDER].received, at as u64 + 1);
            let (_, _, again) = loaded.receive(INITIATOR, &answered.inside(&inside).build());
            assert_eq!(risen(&after, &again), ["duplicates"]);
        }
    }
}

#[test]
fn data_of_both_sides_is_the_first_of_the_connection() {
    for (through, addresses, header) in BOTH_WAYS {
        let mut place = MaybeUninit::uninit();
        let loaded = Loaded::new(&mut place, segments(through, "1", &[]));
        let (inside, _) = syn(&loaded, 0, addresses, header);
        let asked = inside.outside();
        let (_, reply, _) = loaded.receive(RESPONDER, &asked.build());
        let answered = syn_ack(&asked, &reply);
        let (_, _, open) = loaded.receive(RESPONDER, &ack(&asked, &answered).build());

        let up = loaded.generate(&[flow(PHASE2_INITIATOR, 1)]).remove(0);
        let payload = up[14 + header + 32..].to_vec();
        assert_eq!(payload.len(), TAG_OCTETS as usize);
        let stamps = (word(&up, 14 + header + 24), word(&up, 14 + header + 28));
        let sent = Segment { flags: PSH | ACK, stamps, payload, ..ack(&inside, &answered) };
        assert_eq!(up, sent.build(), "{addresses:?}");
        let (_, _, after_up) = loaded.receive(RESPONDER, &sent.outside().build());
        assert_eq!(risen(&open, &after_up), ["received"]);

        let down = loaded.generate(&[flow(PHASE2_RESPONDER, 1)]).remove(0);
        let stamps = (word(&down, 58), word(&down, 62));
        let sequence = answered.sequence.wrapping_add(1);
        let payload = down[66..].to_vec();
        let sent = Segment { sequence, flags: PSH | ACK, stamps, payload, ..answered.clone() };
        assert_eq!(down, sent.build(), "{addresses:?}");
        let (_, _, after_down) = loaded.receive(INITIATOR, &sent.inside(&inside).build());
        assert_eq!(risen(&after_up, &after_down), ["received"]);
    }
}

#[test]
fn time_stamps_do_not_run_backwards_from_handshake_to_data() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, segments(&[], "1", &[]));
    let [asked, answered, third] = opened(&loaded, 0);
    loaded.receive(RESPONDER, &third.build());
    let up = loaded.generate(&[flow(PHASE2_INITIATOR, 1)]).remove(0);
    let down = loaded.generate(&[flow(PHASE2_RESPONDER, 1)]).remove(0);
    // A tick is about a microsecond, so less than 2^31 of them have passed.
    assert!(word(&up, 58).wrapping_sub(asked.stamps.0) < 1 << 31);
    assert!(word(&down, 58).wrapping_sub(answered.stamps.0) < 1 << 31);
}

/// A sentence, the change to the right segment, the count that must rise.
type Row = (&'static str, fn(&mut Segment), &'static str);

fn sorted(loaded: &Loaded, side: usize, right: &Segment, rows: &[Row]) {
    for (sentence, change, expected) in rows {
        let before = loaded.programs.received();
        let mut segment = right.clone();
        change(&mut segment);
        let (_, _, after) = loaded.receive(side, &segment.build());
        assert_eq!(risen(&before, &after), [*expected], "{sentence}");
    }
}

const SYNS: &[Row] = &[
    ("an inside source is a leak", |s| s.addresses.0 = "10.0.0.2", "untranslated"),
    ("a source outside the pool is wrong", |s| s.addresses.0 = "198.19.0.77", "mistranslated"),
    ("another destination port is wrong", |s| s.ports.1 ^= 1, "mistranslated"),
    ("a device that changes numbers is seen", |s| s.sequence ^= 0x00ff_0000, "renumbered"),
    ("an acknowledgment in a SYN is wrong content", |s| s.acknowledgment = 1, "wrong queries"),
    ("a reset is no part of the connection", |s| s.flags = RST, "resets"),
];

fn other_trials(segment: &mut Segment) {
    segment.acknowledgment ^= 0x00ff_0000;
    segment.stamps.1 ^= 0x8000_0000;
}

const SYN_ACKS: &[Row] = &[
    ("a device that answers itself has another number", |s| s.sequence ^= 1, "wrong responses"),
    ("a device that changes numbers is seen", |s| s.acknowledgment ^= 0x00ff_0000, "renumbered"),
    ("a number and a time of another trial are foreign", other_trials, "foreign"),
    ("a refusal", |s| s.flags = RST | ACK, "resets"),
    ("another port is wrong", |s| s.ports.1 ^= 1, "mistranslated"),
    ("another address is wrong", |s| s.addresses.1 = "10.0.0.3", "mistranslated"),
    ("the SYN itself came back", |s| s.flags = SYN, "foreign"),
];

const ACKS: &[Row] = &[
    ("an acknowledgment of another number is wrong content", |s| s.acknowledgment ^= 1, "wrong third messages"),
    ("a source outside the pool is wrong", |s| s.addresses.0 = "198.19.0.77", "mistranslated"),
];

#[test]
fn what_is_no_segment_of_ours_is_sorted_as_each_row_says() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, segments(&[], "1000", &[]));
    let (inside, _) = syn(&loaded, 5, INSIDE4, 20);
    let [asked, answered, third] = opened(&loaded, 5);
    sorted(&loaded, RESPONDER, &asked, SYNS);
    sorted(&loaded, INITIATOR, &answered.inside(&inside), SYN_ACKS);
    sorted(&loaded, RESPONDER, &third, ACKS);
    for (side, right) in [(RESPONDER, &asked), (INITIATOR, &answered.inside(&inside)), (RESPONDER, &third)] {
        let before = loaded.programs.received();
        let mut flipped = right.build();
        flipped[63] ^= 1;
        let (verdict, _, after) = loaded.receive(side, &flipped);
        assert_eq!((verdict, risen(&before, &after)), (DROP, vec!["damaged"]), "a flipped bit is damage");
    }
}

#[test]
fn a_device_that_changes_time_stamps_and_changes_the_echo_back_is_seen_by_the_answer() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, segments(&[], "1000", &[]));
    let (inside, _) = syn(&loaded, 0, INSIDE4, 20);
    let asked = inside.outside();
    let changed = Segment { stamps: (asked.stamps.0.wrapping_add(77), 0), ..asked.clone() };
    let (_, reply, before) = loaded.receive(RESPONDER, &changed.build());
    let answered = syn_ack(&changed, &reply).inside(&inside);
    let restored = Segment { stamps: (answered.stamps.0, inside.stamps.0), ..answered };
    let (verdict, _, after) = loaded.receive(INITIATOR, &restored.build());
    assert_eq!((verdict, risen(&before, &after)), (REDIRECT, vec!["second messages", "restamped"]));
}

#[test]
fn data_outside_of_the_window_is_wrong_content() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, segments(&[], "1", &[]));
    let [_, answered, third] = opened(&loaded, 0);
    let up = loaded.generate(&[flow(PHASE2_INITIATOR, 1)]).remove(0);
    let data = Segment { flags: PSH | ACK, payload: up[66..].to_vec(), ..third };
    sorted(
        &loaded,
        RESPONDER,
        &data,
        &[
            ("another sequence number", |s| s.sequence = s.sequence.wrapping_add(18), "wrong data"),
            ("another acknowledgment", |s| s.acknowledgment = s.acknowledgment.wrapping_add(1), "wrong data"),
        ],
    );
    assert_eq!(data.sequence, answered.acknowledgment);
}

/// Ranges that 10 connections fill by more than half, so that a connection's number is its position in them.
const FILLED: [(&str, &str); 2] = [
    ("/initiator/source_ports", r#"{"first":1024,"last":1036}"#),
    ("/initiator/destination_ports", r#"{"first":1,"last":1}"#),
];

#[test]
fn each_of_several_senders_numbers_its_own_connections() {
    for ranges in [&[][..], &FILLED] {
        let request = segments(&[], "10", &[ranges, &[("/senders/cpus", "[0,1]")]].concat());
        let plan = plan::build(&request, [INITIATOR_MACS, RESPONDER_MACS]);
        assert_eq!(plan.opens_permuted, u32::from(!ranges.is_empty()));
        let mut place = MaybeUninit::uninit();
        let loaded = Loaded::new(&mut place, request);
        let before = loaded.programs.received();
        // The harness sends all connections as one sender does; a receiver attributes them to two.
        for at in 0..10 {
            let [_, _, third] = opened(&loaded, at);
            loaded.receive(RESPONDER, &third.build());
        }
        let after = loaded.programs.received();
        let received = after.tally[PHASE1].received - before.tally[PHASE1].received;
        assert_eq!((received, after.tally[PHASE1].reordered, after.stored), (10, 0, 10));
        let lost = [0, 1].map(|sender| loaded.programs.window(sender, PHASE1).unwrap().lost(5).unwrap().len());
        assert_eq!(lost, [0, 0], "five connections of each sender");
    }
}

#[test]
fn programs_of_tcp_are_verified_with_room_to_spare() {
    let longest = r#","closing":{"by":"fin","request_octets":1360}"#;
    for (through, size) in [(&[] as &[_], 88), (NAT64, 108)] {
        let half_open = r#","half_open":true"#;
        for (closing, phase2) in
            [("", r#"{"initiator":{"rate":1000.0,"frames":10}}"#), (longest, "null"), (half_open, "null")]
        {
            let more = [("/frame_timeout_ms", "250"), ("/phase2", phase2)];
            let mut place = MaybeUninit::uninit();
            let loaded = Loaded::new(&mut place, closed(through, "1000", closing, size, &more));
            for instructions in loaded.programs.verified_instructions() {
                println!("{instructions} instructions verified");
                assert!(instructions < 200_000, "{instructions}");
            }
        }
    }
}
