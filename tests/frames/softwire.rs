// SPDX-License-Identifier: Apache-2.0
//! The reference softwire, frame in, frame out. Packets are built octet by octet from the RFCs; checksums are summed anew.

use std::mem::{offset_of, MaybeUninit};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{MapCore, MapFlags};
use natgauge_engine::softwire::sharing::{PortSets, RelayPrefix, Rule};
use natgauge_engine::softwire::skeleton::SoftwireSkel;
use natgauge_engine::softwire::types::softwire_counts;
use natgauge_engine::softwire::{Binding, Role, Softwire, Technology};

use crate::frame::ones_complement;
use crate::harness;

const PASS: u32 = 0;
const SHOT: u32 = 2;
const IPV4: [u8; 2] = [8, 0];
const IPV6: [u8; 2] = [0x86, 0xdd];
const MACS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
const UDP: u8 = 17;
const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

// The examples of RFC 7597 and RFC 7599, appendix A.
const CE: &str = "2001:db8:12:3400:0:c000:212:34";
const OTHER_CE: &str = "2001:db8:12:3500:0:c000:212:35";
const SHARED: &str = "192.0.2.18";
const PORT: u16 = 1232;
const HOST: &str = "10.2.3.4";
const HOST_BEHIND_BR: &str = "2001:db8:ffff:0:a:203:400:0";
const BR: &str = "2001:db8:ffff::1";

fn ip4(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

fn ip6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn sets() -> PortSets {
    PortSets::new(6, 8).unwrap()
}

fn rule(sets: PortSets) -> Rule {
    let bits = 8 + sets.length();
    Rule::new((ip6("2001:db8::"), 40), (ip4("192.0.2.0"), 24), bits, sets).unwrap()
}

fn map_e() -> Technology {
    Technology::MapE(rule(sets()), ip6(BR))
}

fn map_t() -> Technology {
    Technology::MapT(rule(sets()), RelayPrefix::new(ip6("2001:db8:ffff::"), 64).unwrap())
}

fn lw4o6() -> Technology {
    let binding = |psid, softwire| Binding { address: ip4(SHARED), psid, softwire: ip6(softwire) };
    Technology::Lw4o6(sets(), ip6(BR), vec![binding(0x34, CE), binding(0x35, OTHER_CE)])
}

struct End<'a>(SoftwireSkel<'a>);

impl<'a> End<'a> {
    fn new(place: &'a mut MaybeUninit<libbpf_rs::OpenObject>, technology: Technology, role: Role) -> Self {
        let end = Softwire { technology, role, most_octets: 1500 };
        Self(end.load(place).unwrap_or_else(|failure| panic!("the frame tests need root: {failure}")))
    }

    fn run(program: &impl AsFd, frame: &[u8]) -> (u32, Vec<u8>) {
        let (verdict, out, _) = harness::run(program.as_fd().as_raw_fd(), frame, 1);
        (verdict, out)
    }

    /// What leaves.
    fn leave(&self, frame: &[u8]) -> (u32, Vec<u8>) {
        Self::run(&self.0.progs.softwire_out, frame)
    }

    /// What comes in.
    fn enter(&self, frame: &[u8]) -> (u32, Vec<u8>) {
        Self::run(&self.0.progs.softwire_in, frame)
    }

    fn count(&self, offset: usize) -> u64 {
        let shares = self.0.maps.softwire_counts.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        shares.iter().map(|share| u64::from_ne_bytes(share[offset..offset + 8].try_into().unwrap())).sum()
    }

    /// The frame is dropped, and this count alone rises.
    fn refuses(&self, outcome: (u32, Vec<u8>), offset: usize, why: &str) {
        assert_eq!(outcome.0, SHOT, "{why}");
        assert_eq!(self.count(offset), 1, "{why}");
        let all: u64 = (0..size_of::<softwire_counts>() / 8).map(|index| self.count(index * 8)).sum();
        assert_eq!(all, 1, "{why}");
    }
}

