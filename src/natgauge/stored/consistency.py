# SPDX-License-Identifier: Apache-2.0
"""Whether folders of measurements and audits agree with themselves, and with what the inputs accept.

A summary can be edited, damaged, or copied from another folder. All that follows from its repetitions is made again, as
`measurements.record` does it. The repetitions are compared with their own file, the parameters with the plan, and the
trials with their file. Its doubts are found again with the same rules (`doubts`). An edit that changes all files alike
leaves no two values that differ. It still has to name a metric that exists, in that metric's unit, with settings and
figures that this metric has, and with values that a user could choose.

Of an audit each verdict's sentences are of frames in its capture.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import struct
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final, TypeAlias

from pydantic import JsonValue, ValidationError

from natgauge import file_access, procedures
from natgauge.analysis.contrast import judged, median_interval_of
from natgauge.analysis.unit_frames import share_of_link
from natgauge.doubts import doubts, find
from natgauge.errors import UsageError
from natgauge.inputs.input import Input, inputs_of, spoken
from natgauge.inputs.question import DeviceOptions, LabOptions, TrafficOptions
from natgauge.labs import kinds
from natgauge.metrics import declared
from natgauge.metrics.metric import OCTETS_PER_CONNECTION
from natgauge.notes import Note
from natgauge.procedures.kit.results import Measurement, MeasurementResult, make_result
from natgauge.records.audit import AuditedRequirement, AuditRecord
from natgauge.records.measurement import REPETITION, SHARE_OF_LINK, STATISTICS, Result
from natgauge.records.parameters import SEVERAL, Parameters, differing, is_fact
from natgauge.records.record import first_fault, read_document, read_lines
from natgauge.records.repetition import Repetition
from natgauge.records.store import (
    AUDIT,
    EVIDENCE,
    MAKING,
    MEASUREMENT_SCHEMA,
    MEASUREMENTS,
    PLAN,
    PLAN_SCHEMA,
    SUMMARY,
    TRIAL_SCHEMA,
    TRIALS,
)
from natgauge.records.trial import checked
from natgauge.statistics.summary import FigureSummary
from natgauge.words import Verdict

#: Versions of Python and of libm may round the last digit differently.
_ROUNDING: Final = 1e-9
_REMEDY: Final = "the folder was edited or damaged; leave it out, or measure again"


def refuse_contradictions(result: Result, folder: Path) -> None:
    """Refuse a result that its own folder contradicts; files that are missing contradict nothing."""
    summary = folder / SUMMARY
    _check_metric(result, summary)
    check_values(result.parameters, result.metric, summary)
    lines = _repetitions(result, folder)
    _check_derived(result, summary, [_sample(line) for line in lines])
    _check_disturbed(result, summary, [line.get("disturbed") for line in lines])
    _check_plan(result, folder)
    _check_counts(result.trials, result.metric, folder)
    _check_doubts(result, folder)


class ContradictionError(UsageError):
    """A results folder says two things about one fact."""

    def __init__(self, where: Path, field: str, said: object, other: str, value: object) -> None:
        super().__init__(f"results: {where}: {field} is {_shown(said)}, but {other} {_shown(value)}: {_REMEDY}")


def expect(field: str, said: Any, expected: Any, source: str, where: Path) -> None:
    """Refuse a value of a record that is not the one of its source, with the innermost field in which they differ."""
    if isinstance(said, Mapping) and isinstance(expected, Mapping) and said.keys() == expected.keys():
        for name, value in said.items():
            expect(f"{field}: {str(name).replace('_', ' ')}", value, expected[name], source, where)
    elif isinstance(said, list | tuple) and isinstance(expected, list | tuple) and len(said) == len(expected):
        for number, (value, other) in enumerate(zip(said, expected, strict=True), start=1):
            expect(f"{field} {number}", value, other, source, where)
    elif not same(said, expected):
        raise ContradictionError(where, field, said, source, expected)


def same(said: JsonValue | object, other: object) -> bool:
    """Whether two values are equal, numbers but for rounding."""
    if (isinstance(said, float) and is_number(other)) or (isinstance(other, float) and is_number(said)):
        return _is_near(said, other)
    return type(said) is type(other) and said == other if isinstance(said, bool) else said == other


def _is_near(one: Any, other: Any) -> bool:
    """Whether two numbers are equal but for rounding; a whole number that no float holds is near to none."""
    try:
        return math.isclose(float(one), float(other), rel_tol=_ROUNDING, abs_tol=1e-300)
    except OverflowError:
        return False


def is_number(value: object) -> bool:
    """Whether a value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.12g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


