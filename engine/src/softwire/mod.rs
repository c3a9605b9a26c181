// SPDX-License-Identifier: Apache-2.0
//! The reference softwire: the ends of MAP-E, MAP-T and lw4o6, as two BPF programs on one interface. It is a device, not
//! part of the tester. `natgauge-softwire` and the frame tests load it.

pub mod sharing;

use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject};

use crate::failure::{Failure, Outcome};
use sharing::{PortSets, RelayPrefix, Rule};

/// Generated from `bpf/softwire.bpf.c`.
#[allow(warnings, clippy::all, clippy::restriction, reason = "generated")]
pub mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/softwire.skel.rs"));
}
pub use skeleton::types;
use skeleton::{SoftwireSkel, SoftwireSkelBuilder};

/// An entry of the binding table (RFC 7596 section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The shared IPv4 address.
    pub address: Ipv4Addr,
    /// The port set.
    pub psid: u16,
    /// The IPv6 address of its subscriber's tunnel.
    pub softwire: Ipv6Addr,
}

/// How IPv4 is carried over IPv6.
#[derive(Clone, Debug)]
pub enum Technology {
    /// RFC 7597, with the BR's address.
    MapE(Rule, Ipv6Addr),
    /// RFC 7599, with the BR's prefix.
    MapT(Rule, RelayPrefix),
    /// RFC 7596, with the lwAFTR's address.
    Lw4o6(PortSets, Ipv6Addr, Vec<Binding>),
}

/// Which end of the softwires this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The provider's: BR or lwAFTR.
    BorderRelay,
    /// The customer's: CE, or the tunnel of the lwB4.
    CustomerEdge,
}

/// One end of softwires.
#[derive(Clone, Debug)]
pub struct Softwire {
    /// How IPv4 is carried over IPv6.
    pub technology: Technology,
    /// Which end.
    pub role: Role,
    /// Octets of the largest IPv6 packet on the link.
    pub most_octets: u32,
}

impl Softwire {
    /// The programs' read-only data.
    fn plan(&self) -> types::softwire {
        let mut plan = types::softwire {
            edge: u32::from(self.role == Role::CustomerEdge),
            most_octets: self.most_octets,
            ..Default::default()
        };
        let sets = match &self.technology {
            Technology::MapE(rule, relay) => {
                plan.technology = types::technology::MAP_E;
                plan.relay = address6(*relay);
                put_rule(rule, &mut plan);
                rule.sets()
            }
            Technology::MapT(rule, relay) => {
                plan.technology = types::technology::MAP_T;
                plan.relay = address6(relay.prefix());
                plan.relay_length = relay.length();
                put_rule(rule, &mut plan);
                rule.sets()
            }
            Technology::Lw4o6(sets, relay, _) => {
                plan.technology = types::technology::LW4O6;
                plan.relay = address6(*relay);
                *sets
            }
        };
        plan.psid_offset = sets.offset();
        plan.psid_length = sets.length();
        plan
    }

    /// Load the programs and fill the binding table.
    ///
    /// # Errors
    /// The kernel refuses the programs, or there is too little memory for the table.
    pub fn load<'a>(&self, storage: &'a mut MaybeUninit<OpenObject>) -> Outcome<SoftwireSkel<'a>> {
        let refused = |error: libbpf_rs::Error| {
            Failure::Host(format!(
                "the softwire's BPF programs cannot be loaded ({error:#}); needs root and Linux 6.6 or newer"
            ))
        };
        let mut open = SoftwireSkelBuilder::default().open(storage).map_err(refused)?;
        let bindings = match &self.technology {
            Technology::Lw4o6(_, _, bindings) => bindings.as_slice(),
            _ => &[],
        };
        let entries = u32::try_from(bindings.len().max(1))
            .map_err(|_| Failure::Request(format!("{} bindings: at most {}", bindings.len(), u32::MAX)))?;
        open.maps.bindings.set_max_entries(entries).map_err(refused)?;
        let constants = open
            .maps
            .rodata_data
            .as_deref_mut()
            .ok_or_else(|| Failure::Broke("the softwire's programs have no constants".into()))?;
        constants.softwire = self.plan();
        let skeleton = open.load().map_err(refused)?;
        for binding in bindings {
            put_binding(&skeleton, binding)?;
        }
        Ok(skeleton)
    }
}

fn put_rule(rule: &Rule, plan: &mut types::softwire) {
    (plan.prefix4, plan.mask4) = rule.prefix4();
    (plan.ea_length, plan.ea_shift) = rule.embedded_bits();
    plan.prefix6 = rule.prefix6();
}

fn put_binding(skeleton: &SoftwireSkel<'_>, binding: &Binding) -> Outcome<()> {
    // struct binding_key and struct address of bpf/softwire.bpf.c, members in order and without gaps.
    let key = [binding.address.to_bits().to_ne_bytes(), u32::from(binding.psid).to_ne_bytes()].concat();
    let at = address6(binding.softwire);
    let value = [at.high.to_ne_bytes(), at.low.to_ne_bytes()].concat();
    skeleton.maps.bindings.update(&key, &value, MapFlags::NO_EXIST).map_err(|error| {
        if error.kind() == libbpf_rs::ErrorKind::AlreadyExists {
            return Failure::Request(format!("binding {} PSID {}: is there twice", binding.address, binding.psid));
        }
        Failure::Host(format!(
            "binding {} PSID {}: the kernel cannot store it ({error:#})",
            binding.address, binding.psid
        ))
    })
}

fn address6(address: Ipv6Addr) -> types::address {
    let whole = address.to_bits();
    let half = |bits: u128| u64::try_from(bits & u128::from(u64::MAX)).unwrap_or_default();
    types::address { high: half(whole >> 64), low: half(whole) }
}
