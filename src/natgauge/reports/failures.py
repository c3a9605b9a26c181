# SPDX-License-Identifier: Apache-2.0
"""What happened, and what to do: one trial, hop by hop with the counters of its lost frames; and what has no result."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from natgauge.causes.cause import Cause, CounterFacts, FullTable
from natgauge.causes.hops import LATE, HopLoss, TableState, TrialHops, cause_of, hops_of
from natgauge.errors import UsageError
from natgauge.figure_text import at_most, with_noun
from natgauge.figure_text import number as written
from natgauge.file_access import is_there
from natgauge.late_delays import LateDelays
from natgauge.other_traffic import NO_OTHER_TRAFFIC, OtherTraffic
from natgauge.plain_text import capital
from natgauge.records.campaign import Broken, CampaignCell, CampaignMeasurement, CampaignRecord
from natgauge.records.comparison import ComparisonRecord
from natgauge.records.measurement import Result
from natgauge.records.record import read_document, read_lines, read_record
from natgauge.records.store import (
    CAMPAIGN,
    CAMPAIGN_RESULTS,
    COMPARISON,
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
    plain,
    result_name,
)
from natgauge.records.trial import cause_in, checked
from natgauge.reports import comparison
from natgauge.reports.answers import answers
from natgauge.reports.collected import StoredResults, Unmeasured
from natgauge.reports.graded_doubts import graded
from natgauge.reports.labels import grouped
from natgauge.tables import aligned
from natgauge.words import SENDING, Verdict, enumerated, few, listed

EXPLANATION_SCHEMA: Final = "natgauge-explanation-1"
#: Where measurements are in a folder of several, and in that of a campaign.
_WITHIN: Final = ("*", f"{CAMPAIGN_RESULTS}/*")
#: Said of lost frames that no counter has.
_NO_COUNTER: Final = (
    "no counter: no counter that natgauge reads has these frames, so what lost them is not known. Rules of a netdev "
    "hook and XDP programs drop frames without a counter, and so may a process that takes them from the kernel."
)
#: Said of a trial whose record has no counters of the devices' kernels.
_NOT_READ: Final = (
    "The record has no counters of the gateway's kernel (an earlier natgauge, no Linux, or no access to it): the hops "
    "softnet to rules are not known."
)
#: What a trial alone shows, and what all trials of a measurement may add.
_REFINED: Final = frozenset({("rule", "rate limit"), ("host limit", "rate limit"), ("not known", "table")})


@dataclass(frozen=True, slots=True)
class TrialExplanation:
    """A trial and its hops.

    Attributes:
        failure: error that ended the measurement; empty = none did.
        cause: why its frames were lost, came back wrong or left late; None = none was, or natgauge cannot say.
    """

    folder: Path
    trial: Mapping[str, Any]
    hops: TrialHops
    load: str
    failure: str = ""
    other_traffic: OtherTraffic = NO_OTHER_TRAFFIC
    cause: Cause | None = None


def answered(folder: Path) -> list[str]:
    """Return the sentences that the result of a folder gives: its value, its range, what limited it, and grave doubts.

    Empty where the measurement or comparison has not ended.
    """
    if is_there(folder / SUMMARY):
        result = read_record(folder / SUMMARY, Result)
        grave = [doubt for doubt in result.doubts if doubt.grade == "answer"]
        return [*(sentence.text for sentence in answers([result])), *graded([(result.metric, grave)], lambda _: "")]
    if is_there(folder / COMPARISON):
        return [sentence.text for sentence in comparison.sentences(read_record(folder / COMPARISON, ComparisonRecord))]
    return []


def has_trials(folder: Path) -> bool:
    """Whether a folder has trials; costs are measured by rounds of slices, which lose no frame."""
    return is_there(folder / TRIALS)


def explain(folder: Path, number: int | None = None) -> TrialExplanation:
    """Explain one trial of a results folder.

    Args:
        folder: folder of one measurement, or of a comparison by rates; the measurement may have failed.
        number: number of the trial, from 1; None = the last one that failed, or the last one if none did.
    """
    known = is_there(folder / FAILURE)
    failure = str(read_document(folder / FAILURE, FAILURE_SCHEMA).get("error") or "") if known else ""
    if not has_trials(folder):
        there = "" if folder.is_dir() else "it is no folder; " if folder.exists() else "there is no such folder; "
        within = sorted(path.parent for pattern in _WITHIN for path in folder.glob(f"{pattern}/{TRIALS}"))
        such = f", such as {within[0]}" if within else ""
        name = f"{there}name the results folder of one measurement{such}"
        why = f"no frame was sent ({failure}); measure again" if failure else name
        raise UsageError(f"explain: {folder} holds no {TRIALS}; {why}")
    whole = _of_measurement(folder)
    chosen = _chosen(folder, number, whole)
    if not chosen.get("result"):
        raise UsageError(f"explain: trial {chosen.get('trial')} of {folder} did not run: {chosen.get('reason')}")
    try:
        verdict = Verdict(chosen["verdict"])
        trial = {**chosen, "trial": int(chosen["trial"]), "verdict": verdict.value}
        hops, load = hops_of(trial), _load(trial["plan"])
        others, cause = _others(trial["result"]), _cause_of(trial, hops, whole)
        return TrialExplanation(folder, trial, hops, load, failure, others, cause)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise UsageError(
            f"explain: trial {chosen.get('trial')} of {folder} is no trial as natgauge writes them "
            f"({type(error).__name__}: {error}): it is damaged; choose another one, or measure again"
        ) from error


def _chosen(folder: Path, number: int | None, whole: Cause | None) -> Mapping[str, Any]:
    """Return one trial of a folder, see `explain`; no more than three are in memory.

    Without a number, the last trial that failed for the cause of the measurement goes first.
    """
    count, last, failed, deciding = 0, None, None, None
    for line, read in enumerate(read_lines(folder / TRIALS, TRIAL_SCHEMA), start=1):
        trial = checked(read, f"{folder / TRIALS}:{line}")
        count, last = count + 1, trial
        if number is not None and trial.get("trial") == number:
            return trial
        if trial.get("verdict") in (Verdict.FAIL, Verdict.COLLAPSED):
            failed = trial
            cause = trial.get("cause")
            if whole is not None and cause and refined(cause_in(cause), whole).kind == whole.kind:
                deciding = trial
    if last is None:
        raise UsageError(f"explain: {folder} holds no trial: its measurement ended before the first; measure again")
    if number is not None:
        raise UsageError(f"explain: trial {number}: {folder} holds the trials 1 to {count}; choose one of them")
    return deciding or failed or last


def _of_measurement(folder: Path) -> Cause | None:
    """Return the cause of the whole measurement, if it has ended with one."""
    with suppress(UsageError):
        return read_record(folder / SUMMARY, Result).cause if is_there(folder / SUMMARY) else None
    return None


def refined(cause: Cause, whole: Cause | None) -> Cause:
    """Return the cause of a trial, as all trials of its measurement together show it.

    Where `whole`, that of the measurement, is None, it is not known.
    """
    if whole is not None and (cause.kind, whole.kind) in _REFINED:
        return replace(cause, kind=whole.kind, certainty=whole.certainty, hop=whole.hop, remedy=whole.remedy)
    return cause


def _cause_of(trial: Mapping[str, Any], hops: TrialHops, whole: Cause | None) -> Cause | None:
    """Return the cause in a trial's record; of an earlier natgauge, and of other verdicts, that of its hops."""
    if trial.get("cause"):
        return refined(cause_in(trial["cause"]), whole)
    if not hops.lost:
        return None
    opens = trial.get("failed_phase") == 1 or not trial["result"].get("phase2")
    return cause_of(hops, TableState(trial.get("device_count_after")), opens=opens)


