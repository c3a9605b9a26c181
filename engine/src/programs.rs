// SPDX-License-Identifier: Apache-2.0
//! The frame programs in the kernel: loaded for one trial and attached by links that end with this process.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::ptr;

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{AsRawLibbpf, Link, MapCore, MapFlags, OpenObject, ProgramMut};

use crate::failure::{Failure, Outcome};
use crate::port::{why_not_attached, Port};
use crate::report::SourceCounts;
use crate::request::Request;
use crate::shared::{BOTH, DELAY_BUCKETS, INITIATOR, MAX_SENDERS, MOST_STALLS, PHASE2, SIDES, SIGNS, STREAMS};
use crate::table::Table;
use crate::tester::{types, OpenTesterSkel, TesterProgs, TesterSkel, TesterSkelBuilder};
use crate::transport::Transport;
use crate::{connections, neighbour, netns, sources};

mod choice;
mod constants;
pub mod floor;
mod instructions;
mod received;
mod window;

use choice::Choice;
use constants::Constants;
pub use received::{total_odd, Received};
pub use window::Window;

/// The programs' shared memory, read and written while they run.
#[derive(Clone, Copy)]
pub struct Control(*mut types::control);

// SAFETY: the pointer leads into a mapping that lives as long as the process, and is used by volatile accesses of
// single aligned words only.
unsafe impl Send for Control {}
// SAFETY: as above.
unsafe impl Sync for Control {}

impl Control {
    /// Tell every sender to stop.
    pub fn stop(self) {
        // SAFETY: see Send.
        unsafe { ptr::write_volatile(&raw mut (*self.0).stop, 1) }
    }

    /// Streams whose frames are not late now, a bit each.
    pub fn open(self, streams: u32) {
        // SAFETY: see Send.
        unsafe { ptr::write_volatile(&raw mut (*self.0).open, streams) }
    }

    /// Frames sent before this time are not of the phase; 0: all are.
    pub fn since(self, ns: u64) {
        // SAFETY: see Send.
        unsafe { ptr::write_volatile(&raw mut (*self.0).since, ns) }
    }

    /// Interfaces whose accepted frames are counted as offered; 0: none.
    pub fn count_offered_on(self, ifindex: [u32; SIDES]) {
        // SAFETY: see Send; only while no sender runs.
        unsafe { ptr::write_volatile(&raw mut (*self.0).port_ifindex, ifindex) }
    }

    /// Frames that are only redirected leave alternately from these sides.
    pub fn redirect_from(self, sides: [bool; SIDES]) {
        // SAFETY: see Send; only while none is redirected.
        unsafe {
            ptr::write_volatile(&raw mut (*self.0).redirect_both, u32::from(sides == [true; SIDES]));
            ptr::write_volatile(&raw mut (*self.0).redirect_first, u32::from(!sides[INITIATOR]));
            ptr::write_volatile(&raw mut (*self.0).redirected, 0);
        }
    }

    /// Whether a sender has sent its last frame.
    pub fn done(self, sender: usize) -> bool {
        // SAFETY: see Send; the caller's senders are fewer than MAX_SENDERS, which done[] bounds-checks.
        unsafe { ptr::read_volatile(&raw const (*self.0).done[sender]) != 0 }
    }

    /// Let a sender's thread end before its schedule does.
    pub fn mark_done(self, sender: usize) {
        // SAFETY: see Send.
        unsafe { ptr::write_volatile(&raw mut (*self.0).done[sender], 1) }
    }

    /// Reset `done` of all senders before a phase.
    pub fn clear_done(self) {
        // SAFETY: see Send.
        unsafe { ptr::write_volatile(&raw mut (*self.0).done, [0; MAX_SENDERS]) }
    }
}

/// Frames redirected to a port, from the tracepoints.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offered {
    /// Frames that the port accepted.
    pub accepted: u64,
    /// Frames that it did not accept.
    pub refused: u64,
    /// Redirects that failed before they reached the port.
    pub redirect_errors: u64,
}

/// The loaded and attached programs.
pub struct Programs<'obj> {
    skel: TesterSkel<'obj>,
    /// Whose generator and receivers run.
    transport: Transport,
    _links: Vec<Link>,
    /// Links of the receivers, the Initiator's port first.
    receiving: Vec<Link>,
    /// Namespace in which the generator stays attached, so that running it does not update the dispatcher.
    _idle: File,
    /// The memory shared with the running programs.
    pub control: Control,
}

