# SPDX-License-Identifier: Apache-2.0
"""What a lab gives: two tester ports, a chain of devices between them, and a way to run a snippet on each device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from natgauge.words import Placement


@dataclass(frozen=True, slots=True)
class Port:
    """One tester port.

    Attributes:
        interface: name inside `netns`.
        netns: name of the network namespace that holds it; None = the caller's own.
        gateway_mac: where frames are sent, "02:..."; None = the engine resolves `gateway_address` itself.
        gateway_address: the device's address on this side.
    """

    interface: str
    netns: str | None
    gateway_mac: str | None
    gateway_address: str | None


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a snippet left: exit status, text of both streams, wall seconds on the device."""

    status: int
    stdout: str
    stderr: str
    seconds: float


class Device(Protocol):
    """One device of the chain.

    Attributes:
        inside: interface towards the Initiator.
        outside: interface towards the Responder.
        environment: the variables every snippet sees (see docs/gateways.md).
    """

    name: str
    inside: str
    outside: str
    environment: Mapping[str, str]

    def run(
        self, snippet: str, *, environment: Mapping[str, str] | None = None, timeout: float = 60.0
    ) -> CommandResult:
        """Run a POSIX shell snippet on the device (in its namespace, as root).

        Raises:
            BrokenError: it did not end within `timeout` seconds (it is killed then).
        """


class Lab(Protocol):
    """A place. Use it as a context manager: everything made is undone in reverse order on leaving."""

    name: str
    placement: Placement
    initiator: Port
    responder: Port
    devices: Sequence[Device]

    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

    def dropped(self) -> Mapping[str, int]:
        """Frames dropped so far at places of the lab, by a readable name (a device's card ring, a tester's port)."""
