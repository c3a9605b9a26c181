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
use crate::shared::SIDES;

/// Local Experimental Ethertype 1 (IEEE 802), which no device forwards.
const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];
const OCTETS: usize = 60;
const ATTEMPTS: usize = 3;
const REPLY_TIMEOUT: Duration = Duration::from_millis(500);
/// More neighbours could overflow a device's neighbour table.
const MOST_ANNOUNCED: u64 = 256;

/// Send a frame to each port from each CPU, and check that each port receives from its gateway.
pub fn run(programs: &Programs, ports: &[Port; SIDES], cpus: &[usize]) -> Outcome<()> {
    await_links(ports)?;
    for (side, port) in ports.iter().enumerate() {
        for &cpu in cpus {
            check_sending(programs, side, port, cpu)?;
        }
        check_receiving(programs, side, port)?;
    }
    Ok(())
}

fn check_sending(programs: &Programs, side: usize, port: &Port, cpu: usize) -> Outcome<()> {
    let mut frame = [&port.gateway.0[..], &port.mac.0, &EXPERIMENTAL, &[side as u8]].concat();
    frame.resize(OCTETS, 0);
    let program = programs.emitter();
    let before = programs.offered()[side];
    let sent = thread::spawn(move || host::pin(cpu).map(|()| sender::run(program, &frame, 1, 1)));
    let sent = sent.join().map_err(|_| Failure::Broke(format!("CPU {cpu}: the self-test failed")))??;
    let after = programs.offered()[side];
    if let Err(error) = sent {
        let reason = std::io::Error::from_raw_os_error(error);
        return Err(Failure::Host(format!("live frames cannot be run ({reason}): needs root and Linux 6.6 or newer")));
    }
    if after.accepted == before.accepted + 1 {
        return Ok(());
    }
    Err(Failure::Host(format!(
        "{}: {}: self-test: CPU {cpu} sent 1 frame and the port accepted {} (refused {}): it needs a queue for every CPU, \
         and on veth a peer with GRO or XDP on: ethtool -K PEER gro on",
        port.name,
        port.interface,
        after.accepted - before.accepted,
        after.refused - before.refused
    )))
}

/// The gateway's reply must reach the receiver. A request from each address also fills the device's neighbour table before
/// the trial, as RFC 2544 section 25 requires.
fn check_receiving(programs: &Programs, side: usize, port: &Port) -> Outcome<()> {
    let Some(gateway) = port.gateway_address else { return Ok(()) };
    for _ in 0..ATTEMPTS {
        let before = programs.received().foreign[side];
        netns::within(port.netns.as_deref(), || {
            let announced = (0..port.own.count().min(MOST_ANNOUNCED)).map(|position| port.own.at(position));
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
        "{}: {}: self-test: no answer of gateway {gateway} was received (asked {ATTEMPTS} times): is the device up?",
        port.name, port.interface
    )))
}