def text_of_explanation(explanation: TrialExplanation) -> str:
    """Return the answer, a table of the hops, and the meaning and knob of each counter that rose."""
    hops, trial = explanation.hops, explanation.trial
    rows = [("hop", "device", "frames lost", "counter", "count")]
    for hop in hops.hops:
        first: tuple[str, str, str] = (hop.hop, hop.device, f"{hops.lost_at(hop):,}")
        for each in hop.counters:
            rows.append((*first, f"{each.place} {each.name}{_figures(each.name, hops)}".strip(), f"{each.count:,}"))
            first = ("", "", "")
        rows += [] if hop.counters else [(*first, "", "")]
    if hops.without_counter:
        rows.append(("no counter", "", f"{hops.without_counter:,}", "", ""))
    named = {each.name: each.facts for hop in hops.hops for each in hop.counters}
    lines = [
        _answer(explanation),
        *_cause_line(explanation.cause),
        *_of_table(explanation),
        f"Verdict: {trial['verdict']}{'; ' if trial.get('reason') else ''}{trial.get('reason') or ''}.",
        *_behind(explanation),
        *_foreign(explanation.other_traffic),
        *([f"The measurement failed: {explanation.failure}"] if explanation.failure else []),
        *([] if hops.has_kernel_counters else [_NOT_READ]),
        "",
        *aligned(rows, right=(2, 4)),
        *([""] if named or hops.without_counter else []),
        *(_fact(name, facts, hops) for name, facts in named.items()),
        *([_NO_COUNTER] if hops.without_counter else []),
    ]
    return "\n".join(lines)


