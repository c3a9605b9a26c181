// SPDX-License-Identifier: Apache-2.0
//! ICMP echo (RFC 792, RFC 4443 section 4): requests of the Initiator, replies of the Responder. The Responder's schedule
//! sends the replies, as it sends UDP datagrams: any number of them may follow a request.

use crate::family::Family;
use crate::messages::{Message, MessageName};
use crate::shared::{INITIATOR, RESPONDER};

pub(super) fn protocol(family: Family) -> u8 {
    match family {
        Family::Ipv4 => 1,
        Family::Ipv6 => 58,
    }
}

pub(super) fn messages() -> Vec<Message> {
    vec![Message::scheduled(MessageName::Request, INITIATOR), Message::scheduled(MessageName::Reply, RESPONDER)]
}

/// Type and code, in the order of the header.
pub(super) fn type_and_code(message: &Message, family: Family) -> [u8; 2] {
    let [request, reply] = match family {
        Family::Ipv4 => [8, 0],
        Family::Ipv6 => [128, 129],
    };
    [if message.sender == INITIATOR { request } else { reply }, 0]
}

/// ICMP over IPv4 has no pseudo header (RFC 792); over IPv6 it has (RFC 4443 section 2.3).
pub(super) fn summed(message: &Message, family: Family, length: u16) -> Vec<u8> {
    let header = type_and_code(message, family);
    match family {
        Family::Ipv4 => header.to_vec(),
        Family::Ipv6 => [&header[..], &length.to_be_bytes(), &[0, protocol(family)]].concat(),
    }
}
