// SPDX-License-Identifier: Apache-2.0
//! Counts of the receivers, summed over all CPUs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::shared::{BOTH, CLOSING, PHASE2_INITIATOR, PHASE2_RESPONDER, SIDES, STREAMS};
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
    /// The counts of one CPU.
    pub fn of_cpu(cpu: &types::receiver) -> Self {
        Self {
            tally: cpu.tally,
            foreign: cpu.foreign,
            damaged_unmarked: cpu.damaged_unmarked,
            neighbour_replies: cpu.neighbour_replies,
            stored: cpu.stored,
            remapped: cpu.remapped,
            unanswered: cpu.unanswered,
            signs: cpu.signs,
            stray: BOTH.map(|side| stray(&cpu.stray[side])),
            odd: cpu.odd,
        }
    }

    /// Add the counts of another CPU.
    pub fn add(&mut self, other: &Self) {
        for (total, part) in self.tally.iter_mut().zip(&other.tally) {
            add(total, part);
        }
        for side in BOTH {
            sum(self.of_port(other, side));
            for (total, part) in self.odd[side].iter_mut().zip(&other.odd[side]) {
                add_odd(total, part);
            }
            self.stray[side] = self.stray[side].or(other.stray[side]);
        }
        self.stored += other.stored;
        self.remapped += other.remapped;
    }

    /// Frames of a stream in another form than that of test frames, and those at some ports whose stream cannot be read.
    pub fn odd_of(&self, stream: usize, unread: &[usize]) -> types::oddities {
        let of_stream = BOTH.into_iter().map(|side| self.odd[side][stream]);
        let of_none = unread.iter().map(|&side| self.odd[side][STREAMS]);
        total_odd(&of_stream.chain(of_none).collect::<Vec<_>>())
    }

    /// Counts since an earlier reading; of phase 1 and of connections learned, all.
    pub fn since(self, before: &Self) -> Self {
        let mut all = self.of_streams_since(&[PHASE2_INITIATOR, PHASE2_RESPONDER, CLOSING], before);
        for side in BOTH {
            subtract(all.of_port(before, side));
            subtract(of_odd(&mut all.odd[side][STREAMS], &before.odd[side][STREAMS]));
        }
        all.remapped -= before.remapped;
        all
    }

    /// The same with the counts of some streams since an earlier reading.
    pub fn of_streams_since(mut self, streams: &[usize], before: &Self) -> Self {
        for &stream in streams {
            subtract(of_stream(&mut self.tally[stream], &before.tally[stream]));
            self.tally[stream].late.count -= before.tally[stream].late.count;
            for side in BOTH {
                subtract(of_odd(&mut self.odd[side][stream], &before.odd[side][stream]));
            }
        }
        self
    }

    /// The counts of a port, each beside that of another reading.
    fn of_port<'a>(&'a mut self, other: &Self, side: usize) -> impl Iterator<Item = Pair<'a>> + use<'a> {
        let (signs, others) = (&mut self.signs[side], &other.signs[side]);
        [
            (&mut self.foreign[side], other.foreign[side]),
            (&mut self.damaged_unmarked[side], other.damaged_unmarked[side]),
            (&mut self.neighbour_replies[side], other.neighbour_replies[side]),
            (&mut self.unanswered[side], other.unanswered[side]),
            (&mut signs.resets, others.resets),
            (&mut signs.renumbered, others.renumbered),
            (&mut signs.restamped, others.restamped),
            (&mut signs.answers, others.answers),
        ]
        .into_iter()
    }
}

/// A count beside the same one of another CPU or reading.
type Pair<'a> = (&'a mut u64, u64);

fn sum<'a>(pairs: impl Iterator<Item = Pair<'a>>) {
    for (count, more) in pairs {
        *count += more;
    }
}

fn subtract<'a>(pairs: impl Iterator<Item = Pair<'a>>) {
    for (count, earlier) in pairs {
        *count -= earlier;
    }
}

/// The counts of a stream that differences may be taken of; delays and variations are those of the whole trial.
fn of_stream<'a>(tally: &'a mut types::tally, other: &types::tally) -> impl Iterator<Item = Pair<'a>> + use<'a> {
    let counts = [
        (&mut tally.received, other.received),
        (&mut tally.duplicates, other.duplicates),
        (&mut tally.reordered, other.reordered),
        (&mut tally.damaged, other.damaged),
        (&mut tally.untranslated, other.untranslated),
        (&mut tally.mistranslated, other.mistranslated),
        (&mut tally.background, other.background),
        (&mut tally.zero_checksums, other.zero_checksums),
        (&mut tally.asked, other.asked),
    ];
    let sized = tally.sized.iter_mut().zip(other.sized);
    let followed = tally.followed.iter_mut().zip(other.followed);
    counts.into_iter().chain(sized).chain(followed).chain(tally.wrong.iter_mut().zip(other.wrong))
}

/// The counts of frames in another form.
fn of_odd<'a>(odd: &'a mut types::oddities, other: &types::oddities) -> impl Iterator<Item = Pair<'a>> + use<'a> {
    [
        (&mut odd.fragments, other.fragments),
        (&mut odd.tagged, other.tagged),
        (&mut odd.untagged, other.untagged),
        (&mut odd.unchecked, other.unchecked),
        (&mut odd.errors, other.errors),
        (&mut odd.too_big, other.too_big),
    ]
    .into_iter()
}

/// The source of a mistranslated frame, if there was one.
fn stray(found: &types::stray) -> Option<(IpAddr, u16)> {
    let address = match (found.high, u32::try_from(found.low)) {
        (0, Ok(four)) => IpAddr::V4(Ipv4Addr::from(four)),
        (high, _) => IpAddr::V6(Ipv6Addr::from(u128::from(high) << 64 | u128::from(found.low))),
    };
    (found.seen > 0).then_some((address, found.port as u16))
}

/// Add the oddities of one CPU; of the MTUs the least is kept.
fn add_odd(total: &mut types::oddities, part: &types::oddities) {
    sum(of_odd(total, part));
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
fn add(total: &mut types::tally, part: &types::tally) {
    sum(of_stream(total, part));
    total.negative += part.negative;
    for (total, part) in
        [(&mut total.late, &part.late), (&mut total.delays, &part.delays), (&mut total.variations, &part.variations)]
    {
        let first = total.count == 0;
        if part.count > 0 {
            total.minimum = if first { part.minimum } else { total.minimum.min(part.minimum) };
            total.maximum = if first { part.maximum } else { total.maximum.max(part.maximum) };
        }
        total.count += part.count;
        total.sum += part.sum;
    }
}
