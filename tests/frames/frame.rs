// SPDX-License-Identifier: Apache-2.0
//! Frames built octet by octet from the RFCs; nothing is taken from the programs under test but how their tag is laid
//! out, which bpf/shared.h alone says.

use std::mem::offset_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use natgauge_engine::shared::{STREAM_BITS, TAG_OCTETS};
use natgauge_engine::tester::types::tag;

/// The trial's.
pub const MARK: u32 = 0x1234_5678;

/// Keys of the seals in the harness's trials.
pub const SEAL_KEYS: [u64; 4] =
    [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93, 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];

/// A UDP test frame; change a part, then build.
#[derive(Clone)]
pub struct Udp {
    pub to: [u8; 6],
    pub from: [u8; 6],
    pub source: IpAddr,
    pub destination: IpAddr,
    pub ports: (u16, u16),
    pub mark: u32,
    pub connection: u32,
    pub sequence: u32,
    pub stream: usize,
    pub sender: u8,
    pub sent_ns: u64,
    pub ttl: u8,
    /// Length without FCS.
    pub octets: usize,
}

pub fn v4(text: &str) -> IpAddr {
    IpAddr::V4(text.parse::<Ipv4Addr>().unwrap())
}

pub fn v6(text: &str) -> IpAddr {
    IpAddr::V6(text.parse::<Ipv6Addr>().unwrap())
}

/// The mark of a frame that is to arrive so, the source where it is known: the trial's and the upper half of a sum of
/// words times keys.
pub fn mark(keys: &[u64], source: Option<(IpAddr, u16)>, destination: (IpAddr, u16)) -> u32 {
    let words = |address: IpAddr| match address {
        IpAddr::V4(v4) => [u64::from(u32::from(v4)), 0],
        IpAddr::V6(v6) => [u128::from(v6) as u32, (u128::from(v6) >> 32) as u32].map(u64::from),
    };
    let [low, high] = words(destination.0);
    let [source_low, source_high] = source.map_or([0, 0], |source| words(source.0));
    let ports = u64::from(source.map_or(0, |source| source.1)) << 16 | u64::from(destination.1);
    let factors = [1, low, ports, source_low, high, source_high];
    let sum = factors.iter().zip(keys).fold(0_u64, |sum, (word, key)| sum.wrapping_add(word.wrapping_mul(*key)));
    MARK.wrapping_add((sum >> 32) as u32)
}

/// Seal of a tag's fields but the mark: multiply, xorshift, multiply.
fn seal(tag: &[u8]) -> u32 {
    let word = |at: usize| u64::from(u32::from_le_bytes(tag[at..at + 4].try_into().unwrap()));
    let high = u64::from(u16::from_le_bytes([tag[16], tag[17]]));
    let frame = (word(4) << 32 | word(8)).wrapping_add(SEAL_KEYS[0]).wrapping_mul(SEAL_KEYS[1]);
    let sum = frame.wrapping_add((high << 32 | word(12)).wrapping_mul(SEAL_KEYS[2]));
    ((sum ^ sum >> 32).wrapping_mul(SEAL_KEYS[3]) >> 32) as u32
}

/// The mark of a frame that was sent, without its seal.
pub fn unsealed_mark(tag: &[u8]) -> u32 {
    u32::from_le_bytes(tag[..4].try_into().unwrap()) ^ seal(tag)
}

/// RFC 1071, the slow way.
pub fn ones_complement(octets: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in octets.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn octets_of(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

impl Udp {
    /// As it lies in a frame.
    pub fn tag(&self) -> Vec<u8> {
        let mut octets = vec![0; TAG_OCTETS as usize];
        let mut put = |at: usize, part: &[u8]| octets[at..at + part.len()].copy_from_slice(part);
        let sent = self.sent_ns.to_le_bytes();
        put(offset_of!(tag, connection), &self.connection.to_le_bytes());
        put(offset_of!(tag, sequence), &self.sequence.to_le_bytes());
        put(offset_of!(tag, kind), &[self.stream as u8 | self.sender << STREAM_BITS]);
        put(offset_of!(tag, sent_low), &sent[..1]);
        put(offset_of!(tag, sent_middle), &sent[1..3]);
        put(offset_of!(tag, sent_high), &sent[3..5]);
        let sealed = self.mark ^ seal(&octets);
        octets[..4].copy_from_slice(&sealed.to_le_bytes());
        octets
    }

    pub fn build(&self) -> Vec<u8> {
        let header = if self.source.is_ipv4() { 20 } else { 40 };
        let mut payload = self.tag();
        payload.extend((0..self.octets - 14 - header - 8 - payload.len()).map(|at| at as u8));
        self.with(&payload)
    }

    /// The frame with this behind the UDP header.
    pub fn with(&self, payload: &[u8]) -> Vec<u8> {
        let length = 8 + payload.len();
        let mut udp =
            [self.ports.0.to_be_bytes(), self.ports.1.to_be_bytes(), (length as u16).to_be_bytes(), [0, 0]].concat();
        udp.extend(payload);
        let addresses = [octets_of(self.source), octets_of(self.destination)].concat();
        let pseudo = [&addresses[..], &[0, 17], &(length as u16).to_be_bytes(), &udp].concat();
        let check = match !ones_complement(&pseudo) {
            0 => 0xffff,
            other => other,
        };
        udp[6..8].copy_from_slice(&check.to_be_bytes());
        let ethernet = [&self.to[..], &self.from].concat();
        if self.source.is_ipv4() {
            let total = ((length + 20) as u16).to_be_bytes();
            let mut ip = [&[0x45, 0][..], &total, &[0, 0, 0, 0, self.ttl, 17, 0, 0], &addresses].concat();
            let check = !ones_complement(&ip);
            ip[10..12].copy_from_slice(&check.to_be_bytes());
            return [&ethernet[..], &[8, 0], &ip, &udp].concat();
        }
        let ip = [&[0x60, 0, 0, 0][..], &(length as u16).to_be_bytes(), &[17, self.ttl], &addresses].concat();
        [&ethernet[..], &[0x86, 0xdd], &ip, &udp].concat()
    }
}
