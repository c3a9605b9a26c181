# SPDX-License-Identifier: Apache-2.0
"""Simulated gateways with known answers: measurers without a network. Their trials are judged by the real rules."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tests.unit.counted import arrivals, change_counts, change_trial, make_counts, make_cpu, make_trial, timed
from tests.unit.recorded_delays import recorded

from natgauge.agreement.generated import Cpu, StreamCounts
from natgauge.delays import Delays
from natgauge.errors import BrokenError
from natgauge.measurer import Ability, Measurer
from natgauge.paired.slices import BlockWork, RoundPlan, TimedRound
from natgauge.procedures.kit.runner import nominal_seconds
from natgauge.readings import Readings
from natgauge.trials import Direction, Period, Trial, TrialPlan
from natgauge.verdicts import Limits, judge
from natgauge.words import Placement, Quantity

#: No more delays than these are recorded; enough for any percentile.
MOST_TIMED = 2000
#: How long the receiver still waits for frames after the last was sent, in seconds.
GRACE_SECONDS = 0.3
#: Between two periods of a trial.
PERIOD_PAUSE_SECONDS = 0.1
#: What plain forwarding and the tester itself need for a frame, in ns.
FORWARDING_NS, TESTER_NS = 700.0, 300.0
#: Whatever a measurer may be able to do.
ABLE = frozenset(Ability)
#: A stall that explains any loss of a trial of a few seconds.
LONG_STALL = make_cpu("watched", 3, 60.0, cpu=1, worst_stall_seconds=40.0)


def reading(trial: Trial, **others: Any) -> Trial:
    """The same trial, with other readings."""
    return replace(trial, readings=replace(trial.readings, **others))


def in_slices(**truth: Any) -> Gateway:
    """A gateway on the sender's core, whose frames can be timed in slices."""
    return Gateway(**{"placement": "shared", "abilities": frozenset({Ability.COSTS}), **truth})