#: A setting of all procedures (`TrialSettings.far_side`), which only one lets the user choose.
_OF_ALL_METRICS: Final = frozenset({"far_side"})


def _check_metric(result: Result, where: Path) -> None:
    """Check that unit, settings and figures of a result are those of its metric."""
    procedure = procedures.procedures().get(result.metric)
    if procedure is None:
        raise UsageError(f"results: {where}: metric {result.metric!r} is unknown; {_REMEDY}")
    expect("unit", result.unit, procedure.unit, f"the metric {result.metric} has", where)
    own = {input_.parameter for input_ in _inputs(result.parameter("lab_kind"), result.metric)}
    others = {input_.parameter for each in procedures.procedures().values() for input_ in each.inputs()}
    for name in result.parameters.settings:
        if name in others - own - _OF_ALL_METRICS and not is_fact(name):
            raise ContradictionError(where, "metric", result.metric, "no metric of this name has the setting", name)
    for number, repetition in enumerate(result.repetitions, start=1):
        figure = procedure.declared.value_figure
        if not figure or not repetition.figures:
            continue
        if figure not in repetition.figures:
            raise ContradictionError(where, "metric", result.metric, f"repetition {number} lacks its figure", figure)
        source = f"its figure {figure} is"
        expect(f"repetition {number}: value", repetition.value, repetition.figures[figure], source, where)


def check_values(parameters: Parameters, metric: str | None, where: Path) -> None:
    """Check each parameter that is an input by the input's own rule; no metric = the record has no settings of one."""
    stored = parameters.flat()
    for input_ in _inputs(stored.get("lab_kind"), metric):
        value = stored.get(input_.parameter)
        for each in differing(value) or [value]:
            _check(input_, each, where)


def _check(input_: Input, value: JsonValue, where: Path) -> None:
    if value is None:
        return
    try:
        taken = input_.take(value)
    except UsageError as error:
        raise UsageError(f"results: {where}: parameter {error}; {_REMEDY}") from None
    # Rules that need more than the value itself are with the traffic and the labs; none allows less than nothing.
    if input_.check is None and isinstance(taken, int | float) and taken < 0:
        raise UsageError(f"results: {where}: parameter {spoken(input_.name)}: {taken} is below 0; {_REMEDY}")


def _inputs(lab_kind: JsonValue, metric: str | None) -> Iterator[Input]:
    """Yield every input of a record: of traffic, lab and device, of the lab's kind, and the metric's settings."""
    yield from inputs_of(TrafficOptions, "traffic")
    yield from inputs_of(LabOptions, "place")
    yield from inputs_of(DeviceOptions, "device")
    kind = kinds.kinds().get(lab_kind) if isinstance(lab_kind, str) else None
    if kind is not None:
        yield from inputs_of(kind.options, "place")
    known = procedures.procedures().get(metric or "")
    yield from () if known is None else known.inputs()


#: Float arithmetic of a share of frames, as the verdict computes it.
_LEAST_FRAME: Final = 1e-6


def _check_counts(counted: Mapping[Verdict, int], metric: str, folder: Path) -> None:
    """Check a measurement's trials, and the numbers of them by verdict; a missing file contradicts nothing.

    A folder may have more trials than the record: those of a measurement that came first, and of repetitions that were
    left out. A procedure may take a trial for INVALID that passed or failed by itself, such as one whose timed frames
    met a stall. And a procedure that measures loss tolerates a loss in phase 1 that every rate has, so that it may take
    such a failed trial for passed.
    """
    path, where, total = folder / TRIALS, folder / SUMMARY, sum(counted.values())
    if not file_access.is_there(path):
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


