# SPDX-License-Identifier: Apache-2.0
"""Handshakes in phase 1: the device's own count of open connections."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from natgauge.metrics.shared_figures import ESTABLISHED
from natgauge.procedures.kit.result.results import Measurement
from natgauge.words import Verdict

#: Messages of a handshake: what opens, its answer, and the Initiator's reaction to the answer. A transaction has more.
_HANDSHAKE: Final = 3


def with_handshakes(measurement: Measurement) -> Measurement:
    """Return the repetition with `ESTABLISHED`, if its connections open with a handshake."""
    passed = [
        each.outcome
        for each in measurement.attempts
        if len(each.outcome.phase1.messages) >= _HANDSHAKE and each.load == measurement.value and not each.short
    ]
    counts = [
        one.readings.established
        for one in passed
        if one.verdict is Verdict.PASS and one.readings.established is not None
    ]
    figures = {**measurement.figures, **({ESTABLISHED: float(counts[-1])} if counts else {})}
    return replace(measurement, figures=figures)
