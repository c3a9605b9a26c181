# SPDX-License-Identifier: Apache-2.0
"""What the measurer needs of a lab, of a device that is ours, and of who measures the tester's own delays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from natgauge.labs.contract import Port
from natgauge.measurer import Delays
from natgauge.words import Placement


class Place(Protocol):
    """What the measurer needs of a lab."""

    placement: Placement
    initiator: Port
    responder: Port

    def dropped(self) -> Mapping[str, int]:
        """Frames dropped so far at places of the lab."""


class DeviceControl(Protocol):
    """What the measurer needs of a device that is ours."""

    @property
    def empties(self) -> bool:
        """Whether it has connections to forget."""

    @property
    def counts(self) -> bool:
        """Whether it tells how many it has."""

    def empty(self) -> None:
        """Empty the connection tracking table.

        Raises:
            BrokenError: it is not empty afterwards.
        """

    def empty_timed(self) -> float:
        """Empty the table with one command; its seconds, as timed on the device.

        Raises:
            BrokenError: the command fails.
        """

    def count(self) -> int | None:
        """Connections in the table; None where the device cannot tell."""

    def strays(self) -> Mapping[str, int]:
        """Connections at parts of the device that must hold none, by their names; only where there are any."""

    def faults(self) -> Mapping[str, int]:
        """Frames the device refused so far, by its own names of causes; empty when it cannot tell."""

    def confirm_standing(self) -> None:
        """See that the device still stands.

        Raises:
            BrokenError: it does not.
        """

    def restart(self) -> None:
        """Start the device anew with the same settings.

        Raises:
            BrokenError: it does not come back.
        """

    def restart_under_load(self) -> None:
        """Stop and start the device while frames flow.

        Raises:
            BrokenError: it does not come back.
        """


class ServerControl(Protocol):
    """What the measurer needs of a real server behind the device."""

    name: str
    cpus: str

    @property
    def version(self) -> str:
        """What it says of itself."""

    def refused(self) -> Mapping[str, int]:
        """Queries it did not answer as it should, so far, by cause."""

    def confirm_standing(self) -> None:
        """See that it still stands.

        Raises:
            BrokenError: it does not.
        """


class OwnDelays(Protocol):
    """Measures the tester's own delays."""

    def __call__(self, rate: float, seconds: float, *, variation: bool) -> Delays:
        """Send at this rate, in frames/s, for so long; with the differences between delays, or without.

        Raises:
            NatgaugeError: it could not be measured.
        """
