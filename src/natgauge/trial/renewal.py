# SPDX-License-Identifier: Apache-2.0
"""A measurer that makes a new lab for each repetition, where that takes a fraction of a second.

Repetitions in one lab share its place in memory and, with one seed, one permutation of the four tuples. They show how a
figure varies within that lab, but not how it varies between labs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

from natgauge.labs import kinds
from natgauge.measurer import Ability, CountAt, Delays, Direction, Measurer, Period, TearDown, TrialOutcome, TrialPlan
from natgauge.paired.slices import RoundPlan, TimedRound
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.trial.bench import Bench, Ready
from natgauge.trial.lab_measurer import LabMeasurer, Recorder
from natgauge.trial.planned import Planned

#: Plans the bench of a repetition, from 2.
NextBench = Callable[[int], Bench]
#: Records a bench that is ready.
OnReady = Callable[[Bench, Ready], None]


def unrecorded(_bench: Bench, _ready: Ready) -> None:
    """Default for `OnReady`: the repetition's bench is recorded nowhere."""


@dataclass(frozen=True, slots=True)
class Conducted:
    """Lab, seed and time of a repetition.

    Attributes:
        lab: number of the lab, from 1.
        began: seconds since the epoch.
    """

    lab: int
    seed: int
    began: float


class Renewed(Measurer):
    """Measures on successive benches. Use it as a context manager: it makes and removes the benches.

    Attributes:
        has_lab: whether a lab exists now; False also where the lab of a further repetition could not be made.
    """

    def __init__(  # noqa: PLR0913 - one argument per collaborator, each by its name
        self,
        bench: Bench,
        planned: Planned,
        recorder: Recorder,
        following: NextBench,
        *,
        on_ready: OnReady = unrecorded,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Plan the repetitions; the first lab is made at the beginning of the `with` block.

        Args:
            now: seconds since the epoch.
        """
        self.bench = bench
        self.conducted: list[Conducted] = []
        self._planned = planned
        self._recorder = recorder
        self._following = following
        self._on_ready = on_ready
        self._now = now
        self._made = ExitStack()
        self._labs = 0
        self.has_lab = False

    def __enter__(self) -> Self:
        """Make the first lab and start its device."""
        with ExitStack() as undo:
            undo.push(self.__exit__)
            self._set_up()
            undo.pop_all()
        self._note()
        return self

    def __exit__(self, *exception: object) -> None:
        self._made.__exit__(*exception)  # type: ignore[arg-type] # handed on as it came

    def _set_up(self) -> None:
        self._made.enter_context(self.bench)
        self.ready: Ready = self.bench.ready(self._planned, self._recorder)
        self._labs += 1
        self._on_ready(self.bench, self.ready)
        self.has_lab = True

    def begin(self, number: int) -> None:
        """Begin a repetition: make a new lab, unless it is the first repetition or the lab must stay.

        Args:
            number: number of the repetition, from 1.
        """
        if number == 1:
            return
        if self._renewable:
            before = self._live
            self.has_lab = False
            self._made.close()
            self.bench = self._following(number)
            self._set_up()
            self._live.continue_after(before)
        self._note()

    def _note(self) -> None:
        self.conducted.append(Conducted(self._labs, self.bench.seed, round(self._now(), 3)))

    def run(self) -> MeasurementResult:
        """Measure all repetitions."""
        observe = self._live.observer.event
        # The first bench may have found that the device works in processes, which changes the settings.
        planned = self.ready.planned
        return planned.procedure.measure(self, planned.settings, observe, begins=self.begin)

    def conduct(self, repetitions: int) -> Mapping[str, Any]:
        """Return parameters of the first `repetitions` repetitions; one that the time limit cut off has no value."""
        counted = self.conducted[:repetitions]
        return {
            "labs": len({repetition.lab for repetition in counted}),
            "seeds": [repetition.seed for repetition in counted],
            "begun": [repetition.began for repetition in counted],
        }

    @property
    def _renewable(self) -> bool:
        lab = self.bench.lab
        return kinds.get(self.bench.cell.lab.lab).quick and not lab.is_reused

    @property
    def _live(self) -> LabMeasurer:
        return self.ready.measurer

    @property
    def abilities(self) -> frozenset[Ability]:
        """Abilities of the measurer of the current repetition."""
        return self._live.abilities

    @property
    def highest_rate(self) -> float:
        """The tester's own highest rate, frames/s of all directions together."""
        return self._live.highest_rate

    @property
    def ring(self) -> int | None:
        """Capacity of the queue before each core of the present device, in frames; None = not known."""
        return self._live.ring

    @property
    def seed(self) -> int:
        """Seed of the present bench."""
        return self._live.seed

    @property
    def lingering_seconds(self) -> int | None:
        """Time for which the present device keeps a closed connection, in s; None = not known."""
        return self._live.lingering_seconds

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """Run one trial on the present bench."""
        return self._live.measure(plan)

    def periods(self, plan: TrialPlan, heard: Callable[[Period], bool]) -> tuple[Period, ...]:
        """Run one trial with several periods on the present bench."""
        return self._live.periods(plan, heard)

    def empty_timed(self) -> TearDown:
        """Empty the table of the present device."""
        return self._live.empty_timed()

    def watch_count(self, interval_seconds: float, longest_seconds: float) -> tuple[CountAt, ...]:
        """Watch the count of the present device."""
        return self._live.watch_count(interval_seconds, longest_seconds)

    def restart(self) -> None:
        """Restart the device of the current repetition; errors as in `Measurer`."""
        self._live.restart()

    def own_delays(self, plan: TrialPlan) -> dict[Direction, Delays]:
        """Measure the tester's own delays over a cable, in the bench of the current repetition."""
        return self._live.own_delays(plan)

    def costs(self, plan: RoundPlan) -> TimedRound:
        """Time the present device's work for a frame."""
        return self._live.costs(plan)
