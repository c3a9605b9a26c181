// SPDX-License-Identifier: Apache-2.0
//! The state table's memory: pieces small enough to be zeroed without stalling the machine, made by several threads.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapMut, MapType};

use crate::failure::{Failure, Outcome};
use crate::request::{Family, Request};

/// `PIECE_SHIFT` of bpf/shared.h.
const PIECE: u64 = 1 << 24;
/// Left for everything else.
const RESERVE: u64 = 256 << 20;
const MAKERS: usize = 4;

/// The pieces, in order, and what they take.
pub struct Table {
    pieces: Vec<MapHandle>,
    /// What they take, octets.
    pub octets: u64,
}

fn available() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    kib.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok()).map_or(u64::MAX, |kib| kib * 1024)
}

fn piece(entry: u32, entries: u32) -> libbpf_rs::Result<MapHandle> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    MapHandle::create(MapType::Array, Some("state_piece"), 4, entry, entries, &options)
}

impl Table {
    /// Octets one connection takes: bpf/table.h.
    fn entry(request: &Request) -> u32 {
        match request.responder.family {
            Family::Ipv4 => 8,
            Family::Ipv6 => 24,
        }
    }

    /// Make room for the request's connections, or refuse with the numbers.
    pub fn make(request: &Request) -> Outcome<Self> {
        let entry = Self::entry(request);
        let entries = request.connections.min(PIECE);
        let count = request.connections.div_ceil(PIECE);
        let octets = count * entries * u64::from(entry);
        let free = available();
        if octets + RESERVE > free {
            return Err(Failure::Host(format!(
                "state table: {} connections take {} MiB and {} MiB are kept back, but only {} MiB are available: ask for fewer",
                request.connections,
                octets >> 20,
                RESERVE >> 20,
                free >> 20
            )));
        }
        let pieces = Self::pieces(entry, entries as u32, count as usize)?;
        Ok(Self { pieces, octets })
    }

    fn pieces(entry: u32, entries: u32, count: usize) -> Outcome<Vec<MapHandle>> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut made = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(made);
                }
                made.push(piece(entry, entries)?);
            }
        };
        let made: libbpf_rs::Result<Vec<_>> = thread::scope(|scope| {
            let makers: Vec<_> = (0..MAKERS.min(count)).map(|_| scope.spawn(work)).collect();
            makers
                .into_iter()
                .map(|maker| maker.join().unwrap_or_else(|_| Err(libbpf_rs::Error::from_raw_os_error(libc::ENOMEM))))
                .collect()
        });
        let made =
            made.map_err(|error| Failure::Host(format!("state table: {error:#}: root and memory are needed")))?;
        Ok(made.into_iter().flatten().collect())
    }

    /// What the frame programs' table of pieces is declared to hold.
    pub fn template(&self) -> Outcome<&MapHandle> {
        self.pieces.first().ok_or_else(|| Failure::Broke("state table: no piece was made".into()))
    }

    /// Hand the pieces to the frame programs.
    pub fn install(&self, map: &MapMut) -> Outcome<()> {
        use std::os::fd::AsRawFd;
        for (number, piece) in self.pieces.iter().enumerate() {
            let fd = piece.as_fd().as_raw_fd();
            map.update(&(number as u32).to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY)
                .map_err(|error| Failure::Broke(format!("state table: piece {number}: {error:#}")))?;
        }
        Ok(())
    }
}
