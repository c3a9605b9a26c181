# SPDX-License-Identifier: Apache-2.0
"""The cells of a plan: one device at one point of the series each, with the metrics to measure there."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from natgauge import procedures
from natgauge.campaigns.plan import (
    FORMULA_KEYS,
    KEYS_OF_MEASURE,
    KEYS_OF_POINT,
    OF_WHOLE_PLAN,
    PLAN_PARTS,
    Plan,
    PlanError,
    as_name,
    at_path,
    evaluate,
    is_of,
    keys_of_cell,
    keys_of_metric,
    keys_of_place,
    point_name,
    with_cores,
)
from natgauge.errors import UsageError
from natgauge.gateways.recipe import Recipe, load
from natgauge.inputs.input import spoken
from natgauge.inputs.question import Cell, Question
from natgauge.measurer import Ability
from natgauge.metrics.metric import USUAL_TURN
from natgauge.procedures.kit.settings import Repeat, TrialSettings
from natgauge.records.measurement import PublishedCell
from natgauge.records.store import MAKING, result_name
from natgauge.trial.bench import Bench
from natgauge.trial.planned import Planned, frames_of_profile, refuse_unlike_metric
from natgauge.trial.question import ask

#: More cells than anybody can measure: such a plan is a mistake.
MOST_CELLS: Final = 10_000
#: Characters of a folder's name, which are octets here: the most that file systems of Linux take.
_LONGEST_NAME: Final = 255
#: Abilities of metrics that empty or restart the device or wait for expiry. They come late in a cell run, because of
#: what they leave behind.
_LATE: Final = frozenset({Ability.EMPTY_TIMED, Ability.WATCH_COUNT, Ability.RESTART_IN_TRIAL})


class _Measured(NamedTuple):
    """A measurement as the plan has it, with its number there, from 0."""

    title: str
    metric: str
    settings: dict[str, Any]
    number: int
    published: tuple[PublishedCell, ...]


@dataclass(frozen=True, slots=True)
class CellMeasurement:
    """One measurement of a cell; `name` is unique there: the metric, and its values of the series if there are any."""

    name: str
    settings: Mapping[str, Any]
    planned: Planned
    published: tuple[PublishedCell, ...] = ()

    @property
    def metric(self) -> str:
        """Name of the metric."""
        return self.planned.procedure.metric

    @property
    def repeat(self) -> Repeat:
        """Requested number of repetitions, or "auto"."""
        return self.planned.settings.repeat

    @property
    def most_repetitions(self) -> int:
        """Number of repetitions, with "auto" the largest."""
        return self.planned.settings.most_repetitions


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """One cell, planned; its measurements are in the order in which they are run."""

    name: str
    device: str
    values: Mapping[str, Any]
    cell: Cell
    recipe: Recipe
    connections: int
    measurements: tuple[CellMeasurement, ...]

    @property
    def one_device(self) -> tuple[str, Mapping[str, Any]]:
        """What cells of one and the same device have in common: its name, and what chooses its machine."""
        return self.device, {name: value for name, value in self.values.items() if name in keys_of_place()}


def points(plan: Plan, where: str = "plan") -> tuple[PlannedCell, ...]:
    """Plan every cell for the cores that this process may use, and refuse what can be refused before measuring.

    Nothing is touched.
    """
    series = {name: several for name, several in plan.series.items() if name in keys_of_cell()}
    number = len(plan.gateways) * max(1, len(plan.point))
    for several in series.values():
        number *= len(several)
    if number > MOST_CELLS:
        raise PlanError(where, [f"series: {number} cells are more than {MOST_CELLS}; give shorter lists"])
    # Each cell looks at the recipes of all others' devices, too: they are read once for all cells.
    known = cache(_known)
    faults: dict[str, list[str]] = {}
    planned = []
    for device, together, *chosen in itertools.product(plan.gateways, plan.point or [{}], *series.values()):
        values = dict(zip(series, chosen, strict=True))
        parts = (point_name(together), *(f"{key}-{value}" for key, value in values.items()))
        name = as_name([Path(device).name.removesuffix(".toml"), *parts]).strip("-")
        cell = _point(plan, name, device, together, values, known=known)
        if isinstance(cell, PlannedCell):
            planned.append(cell)
        else:
            for fault in cell:
                faults.setdefault(fault, []).append(name)
    if faults:
        raise PlanError(where, [f"{fault}{_in(names, number)}" for fault, names in faults.items()])
    twice = [name for name, count in Counter(point.name for point in planned).items() if count > 1]
    if twice:
        raise PlanError(where, [f"gateways: two cells would be called {twice[0]}; rename a recipe"])
    if unfit := [*_unfit_folders(planned), *_never_taken(planned)]:
        raise PlanError(where, unfit)
    return tuple(planned)


def _never_taken(planned: Sequence[PlannedCell]) -> Iterator[str]:
    """Yield settings that nothing takes in any cell: those of a series may have an effect in some of them."""
    whys: dict[tuple[str, str], str] = {}
    for each in (measurement for cell in planned for measurement in cell.measurements):
        for name, value in each.settings.items():
            if value is not None:
                why, key = each.planned.settings.unused.get(name, ""), (each.metric, name)
                whys[key] = why if whys.get(key, why) else ""
    for (metric, name), why in whys.items():
        if why:
            yield f"measure: {spoken(name)} has no effect on {metric}, because {why}; leave it out"


def _unfit_folders(planned: Sequence[PlannedCell]) -> Iterator[str]:
    """Yield results that would be in the folder of other ones, or in one whose name is too long."""
    results: dict[str, str] = {}
    for cell in planned:
        for measurement in cell.measurements:
            folder, own = result_name(cell.name, measurement.name), f"{measurement.name} of cell {cell.name}"
            if (other := results.setdefault(folder, own)) != own:
                yield f"gateways: {other} and {own} would have one folder, {folder}; rename a recipe or a point"
            if (longest := len(f"{MAKING}{folder}")) > _LONGEST_NAME:
                yield (
                    f"point.name: {own}: the name of its folder would have {longest} characters, more than "
                    f"{_LONGEST_NAME}; write long values as points with names"
                )


def _in(names: Sequence[str], number: int) -> str:
    if len(names) == number:
        return ""
    return f" (cell {names[0]})" if len(names) == 1 else f" (cell {names[0]} and {len(names) - 1} more)"


def _keys(point: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a `[[point]]` that are part of the cell."""
    return {name: value for name, value in point.items() if name not in KEYS_OF_POINT}


