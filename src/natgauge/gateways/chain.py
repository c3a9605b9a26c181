# SPDX-License-Identifier: Apache-2.0
"""One or more gateways between Initiator and Responder, run as one device. One holds the state, the others none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self

from natgauge.gateways.device_settings import DeviceSettings
from natgauge.gateways.gateway import Gateway
from natgauge.gateways.limits import DeviceDemand
from natgauge.table_memory import ObjectCaches


class Chain:
    """Gateways from the Initiator to the Responder (a single one is a chain of one).

    Use it as a context manager: what was started is stopped in reverse order on leaving.
    """

    def __init__(self, gateways: Sequence[Gateway], holder: int = 0) -> None:
        """Nothing is touched."""
        self.gateways = tuple(gateways)
        self.holder = self.gateways[holder]
        self._started = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._started.__exit__(*exception)  # type: ignore[arg-type] # handed on as it came

    def start(self, demand: DeviceDemand) -> None:
        """Check every gateway against the demand, then start them all."""
        for gateway in self.gateways:
            gateway.prepare(demand)
        for gateway in self.gateways:
            self._started.enter_context(gateway)
            gateway.start()

    def fit(self, demand: DeviceDemand) -> None:
        """Set what is started for another demand."""
        for gateway in self.gateways:
            gateway.fit(demand)

    def outlive(self, seconds: float) -> int | None:
        """Raise the UDP time-out of the gateway that holds the state, as `Gateway.outlive` does."""
        return self.holder.outlive(seconds)

    @property
    def empties(self) -> bool:
        """Whether the device has connections to forget."""
        return self.holder.empties

    @property
    def counts(self) -> bool:
        """Whether the device reports its number of connections."""
        return self.holder.counts

    def empty(self) -> None:
        """Forget all connections, everywhere."""
        for gateway in self.gateways:
            gateway.empty()

    def empty_timed(self) -> float:
        """Empty the table that holds the connections with one command; its seconds, as timed on the device."""
        return self.holder.empty_timed()

    def count(self) -> int | None:
        """Return the number of connections in the table that holds them; None where the device cannot report it."""
        return self.holder.count()

    def count_established(self) -> int | None:
        """Return the number of open TCP connections in the table that holds them; None where it cannot be read."""
        return self.holder.count_established()

    def count_unexpired(self) -> int | None:
        """Return the number of connections in the table that holds them whose time is not over; None = not known."""
        return self.holder.count_unexpired()

    def lingering(self) -> dict[str, int]:
        """Return the seconds for which the table keeps a closed TCP connection, by the closing segment."""
        return self.holder.lingering()

    def replied_udp_timeout(self) -> int | None:
        """Return that of the gateway that holds the state, as `Gateway.replied_udp_timeout`."""
        return self.holder.replied_udp_timeout()

    def free_octets(self) -> int:
        """Return the available memory of the machine that holds the connections, in octets."""
        return self.holder.device.machine.free_octets()

    def strays(self) -> dict[str, int]:
        """Return the connections in gateways that must hold none, by the device's name; only where there are any."""
        others = [gateway for gateway in self.gateways if gateway is not self.holder]
        return {gateway.device.name: count for gateway in others if (count := gateway.count())}

    def faults(self) -> dict[str, int]:
        """Return the frames refused so far, by the gateway's own names of causes, with the device's name in a chain."""
        if len(self.gateways) == 1:
            return self.holder.faults()
        return {
            f"{gateway.device.name} {cause}": number
            for gateway in self.gateways
            for cause, number in gateway.faults().items()
        }

    def object_caches(self) -> ObjectCaches:
        """Return the object caches of the kernel of the machine that holds the table; empty where not known."""
        return self.holder.device.machine.object_caches()

    def found_changed(self) -> str:
        """Return which global setting of a gateway was changed by others since it was set; empty = none was."""
        return next(filter(None, (gateway.found_changed() for gateway in self.gateways)), "")

    def confirm_ready(self) -> None:
        """Check that every gateway is still ready."""
        for gateway in self.gateways:
            gateway.confirm_ready()

    def restart(self) -> None:
        """Restart every gateway with the same settings."""
        for gateway in self.gateways:
            gateway.restart()

    def restart_under_load(self) -> None:
        """Stop and start the gateway that holds the state while frames flow (RFC 6201 section 4.2)."""
        self.holder.restart_under_load()

    def settings(self) -> DeviceSettings:
        """Return programs and settings of the gateway that holds the state, with the versions of all gateways."""
        return replace(self.holder.settings(), version=self._versions())

    def _versions(self) -> tuple[str, ...]:
        """Lines of all gateways, each once, the holder's first; gateways of one recipe are of one version."""
        of_recipe: dict[str, tuple[str, ...]] = {}
        for gateway in (self.holder, *self.gateways):
            if gateway.recipe.name not in of_recipe:
                of_recipe[gateway.recipe.name] = gateway.version()
        return tuple(dict.fromkeys(line for lines in of_recipe.values() for line in lines))

    def as_dict(self) -> Mapping[str, Any]:
        """Return the settings of all gateways as plain values; for a single gateway, its own settings."""
        own = self.holder.settings().as_dict()
        if len(self.gateways) == 1:
            return own
        return {**own, "chain": [gateway.settings().as_dict() for gateway in self.gateways]}
