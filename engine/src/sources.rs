// SPDX-License-Identifier: Apache-2.0
//! Connections of each source address that the Responder learned, from the state table: a device may limit them by host.

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapMut};

use crate::connections::FourTuples;
use crate::outside_ports::UsedPorts;
use crate::report::SourceCounts;
use crate::request::{Family, Order, Request};
use crate::table;

/// Most source addresses, and most connections, that are looked at: a second of reading at the end of a trial.
const MOST_SOURCES: u64 = 256;
const MOST_CONNECTIONS: u64 = 1 << 24;
/// Entries that one system call reads.
const BATCH: u32 = 1 << 16;
/// As in bpf/table.h.
pub const LEARNED: u64 = 1 << 48;

/// Counts of each source, in the order of the addresses. None: there is one source, or too much to look at, or connections
/// may share their four tuples or entries, or the table cannot be read.
pub fn counts(request: &Request, state_table: &MapMut) -> Option<Vec<SourceCounts>> {
    let sources = request.initiator.sources();
    let looked_at = (2..=MOST_SOURCES).contains(&sources) && request.connections <= MOST_CONNECTIONS;
    if !looked_at || request.stateless || request.churn().is_some() || matches!(request.order, Order::WithReplacement) {
        return None;
    }
    let four_tuples = FourTuples::new(request)?;
    let mut counts = vec![SourceCounts::default(); sources as usize];
    let mut used = UsedPorts::new(request.responder.headers().family == Family::Ipv4);
    each_entry(request, state_table, |connection, words| {
        let number = four_tuples.of(connection).source as usize;
        if let Some(source) = counts.get_mut(number) {
            source.connections += 1;
            if words[0] & LEARNED != 0 {
                source.stored += 1;
                used.add(number, words[0]);
            }
        }
    })?;
    for (number, source) in counts.iter_mut().enumerate() {
        source.outside = used.ranges(number);
    }
    let known: u64 = counts.iter().map(|source| source.connections).sum();
    (known == request.connections).then_some(counts)
}

/// Read the state table: the place of each entry, and its words. None: it cannot be read.
pub fn each_entry(request: &Request, state_table: &MapMut, mut take: impl FnMut(u64, [u64; 3])) -> Option<()> {
    let (pieces, entries) = table::shape(request.connections);
    for piece in 0..pieces {
        let id = state_table.lookup(&(piece as u32).to_ne_bytes(), MapFlags::ANY).ok().flatten()?;
        let map = MapHandle::from_map_id(u32::from_ne_bytes(id.try_into().ok()?)).ok()?;
        for (key, value) in map.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY).ok()? {
            let place = piece * entries + u64::from(u32::from_ne_bytes(key.get(..4)?.try_into().ok()?));
            if place < request.connections {
                let mut words = [0; 3];
                for (word, octets) in words.iter_mut().zip(value.chunks_exact(8)) {
                    *word = u64::from_ne_bytes(octets.try_into().ok()?);
                }
                take(place, words);
            }
        }
    }
    Some(())
}
