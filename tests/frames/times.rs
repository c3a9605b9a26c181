// SPDX-License-Identifier: Apache-2.0
//! When frames came and which did not: differences of delays, samples, silences, losses; and trials without a state
//! table.

use std::mem::MaybeUninit;
use std::thread::sleep;
use std::time::Duration;

use natgauge_engine::host::now_ns;
use natgauge_engine::shared::{
    INITIATOR, LOST_WORDS, NEGATIVE, NOT_NEGATIVE, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER, WINDOW_WORDS,
    WORD_FRAMES,
};
use natgauge_engine::tester::types::tally;

use crate::frame::{v4, Udp};
use crate::harness::{flow, request, Loaded, NAT64};
use crate::receiver::outside_frame;

const SECOND: i64 = 1_000_000_000;
/// Between reading the clock here and there lie microseconds, on a bad day a tenth of a second.
const SLACK: i64 = SECOND / 2;

/// Hand the Responder frames of phase 2 by sequence and delay in seconds.
fn receive(loaded: &Loaded, frames: &[(u32, i64)]) -> tally {
    let (mut frame, _) = outside_frame(loaded, 20);
    frame.stream = PHASE2_INITIATOR;
    for &(sequence, delay) in frames {
        frame.sequence = sequence;
        frame.sent_ns = (now_ns() as i64 - delay * SECOND) as u64;
        loaded.receive(RESPONDER, &frame.build());
    }
    loaded.programs.received().tally[PHASE2_INITIATOR]
}

fn close(found: i64, seconds: i64) -> bool {
    (found - seconds * SECOND).abs() < SLACK
}

#[test]
fn differences_are_of_neighbours_in_the_order_of_sending_whichever_came_first() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[("/record_delays", "true"), ("/record_variation", "true")]));
    let tally = receive(&loaded, &[(1, 10), (2, 15), (3, 7), (5, 20)]);
    assert_eq!(tally.variations.count, 2, "frame 5 has no neighbour");
    assert!(close(tally.variations.minimum, -8) && close(tally.variations.maximum, 5), "{tally:?}");
    let tally = receive(&loaded, &[(4, 9)]);
    assert_eq!((tally.variations.count, tally.reordered), (4, 1), "3 to 4 and 4 to 5");
    assert!(close(tally.variations.maximum, 11), "{tally:?}");
    let tally = receive(&loaded, &[(4, 9), (3, 1)]);
    assert_eq!((tally.variations.count, tally.duplicates), (4, 2), "a frame that came twice makes no pair twice");
    let pairs = |side: usize, sign| -> u64 { loaded.programs.variations(side, sign).iter().sum() };
    let both = |side| [pairs(side, NOT_NEGATIVE), pairs(side, NEGATIVE)];
    assert_eq!([both(INITIATOR), both(RESPONDER)], [[3, 1], [0, 0]]);
}

#[test]
fn each_period_counts_its_own_frames_which_are_numbered_from_zero_again() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[]));
    let counts = |tally: tally| (tally.received, tally.duplicates, tally.reordered);
    assert_eq!(counts(receive(&loaded, &[(0, 0), (1, 0), (3, 0), (2, 0)])), (4, 0, 1));
    let before = loaded.programs.received();
    loaded.programs.clear_windows(1).unwrap();
    receive(&loaded, &[(0, 0), (1, 0), (1, 0)]);
    let period = loaded.programs.received().since(&before);
    assert_eq!(counts(period.tally[PHASE2_INITIATOR]), (2, 1, 0));
    let lost = loaded.programs.window(0, PHASE2_INITIATOR).and_then(|window| window.lost(4));
    assert_eq!(
        lost.map(|mut frames| {
            frames.sort_unstable();
            frames
        }),
        Some(vec![2, 3])
    );
}

#[test]
fn only_the_samples_asked_for_are_timed() {
    let mut place = MaybeUninit::uninit();
    let stream = r#"{"rate":1000.0,"frames":1000}"#;
    let samples = r#"{"from_ms":500,"frames":7}"#;
    let changes = [("/record_delays", "true"), ("/phase2/initiator", stream), ("/delay_samples", samples)];
    let loaded = Loaded::new(&mut place, request(&changes));
    let before: Vec<_> = (0..500).map(|sequence| (sequence, 1)).collect();
    assert_eq!(receive(&loaded, &before).delays.count, 0);
    let after: Vec<_> = (500..1000).map(|sequence| (sequence, 1)).collect();
    let tally = receive(&loaded, &after);
    assert_eq!((tally.delays.count, tally.received), (7, 1000));
}

