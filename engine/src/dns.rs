// SPDX-License-Identifier: Apache-2.0
//! What a trial's frames say when the Initiator asks and the Responder answers: messages of the DNS (RFC 1035 section
//! 4), whole but for an identifier and the letters in which the frame programs write the tag.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::shared::{LETTERS_AT, MESSAGE_WORDS, TAG_OCTETS};
use crate::tester::types;

/// Behind the tag's label; `test` is for tests (RFC 6761 section 6.2).
const ZONE: [&str; 2] = ["natgauge", "test"];
const CLASS_IN: u16 = 1;
/// Recursion is desired, as stub resolvers say.
const ASKED: u16 = 0x0100;
/// A response, with authority, to that.
const ANSWERED: u16 = 0x8500;
/// Of the flags of an answer, those that decide: response, operation, truncation and code. An answer from a cache is
/// one, too.
const DECIDING: u16 = 0xfa0f;
/// The queried name, by its place (RFC 1035 section 4.1.4).
const SAME_NAME: u16 = 0xc000 | HEADER_OCTETS;
const HEADER_OCTETS: u16 = 12;
const TTL_SECONDS: u32 = 60;
/// Of the block for benchmarks (RFC 2544 section C.2.2).
const ADDRESS4: [u8; 4] = [198, 18, 0, 53];
/// Of the prefix for benchmarks (RFC 5180 section 8).
const ADDRESS6: [u8; 16] = [0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x53];

/// What a DNS query asks for (RFC 1035, RFC 3596).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names of record types")]
pub enum Query {
    A,
    Aaaa,
}

impl Query {
    /// As the DNS numbers it.
    pub fn record_type(self) -> u16 {
        match self {
            Self::A => 1,
            Self::Aaaa => 28,
        }
    }
}

/// One kind of message, and which of its bits must be so.
#[derive(Debug, Clone, Default)]
pub struct Message {
    octets: Vec<u8>,
    mask: Vec<u8>,
}

impl Message {
    fn put(&mut self, octets: &[u8]) {
        self.put_masked(octets, &vec![0xff; octets.len()]);
    }

    fn put_masked(&mut self, octets: &[u8], mask: &[u8]) {
        self.octets.extend(octets);
        self.mask.extend(mask);
    }

    /// Header and question; so many answers follow.
    fn new(query: Query, flags: u16, deciding: u16, answers: u16) -> Self {
        let mut message = Self::default();
        message.put_masked(&[0; 2], &[0; 2]);
        message.put_masked(&flags.to_be_bytes(), &deciding.to_be_bytes());
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

    /// What the Initiator sends.
    pub fn question(query: Query) -> Self {
        Self::new(query, ASKED, u16::MAX, 0)
    }

    /// What the Responder makes of it. Any time to live is right.
    pub fn answer(query: Query) -> Self {
        let mut message = Self::new(query, ANSWERED, DECIDING, 1);
        message.put(&SAME_NAME.to_be_bytes());
        message.put(&query.record_type().to_be_bytes());
        message.put(&CLASS_IN.to_be_bytes());
        message.put_masked(&TTL_SECONDS.to_be_bytes(), &[0; 4]);
        let address: &[u8] = match query {
            Query::A => &ADDRESS4,
            Query::Aaaa => &ADDRESS6,
        };
        message.put(&(address.len() as u16).to_be_bytes());
        message.put(address);
        message
    }

    /// With zeros where the frame programs write.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// As the frame programs read it.
    pub fn shared(&self) -> types::message {
        types::message { words: words(&self.octets), mask: words(&self.mask) }
    }
}

/// As they lie in memory; zeros behind the end.
fn words(octets: &[u8]) -> [u64; MESSAGE_WORDS] {
    let mut words = [0; MESSAGE_WORDS];
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
    fn every_message_fits_the_words_and_ends_with_half_of_one_or_a_whole() {
        for message in
            [Query::A, Query::Aaaa].into_iter().flat_map(|one| [Message::question(one), Message::answer(one)])
        {
            assert!(message.octets.len() <= 8 * MESSAGE_WORDS && message.octets.len() % 4 == 0);
            assert_eq!(message.octets.len(), message.mask.len());
        }
    }
}