fn load_failure(error: &libbpf_rs::Error) -> Failure {
    Failure::Host(format!(
        "the frame programs cannot be loaded ({error:#}): needs root and Linux 6.6 or newer with BTF; with these, report \
         a fault"
    ))
}

/// A value of a generated struct from the bytes of a map.
fn value<T: Copy + Default>(bytes: &[u8]) -> T {
    if bytes.len() < size_of::<T>() {
        return T::default();
    }
    // SAFETY: T is one of the generated repr(C) structs of integers, for which any bytes are valid; length was checked.
    unsafe { ptr::read_unaligned(bytes.as_ptr().cast()) }
}

/// A value of a generated struct as the frame programs read it.
pub fn bytes<T: Copy>(value: &T) -> Vec<u8> {
    // SAFETY: T is a generated repr(C) struct of integers, and its padding is fields, too: libbpf-cargo writes them; the
    // slice does not outlive it.
    unsafe { std::slice::from_raw_parts(ptr::from_ref(value).cast::<u8>(), size_of::<T>()) }.to_vec()
}

fn per_cpu<T: Copy + Default>(map: &impl MapCore, key: u32) -> Vec<T> {
    let values = map.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY);
    values.ok().flatten().unwrap_or_default().iter().map(|bytes| value(bytes)).collect()
}

/// The programs and their maps, as the request needs them.
fn opened<'obj>(
    place: &'obj mut MaybeUninit<OpenObject>,
    plan: &types::plan,
    request: &Request,
    choice: &Choice,
    table: &Table,
) -> Outcome<OpenTesterSkel<'obj>> {
    let mut open = TesterSkelBuilder::default().open(place).map_err(|error| load_failure(&error))?;
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        rodata.plan = *plan;
    }
    for mut program in open.open_object_mut().progs_mut() {
        let runs = program.name().to_str().is_some_and(|name| choice.has(name));
        program.set_autoload(runs);
    }
    let senders = request.senders.cpus.len();
    let windows = u32::try_from(senders * STREAMS).unwrap_or(u32::MAX);
    open.maps.windows.set_max_entries(windows).map_err(|error| load_failure(&error))?;
    open.maps.sender_stalls.set_max_entries(senders as u32).map_err(|error| load_failure(&error))?;
    if plan.record_delays == 0 {
        open.maps.delays.set_max_entries(1).map_err(|error| load_failure(&error))?;
    }
    if plan.record_variation == 0 {
        open.maps.variations.set_max_entries(1).map_err(|error| load_failure(&error))?;
    }
    let recents = if plan.record_variation == 0 { 1 } else { windows };
    open.maps.recents.set_max_entries(recents).map_err(|error| load_failure(&error))?;
    open.maps.state_table.set_inner_map_fd(table.template()).map_err(|error| load_failure(&error))?;
    Ok(open)
}

/// Write the read-only data into the instructions of the programs that are to be loaded.
fn write_constants(open: &mut OpenTesterSkel) -> Outcome<()> {
    let octets = open.maps.rodata_data.as_deref().map(bytes).unwrap_or_default();
    // SAFETY: the object is open and not loaded. Its maps are made, so that its instructions have their descriptors.
    let status = unsafe { libbpf_sys::bpf_object__prepare(open.open_object_mut().as_libbpf_object().as_ptr()) };
    if status != 0 {
        return Err(load_failure(&libbpf_rs::Error::from_raw_os_error(-status)));
    }
    // SAFETY: the map is one of the open object's.
    let map = unsafe { libbpf_sys::bpf_map__fd(open.maps.rodata.as_libbpf_object().as_ptr()) };
    let constants = Constants { map, octets: &octets };
    for program in open.open_object_mut().progs_mut().filter(|program| program.autoload()) {
        let Some(mut insns) = constants.written_into(program.insns()) else { continue };
        let (first, number) = (insns.as_mut_ptr(), insns.len() as libbpf_sys::size_t);
        // SAFETY: the program is not loaded, and libbpf copies its new instructions.
        let status = unsafe { libbpf_sys::bpf_program__set_insns(program.as_libbpf_object().as_ptr(), first, number) };
        if status != 0 {
            return Err(load_failure(&libbpf_rs::Error::from_raw_os_error(-status)));
        }
    }
    Ok(())
}

