# SPDX-License-Identifier: Apache-2.0
"""Effect of queues before a device on its rate, and the rule that limits it (docs/method/search.md).

Frames in a queue at the end of a trial are still forwarded, so a passing rate may exceed the device's own. If each
frame must arrive within W seconds and the sending lasted T seconds, a device of rate r passes at most r * (1 + W/T). In
`shared` placement there are no queues before a device that works in the sender's context, but there are before a device
with processes of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, TypeVar

from natgauge.figure_text import in_percent
from natgauge.inputs.measuring_types import SearchError
from natgauge.metrics.metric import TRIAL_SECONDS
from natgauge.notes import Grade, Note
from natgauge.procedures.kit.results import Measurement
from natgauge.procedures.kit.settings import TrialSettings

SettingsT = TypeVar("SettingsT", bound=TrialSettings)

#: A frame that waited longer was not forwarded in time: 1 % of a trial of 2 s, yet many times what a card ring of a few
#: thousand frames holds.
LONGEST_WAIT_SECONDS: Final = 0.02
#: Twice the time that a core may stop without counting as disturbed: the host is not the reason for a longer delay.
LEAST_WAIT_SECONDS: Final = 0.01
#: A rate that queues may have raised by more than this share says so.
REPORTED_SHARE: Final = 0.01
#: From this share on, what may have raised or lowered a rate could change the answer.
GRAVE_SHARE: Final = 0.05


def wait_limit(seconds: float | None = None, error: SearchError | None = None) -> float:
    """W in seconds, for trials whose length is known beforehand, or None; of the error only a share has an effect."""
    if seconds is None or error is None or error.share is None:
        return LONGEST_WAIT_SECONDS
    return min(LONGEST_WAIT_SECONDS, max(error.share * seconds, LEAST_WAIT_SECONDS))


def with_wait_limit(settings: SettingsT, seconds: float | None = None, error: SearchError | None = None) -> SettingsT:
    """Return the settings, with a time limit for each frame if there are queues and the user chose no limit."""
    if not queues_before(settings.placement, settings.own_processes) or settings.frame_timeout_seconds is not None:
        return settings
    return replace(settings, frame_timeout_seconds=wait_limit(seconds, error))


def most_queued_share(wait_seconds: float, trial_seconds: float) -> float:
    """The largest share by which a rate may be too high."""
    return wait_seconds / trial_seconds


def grade_of(share: float) -> Grade:
    """Return what a doubt can change that a rate is wrong by this share."""
    return "answer" if share >= GRAVE_SHARE else "interval"


def least_rate_with_queues(frames: float, rate: float, wait_seconds: float) -> float:
    """The least rate in frames/s of a device that forwarded `frames`, sent at `rate`, each within the wait."""
    return frames / (frames / rate + wait_seconds)


def queues_before(placement: object, own_processes: object) -> bool:
    """Whether frames can wait in queues before the device."""
    return placement != "shared" or bool(own_processes)


def shortest_reported(measurements: Iterable[Measurement], wait_seconds: float | None) -> float | None:
    """The length in seconds of the shortest trial behind an answer, where queues may have raised its rate by over 1 %.

    `wait_seconds` is W; None = frames had no time limit, or nothing can wait.
    """
    lengths = [repetition.figures[TRIAL_SECONDS] for repetition in measurements if TRIAL_SECONDS in repetition.figures]
    if not lengths or wait_seconds is None:
        return None
    shortest = min(lengths)
    return shortest if most_queued_share(wait_seconds, shortest) > REPORTED_SHARE else None


def queue_note(measurements: Iterable[Measurement], settings: TrialSettings, name: str, advice: str) -> list[Note]:
    """Return a note on how much the rates may be too high, where that is more than 1 %."""
    wait = settings.frame_timeout_seconds if queues_before(settings.placement, settings.own_processes) else None
    shortest = shortest_reported(measurements, wait)
    if wait is None or shortest is None:
        return []
    text = (
        f"a trial lasted {name} = {shortest:.3f} s only; frames may wait up to {wait:g} s in queues before the device, "
        f"so the rate may be too high by up to {in_percent(most_queued_share(wait, shortest))}; {advice}"
    )
    return [Note("search", text)]
