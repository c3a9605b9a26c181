# SPDX-License-Identifier: Apache-2.0
"""Questions: a cell (gateway, place, traffic) and a metric; built here for the command line, plans and Python."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from natgauge import procedures
from natgauge.inputs.input import Input
from natgauge.inputs.question import RANGES, USUAL_FRAMES, DeviceOptions, Question
from natgauge.inputs.types import Flag
from natgauge.setup.cell import CELL_PARTS, cell_of, inputs_of_lab, inputs_of_part
from natgauge.setup.traffic import chosen_sets, needs


def ask(metric: str, gateway: str | Path, choices: Mapping[str, object], *, like: str | Path | None = None) -> Question:
    """Make a question of names and values, as command line and Python API have them; None = not chosen.

    Args:
        metric: a procedure's name.
        gateway: a recipe's name, or the path of a recipe file.
        choices: options of traffic, cell, lab and device; all others are settings of the metric.
        like: gateway whose recipe names the traffic that nobody chose; None = this one.

    Raises:
        UsageError: the lab is unknown, or has no such option.
    """
    chosen = {name: value for name, value in choices.items() if value is not None}
    chosen = {**_of_rules(metric, like or gateway, chosen), **chosen}
    cell, left = cell_of(gateway, {**_own_traffic(metric, gateway, chosen), **chosen})
    procedure = procedures.get(metric)
    settings = _without_off(procedure.taken(left), {input_.name: input_ for input_ in procedure.own_inputs()})
    background = settings.get("foreground_share", 1.0) != 1.0
    return Question(metric=metric, cell=replace(cell, background=background), settings=MappingProxyType(settings))


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
    own = {*procedures.get(question.metric).declared.traffic, *_of_rules(question.metric, cell.gateway, {})}
    values = [each for each in values if each[1] != each[0].default or (each[0].name in own and each[1] is not None)]
    settings = procedures.get(question.metric).own_inputs()
    values += [(input_, question.settings[input_.name]) for input_ in settings if input_.name in question.settings]
    return [
        "--gateway",
        str(cell.gateway),
        *(word for input_, value in values for word in input_.given(value)),
    ]


def _of_rules(metric: str, gateway: str | Path, chosen: Mapping[str, object]) -> dict[str, object]:
    """Return the traffic that the gateway's rules accept, as its recipe names it, where neither user nor metric do."""
    # What may be asked is known without what reads recipes.
    from natgauge.gateways.recipe import load  # noqa: PLC0415

    procedure, recipe = procedures.get(metric), load(gateway)
    known = {**procedure.declared.traffic, **chosen}
    usual = {} if recipe.usual_transport == USUAL_FRAMES.transport else {"transport": recipe.usual_transport}
    transport = {**usual, **known, **procedure.settings.traffic_of(chosen)}.get("transport", USUAL_FRAMES.transport)
    ports = recipe.usual_ports(transport)
    found = {**usual, **({"destination_ports": ports} if ports else {})}
    return {name: value for name, value in found.items() if name not in known}


def _own_traffic(metric: str, gateway: str | Path, chosen: Mapping[str, object]) -> dict[str, object]:
    """Return the metric's own defaults of the traffic.

    The number of connections is among them only where the user chose no range and no port set is too small for them.
    """
    procedure = procedures.get(metric)
    wanted = dict(procedure.declared.traffic)
    if wanted and (
        any(name in chosen for name in RANGES) or not _sets_hold(wanted.get("connections"), gateway, chosen)
    ):
        wanted.pop("connections", None)
    return {**wanted, **procedure.settings.traffic_of(chosen)}


def _sets_hold(connections: object, gateway: str | Path, chosen: Mapping[str, object]) -> bool:
    """Whether the port sets of the device, if it has any, hold these connections towards one remote endpoint."""
    # What may be asked is known without what reads recipes.
    from natgauge.gateways.recipe import load  # noqa: PLC0415

    recipe = load(gateway)
    if recipe.port_sets is None or not isinstance(connections, int):
        return True
    of_device = {input_.name: input_ for input_ in inputs_of_part("device") if input_.name in chosen}
    sets = chosen_sets(recipe, DeviceOptions(**{name: key.take(chosen[name]) for name, key in of_device.items()}))
    subscribers = chosen.get("subscribers", 1)
    needed = connections if not isinstance(subscribers, int) else needs(connections, max(1, subscribers), 1)
    return sets is not None and not recipe.half and needed <= sets.ports


def _without_off(values: Mapping[str, Any], known: Mapping[str, Input]) -> dict[str, Any]:
    """Return the values without flags that are off by default and not set."""
    return {
        name: value
        for name, value in values.items()
        if value is not False or known[name].default is not False or not isinstance(known[name].type, Flag)
    }
