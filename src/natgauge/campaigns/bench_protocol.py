# SPDX-License-Identifier: Apache-2.0
"""What a campaign needs of a bench: the real one, or in tests a simulated gateway."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Self

from natgauge.bench.bench import Bench, Ready
from natgauge.bench.far_side import rate_alone
from natgauge.bench.lab_measurer import Recorder
from natgauge.bench.planned import Planned
from natgauge.bench.question import Cell
from natgauge.bench.receiver_time import receiver_seconds
from natgauge.bench.watch import Watch
from natgauge.measurements.conditions import RECEIVER_SECONDS, SERVER_ALONE
from natgauge.measurements.measure import parameters_of
from natgauge.measurer import Measurer, TrialPlan
from natgauge.records.parameters import Parameters

#: Measures the tester's own part after the trials of a repetition. The first argument is the plan of the last trial
#: that passed, or None if no trial passed; the second has the names of the figures that earlier repetitions know.
#: Returns the other figures, as far as they apply and can be measured: `RECEIVER_SECONDS` and `SERVER_ALONE`.
OwnPart = Callable[[TrialPlan | None, Collection[str]], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A measurement about to run.

    Attributes:
        measurer: performs its trials.
        parameters: all that decides its figure.
        device: what runs and how it is set; None when the device is not ours.
        own_part: measures what the tester's receivers take of the device's cores, and a real server alone.
    """

    measurer: Measurer
    parameters: Parameters
    device: Mapping[str, Any] | None
    own_part: OwnPart


class CampaignBench(Protocol):
    """One cell's bench. The device stands on it within the `with` block."""

    def plan(self, metric: str, asked: Mapping[str, object]) -> Planned:
        """A procedure for it; nothing is touched.

        Raises:
            UsageError: it cannot be measured here.
        """

    def prepare(self, planned: Planned, recorder: Recorder) -> Prepared:
        """Make all ready for a procedure.

        Raises:
            BrokenError: the device does not come up or does not forward.
            HostError: a program is missing, memory is short, or a global setting cannot be made.
            UsageError: a limit or time-out of the device is too small.
        """

    def __enter__(self) -> Self:
        """Make the lab."""

    def __exit__(self, *exception: object) -> None:
        """Undo all."""


#: Makes the bench of a cell; the watch is told what happens on it.
MakeBench = Callable[[Cell, Watch], CampaignBench]


class LabBench:
    """A bench in a lab."""

    def __init__(self, facts: Callable[[], Mapping[str, object]], cell: Cell, watch: Watch) -> None:
        """Plan it; nothing is touched. `facts` tells those of this machine, as they are for each repetition."""
        self._facts = facts
        self._bench = Bench(cell, watch)

    def plan(self, metric: str, asked: Mapping[str, object]) -> Planned:
        """A procedure for this bench."""
        return self._bench.plan(metric, asked)

    def prepare(self, planned: Planned, recorder: Recorder) -> Prepared:
        """The device is started, or fit anew, and was seen to forward."""
        ready = self._bench.ready(planned, recorder)
        device = None if self._bench.device is None else self._bench.device.as_dict()
        parameters = parameters_of(self._bench, ready, self._facts())
        return Prepared(ready.measurer, parameters, device, partial(self._own_part, ready))

    def _own_part(self, ready: Ready, passed: TrialPlan | None, known: Collection[str]) -> Mapping[str, float]:
        found: dict[str, float | None] = {}
        if RECEIVER_SECONDS not in known:
            found[RECEIVER_SECONDS] = receiver_seconds(ready.measurer, passed)
        if SERVER_ALONE not in known:
            found[SERVER_ALONE] = rate_alone(ready.measurer, ready.planned, self._bench.around.outside.family)
        return {name: value for name, value in found.items() if value is not None}

    def __enter__(self) -> Self:
        self._bench.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bench.__exit__(*exception)
