// SPDX-License-Identifier: Apache-2.0
//! Reading a trial request: its shape, then each field, then the rules between fields.

use super::document::{check_shape, document, typed};
use super::model::{Request, VERSION};
use super::{beyond, rules};
use crate::failure::Outcome;

/// Read a request and check every rule that needs no interface.
pub fn parse(text: &[u8]) -> Outcome<Request> {
    check_shape("", &document(text, "trial request", VERSION)?)?;
    let request = typed(text)?;
    check(&request)?;
    Ok(request)
}

/// The rules between fields.
pub fn check(request: &Request) -> Outcome<()> {
    rules::check(request)?;
    beyond::check(request)
}
