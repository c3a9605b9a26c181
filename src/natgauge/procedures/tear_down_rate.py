# SPDX-License-Identifier: Apache-2.0
"""Connection tear-down rate (RFC 9693 section 4.8): N connections, one command that empties the table, its time.

The command costs time on an empty table, too, so that is measured with the same settings, after every full one, and
subtracted: rate = N / (median when full - median when empty), of unrounded times. It is the rate of emptying the whole
table; removing connections one by one may be another.

Where the difference is not larger than the spread of either sample the rate says little, and is marked.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from natgauge.errors import BrokenError
from natgauge.measurer import Ability, Measurer, TearDown, TimesEmptying
from natgauge.procedures.loaded import Loaded, measure_standing
from natgauge.procedures.preparation import EstablishingSettings
from natgauge.procedures.procedure import Procedure
from natgauge.procedures.progress import Observer, ignore
from natgauge.procedures.results import Measurement, MeasurementResult
from natgauge.procedures.settings import Repeat, about, verb, whole

METRIC = "tear-down-rate"
UNIT = "connections/s"


@dataclass(frozen=True, kw_only=True)
class Settings(EstablishingSettings):
    """Settings of the tear-down rate.

    Attributes:
        repeat: of the whole measurement; each has a sample of its own.
        sample: how often a full table, and an empty one, is emptied in each; 2 to 1000.
    """

    repeat: Repeat = field(default=1, metadata=about("repetitions of the whole measurement, or auto", "repetitions"))
    sample: int = field(default=10, metadata=about("how often a full and an empty table are emptied", "times"))

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        super().__post_init__()
        whole("sample", self.sample, 2, 1000, "times")

    def needs(self) -> frozenset[Ability]:
        """The time of emptying."""
        return super().needs() | {Ability.EMPTY_TIMED}


def run(measurer: Measurer, settings: Settings, observe: Observer = ignore) -> MeasurementResult:
    """Measure the tear-down rate in connections/s.

    Raises:
        BrokenError: phase 1 does not work, or the table does not hold what it should before or after.
        NatgaugeError: a trial could not be run at all.
    """
    return measure_standing(measurer, (METRIC, UNIT), settings, observe, lambda ready: _once(ready, settings))


def _once(ready: Loaded, settings: Settings) -> Measurement:
    emptier = verb(ready.runner.measurer, TimesEmptying)  # type: ignore[type-abstract] # a protocol is meant
    full, empty = [], []
    for number in range(settings.sample):
        rate = ready.preparation.rate
        outcome = ready.must(rate, settings.phase1_plan(rate), settings.sample - number)
        full.append(_checked(emptier.empty_timed(), outcome.stored))
        empty.append(_checked(emptier.empty_timed(), 0))
    value, figures, notes = tear_down(settings.connections, full, empty)
    rows = [{"full_seconds": one, "empty_seconds": other} for one, other in zip(full, empty, strict=True)]
    return ready.measurement(value, figures=figures, notes=notes, series=rows)


def _checked(torn: TearDown, expected: int) -> float:
    """The time, when the device's own counts say that it did what was timed."""
    if torn.count_after not in {None, 0}:
        raise BrokenError(f"{METRIC}: {torn.count_after} connections were left after emptying {expected}")
    if torn.count_before is not None and torn.count_before != expected:
        raise BrokenError(
            f"{METRIC}: the device's table held {torn.count_before} connections before emptying instead of {expected}"
        )
    return torn.seconds


def tear_down(
    connections: int, full: Sequence[float], empty: Sequence[float]
) -> tuple[float, dict[str, float], list[str]]:
    """The rate in connections/s, the figures it is made of in seconds, and how far it is to be trusted.

    Args:
        connections: N.
        full: times of emptying a table of N, in seconds, at least one.
        empty: the same of an empty table.
    """
    difference = statistics.median(full) - statistics.median(empty)
    spread = max(max(full) - min(full), max(empty) - min(empty))
    figures = {
        "full_seconds": statistics.median(full),
        "full_seconds_minimum": min(full),
        "full_seconds_maximum": max(full),
        "empty_seconds": statistics.median(empty),
        "empty_seconds_minimum": min(empty),
        "empty_seconds_maximum": max(empty),
        "difference_seconds": difference,
    }
    if difference <= 0:
        return 0.0, figures, ["unreliable: a full table was emptied no slower than an empty one; use more connections"]
    for name, seconds in (("lowest", max(full)), ("highest", min(full))):
        if seconds > statistics.median(empty):
            figures[f"rate_{name}"] = connections / (seconds - statistics.median(empty))
    if difference > spread:
        return connections / difference, figures, []
    note = (
        f"unreliable: the difference of {difference * 1000:.3g} ms is not larger than the spread of the times, "
        f"{spread * 1000:.3g} ms; use more connections"
    )
    return connections / difference, figures, [note]


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    summary="connections per second that go when the device's table is emptied",
    source="RFC 9693 section 4.8",
    settings=Settings,
    run=run,
)
