// SPDX-License-Identifier: Apache-2.0
//! Each kind of request loads the programs that it runs, and no other.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;

use natgauge_engine::plan;
use natgauge_engine::programs::{info, Programs};
use natgauge_engine::request::Request;
use natgauge_engine::table::Table;

use crate::harness::{request, INITIATOR_MACS, NAT64, RESPONDER_MACS};

type Changes<'a> = &'a [(&'a str, &'a str)];

const OF_ALL: [&str; 3] = ["count_offered", "count_redirect_errors", "redirect_only"];
const OF_UDP: [&str; 3] = ["generate_udp", "receive_udp_initiator", "receive_udp_responder"];
const OF_ICMP: [&str; 3] = ["generate_icmp", "receive_icmp_initiator", "receive_icmp_responder"];
const OF_TCP: [&str; 3] = ["generate_tcp", "receive_tcp_initiator", "receive_tcp_responder"];
const TCP: (&str, &str) = ("/frame", r#"{"size":88,"side":"initiator","transport":"tcp"}"#);
const ICMP: Changes = &[
    ("/frame", r#"{"size":64,"side":"initiator","transport":"icmp"}"#),
    ("/initiator/destination_ports", r#"{"first":1,"last":1}"#),
];

fn with<T>(request: &Request, floor: bool, check: impl FnOnce(&Programs) -> T) -> T {
    let mut place = MaybeUninit::uninit();
    let plan = plan::build(request, [INITIATOR_MACS, RESPONDER_MACS]);
    let programs = Programs::load(&mut place, &plan, request, floor, Table::make(request).unwrap()).unwrap();
    check(&programs)
}

/// The first 15 octets of a program's name, which the kernel knows.
fn name(program: RawFd) -> String {
    let name = info(program).name.map(|octet| octet as u8);
    CStr::from_bytes_until_nul(&name).unwrap().to_str().unwrap().to_owned()
}

#[test]
fn each_kind_of_request_loads_what_it_runs_and_runs_nothing_else() {
    let tagged = ("/frame", r#"{"size":68,"side":"initiator","responder_vlan":"7"}"#);
    let dns = ("/frame", r#"{"size":114,"side":"initiator","query":"a"}"#);
    let receivers_timed = ("/record_receiver_time", "true");
    let kinds: [(Changes, bool, [&str; 3], &[&str]); 11] = [
        (&[], false, OF_UDP, &[]),
        (NAT64, false, OF_UDP, &[]),
        (&[("/record_delays", "true")], false, OF_UDP, &[]),
        (&[tagged], false, OF_UDP, &[]),
        (&[dns, ("/phase2/responder", "null")], false, OF_UDP, &[]),
        (ICMP, false, OF_ICMP, &[]),
        (&[TCP], false, OF_TCP, &[]),
        (&[receivers_timed], false, OF_UDP, &["receive_nothing"]),
        (&[TCP, receivers_timed], false, OF_TCP, &["receive_nothing"]),
        (&[], true, OF_UDP, &["receive_nothing"]),
        (&[TCP], true, OF_TCP, &["receive_nothing"]),
    ];
    for (changes, floor, of_transport, more) in kinds {
        with(&request(changes), floor, |programs| {
            let mut expected = [&OF_ALL, &of_transport, more].concat();
            let mut loaded = programs.loaded();
            expected.sort_unstable();
            loaded.sort_unstable();
            assert_eq!(loaded, expected, "{changes:?}");
            let [initiator, responder] = programs.receivers();
            let running = [programs.generator(), initiator, responder].map(name);
            assert_eq!(running, of_transport.map(|name| name.chars().take(15).collect::<String>()), "{changes:?}");
        });
    }
}

#[test]
fn a_program_that_is_left_out_is_never_attached() {
    let request = request(&[]);
    let attached = |floor| with(&request, floor, |programs| programs.keep_attached().is_ok());
    assert_eq!([false, true].map(attached), [false, true]);
}
