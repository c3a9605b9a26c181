// SPDX-License-Identifier: Apache-2.0
//! ICMP echo (RFC 792, RFC 4443 section 4): requests of the Initiator, replies of the Responder. The Responder's schedule
//! sends the replies, as it sends UDP datagrams: any number of them may follow a request.

use crate::family::Family;
use crate::messages::{Message, MessageName};
use crate::shared::{CLOSING, INITIATOR, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER};

pub(super) fn protocol(family: Family) -> u8 {
    match family {
        Family::Ipv4 => 1,
        Family::Ipv6 => 58,
    }
}

pub(super) fn messages() -> Vec<Message> {
    vec![
        Message::tagged(MessageName::Request, INITIATOR, &[PHASE1, PHASE2_INITIATOR, CLOSING]),
        Message::tagged(MessageName::Reply, RESPONDER, &[PHASE2_RESPONDER]),
    ]
}

/// Type and code; frames differ in checksum, identifier and sequence number.
pub(super) fn header(message: &Message, family: Family) -> Vec<u8> {
    let [request, reply] = match family {
        Family::Ipv4 => [8, 0],
        Family::Ipv6 => [128, 129],
    };
    vec![if message.sender == INITIATOR { request } else { reply }, 0, 0, 0, 0, 0, 0, 0]
}
