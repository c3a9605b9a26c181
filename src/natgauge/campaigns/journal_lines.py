# SPDX-License-Identifier: Apache-2.0
"""The journal's lines, typed by event: an edited or damaged line is refused before anything follows from it.

A line may have more fields than these, which no state follows from.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from natgauge.errors import UsageError
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.records.parameters import Parameters
from natgauge.records.record import first_fault

#: What helps where a journal is damaged.
REMEDY: Final = "the journal is damaged; restore it, or begin a new campaign: --out"

T = TypeVar("T")


@cache
def adapter_of(kind: type[T]) -> TypeAdapter[T]:
    """What reads values of a type with trials from JSON."""
    # Trials name these types, which natgauge.trials does not load; pydantic looks for them here.
    from natgauge.agreement.generated import TrialRequest, TrialResult  # noqa: F401, PLC0415

    return TypeAdapter(kind)


_Number = Annotated[int, Field(ge=1)]
#: No sum or ratio of such seconds is beyond what a float holds.
_Seconds = Annotated[float, Field(ge=0, le=1e12)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class Line(_Part):
    """A line of any event; `at` in seconds since 1970."""

    event: str
    at: _Seconds


class _OfCell(Line):
    cell: str


class RetriedLine(Line):
    """What broke in the cells that a session chose is tried again.

    `devices` has all cells of each of their devices, which is not broken any more.
    """

    cells: list[str]
    devices: dict[str, list[str]]


class VisitLine(_OfCell):
    """The turn of a cell; `worker`: name of the one that measures it, empty = the session's process does."""

    worker: str = ""


class _OfMeasurement(_OfCell):
    measurement: str


class _OfRepetition(_OfMeasurement):
    repetition: _Number

    @property
    def name(self) -> str:
        return f"{self.event} {self.repetition} of {self.cell} {self.measurement}"


class _Bounds(_Part):
    lower: float | None
    upper: float | None
    trials_left: int | None


class _Phase2(_Part):
    initiator_rate: float
    responder_rate: float


class _Plan(_Part):
    phase2: _Phase2 | None


class _Trial(_OfRepetition):
    metric: str
    trial: int
    plan: _Plan
    load: float
    bounds: _Bounds


class _Worker(_Part):
    name: str
    like: str


class _Stored(_Part):
    """The extent of the files of evidence (`evidence.Extent`)."""

    trials: Annotated[int, Field(ge=0)]
    octets: Annotated[int, Field(ge=0)]
    rounds: Annotated[int, Field(ge=0)]
    round_octets: Annotated[int, Field(ge=0)]


class RepetitionLine(_OfRepetition):
    """A repetition that has ended, with all that was set.

    Attributes:
        worker: that measured it; None = the campaign had no workers.
        own_part: figures of the tester's receivers and of the server alone, measured after its trials.
    """

    given: dict[Literal["connection_rate"], Annotated[float, Field(gt=0)]]
    parameters: Parameters
    machine: dict[str, Any]
    device: dict[str, Any] | None
    worker: _Worker | None = None
    began: _Seconds
    seconds: _Seconds
    measured: dict[str, Any]
    own_part: dict[str, float]
    stored: _Stored

    @cached_property
    def result(self) -> MeasurementResult:
        """What was measured."""
        try:
            result: MeasurementResult = adapter_of(MeasurementResult).validate_python(self.measured)
        except ValidationError as error:
            raise UsageError(f"campaign: {self.name}: measured.{first_fault(error)}; {REMEDY}") from None
        # It is the largest part of a line, and would be sent to workers twice.
        self.measured.clear()
        return result


class ResultLine(_OfMeasurement):
    """A results folder; `cause` = why it lacks repetitions, empty = it has all."""

    folder: Annotated[str, Field(min_length=1)]
    cause: str


class DeviceBroken(Line):
    """A device that is not measured any more."""

    scope: Literal["device"]
    device: str
    cell: str | None = None
    cause: str


class CellBroken(_OfCell):
    """A cell that is not measured any more."""

    scope: Literal["cell"]
    cause: str


class MeasurementBroken(_OfRepetition):
    """A measurement that does not go on."""

    scope: Literal["measurement"]
    cause: str
    stored: _Stored


_LINES: Final[Mapping[str, type[Line]]] = {
    "session": Line,
    "retried": RetriedLine,
    "session-ended": Line,
    "visit": VisitLine,
    "repetition": RepetitionLine,
    "trial": _Trial,
    "device-failed": _OfMeasurement,
    "result": ResultLine,
}
_BROKEN: Final[Mapping[str, type[Line]]] = {
    "device": DeviceBroken,
    "cell": CellBroken,
    "measurement": MeasurementBroken,
}


def typed(entry: Mapping[str, Any], where: str) -> Line:
    """Return a line by its event, if it has the fields of that."""
    event = entry.get("event")
    kinds, key = (_BROKEN, entry.get("scope")) if event == "broken" else (_LINES, event)
    kind = kinds.get(key) if isinstance(key, str) else None
    if kind is None:
        field = "scope" if event == "broken" else "event"
        raise UsageError(f"campaign: {where}: {field}: {key!r}: there is none of this name; {REMEDY}")
    try:
        return kind.model_validate(entry)
    except ValidationError as error:
        raise UsageError(f"campaign: {where}: {first_fault(error)}; {REMEDY}") from None
