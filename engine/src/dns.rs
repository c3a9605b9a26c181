// SPDX-License-Identifier: Apache-2.0
//! DNS messages (RFC 1035 section 4) for trials in which the Initiator sends queries and the Responder responds. They are
//! complete except for identifier and tag, which the frame programs write.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::shared::{CONTENT_WORDS, LETTERS_AT, TAG_OCTETS};
use crate::tester::types;

/// The zone: reserved for tests (RFC 6761 section 6.2).
const ZONE: &str = "test";
/// Labels between the tag's and the zone, of one length: of names without an AAAA record of their own where the device
/// makes one, and of names with one.
const PARENTS: [&str; 2] = ["natgauge", "withaaaa"];
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
/// Place of the numbers of records in the authority and additional sections.
const COUNTS_OF_ADDITIONS: std::ops::Range<usize> = 8..12;
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
    /// Whether some names have an AAAA record of their own, which is then the right answer.
    pub with_aaaa: bool,
    /// Whether responses may have records in the authority and additional sections.
    pub additions: bool,
}

/// The octets of a message, and a mask of the bits in which a received message must equal them.
#[derive(Debug, Clone, Default)]
pub struct Content {
    octets: Vec<u8>,
    mask: Vec<u8>,
    /// The same message about a name with an AAAA record of its own.
    other: Vec<u8>,
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
    fn new(query: Query, flags: u16, checked: u16, answers: u16, parent: &str) -> Self {
        let mut message = Self::default();
        message.put_masked(&[0; 2], &[0; 2]);
        message.put_masked(&flags.to_be_bytes(), &checked.to_be_bytes());
        [1, answers, 0, 0].iter().for_each(|count: &u16| message.put(&count.to_be_bytes()));
        let letters = vec![0; 2 * TAG_OCTETS as usize];
        message.put(&[letters.len() as u8]);
        debug_assert_eq!(message.octets.len(), LETTERS_AT as usize);
        message.put_masked(&letters, &letters);
        for label in [parent, ZONE] {
            message.put(&[label.len() as u8]);
            message.put(label.as_bytes());
        }
        message.put(&[0]);
        message.put(&query.record_type().to_be_bytes());
        message.put(&CLASS_IN.to_be_bytes());
        message
    }

    /// The message that the Initiator sends.
    pub fn query(question: Question) -> Self {
        Self::of_both(question, |parent, _| Self::new(question.query, QUERY_FLAGS, u16::MAX, 0, parent))
    }

    /// The Responder's response. Received responses may have any time to live.
    pub fn response(question: Question) -> Self {
        let mut response = Self::of_both(question, |parent, answer| Self::answered(question.query, parent, answer));
        if question.additions {
            response.mask[COUNTS_OF_ADDITIONS].fill(0);
        }
        response
    }

    /// The message, with that about names with an AAAA record of their own.
    fn of_both(question: Question, make: impl Fn(&str, Option<IpAddr>) -> Self) -> Self {
        let [without, with] = PARENTS;
        let message = make(without, question.answer);
        let other = if question.with_aaaa { make(with, None).octets } else { message.octets.clone() };
        Self { other, ..message }
    }

    fn answered(query: Query, parent: &str, answer: Option<IpAddr>) -> Self {
        let mut message = Self::new(query, RESPONSE_FLAGS, CHECKED_FLAGS, 1, parent);
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

    /// The octets of the message about names with an AAAA record of their own.
    pub fn other_octets(&self) -> &[u8] {
        &self.other
    }

    /// The content for the frame programs, without checksum sum.
    pub fn shared(&self) -> types::content {
        let different: Vec<u8> = self.octets.iter().zip(&self.other).map(|(one, other)| one ^ other).collect();
        types::content {
            words: words(&self.octets),
            mask: words(&self.mask),
            other: words(&different),
            ..Default::default()
        }
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
        let question = |query, with_aaaa| Question { query, answer: None, with_aaaa, additions: with_aaaa };
        let questions = [question(Query::A, false), question(Query::Aaaa, false), question(Query::Aaaa, true)];
        for message in questions.into_iter().flat_map(|asked| [Content::query(asked), Content::response(asked)]) {
            assert!(message.octets.len() <= 8 * CONTENT_WORDS && message.octets.len() % 4 == 0);
            assert_eq!(message.octets.len(), message.mask.len());
            assert_eq!(message.octets.len(), message.other.len());
        }
    }
}
