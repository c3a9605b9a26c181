// SPDX-License-Identifier: Apache-2.0
//! The reference softwire: attaches the programs of `bpf/softwire.bpf.c` to an interface, reads their counts, detaches
//! them. They are not pinned, so they exist as long as the interface.

mod common;

use std::fs::File;
use std::mem::{offset_of, MaybeUninit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use common::{map_of, program, run, u64_at, unreadable, Failure, Outcome, Place};
use libbpf_rs::query::ProgramInfo;
use libbpf_rs::{MapCore, MapFlags, TcAttachPoint, TcHook, TcHookBuilder, TC_EGRESS, TC_INGRESS};
use natgauge_engine::softwire::sharing::{PortSets, RelayPrefix, Rule};
use natgauge_engine::softwire::types::softwire_counts;
use natgauge_engine::softwire::{Binding, Role, Softwire, Technology};

/// Name of the program for outgoing packets, as the kernel shows it (at most 15 characters).
const OUT: &str = "softwire_out";
/// MTU that every IPv6 link has (RFC 8200 section 5).
const LEAST_MTU: u32 = 1280;

/// A reference for comparison, and for testing customer edges: the stateless ends of MAP-E, MAP-T and lw4o6 on one
/// interface. IPv4 packets that the kernel routes to the interface leave as IPv6; IPv6 packets of a softwire arrive as
/// IPv4.
#[derive(Parser)]
#[command(version, arg_required_else_help = false)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Make an interface the end of softwires
    Attach {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        choice: Choice,
    },
    /// Print the counts since then, one line "name frames" each
    Read {
        #[command(flatten)]
        place: Place,
    },
    /// Detach the programs from the interface
    Detach {
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Args)]
struct Choice {
    /// How IPv4 is carried over IPv6
    #[arg(long)]
    technology: Name,
    /// Which end: the provider's (br, also an lwAFTR) or the customer's (ce, also the tunnel of an lwB4)
    #[arg(long)]
    role: Side,
    /// The BR's or lwAFTR's address; MAP-T: the BR's prefix, of 32 to 64 or 96 bits
    #[arg(long)]
    relay: String,
    /// MAP: rule IPv6 prefix, rule IPv4 prefix and length of the embedded address bits, e.g.
    /// 2001:db8::/40,192.0.2.0/24,16
    #[arg(long)]
    rule: Option<String>,
    /// lw4o6: file with the binding table, one line "IPv4-address PSID IPv6-address" each
    #[arg(long)]
    bindings: Option<PathBuf>,
    /// Length of the PSID, 0 to 16 bits
    #[arg(long)]
    psid_length: u8,
    /// Number of a port's bits before the PSID, 0 to 15
    #[arg(long, default_value_t = 6)]
    psid_offset: u8,
}

#[derive(Clone, Copy, ValueEnum)]
enum Name {
    MapE,
    MapT,
    Lw4o6,
}

#[derive(Clone, Copy, ValueEnum)]
enum Side {
    Br,
    Ce,
}

fn main() -> ExitCode {
    run(|arguments: Arguments| match arguments.verb {
        Verb::Attach { place, choice } => attach(&place, &choice),
        Verb::Read { place } => read(&place),
        Verb::Detach { place } => detach(&place),
    })
}

impl Choice {
    fn softwire(&self, most_octets: u32) -> Outcome<Softwire> {
        let role = match self.role {
            Side::Br => Role::BorderRelay,
            Side::Ce => Role::CustomerEdge,
        };
        let sets = PortSets::new(self.psid_offset, self.psid_length).map_err(Failure::Request)?;
        let technology = match self.technology {
            Name::MapE => Technology::MapE(self.mapping_rule(sets)?, self.relay_address()?),
            Name::MapT => Technology::MapT(self.mapping_rule(sets)?, self.relay_prefix()?),
            Name::Lw4o6 => Technology::Lw4o6(sets, self.relay_address()?, self.binding_table(sets)?),
        };
        Ok(Softwire { technology, role, most_octets })
    }

