// SPDX-License-Identifier: Apache-2.0
//! UDP (RFC 768): a datagram of each side, or a DNS query and its response.

use crate::dns::{Content, Query};
use crate::messages::{Message, MessageName};
use crate::shared::{INITIATOR, RESPONDER};

pub(super) const PROTOCOL: u8 = 17;

pub(super) fn messages(query: Option<Query>) -> Vec<Message> {
    let Some(query) = query else {
        return [INITIATOR, RESPONDER].map(|sender| Message::scheduled(MessageName::Datagram, sender)).into();
    };
    let (asked, answered) = (Content::query(query), Content::response(query));
    vec![
        Message { content: Some(asked), ..Message::scheduled(MessageName::Query, INITIATOR) },
        Message { content: Some(answered), reacts: true, ..Message::scheduled(MessageName::Response, RESPONDER) },
    ]
}

/// The length is in the header and in the pseudo header (RFC 768, RFC 8200 section 8.1).
pub(super) fn summed(length: u16) -> Vec<u8> {
    let length = length.to_be_bytes();
    [&length[..], &length, &[0, PROTOCOL]].concat()
}
