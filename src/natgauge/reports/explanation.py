# SPDX-License-Identifier: Apache-2.0
"""One trial of a results folder explained: where its frames were lost, the counters that say so, what changes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from natgauge.analysis.hops import HopLoss, TrialHops, hops_of
from natgauge.errors import UsageError
from natgauge.measurer import Verdict
from natgauge.other_traffic import NO_OTHER_TRAFFIC, OtherTraffic
from natgauge.records.store import FAILURE, FAILURE_SCHEMA, TRIAL_SCHEMA, TRIALS, plain, read_document, read_lines
from natgauge.records.trial import checked
from natgauge.tables import aligned

EXPLANATION_SCHEMA: Final = "natgauge-explanation-1"
#: Said of lost frames that no counter has.
_NO_COUNTER: Final = (
    "no counter: the frames were dropped where the kernel counts nothing, as by rules of a netdev hook, tc or XDP. To "
    "change it: look at these."
)
#: Said of a trial whose record has no counters of the devices' kernels.
_NOT_READ: Final = (
    "The record has no counters of the gateway's kernel (an earlier natgauge, no Linux, or no access to it): the hops "
    "softnet to rules are not known."
)


@dataclass(frozen=True, slots=True)
class TrialExplanation:
    """A trial and its hops.

    Attributes:
        folder: results folder.
        trial: record of the trial.
        hops: its hops.
        load: what it sent, in the words of the progress line.
        failure: error that ended the measurement; empty = none did.
        other_traffic: frames at the tester's ports that were not the trial's.
    """

    folder: Path
    trial: Mapping[str, Any]
    hops: TrialHops
    load: str
    failure: str = ""
    other_traffic: OtherTraffic = NO_OTHER_TRAFFIC


def explain(folder: Path, number: int | None = None) -> TrialExplanation:
    """Explain one trial of a results folder.

    Args:
        folder: folder of one measurement, or of a comparison by rates; the measurement may have failed.
        number: number of the trial, from 1; None = the last one that failed, or the last one if none did.

    Raises:
        UsageError: the folder has no such trial, the trial did not run, or a file is damaged or of another schema.
    """
    known = (folder / FAILURE).is_file()
    failure = str(read_document(folder / FAILURE, FAILURE_SCHEMA).get("error") or "") if known else ""
    if not (folder / TRIALS).is_file():
        why = (
            f"no frame was sent ({failure}); measure again" if failure else "name the results folder of one measurement"
        )
        raise UsageError(f"explain: {folder} holds no {TRIALS}; {why}")
    chosen = _chosen(folder, number)
    if not chosen.get("result"):
        raise UsageError(f"explain: trial {chosen.get('trial')} of {folder} did not run: {chosen.get('reason')}")
    try:
        verdict = Verdict(chosen["verdict"])
        trial = {**chosen, "trial": int(chosen["trial"]), "verdict": verdict.value}
        return TrialExplanation(folder, trial, hops_of(trial), _load(trial["plan"]), failure, _others(trial["result"]))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise UsageError(
            f"explain: trial {chosen.get('trial')} of {folder} is no trial as natgauge writes them "
            f"({type(error).__name__}: {error}): it is damaged; choose another one, or measure again"
        ) from error


def _chosen(folder: Path, number: int | None) -> Mapping[str, Any]:
    """Return one trial of a folder, see `explain`; no more than two are in memory.

    Raises:
        UsageError: the folder has no such trial, or a line is damaged.
    """
    count, last, failed = 0, None, None
    for line, read in enumerate(read_lines(folder / TRIALS, TRIAL_SCHEMA), start=1):
        trial = checked(read, f"{folder / TRIALS}:{line}")
        count, last = count + 1, trial
        if number is not None and trial.get("trial") == number:
            return trial
        if trial.get("verdict") in (Verdict.FAIL, Verdict.COLLAPSED):
            failed = trial
    if last is None:
        raise UsageError(f"explain: {folder} holds no trial: its measurement ended before the first; measure again")
    if number is not None:
        raise UsageError(f"explain: trial {number}: {folder} holds the trials 1 to {count}; choose one of them")
    return failed or last


def text(explanation: TrialExplanation) -> str:
    """Return the answer, a table of the hops, and the meaning and knob of each counter that rose."""
    hops, trial = explanation.hops, explanation.trial
    rows = [("hop", "device", "frames lost", "counter", "count")]
    for hop in hops.hops:
        first: tuple[str, str, str] = (hop.hop, hop.device, f"{hop.lost:,}")
        for each in hop.counters:
            rows.append((*first, f"{each.place} {each.name}".strip(), f"{each.count:,}"))
            first = ("", "", "")
        rows += [] if hop.counters else [(*first, "", "")]
    if hops.without_counter:
        rows.append(("no counter", "", f"{hops.without_counter:,}", "", ""))
    named = {each.name: each.facts for hop in hops.hops for each in hop.counters}
    lines = [
        _answer(explanation),
        f"Verdict: {trial['verdict']}{'; ' if trial.get('reason') else ''}{trial.get('reason') or ''}.",
        *_behind(explanation),
        *_foreign(explanation.other_traffic),
        *([f"The measurement failed: {explanation.failure}"] if explanation.failure else []),
        *([] if hops.has_kernel_counters else [_NOT_READ]),
        "",
        *aligned(rows, right=(2, 4)),
        *([""] if named or hops.without_counter else []),
        *(f"{name}: {facts.meaning}. To change it: {facts.knob}." for name, facts in named.items()),
        *([_NO_COUNTER] if hops.without_counter else []),
    ]
    return "\n".join(lines)


def cause(explanation: TrialExplanation) -> list[str]:
    """Return where the frames of a trial were lost, and for each counter of that hop its meaning and its knob."""
    losing = explanation.hops.losing
    counters = losing.counters if losing else ()
    lines = [f"{each.name}: {each.facts.meaning}. To change it: {each.facts.knob}." for each in counters if each.lost]
    return [_answer(explanation), *dict.fromkeys(lines)]


def _answer(explanation: TrialExplanation) -> str:
    hops, trial = explanation.hops, explanation.trial
    gateway = f" of {trial['gateway']}" if trial.get("gateway") else ""
    head = f"Trial {trial['trial']}{gateway} ({explanation.load}):"
    if not hops.lost:
        return f"{head} none of {hops.sent:,} frames was lost."
    head = f"{head} {hops.lost:,} of {hops.sent:,} frames were lost"
    losing = hops.losing
    if losing is None:
        return f"{head}, {'all' if hops.without_counter == hops.lost else 'most'} of them in no counter."
    where = f" of {losing.device}" if losing.device else ""
    counter = max(losing.counters, key=lambda each: each.lost)
    return f"{head}, {losing.lost:,} of them at the hop {losing.hop}{where} ({counter.name})."


def _load(plan: Mapping[str, Any]) -> str:
    """Describe what a trial sent, so that it can be found among those of several metrics and repetitions."""
    phase2, opened = plan.get("phase2"), f"{plan['connections']:,} connections"
    if phase2 is None:
        return f"{opened} at {plan['phase1_rate']:,.0f}/s"
    up, down = phase2["initiator_rate"], phase2["responder_rate"]
    rates = f"{up:,.0f} frames/s each way" if up == down else f"{up:,.0f} and {down:,.0f} frames/s up and down"
    return f"{rates} for {phase2['seconds']:g} s, {opened}"


def _others(result: Mapping[str, Any]) -> OtherTraffic:
    """Return the foreign frames of a trial, next to those that it offered."""
    streams = (result.get("phase1"), *(result.get("phase2") or {}).values())
    offered = sum(int(stream.get("offered_frames") or 0) for stream in streams if stream)
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
    return [f"Frames left up to {lag / 1e6:.1f} ms later than their rate requires{why}. To change it: a lower rate."]


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
        "losing": None if hops.losing is None else _document(hops.losing),
        "hops": [_document(hop) for hop in hops.hops],
    }


def _document(hop: HopLoss) -> dict[str, Any]:
    counters = [
        {**plain(each), "lost": each.lost, "meaning": each.facts.meaning, "knob": each.facts.knob}
        for each in hop.counters
    ]
    return {"hop": hop.hop, "device": hop.device, "lost": hop.lost, "counters": counters}
