# SPDX-License-Identifier: Apache-2.0
"""Notes that several metrics have: each a list, empty where there is nothing to say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from natgauge.measurer import TrialOutcome, Verdict
from natgauge.procedures.kit.results import Measurement
from natgauge.procedures.kit.settings import TrialSettings

#: How a note begins of a figure that its samples do not bear out.
UNRELIABLE: Final = "unreliable: "


def disturbed_note(measurements: Iterable[Measurement]) -> list[str]:
    """How many trials were disturbed, and how many would have failed but for that, if any."""
    outcomes: list[TrialOutcome] = [attempt.outcome for one in measurements for attempt in one.attempts]
    disturbed = sum(outcome.disturbed for outcome in outcomes)
    invalid = sum(outcome.verdict is Verdict.INVALID for outcome in outcomes)
    if not disturbed and not invalid:
        return []
    found = [f"{disturbed} of {len(outcomes)} trials were disturbed, {invalid} were INVALID and not counted"]
    if excused := sum(outcome.excused for outcome in outcomes):
        found.append(excused_told(excused, len(outcomes)))
    return found


def asked_again_note(measurements: Iterable[Measurement]) -> list[str]:
    """How many tries of commands to the device failed, if any."""
    times = [attempt.outcome.asked_again for one in measurements for attempt in one.attempts]
    if not (failed := sum(times)):
        return []
    trials = sum(map(bool, times))
    return [f"{failed} tries of commands to the device failed in {trials} of {len(times)} trials"]


def excused_told(excused: int, trials: int) -> str:
    """How many of the trials were excused, and what that means."""
    return f"{excused} of {trials} trials were excused: disturbances explain why they failed"


def tolerance_note(settings: TrialSettings) -> list[str]:
    """RFC 9693 counts no loss; a tolerance belongs to the metric's name."""
    if settings.loss_tolerance == 0:
        return []
    return [f"up to {settings.loss_tolerance:.3%} of the frames could be lost in a passing trial"]


def repetitions_note(settings: TrialSettings, wanted: int, source: str) -> list[str]:
    """That there are fewer repetitions than the standard wants, which is named with its section."""
    if settings.most_repetitions >= wanted:
        return []
    found = settings.most_repetitions
    return [f"{found} {'repetition' if found == 1 else 'repetitions'}; {source} wants {wanted}"]