def cause(explanation: TrialExplanation) -> list[str]:
    """Return where the frames of a trial were lost, and for each counter of that hop its meaning and its knob."""
    losing = explanation.hops.losing
    counters = losing.counters if losing else ()
    lines = [_fact(each.name, each.facts, explanation.hops) for each in counters if each.lost]
    return [_answer(explanation), *_cause_line(explanation.cause), *dict.fromkeys(lines)]


def _fact(name: str, facts: CounterFacts, hops: TrialHops) -> str:
    """Return what a counter means, what was seen of it, what else raises it, and what changes it."""
    also = f" It may also be {facts.also}." if facts.also else ""
    seen = f" {capital(str(delays))}." if (delays := _delays(name, hops)) else ""
    return f"{name}: {facts.meaning}.{seen}{also} To change it: {facts.knob}."


def _figures(name: str, hops: TrialHops) -> str:
    """Return the figures of a counter beyond its count, for the table."""
    if (delays := _delays(name, hops)) is None:
        return ""
    limit = "no limit" if delays.limit is None else f"limit {delays.limit_ms} ms"
    return f" (mean {written(1e3 * delays.mean)} ms, largest {at_most(1e3 * delays.largest)} ms, {limit})"


def _delays(name: str, hops: TrialHops) -> LateDelays | None:
    """Return the delays of the frames of a counter, if it counts late ones."""
    return hops.late_delays if name == LATE else None


def _cause_line(cause: Cause | None) -> list[str]:
    """Return the cause in a sentence; a guess says so."""
    if cause is None:
        return []
    if cause.kind == "not known":
        room = (
            f"; the table held {cause.held:,} of at most {cause.limit:,} connections"
            if TableState(cause.held, cause.limit).has_room
            else ""
        )
        return [f"Cause: not known{room}."]
    guess = " That is a guess: no counter says so." if cause.is_doubtful and not cause.counter else ""
    return [f"Cause: {cause.words}.{guess}"]


def _of_table(explanation: TrialExplanation) -> list[str]:
    """Return what a full table did with the connections of phase 1, if that failed."""
    cause, trial = explanation.cause, explanation.trial
    held = trial.get("device_count_after")
    if cause is None or cause.kind != "table" or trial.get("failed_phase") != 1 or held is None:
        return []
    opened = trial["result"]["phase1"]
    table = FullTable(opened["offered_frames"], opened["received_frames"], held, trial.get("device_faults") or {})
    return [f"{capital(str(table))}."]


def _answer(explanation: TrialExplanation) -> str:
    hops, trial = explanation.hops, explanation.trial
    gateway = f" of {trial['gateway']}" if trial.get("gateway") else ""
    head = f"Trial {trial['trial']}{gateway} ({explanation.load}):"
    if not hops.lost:
        return f"{head} none of {with_noun(f'{hops.sent:,}', 'frames')} was lost."
    head = f"{head} {hops.lost:,} of {hops.sent:,} frames were lost"
    losing = hops.losing
    if losing is None:
        return f"{head}, {'all' if hops.without_counter == hops.lost else 'most'} of them in no counter."
    where = f" of {losing.device}" if losing.device else ""
    counter = max(losing.counters, key=lambda each: each.lost)
    events = f", {with_noun(f'{losing.lost:,}', 'times')}" if losing.lost > hops.lost else ""
    return f"{head}, {hops.lost_at(losing):,} of them at the hop {losing.hop}{where} ({counter.name}{events})."


