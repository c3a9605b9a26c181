# SPDX-License-Identifier: Apache-2.0
"""Estimate a plan's trials, time and memory by running its procedures on a simulated device of fixed rates.

Real devices are faster or slower, and INVALID trials are repeated, so a campaign differs from the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from natgauge import doubts, procedures
from natgauge.agreement.generated import DelayCounts, Phase2Counts, Silence, StreamCounts, VariationCounts
from natgauge.agreement.trial import NO_FRAMES, result_of, stream_of
from natgauge.campaigns.cells import CellMeasurement, PlannedCell, lacks_rate
from natgauge.campaigns.plan import PlanError
from natgauge.delays import Delays
from natgauge.errors import NatgaugeError, UsageError
from natgauge.figure_text import likely
from natgauge.figure_text import number as written
from natgauge.gateways.limits import choose, octets_needed
from natgauge.gateways.recipe import load
from natgauge.inputs.question import Cell, Question
from natgauge.labs import kinds
from natgauge.labs.common.register import kept_settings
from natgauge.measurer import Ability, CountAt, Measurer, TearDown
from natgauge.notes import Note
from natgauge.paired.slices import LEAD_FRAMES, BlockWork, RoundPlan, TimedRound
from natgauge.procedures.kit.phases import CONNECTION_RATE
from natgauge.procedures.kit.procedure import make_settings
from natgauge.procedures.kit.queues import GRAVE_SHARE
from natgauge.procedures.kit.rate_search import ShortTrialsError, rounded_up
from natgauge.procedures.kit.runner import nominal_seconds
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.readings import Readings
from natgauge.records.parameters import Parameters
from natgauge.trial.bench import ASSUMED_HIGHEST, Bench
from natgauge.trial.planned import frames_of_profile
from natgauge.trial.server import ALONE_SECONDS
from natgauge.trials import Direction, Period, Restart, Trial, TrialPlan
from natgauge.words import TESTER, Family, Quantity, Verdict

#: Connections and frames per second of the simulated device: of one in the kernel, and of one that works in processes.
ASSUMED_CONNECTIONS: Final = 300_000.0
ASSUMED_FRAMES: Final = 500_000.0
ASSUMED_OF_PROCESSES: Final = 40_000.0
#: Those of a fast one that works in processes, whose trials are shorter.
FAST_OF_PROCESSES: Final = 100_000.0
#: Nanoseconds that each frame takes.
ASSUMED_DELAY_NS: Final = 10_000
#: Time in addition to sending, measured in namespaces on a small virtual machine: of each phase (starting the engine,
#: waiting for late frames, emptying the table), and of each cell run (making a lab, starting a device).
PHASE_SECONDS: Final = 0.25
CELL_RUN_SECONDS: Final = 1.5
#: Time of a cell run in which its trials do not count: the limit of a measurement's time leaves it out.
_MOST_FOR_CELL_RUN: Final = 4.0
#: Pause between two periods of a trial: the gap of 100 ms, and the wait for the last frames.
PERIOD_PAUSE_SECONDS: Final = 0.12
#: Time of a restart.
RESTART_SECONDS: Final = 1.0
#: Share of the time after a reset for which the simulated device is away: longer than a power that is off meanwhile.
_AWAY: Final = 0.8
#: Share of an overload that it forwards.
_OVERLOADED: Final = 0.99
#: What is foreseen of trials that are too short for the tester.
NO_RESULT: Final = "no result"
#: Octets of the tester's state table per connection, by the family that the Responder sees.
_OCTETS: Final[Mapping[Family, int]] = {"ipv4": 8, "ipv6": 24}


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A doubt that could change the answer and that a result will have, on a device of the assumed rate.

    Attributes:
        enough: how much of a setting makes a share that is too high less than `GRAVE_SHARE`, such as "120,000
            connections"; empty = the doubt has no such share.
    """

    cell: str
    measurement: str
    word: str
    text: str
    share: float
    enough: str


