// SPDX-License-Identifier: Apache-2.0
//! The two interfaces of the request, which are read and never changed.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{if_nametoindex, InterfaceFlags};

use crate::failure::{Failure, Outcome};
use crate::neighbour;
use crate::netns;
use crate::request::{AddressRange, Gateway, Mac, Request, Vlan, FCS};
use crate::shared::{INITIATOR, RESPONDER, SIDES};

/// The largest MTU with which a veth accepts a program for frames in one page (Linux 6.18); cards differ by a few octets.
const ONE_PAGE_MTU: u32 = 3504;

/// Octets of a VLAN tag.
const VLAN_TAG: u32 = 4;

/// Longest wait for a link. Some drivers (igb, vmxnet3) take it down when a program is attached or detached, which is at
/// the beginning and at the end of each trial; twisted pair links then negotiate their speed for up to four seconds.
const LINK_PATIENCE: Duration = Duration::from_secs(5);

/// Frames an interface counted as dropped.
#[derive(Debug, Clone, Copy, Default)]
pub struct Drops {
    /// Dropped on receipt.
    pub rx: u64,
    /// Dropped on sending.
    pub tx: u64,
}

/// An interface's counters of `/proc/net/dev`.
struct Counters(Vec<u64>);

impl Counters {
    fn at(&self, place: usize) -> u64 {
        self.0.get(place).copied().unwrap_or(0)
    }
}

/// One of the tester's ports.
#[derive(Debug)]
pub struct Port {
    /// "initiator" or "responder".
    pub name: &'static str,
    /// Its name in its namespace.
    pub interface: String,
    /// Name below /run/netns; None = the engine's own namespace.
    pub netns: Option<String>,
    /// Its index in its namespace.
    pub ifindex: i32,
    /// Inode number of its namespace.
    pub netns_inode: u32,
    /// Source MAC address of its frames.
    pub mac: Mac,
    /// Destination MAC address of its frames.
    pub gateway: Mac,
    /// Asked for its MAC address in the self-test.
    pub gateway_address: Option<IpAddr>,
    /// Addresses for which it answers ARP or NDP.
    pub own: AddressRange,
    /// Of its frames.
    pub vlan: Option<Vlan>,
}

/// A side of the request, as far as its port depends on it.
struct PortRequest<'a> {
    name: &'static str,
    interface: &'a str,
    netns: Option<&'a str>,
    mac: Option<Mac>,
    gateway: &'a Gateway,
    own: &'a AddressRange,
    octets: u32,
    vlan: Option<Vlan>,
}

/// Look up both ports and their gateways' MAC addresses.
pub fn both(request: &Request) -> Outcome<[Port; SIDES]> {
    let (i, r, octets) = (&request.initiator, &request.responder, request.octets(request.largest_size()));
    Ok([
        find(&PortRequest {
            name: "initiator",
            interface: &i.interface,
            netns: i.netns.as_deref(),
            mac: i.mac,
            gateway: &i.gateway,
            own: &i.source_addresses,
            octets: octets[INITIATOR],
            vlan: request.frame.initiator_vlan,
        })?,
        find(&PortRequest {
            name: "responder",
            interface: &r.interface,
            netns: r.netns.as_deref(),
            mac: r.mac,
            gateway: &r.gateway,
            own: &r.addresses,
            octets: octets[RESPONDER],
            vlan: request.frame.responder_vlan,
        })?,
    ])
}

fn find(wanted: &PortRequest) -> Outcome<Port> {
    look_for(wanted).map_err(|failure| failure.at_port(wanted.name))
}

fn look_for(wanted: &PortRequest) -> Outcome<Port> {
    netns::within(wanted.netns, || {
        let field = format!("{}.interface", wanted.name);
        let ifindex = if_nametoindex(wanted.interface)
            // Of a lab's port: whoever asked has seen it before.
            .map_err(|_| {
                Failure::Broke(format!(
                    "{field}: {}: no such interface in its namespace; was it deleted?",
                    wanted.interface
                ))
            })?;
        let own_mac = check_interface(&field, wanted)?;
        let mac = wanted.mac.unwrap_or(own_mac);
        let gateway = match (wanted.gateway.mac, wanted.gateway.address) {
            (Some(given), _) => given,
            (None, Some(address)) => {
                neighbour::resolve(wanted.name, ifindex, mac, wanted.own.first, address, wanted.vlan)?
            }
            (None, None) => return Err(Failure::field(wanted.name, "{}", "its gateway needs mac or address")),
        };
        let netns_inode = fs::metadata("/proc/thread-self/ns/net").map_or(0, |file| file.ino() as u32);
        Ok(Port {
            name: wanted.name,
            interface: wanted.interface.to_owned(),
            netns: wanted.netns.map(str::to_owned),
            ifindex: ifindex as i32,
            netns_inode,
            mac,
            gateway,
            gateway_address: wanted.gateway.address,
            own: wanted.own.clone(),
            vlan: wanted.vlan,
        })
    })
}

