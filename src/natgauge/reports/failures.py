# SPDX-License-Identifier: Apache-2.0
"""Measurements without a result: what happened, and what to do."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from natgauge.errors import UsageError
from natgauge.figure_text import with_noun
from natgauge.foreign import is_there
from natgauge.plain_text import capital
from natgauge.records.campaign import Broken, CampaignCell, CampaignMeasurement, CampaignRecord
from natgauge.records.reading import read_document, read_lines, read_record
from natgauge.records.store import (
    CAMPAIGN,
    CAMPAIGN_RESULTS,
    FAILURE,
    FAILURE_SCHEMA,
    JOURNAL,
    JOURNAL_SCHEMA,
    MAKING,
    PLAN,
    PLAN_SCHEMA,
    SUMMARY,
    TRACEBACK,
    TRIAL_SCHEMA,
    TRIALS,
    result_name,
)
from natgauge.reports import explanation
from natgauge.reports.collected import StoredResults, Unmeasured
from natgauge.words import enumerated, few, listed

#: Makes the command that measures a stored result again of the command as a folder has it, the metric, the gateway, and
#: the parameters of the record by name, which the command must not contradict. Empty where it cannot be made of typed
#: inputs, for the folder may come from a stranger, and people copy this command into a root shell.
CommandAgain = Callable[[object, str, str, Mapping[str, object]], str]
#: Keys of a measurement in a plan that change no figure.
_OF_NO_FIGURE: Final = frozenset({"gateways", "points", "columns", "quantities", "repetitions"})
#: Why a measurement that did not break has no result.
_NOT_YET: Final = "it has not ended"
#: End of the names of options whose values natgauge runs in a shell.
_SHELL: Final = "-command"


def shell_options(command: str) -> list[str]:
    """Return the options of a command whose values natgauge runs in a shell."""
    return [word for word in shlex.split(command) if word.startswith("--") and word.endswith(_SHELL)]


@dataclass(frozen=True, slots=True)
class MeasurementFailure:
    """A measurement, or several of a campaign, without a result.

    Attributes:
        command: command that measures again; empty = not stored.
    """

    subject: str
    happened: tuple[str, ...]
    remedy: str
    command: str
    folder: Path
    explained: bool = False


def failures_of(collected: StoredResults, lacks: Sequence[Lack], again: CommandAgain) -> list[MeasurementFailure]:
    """Return the failures among stored measurements and campaigns, of which `lacks_of` says what they lack."""
    alone = [_of_folder(folder, again) for folder in collected.unended]
    others = {each.folder: each.elsewhere for each in lacks}
    return [*alone, *(one for folder in collected.campaigns for one in of_campaign(folder, others.get(folder, ())))]


def _of_folder(folder: Path, again: CommandAgain) -> MeasurementFailure:
    plan, failure, subject = _planned(folder)
    measured = {**failure, **plan}
    stored = plan.get("command") or failure.get("command")
    command = again(stored, str(measured.get("metric")), str(measured.get("gateway")), plan)
    error = str(failure.get("error") or "")
    happened = [f"{capital(error)}." if error else "The measurement did not end, and stored no error."]
    happened += _trials(folder)
    if (folder / TRACEBACK).is_file():
        return MeasurementFailure(subject, tuple(happened), f"Report {folder / TRACEBACK}.", command, folder)
    remedy = (
        "Fix what the message names, then measure again."
        if error
        else ("If natgauge is still measuring, wait; otherwise it was killed, or the machine stopped: measure again.")
    )
    explained: list[str] = []
    with suppress(UsageError):
        explained = explanation.cause(explanation.explain(folder))
    return MeasurementFailure(subject, (*happened, *explained), remedy, command, folder, bool(explained))


def _planned(folder: Path) -> tuple[Mapping[str, Any], Mapping[str, Any], str]:
    """Plan and failure of a folder, as far as it has them, and what was to be measured, in words."""
    plan = read_document(folder / PLAN, PLAN_SCHEMA) if is_there(folder / PLAN) else {}
    failure = read_document(folder / FAILURE, FAILURE_SCHEMA) if is_there(folder / FAILURE) else {}
    measured, gateways = {**failure, **plan}, plan.get("gateways")
    if isinstance(gateways, dict):
        names = [str(each) for each in gateways if each != plan.get("control")]
        return plan, failure, f"comparison of {listed(names)}"
    known = measured.keys() >= {"metric", "gateway"}
    return plan, failure, f"{measured['metric']} of {measured['gateway']}" if known else folder.name


def _trials(folder: Path) -> Iterator[str]:
    """Outcomes of the trials, and the reason of the last one that did not pass."""
    if not is_there(folder / TRIALS):
        return
    verdicts: Counter[str] = Counter()
    last = ""
    for trial in read_lines(folder / TRIALS, TRIAL_SCHEMA):
        verdicts[str(trial.get("verdict"))] += 1
        last = str(trial.get("reason") or last)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    yield f"Trials before that: {counts or 'none'}."
    if last:
        yield f"The last trial that did not pass: {last}."


@dataclass(frozen=True, slots=True)
class BrokenMeasurement:
    """A measurement of a campaign that broke before it had a result.

    Attributes:
        gateway: the device; of a device with several cells the name of the cell.
        where: the campaign's folder in words, where the report has the same metric of the device from elsewhere; it was
            measured under other conditions then, as far as is known.
    """

    gateway: str
    measurement: str
    cause: str
    where: str = ""


def broken_of(collected: StoredResults, lacks: Sequence[Lack]) -> list[BrokenMeasurement]:
    """Return the measurements of campaigns that broke before the report had a result, in the order of the plans."""
    found = []
    for one in lacks:
        others = [each for each in collected.stored if not each.folder.is_relative_to(one.folder)]
        metrics = {(each.recipe_name or each.result.gateway, each.result.metric) for each in others}
        for cell, measurement in one.places:
            name = measurement.name
            if (cause := one.causes.get(_name_of(cell, measurement))) is not None:
                gateway = _called_in(one.record, cell)
                is_elsewhere = any((cell.device, metric) in metrics for metric in _metrics_of(one.record, name))
                found.append(BrokenMeasurement(gateway, name, cause, f" in {one.folder}" * is_elsewhere))
    return found


def missing_of(collected: StoredResults, lacks: Sequence[Lack]) -> Iterator[Unmeasured]:
    """Yield each measurement that a campaign of the report has no result of, then those that did not end."""
    for one in lacks:
        for cell, measurement in one.places:
            reason = one.causes.get(_name_of(cell, measurement), _NOT_YET)
            yield Unmeasured(cell.device, measurement.name, f"{cell.name}: {reason}", one.folder)
    for folder in collected.unended:
        measured: Mapping[str, Any] = {}
        # What cannot be read has its folder.
        with suppress(UsageError):
            plan, failure, _ = _planned(folder)
            measured = {**failure, **plan}
        gateway = str(measured.get("gateway") or "")
        yield Unmeasured(
            gateway, str(measured.get("metric") or _called(folder)), str(measured.get("error") or _NOT_YET), folder
        )


def without_result(collected: StoredResults, lacks: Sequence[Lack], *, for_paper: bool = False) -> Iterator[str]:
    """Yield sentences on what has no result: what broke or has not ended of campaigns, and single measurements.

    `for_paper`: whether readers have no results folder, and are not told where the reasons are.
    """
    by_gateway: dict[tuple[str, str], list[str]] = {}
    for one in broken_of(collected, lacks):
        by_gateway.setdefault((one.gateway, one.where), []).append(one.measurement)
    if by_gateway:
        names = [f"{enumerated(own)} of {gateway}{where}" for (gateway, where), own in by_gateway.items()]
        yield f"No result: {', '.join(few(names))}{'' if for_paper else ' (reasons: natgauge status)'}."
    yield from without_result_yet(lacks)
    if collected.unended:
        yield f"No result, because it did not end: {', '.join(few(list(map(_called, collected.unended))))}."


def without_result_yet(lacks: Sequence[Lack]) -> Iterator[str]:
    """Yield a sentence for each campaign that has measurements without a result that did not break."""
    for one in lacks:
        if left := [place for place in one.places if _name_of(*place) not in one.causes]:
            names = [f"{measurement.name} of {_called_in(one.record, cell)}" for cell, measurement in left]
            of = f"{len(left)} of {with_noun(len(_places(one.record)), 'measurements')} of campaign {one.record.name}"
            yield f"No result yet: {of} ({listed(names)})."


class Lack(NamedTuple):
    """What a campaign has no result of.

    Attributes:
        places: measurements of which no other campaign of the report has a result either; `elsewhere` are the others.
    """

    folder: Path
    record: CampaignRecord
    places: list[tuple[CampaignCell, CampaignMeasurement]]
    elsewhere: _Names
    causes: Mapping[tuple[str, str], str]


def lacks_of(collected: StoredResults) -> list[Lack]:
    """Return what each campaign of a report lacks; it reads the campaigns."""
    every = []
    for folder in collected.campaigns:
        # What cannot be read is said by `not_ended`.
        with suppress(UsageError):
            record = read_record(folder / CAMPAIGN, CampaignRecord)
            causes = {name: cause for cause, own in _missing(folder, record)[1].items() for name in own}
            every.append((folder, record, causes))
    found = {
        _conditions(record, *place)
        for folder, record, _ in every
        for place in _places(record)
        if _has_result(folder, _name_of(*place))
    }
    lacks = []
    for folder, record, causes in every:
        lack = Lack(folder, record, [], set(), causes)
        for place in _places(record):
            if _conditions(record, *place) not in found:
                lack.places.append(place)
            elif not _has_result(folder, _name_of(*place)):
                lack.elsewhere.add(_name_of(*place))
        lacks.append(lack)
    return lacks


def _called_in(record: CampaignRecord, cell: CampaignCell) -> str:
    """The device of a cell; of a device with several cells the name of the cell."""
    return cell.name if sum(other.device == cell.device for other in record.cells) > 1 else cell.device


def _name_of(cell: CampaignCell, measurement: CampaignMeasurement) -> tuple[str, str]:
    return cell.name, measurement.name


def _conditions(record: CampaignRecord, cell: CampaignCell, measurement: CampaignMeasurement) -> str:
    """What a plan says of a measurement, with its recipe; measurements of which it is the same are the same."""
    plan, metrics = record.plan, _metrics_of(record, measurement.name)
    settings = [
        {name: value for name, value in entry.items() if name not in _OF_NO_FIGURE}
        for entry in _entries(record)
        if entry.get("metric") in metrics
    ]
    chosen = [plan.get(name) for name in ("profile", "lab", "traffic", "device")]
    of_device = [cell.device, record.recipes.get(cell.device), cell.values, measurement.name, measurement.file_sha256]
    return json.dumps([of_device, chosen, settings], sort_keys=True)


def _entries(record: CampaignRecord) -> list[dict[str, Any]]:
    measure = record.plan.get("measure")
    return [entry for entry in measure if isinstance(entry, dict)] if isinstance(measure, list) else []


def _metrics_of(record: CampaignRecord, measurement: str) -> set[str]:
    """Metrics of the plan that a measurement may be of: its name begins with the metric's."""
    metrics = {str(entry.get("metric")) for entry in _entries(record)}
    return {metric for metric in metrics if f"{measurement}-".startswith(f"{metric}-")}


