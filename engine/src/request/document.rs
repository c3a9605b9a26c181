// SPDX-License-Identifier: Apache-2.0
//! From the text of a request to typed fields within their bounds.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::{Failure, Outcome};

/// Most octets a request may have; a valid one has about 2 thousand.
pub const LONGEST: usize = 1 << 20;
/// The fields that hold a list. serde would take one for any object, its fields in their order.
const LISTS: [&str; 2] = ["senders.cpus", "watch_cpus"];

/// What was sent, whatever it is, if it is JSON of this version.
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

/// Every field in its type and bounds.
pub fn typed<T: DeserializeOwned>(text: &[u8]) -> Outcome<T> {
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(text)).map_err(|error| wrong(&error))
}

/// What no field may be: null, and a list in place of an object.
pub fn check_shape(path: &str, value: &Value) -> Outcome<()> {
    match value {
        Value::Null => Err(Failure::field(name(path), "null", "leave the field out instead")),
        Value::Array(_) if !LISTS.contains(&path) => {
            Err(Failure::field(name(path), "a list", "must be an object: give its fields by name"))
        }
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| match path {
            "" => check_shape(name, value),
            _ => check_shape(&format!("{path}.{name}"), value),
        }),
        _ => Ok(()),
    }
}

/// The field, then what serde says of it, without the place in a text that has no lines.
fn wrong(error: &serde_path_to_error::Error<serde_json::Error>) -> Failure {
    let (path, error) = (error.path().to_string(), error.inner());
    let said = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let said = said.strip_suffix(&place).unwrap_or(&said);
    Failure::Request(format!("{}: {said}", name(path.trim_start_matches('.'))))
}

fn name(path: &str) -> &str {
    if path.is_empty() {
        "request"
    } else {
        path
    }
}
