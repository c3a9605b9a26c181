// SPDX-License-Identifier: Apache-2.0
//! Counts of the receivers, summed over all CPUs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::shared::{BOTH, CLOSING, MOST_MESSAGES, MOST_SIZES, PHASE2_INITIATOR, PHASE2_RESPONDER, SIDES, STREAMS};
use crate::tester::types;

/// Sums over all CPUs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Received {
    /// By stream.
    pub tally: [types::tally; STREAMS],
    /// By port: frames without this trial's mark.
    pub foreign: [u64; SIDES],
    /// By port: frames too damaged to read their stream.
    pub damaged_unmarked: [u64; SIDES],
    /// By port: replies to ARP and NDP.
    pub neighbour_replies: [u64; SIDES],
    /// Connections learned.
    pub stored: u64,
    /// Frames whose outside source differed from the one learned.
    pub remapped: u64,
    /// By port: frames whose reaction could not be written.
    pub unanswered: [u64; SIDES],
    /// By port: segments that show what a device does to TCP.
    pub signs: [types::device_signs; SIDES],
    /// By port: source of a mistranslated frame.
    pub stray: [Option<(IpAddr, u16)>; SIDES],
    /// By port and stream: frames in another form than that of test frames; the last are of no known stream.
    pub odd: [[types::oddities; STREAMS + 1]; SIDES],
}

impl Received {
    /// Counts since an earlier reading; of phase 1 and of connections learned, all.
    pub fn since(self, before: &Self) -> Self {
        let mut all = self.of_streams_since(&[PHASE2_INITIATOR, PHASE2_RESPONDER, CLOSING], before);
        for side in BOTH {
            all.foreign[side] -= before.foreign[side];
            all.damaged_unmarked[side] -= before.damaged_unmarked[side];
            all.neighbour_replies[side] -= before.neighbour_replies[side];
            all.unanswered[side] -= before.unanswered[side];
            all.signs[side].resets -= before.signs[side].resets;
            all.signs[side].renumbered -= before.signs[side].renumbered;
            all.signs[side].restamped -= before.signs[side].restamped;
            all.signs[side].answers -= before.signs[side].answers;
            let (odd, earlier) = (&mut all.odd[side][STREAMS], &before.odd[side][STREAMS]);
            subtract_odd(odd, earlier);
        }
        all.remapped -= before.remapped;
        all
    }

    /// The same with the counts of some streams since an earlier reading.
    pub fn of_streams_since(mut self, streams: &[usize], before: &Self) -> Self {
        for (total, earlier) in streams.iter().map(|&stream| (stream, &before.tally[stream])) {
            let tally = &mut self.tally[total];
            tally.received -= earlier.received;
            tally.duplicates -= earlier.duplicates;
            tally.reordered -= earlier.reordered;
            tally.late -= earlier.late;
            tally.damaged -= earlier.damaged;
            tally.untranslated -= earlier.untranslated;
            tally.mistranslated -= earlier.mistranslated;
            tally.background -= earlier.background;
            tally.asked -= earlier.asked;
            for at in 0..MOST_SIZES {
                tally.sized[at] -= earlier.sized[at];
            }
            for at in 0..MOST_MESSAGES {
                tally.followed[at] -= earlier.followed[at];
                tally.wrong[at] -= earlier.wrong[at];
            }
            for side in BOTH {
                subtract_odd(&mut self.odd[side][total], &before.odd[side][total]);
            }
        }
        self
    }
}

fn subtract_odd(odd: &mut types::oddities, earlier: &types::oddities) {
    odd.fragments -= earlier.fragments;
    odd.tagged -= earlier.tagged;
    odd.untagged -= earlier.untagged;
    odd.unchecked -= earlier.unchecked;
    odd.errors -= earlier.errors;
    odd.too_big -= earlier.too_big;
}

/// The source of a mistranslated frame, if there was one.
pub(super) fn stray(found: &types::stray) -> Option<(IpAddr, u16)> {
    let address = match (found.high, u32::try_from(found.low)) {
        (0, Ok(four)) => IpAddr::V4(Ipv4Addr::from(four)),
        (high, _) => IpAddr::V6(Ipv6Addr::from(u128::from(high) << 64 | u128::from(found.low))),
    };
    (found.seen > 0).then_some((address, found.port as u16))
}

/// Add the oddities of one CPU; of the MTUs the least is kept.
pub(super) fn add_odd(total: &mut types::oddities, part: &types::oddities) {
    total.fragments += part.fragments;
    total.tagged += part.tagged;
    total.untagged += part.untagged;
    total.unchecked += part.unchecked;
    total.errors += part.errors;
    total.too_big += part.too_big;
    let known = [total.path_mtu, part.path_mtu].into_iter().filter(|mtu| *mtu > 0);
    total.path_mtu = known.min().unwrap_or(0);
}

/// Sum of oddities.
pub fn total_odd(parts: &[types::oddities]) -> types::oddities {
    let mut total = types::oddities::default();
    for part in parts {
        add_odd(&mut total, part);
    }
    total
}

/// Add the counts of one CPU.
pub(super) fn add(total: &mut types::tally, part: &types::tally) {
    if part.delays > 0 {
        let first = total.delays == 0;
        total.delay_minimum = if first { part.delay_minimum } else { total.delay_minimum.min(part.delay_minimum) };
        total.delay_maximum = if first { part.delay_maximum } else { total.delay_maximum.max(part.delay_maximum) };
    }
    if part.pairs > 0 {
        let (first, low, high) = (total.pairs == 0, part.variation_minimum, part.variation_maximum);
        total.variation_minimum = if first { low } else { total.variation_minimum.min(low) };
        total.variation_maximum = if first { high } else { total.variation_maximum.max(high) };
    }
    if part.late > 0 {
        let (first, low, high) = (total.late == 0, part.late_minimum, part.late_maximum);
        total.late_minimum = if first { low } else { total.late_minimum.min(low) };
        total.late_maximum = if first { high } else { total.late_maximum.max(high) };
    }
    total.pairs += part.pairs;
    total.background += part.background;
    for at in 0..MOST_SIZES {
        total.sized[at] += part.sized[at];
    }
    for at in 0..MOST_MESSAGES {
        total.followed[at] += part.followed[at];
        total.wrong[at] += part.wrong[at];
    }
    total.zero_checksums += part.zero_checksums;
    total.asked += part.asked;
    total.received += part.received;
    total.duplicates += part.duplicates;
    total.reordered += part.reordered;
    total.late += part.late;
    total.damaged += part.damaged;
    total.untranslated += part.untranslated;
    total.mistranslated += part.mistranslated;
    total.delays += part.delays;
    total.negative += part.negative;
    total.delay_sum += part.delay_sum;
    total.late_sum += part.late_sum;
}
