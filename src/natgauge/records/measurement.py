# SPDX-License-Identifier: Apache-2.0
"""The result of a measurement as it is stored and shown: typed, and refused in one line where it is none."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import Field, JsonValue, TypeAdapter, model_validator

from natgauge.causes.cause import Cause
from natgauge.errors import UsageError
from natgauge.notes import Note
from natgauge.records.parameters import Parameters
from natgauge.records.record import Record, RecordPart
from natgauge.records.repetition import Repetition
from natgauge.statistics.summary import FigureSummary
from natgauge.words import LimitedBy, Verdict

SUMMARY_SCHEMA: Final = "natgauge-summary-7"

#: The figure that says what part of the link's theoretical maximum the value is, 0 to 1.
SHARE_OF_LINK: Final = "share_of_theoretical_maximum"
#: What is stamped on results of an emulated device.
FUNCTIONAL: Final = "functional, not performance"
#: The doubt of a result of which repetitions follow.
_INCOMPLETE: Final = "incomplete"

#: Reads and writes a repetition by itself, without its trials.
REPETITION: Final = TypeAdapter(Repetition)
#: Statistics of the values of a figure, and of a result itself, each with a field of this name.
STATISTICS: Final = ("median", "p1", "p99", "minimum", "maximum", "mean", "standard_deviation")


class PublishedCell(RecordPart):
    """A cell of a published table that a result was planned for.

    Attributes:
        table: name of the table, as `natgauge published` lists it.
        column: number of the column, from 1.
        quantity: name of the quantity, whose rows have the figures.
    """

    table: str
    column: Annotated[int, Field(ge=1)]
    quantity: str


#: Whether a result has the value that was demanded of it.
ThresholdVerdict = Literal["met", "not met", "cannot tell"]


class Threshold(RecordPart):
    """A value that was demanded of a result, and the verdict.

    Attributes:
        setting: which values are enough: "at_least" or "at_most" this one.
        value: in the result's unit.
        lower: lower end of the range in which another run is expected; None = not known.
        upper: its upper end; None = not known.
        reason: why nothing can be told, other than that the range contains the threshold; empty = no other reason.
    """

    setting: Literal["at_least", "at_most"]
    value: float
    verdict: ThresholdVerdict
    lower: float | None
    upper: float | None
    reason: str = ""


class MedianInterval(RecordPart):
    """A range that contains the median of the population with probability `coverage` (0 to 1).

    Attributes:
        lower: in the result's unit.
        upper: None = not known, because something other than the device ended repetitions.
    """

    lower: float
    upper: float | None
    coverage: Annotated[float, Field(ge=0, le=1)]


class Result(Record):
    """All repetitions of one measurement, and what they come to.

    Attributes:
        schema_name: name and version of this schema; the field `schema` in JSON.
        metric: the procedure's name.
        unit: unit of all values.
        median: median of the repetitions' values, as are the six after it.
        standard_deviation: standard deviation of the sample; None for a single repetition.
        median_interval: that of the population's median; None for a single repetition.
        error: the largest of a repetition; None where one has no upper bound.
        limited_by: cause that limited most repetitions.
        cause: the most frequent cause of these repetitions; None as of a repetition.
        doubts: facts that a reader must know before using the figure.
        trials: number of trials of all repetitions by verdict.
        disturbed: trials in which stalls or stolen time were seen, whatever their verdict.
        figures: summary of each further figure over all repetitions.
        repetitions: each one, in the order they were measured.
        parameters: all that was set.
        notes: each note once.
        results: the folder that has the evidence, as it was called when it was made.
        published: cells of a published table that the plan measured again; none without such a plan.
        threshold: verdict on the value that was demanded; None = none was.
    """

    schema_version: ClassVar = SUMMARY_SCHEMA

    schema_name: Literal["natgauge-summary-7"] = Field(default=SUMMARY_SCHEMA, alias="schema")
    metric: str
    unit: str
    median: float
    p1: float
    p99: float
    minimum: float
    maximum: float
    mean: float
    standard_deviation: float | None
    median_interval: MedianInterval | None
    error: float | None
    limited_by: LimitedBy
    doubts: tuple[Note, ...]
    trials: dict[Verdict, Annotated[int, Field(ge=0)]]
    disturbed: Annotated[int, Field(ge=0)]
    figures: dict[str, FigureSummary]
    repetitions: Annotated[tuple[Repetition, ...], Field(min_length=1)]
    parameters: Parameters
    notes: tuple[Note, ...]
    results: str | None = None
    cause: Cause | None = None
    published: tuple[PublishedCell, ...] = ()
    threshold: Threshold | None = None

    @model_validator(mode="after")
    def _of_these_repetitions(self) -> Self:
        values = self.values
        for name, value, actual in (("minimum", self.minimum, min(values)), ("maximum", self.maximum, max(values))):
            if value != actual:
                raise ValueError(f"the {name} {value:g} is not that of the repetitions, {actual:g}")
        if not self.minimum <= self.median <= self.maximum:
            raise ValueError(
                f"the median {self.median:g} lies outside of the repetitions, {self.minimum:g} to {self.maximum:g}"
            )
        return self

    @property
    def values(self) -> tuple[float, ...]:
        """Values of all repetitions in their order, in the result's unit."""
        return tuple(repetition.value for repetition in self.repetitions)

    @property
    def planned_repetitions(self) -> int:
        """The repetitions that were requested, where there are fewer; otherwise those that there are.

        Of `auto`, the most that there may be, while its campaign has not ended.
        """
        so_far = (doubt.value for doubt in self.doubts if doubt.word == _INCOMPLETE and doubt.value is not None)
        most = next(so_far, self.number("repeat") or 0)
        return max(int(most), len(self.repetitions))

    @property
    def is_complete(self) -> bool:
        """Whether no repetition follows; one of a campaign that has not ended is not complete."""
        return all(doubt.word != _INCOMPLETE for doubt in self.doubts)

    @property
    def folder(self) -> Path:
        """The results folder, as it was called when it was made."""
        if self.results is None:
            raise UsageError("result: it was stored in no folder")
        return Path(self.results)

    @property
    def functional(self) -> bool:
        """Whether the result shows only that the device works, not how fast it is."""
        return any(doubt.word == "functional" for doubt in self.doubts)

    @property
    def gateway(self) -> str:
        """Name of the gateway's recipe; "-" if the parameters lack it."""
        return str(self.parameters.device.get("gateway", "-"))

    @property
    def placement(self) -> str:
        """Placement of the device's work; "-" if the parameters lack it."""
        return str(self.parameters.place.get("placement", "-"))

    @property
    def device_cores(self) -> int:
        """Number of cores of the device; 0 = not known."""
        value = self.number("device_cores")
        return 0 if value is None else int(value)

    def parameter(self, name: str) -> JsonValue:
        """A parameter's value; None where there is none."""
        return self.parameters.get(name)

    def number(self, name: str) -> float | None:
        """A parameter that is a number, no larger than a seed may be; None where it is none."""
        value = self.parameters.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) >= 2**64:
            return None
        return value
