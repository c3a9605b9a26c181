// SPDX-License-Identifier: Apache-2.0
//! Modifiers of phase 2: queries of the device, which the frame programs do not send, and which frames are put aside.

use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};
use crate::flow::Flow;
use crate::neighbour::{checksum, icmpv6, Socket, MACS};
use crate::netns;
use crate::port::Port;
use crate::request::{Request, Vlan};
use crate::shared::PHASE2;
use crate::tester::types;

/// Sends ICMP echo requests to the device in phase 2, the first one as it begins and one after each interval (RFC 2544
/// section 11.2), through a packet socket. The frame programs count the replies.
pub struct Queries {
    socket: Socket,
    frame: Vec<u8>,
    interval: Duration,
    /// When the next one is due; None: at once.
    next: Option<Instant>,
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
        Ok(Some(Self { socket, frame, interval, next: None, sent: 0 }))
    }

    /// Send the next one, if it is due. One that a full or disconnected port does not take stays without an answer.
    ///
    /// # Errors
    /// The port takes none.
    pub fn send_due(&mut self) -> Outcome<()> {
        let now = Instant::now();
        let due = self.next.unwrap_or(now);
        if now < due {
            return Ok(());
        }
        // Those of a pause are left out: they would all be sent after it.
        self.next = Some((due + self.interval).max(now));
        self.sent += 1;
        match self.socket.send(&self.frame) {
            Err(error) if !passes(&error) => Err(Failure::Host(format!("management query: {error}"))),
            _ => Ok(()),
        }
    }
}

/// Whether the same port may take a later frame.
fn passes(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN | libc::ENETDOWN))
}

/// Whether frame `number` of a side in phase 2 is no test frame: its group has not begun, or it is a broadcast. The frame
/// programs decide in the same way.
pub fn is_aside(modifiers: &types::modifiers, number: u64, side: usize) -> bool {
    let (every, groups) = (modifiers.broadcast_every, u64::from(modifiers.groups.max(1)));
    let (turn, group) = (number / groups, number % groups);
    let turn = turn + ((group * modifiers.stagger) >> 32);
    number < group * modifiers.group_frames[side] || (every > 0 && turn % every == every - 1)
}

/// Due times of a sender's frames of these ascending sequence numbers, ns since the start of the phase. Frames that are put
/// aside have a due time, but no sequence number.
pub fn due_times(
    modifiers: &types::modifiers,
    flow: &Flow,
    (sender, senders): (u64, u64),
    sequences: &[u64],
) -> Vec<u64> {
    let modified = PHASE2.contains(&flow.stream) && (modifiers.broadcast_every > 0 || modifiers.groups > 0);
    let made = move |&place: &u64| !is_aside(modifiers, place * senders + sender, flow.side);
    let mut places: Box<dyn Iterator<Item = u64>> = if modified { Box::new((0..).filter(made)) } else { Box::new(0..) };
    let mut next = 0;
    let due = |&sequence: &u64| {
        let place = places.nth(sequence.checked_sub(next)? as usize)?;
        next = sequence + 1;
        Some(flow.due_ns(place * senders + sender - flow.opened) as u64)
    };
    sequences.iter().filter_map(due).collect()
}

/// An echo request (RFC 792, RFC 4443 section 4.1), padded to the least Ethernet length.
fn echo(port: &Port, source: IpAddr, device: IpAddr, identifier: u16) -> Vec<u8> {
    let ethernet = [port.gateway.0, port.mac.0].concat();
    let message = |kind: u8| [&[kind, 0, 0, 0][..], &identifier.to_be_bytes(), &[0, 1], &[0; 18]].concat();
    let mut frame = match (source, device) {
        (IpAddr::V6(source), IpAddr::V6(device)) => {
            icmpv6(&ethernet, 64, (&source.octets(), &device.octets()), message(128))
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
    frame.splice(MACS..MACS, port.vlan.map(Vlan::in_frame).unwrap_or_default());
    frame.resize(frame.len().max(60), 0);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::{INITIATOR, PHASE1, PHASE2_INITIATOR};

    const MS: u64 = 1_000_000;
    const FLOW: Flow = Flow {
        side: INITIATOR,
        stream: PHASE2_INITIATOR,
        first: 0,
        opened: 0,
        frames: 10_000,
        rate: 1000.0,
        step: None,
    };

    /// A frame each millisecond, so frame n is due at n ms.
    fn due(modifiers: &types::modifiers, sender: (u64, u64), sequences: &[u64]) -> Vec<u64> {
        due_times(modifiers, &FLOW, sender, sequences).iter().map(|due| due / MS).collect()
    }

    #[test]
    fn frames_that_are_put_aside_have_no_sequence_number_but_take_their_time() {
        let broadcasts = types::modifiers { broadcast_every: 100, ..Default::default() };
        assert_eq!(due(&broadcasts, (0, 1), &[0, 98, 99, 197, 198]), [0, 98, 100, 198, 200]);
        assert_eq!(due(&broadcasts, (1, 2), &[48, 49, 98]), [97, 101, 201], "99 and 199 are broadcasts");
        let groups = types::modifiers { groups: 4, group_frames: [100, 0], ..Default::default() };
        assert_eq!(due(&groups, (0, 1), &[0, 1, 24, 25, 26, 27]), [0, 4, 96, 100, 101, 104]);
        assert_eq!(due(&groups, (0, 1), &[25 + 50 + 75, 25 + 50 + 75 + 1]), [300, 301], "all have begun");
    }

    #[test]
    fn other_phases_and_trials_put_nothing_aside() {
        let broadcasts = types::modifiers { broadcast_every: 100, ..Default::default() };
        assert_eq!(due(&types::modifiers::default(), (0, 1), &[98, 99, 5000]), [98, 99, 5000]);
        let phase1 = Flow { stream: PHASE1, ..FLOW };
        assert_eq!(due_times(&broadcasts, &phase1, (0, 1), &[99, 100]), [99 * MS, 100 * MS]);
    }

    #[test]
    fn a_query_that_a_port_does_not_take_ends_a_trial_only_where_it_never_will() {
        let passing = |error| passes(&io::Error::from_raw_os_error(error));
        assert!([libc::ENOBUFS, libc::EAGAIN, libc::ENETDOWN].into_iter().all(passing));
        assert!(![libc::ENXIO, libc::ENODEV, libc::EPERM].into_iter().any(passing));
    }
}