def _load(plan: Mapping[str, Any]) -> str:
    """Describe what a trial sent, so that it can be found among those of several metrics and repetitions."""
    phase2, opened = plan.get("phase2"), with_noun(f"{plan['connections']:,}", "connections")
    if phase2 is None:
        return f"{opened} at {written(plan['phase1_rate'])}/s"
    up, down = phase2["initiator_rate"], phase2["responder_rate"]
    rates = f"{written(up)} frames/s {SENDING['both']}"
    if up != down:
        rates = f"{written(up)} frames/s {SENDING['up']} and {written(down)} {SENDING['down']}"
    return f"{rates} for {phase2['seconds']:g} s, {opened}"


def _others(result: Mapping[str, Any]) -> OtherTraffic:
    """Return the foreign frames of a trial, next to those that the tester sent, as `Trial.other_traffic` has them."""
    streams = [each for each in (result.get("phase1"), *(result.get("phase2") or {}).values()) if each]
    reactions = sum(each["received"] for stream in streams for each in (stream.get("messages") or [])[:-1])
    offered = reactions + sum(int(stream.get("offered_frames") or 0) for stream in streams)
    foreign = sum(int(port.get("foreign") or 0) for port in (result.get("ports") or {}).values())
    return OtherTraffic(foreign, offered, int(result.get("wall_ns") or 0) / 1e9)


def _foreign(others: OtherTraffic) -> list[str]:
    """Say how many frames were not the trial's, if they can change its outcome."""
    if not others.is_doubted:
        return []
    text = (
        f"Frames that were not the trial's also arrived at the tester's ports: {others.foreign:,}, while "
        f"{others.offered:,} were offered. To change it: remove their source, or look whether the gateway sends them."
    )
    return [text]


def _behind(explanation: TrialExplanation) -> list[str]:
    """Say of a trial that failed without a lost frame how much later than planned its frames left."""
    trial = explanation.trial
    phases = trial["result"].get("phase1"), *(trial["result"].get("phase2") or {}).values()
    lag = max((stream.get("settled_lag_ns") or 0 for stream in phases if stream), default=0)
    if explanation.hops.lost or trial["verdict"] != Verdict.FAIL or trial.get("limited_by") != "device" or not lag:
        return []
    why = "; in placement shared the device's work delays its sender" if trial.get("placement") == "shared" else ""
    return [
        f"Frames left up to {written(lag / 1e6)} ms later than their rate requires{why}. To change it: a lower rate."
    ]


def document_of_explanation(explanation: TrialExplanation) -> dict[str, Any]:
    """Return plain JSON values."""
    hops, trial = explanation.hops, explanation.trial
    return {
        "schema": EXPLANATION_SCHEMA,
        "results": str(explanation.folder),
        **{name: trial.get(name) for name in ("trial", "gateway", "verdict", "reason")},
        "load": explanation.load,
        "failure": explanation.failure or None,
        **{name: getattr(hops, name) for name in ("sent", "lost", "without_counter", "has_kernel_counters")},
        "foreign_frames": explanation.other_traffic.foreign,
        "cause": plain(explanation.cause),
        "late_delays": plain(hops.late_delays),
        "losing": None if hops.losing is None else _fields(hops.losing, hops),
        "hops": [_fields(hop, hops) for hop in hops.hops],
    }


def _fields(hop: HopLoss, hops: TrialHops) -> dict[str, Any]:
    counters = [
        {**plain(each), "lost": each.lost, **{name: getattr(each.facts, name) for name in ("meaning", "also", "knob")}}
        for each in hop.counters
    ]
    return {"hop": hop.hop, "device": hop.device, "lost": hops.lost_at(hop), "counters": counters}


#: Makes the command that measures a stored result again of the command as a folder has it, the metric, the gateway, and
#: the parameters of the record by name, which the command must not contradict. Empty where it cannot be made of typed
#: inputs, for the folder may come from a stranger, and people copy this command into a root shell.
CommandAgain = Callable[[object, str, str, Mapping[str, object]], str]
#: Keys of a measurement in a plan that change no figure.
_OF_NO_FIGURE: Final = frozenset({"gateways", "points", "columns", "quantities", "repetitions"})
#: Why a measurement that did not break has no result.
_NOT_YET: Final = "it has not ended"
#: Cells and measurements.
_Names = set[tuple[str, str]]


def shell_options(command: str) -> list[str]:
    """Return the options of a command whose values natgauge runs in a shell."""
    return [word for word in shlex.split(command) if word.startswith("--") and word.endswith("-command")]


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
        explained = cause(explain(folder))
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
    by_gateway = grouped(((one.gateway, one.where), one.measurement) for one in broken_of(collected, lacks))
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
