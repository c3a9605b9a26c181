# SPDX-License-Identifier: Apache-2.0
"""Whether the trials of a results folder agree with themselves and with its record.

Three facts limit what a record can count. A folder may have more trials than the record: those of a measurement that
came first, and of repetitions that were left out. A procedure may take a trial for INVALID that passed or failed by
itself, such as one whose timed frames met a stall. And a procedure that measures loss tolerates a loss in phase 1 that
every rate has, so that it may take such a failed trial for passed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from natgauge import foreign
from natgauge.metrics import declared
from natgauge.records.reading import read_lines
from natgauge.records.store import MAKING, SUMMARY, TRIAL_SCHEMA, TRIALS
from natgauge.records.trial import checked
from natgauge.stored.contradiction import ContradictionError, expect
from natgauge.words import Verdict

#: Float arithmetic of a share of frames, as the verdict computes it.
_LEAST_FRAME: Final = 1e-6


def check_counts(counted: Mapping[Verdict, int], metric: str, folder: Path) -> None:
    """Check a measurement's trials, and the numbers of them by verdict; a missing file contradicts nothing."""
    path, where, total = folder / TRIALS, folder / SUMMARY, sum(counted.values())
    if not foreign.is_there(path):
        return
    seen = check_trials(path)
    if total > len(seen):
        raise ContradictionError(where, "the number of trials", total, f"{path} has", len(seen))
    found = Counter(verdict for verdict, _ in seen)
    tolerated = seen.count((Verdict.FAIL, 1)) if declared(metric).measures_loss else 0
    most = {
        Verdict.PASS: found[Verdict.PASS] + tolerated,
        Verdict.FAIL: found[Verdict.FAIL],
        Verdict.COLLAPSED: found[Verdict.COLLAPSED],
    }
    for verdict, number in most.items():
        if counted.get(verdict, 0) > number:
            field = f"the number of {verdict} trials"
            raise ContradictionError(where, field, counted.get(verdict, 0), f"{path} has", number)
    if len(seen) == total and counted.get(Verdict.INVALID, 0) < found[Verdict.INVALID]:
        field = "the number of INVALID trials"
        raise ContradictionError(where, field, counted.get(Verdict.INVALID, 0), f"{path} has", found[Verdict.INVALID])


def check_trials(path: Path, gateways: Sequence[str] = ()) -> list[tuple[Verdict, int | None]]:
    """Check that trials are numbered from 1, that none is there twice, and that each follows from its own counts.

    Each trial names one of the gateways; where there are none, trials name none. Return their verdicts, each with the
    phase that failed.
    """
    begun: Counter[float] = Counter()
    seen = []
    for line, raw in enumerate(_trials(path), start=1):
        at = f"{path}:{line}"
        trial = checked(raw, at)
        expect("the number of the trial", trial["trial"], line, "its line is", Path(at))
        begun.update([trial["began"]] if trial.get("began") is not None else [])
        _check_verdict(trial, Path(at))
        if gateways and trial.get("gateway") not in gateways:
            raise ContradictionError(Path(at), "gateway", trial.get("gateway"), "the record has", ", ".join(gateways))
        seen.append((Verdict(trial["verdict"]), trial.get("failed_phase")))
    if together := {began for began, count in begun.items() if count > 1}:
        _refuse_twice(path, together)
    return seen


def _trials(path: Path) -> Iterator[dict[str, Any]]:
    """Read the trials of a folder; the last line may be cut off where others follow: it may just be written."""
    return read_lines(path, TRIAL_SCHEMA, whole=not path.parent.name.startswith(MAKING))


def _refuse_twice(path: Path, together: Collection[float]) -> None:
    """Refuse a trial that is another one again: no two that began together have equal results."""
    numbers: dict[bytes, int] = {}
    for line, trial in enumerate(_trials(path), start=1):
        if trial.get("began") not in together:
            continue
        own = json.dumps({name: value for name, value in trial.items() if name != "trial"}, sort_keys=True)
        digest = hashlib.blake2b(own.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        earlier = numbers.setdefault(digest, line)
        if earlier != line:
            raise ContradictionError(
                Path(f"{path}:{line}"), "the trial", line, "all else of it is that of trial", earlier
            )


def _check_verdict(trial: Mapping[str, Any], where: Path) -> None:
    """Check a verdict by what it follows from; what was not stored contradicts nothing."""
    verdict, reason = Verdict(trial["verdict"]), trial.get("reason")
    if reason is None:
        return
    if verdict is Verdict.PASS:
        if reason:
            raise ContradictionError(where, "verdict", verdict, "the reason says that it did not pass:", reason)
        for name, received, least in _too_few(trial):
            raise ContradictionError(
                where, "verdict", verdict, f"{name} received {received:,} frames, of at least", least
            )
    elif not reason:
        raise ContradictionError(where, "verdict", verdict, "the reason is", "none")
    if verdict in {Verdict.PASS, Verdict.INVALID} and trial.get("failed_phase") is not None:
        raise ContradictionError(where, "verdict", verdict, "the phase that failed is", trial["failed_phase"])


def _too_few(trial: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Yield each stream of a trial that lost more than its plan tolerates: its name, its frames, and the fewest."""
    result, plan = trial.get("result") or {}, trial.get("plan") or {}
    tolerance = plan.get("loss_tolerance") or 0.0
    streams = {"phase 1": result.get("phase1"), **(result.get("phase2") or {})}
    for name, stream in streams.items():
        if name == "flood" or not isinstance(stream, Mapping) or stream.get("offered_frames") is None:
            continue
        offered, received = stream["offered_frames"], stream["received_frames"]
        if not isinstance(tolerance, int | float):
            continue
        least = (1 - tolerance) * offered - _LEAST_FRAME
        if received < least:
            yield name, received, math.ceil(least)
