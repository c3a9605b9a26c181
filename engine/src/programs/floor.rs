// SPDX-License-Identifier: Apache-2.0
//! The redirect floor, which replaces generator and receivers on the same ports and the same core.

use std::fs::File;

use libbpf_rs::Link;

use super::Programs;
use crate::failure::{Failure, Outcome};
use crate::netns;
use crate::shared::SIDES;

const LOOPBACK: i32 = 1;

/// Programs attached to idle devices. Whenever a program is attached to its first device or detached from its last, the
/// kernel rebuilds its dispatcher, which takes 20 ms.
pub struct KeptAttached {
    _programs: Vec<(Link, File)>,
}

impl Programs<'_> {
    /// Attach all programs to idle devices, so that changing the receivers takes microseconds.
    pub fn keep_attached(&self) -> Outcome<KeptAttached> {
        let attach = |program: &libbpf_rs::ProgramMut| {
            netns::in_new(|| program.attach_xdp(LOOPBACK).map_err(|error| Failure::Host(format!("floor: {error:#}"))))
        };
        let programs = &self.skel.progs;
        let mut kept = vec![attach(&programs.redirect_only)?, attach(&programs.receive_nothing)?];
        for program in super::receivers(programs, self.transport) {
            kept.push(attach(program)?);
        }
        Ok(KeptAttached { _programs: kept })
    }

    /// Replace the receivers; frames are then sent alternately from `sides`. Accepted frames are not counted meanwhile.
    pub fn switch_to_floor(&mut self, sides: [bool; SIDES]) -> Outcome<()> {
        self.control.redirect_from(sides);
        self.control.count_offered_on([0; SIDES]);
        for link in &mut self.receiving {
            link.update_prog(&self.skel.progs.receive_nothing).map_err(|error| change_failure(&error))?;
        }
        Ok(())
    }

    /// Put the receivers back.
    pub fn switch_to_receivers(&mut self, ifindex: [u32; SIDES]) -> Outcome<()> {
        for (link, receiver) in self.receiving.iter_mut().zip(super::receivers(&self.skel.progs, self.transport)) {
            link.update_prog(receiver).map_err(|error| change_failure(&error))?;
        }
        self.control.count_offered_on(ifindex);
        Ok(())
    }
}

fn change_failure(error: &libbpf_rs::Error) -> Failure {
    Failure::Broke(format!("floor: receivers cannot be changed: {error:#}"))
}
