# SPDX-License-Identifier: Apache-2.0
"""A new lab for each repetition, where that takes a fraction of a second.

Repetitions in one lab share its place in memory and, with one seed, one permutation of the four tuples. They show how a
figure varies within that lab, but not how it varies between labs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Self

from natgauge.labs import kinds
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


class FreshLabs:
    """Successive benches for one measurement. Use it as a context manager: it makes and removes the benches.

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
        self._conducted: list[tuple[int, int, float]] = []
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

    def begin(self, number: int) -> LabMeasurer:
        """Begin a repetition, from 1: make a new lab, unless it is the first repetition or the lab must stay."""
        if number == 1:
            return self.ready.measurer
        if self._renewable:
            before = self.ready.measurer
            self.has_lab = False
            self._made.close()
            self.bench = self._following(number)
            self._set_up()
            self.ready.measurer.continue_after(before)
        self._note()
        return self.ready.measurer

    def _note(self) -> None:
        self._conducted.append((self._labs, self.bench.seed, round(self._now(), 3)))

    def run(self) -> MeasurementResult:
        """Measure all repetitions."""
        # The first bench may have found that the device works in processes, which changes the settings.
        planned, measurer = self.ready.planned, self.ready.measurer
        return planned.procedure.measure(measurer, planned.settings, measurer.observer.event, begins=self.begin)

    def conduct(self, repetitions: int) -> Mapping[str, Any]:
        """Return parameters of the first `repetitions` repetitions; one that the time limit cut off has no value."""
        counted = self._conducted[:repetitions]
        return {
            "labs": len({lab for lab, _, _ in counted}),
            "seeds": [seed for _, seed, _ in counted],
            "begun": [began for _, _, began in counted],
        }

    @property
    def _renewable(self) -> bool:
        lab = self.bench.lab
        return kinds.get(self.bench.cell.lab.lab).quick and not lab.is_reused
