# SPDX-License-Identifier: Apache-2.0
"""Steps of a search that starts at its expected end (see `rate_search`).

The search begins there and continues in steps that double. A failed trial shows the rate at which the device forwarded,
even where the load was far above it, so the search next tries loads a little below and above that rate. All of these
are ordinary trials: a wrong expectation costs some trials, and has no other effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from natgauge.inputs.measuring_types import SearchError
from natgauge.words import LimitedBy


class Status(Enum):
    """Outcome of the trials at a load."""

    UNKNOWN = "unknown"
    SHORT_PASS = "passed a short trial"
    PASS = "passed"
    FAIL = "failed"
    UNDECIDED = "only invalid trials"


@dataclass(slots=True)
class Load:
    """Decisions of the trials at one load.

    Attributes:
        put_off: INVALID trials after which lower loads are tried before this one is tried again; 0 = it is not put off.
    """

    rate: float
    passes: int = 0
    fails: int = 0
    short_passes: int = 0
    undecided: bool = False
    put_off: int = 0
    cause: LimitedBy = "device"
    doubt: str = ""
    forwarded: float | None = None
    lost: int = 0

    @property
    def decisions(self) -> int:
        """Number of full decisions; short passes do not count."""
        return self.passes + self.fails

    @property
    def status(self) -> Status:
        """The majority; a tie counts against the load."""
        if self.decisions:
            return Status.PASS if self.passes > self.fails else Status.FAIL
        if self.undecided or self.put_off:
            return Status.UNDECIDED
        return Status.SHORT_PASS if self.short_passes else Status.UNKNOWN


#: The first step away from where the search should end, as a share; no step is a larger factor than the last.
FIRST_STEP = 0.1
LARGEST_FACTOR = 2.0
#: From a step of this share on the expectation was wrong, and short trials will do.
FAR_OFF = 0.25
#: Distance of the next two loads from what a failed trial forwarded, in errors of the search: both become bounds.
DISTANCE = 0.4
#: Loads that are guessed from what failed trials forwarded; then the bounds are halved.
MOST_GUESSES = 6


class Bracket:
    """Steps and guesses of one search."""

    def __init__(self, start: float, error: SearchError) -> None:
        """Begin at `start`, in frames/s; `error` is the search's."""
        self.start = start
        self._error = error
        self._step = FIRST_STEP
        self._guesses = MOST_GUESSES
        self._failed = 0

    def above(self, lower: Load) -> tuple[float, bool]:
        """The next load where this one passed and none failed, and whether a short trial will do."""
        factor, short = self._stepped()
        return lower.rate * factor, short

    def below(self, upper: Load) -> tuple[float, bool]:
        """The next load where this one failed and none passed, and whether a short trial will do."""
        factor, short = self._stepped()
        guess = upper.rate / factor
        self._failed += 1
        if upper.forwarded is None:
            return guess, short
        distance = upper.forwarded - self._distance(upper)
        # A device that loses a frame now and then forwards nearly all at rates that are too high, too.
        return distance if self._failed == 1 else min(guess, distance), short

    def between(self, lower: float, upper: Load) -> float | None:
        """A load close to what the failed trial forwarded, nearer to the answer than the middle; None = halve."""
        if self._guesses == 0 or upper.forwarded is None:
            return None
        distance = self._distance(upper)
        for guess in (upper.forwarded - distance, upper.forwarded + distance):
            if lower + distance / 2 < guess < upper.rate - distance / 2:
                self._guesses -= 1
                return guess
        return None

    def _distance(self, upper: Load) -> float:
        return self._error.width(upper.rate if upper.forwarded is None else upper.forwarded) * DISTANCE

    def _stepped(self) -> tuple[float, bool]:
        step, self._step = self._step, 2 * self._step
        return min(1 + step, LARGEST_FACTOR), step >= FAR_OFF
