# SPDX-License-Identifier: Apache-2.0
"""A cell (gateway, place, traffic) of names and values, as command line, plans and Python have them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from natgauge.inputs.input import Input, inputs_of, wrong
from natgauge.inputs.question import Cell, DeviceOptions, LabOptions, TrafficOptions
from natgauge.labs import kinds
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
    """Return every input of a kind of lab, in order."""
    return inputs_of(kinds.get(lab).options, "place")


def cell_of(gateway: str | Path, choices: Mapping[str, object]) -> tuple[Cell, dict[str, object]]:
    """Make a cell of names and values (None = not chosen); returns the choices that are none of a cell's, too."""
    left = {name: value for name, value in choices.items() if value is not None}
    parts: dict[str, Any] = {}
    for part, (kind, _) in CELL_PARTS.items():
        known = [input_ for input_ in inputs_of_part(part) if input_.name in left]
        parts[part] = kind(**{input_.name: input_.take(left.pop(input_.name)) for input_ in known})
    chosen = {name: left.pop(name) for name in place_inputs() if name in left}
    return Cell(gateway=gateway, kind_options=_of_kind(parts["lab"].lab, chosen), **parts), left


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
