# SPDX-License-Identifier: Apache-2.0
"""One trial of a results folder explained: where its frames were lost, the counters that say so, what changes them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from natgauge.causes.cause import Cause
from natgauge.causes.counters import CounterFacts
from natgauge.causes.full_table import FullTable
from natgauge.causes.hops import LATE, HopLoss, TrialHops, hops_of
from natgauge.causes.of_trial import TableState, cause_of
from natgauge.errors import UsageError
from natgauge.figure_text import at_most, with_noun
from natgauge.figure_text import number as written
from natgauge.foreign import is_there
from natgauge.late_delays import LateDelays
from natgauge.other_traffic import NO_OTHER_TRAFFIC, OtherTraffic
from natgauge.plain_text import capital
from natgauge.records.comparison import ComparisonRecord
from natgauge.records.measurement import Result
from natgauge.records.reading import read_document, read_lines, read_record
from natgauge.records.store import (
    CAMPAIGN_RESULTS,
    COMPARISON,
    FAILURE,
    FAILURE_SCHEMA,
    SUMMARY,
    TRIAL_SCHEMA,
    TRIALS,
    plain,
)
from natgauge.records.trial import cause_in, checked
from natgauge.reports import comparison
from natgauge.reports.answers import answers
from natgauge.reports.graded_doubts import graded
from natgauge.tables import aligned
from natgauge.words import SENDING, Verdict

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
            deciding = trial if whole is not None and _stored(trial, whole) == whole.kind else deciding
    if last is None:
        raise UsageError(f"explain: {folder} holds no trial: its measurement ended before the first; measure again")
    if number is not None:
        raise UsageError(f"explain: trial {number}: {folder} holds the trials 1 to {count}; choose one of them")
    return deciding or failed or last


def _of_measurement(folder: Path) -> Cause | None:
    """Return the cause of the whole measurement, if it has ended with one."""
    if not is_there(folder / SUMMARY):
        return None
    with suppress(UsageError):
        return read_record(folder / SUMMARY, Result).cause
    return None


def refined(cause: Cause, whole: Cause | None) -> Cause:
    """Return the cause of a trial, as all trials of its measurement together show it.

    Where `whole`, that of the measurement, is None, it is not known.
    """
    if whole is not None and (cause.kind, whole.kind) in _REFINED:
        return replace(cause, kind=whole.kind, certainty=whole.certainty, hop=whole.hop, remedy=whole.remedy)
    return cause


def _stored(trial: Mapping[str, Any], whole: Cause) -> str | None:
    """Return the kind of a trial's cause, as its record and the measurement have it."""
    stored = trial.get("cause")
    return refined(cause_in(stored), whole).kind if stored else None


def _cause_of(trial: Mapping[str, Any], hops: TrialHops, whole: Cause | None) -> Cause | None:
    """Return the cause in a trial's record; of an earlier natgauge, and of other verdicts, that of its hops."""
    if trial.get("cause"):
        return refined(cause_in(trial["cause"]), whole)
    if not hops.lost:
        return None
    opens = trial.get("failed_phase") == 1 or not trial["result"].get("phase2")
    return cause_of(hops, TableState(trial.get("device_count_after")), opens=opens)


def text(explanation: TrialExplanation) -> str:
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


def document(explanation: TrialExplanation) -> dict[str, Any]:
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
        "losing": None if hops.losing is None else _document(hops.losing, hops),
        "hops": [_document(hop, hops) for hop in hops.hops],
    }


def _document(hop: HopLoss, hops: TrialHops) -> dict[str, Any]:
    counters = [
        {**plain(each), "lost": each.lost, **{name: getattr(each.facts, name) for name in ("meaning", "also", "knob")}}
        for each in hop.counters
    ]
    return {"hop": hop.hop, "device": hop.device, "lost": hops.lost_at(hop), "counters": counters}
