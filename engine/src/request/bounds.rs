// SPDX-License-Identifier: Apache-2.0
//! Bounds of single fields. `#[serde(with = "Whole::<64, 3412>")]` on a field makes serde refuse other values, and makes
//! schemars write the bounds into the schema.

use std::borrow::Cow;
use std::net::IpAddr;

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;

use super::engine_rule_texts;

/// CPU numbers are below this (`NR_CPUS` of the largest Linux configuration).
pub const MOST_CPUS: usize = 8192;

/// For schemars, which serializes a field's default with the field's own serializer.
macro_rules! serialize_unchanged {
    () => {
        pub fn serialize<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
            value.serialize(serializer)
        }
    };
}

/// The schema of a bound, inside the field's schema.
macro_rules! schema_in_place {
    ($schema:expr) => {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            "bounded".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            $schema
        }
    };
}

/// A whole number; 5.0 is valid, as in JSON schema.
pub struct Whole<const LEAST: u64, const MOST: u64>;

impl<const LEAST: u64, const MOST: u64> Whole<LEAST, MOST> {
    pub fn holds(value: u64) -> bool {
        (LEAST..=MOST).contains(&value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<T, D::Error> {
        let number = Number::deserialize(deserializer)?;
        let whole = number.as_u64().or_else(|| number.as_f64().and_then(whole));
        let inside = whole.filter(|&value| Self::holds(value));
        let refusal = || D::Error::custom(format!("{number}: must be a whole number from {LEAST} to {MOST}"));
        inside.and_then(|value| T::try_from(value).ok()).ok_or_else(refusal)
    }

    serialize_unchanged!();
}

fn whole(value: f64) -> Option<u64> {
    let fits = value.fract() == 0.0 && (0.0..u64::MAX as f64).contains(&value);
    fits.then_some(value as u64)
}

impl<const LEAST: u64, const MOST: u64> JsonSchema for Whole<LEAST, MOST> {
    schema_in_place!(if LEAST == MOST {
        json_schema!({"const": MOST})
    } else {
        json_schema!({"type": "integer", "minimum": LEAST, "maximum": MOST})
    });
}

/// A number above 0.
pub struct Positive<const MOST: u64>;

const HIGHEST_RATE: u64 = 200_000_000;

/// A trial's rate, frames/s.
pub type Rate = Positive<HIGHEST_RATE>;

impl<const MOST: u64> Positive<MOST> {
    pub fn holds(value: f64) -> bool {
        value > 0.0 && value <= MOST as f64
    }

    pub fn deserialize<'de, D: Deserializer<'de>, T: From<f64>>(deserializer: D) -> Result<T, D::Error> {
        let number = Number::deserialize(deserializer)?;
        let inside = number.as_f64().filter(|&value| Self::holds(value));
        inside.map(T::from).ok_or_else(|| D::Error::custom(format!("{number}: must be above 0 and at most {MOST}")))
    }

    serialize_unchanged!();
}

impl<const MOST: u64> JsonSchema for Positive<MOST> {
    schema_in_place!(json_schema!({"type": "number", "exclusiveMinimum": 0, "maximum": MOST}));
}

/// Text with a least and a largest number of characters.
pub struct Text<const LEAST: usize, const MOST: usize>;

impl<const LEAST: usize, const MOST: usize> Text<LEAST, MOST> {
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
        let text = String::deserialize(deserializer)?;
        if !(LEAST..=MOST).contains(&text.chars().count()) {
            return Err(D::Error::custom(format!("{text}: must be {LEAST} to {MOST} characters long")));
        }
        Ok(text)
    }
}

impl<const LEAST: usize, const MOST: usize> JsonSchema for Text<LEAST, MOST> {
    schema_in_place!(json_schema!({"type": "string", "minLength": LEAST, "maxLength": MOST}));
}

/// CPU numbers without repetition.
pub struct Cpus<const LEAST: usize, const MOST: usize>;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct Cpu(#[serde(with = "Whole::<0, { MOST_CPUS as u64 - 1 }>")] usize);

impl<const LEAST: usize, const MOST: usize> Cpus<LEAST, MOST> {
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<usize>, D::Error> {
        let cpus: Vec<usize> = Vec::<Cpu>::deserialize(deserializer)?.into_iter().map(|cpu| cpu.0).collect();
        if !(LEAST..=MOST).contains(&cpus.len()) {
            return Err(D::Error::custom(format!("{cpus:?}: must name {LEAST} to {MOST} CPUs")));
        }
        if let Some((_, twice)) = cpus.iter().enumerate().find(|(at, cpu)| cpus[..*at].contains(cpu)) {
            return Err(D::Error::custom(format!("{twice}: each CPU only once")));
        }
        Ok(cpus)
    }

    serialize_unchanged!();
}

impl<const LEAST: usize, const MOST: usize> JsonSchema for Cpus<LEAST, MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "cpus".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({
            "type": "array",
            "items": generator.subschema_for::<Cpu>(),
            "maxItems": MOST,
            "uniqueItems": true,
        });
        if LEAST > 0 {
            schema.insert("minItems".into(), LEAST.into());
        }
        schema
    }
}

/// An IP address; in the schema it is any text.
pub struct Address;

impl Address {
    pub fn deserialize<'de, D: Deserializer<'de>, T: From<IpAddr>>(deserializer: D) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        let address =
            text.parse::<IpAddr>().map_err(|_| D::Error::custom(format!("{text}: {}", engine_rule_texts::ADDRESS)))?;
        Ok(T::from(address))
    }

    serialize_unchanged!();
}

impl JsonSchema for Address {
    schema_in_place!(json_schema!({"type": "string"}));
}
