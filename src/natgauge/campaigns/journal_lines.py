# SPDX-License-Identifier: Apache-2.0
"""Fields of the journal's lines, by event: an edited or damaged line is refused before anything follows from it.

A line may have more fields than these, which no state follows from. The result of a repetition is checked when the
state takes it (`state.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from natgauge.errors import UsageError
from natgauge.records.parameters import Parameters
from natgauge.records.record import first_fault

_Number = Annotated[int, Field(ge=1)]
_Seconds = Annotated[float, Field(ge=0)]


class _Line(BaseModel):
    """A line of any event; `at` in seconds since 1970."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    event: str
    at: float


class _OfCell(_Line):
    cell: str


class _OfMeasurement(_OfCell):
    measurement: str


class _OfRepetition(_OfMeasurement):
    repetition: _Number


class _Bounds(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    lower: float | None
    upper: float | None
    trials_left: int | None


class _Trial(_OfRepetition):
    metric: str
    trial: int
    load: float
    bounds: _Bounds


class _Worker(BaseModel):
    model_config = ConfigDict(strict=True)

    name: str


class _Stored(BaseModel):
    model_config = ConfigDict(strict=True)

    trials: Annotated[int, Field(ge=0)]
    octets: Annotated[int, Field(ge=0)]


class _Repetition(_OfRepetition):
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


class _Result(_OfMeasurement):
    folder: Annotated[str, Field(min_length=1)]
    cause: str


class _DeviceBroken(_Line):
    scope: Literal["device"]
    device: str
    cause: str


class _CellBroken(_OfCell):
    scope: Literal["cell"]
    cause: str


class _MeasurementBroken(_OfRepetition):
    scope: Literal["measurement"]
    cause: str
    stored: _Stored


_LINES: Final[Mapping[str, type[_Line]]] = {
    "session": _Line,
    "retried": _Line,
    "session-ended": _Line,
    "visit": _OfCell,
    "repetition": _Repetition,
    "trial": _Trial,
    "device-failed": _OfMeasurement,
    "result": _Result,
}
_BROKEN: Final[Mapping[str, type[_Line]]] = {
    "device": _DeviceBroken,
    "cell": _CellBroken,
    "measurement": _MeasurementBroken,
}
#: What helps where a journal is damaged.
REMEDY: Final = "the journal is damaged; restore it, or begin a new campaign: --out"


def check(line: Mapping[str, Any], where: str) -> None:
    """Refuse a line whose fields are not those of its event."""
    event = line.get("event")
    kinds, key = (_BROKEN, line.get("scope")) if event == "broken" else (_LINES, event)
    kind = kinds.get(key) if isinstance(key, str) else None
    if kind is None:
        field = "scope" if event == "broken" else "event"
        raise UsageError(f"campaign: {where}: {field}: {key!r}: there is none of this name; {REMEDY}")
    try:
        kind.model_validate(line)
    except ValidationError as error:
        raise UsageError(f"campaign: {where}: {first_fault(error)}; {REMEDY}") from None