def _called(folder: Path) -> str:
    """What was to be measured; the name of the folder where its plan cannot be read, which keeps no result away."""
    try:
        return _planned(folder)[-1]
    except UsageError:
        return folder.name


def not_ended(folder: Path, *, runs: bool = False) -> str:
    """Return how many measurements of a campaign have not ended, and how many broke, and how to go on if none `runs`.

    Empty where all have their repetitions, or the record of the campaign cannot be read.
    """
    try:
        record = read_record(folder / CAMPAIGN, CampaignRecord)
    except UsageError:
        # Results may be copied without what says how many belong to them.
        return ""
    try:
        missing, causes = _missing(folder, record)
    except UsageError as error:
        return f"what has not ended or broke is not known: {error}"
    if not missing:
        return ""
    broken, every = sum(map(len, causes.values())), len(_places(record))
    left, command = len(missing) - broken, _resuming(folder, broken=bool(broken))
    parts = [f"{left} of {with_noun(every, 'measurements have', 'measurement has')} not ended"] if left else []
    parts += [f"{broken} of {with_noun(every, 'measurements')} broke"] if broken else []
    how = f"mend what natgauge status names, then {command}" if broken else f"continue by {command}"
    return f"{', '.join(parts)}; {'it is running' if runs else how}"


def _resuming(folder: Path, *, broken: bool) -> str:
    return f"natgauge run PLAN --out {shlex.quote(str(folder))} --resume{' --retry-broken' if broken else ''}"


