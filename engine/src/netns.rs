// SPDX-License-Identifier: Apache-2.0
//! Running work in another network namespace.

use std::fs::File;

use nix::sched::{setns, unshare, CloneFlags};

use crate::failure::{Failure, Outcome};

fn open(path: &str) -> std::io::Result<File> {
    File::open(path)
}

fn current() -> Outcome<File> {
    open("/proc/thread-self/ns/net").map_err(|error| Failure::Host(format!("current network namespace: {error}")))
}

/// Run `work` in the namespace (a name below /run/netns; None = the current one) and return to the current one.
pub fn within<T>(netns: Option<&str>, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let Some(name) = netns else { return work() };
    let previous = current()?;
    let target = open(&format!("/run/netns/{name}"))
        .map_err(|error| Failure::field("netns", name, &format!("no such namespace ({error}); see: ip netns list")))?;
    enter(&target, name)?;
    let outcome = work();
    enter(&previous, "the engine's current")?;
    outcome
}

/// Run `work` in a new namespace without a name, which exists as long as the returned file.
pub fn in_new<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(T, File)> {
    let previous = current()?;
    unshare(CloneFlags::CLONE_NEWNET)
        .map_err(|error| Failure::Host(format!("a network namespace cannot be made ({error}): run as root")))?;
    let made = current();
    let outcome = work();
    enter(&previous, "the engine's current")?;
    Ok((outcome?, made?))
}

fn enter(target: &File, name: &str) -> Outcome<()> {
    setns(target, CloneFlags::CLONE_NEWNET)
        .map_err(|error| Failure::Host(format!("netns {name}: cannot be entered ({error}): run as root")))
}
