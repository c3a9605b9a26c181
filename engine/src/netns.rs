// SPDX-License-Identifier: Apache-2.0
//! Being in a network namespace for as long as something is done there.

use std::fs::File;

use nix::sched::{setns, unshare, CloneFlags};

use crate::failure::{Failure, Outcome};

fn open(path: &str) -> std::io::Result<File> {
    File::open(path)
}

fn own() -> Outcome<File> {
    open("/proc/thread-self/ns/net").map_err(|error| Failure::Host(format!("own network namespace: {error}")))
}

/// Run `work` inside the namespace (a name below /run/netns; None = where we are) and come back.
pub fn within<T>(netns: Option<&str>, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let Some(name) = netns else { return work() };
    let home = own()?;
    let target = open(&format!("/run/netns/{name}"))
        .map_err(|error| Failure::field("netns", name, &format!("no such namespace ({error}); see: ip netns list")))?;
    enter(&target, name)?;
    let outcome = work();
    enter(&home, "the first one")?;
    outcome
}

/// Run `work` in a namespace of its own, which lives as long as the returned file: no name, nothing to clean up.
pub fn private<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(T, File)> {
    let home = own()?;
    unshare(CloneFlags::CLONE_NEWNET)
        .map_err(|error| Failure::Host(format!("a network namespace cannot be made ({error}): run as root")))?;
    let made = own();
    let outcome = work();
    enter(&home, "the first one")?;
    Ok((outcome?, made?))
}

fn enter(target: &File, name: &str) -> Outcome<()> {
    setns(target, CloneFlags::CLONE_NEWNET)
        .map_err(|error| Failure::Host(format!("netns {name}: cannot be entered ({error}): run as root")))
}
