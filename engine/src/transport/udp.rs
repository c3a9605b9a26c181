// SPDX-License-Identifier: Apache-2.0
//! UDP (RFC 768): a datagram of each side, or a DNS query and its response.

use crate::dns::{Content, Question};
use crate::messages::{Message, MessageName, Payload};
use crate::shared::{CLOSING, INITIATOR, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER};

pub(super) const PROTOCOL: u8 = 17;

pub(super) fn messages(question: Option<Question>) -> Vec<Message> {
    let first = &[PHASE1, PHASE2_INITIATOR, CLOSING];
    let Some(question) = question else {
        return vec![
            Message::tagged(MessageName::Datagram, INITIATOR, first),
            Message::tagged(MessageName::Datagram, RESPONDER, &[PHASE2_RESPONDER]),
        ];
    };
    let (asked, answered) = (Payload::Dns(Content::query(question)), Payload::Dns(Content::response(question)));
    vec![
        Message { payload: asked, ..Message::tagged(MessageName::Query, INITIATOR, first) },
        Message { payload: answered, ..Message::tagged(MessageName::Response, RESPONDER, &[]) },
    ]
}

/// The length; frames differ in ports and checksum.
pub(super) fn header(length: u16) -> Vec<u8> {
    [&[0; 4][..], &length.to_be_bytes(), &[0; 2]].concat()
}
