// SPDX-License-Identifier: Apache-2.0
//! TCP (RFC 9293): the Initiator's SYN, to which the Responder reacts with a SYN-ACK, and to that the Initiator with an
//! ACK. In phase 2 each side's schedule sends segments with data.

use crate::family::Family;
use crate::messages::{Message, MessageName, Payload};
use crate::shared::{INITIATOR, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER};

pub(super) const PROTOCOL: u8 = 6;

const SYN: u8 = 2;
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

pub(super) fn messages() -> Vec<Message> {
    let handshake = |name, sender, streams| Message { name, sender, streams, payload: Payload::Nothing };
    vec![
        handshake(MessageName::Syn, INITIATOR, &[PHASE1]),
        handshake(MessageName::SynAck, RESPONDER, &[]),
        handshake(MessageName::Ack, INITIATOR, &[]),
        Message::tagged(MessageName::Segment, INITIATOR, &[PHASE2_INITIATOR]),
        Message::tagged(MessageName::Segment, RESPONDER, &[PHASE2_RESPONDER]),
    ]
}

/// Flags, window and options; frames differ in ports, numbers, checksum and time stamps.
pub(super) fn header(message: &Message, family: Family) -> Vec<u8> {
    let (flags, window, options) = match message.name {
        MessageName::Syn => (SYN, window_of(largest_segment(family)), opening(family)),
        // The other side has announced time stamps, so their option is in each segment.
        MessageName::SynAck => (SYN | ACK, window_of(largest_segment(family) - later().len() as u16), opening(family)),
        MessageName::Ack => (ACK, SCALED_WINDOW, later()),
        _ => (PSH | ACK, SCALED_WINDOW, later()),
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
