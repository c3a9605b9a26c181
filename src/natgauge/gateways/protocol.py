# SPDX-License-Identifier: Apache-2.0
"""Interface of all that a device can run: the recipe of a gateway or of a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    # What may be asked is known without what reads recipes.
    from natgauge.gateways.processes import Process
    from natgauge.gateways.recipe_model import Emptying, GatewayLimits, Knobs, Module, RequiredPrograms, System, Verbs


class Playable(Protocol):
    """The parts of a recipe that its player asks for; see `natgauge.gateways.recipe.Recipe`."""

    @property
    def name(self) -> str:
        """Name of the recipe's file without ".toml"."""

    @property
    def origin(self) -> Path:
        """File that contained the recipe."""

    @property
    def stateful(self) -> bool:
        """Whether it keeps connections."""

    @property
    def system(self) -> System:
        """Operating system that its device must run."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables of its snippets in addition to those of the lab."""

    @property
    def needs(self) -> tuple[RequiredPrograms, ...]:
        """Programs that must be installed on the device."""

    @property
    def modules(self) -> tuple[Module, ...]:
        """Features that the kernel of its machine must have."""

    @property
    def limits(self) -> GatewayLimits:
        """Limits that no knob changes."""

    @property
    def process(self) -> tuple[Process, ...]:
        """Programs that run for as long as the gateway or server."""

    @property
    def verbs(self) -> Verbs:
        """Snippets that start, check and stop it."""

    @property
    def emptyings(self) -> Mapping[str, Emptying]:
        """Further ways of removing all connections, by name."""

    @property
    def knobs(self) -> Knobs:
        """Settings that can be changed."""
