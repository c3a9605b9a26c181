// SPDX-License-Identifier: Apache-2.0
//! One trial: phase 1, gap, phase 2 (RFC 9693 sections 4.2 and 4.7), and its result.

mod counts;

use std::io::Write;
use std::mem::MaybeUninit;
use std::thread;
use std::time::{Duration, Instant};

use crate::disturbance;
use crate::failure::{Failure, Outcome};
use crate::flow::{self, Flow, Step};
use crate::host::{self, ClockSteps, Stall, Stalls, Watcher};
use crate::modifiers::Queries;
use crate::plan;
use crate::port::{self, Drops, Port};
use crate::programs::{Offered, Programs, Received};
use crate::receiver_time::Timing;
use crate::report::{Line, PhaseName, Progress, TrialResult};
use crate::request::{self, Request};
use crate::selftest;
use crate::sender::{self, CatchUp, Sender};
use crate::shared::{BOTH, INITIATOR, PHASE1, PHASE2, RESPONDER, SIDES};
use crate::table::Table;
use crate::tester::types;

/// Time from the start of the threads to the first frame.
const LEAD_NS: u64 = 5_000_000;
/// Overdue batches that a sender sends at once; a card's ring has room for their frames.
const AT_ONCE_BATCHES: u32 = 2;
/// Frames of an earlier phase are not looked for longer, because sending times repeat after 18 minutes.
const LATEST: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);
/// Grace after the last phase when all frames have arrived, for duplicates, which follow soon or never. Phase 1 needs none,
/// because its duplicates are counted during phase 2.
const SHORTEST_GRACE: Duration = Duration::from_millis(50);

/// Results of a phase.
struct Phase {
    start_ns: u64,
    flows: Vec<Flow>,
    senders: Vec<types::sender>,
    offered: [Offered; SIDES],
}

impl Phase {
    /// Frames of a flow that its port accepted. A port counts the frames of all its flows together, so those that it did
    /// not accept are missing in the first of them.
    fn offered_of(&self, flow: &Flow) -> u64 {
        let made = |flow: &Flow| self.senders.iter().map(|sender| sender.schedule[flow.schedule()].made).sum::<u64>();
        let others = self.flows.iter().filter(|other| other.side == flow.side && other.stream != flow.stream);
        let accepted = self.offered[flow.side].accepted;
        match self.flows.iter().find(|first| first.side == flow.side) {
            Some(first) if first.stream == flow.stream => accepted.saturating_sub(others.map(made).sum()),
            _ => made(flow),
        }
    }
}

/// Disturbances of a sender's CPU over all phases.
#[derive(Default)]
struct SenderRecord {
    stalls: Stalls,
    /// Stalls that caused a burst, extended until the sender had caught up.
    bursts: Vec<Stall>,
    waited_ns: u64,
}

struct Trial<'a> {
    request: &'a Request,
    programs: &'a Programs<'a>,
    began: Instant,
    began_ns: u64,
    first_frame_ns: Option<u64>,
    /// Starts of both phases.
    starts: [u64; 2],
    steps: ClockSteps,
    records: Vec<SenderRecord>,
    ports: &'a [Port; SIDES],
    table_octets: u64,
    /// CPUs to watch that do not send.
    watched: Vec<usize>,
    before: Before,
    modifiers: types::modifiers,
    /// Of the device, by the Initiator's port.
    queries: Option<Queries>,
    /// Counts at the start of phase 2, in which churn opens further connections.
    before_phase2: Received,
}

/// Counters at the start of a period, which its counts do not include.
struct Before {
    received: Received,
    offered: [Offered; SIDES],
    drops: [Drops; SIDES],
    stolen: Vec<u64>,
}

