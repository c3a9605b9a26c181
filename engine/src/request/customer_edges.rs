// SPDX-License-Identifier: Apache-2.0
//! Customer edges that the Initiator emulates, so that a relay (BR, lwAFTR, AFTR) is tested alone (RFC 8219 section 4.2),
//! or that are the device, so that the Responder emulates their relay.
#![allow(missing_docs, reason = "the fields' descriptions are those of the schema")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use schemars::JsonSchema;
use serde::Deserialize;

use super::addresses::AddressRange;
use super::bounds::{Address, Whole};
use crate::softwire::sharing::{PortSets, Refusal, Rule};

const MOST_EDGES: u64 = 1 << 31;

/// Customer edges, with the basic mapping rule from which their addresses and port sets follow (RFC 7597 section 5). Edge 0 has the first PSID of first_address, edge 1 the next PSID; after the last PSID of an
/// address follows the first PSID of the next address.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomerEdges {
    #[serde(with = "Whole::<1, MOST_EDGES>")]
    pub number: u64,
    #[serde(with = "Address")]
    pub ipv6_prefix: IpAddr,
    #[serde(with = "Whole::<1, 64>")]
    pub ipv6_prefix_length: u8,
    #[serde(with = "Address")]
    pub ipv4_prefix: IpAddr,
    #[serde(with = "Whole::<0, 32>")]
    pub ipv4_prefix_length: u8,
    /// "k" of RFC 7597. As many embedded address bits follow the IPv6 prefix as IPv4 suffix and PSID have.
    #[serde(with = "Whole::<0, 16>")]
    pub psid_length: u8,
    /// "a" of RFC 7597.
    #[serde(with = "Whole::<0, 15>")]
    pub psid_offset: u8,
    #[serde(with = "Address")]
    pub first_address: IpAddr,
    #[serde(with = "Whole::<0, 65535>")]
    pub first_psid: u16,
    /// The relay's IPv6 address: each edge tunnels IPv4 to it, from its MAP address (RFC 2473). Absent: the edges translate
    /// IPv4 to IPv6 (RFC 7599).
    #[serde(default, with = "Address")]
    pub relay: Option<IpAddr>,
    /// Number of the first edge that is used.
    #[serde(default, with = "Whole::<0, MOST_EDGES>")]
    pub first: u64,
}

impl CustomerEdges {
    /// The basic mapping rule.
    ///
    /// # Errors
    /// It is none.
    pub fn rule(&self) -> Result<Rule, Refusal> {
        let sets = PortSets::new(self.psid_offset, self.psid_length)?;
        let bits = (32_u8).saturating_sub(self.ipv4_prefix_length) + self.psid_length;
        let prefix6 = (self.six(), self.ipv6_prefix_length);
        Rule::new(prefix6, (four(self.ipv4_prefix), self.ipv4_prefix_length), bits, sets)
    }

    fn six(&self) -> Ipv6Addr {
        match self.ipv6_prefix {
            IpAddr::V6(prefix) => prefix,
            IpAddr::V4(prefix) => prefix.to_ipv6_mapped(),
        }
    }

    /// Edges that share an IPv4 address; 0 where `first_psid` is no PSID.
    pub fn per_address(&self) -> u64 {
        (1_u64 << self.psid_length).saturating_sub(self.first_psid.into())
    }

    /// The IPv4 addresses of all edges; the request has been checked.
    pub fn addresses(&self) -> AddressRange {
        let of = |edge: u64| {
            let more = u32::try_from(edge / self.per_address()).unwrap_or(u32::MAX);
            Ipv4Addr::from_bits(four(self.first_address).to_bits().saturating_add(more)).into()
        };
        AddressRange { first: of(self.first), last: of(self.first + self.number - 1), step: 1, embedded: None }
    }

    /// The IPv6 address of the last edge; None where the rule does not apply to it.
    pub fn last(&self, rule: &Rule) -> Option<Ipv6Addr> {
        let of_address = (self.first + self.number - 1) % self.per_address();
        let psid = u16::try_from(u64::from(self.first_psid) + of_address).ok()?;
        let IpAddr::V4(address) = self.addresses().last else { return None };
        rule.address(address, psid)
    }
}

/// An IPv4 address; the request has been checked.
pub fn four(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(four) => four,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}
