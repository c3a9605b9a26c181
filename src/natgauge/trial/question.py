# SPDX-License-Identifier: Apache-2.0
"""Questions: a cell (gateway, place, traffic) and a metric; built here for the command line, plans and Python."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from natgauge import procedures
from natgauge.inputs import options
from natgauge.inputs.checks import wrong
from natgauge.inputs.input import Input, inputs_of
from natgauge.inputs.question import RANGES, Cell, DeviceOptions, LabOptions, Question, TrafficOptions
from natgauge.inputs.types import Flag
from natgauge.labs import kinds
from natgauge.setup.subscribers import needs
from natgauge.words import Group

#: The fields of `Cell` whose inputs every question has: their dataclass, and the group of their parameters.
CELL_PARTS: Final[Mapping[str, tuple[type, Group]]] = {
    "traffic": (TrafficOptions, "traffic"),
    "lab": (LabOptions, "place"),
    "device": (DeviceOptions, "device"),
}


def inputs_of_part(part: str) -> tuple[Input, ...]:
    """Return every input of a field of `Cell`, in order."""
    return inputs_of(*CELL_PARTS[part])


def place_inputs() -> Mapping[str, tuple[Input, list[str]]]:
    """Return every input of all kinds of labs by name, with the kinds that have it."""
    inputs: dict[str, tuple[Input, list[str]]] = {}
    for name in kinds.kinds():
        for input_ in inputs_of_lab(name):
            inputs.setdefault(input_.name, (input_, []))[1].append(name)
    return inputs


def inputs_of_lab(lab: str) -> tuple[Input, ...]:
    """Return every input of a kind of lab, in order.

    Raises:
        UsageError: there is no such kind.
    """
    return inputs_of(kinds.get(lab).options, "place")


def ask(metric: str, gateway: str | Path, choices: Mapping[str, object]) -> Question:
    """Make a question of names and values, as command line and Python API have them; None = not chosen.

    Args:
        metric: a procedure's name.
        gateway: a recipe's name, or the path of a recipe file.
        choices: options of traffic, cell, lab and device; all others are settings of the metric.

    Raises:
        UsageError: the lab is unknown, or has no such option.
    """
    chosen = {name: value for name, value in choices.items() if value is not None}
    cell, left = cell_of(gateway, {**_own_traffic(metric, gateway, chosen), **chosen})
    procedure = procedures.get(metric)
    settings = _without_off(procedure.taken(left), {input_.name: input_ for input_ in procedure.own_inputs()})
    background = settings.get("foreground_share", 1.0) != 1.0
    return Question(metric=metric, cell=replace(cell, background=background), settings=MappingProxyType(settings))


def cell_of(gateway: str | Path, choices: Mapping[str, object]) -> tuple[Cell, dict[str, object]]:
    """Make a cell of names and values; returns the choices that are none of a cell's, too.

    Args:
        gateway: a recipe's name, or the path of a recipe file.
        choices: options of traffic, lab and device, and others; None = not chosen.

    Raises:
        UsageError: the lab is unknown, or has no such option.
    """
    left = {name: value for name, value in choices.items() if value is not None}
    parts: dict[str, Any] = {}
    for part, (kind, _) in CELL_PARTS.items():
        parts[part] = kind(
            **{
                input_.name: input_.take(left.pop(input_.name))
                for input_ in inputs_of_part(part)
                if input_.name in left
            }
        )
    chosen = {name: left.pop(name) for name in place_inputs() if name in left}
    return Cell(gateway=gateway, kind_options=_of_kind(parts["lab"].lab, chosen), **parts), left


def command(question: Question) -> str:
    """Return the command line of the question."""
    return shlex.join(["natgauge", "measure", question.metric, *words(question)])


def words(question: Question) -> list[str]:
    """Return the words after `natgauge measure METRIC`: every input that was chosen, as an option."""
    cell = question.cell
    values: list[tuple[Input, Any]] = []
    for part in CELL_PARTS:
        chosen = getattr(cell, part)
        values += [(input_, getattr(chosen, input_.name)) for input_ in inputs_of_part(part)]
    if cell.kind_options is not None:
        values += [(input_, getattr(cell.kind_options, input_.name)) for input_ in inputs_of_lab(cell.lab.lab)]
    # A metric can have own defaults. A choice that equals the general default then still has to be in the command.
    own = procedures.get(question.metric).declared.traffic
    values = [each for each in values if each[1] != each[0].default or (each[0].name in own and each[1] is not None)]
    settings = procedures.get(question.metric).own_inputs()
    values += [(input_, question.settings[input_.name]) for input_ in settings if input_.name in question.settings]
    return [
        "--gateway",
        str(cell.gateway),
        *(word for input_, value in values for word in options.words(input_, value)),
    ]


def _own_traffic(metric: str, gateway: str | Path, chosen: Mapping[str, object]) -> dict[str, object]:
    """Return the metric's own defaults of the traffic.

    The number of connections is among them only where the user chose no range and no port set is too small for them.

    Raises:
        UsageError: there is no such metric, or no such device, or the user's port sets cannot be.
    """
    wanted = dict(procedures.get(metric).declared.traffic)
    if wanted and (
        any(name in chosen for name in RANGES) or not _sets_hold(wanted.get("connections"), gateway, chosen)
    ):
        wanted.pop("connections", None)
    return wanted


def _sets_hold(connections: object, gateway: str | Path, chosen: Mapping[str, object]) -> bool:
    """Whether the port sets of the device, if it has any, hold these connections towards one remote endpoint."""
    # What may be asked is known without what reads recipes.
    from natgauge.gateways.recipe import load  # noqa: PLC0415
    from natgauge.setup.psid import chosen_sets  # noqa: PLC0415

    recipe = load(gateway)
    if recipe.port_sets is None or not isinstance(connections, int):
        return True
    of_device = {input_.name: input_ for input_ in inputs_of_part("device") if input_.name in chosen}
    sets = chosen_sets(recipe, DeviceOptions(**{name: key.take(chosen[name]) for name, key in of_device.items()}))
    subscribers = chosen.get("subscribers", 1)
    needed = connections if not isinstance(subscribers, int) else needs(connections, max(1, subscribers), 1)
    return sets is not None and not recipe.half and needed <= sets.ports


def _of_kind(lab: str, chosen: Mapping[str, object]) -> object:
    """Return the options of a kind of lab; refuse options that only other kinds have."""
    own = {input_.name: input_ for input_ in inputs_of_lab(lab)}
    for name in chosen:
        if name not in own:
            others = ", ".join(place_inputs()[name][1])
            number = kinds.get(lab).cores_option if name == "cores" else ""
            leave = f"give --{number.replace('_', '-')} N" if number else "leave it out"
            raise wrong(name, f"lab {lab} has no such option, lab {others} has; {leave}, or choose another --lab")
    return kinds.get(lab).options(**{name: own[name].take(value) for name, value in chosen.items()})


def _without_off(values: Mapping[str, Any], known: Mapping[str, Input]) -> dict[str, Any]:
    """Return the values without flags that are off by default and not set."""
    return {
        name: value
        for name, value in values.items()
        if value is not False or known[name].default is not False or not isinstance(known[name].type, Flag)
    }
