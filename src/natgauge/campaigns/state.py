# SPDX-License-Identifier: Apache-2.0
"""The state of a campaign, from its journal alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from natgauge.campaigns.evidence import STORED, Extent
from natgauge.campaigns.journal import JournalLine
from natgauge.campaigns.journal_lines import REMEDY
from natgauge.campaigns.replay import RecordedCall
from natgauge.errors import UsageError
from natgauge.procedures.kit.repetitions import well_known
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.procedures.kit.settings import Repeat
from natgauge.records.record import first_fault
from natgauge.records.store import plain


@dataclass(slots=True)
class RecordedRepetition:
    """One repetition of one measurement of one cell.

    Attributes:
        number: number from 1.
        measured: its result as plain data; None = it has not ended.
        own_part: figures of the tester's receivers and of the server alone, measured after its trials, by their names
            in the journal.
    """

    number: int
    begun: JournalLine
    answers: list[RecordedCall] = field(default_factory=list)
    measured: Any = None
    seconds: float = 0.0
    own_part: Mapping[str, float] = field(default_factory=dict)
    stored: Extent = field(default_factory=Extent)

    @property
    def result(self) -> MeasurementResult:
        """The result of a repetition that has ended."""
        return _adapter().validate_python(self.measured)


@cache
def _adapter() -> TypeAdapter[MeasurementResult]:
    return TypeAdapter(MeasurementResult)


def _name_of(entry: JournalLine) -> str:
    return f"{entry['event']} of repetition {entry['repetition']} of {entry['cell']} {entry['measurement']}"


def _misplaced(entry: JournalLine) -> UsageError:
    return UsageError(f"campaign: {_name_of(entry)}: lines before it are missing, or it is there twice; {REMEDY}")


@dataclass(slots=True)
class MeasurementState:
    """One measurement of one cell.

    Attributes:
        repetitions: repetitions in order; only the last one may not have ended.
        folder: folder of the result, below the campaign's; empty = there is none yet.
        broken: first reason why the measurement cannot continue; empty = it can.
    """

    repetitions: list[RecordedRepetition] = field(default_factory=list)
    folder: str = ""
    partial: bool = False
    broken: str = ""

    @property
    def ended(self) -> Sequence[RecordedRepetition]:
        """Repetitions that have ended, in order."""
        return [repetition for repetition in self.repetitions if repetition.measured is not None]

    @property
    def under_way(self) -> RecordedRepetition | None:
        """The repetition that has not ended."""
        return next((repetition for repetition in self.repetitions if repetition.measured is None), None)

    @property
    def stored(self) -> Extent:
        """How much of the evidence counts."""
        return self.repetitions[-1].stored if self.repetitions else Extent()

    def is_done(self, repeat: Repeat, most: int) -> bool:
        """Whether all requested repetitions have ended."""
        ended = self.ended
        if len(ended) >= most:
            return True
        if not isinstance(repeat, str):
            return False
        return well_known([value["value"] for repetition in ended for value in repetition.measured["measurements"]])


@dataclass(slots=True)
class CampaignState:
    """The state of a campaign.

    Attributes:
        began: start of the first session, seconds since 1970.
    """

    measurements: dict[tuple[str, str], MeasurementState] = field(default_factory=dict)
    broken_cells: dict[str, str] = field(default_factory=dict)
    broken_devices: dict[str, str] = field(default_factory=dict)
    running: dict[str, JournalLine] = field(default_factory=dict)
    answers: int = 0
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

    def _running(self, entry: JournalLine) -> RecordedRepetition:
        """The repetition that a line belongs to."""
        running = self._of(entry).under_way
        if running is None or running.number != entry["repetition"]:
            raise _misplaced(entry)
        return running

    def _take_visit(self, _entry: JournalLine) -> None:
        self.visits += 1

    def _take_repetition(self, entry: JournalLine) -> None:
        """A repetition that had not ended begins again."""
        known = self._of(entry)
        if entry["repetition"] != len(known.ended) + 1:
            raise _misplaced(entry)
        known.repetitions = list(known.ended)
        known.repetitions.append(RecordedRepetition(entry["repetition"], entry, stored=known.stored))

    def _take_answer(self, entry: JournalLine) -> None:
        repetition = self._running(entry)
        self.answers += 1
        raised = entry["raised"]
        call = RecordedCall(
            entry["call"], entry["plan"], entry["answer"], entry["seconds"], None if raised is None else tuple(raised)
        )
        repetition.answers.append(call)
        stored = Extent(**entry[STORED])
        if min(stored.trials - repetition.stored.trials, stored.octets - repetition.stored.octets) < 0:
            raise _misplaced(entry)
        repetition.stored = stored

    def _take_repetition_ended(self, entry: JournalLine) -> None:
        repetition = self._running(entry)
        try:
            measured = _adapter().validate_python(entry["measured"])
        except ValidationError as error:
            raise UsageError(f"campaign: {_name_of(entry)}: measured.{first_fault(error)}; {REMEDY}") from None
        repetition.measured, repetition.seconds = plain(measured), entry["seconds"]
        repetition.own_part = entry.get("own_part", {})
        # They are no longer needed, and may be many.
        repetition.answers = []

    def _take_result(self, entry: JournalLine) -> None:
        known = self._of(entry)
        known.folder, known.partial = entry["folder"], bool(entry["cause"])

    def _take_retried(self, _entry: JournalLine) -> None:
        """Broken measurements begin their repetition again; results that lack repetitions are written again."""
        self.broken_cells.clear()
        self.broken_devices.clear()
        for known in self.measurements.values():
            if known.broken:
                known.broken, known.repetitions = "", list(known.ended)
            if known.partial:
                known.folder, known.partial = "", False

    def _take_broken(self, entry: JournalLine) -> None:
        if entry["scope"] == "device":
            self.broken_devices.setdefault(entry["device"], entry["cause"])
        elif entry["scope"] == "cell":
            self.broken_cells.setdefault(entry["cell"], entry["cause"])
        else:
            known = self._of(entry)
            known.broken = known.broken or entry["cause"]

    def broken(self, cell: str, device: str, measurement: str) -> str:
        """Reason why a measurement cannot go on; empty = it can."""
        known = self.measurements.get((cell, measurement))
        own = "" if known is None else known.broken
        return self.broken_devices.get(device) or self.broken_cells.get(cell) or own
