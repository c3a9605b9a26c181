// SPDX-License-Identifier: Apache-2.0
//! VLAN tags of IEEE 802.1Q: behind the MAC addresses a frame is the same with and without them.

use std::mem::MaybeUninit;

use natgauge_engine::shared::{INITIATOR, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER};

use crate::harness::{flow, request, Loaded, DROP, IPV6, REDIRECT};
use crate::receiver::{arp_request, outside_frame, risen};

type Changes = &'static [(&'static str, &'static str)];

const ROUTED: Changes = &[("/stateless", "true"), ("/phase1", "null"), ("/translation", r#"{"source":"unchanged"}"#)];
const VLAN: [u8; 4] = [0x81, 0, 0, 7];
const SERVICE: [u8; 4] = [0x88, 0xa8, 0, 9];
const MACS: usize = 12;

fn in_vlan(frame: &[u8], tags: &[u8]) -> Vec<u8> {
    let mut tagged = frame.to_vec();
    tagged.splice(MACS..MACS, tags.iter().copied());
    tagged
}

fn without(frame: &[u8], octets: usize) -> Vec<u8> {
    let mut cut = frame.to_vec();
    cut.drain(MACS..MACS + octets);
    cut
}

#[test]
fn a_tagged_frame_is_an_untagged_one_with_the_tags_of_its_side() {
    let both: Changes = &[("/frame/initiator_vlan", r#""9.7""#), ("/frame/responder_vlan", r#""7""#)];
    for (family, sizes) in [(&[][..], ["80", "72"]), (IPV6, ["100", "92"])] {
        let [tagged_size, plain_size] = sizes.map(|size| format!(r#"{{"size":{size},"side":"initiator"}}"#));
        let (mut first, mut second) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let tagged = Loaded::new(&mut first, request(&[family, ROUTED, &[("/frame", &*tagged_size)], both].concat()));
        let plain = Loaded::new(&mut second, request(&[family, ROUTED, &[("/frame", &*plain_size)]].concat()));
        let (inside, outside) = ([SERVICE, VLAN].concat(), VLAN.to_vec());
        for (stream, from, to, side) in
            [(PHASE2_INITIATOR, &inside, &outside, RESPONDER), (PHASE2_RESPONDER, &outside, &inside, INITIATOR)]
        {
            for (number, sent) in tagged.generate(&[flow(stream, 50)]).into_iter().enumerate() {
                assert_eq!(sent[MACS..MACS + from.len()], from[..]);
                let cut = without(&sent, from.len());
                let (_, _, of_plain) = plain.receive(side, &cut);
                let (_, _, of_tagged) = tagged.receive(side, &in_vlan(&cut, to));
                let received = [of_plain, of_tagged].map(|counts| counts.tally[stream].received);
                assert_eq!(received, [number as u64 + 1; 2]);
            }
        }
    }
}

#[test]
fn a_frame_in_another_vlan_is_not_received_and_counted_as_what_it_is() {
    let twice = [VLAN, VLAN].concat();
    let (both, swapped) = ([SERVICE, VLAN].concat(), [VLAN, SERVICE].concat());
    let priority = [0x81, 0, 0xe0, 7];
    for (vlan, rows) in [
        (
            r#""7""#,
            &[
                ("its VLAN", &VLAN[..], &["received", "stored"][..]),
                ("its VLAN with a priority", &priority, &["received"]),
                ("no VLAN", &[], &["untagged"]),
                ("another VLAN", &[0x81, 0, 0, 8], &["tagged"]),
                ("the tag of a service", &[0x88, 0xa8, 0, 7], &["tagged"]),
                ("a tag too many", &twice, &["tagged"]),
            ][..],
        ),
        (
            r#""9.7""#,
            &[
                ("both tags", &both, &["received", "stored"]),
                ("the inner tag alone", &VLAN, &["untagged"]),
                ("the outer tag alone", &SERVICE, &["untagged"]),
                ("no tag", &[], &["untagged"]),
                ("the tags in the other order", &swapped, &["tagged"]),
            ],
        ),
    ] {
        let mut place = MaybeUninit::uninit();
        let loaded = Loaded::new(&mut place, request(&[("/frame/responder_vlan", vlan)]));
        let (mut frame, _) = outside_frame(&loaded, 20);
        for (sentence, tags, expected) in rows {
            frame.sequence += 1;
            let before = loaded.programs.received();
            let (verdict, _, after) = loaded.receive(RESPONDER, &in_vlan(&frame.build(), tags));
            assert_eq!((verdict, &risen(&before, &after)[..]), (DROP, *expected), "{sentence}");
        }
    }
}

#[test]
fn neighbours_are_answered_in_their_vlan_and_in_no_other() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[("/frame/responder_vlan", r#""7""#)]));
    let (verdict, reply, _) = loaded.receive(RESPONDER, &in_vlan(&arp_request([198, 19, 0, 2]), &VLAN));
    let mut expected = [&[2, 0, 0, 0, 1, 2, 2, 0, 0, 0, 0, 2][..], &VLAN, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2]].concat();
    expected.extend([2, 0, 0, 0, 0, 2, 198, 19, 0, 2, 2, 0, 0, 0, 1, 2, 198, 19, 0, 1]);
    expected.resize(64, 0);
    assert_eq!((verdict, reply), (REDIRECT, expected));
    for (target, tags, foreign) in [(2, &[][..], 0), (2, &[0x81, 0, 0, 8], 0), (3, &VLAN, 1)] {
        let (verdict, _, after) = loaded.receive(RESPONDER, &in_vlan(&arp_request([198, 19, 0, target]), tags));
        assert_eq!((verdict, after.foreign[RESPONDER]), (DROP, foreign));
    }
}

#[test]
fn solicitations_are_answered_in_their_vlan() {
    let mut place = MaybeUninit::uninit();
    let frame = ("/frame", r#"{"size":96,"side":"initiator","initiator_vlan":"7"}"#);
    let loaded = Loaded::new(&mut place, request(&[IPV6, ROUTED, &[frame]].concat()));
    let octets = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap().octets();
    let (target, asker) = (octets("2001:2::2"), octets("fe80::1"));
    let icmp = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &target].concat();
    let mut asked = [&[0x33, 0x33, 0xff, 0, 0, 2][..], &[2, 0, 0, 0, 1, 1], &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
    asked.extend([0, icmp.len() as u8, 58, 255]);
    asked.extend([&asker[..], &target, &icmp].concat());
    let (verdict, reply, _) = loaded.receive(INITIATOR, &in_vlan(&asked, &VLAN));
    assert_eq!((verdict, reply.len()), (REDIRECT, 90));
    assert_eq!(reply[..18], [&[2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1][..], &VLAN, &[0x86, 0xdd]].concat());
    assert_eq!((reply[58], &reply[66..82], &reply[84..90]), (136, &target[..], &[2, 0, 0, 0, 0, 1][..]));
}

#[test]
fn each_source_address_sends_and_receives_in_a_vlan_of_its_own() {
    let own: Changes = &[
        ("/initiator/source_addresses", r#"{"first":"10.0.0.2","last":"10.0.0.5"}"#),
        ("/frame", r#"{"size":68,"side":"initiator","initiator_vlan":"100+"}"#),
    ];
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[ROUTED, own].concat()));
    let sent = loaded.generate(&[flow(PHASE2_INITIATOR, 200)]);
    let vlans: Vec<u8> = sent.iter().map(|frame| frame[15]).collect();
    assert!(sent.iter().all(|frame| frame[12..15] == [0x81, 0, 0] && frame[15] == 98 + frame[33]));
    assert!((100..104).all(|vlan| vlans.contains(&vlan)));
    for frame in loaded.generate(&[flow(PHASE2_RESPONDER, 50)]) {
        let host = frame[33];
        for (vlan, expected) in
            [(98 + host, "received"), (98 + host % 4 + 2, "tagged"), (99, "tagged"), (104, "tagged")]
        {
            let before = loaded.programs.received();
            let (_, _, after) = loaded.receive(INITIATOR, &in_vlan(&frame, &[0x81, 0, 0, vlan]));
            assert_eq!(risen(&before, &after), [expected], "host {host} in VLAN {vlan}");
        }
    }
}

#[test]
fn a_segment_is_answered_in_its_vlan() {
    let routed = ("/translation", r#"{"source":"unchanged"}"#);
    let frame = ("/frame", r#"{"size":128,"side":"initiator","transport":"tcp","responder_vlan":"9.7"}"#);
    for family in [&[][..], IPV6] {
        let mut place = MaybeUninit::uninit();
        let loaded = Loaded::new(&mut place, request(&[family, &[routed, frame]].concat()));
        let tags = [SERVICE, VLAN].concat();
        for syn in loaded.generate(&[flow(PHASE1, 20)]) {
            let (verdict, answer, _) = loaded.receive(RESPONDER, &in_vlan(&syn, &tags));
            assert_eq!((verdict, &answer[MACS..MACS + 8]), (REDIRECT, &tags[..]));
            let (verdict, third, _) = loaded.receive(INITIATOR, &without(&answer, 8));
            assert_eq!(verdict, REDIRECT);
            let before = loaded.programs.received();
            let (_, _, after) = loaded.receive(RESPONDER, &in_vlan(&third, &tags));
            assert_eq!(risen(&before, &after), ["received", "stored"]);
        }
    }
}
