# SPDX-License-Identifier: Apache-2.0
"""Handshakes in phase 1: a rate by another way of counting, and the device's own count of open connections."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from natgauge.measurer import TrialOutcome, Verdict
from natgauge.procedures.kit.result.results import Measurement

#: Highest rate tried, in connections/s, at which the Initiator received the answer to each opening message, whether or
#: not its own third message arrived. FD.io's CSIT counts so.
HALF_OPEN_RATE: Final = "half_open_rate"
#: Connections that the device itself calls open, after the trial that gave the value.
ESTABLISHED: Final = "established"
#: Messages of a handshake: what opens, its answer, and the Initiator's reaction to the answer. A transaction has more.
_HANDSHAKE: Final = 3


def with_handshakes(measurement: Measurement) -> Measurement:
    """Return the repetition with `HALF_OPEN_RATE` and `ESTABLISHED`, if its connections open with a handshake."""
    handshakes = [each for each in measurement.attempts if len(each.outcome.phase1.messages) >= _HANDSHAKE]
    figures: dict[str, float] = {}
    if half_open := [each.load for each in handshakes if _all_answered(each.outcome)]:
        figures[HALF_OPEN_RATE] = max(half_open)
    passed = [each.outcome for each in handshakes if each.load == measurement.value and not each.short]
    counts = [one.established for one in passed if one.verdict is Verdict.PASS and one.established is not None]
    if counts:
        figures[ESTABLISHED] = float(counts[-1])
    return replace(measurement, figures={**measurement.figures, **figures}) if figures else measurement


def _all_answered(outcome: TrialOutcome) -> bool:
    """Whether each opening message was answered, in a trial that passed or that lost third messages alone."""
    counts = outcome.phase1
    valid = outcome.verdict is Verdict.PASS or (outcome.verdict is Verdict.FAIL and counts.lost > 0)
    # Each copy of an answer counts as an answer, and the Initiator's reaction to it as a duplicate.
    return valid and not counts.duplicates and counts.messages[1].received == counts.offered >= counts.intended
