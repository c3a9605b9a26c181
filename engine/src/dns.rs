// SPDX-License-Identifier: Apache-2.0
//! DNS messages (RFC 1035 section 4) for trials in which the Initiator sends queries and the Responder responds. They are
//! complete except for identifier and tag, which the frame programs write.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::shared::{CONTENT_WORDS, LETTERS_AT, TAG_OCTETS};
use crate::tester::types;

/// Labels after the tag's; `test` is reserved for tests (RFC 6761 section 6.2).
const ZONE: [&str; 2] = ["natgauge", "test"];
const CLASS_IN: u16 = 1;
/// Flags of a query: recursion desired, as stub resolvers set it.
const QUERY_FLAGS: u16 = 0x0100;
/// Flags of a response: authoritative, recursion desired.
const RESPONSE_FLAGS: u16 = 0x8500;
/// Flags of a response that are checked: QR, OPCODE, TC and RCODE. Others may differ, so responses from a cache are
/// correct, too.
const CHECKED_FLAGS: u16 = 0xfa0f;
/// Pointer to the queried name (RFC 1035 section 4.1.4).
const SAME_NAME: u16 = 0xc000 | HEADER_OCTETS;
const HEADER_OCTETS: u16 = 12;
const TTL_SECONDS: u32 = 60;
/// From the IPv4 block for benchmarks (RFC 2544 section C.2.2).
const ADDRESS4: [u8; 4] = [198, 18, 0, 53];
/// From the IPv6 prefix for benchmarks (RFC 5180 section 8).
const ADDRESS6: [u8; 16] = [0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x53];

/// Type of a DNS query (RFC 1035, RFC 3596).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names of record types")]
pub enum Query {
    A,
    Aaaa,
}

impl Query {
    /// Number of the record type.
    pub fn record_type(self) -> u16 {
        match self {
            Self::A => 1,
            Self::Aaaa => 28,
        }
    }
}

/// What is asked, and the right answer where it is not natgauge's own.
#[derive(Debug, Clone, Copy)]
pub struct Question {
    /// Type of the queries.
    pub query: Query,
    /// The one right address; of the query's family.
    pub answer: Option<IpAddr>,
}

/// The octets of a message, and a mask of the bits in which a received message must equal them.
#[derive(Debug, Clone, Default)]
pub struct Content {
    octets: Vec<u8>,
    mask: Vec<u8>,
}

impl Content {
    fn put(&mut self, octets: &[u8]) {
        self.put_masked(octets, &vec![0xff; octets.len()]);
    }

    fn put_masked(&mut self, octets: &[u8], mask: &[u8]) {
        self.octets.extend(octets);
        self.mask.extend(mask);
    }

    /// Header with `answers` as number of answer records, and question section.
    fn new(query: Query, flags: u16, checked: u16, answers: u16) -> Self {
        let mut message = Self::default();
        message.put_masked(&[0; 2], &[0; 2]);
        message.put_masked(&flags.to_be_bytes(), &checked.to_be_bytes());
        [1, answers, 0, 0].iter().for_each(|count: &u16| message.put(&count.to_be_bytes()));
        let letters = vec![0; 2 * TAG_OCTETS as usize];
        message.put(&[letters.len() as u8]);
        debug_assert_eq!(message.octets.len(), LETTERS_AT as usize);
        message.put_masked(&letters, &letters);
        for label in ZONE {
            message.put(&[label.len() as u8]);
            message.put(label.as_bytes());
        }
        message.put(&[0]);
        message.put(&query.record_type().to_be_bytes());
        message.put(&CLASS_IN.to_be_bytes());
        message
    }

    /// The message that the Initiator sends.
    pub fn query(Question { query, .. }: Question) -> Self {
        Self::new(query, QUERY_FLAGS, u16::MAX, 0)
    }

    /// The Responder's response. Received responses may have any time to live.
    pub fn response(Question { query, answer }: Question) -> Self {
        let mut message = Self::new(query, RESPONSE_FLAGS, CHECKED_FLAGS, 1);
        message.put(&SAME_NAME.to_be_bytes());
        message.put(&query.record_type().to_be_bytes());
        message.put(&CLASS_IN.to_be_bytes());
        message.put_masked(&TTL_SECONDS.to_be_bytes(), &[0; 4]);
        let address = match (answer, query) {
            (Some(IpAddr::V4(address)), _) => address.octets().to_vec(),
            (Some(IpAddr::V6(address)), _) => address.octets().to_vec(),
            (None, Query::A) => ADDRESS4.to_vec(),
            (None, Query::Aaaa) => ADDRESS6.to_vec(),
        };
        message.put(&(address.len() as u16).to_be_bytes());
        message.put(&address);
        message
    }

    /// Octets of the message, 0 where the frame programs write.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// The content for the frame programs.
    pub fn shared(&self) -> types::content {
        types::content { words: words(&self.octets), mask: words(&self.mask) }
    }
}

/// Octets as words in memory order, filled up with zeros.
fn words(octets: &[u8]) -> [u64; CONTENT_WORDS] {
    let mut words = [0; CONTENT_WORDS];
    for (word, eight) in words.iter_mut().zip(octets.chunks(8)) {
        let mut whole = [0; 8];
        whole[..eight.len()].copy_from_slice(eight);
        *word = u64::from_ne_bytes(whole);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_fits_the_words_and_is_a_multiple_of_four_octets_long() {
        let questions = [Query::A, Query::Aaaa].map(|query| Question { query, answer: None });
        for message in questions.into_iter().flat_map(|asked| [Content::query(asked), Content::response(asked)]) {
            assert!(message.octets.len() <= 8 * CONTENT_WORDS && message.octets.len() % 4 == 0);
            assert_eq!(message.octets.len(), message.mask.len());
        }
    }
}
