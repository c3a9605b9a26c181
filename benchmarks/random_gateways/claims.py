# SPDX-License-Identifier: Apache-2.0
"""What a result claims of a gateway, and whether the gateway's truth agrees."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isinf
from typing import Final, Literal

from benchmarks.random_gateways.drawn import Drawn
from natgauge import procedures
from natgauge.analysis.contrast import expected_range
from natgauge.errors import NatgaugeError
from natgauge.measurements.record import make
from natgauge.procedures.kit.procedure import make_settings
from natgauge.procedures.kit.rate_search import SearchSettings
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters
from natgauge.reports import main_figure
from natgauge.reports.text import verdict

#: What a first line can claim of the truth; "doubtful" and "no result" claim nothing.
Form = Literal["range", "at least", "at most", "between", "doubtful", "no result"]
CLAIMING: Final[tuple[Form, ...]] = ("range", "at least", "at most", "between")
#: Frames and connections are whole numbers: trials of some thousand of them know a rate no better than this.
_WHOLE: Final = 2e-4
#: Standard deviations of the trials by which a single bound may be off: no chance is told with it.
_DEVIATIONS: Final = 3.0


@dataclass(frozen=True)
class Claim:
    """What one result says.

    Attributes:
        drawn: the gateway.
        form: of the first line.
        lower: lower end of what it says of the truth.
        upper: its upper end.
        line: the first line, or why there is no result.
        coverage: told by the interval of the median; None = the result has none, or claims nothing.
        in_interval: whether that interval contains the truth.
    """

    drawn: Drawn
    form: Form
    lower: float
    upper: float
    line: str
    coverage: float | None = None
    in_interval: bool = False

    @property
    def holds(self) -> bool:
        """Whether the truth agrees; also where nothing is claimed."""
        slack = _WHOLE + (0.0 if self.form == "range" else _DEVIATIONS * self.drawn.noise)
        return self.lower * (1 - slack) <= self.drawn.truth <= self.upper * (1 + slack)


def claim(drawn: Drawn) -> Claim:
    """Measure a gateway, and return what its result claims."""
    procedure, placement = procedures.get(drawn.metric), drawn.gateway.placement
    settings = make_settings(
        procedure,
        drawn.asked,
        connections=drawn.connections,
        placement=placement,
        order="permutation",
        four_tuples=drawn.connections,
    )
    try:
        measured = procedure.measure(drawn.gateway, settings, clock=drawn.gateway.clock)
    except NatgaugeError as error:
        return Claim(drawn, "no result", 0.0, float("inf"), str(error))
    parameters = Parameters.grouped(
        settings=dict(settings.as_run().parameters()),
        traffic={"connections": drawn.connections},
        place={"placement": placement, "device_cores": 1, "receiver_ns": 0.0, "lab_kind": "netns"},
        device={"gateway": "x", "kind": "nat44"},
    )
    result = make(measured, parameters)
    asked = settings.error.width(result.median) if isinstance(settings, SearchSettings) else 0.0
    return _claim(drawn, result, max(result.error or 0.0, asked))


def _claim(drawn: Drawn, result: Result, error: float) -> Claim:
    """What is claimed: the bounds or the range of the first line.

    A bound from below is no surer than the error of the search, the larger of what was found and asked for.
    """
    line = verdict(result, brief=True).splitlines()[0]
    stated = main_figure.statement_of(result)
    if stated.doubtful:
        return Claim(drawn, "doubtful", 0.0, float("inf"), line)
    if not stated.is_median:
        form: Form = "at least" if isinf(stated.upper) else "at most" if stated.lower <= 0 else "between"
        return Claim(drawn, form, max(stated.lower - error, 0.0), stated.upper, line)
    # A median is told with its range, as the first line prints it.
    lower, upper = expected_range(result) or (result.minimum, inf)
    interval = result.median_interval
    if interval is None:
        return Claim(drawn, "range", lower, upper, line)
    inside = interval.lower <= drawn.truth <= (inf if interval.upper is None else interval.upper)
    return Claim(drawn, "range", lower, upper, line, interval.coverage, inside)
