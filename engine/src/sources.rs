// SPDX-License-Identifier: Apache-2.0
//! Connections of each source address that the Responder learned, from the state table: a device may limit them by host.

use libbpf_rs::MapMut;

use crate::connections::FourTuples;
use crate::outside_ports::UsedPorts;
use crate::report::SourceCounts;
use crate::request::{Family, Order, Request};
use crate::table::{each_entry, LEARNED};

/// Most source addresses, and most connections, that are looked at: a second of reading at the end of a trial.
const MOST_SOURCES: u64 = 256;
const MOST_CONNECTIONS: u64 = 1 << 24;

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