def _places(record: CampaignRecord) -> list[tuple[CampaignCell, CampaignMeasurement]]:
    return [(cell, measurement) for cell in record.cells for measurement in cell.measurements]


def _has_ended(folder: Path, own: tuple[str, str]) -> bool:
    return (folder / CAMPAIGN_RESULTS / result_name(*own) / SUMMARY).is_file()


def _has_result(folder: Path, own: tuple[str, str]) -> bool:
    """Whether a campaign has a result of a measurement, also of some of its repetitions so far."""
    return _has_ended(folder, own) or (folder / CAMPAIGN_RESULTS / f"{MAKING}{result_name(*own)}" / SUMMARY).is_file()


#: Cells and measurements.
_Names = set[tuple[str, str]]


def _missing(folder: Path, record: CampaignRecord) -> tuple[_Names, dict[str, list[tuple[str, str]]]]:
    """Cells and measurements of a campaign without all their repetitions; those of them that broke, by the cause."""
    broken, lacking = _journaled(folder)
    missing: _Names = set()
    causes: dict[str, list[tuple[str, str]]] = {}
    for cell, measurement in _places(record):
        own = _name_of(cell, measurement)
        if own in lacking or not _has_ended(folder, own):
            missing.add(own)
            if cause := broken.cause(cell.name, cell.device, measurement.name):
                causes.setdefault(cause, []).append(own)
    return missing, causes


