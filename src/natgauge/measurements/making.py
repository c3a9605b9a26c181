# SPDX-License-Identifier: Apache-2.0
"""From what a procedure measured to the result that is stored and shown, and its folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from natgauge.analysis.between_runs import judged
from natgauge.analysis.contrast import median_interval_of
from natgauge.analysis.own_work import limiting_device, log_work, own_work
from natgauge.analysis.unit_frames import frames_in_all, frames_of, most_frames, most_units, share_of_link
from natgauge.doubts import find
from natgauge.figure_text import in_percent, nanoseconds
from natgauge.figure_text import number as written
from natgauge.gateways.recipe import Recipe, as_played, digest
from natgauge.measurements.conditions import with_own_part
from natgauge.metrics.shared_figures import CORE_IMBALANCE
from natgauge.metrics.times import FORWARDING
from natgauge.notes import Note, NoteWord
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.records.measurement import REPETITION, SHARE_OF_LINK, STATISTICS, PublishedCell, Result
from natgauge.records.parameters import GROUPS, METHODS, RAISED_TIMEOUT, Parameters, joined
from natgauge.records.store import Store, plain
from natgauge.statistics.figure import FigureSummary
from natgauge.words import enumerated

#: Cores of a device over which frames can be spread.
_SEVERAL: Final = 2
#: End of the names of figures of the metric cost: work of plain forwarding for the same frames.
_FORWARDING: Final = f"_{FORWARDING}"


def make(
    measured: MeasurementResult,
    parameters: Parameters,
    folder: str | None = None,
    published: tuple[PublishedCell, ...] = (),
) -> Result:
    """Put a measurement and all that was set together; the procedure's own word about its settings goes before."""
    parameters = parameters.with_settings(measured.parameters)
    if measured.raised_timeout is not None:
        parameters = parameters.with_settings({RAISED_TIMEOUT: measured.raised_timeout})
    parameters = _with_link(measured, parameters)
    summary = measured.summary
    figures = measured.figures
    if (share := share_of_link(measured.metric, measured.values, parameters, figures)) is not None:
        figures[SHARE_OF_LINK] = share
    found = find(measured, parameters)
    result = Result(
        metric=measured.metric,
        unit=measured.unit,
        **{name: getattr(summary, name) for name in STATISTICS},
        median_interval=median_interval_of(measured.metric, measured.measurements, found),
        error=measured.error,
        limited_by=measured.limited_by,
        cause=measured.cause,
        doubts=found,
        trials=measured.trials,
        disturbed=measured.disturbed,
        figures=figures,
        repetitions=measured.measurements,
        parameters=parameters,
        notes=(
            *measured.notes,
            *_remarks(measured, parameters),
            *_unknown_core_work(measured, parameters),
            *chain_notes(measured.unit, figures, parameters),
        ),
        results=folder,
        published=published,
    )
    threshold = judged(result)
    return result if threshold is None else result.model_copy(update={"threshold": threshold})


def _remarks(measured: MeasurementResult, parameters: Parameters) -> Iterator[Note]:
    """Yield what follows from the parameters: of the method, the tester's own work, and what lab and device remark."""
    # How the figure follows from the RFC, for test frames that the RFC does not have.
    if (text := METHODS.get(str(parameters.get("transport")))) is not None:
        yield Note("method", text)
    rate = frames_in_all(measured.summary.median, measured.figures, parameters)
    work = own_work(measured.metric, rate, parameters)
    if work is not None:
        text = (
            f"placement shared: {nanoseconds(work.own_ns)} of {nanoseconds(work.whole_ns)} are the tester's own work, "
            f"{in_percent(work.share)}, so the rate is lower than the device's own"
        )
        yield Note("tester", text, value=work.share)
    if (text := log_work(parameters)) is not None:
        yield Note("device", text)
    words: tuple[tuple[str, NoteWord], ...] = (("port_remarks", "tester"), ("device_remarks", "device"))
    for name, word in words:
        remarks = parameters.get(name)
        yield from (Note(word, str(remark)) for remark in remarks) if isinstance(remarks, list) else ()