/// Print one line on standard output.
pub fn print(line: &Line) {
    let text = serde_json::to_string(line).unwrap_or_default();
    // When the reader has ended, a signal ends the trial, so this error needs no message.
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Run the trial.
pub fn run(request: &Request, began: Instant, began_ns: u64) -> Outcome<TrialResult> {
    host::check_cpus("senders.cpus", &request.senders.cpus)?;
    host::check_cpus("watch_cpus", &request.watch_cpus)?;
    host::handle_signals()?;
    host::check_priorities(!request.watch_cpus.is_empty())?;
    host::raise_session();
    let ports = port::both(request)?;
    let table = Table::make(request)?;
    let table_octets = table.octets;
    let plan = plan::build(request, BOTH.map(|side| (ports[side].mac.0, ports[side].gateway.0)));
    let mut place = MaybeUninit::uninit();
    let cpus = &request.senders.cpus;
    let mut programs = Programs::load(&mut place, &plan, request, false, table)?;
    programs.attach(&ports)?;
    selftest::run(&programs, &ports, cpus)?;
    programs.clear_received()?;
    let mut trial = Trial {
        request,
        programs: &programs,
        began,
        began_ns,
        first_frame_ns: None,
        starts: [began_ns; 2],
        steps: ClockSteps::new(),
        records: no_records(request),
        ports: &ports,
        table_octets,
        watched: request.watch_cpus.iter().copied().filter(|cpu| !cpus.contains(cpu)).collect(),
        before: Before::now(request, &programs, &ports)?,
        modifiers: plan.modifiers,
        queries: Queries::open(request, &ports[INITIATOR])?,
        before_phase2: Received::default(),
    };
    let timing = request.record_receiver_time.then(|| Timing::start(&programs)).transpose()?;
    let counted = trial.periods()?;
    if let Some(path) = &request.connections_file {
        programs.list_connections(path, request, trial.starts)?;
    }
    let receiver_time = timing.map(|timing| timing.finish(&programs)).transpose()?;
    Ok(TrialResult { receiver_time, ..counted })
}

fn no_records(request: &Request) -> Vec<SenderRecord> {
    request.senders.cpus.iter().map(|_| SenderRecord::default()).collect()
}

impl Before {
    fn now(request: &Request, programs: &Programs, ports: &[Port; SIDES]) -> Outcome<Self> {
        let cpus = request.senders.cpus.iter().chain(&request.watch_cpus);
        Ok(Self {
            received: programs.received(),
            offered: programs.offered(),
            drops: [ports[INITIATOR].drops()?, ports[RESPONDER].drops()?],
            stolen: cpus.map(|&cpu| host::stolen_ns(cpu)).collect(),
        })
    }
}

impl Trial<'_> {
    /// Run phase 1 and all periods of phase 2. The results of all periods but the last are printed as progress.
    fn periods(&mut self) -> Outcome<TrialResult> {
        let mut watchers = self.watch()?;
        let phase1 = self.phase1()?;
        let last = self.request.phase2.as_ref().map_or(1, |phase2| phase2.periods) - 1;
        for period in 0..last {
            let phase2 = self.phase2(period)?;
            let result = self.result(&finish(watchers), phase1.as_ref(), phase2.as_ref());
            self.progress(PhaseName::Phase2, phase2.as_ref().map_or(&[], |phase| &phase.flows), Some(result));
            self.before = Before::now(self.request, self.programs, self.ports)?;
            (self.records, self.steps) = (no_records(self.request), ClockSteps::new());
            watchers = self.watch()?;
        }
        let phase2 = self.phase2(last)?;
        Ok(self.result(&finish(watchers), phase1.as_ref(), phase2.as_ref()))
    }

    fn watch(&self) -> Outcome<Vec<Watcher>> {
        self.watched.iter().map(|&cpu| Watcher::start(cpu, self.request.watch_stall_ns)).collect()
    }

    fn phase1(&mut self) -> Outcome<Option<Phase>> {
        let Some(phase1) = &self.request.phase1 else { return Ok(None) };
        let (frames, rate) = (self.request.connections, phase1.rate);
        let flow = Flow { side: INITIATOR, stream: PHASE1, first: 0, opened: 0, frames, rate, step: None };
        let catch_up = self.catch_up(phase1.catch_up_percent);
        self.phase(PhaseName::Phase1, vec![flow], catch_up, phase1.grace_ms).map(Some)
    }

    /// One period of phase 2, numbered from 0, after the gap. Connections continue where the period before ended.
    fn phase2(&mut self, period: u64) -> Outcome<Option<Phase>> {
        let Some(phase2) = &self.request.phase2 else { return Ok(None) };
        self.wait_gap(Duration::from_millis(self.request.gap_ms))?;
        if period > 0 {
            self.programs.clear_windows(self.request.senders.cpus.len())?;
        }
        let senders = self.request.senders.cpus.len() as u64;
        let flow_of = |request::Stream { side, rate, frames, .. }| {
            let step = phase2.step.as_ref();
            let step = step.map(|step| Step { frames: step.frames(rate), rate: rate * step.share });
            let flow = Flow { side, stream: PHASE2[side], first: 0, opened: 0, frames, rate, step };
            Flow { first: period * flow.intended().div_ceil(senders), ..flow }
        };
        let flows = phase2.streams().map(flow_of).chain(flow::of_churn(self.request)).collect();
        let repeats = period > 0 || self.request.churn().is_some();
        self.programs.control.since(if repeats { host::now_ns() } else { 0 });
        self.before_phase2 = self.programs.received();
        self.phase(PhaseName::Phase2, flows, self.catch_up(phase2.catch_up_percent), phase2.grace_ms).map(Some)
    }

    /// Counts of the receivers in this period.
    fn received(&self) -> Received {
        self.programs.received().since(&self.before.received)
    }

    /// Received frames of a flow.
    fn arrived(&self, flow: &Flow, received: &Received) -> u64 {
        let before = if flow.opened > 0 { self.before_phase2.tally[flow.stream].received } else { 0 };
        received.tally[flow.stream].received - before
    }

    fn catch_up(&self, percent: Option<u64>) -> CatchUp {
        CatchUp { percent, frames: AT_ONCE_BATCHES * self.request.senders.batch }
    }

    /// Send all flows and wait for the last frames.
    fn phase(&mut self, name: PhaseName, flows: Vec<Flow>, catch_up: CatchUp, grace_ms: u64) -> Outcome<Phase> {
        let (programs, cpus) = (self.programs, &self.request.senders.cpus);
        let before = programs.offered();
        let open = flows.iter().fold(0, |bits, flow| bits | 1 << flow.stream);
        let octets = self.request.longest_octets() as usize;
        programs.control.clear_done();
        programs.control.open(open);
        let start = host::now_ns() + LEAD_NS;
        self.starts[usize::from(matches!(name, PhaseName::Phase2))] = start;
        let states: Vec<_> = cpus
            .iter()
            .enumerate()
            .map(|(number, &cpu)| (cpu, sender::state(number, cpus.len(), start, &flows, catch_up)))
            .collect();
        programs.set_senders(&states)?;
        let batch = self.request.senders.batch;
        let running = cpus
            .iter()
            .enumerate()
            .map(|(number, &cpu)| Sender::start(number, cpu, programs.generator(), octets, batch, programs.control))
            .collect::<Outcome<_>>()?;
        // At once, because readers time events of the phase from this line.
        self.progress(name, &flows, None);
        self.wait(name, running, &flows)?;
        let senders = self.collect(start, &flows, catch_up);
        let offered = programs.offered();
        let broadcasts = |side: usize| senders.iter().map(|sender| sender.schedule[side].broadcasts).sum::<u64>();
        let offered = BOTH.map(|side| {
            let all = difference(offered[side], before[side]);
            Offered { accepted: all.accepted.saturating_sub(broadcasts(side)), ..all }
        });
        let last = matches!(name, PhaseName::Phase2) || self.request.phase2.is_none();
        let shortest = if last { SHORTEST_GRACE } else { Duration::ZERO };
        self.grace(&flows, &offered, shortest, Duration::from_millis(grace_ms))?;
        programs.control.open(0);
        Ok(Phase { start_ns: start, flows, senders, offered })
    }

    /// Wait until all senders have ended, or stop them when the trial must end.
    fn wait(&mut self, name: PhaseName, running: Vec<Sender>, flows: &[Flow]) -> Outcome<()> {
        let began = Instant::now();
        let mut next = began + PROGRESS_INTERVAL;
        let mut refused = Ok(());
        while running.iter().any(|sender| !sender.finished()) {
            thread::park_timeout(POLL_INTERVAL);
            self.steps.check();
            if began.elapsed() > LATEST {
                self.programs.control.since(0);
            }
            if refused.is_ok() {
                let queries = self.queries.as_mut().filter(|_| matches!(name, PhaseName::Phase2));
                let asked = queries.map_or(Ok(()), Queries::send_due);
                refused = asked.and_then(|()| self.check_limits());
                if refused.is_err() {
                    self.programs.control.stop();
                    (0..running.len()).for_each(|number| self.programs.control.mark_done(number));
                }
            }
            if Instant::now() >= next {
                next += PROGRESS_INTERVAL;
                self.progress(name, flows, None);
            }
        }
        for (record, sender) in self.records.iter_mut().zip(running) {
            record.waited_ns += sender.join()?.1;
        }
        refused.and_then(|()| self.check_limits())
    }

    fn check_limits(&self) -> Outcome<()> {
        if host::interrupted() {
            return Err(Failure::Broke("interrupted".into()));
        }
        match self.request.limits.seconds {
            Some(limit) if self.began.elapsed().as_secs_f64() > limit => {
                Err(Failure::Broke(format!("limits.seconds: {limit}: the trial was not over by then and was aborted")))
            }
            _ => Ok(()),
        }
    }

    fn progress(&self, phase: PhaseName, flows: &[Flow], period: Option<TrialResult>) {
        let received = self.received();
        print(&Line::Progress(Progress {
            phase,
            seconds: self.began.elapsed().as_secs_f64(),
            intended_frames: flows.iter().map(Flow::intended).sum(),
            made_frames: self.programs.senders().iter().flat_map(|sender| sender.schedule).map(|part| part.made).sum(),
            received_frames: flows.iter().map(|flow| self.arrived(flow, &received)).sum(),
            period: period.map(Box::new),
        }));
    }

    /// The senders' states of this phase, in the request's order.
    fn collect(&mut self, start: u64, flows: &[Flow], catch_up: CatchUp) -> Vec<types::sender> {
        let all = self.programs.senders();
        let states: Vec<types::sender> =
            self.request.senders.cpus.iter().map(|&cpu| all.get(cpu).copied().unwrap_or_default()).collect();
        let (senders, batch) = (states.len(), self.request.senders.batch);
        for (number, (record, state)) in self.records.iter_mut().zip(&states).enumerate() {
            record.stalls.count += state.stalls;
            record.stalls.total_ns += state.stalled_ns;
            record.stalls.worst_ns = record.stalls.worst_ns.max(state.worst_stall_ns);
            let each = self.programs.stalls(number, state.stalls).into_iter();
            let absolute = |stall: types::stall| Stall { from_ns: start + stall.from_ns, to_ns: start + stall.to_ns };
            let each: Vec<Stall> = each.map(absolute).collect();
            let burst = |stall: &&Stall| disturbance::makes_burst(stall, flows, senders, batch);
            let until_over = |stall: &Stall| disturbance::until_caught_up(stall, catch_up.percent);
            record.bursts.extend(each.iter().filter(burst).map(until_over));
            record.stalls.each.extend(each);
        }
        let first = states.iter().map(|state| start + state.first_ns).min().unwrap_or(start);
        self.first_frame_ns.get_or_insert(first.saturating_sub(self.began_ns));
        states
    }

    /// Wait for the last frames (RFC 2544 section 23).
    fn grace(
        &mut self,
        flows: &[Flow],
        offered: &[Offered; SIDES],
        shortest: Duration,
        longest: Duration,
    ) -> Outcome<()> {
        let began = Instant::now();
        while began.elapsed() < longest {
            self.check_limits()?;
            self.steps.check();
            let received = self.received();
            let all = BOTH.iter().all(|&side| {
                let sent = flows.iter().filter(|flow| flow.side == side);
                sent.map(|flow| self.arrived(flow, &received)).sum::<u64>() >= offered[side].accepted
            });
            if all && began.elapsed() >= shortest {
                break;
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    fn wait_gap(&mut self, gap: Duration) -> Outcome<()> {
        let until = Instant::now() + gap;
        while Instant::now() < until {
            self.check_limits()?;
            self.steps.check();
            thread::sleep(POLL_INTERVAL.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }
}

fn finish(watchers: Vec<Watcher>) -> Vec<(usize, Stalls)> {
    watchers.into_iter().map(|watcher| (watcher.cpu, watcher.finish())).collect()
}

fn difference(after: Offered, before: Offered) -> Offered {
    Offered {
        accepted: after.accepted - before.accepted,
        refused: after.refused - before.refused,
        redirect_errors: after.redirect_errors - before.redirect_errors,
    }
}