fn pseudo4(source: &str, destination: &str, protocol: u8, octets: usize) -> Vec<u8> {
    let length = (octets as u16).to_be_bytes();
    [&ip4(source).octets()[..], &ip4(destination).octets(), &[0, protocol], &length].concat()
}

fn pseudo6(source: &str, destination: &str, protocol: u8, octets: usize) -> Vec<u8> {
    let length = (octets as u16).to_be_bytes();
    [&ip6(source).octets()[..], &ip6(destination).octets(), &[0, protocol], &length].concat()
}

/// A transport header with its right checksum.
fn transport(protocol: u8, ports: (u16, u16), pseudo: &[u8], payload: &[u8]) -> Vec<u8> {
    let (first, second) = (ports.0.to_be_bytes(), ports.1.to_be_bytes());
    let (mut all, check) = match protocol {
        UDP => ([&first[..], &second, &(payload.len() as u16 + 8).to_be_bytes(), &[0, 0], payload].concat(), 6),
        TCP => ([&first[..], &second, &[0; 8], &[0x50, 0x10, 1, 0, 0, 0, 0, 0], payload].concat(), 16),
        // Type, code, checksum, identifier, sequence number.
        _ => ([&[ports.1 as u8, 0, 0, 0][..], &first, &[0, 7], payload].concat(), 2),
    };
    let sum = match !ones_complement(&[pseudo, &all].concat()) {
        0 if protocol == UDP => 0xffff,
        other => other,
    };
    all[check..check + 2].copy_from_slice(&sum.to_be_bytes());
    all
}

fn frame4(source: &str, destination: &str, protocol: u8, behind: &[u8]) -> Vec<u8> {
    let total = (behind.len() as u16 + 20).to_be_bytes();
    let (from, to) = (ip4(source).octets(), ip4(destination).octets());
    let mut ip = [&[0x45, 0x28][..], &total, &[0, 9, 0, 0, 33, protocol, 0, 0], &from, &to].concat();
    let check = !ones_complement(&ip);
    ip[10..12].copy_from_slice(&check.to_be_bytes());
    [&MACS[..], &IPV4, &ip, behind].concat()
}

fn frame6(source: &str, destination: &str, next: u8, hops: u8, behind: &[u8]) -> Vec<u8> {
    let length = (behind.len() as u16).to_be_bytes();
    let (from, to) = (ip6(source).octets(), ip6(destination).octets());
    // Traffic class 0x28, as the IPv4 header above.
    [&MACS[..], &IPV6, &[0x62, 0x80, 0, 0], &length, &[next, hops], &from, &to, behind].concat()
}

fn udp4(from: (&str, u16), to: (&str, u16), payload: &[u8]) -> Vec<u8> {
    let pseudo = pseudo4(from.0, to.0, UDP, payload.len() + 8);
    frame4(from.0, to.0, UDP, &transport(UDP, (from.1, to.1), &pseudo, payload))
}

fn down() -> Vec<u8> {
    udp4((HOST, 80), (SHARED, PORT), b"towards the subscriber")
}

fn up() -> Vec<u8> {
    udp4((SHARED, PORT), (HOST, 80), b"from the subscriber")
}

/// RFC 2473: an IPv6 header with next header 4, nothing between, nothing changed behind it.
fn wrapped(source: &str, destination: &str, inner: &[u8]) -> Vec<u8> {
    frame6(source, destination, 4, 64, &inner[14..])
}

