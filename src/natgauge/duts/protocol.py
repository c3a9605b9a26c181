# SPDX-License-Identifier: Apache-2.0
"""What can be played on a device: a gateway's recipe, or a server's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    # What may be asked is known without what reads recipes.
    from natgauge.duts.processes import Process
    from natgauge.duts.recipe_model import GatewayLimits, Knobs, Module, RequiredPrograms, System, Verbs


class Playable(Protocol):
    """The parts of a recipe that its player asks for; see `natgauge.duts.recipe.Recipe`."""

    @property
    def name(self) -> str:
        """Its file's name without ".toml"."""

    @property
    def stateful(self) -> bool:
        """Whether it keeps connections."""

    @property
    def system(self) -> System:
        """What its device must run."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables that its snippets see in addition to those of the lab."""

    @property
    def needs(self) -> tuple[RequiredPrograms, ...]:
        """What must be installed on the device."""

    @property
    def modules(self) -> tuple[Module, ...]:
        """What its machine's kernel must have."""

    @property
    def limits(self) -> GatewayLimits:
        """What no knob changes."""

    @property
    def process(self) -> tuple[Process, ...]:
        """Programs that run as long as it stands."""

    @property
    def verbs(self) -> Verbs:
        """How it is played."""

    @property
    def knobs(self) -> Knobs:
        """What can be set."""
