# SPDX-License-Identifier: Apache-2.0
"""Queues of a port (its channels)."""

from __future__ import annotations

from collections.abc import Mapping

from natgauge.host.tuning.contract import TunedMachine
from natgauge.host.tuning.of_ports import OfPorts, from_words, in_words


class Queues(OfPorts):
    """Number of receive and transmit queues of a port."""

    name = "queues"
    why = "with fewer queues than cores some cores receive nothing and the others limit the tester"
    source = "Linux: networking/scaling, RSS configuration"
    absent = "its driver has no queues to choose"

    def better(self, machine: TunedMachine, key: str, value: str) -> str:
        """Return the number of cores, or the port's maximum where that is smaller."""
        channels = _channels(machine, key)
        if channels is None:
            return value
        most, now = channels
        cores = len(machine.cpus())
        return in_words({kind: min(cores, most[kind]) for kind in now})

    def read(self, machine: TunedMachine, key: str) -> str | None:
        """For example "combined 4", or "rx 1 tx 1"."""
        channels = _channels(machine, key)
        return None if channels is None else in_words(channels[1])

    def put(self, machine: TunedMachine, key: str, value: str) -> None:
        """Change their number; most drivers take the link down and up."""
        machine.set_port(key, "queues", from_words(value))


def _channels(machine: TunedMachine, port: str) -> tuple[Mapping[str, int], Mapping[str, int]] | None:
    """Maximum and present number of each kind that the port has; None = the driver has none to choose.

    The queues of a tap are those of the program that holds it.
    """
    if machine.text(f"/sys/class/net/{port}/tun_flags") is not None:
        return None
    most = {kind: int(number) for kind, number in machine.port_values(port, "most queues").items()}
    now = {kind: int(number) for kind, number in machine.port_values(port, "queues").items() if most.get(kind)}
    return (most, now) if now else None