#[test]
fn encapsulation_puts_the_owners_address_in_front_and_takes_it_off_again() {
    for technology in [map_e(), lw4o6()] {
        let (mut one, mut two) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let br = End::new(&mut one, technology.clone(), Role::BorderRelay);
        let ce = End::new(&mut two, technology, Role::CustomerEdge);
        assert_eq!(br.leave(&down()), (PASS, wrapped(BR, CE, &down())));
        assert_eq!(ce.enter(&wrapped(BR, CE, &down())), (PASS, down()));
        assert_eq!(ce.leave(&up()), (PASS, wrapped(CE, BR, &up())));
        assert_eq!(br.enter(&wrapped(CE, BR, &up())), (PASS, up()));
        for end in [&br, &ce] {
            assert_eq!(end.count(offset_of!(softwire_counts, wrapped)), 1);
            assert_eq!(end.count(offset_of!(softwire_counts, unwrapped)), 1);
        }
    }
}

/// RFC 7915 sections 4.1 and 5.1; the Identification is made up, so it is taken as it came.
fn assert_same4(outcome: (u32, Vec<u8>), mut right: Vec<u8>) {
    let (verdict, frame) = outcome;
    assert_eq!((verdict, frame.len()), (PASS, right.len()));
    assert_eq!(ones_complement(&frame[14..34]), 0xffff, "IPv4 header checksum");
    right[18..20].copy_from_slice(&frame[18..20]);
    right[24..26].copy_from_slice(&frame[24..26]);
    assert_eq!(frame, right);
}

#[test]
fn translation_changes_headers_and_keeps_checksums_right() {
    let (mut one, mut two) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let br = End::new(&mut one, map_t(), Role::BorderRelay);
    let ce = End::new(&mut two, map_t(), Role::CustomerEdge);
    for (protocol, down_ports, up_ports) in
        [(UDP, (80, PORT), (PORT, 80)), (TCP, (80, PORT), (PORT, 80)), (ICMP, (PORT, 0), (PORT, 8))]
    {
        for payload in [&b"even"[..], b"odd", b""] {
            let six = if protocol == ICMP { ICMPV6 } else { protocol };
            let type6 = |ports: (u16, u16)| match (protocol, ports.1) {
                (ICMP, 8) => (ports.0, 128),
                (ICMP, _) => (ports.0, 129),
                _ => ports,
            };
            let octets = payload.len() + if protocol == TCP { 20 } else { 8 };
            let four = |from, to, ports| {
                let pseudo = if protocol == ICMP { Vec::new() } else { pseudo4(from, to, protocol, octets) };
                frame4(from, to, protocol, &transport(protocol, ports, &pseudo, payload))
            };
            let as_six = |from, to, ports| {
                let pseudo = pseudo6(from, to, six, octets);
                frame6(from, to, six, 33, &transport(six, type6(ports), &pseudo, payload))
            };
            let (down4, down6) = (four(HOST, SHARED, down_ports), as_six(HOST_BEHIND_BR, CE, down_ports));
            assert_eq!(br.leave(&down4), (PASS, down6.clone()), "protocol {protocol}");
            assert_same4(ce.enter(&down6), down4);
            let (up4, up6) = (four(SHARED, HOST, up_ports), as_six(CE, HOST_BEHIND_BR, up_ports));
            assert_eq!(ce.leave(&up4), (PASS, up6.clone()), "protocol {protocol}");
            assert_same4(br.enter(&up6), up4);
        }
    }
}

#[test]
fn a_large_packet_comes_back_with_dont_fragment_set() {
    let mut place = MaybeUninit::uninit();
    let br = End::new(&mut place, map_t(), Role::BorderRelay);
    for (payload, whole) in [(1232, 0), (1233, 0x40)] {
        let data = vec![7; payload];
        let udp = transport(UDP, (PORT, 80), &pseudo6(CE, HOST_BEHIND_BR, UDP, payload + 8), &data);
        let (verdict, frame) = br.enter(&frame6(CE, HOST_BEHIND_BR, UDP, 33, &udp));
        assert_eq!((verdict, frame[20]), (PASS, whole), "{payload} octets");
    }
}

