// SPDX-License-Identifier: Apache-2.0
//! One trial: phase 1, gap, phase 2 (RFC 9693 sections 4.2 and 4.7), and what was counted.

use std::io::Write;
use std::mem::MaybeUninit;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};
use crate::host::{self, Stalls, Steps, Watcher};
use crate::plan::{self, PHASE1, PHASE2, PHASE2_INITIATOR, PHASE2_RESPONDER};
use crate::port::{self, Drops, Port};
use crate::programs::{Offered, Programs, Received};
use crate::report::{
    Clock, Counts, Cpu, Delay, Frame, Line, Phase2, Ports, Silence, StateTable, TrialResult, Variation,
};
use crate::request::{self, Request};
use crate::selftest;
use crate::sender::{self, Flow, Sender, Step};
use crate::table::Table;
use crate::tester::types;

/// From the start of the threads to the first frame.
const LEAD_NS: u64 = 5_000_000;
const LOOK: Duration = Duration::from_millis(5);
const PROGRESS: Duration = Duration::from_millis(500);
/// When all frames are back, the rest of the grace would only wait for duplicates; these come soon or never.
const SHORTEST_GRACE: Duration = Duration::from_millis(50);
/// `DELAY_SUB_BITS` of bpf/shared.h.
const SUB_BITS: u32 = 7;
const BUCKETS: u32 = (40 - SUB_BITS + 1) << SUB_BITS;

/// What a phase left behind.
struct Phase {
    start_ns: u64,
    flows: Vec<Flow>,
    senders: Vec<types::sender>,
    offered: [Offered; 2],
}

/// A CPU's record over all phases.
#[derive(Default)]
struct SenderRecord {
    stalls: Stalls,
    waited_ns: u64,
}

struct Trial<'a> {
    request: &'a Request,
    programs: &'a Programs<'a>,
    began: Instant,
    began_ns: u64,
    first_frame_ns: Option<u64>,
    steps: Steps,
    records: Vec<SenderRecord>,
}

