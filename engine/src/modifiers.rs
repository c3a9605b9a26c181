// SPDX-License-Identifier: Apache-2.0
//! Modifiers of phase 2: broadcasts and groups of connections, which the frame programs send, and queries of the device.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};
use crate::family::Family;
use crate::neighbour::{checksum, Socket};
use crate::netns;
use crate::plan::{form, side};
use crate::port::Port;
use crate::request::{AddressRange, Headers, Request};
use crate::shared::{BOTH, INITIATOR, SIDES};
use crate::tester::types;

/// The modifiers for the frame programs. `macs`: own and gateway's MAC address of each side.
pub(crate) fn plan(request: &Request, macs: [([u8; 6], [u8; 6]); SIDES]) -> types::modifiers {
    let Some(modifiers) = request.modifiers() else { return types::modifiers::default() };
    let sides = BOTH.map(|at| broadcast(request, at, macs[at].0));
    let mut group_frames = [0; SIDES];
    if let (Some(groups), Some(phase2)) = (&modifiers.groups, &request.phase2) {
        for stream in phase2.streams() {
            group_frames[stream.side] = (stream.rate * groups.seconds).round() as u64;
        }
    }
    types::modifiers {
        broadcast_every: modifiers.broadcast_every.unwrap_or_default(),
        queried: u32::from(modifiers.query_ms.is_some()),
        groups: modifiers.groups.as_ref().map_or(0, |groups| groups.number),
        group_frames,
        broadcast: sides.map(|(side, _)| side),
        broadcast_form: sides.map(|(_, form)| form),
    }
}

/// A side's broadcasts: from its first own address to all of the link, as long as its frames (RFC 2544 section 11.1).
fn broadcast(request: &Request, at: usize, own_mac: [u8; 6]) -> (types::side_plan, types::form) {
    let own = [request.initiator.source_addresses.first, request.responder.addresses.first][at];
    let (all, mac, family) = match own {
        IpAddr::V4(_) => (IpAddr::from([255; 4]), [255; 6], Family::Ipv4),
        IpAddr::V6(_) => (IpAddr::from([0xff02, 0, 0, 0, 0, 0, 0, 1]), [0x33, 0x33, 0, 0, 0, 1], Family::Ipv6),
    };
    let native = Headers::from(family);
    let single = |address| AddressRange { first: address, last: address, step: 1, embedded: None };
    let octets = request.octets(request.frame.size)[at] - request.headers()[at].octets() + native.octets();
    let form = form(native, request.frame.transport, &request.messages()[INITIATOR], octets);
    (side(native, (own_mac, mac), &single(own), &single(all)), form)
}

/// Sends ICMP echo requests to the device, one after each interval (RFC 2544 section 11.2), through a packet socket. The
/// frame programs count the replies.
pub struct Queries {
    socket: Socket,
    frame: Vec<u8>,
    interval: Duration,
    next: Instant,
    /// How many were sent.
    pub sent: u64,
}

impl Queries {
    /// The queries of a trial; None where it has none.
    ///
    /// # Errors
    /// The kernel refuses the packet socket.
    pub fn open(request: &Request, port: &Port) -> Outcome<Option<Self>> {
        let query = request.modifiers().and_then(|modifiers| modifiers.query_ms);
        let (Some(milliseconds), Some(device)) = (query, port.gateway_address) else { return Ok(None) };
        let socket = netns::within(port.netns.as_deref(), || {
            Socket::open(port.ifindex as u32, 0)
                .map_err(|error| Failure::Host(format!("{}: packet socket: {error}", port.name)))
        })?;
        let interval = Duration::from_millis(milliseconds);
        let frame = echo(port, port.own.at(0), device, request.mark as u16);
        Ok(Some(Self { socket, frame, interval, next: Instant::now() + interval, sent: 0 }))
    }

    /// Send the next one, if it is due.
    ///
    /// # Errors
    /// The port does not take it.
    pub fn send_due(&mut self) -> Outcome<()> {
        if Instant::now() < self.next {
            return Ok(());
        }
        self.next += self.interval;
        self.sent += 1;
        self.socket.send(&self.frame).map_err(|error| Failure::Host(format!("management query: {error}")))
    }
}

/// An echo request (RFC 792, RFC 4443 section 4.1), padded to the least Ethernet length.
fn echo(port: &Port, source: IpAddr, device: IpAddr, identifier: u16) -> Vec<u8> {
    let ethernet = [port.gateway.0, port.mac.0].concat();
    let message = |kind: u8| [&[kind, 0, 0, 0][..], &identifier.to_be_bytes(), &[0, 1], &[0; 18]].concat();
    let mut frame = match (source, device) {
        (IpAddr::V6(source), IpAddr::V6(device)) => {
            let mut icmp = message(128);
            let pseudo = [&source.octets()[..], &device.octets(), &[0, 0, 0, icmp.len() as u8, 0, 0, 0, 58]].concat();
            let sum = checksum(&[pseudo, icmp.clone()].concat());
            icmp[2..4].copy_from_slice(&sum.to_be_bytes());
            let header = [0x60, 0, 0, 0, 0, icmp.len() as u8, 58, 64];
            [&ethernet[..], &[0x86, 0xdd], &header, &source.octets(), &device.octets(), &icmp].concat()
        }
        _ => {
            let four = |address: IpAddr| match address {
                IpAddr::V4(four) => four.octets(),
                IpAddr::V6(_) => [0; 4],
            };
            let mut icmp = message(8);
            let sum = checksum(&icmp);
            icmp[2..4].copy_from_slice(&sum.to_be_bytes());
            let total = (20 + icmp.len() as u16).to_be_bytes();
            let addresses = [four(source), four(device)].concat();
            let mut header = [&[0x45, 0][..], &total, &[0, 0, 0, 0, 64, 1, 0, 0], &addresses].concat();
            let sum = checksum(&header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            [&ethernet[..], &[8, 0], &header, &icmp].concat()
        }
    };
    frame.resize(frame.len().max(60), 0);
    frame
}
