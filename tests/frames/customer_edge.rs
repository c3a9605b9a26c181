// SPDX-License-Identifier: Apache-2.0
//! The tester as customer edges of MAP-T, against models of a border relay. The models compute addresses with the rule of
//! `sharing`, which is tested against the examples of the RFCs.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use natgauge_engine::shared::{INITIATOR, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER};
use natgauge_engine::softwire::sharing::{PortSets, Rule};

use crate::frame::Udp;
use crate::harness::{flow, request, Loaded, INITIATOR_MACS, NAT64, RESPONDER_MACS};

const FRAMES: u64 = 4000;
const OCTETS4: usize = 60;
const OCTETS6: usize = 80;
const UDP: usize = 8;

/// A division of ports: PSID offset, PSID length, first PSID, and ports of a set.
pub type Division = (u8, u8, u16, u32);
pub const WITHOUT_OFFSET: Division = (0, 6, 1, 1024);
/// RFC 7597 appendix A, example 1.
pub const OF_THE_STANDARD: Division = (6, 8, 0, 252);
pub const WITHOUT_SHARING: Division = (4, 0, 0, 61440);

pub fn rule(division: Division) -> Rule {
    let sets = PortSets::new(division.0, division.1).unwrap();
    Rule::new(("2001:db8::".parse().unwrap(), 40), (Ipv4Addr::new(198, 18, 0, 0), 16), 16 + division.1, sets).unwrap()
}

/// The number of an edge with this address and port set.
fn number(division: Division, address: Ipv4Addr, psid: u16) -> u32 {
    let per_address = (1 << division.1) - u32::from(division.2);
    (address.to_bits() - 0xc612_0001) * per_address + u32::from(psid) - u32::from(division.2)
}

/// The edges of a request as text.
pub fn edges(division: Division, number: u32, relay: Option<&str>) -> String {
    let (offset, length, first, _) = division;
    let relay = relay.map(|address| format!(r#","relay":"{address}""#)).unwrap_or_default();
    format!(
        r#"{{"number":{number},"ipv6_prefix":"2001:db8::","ipv6_prefix_length":40,"ipv4_prefix":"198.18.0.0",
        "ipv4_prefix_length":16,"psid_length":{length},"psid_offset":{offset},"first_address":"198.18.0.1",
        "first_psid":{first}{relay}}}"#
    )
}

fn load(place: &mut MaybeUninit<libbpf_rs::OpenObject>, division: Division, number: u32) -> Loaded<'_> {
    load_from(place, division, number, 0)
}

fn load_from(
    place: &mut MaybeUninit<libbpf_rs::OpenObject>,
    division: Division,
    number: u32,
    first: u32,
) -> Loaded<'_> {
    let emulated = edges(division, number, None).replace('}', &format!(r#","first":{first}}}"#));
    let ports = format!(r#"{{"first":1,"last":{}}}"#, division.3);
    let changes = [
        NAT64,
        &[
            ("/initiator/customer_edges", &emulated[..]),
            ("/initiator/source_ports", &ports[..]),
            ("/translation", r#"{"source":"unchanged"}"#),
            ("/stateless", "true"),
            ("/phase1", "null"),
            ("/connections", "30000"),
        ],
    ];
    Loaded::new(place, request(&changes.concat()))
}

/// A frame with its payload.
#[derive(Clone)]
pub struct Whole {
    pub udp: Udp,
    payload: Vec<u8>,
}

impl Whole {
    pub fn read(frame: &[u8]) -> Self {
        let four = frame[12..14] == [8, 0];
        let header = if four { 20 } else { 40 };
        let two = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        let six = |at: usize| IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&frame[at..at + 16]).unwrap()));
        let v4 = |at: usize| IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(&frame[at..at + 4]).unwrap()));
        let (source, destination) = if four { (v4(26), v4(30)) } else { (six(22), six(38)) };
        let udp = Udp {
            to: [0; 6],
            from: [0; 6],
            source,
            destination,
            ports: (two(14 + header), two(14 + header + 2)),
            mark: 0,
            connection: 0,
            sequence: 0,
            stream: 0,
            sender: 0,
            sent_ns: 0,
            ttl: 9,
            octets: frame.len(),
        };
        Self { udp, payload: frame[14 + header + UDP..].to_vec() }
    }

    pub fn build(&self) -> Vec<u8> {
        self.udp.with(&self.payload)
    }

    pub fn four(address: IpAddr) -> Ipv4Addr {
        match address {
            IpAddr::V4(four) => four,
            IpAddr::V6(_) => panic!("{address} is no IPv4 address"),
        }
    }
}

