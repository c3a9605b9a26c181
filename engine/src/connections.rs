// SPDX-License-Identifier: Apache-2.0
//! The list of a trial's connections: inside and outside tuple and time of each, with which a device's log is compared.

use std::fs::OpenOptions;
use std::io::{BufWriter, Result, Write};
use std::net::IpAddr;

use libbpf_rs::MapMut;

use crate::failure::{Failure, Outcome};
use crate::host;
use crate::plan;
use crate::request::{ipv6, Family, Order, Request};
use crate::table::{each_entry, LEARNED};
use crate::tester::types;

/// As in bpf/table.h and bpf/tuple.h.
const TURN_AT: u32 = 49;
const MOST_TURNS: u64 = 1 << 15;
const MOST_WALKS: u32 = 16;
const REPLACING: u64 = 0x5bd1_e995;

/// What the Responder knows of a connection's outside tuple.
#[derive(Clone, Copy, PartialEq)]
enum Known {
    NotLearned = 0,
    Learned = 1,
    /// With churn: a later connection has taken its entry.
    TakenOver = 2,
}

/// A four tuple: positions of its addresses, and its ports.
pub struct FourTuple {
    pub source: u64,
    pub destination: u64,
    pub source_port: u16,
    pub destination_port: u16,
}

/// Four tuples of the connections, as bpf/tuple.h computes them.
pub struct FourTuples<'a> {
    request: &'a Request,
    order: Order,
    space: u64,
    permutation: types::permutation,
    draw_key: u64,
}

impl<'a> FourTuples<'a> {
    pub fn new(request: &'a Request) -> Option<Self> {
        let (order, permutation) = (plan::order(request), plan::four_tuples(request));
        Some(Self { request, order, space: request.space()?, permutation, draw_key: plan::draw_key(request) })
    }

    /// The source port varies fastest, then source address, destination port, destination address.
    pub fn of(&self, connection: u64) -> FourTuple {
        let position = match self.order {
            Order::Permutation => permuted(connection, &self.permutation),
            Order::Decreasing => self.space - 1 - connection,
            Order::Increasing => connection,
            Order::WithReplacement => drawn(connection, self.draw_key ^ REPLACING, self.space),
        };
        let initiator = &self.request.initiator;
        let (port, rest) = digit(position, initiator.source_ports.count());
        let (source, rest) = digit(rest, initiator.sources());
        let (other, destination) = digit(rest, initiator.destination_ports.count());
        FourTuple {
            source,
            destination,
            source_port: (u64::from(initiator.source_ports.first) + port) as u16,
            destination_port: (u64::from(initiator.destination_ports.first) + other) as u16,
        }
    }

    /// The connection that frame `number` of phase 1 opens.
    fn opened(&self, number: u64) -> u64 {
        if plan::opens_permuted(self.request) {
            permuted(number, &self.permutation)
        } else {
            number
        }
    }
}

/// Remainder and quotient.
fn digit(value: u64, by: u64) -> (u64, u64) {
    (value % by, value / by)
}

fn drawn(i: u64, key: u64, limit: u64) -> u64 {
    let mut z = i.wrapping_add(key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z >> 32) * limit) >> 32
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

/// Write the list to the file of the request, in the order of opening. `starts`: of both phases, on the monotonic clock.
///
/// An entry has 64 octets, in the order of the network: due time of the frame that opens the connection, ns since 1970 (8);
/// ports of source, destination and outside source (2 each); 0 = the Responder did not learn the outside source, 1 = it
/// did, 2 = a later connection has taken its entry (2); addresses of source, destination and outside source (16 each, IPv4
/// in the last 4 octets, the others 0).
pub fn write(path: &str, request: &Request, state_table: &MapMut, starts: [u64; 2]) -> Outcome<()> {
    let mut entries = vec![[0; 3]; request.connections as usize];
    let unreadable = || Failure::Broke("state table: cannot be read for connections_file".into());
    let four_tuples = FourTuples::new(request).ok_or_else(unreadable)?;
    each_entry(request, state_table, |place, words| entries[place as usize] = words).ok_or_else(unreadable)?;
    let starts = starts.map(host::since_1970_ns);
    write_all(path, request, &four_tuples, &entries, starts)
        .map_err(|error| Failure::Broke(format!("connections_file: {path}: cannot be written: {error}")))
}

