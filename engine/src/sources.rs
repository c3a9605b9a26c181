// SPDX-License-Identifier: Apache-2.0
//! Connections of each source address that the Responder learned, from the state table: a device may limit them by host.

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapMut};

use crate::plan;
use crate::report::SourceCounts;
use crate::request::{Order, Request};
use crate::table;
use crate::tester::types;

/// Most source addresses, and most connections, that are looked at: a second of reading at the end of a trial.
const MOST_SOURCES: u64 = 256;
const MOST_CONNECTIONS: u64 = 1 << 24;
/// Entries that one system call reads.
const BATCH: u32 = 1 << 16;
/// As in bpf/table.h and bpf/tuple.h.
const LEARNED: u64 = 1 << 48;
const MOST_WALKS: u32 = 16;

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
    let (pieces, entries) = table::shape(request.connections);
    for piece in 0..pieces {
        let id = state_table.lookup(&(piece as u32).to_ne_bytes(), MapFlags::ANY).ok().flatten()?;
        let map = MapHandle::from_map_id(u32::from_ne_bytes(id.try_into().ok()?)).ok()?;
        for (key, value) in map.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY).ok()? {
            let slot = u64::from(u32::from_ne_bytes(key.get(..4)?.try_into().ok()?));
            let connection = piece * entries + slot;
            if connection < request.connections {
                let source = counts.get_mut(four_tuples.source(connection) as usize)?;
                source.connections += 1;
                source.stored += u64::from(u64::from_ne_bytes(value.get(..8)?.try_into().ok()?) & LEARNED != 0);
            }
        }
    }
    let known: u64 = counts.iter().map(|source| source.connections).sum();
    (known == request.connections).then_some(counts)
}

/// Four tuples of the connections, as bpf/tuple.h computes them.
struct FourTuples {
    order: Order,
    space: u64,
    permutation: types::permutation,
    ports: u64,
    sources: u64,
}

impl FourTuples {
    fn new(request: &Request) -> Option<Self> {
        let ports = request.initiator.source_ports.count();
        Some(Self {
            order: plan::order(request),
            space: request.space()?,
            permutation: plan::four_tuples(request),
            ports,
            sources: request.initiator.sources(),
        })
    }

    /// Position of a connection's source among the source addresses.
    fn source(&self, connection: u64) -> u64 {
        let position = match self.order {
            Order::Permutation => permuted(connection, &self.permutation),
            Order::Decreasing => self.space - 1 - connection,
            Order::Increasing | Order::WithReplacement => connection,
        };
        position / self.ports % self.sources
    }
}

fn scatter(value: u64, key: u32, limit: u64) -> u64 {
    let mut h = (value as u32).wrapping_add(key).wrapping_mul(0x9e37_79b1);
    h ^= h >> 15;
    h = h.wrapping_mul(0x85eb_ca77);
    h ^= h >> 16;
    (u64::from(h) * limit) >> 32
}

fn permuted(mut x: u64, p: &types::permutation) -> u64 {
    let columns = p.columns.by;
    for _ in 0..MOST_WALKS {
        let (mut row, mut column) = (x / columns, x % columns);
        row = (row + scatter(column, p.key[0], p.rows)) % p.rows;
        column = (column + scatter(row, p.key[1], columns)) % columns;
        row = (row + scatter(column, p.key[2], p.rows)) % p.rows;
        x = row * columns + column;
        if x < p.size {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_is_that_of_one_connection() {
        for size in [2, 7, 1000, 4097] {
            let permutation = plan::permutation(size, &mut plan::SplitMix64(size));
            let mut all: Vec<u64> = (0..size).map(|x| permuted(x, &permutation)).collect();
            all.sort_unstable();
            assert!(all.iter().copied().eq(0..size), "{size}");
        }
    }
}
