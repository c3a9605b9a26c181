// SPDX-License-Identifier: Apache-2.0
//! The header between IP and the tag, and the messages of a connection; one file for each transport.

mod icmp;
mod tcp;
mod udp;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dns::Question;
use crate::family::Family;
use crate::messages::Message;
use crate::request::bounds::Whole;

/// A request and its headers fit into a packet of 1500 octets, in a tunnel, too.
const MOST_REQUEST: u64 = 1360;

/// What test frames are: UDP datagrams; ICMP echo requests and replies, whose identifier is the Initiator's port; or TCP
/// segments, after a handshake in phase 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names of protocols")]
pub enum Transport {
    #[default]
    Udp,
    Icmp,
    Tcp,
}

/// The segment with which the Initiator begins to close a connection: a FIN, to which the Responder reacts with its own,
/// or a reset, which ends it at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names of the flags")]
pub enum Way {
    Fin,
    Rst,
}

/// How TCP connections are closed: in phase 1 as the end of a transaction, or in phase 2.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Closing {
    /// The Initiator's segment that begins to close a connection.
    pub by: Way,
    /// Octets of the request in the ACK of each handshake, and of the Responder's response to it. The Initiator reacts to
    /// the response and closes the connection. Absent: there are no requests, and each of the Initiator's frames of
    /// phase 2 closes one connection, in the order in which they were opened.
    #[serde(default, with = "Whole::<0, MOST_REQUEST>")]
    pub request_octets: Option<u64>,
}

impl Transport {
    /// The messages of a connection; `question`: of DNS; `half_open`, `closing` and `leave`: of TCP.
    pub fn messages(
        self,
        question: Option<Question>,
        half_open: bool,
        closing: Option<Closing>,
        leave: Option<Way>,
    ) -> Vec<Message> {
        match self {
            Self::Udp => udp::messages(question),
            Self::Icmp => icmp::messages(),
            Self::Tcp if half_open => tcp::half_open(),
            Self::Tcp => tcp::messages(closing, leave),
        }
    }

    /// Its number in the IP header.
    pub fn protocol(self, family: Family) -> u8 {
        match self {
            Self::Udp => udp::PROTOCOL,
            Self::Icmp => icmp::protocol(family),
            Self::Tcp => tcp::PROTOCOL,
        }
    }

    /// The header of a message, 0 where frames differ; `length`: of header and payload.
    pub fn header(self, message: &Message, family: Family, length: u16) -> Vec<u8> {
        match self {
            Self::Udp => udp::header(length),
            Self::Icmp => icmp::header(message, family),
            Self::Tcp => tcp::header(message, family),
        }
    }

    /// Octets of the header of a message.
    pub fn header_octets(self, message: &Message, family: Family) -> u32 {
        self.header(message, family, 0).len() as u32
    }

    /// The pseudo header without addresses (RFC 768, RFC 8200 section 8.1). ICMP over IPv4 has none (RFC 792).
    pub fn pseudo_header(self, family: Family, length: u16) -> Vec<u8> {
        let without = self == Self::Icmp && family == Family::Ipv4;
        let whole = || [&length.to_be_bytes()[..], &[0, self.protocol(family)]].concat();
        (!without).then(whole).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::Query;
    use crate::messages::of_stream;
    use crate::shared::{CLOSING, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER};

    #[test]
    fn a_stream_has_its_senders_message_and_the_reactions_after_it() {
        let of = |messages: &[Message], stream| of_stream(messages, stream).map(|(at, _)| at).collect::<Vec<_>>();
        let question = Question { query: Query::A, answer: None, with_aaaa: false, additions: false };
        let query = Transport::Udp.messages(Some(question), false, None, None);
        for stream in [PHASE1, PHASE2_INITIATOR] {
            assert_eq!(of(&query, stream), [0, 1]);
        }
        assert!(of(&query, PHASE2_RESPONDER).is_empty());
        for transport in [Transport::Udp, Transport::Icmp] {
            let messages = transport.messages(None, false, None, None);
            assert_eq!((of(&messages, PHASE1), of(&messages, PHASE2_RESPONDER)), (vec![0], vec![1]));
        }
        let tcp = Transport::Tcp.messages(None, false, None, None);
        assert_eq!(
            [PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER].map(|s| of(&tcp, s)),
            [vec![0, 1, 2], vec![3], vec![4]]
        );
        let half_open = Transport::Tcp.messages(None, true, None, None);
        assert_eq!([PHASE1, PHASE2_RESPONDER].map(|s| of(&half_open, s)), [vec![0], vec![1]]);
        for (by, last) in [(Way::Fin, 6), (Way::Rst, 4)] {
            let transaction = Transport::Tcp.messages(None, false, Some(Closing { by, request_octets: Some(0) }), None);
            assert_eq!(of(&transaction, PHASE1), (0..=last).collect::<Vec<_>>());
            let later = Transport::Tcp.messages(None, false, Some(Closing { by, request_octets: None }), None);
            assert_eq!(of(&later, PHASE1), [0, 1, 2]);
            assert_eq!(of(&later, PHASE2_INITIATOR), (3..last).collect::<Vec<_>>());
            let churn = Transport::Tcp.messages(None, false, None, Some(by));
            assert_eq!(
                [PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER].map(|s| of(&churn, s)),
                [vec![0, 1, 2], vec![3], vec![4]]
            );
            assert_eq!(of(&churn, CLOSING), (5..last + 2).collect::<Vec<_>>());
        }
    }
}