#[test]
fn the_longest_silence_and_the_last_lost_frame_are_known() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[("/record_loss_times", "true")]));
    assert_eq!(loaded.programs.silence(PHASE2_INITIATOR), None);
    receive(&loaded, &[(0, 0), (1, 0)]);
    let last_lost = |made| loaded.programs.window(0, PHASE2_INITIATOR).unwrap().last_lost(made);
    let begin = now_ns();
    receive(&loaded, &[(3, 0)]);
    sleep(Duration::from_millis(300));
    let middle = now_ns();
    receive(&loaded, &[(4, 0)]);
    let end = now_ns();
    let (from, to) = loaded.programs.silence(PHASE2_INITIATOR).unwrap();
    assert!((begin..middle).contains(&from) && (middle..end).contains(&to), "{begin} {from} {middle} {to} {end}");
    assert_eq!(last_lost(5), Some(2));
    receive(&loaded, &[(2, 0)]);
    assert_eq!(last_lost(5), None);
    assert_eq!(last_lost(7), Some(6), "what was sent last and never came");
    // A window later the first word's frames leave it; 5 and all after it never came.
    receive(&loaded, &[((WINDOW_WORDS * WORD_FRAMES) as u32, 0)]);
    assert_eq!(last_lost(0), Some(WORD_FRAMES - 1), "remembered although it has left the window");
}

/// All lost frames of so many made, in order.
fn lost(loaded: &Loaded, made: u64) -> Vec<u64> {
    let mut found = loaded.programs.window(0, PHASE2_INITIATOR).unwrap().lost(made).unwrap();
    found.sort_unstable();
    found
}

#[test]
fn every_lost_frame_is_known_also_when_it_has_left_the_window() {
    const WINDOW: u32 = (WINDOW_WORDS * WORD_FRAMES) as u32;
    const WORD: u32 = WORD_FRAMES as u32;
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[]));
    assert_eq!(lost(&loaded, 3), [0, 1, 2], "nothing came at all");
    let all_but = |missing: &[u32], frames: std::ops::Range<u32>| {
        let came: Vec<_> = frames.filter(|at| !missing.contains(at)).map(|at| (at, 0)).collect();
        receive(&loaded, &came);
    };
    all_but(&[5, 31, 40], 0..64);
    assert_eq!(lost(&loaded, 66), [5, 31, 40, 64, 65]);
    // The first word leaves the window, the second stays behind a word of which nothing comes.
    all_but(&[WINDOW + 1], WINDOW..WINDOW + WORD);
    let told = lost(&loaded, u64::from(WINDOW) + 64);
    let skipped: Vec<u64> = told.iter().copied().filter(|&at| at < 64 || at >= u64::from(WINDOW)).collect();
    let behind: Vec<u64> = std::iter::once(1).chain(32..64).map(|at| u64::from(WINDOW) + at).collect();
    assert_eq!(skipped, [vec![5, 31, 40], behind.clone()].concat());
    assert_eq!(told.len() as u64, 3 + u64::from(WINDOW) - 64 + 33, "all between, and these");
    // A window later still, the second word leaves together with the one that never came.
    all_but(&[], 2 * WINDOW + WORD..2 * WINDOW + 2 * WORD);
    let told = lost(&loaded, u64::from(2 * WINDOW) + 64);
    assert_eq!(told.iter().filter(|&&at| at < 64).count(), 3);
    assert_eq!(told.iter().filter(|at| behind.contains(at)).count(), 33);
    let distinct: std::collections::HashSet<&u64> = told.iter().collect();
    assert_eq!(distinct.len(), told.len(), "none twice");
    assert_eq!(told.len() as u64, u64::from(2 * WINDOW) + 64 - (64 - 3) - (32 - 1) - 32);
}

#[test]
fn a_frame_that_came_too_late_is_lost_at_its_own_time() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[("/frame_timeout_ms", "2000")]));
    let tally = receive(&loaded, &[(0, 0), (1, 9), (2, 0)]);
    assert_eq!((tally.received, tally.late.count), (2, 1));
    assert_eq!(lost(&loaded, 4), [1, 3]);
    let window = loaded.programs.window(0, PHASE2_INITIATOR).unwrap();
    assert_eq!(window.lost_lately(4, true), Some((0, vec![1, 3])), "few are known, late ones too");
}

#[test]
fn more_lost_frames_than_are_remembered_are_no_list() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[("/frame_timeout_ms", "1")]));
    let late: Vec<_> = (0..=LOST_WORDS as u32).map(|at| (at, 9)).collect();
    receive(&loaded, &late);
    let window = loaded.programs.window(0, PHASE2_INITIATOR).unwrap();
    assert!(window.lost(LOST_WORDS + 1).is_none());
    assert!(window.lost_lately(LOST_WORDS + 1, true).is_none(), "late frames are in no window");
}

