# SPDX-License-Identifier: Apache-2.0
"""Results made up for what shows and compares them: told by a few words, everything else as on one plain machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from natgauge.analysis.contrast import judged, median_interval_of
from natgauge.doubts import find
from natgauge.metrics import declared, metrics
from natgauge.notes import Note
from natgauge.procedures.kit.results import Measurement, make_result, verdict_counts
from natgauge.records.audit import AuditRecord
from natgauge.records.comparison import ComparisonRecord
from natgauge.records.measurement import REPETITION, Result
from natgauge.records.parameters import Parameters, descriptions
from natgauge.records.store import Store
from natgauge.statistics.summary import summarize
from natgauge.stored.consistency import following

PLACE = {"placement": "shared", "lab_kind": "netns", "ring": None, "sender_cores": 1, "natgauge": "1", "kernel": "6.18"}
DEVICE = {"gateway": "x", "kind": "nat44", "version": ["x 1"]}
TRAFFIC = {"connections": 1000, "frame_size": 64, "frame_side": "initiator", "order": "permutation"}


def grouped(parameters: Mapping[str, Any]) -> Parameters:
    """Parameters by name, put into their groups; those of `PLACE`, `DEVICE` and `TRAFFIC` where they are not given."""
    common: dict[str, Any] = {**TRAFFIC, **PLACE, **DEVICE}
    assert set(common) <= set(descriptions())
    return Parameters.grouped(settings={**common, **parameters})


def in_turns(number: int) -> dict[str, Any]:
    """Parameters of so many repetitions, each in a lab of its own, that took turns with those of any such result."""
    return {"labs": number, "begun": [60.0 * one for one in range(number)]}


def _summary(given: float | Sequence[float]) -> dict[str, Any]:
    values = given if isinstance(given, Sequence) else [given]
    return asdict(summarize(values))


def _of_repetition(given: float | Sequence[float], number: int) -> float | None:
    """The figure of a repetition; one that is given once is that of the first."""
    every = given if isinstance(given, Sequence) else [given]
    return every[number] if number < len(every) else None


def made(
    values: Sequence[float] = (1.0,),
    *,
    median: float | None = None,
    series: Sequence[Sequence[Mapping[str, Any]]] = (),
    figures: Mapping[str, float | Sequence[float]] | None = None,
    parameters: Mapping[str, Any] | None = None,
    **changed: Any,
) -> Result:
    """A result with these repetitions; fields and parameters by name, figures by a value or by those of repetitions."""
    actual = summarize(values)
    document = {
        "schema": "natgauge-summary-7",
        "metric": "throughput",
        "unit": "frames/s",
        "median": actual.median if median is None else median,
        "p1": actual.p1,
        "p99": actual.p99,
        "minimum": actual.minimum,
        "maximum": actual.maximum,
        "mean": actual.mean,
        "standard_deviation": actual.standard_deviation,
        "median_interval": None,
        "error": None,
        "limited_by": "device",
        "doubts": [],
        "trials": {"PASS": 1},
        "disturbed": 0,
        "figures": {name: _summary(given) for name, given in (figures or {}).items()},
        "repetitions": [
            {
                "value": value,
                "upper": None,
                "error": None,
                "limited_by": changed.get("limited_by", "device"),
                "trials": {"PASS": int(number == 0)},
                "figures": {
                    name: own
                    for name, given in (figures or {}).items()
                    if (own := _of_repetition(given, number)) is not None
                },
                "series": list(series[number]) if number < len(series) else [],
            }
            for number, value in enumerate(values)
        ],
        "parameters": grouped(parameters or {}).model_dump(mode="json"),
        "notes": [],
        **changed,
    }
    result = Result.from_document(document)
    return result if "median_interval" in changed else with_interval(result)


def searched(values: Sequence[float], error: float, **changed: Any) -> Result:
    """A result of a search that went on until this was left above each value; all else as of `made`."""
    document = made(values, **changed).document()
    for one in document["repetitions"]:
        one |= {"upper": one["value"] + error, "error": error}
    return with_interval(Result.from_document({**document, "error": error}))


def of_every_metric() -> Mapping[str, Result]:
    """A result of each metric, in its unit, with the times that a tear-down has, by the name of the metric."""
    times = {"tear-down-rate": {"full_seconds": 0.25, "empty_seconds": 0.125}}
    return {
        name: made([800.0, 810.0, 820.0], metric=name, unit=metric.unit, figures=times.get(name))
        for name, metric in metrics().items()
    }


def delays(*values: float, metric: str = "latency", more: Any = None, doubts: Any = (), **parameters: Any) -> Result:
    """Delays with the figures that each real result has: the ends of the bucket of its percentile."""
    figures = {declared(metric).value_figure: list(values), "timed_frames": [1e5] * len(values), **(more or {})}
    for name, share in zip(declared(metric).sampled_between or (), (0.997, 1.003), strict=False):
        figures[name] = [value * share for value in values]
    return made(values, metric=metric, unit="us", figures=figures, doubts=list(doubts), parameters=parameters)


def with_interval(result: Result) -> Result:
    """The result with the interval that its repetitions and doubts give."""
    interval = median_interval_of(result.metric, result.repetitions, result.doubts)
    return result.model_copy(update={"median_interval": interval})


def doubted_for(word: str, parameters: Parameters) -> list[Note]:
    """Doubts of one word that two plain repetitions of a throughput have with these parameters."""
    measured = make_result("throughput", "frames/s", {}, [Measurement(1e6, None, "device", verdict_counts(()))] * 2)
    return [doubt for doubt in find(measured, parameters) if doubt.word == word]


def keep(store: Store, result: Result) -> None:
    """Write a result with all that follows from it, and its repetitions, of which each figure has one value."""
    for number, repetition in enumerate(result.repetitions, start=1):
        of_all = {"metric": result.metric, "unit": result.unit, "repetition": number}
        store.add_measurements([{**of_all, **REPETITION.dump_python(repetition, mode="json"), "samples": {}}])
    words = {doubt.word for doubt in result.doubts}
    more = [doubt for doubt in following(result) if doubt.word not in words]
    whole = with_interval(result.model_copy(update={"doubts": (*result.doubts, *more)}))
    store.write_summary(whole.model_copy(update={"threshold": judged(whole)}).document())


def kept(folder: Path, *records: Result | ComparisonRecord | AuditRecord) -> Path:
    """The folder, with a results folder for each of these."""
    folder.mkdir(parents=True, exist_ok=True)
    for record in records:
        match record:
            case Result():
                names = (record.metric, record.gateway.replace("/", "-"))
            case ComparisonRecord():
                names = ("compare", "nat")
            case AuditRecord():
                names = ("audit", record.gateway)
        _write(Store.create(folder, *names), record)
    return folder


def kept_as(folder: Path, record: Result | ComparisonRecord | AuditRecord) -> Path:
    """The results folder of this path, whose name may have no date, with this record and its plan."""
    folder.mkdir(parents=True)
    store = Store(folder)
    store.write_plan({})
    _write(store, record)
    return folder


def _write(store: Store, record: Result | ComparisonRecord | AuditRecord) -> None:
    match record:
        case Result():
            keep(store, record)
        case ComparisonRecord():
            store.write_comparison(record.document())
        case AuditRecord():
            store.write_audit(record.document())


def kept_trials(folder: Path, *trials: Mapping[str, Any]) -> Path:
    """The results folder, which exists, with these trials after those that it has."""
    store = Store(folder)
    for trial in trials:
        store.add_trial({name: value for name, value in trial.items() if name != "trial"})
    return folder
