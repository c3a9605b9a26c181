// SPDX-License-Identifier: Apache-2.0
//! Numbers of bpf/shared.h with the Rust types that the engine uses. Their values come from the generated enums.
#![allow(missing_docs, reason = "described in bpf/shared.h")]

use crate::tester::types::{constant, schedules, side, sign, stream};

pub const INITIATOR: usize = side::INITIATOR.0 as usize;
pub const RESPONDER: usize = side::RESPONDER.0 as usize;
pub const SIDES: usize = side::SIDES.0 as usize;
/// Both sides, to iterate over.
pub const BOTH: [usize; SIDES] = [INITIATOR, RESPONDER];

pub const PHASE1: usize = stream::PHASE1.0 as usize;
pub const PHASE2_INITIATOR: usize = stream::PHASE2_INITIATOR.0 as usize;
pub const PHASE2_RESPONDER: usize = stream::PHASE2_RESPONDER.0 as usize;
pub const CLOSING: usize = stream::CLOSING.0 as usize;
pub const STREAMS: usize = stream::STREAMS.0 as usize;
/// Streams of phase 2, by sending side.
pub const PHASE2: [usize; SIDES] = [PHASE2_INITIATOR, PHASE2_RESPONDER];

pub const OPENING_SCHEDULE: usize = schedules::OPENING_SCHEDULE.0 as usize;
pub const CLOSING_SCHEDULE: usize = schedules::CLOSING_SCHEDULE.0 as usize;

pub const NOT_NEGATIVE: u32 = sign::NOT_NEGATIVE.0;
pub const NEGATIVE: u32 = sign::NEGATIVE.0;
pub const SIGNS: u32 = sign::SIGNS.0;

pub const MAX_SENDERS: usize = constant::MAX_SENDERS.0 as usize;
pub const MAX_PIECES: u64 = constant::MAX_PIECES.0 as u64;
pub const ENTRY4_OCTETS: u32 = constant::ENTRY4_OCTETS.0;
pub const ENTRY6_OCTETS: u32 = constant::ENTRY6_OCTETS.0;
pub const WINDOW_WORDS: u64 = constant::WINDOW_WORDS.0 as u64;
pub const WORD_FRAMES: u64 = constant::WORD_FRAMES.0 as u64;
pub const LOST_WORDS: u64 = constant::LOST_WORDS.0 as u64;
pub const MOST_STALLS: usize = constant::MOST_STALLS.0 as usize;
pub const DELAY_BITS: u32 = constant::DELAY_BITS.0;
pub const DELAY_SUB_BITS: u32 = constant::DELAY_SUB_BITS.0;
pub const DELAY_BUCKETS: u32 = constant::DELAY_BUCKETS.0;
pub const DUE_FRACTION: u32 = constant::DUE_FRACTION.0;
pub const TEST_TTL: u8 = constant::TEST_TTL.0 as u8;
pub const TAG_OCTETS: u32 = constant::TAG_OCTETS.0;
pub const SEAL_KEYS: usize = constant::SEAL_KEYS.0 as usize;
pub const MOST_MESSAGES: usize = constant::MOST_MESSAGES.0 as usize;
pub const MOST_SIZES: usize = constant::MOST_SIZES.0 as usize;
pub const HEADER_WORDS: usize = constant::HEADER_WORDS.0 as usize;
pub const CONTENT_WORDS: usize = constant::CONTENT_WORDS.0 as usize;
pub const LETTERS_AT: u32 = constant::LETTERS_AT.0;
pub const STREAM_BITS: u32 = constant::STREAM_BITS.0;
pub const CONNECTION_BITS: u32 = constant::CONNECTION_BITS.0;
