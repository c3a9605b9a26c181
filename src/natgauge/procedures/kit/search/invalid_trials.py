# SPDX-License-Identifier: Apache-2.0
"""Number of repeats of a trial that gives no statement about the device.

An INVALID trial has a fault of the tester or its host: it is repeated, and never counts for or against the device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from natgauge.trials import Trial
from natgauge.words import Verdict

#: A search tries many loads, and of a load above the tester's reach every trial is INVALID. A tester that was too slow
#: stays too slow, so the search gives that load up early and continues below it.
TESTER_REPEATS = 2


class Patience(NamedTuple):
    """The most repeats of one trial: after a disturbance or a failed phase 1, and where the tester was too slow."""

    disturbed: int
    slow_tester: int


def in_search(invalid_repeats: int) -> Patience:
    """Return the patience where another load can be tried instead."""
    return Patience(invalid_repeats, min(invalid_repeats, TESTER_REPEATS))


def at_one_load(invalid_repeats: int) -> Patience:
    """Return the patience where this load needs an answer: all repeats that the user allows, whatever the cause."""
    return Patience(invalid_repeats, invalid_repeats)


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


def until_decided(trial: Callable[[], Trial], patience: Patience, decides: Callable[[Trial], bool] = is_valid) -> Tried:
    """Run a trial, and again until one decides or the patience is at its end."""
    trials = 0
    while True:
        outcome = trial()
        trials += 1
        decided = decides(outcome)
        if decided or trials > (patience.slow_tester if outcome.limited_by == "tester" else patience.disturbed):
            return Tried(outcome, trials, decided)
