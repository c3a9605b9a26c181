// SPDX-License-Identifier: Apache-2.0
//! Address ranges, port ranges and MAC addresses of a request.
#![allow(missing_docs, reason = "the fields' descriptions are those of the schema")]

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

use super::bounds::{Address, Whole};

/// Ports, both ends included.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortRange {
    #[serde(with = "Whole::<1, 65535>")]
    pub first: u32,
    #[serde(with = "Whole::<1, 65535>")]
    pub last: u32,
}

impl PortRange {
    /// Number of ports; the range has been checked.
    pub fn count(&self) -> u64 {
        u64::from(self.last - self.first) + 1
    }
}

/// Addresses first, first + step, ..., last. IPv6: all have the same upper 64 bits, or embed IPv4 addresses.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddressRange {
    /// IPv4 or IPv6 address in text form, of the side's family.
    #[serde(with = "Address")]
    pub first: IpAddr,
    /// IPv4 or IPv6 address in text form, of the side's family.
    #[serde(with = "Address")]
    pub last: IpAddr,
    /// Distance between consecutive addresses.
    #[serde(default = "one", with = "Whole::<1, { u64::MAX }>")]
    pub step: u64,
    /// Bits of the IPv6 prefix behind which the range's IPv4 addresses are embedded, `step` apart (RFC 6052 section 2.2).
    /// Absent: the last 32 bits count, as behind a prefix of 96 bits.
    #[serde(default, with = "Whole::<32, 64>")]
    pub embedded: Option<u64>,
}

fn one() -> u64 {
    1
}

/// Upper and lower half of an address, as in the frame programs: IPv4 in the lower 32 bits of the lower half.
pub fn halves(address: IpAddr) -> (u64, u64) {
    match address {
        IpAddr::V4(v4) => (0, u64::from(u32::from(v4))),
        IpAddr::V6(v6) => {
            let bits = u128::from(v6);
            ((bits >> 64) as u64, bits as u64)
        }
    }
}

/// The IPv6 address of two halves.
pub fn ipv6(high: u64, low: u64) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(high) << 64 | u128::from(low))
}

impl AddressRange {
    /// Number of addresses; the range has been checked.
    pub fn count(&self) -> u64 {
        (self.number(self.last) - self.number(self.first)) / self.step + 1
    }

    /// The part of an address that varies in the range: the embedded IPv4 address, or the lower half.
    pub fn number(&self, address: IpAddr) -> u64 {
        let (high, low) = halves(address);
        self.embedded.map_or(low, |bits| (high << (bits - 32) | low >> (88 - bits)) & u64::from(u32::MAX))
    }

    /// The address with this varying part.
    fn of(&self, number: u64) -> IpAddr {
        let (high, _) = halves(self.first);
        match (self.first, self.embedded) {
            (IpAddr::V4(_), _) => IpAddr::V4((number as u32).into()),
            (IpAddr::V6(_), None) => IpAddr::V6(ipv6(high, number)),
            (IpAddr::V6(_), Some(bits)) => {
                // Bits 64 to 71 are 0.
                let below_prefix = (1 << (64 - bits)) - 1;
                let high = high & !below_prefix | number >> (bits - 32);
                IpAddr::V6(ipv6(high, number << (88 - bits) & (u64::MAX >> 8)))
            }
        }
    }

    /// The bits of the upper half that are equal in all addresses.
    pub fn common_half(&self) -> u64 {
        let (first, last) = (halves(self.first).0, halves(self.last).0);
        first & last & !(u64::MAX.checked_shr((first ^ last).leading_zeros()).unwrap_or(0))
    }

    /// Whether both ends are addresses that the range can have.
    pub fn is_regular(&self) -> bool {
        self.embedded.is_none_or(|bits| bits % 8 == 0)
            && [self.first, self.last].into_iter().all(|end| self.of(self.number(end)) == end)
    }

    /// The address after the last one, if there is one with the same upper half.
    pub fn after(&self) -> Option<IpAddr> {
        let most = if self.first.is_ipv4() { u64::from(u32::MAX) } else { u64::MAX };
        let next = halves(self.last).1.checked_add(self.step).filter(|&next| next <= most);
        next.map(|_| self.at(self.count()))
    }

    /// The address at a position below `count`.
    pub fn at(&self, position: u64) -> IpAddr {
        self.of(self.number(self.first) + position * self.step)
    }

    /// Whether an address is in the range.
    pub fn holds(&self, address: IpAddr) -> bool {
        let (first, last, wanted) = (self.number(self.first), self.number(self.last), self.number(address));
        self.first.is_ipv4() == address.is_ipv4()
            && self.of(wanted) == address
            && (first..=last).contains(&wanted)
            && (wanted - first) % self.step == 0
    }
}

/// A MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Mac(pub [u8; 6]);

impl TryFrom<String> for Mac {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parts =
            text.split(':').filter(|part| part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let octets: Vec<u8> = parts.filter_map(|part| u8::from_str_radix(part, 16).ok()).collect();
        match <[u8; 6]>::try_from(octets) {
            Ok(mac) if text.len() == 17 => Ok(Self(mac)),
            _ => Err(format!("{text}: must be six octets such as 02:00:00:00:00:01")),
        }
    }
}

impl JsonSchema for Mac {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "mac".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$"})
    }
}

impl std::fmt::Display for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The device's end of a link. Without `mac` the engine resolves `address` by ARP or NDP.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GatewaySide")]
pub struct Gateway {
    pub mac: Option<Mac>,
    /// IPv4 or IPv6 address in text form, of the side's family.
    #[serde(default, with = "Address")]
    pub address: Option<IpAddr>,
}
