// SPDX-License-Identifier: Apache-2.0
//! Frames of a stream that did not arrive in time, from the frame programs' map.

use std::mem::offset_of;

use crate::shared::{LOST_WORDS, WINDOW_WORDS, WORD_FRAMES};
use crate::tester::types;

/// Arrivals of one stream of one sender, when the map was read.
pub struct Window(Vec<u8>);

/// The number of a word of consecutive frames, and flags of its frames that did not arrive in time.
type Missing = (u64, u32);

impl Window {
    /// From a value of the map.
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    fn array<const OCTETS: usize>(&self, offset: usize) -> [u8; OCTETS] {
        self.0.get(offset..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; OCTETS])
    }

    fn word(&self, first: usize, at: u64) -> u64 {
        u64::from_ne_bytes(self.array(first + at as usize * size_of::<u64>()))
    }

    /// The word stored at a place of the window; None where no frame has arrived.
    fn held(&self, place: u64) -> Option<Missing> {
        let word = self.word(offset_of!(types::window, words), place);
        (word != 0).then_some((word >> WORD_FRAMES, !(word as u32)))
    }

    /// Whether a frame, one of the last that the window holds, arrived.
    fn arrived(&self, sequence: u64) -> bool {
        let number = sequence / WORD_FRAMES;
        self.held(number % WINDOW_WORDS)
            .is_some_and(|(held, missing)| held == number && missing >> (sequence % WORD_FRAMES) & 1 == 0)
    }

    /// The first of the `made` frames that the window holds to the end.
    const fn first_held(made: u64) -> u64 {
        made.saturating_sub(WINDOW_WORDS * WORD_FRAMES)
    }

    /// The last of the `made` frames that did not arrive in time; None when all did.
    pub fn last_lost(&self, made: u64) -> Option<u64> {
        let missing = (Self::first_held(made)..made).rev().find(|&sequence| !self.arrived(sequence));
        missing.max(self.word(offset_of!(types::window, lost), 0).checked_sub(1))
    }

    /// The frames that did not arrive in time, of the `made` ones from a number on, in order. Without late ones, which the
    /// window does not hold, the last frames are known however many were lost before.
    pub fn lost_lately(&self, made: u64, late: bool) -> Option<(u64, Vec<u64>)> {
        if let Some(mut every) = self.lost(made) {
            every.sort_unstable();
            return Some((0, every));
        }
        let first = Self::first_held(made);
        (!late).then(|| (first, (first..made).filter(|&sequence| !self.arrived(sequence)).collect()))
    }

    /// All of the `made` frames that did not arrive in time, unordered; None where there were too many to record.
    pub fn lost(&self, made: u64) -> Option<Vec<u64>> {
        let losses = u64::from(u32::from_ne_bytes(self.array(offset_of!(types::window, losses))));
        if losses > LOST_WORDS || made > u64::from(u32::MAX) {
            return None;
        }
        let left = (0..losses).map(|at| self.word(offset_of!(types::window, missing), at));
        let mut words: Vec<Missing> = left.map(|word| (word >> WORD_FRAMES, word as u32)).collect();
        let end = made.div_ceil(WORD_FRAMES);
        for newest in end.saturating_sub(WINDOW_WORDS)..end {
            let held = self.held(newest % WINDOW_WORDS);
            // Words of which no frame arrived have not replaced the older word at their place.
            let numbers = (0..).map_while(|age| newest.checked_sub(age * WINDOW_WORDS));
            let unseen = numbers.take_while(|&number| held.is_none_or(|(other, _)| other < number));
            words.extend(unseen.map(|number| (number, u32::MAX)));
            words.extend(held);
        }
        let frames = |(number, missing): Missing| {
            let some = (0..WORD_FRAMES).filter(move |bit| missing >> bit & 1 == 1);
            some.map(move |bit| number * WORD_FRAMES + bit)
        };
        Some(words.into_iter().flat_map(frames).filter(|&sequence| sequence < made).collect())
    }
}
