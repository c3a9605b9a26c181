# SPDX-License-Identifier: Apache-2.0
"""Measurement of another metric that a measurement needs first, such as the throughput for a latency."""

from __future__ import annotations

import dataclasses
from typing import Any, Final, TypeVar

from natgauge import procedures
from natgauge.procedures.kit.measure.phase2 import Phase2Settings
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.procedures.kit.settings import COMMON, Profile, TrialSettings
from natgauge.procedures.kit.time_budget import TimeUpError

SettingsT = TypeVar("SettingsT", bound=TrialSettings)

#: What both must have alike, so that the result of one holds for the same device, frames and connections as the other.
_ALIKE: Final = (TrialSettings, Phase2Settings)
#: Trials of a prerequisite search may be shorter than trials whose delays or losses are reported.
LONGEST_TRIAL_SECONDS = 2.0
#: But with the profile that takes the RFCs to the letter, what is measured first is literal, too.
LITERAL: Final[Profile] = "rfc"


def inner(kind: type[SettingsT], settings: TrialSettings, **own: Any) -> SettingsT:
    """Settings of a measurement that another one needs first: once, in trials of at most 2 s, with `rfc` 60 s."""
    alike = [group for group in _ALIKE if isinstance(settings, group) and issubclass(kind, group)]
    shared = {item.name: getattr(settings, item.name) for group in alike for item in dataclasses.fields(group)}
    if "trial_seconds" in shared:
        longest = COMMON[LITERAL]["trial_seconds"] if settings.profile == LITERAL else LONGEST_TRIAL_SECONDS
        shared["trial_seconds"] = min(shared["trial_seconds"], longest)
    # What is demanded of a figure is not demanded of another one.
    return kind(**{**shared, "repeat": 1, "at_least": None, "at_most": None, **own})


def measure_first(
    metric: str, runner: TrialRunner, settings: TrialSettings, *, share: float | None = None, **own: Any
) -> MeasurementResult:
    """Measure a metric that the runner's measurement needs first; the same observer receives its trials.

    Of the remaining time it gets a `share`, 0 < share <= 1, where a bound suffices: then the result may be limited by
    the time. None = the search must end within all of it. Raises TimeUpError with the bounds found so far.
    """
    procedure = procedures.get(metric)
    inner_settings = inner(procedure.settings, settings, **own)
    budget = runner.budget if share is None else runner.budget.part(share)
    try:
        result = procedure.measure(runner.measurer, inner_settings, runner.observe, budget)
    except TimeUpError as error:
        needed = TimeUpError(f"of the {metric} that it needs first: {error}")
        needed.remedy = error.remedy
        raise needed from None
    undecided = [note for note in result.notes if note.word == "undecided"]
    if undecided and share is None:
        raise TimeUpError(f"the {metric} that it needs first is {undecided[0]}")
    return result
