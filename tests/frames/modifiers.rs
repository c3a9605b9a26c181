// SPDX-License-Identifier: Apache-2.0
//! Broadcasts in place of test frames, answers to management queries, and groups of connections that begin in turn.

use std::collections::HashSet;
use std::mem::MaybeUninit;

use natgauge_engine::modifiers::is_aside;
use natgauge_engine::plan;
use natgauge_engine::shared::{INITIATOR, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER};

use crate::background::BACKGROUND;
use crate::frame::ones_complement;
use crate::harness::{flow, request, Loaded, DROP, INITIATOR_MACS, NAT64, RESPONDER_MACS};

const STATELESS: &[(&str, &str)] =
    &[("/stateless", "true"), ("/phase1", "null"), ("/translation", r#"{"source":"unchanged"}"#)];

#[test]
fn every_hundredth_frame_of_phase_2_is_a_broadcast_that_nobody_forwards() {
    for (family, header, destination) in [
        (&[][..], 20, &[255, 255, 255, 255][..]),
        (NAT64, 40, &[0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1][..]),
    ] {
        let mut place = MaybeUninit::uninit();
        let asked = [("/phase2/modifiers", r#"{"broadcast_every":100}"#)];
        let loaded = Loaded::new(&mut place, request(&[family, &asked].concat()));
        let sent = loaded.generate(&[flow(PHASE2_INITIATOR, 300)]);
        let to = |frame: &[u8]| frame[14 + header - destination.len()..14 + header] == *destination;
        let found: Vec<_> = (0..300).filter(|&at| to(&sent[at])).collect();
        assert_eq!(found, [99, 199, 299]);
        let one = &sent[99];
        assert_eq!(one[..6], if header == 20 { [255; 6] } else { [0x33, 0x33, 0, 0, 0, 1] });
        assert_eq!(one[14 + header..14 + header + 4], [0, 9, 0, 9], "discard, RFC 863");
        assert_eq!(one.len(), sent[98].len());
        if header == 20 {
            assert_eq!(ones_complement(&one[14..34]), 0xffff);
        }
        let udp = &one[14 + header..];
        let length = udp.len() as u32;
        let addresses = if header == 20 { &one[26..34] } else { &one[22..54] };
        let pseudo = [addresses, &length.to_be_bytes(), &[0, 0, 0, 17], udp].concat();
        assert_eq!(ones_complement(&pseudo), 0xffff);
        let phase1 = loaded.generate(&[flow(PHASE1, 300)]);
        assert!(!phase1.iter().any(|frame| to(frame)), "phase 1 opens connections, nothing else");
        let (_, _, after) = loaded.receive(RESPONDER, one);
        assert_eq!(after.tally[PHASE2_INITIATOR].received, 0);
    }
}

#[test]
fn the_devices_answers_to_queries_are_counted_and_no_others() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[("/phase2/modifiers", r#"{"query_ms":1000}"#)]));
    let mark = loaded.request.mark as u16;
    let reply = |kind: u8, identifier: u16| {
        let mut frame =
            [&[2, 0, 0, 0, 0, 1][..], &[2, 0, 0, 0, 1, 1], &[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 1, 0, 0]].concat();
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2, kind, 0, 0, 0]);
        frame.extend(identifier.to_be_bytes());
        frame.extend([0; 20]);
        frame
    };
    let answers = |frame: &[u8]| {
        let before = loaded.programs.received().signs[INITIATOR].answers;
        let (verdict, _, after) = loaded.receive(INITIATOR, frame);
        assert_eq!(verdict, DROP);
        after.signs[INITIATOR].answers - before
    };
    assert_eq!([reply(0, mark), reply(8, mark), reply(0, mark ^ 1)].map(|frame| answers(&frame)), [1, 0, 0]);
}

/// Of 4 groups, at 1000 frames/s and with 0.1 s between their beginnings, 100 frames are between two beginnings.
#[test]
fn frames_of_group_k_begin_k_times_later_and_are_of_its_connections() {
    let groups = r#"{"groups":{"number":4,"seconds":0.1}}"#;
    let stream = r#"{"rate":1000.0,"frames":1000}"#;
    let changes =
        [STATELESS, &[("/phase2/modifiers", groups), ("/phase2/initiator", stream), ("/phase2/responder", stream)]];
    let mut place = MaybeUninit::uninit();
    let asked = request(&changes.concat());
    let rule = plan::build(&asked, [INITIATOR_MACS, RESPONDER_MACS]).modifiers;
    let loaded = Loaded::new(&mut place, asked);
    for (stream, side) in [(PHASE2_INITIATOR, INITIATOR), (PHASE2_RESPONDER, RESPONDER)] {
        loaded.begin(0, 1, &[flow(stream, 1000)]);
        let sent: Vec<Option<Vec<u8>>> = (0..1000).map(|_| loaded.next()).collect();
        let group = |frame: &Vec<u8>| u32::from_le_bytes(frame[46..50].try_into().unwrap()) % 4;
        for (number, frame) in sent.iter().enumerate() {
            let (of, begun) = (number % 4, number >= number % 4 * 100);
            assert_eq!(frame.as_ref().map(group), begun.then_some(of as u32), "frame {number}");
            assert_eq!(is_aside(&rule, number as u64, side), !begun, "frame {number}");
        }
        let connections: HashSet<_> = sent.iter().flatten().map(|frame| frame[46..50].to_vec()).collect();
        assert!(connections.len() > 400, "{}", connections.len());
    }
}

/// What is sent in the turns of a group.
#[derive(Default)]
struct Kinds {
    connections: HashSet<u32>,
    broadcasts: usize,
    background: usize,
}

/// In each row some connections got no frames, or there was no background, when a frame's number alone decided its kind.
#[test]
fn every_connection_of_every_group_gets_frames_beside_broadcasts_and_background() {
    for (connections, groups, every, mix, frames) in [
        (250, 100, Some(100), None, 10_000),
        (100, 2, None, Some((2, 1)), 4000),
        (199, 100, None, None, 10_000),
        (103, 20, Some(100), Some((10, 9)), 20_000),
        (60, 4, Some(4), Some((2, 1)), 4000),
        (100, 1, Some(100), Some((100, 99)), 10_000),
    ] {
        let every_text = every.map(|every: usize| format!(r#""broadcast_every":{every}"#));
        let groups_text = (groups > 1).then(|| format!(r#""groups":{{"number":{groups},"seconds":1e-6}}"#));
        let modifiers = [every_text, groups_text].into_iter().flatten().collect::<Vec<_>>().join(",");
        let modifiers = format!("{{{modifiers}}}");
        let (connections_text, stream) = (connections.to_string(), format!(r#"{{"rate":1000.0,"frames":{frames}}}"#));
        let mut changes = STATELESS.to_vec();
        changes.extend([("/connections", &*connections_text), ("/phase2/modifiers", &*modifiers)]);
        changes.extend([("/phase2/initiator", &*stream), ("/phase2/responder", &*stream)]);
        let (n, m) =
            mix.map_or((String::new(), String::new()), |(n, m): (usize, usize)| (n.to_string(), m.to_string()));
        if mix.is_some() {
            changes.extend([("/background", BACKGROUND), ("/background/n", &*n), ("/background/m", &*m)]);
        }
        let request = request(&changes);
        let rule = plan::build(&request, [INITIATOR_MACS, RESPONDER_MACS]).modifiers;
        let mut place = MaybeUninit::uninit();
        let loaded = Loaded::new(&mut place, request);
        for (stream, side) in [(PHASE2_INITIATOR, INITIATOR), (PHASE2_RESPONDER, RESPONDER)] {
            let mut found: Vec<Kinds> = (0..groups).map(|_| Kinds::default()).collect();
            let mut last = false;
            for (number, frame) in loaded.generate(&[flow(stream, frames)]).into_iter().enumerate() {
                let kinds = &mut found[number % groups];
                let broadcast = frame[30..34] == [255; 4];
                assert_eq!(broadcast, is_aside(&rule, number as u64, side), "frame {number}");
                assert!(!(broadcast && last), "frame {number}: they are evenly spread");
                last = broadcast;
                if broadcast {
                    kinds.broadcasts += 1;
                } else if frame[12..14] == [0x86, 0xdd] {
                    kinds.background += 1;
                } else {
                    kinds.connections.insert(u32::from_le_bytes(frame[46..50].try_into().unwrap()));
                }
            }
            let of_each = frames as usize / groups;
            let broadcasts = every.map_or(0, |every| of_each / every);
            let background = mix.map_or(0, |(n, m)| (of_each - broadcasts) * (n - m) / n);
            for (group, kinds) in found.iter().enumerate() {
                let own: HashSet<u32> = (group as u32..connections).step_by(groups).collect();
                assert_eq!(kinds.connections, own, "group {group} of {groups}");
                assert_eq!((kinds.broadcasts, kinds.background), (broadcasts, background), "group {group} of {groups}");
            }
        }
    }
}
