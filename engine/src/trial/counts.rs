// SPDX-License-Identifier: Apache-2.0
//! The result of a trial, from the counts of frame programs, ports and CPUs.

use std::cmp::Reverse;

use crate::disturbance::DisturbedTimes;
use crate::flow::Flow;
use crate::host::{self, Stall, Stalls};
use crate::messages::{self, Message};
use crate::modifiers;
use crate::plan;
use crate::programs::{total_odd, Offered, Received};
use crate::report::{
    self, Buckets, Clock, Counts, Cpu, Delay, DeviceSigns, Frame, LateDelay, LostAfterStep, MessageCounts, Phase2,
    PhaseName, Ports, QueryCounts, Role, Silence, SizeCounts, StateTable, TrialResult, Variation, WrongFrames,
};
use crate::request::FCS;
use crate::shared::{
    BOTH, CLOSING, DELAY_SUB_BITS, INITIATOR, NEGATIVE, NOT_NEGATIVE, PHASE1, PHASE2, PHASE2_INITIATOR,
    PHASE2_RESPONDER, RESPONDER,
};
use crate::tester::types;
use crate::transport::Transport;
use crate::trial::{difference, Phase, Trial};

/// Stalls listed individually per CPU.
const LONGEST_STALLS: usize = 64;
/// The last of the frames that are lost after a change of the rate that are listed: eight single ones, and one before.
const LATEST_LOST: usize = 9;

