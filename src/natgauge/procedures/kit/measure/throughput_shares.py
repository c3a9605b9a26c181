# SPDX-License-Identifier: Apache-2.0
"""Rates that are shares of the throughput, which is taken from an earlier result or measured first, once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from natgauge.errors import BrokenError
from natgauge.figure_text import number
from natgauge.inputs.checks import paced
from natgauge.inputs.input import chosen, described
from natgauge.inputs.measuring_types import SearchError
from natgauge.notes import Note
from natgauge.procedures.kit.measure.held_connections import HeldConnections
from natgauge.procedures.kit.measure.prerequisite import LITERAL, measure_first
from natgauge.procedures.kit.search import late_frames
from natgauge.procedures.kit.settings import COMMON, TrialSettings
from natgauge.procedures.kit.time_budget import TIME

#: The search for the throughput that the rates are shares of: finer than any share that a user may set.
THROUGHPUT_ERROR = SearchError(share=0.02)
#: For metrics with a single load.
ABOUT_LOAD: Final = described("load, as a share of the throughput", "share", (0.01, 1))


@dataclass(frozen=True, kw_only=True)
class ThroughputShareSettings(TrialSettings):
    """Settings of a measurement whose rates are shares of the throughput.

    The throughput is that of each direction, for the same frames and connections.
    """

    throughput_rate: float | None = chosen(
        None, "throughput of the device", "frames/s", partial(paced, unit="frames/s"), default="measured first"
    )


def throughput_of(held: HeldConnections[Any], settings: ThroughputShareSettings, share: float | None = None) -> float:
    """The throughput in frames/s of each direction, over connections that a safe phase 1 is known for.

    `share` is of the time that is left, where a lower bound suffices; None = the search must be done, or TimeUpError
    says why it is not.
    """
    if settings.throughput_rate:
        return settings.throughput_rate
    runner, preparation = held.runner, held.preparation
    known = None if preparation.is_none else preparation.connection_rate
    # RFC 2544 sections 24 and 26.1: with `rfc` as when the throughput is measured for itself.
    literal = settings.profile == LITERAL
    error = COMMON[LITERAL]["error"] if literal else THROUGHPUT_ERROR
    result = measure_first(
        "throughput", runner, settings, share=share, error=error, confirm=literal, connection_rate=known
    )
    runner.first.append(result)
    (repetition,) = result.measurements
    if repetition.limited_by == TIME:
        upper = "" if repetition.upper is None else f", less than {number(repetition.upper)}"
        text = f"halving the throughput left out, at least {number(repetition.value)} frames/s{upper}"
        held.first_notes.append(Note("time used up", text))
    text = (
        f"throughput {number(result.summary.median)} frames/s {held.settings.each_direction}: one search within "
        f"{result.parameters['error']}, trials of {result.parameters['trial_seconds']:g} s"
    )
    held.first_notes.append(Note("throughput", text))
    run = result.parameters
    advice, searched = late_frames.of_trials(run["trial_seconds"]).advice, SearchError.parse(run["error"])
    held.first_notes += late_frames.short_note(
        result.measurements, run["placement"], searched, advice, "the throughput"
    )
    if result.summary.median == 0:
        notes = "; ".join(map(str, result.notes))
        raise BrokenError(f"{runner.metric}: the device forwards at no rate without loss: {notes}")
    return result.summary.median
