# SPDX-License-Identifier: Apache-2.0
"""Progress of measurements. A terminal or a log that shows it implements `Observer`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from natgauge.agreement.generated import Progress
from natgauge.procedures.kit.events import Event
from natgauge.setup.setup import SilentStages, Stages


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
