# SPDX-License-Identifier: Apache-2.0
"""Spread of the frames over the device's cores in the trials that decided a repetition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from natgauge import core_work
from natgauge.metrics.shared_figures import CORE_IMBALANCE, IDLE_CORES
from natgauge.procedures.kit.result.results import Attempt, Measurement
from natgauge.words import Verdict


def with_core_load(measurement: Measurement) -> Measurement:
    """Return the repetition with the figures `CORE_IMBALANCE` and `IDLE_CORES`, if the lab reports the work."""
    figures = core_figures(measurement.attempts)
    return replace(measurement, figures={**measurement.figures, **figures}) if figures else measurement


def core_figures(attempts: Sequence[Attempt]) -> Mapping[str, float]:
    """Return both figures over the deciding trials together; empty where the work of the cores is not known."""
    work = core_work.total(attempt.outcome.readings.core_work for attempt in _deciding(attempts))
    imbalance = core_work.imbalance(work)
    if imbalance is None:
        return {}
    return {CORE_IMBALANCE: imbalance, IDLE_CORES: float(len(core_work.idle_cores(work)))}


def _deciding(attempts: Sequence[Attempt]) -> Sequence[Attempt]:
    """Return the trials of the highest load that passed; where none passed, those of the lowest load that failed."""
    known = [attempt for attempt in attempts if attempt.outcome.readings.core_work]
    for verdict, best in ((Verdict.PASS, max), (Verdict.FAIL, min)):
        loads = [attempt.load for attempt in known if attempt.outcome.verdict is verdict]
        if loads:
            return [attempt for attempt in known if attempt.outcome.verdict is verdict and attempt.load == best(loads)]
    return []