#: Kind of a block with a packet, and the least octets of a block (draft-ietf-opsawg-pcapng section 3.1).
_PACKET: Final = 6
_LEAST: Final = 12


def refuse_contradictions_of_audit(record: AuditRecord, folder: Path) -> None:
    """Refuse an audit that its own folder contradicts; captures that are missing contradict nothing."""
    where = folder / AUDIT
    for name, (survived, expired) in record.timeouts.items():
        if survived is not None and expired is not None and survived > expired:
            raise ContradictionError(
                where, f"{name}: the longest idle time that a mapping survived", survived, "one expired after", expired
            )
    places: dict[tuple[str, str], int] = {}
    for number, requirement in enumerate(record.requirements, start=1):
        earlier = places.setdefault((requirement.key, requirement.transport), number)
        if earlier != number:
            name = f"requirement {number}"
            said = f"{requirement.key} ({requirement.transport})"
            raise ContradictionError(where, name, said, "the same one is requirement", earlier)
        _check_frames(requirement, folder, where)


def _check_frames(requirement: AuditedRequirement, folder: Path, where: Path) -> None:
    file, sentences = requirement.evidence.file, len(requirement.evidence.frames)
    if file is None:
        return
    parts = Path(file).parts
    if parts[:1] != (EVIDENCE,) or ".." in parts:
        raise UsageError(
            f"results: {where}: {requirement.key}: evidence {file!r} is no file below {EVIDENCE}/ of the folder; it is "
            "damaged, leave it out, or measure again"
        )
    path = folder / file
    if file_access.is_there(path):
        name = f"{requirement.key} ({requirement.transport}): the number of frames"
        expect(name, sentences, _packets(path), f"{path} has", where)


def _packets(path: Path) -> int:
    octets = file_access.read_octets(path, file_access.DOCUMENT)
    at, packets = 0, 0
    while at < len(octets):
        kind, length = struct.unpack_from("<II", octets, at) if at + _LEAST <= len(octets) else (0, 0)
        if length < _LEAST or length % 4 or at + length > len(octets):
            raise UsageError(
                f"results: {path}: is no capture (octet {at}); it is damaged, leave it out, or measure again"
            )
        packets += kind == _PACKET
        at += length
    return packets


#: Fields of a line of a repetition that are not its own.
_OF_ALL: Final = ("schema", "metric", "unit", "repetition", "samples", "disturbed")
#: Groups whose parameters are known when the plan is written; settings may change with the first trials.
_PLANNED: Final = ("traffic", "place", "device")

#: Single values of the figures of which a repetition has several.
_Sample: TypeAlias = Mapping[str, tuple[float, ...]]


def _repetitions(result: Result, folder: Path) -> list[dict[str, Any]]:
    """Lines of the repetitions, compared with those of the summary; none where the folder lacks the file."""
    path, summary = folder / MEASUREMENTS, folder / SUMMARY
    if not file_access.is_there(path):
        if file_access.is_there(folder / TRIALS):
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
    if not file_access.is_there(folder / PLAN):
        return
    plan = read_document(folder / PLAN, PLAN_SCHEMA)
    expect("metric", result.metric, plan.get("metric", result.metric), f"{PLAN} says", folder / SUMMARY)
    for group, name, value in result.parameters.items():
        if group in _PLANNED and name in plan and not (isinstance(value, dict) and SEVERAL in value):
            expect(f"parameter {name}", value, plan[name], f"{PLAN} says", folder / SUMMARY)


#: Doubts that a folder's other files do not show, and why.
NOT_STORED: Final[Mapping[str, str]] = {word: doubt.not_stored for word, doubt in doubts().items() if doubt.not_stored}


def _check_doubts(result: Result, folder: Path) -> None:
    """Check that a result has every doubt that follows from its figures, notes and parameters.

    A folder without the file of its repetitions is no complete one, and contradicts nothing.
    """
    where = folder / SUMMARY
    if not file_access.is_there(folder / MEASUREMENTS):
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
