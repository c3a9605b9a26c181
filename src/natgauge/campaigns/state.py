# SPDX-License-Identifier: Apache-2.0
"""Where a campaign stands, from its journal alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from natgauge.campaigns.answers import Answer
from natgauge.campaigns.journal import Entry
from natgauge.procedures.kit.repetitions import well_known
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.procedures.kit.settings import Repeat


@dataclass(slots=True)
class Repetition:
    """One repetition of one measurement of one cell.

    Attributes:
        number: from 1.
        begun: what was noted when it began: `given`, `parameters`, `device`, `highest_rate`, `abilities`.
        answers: of the measurer, so far.
        measured: what came of it, plain; None = it has not ended.
        seconds: it took, without those between sessions.
    """

    number: int
    begun: Entry
    answers: list[Answer] = field(default_factory=list)
    measured: Any = None
    seconds: float = 0.0

    @property
    def result(self) -> MeasurementResult:
        """What came of it; only of one that has ended."""
        return _adapter().validate_python(self.measured)


@cache
def _adapter() -> TypeAdapter[MeasurementResult]:
    return TypeAdapter(MeasurementResult)


@dataclass(slots=True)
class Course:
    """One measurement of one cell.

    Attributes:
        repetitions: in order; only the last one may not have ended.
        folder: of its result, below the campaign's; empty = there is none yet.
        partial: whether that has fewer repetitions than were asked for.
        broken: the first cause that it cannot go on; empty = there is none.
    """

    repetitions: list[Repetition] = field(default_factory=list)
    folder: str = ""
    partial: bool = False
    broken: str = ""

    @property
    def ended(self) -> Sequence[Repetition]:
        """Those that have ended."""
        return [one for one in self.repetitions if one.measured is not None]

    @property
    def under_way(self) -> Repetition | None:
        """The one that has not ended."""
        return next((one for one in self.repetitions if one.measured is None), None)

    def is_done(self, repeat: Repeat, most: int) -> bool:
        """Whether there are as many repetitions as asked for."""
        ended = self.ended
        if len(ended) >= most:
            return True
        if not isinstance(repeat, str):
            return False
        return well_known([value["value"] for one in ended for value in one.measured["measurements"]])


@dataclass(slots=True)
class State:
    """Everything that the journal tells.

    Attributes:
        courses: by cell and measurement.
        broken_cells: cause by cell.
        broken_devices: cause by recipe.
        running: of each cell the last trial that began, while it has not ended.
        answers: of measurers, in all.
        began: when the first session did, seconds since 1970.
        last: when the last line was written.
        visits: so far.
    """

    courses: dict[tuple[str, str], Course] = field(default_factory=dict)
    broken_cells: dict[str, str] = field(default_factory=dict)
    broken_devices: dict[str, str] = field(default_factory=dict)
    running: dict[str, Entry] = field(default_factory=dict)
    answers: int = 0
    began: float | None = None
    last: float | None = None
    visits: int = 0

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> State:
        """The state after all these lines."""
        state = cls()
        for entry in entries:
            state.take(entry)
        return state

    def course(self, cell: str, measurement: str) -> Course:
        """That of a measurement, which may not have begun."""
        return self.courses.setdefault((cell, measurement), Course())

    def take(self, entry: Entry) -> None:
        """One more line."""
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

    def _of(self, entry: Entry) -> Course:
        return self.course(entry["cell"], entry["measurement"])

    def _take_visit(self, _entry: Entry) -> None:
        self.visits += 1

    def _take_repetition(self, entry: Entry) -> None:
        """One that had not ended begins anew."""
        course = self._of(entry)
        course.repetitions = [*course.ended, Repetition(entry["repetition"], entry)]

    def _take_answer(self, entry: Entry) -> None:
        self.answers += 1
        raised = entry["raised"]
        one = Answer(
            entry["call"], entry["plan"], entry["answer"], entry["seconds"], None if raised is None else tuple(raised)
        )
        self._of(entry).repetitions[-1].answers.append(one)

    def _take_repetition_ended(self, entry: Entry) -> None:
        repetition = self._of(entry).repetitions[-1]
        repetition.measured, repetition.seconds = entry["measured"], entry["seconds"]
        # Nobody asks for them again, and they are many.
        repetition.answers = []

    def _take_result(self, entry: Entry) -> None:
        course = self._of(entry)
        course.folder, course.partial = entry["folder"], bool(entry["cause"])

    def _take_retried(self, _entry: Entry) -> None:
        """What broke is tried again, not gone on with; results that lack repetitions are made anew."""
        self.broken_cells.clear()
        self.broken_devices.clear()
        for course in self.courses.values():
            if course.broken:
                course.broken, course.repetitions = "", list(course.ended)
            if course.partial:
                course.folder, course.partial = "", False

    def _take_broken(self, entry: Entry) -> None:
        if entry["scope"] == "device":
            self.broken_devices.setdefault(entry["device"], entry["cause"])
        elif entry["scope"] == "cell":
            self.broken_cells.setdefault(entry["cell"], entry["cause"])
        else:
            course = self._of(entry)
            course.broken = course.broken or entry["cause"]

    def broken(self, cell: str, device: str, measurement: str) -> str:
        """Why a measurement cannot go on; empty = it can."""
        course = self.courses.get((cell, measurement))
        own = "" if course is None else course.broken
        return self.broken_devices.get(device) or self.broken_cells.get(cell) or own
