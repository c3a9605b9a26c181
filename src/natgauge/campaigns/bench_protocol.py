# SPDX-License-Identifier: Apache-2.0
"""The interface of a campaign's bench: a real lab, or a simulated gateway in tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Self

from natgauge.inputs.question import Cell
from natgauge.measurements.measure import device_of, own_part_of, parameters_of
from natgauge.measurer import Measurer
from natgauge.records.parameters import Parameters
from natgauge.trial.bench import Bench
from natgauge.trial.lab_measurer import Recorder
from natgauge.trial.observer import Observer
from natgauge.trial.planned import Planned

#: Measures the tester's own part after the trials of a repetition. The argument has the names of the figures that
#: earlier repetitions know. Returns the other figures, as far as they apply and can be measured: `RECEIVER_SECONDS` and
#: `SERVER_ALONE`.
OwnPart = Callable[[Collection[str]], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A measurement that is ready to run.

    Attributes:
        device: version and settings of the device; None = natgauge does not start the device.
        own_part: measures the time that the tester's receivers take of the device's cores, and a real server alone.
    """

    measurer: Measurer
    parameters: Parameters
    device: Mapping[str, Any] | None
    own_part: OwnPart
    planned: Planned


class CampaignBench(Protocol):
    """The bench of one cell. The device is up within the `with` block."""

    def plan(self, metric: str, choices: Mapping[str, object]) -> Planned:
        """Plan a procedure for this bench; nothing is touched.

        Raises:
            UsageError: it cannot be measured here.
        """

    def prepare(self, planned: Planned, recorder: Recorder) -> Prepared:
        """Prepare a procedure: start the device, and check that it forwards.

        Raises:
            BrokenError: the device does not start or does not forward.
            HostError: a program is missing, memory is short, or a global setting cannot be made.
            UsageError: a limit or time-out of the device is too small.
        """

    def __enter__(self) -> Self:
        """Create the lab and enter it."""

    def __exit__(self, *exception: object) -> None:
        """Leave the lab and undo it."""


#: Makes the bench of a cell; the observer shows its progress.
MakeBench = Callable[[Cell, Observer], CampaignBench]


class LabBench:
    """The bench of a campaign's cell in a lab of this machine; see `CampaignBench`."""

    def __init__(self, facts: Callable[[], Mapping[str, object]], cell: Cell, observer: Observer) -> None:
        """Plan it; nothing is touched. `facts` returns the facts of this machine, which may change over time."""
        self._facts = facts
        self._bench = Bench(cell, observer)

    def plan(self, metric: str, choices: Mapping[str, object]) -> Planned:
        """Plan a procedure; arguments and errors as in `Bench.plan`."""
        return self._bench.plan(metric, choices)

    def prepare(self, planned: Planned, recorder: Recorder) -> Prepared:
        """Start the device, or set it for this procedure, and check that it forwards."""
        ready = self._bench.ready(planned, recorder)
        return Prepared(
            measurer=ready.measurer,
            parameters=parameters_of(self._bench, ready, self._facts()),
            device=device_of(self._bench),
            own_part=partial(own_part_of, self._bench, ready),
            planned=ready.planned,
        )

    def __enter__(self) -> Self:
        self._bench.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bench.__exit__(*exception)
