// SPDX-License-Identifier: Apache-2.0
//! Reads a trial request: checks its structure, then each field, then the rules between fields.

use super::document::{check_shape, document, typed};
use super::model::{Request, VERSION};
use super::{engine_rules, schema_rules};
use crate::failure::Outcome;

/// Read a request and check all rules that need no interface.
pub fn parse(text: &[u8]) -> Outcome<Request> {
    check_shape("", &document(text, "trial request", VERSION)?)?;
    let request = typed(text)?;
    check(&request)?;
    Ok(request)
}

/// The rules between fields.
pub fn check(request: &Request) -> Outcome<()> {
    schema_rules::check(request)?;
    engine_rules::check(request)
}
