// SPDX-License-Identifier: Apache-2.0
//! Why there is no result: four kinds, told apart by the exit status.

use std::fmt;

/// One line for the user, with the exit status of its kind.
#[derive(Debug)]
pub enum Failure {
    /// The request is wrong (2): field, value, rule.
    Request(String),
    /// This host cannot do it (3).
    Host(String),
    /// It broke on the way (4).
    Broke(String),
    /// No frame can be sent (5): a port is down or has no carrier, or the gateway behind it does not answer.
    Unreachable(String),
}

impl Failure {
    /// What the process exits with.
    pub fn status(&self) -> u8 {
        match self {
            Self::Request(_) => 2,
            Self::Host(_) => 3,
            Self::Broke(_) => 4,
            Self::Unreachable(_) => 5,
        }
    }

    /// A field of the request that breaks a rule.
    pub fn field(name: &str, value: impl fmt::Display, rule: &str) -> Self {
        Self::Request(format!("{name}: {value}: {rule}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Request(text) | Self::Host(text) | Self::Broke(text) | Self::Unreachable(text)) = self;
        // One line whatever a library said.
        f.write_str(&text.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// Shorthand of this crate.
pub type Outcome<T> = Result<T, Failure>;