/// Print one line on standard output.
pub fn print(line: &Line) {
    let text = serde_json::to_string(line).unwrap_or_default();
    // A reader that has gone is told by the signal that comes with it, not here.
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Run the whole trial.
pub fn run(request: &Request, began: Instant, began_ns: u64) -> Outcome<TrialResult> {
    host::check_cpus("senders.cpus", &request.senders.cpus)?;
    host::check_cpus("watch_cpus", &request.watch_cpus)?;
    host::handle_signals()?;
    host::leave_session();
    let ports = port::both(request)?;
    let table = Table::make(request)?;
    let table_octets = table.octets;
    let plan = plan::build(request, [0, 1].map(|side: usize| (ports[side].mac.0, ports[side].gateway.0)));
    let mut place = MaybeUninit::uninit();
    let cpus = &request.senders.cpus;
    let mut programs = Programs::load(&mut place, &plan, cpus.len(), table)?;
    programs.attach(&ports)?;
    selftest::run(&programs, &ports, cpus)?;
    programs.clear_received()?;
    let drops_before = [ports[0].drops()?, ports[1].drops()?];
    let stolen: Vec<u64> = cpus.iter().chain(&request.watch_cpus).map(|&cpu| host::stolen_ns(cpu)).collect();
    let watched: Vec<usize> = request.watch_cpus.iter().copied().filter(|cpu| !cpus.contains(cpu)).collect();
    let watchers: Vec<Watcher> = watched.into_iter().map(Watcher::start).collect();
    let records = cpus.iter().map(|_| SenderRecord::default()).collect();
    let mut trial =
        Trial { request, programs: &programs, began, began_ns, first_frame_ns: None, steps: Steps::new(), records };
    let phases = trial.phases();
    let watched: Vec<(usize, Stalls)> = watchers.into_iter().map(|watcher| (watcher.cpu, watcher.finish())).collect();
    let (phase1, phase2) = phases?;
    Ok(trial.result(&ports, table_octets, drops_before, &stolen, &watched, phase1.as_ref(), phase2.as_ref()))
}

impl Trial<'_> {
    fn phases(&mut self) -> Outcome<(Option<Phase>, Option<Phase>)> {
        let request = self.request;
        let mut first = None;
        if let Some(phase1) = &request.phase1 {
            let (frames, rate) = (request.connections, phase1.rate);
            let flow = Flow { side: 0, stream: PHASE1, frames, rate, step: None };
            first = Some(self.phase("phase1", vec![flow], phase1.grace_ms)?);
        }
        let Some(phase2) = &request.phase2 else { return Ok((first, None)) };
        self.rest(Duration::from_millis(request.gap_ms))?;
        let flow = |request::Stream { side, rate, frames, .. }| {
            let step = phase2.step.as_ref();
            let step = step.map(|step| Step { frames: step.frames(rate), rate: rate * step.share });
            Flow { side, stream: PHASE2[side], frames, rate, step }
        };
        let flows = phase2.streams().map(flow).collect();
        let second = self.phase("phase2", flows, phase2.grace_ms)?;
        Ok((first, Some(second)))
    }

    /// Send all flows and wait for the last frames.
    fn phase(&mut self, name: &'static str, flows: Vec<Flow>, grace_ms: u64) -> Outcome<Phase> {
        let (programs, cpus) = (self.programs, &self.request.senders.cpus);
        let before = programs.offered();
        let open = flows.iter().fold(0, |bits, flow| bits | 1 << flow.stream);
        let octets = self.request.longest_octets() as usize;
        programs.control.clear_done();
        programs.control.open(open);
        let start = host::now_ns() + LEAD_NS;
        let states: Vec<_> = cpus
            .iter()
            .enumerate()
            .map(|(number, &cpu)| (cpu, sender::state(number, cpus.len(), start, &flows)))
            .collect();
        programs.set_senders(&states)?;
        let batch = self.request.senders.batch;
        let running = cpus
            .iter()
            .enumerate()
            .map(|(number, &cpu)| Sender::start(number, cpu, programs.generator(), octets, batch, programs.control))
            .collect();
        // At once: what is to happen at a time of the phase is timed from this line.
        self.progress(name, &flows);
        self.wait(name, running, &flows)?;
        let senders = self.collect(start);
        let offered = programs.offered();
        let offered = [0, 1].map(|side: usize| difference(offered[side], before[side]));
        self.grace(&flows, &offered, Duration::from_millis(grace_ms))?;
        programs.control.open(0);
        Ok(Phase { start_ns: start, flows, senders, offered })
    }

    /// Until all senders have ended, told to or not.
    fn wait(&mut self, name: &'static str, running: Vec<Sender>, flows: &[Flow]) -> Outcome<()> {
        let mut next = Instant::now() + PROGRESS;
        let mut refused = Ok(());
        while running.iter().any(|sender| !sender.finished()) {
            thread::sleep(LOOK);
            self.steps.look();
            if refused.is_ok() {
                refused = self.may_go_on();
                if refused.is_err() {
                    self.programs.control.stop();
                    (0..running.len()).for_each(|number| self.programs.control.mark_done(number));
                }
            }
            if Instant::now() >= next {
                next += PROGRESS;
                self.progress(name, flows);
            }
        }
        for (record, sender) in self.records.iter_mut().zip(running) {
            record.waited_ns += sender.join()?.1;
        }
        refused.and_then(|()| self.may_go_on())
    }

    fn may_go_on(&self) -> Outcome<()> {
        if host::interrupted() {
            return Err(Failure::Broke("interrupted".into()));
        }
        match self.request.limits.seconds {
            Some(limit) if self.began.elapsed().as_secs_f64() > limit => Err(Failure::Broke(format!(
                "limits.seconds: {limit}: the trial was not over by then and was broken off"
            ))),
            _ => Ok(()),
        }
    }

    fn progress(&self, phase: &'static str, flows: &[Flow]) {
        let received = self.programs.received();
        print(&Line::Progress {
            phase,
            seconds: self.began.elapsed().as_secs_f64(),
            intended_frames: flows.iter().map(Flow::intended).sum(),
            made_frames: self.programs.senders().iter().flat_map(|sender| sender.schedule).map(|part| part.made).sum(),
            received_frames: flows.iter().map(|flow| received.tally[flow.stream].received).sum(),
        });
    }

    /// The senders' states of this phase, in the request's order.
    fn collect(&mut self, start: u64) -> Vec<types::sender> {
        let all = self.programs.senders();
        let states: Vec<types::sender> =
            self.request.senders.cpus.iter().map(|&cpu| all.get(cpu).copied().unwrap_or_default()).collect();
        for (record, state) in self.records.iter_mut().zip(&states) {
            record.stalls.count += state.stalls;
            record.stalls.total_ns += state.stalled_ns;
            record.stalls.worst_ns = record.stalls.worst_ns.max(state.worst_stall_ns);
        }
        let first = states.iter().map(|state| start + state.first_ns).min().unwrap_or(start);
        self.first_frame_ns.get_or_insert(first.saturating_sub(self.began_ns));
        states
    }

    /// RFC 2544 section 23: the receivers stay open for the last frames.
    fn grace(&mut self, flows: &[Flow], offered: &[Offered; 2], grace: Duration) -> Outcome<()> {
        let began = Instant::now();
        while began.elapsed() < grace {
            self.may_go_on()?;
            self.steps.look();
            let received = self.programs.received();
            let all = flows.iter().all(|flow| received.tally[flow.stream].received >= offered[flow.side].accepted);
            if all && began.elapsed() >= SHORTEST_GRACE {
                break;
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn rest(&mut self, gap: Duration) -> Outcome<()> {
        let until = Instant::now() + gap;
        while Instant::now() < until {
            self.may_go_on()?;
            self.steps.look();
            thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "each is one source of the result")]
    fn result(
        mut self,
        ports: &[Port; 2],
        table_octets: u64,
        drops: [Drops; 2],
        stolen: &[u64],
        watched: &[(usize, Stalls)],
        phase1: Option<&Phase>,
        phase2: Option<&Phase>,
    ) -> TrialResult {
        self.steps.look();
        let received = self.programs.received();
        let request = self.request;
        let offered = self.programs.offered();
        let octets = request.octets();
        let of = |phase: &Phase, stream| self.counts(phase, stream, &received);
        TrialResult {
            version: 1,
            engine: env!("CARGO_PKG_VERSION"),
            mark: request.mark,
            seed: request.seed,
            phase1: phase1.and_then(|phase| of(phase, PHASE1)),
            phase2: phase2
                .map(|phase| Phase2 { initiator: of(phase, PHASE2_INITIATOR), responder: of(phase, PHASE2_RESPONDER) }),
            state_table: StateTable {
                connections: request.connections,
                stored: received.stored,
                remapped: received.remapped,
                octets: table_octets,
            },
            ports: Ports {
                initiator: port_report(&ports[0], 0, &received, offered[0], drops[0]),
                responder: port_report(&ports[1], 1, &received, offered[1], drops[1]),
            },
            cpus: self.cpus(stolen, watched),
            clock: Clock { source: host::clock_source(), steps: self.steps.steps },
            start_to_first_frame_ns: self.first_frame_ns.unwrap_or(0),
            wall_ns: self.began.elapsed().as_nanos() as u64,
            frame: Frame { initiator_octets: octets[0] + 4, responder_octets: octets[1] + 4 },
        }
    }

    fn cpus(&self, stolen: &[u64], watched: &[(usize, Stalls)]) -> Vec<Cpu> {
        let request = self.request;
        let stolen_of = |cpu: usize| {
            let at = request.senders.cpus.iter().chain(&request.watch_cpus).position(|&other| other == cpu);
            host::stolen_ns(cpu) - at.and_then(|at| stolen.get(at)).copied().unwrap_or(0)
        };
        let senders = request.senders.cpus.iter().zip(&self.records);
        let senders = senders.map(|(&cpu, record)| (cpu, "sender", record.stalls, Some(record.waited_ns)));
        let watched = watched.iter().map(|&(cpu, stalls)| (cpu, "watched", stalls, None));
        senders
            .chain(watched)
            .map(|(cpu, role, stalls, waited_ns)| Cpu {
                cpu,
                role,
                stalls: stalls.count,
                stalled_ns: stalls.total_ns,
                worst_stall_ns: stalls.worst_ns,
                stolen_ns: stolen_of(cpu),
                waited_ns,
            })
            .collect()
    }

    fn counts(&self, phase: &Phase, stream: usize, received: &Received) -> Option<Counts> {
        let flow = phase.flows.iter().find(|flow| flow.stream == stream)?;
        let parts: Vec<&types::schedule> = phase.senders.iter().map(|sender| &sender.schedule[flow.side]).collect();
        let tally = &received.tally[stream];
        let samples: u64 = parts.iter().map(|part| part.lag_samples).sum();
        let worst = |of: fn(&types::schedule) -> u64| parts.iter().map(|part| of(part)).max().unwrap_or(0);
        let interval = 1e9 / flow.step.map_or(flow.rate, |step| step.rate);
        let mixed = self.request.background.is_some() && stream != PHASE1;
        let timed = self.request.record_loss_times;
        Some(Counts {
            intended_frames: flow.intended(),
            intended_rate: flow.rate,
            made_frames: parts.iter().map(|part| part.made).sum(),
            offered_frames: phase.offered[flow.side].accepted,
            received_frames: tally.received,
            duplicates: tally.duplicates,
            reordered: tally.reordered,
            late: tally.late,
            damaged: tally.damaged + self.unmarked(stream, received),
            untranslated: tally.untranslated,
            mistranslated: tally.mistranslated,
            background_frames: mixed.then(|| parts.iter().map(|part| part.background).sum()),
            background_received: mixed.then_some(tally.background),
            skipped: parts.iter().map(|part| part.skipped).sum(),
            nominal_ns: flow.due_ns(flow.intended()) as u64,
            sending_ns: worst(|part| part.last_ns) + interval as u64,
            worst_lag_ns: worst(|part| part.lag_worst),
            mean_lag_ns: parts.iter().map(|part| part.lag_sum).sum::<u64>() / samples.max(1),
            final_lag_ns: worst(|part| part.lag_final),
            stalled_ns: phase.senders.iter().map(|sender| sender.stalled_ns).max().unwrap_or(0),
            last_lost_ns: timed.then(|| self.last_lost_ns(flow, &parts)).flatten(),
            longest_silence: self.programs.silence(stream).map(|(from, to)| Silence {
                from_ns: from.saturating_sub(phase.start_ns),
                to_ns: to.saturating_sub(phase.start_ns),
            }),
            delay: self.delay(stream, tally),
        })
    }

    /// When the last frame that did not come in time was due.
    fn last_lost_ns(&self, flow: &Flow, parts: &[&types::schedule]) -> Option<u64> {
        let senders = parts.len() as u64;
        let due = |(sender, part): (usize, &&types::schedule)| {
            let lost = self.programs.last_lost(sender, flow.stream, part.made)?;
            Some(flow.due_ns(lost * senders + sender as u64) as u64)
        };
        parts.iter().enumerate().filter_map(due).max()
    }

    /// Frames so broken that no stream could be read: they were the last phase's, by the port they came to.
    fn unmarked(&self, stream: usize, received: &Received) -> u64 {
        let phase2 = self.request.phase2.is_some();
        match stream {
            PHASE1 if !phase2 => received.damaged_unmarked[1],
            PHASE2_INITIATOR => received.damaged_unmarked[1],
            PHASE2_RESPONDER => received.damaged_unmarked[0],
            _ => 0,
        }
    }

    fn delay(&self, stream: usize, tally: &types::tally) -> Option<Delay> {
        let wanted = self.request.record_delays && (stream != PHASE1 || self.request.phase2.is_none());
        if !wanted {
            return None;
        }
        let responder = u32::from(stream == PHASE2_RESPONDER);
        let some = |value| (tally.delays > 0).then_some(value);
        Some(Delay {
            frames: tally.delays,
            negative: tally.negative,
            minimum_ns: some(tally.delay_minimum),
            maximum_ns: some(tally.delay_maximum),
            sum_ns: some(tally.delay_sum),
            buckets: filled(&self.programs.delays(responder, BUCKETS)).collect(),
            variation: self.request.record_variation.then(|| self.variation(responder, tally)),
        })
    }

    fn variation(&self, responder: u32, tally: &types::tally) -> Variation {
        let above = self.programs.variations(2 * responder, BUCKETS);
        let below = self.programs.variations(2 * responder + 1, BUCKETS);
        let mut buckets: Vec<_> = filled(&below).map(|(lower, upper, pairs)| (-upper, -lower, pairs)).collect();
        buckets.reverse();
        buckets.extend(filled(&above));
        let some = |value| (tally.pairs > 0).then_some(value);
        Variation {
            pairs: tally.pairs,
            minimum_ns: some(tally.variation_minimum),
            maximum_ns: some(tally.variation_maximum),
            buckets,
        }
    }
}

/// The buckets that hold anything: lower end, upper end, frames.
fn filled(counts: &[u64]) -> impl Iterator<Item = (i64, i64, u64)> + use<'_> {
    let some = (0..BUCKETS).zip(counts).filter(|&(_, &frames)| frames > 0);
    some.map(|(at, &frames)| {
        let (lower, upper) = bucket(at);
        (lower, upper, frames)
    })
}

/// The delays a bucket holds: exact below 2^7 ns, then 2^7 buckets an octave.
fn bucket(at: u32) -> (i64, i64) {
    let (octave, part) = (at >> SUB_BITS, i64::from(at & ((1 << SUB_BITS) - 1)));
    if octave == 0 {
        return (part, part + 1);
    }
    let width = 1_i64 << (octave - 1);
    let lower = ((1 << SUB_BITS) + part) * width;
    (lower, lower + width)
}

fn difference(after: Offered, before: Offered) -> Offered {
    Offered {
        accepted: after.accepted - before.accepted,
        refused: after.refused - before.refused,
        redirect_errors: after.redirect_errors - before.redirect_errors,
    }
}

fn port_report(port: &Port, side: usize, received: &Received, offered: Offered, before: Drops) -> crate::report::Port {
    let after = port.drops().unwrap_or(before);
    crate::report::Port {
        refused: offered.refused,
        redirect_errors: offered.redirect_errors,
        foreign: received.foreign[side],
        neighbour_replies: received.neighbour_replies[side],
        rx_dropped: after.rx.saturating_sub(before.rx),
        tx_dropped: after.tx.saturating_sub(before.tx),
        gateway_mac: port.gateway.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_meet_and_are_narrow() {
        for at in 1..BUCKETS {
            let (before, here) = (bucket(at - 1), bucket(at));
            assert_eq!(before.1, here.0);
            assert!(here.1 - here.0 <= here.0 / 100 + 1, "{here:?}");
        }
        assert_eq!(bucket(BUCKETS - 1).1, 1 << 40);
    }
}
