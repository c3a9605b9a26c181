# SPDX-License-Identifier: Apache-2.0
"""The journal of a campaign: one line for every event, on the disk before anything follows from the event.

After a kill at any moment, the journal alone says what is done. A last line that was cut off is removed when the
campaign is resumed. Lines are typed by event, so an edited or damaged line is refused before anything follows from it.
A line may have more fields than its type, which no state follows from.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from natgauge import file_access
from natgauge.errors import HostError, UsageError
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.records.parameters import Parameters
from natgauge.records.record import first_fault, read_lines
from natgauge.records.store import JOURNAL, JOURNAL_SCHEMA, plain

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
    """The extent of the files of evidence (`state.Extent`)."""

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


_PATIENCE_SECONDS: Final = 0.3
#: Size of a unit in messages, octets.
_MIB: Final = 1 << 20

JournalLine = Mapping[str, Any]


class AppendLine(Protocol):
    """Appends a line to the journal and updates the state."""

    def __call__(self, event: str, *, sync: bool = True, **fields: object) -> None:
        """Append a line; `sync`: return when it is on the disk."""


class Journal:
    """A campaign's journal, open for appending by one process alone. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL
        self._file = -1
        self._length = 0

    def __enter__(self) -> Self:
        """Open it, and cut away a last line that was cut off."""
        # A link could lead to any file of the machine, which this would change.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            self._file = os.open(self.path, flags, 0o644)
            _lock(self._file)
            if not os.fstat(self._file).st_nlink:
                # Whoever had the lock has removed the file.
                raise BlockingIOError
            self._length = _whole_lines(self.path)
            os.ftruncate(self._file, self._length)
        except (OSError, UsageError) as error:
            self._close()
            if isinstance(error, BlockingIOError):
                raise HostError(
                    f"campaign: {self.path.parent} is being measured by another natgauge; wait until it has ended"
                ) from None
            if isinstance(error, OSError):
                raise unwritable_journal(self.path, error) from error
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def clear(self) -> None:
        """Remove all lines."""
        try:
            os.ftruncate(self._file, 0)
        except OSError as error:
            raise unwritable_journal(self.path, error) from error
        self._length = 0

    def append(self, lines: Sequence[str], *, sync: bool = True) -> None:
        """Append lines as they are; `sync`: return when they are on the disk."""
        octets = "".join(f"{line}\n" for line in lines).encode()
        longest = max((len(line) for line in lines), default=0)
        most = file_access.LINES.line_octets
        if longest > most:
            # Nobody could read the journal any more.
            raise UsageError(
                f"campaign: {self.path}: a repetition has {longest / _MIB:,.0f} MiB, and the most of a line is "
                f"{most / _MIB:,.0f} MiB; give it fewer trials or periods"
            )
        try:
            write(self._file, octets)
            if sync:
                os.fsync(self._file)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._length)
            raise unwritable_journal(self.path, error) from error
        self._length += len(octets)


def write(file: int, octets: bytes) -> None:
    """Write all of them."""
    left = memoryview(octets)
    while left:
        left = left[os.write(file, left) :]


def entry_of(event: str, fields: Mapping[str, object]) -> dict[str, Any]:
    """A line of the journal with the present time, as it will be read again."""
    return {"schema": JOURNAL_SCHEMA, "event": event, "at": round(time.time(), 3), **plain(fields)}


def text_of(entry: JournalLine) -> str:
    """The text of a line, without the line feed."""
    return json.dumps(entry, allow_nan=False, separators=(",", ":"))


def _lock(file: int) -> None:
    """Take the lock. `natgauge status` holds it for a moment, so only a process that keeps it is measuring."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def unwritable_journal(path: Path, error: OSError) -> HostError:
    """Return the error of a file without which a campaign cannot go on."""
    remedy = "make room, then go on with --resume" if error.errno == errno.ENOSPC else "see that it can be written"
    return HostError(f"campaign: cannot write {path}: {error.strerror}; {remedy}")


def _whole_lines(path: Path) -> int:
    """Octets up to the end of the last whole line."""
    with file_access.open_file(path, file_access.LINES) as file:
        file.seek(0, os.SEEK_END)
        end = file.tell()
        step = 1 << 16
        while end > 0:
            begin = max(0, end - step)
            file.seek(begin)
            newline = file.read(end - begin).rfind(b"\n")
            if newline >= 0:
                return begin + newline + 1
            end = begin
    return 0


def entries(folder: Path) -> Iterator[JournalLine]:
    """Every whole line of a campaign's journal; whoever takes it checks its fields."""
    return read_lines(folder / JOURNAL, JOURNAL_SCHEMA)


def is_written(folder: Path) -> bool:
    """Whether a process has the journal open for writing at this moment."""
    try:
        with file_access.open_file(folder / JOURNAL, file_access.LINES) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, UsageError):
        return False
    return False
