# SPDX-License-Identifier: Apache-2.0
"""Whether a results folder agrees with itself: what its summary says follows from what it says elsewhere.

A summary can be edited, damaged, or copied from another folder. Its statistics are computed again from its repetitions,
the repetitions are compared with their own file, the parameters with the plan, and the number of trials with their
file. Its doubts are found again with the same rules (`doubts`).
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from natgauge import foreign
from natgauge.analysis.between_runs import judged
from natgauge.analysis.contrast import median_interval_of
from natgauge.analysis.unit_frames import most_units
from natgauge.causes.cause import most_frequent
from natgauge.doubts import doubts, find
from natgauge.errors import UsageError
from natgauge.metrics import figures
from natgauge.metrics.shared_figures import OCTETS_PER_CONNECTION
from natgauge.notes import Note
from natgauge.procedures.kit.result.results import Measurement, MeasurementResult, make_result
from natgauge.records.measurement import REPETITION, SHARE_OF_LINK, STATISTICS, Result
from natgauge.records.parameters import SEVERAL
from natgauge.records.reading import read_document, read_lines
from natgauge.records.record import RecordPart, first_fault
from natgauge.records.repetition import Repetition
from natgauge.records.store import MEASUREMENT_SCHEMA, MEASUREMENTS, PLAN, PLAN_SCHEMA, SUMMARY, TRIALS
from natgauge.statistics.figure import FigureSummary
from natgauge.statistics.summary import summarize
from natgauge.stored.contradiction import ContradictionError, compare, expect, is_number, same
from natgauge.stored.parameter_consistency import check_metric, check_values
from natgauge.stored.trial_consistency import check_counts
from natgauge.words import Verdict

#: Fields of a line of a repetition that are not its own.
_OF_ALL: Final = ("schema", "metric", "unit", "repetition", "samples", "disturbed")
#: Groups whose parameters are known when the plan is written; settings may change with the first trials.
_PLANNED: Final = ("traffic", "place", "device")


def refuse_contradictions(result: Result, folder: Path) -> None:
    """Refuse a result that its own folder contradicts; files that are missing contradict nothing."""
    summary = folder / SUMMARY
    check_metric(result, summary)
    check_values(result.parameters, result.metric, summary)
    lines = _repetitions(result, folder)
    _check_statistics(result, summary)
    _check_sums(result, summary)
    _check_figures(result, summary, [line.get("samples") for line in lines])
    _check_disturbed(result, summary, [line.get("disturbed") for line in lines])
    _check_plan(result, folder)
    check_counts(result.trials, result.metric, folder)
    check_doubts(result, folder)
    _compare_parts(result.threshold, judged(result), summary, "the verdict on the threshold")


def _compare_parts(said: RecordPart | None, now: RecordPart | None, where: Path, field: str) -> None:
    stored, computed = (None if one is None else one.model_dump() for one in (said, now))
    compare(stored, computed, where, field, "its repetitions give")


def _repetitions(result: Result, folder: Path) -> list[dict[str, Any]]:
    """Lines of the repetitions, compared with those of the summary; none where the folder lacks the file."""
    path, summary = folder / MEASUREMENTS, folder / SUMMARY
    if not foreign.is_there(path):
        if foreign.is_there(folder / TRIALS):
            count = len(result.repetitions)
            raise ContradictionError(summary, "the number of repetitions", count, f"{path} is", "missing")
        return []
    lines = list(read_lines(path, MEASUREMENT_SCHEMA, whole=True))
    if len(lines) != len(result.repetitions):
        raise ContradictionError(
            summary, "the number of repetitions", len(result.repetitions), f"{path} has", len(lines)
        )
    for number, (line, repetition) in enumerate(zip(lines, result.repetitions, strict=True), start=1):
        for name, value in (("metric", result.metric), ("unit", result.unit), ("repetition", number)):
            if line.get(name, value) != value:
                raise ContradictionError(summary, name, value, f"{path}:{number} says", line[name])
        own = {name: value for name, value in line.items() if name not in _OF_ALL}
        try:
            stored = REPETITION.validate_json(json.dumps(own), strict=True)
        except ValidationError as error:
            raise UsageError(
                f"results: {path}:{number}: {first_fault(error)}; it is damaged or of another version, measure again"
            ) from None
        expect(f"repetition {number}: error", own.get("error"), stored.error, "its bounds are apart by", path)
        compare(asdict(repetition), asdict(stored), summary, f"repetition {number}", f"{path}:{number} says")
    return lines


def _check_statistics(result: Result, where: Path) -> None:
    actual = summarize(result.values)
    for name in STATISTICS:
        _expect(result, name, getattr(actual, name), where)
    now = median_interval_of(result.metric, result.repetitions, result.doubts)
    _compare_parts(result.median_interval, now, where, "the median's interval")


def _check_sums(result: Result, where: Path) -> None:
    """Check what the summary derives from single repetitions: errors, causes, counts of trials."""
    errors = [repetition.error for repetition in result.repetitions]
    known = [error for error in errors if error is not None]
    _expect(result, "error", max(known) if len(known) == len(errors) else None, where)
    causes = Counter(repetition.limited_by for repetition in result.repetitions)
    _expect(result, "limited_by", causes.most_common(1)[0][0], where)
    own = [each.cause for each in result.repetitions if each.limited_by == result.limited_by and each.cause is not None]
    expect("cause", result.cause, most_frequent(own) if own else None, "its repetitions give", where)
    counts: Counter[Verdict] = Counter()
    for repetition in result.repetitions:
        counts.update(repetition.trials)
    for verdict in Verdict:
        if result.trials.get(verdict, 0) != counts[verdict]:
            field = f"the number of {verdict} trials"
            raise ContradictionError(
                where, field, result.trials.get(verdict, 0), "its repetitions have", counts[verdict]
            )


def _check_figures(result: Result, where: Path, samples: Sequence[Any]) -> None:
    names = dict.fromkeys(name for repetition in result.repetitions for name in repetition.figures)
    unknown = [name for name in result.figures if name not in names and name != SHARE_OF_LINK]
    missing = [name for name in names if name not in result.figures]
    if unknown or missing:
        name = (unknown or missing)[0]
        said, other = ("in", "not in") if unknown else ("not in", "in")
        raise ContradictionError(where, f"figure {name}", f"{said} the summary", "it is", f"{other} its repetitions")
    for name, figure in result.figures.items():
        if name == SHARE_OF_LINK and name not in names:
            _check_figure(name, figure, _shares(result), where)
            continue
        values = [repetition.figures[name] for repetition in result.repetitions if name in repetition.figures]
        sampled = _sampled(name, result, samples)
        if sampled is None and figure.count <= len(values):
            sampled = values
        if sampled is None:
            _check_order(name, figure, values, where)
        else:
            _check_figure(name, figure, sampled, where)


def _shares(result: Result) -> list[float] | None:
    """Shares of the link's theoretical maximum, as `making` computes them; None = it is not known."""
    most = most_units(result.metric, result.parameters, result.figures)
    return [value / most for value in result.values] if most else None


