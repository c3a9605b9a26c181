// SPDX-License-Identifier: Apache-2.0
//! Reads the JSON text of a request into typed fields and checks their bounds.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::{Failure, Outcome};

/// Largest size of a request, octets; valid requests have about 2,000.
pub const LONGEST: usize = 1 << 20;
/// Fields that hold lists. In place of any object serde would also accept a list of its fields.
const LISTS: [&str; 2] = ["senders.cpus", "watch_cpus"];

/// Any JSON of this version, as a value.
pub fn document(text: &[u8], what: &str, version: u64) -> Outcome<Value> {
    if text.len() > LONGEST {
        return Err(Failure::Request(format!("request: longer than {LONGEST} octets: send one JSON object")));
    }
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| Failure::Request(format!("request: not a valid {what}: {error}")))?;
    match value.get("version").filter(|found| found.as_f64() != Some(version as f64)) {
        Some(found) => Err(Failure::field("version", found, &format!("this engine reads version {version}"))),
        None => Ok(value),
    }
}

/// Fields with their types and bounds checked.
pub fn typed<T: DeserializeOwned>(text: &[u8]) -> Outcome<T> {
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(text)).map_err(|error| explain(&error))
}

/// Refuse null, and lists in place of objects.
pub fn check_shape(path: &str, value: &Value) -> Outcome<()> {
    match value {
        Value::Null => Err(Failure::field(field_name(path), "null", "leave the field out instead")),
        Value::Array(_) if !LISTS.contains(&path) => {
            Err(Failure::field(field_name(path), "a list", "must be an object: give its fields by name"))
        }
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| match path {
            "" => check_shape(name, value),
            _ => check_shape(&format!("{path}.{name}"), value),
        }),
        _ => Ok(()),
    }
}

/// The field and serde's message, without line and column.
fn explain(error: &serde_path_to_error::Error<serde_json::Error>) -> Failure {
    let (path, error) = (error.path().to_string(), error.inner());
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = message.strip_suffix(&place).unwrap_or(&message);
    Failure::Request(format!("{}: {message}", field_name(path.trim_start_matches('.'))))
}

fn field_name(path: &str) -> &str {
    if path.is_empty() {
        "request"
    } else {
        path
    }
}
