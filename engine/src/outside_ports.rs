// SPDX-License-Identifier: Apache-2.0
//! Outside ports that the connections of each source address have, as ranges: a device may give each host a block.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use crate::report::OutsideRange;

/// Ranges of outside ports that a source has at most, and the least gap between two of them on one address.
const MOST_RANGES: usize = 8;
const LEAST_GAP: u64 = 64;
/// Pairs of a source and an outside address whose ports are looked at: 8 KiB each.
const MOST_PAIRS: usize = 4096;

/// Bits of the outside ports by source and address; nothing of IPv6.
pub struct UsedPorts {
    is_ipv4: bool,
    pairs: BTreeMap<(usize, u32), Box<[u64; 1024]>>,
}

impl UsedPorts {
    /// Without ports; `is_ipv4` = the Responder uses IPv4.
    pub const fn new(is_ipv4: bool) -> Self {
        Self { is_ipv4, pairs: BTreeMap::new() }
    }

    /// Add an entry of the table: the address in its low 32 bits, then the port.
    pub fn add(&mut self, source: usize, word: u64) {
        let (address, port) = (word as u32, (word >> 32) as u16);
        let is_known = self.pairs.contains_key(&(source, address));
        if self.is_ipv4 && (is_known || self.pairs.len() < MOST_PAIRS) {
            let bits = self.pairs.entry((source, address)).or_insert_with(|| Box::new([0; 1024]));
            if let Some(bits) = bits.get_mut(usize::from(port >> 6)) {
                *bits |= 1 << (port & 63);
            }
        }
    }

    /// Ranges of the ports of a source. Empty: there are none, or too many addresses.
    pub fn ranges(&self, source: usize) -> Vec<OutsideRange> {
        if self.pairs.len() < MOST_PAIRS {
            ranges(&self.of(source))
        } else {
            Vec::new()
        }
    }

    /// Outside sources, address and port in one number, in increasing order.
    fn of(&self, source: usize) -> Vec<u64> {
        let of_source = self.pairs.range((source, 0)..=(source, u32::MAX));
        let ports = |bits: &[u64; 1024]| {
            let bits = *bits;
            (0..1_u64 << 16)
                .filter(move |port| bits.get((port >> 6) as usize).is_some_and(|b| b >> (port & 63) & 1 != 0))
        };
        of_source
            .flat_map(|((_, address), bits)| ports(bits).map(move |port| u64::from(*address) << 16 | port))
            .collect()
    }
}

/// The sorted outside sources as ranges, cut at their largest gaps. Empty: they have too many addresses.
fn ranges(sources: &[u64]) -> Vec<OutsideRange> {
    let far = |at: &usize| {
        sources.get(at - 1).zip(sources.get(*at)).map_or(0, |(before, next)| {
            // Another address begins another range.
            if before >> 16 == next >> 16 {
                next - before
            } else {
                u64::MAX
            }
        })
    };
    let mut cuts: Vec<usize> = (1..sources.len()).filter(|at| far(at) > LEAST_GAP).collect();
    cuts.sort_by_key(|at| std::cmp::Reverse(far(at)));
    if cuts.get(MOST_RANGES - 1).is_some_and(|at| far(at) == u64::MAX) {
        return Vec::new();
    }
    cuts.truncate(MOST_RANGES - 1);
    cuts.sort_unstable();
    let ends = cuts.iter().copied().chain([sources.len()]);
    let starts = [0].into_iter().chain(cuts.iter().copied());
    starts
        .zip(ends)
        .filter_map(|(start, end)| {
            let (first, last) = (sources.get(start)?, sources.get(end - 1)?);
            let address = Ipv4Addr::from_bits((first >> 16) as u32);
            Some(OutsideRange { address, first: *first as u16, last: *last as u16 })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_ports_are_ranges_between_the_largest_gaps() {
        let mut used = UsedPorts::new(true);
        let entry = |host: u64, port: u64| port << 32 | (0xc613_8000 + host);
        for port in (1024..1152).chain((5000..6000).step_by(60)).chain([65535]) {
            used.add(1, entry(0, port));
            used.add(2, entry(3, 7));
            used.add(2, entry(2, port));
        }
        let of = |host, first, last| OutsideRange { address: Ipv4Addr::new(198, 19, 128, host), first, last };
        let blocks = |host| [of(host, 1024, 1151), of(host, 5000, 5960), of(host, 65535, 65535)];
        assert_eq!(ranges(&used.of(1)), blocks(0));
        assert_eq!(ranges(&used.of(2)), [blocks(2).as_slice(), &[of(3, 7, 7)]].concat());
        assert_eq!(ranges(&used.of(3)), []);
    }

    #[test]
    fn ports_all_over_a_pool_are_few_wide_ranges_and_many_addresses_are_none() {
        let spread: Vec<u64> = (0..100).map(|k| 0xc613_8000_0000 + 600 * k + k * k).collect();
        assert_eq!(ranges(&spread).len(), MOST_RANGES);
        let addresses: Vec<u64> = (0..9).map(|k| (0xc613_8000 + k) << 16).collect();
        assert_eq!(ranges(&addresses).len(), 0);
    }
}
