# SPDX-License-Identifier: Apache-2.0
"""What a reader must know before a figure is trusted, found from the facts of the measurement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from natgauge.measurer import Verdict
from natgauge.procedures.kit import queues
from natgauge.procedures.kit.binary_search import CONTRADICTION
from natgauge.procedures.kit.delay_metrics import TOGETHER
from natgauge.procedures.kit.incurable import INCURABLE
from natgauge.procedures.kit.lateness import SHORT
from natgauge.procedures.kit.notes import excused_told
from natgauge.procedures.kit.results import Measurement, MeasurementResult
from natgauge.procedures.kit.time_budget import LEFT_OUT, UNDECIDED
from natgauge.results.model import Doubt, DoubtWord
from natgauge.results.parameters import Parameters

#: Repetitions that lie farther from their median than this share of it are told.
WIDE: Final = 0.05
#: Notes of a measurement that are doubts, by how they begin.
_NOTED: Final[Mapping[str, DoubtWord]] = {
    UNDECIDED: "undecided",
    INCURABLE: "loss at every rate",
    LEFT_OUT: "time used up",
    SHORT: "short trials",
    TOGETHER: "batches",
}
#: Above this share of excused trials among those that would have decided, what is left decides nothing.
EXCUSED_TOO_OFTEN: Final = 1 / 3
#: A rate above this share of the highest one that was tried may be the tester's.
NEAR_TOP: Final = 0.8


def find(measured: MeasurementResult, parameters: Parameters) -> tuple[Doubt, ...]:
    """Every doubt, the gravest first."""
    return (
        *_excused(measured),
        *_limits(measured),
        *_repetitions(measured),
        *_trials(measured),
        *_queues(measured, parameters),
        *_foreign(parameters),
        *_unknown_tester(measured, parameters),
    )


def _excused(measured: MeasurementResult) -> Iterator[Doubt]:
    """An excused trial is repeated, and one that passes in spite of disturbances counts: the best of several."""
    excused, trials = measured.excused, measured.trials
    if not excused:
        return
    told = excused_told(excused, sum(trials.values()))
    decided = sum(trials.values()) - trials[Verdict.INVALID]
    if excused > EXCUSED_TOO_OFTEN * (decided + excused):
        yield Doubt(word="undecided", text=f"undecided{_between(measured)}: {told}")
    else:
        yield Doubt(word="excused trials", text=told)


def _between(measured: MeasurementResult) -> str:
    """The interval that is left, where the metric has one."""
    known = [one.upper for one in measured.measurements if one.upper is not None]
    if len(known) < len(measured.measurements):
        return ""
    return f" between {measured.summary.minimum:.6g} and {max(known):.6g} {measured.unit}"


def _limits(measured: MeasurementResult) -> Iterator[Doubt]:
    if measured.limited_by == "tester":
        yield Doubt(word="tester limited", text="the tester limited, not the device, which may do more")
    if measured.limited_by == "host":
        yield Doubt(word="host limited", text="disturbances of this host limited, not the device")
    for note in measured.notes:
        for beginning, word in _NOTED.items():
            if note.startswith(beginning):
                yield Doubt(word=word, text=note.removeprefix(beginning))


def _repetitions(measured: MeasurementResult) -> Iterator[Doubt]:
    summary = measured.summary
    if len(summary.repetitions) == 1:
        yield Doubt(word="single repetition", text="a single repetition says nothing about spread")
    widest = max(summary.maximum - summary.median, summary.median - summary.minimum)
    disagree = _disagree(measured.measurements)
    if disagree or widest > WIDE * abs(summary.median):
        share = f"{widest / abs(summary.median):.1%}" if summary.median else "more than all"
        values = ", ".join(f"{value:,.6g}" if value % 1 else f"{value:,.0f}" for value in summary.repetitions)
        beyond = f", farther from each other than the errors of their searches: {values}" if disagree else ""
        yield Doubt(word="wide spread", text=f"repetitions lie up to {share} from their median{beyond}")


def _disagree(measurements: Sequence[Measurement]) -> bool:
    """Whether two searches found values farther apart than both errors together: not one limit, but several or none."""
    found = sorted((one.value, one.error) for one in measurements if one.error is not None)
    return any(other - value > error + its_error for (value, error), (other, its_error) in combinations(found, 2))


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
    wait = limit if isinstance(limit, int | float) else None
    shortest = queues.shortest_told(measured.measurements, wait, parameters.get("placement"))
    if wait is not None and shortest is not None:
        most = queues.most_share(wait, shortest)
        yield Doubt(word="queues", text=f"queues before the device may have raised the rate by up to {most:.1%}")


def _foreign(parameters: Parameters) -> Iterator[Doubt]:
    """RFC 9693 section 4.4 wants the table empty, not only without the connections of this trial."""
    if parameters.get("fresh_trials") in ("new-tuples", "no-wait"):
        held = f"connections of earlier trials for up to {parameters.get('device_timeout')} s"
        full = (
            "" if parameters.get("table_size") else " and may have been full, for its limit was not told (--table-size)"
        )
        text = f"all connections were new, but the device's table held {held}{full}"
        yield Doubt(word="table not emptied", text=text)


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
