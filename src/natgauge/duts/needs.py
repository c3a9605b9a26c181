# SPDX-License-Identifier: Apache-2.0
"""Whether a device has what its recipe needs, before anything of it is played."""

from __future__ import annotations

from collections.abc import Callable

from natgauge.duts.protocol import Playable
from natgauge.duts.recipe_model import BASE_PACKAGE, RequiredPrograms, installing
from natgauge.errors import HostError
from natgauge.labs.contract import Device


def refuse_elsewhere(recipe: Playable, device: Device) -> None:
    """Refuse to play a recipe on another system than it is written for.

    Raises:
        HostError: the device's machine runs another one.
    """
    wanted, there = recipe.system, device.machine.system
    if there != wanted:
        raise HostError(
            f"{recipe.name}: is a gateway of {wanted}, and device {device.name} runs {there}; use --lab ssh with a "
            f"machine that runs {wanted}"
        )


def refuse_missing(recipe: Playable, device: Device, present: Callable[[str], bool]) -> None:
    """Refuse a device that lacks a program.

    Args:
        recipe: what is to be played.
        device: where.
        present: whether a program is there.

    Raises:
        HostError: one is missing; the message has what installs it.
    """
    for need in recipe.needs:
        for program in need.programs:
            if not present(program):
                raise HostError(
                    f'{recipe.name}: program "{program}" is missing on device {device.name}; {_mends(need, recipe)}'
                )


def refuse_modules(recipe: Playable, device: Device, works: Callable[[str], bool]) -> None:
    """Refuse a device whose kernel lacks something.

    Args:
        recipe: what is to be played.
        device: where.
        works: whether a snippet succeeds there.

    Raises:
        HostError: something is missing; the message has what mends it.
    """
    for module in recipe.modules:
        if not works(module.check or f"modprobe {module.name}"):
            raise HostError(f"{recipe.name}: the kernel of device {device.name} has no {module.name}; {module.mends}")


def _mends(need: RequiredPrograms, recipe: Playable) -> str:
    if need.package is None:
        return need.mends or ""
    if need.package == BASE_PACKAGE:
        return f"it is of the base system of {recipe.system}"
    return f"run: {installing([need.package])}"