/// Refuse an interface that is down, no Ethernet, or has a too small MTU; returns its MAC address.
fn check_interface(field: &str, wanted: &PortRequest) -> Outcome<Mac> {
    let mac = await_link(field, wanted.interface)?;
    let mtu = neighbour::mtu(wanted.interface).unwrap_or(u32::MAX);
    // Every port takes one tag more than its MTU says (kernel: xdp_ok_fwd_dev()).
    let longest = wanted.octets - wanted.vlan.map_or(0, |_| VLAN_TAG);
    if mtu + 14 < longest {
        return Err(Failure::Host(format!(
            "{field}: {}: MTU {mtu} is too small for frames of {} octets: ip link set {} mtu {}",
            wanted.interface,
            wanted.octets + FCS,
            wanted.interface,
            longest - 14
        )));
    }
    Ok(mac)
}

/// Wait until the links of both ports are up.
pub fn await_links(ports: &[Port; SIDES]) -> Outcome<()> {
    for port in ports {
        let field = format!("{}.interface", port.name);
        netns::within(port.netns.as_deref(), || await_link(&field, &port.interface))
            .map_err(|failure| failure.at_port(port.name))?;
    }
    Ok(())
}

/// Wait until the link of an interface of this namespace is up; returns the interface's MAC address.
fn await_link(field: &str, interface: &str) -> Outcome<Mac> {
    let until = Instant::now() + LINK_PATIENCE;
    loop {
        let (flags, mac) = link_of(field, interface)?;
        if flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_LOWER_UP | InterfaceFlags::IFF_RUNNING) {
            return Ok(mac);
        }
        if !flags.contains(InterfaceFlags::IFF_UP) || Instant::now() >= until {
            return Err(Failure::Unreachable(format!(
                "{field}: {interface}: is down or has no carrier: ip link set {interface} up"
            )));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Flags and MAC address of an interface of this namespace.
fn link_of(field: &str, interface: &str) -> Outcome<(InterfaceFlags, Mac)> {
    let all = getifaddrs().map_err(|error| Failure::Host(format!("{field}: {interface}: {error}")))?;
    let link = all
        .filter(|entry| entry.interface_name == interface)
        .find_map(|entry| entry.address.as_ref()?.as_link_addr().map(|link| (entry.flags, link.addr())));
    match link {
        Some((flags, Some(mac))) => Ok((flags, Mac(mac))),
        _ => Err(Failure::field(field, interface, "is not an Ethernet interface")),
    }
}

impl Port {
    /// The interface's drop counters (`/proc/net/dev`); zero where it no longer exists.
    pub fn drops(&self) -> Outcome<Drops> {
        let counters = self.counters()?;
        Ok(Drops { rx: counters.at(3), tx: counters.at(11) })
    }

    /// Received frames by the interface's counter; on veth it includes frames dropped by an XDP program.
    pub fn received(&self) -> Outcome<u64> {
        Ok(self.counters()?.at(1))
    }

    fn counters(&self) -> Outcome<Counters> {
        netns::within(self.netns.as_deref(), || {
            let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
            let prefix = format!("{}:", self.interface);
            let numbers: Vec<u64> = text
                .lines()
                .find_map(|line| line.trim_start().strip_prefix(&prefix))
                .map(|rest| rest.split_whitespace().filter_map(|number| number.parse().ok()).collect())
                .unwrap_or_default();
            Ok(Counters(numbers))
        })
    }
}

/// Likely reason why a receiver cannot be attached: drivers require multi-buffer programs for jumbo frames.
pub fn why_not_attached(interface: &str, mtu: Option<u32>) -> String {
    match mtu {
        Some(mtu) if mtu > ONE_PAGE_MTU => {
            format!("frames of its MTU of {mtu} do not fit into one page: ip link set {interface} mtu 1500")
        }
        _ => format!("is an XDP program on it? natgauge probe {interface} shows the kernel's reason"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_depends_on_the_mtu() {
        for plain in [None, Some(1500), Some(ONE_PAGE_MTU)] {
            assert!(why_not_attached("eth9", plain).starts_with("is an XDP program on it? natgauge probe eth9 "));
        }
        let reason = why_not_attached("eth9", Some(9000));
        assert_eq!(reason, "frames of its MTU of 9000 do not fit into one page: ip link set eth9 mtu 1500");
    }
}
