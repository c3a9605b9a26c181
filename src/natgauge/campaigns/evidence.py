# SPDX-License-Identifier: Apache-2.0
"""The evidence of a measurement's trials, from the first trial to the results folder: one file, written once.

It grows in the folder that becomes the results folder when the measurement has ended. The journal says how far it
counts: evidence reaches the disk before its line of the journal does, and whatever follows is cut off.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from natgauge.campaigns.journal import unwritable_journal, write
from natgauge.campaigns.journal_lines import REMEDY
from natgauge.errors import HostError, UsageError
from natgauge.records.store import CAMPAIGN_RESULTS, MAKING, SUMMARY, TRIAL_SCHEMA, TRIALS, plain

#: Key of the trials of a repetition, on their way to this file; and of the extent with which the journal replaces them.
EVIDENCE: Final = "evidence"
STORED: Final = "stored"


class Extent(NamedTuple):
    """How much of a file counts: its first trials, and their octets."""

    trials: int = 0
    octets: int = 0


def stored_apart(fields: Mapping[str, Any], known: Extent) -> tuple[dict[str, Any], bytes]:
    """Take the evidence out of the fields of a line.

    Returns:
        The fields, with the extent of the file in its place; and the lines for that file.
    """
    trials = fields[EVIDENCE]
    numbered = (
        {"schema": TRIAL_SCHEMA, "trial": number, "repetition": fields["repetition"], **plain(trial)}
        for number, trial in enumerate(trials, start=known.trials + 1)
    )
    lines = "".join(json.dumps(trial, allow_nan=False, separators=(",", ":")) + "\n" for trial in numbered).encode()
    stored = Extent(known.trials + len(trials), known.octets + len(lines))
    return {**{name: value for name, value in fields.items() if name != EVIDENCE}, STORED: stored._asdict()}, lines


class EvidenceFile:
    """Evidence of one measurement of a campaign."""

    def __init__(self, folder: Path, name: str) -> None:
        """Name it; nothing is touched."""
        self.name = f"{CAMPAIGN_RESULTS}/{name}"
        self.making = folder / CAMPAIGN_RESULTS / f"{MAKING}{name}"
        self.result = folder / self.name
        self._path = self.making / TRIALS
        self._campaign = folder

    def check(self, known: Extent) -> None:
        """Refuse to go on without evidence that the journal counts, or where a link leads out of the campaign."""
        self._refuse_elsewhere()
        sizes = [path.stat().st_size for path in (self._path, self.result / TRIALS) if path.is_file()]
        if known.octets > (sizes or [0])[0]:
            raise UsageError(self._lacking((sizes or [0])[0], known))

    def append(self, lines: bytes, known: Extent) -> None:
        """Append lines of trials; they are on the disk when this returns."""
        if not lines:
            return
        try:
            file = self._open(known)
            try:
                write(file, lines)
                os.fsync(file)
            except OSError:
                # What is left of the last line would make the folder unreadable until the campaign is resumed.
                with suppress(OSError):
                    os.ftruncate(file, known.octets)
                raise
            finally:
                os.close(file)
        except OSError as error:
            raise unwritable_journal(self._path, error) from error

    def settle(self, known: Extent) -> Path:
        """Return the folder for the result: it has the evidence that counts, and nothing else."""
        if known.trials:
            os.close(self._open(known))
        else:
            self._make_folder()
            self._path.unlink(missing_ok=True)
        # The summary goes first, so that no reader finds one with the repetitions of another.
        (self.making / SUMMARY).unlink(missing_ok=True)
        for path in self.making.iterdir():
            if path != self._path:
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

    def _open(self, known: Extent) -> int:
        """Open the file at the end of what counts, without what follows.

        A session that was killed after the result was made, or an incomplete result, has it in the results folder only.
        """
        self._make_folder()
        if known.octets and not self._path.exists():
            self._copy_back()
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        file = os.open(self._path, flags, 0o644)
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_size < known.octets:
                # It was whole when the session began.
                raise HostError(self._lacking(found.st_size, known))  # noqa: TRY301 - the file is closed below
            os.ftruncate(file, known.octets)
            os.lseek(file, known.octets, os.SEEK_SET)
        except BaseException:
            os.close(file)
            raise
        return file

    def _lacking(self, octets: int, known: Extent) -> str:
        return (
            f"campaign: {self._path}: has {octets:,} octets, but the journal counts {known.octets:,} octets, those of "
            f"{known.trials:,} trials; {REMEDY}"
        )

    def _copy_back(self) -> None:
        earlier = self.result / TRIALS
        if earlier.is_file() and not earlier.is_symlink():
            copy = self._path.with_suffix(".copy")
            shutil.copyfile(earlier, copy)
            copy.replace(self._path)