@dataclass(frozen=True, slots=True)
class Once:
    """Estimate of one repetition.

    Attributes:
        trials: in all; a round of slices counts as one where it is no mere preparation.
        most_seconds: when --most-seconds ends it; infinite = never.
        doubts: those that could change the answer and follow from the plan, on a device of the assumed rate.
        refused: why trials are too short for any result on such a device; empty = they are not.
    """

    trials: int
    seconds: float
    most_seconds: float = math.inf
    cut: bool = False
    outlasts: bool = False
    doubts: tuple[Note, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimate of a measurement, a cell or a plan; trials and `most_seconds` as of `Once`.

    Attributes:
        device_octets: largest memory of the device; None = not known, because a recipe does not state it.
        outlasting: a line for each cell whose device would expire connections in the middle of a trial.
        unmade: kinds of labs that are made anew for each repetition of a cell, in a time that nobody knows.
    """

    trials: int
    seconds: float
    most_seconds: float
    tester_octets: int
    device_octets: int | None
    cut: int
    outlasting: tuple[str, ...]
    unmade: frozenset[str]
    foreseen: tuple[Foreseen, ...]

    @property
    def likely(self) -> str:
        """The likely range of the time, in words."""
        without = f", without making labs ({', '.join(sorted(self.unmade))})" if self.unmade else ""
        return f"{likely(self.seconds, self.most_seconds)}{without}"


def estimate(points: Sequence[PlannedCell]) -> Estimate:
    """Estimate all cells; memory is that of the largest cell, because they are run one at a time."""
    every = [of_cell(point) for point in points]
    octets = [cell.device_octets for cell in every if cell.device_octets is not None]
    return Estimate(
        trials=sum(cell.trials for cell in every),
        seconds=sum(cell.seconds for cell in every),
        most_seconds=sum(cell.most_seconds for cell in every),
        tester_octets=max(cell.tester_octets for cell in every),
        device_octets=max(octets) if len(octets) == len(every) else None,
        cut=sum(cell.cut for cell in every),
        outlasting=tuple(line for cell in every for line in cell.outlasting),
        unmade=frozenset(kind for cell in every for kind in cell.unmade),
        foreseen=tuple(doubt for cell in every for doubt in cell.foreseen),
    )


def of_question(question: Question) -> Estimate:
    """Estimate a measurement, whose repetitions share its time, in a lab that is there."""
    with frames_of_profile(question):
        bench = Bench(question.cell)
    planned = bench.plan(question.metric, question.settings)
    recipe = load(question.cell.gateway)
    only = CellMeasurement(question.metric, question.settings, planned)
    cell = PlannedCell(question.metric, recipe.name, {}, question.cell, recipe, planned.settings.connections, (only,))
    estimated, most = replace(of_cell(cell), unmade=frozenset()), planned.settings.most_seconds
    return estimated if most is None else replace(estimated, most_seconds=most + _MOST_FOR_CELL_RUN)


def likely_of(question: Question) -> str:
    """Return the likely range of a measurement's time in words; empty where the measurement says what is wrong."""
    try:
        return of_question(question).likely
    except NatgaugeError:
        return ""


def checked_estimate(points: Sequence[PlannedCell], where: str) -> Estimate:
    """Estimate all cells, and refuse a plan whose trials outlast a UDP time-out that is not natgauge's to raise."""
    estimated = estimate(points)
    if estimated.outlasting:
        raise PlanError(where, [*estimated.outlasting])
    return estimated


def repetitions(point: PlannedCell) -> dict[str, Once]:
    """Estimate one repetition of each measurement of a cell, by the measurement's name."""
    rate_known = any(measurement.metric == CONNECTION_RATE for measurement in point.measurements)
    knobs = _chosen(point)
    return {each.name: _of_repetition(each, knobs, rate_known=rate_known) for each in point.measurements}


def _chosen(point: PlannedCell) -> Mapping[str, int]:
    knobs = {name: knob.minimum for name, knob in point.recipe.knobs.named().items() if knob.settable}
    return choose(point.recipe, point.measurements[0].planned.demand, point.cell.device, knobs)


def of_cell(point: PlannedCell) -> Estimate:
    """Return the estimate of one cell: all measurements, each with all its repetitions."""
    each, kind = repetitions(point), point.cell.lab.lab
    visits = max(measurement.most_repetitions for measurement in point.measurements)
    trials, seconds, most, cut = 0, visits * CELL_RUN_SECONDS, visits * _MOST_FOR_CELL_RUN, 0
    for measurement in point.measurements:
        once, times = each[measurement.name], measurement.most_repetitions
        trials += once.trials * times
        seconds += once.seconds * times
        most += once.most_seconds * times
        cut += once.cut * times
        if measurement.planned.settings.far_side != TESTER:
            # One repetition measures the server alone, too.
            seconds += min(once.seconds, ALONE_SECONDS)
            most += ALONE_SECONDS
    return Estimate(
        trials=trials,
        seconds=seconds,
        most_seconds=most,
        tester_octets=_phase1_frames(point) * _OCTETS[point.recipe.responder_family],
        device_octets=_device_octets(point),
        cut=cut,
        outlasting=(_outlasting(point),) if any(once.outlasts for once in each.values()) else (),
        unmade=frozenset({kind}) if _takes_long(point.cell) else frozenset(),
        foreseen=tuple(doubt for one in point.measurements for doubt in _foreseen(point, one, each[one.name])),
    )


def _foreseen(point: PlannedCell, measurement: CellMeasurement, once: Once) -> Iterator[Foreseen]:
    settings = measurement.planned.settings
    if once.refused:
        yield Foreseen(point.name, measurement.name, NO_RESULT, f"{NO_RESULT}: {once.refused}", math.inf, "")
    opens = measurement.planned.procedure.declared.phase == 1
    kernel = ASSUMED_CONNECTIONS if opens else ASSUMED_FRAMES
    rate = FAST_OF_PROCESSES if settings.own_processes else kernel
    for doubt in once.doubts:
        text, share, enough = doubt.text, 0.0, ""
        if doubts.doubts()[doubt.word].share == "too high" and doubt.value:
            text, share = f"{text} at {written(rate)}/s", doubt.value
            needed = (settings.phase1_frames if opens else settings.phase2_seconds) * share / GRAVE_SHARE
            longer = f"trial_seconds = {math.ceil(needed * 10) / 10:g}"
            enough = f"{rounded_up(needed):,} connections" if opens else longer
        yield Foreseen(point.name, measurement.name, doubt.word, text, share, enough)


def _takes_long(cell: Cell) -> bool:
    """Whether labs are made for it in a time that nobody knows: none on a wire, and none where one is kept."""
    kind = cell.lab.lab
    if kinds.get(kind).quick or kept_settings(cell.lab.lab_name, kind) is not None:
        return False
    return bool(Bench(cell).lab.devices)


def _device_octets(point: PlannedCell) -> int | None:
    recipe = point.recipe
    if recipe.stateful and recipe.limits.octets_per_connection is None:
        return None
    return octets_needed(recipe, point.measurements[0].planned.demand, _chosen(point), {})


def _outlasting(point: PlannedCell) -> str:
    timeout = _chosen(point)["udp_timeout"]
    after = max(measurement.planned.demand.after_seconds for measurement in point.measurements)
    frames = _phase1_frames(point)
    rate = frames / (timeout - after) if timeout > after else math.inf
    return (
        f"{point.name}: a trial of {frames:,} connections at less than {written(rate)} a second outlasts the UDP "
        f"time-out of {timeout:,} s; give the device a longer udp_timeout, or take fewer connections"
    )


def _phase1_frames(point: PlannedCell) -> int:
    """The most frames of a phase 1: connections or draws."""
    return max(measurement.planned.settings.phase1_frames for measurement in point.measurements)


def _of_repetition(measurement: CellMeasurement, knobs: Mapping[str, int], *, rate_known: bool) -> Once:
    """Estimate one repetition on a device with these knobs; `rate_known`: the connection rate is known by then."""
    once = _run(measurement, knobs, rate_known=rate_known)
    if measurement.planned.settings.most_seconds is not None:
        unlimited = _run(measurement, knobs, rate_known=rate_known, most_seconds=0.0)
        once = replace(once, cut=unlimited.seconds > once.seconds)
    if measurement.planned.settings.own_processes:
        # Nobody knows how slow the device is, so that nothing is refused or doubted for that.
        slow = _run(measurement, knobs, rate_known=rate_known, rates=(ASSUMED_OF_PROCESSES,) * 2)
        fast = _run(measurement, knobs, rate_known=rate_known, rates=(FAST_OF_PROCESSES,) * 2)
        once = replace(once, trials=slow.trials, seconds=slow.seconds, doubts=fast.doubts, refused=slow.refused)
    return replace(once, most_seconds=measurement.planned.settings.most_seconds or math.inf)


def _run(
    measurement: CellMeasurement,
    knobs: Mapping[str, int],
    *,
    rate_known: bool,
    rates: tuple[float, float] = (ASSUMED_CONNECTIONS, ASSUMED_FRAMES),
    **others: float,
) -> Once:
    settings = measurement.planned.settings
    assumed = {"connection_rate": rates[0]} if rate_known and lacks_rate(measurement) else {}
    single = make_settings(
        measurement.planned.procedure,
        {**measurement.planned.chosen, **assumed, "repeat": 1, **others},
        connections=settings.connections,
        placement=settings.placement,
        own_processes=settings.own_processes,
        order=settings.order,
        four_tuples=getattr(settings, "four_tuples", None) or settings.connections,
        transport=getattr(settings, "transport", "udp"),
    )
    return _simulated(measurement.metric, single, (*rates, knobs.get("table_size"), knobs.get("udp_timeout")))


@lru_cache(maxsize=1024)
def _simulated(metric: str, single: TrialSettings, known: tuple[float, float, int | None, int | None]) -> Once:
    """Estimate a repetition on a device of which this is known; cells of other gateways often ask for the same."""
    device = _Assumed(*known)
    try:
        measured = procedures.get(metric).measure(device, single, clock=device.clock)
    except ShortTrialsError as error:
        return Once(max(device.trials, 1), device.seconds, outlasts=device.outlasts, refused=str(error))
    except NatgaugeError:
        # The procedure needs a device that does more than the simulated one; the trials until then count.
        seconds = max(device.seconds, single.most_seconds or PHASE_SECONDS)
        return Once(max(device.trials, 1), seconds, outlasts=device.outlasts)
    run = single.as_run()
    known_of = Parameters.grouped(
        settings={"frame_timeout_seconds": run.frame_timeout_seconds},
        place={"placement": run.placement},
        device={"own_processes": run.own_processes},
    )
    found = (each for each in doubts.find(measured, known_of) if doubts.doubts()[each.word].foreseen)
    grave = tuple(each for each in found if each.grade == "answer")
    return Once(device.trials, device.seconds, outlasts=device.outlasts, doubts=grave)


@dataclass(slots=True)
class _Assumed(Measurer):
    """A simulated device of fixed rates.

    Attributes:
        forwards: frames/s, in each direction.
        table: connections that it keeps, the first ones; None = all.
        timeout: seconds for which it remembers a connection; None = it is not known.
    """

    opens: float
    forwards: float
    table: int | None = None
    timeout: int | None = None
    outlasts: bool = False
    trials: int = 0
    seconds: float = 0.0
    _connections: int = field(default=0)

    @property
    def abilities(self) -> frozenset[Ability]:
        return frozenset(Ability)

    @property
    def highest_rate(self) -> float:
        return ASSUMED_HIGHEST

    def clock(self) -> float:
        """Simulated seconds of all trials so far."""
        return self.seconds

    def measure(self, plan: TrialPlan) -> Trial:
        self.trials += 1
        self.seconds += nominal_seconds(plan) + PHASE_SECONDS * (1 + (plan.phase2 is not None))
        sent = nominal_seconds(plan) - plan.settle_seconds
        self.outlasts |= self.timeout is not None and not plan.stateless and sent >= self.timeout
        self._connections = plan.connections
        phase1 = _counts(plan.connections, plan.phase1_rate, self.opens) if plan.has_phase1 else NO_FRAMES
        if plan.record_delays and plan.phase2 is None:
            phase1 = phase1.model_copy(update={"delay": _delays(phase1.received_frames)})
        kept = phase1.received_frames if self.table is None else min(phase1.received_frames, self.table)
        phase2 = None
        if plan.phase2 is not None:
            both, share = plan.phase2, kept / max(1, phase1.received_frames)
            phase2 = Phase2Counts(
                initiator=_stream(plan, both.initiator_rate, self.forwards, share),
                responder=_stream(plan, both.responder_rate, self.forwards, share),
            )
        trial = Trial(
            plan,
            None,
            result_of(plan.connections, phase1.received_frames, phase1, phase2),
            Readings(count_after=kept),
            None if (at := plan.restart_at_seconds) is None else Restart(at, at + RESTART_SECONDS),
            placement="isolated",
            verdict=Verdict.PASS,
            reason="",
        )
        failed = 1 if phase1.lost else 2 if any(counts.lost for counts in trial.phase2.values()) else None
        if failed is None:
            return trial
        reason = "beyond what is assumed"
        return replace(trial, verdict=Verdict.FAIL, reason=reason, limited_by="device", failed_phase=failed)

    def periods(self, plan: TrialPlan, heard: Callable[[Period], bool]) -> tuple[Period, ...]:
        if plan.phase2 is None:
            raise UsageError("periods: the trial has no phase 2")
        number, length = plan.phase2.periods, plan.phase2.seconds
        outcome = self.measure(replace(plan, phase2=replace(plan.phase2, periods=1)))
        self.trials += number - 1
        self.seconds += (number - 1) * (length + PERIOD_PAUSE_SECONDS)
        periods = tuple(Period(outcome, (at + 1) * length + at * PERIOD_PAUSE_SECONDS) for at in range(number))
        for period in periods:
            heard(period)
        return periods

    def empty_timed(self) -> TearDown:
        held, self._connections = self._connections, 0
        seconds = held / self.opens + 0.001
        self.seconds += seconds
        return TearDown(seconds, held, 0)

    def watch_count(self, interval_seconds: float, longest_seconds: float) -> tuple[CountAt, ...]:
        del interval_seconds
        self.seconds += longest_seconds
        return (CountAt(0.0, self._connections), CountAt(longest_seconds, 0))

    def restart(self) -> None:
        self.seconds += RESTART_SECONDS

    def own_delays(self, plan: TrialPlan) -> dict[Direction, Delays]:
        self.seconds += PHASE_SECONDS + 2.0
        del plan
        delays = Delays.of(_delays(1))
        return {} if delays is None else {Direction.INITIATOR: delays}

    def costs(self, plan: RoundPlan) -> TimedRound:
        blocks = [quantity for quantity, number in plan.blocks.items() for _ in range(number)]
        slices = len(blocks) * (2 if plan.alone else 6)
        self.trials += not plan.alone
        opening, sending = plan.connections / self.opens, slices * (LEAD_FRAMES + plan.frames) / self.forwards
        self.seconds += PHASE_SECONDS + opening + sending
        return TimedRound(tuple(self._block(quantity, plan) for quantity in blocks), {}, slices, 0)

    def _block(self, quantity: Quantity, plan: RoundPlan) -> BlockWork:
        """Return a block of a device that works twice as long as plain forwarding."""
        rate = {"new": self.opens, "both": 2 * self.forwards}.get(quantity, self.forwards)
        if plan.alone:
            return BlockWork(quantity, (1e9 / rate,))
        return BlockWork(quantity, (1e9 / rate, 1e9 / (2 * rate), 1e9 / ASSUMED_HIGHEST))


def _counts(frames: int, rate: float, limit: float, kept: float = 1.0) -> StreamCounts:
    """Counts of frames sent at a rate, if the device keeps this share of the connections."""
    passed = kept * min(1.0, limit / rate)
    lost = 0 if passed >= 1 else min(frames, max(1, int(frames * (1 - passed))))
    nominal_ns = round(frames / rate * 1e9)
    return stream_of(
        intended_frames=frames,
        offered_frames=frames,
        received_frames=frames - lost,
        nominal_ns=nominal_ns,
        sending_ns=nominal_ns,
        longest_silence=Silence(from_ns=0, to_ns=0),
    )


def _stream(plan: TrialPlan, rate: float, limit: float, kept: float) -> StreamCounts | None:
    if not rate or plan.phase2 is None:
        return None
    seconds, at = plan.phase2.seconds, plan.restart_at_seconds
    # An overload is one of any device.
    limit = limit if plan.phase2.step is None else min(limit, _OVERLOADED * rate)
    counts = _counts(plan.phase2.frames(rate), rate, limit, kept)
    if plan.phase2.step is not None:
        counts = counts.model_copy(update={"last_lost_ns": round(seconds * 1e9)})
    if at is not None:
        back = at + _AWAY * (seconds - at)
        away = {
            "received_frames": max(counts.received_frames - round((back - at) * rate), 0),
            "longest_silence": Silence(from_ns=round(at * 1e9), to_ns=round(back * 1e9)),
            "last_lost_ns": round(back * 1e9),
        }
        counts = counts.model_copy(update=away)
    return counts.model_copy(update={"delay": _delays(counts.received_frames)}) if plan.record_delays else counts


def _delays(frames: int) -> DelayCounts:
    """Frames that all took as long."""
    apart = VariationCounts(pairs=frames, minimum_ns=0, maximum_ns=0, buckets=[(0, 1, frames)])
    return DelayCounts(
        frames=frames,
        negative=0,
        minimum_ns=ASSUMED_DELAY_NS,
        maximum_ns=ASSUMED_DELAY_NS,
        sum_ns=ASSUMED_DELAY_NS * frames,
        buckets=[(ASSUMED_DELAY_NS, ASSUMED_DELAY_NS + 1, frames)],
        variation=apart,
    )
