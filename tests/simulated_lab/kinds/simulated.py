# SPDX-License-Identifier: Apache-2.0
"""The kind `simulated`: natgauge finds it in `natgauge.labs` while `tests.simulated_lab.simulated` is entered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.simulated_lab.lab import SimulatedLab

from natgauge.inputs.input import chosen
from natgauge.labs.contract import Kind, LabNeeds
from natgauge.words import Placement


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatedOptions:
    """Options of a simulated lab."""

    placement: Placement = chosen("isolated", "Where the gateway works")


def plan(name: str, options: SimulatedOptions, need: LabNeeds) -> SimulatedLab:
    """A lab for any gateway with one device."""
    return SimulatedLab(name, options.placement, need)


KIND: Final = Kind("a simulated gateway of known truth", SimulatedOptions, plan, quick=True, shares_core=True)
