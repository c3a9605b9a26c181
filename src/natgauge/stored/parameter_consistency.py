# SPDX-License-Identifier: Apache-2.0
"""Whether the parameters of a record can be those of its metric: known names, and values that the inputs accept.

An edit that changes all files of a folder alike leaves no two values that differ. It still has to name a metric that
exists, in that metric's unit, with settings and figures that this metric has, and with values that a user could choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from natgauge import procedures
from natgauge.errors import UsageError
from natgauge.inputs.checks import spoken
from natgauge.inputs.input import Input, inputs_of
from natgauge.inputs.question import DeviceOptions, LabOptions, TrafficOptions
from natgauge.labs import kinds
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters, differing, is_fact
from natgauge.stored.contradiction import ContradictionError, expect

#: A setting of all procedures (`TrialSettings.far_side`), which only one lets the user choose.
_OF_ALL: Final = frozenset({"far_side"})
_REMEDY: Final = "the folder was edited or damaged; leave it out, or measure again"


def check_metric(result: Result, where: Path) -> None:
    """Check that unit, settings and figures of a result are those of its metric."""
    procedure = procedures.procedures().get(result.metric)
    if procedure is None:
        raise UsageError(f"results: {where}: metric {result.metric!r} is unknown; {_REMEDY}")
    expect("unit", result.unit, procedure.unit, f"the metric {result.metric} has", where)
    own = {input_.parameter for input_ in _inputs(result.parameter("lab_kind"), result.metric)}
    others = {input_.parameter for each in procedures.procedures().values() for input_ in each.inputs()}
    for name in result.parameters.settings:
        if name in others - own - _OF_ALL and not is_fact(name):
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
    own: Iterable[Input] = () if known is None else known.inputs()
    yield from own