def _point(  # noqa: PLR0913 - a cell of three loops, and what all cells share
    plan: Plan,
    name: str,
    device: str,
    together: Mapping[str, Any],
    series: Mapping[str, Any],
    *,
    known: Callable[[str], Recipe | None],
) -> PlannedCell | tuple[str, ...]:
    """Plan a cell, or return its faults, each with the path of its key."""
    values = {**_keys(together), **series}
    written = {**plan.lab, **plan.traffic, **plan.device, **values, "seed": plan.seed}
    choices = plan.placed(written, keys_of_cell())
    measurements = list(_measurements_of(plan, device, together))
    if not measurements:
        # All are wrong, and were told (`PlanError.rest`).
        return ()
    shares = [share for each in measurements if (share := each.settings.get("foreground_share", 1.0)) != 1.0]
    shared = {"foreground_share": shares[0]} if shares else {}
    metric, first = measurements[0].metric, measurements[0].settings
    deciding: dict[str, Any] = {}
    try:
        # A subscriber's frames follow from its profile, and a cell has the same frames for all its measurements.
        own = [procedures.get(each.metric).settings.traffic_of(each.settings) for each in measurements]
        if any(frames != own[0] for frames in own):
            alone = next(each for each, frames in zip(measurements, own, strict=True) if frames)
            why = "its frames follow from its profile, and other measurements of the cell have others"
            return (f"measure[{alone.number}]: {alone.metric}: {why}; give it a plan of its own",)
        deciding |= first if own[0] else {}
        cell = ask(metric, device, {**_evaluated(plan, device, metric, {**choices, **deciding}, known), **shared}).cell
        # What a metric has no use for is refused before its value, which may be none of this gateway either.
        if faults := _faults(plan, values, measurements, partial(_refuse_unlike, cell)):
            return faults
        with frames_of_profile(Question(metric=metric, cell=cell, settings=first)):
            bench = Bench(cell)
    except UsageError as error:
        of = measurements[0].number if error.at in deciding else None
        path = _path(error.at, plan, values, of) or f"gateways[{plan.gateways.index(device)}]: "
        return (at_path(path, error),)
    planned: list[CellMeasurement] = []
    varied = bool(plan.series) or len(plan.point) > 1

    def plan_one(measurement: _Measured) -> None:
        title, metric, settings, _, published = measurement
        planned.append(CellMeasurement(title, settings, bench.plan(metric, settings, varied=varied), published))

    if faults := _faults(plan, values, measurements, plan_one):
        return faults
    return PlannedCell(
        name=name,
        device=bench.recipe.name,
        values=values,
        cell=cell,
        recipe=bench.recipe,
        connections=bench.traffic.connections,
        measurements=tuple(sorted(planned, key=_rank)),
    )


def _faults(
    plan: Plan, values: Mapping[str, Any], measurements: Sequence[_Measured], check: Callable[[_Measured], object]
) -> tuple[str, ...]:
    """Return the faults that a check finds in measurements, each with the path of its key."""
    faults = []
    for measurement in measurements:
        try:
            check(measurement)
        except UsageError as error:
            faults.append(at_path(_path(error.at, plan, values, measurement.number), error))
    return tuple(faults)


def _refuse_unlike(cell: Cell, measurement: _Measured) -> None:
    refuse_unlike_metric(Question(metric=measurement.metric, cell=cell, settings=measurement.settings))


