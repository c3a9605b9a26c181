# SPDX-License-Identifier: Apache-2.0
"""Protocols of the parts that the measurer uses: the lab, the device, a real server, who hears of progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from natgauge.agreement.generated import Progress
from natgauge.delays import Delays
from natgauge.labs.contract import Device, LabCounters, Port
from natgauge.procedures.kit.events import Event
from natgauge.setup.setup import SilentStages, Stages
from natgauge.table_memory import ObjectCaches
from natgauge.words import Placement


class Place(Protocol):
    """A lab, as far as the measurer uses it."""

    placement: Placement
    initiator: Port
    responder: Port
    devices: Sequence[Device]

    def counters(self) -> LabCounters:
        """Frames dropped so far, by place of the lab, and work so far of each core of the devices."""


class DeviceControl(Protocol):
    """Controls of a device, as far as the measurer uses them; what has a body need not be known."""

    @property
    def empties(self) -> bool:
        """Whether the device has connections that can be emptied."""

    @property
    def counts(self) -> bool:
        """Whether the device reports its number of connections."""

    def empty(self) -> None:
        """Empty the connection tracking table; BrokenError: it is not empty afterwards."""

    def empty_timed(self) -> float:
        """Empty the table with one command, and return the command's seconds, timed on the device."""

    def count(self) -> int | None:
        """Number of connections in the table; None where the device does not report it."""

    def count_established(self) -> int | None:
        """Number of open TCP connections in the table; None where the device does not report it."""
        return None

    def count_unexpired(self) -> int | None:
        """Number of connections whose time is not over; None where the device cannot distinguish them."""
        return None

    def lingering(self) -> Mapping[str, int]:
        """Seconds for which the device keeps a closed TCP connection, by "fin" or "rst"; empty where not known."""
        return {}

    def free_octets(self) -> int | None:
        """Octets of available memory of the device's machine; None where it is not known."""
        return None

    def strays(self) -> Mapping[str, int]:
        """Number of connections by name of the stateless part that holds them; only values above 0."""
        return {}

    def faults(self) -> Mapping[str, int]:
        """Number of frames that the device refused so far, by its own names of causes; empty where not reported."""
        return {}

    def outlive(self, seconds: float) -> int | None:
        """Raise the UDP time-out above `seconds`; return it in s, None where natgauge cannot or may not raise it."""
        del seconds
        return None

    def object_caches(self) -> ObjectCaches:
        """Object caches of the kernel that holds the table; empty where they are not known."""
        return {}

    def found_changed(self) -> str:
        """Global setting of the device's machine that others changed since it was set, in words; empty = none."""
        return ""

    def confirm_ready(self) -> None:
        """Check that the device is still running; BrokenError: it is not."""

    def restart(self) -> None:
        """Restart the device with the same settings; BrokenError: it does not become ready again."""

    def restart_under_load(self) -> None:
        """Stop and start the device while frames flow; BrokenError: it does not become ready again."""


class ServerControl(Protocol):
    """Controls of a real server behind the device."""

    name: str
    cpus: str

    @property
    def version(self) -> str:
        """Version that the server reports."""

    def refused(self) -> Mapping[str, int]:
        """Number of queries not answered as they should be so far, by cause."""

    def confirm_ready(self) -> None:
        """Check that the server is still running; BrokenError: it is not."""


class OwnDelays(Protocol):
    """A function that measures the tester's own delays."""

    def __call__(self, rate: float, seconds: float, *, batch: int, variation: bool) -> Delays:
        """Send at `rate` frames/s for `seconds`, up to `batch` frames together; `variation`: differences, too."""


class Observer(Stages, Protocol):
    """Receives progress. Its methods must return quickly and never raise."""

    def running(self, progress: Progress) -> None:
        """The engine reports the progress of the present trial."""

    def event(self, event: Event) -> None:
        """A trial of a procedure starts or has ended."""


class Silent(SilentStages):
    """Ignores all progress."""

    def running(self, progress: Progress) -> None:
        """Ignore the progress."""

    def event(self, event: Event) -> None:
        """Ignore the event."""


class Unread:
    """A recorder that discards trials. Neighbour devices use it, because their trials are not part of the result."""

    def add_trial(self, trial: Mapping[str, object]) -> None:
        """Discard the trial."""

    def add_round(self, comparison_round: Mapping[str, object]) -> None:
        """Discard the round."""
