# SPDX-License-Identifier: Apache-2.0
"""What the lag that is tolerated does to a rate in `shared` placement, where lateness decides instead of loss.

A trial whose sending lasts T seconds passes when the device's work ends no more than the tolerated lag L after that. So
a rate that passes may be above the device's own by the share L/T: nothing in a trial of a second, all in one of a
hundred microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from natgauge.errors import UsageError
from natgauge.measurer import LAG_SHARE, LEAST_LAG_SECONDS
from natgauge.procedures.kit.queues import TRIAL_SECONDS
from natgauge.procedures.kit.results import Measurement
from natgauge.procedures.kit.values import SearchError

#: The lag may be no more than this share of the error that was asked for.
ERROR_SHARE: Final = 0.1
#: How a note begins that the rate may be too high because its trials were short.
SHORT: Final = "short trials: "
#: A rate that may be too high by more than this share, and by more than the error asked for, is not told at all.
REFUSED_SHARE: Final = 0.05


class ShortTrialsError(UsageError):
    """All connections are established so soon that the tester cannot tell the rate.

    Attributes:
        least_rate: what the device surely did, connections/s.
    """

    def __init__(self, text: str, least_rate: float) -> None:
        super().__init__(text)
        self.least_rate = least_rate


def lag_share(error: SearchError) -> float:
    """Share of a phase's length by which its sending may be late, where a rate is searched to this error."""
    return LAG_SHARE if error.share is None else min(LAG_SHARE, ERROR_SHARE * error.share)


def most_share(seconds: float, error: SearchError) -> float:
    """The largest share by which a rate may be too high whose trial lasted so long."""
    return max(lag_share(error), LEAST_LAG_SECONDS / seconds)


def refuse_short(connections: int, rate: float, error: SearchError) -> None:
    """Refuse a connection rate that says more of the tester than of the device.

    Args:
        connections: N.
        rate: the highest that passed, connections/s, > 0.
        error: of the search.

    Raises:
        ShortTrialsError: it is one.
    """
    seconds = connections / rate
    too_high = most_share(seconds, error)
    wanted = error.width(rate) / rate
    if too_high <= max(REFUSED_SHARE, wanted):
        return
    raise ShortTrialsError(
        f"connections: {connections} are established within {seconds * 1000:.2g} ms, and the tester notices a lag from "
        f"{LEAST_LAG_SECONDS * 1000:g} ms on, so their rate could be too high by {too_high:.0%}; choose at least "
        f"{rounded_up(rate * LEAST_LAG_SECONDS / wanted):,} connections",
        connections / (seconds + LEAST_LAG_SECONDS),
    )


def rounded_up(number: float) -> int:
    """To two digits."""
    grain = int(10 ** max(math.floor(math.log10(number)) - 1, 0))
    return math.ceil(number / grain) * grain


def short_note(measurements: Iterable[Measurement], placement: object, error: SearchError, advice: str) -> list[str]:
    """By how much rates may be too high, where that is more than the error asked for.

    Args:
        measurements: with their figure `TRIAL_SECONDS`.
        placement: where the device's work was done.
        error: of the search.
        advice: what makes trials longer.
    """
    known = [(one.figures[TRIAL_SECONDS], one.value) for one in measurements if TRIAL_SECONDS in one.figures]
    if placement != "shared" or not known:
        return []
    seconds, value = min(known)
    too_high = most_share(seconds, error)
    if value <= 0 or too_high <= error.width(value) / value:
        return []
    note = (
        f"{SHORT}the sending lasted {seconds * 1000:.3g} ms, of which {LEAST_LAG_SECONDS * 1000:g} ms are tolerated as "
        f"lag, so the rate may be too high by up to {too_high:.1%}; {advice}"
    )
    return [note]