def _evaluated(
    plan: Plan, device: str, metric: str, choices: Mapping[str, Any], known: Callable[[str], Recipe | None]
) -> dict[str, Any]:
    """The options with the values of their formulas, and with numbers of cores replaced by the options of the lab."""
    choices = with_cores(choices)
    recipe = load(device)
    # A device without a knob that another device of the plan has is measured with its own value.
    shared = {*plan.lab, *plan.device, *(name for point in plan.point for name in point)}
    missing = {name for name in shared if not _has(recipe, name)}
    others = [known(each) for each in plan.gateways if missing and each != device]
    spared = {name for name in missing if any(other is not None and _has(other, name) for other in others)}
    formulas = {name: text for name, text in choices.items() if name in FORMULA_KEYS and isinstance(text, str)}
    plainly = {name: value for name, value in choices.items() if name not in {*formulas, *spared}}
    if formulas.keys() <= spared:
        return plainly
    question = ask(metric, device, plainly)
    with frames_of_profile(question):
        connections = Bench(question.cell).traffic.connections
    return plainly | {name: evaluate(text, connections) for name, text in formulas.items() if name not in spared}


def _known(device: str) -> Recipe | None:
    """The recipe of another device of the plan; None = it is unknown, which is a fault in its own cells."""
    try:
        return load(device)
    except UsageError:
        return None


def _has(recipe: Recipe, name: str) -> bool:
    if name == "emptying":
        return recipe.stateful
    if name in ("logging", "log_tolerance"):
        return bool(recipe.logging)
    if name in ("psid_length", "psid_offset"):
        return recipe.port_sets is not None and not recipe.port_sets.fixed
    if name == "nat64_prefix":
        return recipe.embeds
    knob = recipe.knobs.named().get(name)
    return knob is not None and knob.settable


def _measurements_of(plan: Plan, device: str, together: Mapping[str, Any]) -> Iterator[_Measured]:
    """Each measurement; a series makes several."""
    titles: Counter[str] = Counter()
    repetitions = together.get("repetitions", plan.repetitions)
    for number, measure in enumerate(plan.measure):
        metric = measure["metric"]
        if not (is_of(measure, "gateways", device) and is_of(measure, "points", together.get("name"))):
            continue
        known = keys_of_metric(metric)
        of_plan = {"profile": plan.profile, "repeat": repetitions}
        fixed = {name: value for name, value in of_plan.items() if value is not None and name in known}
        fixed |= {name: value for name, value in measure.items() if name not in KEYS_OF_MEASURE}
        own = {key: values for key, values in plan.series.items() if key in known and key not in keys_of_cell()}
        for chosen in itertools.product(*own.values()):
            values = dict(zip(own, chosen, strict=True))
            title = as_name([metric, *(f"{key}-{value}" for key, value in values.items())])
            titles[title] += 1
            if titles[title] > 1:
                title = f"{title}-{titles[title]}"
            settings = plan.placed({**fixed, **values}, known)
            yield _Measured(title, metric, settings, number, _published(plan, measure, together))


def _published(plan: Plan, measure: Mapping[str, Any], together: Mapping[str, Any]) -> tuple[PublishedCell, ...]:
    """The cells of a published table that a measurement is for; its own columns go before those of the point."""
    columns = measure.get("columns", together.get("columns", ()))
    return tuple(
        PublishedCell(table=plan.published or "", column=column, quantity=quantity)
        for column in columns
        for quantity in measure.get("quantities", ())
    )


def _path(name: str, plan: Plan, values: Mapping[str, Any], measure: int | None) -> str:
    """The path of the key of an input in the plan, as far as it can be known; empty `name` = of no single input.

    `measure` is the number of the measurement that the input is for; None = it is for all of a cell.
    """
    if name in plan.series and name in values:
        return f"series.{name}[{plan.series[name].index(values[name])}]: "
    for number, point in enumerate(plan.point):
        if name in point and _keys(point).items() <= values.items():
            return f"point[{number}].{name}: "
    for part in PLAN_PARTS:
        if name in getattr(plan, part):
            return f"{part}.{name}: "
    if name in plan.series:
        return f"series.{name}: "
    own = name in plan.measure[measure or 0]
    if name in OF_WHOLE_PLAN and not own:
        return f"{OF_WHOLE_PLAN[name]}: "
    return "" if measure is None else f"measure[{measure}]{f'.{name}' * own}: "


def _rank(measurement: CellMeasurement) -> int:
    """Position in a cell run: each metric after those it builds on; metrics that may end the device last (RFC 9693)."""
    settings: TrialSettings = measurement.planned.settings
    turn = measurement.planned.procedure.declared.turn
    if turn < USUAL_TURN:
        return turn
    if settings.fills_table:
        return USUAL_TURN + 2
    return USUAL_TURN + 1 if settings.needs() & _LATE else turn


def lacks_rate(measurement: CellMeasurement) -> bool:
    """Whether a measurement has use for a connection rate, and the plan leaves it open."""
    planned = measurement.planned
    names = {item.name for item in dataclasses.fields(planned.settings)}
    return "connection_rate" in names - planned.settings.unused.keys() - planned.chosen.keys()
