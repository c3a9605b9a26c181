# SPDX-License-Identifier: Apache-2.0
"""The state of a campaign from its journal alone, the evidence that the journal counts, and the status for people.

Evidence, from the first trial to the results folder, is files of trials and of rounds of slices. Each is written once.
It grows in the folder that becomes the results folder when the measurement has ended. The journal says how far it
counts: evidence reaches the disk before its line of the journal does, and whatever follows is cut off.

The status follows from the campaign's folder alone: also while it runs, from another terminal.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from natgauge.campaigns.journal import (
    REMEDY,
    JournalLine,
    MeasurementBroken,
    RepetitionLine,
    ResultLine,
    RetriedLine,
    VisitLine,
    entries,
    entry_of,
    is_written,
    text_of,
    typed,
    unwritable_journal,
    write,
)
from natgauge.errors import HostError, UsageError
from natgauge.metrics import declared
from natgauge.procedures.kit.procedure import is_enough
from natgauge.procedures.kit.runner import TIME
from natgauge.procedures.kit.settings import LEAST_AUTO_REPETITIONS, Repeat
from natgauge.records.campaign import Broken, CampaignCell, CampaignMeasurement, CampaignRecord
from natgauge.records.record import read_record
from natgauge.records.store import (
    CAMPAIGN,
    CAMPAIGN_RESULTS,
    JOURNAL,
    MAKING,
    ROUND_SCHEMA,
    ROUNDS,
    SUMMARY,
    TRIAL_SCHEMA,
    TRIALS,
    Memory,
    plain,
)
from natgauge.words import NO_DEVICE, sending

#: Key of what a repetition recorded, on its way to these files; and of the extent with which the journal replaces it.
EVIDENCE: Final = "evidence"
STORED: Final = "stored"


class Extent(NamedTuple):
    """How much of the files counts: the first trials and rounds, and their octets."""

    trials: int = 0
    octets: int = 0
    rounds: int = 0
    round_octets: int = 0

    @property
    def files(self) -> Mapping[str, tuple[int, str]]:
        """The octets that count of each file, by its name, and what they are in words."""
        return {
            TRIALS: (self.octets, f"{self.trials:,} trials"),
            ROUNDS: (self.round_octets, f"{self.rounds:,} rounds"),
        }


class EvidenceLines(NamedTuple):
    """Lines for the files of trials and of rounds."""

    trials: bytes = b""
    rounds: bytes = b""


NO_EVIDENCE: Final = EvidenceLines()


def _stored_apart(fields: Mapping[str, Any], known: Extent) -> tuple[dict[str, Any], EvidenceLines]:
    """Return the fields of a line with the extent of the files in place of the evidence, and the lines for these."""
    recorded: Memory = fields[EVIDENCE]
    of_all: dict[str, object] = {"repetition": fields["repetition"]}
    trials = _lines(recorded.trials, TRIAL_SCHEMA, "trial", known.trials, of_all)
    rounds = _lines(recorded.rounds, ROUND_SCHEMA, "round", known.rounds, of_all)
    stored = Extent(
        known.trials + len(recorded.trials),
        known.octets + len(trials),
        known.rounds + len(recorded.rounds),
        known.round_octets + len(rounds),
    )
    others = {name: value for name, value in fields.items() if name != EVIDENCE}
    return {**others, STORED: stored._asdict()}, EvidenceLines(trials, rounds)


def _lines(
    records: Sequence[Mapping[str, object]], schema: str, what: str, before: int, of_all: Mapping[str, object]
) -> bytes:
    """Return the lines of records that follow so many others; `what` each of them is, with its number."""
    numbered = (
        {"schema": schema, what: number, **of_all, **plain(record)}
        for number, record in enumerate(records, start=before + 1)
    )
    return "".join(f"{text_of(each)}\n" for each in numbered).encode()


class EvidenceFile:
    """Evidence of one measurement of a campaign."""

    def __init__(self, folder: Path, name: str) -> None:
        """Name it; nothing is touched."""
        self.name = f"{CAMPAIGN_RESULTS}/{name}"
        self.making = folder / CAMPAIGN_RESULTS / f"{MAKING}{name}"
        self.result = folder / self.name
        self._campaign = folder

    def check(self, known: Extent) -> None:
        """Refuse to go on without evidence that the journal counts, or where a link leads out of the campaign."""
        self._refuse_elsewhere()
        for name, (octets, _) in known.files.items():
            places = (self.making / name, self.result / name)
            size = next((path.stat().st_size for path in places if path.is_file()), 0)
            if octets > size:
                raise UsageError(self._lacking(name, size, known))

    def append(self, lines: EvidenceLines, known: Extent) -> None:
        """Append lines of trials and rounds; they are on the disk when this returns."""
        self._append(TRIALS, lines.trials, known)
        self._append(ROUNDS, lines.rounds, known)

    def _append(self, name: str, lines: bytes, known: Extent) -> None:
        if not lines:
            return
        try:
            file = self._open(name, known)
            try:
                write(file, lines)
                os.fsync(file)
            except OSError:
                # What is left of the last line would make the folder unreadable until the campaign is resumed.
                with suppress(OSError):
                    os.ftruncate(file, known.files[name][0])
                raise
            finally:
                os.close(file)
        except OSError as error:
            raise unwritable_journal(self.making / name, error) from error

    def settle(self, known: Extent) -> Path:
        """Return the folder for the result: it has the evidence that counts, and nothing else."""
        self._make_folder()
        for name, (octets, _) in known.files.items():
            if octets:
                os.close(self._open(name, known))
            else:
                (self.making / name).unlink(missing_ok=True)
        # The summary goes first, so that no reader finds one with the repetitions of another.
        (self.making / SUMMARY).unlink(missing_ok=True)
        for path in self.making.iterdir():
            if path.name not in known.files:
                path.unlink()
        return self.making

    def publish(self) -> None:
        """Make the folder the results folder, in the place of an incomplete one."""
        shutil.rmtree(self.result, ignore_errors=True)
        self.making.rename(self.result)

    def _refuse_elsewhere(self) -> None:
        results = self.making.parent
        target = os.path.realpath(results)
        if not Path(target).is_relative_to(os.path.realpath(self._campaign)):
            raise HostError(f"campaign: {results}: is a link to {target}, outside of the campaign; remove the link")

    def _make_folder(self) -> None:
        # A link could lead to any folder of the machine, which this would change.
        self._refuse_elsewhere()
        if self.making.is_symlink():
            raise HostError(f"campaign: {self.making}: is a link, which leads elsewhere; remove it")
        self.making.mkdir(parents=True, exist_ok=True)

    def _open(self, name: str, known: Extent) -> int:
        """Open a file at the end of what counts, without what follows.

        A session that was killed after the result was made, or an incomplete result, has it in the results folder only.
        """
        self._make_folder()
        path, (octets, _) = self.making / name, known.files[name]
        if octets and not path.exists():
            self._copy_back(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        file = os.open(path, flags, 0o644)
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_size < octets:
                # It was whole when the session began.
                raise HostError(self._lacking(name, found.st_size, known))  # noqa: TRY301 - the file is closed below
            os.ftruncate(file, octets)
            os.lseek(file, octets, os.SEEK_SET)
        except BaseException:
            os.close(file)
            raise
        return file

    def _lacking(self, name: str, octets: int, known: Extent) -> str:
        counted, what = known.files[name]
        return (
            f"campaign: {self.making / name}: has {octets:,} octets, but the journal counts {counted:,} octets, those "
            f"of {what}; {REMEDY}"
        )

    def _copy_back(self, name: str) -> None:
        earlier, path = self.result / name, self.making / name
        if earlier.is_file() and not earlier.is_symlink():
            copy = path.with_suffix(".copy")
            shutil.copyfile(earlier, copy)
            copy.replace(path)


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
    """

    measurements: dict[tuple[str, str], MeasurementState] = field(default_factory=dict)
    broken: Broken = field(default_factory=Broken)
    running: dict[str, JournalLine] = field(default_factory=dict)
    workers: set[str] = field(default_factory=set)
    trials: int = 0
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
                self._since[line.cell] = line.at
                self.workers.add(line.worker)
                self.visits += 1
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
            fields, evidence = _stored_apart(fields, self.measurement(fields["cell"], fields["measurement"]).stored)
        return entry_of(event, fields), evidence

    def _retry(self, line: RetriedLine) -> None:
        """Broken measurements begin their repetition again; results that lack repetitions are written again."""
        freed = {cell for device in line.devices if device in self.broken.devices for cell in line.devices[device]}
        for own, known in self.measurements.items():
            # In other cells of a device that is tried again, only what broke with it goes on.
            by_device = own[0] in freed and not (own in self.broken.measurements or own[0] in self.broken.cells)
            if own[0] in line.cells or by_device:
                known.retry()


