# SPDX-License-Identifier: Apache-2.0
"""Validation of connections (RFC 9693 section 4.6): phase 2 asks every stored connection once, from the Responder.

One trial: the table is empty, the Initiator opens N connections at R, then the Responder sends one frame through each
at r. It passes when all N frames of both phases arrive. Asking each one once, and no one twice, makes the count exact
whatever a full device throws out: the first, the last or the oldest.

A failed validation has three causes that look the same (RFC 9693 section 4.9): R was too high, r was too high, or the
table is full. The device's own count distinguishes them, and by a second trial at half of r.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from natgauge.inputs.checks import paced
from natgauge.inputs.input import chosen
from natgauge.procedures.kit.search.rate_search import FIRST_TRIAL_SECONDS
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.trials import Direction, Phase2Plan, Trial, TrialPlan
from natgauge.words import OF_PORTS, Verdict

Cause = Literal[
    "R too high", "r too high", "R or r too high", "table full", "ports used up", "connections missing", "unknown"
]

#: The second trial asks at this share of r.
SLOWER_SHARE = 0.5
#: A rate of validation that is no more than this share of the throughput is not what fails.
SAFE_SHARE_OF_DOWNLOAD = 0.5


@dataclass(frozen=True, slots=True)
class Validation:
    """Rate at which the connections are queried.

    Attributes:
        alpha: r as a share of R, 0 < alpha <= 1.
        most: highest r in frames/s that the device safely forwards from the Responder; None = unknown.
    """

    alpha: float
    most: float | None = None

    def rate(self, establishing: float) -> float:
        """The rate r, in frames/s, that follows connections established at R per second."""
        rate = self.alpha * establishing
        return rate if self.most is None else min(rate, self.most)


@dataclass(frozen=True, kw_only=True)
class ValidationSettings(TrialSettings):
    """Settings of a measurement that asks every connection after it was established."""

    alpha: float = chosen(0.8, "validation rate, as a share of the connection rate", "share", (0.01, 1))
    download_rate: float | None = chosen(
        None,
        "throughput from the Responder; the validation rate stays below half of it",
        "frames/s",
        partial(paced, unit="frames/s"),
    )

    @property
    def phase2_seconds(self) -> float:
        """Seconds of queries after the first phase 1; later trials are compared with the time-outs before they run."""
        return FIRST_TRIAL_SECONDS / self.alpha

    def validation(self) -> Validation:
        """Return the initial rate of queries, before any trial."""
        if self.download_rate is None:
            return Validation(self.alpha)
        return Validation(self.alpha, self.download_rate * SAFE_SHARE_OF_DOWNLOAD)


def plan(settings: TrialSettings, connections: int, establishing: float, asking: float) -> TrialPlan:
    """A trial that establishes `connections` at R = `establishing` and asks each once at r = `asking`."""
    phase2 = Phase2Plan(initiator_rate=0.0, responder_rate=asking, seconds=connections / asking, reading_order="once")
    return replace(settings.phase1_plan(establishing), connections=connections, phase2=phase2)


def cause(failed: Trial, slower: Trial | None, connections: int) -> Cause:
    """Return the reason why a validation failed.

    `slower` is the outcome of the same trial with phase 2 at half the rate; None = there was none, which leaves open
    whether R or r was too high.
    """
    # Where every frame was forwarded and yet not every connection is there, no rate of asking brings one back.
    missing = failed.failed_phase == 2 and failed.table_count is not None and failed.table_count < connections
    slower_failed = slower is not None and slower.verdict is Verdict.FAIL
    rules: tuple[tuple[bool, Cause], ...] = (
        (failed.limited_by == "table", "table full"),
        (failed.limited_by in OF_PORTS, "ports used up"),
        (failed.failed_phase == 1, "R too high"),
        (slower is not None and slower.verdict is Verdict.PASS, "r too high"),
        (missing, "connections missing"),
        (slower is not None and slower_failed and slower.failed_phase == 1, "R too high"),
        (slower is not None and slower_failed and _lost(slower) >= _lost(failed) / 2, "R too high"),
        (slower is None and failed.failed_phase == 2, "R or r too high"),
    )
    return next((why for applies, why in rules if applies), "unknown")


def _lost(outcome: Trial) -> int:
    counts = outcome.phase2.get(Direction.RESPONDER)
    return 0 if counts is None else counts.lost
