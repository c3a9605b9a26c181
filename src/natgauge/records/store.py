# SPDX-License-Identifier: Apache-2.0
"""Storage of a measurement's evidence: one folder of plain JSON files, in which every written line is complete.

`plan.json` contains the request, `recipe.json` the gateway's recipe, `environment.json` the host, `trials.jsonl` every
trial (INVALID trials included) as it ended, `measurements.jsonl` one line per repetition, `summary.json` the printed
result. Each document names its schema version.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from natgauge import file_access
from natgauge.errors import NatgaugeError, UsageError, fault, unwritable

PLAN_SCHEMA = "natgauge-plan-1"
ENVIRONMENT_SCHEMA = "natgauge-environment-1"
TRIAL_SCHEMA = "natgauge-trial-2"
MEASUREMENT_SCHEMA = "natgauge-measurement-2"
RECIPE_SCHEMA = "natgauge-recipe-1"
ROUND_SCHEMA = "natgauge-comparison-round-2"
FAILURE_SCHEMA = "natgauge-failure-1"
JOURNAL_SCHEMA = "natgauge-journal-7"

#: Written when a measurement begins, and when it has ended.
PLAN = "plan.json"
SUMMARY = "summary.json"
ENVIRONMENT = "environment.json"
TRIALS = "trials.jsonl"
MEASUREMENTS = "measurements.jsonl"
ROUNDS = "rounds.jsonl"
#: Of a comparison, when it has ended.
COMPARISON = "comparison.json"
#: Of an audit, when it has ended, and the folder of the frames that decided each verdict.
AUDIT = "audit.json"
EVIDENCE = "evidence"
#: Written where a measurement ended with an error after its first trial; the traceback only where natgauge is at fault.
FAILURE = "failure.json"
TRACEBACK = "traceback.txt"

#: Where folders are made unless another place is named.
RESULTS = Path("results")
#: Below a campaign's folder, one results folder for each measurement of each cell.
CAMPAIGN_RESULTS = "results"
#: Beginning of the name of such a folder until all repetitions of the measurement have ended.
MAKING = ".making-"
#: In the folder of a campaign: the plan as read, and its text, from which others can run it; nothing reads that.
CAMPAIGN = "campaign.json"
PLAN_TEXT = "plan.toml"
JOURNAL = "journal.jsonl"
RECIPE = "recipe.json"

_MAXIMUM_NAMES = 1000
#: Date at the beginning of a folder's name, in UTC.
_STAMP = "%Y-%m-%d-%H%M%S"
#: The last second of the year 9999, the last one that dates have, in s since 1970.
LAST_SECOND = 253_402_300_799
#: Types that JSON has; most of every document, so they are tried first. Enumerators are none of these types themselves.
_PLAIN = frozenset({str, int, float, bool, type(None)})
#: Names of the fields of each dataclass that was written so far; None for another type.
_FIELDS: dict[type, tuple[str, ...] | None] = {}


class Memory:
    """Keeps trials, and rounds of slices, in the order in which they ended, for callers without a folder."""

    def __init__(self) -> None:
        self.trials: list[Mapping[str, object]] = []
        self.rounds: list[Mapping[str, object]] = []

    def add_trial(self, trial: Mapping[str, object]) -> None:
        """Append a trial."""
        self.trials.append(trial)

    def add_round(self, comparison_round: Mapping[str, object]) -> None:
        """Keep one round of slices."""
        self.rounds.append(comparison_round)


class Store:
    """One results folder, open for appending: an existing one, or one that `create` makes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.trials = 0
        self.rounds = 0
        self._made: list[Path] = []
        self._measured: dict[str, str] = {}

    @classmethod
    def create(cls, parent: Path, metric: str, gateway: str, *, now: datetime | None = None) -> Store:
        """Make `parent/<date>-<time>-<metric>-<gateway>` and check that it can be written, or leave nothing."""
        stamp = (now or datetime.now(UTC)).strftime(_STAMP)
        name = f"{stamp}-{metric}-{gateway}"
        refuse_name(parent)
        try:
            missing = [path for path in (parent, *parent.parents) if not path.exists()]
            parent.mkdir(parents=True, exist_ok=True)
            folder = _make_new(parent, name)
        except OSError as error:
            raise unwritable(parent, error, what="results", remedy="name another folder with --results") from error
        store = cls(folder)
        store._made = missing
        store._measured = {"metric": metric, "gateway": gateway}
        return store

    def write_plan(self, plan: Mapping[str, object]) -> None:
        """Store what is measured, and the request with every default filled in."""
        self._write(PLAN, {"schema": PLAN_SCHEMA, **self._measured, **plan})

    def write_recipe(self, recipe: Mapping[str, object], digest: str) -> None:
        """Write the gateway's complete recipe, fragments included, and its SHA-256."""
        self._write(RECIPE, {"schema": RECIPE_SCHEMA, "sha256": digest, "recipe": recipe})

    def write_environment(self, environment: Mapping[str, object]) -> None:
        """Keep machine, kernel, versions and settings of the device."""
        self._write(ENVIRONMENT, {"schema": ENVIRONMENT_SCHEMA, **environment})

    def write_summary(self, summary: Mapping[str, object]) -> None:
        """Keep what was printed at the end."""
        self._write(SUMMARY, summary)

    def add_trial(self, trial: Mapping[str, object]) -> None:
        """Append one trial and flush it to the disk: a killed run keeps all that it did."""
        self.trials += 1
        self._append(TRIALS, {"schema": TRIAL_SCHEMA, "trial": self.trials, **trial})

    def add_measurements(self, measurements: Sequence[Mapping[str, object]]) -> None:
        """Append the records of repetitions."""
        self._append(MEASUREMENTS, *({"schema": MEASUREMENT_SCHEMA, **measurement} for measurement in measurements))

    def add_round(self, comparison_round: Mapping[str, object]) -> None:
        """Append one round, all its slices, and flush it to the disk."""
        self.rounds += 1
        self._append(ROUNDS, {"schema": ROUND_SCHEMA, "round": self.rounds, **comparison_round})

    def write_comparison(self, comparison: Mapping[str, object]) -> None:
        """Keep what a comparison printed at its end."""
        self._write(COMPARISON, comparison)

    def write_audit(self, audit: Mapping[str, object]) -> None:
        """Keep what an audit printed at its end."""
        self._write(AUDIT, audit)

    def write_frames(self, name: str, capture: bytes) -> str:
        """Write a capture of frames that decided a verdict, and return its path in the folder."""
        path = self.folder / EVIDENCE / name
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(capture)
        except OSError as error:
            raise _unwritable(path, error) from error
        return f"{EVIDENCE}/{name}"

    @contextmanager
    def evidence(self, command: str = "") -> Iterator[None]:
        """Surround a measurement: on an error, store it, or remove a folder without trials; a fault has a traceback.

        `command` measures again, for a measurement that fails before its plan is known.
        """
        try:
            yield
        except Exception as error:
            if isinstance(error, (NatgaugeError, BrokenPipeError)):
                self.discard_unused()
                self._end(str(error), command)
                if isinstance(error, NatgaugeError) and self.trials:
                    error.evidence = self.folder
                raise
            broke = fault(error, [self.folder / TRACEBACK])
            self._end(str(broke), command)
            raise broke from error
        except BaseException as error:
            self.discard_unused()
            self._end(f"ended by a signal ({type(error).__name__}); measure again", command)
            raise

    def _end(self, error: str, command: str) -> None:
        """Store what was measured, the error that ended it, and its command, unless the folder was discarded."""
        with suppress(NatgaugeError):
            if self.folder.is_dir():
                self._write(FAILURE, {"schema": FAILURE_SCHEMA, **self._measured, "error": error, "command": command})

    def discard_unused(self) -> None:
        """Discard the folder if it contains no trial and no round."""
        if self.trials == self.rounds == 0:
            self.discard()

    def discard(self) -> None:
        """Remove the folder, and the folders above it that were made for it, unless these contain something else."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):
            for path in self._made:
                path.rmdir()

    def _write(self, name: str, document: Mapping[str, object]) -> None:
        write_document(self.folder / name, document)

    def _append(self, name: str, *documents: Mapping[str, object]) -> None:
        path = self.folder / name
        lines = (json.dumps(plain(each), allow_nan=False, separators=(",", ":")) + "\n" for each in documents)
        try:
            with path.open("a") as file:
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise _unwritable(path, error) from error


def write_document(path: Path, document: Mapping[str, object]) -> None:
    """Write one of a folder's `.json` files, whole or not at all."""
    write_text(path, json.dumps(plain(document), indent=2, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write one of a folder's files, whole or not at all."""
    try:
        file_access.replace(path, text)
    except OSError as error:
        raise _unwritable(path, error) from error


def refuse_name(folder: Path) -> None:
    """Refuse a folder whose name no record can contain, before anything is measured."""
    try:
        octets = str(folder).encode()
    except UnicodeEncodeError:
        octets = b"\0"
    if b"\0" in octets:
        raise UsageError(f"results: {str(folder)!r} is no name in UTF-8; name another folder")


def _unwritable(path: Path, error: OSError) -> NatgaugeError:
    return unwritable(path, error, what="results", remedy="see that its folder can be written")


def date_of(folder: Path) -> datetime | None:
    """Return the date in the name that `Store.create` gave a folder; None = it has another name."""
    try:
        return datetime.strptime("-".join(folder.name.split("-")[:4]), _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None


def moment_of(seconds: object) -> datetime | None:
    """Return the date of seconds since 1970, which a stranger may have written; None = no date has them."""
    if not isinstance(seconds, int | float) or not 0 <= seconds <= LAST_SECOND:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def _make_new(parent: Path, name: str) -> Path:
    """Two runs in one second get folders of their own."""
    for number in range(1, _MAXIMUM_NAMES):
        folder = parent / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise UsageError(f"results: {parent / name} and its {_MAXIMUM_NAMES} successors exist already")


def plain(value: Any) -> Any:
    """Dataclasses, enums, mappings, sequences and paths as types that JSON has."""
    return value if type(value) in _PLAIN else _plain(value)


def _plain(value: Any) -> Any:
    if (names := _fields_of(type(value))) is not None:
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Enum):
        return value.value
    # A look for what else is a mapping takes longer.
    if isinstance(value, (dict, Mapping)):
        return {str(plain(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inner) for inner in value]
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def _fields_of(kind: type) -> tuple[str, ...] | None:
    """Return the names of a dataclass's fields; None for another type."""
    if kind not in _FIELDS:
        is_dataclass = dataclasses.is_dataclass(kind)
        _FIELDS[kind] = tuple(field.name for field in dataclasses.fields(kind)) if is_dataclass else None
    return _FIELDS[kind]


def result_name(cell: str, measurement: str) -> str:
    """Return the name of the folder, among a campaign's results, of a measurement of a cell."""
    return f"{cell}-{measurement}"