/// RFC 768, RFC 8200 section 8.1: a sum that works out as 0 is written as 0xffff.
#[test]
fn a_udp_checksum_that_works_out_as_nothing_is_all_ones() {
    let (mut one, mut two) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let br = End::new(&mut one, map_t(), Role::BorderRelay);
    let ce = End::new(&mut two, map_t(), Role::CustomerEdge);
    let full = |pseudo: &dyn Fn(usize) -> Vec<u8>, ports| {
        (0..=u16::MAX)
            .map(|word| transport(UDP, ports, &pseudo(10), &word.to_be_bytes()))
            .find(|udp| udp[6..8] == [0xff, 0xff])
            .unwrap()
    };
    let six = full(&|octets| pseudo6(HOST_BEHIND_BR, CE, UDP, octets), (80, PORT));
    let sent = udp4((HOST, 80), (SHARED, PORT), &six[8..]);
    assert_eq!(br.leave(&sent), (PASS, frame6(HOST_BEHIND_BR, CE, UDP, 33, &six)));
    let four = full(&|octets| pseudo4(HOST, SHARED, UDP, octets), (80, PORT));
    let udp = transport(UDP, (80, PORT), &pseudo6(HOST_BEHIND_BR, CE, UDP, 10), &four[8..]);
    assert_same4(ce.enter(&frame6(HOST_BEHIND_BR, CE, UDP, 33, &udp)), frame4(HOST, SHARED, UDP, &four));
}

#[test]
fn every_port_goes_to_the_owner_that_the_rule_names() {
    for (offset, length) in [(0, 4), (0, 8), (6, 8), (4, 0), (5, 11)] {
        let sets = PortSets::new(offset, length).unwrap();
        let rule = rule(sets);
        let mut place = MaybeUninit::uninit();
        let br = End::new(&mut place, Technology::MapE(rule, ip6(BR)), Role::BorderRelay);
        for port in 0..=u16::MAX {
            let (verdict, frame) = br.leave(&udp4((HOST, 80), (SHARED, port), b""));
            let owner = sets.psid(port).and_then(|psid| rule.address(ip4(SHARED), psid));
            let reached = (verdict == PASS).then(|| Ipv6Addr::from(<[u8; 16]>::try_from(&frame[38..54]).unwrap()));
            assert_eq!(reached, owner, "offset {offset}, length {length}, port {port}");
        }
    }
}

#[test]
fn whoever_sends_from_anothers_ports_is_dropped_and_counted() {
    let wrong = offset_of!(softwire_counts, wrong_port_set);
    for technology in [map_e(), lw4o6()] {
        let mut place = MaybeUninit::uninit();
        let br = End::new(&mut place, technology.clone(), Role::BorderRelay);
        br.refuses(br.enter(&wrapped(OTHER_CE, BR, &up())), wrong, "another's port behind the own address");
        let mut place = MaybeUninit::uninit();
        let ce = End::new(&mut place, technology, Role::CustomerEdge);
        ce.refuses(ce.enter(&wrapped(BR, OTHER_CE, &down())), wrong, "another's port, from the BR");
    }
    let mut place = MaybeUninit::uninit();
    let br = End::new(&mut place, map_t(), Role::BorderRelay);
    let udp = transport(UDP, (PORT, 80), &pseudo6(OTHER_CE, HOST_BEHIND_BR, UDP, 8), b"");
    br.refuses(br.enter(&frame6(OTHER_CE, HOST_BEHIND_BR, UDP, 33, &udp)), wrong, "another's port, translated");
}

type Row = (&'static str, fn() -> Technology, Role, fn(&End<'_>) -> (u32, Vec<u8>), usize);

