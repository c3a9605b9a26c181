# SPDX-License-Identifier: Apache-2.0
"""Checks that a device has what its recipe requires, before the recipe changes anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pydantic import BaseModel

from natgauge.errors import HostError, UsageError
from natgauge.gateways.far_side import Playable
from natgauge.gateways.recipe_model import BASE_PACKAGE, RequiredPrograms, installing
from natgauge.gateways.toml_layers import RECIPE_FOLDER, absent
from natgauge.labs.contract import Device


def refuse_lacking(recipe: Playable, device: Device, works: Callable[[str], bool]) -> None:
    """Refuse a device that lacks what a recipe requires; `works` says whether a snippet succeeds there."""
    wanted, system = recipe.system, device.machine.system
    if system != wanted:
        raise HostError(
            f"{recipe.name}: is a gateway of {wanted}, and device {device.name} runs {system}; use --lab ssh with a "
            f"machine that runs {wanted}"
        )
    if not device.machine.has_tester_files and any(RECIPE_FOLDER in part for part in _parts(recipe)):
        raise HostError(
            f"{recipe.name}: names files by ${RECIPE_FOLDER}, a folder of this machine, and device {device.name} runs "
            "on another machine; copy the files to that machine and name them by absolute paths"
        )
    refuse_absent_files(recipe)
    for need in recipe.needs:
        for program in need.programs:
            if not works(f"command -v {program}"):
                raise HostError(
                    f'{recipe.name}: program "{program}" is missing on device {device.name}; {_mends(need, recipe)}'
                )
    for module in recipe.modules:
        if not works(module.check or f"modprobe {module.name}"):
            raise HostError(f"{recipe.name}: the kernel of device {device.name} has no {module.name}; {module.mends}")


def refuse_absent_files(recipe: Playable) -> None:
    """Refuse a recipe that names files by $NG_RECIPE_FOLDER that are not there, whichever device plays it."""
    if missing := absent(_parts(recipe), recipe.origin.parent):
        raise UsageError(f"{recipe.name}: names {missing[0]}, which is not there; write the name of a file there")


def _parts(recipe: Playable) -> list[str]:
    """The parts of a recipe that may name files."""
    parts = (recipe.environment, recipe.modules, recipe.process, recipe.verbs, recipe.emptyings, recipe.knobs)
    return [*_texts(parts)]


def _texts(part: object) -> Iterator[str]:
    """Yield every text in parts of a recipe, such as a snippet."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, BaseModel):
        yield from _texts(part.model_dump())
    elif isinstance(part, Mapping | tuple | list):
        for each in part.values() if isinstance(part, Mapping) else part:
            yield from _texts(each)


def _mends(need: RequiredPrograms, recipe: Playable) -> str:
    if need.package is None:
        return need.mends or ""
    if need.package == BASE_PACKAGE:
        return f"it is of the base system of {recipe.system}"
    return f"run: {installing([need.package])}"