def _sampled(name: str, result: Result, samples: Sequence[Any]) -> list[float] | None:
    """Values of a figure of which repetitions have several; None where the folder does not have all of them."""
    values: list[float] = []
    for repetition, sample in zip(result.repetitions, samples, strict=False):
        if name not in repetition.figures:
            continue
        own = sample.get(name, [repetition.figures[name]]) if isinstance(sample, dict) else None
        if not isinstance(own, list) or not all(is_number(value) for value in own):
            return None
        values += own
    return values or None


def _check_figure(name: str, figure: FigureSummary, values: Sequence[float] | None, where: Path) -> None:
    if not values:
        raise ContradictionError(where, f"figure {name}", figure.median, "its repetitions give", "none")
    known = figures().get(name)
    actual = summarize(values, is_tried=known is not None and known.is_tried)
    for statistic in STATISTICS:
        expected = getattr(actual, statistic)
        if not same(getattr(figure, statistic), expected):
            field = f"{statistic.replace('_', ' ')} of {name}"
            raise ContradictionError(where, field, getattr(figure, statistic), "its values give", expected)
    if figure.count != len(values):
        raise ContradictionError(where, f"the number of values of {name}", figure.count, "there are", len(values))


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
    known = [count for count in disturbed if isinstance(count, int)]
    if known and len(known) == len(result.repetitions) and sum(known) != result.disturbed:
        raise ContradictionError(
            where, "the number of disturbed trials", result.disturbed, "its repetitions have", sum(known)
        )
    trials = sum(result.trials.values())
    if result.disturbed > trials:
        raise ContradictionError(where, "the number of disturbed trials", result.disturbed, "its trials are", trials)


def _check_plan(result: Result, folder: Path) -> None:
    if not foreign.is_there(folder / PLAN):
        return
    plan = read_document(folder / PLAN, PLAN_SCHEMA)
    if plan.get("metric", result.metric) != result.metric:
        raise ContradictionError(folder / SUMMARY, "metric", result.metric, f"{PLAN} says", plan["metric"])
    for group, name, value in result.parameters.items():
        if group in _PLANNED and name in plan and not (isinstance(value, dict) and SEVERAL in value):
            compare(value, plan[name], folder / SUMMARY, f"parameter {name}", f"{PLAN} says")


def _expect(result: Result, name: str, expected: object, where: Path) -> None:
    expect(name.replace("_", " "), getattr(result, name), expected, "its repetitions give", where)


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


def _measured(result: Result) -> MeasurementResult:
    """Return a result as the procedure handed it over, as far as it is stored."""
    sampled = _is_sampled(result)
    repetitions = [_repetition(repetition, sampled=sampled) for repetition in result.repetitions]
    return make_result(result.metric, result.unit, {}, repetitions, result.notes)


def _repetition(repetition: Repetition, *, sampled: bool) -> Measurement:
    stored = {each.name: getattr(repetition, each.name) for each in fields(Repetition)}
    return Measurement(**stored, is_sampled=sampled)


def _is_sampled(result: Result) -> bool:
    """Whether values rest on samples, of which a figure then has more values than there are repetitions.

    Trials have the memory of a connection beside the value, which does not rest on it.
    """
    named = Counter(name for repetition in result.repetitions for name in repetition.figures)
    return any(
        0 < named[name] < figure.count for name, figure in result.figures.items() if name != OCTETS_PER_CONNECTION
    )
