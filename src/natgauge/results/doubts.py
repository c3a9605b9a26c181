# SPDX-License-Identifier: Apache-2.0
"""What a reader must know before a figure is trusted, found from the facts of the measurement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from natgauge.measurer import Verdict
from natgauge.procedures.kit import queues
from natgauge.procedures.kit.binary_search import CONTRADICTION
from natgauge.procedures.kit.notes import UNDECIDED
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.results.model import Doubt
from natgauge.results.parameters import Parameters

#: Repetitions that lie farther from their median than this share of it are told.
WIDE: Final = 0.05


def find(measured: MeasurementResult, parameters: Parameters) -> tuple[Doubt, ...]:
    """Every doubt, the gravest first."""
    return (*_limits(measured), *_repetitions(measured), *_trials(measured), *_queues(measured, parameters))


def _limits(measured: MeasurementResult) -> Iterator[Doubt]:
    if measured.limited_by == "tester":
        yield Doubt(word="tester limited", text="the tester limited, not the device, which may do more")
    undecided = [note for note in measured.notes if note.startswith(UNDECIDED)]
    if undecided:
        yield Doubt(word="undecided", text=undecided[0].removeprefix(UNDECIDED))
    if measured.limited_by == "host":
        yield Doubt(word="host limited", text="disturbances of this host limited, not the device")


def _repetitions(measured: MeasurementResult) -> Iterator[Doubt]:
    summary = measured.summary
    if len(summary.repetitions) == 1:
        yield Doubt(word="single repetition", text="a single repetition says nothing about spread")
    widest = max(summary.maximum - summary.median, summary.median - summary.minimum)
    if widest > WIDE * abs(summary.median):
        share = f"{widest / abs(summary.median):.1%}" if summary.median else "more than all"
        yield Doubt(word="wide spread", text=f"repetitions lie up to {share} from their median")


def _trials(measured: MeasurementResult) -> Iterator[Doubt]:
    trials: Mapping[str, int] = measured.trials
    total, invalid = sum(trials.values()), trials[Verdict.INVALID]
    if invalid:
        yield Doubt(word="INVALID trials", text=f"{invalid} of {total} trials were INVALID and not counted")
    if measured.disturbed:
        yield Doubt(word="disturbed trials", text=f"{measured.disturbed} of {total} trials were disturbed")
    contradictions = sum(note.startswith(CONTRADICTION) for note in measured.notes)
    if contradictions:
        yield Doubt(word="contradictions", text=f"{contradictions} loads passed and failed when they were tried again")


def _queues(measured: MeasurementResult, parameters: Parameters) -> Iterator[Doubt]:
    """What waits in queues at the end of a short trial is still forwarded, up to the time limit of a frame."""
    limit = parameters.get("frame_timeout_seconds")
    named = [one.figures for one in measured.measurements if queues.TRIAL_SECONDS in one.figures]
    lengths = [figures[queues.TRIAL_SECONDS] for figures in named]
    if not lengths or not isinstance(limit, int | float) or parameters.get("placement") == "shared":
        return
    most = queues.most_share(limit, min(lengths))
    if most > queues.TOLD_SHARE:
        yield Doubt(word="queues", text=f"queues before the device may have raised the rate by up to {most:.1%}")