/// The generator of a transport.
fn generator<'a, 'obj>(progs: &'a TesterProgs<'obj>, transport: Transport) -> &'a ProgramMut<'obj> {
    match transport {
        Transport::Udp => &progs.generate_udp,
        Transport::Icmp => &progs.generate_icmp,
        Transport::Tcp => &progs.generate_tcp,
    }
}

/// The receivers of a transport, the Initiator's port first.
fn receivers<'a, 'obj>(progs: &'a TesterProgs<'obj>, transport: Transport) -> [&'a ProgramMut<'obj>; SIDES] {
    match transport {
        Transport::Udp => [&progs.receive_udp_initiator, &progs.receive_udp_responder],
        Transport::Icmp => [&progs.receive_icmp_initiator, &progs.receive_icmp_responder],
        Transport::Tcp => [&progs.receive_tcp_initiator, &progs.receive_tcp_responder],
    }
}

impl<'obj> Programs<'obj> {
    /// Connections of each source address, and how many of them the Responder learned; see `sources::counts`.
    pub fn by_source(&self, request: &Request) -> Option<Vec<SourceCounts>> {
        sources::counts(request, &self.skel.maps.state_table)
    }

    /// Write the list of connections to a file; see `connections::write`.
    pub fn list_connections(&self, path: &str, request: &Request, starts: [u64; 2]) -> Outcome<()> {
        connections::write(path, request, &self.skel.maps.state_table, starts)
    }

    /// Load the programs that the request uses, with the plan as their read-only data, and in their instructions. `floor`:
    /// and those of the redirect floor.
    pub fn load(
        place: &'obj mut MaybeUninit<OpenObject>,
        plan: &types::plan,
        request: &Request,
        floor: bool,
        table: Table,
    ) -> Outcome<Self> {
        Self::load_prepared(write_constants, place, plan, request, floor, table)
    }

    /// The same with other instructions than `write_constants` makes. Where the kernel refuses these, it gets those that
    /// the compiler made.
    pub fn load_prepared(
        prepare: fn(&mut OpenTesterSkel) -> Outcome<()>,
        place: &'obj mut MaybeUninit<OpenObject>,
        plan: &types::plan,
        request: &Request,
        floor: bool,
        table: Table,
    ) -> Outcome<Self> {
        let choice = Choice::of(request, floor);
        let place = ptr::from_mut(place);
        let load = |prepare: fn(&mut OpenTesterSkel) -> Outcome<()>| {
            // SAFETY: nothing else uses the place during 'obj: an object that cannot be loaded is closed before another
            // one is opened there.
            let mut open = opened(unsafe { &mut *place }, plan, request, &choice, &table)?;
            prepare(&mut open)?;
            open.load().map_err(|error| load_failure(&error))
        };
        let mut skel = load(prepare).or_else(|_| load(|_| Ok(())))?;
        // In parallel, because both wait for all CPUs.
        let installing = table.install(&skel.maps.state_table)?;
        let (idle, links) = Self::attach_idle(&skel, choice.transport)?;
        installing.finish()?;
        let bss = skel.maps.bss_data.as_deref_mut();
        let bss = bss.ok_or_else(|| Failure::Broke("the frame programs have no shared memory".into()))?;
        let control = Control(&raw mut bss.control);
        Ok(Self { skel, transport: choice.transport, _links: links, receiving: Vec::new(), _idle: idle, control })
    }

    /// Attach the generator to the loopback of a new namespace, and the tracepoints.
    fn attach_idle(skel: &TesterSkel, transport: Transport) -> Outcome<(File, Vec<Link>)> {
        const LOOPBACK: i32 = 1;
        let host = |error: libbpf_rs::Error| {
            Failure::Host(format!("the generator cannot be attached ({error:#}): run as root"))
        };
        let (link, idle) = netns::in_new(|| generator(&skel.progs, transport).attach_xdp(LOOPBACK).map_err(host))?;
        let watch = |error: libbpf_rs::Error| {
            Failure::Host(format!("tracepoints cannot be read ({error:#}): CAP_PERFMON is needed"))
        };
        let offered = skel.progs.count_offered.attach().map_err(watch)?;
        let errors = skel.progs.count_redirect_errors.attach().map_err(watch)?;
        Ok((idle, vec![link, offered, errors]))
    }