/// A border relay without faults: the Initiator's frame as it leaves for the Responder, and its edge.
fn up(division: Division, frame: &[u8]) -> (Whole, u32) {
    let mut whole = Whole::read(frame);
    let (IpAddr::V6(source), IpAddr::V6(destination)) = (whole.udp.source, whole.udp.destination) else {
        panic!("the Initiator must send IPv6")
    };
    let lower = source.to_bits() as u64;
    let (address, psid) = (Ipv4Addr::from_bits((lower >> 16) as u32), lower as u16);
    let found = rule(division);
    assert_eq!(found.address(address, psid), Some(source), "no MAP address");
    assert_eq!(found.sets().psid(whole.udp.ports.0), Some(psid), "{source} has not port {}", whole.udp.ports.0);
    whole.udp.source = address.into();
    whole.udp.destination = Ipv4Addr::from_bits(destination.to_bits() as u32).into();
    (whole.udp.to, whole.udp.from) = RESPONDER_MACS;
    (whole, number(division, address, psid))
}

/// The same towards the Initiator.
fn down(division: Division, frame: &[u8]) -> (Whole, u32) {
    let mut whole = Whole::read(frame);
    let (source, address) = (Whole::four(whole.udp.source), Whole::four(whole.udp.destination));
    let found = rule(division);
    let psid = found.sets().psid(whole.udp.ports.1).unwrap();
    let prefix: Ipv6Addr = "2001:2:0:1::".parse().unwrap();
    whole.udp.source = Ipv6Addr::from_bits(prefix.to_bits() | u128::from(source.to_bits())).into();
    whole.udp.destination = found.address(address, psid).unwrap().into();
    (whole.udp.to, whole.udp.from) = INITIATOR_MACS;
    (whole, number(division, address, psid))
}

#[test]
fn every_edge_sends_from_its_own_address_and_all_its_ports() {
    for division in [WITHOUT_OFFSET, OF_THE_STANDARD, WITHOUT_SHARING] {
        let mut place = MaybeUninit::uninit();
        let loaded = load(&mut place, division, 100);
        let mut edges = BTreeSet::new();
        let mut ports = BTreeSet::new();
        for frame in loaded.generate(&[flow(PHASE2_INITIATOR, FRAMES)]) {
            assert_eq!(frame.len(), OCTETS6);
            let (there, edge) = up(division, &frame);
            assert!(edge < 100, "{edge}");
            edges.insert(edge);
            ports.insert(there.udp.ports.0);
        }
        assert_eq!(edges.len(), 100, "{division:?}");
        assert!(ports.len() > 3000.min(division.3 as usize * 5 / 6), "{division:?}: {} ports", ports.len());
    }
}

#[test]
fn sixty_thousand_edges_have_an_address_and_a_port_set_each() {
    let mut place = MaybeUninit::uninit();
    let loaded = load(&mut place, WITHOUT_OFFSET, 60_000);
    let frames = loaded.generate(&[flow(PHASE2_INITIATOR, FRAMES)]);
    let edges: BTreeSet<u32> = frames.iter().map(|frame| up(WITHOUT_OFFSET, frame).1).collect();
    assert!(edges.len() > 3500 && edges.last().is_some_and(|&last| (59_000..60_000).contains(&last)));
}

#[test]
fn edges_before_the_first_one_send_nothing() {
    for first in [0, 1, 62, 63, 1000] {
        let mut place = MaybeUninit::uninit();
        let loaded = load_from(&mut place, WITHOUT_OFFSET, 70, first);
        let frames = loaded.generate(&[flow(PHASE2_INITIATOR, FRAMES)]);
        let edges: BTreeSet<u32> = frames.iter().map(|frame| up(WITHOUT_OFFSET, frame).1).collect();
        assert_eq!(edges, (first..first + 70).collect(), "{first}");
    }
}

/// A border relay without faults: what it makes of a frame, and the edge that the frame belongs to.
type Model = fn(Division, &[u8]) -> (Whole, u32);

/// What a relay makes of a right frame of an edge; None: it drops the frame.
type Relay = fn(Whole, u32) -> Option<Whole>;

const EVERY_SEVENTH: Relay = |frame, edge| (edge % 7 != 0).then_some(frame);
const ONE_FORGOTTEN: Relay = |frame, edge| (edge != 41).then_some(frame);
const LEAK_UP: Relay = |mut frame, edge| {
    if edge % 10 == 3 {
        frame.udp.source = Ipv4Addr::from_bits(Whole::four(frame.udp.source).to_bits() + 1).into();
    }
    Some(frame)
};
const OTHER_SET: Relay = |mut frame, edge| {
    if edge == 5 {
        frame.udp.ports.0 += 1024;
    }
    Some(frame)
};
const LEAK_DOWN: Relay = |mut frame, edge| {
    if edge % 10 == 3 {
        let right = Whole::read(&frame.build());
        let IpAddr::V6(own) = right.udp.destination else { panic!("towards the Initiator is IPv6") };
        let address = Ipv4Addr::from_bits((own.to_bits() >> 16) as u32);
        frame.udp.destination = rule(WITHOUT_OFFSET).address(address, own.to_bits() as u16 ^ 1).unwrap().into();
    }
    Some(frame)
};
const OTHER_PREFIX: Relay = |mut frame, edge| {
    if edge == 8 {
        let IpAddr::V6(own) = frame.udp.destination else { panic!("towards the Initiator is IPv6") };
        frame.udp.destination = Ipv6Addr::from_bits(own.to_bits() ^ 1 << 66).into();
    }
    Some(frame)
};

