// SPDX-License-Identifier: Apache-2.0
//! The versions of IP.
#![allow(missing_docs, reason = "where a name says all, its schema has no description either")]

use schemars::JsonSchema;
use serde::Deserialize;

/// The IP version of a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    /// Octets of the IP header.
    pub fn header_octets(self) -> u32 {
        match self {
            Self::Ipv4 => 20,
            Self::Ipv6 => 40,
        }
    }
}
