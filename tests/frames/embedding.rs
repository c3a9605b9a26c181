// SPDX-License-Identifier: Apache-2.0
//! IPv4-embedded IPv6 addresses (RFC 6052): which the tester writes, and which it takes for right.

use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use natgauge_engine::shared::{INITIATOR, PHASE1, PHASE2_RESPONDER, RESPONDER};

use crate::frame::{self, v4, v6, Udp};
use crate::harness::{flow, request, Loaded, INITIATOR_MACS, NAT64, REDIRECT, RESPONDER_MACS};
use crate::receiver::risen;

/// RFC 6052 section 2.4: prefix, its length, and 192.0.2.33 behind it.
const TABLE: [(&str, usize, &str); 6] = [
    ("2001:db8::", 32, "2001:db8:c000:221::"),
    ("2001:db8:100::", 40, "2001:db8:1c0:2:21::"),
    ("2001:db8:122::", 48, "2001:db8:122:c000:2:2100::"),
    ("2001:db8:122:300::", 56, "2001:db8:122:3c0:0:221::"),
    ("2001:db8:122:344::", 64, "2001:db8:122:344:c0:2:2100:0"),
    ("2001:db8:122:344::", 96, "2001:db8:122:344::c000:221"),
];

/// 192.0.2.33 to 192.0.3.34: the third octet changes among them.
const HOSTS: u32 = 258;
const FIRST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 33);

/// Octet by octet: the address follows the prefix, and leaves out octet 8.
fn behind(prefix: &str, bits: usize, host: Ipv4Addr) -> Ipv6Addr {
    let mut octets = prefix.parse::<Ipv6Addr>().unwrap().octets();
    let free = (bits / 8..16).filter(|&at| at != 8 || bits == 96);
    for (at, octet) in free.zip(host.octets()) {
        octets[at] = octet;
    }
    octets.into()
}

fn host(number: u32) -> Ipv4Addr {
    (FIRST.to_bits() + number).into()
}

