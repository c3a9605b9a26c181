// SPDX-License-Identifier: Apache-2.0
//! What was counted in a trial: from the maps of the frame programs, the ports and the CPUs to the result.

use crate::host::{self, Stalls};
use crate::port::{Drops, Port};
use crate::programs::{Offered, Received};
use crate::report::{
    self, Buckets, Clock, Counts, Cpu, Delay, Frame, Phase2, Ports, Role, Silence, StateTable, TrialResult, Variation,
};
use crate::request::FCS;
use crate::sender::Flow;
use crate::shared::{
    DELAY_SUB_BITS, INITIATOR, NEGATIVE, NOT_NEGATIVE, PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER, RESPONDER, SIDES,
};
use crate::tester::types;
use crate::trial::{Phase, Trial};

impl Trial<'_> {
    #[allow(clippy::too_many_arguments, reason = "each is one source of the result")]
    pub(super) fn result(
        mut self,
        ports: &[Port; SIDES],
        table_octets: u64,
        drops: [Drops; SIDES],
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
            version: report::VERSION,
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
                initiator: port_report(INITIATOR, &ports[INITIATOR], &received, offered[INITIATOR], drops[INITIATOR]),
                responder: port_report(RESPONDER, &ports[RESPONDER], &received, offered[RESPONDER], drops[RESPONDER]),
            },
            cpus: self.cpus(stolen, watched),
            clock: Clock { source: host::clock_source(), steps: self.steps.steps },
            start_to_first_frame_ns: self.first_frame_ns.unwrap_or(0),
            wall_ns: self.began.elapsed().as_nanos() as u64,
            frame: Frame { initiator_octets: octets[INITIATOR] + FCS, responder_octets: octets[RESPONDER] + FCS },
        }
    }

    fn cpus(&self, stolen: &[u64], watched: &[(usize, Stalls)]) -> Vec<Cpu> {
        let request = self.request;
        let stolen_of = |cpu: usize| {
            let at = request.senders.cpus.iter().chain(&request.watch_cpus).position(|&other| other == cpu);
            host::stolen_ns(cpu) - at.and_then(|at| stolen.get(at)).copied().unwrap_or(0)
        };
        let senders = request.senders.cpus.iter().zip(&self.records);
        let senders = senders.map(|(&cpu, record)| (cpu, Role::Sender, record.stalls, Some(record.waited_ns)));
        let watched = watched.iter().map(|&(cpu, stalls)| (cpu, Role::Watched, stalls, None));
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
            PHASE1 if !phase2 => received.damaged_unmarked[RESPONDER],
            PHASE2_INITIATOR => received.damaged_unmarked[RESPONDER],
            PHASE2_RESPONDER => received.damaged_unmarked[INITIATOR],
            _ => 0,
        }
    }

    fn delay(&self, stream: usize, tally: &types::tally) -> Option<Delay> {
        let wanted = self.request.record_delays && (stream != PHASE1 || self.request.phase2.is_none());
        if !wanted {
            return None;
        }
        let side = if stream == PHASE2_RESPONDER { RESPONDER } else { INITIATOR };
        let some = |value| (tally.delays > 0).then_some(value);
        Some(Delay {
            frames: tally.delays,
            negative: tally.negative,
            minimum_ns: some(tally.delay_minimum),
            maximum_ns: some(tally.delay_maximum),
            sum_ns: some(tally.delay_sum),
            buckets: Buckets(filled(&self.programs.delays(side)).collect()),
            variation: self.request.record_variation.then(|| self.variation(side, tally)),
        })
    }

    fn variation(&self, side: usize, tally: &types::tally) -> Variation {
        let above = self.programs.variations(side, NOT_NEGATIVE);
        let below = self.programs.variations(side, NEGATIVE);
        let mut buckets: Vec<_> = filled(&below).map(|(lower, upper, pairs)| (-upper, -lower, pairs)).collect();
        buckets.reverse();
        buckets.extend(filled(&above));
        let some = |value| (tally.pairs > 0).then_some(value);
        Variation {
            pairs: tally.pairs,
            minimum_ns: some(tally.variation_minimum),
            maximum_ns: some(tally.variation_maximum),
            buckets: Buckets(buckets),
        }
    }
}

/// The buckets that hold anything: lower end, upper end, frames.
fn filled(counts: &[u64]) -> impl Iterator<Item = (i64, i64, u64)> + use<'_> {
    let some = (0..).zip(counts).filter(|&(_, &frames)| frames > 0);
    some.map(|(at, &frames)| {
        let (lower, upper) = bucket(at);
        (lower, upper, frames)
    })
}

/// The delays a bucket holds: exact in the lowest octaves together, then as many buckets in each octave.
fn bucket(at: u32) -> (i64, i64) {
    let (octave, part) = (at >> DELAY_SUB_BITS, i64::from(at & ((1 << DELAY_SUB_BITS) - 1)));
    if octave == 0 {
        return (part, part + 1);
    }
    let width = 1_i64 << (octave - 1);
    let lower = ((1 << DELAY_SUB_BITS) + part) * width;
    (lower, lower + width)
}

fn port_report(side: usize, port: &Port, received: &Received, offered: Offered, before: Drops) -> report::Port {
    let after = port.drops().unwrap_or(before);
    report::Port {
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
    use crate::shared::{DELAY_BITS, DELAY_BUCKETS};

    #[test]
    fn buckets_meet_and_are_narrow() {
        for at in 1..DELAY_BUCKETS {
            let (before, here) = (bucket(at - 1), bucket(at));
            assert_eq!(before.1, here.0);
            assert!(here.1 - here.0 <= here.0 / 100 + 1, "{here:?}");
        }
        assert_eq!(bucket(DELAY_BUCKETS - 1).1, 1 << DELAY_BITS);
    }
}
