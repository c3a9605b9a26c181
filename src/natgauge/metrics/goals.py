# SPDX-License-Identifier: Apache-2.0
"""Goals of a multiple loss ratio search (MLRsearch), and their pass criteria in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from natgauge.figure_text import given

Preset = Literal["rfc2544", "ndr-pdr"]


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal of a search (RFC 9971, "Search Goal"); durations in multiples of a trial's seconds.

    Attributes:
        name: prefix of the goal's figures.
        loss_ratio: a trial is good when at most this share of its frames is lost; 0 <= share < 1.
        exceed_ratio: share of the durations that may be bad, 0 <= share < 1.
        initial: shortest trial.
        sum: sum of the durations of the trials that decide a load.
    """

    name: str
    loss_ratio: float
    exceed_ratio: float
    initial: float
    sum: float


#: RFC 2544 section 26.1 as one goal, shortened only on the way; and CSIT's no drop and partial drop rates.
PRESETS: Final[Mapping[Preset, tuple[Goal, ...]]] = {
    "rfc2544": (Goal("rfc2544", 0.0, 0.0, 1 / 60, 1.0),),
    "ndr-pdr": (Goal("ndr", 0.0, 0.5, 1.0, 21.0), Goal("pdr", 0.005, 0.5, 1.0, 21.0)),
}


def criteria(preset: Preset, trial_seconds: float) -> str:
    """Return the pass criterion of each goal, in one sentence."""
    return "; ".join(criterion(goal, trial_seconds) for goal in PRESETS[preset])


def criterion(goal: Goal, trial_seconds: float) -> str:
    """Return the pass criterion of a goal."""
    lost = f"no more than {given(goal.loss_ratio)} of the frames" if goal.loss_ratio else "no frame"
    if goal.sum == 1 and not goal.exceed_ratio:
        return f"{goal.name}: {lost} lost in a trial of {trial_seconds:g} s"
    good = f"at least {given(1 - goal.exceed_ratio)} of {goal.sum:g} trials of {trial_seconds:g} s"
    return f"{goal.name}: {lost} lost in {good}"
