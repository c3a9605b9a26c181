// SPDX-License-Identifier: Apache-2.0
//! TCP (RFC 9293): the Initiator's SYN, to which the Responder reacts with a SYN-ACK, and to that the Initiator with an
//! ACK. In phase 2 each side's schedule sends segments with data, or the Initiator closes its connections. In a
//! transaction everything is a reaction: the ACK contains a request, the Responder responds, and the Initiator closes.
//! A half-open connection has no ACK, and the Responder's schedule sends its SYN-ACK.

use crate::family::Family;
use crate::messages::{Message, MessageName, Payload};
use crate::shared::{CLOSING, INITIATOR, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER};
use crate::tester::types::frame_kind;
use crate::transport::{Closing, Way};

pub(super) const PROTOCOL: u8 = 6;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;
/// Octets before the options.
const FIXED: usize = 20;
/// Window of a Linux host after its SYN, in units of 2^7 octets.
const SCALED_WINDOW: u16 = 502;
const WINDOW_SCALE: u8 = 7;
/// A time stamp and its echo, which the frame programs write (RFC 7323 section 3.2).
const STAMPS: [u8; 10] = [8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
const NO_OPERATION: u8 = 1;

pub(super) fn messages(closing: Option<Closing>, leave: Option<Way>) -> Vec<Message> {
    let request = closing.and_then(|closing| closing.request_octets).map(|octets| octets as u32);
    let mut all = handshake(request.unwrap_or(0));
    let Some(closing) = closing else {
        let data = |kind, sender, streams| Message {
            place: place(kind),
            numbers: (1, 1),
            ..Message::tagged(MessageName::Segment, sender, streams)
        };
        all.push(data(frame_kind::FRAME_DATA_UP, INITIATOR, &[PHASE2_INITIATOR]));
        all.push(data(frame_kind::FRAME_DATA_DOWN, RESPONDER, &[PHASE2_RESPONDER]));
        all.extend(leave.into_iter().flat_map(|by| ending(by, 1, &[CLOSING])));
        return all;
    };
    let octets = 1 + request.unwrap_or(0);
    if let Some(request) = request {
        let numbers = (1, octets);
        all.push(untagged(MessageName::Response, frame_kind::FRAME_RESPONSE, RESPONDER, numbers, request));
    }
    let streams: &[usize] = if request.is_some() { &[] } else { &[PHASE2_INITIATOR] };
    all.extend(ending(closing.by, octets, streams));
    all
}

/// The messages that close a connection whose sides have sent `octets` octets, the SYN included.
fn ending(by: Way, octets: u32, streams: &'static [usize]) -> Vec<Message> {
    let name = if by == Way::Rst { MessageName::Rst } else { MessageName::Fin };
    let first = untagged(name, frame_kind::FRAME_FIN, INITIATOR, (octets, octets), 0);
    let mut all = vec![Message { streams, ..first }];
    if by == Way::Fin {
        let ends = (octets, 1 + octets);
        all.push(untagged(MessageName::FinAck, frame_kind::FRAME_FIN_ACK, RESPONDER, ends, 0));
        let both = (1 + octets, 1 + octets);
        all.push(untagged(MessageName::LastAck, frame_kind::FRAME_LAST_ACK, INITIATOR, both, 0));
    }
    all
}

/// The messages that open a connection; the third one has `octets` octets of data.
fn handshake(octets: u32) -> Vec<Message> {
    let [syn, syn_ack] = opening_messages(&[]);
    vec![syn, syn_ack, untagged(MessageName::Ack, frame_kind::FRAME_ACK, INITIATOR, (1, 1), octets)]
}

/// The messages of a connection that stays half-open.
pub(super) fn half_open() -> Vec<Message> {
    opening_messages(&[PHASE2_RESPONDER]).into()
}

/// SYN and SYN-ACK; `answers`: streams that send the SYN-ACK.
fn opening_messages(answers: &'static [usize]) -> [Message; 2] {
    let syn = untagged(MessageName::Syn, frame_kind::FRAME_SYN, INITIATOR, (0, 0), 0);
    let syn_ack = untagged(MessageName::SynAck, frame_kind::FRAME_SYN_ACK, RESPONDER, (0, 1), 0);
    [Message { streams: &[PHASE1], ..syn }, Message { streams: answers, ..syn_ack }]
}

/// A message without a tag, which no schedule sends.
fn untagged(name: MessageName, kind: frame_kind, sender: usize, numbers: (u32, u32), octets: u32) -> Message {
    Message { name, sender, streams: &[], payload: Payload::Untagged(octets), place: place(kind), numbers }
}

fn place(kind: frame_kind) -> usize {
    (kind.0 - frame_kind::FRAME_SYN.0) as usize
}

/// Flags, window and options; frames differ in ports, numbers, checksum and time stamps.
pub(super) fn header(message: &Message, family: Family) -> Vec<u8> {
    let push = if matches!(message.payload, Payload::Untagged(0)) { 0 } else { PSH };
    let (flags, window, options) = match message.name {
        MessageName::Syn => (SYN, window_of(largest_segment(family)), opening(family)),
        // The other side has announced time stamps, so their option is in each segment.
        MessageName::SynAck => (SYN | ACK, window_of(largest_segment(family) - later().len() as u16), opening(family)),
        MessageName::Fin | MessageName::FinAck => (FIN | ACK, SCALED_WINDOW, later()),
        MessageName::Rst => (RST | ACK, SCALED_WINDOW, later()),
        _ => (push | ACK, SCALED_WINDOW, later()),
    };
    let words = (FIXED + options.len()) / 4;
    [&[0; 12][..], &[(words as u8) << 4, flags], &window.to_be_bytes(), &[0; 4], &options].concat()
}

/// Options of the first segments in the order of Linux: largest segment, selective acknowledgments (RFC 2018), time
/// stamps and window scale (RFC 7323).
fn opening(family: Family) -> Vec<u8> {
    [&[2, 4][..], &largest_segment(family).to_be_bytes(), &[4, 2], &STAMPS, &[NO_OPERATION, 3, 3, WINDOW_SCALE]]
        .concat()
}

/// The largest segment of a link with an MTU of 1500 octets (RFC 9293 section 3.7.1).
fn largest_segment(family: Family) -> u16 {
    match family {
        Family::Ipv4 => 1460,
        Family::Ipv6 => 1440,
    }
}

/// The window that Linux announces in its first segment: as many whole segments as the field can say.
fn window_of(segment: u16) -> u16 {
    u16::MAX / segment * segment
}

fn later() -> Vec<u8> {
    [&[NO_OPERATION; 2][..], &STAMPS].concat()
}