    fn mapping_rule(&self, sets: PortSets) -> Outcome<Rule> {
        if self.bindings.is_some() {
            return Err(Failure::Request("--bindings: only for lw4o6; MAP needs --rule".into()));
        }
        let text = self.rule.as_deref().ok_or_else(|| Failure::Request("--rule: required for MAP".into()))?;
        let wrong = |why: String| Failure::Request(format!("--rule {text}: {why}"));
        let parts: Vec<_> = text.split(',').map(str::trim).collect();
        let [prefix6, prefix4, bits] = parts[..] else {
            return Err(wrong("write IPv6-prefix,IPv4-prefix,bits".into()));
        };
        let (IpAddr::V6(six), length6) = prefix(prefix6).map_err(wrong)? else {
            return Err(wrong(format!("{prefix6} is not an IPv6 prefix")));
        };
        let (IpAddr::V4(four), length4) = prefix(prefix4).map_err(wrong)? else {
            return Err(wrong(format!("{prefix4} is not an IPv4 prefix")));
        };
        let bits = bits.parse().map_err(|_| wrong(format!("{bits} is not a number of bits")))?;
        let rule = Rule::new((six, length6), (four, length4), bits, sets).map_err(wrong)?;
        if bits == 0 && sets.length() > 0 {
            return Err(wrong(
                "without embedded bits port sets have no different addresses; use lw4o6 with --bindings".into(),
            ));
        }
        Ok(rule)
    }

    fn relay_address(&self) -> Outcome<Ipv6Addr> {
        let relay = &self.relay;
        relay.parse().map_err(|_| Failure::Request(format!("--relay {relay}: is not an IPv6 address")))
    }

    fn relay_prefix(&self) -> Outcome<RelayPrefix> {
        let wrong = |why: String| Failure::Request(format!("--relay {}: {why}", self.relay));
        let (IpAddr::V6(address), length) = prefix(&self.relay).map_err(wrong)? else {
            return Err(wrong("is not an IPv6 prefix".into()));
        };
        RelayPrefix::new(address, length).map_err(wrong)
    }

    fn binding_table(&self, sets: PortSets) -> Outcome<Vec<Binding>> {
        if self.rule.is_some() {
            return Err(Failure::Request("--rule: only for MAP; lw4o6 needs --bindings".into()));
        }
        let path = self.bindings.as_deref().ok_or_else(|| Failure::Request("--bindings: required for lw4o6".into()))?;
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::Request(format!("--bindings {}: {error}", path.display())))?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines.map(|(index, line)| binding(path, index + 1, line, sets)).collect()
    }
}

/// "ADDRESS/BITS".
fn prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let parsed = text.split_once('/').and_then(|(address, bits)| Some((address.parse().ok()?, bits.parse().ok()?)));
    parsed.ok_or_else(|| format!("{text} is not a prefix; write ADDRESS/BITS"))
}

fn binding(path: &Path, number: usize, line: &str, sets: PortSets) -> Outcome<Binding> {
    let wrong = |why: &str| Failure::Request(format!("{} line {number}: {line:?}: {why}", path.display()));
    let words: Vec<_> = line.split_whitespace().collect();
    let [address, psid, softwire] = words[..] else {
        return Err(wrong("write IPv4-address PSID IPv6-address"));
    };
    let address: Ipv4Addr = address.parse().map_err(|_| wrong("the first word is not an IPv4 address"))?;
    let psid: u16 = psid.parse().map_err(|_| wrong("the second word is not a PSID"))?;
    let softwire = softwire.parse().map_err(|_| wrong("the third word is not an IPv6 address"))?;
    if u32::from(psid) >= sets.count() {
        return Err(wrong(&format!("PSIDs of {} bits are 0 to {}", sets.length(), sets.count() - 1)));
    }
    Ok(Binding { address, psid, softwire })
}

