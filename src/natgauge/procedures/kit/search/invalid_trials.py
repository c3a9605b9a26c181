# SPDX-License-Identifier: Apache-2.0
"""Number of repeats of a trial that gives no statement about the device.

An INVALID trial has a fault of the tester or its host: it is repeated, and never counts for or against the device.
Where stalls excuse the loss of most frames, the load may be what stalls the host, as where the device's own processes
take the core of a sender. A search then tries lower loads first, and this one again afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from natgauge.procedures.kit.result.frame_counts import deciding_counts, lost_of_due
from natgauge.trials import Trial
from natgauge.words import Verdict

#: A search tries many loads, and of a load above the tester's reach every trial is INVALID. A tester that was too slow
#: stays too slow, so the search gives that load up early and continues below it.
TESTER_REPEATS = 2
#: A search repeats a trial so often where disturbances excuse the loss of more than this share of its frames.
MOST_LOST_REPEATS: Final = 2
MOST_LOST: Final = 0.5


class Patience(NamedTuple):
    """The most repeats: after a disturbance or a failed phase 1, of a slow tester, and of an excused loss of most."""

    disturbed: int
    slow_tester: int
    most_lost: int

    def after(self, outcome: Trial) -> int:
        """The most repeats after this trial."""
        if outcome.limited_by == "tester":
            return self.slow_tester
        return self.most_lost if _lost_most(outcome) else self.disturbed

    def at_first(self) -> Patience:
        """The patience until other loads were tried."""
        return self._replace(most_lost=min(self.most_lost, MOST_LOST_REPEATS))


def in_search(invalid_repeats: int) -> Patience:
    """Return the patience where another load can be tried instead."""
    return Patience(invalid_repeats, min(invalid_repeats, TESTER_REPEATS), invalid_repeats)


def at_one_load(invalid_repeats: int) -> Patience:
    """Return the patience where this load needs an answer: all repeats that the user allows, whatever the cause."""
    return Patience(invalid_repeats, invalid_repeats, invalid_repeats)


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial and its repeats."""

    outcome: Trial
    trials: int
    decided: bool

    def sentence(self, meaning: str = "") -> str:
        """Return a sentence: all trials were INVALID, the consequence here, and the reason of the last trial."""
        return f"{self.trials} trials were INVALID{meaning}, the last one because of {self.outcome.reason}"


def is_valid(outcome: Trial) -> bool:
    """Whether a trial says something about the device."""
    return outcome.verdict is not Verdict.INVALID


def _lost_most(outcome: Trial) -> bool:
    """Whether a trial that disturbances excuse lost most of its frames."""
    return outcome.excused and lost_of_due(deciding_counts(outcome)) > MOST_LOST


def until_decided(
    trial: Callable[[], Trial], patience: Patience, decides: Callable[[Trial], bool] = is_valid, trials: int = 0
) -> Tried:
    """Run a trial, and again until one decides or the patience is at its end.

    `trials` of the same load were INVALID before.
    """
    while True:
        outcome = trial()
        trials += 1
        decided = decides(outcome)
        if decided or trials > patience.after(outcome):
            return Tried(outcome, trials, decided)