@dataclass(frozen=True, slots=True)
class MeasurementStatus:
    """One measurement of one cell; unit and folder are empty while there is none.

    Attributes:
        values: values of ended repetitions, without bounds from repetitions that a time limit cut off.
        broken: reason why the measurement cannot continue; empty = it can.
        bounds: of each value, whether it is only a lower bound, because not the device limited it.
        sending: directions of a rate of frames, in words; empty for other values.
        cut_off_bounds: lower and upper bound of each repetition of a rate that a time limit cut off; None = not known.
    """

    cell: str
    measurement: str
    done: int
    most_repetitions: int
    estimated_seconds: float
    values: tuple[float, ...]
    cut_off: int
    unit: str
    folder: str
    broken: str
    bounds: tuple[bool, ...]
    sending: str
    cut_off_bounds: tuple[tuple[float, float | None], ...] = ()

    @property
    def left(self) -> int:
        """Repetitions still to do, at most."""
        return 0 if self.broken or self.folder else max(self.most_repetitions - self.done, 0)


@dataclass(frozen=True, slots=True)
class CampaignStatus:
    """A campaign.

    Attributes:
        now: the trial that is running, or was when the campaign was killed; None = there is none.
        seconds_left: estimate from the plan and the repetitions so far; None while there is none.
    """

    name: str
    folder: Path
    runs: bool
    measurements: tuple[MeasurementStatus, ...]
    now: Mapping[str, Any] | None
    beside: tuple[Mapping[str, Any], ...]
    trials: int
    visits: int
    seconds_left: float | None