/// A sentence, the relay, and whether its wrong frames arrive.
const UP: &[(&str, Relay, bool)] = &[
    ("a relay without faults", |frame, _| Some(frame), false),
    ("a relay that drops every seventh edge", EVERY_SEVENTH, false),
    ("a relay that has forgotten one port set", ONE_FORGOTTEN, false),
    ("a relay that gives an edge the address of another", LEAK_UP, true),
    ("a relay that gives an edge the port set of another", OTHER_SET, true),
];
const DOWN: &[(&str, Relay, bool)] = &[
    ("a relay without faults", |frame, _| Some(frame), false),
    ("a relay that drops every seventh edge", EVERY_SEVENTH, false),
    ("a relay that has forgotten one port set", ONE_FORGOTTEN, false),
    ("a relay that sends an edge's frames to another", LEAK_DOWN, true),
    ("a relay whose MAP address has another prefix", OTHER_PREFIX, true),
];

/// Frames that a relay passed unchanged, changed, and dropped; and the tester's received and mistranslated ones.
fn played(stream: usize, relay: Relay) -> ([u64; 3], [u64; 2]) {
    let mut place = MaybeUninit::uninit();
    let loaded = load(&mut place, WITHOUT_OFFSET, 100);
    let (side, model): (usize, Model) = if stream == PHASE2_INITIATOR { (RESPONDER, up) } else { (INITIATOR, down) };
    let mut truth = [0; 3];
    for frame in loaded.generate(&[flow(stream, FRAMES)]) {
        let (right, edge) = model(WITHOUT_OFFSET, &frame);
        let intended = right.build();
        let made = relay(right, edge).map(|frame| frame.build());
        truth[made.as_ref().map_or(2, |made| usize::from(*made != intended))] += 1;
        if let Some(made) = made {
            loaded.receive(side, &made);
        }
    }
    let tally = &loaded.programs.received().tally[stream];
    (truth, [tally.received, tally.mistranslated])
}

#[test]
fn each_frame_that_a_relay_drops_or_mistranslates_is_counted_so() {
    for (stream, rows) in [(PHASE2_INITIATOR, UP), (PHASE2_RESPONDER, DOWN)] {
        for (sentence, relay, arrives) in rows {
            let ([right, wrong, dropped], counted) = played(stream, *relay);
            assert_eq!(counted, [right, wrong], "{sentence}");
            assert_eq!(wrong > 0, *arrives, "{sentence}");
            assert_eq!(right + wrong + dropped, FRAMES, "{sentence}");
            assert_eq!(dropped > 0, [EVERY_SEVENTH as usize, ONE_FORGOTTEN as usize].contains(&(*relay as usize)));
        }
    }
}

#[test]
fn a_frame_damaged_on_the_way_is_damaged_in_either_direction() {
    for (stream, side, model) in
        [(PHASE2_INITIATOR, RESPONDER, up as fn(_, &_) -> _), (PHASE2_RESPONDER, INITIATOR, down)]
    {
        let mut place = MaybeUninit::uninit();
        let loaded = load(&mut place, WITHOUT_OFFSET, 100);
        for frame in loaded.generate(&[flow(stream, 50)]) {
            let (right, _): (Whole, u32) = model(WITHOUT_OFFSET, &frame);
            let mut frame = right.build();
            *frame.last_mut().unwrap() ^= 1;
            loaded.receive(side, &frame);
            // The mark itself is damaged: only the address shows that the frame is the trial's.
            let at = frame.len() - 18;
            frame[at] ^= 1;
            loaded.receive(side, &frame);
        }
        let found = loaded.programs.received();
        assert_eq!(found.tally[stream].damaged + found.damaged_unmarked[side], 100);
        assert_eq!(found.foreign, [0, 0]);
    }
}

#[test]
fn an_ipv6_frame_outside_is_untranslated() {
    let mut place = MaybeUninit::uninit();
    let loaded = load(&mut place, WITHOUT_OFFSET, 100);
    for frame in loaded.generate(&[flow(PHASE2_INITIATOR, 20)]) {
        loaded.receive(RESPONDER, &frame);
    }
    assert_eq!(loaded.programs.received().tally[PHASE2_INITIATOR].untranslated, 20);
}

#[test]
fn the_frames_towards_the_edges_are_the_shorter_ones() {
    let mut place = MaybeUninit::uninit();
    let loaded = load(&mut place, WITHOUT_OFFSET, 100);
    let frames = loaded.generate(&[flow(PHASE2_RESPONDER, 100)]);
    assert!(frames.iter().all(|frame| frame.len() == OCTETS4 && down(WITHOUT_OFFSET, frame).1 < 100));
}
