# SPDX-License-Identifier: Apache-2.0
"""Rates that are shares of the throughput, which is taken from an earlier result or measured first, once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, cast

from natgauge.errors import BrokenError
from natgauge.procedures.kit.inner import LONGEST_TRIAL_SECONDS, measure_first
from natgauge.procedures.kit.profiles import COMMON
from natgauge.procedures.kit.settings import TrialSettings, about
from natgauge.procedures.kit.standing import Standing
from natgauge.procedures.kit.values import SearchError, positive

#: The search for the throughput that the rates are shares of: finer than any share that is asked for.
THROUGHPUT_ERROR = SearchError(share=0.02)
#: The profile that takes the RFCs to the letter, also in what is only measured first.
_LITERAL: Final = "rfc"


@dataclass(frozen=True, kw_only=True)
class ThroughputShareSettings(TrialSettings):
    """Settings of a measurement whose rates are shares of the throughput.

    Attributes:
        throughput_rate: the device's throughput in frames/s of each direction, for the same frames and connections;
            None = measured first.
    """

    throughput_rate: float | None = field(
        default=None,
        metadata=about(
            "throughput of the device, measured first when not given", "frames/s", partial(positive, unit="frames/s")
        ),
    )


def throughput_of(standing: Standing[Any], settings: ThroughputShareSettings) -> float:
    """The throughput in frames/s of each direction, over connections that a safe phase 1 is known for.

    Raises:
        BrokenError: the device forwards nothing without loss.
        NatgaugeError: a trial could not be run at all.
    """
    if settings.throughput_rate:
        return settings.throughput_rate
    runner, preparation = standing.runner, standing.preparation
    known = None if preparation.is_none else preparation.connection_rate
    search = _search(settings)
    found = measure_first("throughput", runner, settings, connection_rate=known, **search)
    standing.first_notes.append(
        f"throughput {found.summary.median:.0f} frames/s in each direction: one search within {search['error']}, "
        f"trials of {search['trial_seconds']:g} s"
    )
    if found.summary.median == 0:
        notes = "; ".join(found.notes)
        raise BrokenError(f"{runner.metric}: the device forwards at no rate without loss: {notes}")
    return found.summary.median


def _search(settings: ThroughputShareSettings) -> dict[str, Any]:
    """How the throughput is searched: under `rfc` as when it is measured for itself (RFC 2544 sections 24 and 26.1)."""
    asked = cast("float", getattr(settings, "trial_seconds", LONGEST_TRIAL_SECONDS))
    if settings.profile != _LITERAL:
        return {"error": THROUGHPUT_ERROR, "confirm": False, "trial_seconds": min(asked, LONGEST_TRIAL_SECONDS)}
    literal = COMMON[_LITERAL]
    longest = cast("float", literal["trial_seconds"])
    return {"error": literal["error"], "confirm": True, "trial_seconds": min(asked, longest)}
