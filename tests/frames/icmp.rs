// SPDX-License-Identifier: Apache-2.0
//! ICMP echo: requests and replies spelled out from RFC 792 and RFC 4443, through a NAT44 and a NAT64.

use std::mem::MaybeUninit;

use natgauge_engine::flow::Flow;
use natgauge_engine::programs::Received;
use natgauge_engine::request::Request;
use natgauge_engine::shared::{INITIATOR, PHASE1, PHASE2_RESPONDER, RESPONDER, TAG_OCTETS};

use crate::frame::{ones_complement, v4, v6};
use crate::harness::{flow, request, Loaded, DROP, INITIATOR_MACS, NAT64, REDIRECT, RESPONDER_MACS};
use crate::receiver::risen;

const FIRST: Flow = Flow { frames: 20, ..flow(PHASE1, 20) };
const SEQUENCE: u16 = 7;
const ONE: &str = r#"{"first":7,"last":7}"#;
const ONCE: &str = r#"{"rate":1000000.0,"frames":1,"reading_order":"once"}"#;
const OUTSIDE: u16 = 33_333;

fn echoes(through: &[(&str, &str)]) -> Request {
    let size = if through.is_empty() { 70 } else { 90 };
    let frame = format!(r#"{{"size":{size},"side":"initiator","transport":"icmp"}}"#);
    let own = [
        ("/frame", frame.as_str()),
        ("/initiator/destination_ports", ONE),
        ("/connections", "1"),
        ("/phase2/responder", ONCE),
    ];
    request(&[through, &own].concat())
}

/// An echo message: type, identifier, sequence number, and the octets after them.
fn echo(kind: u8, identifier: u16, sequence: u16, payload: &[u8], pseudo: &[u8]) -> Vec<u8> {
    let numbers = [identifier.to_be_bytes(), sequence.to_be_bytes()].concat();
    let mut message = [&[kind, 0, 0, 0][..], &numbers, payload].concat();
    let check = !ones_complement(&[pseudo, &message].concat());
    message[2..4].copy_from_slice(&check.to_be_bytes());
    message
}

fn octets_of(address: &str) -> Vec<u8> {
    match if address.contains(':') { v6(address) } else { v4(address) } {
        std::net::IpAddr::V4(v4) => v4.octets().to_vec(),
        std::net::IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

struct Message<'a> {
    /// Receiver's and sender's MAC address.
    macs: ([u8; 6], [u8; 6]),
    addresses: (&'a str, &'a str),
    kind: u8,
    identifier: u16,
    payload: &'a [u8],
}

impl Message<'_> {
    fn build(&self) -> Vec<u8> {
        let addresses = [octets_of(self.addresses.0), octets_of(self.addresses.1)].concat();
        let ethernet = [self.macs.0, self.macs.1].concat();
        let length = (8 + self.payload.len() as u16).to_be_bytes();
        if addresses.len() == 8 {
            let message = echo(self.kind, self.identifier, SEQUENCE, self.payload, &[]);
            let total = (20 + message.len() as u16).to_be_bytes();
            let mut ip = [&[0x45, 0][..], &total, &[0, 0, 0, 0, 10, 1, 0, 0], &addresses].concat();
            let check = !ones_complement(&ip);
            ip[10..12].copy_from_slice(&check.to_be_bytes());
            return [&ethernet[..], &[8, 0], &ip, &message].concat();
        }
        let pseudo = [&addresses[..], &[0, 0], &length, &[0, 0, 0, 58]].concat();
        let message = echo(self.kind, self.identifier, SEQUENCE, self.payload, &pseudo);
        let ip = [&[0x60, 0, 0, 0][..], &length, &[58, 10], &addresses].concat();
        [&ethernet[..], &[0x86, 0xdd], &ip, &message].concat()
    }
}

fn identifier(frame: &[u8], header: usize) -> u16 {
    u16::from_be_bytes([frame[14 + header + 4], frame[14 + header + 5]])
}

/// Source and destination inside, headers, types of requests and replies inside.
type Inside = (&'static str, &'static str, usize, u8, u8);
const INSIDE4: Inside = ("10.0.0.2", "198.19.0.2", 20, 8, 0);
const INSIDE6: Inside = ("2001:2::2", "2001:2:0:1::c613:2", 40, 128, 129);
const BOTH_WAYS: [(&[(&str, &str)], Inside); 2] = [(&[], INSIDE4), (NAT64, INSIDE6)];

/// What the Initiator sends, and the same message as the device hands it to the Responder.
fn sent(loaded: &Loaded, header: usize) -> (Vec<u8>, Vec<u8>) {
    let frame = loaded.generate(&[Flow { frames: 1, ..FIRST }]).remove(0);
    let outside = Message {
        macs: (RESPONDER_MACS.0, RESPONDER_MACS.1),
        addresses: ("198.19.0.1", "198.19.0.2"),
        kind: 8,
        identifier: OUTSIDE,
        payload: &frame[14 + header + 8..],
    };
    let outside = outside.build();
    (frame, outside)
}

#[test]
fn every_octet_of_a_request_is_as_the_rfcs_say() {
    for (through, (source, destination, header, kind, _)) in BOTH_WAYS {
        let mut place = MaybeUninit::uninit();
        let loaded = Loaded::new(&mut place, echoes(through));
        let (frame, _) = sent(&loaded, header);
        let expected = Message {
            macs: (INITIATOR_MACS.1, INITIATOR_MACS.0),
            addresses: (source, destination),
            kind,
            identifier: identifier(&frame, header),
            payload: &frame[14 + header + 8..],
        };
        assert_eq!(frame, expected.build(), "{source}");
        assert_eq!(frame.len(), if header == 20 { 66 } else { 86 });
        let padding: Vec<u8> = (0..6).collect();
        assert_eq!(frame[14 + header + 8 + TAG_OCTETS as usize..], padding, "after the tag");
    }
}

#[test]
fn the_identifier_outside_is_learned_and_replies_go_there_and_come_back() {
    for (through, (source, destination, header, _, kind)) in BOTH_WAYS {
        let mut place = MaybeUninit::uninit();
        let loaded = Loaded::new(&mut place, echoes(through));
        let (frame, outside) = sent(&loaded, header);
        let (verdict, _, learned) = loaded.receive(RESPONDER, &outside);
        assert_eq!((verdict, risen(&Received::default(), &learned)), (DROP, vec!["received", "stored"]), "{source}");
        let reply = loaded.generate(&[flow(PHASE2_RESPONDER, 1)]).remove(0);
        let expected = Message {
            macs: (RESPONDER_MACS.1, RESPONDER_MACS.0),
            addresses: ("198.19.0.2", "198.19.0.1"),
            kind: 0,
            identifier: OUTSIDE,
            payload: &reply[42..],
        };
        assert_eq!(reply, expected.build(), "{source}");
        let back = |identifier| {
            let message = Message {
                macs: INITIATOR_MACS,
                addresses: (destination, source),
                kind,
                identifier,
                payload: &reply[42..],
            };
            message.build()
        };
        let (_, _, after) = loaded.receive(INITIATOR, &back(identifier(&frame, header)));
        assert_eq!(risen(&learned, &after), ["received"], "{source}");
        let (_, _, wrong) = loaded.receive(INITIATOR, &back(identifier(&frame, header) ^ 1));
        assert_eq!(risen(&after, &wrong), ["mistranslated"], "{source}");
    }
}

#[test]
fn what_is_no_request_of_ours_is_sorted_as_each_row_says() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, echoes(&[]));
    let (frame, right) = sent(&loaded, 20);
    let with = |addresses, kind, identifier, payload: &[u8]| {
        Message { macs: (RESPONDER_MACS.0, RESPONDER_MACS.1), addresses, kind, identifier, payload }.build()
    };
    let (ours, payload) = (("198.19.0.1", "198.19.0.2"), &right[42..]);
    let mut flipped = right.clone();
    flipped[60] ^= 1;
    let rows = [
        ("a reply is no request", with(ours, 0, OUTSIDE, payload), "foreign"),
        ("an error message is no request", with(ours, 3, OUTSIDE, payload), "foreign"),
        (
            "an inside source is a leak",
            with(("10.0.0.2", "198.19.0.2"), 8, identifier(&frame, 20), payload),
            "untranslated",
        ),
        (
            "a source outside the pool is wrong",
            with(("198.19.0.77", "198.19.0.2"), 8, OUTSIDE, payload),
            "mistranslated",
        ),
        ("a flipped bit is damage", flipped, "damaged"),
    ];
    for (sentence, frame, expected) in rows {
        let before = loaded.programs.received();
        let (_, _, after) = loaded.receive(RESPONDER, &frame);
        assert_eq!(risen(&before, &after), [expected], "{sentence}");
    }
}

#[test]
fn neighbours_are_still_answered() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, echoes(NAT64));
    let target = octets_of("2001:2::2");
    let body = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &target, &[1, 1, 2, 0, 0, 0, 1, 1]].concat();
    let mut frame = [&[0x33, 0x33, 0xff, 0, 0, 2][..], &[2, 0, 0, 0, 1, 1], &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
    frame.extend([&[0, body.len() as u8, 58, 255][..], &octets_of("fe80::1"), &target, &body].concat());
    let (verdict, reply, after) = loaded.receive(INITIATOR, &frame);
    assert_eq!((verdict, reply[54], after.neighbour_replies[INITIATOR]), (REDIRECT, 136, 1));
}
