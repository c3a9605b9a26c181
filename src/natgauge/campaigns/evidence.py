# SPDX-License-Identifier: Apache-2.0
"""The evidence of a measurement, from the first trial to the results folder: files of trials and of rounds of slices.

Each is written once. It grows in the folder that becomes the results folder when the measurement has ended. The journal
says how far it counts: evidence reaches the disk before its line of the journal does, and whatever follows is cut off.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from natgauge.campaigns.journal import unwritable_journal, write
from natgauge.campaigns.journal_lines import REMEDY
from natgauge.errors import HostError, UsageError
from natgauge.records.store import (
    CAMPAIGN_RESULTS,
    MAKING,
    ROUND_SCHEMA,
    ROUNDS,
    SUMMARY,
    TRIAL_SCHEMA,
    TRIALS,
    Memory,
    plain,
)

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


def stored_apart(fields: Mapping[str, Any], known: Extent) -> tuple[dict[str, Any], EvidenceLines]:
    """Take the evidence out of the fields of a line.

    Returns:
        The fields, with the extent of the files in its place; and the lines for these files.
    """
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
    return "".join(json.dumps(each, allow_nan=False, separators=(",", ":")) + "\n" for each in numbered).encode()


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
            sizes = [path.stat().st_size for path in (self.making / name, self.result / name) if path.is_file()]
            if octets > (sizes or [0])[0]:
                raise UsageError(self._lacking(name, (sizes or [0])[0], known))

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
