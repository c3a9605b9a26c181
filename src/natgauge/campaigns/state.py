# SPDX-License-Identifier: Apache-2.0
"""The state of a campaign, from its journal alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from natgauge.campaigns.evidence import STORED, Extent
from natgauge.campaigns.journal import JournalLine
from natgauge.campaigns.journal_lines import REMEDY
from natgauge.errors import UsageError
from natgauge.procedures.kit.repetitions import is_enough
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.procedures.kit.settings import Repeat
from natgauge.records.parameters import Parameters
from natgauge.records.record import first_fault

#: Events of a cell before which its trial has ended; before any other event, the trial was ended.
_AFTER_A_TRIAL: Final = frozenset({"trial", "repetition"})


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedRepetition:
    """One repetition of one measurement of one cell, as its line of the journal has it.

    Attributes:
        began: seconds since 1970.
        worker: name, cores and likeness of the worker that measured it; None = the campaign had no workers.
        own_part: figures of the tester's receivers and of the server alone, measured after its trials, by their names
            in the journal.
    """

    given: Mapping[str, Any]
    parameters: Parameters
    machine: Mapping[str, Any]
    device: Mapping[str, Any] | None
    worker: Mapping[str, Any] | None
    began: float
    seconds: float
    own_part: Mapping[str, float]
    result: MeasurementResult

    @classmethod
    def of(cls, entry: JournalLine) -> RecordedRepetition:
        """Read a line of the journal."""
        try:
            result = adapter_of(MeasurementResult).validate_python(entry["measured"])
        except ValidationError as error:
            raise UsageError(f"campaign: {_name_of(entry)}: measured.{first_fault(error)}; {REMEDY}") from None
        return cls(
            given=entry["given"],
            parameters=Parameters.model_validate(entry["parameters"]),
            machine=entry["machine"],
            device=entry["device"],
            worker=entry.get("worker"),
            began=entry["began"],
            seconds=entry["seconds"],
            own_part=entry["own_part"],
            result=result,
        )


T = TypeVar("T")


@cache
def adapter_of(kind: type[T]) -> TypeAdapter[T]:
    """What reads values of a type with outcomes of trials from JSON."""
    # Outcomes of trials name this type, which natgauge.measurer does not load; pydantic looks for it here.
    from natgauge.agreement.generated import StreamCounts  # noqa: F401, PLC0415

    return TypeAdapter(kind)


def _name_of(entry: JournalLine) -> str:
    return f"{entry['event']} {entry['repetition']} of {entry['cell']} {entry['measurement']}"


@dataclass(slots=True)
class MeasurementState:
    """One measurement of one cell.

    Attributes:
        ended: repetitions in order.
        stored: how much of the evidence counts: that of these repetitions, and of the one in which it broke.
        folder: folder of the result, below the campaign's; empty = there is none yet.
        broken: first reason why the measurement cannot continue; empty = it can.
    """

    ended: list[RecordedRepetition] = field(default_factory=list)
    stored: Extent = field(default_factory=Extent)
    folder: str = ""
    partial: bool = False
    broken: str = ""
    _of_ended: Extent = field(default_factory=Extent)

    def take(self, entry: JournalLine) -> None:
        """Add a repetition that has ended."""
        self._store(entry)
        self.ended.append(RecordedRepetition.of(entry))
        self._of_ended = self.stored

    def take_broken(self, entry: JournalLine) -> None:
        """Note why it cannot continue."""
        self._store(entry)
        self.broken = self.broken or entry["cause"]

    def retry(self) -> None:
        """Forget why it could not continue, so that its next repetition begins again."""
        if self.broken:
            self.broken, self.stored = "", self._of_ended
        if self.partial:
            self.folder, self.partial = "", False

    def _store(self, entry: JournalLine) -> None:
        stored = Extent(**entry[STORED])
        shrinks = min(stored.trials - self.stored.trials, stored.octets - self.stored.octets) < 0
        if entry["repetition"] != len(self.ended) + 1 or shrinks:
            raise UsageError(
                f"campaign: {_name_of(entry)}: lines before it are missing, or it is there twice; {REMEDY}"
            )
        self.stored = stored

    def is_done(self, repeat: Repeat, most: int) -> bool:
        """Whether all requested repetitions have ended."""
        values = [one.value for repetition in self.ended for one in repetition.result.measurements]
        return is_enough(values, repeat, most)


@dataclass(slots=True)
class CampaignState:
    """The state of a campaign; a trial that a kill ended is not among its `trials`.

    Attributes:
        running: the trial of each cell that has begun and, by the journal, not ended.
        began: start of the first session, seconds since 1970.
    """

    measurements: dict[tuple[str, str], MeasurementState] = field(default_factory=dict)
    broken_cells: dict[str, str] = field(default_factory=dict)
    broken_devices: dict[str, str] = field(default_factory=dict)
    running: dict[str, JournalLine] = field(default_factory=dict)
    trials: int = 0
    began: float | None = None
    last: float | None = None
    visits: int = 0

    @classmethod
    def of(cls, entries: Iterable[JournalLine]) -> CampaignState:
        """Return the state after these journal lines, which begin with the campaign's first."""
        state = cls()
        for entry in entries:
            state.take(entry)
        return state

    def measurement(self, cell: str, measurement: str) -> MeasurementState:
        """State of a measurement, also of one that has not begun."""
        return self.measurements.setdefault((cell, measurement), MeasurementState())

    def take(self, entry: JournalLine) -> None:
        """Update the state with the journal's next line."""
        self.began = self.began or entry["at"]
        self.last = entry["at"]
        if entry["event"] in _AFTER_A_TRIAL:
            self.trials += entry["cell"] in self.running
        if entry["event"] == "trial":
            self.running[entry["cell"]] = entry
        elif "cell" in entry:
            self.running.pop(entry["cell"], None)
        else:
            # Sessions begin and end without a trial.
            self.running.clear()
        taking = getattr(self, f"_take_{entry['event'].replace('-', '_')}", None)
        if taking is not None:
            taking(entry)

    def _of(self, entry: JournalLine) -> MeasurementState:
        return self.measurement(entry["cell"], entry["measurement"])

    def _take_visit(self, _entry: JournalLine) -> None:
        self.visits += 1

    def _take_repetition(self, entry: JournalLine) -> None:
        self._of(entry).take(entry)

    def _take_result(self, entry: JournalLine) -> None:
        known = self._of(entry)
        known.folder, known.partial = entry["folder"], bool(entry["cause"])

    def _take_retried(self, _entry: JournalLine) -> None:
        """Broken measurements begin their repetition again; results that lack repetitions are written again."""
        self.broken_cells.clear()
        self.broken_devices.clear()
        for known in self.measurements.values():
            known.retry()

    def _take_broken(self, entry: JournalLine) -> None:
        if entry["scope"] == "device":
            self.broken_devices.setdefault(entry["device"], entry["cause"])
        elif entry["scope"] == "cell":
            self.broken_cells.setdefault(entry["cell"], entry["cause"])
        else:
            self._of(entry).take_broken(entry)

    def broken(self, cell: str, device: str, measurement: str) -> str:
        """Reason why a measurement cannot go on; empty = it can."""
        known = self.measurements.get((cell, measurement))
        own = "" if known is None else known.broken
        return self.broken_devices.get(device) or self.broken_cells.get(cell) or own