def _journaled(folder: Path) -> tuple[Broken, _Names]:
    """Return what broke by a journal and was not tried again, and results that lack repetitions."""
    broken, lacking = Broken(), set[tuple[str, str]]()
    if is_there(folder / JOURNAL):
        for line in read_lines(folder / JOURNAL, JOURNAL_SCHEMA):
            broken.take(line)
            if line.get("event") == "result":
                # Whatever broke after some repetitions has a result of these, with the cause.
                own = (str(line.get("cell")), str(line.get("measurement")))
                (lacking.add if line.get("cause") else lacking.discard)(own)
    return broken, lacking


def of_campaign(folder: Path, elsewhere: Collection[tuple[str, str]] = ()) -> Iterator[MeasurementFailure]:
    """Broken measurements by their cause, without those with a result `elsewhere`, and what has not been measured."""
    record = read_record(folder / CAMPAIGN, CampaignRecord)
    missing, causes = _missing(folder, record)
    for cause, own in causes.items():
        names = [f"{one} of {cell}" for cell, one in own if (cell, one) not in elsewhere]
        if not names:
            continue
        subject = names[0] if len(names) == 1 else f"{len(names)} measurements, from {names[0]} to {names[-1]}"
        remedy = "Fix what the message names, then repeat the broken measurements."
        yield MeasurementFailure(subject, (f"{capital(cause)}.",), remedy, _resuming(folder, broken=True), folder)
    if left := len(missing) - sum(map(len, causes.values())):
        happened = f"{left} of {with_noun(len(_places(record)), 'measurements have', 'measurement has')} not ended."
        remedy = "If the campaign is running, wait; otherwise continue it."
        command = _resuming(folder, broken=False)
        yield MeasurementFailure(f"campaign {record.name}", (happened,), remedy, command, folder)