#[test]
fn the_last_lost_frames_are_known_however_many_were_lost_before() {
    const WINDOW: u64 = WINDOW_WORDS * WORD_FRAMES;
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[]));
    // One frame of each word comes, in two windows and a half.
    let words = 2 * WINDOW_WORDS + WINDOW_WORDS / 2;
    receive(&loaded, &(0..words).map(|word| ((word * WORD_FRAMES) as u32, 0)).collect::<Vec<_>>());
    let made = words * WORD_FRAMES;
    let window = loaded.programs.window(0, PHASE2_INITIATOR).unwrap();
    assert!(window.lost(made).is_none());
    let (first, lost) = window.lost_lately(made, false).unwrap();
    assert_eq!((first, lost.len() as u64), (made - WINDOW, WINDOW - WINDOW_WORDS));
    assert!(lost.iter().all(|frame| frame % WORD_FRAMES > 0) && lost.is_sorted());
}

#[test]
fn a_senders_stalls_are_known_by_their_times() {
    let mut place = MaybeUninit::uninit();
    let loaded = Loaded::new(&mut place, request(&[]));
    loaded.generate(&[flow(PHASE1, 1)]);
    assert_eq!(loaded.programs.senders()[0].stalls, 1);
    let [stall] = loaded.programs.stalls(0, 1)[..] else { panic!("one stall") };
    // The harness begins its schedules a second ago.
    assert!(stall.from_ns == 0 && close(stall.to_ns as i64, 1), "{} {}", stall.from_ns, stall.to_ns);
}

#[test]
fn without_a_state_table_both_sides_make_their_own_four_tuples() {
    let mut place = MaybeUninit::uninit();
    let hosts = r#"{"first":"192.0.2.2","last":"192.0.2.2"}"#;
    let mut changes = NAT64.to_vec();
    changes.extend([("/stateless", "true"), ("/phase1", "null"), ("/responder/destination_addresses", hosts)]);
    changes.push(("/translation", r#"{"source":"unchanged"}"#));
    let loaded = Loaded::new(&mut place, request(&changes));
    let sent = loaded.generate(&[flow(PHASE2_RESPONDER, 200)]);
    let mut ports = std::collections::HashSet::new();
    for frame in &sent {
        assert_eq!(frame[26..34], [198, 19, 0, 2, 192, 0, 2, 2]);
        ports.insert([frame[34], frame[35], frame[36], frame[37]]);
    }
    assert!(ports.len() > 100, "{} of 200 port pairs differ", ports.len());
    let (outside, inside_port) = outside_frame(&loaded, 40);
    let right =
        Udp { source: v4("192.0.2.2"), ports: (inside_port, outside.ports.1), stream: PHASE2_INITIATOR, ..outside };
    let wrong = Udp { source: v4("192.0.2.3"), sequence: 9, ..right.clone() };
    loaded.receive(RESPONDER, &right.build());
    let (_, _, after) = loaded.receive(RESPONDER, &wrong.build());
    assert_eq!(
        (after.tally[PHASE2_INITIATOR].received, after.tally[PHASE2_INITIATOR].mistranslated, after.stored),
        (1, 1, 0)
    );
}

/// The verifier gives up beyond 1,000,000 instructions; a plan close to it would fail on another kernel.
#[test]
fn every_kind_of_plan_is_verified_with_room_to_spare() {
    let recording: &[&[(&str, &str)]] = &[
        &[],
        &[("/record_delays", "true"), ("/record_variation", "true"), ("/record_loss_times", "true")],
        &[("/record_delays", "true"), ("/delay_samples", r#"{"from_ms":0,"frames":2}"#)],
        &[("/phase2/step", r#"{"share":0.5,"seconds":1.0}"#), ("/frame_timeout_ms", "10")],
    ];
    let orders = ["permutation", "increasing", "decreasing", "with-replacement"];
    let ranges: &[&[(&str, &str)]] = &[
        &[],
        NAT64,
        &[
            ("/initiator/source_addresses", r#"{"first":"10.0.0.2","last":"10.0.0.4"}"#),
            ("/initiator/destination_addresses", r#"{"first":"198.19.0.2","last":"198.19.0.5"}"#),
            ("/responder/addresses", r#"{"first":"198.19.0.2","last":"198.19.0.5"}"#),
            ("/initiator/destination_ports", r#"{"first":1,"last":5}"#),
            ("/initiator/source_ports", r#"{"first":1024,"last":1033}"#),
            ("/connections", "500"),
        ],
    ];
    for order in orders.map(|order| format!("{order:?}")) {
        for range in ranges {
            for record in recording {
                let changes = [range, *record, &[("/order", order.as_str())][..]].concat();
                let mut place = MaybeUninit::uninit();
                let loaded = Loaded::new(&mut place, request(&changes));
                let verified = loaded.programs.verified_instructions();
                assert!(verified.iter().all(|&followed| followed < 200_000), "{verified:?} {changes:?}");
            }
        }
    }
}