impl Trial<'_> {
    /// The result of this period; its phase 1 is the trial's.
    pub(super) fn result(
        &mut self,
        watched: &[(usize, Stalls)],
        phase1: Option<&Phase>,
        phase2: Option<&Phase>,
    ) -> TrialResult {
        self.steps.check();
        let received = self.received();
        let request = self.request;
        let offered = self.programs.offered();
        let offered = BOTH.map(|side| difference(offered[side], self.before.offered[side]));
        let octets = request.octets(request.frame.size);
        let disturbed = self.disturbed_times(watched);
        let disturbed = disturbed.as_ref();
        let of = |phase: &Phase, stream| self.counts(phase, stream, &received, disturbed);
        let churns = request.churn().is_some();
        // Phase 1 and openings are of one stream.
        let first = if churns { self.before_phase2 } else { received };
        let later = received.of_streams_since(if churns { &[PHASE1] } else { &[] }, &self.before_phase2);
        TrialResult {
            version: report::VERSION,
            engine: env!("CARGO_PKG_VERSION"),
            mark: request.mark,
            seed: request.seed,
            phase1: phase1.and_then(|phase| self.counts(phase, PHASE1, &first, disturbed)),
            phase2: phase2.map(|phase| Phase2 {
                initiator: of(phase, PHASE2_INITIATOR),
                responder: of(phase, PHASE2_RESPONDER),
                openings: self.counts(phase, PHASE1, &later, disturbed),
                closings: of(phase, CLOSING).filter(|_| request.flood() == 0),
                flood: of(phase, CLOSING).filter(|_| request.flood() > 0),
            }),
            state_table: StateTable {
                connections: request.connections,
                stored: received.stored,
                remapped: received.remapped,
                octets: self.table_octets,
                by_source: (phase1.is_some() && received.stored < request.all_connections())
                    .then(|| self.programs.by_source(request))
                    .flatten(),
            },
            ports: Ports {
                initiator: self.port_report(INITIATOR, &received, offered[INITIATOR]),
                responder: self.port_report(RESPONDER, &received, offered[RESPONDER]),
            },
            receiver_time: None,
            cpus: self.cpus(watched, [phase1, phase2].map(|phase| phase.map(|phase| phase.start_ns))),
            clock: Clock { source: host::clock_source(), steps: self.steps.steps },
            start_to_first_frame_ns: self.first_frame_ns.unwrap_or(0),
            wall_ns: self.began.elapsed().as_nanos() as u64,
            frame: Frame { initiator_octets: octets[INITIATOR] + FCS, responder_octets: octets[RESPONDER] + FCS },
        }
    }

    /// None where a CPU stalled too often to record each stall.
    fn disturbed_times(&self, watched: &[(usize, Stalls)]) -> Option<DisturbedTimes> {
        let watched = watched.iter().map(|(_, stalls)| stalls);
        let mut all = self.records.iter().map(|record| &record.stalls).chain(watched.clone());
        let known = all.all(|stalls| stalls.count == stalls.each.len() as u64);
        let bursts = self.records.iter().flat_map(|record| &record.bursts);
        known.then(|| DisturbedTimes::new(bursts.chain(watched.flat_map(|stalls| &stalls.each))))
    }

    fn cpus(&self, watched: &[(usize, Stalls)], starts: [Option<u64>; 2]) -> Vec<Cpu> {
        let request = self.request;
        let stolen_of = |cpu: usize| {
            let at = request.senders.cpus.iter().chain(&request.watch_cpus).position(|&other| other == cpu);
            // The time can go back, after a migration of the host, and that of a CPU that is offline is 0.
            host::stolen_ns(cpu).saturating_sub(at.and_then(|at| self.before.stolen.get(at)).copied().unwrap_or(0))
        };
        let senders = request.senders.cpus.iter().zip(&self.records);
        let senders = senders.map(|(&cpu, record)| (cpu, Role::Sender, &record.stalls, Some(record.waited_ns)));
        let watched = watched.iter().map(|(cpu, stalls)| (*cpu, Role::Watched, stalls, None));
        senders
            .chain(watched)
            .map(|(cpu, role, stalls, waited_ns)| Cpu {
                cpu,
                role,
                stalls: stalls.count,
                stalled_ns: stalls.total_ns,
                worst_stall_ns: stalls.worst_ns,
                longest_stalls: longest_stalls(&stalls.each, starts),
                stolen_ns: stolen_of(cpu),
                waited_ns,
            })
            .collect()
    }

    fn counts(
        &self,
        phase: &Phase,
        stream: usize,
        received: &Received,
        disturbed: Option<&DisturbedTimes>,
    ) -> Option<Counts> {
        let flow = phase.flows.iter().find(|flow| flow.stream == stream)?;
        let parts: Vec<&types::schedule> =
            phase.senders.iter().map(|sender| &sender.schedule[flow.schedule()]).collect();
        let tally = &received.tally[stream];
        let samples: u64 = parts.iter().map(|part| part.lag_samples).sum();
        let worst = |of: fn(&types::schedule) -> u64| parts.iter().map(|part| of(part)).max().unwrap_or(0);
        let interval = 1e9 / flow.step.map_or(flow.rate, |step| step.rate);
        let mixed = self.request.background.is_some() && stream != PHASE1;
        let timed = self.request.record_loss_times;
        let wrong = WrongFrames::new(tally, &received.odd_of(stream, &self.unread(stream)), self.request);
        let damaged = wrong.damaged + self.damaged_without_stream(stream, received);
        let churns = self.request.churn().is_some();
        let aside: u64 = parts.iter().map(|part| part.aside).sum();
        let skipped = parts.iter().map(|part| part.skipped).sum::<u64>() - aside;
        let casts =
            stream != PHASE1 && self.request.modifiers().is_some_and(|modifiers| modifiers.broadcast_every.is_some());
        Some(Counts {
            intended_frames: flow.intended() - aside,
            intended_rate: flow.rate,
            made_frames: parts.iter().map(|part| part.made).sum(),
            offered_frames: phase.offered_of(flow),
            received_frames: tally.received,
            duplicates: tally.duplicates,
            reordered: tally.reordered,
            late: tally.late.count,
            late_delay: self.late_delay(flow, tally),
            wrong: WrongFrames { damaged, ..wrong },
            zero_checksums: self.request.accept_zero_checksum.then_some(tally.zero_checksums),
            asked: self.request.frame.resolved.then_some(tally.asked),
            messages: self.messages(stream, tally),
            sizes: self.sizes(flow, &parts, tally),
            broadcast_frames: casts.then(|| parts.iter().map(|part| part.broadcasts).sum()),
            background_frames: mixed.then(|| parts.iter().map(|part| part.background).sum()),
            background_received: mixed.then_some(tally.background),
            skipped: if churns { 0 } else { skipped },
            unopened: (churns && flow.side == RESPONDER).then_some(skipped),
            nominal_ns: flow.due_ns(flow.intended()) as u64,
            sending_ns: worst(|part| part.last_ns) + interval as u64,
            worst_lag_ns: worst(|part| part.lag_worst),
            mean_lag_ns: parts.iter().map(|part| part.lag_sum).sum::<u64>() / samples.max(1),
            final_lag_ns: worst(|part| part.lag_final),
            settled_lag_ns: phase.senders.iter().map(settled_lag_ns).max().unwrap_or(0),
            stalled_ns: phase.senders.iter().map(|sender| sender.stalled_ns).max().unwrap_or(0),
            lost_in_stalls: disturbed.and_then(|disturbed| {
                let lost = phase.offered_of(flow).checked_sub(tally.received)?;
                self.lost_in_stalls(phase, flow, lost, disturbed)
            }),
            due_in_stalls: disturbed
                .filter(|_| aside == 0)
                .map(|disturbed| in_stalls(phase, disturbed, |ns| flow.due_before(ns))),
            last_lost_ns: (timed && skipped == 0).then(|| self.last_lost_ns(flow, &parts)).flatten(),
            lost_after_step: (timed && skipped == 0)
                .then(|| self.lost_after_step(flow, &parts, tally.late.count > 0))
                .flatten(),
            longest_silence: (flow.opened == 0).then(|| self.programs.silence(stream)).flatten().map(|(from, to)| {
                Silence { from_ns: from.saturating_sub(phase.start_ns), to_ns: to.saturating_sub(phase.start_ns) }
            }),
            delay: self.delay(flow, tally).map(|delay| {
                let due_in_stalls = disturbed.map(|disturbed| self.timed_in_stalls(phase, flow, disturbed));
                Delay { due_in_stalls, ..delay }
            }),
        })
    }

    /// The extremes are those of the whole trial: no period has them, and no openings where frames of phase 1 were late.
    fn late_delay(&self, flow: &Flow, tally: &types::tally) -> Option<LateDelay> {
        let phase1 = flow.opened > 0 && self.before_phase2.tally[PHASE1].late.count > 0;
        let whole = (flow.stream == PHASE1 && flow.opened == 0)
            || self.request.phase2.as_ref().is_none_or(|phase2| phase2.periods == 1 && !phase1);
        (tally.late.count > 0 && whole).then_some(LateDelay {
            minimum_ns: tally.late.minimum,
            maximum_ns: tally.late.maximum,
            sum_ns: tally.late.sum,
        })
    }

    /// Arrivals of each message of a stream; `received` counts those of the last.
    fn messages(&self, stream: usize, tally: &types::tally) -> Vec<MessageCounts> {
        let messages = self.request.messages();
        let counts = |(at, message): (usize, &Message)| MessageCounts {
            name: message.name,
            received: if messages::followed(&messages, at) { tally.followed[message.place] } else { tally.received },
            wrong: tally.wrong[message.place],
        };
        messages::of_stream(&messages, stream).map(counts).collect()
    }

    /// Frames of each size; None where the stream's frames have one.
    fn sizes(&self, flow: &Flow, parts: &[&types::schedule], tally: &types::tally) -> Option<Vec<SizeCounts>> {
        let mix = self.request.frame.mix(flow.side).filter(|_| plan::sized(self.request) >> flow.stream & 1 == 1)?;
        let counts = |(at, (size, _)): (usize, &(u32, u32))| SizeCounts {
            octets: *size,
            made_frames: parts.iter().map(|part| part.sized[at]).sum(),
            received_frames: tally.sized[at],
        };
        Some(mix.0.iter().enumerate().map(counts).collect())
    }

    /// Number of a flow's `lost` frames that were due in disturbed times; None where not all of them are known.
    fn lost_in_stalls(&self, phase: &Phase, flow: &Flow, lost: u64, disturbed: &DisturbedTimes) -> Option<u64> {
        if lost == 0 {
            return Some(0);
        }
        let senders = phase.senders.len() as u64;
        let (mut found, mut in_stalls) = (0, 0);
        for (number, sender) in phase.senders.iter().enumerate() {
            let part = &sender.schedule[flow.schedule()];
            // Skipped frames have no sequence number, so the due times of later frames are not known, unless it is known
            // which frames were put aside.
            if part.skipped > part.aside {
                return None;
            }
            let of = (number as u64, senders);
            let first = flow.first_sequence(of.0, senders);
            let mut sequences = self.programs.window(number, flow.stream)?.lost(first + part.made)?;
            sequences.retain(|&sequence| sequence >= first);
            sequences.sort_unstable();
            let due = modifiers::due_times(&self.modifiers, flow, of, &sequences);
            found += due.len() as u64;
            in_stalls += due.iter().filter(|&due| disturbed.cover(phase.start_ns + due)).count() as u64;
        }
        (found == lost).then_some(in_stalls)
    }

    /// Frames that were due from the change of the rate on and did not arrive in time; None where not all are known.
    fn lost_after_step(&self, flow: &Flow, parts: &[&types::schedule], late: bool) -> Option<LostAfterStep> {
        flow.step?;
        let (senders, changed) = (parts.len() as u64, flow.due_ns(flow.frames) as u64);
        let mut every = Vec::new();
        for (number, part) in (0..).zip(parts) {
            let first = flow.first_sequence(number, senders);
            let (known, mut lost) =
                self.programs.window(number as usize, flow.stream)?.lost_lately(first + part.made, late)?;
            let due = |sequences: &[u64]| modifiers::due_times(&self.modifiers, flow, (number, senders), sequences);
            if known > first && due(&[known]).first().is_none_or(|&since| since > changed) {
                return None;
            }
            lost.retain(|&sequence| sequence >= first);
            every.extend(due(&lost).into_iter().filter(|&due| due >= changed));
        }
        every.sort_unstable();
        let latest_ns = every.iter().rev().take(LATEST_LOST).rev().copied().collect();
        Some(LostAfterStep { frames: every.len() as u64, latest_ns })
    }

    /// Due time of the last frame that did not arrive in time, since the start of the phase.
    fn last_lost_ns(&self, flow: &Flow, parts: &[&types::schedule]) -> Option<u64> {
        let senders = parts.len() as u64;
        let due = |(sender, part): (usize, &&types::schedule)| {
            let first = flow.first_sequence(sender as u64, senders);
            let lost = self.programs.window(sender, flow.stream)?.last_lost(first + part.made)?;
            if lost < first {
                return None;
            }
            modifiers::due_times(&self.modifiers, flow, (sender as u64, senders), &[lost]).pop()
        };
        parts.iter().enumerate().filter_map(due).max()
    }

    /// Ports to which frames without a readable stream are attributed: by port to a direction of the last phase.
    fn unread(&self, stream: usize) -> Vec<usize> {
        if (stream == PHASE1 && self.request.phase2.is_some()) || stream == CLOSING {
            return Vec::new();
        }
        let messages = self.request.messages();
        let arrives = |side: &usize| messages::of_stream(&messages, stream).any(|(_, message)| message.sender != *side);
        BOTH.into_iter().filter(arrives).collect()
    }

    /// Frames too damaged to read their stream.
    fn damaged_without_stream(&self, stream: usize, received: &Received) -> u64 {
        self.unread(stream).into_iter().map(|side| received.damaged_unmarked[side]).sum()
    }

    /// Number of a flow's frames to be timed that were due in disturbed times.
    fn timed_in_stalls(&self, phase: &Phase, flow: &Flow, disturbed: &DisturbedTimes) -> u64 {
        let samples = self.request.delay_samples.as_ref();
        let samples = samples.map(|each| (each, each.every(flow.rate, flow.frames, &self.request.cycles())));
        in_stalls(phase, disturbed, |ns| {
            let due = flow.due_before(ns);
            samples.map_or(due, |(each, every)| each.before(due, flow.rate, every))
        })
    }

    fn delay(&self, flow: &Flow, tally: &types::tally) -> Option<Delay> {
        let stream = flow.stream;
        let timed = PHASE2.contains(&stream) || self.request.phase2.is_none();
        let wanted = self.request.record_delays && timed;
        if !wanted {
            return None;
        }
        let side = if stream == PHASE2_RESPONDER { RESPONDER } else { INITIATOR };
        let some = |value| (tally.delays.count > 0).then_some(value);
        Some(Delay {
            frames: tally.delays.count,
            negative: tally.negative,
            due_in_stalls: None,
            minimum_ns: some(tally.delays.minimum),
            maximum_ns: some(tally.delays.maximum),
            sum_ns: some(tally.delays.sum),
            buckets: Buckets(filled_buckets(&self.programs.delays(side)).collect()),
            variation: self.request.record_variation.then(|| self.variation(side, tally)),
        })
    }

    fn port_report(&self, side: usize, received: &Received, offered: Offered) -> report::Port {
        let (port, before) = (&self.ports[side], self.before.drops[side]);
        let after = port.drops().unwrap_or(before);
        let types::device_signs { resets, renumbered, restamped, .. } = received.signs[side];
        let odd = total_odd(&received.odd[side]);
        report::Port {
            refused: offered.refused + received.unanswered[side],
            redirect_errors: offered.redirect_errors,
            foreign: received.foreign[side],
            neighbour_replies: received.neighbour_replies[side],
            rx_dropped: after.rx.saturating_sub(before.rx),
            tx_dropped: after.tx.saturating_sub(before.tx),
            gateway_mac: port.gateway.to_string(),
            mistranslated_address: received.stray[side].map(|(address, _)| address),
            mistranslated_port: received.stray[side].map(|(_, port)| port),
            icmp_errors: odd.errors,
            too_big: odd.too_big,
            path_mtu: (odd.path_mtu > 0).then_some(odd.path_mtu),
            queries: self
                .queries
                .as_ref()
                .filter(|_| side == INITIATOR)
                .map(|queries| QueryCounts { sent: queries.sent, answered: received.signs[side].answers }),
            device_signs: (self.request.frame.transport == Transport::Tcp).then_some(DeviceSigns {
                resets,
                renumbered,
                restamped,
            }),
        }
    }

    fn variation(&self, side: usize, tally: &types::tally) -> Variation {
        let above = self.programs.variations(side, NOT_NEGATIVE);
        let below = self.programs.variations(side, NEGATIVE);
        let mut buckets: Vec<_> = filled_buckets(&below).map(|(lower, upper, pairs)| (-upper, -lower, pairs)).collect();
        buckets.reverse();
        buckets.extend(filled_buckets(&above));
        let some = |value| (tally.variations.count > 0).then_some(value);
        Variation {
            pairs: tally.variations.count,
            minimum_ns: some(tally.variations.minimum),
            maximum_ns: some(tally.variations.maximum),
            buckets: Buckets(buckets),
        }
    }
}