    /// Attach the receivers to the ports.
    pub fn attach(&mut self, ports: &[Port; SIDES]) -> Outcome<()> {
        let id = self.generator_id();
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            bss.control.generator_id = id;
            bss.control.port_ifindex = BOTH.map(|side| ports[side].ifindex as u32);
            bss.control.port_netns = BOTH.map(|side| ports[side].netns_inode);
        }
        for (side, port) in ports.iter().enumerate() {
            netns::within(port.netns.as_deref(), || self.attach_port(side, port))
                .map_err(|failure| failure.at_port(port.name))?;
        }
        Ok(())
    }

    /// Names of the programs that the kernel has loaded, in no order.
    pub fn loaded(&self) -> Vec<String> {
        let loaded = self.skel.object().progs().filter(|program| program.autoload());
        loaded.map(|program| program.name().to_string_lossy().into_owned()).collect()
    }

    fn generator_id(&self) -> u32 {
        info(self.generator()).id
    }

    /// Instructions that the kernel's verifier processed for generator and receivers; its limit is 1,000,000.
    pub fn verified_instructions(&self) -> [u32; 3] {
        let [initiator, responder] = self.receivers();
        [self.generator(), initiator, responder].map(|program| info(program).verified_insns)
    }

    fn attach_port(&mut self, side: usize, port: &Port) -> Outcome<()> {
        let program = receivers(&self.skel.progs, self.transport)[side];
        let link = program.attach_xdp(port.ifindex).map_err(|error| {
            Failure::Host(format!(
                "{}: {}: the receiver cannot be attached ({error:#}); {}",
                port.name,
                port.interface,
                why_not_attached(&port.interface, neighbour::mtu(&port.interface))
            ))
        })?;
        self.receiving.push(link);
        self.skel
            .maps
            .ports
            .update(&(side as u32).to_ne_bytes(), &(port.ifindex as u32).to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| {
                Failure::Host(format!(
                    "{}: {}: cannot be a target of XDP redirect ({error:#})",
                    port.name, port.interface
                ))
            })
    }

    /// Descriptor of the generator.
    pub fn generator(&self) -> RawFd {
        generator(&self.skel.progs, self.transport).as_fd().as_raw_fd()
    }

    /// Descriptors of the receivers, the Initiator's port first.
    pub fn receivers(&self) -> [RawFd; SIDES] {
        receivers(&self.skel.progs, self.transport).map(|program| program.as_fd().as_raw_fd())
    }

    /// Descriptor of the receiver that does nothing.
    pub fn empty_receiver(&self) -> RawFd {
        self.skel.progs.receive_nothing.as_fd().as_raw_fd()
    }

    /// For test runs without ports: give redirects a valid target, which receives nothing.
    pub fn redirect_to_loopback(&self, sides: &[usize]) -> Outcome<()> {
        for side in sides.iter().map(|&side| side as u32) {
            self.skel
                .maps
                .ports
                .update(&side.to_ne_bytes(), &1_u32.to_ne_bytes(), MapFlags::ANY)
                .map_err(|error| Failure::Host(format!("loopback: {error:#}")))?;
        }
        Ok(())
    }

    /// Descriptor of the program that only redirects.
    pub fn redirector(&self) -> RawFd {
        self.skel.progs.redirect_only.as_fd().as_raw_fd()
    }

    /// Set the state of each sender's CPU.
    pub fn set_senders(&self, states: &[(usize, types::sender)]) -> Outcome<()> {
        let cpus = libbpf_rs::num_possible_cpus().map_err(|error| Failure::Host(format!("CPUs: {error:#}")))?;
        let mut values = vec![bytes(&types::sender::default()); cpus];
        for (cpu, state) in states {
            let Some(slot) = values.get_mut(*cpu) else {
                return Err(Failure::field("senders.cpus", cpu, "no such CPU"));
            };
            *slot = bytes(state);
        }
        self.skel
            .maps
            .senders
            .update_percpu(&0_u32.to_ne_bytes(), &values, MapFlags::ANY)
            .map_err(|error| Failure::Broke(format!("senders: {error:#}")))
    }

    /// The senders' states, by CPU.
    pub fn senders(&self) -> Vec<types::sender> {
        per_cpu(&self.skel.maps.senders, 0)
    }

    /// Reset the receivers' counts.
    pub fn clear_received(&self) -> Outcome<()> {
        let cpus = libbpf_rs::num_possible_cpus().map_err(|error| Failure::Host(format!("CPUs: {error:#}")))?;
        let empty = vec![bytes(&types::receiver::default()); cpus];
        self.skel
            .maps
            .receivers
            .update_percpu(&0_u32.to_ne_bytes(), &empty, MapFlags::ANY)
            .map_err(|error| Failure::Broke(format!("receivers: {error:#}")))
    }

    /// Forget the arrivals of phase 2, before its frames are numbered from 0 again.
    pub fn clear_windows(&self, senders: usize) -> Outcome<()> {
        let empty = vec![0; size_of::<types::window>()];
        for key in (0..senders).flat_map(|sender| PHASE2.map(|stream| (sender * STREAMS + stream) as u32)) {
            let cleared = self.skel.maps.windows.update(&key.to_ne_bytes(), &empty, MapFlags::ANY);
            cleared.map_err(|error| Failure::Broke(format!("windows: {error:#}")))?;
        }
        Ok(())
    }

    /// The receivers' counts.
    pub fn received(&self) -> Received {
        let mut sum = Received::default();
        for cpu in per_cpu::<types::receiver>(&self.skel.maps.receivers, 0) {
            sum.add(&Received::of_cpu(&cpu));
        }
        sum
    }

    /// Frames accepted by the ports, by side.
    pub fn offered(&self) -> [Offered; SIDES] {
        BOTH.map(|side| {
            let cpus = per_cpu::<types::port_tally>(&self.skel.maps.port_tallies, side as u32);
            Offered {
                accepted: cpus.iter().map(|cpu| cpu.accepted).sum(),
                refused: cpus.iter().map(|cpu| cpu.refused).sum(),
                redirect_errors: cpus.iter().map(|cpu| cpu.redirect_errors).sum(),
            }
        })
    }

    /// Frames a side sent, by delay bucket.
    pub fn delays(&self, side: usize) -> Vec<u64> {
        histogram_of(&self.skel.maps.delays, side as u32)
    }

    /// Pairs of frames a side sent, by bucket of the difference between their delays; one sign's differences.
    pub fn variations(&self, side: usize, sign: u32) -> Vec<u64> {
        histogram_of(&self.skel.maps.variations, side as u32 * SIGNS + sign)
    }

    /// The longest time without an arrival of a stream, ns of the monotonic clock; None with fewer than two arrivals.
    pub fn silence(&self, stream: usize) -> Option<(u64, u64)> {
        let silence = self.skel.maps.bss_data.as_deref()?.silences.get(stream)?;
        (silence.to_ns > 0).then_some((silence.from_ns, silence.to_ns))
    }

    /// Arrivals of a sender's stream.
    pub fn window(&self, sender: usize, stream: usize) -> Option<Window> {
        let key = (sender * STREAMS + stream) as u32;
        self.skel.maps.windows.lookup(&key.to_ne_bytes(), MapFlags::ANY).ok().flatten().map(Window::new)
    }

    /// The recorded stalls of a sender in the phase; `count` is the number of all.
    pub fn stalls(&self, sender: usize, count: u64) -> Vec<types::stall> {
        let key = (sender as u32).to_ne_bytes();
        let list = self.skel.maps.sender_stalls.lookup(&key, MapFlags::ANY).ok().flatten().unwrap_or_default();
        let recorded = usize::try_from(count).unwrap_or(MOST_STALLS).min(MOST_STALLS);
        list.chunks_exact(size_of::<types::stall>()).take(recorded).map(value).collect()
    }
}

/// The kernel's information on a program.
pub fn info(program: RawFd) -> libbpf_sys::bpf_prog_info {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of::<libbpf_sys::bpf_prog_info>() as u32;
    // SAFETY: the struct is zeroed and outlives the call; its length is given.
    unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program, &raw mut info, &raw mut length) };
    info
}

fn histogram_of(map: &impl MapCore, histogram: u32) -> Vec<u64> {
    (0..DELAY_BUCKETS).map(|at| per_cpu::<u64>(map, histogram * DELAY_BUCKETS + at).iter().sum()).collect()
}
