// SPDX-License-Identifier: Apache-2.0
//! The two interfaces of the request, looked at and never changed.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{if_nametoindex, InterfaceFlags};

use crate::failure::{Failure, Outcome};
use crate::neighbour;
use crate::netns;
use crate::request::{AddressRange, Gateway, Mac, Request, FCS};
use crate::shared::{INITIATOR, RESPONDER, SIDES};

/// The largest MTU with which a veth takes a program for frames in one page (Linux 6.18); cards differ by a few octets.
const ONE_PAGE_MTU: u32 = 3504;

/// Frames an interface counted as dropped.
#[derive(Debug, Clone, Copy, Default)]
pub struct Drops {
    /// On receipt.
    pub rx: u64,
    /// On sending.
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
    /// Name below /run/netns; None = the engine's own.
    pub netns: Option<String>,
    /// Its number in its namespace.
    pub ifindex: i32,
    /// Inode number of its namespace.
    pub netns_inode: u32,
    /// Source of its frames.
    pub mac: Mac,
    /// Destination of its frames.
    pub gateway: Mac,
    /// Asked in the self-test.
    pub gateway_address: Option<IpAddr>,
    /// Addresses it answers for.
    pub own: AddressRange,
}

struct Asked<'a> {
    name: &'static str,
    interface: &'a str,
    netns: Option<&'a str>,
    mac: Option<Mac>,
    gateway: &'a Gateway,
    own: &'a AddressRange,
    octets: u32,
}

/// Look both ports up and find their gateways' Ethernet addresses.
pub fn both(request: &Request) -> Outcome<[Port; SIDES]> {
    let (i, r, octets) = (&request.initiator, &request.responder, request.octets());
    Ok([
        find(&Asked {
            name: "initiator",
            interface: &i.interface,
            netns: i.netns.as_deref(),
            mac: i.mac,
            gateway: &i.gateway,
            own: &i.source_addresses,
            octets: octets[INITIATOR],
        })?,
        find(&Asked {
            name: "responder",
            interface: &r.interface,
            netns: r.netns.as_deref(),
            mac: r.mac,
            gateway: &r.gateway,
            own: &r.addresses,
            octets: octets[RESPONDER],
        })?,
    ])
}

fn find(asked: &Asked) -> Outcome<Port> {
    netns::within(asked.netns, || {
        let field = format!("{}.interface", asked.name);
        let ifindex = if_nametoindex(asked.interface)
            .map_err(|_| Failure::field(&field, asked.interface, "no such interface in its namespace"))?;
        let own_mac = examine(&field, asked)?;
        let mac = asked.mac.unwrap_or(own_mac);
        let gateway = match (asked.gateway.mac, asked.gateway.address) {
            (Some(given), _) => given,
            (None, Some(address)) => neighbour::resolve(asked.name, ifindex, mac, asked.own.first, address)?,
            (None, None) => return Err(Failure::field(asked.name, "{}", "its gateway needs mac or address")),
        };
        let netns_inode = fs::metadata("/proc/thread-self/ns/net").map_or(0, |file| file.ino() as u32);
        Ok(Port {
            name: asked.name,
            interface: asked.interface.to_owned(),
            netns: asked.netns.map(str::to_owned),
            ifindex: ifindex as i32,
            netns_inode,
            mac,
            gateway,
            gateway_address: asked.gateway.address,
            own: asked.own.clone(),
        })
    })
}

/// Up, an Ethernet interface, large enough; returns its address.
fn examine(field: &str, asked: &Asked) -> Outcome<Mac> {
    let all = getifaddrs().map_err(|error| Failure::Host(format!("{field}: {}: {error}", asked.interface)))?;
    let link = all
        .filter(|entry| entry.interface_name == asked.interface)
        .find_map(|entry| entry.address.as_ref()?.as_link_addr().map(|link| (entry.flags, link.addr())));
    let Some((flags, Some(mac))) = link else {
        return Err(Failure::field(field, asked.interface, "is no Ethernet interface"));
    };
    if !flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING) {
        return Err(Failure::Unreachable(format!(
            "{field}: {}: is down or has no carrier: ip link set {} up",
            asked.interface, asked.interface
        )));
    }
    let mtu = neighbour::mtu(asked.interface).unwrap_or(u32::MAX);
    if mtu + 14 < asked.octets {
        return Err(Failure::Host(format!(
            "{field}: {}: MTU {mtu} is too small for frames of {} octets: ip link set {} mtu {}",
            asked.interface,
            asked.octets + FCS,
            asked.interface,
            asked.octets - 14
        )));
    }
    Ok(Mac(mac))
}

impl Port {
    /// The interface's own drop counters (`/proc/net/dev`); zero where it has gone.
    pub fn drops(&self) -> Outcome<Drops> {
        let counters = self.counters()?;
        Ok(Drops { rx: counters.at(3), tx: counters.at(11) })
    }

    /// Frames that came in, by the interface's own counter; on veth those that a program drops, too.
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

/// What may be wrong with a port that takes no receiver: drivers want multi-buffer programs for jumbo frames.
pub fn why_not_attached(interface: &str, mtu: Option<u32>) -> String {
    match mtu {
        Some(mtu) if mtu > ONE_PAGE_MTU => {
            format!("frames of its MTU of {mtu} do not fit into one page: ip link set {interface} mtu 1500")
        }
        _ => "is an XDP program on it?".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_jumbo_frames_is_told_from_one_that_has_a_program() {
        for plain in [None, Some(1500), Some(ONE_PAGE_MTU)] {
            assert_eq!(why_not_attached("eth9", plain), "is an XDP program on it?");
        }
        let told = why_not_attached("eth9", Some(9000));
        assert_eq!(told, "frames of its MTU of 9000 do not fit into one page: ip link set eth9 mtu 1500");
    }
}