const ROWS: &[Row] = &[
    (
        "a port below the offset is nobody's",
        map_e,
        Role::BorderRelay,
        |end| end.leave(&udp4((HOST, 80), (SHARED, 1023), b"")),
        offset_of!(softwire_counts, no_subscriber),
    ),
    (
        "an address that the rule does not name is nobody's",
        map_t,
        Role::BorderRelay,
        |end| end.leave(&udp4((HOST, 80), ("192.0.3.18", PORT), b"")),
        offset_of!(softwire_counts, no_subscriber),
    ),
    (
        "a port set without a binding is nobody's",
        lw4o6,
        Role::BorderRelay,
        |end| end.leave(&udp4((HOST, 80), (SHARED, PORT + 8), b"")),
        offset_of!(softwire_counts, no_subscriber),
    ),
    (
        "what the NAT left untranslated does not leave the customer's edge",
        map_e,
        Role::CustomerEdge,
        |end| end.leave(&udp4(("10.0.0.2", PORT), (HOST, 80), b"")),
        offset_of!(softwire_counts, no_subscriber),
    ),
    (
        "the customer's edge hears its BR only",
        map_e,
        Role::CustomerEdge,
        |end| end.enter(&wrapped("2001:db8:ffff::2", CE, &down())),
        offset_of!(softwire_counts, wrong_relay),
    ),
    ("a later fragment has no port", map_e, Role::BorderRelay, |end| end.leave(&fragment(1)), FRAGMENT),
    ("nor is a first one passed on", map_t, Role::BorderRelay, |end| end.leave(&fragment(0x2000)), FRAGMENT),
    ("nor one in a tunnel", map_e, Role::BorderRelay, |end| end.enter(&wrapped(CE, BR, &fragment(1))), FRAGMENT),
    (
        "nor a fragment of IPv6",
        map_t,
        Role::BorderRelay,
        |end| end.enter(&frame6(CE, HOST_BEHIND_BR, 44, 9, &[0; 24])),
        FRAGMENT,
    ),
    (
        "another protocol has no port",
        map_e,
        Role::BorderRelay,
        |end| end.leave(&frame4(HOST, SHARED, 47, &[0; 16])),
        PROTOCOL,
    ),
    (
        "an ICMP error has none either",
        map_e,
        Role::BorderRelay,
        |end| end.leave(&frame4(HOST, SHARED, ICMP, &transport(ICMP, (0, 3), &[], &[0; 28]))),
        PROTOCOL,
    ),
    ("IPv4 options are not translated", map_t, Role::BorderRelay, |end| end.leave(&with_options()), PROTOCOL),
    (
        "UDP without a checksum is not translated",
        map_t,
        Role::BorderRelay,
        |end| end.leave(&without_checksum()),
        offset_of!(softwire_counts, no_checksum),
    ),
    (
        "what the link does not carry is not wrapped",
        map_e,
        Role::BorderRelay,
        |end| end.leave(&udp4((HOST, 80), (SHARED, PORT), &[0; 1433])),
        offset_of!(softwire_counts, too_big),
    ),
    (
        "a cut packet is not wrapped",
        map_e,
        Role::BorderRelay,
        |end| end.leave(&down()[..down().len() - 1]),
        offset_of!(softwire_counts, malformed),
    ),
    (
        "a cut packet is not taken out",
        map_e,
        Role::BorderRelay,
        |end| end.enter(&frame6(CE, BR, 4, 9, &up()[14..50])),
        offset_of!(softwire_counts, malformed),
    ),
];
const FRAGMENT: usize = offset_of!(softwire_counts, fragment);
const PROTOCOL: usize = offset_of!(softwire_counts, protocol);

fn fragment(field: u16) -> Vec<u8> {
    let mut frame = down();
    frame[20..22].copy_from_slice(&field.to_be_bytes());
    frame
}

fn with_options() -> Vec<u8> {
    let mut frame = down();
    frame[14] = 0x46;
    frame[17] += 4;
    frame.splice(34..34, [1, 1, 1, 0]);
    frame
}

fn without_checksum() -> Vec<u8> {
    let mut frame = down();
    frame[40..42].fill(0);
    frame
}