/// From the due time of a sender's last frame until its batch was processed; 0 without frames.
fn settled_lag_ns(sender: &types::sender) -> u64 {
    let parts = sender.schedule.iter().filter(|part| part.frames > 0);
    let due = parts.map(|part| part.last_ns.saturating_sub(part.lag_final)).max();
    due.map_or(0, |due| sender.settled_ns.saturating_sub(due))
}

/// The longest stalls, in order of time. Only these are listed, so that a disturbed trial's result stays short.
fn longest_stalls(stalls: &[Stall], starts: [Option<u64>; 2]) -> Vec<report::Stall> {
    let mut longest = stalls.to_vec();
    longest.sort_by_key(|stall| Reverse(stall.to_ns - stall.from_ns));
    longest.truncate(LONGEST_STALLS);
    longest.sort_by_key(|stall| stall.from_ns);
    let [first, second] = starts;
    let relative = |stall: &Stall| {
        let second = second.filter(|&start| first.is_none() || start <= stall.to_ns);
        let phase = if second.is_some() { PhaseName::Phase2 } else { PhaseName::Phase1 };
        let start = second.or(first).unwrap_or(0) as i64;
        report::Stall { phase, from_ns: stall.from_ns as i64 - start, to_ns: stall.to_ns as i64 - start }
    };
    longest.iter().map(relative).collect()
}

