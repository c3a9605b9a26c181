# SPDX-License-Identifier: Apache-2.0
"""Effect of the tolerated lag on a rate in `shared` placement, where lateness decides instead of loss.

A trial whose sending lasts T seconds passes when the device's work ends at most the tolerated lag L later. So a passing
rate may exceed the device's own by the share L/T: negligible in a trial of a second, but dominant in a trial of a
hundred microseconds. `kit.search.rate_search` applies this rule to every search for a rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from natgauge.errors import UsageError
from natgauge.figure_text import in_percent
from natgauge.figure_text import number as written
from natgauge.inputs.measuring_types import SearchError
from natgauge.metrics.shared_figures import TRIAL_SECONDS
from natgauge.notes import Note
from natgauge.procedures.kit.result.results import Measurement
from natgauge.procedures.kit.search import queues
from natgauge.trials import LAG_SHARE, LEAST_LAG_SECONDS

#: The lag may be no more than this share of the requested error.
ERROR_SHARE: Final = 0.1
#: A rate that may be too high by more than this share, and by more than the requested error, is refused.
REFUSED_SHARE: Final = 0.05


class ShortTrialsError(UsageError):
    """The trials of a rate are too short for the tester to determine the rate.

    The device reaches `least_rate` for certain. With `enough` of the setting that decides, trials are long enough.
    """

    def __init__(self, text: str, least_rate: float, enough: float) -> None:
        super().__init__(text)
        self.least_rate, self.enough = least_rate, enough


@dataclass(frozen=True, slots=True)
class Length:
    """Setting that decides how long the trials of a search last.

    Attributes:
        setting: name for the user of the setting that the length is proportional to.
        amount: value of the setting, > 0.
    """

    symbol: str
    setting: str
    amount: float
    unit: str
    advice: str


def of_connections(frames: int, what: str = "connections") -> Length:
    """The length of trials whose phase 1 decides: N/R for N frames, which are connections or draws."""
    return Length("N/R", what, frames, what, f"use more {what}")


def of_trials(seconds: float) -> Length:
    """The length of trials whose phase 2 decides: T, in seconds."""
    return Length("T", "trial seconds", seconds, "s", "use longer trials")


def lag_share(error: SearchError) -> float:
    """Share of a phase's length by which its sending may be late, where a rate is searched to this error."""
    return LAG_SHARE if error.share is None else min(LAG_SHARE, ERROR_SHARE * error.share)


def most_share(seconds: float, error: SearchError) -> float:
    """The largest share by which a rate may be too high whose trial lasted so long."""
    return max(lag_share(error), LEAST_LAG_SECONDS / seconds)


def refuse_short(seconds: float, rate: float, error: SearchError, length: Length) -> None:
    """Refuse a rate that says more of the tester than of the device.

    The seconds are those of the shortest phase whose lateness decided; the rate is the highest that passed.
    """
    too_high = most_share(seconds, error)
    wanted = error.width(rate) / rate
    if too_high <= max(REFUSED_SHARE, wanted):
        return
    least = length.amount * LEAST_LAG_SECONDS / (seconds * wanted)
    enough = rounded_up(least) if isinstance(length.amount, int) else math.ceil(least * 1000) / 1000
    needed = f"{enough:,}".removesuffix(".0")
    raise ShortTrialsError(
        f"{length.setting}: with {length.amount:,} a trial sends for {written(seconds * 1000)} ms, and the tester "
        f"notices a lag from {LEAST_LAG_SECONDS * 1000:g} ms on, so the rate could be too high by "
        f"{in_percent(too_high)}; choose at least {needed} {length.unit}",
        rate * seconds / (seconds + LEAST_LAG_SECONDS),
        enough,
    )


def rounded_up(number: float) -> int:
    """Return the number rounded up to two digits."""
    grain = int(10 ** max(math.floor(math.log10(number)) - 1, 0))
    return math.ceil(number / grain) * grain


def short_note(
    measurements: Iterable[Measurement], placement: object, error: SearchError, advice: str, what: str = "the rate"
) -> list[Note]:
    """Return a note on how much rates may be too high, where that is more than the error of the search.

    The repetitions have the figure `TRIAL_SECONDS`; `what` names the rate for the reader.
    """
    known = [
        (repetition.figures[TRIAL_SECONDS], repetition.value)
        for repetition in measurements
        if TRIAL_SECONDS in repetition.figures
    ]
    if placement != "shared" or not known:
        return []
    seconds, value = min(known)
    return note_of(seconds, value, error, advice, what) if value > 0 else []


def note_of(seconds: float, rate: float, error: SearchError, advice: str, what: str = "the rate") -> list[Note]:
    """Return a note on how much a rate in `shared` placement may be too high, where that is more than the error.

    The seconds are those of the deciding trial, the rate is the highest that passed, both > 0. The error is that of the
    search, or the distance between the rates tried.
    """
    too_high = most_share(seconds, error)
    if too_high <= error.width(rate) / rate:
        return []
    text = (
        f"the sending lasted {written(seconds * 1000)} ms, of which {LEAST_LAG_SECONDS * 1000:g} ms are tolerated as "
        f"lag, so {what} may be too high by up to {in_percent(too_high)}; {advice}"
    )
    return [Note("short trials", text, value=too_high, grade=queues.grade_of(too_high))]