fn write_all(
    path: &str,
    request: &Request,
    four_tuples: &FourTuples,
    entries: &[[u64; 3]],
    starts: [u64; 2],
) -> Result<()> {
    let mut file = BufWriter::new(OpenOptions::new().write(true).truncate(true).open(path)?);
    let rates =
        [request.phase1.as_ref().map(|phase| phase.rate), request.churn().map(|(churn, _)| churn.new_per_second)];
    for number in 0..request.all_connections() {
        let later = number.checked_sub(request.connections);
        let connection = if later.is_none() { four_tuples.opened(number) } else { number };
        let phase = usize::from(later.is_some());
        let rate = rates[phase].unwrap_or(f64::INFINITY);
        let due = starts[phase] + (1e9 * later.unwrap_or(number) as f64 / rate) as u64;
        let tuple = four_tuples.of(connection);
        let [word, high, low] = entries[(connection % request.connections) as usize];
        let known = known(word, connection / request.connections, request.churn().is_some());
        let outside: IpAddr = match request.responder.headers().family {
            Family::Ipv4 => IpAddr::V4((word as u32).into()),
            Family::Ipv6 => IpAddr::V6(ipv6(high, low)),
        };
        file.write_all(&due.to_be_bytes())?;
        for port in [tuple.source_port, tuple.destination_port, (word >> 32) as u16, known as u16] {
            file.write_all(&port.to_be_bytes())?;
        }
        let initiator = &request.initiator;
        for address in [
            initiator.source_addresses.at(tuple.source),
            initiator.destination_addresses.at(tuple.destination),
            outside,
        ] {
            file.write_all(&octets(address))?;
        }
    }
    file.flush()
}

/// What an entry says of the connection that has it in this turn.
fn known(word: u64, turn: u64, churns: bool) -> Known {
    let (learned, found) = (word & LEARNED != 0, word >> TURN_AT);
    match learned {
        true if !churns || found == turn % MOST_TURNS => Known::Learned,
        true if found > turn % MOST_TURNS => Known::TakenOver,
        _ => Known::NotLearned,
    }
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()).to_be_bytes(),
        IpAddr::V6(v6) => v6.octets(),
    }
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

    #[test]
    fn an_entry_is_known_to_the_connection_whose_turn_it_is() {
        let entry = |turn: u64| LEARNED | turn << TURN_AT;
        assert!(known(0, 0, false) == Known::NotLearned && known(entry(0), 0, false) == Known::Learned);
        let states = [0, 1, 2].map(|turn| known(entry(1), turn, true) as u16);
        assert_eq!(states, [2, 1, 0]);
    }

    #[test]
    fn addresses_have_sixteen_octets() {
        assert_eq!(octets(IpAddr::from([10, 0, 0, 2])), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
        assert_eq!(octets(IpAddr::V6(ipv6(1, 2)))[7..16], [1, 0, 0, 0, 0, 0, 0, 0, 2]);
    }

    #[test]
    fn four_tuples_have_each_digit_of_their_position() -> std::result::Result<(), String> {
        let text = include_str!("../../trial/examples/nat44-both-phases.json");
        let mut example: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        example["order"] = "increasing".into();
        example["connections"] = 24.into();
        example["initiator"]["source_ports"] = serde_json::json!({"first": 1024, "last": 1025});
        example["initiator"]["source_addresses"] = serde_json::json!({"first": "10.0.0.2", "last": "10.0.0.4"});
        example["initiator"]["destination_ports"] = serde_json::json!({"first": 53, "last": 56});
        let request = crate::request::parse(example.to_string().as_bytes()).map_err(|error| format!("{error:?}"))?;
        let four_tuples = FourTuples::new(&request).ok_or("too many")?;
        let tuple = four_tuples.of(1 + 2 * (2 + 3 * 3));
        assert_eq!((tuple.source_port, tuple.source, tuple.destination_port, tuple.destination), (1025, 2, 56, 0));
        Ok(())
    }
}