fn attach(place: &Place, choice: &Choice) -> Outcome<()> {
    // Refuse wrong options before the interface is accessed.
    choice.softwire(LEAST_MTU)?;
    let index = place.enter()?;
    if attached(index, TC_EGRESS)?.is_some() {
        return Err(Failure::Request(format!(
            "interface {}: is the end of a softwire already; detach it first",
            place.interface
        )));
    }
    let mut storage = MaybeUninit::uninit();
    let skeleton = choice.softwire(mtu(&place.interface)?)?.load(&mut storage)?;
    let programs = [(TC_INGRESS, skeleton.progs.softwire_in.as_fd()), (TC_EGRESS, skeleton.progs.softwire_out.as_fd())];
    for (point, program) in programs {
        let mut hook = hook(program, index, point);
        hook.create().and_then(|mut hook| hook.attach()).map_err(|error| {
            Failure::Host(format!("interface {}: does not accept a BPF program ({error:#})", place.interface))
        })?;
    }
    Ok(())
}

fn hook(program: std::os::fd::BorrowedFd<'_>, index: i32, point: TcAttachPoint) -> TcHook {
    TcHookBuilder::new(program).ifindex(index).handle(1).priority(1).hook(point)
}

/// The interface's IPv6 MTU.
fn mtu(interface: &str) -> Outcome<u32> {
    let path = format!("/proc/sys/net/ipv6/conf/{interface}/mtu");
    let text = std::fs::read_to_string(&path).map_err(|error| Failure::Host(format!("{path}: {error}")))?;
    text.trim().parse().map_err(|_| Failure::Host(format!("{path}: contains {:?}, which is no number", text.trim())))
}

/// The program at this point of an interface.
fn attached(index: i32, point: TcAttachPoint) -> Outcome<Option<ProgramInfo>> {
    // The query uses no program, but its builder requires a descriptor.
    let nothing = File::open("/dev/null").map_err(|error| Failure::Host(format!("/dev/null: {error}")))?;
    match hook(nothing.as_fd(), index, point).query() {
        Ok(id) => program(id).map(Some),
        Err(_) => Ok(None),
    }
}

fn attached_softwire(place: &Place, index: i32) -> Outcome<ProgramInfo> {
    match attached(index, TC_EGRESS)? {
        Some(program) if program.name == OUT => Ok(program),
        Some(other) => Err(Failure::Request(format!(
            "interface {}: its program is {}, not {OUT}",
            place.interface,
            other.name.to_string_lossy()
        ))),
        None => Err(Failure::Request(format!(
            "interface {}: is not the end of a softwire; attach one first",
            place.interface
        ))),
    }
}

/// Names of the counts, and their offsets in struct softwire_counts.
const COUNTS: [(&str, usize); 11] = [
    ("wrapped", offset_of!(softwire_counts, wrapped)),
    ("unwrapped", offset_of!(softwire_counts, unwrapped)),
    ("wrong_port_set", offset_of!(softwire_counts, wrong_port_set)),
    ("no_subscriber", offset_of!(softwire_counts, no_subscriber)),
    ("wrong_relay", offset_of!(softwire_counts, wrong_relay)),
    ("fragment", offset_of!(softwire_counts, fragment)),
    ("protocol", offset_of!(softwire_counts, protocol)),
    ("no_checksum", offset_of!(softwire_counts, no_checksum)),
    ("too_big", offset_of!(softwire_counts, too_big)),
    ("malformed", offset_of!(softwire_counts, malformed)),
    ("failed", offset_of!(softwire_counts, failed)),
];

fn read(place: &Place) -> Outcome<()> {
    let index = place.enter()?;
    let counts = map_of(&attached_softwire(place, index)?, "softwire_counts")?;
    let shares = counts.lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY).map_err(unreadable)?.unwrap_or_default();
    for (name, offset) in COUNTS {
        let sum = shares.iter().map(|share| u64_at(share, offset)).sum::<Outcome<u64>>()?;
        println!("{name} {sum}");
    }
    Ok(())
}

fn detach(place: &Place) -> Outcome<()> {
    let index = place.enter()?;
    attached_softwire(place, index)?;
    let nothing = File::open("/dev/null").map_err(|error| Failure::Host(format!("/dev/null: {error}")))?;
    // The queueing discipline of both programs was made by `attach`.
    hook(nothing.as_fd(), index, TC_INGRESS | TC_EGRESS).destroy().map_err(|error| {
        Failure::Broke(format!("interface {}: the softwire cannot be detached ({error:#})", place.interface))
    })
}
