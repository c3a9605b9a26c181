// SPDX-License-Identifier: Apache-2.0
//! Failures: four kinds, distinguished by the exit status, each perhaps of one port.

use std::borrow::Cow;
use std::fmt;
use std::panic;
use std::process;

/// A message repeats no longer word of a value, in characters.
const LONGEST_WORD: usize = 200;
/// Characters that remain of a word that was cut.
const SHOWN: usize = 60;

/// A message of one line for the user.
#[derive(Debug)]
pub enum Failure {
    /// The request is wrong (exit status 2): field, value, rule.
    Request(String),
    /// This host cannot run the trial (3).
    Host(String),
    /// The trial was aborted or failed while running (4).
    Broke(String),
    /// No frame can be sent (5): a port is down or has no carrier, or the gateway behind it does not answer.
    Unreachable(String),
    /// A failure of one of the two ports, by its name, "initiator" or "responder".
    AtPort(&'static str, Box<Failure>),
}

impl Failure {
    /// The process's exit status.
    pub fn status(&self) -> u8 {
        match self {
            Self::Request(_) => 2,
            Self::Host(_) => 3,
            Self::Broke(_) => 4,
            Self::Unreachable(_) => 5,
            Self::AtPort(_, failure) => failure.status(),
        }
    }

    /// The same failure, of this port.
    pub fn at_port(self, name: &'static str) -> Self {
        match self {
            Self::AtPort(..) => self,
            other => Self::AtPort(name, Box::new(other)),
        }
    }

    /// The port that failed; None = no single one.
    pub fn port(&self) -> Option<&'static str> {
        match self {
            Self::AtPort(name, _) => Some(name),
            _ => None,
        }
    }

    /// The same failure with its text changed.
    pub fn reworded(self, text: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Request(message) => Self::Request(text(message)),
            Self::Host(message) => Self::Host(text(message)),
            Self::Broke(message) => Self::Broke(text(message)),
            Self::Unreachable(message) => Self::Unreachable(text(message)),
            Self::AtPort(name, failure) => Self::AtPort(name, Box::new(failure.reworded(text))),
        }
    }

    /// Refusal of a request's field that breaks a rule.
    pub fn field(name: &str, value: impl fmt::Display, rule: &str) -> Self {
        Self::Request(format!("{name}: {value}: {rule}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Request(text) | Self::Host(text) | Self::Broke(text) | Self::Unreachable(text) => text,
            Self::AtPort(_, failure) => return failure.fmt(f),
        };
        // Messages of libraries may have several lines.
        f.write_str(&text.split_whitespace().map(shortened).collect::<Vec<_>>().join(" "))
    }
}

/// A word, cut where it is longer than any value that is right; the cut word has its length behind it.
fn shortened(word: &str) -> Cow<'_, str> {
    let length = word.chars().count();
    if length <= LONGEST_WORD {
        return word.into();
    }
    let shown: String = word.chars().take(SHOWN).collect();
    format!("{shown}... ({length} characters)").into()
}

/// Result with this crate's failure.
pub type Outcome<T> = Result<T, Failure>;

/// From now on a panic of any thread ends the process (SIGABRT) after its message. Other threads would wait for that one.
///
/// The profile does not say so (`panic = "abort"`): tests would need every dependency compiled a second time.
pub fn abort_on_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |information| {
        report(information);
        process::abort();
    }));
}

#[cfg(test)]
#[allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::env;
    use std::os::unix::process::ExitStatusExt;
    use std::thread;

    const IN_CHILD: &str = "NATGAUGE_TEST_PANICS";

    #[test]
    fn a_panic_of_another_thread_ends_the_process() {
        if env::var_os(IN_CHILD).is_some() {
            abort_on_panic();
            let _ = thread::spawn(|| panic!("expected")).join();
            return;
        }
        let name = "failure::tests::a_panic_of_another_thread_ends_the_process";
        let mut child = process::Command::new(env::current_exe().unwrap());
        let ended = child.args(["--exact", name]).env(IN_CHILD, "1").output().unwrap();
        assert_eq!(ended.status.signal(), Some(libc::SIGABRT));
    }
}
