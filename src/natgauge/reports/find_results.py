# SPDX-License-Identifier: Apache-2.0
"""Stored results found again: of one results folder, or of a folder that holds several, such as a campaign's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from natgauge.errors import UsageError
from natgauge.records.comparison import ComparisonRecord
from natgauge.records.measurement import Result
from natgauge.records.store import (
    CAMPAIGN,
    CAMPAIGN_RESULTS,
    COMPARISON,
    PLAN,
    SUMMARY,
    TRIAL_SCHEMA,
    TRIALS,
    read_lines,
    read_record,
    result_name,
)

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Stored:
    """One result and the folder that has its evidence, as it is called now."""

    folder: Path
    result: Result


@dataclass(frozen=True, slots=True)
class StoredComparison:
    """The record of a comparison and the folder that has its evidence, as it is called now."""

    folder: Path
    record: ComparisonRecord


@dataclass(frozen=True, slots=True)
class Found:
    """What folders hold.

    Attributes:
        stored: every result of a measurement, in the order of the folders; within a folder of results by name, within a
            campaign as its plan has them.
        unended: results folders of measurements and comparisons that did not end: they have evidence, but no result.
        comparisons: every comparison, in the same order. There is at least one result or comparison.
    """

    stored: tuple[Stored, ...]
    unended: tuple[Path, ...]
    comparisons: tuple[StoredComparison, ...] = ()

    @property
    def results(self) -> list[Result]:
        """The results of measurements alone."""
        return [one.result for one in self.stored]

    @property
    def records(self) -> list[ComparisonRecord]:
        """The records of comparisons alone."""
        return [comparison.record for comparison in self.comparisons]


def find(folders: Sequence[Path]) -> Found:
    """Every result and comparison of these folders: results folders, folders of them, or campaigns (with `results/`).

    Raises:
        UsageError: a folder holds no result, cannot be read, or a summary is damaged or of another schema.
    """
    every: list[Stored | StoredComparison] = []
    unended: list[Path] = []
    for folder in folders:
        below = list(_below(folder))
        ended = [each for each in below if (each / SUMMARY).is_file() or (each / COMPARISON).is_file()]
        if below and not ended:
            raise UsageError(
                f"report: {folder} holds no result: none of its {len(below)} measurements has ended; wait for one, or "
                "name another folder"
            )
        every += [_read(each) for each in ended or [folder]]
        unended += [each for each in below if each not in ended]
    return Found(
        tuple(one for one in every if isinstance(one, Stored)),
        tuple(unended),
        tuple(one for one in every if isinstance(one, StoredComparison)),
    )


def _read(folder: Path) -> Stored | StoredComparison:
    path = folder / COMPARISON
    try:
        compared = path.is_file()
    except OSError as error:
        raise _unreadable(folder, error) from error
    if not compared:
        return Stored(folder, read_summary(folder))
    return StoredComparison(folder, read_record(path, ComparisonRecord))


def read_summary(folder: Path) -> Result:
    """The result of one results folder.

    Raises:
        UsageError: it is none, its measurement did not end, or its summary is damaged or of another schema.
    """
    path = folder / SUMMARY
    try:
        there = path.is_file()
    except OSError as error:
        raise _unreadable(folder, error) from error
    if not there:
        raise UsageError(f"report: {folder} holds no result: {_missing(folder)}; name the folder of a measurement")
    return read_record(path, Result)


def each_trial(one: Stored, read: Callable[[Mapping[str, Any]], _Kind]) -> Iterator[_Kind]:
    """What `read` makes of each trial of a results folder, in the order they were made.

    Raises:
        UsageError: there are no trials, or one is not as natgauge writes them; the line is named.
    """
    path = one.folder / TRIALS
    for line, trial in enumerate(read_lines(path, TRIAL_SCHEMA), start=1):
        try:
            found = read(trial)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise UsageError(
                f"results: {path}:{line} is no trial as natgauge writes them ({type(error).__name__}: {error}): it is "
                "damaged; leave the folder out, or measure again"
            ) from error
        yield found


def _below(folder: Path) -> Iterator[Path]:
    """Results folders below a folder that is none itself: beside each other, or in the `results/` of campaigns."""
    try:
        if _is_results_folder(folder) or not folder.is_dir():
            return
        for child in [folder] if (folder / CAMPAIGN_RESULTS).is_dir() else sorted(folder.iterdir()):
            if _is_results_folder(child):
                yield child
            elif (child / CAMPAIGN_RESULTS).is_dir():
                yield from filter(_is_results_folder, _as_planned(child))
    except OSError as error:
        raise _unreadable(folder, error) from error


def _as_planned(campaign: Path) -> list[Path]:
    """What is among its results: cell by cell as in the plan, and last, by name, what that does not have."""
    place: dict[str, int] = {}
    # Whoever copies results may have left the plan behind.
    with suppress(OSError, ValueError, LookupError, TypeError):
        cells = json.loads((campaign / CAMPAIGN).read_text())["cells"]
        names = [result_name(cell["name"], one["name"]) for cell in cells for one in cell["measurements"]]
        place = {name: number for number, name in enumerate(names)}
    return sorted((campaign / CAMPAIGN_RESULTS).iterdir(), key=lambda one: (place.get(one.name, len(place)), one.name))


def _is_results_folder(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (SUMMARY, COMPARISON, PLAN))


def _unreadable(folder: Path, error: OSError) -> UsageError:
    return UsageError(f"report: {str(folder)!r} cannot be read ({error.strerror}); name the folder of a measurement")


def _missing(folder: Path) -> str:
    if not folder.is_dir():
        return "it is no folder" if folder.exists() else "there is no such folder"
    if (folder / PLAN).exists():
        return f"it has no {SUMMARY}, for its measurement did not end"
    return f"it has no {SUMMARY}"
