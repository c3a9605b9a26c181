# SPDX-License-Identifier: Apache-2.0
"""The state of a campaign, from its journal alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from natgauge.campaigns.evidence import EVIDENCE, NO_EVIDENCE, EvidenceLines, Extent, stored_apart
from natgauge.campaigns.journal import JournalLine, entries, entry_of
from natgauge.campaigns.journal_lines import (
    REMEDY,
    MeasurementBroken,
    RepetitionLine,
    ResultLine,
    RetriedLine,
    VisitLine,
    typed,
)
from natgauge.errors import UsageError
from natgauge.procedures.kit.repetitions import is_enough
from natgauge.procedures.kit.settings import LEAST_AUTO_REPETITIONS, Repeat
from natgauge.procedures.kit.time_budget import TIME
from natgauge.records.campaign import Broken
from natgauge.records.store import JOURNAL

#: Events of a cell before which its trial has ended; before any other event, the trial was ended.
_AFTER_A_TRIAL: Final = frozenset({"trial", "repetition"})


@dataclass(slots=True)
class MeasurementState:
    """One measurement of one cell.

    Attributes:
        ended: repetitions in order.
        stored: how much of the evidence counts: that of these repetitions, and of the one in which it broke.
        folder: folder of the result, below the campaign's; empty = there is none yet.
        around: seconds that its repetitions took beside their own: to make a lab, to start a device.
    """

    ended: list[RepetitionLine] = field(default_factory=list)
    stored: Extent = field(default_factory=Extent)
    folder: str = ""
    partial: bool = False
    around: float = 0.0
    _of_ended: Extent = field(default_factory=Extent)

    def take(self, line: RepetitionLine) -> None:
        """Add a repetition that has ended; one that is no result is refused."""
        self.store(line)
        _ = line.result
        self.ended.append(line)
        self._of_ended = self.stored

    def retry(self) -> None:
        """Forget the repetition in which it broke, so that it begins again."""
        self.stored = self._of_ended
        if self.partial:
            self.folder, self.partial = "", False

    def store(self, line: RepetitionLine | MeasurementBroken) -> None:
        """Note what is stored of a repetition, also of one in which it broke."""
        stored = Extent(**line.stored.model_dump())
        shrinks = any(now < before for now, before in zip(stored, self.stored, strict=True))
        if line.repetition != len(self.ended) + 1 or shrinks:
            raise UsageError(f"campaign: {line.name}: lines before it are missing, or it is there twice; {REMEDY}")
        self.stored = stored

    def is_done(self, repeat: Repeat, most: int) -> bool:
        """Whether all requested repetitions have ended."""
        if len(self.ended) >= most:
            return True
        # The result leaves out what time cut off, so the median that is to be well known is one of the others.
        whole = [each.result for each in self.ended if each.result.limited_by != TIME]
        if isinstance(repeat, str) and not whole:
            # Time that cut off all of these cuts off the others, too.
            return len(self.ended) >= LEAST_AUTO_REPETITIONS
        return is_enough([value for result in whole for value in result.values], repeat, most)


@dataclass(slots=True)
class CampaignState:
    """The state of a campaign; a trial that a kill ended is not among its `trials`.

    Attributes:
        running: the trial of each cell that has begun and, by the journal, not ended.
        workers: those of the last session that measured, by name; "" = its own process.
        began: start of the first session, seconds since 1970.
    """

    measurements: dict[tuple[str, str], MeasurementState] = field(default_factory=dict)
    broken: Broken = field(default_factory=Broken)
    running: dict[str, JournalLine] = field(default_factory=dict)
    workers: set[str] = field(default_factory=set)
    trials: int = 0
    began: float | None = None
    last: float | None = None
    visits: int = 0
    _since: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> CampaignState:
        """Return the state of the campaign in a folder, after the last line of its journal."""
        state = cls()
        for number, entry in enumerate(entries(folder), start=1):
            state.take(entry, f"{folder / JOURNAL}:{number}")
        return state

    def measurement(self, cell: str, measurement: str) -> MeasurementState:
        """State of a measurement, also of one that has not begun."""
        return self.measurements.setdefault((cell, measurement), MeasurementState())

    def take(self, entry: JournalLine, where: str = JOURNAL) -> None:
        """Update the state with the journal's next line; `where` that is."""
        line = typed(entry, where)
        self.began = self.began or line.at
        self.last = line.at
        cell: str | None = getattr(line, "cell", None)
        if cell is None:
            # Sessions begin and end without a trial.
            self.running.clear()
        else:
            had_begun = self.running.pop(cell, None) is not None
            self.trials += had_begun and line.event in _AFTER_A_TRIAL
            if line.event == "trial":
                self.running[cell] = entry
        self.workers = set() if line.event == "session" else self.workers
        match line:
            case RetriedLine():
                self._retry(line)
            case VisitLine():
                self.visits += 1
                self._since[line.cell] = line.at
                self.workers.add(line.worker)
            case RepetitionLine():
                known = self.measurement(line.cell, line.measurement)
                known.take(line)
                # Clocks of workers may differ from that of the visit.
                known.around += max(line.at - self._since.get(line.cell, line.at) - line.seconds, 0.0)
                self._since[line.cell] = line.at
            case MeasurementBroken():
                self.measurement(line.cell, line.measurement).store(line)
            case ResultLine():
                known = self.measurement(line.cell, line.measurement)
                known.folder, known.partial = line.folder, bool(line.cause)
        self.broken.take(entry)

    def line_of(self, event: str, fields: Mapping[str, Any]) -> tuple[JournalLine, EvidenceLines]:
        """Return the next line of the journal, and the lines that go with it to the files of evidence."""
        evidence = NO_EVIDENCE
        if EVIDENCE in fields:
            fields, evidence = stored_apart(fields, self.measurement(fields["cell"], fields["measurement"]).stored)
        return entry_of(event, fields), evidence

    def _retry(self, line: RetriedLine) -> None:
        """Broken measurements begin their repetition again; results that lack repetitions are written again."""
        freed = {cell for device in line.devices if device in self.broken.devices for cell in line.devices[device]}
        for own, known in self.measurements.items():
            # In other cells of a device that is tried again, only what broke with it goes on.
            by_device = own[0] in freed and not (own in self.broken.measurements or own[0] in self.broken.cells)
            if own[0] in line.cells or by_device:
                known.retry()