def _unknown_core_work(measured: MeasurementResult, parameters: Parameters) -> Iterator[Note]:
    """Yield the reason why the spread of the frames over the cores of a device with several is not known."""
    cores = parameters.get("device_cores")
    attempts = [attempt for measurement in measured.measurements for attempt in measurement.attempts]
    if not isinstance(cores, int) or cores < _SEVERAL or not attempts or CORE_IMBALANCE in measured.figures:
        return
    if any(attempt.outcome.readings.core_work for attempt in attempts):
        reason = "the deciding trials had too few frames"
    elif parameters.get("placement") == "shared":
        reason = "in shared placement each core forwards what the sender on the same core sends"
    elif parameters.get("lab_kind") == "wire":
        reason = "natgauge does not reach a device on a wire"
    else:
        reason = "the device's machine did not report its work"
    yield Note("device", f"the spread of the frames over the device's {cores} cores is not known: {reason}")


def _with_link(measured: MeasurementResult, parameters: Parameters) -> Parameters:
    """Add the most that the lab's links carry, if it has any: units of the value, or else frames/s; None = unknown."""
    if "link_speeds" not in parameters.place:
        return parameters
    of_units = bool(frames_of(measured.metric, parameters))
    most = most_units(measured.metric, parameters, measured.figures) if of_units else most_frames(parameters)
    return parameters.model_copy(update={"place": {**parameters.place, "theoretical_maximum": most}})


def of_repetitions(
    each: Sequence[Parameters], metric: str, conduct: Mapping[str, Any], own_part: Mapping[str, float]
) -> Parameters:
    """Return the parameters of a result, from those of each of its repetitions.

    `conduct` is the number of labs of the repetitions, and the seed and start time of each.
    """
    every = joined(each, metric)
    groups = {group: getattr(every, group) for group in GROUPS}
    return with_own_part(Parameters.grouped(**{**groups, "place": {**every.place, **plain(conduct)}}), own_part)


def write_conditions(
    store: Store,
    parameters: Parameters,
    recipe: Recipe,
    facts: Mapping[str, object],
    device: Mapping[str, Any] | None,
) -> None:
    """Write the parameters, the recipe, and the facts of the machine and the device."""
    store.write_plan(parameters.flat())
    store.write_recipe(as_played(recipe), digest(recipe))
    store.write_environment({"machine": facts, "device": device})


def keep(
    measured: MeasurementResult,
    parameters: Parameters,
    store: Store,
    folder: Path | None = None,
    published: tuple[PublishedCell, ...] = (),
) -> Result:
    """Make the result, and write it; `folder` is the final name of the folder, None = its present one."""
    result = make(measured, parameters, str(store.folder if folder is None else folder), published)
    lines = []
    for number, (repetition, made) in enumerate(zip(result.repetitions, measured.measurements, strict=True), start=1):
        of_all = {"metric": result.metric, "unit": result.unit, "repetition": number}
        # The summary has only what follows from these.
        more = {"samples": made.sample, "disturbed": made.disturbed}
        lines.append({**of_all, **REPETITION.dump_python(repetition, mode="json"), **more})
    store.add_measurements(lines)
    store.write_summary(result.document())
    return result


def chain_notes(unit: str, figures: Mapping[str, FigureSummary], parameters: Parameters) -> Iterator[Note]:
    """Yield notes on a chain of devices: whether they shared cores, and the device that limited the chain."""
    chain = parameters.get("chain")
    if not isinstance(chain, list):
        return
    names = [str(name) for name in chain]
    if unit.endswith("/s") and parameters.get("cores_of_devices") is None:
        rates = " + ".join(f"1/{name}" for name in names)
        text = (
            f"the devices {enumerated(names)} shared their cores: the rate is 1 / ({rates}), where a name is the rate "
            "of that device alone; of devices with cores of their own it is the smallest of these rates"
        )
        yield Note("device", text)
    hops = [
        f"{name.removesuffix(_FORWARDING).replace('_', ' ')} {nanoseconds(figure.median)}"
        for name, figure in figures.items()
        if name.endswith(_FORWARDING)
    ]
    if hops:
        text = (
            f"the cost is that of {len(names)} devices in a row ({enumerated(names)}), and each is a hop; the hop of "
            f"one device that only forwards takes {', '.join(hops)} a frame"
        )
        yield Note("device", text)
    if limit := limiting_device({name: figure.median for name, figure in figures.items()}):
        device, share = limit
        of = f"{written(share)} % of the frames lost in deciding trials"
        text = f"the bottleneck of the chain was {device}: it dropped {of}"
        yield Note("device", text, value=share)
