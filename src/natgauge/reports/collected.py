# SPDX-License-Identifier: Apache-2.0
"""What views show: results, comparisons and audits, each with the folder of its evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from natgauge.errors import UsageError
from natgauge.figure_text import with_noun
from natgauge.file_access import is_there
from natgauge.records.audit import AuditRecord
from natgauge.records.comparison import ComparisonRecord
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters
from natgauge.records.record import read_document, read_lines
from natgauge.records.store import ENVIRONMENT, ENVIRONMENT_SCHEMA, TRIAL_SCHEMA, TRIALS
from natgauge.records.trial import checked
from natgauge.words import few

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Stored:
    """A result and the present path of the folder with its evidence.

    Attributes:
        recipe_name: name of the recipe, where the result's gateway has a longer one beside other versions of it; empty
            = the same.
    """

    folder: Path
    result: Result
    recipe_name: str = ""


@dataclass(frozen=True, slots=True)
class StoredComparison:
    """The record of a comparison and the present path of the folder with its evidence."""

    folder: Path
    record: ComparisonRecord


@dataclass(frozen=True, slots=True)
class StoredAudit:
    """The record of an audit and the present path of the folder with its evidence."""

    folder: Path
    record: AuditRecord

    @property
    def parameters(self) -> Parameters:
        """The machine and the version of natgauge, as a measurement has them; none without an environment."""
        machine = facts_of(self.folder, "machine")
        cpu = machine.get("cpu")
        facts = {name: machine.get(name) for name in ("natgauge", "kernel")}
        facts["cpu"] = cpu.get("model") if isinstance(cpu, dict) else None
        return Parameters(place={name: fact for name, fact in facts.items() if isinstance(fact, str)})


@dataclass(frozen=True, slots=True)
class StoredResults:
    """The results, comparisons and audits of folders.

    Attributes:
        stored: every result of a measurement, in the order of the folders; within a folder of results by name, within a
            campaign in the order of its plan.
        unended: results folders of measurements and comparisons that did not end: they have evidence, but no result.
        comparisons: every comparison, in the same order.
        audits: every audit, in the same order.
        copies: folders that were left out because they are copies, each with the folder of the measurement.
    """

    stored: tuple[Stored, ...]
    unended: tuple[Path, ...]
    comparisons: tuple[StoredComparison, ...] = ()
    campaigns: tuple[Path, ...] = ()
    audits: tuple[StoredAudit, ...] = ()
    copies: Mapping[Path, Path] = field(default_factory=dict)

    @property
    def results(self) -> list[Result]:
        """The results of measurements alone."""
        return [stored.result for stored in self.stored]

    @property
    def records(self) -> list[ComparisonRecord]:
        """The records of comparisons alone."""
        return [comparison.record for comparison in self.comparisons]

    @property
    def parameters(self) -> list[Parameters]:
        """The parameters of the results, of the baselines of comparisons, and of audits whose machine is known."""
        of_results = [result.parameters for result in self.results]
        of_audits = [known for audit in self.audits if (known := audit.parameters).place]
        return of_results + [record.baseline.parameters for record in self.records] + of_audits

    @property
    def without_copies(self) -> str:
        """A sentence on the copies that were left out; empty where there is none."""
        names = few([f"{copy} of {own}" for copy, own in self.copies.items()])
        return f"{with_noun(len(self.copies), 'copies')} of results counted once: {', '.join(names)}" if names else ""

    @property
    def every(self) -> list[Result | ComparisonRecord | AuditRecord]:
        """The records of all kinds."""
        return [*self.results, *self.records, *(audit.record for audit in self.audits)]


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A measurement without a result, and why.

    Of a campaign the reason is behind the name of the cell, and the folder is the campaign's.

    Attributes:
        gateway: the device; empty = not known.
    """

    gateway: str
    measurement: str
    reason: str
    folder: Path


def facts_of(folder: Path, what: str) -> Mapping[str, Any]:
    """Return the stored facts of the "machine" or the "device"; none where the folder has no environment."""
    path = folder / ENVIRONMENT
    own = (read_document(path, ENVIRONMENT_SCHEMA).get(what) or {}) if is_there(path) else {}
    if not isinstance(own, dict):
        raise UsageError(
            f"results: {path}: {what}: is no table of facts: it is damaged; leave the folder out, or measure again"
        )
    return own


def each_trial(stored: Stored, read: Callable[[Mapping[str, Any]], _Kind]) -> Iterator[_Kind]:
    """Yield the values that `read` returns for each trial of a results folder, in the order of the trials."""
    path = stored.folder / TRIALS
    for line, trial in enumerate(read_lines(path, TRIAL_SCHEMA), start=1):
        try:
            value = read(checked(trial, f"{path}:{line}"))
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise UsageError(
                f"results: {path}:{line} is no trial as natgauge writes them ({type(error).__name__}: {error}): it is "
                "damaged; leave the folder out, or measure again"
            ) from error
        yield value
