# SPDX-License-Identifier: Apache-2.0
"""Connection tear-down rate (RFC 9693 section 4.8): N connections, one command that empties the table, its time.

The command costs time on an empty table, too, so that is measured with the same settings, after every full one, and
subtracted: rate = N / (median when full - median when empty), of unrounded times. It is the rate of emptying the whole
table; removing connections one by one may be another.

Where the difference is not larger than the spread of either sample the rate says little, and is marked. Where a full
table was emptied no slower than an empty one, the host's noise hides the rate: it is at least N / median when full.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from natgauge.errors import BrokenError
from natgauge.inputs.checks import whole
from natgauge.inputs.input import described
from natgauge.measurer import Ability, TearDown
from natgauge.notes import Note
from natgauge.procedures.kit.measure.held_connections import HeldConnections
from natgauge.procedures.kit.measure.phase1 import Phase1Settings
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.result.results import Measurement
from natgauge.procedures.kit.settings import ABOUT_REPEAT, Repeat
from natgauge.procedures.kit.time_budget import TimeUpError, left_out

METRIC = "tear-down-rate"
UNIT = "connections/s"
#: Of fewer times nothing is known of their spread.
LEAST_SAMPLE = 2


@dataclass(frozen=True, kw_only=True)
class TearDownRateSettings(Phase1Settings):
    """Settings of the tear-down rate.

    Attributes:
        repeat: number of repetitions of the whole measurement; each has a sample of its own.
        sample: how often a full table, and an empty one, is emptied in each; 2 to 1000.
    """

    repeat: Repeat = field(default=1, metadata=ABOUT_REPEAT)
    sample: int = field(
        default=10,
        metadata=described(
            "number of times that a full table, and an empty one, are cleared",
            "times",
            partial(whole, lowest=LEAST_SAMPLE, highest=1000, unit="times"),
        ),
    )

    def needs(self) -> frozenset[Ability]:
        """Return the required abilities: the time of emptying, in addition to those of all trials."""
        return super().needs() | {Ability.EMPTY_TIMED}


class _TearDownRate(HeldConnections[TearDownRateSettings]):
    """Runs a repetition; the value is the tear down rate in connections/s."""

    def once(self, _known: float | None) -> Measurement:
        settings, measurer = self.settings, self.runner.measurer
        full, empty = [], []
        for number in range(settings.sample):
            rate = self.preparation.rate
            try:
                outcome = self.must(rate, settings.phase1_plan(rate), settings.sample - number)
            except TimeUpError as error:
                if number < LEAST_SAMPLE:
                    raise
                missing = f"{settings.sample - number} of {settings.sample} times"
                self.repetition_notes.append(left_out(missing, error))
                break
            full.append(_checked(measurer.empty_timed(), outcome.stored))
            empty.append(_checked(measurer.empty_timed(), 0))
        value, figures, notes = tear_down(settings.connections, full, empty)
        rows = [
            {"full_seconds": full_seconds, "empty_seconds": empty_seconds}
            for full_seconds, empty_seconds in zip(full, empty, strict=True)
        ]
        sample = {"full_seconds": tuple(full), "empty_seconds": tuple(empty)}
        limited_by = "device" if figures["difference_seconds"] > 0 else "host"
        repetition = self.measurement(value, limited_by=limited_by, figures=figures, notes=notes, series=rows)
        return replace(repetition, sample=sample, is_sampled=True)


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
) -> tuple[float, dict[str, float], list[Note]]:
    """The rate in connections/s, the figures it is made of in seconds, and how far it is to be trusted.

    If the difference is not positive, the rate is a lower bound.

    Args:
        connections: N.
        full: times of emptying a table of N, in seconds, at least one.
        empty: the same of an empty table.
    """
    difference = statistics.median(full) - statistics.median(empty)
    spread = max(max(full) - min(full), max(empty) - min(empty))
    figures = {
        "full_seconds": statistics.median(full),
        "empty_seconds": statistics.median(empty),
        "difference_seconds": difference,
    }
    if difference <= 0:
        text = "a full table was emptied no slower than an empty one: the rate is at least this; use more connections"
        return connections / figures["full_seconds"], figures, [Note("unreliable", text)]
    for name, seconds in (("lowest", max(full)), ("highest", min(full))):
        if seconds > statistics.median(empty):
            figures[f"rate_{name}"] = connections / (seconds - statistics.median(empty))
    if difference > spread:
        return connections / difference, figures, []
    text = (
        f"the difference of {difference * 1000:.3g} ms is not larger than the spread of the times, "
        f"{spread * 1000:.3g} ms; use more connections"
    )
    return connections / difference, figures, [Note("unreliable", text)]


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    better="higher",
    summary="rate at which connections are removed when the device's table is cleared",
    does="removes {value} when its table is cleared",
    best="removes connections fastest",
    source="RFC 9693 section 4.8",
    settings=TearDownRateSettings,
    start=_TearDownRate,
    profiles={"quick": {"sample": 3}, "standard": {"repeat": 3}, "rfc": {"repeat": 10}},
)
