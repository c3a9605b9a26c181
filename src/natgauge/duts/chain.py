# SPDX-License-Identifier: Apache-2.0
"""One or more gateways between Initiator and Responder, played as one device: one holds the state, the others none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self

from natgauge.duts.device_settings import DeviceSettings
from natgauge.duts.gateway import Gateway
from natgauge.duts.limits import PlanFacts


class Chain:
    """Gateways from the Initiator to the Responder (a single one is a chain of one).

    Use it as a context manager: what was started is stopped in reverse order on leaving.

    Attributes:
        gateways: from the Initiator to the Responder.
        holder: the one whose table holds the connections.
    """

    def __init__(self, gateways: Sequence[Gateway], holder: int = 0) -> None:
        """Nothing is touched.

        Args:
            gateways: at least one.
            holder: index of the one that holds the state.
        """
        self.gateways = tuple(gateways)
        self.holder = self.gateways[holder]
        self._started = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._started.__exit__(*exception)  # type: ignore[arg-type] # handed on as it came

    def start(self, plan: PlanFacts) -> None:
        """Check every gateway against the plan, then start them all.

        Raises:
            BrokenError: one does not come up.
            HostError: a program is missing, memory is short or a global setting cannot be made.
            UsageError: a limit or time-out is too small for the plan.
        """
        for gateway in self.gateways:
            gateway.prepare(plan)
        for gateway in self.gateways:
            self._started.enter_context(gateway)
            gateway.start()

    def fit(self, plan: PlanFacts) -> None:
        """Set what is started for another plan.

        Raises:
            BrokenError: a device does not answer.
            HostError: memory is short or a global setting cannot be made.
            UsageError: a limit or time-out is too small for the plan.
        """
        for gateway in self.gateways:
            gateway.fit(plan)

    @property
    def empties(self) -> bool:
        """Whether it has connections to forget."""
        return self.holder.empties

    @property
    def counts(self) -> bool:
        """Whether it tells how many it has."""
        return self.holder.counts

    def empty(self) -> None:
        """Forget all connections, everywhere.

        Raises:
            BrokenError: connections are left.
        """
        for gateway in self.gateways:
            gateway.empty()

    def empty_timed(self) -> float:
        """Empty the table that holds the connections with one command; its seconds, as timed on the device.

        Raises:
            BrokenError: the command fails.
        """
        return self.holder.empty_timed()

    def count(self) -> int | None:
        """Connections in the table that holds them; None where the device cannot tell.

        Raises:
            BrokenError: the device does not tell.
        """
        return self.holder.count()

    def strays(self) -> dict[str, int]:
        """Connections held by gateways that must hold none, by the device's name; only where there are any.

        Raises:
            BrokenError: a device does not tell.
        """
        others = [gateway for gateway in self.gateways if gateway is not self.holder]
        return {gateway.device.name: count for gateway in others if (count := gateway.count())}

    def faults(self) -> dict[str, int]:
        """Frames refused so far, by the gateways' own names of causes; of several, after the device's name.

        Raises:
            BrokenError: a device does not tell.
        """
        if len(self.gateways) == 1:
            return self.holder.faults()
        return {
            f"{gateway.device.name} {cause}": number
            for gateway in self.gateways
            for cause, number in gateway.faults().items()
        }

    def confirm_standing(self) -> None:
        """See that every gateway still stands.

        Raises:
            BrokenError: one does not.
        """
        for gateway in self.gateways:
            gateway.confirm_standing()

    def restart(self) -> None:
        """Restart every gateway with the same settings.

        Raises:
            BrokenError: one does not come back.
        """
        for gateway in self.gateways:
            gateway.restart()

    def restart_under_load(self) -> None:
        """Stop and start the gateway that holds the state while frames flow (RFC 6201 section 4.2).

        Raises:
            BrokenError: it does not come back.
        """
        self.holder.restart_under_load()

    def settings(self) -> DeviceSettings:
        """What runs and how it is set, of the gateway that holds the state; the versions are those of all gateways.

        Raises:
            BrokenError: a device does not tell.
        """
        return replace(self.holder.settings(), version=self._versions())

    def _versions(self) -> tuple[str, ...]:
        """Lines of all gateways, each once, the holder's first; gateways of one recipe are of one version."""
        of_recipe: dict[str, tuple[str, ...]] = {}
        for gateway in (self.holder, *self.gateways):
            if gateway.recipe.name not in of_recipe:
                of_recipe[gateway.recipe.name] = gateway.version()
        return tuple(dict.fromkeys(line for lines in of_recipe.values() for line in lines))

    def as_dict(self) -> Mapping[str, Any]:
        """The settings of all gateways as JSON can hold them; of a single one, simply its own.

        Raises:
            BrokenError: a device does not tell.
        """
        own = self.holder.settings().as_dict()
        if len(self.gateways) == 1:
            return own
        return {**own, "chain": [gateway.settings().as_dict() for gateway in self.gateways]}