def status(folder: Path, state: CampaignState | None = None) -> CampaignStatus:
    """Read the status of a campaign; a session that has just ended knows the `state`."""
    if not (folder / CAMPAIGN).exists():
        raise UsageError(f"status: {folder} holds no campaign; name the folder that natgauge run has made")
    campaign = read_record(folder / CAMPAIGN, CampaignRecord)
    if state is None:
        state = CampaignState.of(folder) if (folder / JOURNAL).exists() else CampaignState()
    measurements = tuple(_measurement(state, cell, each) for cell in campaign.cells for each in cell.measurements)
    running = sorted(state.running.values(), key=lambda trial: float(trial["at"]))
    return CampaignStatus(
        name=campaign.name,
        folder=folder,
        runs=is_written(folder),
        measurements=measurements,
        now=running[-1] if running else None,
        beside=tuple(running[:-1]),
        trials=state.trials,
        visits=state.visits,
        seconds_left=_seconds_left(state, measurements),
    )


def _measurement(state: CampaignState, cell: CampaignCell, measurement: CampaignMeasurement) -> MeasurementStatus:
    known = state.measurement(cell.name, measurement.name)
    ended = known.ended
    every = [one for each in ended for one in each.result.measurements]
    complete = [one for one in every if one.limited_by != TIME]
    has_all = known.folder and not known.partial
    first = ended[0] if ended else None
    is_rate = first is not None and declared(first.result.metric).better == "higher"
    return MeasurementStatus(
        cell=cell.name,
        measurement=measurement.name,
        done=len(ended),
        most_repetitions=measurement.repetitions,
        estimated_seconds=measurement.estimated_seconds,
        values=tuple(one.value for one in complete),
        cut_off=len(every) - len(complete),
        unit=first.result.unit if first else "",
        folder=known.folder,
        # A device may break after some of its measurements have ended.
        broken="" if has_all else state.broken.cause(cell.name, cell.device, measurement.name),
        bounds=tuple(is_rate and one.limited_by in NO_DEVICE for one in complete),
        sending=_sending(first) if first else "",
        cut_off_bounds=tuple((one.value, one.upper) for one in every if is_rate and one.limited_by == TIME),
    )


def _sending(line: RepetitionLine) -> str:
    if line.result.unit not in ("frames", "frames/s"):
        return ""
    is_balanced = line.parameters.get("down_share") in (None, 0.5)
    return sending(line.parameters.get("directions"), is_balanced=is_balanced)


def _seconds_left(state: CampaignState, measurements: tuple[MeasurementStatus, ...]) -> float | None:
    """Scale the estimates by the time that the same measurement took in other cells, if it is known.

    What its repetitions took beside that, to make labs, does not grow with the estimate.
    As many workers go on as the last session had, each with a cell of its own: so no less is left than of one cell.
    """
    measured, estimated = defaultdict[str, float](float), defaultdict[str, float](float)
    around, number = defaultdict[str, float](float), defaultdict[str, int](int)
    for one in measurements:
        known = state.measurement(one.cell, one.measurement)
        around[one.measurement] += known.around
        number[one.measurement] += len(known.ended)
        for ended in known.ended:
            measured[one.measurement] += ended.seconds
            estimated[one.measurement] += one.estimated_seconds
    if not measured:
        return None
    usual = sum(measured.values()) / sum(estimated.values())
    times = {name: seconds / estimated[name] for name, seconds in measured.items()}
    left = defaultdict[str, float](float)
    for one in measurements:
        each = one.estimated_seconds * times.get(one.measurement, usual)
        left[one.cell] += one.left * (each + around[one.measurement] / max(number[one.measurement], 1))
    return max(sum(left.values()) / max(len(state.workers), 1), *left.values())
