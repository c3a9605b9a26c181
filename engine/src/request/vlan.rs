// SPDX-License-Identifier: Apache-2.0
//! VLAN tags of a side's frames (IEEE 802.1Q), as text: "100", behind a service tag "9.100", or one for each source
//! address "100+".

use std::borrow::Cow;
use std::fmt;

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::engine_rule_texts::VLAN;

/// VLANs 0 and 4095 are reserved.
pub(super) const LAST_VLAN: u16 = 4094;
/// EtherTypes of a tag, and of one of a service provider (IEEE 802.1ad).
const CUSTOMER: u32 = 0x8100;
const SERVICE: u32 = 0x88a8;
const TAG_OCTETS: u32 = 4;

/// The VLAN of a side's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vlan {
    /// Of the tag next to the packet.
    pub id: u16,
    /// Of a second tag before it; None: there is none.
    pub service: Option<u16>,
    /// Whether each source address has a VLAN of its own: `id` is that of the first, and the others follow.
    pub each_source: bool,
}

impl Vlan {
    fn read(text: &str) -> Option<Self> {
        let number = |text: &str| {
            let plain = text.bytes().all(|digit| digit.is_ascii_digit()) && !text.starts_with('0');
            text.parse().ok().filter(|id| plain && (1..=LAST_VLAN).contains(id))
        };
        let (tags, each_source) = text.strip_suffix('+').map_or((text, false), |tags| (tags, true));
        let (service, id) = match tags.split_once('.') {
            Some((service, id)) => (Some(number(service)?), number(id)?),
            None => (None, number(tags)?),
        };
        Some(Self { id, service, each_source })
    }

    /// EtherType and VLAN of each tag, as one number each; the outermost first.
    pub fn tags(self) -> Vec<u32> {
        let service = self.service.map(|service| SERVICE << 16 | u32::from(service));
        service.into_iter().chain([CUSTOMER << 16 | u32::from(self.id)]).collect()
    }

    /// Octets of all tags.
    pub fn octets(self) -> u32 {
        self.tags().len() as u32 * TAG_OCTETS
    }

    /// The tags as in a frame.
    pub fn in_frame(self) -> Vec<u8> {
        self.tags().into_iter().flat_map(u32::to_be_bytes).collect()
    }

    /// The tags of the source address at this position, where each has its own.
    pub fn of(self, position: u64) -> Self {
        let further = if self.each_source { position as u16 } else { 0 };
        Self { id: self.id + further, ..self }
    }
}

impl fmt::Display for Vlan {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.service.map_or(Ok(()), |service| write!(to, "{service}."))?;
        write!(to, "{}", self.id)
    }
}

impl<'de> Deserialize<'de> for Vlan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::read(&text).ok_or_else(|| D::Error::custom(format!("{text}: {VLAN}")))
    }
}

impl JsonSchema for Vlan {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "vlan".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vlan_is_one_number_or_two_and_perhaps_the_first_of_several() {
        let vlan = |service, id, each_source| Some(Vlan { id, service, each_source });
        assert_eq!(Vlan::read("100"), vlan(None, 100, false));
        assert_eq!(Vlan::read("9.4094"), vlan(Some(9), 4094, false));
        assert_eq!(Vlan::read("9.100+"), vlan(Some(9), 100, true));
        for wrong in ["", "0", "4095", "-1", "1.2.3", "1.", ".1", "+", "1+2", "1 ", "0.1", "1++", "+1", "9.+1", "0100"]
        {
            assert_eq!(Vlan::read(wrong), None, "{wrong}");
        }
        assert_eq!(Vlan { id: 7, service: Some(9), each_source: false }.in_frame(), [0x88, 0xa8, 0, 9, 0x81, 0, 0, 7]);
    }
}
