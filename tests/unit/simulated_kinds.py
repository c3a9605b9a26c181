# SPDX-License-Identifier: Apache-2.0
"""Simulated gateways with one peculiarity each, for tests of searches and for `benchmarks.random_gateways`."""

from __future__ import annotations

from dataclasses import dataclass

from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import change_counts, change_trial
from tests.unit.recorded_delays import recorded
from tests.unit.simulated import ABLE, Gateway, reading

from natgauge.agreement.generated import StreamCounts
from natgauge.delays import Delays
from natgauge.device_work import CoreWork
from natgauge.late_delays import LateDelays
from natgauge.measurer import Ability, OutlastingError
from natgauge.readings import LogCounts
from natgauge.trials import Direction

#: Above every time limit that a search sets for a frame by itself.
DELAY_SECONDS = 0.024


@dataclass(slots=True)
class Policed(Gateway):
    """A gateway behind a policer: `lasting` connections/s, and `burst` of them at once."""

    lasting: float = 20_000.0
    burst: int = 5_000

    def _trial(self, plan: PlanOfTrial) -> OneTrial:
        trial = Gateway._trial(self, plan)
        counts = trial.phase1
        passed = min(counts.received_frames, int(self.burst + self.lasting * counts.offered_frames / plan.phase1_rate))
        changed = change_trial(trial, phase1=change_counts(counts, received=passed), stored=passed)
        return reading(changed, count_after=passed)


@dataclass(slots=True)
class Logging(Gateway):
    """A gateway with a log: `lasting` records/s are written, and `burst` of them wait in a buffer.

    `lacks`: share of the connections of which it never writes a record.
    """

    lasting: float = 20_000.0
    burst: int = 5_000
    lacks: float = 0.0

    def _trial(self, plan: PlanOfTrial) -> OneTrial:
        trial = Gateway._trial(self, plan)
        opened = trial.phase1.received_frames
        records = min(opened - int(self.lacks * opened), int(self.burst + self.lasting * opened / plan.phase1_rate))
        log = LogCounts(connections=opened, records=records, octets=100 * records, lost=opened - records)
        return reading(trial, log=log)


@dataclass(slots=True)
class Delaying(Gateway):
    """A gateway behind a line that delays each frame by 24 ms; `part`: share of the frames that take that line."""

    part: float = 1.0

    def _trial(self, plan: PlanOfTrial) -> OneTrial:
        trial = Gateway._trial(self, plan)
        limit = plan.frame_timeout_seconds
        if limit is None or limit >= DELAY_SECONDS:
            return trial

        def late(counts: StreamCounts) -> StreamCounts:
            number = round(self.part * counts.received_frames)
            delays = LateDelays(number, DELAY_SECONDS, DELAY_SECONDS, DELAY_SECONDS, limit) if number else None
            return change_counts(
                counts, received=counts.received_frames - number, late=counts.late + number, late_delays=delays
            )

        phase2 = {direction: late(counts) for direction, counts in trial.phase2.items()}
        return change_trial(trial, phase1=late(trial.phase1), phase2=phase2)


@dataclass(slots=True)
class Joined(Gateway):
    """A gateway whose tester's own delay is a tenth of the time between frames of a direction."""

    abilities: frozenset[Ability] = ABLE

    def own_delays(self, plan: PlanOfTrial) -> dict[Direction, Delays]:
        assert plan.phase2 is not None
        return dict.fromkeys(Direction, recorded([0.1 / plan.phase2.initiator_rate] * 10))


@dataclass(slots=True)
class Forgetful(Gateway):
    """A gateway that forgets connections after a while, so that slower trials are not run."""

    forgets_after: float = 1.0

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        if plan.connections / plan.phase1_rate >= self.forgets_after:
            raise OutlastingError("UDP timeout: too short")
        return Gateway.measure(self, plan)


@dataclass(slots=True)
class OnCores(Gateway):
    """A gateway whose flow hash spreads a million frames of each trial that passes over its cores like this."""

    shares: tuple[float, ...] = (0.5, 0.5)

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        outcome = Gateway.measure(self, plan)
        # A trial that fails says nothing of the spread at the rate that passed.
        shares = self.shares if outcome.verdict == "PASS" else self.shares[::-1]
        work = {core: CoreWork(round(1_000_000 * share)) for core, share in enumerate(shares)}
        return reading(outcome, core_work=work)
