# SPDX-License-Identifier: Apache-2.0
"""Whether a results folder agrees with itself: what its summary says follows from what it says elsewhere.

A summary can be edited, damaged, or copied from another folder. All that follows from its repetitions is made again, as
`measurements.making` does it. The repetitions are compared with their own file, the parameters with the plan, and the
number of trials with their file. Its doubts are found again with the same rules (`doubts`).
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from natgauge import foreign
from natgauge.analysis.between_runs import judged
from natgauge.analysis.contrast import median_interval_of
from natgauge.analysis.unit_frames import share_of_link
from natgauge.doubts import doubts, find
from natgauge.errors import UsageError
from natgauge.metrics.shared_figures import OCTETS_PER_CONNECTION
from natgauge.notes import Note
from natgauge.procedures.kit.result.results import Measurement, MeasurementResult, make_result
from natgauge.records.measurement import REPETITION, SHARE_OF_LINK, STATISTICS, Result
from natgauge.records.parameters import SEVERAL
from natgauge.records.reading import read_document, read_lines
from natgauge.records.record import first_fault
from natgauge.records.repetition import Repetition
from natgauge.records.store import MEASUREMENT_SCHEMA, MEASUREMENTS, PLAN, PLAN_SCHEMA, SUMMARY, TRIALS
from natgauge.statistics.figure import FigureSummary
from natgauge.stored.contradiction import ContradictionError, expect, is_number
from natgauge.stored.parameter_consistency import check_metric, check_values
from natgauge.stored.trial_consistency import check_counts

#: Fields of a line of a repetition that are not its own.
_OF_ALL: Final = ("schema", "metric", "unit", "repetition", "samples", "disturbed")
#: Groups whose parameters are known when the plan is written; settings may change with the first trials.
_PLANNED: Final = ("traffic", "place", "device")

#: Single values of the figures of which a repetition has several.
_Sample: TypeAlias = Mapping[str, tuple[float, ...]]


def refuse_contradictions(result: Result, folder: Path) -> None:
    """Refuse a result that its own folder contradicts; files that are missing contradict nothing."""
    summary = folder / SUMMARY
    check_metric(result, summary)
    check_values(result.parameters, result.metric, summary)
    lines = _repetitions(result, folder)
    _check_derived(result, summary, [_sample(line) for line in lines])
    _check_disturbed(result, summary, [line.get("disturbed") for line in lines])
    _check_plan(result, folder)
    check_counts(result.trials, result.metric, folder)
    check_doubts(result, folder)


def _repetitions(result: Result, folder: Path) -> list[dict[str, Any]]:
    """Lines of the repetitions, compared with those of the summary; none where the folder lacks the file."""
    path, summary = folder / MEASUREMENTS, folder / SUMMARY
    if not foreign.is_there(path):
        if foreign.is_there(folder / TRIALS):
            count = len(result.repetitions)
            raise ContradictionError(summary, "the number of repetitions", count, f"{path} is", "missing")
        return []
    lines = list(read_lines(path, MEASUREMENT_SCHEMA, whole=True))
    expect("the number of repetitions", len(result.repetitions), len(lines), f"{path} has", summary)
    for number, (line, repetition) in enumerate(zip(lines, result.repetitions, strict=True), start=1):
        for name, value in (("metric", result.metric), ("unit", result.unit), ("repetition", number)):
            expect(name, value, line.get(name, value), f"{path}:{number} says", summary)
        own = {name: value for name, value in line.items() if name not in _OF_ALL}
        try:
            stored = REPETITION.validate_json(json.dumps(own), strict=True)
        except ValidationError as error:
            raise UsageError(
                f"results: {path}:{number}: {first_fault(error)}; it is damaged or of another version, measure again"
            ) from None
        expect(f"repetition {number}: error", own.get("error"), stored.error, "its bounds are apart by", path)
        expect(f"repetition {number}", asdict(repetition), asdict(stored), f"{path}:{number} says", summary)
    return lines


def _check_derived(result: Result, where: Path, samples: Sequence[_Sample]) -> None:
    """Check all that follows from the repetitions by making it again."""
    measured = _measured(result, samples)
    summary, trials = measured.summary, measured.trials.items()
    again = {
        **{name: getattr(summary, name) for name in STATISTICS},
        **{name: getattr(measured, name) for name in ("error", "limited_by", "cause")},
        "median_interval": median_interval_of(result.metric, result.repetitions, result.doubts),
        "trials": {verdict: number for verdict, number in trials if number or verdict in result.trials},
        "figures": _figures(result, measured, where, has_samples=bool(samples)),
    }
    made = result.model_copy(update=again)
    made = made.model_copy(update={"threshold": judged(made)})
    stored, now = (one.model_dump(mode="json", include={*again, "threshold"}) for one in (result, made))
    for name, said in stored.items():
        expect(name.replace("_", " "), said, now[name], "its repetitions give", where)


def _figures(
    result: Result, measured: MeasurementResult, where: Path, *, has_samples: bool
) -> dict[str, FigureSummary]:
    """Return the figures as they are made again; those whose single values the folder does not have as they are."""
    found = measured.figures
    if (share := share_of_link(result.metric, result.values, result.parameters, result.figures)) is not None:
        found[SHARE_OF_LINK] = share
    if odd := found.keys() ^ result.figures.keys():
        name = min(odd)
        said, other = ("in", "not in") if name in result.figures else ("not in", "in")
        raise ContradictionError(where, f"figure {name}", f"{said} the summary", "it is", f"{other} its repetitions")
    for name, figure in result.figures.items():
        if not has_samples and figure.count > found[name].count:
            values = [repetition.figures[name] for repetition in result.repetitions if name in repetition.figures]
            _check_order(name, figure, values, where)
            found[name] = figure
    return found


def _sample(line: Mapping[str, Any]) -> _Sample:
    """Return the sample of a repetition by figure; a stranger may have written something else than numbers."""
    sample = line.get("samples")
    lists = {name: own for name, own in sample.items() if isinstance(own, list)} if isinstance(sample, dict) else {}
    return {
        name: tuple(own)
        for name, own in lists.items()
        if own and all(is_number(value) and math.isfinite(value) for value in own)
    }


def _check_order(name: str, figure: FigureSummary, values: Sequence[float], where: Path) -> None:
    """Check a figure whose single values the folder does not have."""
    rising = [figure.minimum, figure.p1, figure.median, figure.p99, figure.maximum]
    for lower, upper in itertools.pairwise(rising):
        if lower > upper:
            raise ContradictionError(where, f"a percentile of {name}", lower, "a higher one is", upper)
    inside = {"the mean": figure.mean, **{f"repetition {at}": value for at, value in enumerate(values, start=1)}}
    for what, value in inside.items():
        if not figure.minimum <= value <= figure.maximum:
            end = figure.minimum if value < figure.minimum else figure.maximum
            raise ContradictionError(where, f"{name}: {what}", value, "an end of its range is", end)
    spread = figure.maximum - figure.minimum
    if figure.standard_deviation is not None and not 0 <= figure.standard_deviation <= spread:
        raise ContradictionError(
            where, f"the standard deviation of {name}", figure.standard_deviation, "its range is", spread
        )


def _check_disturbed(result: Result, where: Path, disturbed: Sequence[Any]) -> None:
    name, trials = "the number of disturbed trials", sum(result.trials.values())
    known = [count for count in disturbed if isinstance(count, int)]
    if len(known) == len(result.repetitions):
        expect(name, result.disturbed, sum(known), "its repetitions have", where)
    if result.disturbed > trials:
        raise ContradictionError(where, name, result.disturbed, "its trials are", trials)


def _check_plan(result: Result, folder: Path) -> None:
    if not foreign.is_there(folder / PLAN):
        return
    plan = read_document(folder / PLAN, PLAN_SCHEMA)
    expect("metric", result.metric, plan.get("metric", result.metric), f"{PLAN} says", folder / SUMMARY)
    for group, name, value in result.parameters.items():
        if group in _PLANNED and name in plan and not (isinstance(value, dict) and SEVERAL in value):
            expect(f"parameter {name}", value, plan[name], f"{PLAN} says", folder / SUMMARY)


#: Doubts that a folder's other files do not show, and why.
NOT_STORED: Final[Mapping[str, str]] = {word: doubt.not_stored for word, doubt in doubts().items() if doubt.not_stored}


def check_doubts(result: Result, folder: Path) -> None:
    """Check that a result has every doubt that follows from its figures, notes and parameters.

    A folder without the file of its repetitions is no complete one, and contradicts nothing.
    """
    where = folder / SUMMARY
    if not foreign.is_there(folder / MEASUREMENTS):
        return
    stored = {doubt.word: doubt for doubt in result.doubts}
    for doubt in following(result):
        if doubt.word not in stored:
            named = ", ".join(stored) or "none"
            raise ContradictionError(where, "the list of doubts", named, "its figures and parameters give", doubt.word)
        alike = [each for each in result.doubts if each.word == doubt.word]
        if len(alike) == 1:
            expect(f"doubt {doubt.word}: value", alike[0].value, doubt.value, "its figures give", where)
            expect(f"doubt {doubt.word}: grade", alike[0].grade, doubt.grade, "its figures give", where)


def following(result: Result) -> list[Note]:
    """Return the doubts that follow from a result's figures, notes and parameters."""
    every = find(_measured(result), result.parameters, result.disturbed)
    return [doubt for doubt in every if doubt.word not in NOT_STORED]


def _measured(result: Result, samples: Sequence[_Sample] = ()) -> MeasurementResult:
    """Return a result as the procedure handed it over, as far as it is stored."""
    sampled, each_sample = _is_sampled(result), samples or [dict[str, tuple[float, ...]]()] * len(result.repetitions)
    repetitions = [
        Measurement(
            **{each.name: getattr(repetition, each.name) for each in fields(Repetition)},
            sample=sample,
            is_sampled=sampled,
        )
        for repetition, sample in zip(result.repetitions, each_sample, strict=True)
    ]
    return make_result(result.metric, result.unit, {}, repetitions, result.notes)


def _is_sampled(result: Result) -> bool:
    """Whether values rest on samples, of which a figure then has more values than there are repetitions.

    Trials have the memory of a connection beside the value, which does not rest on it.
    """
    named = Counter(name for repetition in result.repetitions for name in repetition.figures)
    return any(
        0 < named[name] < figure.count for name, figure in result.figures.items() if name != OCTETS_PER_CONNECTION
    )
