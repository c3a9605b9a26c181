# SPDX-License-Identifier: Apache-2.0
"""Frame loss rate (RFC 2544 section 26.3): which share of the frames is lost at which rate, connections standing.

The first trial runs at 100 % of the highest rate, each following one a step lower, until two in a row lose nothing.
Below the last step the rate is halved, so the series always reaches the device's own range. Each trial has a phase 1
of its own (RFC 9693 section 4.7).

RFC 2544's 100 % is the medium's; between namespaces there is none, and the tester's own highest rate takes its place.
In `shared` placement an overloaded device loses nothing but slows the sender down; there 100 % is twice the throughput,
and the share by which the sending was too slow is shown instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from natgauge.measurer import Measurer, TrialOutcome, Verdict
from natgauge.procedures import loaded
from natgauge.procedures.loaded import Loaded, LoadedSettings, lost_share, shortfall, worst
from natgauge.procedures.preparation import phase2_notes
from natgauge.procedures.procedure import Procedure
from natgauge.procedures.progress import Observer, ignore
from natgauge.procedures.rates import disturbed_note, repeat, tolerance_note, top_rate
from natgauge.procedures.results import Measurement, MeasurementResult, make_result
from natgauge.procedures.settings import about, in_range, positive, refuse_unable

METRIC = "frame-loss"
UNIT = "%"

#: RFC 2544 section 26.3: the granularity must be 10 % or finer.
COARSEST_STEP = 0.1
#: In `shared` placement the series starts at this multiple of the throughput.
SHARED_MULTIPLE = 2.0
#: The series ends here, whatever is lost: less than this share of 100 % is not worth a trial.
LEAST_SHARE = 0.001
LOSS_FREE_IN_A_ROW = 2

Row = Mapping[str, float | str | None]


@dataclass(frozen=True, kw_only=True)
class Settings(LoadedSettings):
    """Settings of the frame loss rate.

    Attributes:
        step: distance of two loads as a share of the highest, 0.01 to 0.1.
        full_rate: the rate that counts as 100 %, in frames/s of each direction; None = the tester's highest, and in
            `shared` placement twice the throughput.
    """

    step: float = field(default=0.1, metadata=about("distance of two loads, as a share of the highest", "share"))
    full_rate: float | None = field(default=None, metadata=about("rate that counts as 100 %", "frames/s"))

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        super().__post_init__()
        in_range("step", self.step, 0.01, COARSEST_STEP)
        if self.full_rate is not None:
            positive("full rate", self.full_rate, "frames/s")


def run(measurer: Measurer, settings: Settings, observe: Observer = ignore) -> MeasurementResult:
    """Measure the frame loss rate over rates; the value is the share lost at 100 %, in %.

    Raises:
        BrokenError: no phase 1 works, or no trial at 100 % speaks of the device.
        NatgaugeError: a trial could not be run at all.
    """
    refuse_unable(measurer.abilities, METRIC, settings)
    ready = loaded.start(measurer, METRIC, settings, observe, throughput_wanted=_relative(settings))
    full = _full_rate(ready, settings)
    measurements = repeat(ready.runner, settings.repeat, lambda _: _once(ready, settings, full))
    notes = [
        f"100 % is {full:.0f} frames/s in each direction{_meaning(settings)}",
        *tolerance_note(settings),
        *ready.preparation.note(),
        *phase2_notes(settings),
        *disturbed_note(measurements),
    ]
    return make_result(METRIC, UNIT, settings.parameters(), measurements, notes)


def shares_of(step: float) -> Iterator[float]:
    """Loads as shares of the highest: 1, then a step less each, below the last step halved, down to the least."""
    last = 1.0
    for number in itertools.count():
        share = 1 - number * step
        if share < step * (1 - 1e-9):
            break
        last = share
        yield share
    while (last := last / 2) >= LEAST_SHARE:
        yield last


def _relative(settings: Settings) -> bool:
    return settings.full_rate is None and settings.placement == "shared"


def _full_rate(ready: Loaded, settings: Settings) -> float:
    if settings.full_rate is not None:
        return settings.full_rate
    top = top_rate(ready.runner.measurer) / settings.active
    return min(ready.throughput * SHARED_MULTIPLE, top) if _relative(settings) else top


def _meaning(settings: Settings) -> str:
    if settings.full_rate is not None:
        return ", as asked for"
    return ", twice the throughput" if _relative(settings) else ", the tester's own highest rate"


def _once(ready: Loaded, settings: Settings, full: float) -> Measurement:
    ready.start_repetition()
    rows: list[Row] = []
    lossless: list[float] = []
    for share in shares_of(settings.step):
        plan = settings.plan(ready.preparation.rate, full * share, settings.trial_seconds)
        # The value is of the first trial; any later one may stay undecided.
        outcome = ready.at(full * share, plan) if rows else ready.must(full * share, plan)
        if outcome is None:
            continue
        rows.append(_row(share, full * share, outcome))
        lossless = [*lossless, full * share] if outcome.verdict is Verdict.PASS else []
        if len(lossless) == LOSS_FREE_IN_A_ROW:
            break
    else:
        ready.notes.append("there were no two trials in a row without loss, down to the lowest rate")
    value = rows[0]["lost_percent" if settings.placement != "shared" else "shortfall_percent"]
    figures = {"highest_rate_without_loss": lossless[0]} if lossless else {}
    return ready.measurement(float(value or 0.0), figures=figures, notes=_shared_note(settings), series=rows)


def _shared_note(settings: Settings) -> list[str]:
    if settings.placement != "shared":
        return []
    return ["in shared placement nothing is lost; shown is the share by which the sending was slowed down"]


def _row(share: float, rate: float, outcome: TrialOutcome) -> Row:
    counts = outcome.phase2
    row: dict[str, float | str | None] = {
        "offered_percent": round(share * 100, 6),
        "offered_rate": rate,
        "lost_percent": 100 * worst({direction: lost_share(one) for direction, one in counts.items()}),
        "shortfall_percent": 100 * worst({direction: shortfall(one) for direction, one in counts.items()}),
        "verdict": str(outcome.verdict),
    }
    for direction, one in counts.items():
        row[f"lost_percent_from_{direction.value}"] = 100 * lost_share(one)
    return row


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    summary="share of frames lost over the rate, from overload down to no loss",
    source="RFC 2544 section 26.3",
    settings=Settings,
    run=run,
)
