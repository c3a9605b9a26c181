// SPDX-License-Identifier: Apache-2.0
//! Resolves the gateway's address by ARP (RFC 826) or neighbour solicitation (RFC 4861), through a packet socket.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};
use crate::request::{halves, ipv6, Mac, Vlan};

const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
const ALL: u16 = 0x0003;
/// Octets of both MAC addresses.
pub(crate) const MACS: usize = 12;
const ATTEMPTS: usize = 3;
const REPLY_TIMEOUT: Duration = Duration::from_millis(500);

/// A packet socket of an interface.
pub(crate) struct Socket(OwnedFd);

impl Socket {
    pub(crate) fn open(ifindex: u32, protocol: u16) -> io::Result<Self> {
        // SAFETY: socket() takes no pointers; the descriptor it returns is owned by nobody else.
        let fd = unsafe {
            let raw = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, i32::from(protocol.to_be()));
            if raw < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(raw)
        };
        // SAFETY: sockaddr_ll is plain data, for which all zeroes is a valid value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = ifindex as i32;
        // SAFETY: the address outlives the call and its length is given.
        let status = unsafe {
            libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
        };
        if status < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(fd))
    }

    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the buffer outlives the call and its length is given.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// A received frame; None when none arrived in time.
    fn receive(&self, until: Instant) -> Option<Vec<u8>> {
        let mut buffer = vec![0_u8; 2048];
        let left = until.saturating_duration_since(Instant::now()).as_millis() as i32;
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd is given and outlives the call; the buffer's length is given.
        let got = unsafe {
            if libc::poll(&raw mut poll, 1, left.max(1)) <= 0 {
                return None;
            }
            libc::recv(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0)
        };
        buffer.truncate(usize::try_from(got).ok()?);
        Some(buffer)
    }
}

/// A request for the address of `target` in this VLAN, padded to the least Ethernet length.
fn request(mac: Mac, source: IpAddr, target: IpAddr, vlan: Option<Vlan>) -> Vec<u8> {
    let mut frame = match (source, target) {
        (IpAddr::V4(source), IpAddr::V4(target)) => {
            let mut frame = [&[0xff; 6][..], &mac.0, &ARP.to_be_bytes(), &[0, 1, 8, 0, 6, 4, 0, 1]].concat();
            frame.extend([&mac.0[..], &source.octets(), &[0; 6], &target.octets()].concat());
            frame
        }
        _ => solicitation(mac, source, target),
    };
    frame.splice(MACS..MACS, vlan.map(Vlan::in_frame).unwrap_or_default());
    frame.resize(frame.len().max(60), 0);
    frame
}

/// The Internet checksum (RFC 1071) of an even number of octets.
pub(crate) fn checksum(octets: &[u8]) -> u16 {
    let sum: u32 = octets.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    let folded = (sum >> 16) + (sum & 0xffff);
    !((folded >> 16) + folded) as u16
}

fn solicitation(mac: Mac, source: IpAddr, target: IpAddr) -> Vec<u8> {
    let (source, target) = (halves(source), halves(target));
    let (source, target) = (ipv6(source.0, source.1).octets(), ipv6(target.0, target.1).octets());
    let low = [target[13], target[14], target[15]];
    let group = [&[0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff][..], &low].concat();
    let icmp = [&[135_u8, 0, 0, 0, 0, 0, 0, 0][..], &target, &[1, 1], &mac.0].concat();
    icmpv6(&[&[0x33, 0x33, 0xff][..], &low, &mac.0].concat(), 255, (&source, &group), icmp)
}

/// A frame with an ICMPv6 message whose checksum is zero, behind these MAC addresses (RFC 4443 section 2.3).
pub(crate) fn icmpv6(macs: &[u8], hop_limit: u8, (source, destination): (&[u8], &[u8]), mut icmp: Vec<u8>) -> Vec<u8> {
    let octets = icmp.len() as u8;
    let pseudo = [source, destination, &[0, 0, 0, octets, 0, 0, 0, 58]].concat();
    let sum = checksum(&[pseudo, icmp.clone()].concat());
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    [macs, &IPV6.to_be_bytes(), &[0x60, 0, 0, 0, 0, octets, 58, hop_limit], source, destination, &icmp].concat()
}

