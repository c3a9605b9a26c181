// SPDX-License-Identifier: Apache-2.0
//! The tester as border relay, lwAFTR or AFTR, against models of customer edges. The models choose ports in the order of
//! their sets, which `sharing` computes.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use natgauge_engine::shared::{INITIATOR, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER};
use natgauge_engine::softwire::sharing::{PortSets, Rule};

use crate::customer_edge::{edges, rule, Division, Whole, OF_THE_STANDARD, WITHOUT_OFFSET, WITHOUT_SHARING};
use crate::frame::{v4, v6};
use crate::harness::{flow, request, Loaded, RESPONDER_MACS};
use crate::tunnel::{relay, wrap, OUTER, RELAY};

const HOSTS: u32 = 100;
const CONNECTIONS: u64 = 2000;
const FIRST_HOST: u32 = 0x0a00_0002;
/// The Responder's IPv4 address behind the NAT64 prefix; the address of its router where edges tunnel.
const EMBEDDED: &str = "2001:2:0:1::c613:2";

fn load<'a>(place: &'a mut MaybeUninit<libbpf_rs::OpenObject>, emulated: &str, more: &[(&str, &str)]) -> Loaded<'a> {
    let address = format!(r#"{{"first":"{EMBEDDED}","last":"{EMBEDDED}"}}"#);
    let connections = CONNECTIONS.to_string();
    let changes = [
        ("/initiator/source_addresses", r#"{"first":"10.0.0.2","last":"10.0.0.101"}"#),
        ("/responder/family", r#""ipv6""#),
        ("/responder/gateway", r#"{"mac":"02:00:00:00:01:02"}"#),
        ("/responder/addresses", &address[..]),
        ("/responder/customer_edges", emulated),
        ("/translation", r#"{"source":"translated"}"#),
        ("/connections", &connections[..]),
    ];
    Loaded::new(place, request(&[&changes[..], more].concat()))
}

/// A frame as it leaves the customer edges: translated, and in a tunnel (from, to) or as IPv6.
#[derive(Clone)]
struct Left {
    inner: Whole,
    tunnel: Option<(Ipv6Addr, Ipv6Addr)>,
}

impl Left {
    fn build(&self) -> Vec<u8> {
        let frame = self.inner.build();
        self.tunnel.map_or(frame.clone(), |(from, to)| wrap(&frame, from, to))
    }
}

/// Customer edges without faults.
struct Edges {
    division: Division,
    tunnels: bool,
    used: BTreeMap<u32, usize>,
    inside: BTreeMap<(IpAddr, u16), (IpAddr, u16)>,
}

impl Edges {
    fn new(division: Division, tunnels: bool) -> Self {
        Self { division, tunnels, used: BTreeMap::new(), inside: BTreeMap::new() }
    }

    /// Address and PSID of the edge of a host.
    fn edge(&self, host: IpAddr) -> (Ipv4Addr, u16) {
        let (_, length, first, _) = self.division;
        let number = Whole::four(host).to_bits() - FIRST_HOST;
        let per_address = (1 << length) - u32::from(first);
        let psid = u32::from(first) + number % per_address;
        (Ipv4Addr::from_bits(0xc612_0001 + number / per_address), psid as u16)
    }

    fn map_address(&self, (address, psid): (Ipv4Addr, u16)) -> Ipv6Addr {
        rule(self.division).address(address, psid).unwrap()
    }

    /// A frame of the Initiator as it leaves for the Responder.
    fn up(&mut self, frame: &[u8]) -> Left {
        let mut inner = Whole::read(frame);
        let own = (inner.udp.source, inner.udp.ports.0);
        let edge = self.edge(own.0);
        let at = self.used.entry(Whole::four(own.0).to_bits()).or_default();
        let port = rule(self.division).sets().ranges(edge.1).flatten().nth(*at).unwrap();
        *at += 1;
        let map_address = self.map_address(edge);
        inner.udp.source = if self.tunnels { edge.0.into() } else { map_address.into() };
        inner.udp.ports.0 = port;
        self.inside.insert((inner.udp.source, port), own);
        if !self.tunnels {
            inner.udp.destination = v6(EMBEDDED);
            inner.udp.octets += 20;
        }
        (inner.udp.to, inner.udp.from) = RESPONDER_MACS;
        Left { inner, tunnel: self.tunnels.then(|| (map_address, relay())) }
    }

    /// A frame of the Responder as it leaves for the Initiator, with the end of its tunnel.
    fn down(&self, frame: &[u8]) -> Vec<u8> {
        let mut inner = if self.tunnels { unwrap(frame) } else { Whole::read(frame) };
        let outside = (inner.udp.destination, inner.udp.ports.1);
        (inner.udp.destination, inner.udp.ports.1) = self.inside[&outside];
        let map_address = self.map_address(self.edge(inner.udp.destination));
        if self.tunnels {
            assert_eq!(ends(frame), (relay(), map_address));
        } else {
            assert_eq!(outside.0, IpAddr::V6(map_address));
            inner.udp.source = v4("198.19.0.2");
            inner.udp.octets -= 20;
        }
        inner.build()
    }
}

fn ends(frame: &[u8]) -> (Ipv6Addr, Ipv6Addr) {
    let six = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&frame[at..at + 16]).unwrap());
    assert_eq!(frame[12..14], [0x86, 0xdd]);
    (six(22), six(38))
}

fn unwrap(frame: &[u8]) -> Whole {
    assert_eq!((frame[18], frame[19], frame[20]), (0, (frame.len() - 14 - OUTER) as u8, 4), "the outer header");
    Whole::read(&[&frame[..12], &[8, 0], &frame[14 + OUTER..]].concat())
}

#[test]
fn connections_are_learned_and_come_back_through_their_own_edges() {
    for division in [WITHOUT_OFFSET, OF_THE_STANDARD] {
        for to in [Some(RELAY), None] {
            let mut place = MaybeUninit::uninit();
            let loaded = load(&mut place, &edges(division, HOSTS, to), &[]);
            let mut device = Edges::new(division, to.is_some());
            for frame in loaded.generate(&[flow(PHASE1, CONNECTIONS)]) {
                loaded.receive(RESPONDER, &device.up(&frame).build());
            }
            let found = loaded.programs.received();
            assert_eq!([found.tally[PHASE1].received, found.stored, found.remapped], [CONNECTIONS, CONNECTIONS, 0]);
            assert_eq!(device.used.len(), HOSTS as usize);
            for frame in loaded.generate(&[flow(PHASE2_RESPONDER, 1000)]) {
                loaded.receive(INITIATOR, &device.down(&frame));
            }
            assert_eq!(loaded.programs.received().tally[PHASE2_RESPONDER].received, 1000, "{division:?} {to:?}");
        }
    }
}

/// A sentence, whether the edges tunnel, their fault, and whether its frames count as untranslated or mistranslated.
type Fault = (&'static str, bool, fn(&mut Left), [u64; 2]);
const LEAKED: [u64; 2] = [CONNECTIONS, 0];
const WRONG: [u64; 2] = [0, CONNECTIONS];

fn other_set(left: &mut Left) {
    left.inner.udp.ports.0 ^= 1 << 8;
}

fn in_no_set(left: &mut Left) {
    left.inner.udp.ports.0 &= (1 << 10) - 1;
}

fn other_address(left: &mut Left) {
    left.inner.udp.source = Ipv4Addr::from_bits(Whole::four(left.inner.udp.source).to_bits() ^ 2).into();
}

fn other_end(left: &mut Left, bit: u32) {
    let (from, to) = left.tunnel.unwrap();
    left.tunnel = Some(((from.to_bits() ^ 1 << bit).into(), to));
}

/// With the division of the standard, in which bits 2 to 9 of a port are the PSID.
const FAULTS: &[Fault] = &[
    ("a port of another set", true, other_set, WRONG),
    ("a port of another set, translated", false, other_set, WRONG),
    (
        "a port of another set, in the tunnel of that set",
        true,
        |left| {
            other_set(left);
            other_end(left, 6);
            other_end(left, 64 + 6);
        },
        WRONG,
    ),
    ("a port in no set", true, in_no_set, WRONG),
    ("a port in no set, translated", false, in_no_set, WRONG),
    ("another address", true, other_address, WRONG),
    ("from another end of the tunnel", true, |left| other_end(left, 70), WRONG),
    (
        "to another relay",
        true,
        |left| {
            let (from, to) = left.tunnel.unwrap();
            left.tunnel = Some((from, (to.to_bits() ^ 2).into()));
        },
        WRONG,
    ),
    (
        "from an address with another prefix, translated",
        false,
        |left| {
            let IpAddr::V6(six) = left.inner.udp.source else { panic!("the edges translate") };
            left.inner.udp.source = Ipv6Addr::from_bits(six.to_bits() ^ 1 << 100).into();
        },
        WRONG,
    ),
    ("in no tunnel", true, |left| left.tunnel = None, LEAKED),
];

#[test]
fn a_customer_edge_that_leaves_its_port_set_or_tunnel_is_found() {
    for (sentence, tunnels, fault, expected) in FAULTS {
        let mut place = MaybeUninit::uninit();
        let to = tunnels.then_some(RELAY);
        let loaded = load(&mut place, &edges(OF_THE_STANDARD, HOSTS, to), &[]);
        let mut device = Edges::new(OF_THE_STANDARD, *tunnels);
        for frame in loaded.generate(&[flow(PHASE1, CONNECTIONS)]) {
            let mut left = device.up(&frame);
            fault(&mut left);
            loaded.receive(RESPONDER, &left.build());
        }
        let found = loaded.programs.received();
        let tally = &found.tally[PHASE1];
        assert_eq!([tally.untranslated, tally.mistranslated], *expected, "{sentence}");
        assert_eq!([tally.received, found.stored], [0, 0], "{sentence}");
    }
}

/// A sentence, a fault that a relay may pass on, and the received, untranslated and mistranslated frames.
type FaultBehindRelay = (&'static str, fn(&mut Left), [u64; 3]);
const BEHIND_RELAY: &[FaultBehindRelay] = &[
    ("no fault", |_| (), [CONNECTIONS, 0, 0]),
    ("a port of another set", other_set, [0, 0, CONNECTIONS]),
    ("a port in no set", in_no_set, [0, 0, CONNECTIONS]),
    ("the address of other subscribers", other_address, [0, 0, CONNECTIONS]),
];

#[test]
fn behind_their_relay_customer_edges_are_held_to_their_port_sets() {
    for (sentence, fault, expected) in BEHIND_RELAY {
        let mut place = MaybeUninit::uninit();
        let emulated = edges(OF_THE_STANDARD, HOSTS, None);
        let connections = CONNECTIONS.to_string();
        let changes = [
            ("/initiator/source_addresses", r#"{"first":"10.0.0.2","last":"10.0.0.101"}"#),
            ("/responder/customer_edges", &emulated[..]),
            ("/translation", r#"{"source":"translated"}"#),
            ("/connections", &connections[..]),
        ];
        let loaded = Loaded::new(&mut place, request(&changes));
        let mut device = Edges::new(OF_THE_STANDARD, true);
        for frame in loaded.generate(&[flow(PHASE1, CONNECTIONS)]) {
            let mut left = device.up(&frame);
            fault(&mut left);
            loaded.receive(RESPONDER, &left.inner.build());
        }
        let found = loaded.programs.received();
        let tally = &found.tally[PHASE1];
        assert_eq!([tally.received, tally.untranslated, tally.mistranslated], *expected, "{sentence}");
        if tally.received == 0 {
            continue;
        }
        for frame in loaded.generate(&[flow(PHASE2_RESPONDER, 1000)]) {
            let mut whole = Whole::read(&frame);
            (whole.udp.destination, whole.udp.ports.1) = device.inside[&(whole.udp.destination, whole.udp.ports.1)];
            loaded.receive(INITIATOR, &whole.build());
        }
        assert_eq!(loaded.programs.received().tally[PHASE2_RESPONDER].received, 1000);
    }
}

#[test]
fn a_private_source_in_the_right_tunnel_is_untranslated() {
    let mut place = MaybeUninit::uninit();
    let loaded = load(&mut place, &edges(OF_THE_STANDARD, HOSTS, Some(RELAY)), &[]);
    let mut device = Edges::new(OF_THE_STANDARD, true);
    for frame in loaded.generate(&[flow(PHASE1, 50)]) {
        let own = Whole::read(&frame).udp.source;
        let mut left = device.up(&frame);
        left.inner.udp.source = own;
        loaded.receive(RESPONDER, &left.build());
    }
    assert_eq!(loaded.programs.received().tally[PHASE1].untranslated, 50);
}

/// A B4 does not translate: RFC 6333 section 5. Each host has a B4 of its own.
#[test]
fn frames_of_b4s_stay_as_they_are_in_the_tunnels_of_their_hosts() {
    let emulated = edges(WITHOUT_SHARING, HOSTS, Some(RELAY))
        .replace(r#""ipv4_prefix":"198.18.0.0""#, r#""ipv4_prefix":"10.0.0.0""#)
        .replace(r#""first_address":"198.18.0.1""#, r#""first_address":"10.0.0.2""#);
    let sets = PortSets::new(4, 0).unwrap();
    let rule = Rule::new(("2001:db8::".parse().unwrap(), 40), (Ipv4Addr::new(10, 0, 0, 0), 16), 16, sets).unwrap();
    let unchanged = [("/translation", r#"{"source":"unchanged"}"#)];
    let stateless = [unchanged[0], ("/stateless", "true"), ("/phase1", "null")];
    for (more, up) in [(&unchanged[..], PHASE1), (&stateless[..], PHASE2_INITIATOR)] {
        let mut place = MaybeUninit::uninit();
        let loaded = load(&mut place, &emulated, more);
        let tunnel_of = |host: IpAddr| rule.address(Whole::four(host), 0).unwrap();
        let mut strays = 0;
        for frame in loaded.generate(&[flow(up, CONNECTIONS)]) {
            let inner = Whole::read(&frame);
            let stray = inner.udp.ports.0 % 10 == 3;
            strays += u64::from(stray);
            let from = tunnel_of(inner.udp.source).to_bits() ^ u128::from(stray) << 64;
            loaded.receive(RESPONDER, &wrap(&inner.build(), from.into(), relay()));
        }
        let tally = &loaded.programs.received().tally[up];
        assert!(strays > 0);
        assert_eq!([tally.received, tally.mistranslated], [CONNECTIONS - strays, strays]);
        let mut hosts = BTreeSet::new();
        for frame in loaded.generate(&[flow(PHASE2_RESPONDER, 500)]) {
            let inner = unwrap(&frame);
            assert_eq!(ends(&frame), (relay(), tunnel_of(inner.udp.destination)));
            hosts.insert(inner.udp.destination);
            loaded.receive(INITIATOR, &inner.build());
        }
        assert!(hosts.len() > 80);
        assert_eq!(loaded.programs.received().tally[PHASE2_RESPONDER].received, 500);
    }
}

#[test]
fn plans_of_customer_edges_are_verified_with_room_to_spare() {
    let records: &[(&str, &str)] =
        &[("/record_delays", "true"), ("/record_variation", "true"), ("/record_loss_times", "true")];
    for (to, order) in
        [(Some(RELAY), r#""permutation""#), (Some(RELAY), r#""with-replacement""#), (None, r#""permutation""#)]
    {
        let mut place = MaybeUninit::uninit();
        let more = [records, &[("/order", order)]].concat();
        let loaded = load(&mut place, &edges(OF_THE_STANDARD, HOSTS, to), &more);
        let verified = loaded.programs.verified_instructions();
        println!("{to:?} {order}: {verified:?}");
        assert!(verified.iter().all(|&followed| followed < 200_000), "{verified:?} {to:?} {order}");
    }
}
