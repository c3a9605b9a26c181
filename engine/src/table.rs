// SPDX-License-Identifier: Apache-2.0
//! Memory of the state table: pieces allocated by several threads, each small enough to be zeroed without stalling the
//! machine.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapMut, MapType};

use crate::failure::{Failure, Outcome};
use crate::host;
use crate::request::{Family, Request};
use crate::shared::{ENTRY4_OCTETS, ENTRY6_OCTETS, MAX_PIECES};

/// Most connections per piece.
const LARGEST_PIECE: u64 = 1 << 22;
/// Memory left for everything else, octets.
const RESERVE: u64 = 256 << 20;
const ALLOCATING_THREADS: usize = 4;
/// Entries that one system call reads.
const BATCH: u32 = 1 << 16;
/// As in bpf/table.h.
pub const LEARNED: u64 = 1 << 48;

/// The pieces, all of one size. All but the first are allocated in parallel with other work.
pub struct Table {
    first: MapHandle,
    allocators: Vec<JoinHandle<libbpf_rs::Result<Vec<MapHandle>>>>,
    /// Size of all pieces, octets.
    pub octets: u64,
}

/// Octets per connection.
pub fn entry_octets(request: &Request) -> u32 {
    match request.responder.headers().family {
        Family::Ipv4 => ENTRY4_OCTETS,
        Family::Ipv6 => ENTRY6_OCTETS,
    }
}

/// Number of pieces and connections in each, with the fewest unused entries.
pub fn shape(connections: u64) -> (u64, u64) {
    let least = connections.div_ceil(LARGEST_PIECE);
    let count = (least..=MAX_PIECES.min(2 * least))
        .min_by_key(|&count| connections.div_ceil(count) * count - connections)
        .unwrap_or(least);
    (count, connections.div_ceil(count))
}

/// Read the state table: the place of each entry, and its words. None: it cannot be read.
pub fn each_entry(request: &Request, state_table: &MapMut, mut take: impl FnMut(u64, [u64; 3])) -> Option<()> {
    let (pieces, entries) = shape(request.connections);
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

fn available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    kib.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok()).map_or(u64::MAX, |kib| kib * 1024)
}

fn piece(entry_octets: u32, entries: u32) -> libbpf_rs::Result<MapHandle> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    MapHandle::create(MapType::Array, Some("state_piece"), 4, entry_octets, entries, &options)
}

fn allocation_failed(error: &libbpf_rs::Error) -> Failure {
    Failure::Host(format!("state table: {error:#}: root and memory are needed"))
}

/// The same for a request; a stateless trial needs no table.
fn shape_of(request: &Request) -> (u64, u64) {
    shape(if request.stateless { 1 } else { request.connections })
}

fn octets_of(request: &Request) -> u64 {
    let (count, entries) = shape_of(request);
    count * entries * u64::from(entry_octets(request))
}

impl Table {
    /// Octets for the connections of all requests together; refused where there is too little memory.
    pub fn check<'a>(requests: impl IntoIterator<Item = &'a Request>) -> Outcome<u64> {
        let (mut connections, mut octets) = (0, 0);
        for request in requests {
            connections += request.connections;
            octets += octets_of(request);
        }
        let free = available();
        if octets + RESERVE > free {
            return Err(Failure::Host(format!(
                "state table: {connections} connections take {} MiB and {} MiB are reserved, but only {} MiB are available: ask for fewer",
                octets >> 20,
                RESERVE >> 20,
                free >> 20
            )));
        }
        Ok(octets)
    }

    /// Allocate the table for a request; refused where there is too little memory.
    pub fn make(request: &Request) -> Outcome<Self> {
        let octets = Self::check([request])?;
        let (entry_octets, (count, entries)) = (entry_octets(request), shape_of(request));
        let first = piece(entry_octets, entries as u32).map_err(|error| allocation_failed(&error))?;
        Ok(Self { first, allocators: Self::allocators(entry_octets, entries as u32, count as usize - 1)?, octets })
    }

    fn allocators(
        entry_octets: u32,
        entries: u32,
        count: usize,
    ) -> Outcome<Vec<JoinHandle<libbpf_rs::Result<Vec<MapHandle>>>>> {
        let next = Arc::new(AtomicUsize::new(0));
        let make = move |next: Arc<AtomicUsize>| {
            let mut made = Vec::new();
            while next.fetch_add(1, Ordering::Relaxed) < count {
                made.push(piece(entry_octets, entries)?);
            }
            Ok(made)
        };
        let allocator = |_| {
            let next = Arc::clone(&next);
            host::in_thread(move || make(next))
        };
        (0..ALLOCATING_THREADS.min(count)).map(allocator).collect()
    }

    /// A piece, from which the frame programs' table of pieces takes its inner type.
    pub fn template(&self) -> BorrowedFd<'_> {
        self.first.as_fd()
    }

    /// Start to put all pieces into the frame programs' map, in parallel with other work.
    pub fn install(self, map: &MapMut) -> Outcome<Installing> {
        let map = MapHandle::try_from(map).map_err(|error| allocation_failed(&error))?;
        Ok(Installing(host::in_thread(move || self.put_into(&map))?))
    }

    fn put_into(self, map: &MapHandle) -> Outcome<()> {
        let mut pieces = vec![self.first];
        for allocator in self.allocators {
            let made = allocator.join().unwrap_or_else(|_| Err(libbpf_rs::Error::from_raw_os_error(libc::ENOMEM)));
            pieces.extend(made.map_err(|error| allocation_failed(&error))?);
        }
        let count = pieces.len() as u32;
        let numbers: Vec<u8> = (0..count).flat_map(u32::to_ne_bytes).collect();
        let pieces: Vec<u8> = pieces.iter().flat_map(|piece| piece.as_fd().as_raw_fd().to_ne_bytes()).collect();
        // In one update, because the kernel waits for an RCU grace period, 10 ms, after each update of such a map.
        map.update_batch(&numbers, &pieces, count, MapFlags::ANY, MapFlags::ANY)
            .map_err(|error| Failure::Broke(format!("state table: {count} pieces: {error:#}")))
    }
}

/// A running `Table::install`.
pub struct Installing(JoinHandle<Outcome<()>>);

impl Installing {
    /// Wait until all pieces are in the map.
    pub fn finish(self) -> Outcome<()> {
        self.0
            .join()
            .unwrap_or_else(|_| Err(Failure::Broke("state table: the thread that installs its pieces failed".into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_hold_all_connections_with_few_unused_entries() {
        for connections in [1, 2, 100_000, 1 << 22, (1 << 22) + 1, 10_000_000, 1_600_000_000, (1 << 31) - 1, 1 << 31] {
            let (count, entries) = shape(connections);
            assert!(count <= MAX_PIECES && entries <= LARGEST_PIECE, "{connections}: {count} x {entries}");
            assert!((0..=connections / 1_000_000).contains(&(count * entries - connections)), "{connections}");
        }
        assert_eq!(shape(1_600_000_000), (400, 4_000_000));
    }
}