/// Frames due in disturbed times, from the number that is due before a time since the phase's start, ns.
fn in_stalls(phase: &Phase, disturbed: &DisturbedTimes, due_before: impl Fn(f64) -> u64) -> u64 {
    let before = |ns: u64| due_before(ns.saturating_sub(phase.start_ns) as f64);
    disturbed.each().map(|(from, to)| before(to) - before(from)).sum()
}

/// Buckets that are not empty: lower end, upper end, frames.
fn filled_buckets(counts: &[u64]) -> impl Iterator<Item = (i64, i64, u64)> + use<'_> {
    let some = (0..).zip(counts).filter(|&(_, &frames)| frames > 0);
    some.map(|(at, &frames)| {
        let (lower, upper) = bucket_bounds(at);
        (lower, upper, frames)
    })
}

/// Lower and upper end of a bucket: 1 ns wide up to 2^DELAY_SUB_BITS ns, then 2^DELAY_SUB_BITS buckets per octave.
fn bucket_bounds(at: u32) -> (i64, i64) {
    let (octave, part) = (at >> DELAY_SUB_BITS, i64::from(at & ((1 << DELAY_SUB_BITS) - 1)));
    if octave == 0 {
        return (part, part + 1);
    }
    let width = 1_i64 << (octave - 1);
    let lower = ((1 << DELAY_SUB_BITS) + part) * width;
    (lower, lower + width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::{DELAY_BITS, DELAY_BUCKETS};

    #[test]
    fn buckets_meet_and_are_narrow() {
        for at in 1..DELAY_BUCKETS {
            let (before, here) = (bucket_bounds(at - 1), bucket_bounds(at));
            assert_eq!(before.1, here.0);
            assert!(here.1 - here.0 <= here.0 / 100 + 1, "{here:?}");
        }
        assert_eq!(bucket_bounds(DELAY_BUCKETS - 1).1, 1 << DELAY_BITS);
    }
}