@dataclass(slots=True)
class Gateway(Measurer):
    """A device of known truth behind a tester of known speed.

    Attributes:
        establishes: connections/s it establishes without loss, exactly.
        forwards: frames/s it forwards without loss in each direction, exactly.
        forwards_down: the same from the Responder; None = as `forwards`.
        placement: `shared` shows overload as lag, the others as loss.
        ceiling: what the tester says it can do, frames/s in all directions together.
        real_ceiling: what it really can do; above it the trial offers less than intended.
        table_size: connections the table holds.
        when_full: whether a full table refuses new connections or evicts old ones.
        noise: standard deviation of both rates from trial to trial, as a share.
        rare_loss: probability that a trial loses one frame for no reason.
        loses_share: share of the frames of each phase and direction that it loses at every rate, as a rule that counts
            frames does; below 1.
        answers_wrong: share of DNS queries that come back with a wrong answer, at every rate; below 1.
        leaks_copies: it forwards a second copy of each frame untranslated.
        disturbed: probability that a trial is disturbed and loses a frame by that.
        collapses_above: load at which the device dies; it is back for the next trial.
        passes: instead of the cliffs: whether a load passes (non-monotonic devices).
        delays: one-way delays of the frames of each direction of phase 2, in seconds and in the order they are sent;
            None stands for a lost frame; again from the start when they are used up.
        first_delays: the same of phase 1, where there is no phase 2.
        knows_count: whether the device can tell its own number of connections.
        four_tuples: of which phase 1 draws when it draws with replacement.
        seed: of every random choice.
        queue: frames that wait before the device, in each direction; of an overload they come through late.
        knows_limit: whether the device can tell how many connections it holds at most.
        loses_in: numbers of the trials, from 0, that lose a fifth of their frames for no reason.
        sender_lag: seconds by which the tester is behind at the end of each sending.
        left_open: TCP connections that it still calls open after trials that close them.
        counts: what the device says instead of its own number of connections.
        slower_in_slices: factor of what a frame costs it in slices, beside what its rates say.
        slice_noise: of each slice, a share.
        faults: what is wrong with the frames of the next rounds of slices, by place: the device, forwarding, the cable.
        breaks_in_slices: whether no round of slices can be run.
        takes: gets the number of each round, from 1, and what a frame of a block cost it, plain forwarding and the
            cable, in ns, and returns what it costs the places of the round.
        ring: what the tester knows of the queue before the device.
        ages: is called before each period of a trial with the gateway and the period's number, from 0; it changes the
            gateway, or raises what ends the trial.
        free_octets: available memory of its machine; None = not known.
        alters: gets the number of each trial, from 0, and the trial, and returns the trial as it ends
            (`tests.unit.counted.change_trial`).
        becomes: is called before each trial with the gateway and the trial's plan, and changes the gateway.
        due_in_stalls: timed frames of each direction that were due in stalls; None = not known.
        cpus: disturbances of CPUs in each trial.
        empties: seconds that emptying takes it with so many connections.
        keeps: connections that its first emptying after a trial leaves.
        sticky: of its next emptyings, so many leave 3 connections.
        more_seconds: that a trial takes beside its frames.
        restart_late: seconds by which a restart in a trial begins too late.
        receiver_seconds: what the tester's receivers take of its cores for a frame; None = it cannot be measured.
        probed: gets the number of trials so far, and returns whether a handful of frames that prove forwarding comes
            back, or raises what the engine would.
        prints: gets each command that is no word of `gateways/`, and returns what it prints.
        says: gets each command and the number of trials so far, and returns the error with which it fails; empty = it
            does not.
        expires: connections that it holds so many seconds after a trial; None = it forgets none.
        downs: how often the link to the Initiator went down so far.
        refused: frames that the device says it refused in the next trial, by its names of causes.
        lists: the tester's list of the connections of so many, in place of plain ones.
        logs: gets the records of a trial's connections and its plan, and returns what the device logs; one with a
            number before it comes so many seconds later.
        logs_ends: seconds after emptying until it logs the end of each connection that it held; None = it does not.
    """

    establishes: float = 1e6
    forwards: float = 1e6
    forwards_down: float | None = None
    placement: Placement = "isolated"
    ceiling: float = 16e6
    real_ceiling: float = float("inf")
    table_size: int = 2**40
    when_full: Literal["refuse", "evict"] = "refuse"
    noise: float = 0.0
    rare_loss: float = 0.0
    loses_share: float = 0.0
    answers_wrong: float = 0.0
    leaks_copies: bool = False
    disturbed: float = 0.0
    collapses_above: float = float("inf")
    passes: Callable[[float], bool] | None = None
    delays: Sequence[float | None] = (10e-6,)
    first_delays: Sequence[float | None] = (10e-6,)
    knows_count: bool = True
    four_tuples: int = 100_000
    seed: int = 1
    abilities: frozenset[Ability] = frozenset()
    plans: list[TrialPlan] = field(default_factory=list)
    outcomes: list[Trial] = field(default_factory=list)
    _random: random.Random = field(init=False)
    queue: int = 0
    knows_limit: bool = True
    loses_in: frozenset[int] = frozenset()
    sender_lag: float = 0.0
    left_open: int = 0
    counts: int | None = None
    slower_in_slices: float = 1.0
    slice_noise: float = 0.0
    faults: list[dict[int, str]] = field(default_factory=list)
    breaks_in_slices: bool = False
    takes: Callable[[int, tuple[float, float, float]], tuple[float, ...]] | None = None
    rounds: list[RoundPlan] = field(default_factory=list)
    ring: int | None = None
    ages: Callable[[Gateway, int], None] | None = None
    free_octets: int | None = None
    alters: Callable[[int, Any], Any] | None = None
    becomes: Callable[[Gateway, Any], None] | None = None
    refused: dict[str, int] = field(default_factory=dict)
    downs: int = 0
    due_in_stalls: int | None = None
    cpus: tuple[Cpu, ...] = ()
    empties: Callable[[int], float] = lambda held: 0.001 + held / 1e6
    keeps: int = 0
    sticky: int = 0
    more_seconds: float = 0.0
    restart_late: float = 0.0
    receiver_seconds: float | None = None
    probed: Callable[[int], bool] | None = None
    says: Callable[[str, int], str] | None = None
    expires: Callable[[float], int] | None = None
    prints: Callable[[str], str] = lambda _command: ""
    lists: Callable[[int], Sequence[bytes]] | None = None
    logs: Callable[[list[str], TrialPlan], Sequence[str | tuple[float, str]]] = lambda records, _plan: records
    logs_ends: float | None = None

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - a simulation, nothing secret

    @property
    def highest_rate(self) -> float:
        return self.ceiling

    def clock(self) -> float:
        """Seconds that the trials so far would have taken."""
        return sum(map(nominal_seconds, self.plans))

    def limits(self) -> Limits:
        return Limits(self.table_size if self.knows_count and self.knows_limit else None)

    def measure(self, plan: TrialPlan) -> Trial:
        trial = judge(self.trial(plan), self.limits())
        if plan.record_delays:
            if trial.phase2:
                delays = {direction: self._delays(plan, counts) for direction, counts in trial.phase2.items()}
                trial = change_trial(trial, delays=delays)
            else:
                trial = change_trial(trial, phase1=timed(trial.phase1, self._delays(plan, trial.phase1)))
        self.plans.append(plan)
        self.outcomes.append(trial)
        return trial

    def periods(self, plan: TrialPlan, heard: Callable[[Period], bool]) -> tuple[Period, ...]:
        """Many trials in no time, with a pause of a tenth of a second after each."""
        if Ability.PERIODS not in self.abilities or plan.phase2 is None:
            return super().periods(plan, heard)
        single = replace(plan, phase2=replace(plan.phase2, periods=1))
        found: list[Period] = []
        for number in range(plan.phase2.periods):
            if self.ages is not None:
                self.ages(self, number)
            end = (number + 1) * plan.phase2.seconds + number * PERIOD_PAUSE_SECONDS
            # The procedure judges the count, not the verdict on a period.
            said, self.counts = self.counts, None
            outcome = self.measure(single)
            outcome = outcome if said is None else reading(outcome, count_after=said)
            self.counts = said
            found.append(Period(outcome, end, self.free_octets))
            if not heard(found[-1]):
                break
        return tuple(found)

    def costs(self, plan: RoundPlan) -> TimedRound:
        """A round of slices in no time, on a host whose speed changes from block to block."""
        if Ability.COSTS not in self.abilities:
            return super().costs(plan)
        self.rounds.append(plan)
        if self.breaks_in_slices:
            raise BrokenError("engine: interrupted")
        faults = self.faults.pop(0) if self.faults else {}
        asked = [quantity for quantity, number in plan.blocks.items() for _ in range(number)]
        work = tuple(self._block(quantity, alone=plan.alone) for quantity in asked)
        return TimedRound(work, faults, len(asked) * (2 if plan.alone else 6), 0)

    def _block(self, quantity: Quantity, *, alone: bool) -> BlockWork:
        down = self.forwards_down or self.forwards
        frames = 1e9 / self.forwards, 1e9 / down
        ns = {"new": 1e9 / self.establishes, "up": frames[0], "down": frames[1], "both": max(frames) / 2}
        speed = self._random.uniform(1.0, 1.0 + 0.7 * (self.slice_noise > 0))

        def slice_of(cost: float) -> float:
            return cost * speed * math.exp(self._random.gauss(0, self.slice_noise))

        device = slice_of(ns[quantity] * self.slower_in_slices)
        if alone:
            return BlockWork(quantity, (device,))
        work = device, slice_of(FORWARDING_NS), slice_of(TESTER_NS)
        return BlockWork(quantity, work if self.takes is None else self.takes(len(self.rounds), work))

    def trial(self, plan: TrialPlan) -> Trial:
        """What it does in the next trial."""
        if self.becomes is not None:
            self.becomes(self, plan)
        trial = self._trial(plan)
        return trial if self.alters is None else self.alters(len(self.plans), trial)

    def _delays(self, plan: TrialPlan, counts: StreamCounts) -> Delays | None:
        """Of the first frames; a direction's delays are the more often repeated, the more frames it has."""
        frames = min(counts.received_frames, MOST_TIMED, plan.delay_samples or MOST_TIMED)
        if not frames:
            return None
        delays = self.first_delays if plan.phase2 is None else self.delays
        timed_ones = recorded(list(itertools.islice(itertools.cycle(delays), frames)))
        timed_ones = replace(timed_ones, due_in_stalls=self.due_in_stalls)
        return timed_ones if plan.record_variation else replace(timed_ones, variation=None)

    def _trial(self, plan: TrialPlan) -> Trial:
        disturbed = self._random.random() < self.disturbed
        extra = int(disturbed or self._random.random() < self.rare_loss)
        opened = plan.connections if plan.order != "with-replacement" else min(plan.connections, self.four_tuples)
        refused = max(opened - self.table_size, 0) if self.when_full == "refuse" else 0
        phase1 = make_counts(0, 0, 0)
        if plan.has_phase1:
            phase1 = self._stream(plan.connections, plan.phase1_rate, self.establishes, refused=refused, plan=plan)
        phase2 = self._phase2(plan)
        if phase2:
            first = next(iter(phase2))
            phase2[first] = _with_loss(phase2[first], extra)
        else:
            phase1 = _with_loss(phase1, extra)
        if plan.request_octets is not None:
            # What is lost of a transaction is its SYN.
            messages = tuple(arrivals(name, phase1.received_frames) for name in ("syn", "syn-ack", "ack"))
            phase1 = change_counts(phase1, messages=messages)
        if len(self.plans) in self.loses_in:
            phase2 = {
                direction: _with_loss(counts, counts.intended_frames // 5) for direction, counts in phase2.items()
            }
        load = (
            max(plan.phase1_rate, plan.phase2.initiator_rate, plan.phase2.responder_rate)
            if plan.phase2
            else (plan.phase1_rate)
        )
        created = phase1.received_frames + phase1.late
        if plan.order == "with-replacement" and created:
            # So many of the four tuples are hit on average; the simulation always hits exactly so many.
            created = round(self.four_tuples * (1 - math.exp(created * math.log1p(-1 / self.four_tuples))))
        return make_trial(
            plan,
            phase1=phase1 if plan.has_phase1 else None,
            phase2=phase2,
            stored=phase1.received_frames,
            readings=Readings(
                count_before=0 if self.knows_count else None,
                count_after=self._counted(min(created, self.table_size)),
                established=self.left_open if plan.close is not None else None,
                device_error="" if load <= self.collapses_above else "it does not answer",
                forwards=None if load <= self.collapses_above else False,
            ),
            cpus=(LONG_STALL,) if disturbed else self.cpus,
            placement=self.placement,
        )

    def _counted(self, held: int) -> int | None:
        if not self.knows_count:
            return None
        return held if self.counts is None else self.counts

    def _phase2(self, plan: TrialPlan) -> dict[Direction, StreamCounts]:
        if plan.phase2 is None:
            return {}
        rates = {Direction.INITIATOR: plan.phase2.initiator_rate, Direction.RESPONDER: plan.phase2.responder_rate}
        active = {direction: rate for direction, rate in rates.items() if rate > 0}
        limits = {Direction.INITIATOR: self.forwards, Direction.RESPONDER: self.forwards_down or self.forwards}
        # A connection that the table does not hold is not forwarded to.
        missing = max(plan.connections - self.table_size, 0) if plan.phase2.reading_order == "once" else 0
        return {
            direction: self._stream(
                max(round(rate * plan.phase2.seconds), 1),
                rate,
                limits[direction],
                streams=len(active),
                refused=missing if direction is Direction.RESPONDER else 0,
                plan=plan,
            )
            for direction, rate in active.items()
        }

    def _stream(
        self, frames: int, rate: float, limit: float, *, plan: TrialPlan, streams: int = 1, refused: int = 0
    ) -> StreamCounts:
        limit *= max(1 + self._random.gauss(0, self.noise), 0.01)
        overloaded = rate > limit if self.passes is None else not self.passes(rate)
        share = min(limit / rate, 1.0)
        offered = frames if rate * streams <= self.real_ceiling else int(frames * self.real_ceiling / (rate * streams))
        lossless = self.placement == "shared" or not overloaded
        forwarded = frames if lossless else max(min(int(frames * share), frames - 1), 0)
        late = 0
        if not lossless and self.queue:
            forwarded, late = self._queued(frames, rate, limit, plan.frame_timeout_seconds)
            # What a queue drops opens no connection, so it is not refused a second time.
            forwarded, late = min(forwarded, frames - refused), min(late, max(frames - refused - forwarded, 0))
            refused = 0
        nominal = frames / rate
        sending = nominal / share if self.placement == "shared" else nominal
        sending += self.sender_lag
        wrong = int(offered * self.answers_wrong) if plan.query is not None else 0
        return make_counts(
            intended=frames,
            offered=offered,
            received=max(min(forwarded - refused, offered) - int(offered * self.loses_share) - wrong, 0),
            messages=(arrivals("response", 0, wrong),) if wrong else (),
            late=late,
            untranslated=offered if self.leaks_copies else 0,
            nominal_seconds=nominal,
            sending_seconds=sending,
            worst_lag_seconds=sending - nominal,
            final_lag_seconds=sending - nominal,
        )

    def _queued(self, frames: int, rate: float, limit: float, timeout: float | None) -> tuple[int, int]:
        """Frames in time, and late ones, of an overload that a queue takes up first: its tail is dropped."""
        worked = min(frames, int(frames * limit / rate) + self.queue)
        longest = GRACE_SECONDS if timeout is None else timeout
        if self.queue <= longest * limit:
            return worked, 0
        # Each frame after this many waits longer than it may.
        in_time = min(frames, int(rate * longest * limit / (rate - limit)))
        return min(in_time, worked), max(worked - in_time, 0)


def _with_loss(counts: StreamCounts, frames: int) -> StreamCounts:
    return change_counts(counts, received=max(counts.received_frames - frames, 0))
