# SPDX-License-Identifier: Apache-2.0
"""What is asked: a cell (one gateway, one place, one traffic) and a metric of it; one builder for whoever asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from natgauge import procedures
from natgauge.bench.traffic import RANGES, TrafficOptions
from natgauge.duts.fitness import Wishes
from natgauge.errors import UsageError
from natgauge.labs import kinds
from natgauge.options import Option, choice, options_of


@dataclass(frozen=True, kw_only=True, slots=True)
class CellOptions:
    """What the user may choose of a cell beside its traffic, its place and the device's knobs; None = chosen for him.

    Attributes:
        lab: kind of lab, see `natgauge.labs.kinds`.
        lab_name: the lab's; two runs at one time need two names.
        seed: of all pseudorandom choices, 0 to 2**64 - 1.
        grace_seconds: wait for the last frames of each phase, 0 to 60.
    """

    lab: str = field(default=kinds.DEFAULT, metadata=choice("Kind of lab", "KIND"))
    lab_name: str = field(
        default="default", metadata=choice("A lab kept up, or a new one; two runs at one time need two", "NAME")
    )
    seed: int | None = field(default=None, metadata=choice("Of all pseudorandom choices", "N", default="random"))
    grace_seconds: float | None = field(
        default=None,
        metadata=choice("Wait for the last frames", "S", default="the lab's: netns 0.3, wire and ssh 2; profile rfc 2"),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """What stands on a bench.

    Attributes:
        dut: a recipe's name, or the path of a recipe file.
        traffic: four tuples and frames.
        options: kind and name of the lab, seed, grace.
        place: the lab's own options, by name.
        wishes: knobs of the device.
        background: whether the device is to route native IPv6, too.
    """

    dut: str | Path
    traffic: TrafficOptions = field(default_factory=TrafficOptions)
    options: CellOptions = field(default_factory=CellOptions)
    place: Mapping[str, object] = field(default_factory=dict)
    wishes: Wishes = field(default_factory=Wishes)
    background: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What is to be measured.

    Attributes:
        metric: a procedure's name, for example "connection-rate".
        cell: of what.
        settings: the procedure's own, by name, for example {"error": "1%", "repeat": 10, "trial_seconds": 2.0}.
    """

    metric: str
    cell: Cell
    settings: Mapping[str, object] = field(default_factory=dict)


#: The groups of choices that every question has, by the field of `Cell` they go to.
GROUPS: Final[Mapping[str, type]] = {"traffic": TrafficOptions, "options": CellOptions, "wishes": Wishes}


def place_options() -> Mapping[str, tuple[Option, list[str]]]:
    """Every option of any kind of lab once, by name, with the kinds that have it."""
    found: dict[str, tuple[Option, list[str]]] = {}
    for name, kind in kinds.kinds().items():
        for option in options_of(kind.options):
            found.setdefault(option.name, (option, []))[1].append(name)
    return found


def ask(metric: str, dut: str | Path, choices: Mapping[str, object]) -> Question:
    """A question from names and values, as command line and Python API have them; None = not chosen.

    Args:
        metric: a procedure's name.
        dut: a recipe's name, or the path of a recipe file.
        choices: options of traffic, cell, lab and device; all others are settings of the metric.

    Raises:
        UsageError: the lab is unknown, or has no such option.
    """
    left = {name: value for name, value in choices.items() if value is not None}
    left = {**_own_traffic(metric, dut, left), **left}
    groups: dict[str, Any] = {}
    for group, options in GROUPS.items():
        names = [option.name for option in options_of(options) if option.name in left]
        groups[group] = options(**{name: left.pop(name) for name in names})
    place = {name: left.pop(name) for name in place_options() if name in left}
    _refuse_foreign(groups["options"].lab, place)
    background = left.get("foreground_share", 1.0) != 1.0
    return Question(metric=metric, cell=Cell(dut=dut, place=place, background=background, **groups), settings=left)


def _own_traffic(metric: str, dut: str | Path, chosen: Mapping[str, object]) -> dict[str, object]:
    """What the metric wants of the traffic.

    How many connections, only where the user named none of the ranges, and no port set decides how many there can be.

    Raises:
        UsageError: there is no such metric, or no such device.
    """
    # What may be asked is known without what reads recipes.
    from natgauge.duts.recipe import load  # noqa: PLC0415

    wanted = dict(procedures.get(metric).traffic)
    if wanted and (any(name in chosen for name in RANGES) or load(dut).port_sets is not None):
        wanted.pop("connections", None)
    return wanted


def _refuse_foreign(lab: str, place: Mapping[str, object]) -> None:
    """Refuse options that only other kinds of labs have."""
    own = {option.name for option in options_of(kinds.get(lab).options)}
    for name in place:
        if name not in own:
            others = ", ".join(place_options()[name][1])
            raise UsageError(
                f"{name.replace('_', ' ')}: lab {lab} has no such option, lab {others} has; leave it out, or choose "
                "another --lab"
            )
