# SPDX-License-Identifier: Apache-2.0
"""The plain binary search of RFC 2544 and RFC 9693, for testers that do only the elementary trial themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trial:
    """One elementary trial.

    Attributes:
        load: frames/s, connections/s or connections.
        sent: frames that the tester says it sent.
        received: frames that the tester says arrived.
        valid: whether the tester accepts its own trial; a trial that it rejects counts as failed.
        connections: connections in the gateway's table afterwards.
        refused: frames that the gateway's limits dropped, in all directions; other missing frames never reached the
            gateway, or were lost at the tester's ports, or found the table full.
        rate: frames/s at which the tester says it sent; None if it keeps to `load` or rejects the trial.
    """

    load: int
    sent: int
    received: int
    valid: bool
    connections: int
    refused: int
    rate: float | None = None

    @property
    def passed(self) -> bool:
        """Whether every frame arrived, in a trial that the tester accepts."""
        return self.valid and self.received >= self.sent


@dataclass(frozen=True, slots=True)
class Range:
    """Where and how a search looks.

    Attributes:
        lower: a load that counts as passed without a trial.
        upper: a load that counts as failed without a trial.
        error: the search ends when the bounds are no further apart.
        tries: a trial that its tester rejects is repeated until it has been run so often; the last one counts.
    """

    lower: int
    upper: int
    error: int
    tries: int


def highest(trial: Callable[[int], Trial], within: Range) -> tuple[int, list[Trial]]:
    """Return the highest load that passed, and all trials; `trial` runs one with a load."""
    lower, upper = within.lower, within.upper
    trials = []
    while upper - lower > within.error:
        load = (lower + upper) // 2
        for _ in range(within.tries):
            trials.append(trial(load))
            if trials[-1].valid:
                break
        if trials[-1].passed:
            lower = load
        else:
            upper = load
    return lower, trials
