// SPDX-License-Identifier: Apache-2.0
//! Mixes of frame sizes (RFC 6985 names such mixes), as text: "64:7,594:4,1518:1".

use std::borrow::Cow;

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::engine_rule_texts::MIX;
use crate::shared::MOST_SIZES;

/// The most frames after which a mix has each of its sizes as often as its weights say.
const MOST_WEIGHT: u32 = 1000;

/// Sizes in octets with FCS, and their weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeMix(pub Vec<(u32, u32)>);

impl SizeMix {
    /// Sum of the weights.
    pub fn weight(&self) -> u32 {
        self.0.iter().map(|(_, weight)| weight).sum()
    }

    fn read(text: &str) -> Option<Self> {
        let one = |part: &str| {
            let (size, weight) = part.split_once(':')?;
            Some((size.parse().ok()?, weight.parse().ok().filter(|weight| (1..=MOST_WEIGHT).contains(weight))?))
        };
        let sizes = text.split(',').map(one).collect::<Option<Vec<(u32, u32)>>>()?;
        let twice = sizes.iter().enumerate().any(|(at, (size, _))| sizes[..at].iter().any(|(other, _)| other == size));
        let mix = Self(sizes);
        (!twice && mix.0.len() <= MOST_SIZES && mix.weight() <= MOST_WEIGHT).then_some(mix)
    }
}

impl<'de> Deserialize<'de> for SizeMix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::read(&text).ok_or_else(|| D::Error::custom(format!("{text}: {MIX}")))
    }
}

impl JsonSchema for SizeMix {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "sizes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_sizes_with_weights_each_once() {
        assert_eq!(SizeMix::read("64:7,1518:1"), Some(SizeMix(vec![(64, 7), (1518, 1)])));
        for wrong in ["", "64", "64:0", "64:-1", "64:1.5", "64:1,64:2", "64:1,", "64:500,65:501", "64:1 ,65:1"] {
            assert_eq!(SizeMix::read(wrong), None, "{wrong}");
        }
        let many = |number: u32| (64..64 + number).map(|size| format!("{size}:1")).collect::<Vec<_>>().join(",");
        assert!(SizeMix::read(&many(MOST_SIZES as u32)).is_some());
        assert!(SizeMix::read(&many(MOST_SIZES as u32 + 1)).is_none());
    }
}
