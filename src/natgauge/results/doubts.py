# SPDX-License-Identifier: Apache-2.0
"""What a reader must know before a figure is trusted, found from the facts of the measurement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from natgauge.measurer import Verdict
from natgauge.procedures.kit.binary_search import CONTRADICTION
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.results.model import Doubt
from natgauge.results.parameters import Parameters

#: Repetitions that lie farther from their median than this share of it are told.
WIDE: Final = 0.05
#: A rate that queues may have raised by this share or more is told.
FLATTERED: Final = 0.01
#: A rate above this share of the highest one that was tried may be the tester's.
NEAR_TOP: Final = 0.8


def find(measured: MeasurementResult, parameters: Parameters) -> tuple[Doubt, ...]:
    """Every doubt, the gravest first."""
    return (
        *_limits(measured),
        *_repetitions(measured),
        *_trials(measured),
        *_queues(measured, parameters),
        *_foreign(parameters),
        *_unknown_tester(measured, parameters),
    )


def _limits(measured: MeasurementResult) -> Iterator[Doubt]:
    if measured.limited_by == "tester":
        yield Doubt(word="tester limited", text="the tester limited, not the device, which may do more")
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
    lengths = [one.figures["trial_seconds"] for one in measured.measurements if "trial_seconds" in one.figures]
    if not lengths or not isinstance(limit, int | float) or parameters.get("placement") == "shared":
        return
    most = limit / min(lengths)
    if most >= FLATTERED:
        yield Doubt(word="queues", text=f"queues before the device may have raised the rate by up to {most:.1%}")


def _foreign(parameters: Parameters) -> Iterator[Doubt]:
    """RFC 9693 section 4.4 wants the table empty, not only without the connections of this trial."""
    if parameters.get("fresh_trials") in ("new-tuples", "no-wait"):
        held = f"connections of earlier trials for up to {parameters.get('device_timeout')} s"
        yield Doubt(word="table not emptied", text=f"all connections were new, but the device's table held {held}")


def _unknown_tester(measured: MeasurementResult, parameters: Parameters) -> Iterator[Doubt]:
    """A cable of veths ends the search, but says nothing of what the tester can do on a card."""
    phase = 1 if measured.unit == "connections/s" else 2
    top = parameters.get(f"search_top_phase{phase}_rate")
    if not isinstance(top, int | float):
        return
    rate = measured.figures.get("frames_per_second_total", measured.summary.median)
    near = measured.unit in ("connections/s", "frames/s") and rate >= NEAR_TOP * top
    said = f"; the result is {rate / top:.0%} of it and may be the tester's" if near else ""
    text = f"what the tester can do on these ports is not known; no more than {top:,.0f} frames/s were tried{said}"
    yield Doubt(word="tester unknown", text=text)