/// The frame without its VLAN tags. The kernel takes the first one away before a socket sees the frame.
fn without_vlans(mut frame: Vec<u8>) -> Vec<u8> {
    while matches!(frame.get(MACS..MACS + 2), Some([0x81, 0x00] | [0x88, 0xa8])) && frame.len() >= MACS + 4 {
        frame.drain(MACS..MACS + 4);
    }
    frame
}

/// The MAC address in a reply about `target`; None for other frames.
fn reply(frame: &[u8], target: IpAddr) -> Option<Mac> {
    let kind = u16::from_be_bytes(frame.get(12..14)?.try_into().ok()?);
    match target {
        IpAddr::V4(v4) if kind == ARP && frame.get(20..22)? == [0, 2] && frame.get(28..32)? == v4.octets() => {
            Some(Mac(frame.get(22..28)?.try_into().ok()?))
        }
        IpAddr::V6(v6) if kind == IPV6 && *frame.get(54)? == 136 && frame.get(62..78)? == v6.octets() => {
            let from_option = (frame.get(78) == Some(&2)).then(|| frame.get(80..86)).flatten();
            Some(Mac(from_option.or_else(|| frame.get(6..12))?.try_into().ok()?))
        }
        _ => None,
    }
}

/// The MAC address of `target`, from the namespace of this thread.
pub fn resolve(port: &str, ifindex: u32, mac: Mac, source: IpAddr, target: IpAddr, vlan: Option<Vlan>) -> Outcome<Mac> {
    let untagged = if target.is_ipv4() { ARP } else { IPV6 };
    let protocol = vlan.map_or(untagged, |_| ALL);
    let failed = |error: io::Error| Failure::Host(format!("{port}: packet socket: {error}"));
    let socket = Socket::open(ifindex, protocol).map_err(failed)?;
    for _ in 0..ATTEMPTS {
        socket.send(&request(mac, source, target, vlan)).map_err(failed)?;
        let until = Instant::now() + REPLY_TIMEOUT;
        while Instant::now() < until {
            if let Some(found) = socket.receive(until).and_then(|frame| reply(&without_vlans(frame), target)) {
                return Ok(found);
            }
        }
    }
    let place = vlan.map_or_else(String::new, |vlan| format!(" in VLAN {vlan}"));
    Err(Failure::Unreachable(format!(
        "{port}: gateway {target} does not answer{place} (asked {ATTEMPTS} times): is the device up and the cable right?"
    )))
}

/// Send one request from each source without waiting. The device learns the senders' addresses, and its replies show that
/// frames arrive.
pub fn ask(
    port: &str,
    ifindex: u32,
    mac: Mac,
    mut sources: impl Iterator<Item = (IpAddr, Option<Vlan>)>,
    target: IpAddr,
) -> Outcome<()> {
    // Protocol 0: this socket receives nothing. One socket for all: closing one takes the kernel ten milliseconds.
    Socket::open(ifindex, 0)
        .and_then(|socket| sources.try_for_each(|(source, vlan)| socket.send(&request(mac, source, target, vlan))))
        .map_err(|error| Failure::Host(format!("{port}: packet socket: {error}")))
}

/// MTU of an interface of this namespace; None where there is none of that name.
pub fn mtu(interface: &str) -> Option<u32> {
    // SAFETY: ifreq is plain data, for which all zeroes is a valid value.
    let mut interface_request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in interface_request.ifr_name.iter_mut().zip(interface.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    // SAFETY: SIOCGIFMTU reads the name and writes the MTU into the ifreq given; the socket is closed by its owner.
    unsafe {
        let raw = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if raw < 0 {
            return None;
        }
        let socket = OwnedFd::from_raw_fd(raw);
        if libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &raw mut interface_request) < 0 {
            return None;
        }
        u32::try_from(interface_request.ifr_ifru.ifru_mtu).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_icmpv6_lies_behind_its_headers_with_its_own_checksum() {
        let (source, destination) = ([0x20; 16], [0xfe; 16]);
        let frame = icmpv6(&[1; 12], 64, (&source, &destination), vec![128, 0, 0, 0, 0, 7, 0, 1]);
        assert_eq!(frame[12..22], [0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 58, 64]);
        assert_eq!((&frame[22..38], &frame[38..54]), (&source[..], &destination[..]));
        let pseudo = [&frame[22..54], &[0, 0, 0, 8, 0, 0, 0, 58], &frame[54..]].concat();
        assert_eq!((frame.len(), checksum(&pseudo)), (62, 0));
    }
}
