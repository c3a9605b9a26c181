// SPDX-License-Identifier: Apache-2.0
//! The redirect floor in the place of generator and receivers: same ports, same core.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use libbpf_rs::Link;

use super::Programs;
use crate::failure::{Failure, Outcome};
use crate::netns;
use crate::shared::{INITIATOR, SIDES};

const LOOPBACK: i32 = 1;

/// Programs held on idle devices: the kernel rebuilds its dispatcher, for 20 ms, whenever one is attached to its first
/// device or taken from its last.
pub struct Held {
    _programs: Vec<(Link, File)>,
}

impl Programs<'_> {
    /// So that changing the receivers takes microseconds.
    pub fn hold_floor(&mut self) -> Outcome<Held> {
        let programs = &mut self.skel.progs;
        let all = [
            &mut programs.redirect_only,
            &mut programs.receive_nothing,
            &mut programs.receive_initiator,
            &mut programs.receive_responder,
        ];
        let hold = |program: &mut libbpf_rs::ProgramMut| {
            netns::private(|| program.attach_xdp(LOOPBACK).map_err(|error| Failure::Host(format!("floor: {error:#}"))))
        };
        Ok(Held { _programs: all.into_iter().map(hold).collect::<Outcome<_>>()? })
    }

    /// The floor takes the ports over: frames from these sides in turn. Nobody counts what the ports accept meanwhile.
    pub fn lay_floor(&mut self, sides: [bool; SIDES]) -> Outcome<()> {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            bss.aim.both = u32::from(sides == [true; SIDES]);
            bss.aim.first = u32::from(!sides[INITIATOR]);
            bss.aim.turn = 0;
        }
        self.control.watch([0; SIDES]);
        for link in &mut self.receiving {
            link.update_prog(&self.skel.progs.receive_nothing).map_err(|error| changing(&error))?;
        }
        Ok(())
    }

    /// The receivers have their ports back.
    pub fn lift_floor(&mut self, ifindex: [u32; SIDES]) -> Outcome<()> {
        let receivers = [&self.skel.progs.receive_initiator, &self.skel.progs.receive_responder];
        for (link, receiver) in self.receiving.iter_mut().zip(receivers) {
            link.update_prog(receiver).map_err(|error| changing(&error))?;
        }
        self.control.watch(ifindex);
        Ok(())
    }

    /// Descriptor of the program that only redirects.
    pub fn redirector(&self) -> RawFd {
        self.skel.progs.redirect_only.as_fd().as_raw_fd()
    }
}

fn changing(error: &libbpf_rs::Error) -> Failure {
    Failure::Broke(format!("floor: receivers cannot be changed: {error:#}"))
}
