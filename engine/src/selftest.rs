// SPDX-License-Identifier: Apache-2.0
//! The self-test before a trial: one frame per port, CPU and direction. Ports lose frames without an error if a queue is
//! missing, the peer does not receive, or the namespace is wrong.

use std::thread;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};
use crate::host;
use crate::neighbour;
use crate::netns;
use crate::port::{await_links, Port};
use crate::programs::Programs;
use crate::sender;
use crate::shared::{BOTH, SIDES};

/// Local Experimental Ethertype 1 (IEEE 802), which no device forwards.
const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];
const OCTETS: usize = 60;
const ATTEMPTS: usize = 3;
const REPLY_TIMEOUT: Duration = Duration::from_millis(500);
/// More neighbours could overflow a device's neighbour table.
const MOST_ANNOUNCED: u64 = 256;

/// Send a frame to each port from each CPU, and check that each port receives from its gateway.
pub fn run(programs: &Programs, ports: &[Port; SIDES], cpus: &[usize]) -> Outcome<()> {
    for (side, port) in ports.iter().enumerate() {
        for &cpu in cpus {
            check_sending(programs, side, ports, cpu)?;
        }
        check_receiving(programs, side, port)?;
    }
    Ok(())
}

/// The port must accept a frame from this CPU. A link that goes down for a moment gets another try when it is back.
fn check_sending(programs: &Programs, side: usize, ports: &[Port; SIDES], cpu: usize) -> Outcome<()> {
    let port = &ports[side];
    let interface = &port.interface;
    let mut frame = [&port.gateway.0[..], &port.mac.0, &EXPERIMENTAL].concat();
    frame.resize(OCTETS, 0);
    programs.control.redirect_from(BOTH.map(|other| other == side));
    let mut refused = 0;
    for _ in 0..ATTEMPTS {
        await_links(ports)?;
        let before = programs.offered()[side];
        send_one(programs, &frame, cpu)?;
        let after = programs.offered()[side];
        if after.accepted == before.accepted + 1 {
            return Ok(());
        }
        refused += after.refused - before.refused;
    }
    Err(Failure::Host(format!(
        "{}: {interface}: self-test: CPU {cpu} sent {ATTEMPTS} frames and the port accepted none (refused {refused}): it needs a \
         queue for every CPU, and the other end of a veth needs GRO or an XDP program; natgauge probe {interface} names the command",
        port.name,
    ))
    .at_port(port.name))
}

fn send_one(programs: &Programs, frame: &[u8], cpu: usize) -> Outcome<()> {
    let (program, octets) = (programs.redirector(), frame.to_vec());
    let sent = host::in_thread(move || host::pin(cpu).map(|()| sender::run(program, &octets, 1, 1)))?;
    let sent = sent.join().map_err(|_| Failure::Broke(format!("CPU {cpu}: the self-test failed")))??;
    sent.map_err(|error| {
        let reason = std::io::Error::from_raw_os_error(error);
        Failure::Host(format!("live frames cannot be run ({reason}): needs root and Linux 6.6 or newer"))
    })
}

/// The gateway's reply must reach the receiver. A request from each address also fills the device's neighbour table before
/// the trial, as RFC 2544 section 25 requires.
fn check_receiving(programs: &Programs, side: usize, port: &Port) -> Outcome<()> {
    let Some(gateway) = port.gateway_address else { return Ok(()) };
    for _ in 0..ATTEMPTS {
        let before = programs.received().foreign[side];
        netns::within(port.netns.as_deref(), || {
            let announced = (0..port.own.count().min(MOST_ANNOUNCED))
                .map(|position| (port.own.at(position), port.vlan.map(|vlan| vlan.of(position))));
            neighbour::ask(port.name, port.ifindex as u32, port.mac, announced, gateway)
        })?;
        let until = Instant::now() + REPLY_TIMEOUT;
        while Instant::now() < until {
            if programs.received().foreign[side] > before {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
    Err(Failure::Host(format!(
        "{}: {}: self-test: no answer of gateway {gateway} was received{} (asked {ATTEMPTS} times): is the device up?",
        port.name,
        port.interface,
        port.vlan.map_or_else(String::new, |vlan| format!(
            " in VLAN {vlan} (a card may take tags away: ethtool -K rxvlan off)"
        ))
    ))
    .at_port(port.name))
}
