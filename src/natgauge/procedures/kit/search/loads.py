# SPDX-License-Identifier: Apache-2.0
"""What a search knows of one load: how often it passed and failed, and what that comes to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """What is known of a load."""

    UNKNOWN = "unknown"
    SHORT_PASS = "passed a short trial"
    PASS = "passed"
    FAIL = "failed"
    UNDECIDED = "only invalid trials"


@dataclass(slots=True)
class Load:
    """Decisions about one load."""

    rate: float
    passes: int = 0
    fails: int = 0
    short_passes: int = 0
    undecided: bool = False
    cause: str = "device"
    doubt: str = ""
    forwarded: float | None = None

    @property
    def decisions(self) -> int:
        """Decisions that bind."""
        return self.passes + self.fails

    @property
    def status(self) -> Status:
        """The majority; a tie counts against the load."""
        if self.decisions:
            return Status.PASS if self.passes > self.fails else Status.FAIL
        if self.undecided:
            return Status.UNDECIDED
        return Status.SHORT_PASS if self.short_passes else Status.UNKNOWN