#[test]
fn what_it_cannot_pass_on_is_dropped_and_counted_by_its_cause() {
    for (sentence, technology, role, act, offset) in ROWS {
        let mut place = MaybeUninit::uninit();
        let end = End::new(&mut place, technology(), *role);
        let outcome = act(&end);
        end.refuses(outcome, *offset, sentence);
    }
}

#[test]
fn the_largest_packet_that_fits_is_wrapped() {
    let mut place = MaybeUninit::uninit();
    let br = End::new(&mut place, map_e(), Role::BorderRelay);
    let frame = udp4((HOST, 80), (SHARED, PORT), &[0; 1432]);
    assert_eq!(br.leave(&frame), (PASS, wrapped(BR, CE, &frame)));
    let mut place = MaybeUninit::uninit();
    let br = End::new(&mut place, map_t(), Role::BorderRelay);
    assert_eq!(br.leave(&udp4((HOST, 80), (SHARED, PORT), &[0; 1452])).1.len(), 14 + 1500);
}

#[test]
fn options_are_carried_in_a_tunnel() {
    let mut place = MaybeUninit::uninit();
    let br = End::new(&mut place, map_e(), Role::BorderRelay);
    assert_eq!(br.leave(&with_options()), (PASS, wrapped(BR, CE, &with_options())));
}

#[test]
fn what_is_of_no_softwire_passes_untouched() {
    let arp = [&MACS[..], &[8, 6], &[0; 46]].concat();
    let neighbour = frame6("fe80::1", "ff02::1:ff00:1", ICMPV6, 255, &[135, 0, 0, 0, 0, 0, 0, 0]);
    let native = frame6("2001:db8:5::1", "2001:db8:6::1", UDP, 9, &[0; 16]);
    for technology in [map_e(), map_t(), lw4o6()] {
        for role in [Role::BorderRelay, Role::CustomerEdge] {
            let mut place = MaybeUninit::uninit();
            let end = End::new(&mut place, technology.clone(), role);
            for frame in [&arp, &neighbour, &native] {
                assert_eq!(end.enter(frame), (PASS, frame.clone()));
                assert_eq!(end.leave(frame), (PASS, frame.clone()));
            }
            assert_eq!(end.enter(&down()), (PASS, down()));
            let all: u64 = (0..size_of::<softwire_counts>() / 8).map(|index| end.count(index * 8)).sum();
            assert_eq!(all, 0);
        }
    }
}

#[test]
fn a_binding_table_of_100000_finds_each_owner() {
    let sets = PortSets::new(0, 6).unwrap();
    let of = |index: u32| Binding {
        address: Ipv4Addr::from_bits(0xc612_0000 + index / 63),
        psid: (1 + index % 63) as u16,
        softwire: Ipv6Addr::from_bits(0x2001_0db8_00b4_0000 << 64 | u128::from(index)),
    };
    let all: Vec<_> = (0..100_000).map(of).collect();
    let mut place = MaybeUninit::uninit();
    let aftr = End::new(&mut place, Technology::Lw4o6(sets, ip6(BR), all.clone()), Role::BorderRelay);
    for binding in all.iter().step_by(997).chain(all.last()) {
        let frame = udp4((HOST, 80), (&binding.address.to_string(), binding.psid << 10), b"");
        assert_eq!(aftr.leave(&frame), (PASS, wrapped(BR, &binding.softwire.to_string(), &frame)));
    }
}

#[test]
fn a_binding_that_is_there_twice_is_refused() {
    let Technology::Lw4o6(sets, relay, mut bindings) = lw4o6() else { unreachable!() };
    bindings.push(bindings[0]);
    let end =
        Softwire { technology: Technology::Lw4o6(sets, relay, bindings), role: Role::BorderRelay, most_octets: 1500 };
    let mut place = MaybeUninit::uninit();
    let failure = end.load(&mut place).err().unwrap();
    assert_eq!((failure.status(), failure.to_string()), (2, "binding 192.0.2.18 PSID 52: is there twice".to_string()));
}