fn range(first: IpAddr, last: IpAddr, embedded: usize) -> String {
    let more = if embedded < 96 && first.is_ipv6() { format!(r#","embedded":{embedded}"#) } else { String::new() };
    format!(r#"{{"first":"{first}","last":"{last}"{more}}}"#)
}

/// A NAT64 in front of `hosts` hosts.
fn nat64<'a>(place: &'a mut MaybeUninit<libbpf_rs::OpenObject>, prefix: &str, bits: usize, hosts: u32) -> Loaded<'a> {
    let (first, last) = (host(0), host(hosts - 1));
    let behind = range(behind(prefix, bits, first).into(), behind(prefix, bits, last).into(), bits);
    let own = range(first.into(), last.into(), bits);
    let once = r#"{"rate":1000000.0,"frames":1000,"reading_order":"once"}"#;
    let more = [
        ("/initiator/destination_addresses", behind.as_str()),
        ("/responder/addresses", own.as_str()),
        ("/phase2/responder", once),
    ];
    Loaded::new(place, request(&[NAT64, &more].concat()))
}

fn destination(frame: &[u8]) -> Ipv6Addr {
    <[u8; 16]>::try_from(&frame[38..54]).unwrap().into()
}

#[test]
fn a_host_is_written_as_in_rfc_6052_section_2_4() {
    for (prefix, bits, written) in TABLE {
        let mut place = MaybeUninit::uninit();
        let sent = nat64(&mut place, prefix, bits, 1).generate(&[flow(PHASE1, 1)]).remove(0);
        assert_eq!(IpAddr::V6(destination(&sent)), v6(written), "{bits} bits");
    }
}

#[test]
fn all_hosts_of_a_range_are_written_and_no_other_address() {
    for (prefix, bits, _) in TABLE {
        let mut place = MaybeUninit::uninit();
        let sent = nat64(&mut place, prefix, bits, HOSTS).generate(&[flow(PHASE1, 1000)]);
        let written: HashSet<_> = sent.iter().map(|frame| destination(frame)).collect();
        let right: HashSet<_> = (0..HOSTS).map(|number| behind(prefix, bits, host(number))).collect();
        assert!(written.is_subset(&right) && written.len() > 200, "{bits} bits: {}", written.len());
    }
}

#[test]
fn an_answer_from_another_embedded_address_is_mistranslated() {
    for (prefix, bits, _) in TABLE {
        let mut place = MaybeUninit::uninit();
        let loaded = nat64(&mut place, prefix, bits, HOSTS);
        let opened = loaded.generate(&[flow(PHASE1, 1000)]);
        let two = |frame: &[u8], at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        for (connection, sent) in opened.iter().enumerate() {
            let of = (0..HOSTS).map(host).find(|&host| behind(prefix, bits, host) == destination(sent)).unwrap();
            let udp = Udp {
                to: RESPONDER_MACS.0,
                from: RESPONDER_MACS.1,
                source: v4("198.19.0.1"),
                destination: of.into(),
                ports: (10_000 + connection as u16, two(sent, 56)),
                mark: frame::unsealed_mark(&sent[62..]),
                connection: connection as u32,
                sequence: connection as u32,
                stream: PHASE1,
                sender: 0,
                sent_ns: 0,
                ttl: 9,
                octets: 60,
            };
            loaded.receive(RESPONDER, &udp.build());
        }
        let first = loaded.programs.received();
        assert_eq!((first.tally[PHASE1].received, first.stored), (1000, 1000), "{bits} bits");
        let mut before = first;
        for back in loaded.generate(&[flow(PHASE2_RESPONDER, 1000)]).iter().take(20) {
            let connection = u32::from_le_bytes(back[46..50].try_into().unwrap());
            let sent = &opened[connection as usize];
            let from = Ipv4Addr::from(<[u8; 4]>::try_from(&back[26..30]).unwrap());
            let right = Udp {
                to: INITIATOR_MACS.0,
                from: INITIATOR_MACS.1,
                source: behind(prefix, bits, from).into(),
                destination: v6("2001:2::2"),
                ports: (two(sent, 56), two(sent, 54)),
                mark: frame::unsealed_mark(&back[42..]),
                connection,
                sequence: u32::from_le_bytes(back[50..54].try_into().unwrap()),
                stream: PHASE2_RESPONDER,
                sender: 0,
                sent_ns: 0,
                ttl: 9,
                octets: 80,
            };
            let neighbour = host((from.to_bits() - FIRST.to_bits() + 1) % HOSTS);
            let mut octets = behind(prefix, bits, from).octets();
            octets[8] ^= 1;
            for wrong in [behind(prefix, bits, neighbour), octets.into()] {
                let (_, _, after) = loaded.receive(INITIATOR, &Udp { source: wrong.into(), ..right.clone() }.build());
                assert_eq!(risen(&before, &after), ["mistranslated"], "{bits} bits: {wrong} in place of {from}");
                before = after;
            }
            let (_, _, after) = loaded.receive(INITIATOR, &right.build());
            assert_eq!(risen(&before, &after)[..1], ["received"], "{bits} bits: {from}");
            before = after;
        }
    }
}

/// The Responder has embedded addresses behind a CLAT, and its router asks for them.
#[test]
fn only_own_embedded_addresses_have_a_neighbour() {
    for (prefix, bits, _) in TABLE {
        let mut place = MaybeUninit::uninit();
        let (first, last) = (behind(prefix, bits, host(0)), behind(prefix, bits, host(HOSTS - 1)));
        let changes = [
            ("/initiator/destination_addresses", range(host(0).into(), host(HOSTS - 1).into(), bits)),
            ("/responder/family", r#""ipv6""#.into()),
            ("/responder/gateway", r#"{"mac":"02:00:00:00:01:02"}"#.into()),
            ("/responder/addresses", range(first.into(), last.into(), bits)),
            ("/translation", r#"{"source":"translated"}"#.into()),
        ];
        let changes: Vec<_> = changes.iter().map(|(pointer, value)| (*pointer, value.as_str())).collect();
        let loaded = Loaded::new(&mut place, request(&changes));
        let mut octets = first.octets();
        octets[8] ^= 1;
        let cases = [(first, 1), (last, 1), (behind(prefix, bits, host(HOSTS)), 0), (octets.into(), 0)];
        for (asked, answers) in cases {
            let asker = "fe80::1".parse::<Ipv6Addr>().unwrap().octets();
            let icmp = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &asked.octets(), &[1, 1, 2, 0, 0, 0, 1, 2]].concat();
            let mut frame =
                [&[0x33, 0x33, 0xff, 0, 0, 2][..], &[2, 0, 0, 0, 1, 2], &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
            frame.extend([0, icmp.len() as u8, 58, 255]);
            frame.extend([&asker[..], &asked.octets(), &icmp].concat());
            let before = loaded.programs.received().neighbour_replies[RESPONDER];
            let (verdict, _, after) = loaded.receive(RESPONDER, &frame);
            let replied = after.neighbour_replies[RESPONDER] - before;
            assert_eq!((replied, verdict == REDIRECT), (answers, answers == 1), "{bits} bits: {asked}");
        }
    }
}
