# SPDX-License-Identifier: Apache-2.0
"""Stability: does a device still forward every frame after hours at a constant load?

docs/method/stability.md has the method. Each period of phase 2 is judged as a trial of its own. The device's own count
of connections and the available memory of its machine are tested for a trend, too (see `natgauge.statistics.ranks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from natgauge.errors import BrokenError
from natgauge.figure_text import number as written
from natgauge.inputs.input import chosen, wrong
from natgauge.measurer import Ability
from natgauge.metrics.catalogue import JUDGED, STABILITY
from natgauge.notes import Note
from natgauge.procedures.kit.frame_counts import lost_share, shortfall, worst_percent
from natgauge.procedures.kit.held_connections import (
    ABOUT_LOAD,
    HeldConnections,
    ThroughputShareSettings,
    throughput_of,
)
from natgauge.procedures.kit.phases import ABOUT_TRIAL_SECONDS, Phase1Settings, Phase2Settings
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.results import Attempt, Measurement
from natgauge.procedures.kit.runner import TimeUpError, TrialRunner, seconds_before_phase2
from natgauge.procedures.kit.settings import ABOUT_MOST_SECONDS, ABOUT_REPEAT, Repeat
from natgauge.records.repetition import Row
from natgauge.statistics.ranks import mann_kendall, step_of
from natgauge.trials import LAG_SHARE, LEAST_LAG_SECONDS, Period, Trial, TrialPlan
from natgauge.words import Verdict

#: The result has a row for each period.
MOST_PERIODS: Final = 200_000
#: Longest pause between two periods without loss, in seconds, of a device that is read in 0.1 s; it only decides how
#: many periods fit into a time limit.
PAUSE_SECONDS: Final = 0.2
#: A smaller change of the available memory is not reported as a trend: other programs of the machine use it, too.
LEAST_MEMORY_CHANGE: Final = 0.05
_MIB: Final = 1 << 20
#: If a larger share of the periods is INVALID, the others decide nothing.
MOST_INVALID: Final = 1 / 3


@dataclass(frozen=True, kw_only=True)
class StabilitySettings(ThroughputShareSettings, Phase2Settings, Phase1Settings):
    """Settings of the stability; `trial_seconds` is the length of a period."""

    repeat: Repeat = field(default=1, metadata=ABOUT_REPEAT)
    trial_seconds: float = field(default=1.0, metadata=ABOUT_TRIAL_SECONDS)
    most_seconds: float | None = field(default=None, metadata=ABOUT_MOST_SECONDS)
    hours: float = chosen(1.0, "hours of traffic, without the pauses between periods", "h", (0.0001, 168))
    load: float = field(default=0.5, metadata=ABOUT_LOAD)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.periods > MOST_PERIODS:
            raise wrong(
                "hours",
                f"{self.hours:g} h are {self.periods} periods of {self.trial_seconds:g} s, more than {MOST_PERIODS}; "
                "give more --trial-seconds",
            )

    @property
    def periods(self) -> int:
        """Number of periods, at least 1."""
        return max(1, round(self.hours * 3600 / self.trial_seconds))

    def needs(self) -> frozenset[Ability]:
        """Many periods over the same connections."""
        return super().needs() | {Ability.PERIODS}

    def notes(self) -> list[Note]:
        """None: no RFC requires a length of the periods."""
        return []

    def periods_plan(self, phase1_rate: float, rate: float, periods: int) -> TrialPlan:
        """One trial with all periods."""
        plan = self.plan(phase1_rate, rate, self.trial_seconds)
        return replace(plan, phase2=replace(self.phase2(rate, self.trial_seconds), periods=periods))


class _Quantity(NamedTuple):
    """A quantity that is tested for a trend."""

    name: str
    text: str
    unit: str
    always: bool = False


_QUANTITIES: Final = (
    _Quantity("lost_percent", "the share of lost frames", "percentage points"),
    _Quantity("late_frames", "the number of late frames", "frames a period"),
    _Quantity("lag_ms", "the lag at the end of a period", "ms"),
    _Quantity("connections", "the device's own count", "connections", always=True),
    _Quantity("free_mib", "the available memory of the device's machine", "MiB", always=True),
)


class _Stability(HeldConnections[StabilitySettings]):
    """The share of failed periods in %."""

    def __init__(self, runner: TrialRunner, settings: StabilitySettings) -> None:
        super().__init__(runner, settings)
        self.rate = throughput_of(self, settings) * settings.load

    def once(self, _known: float | None) -> Measurement:
        periods = self._periods()
        self._attempts += [Attempt(self.rate, short=False, outcome=period.outcome) for period in periods]
        counted = [period for period in periods if period.outcome.verdict is not Verdict.INVALID]
        if not counted:
            raise BrokenError(
                f"{STABILITY}: all {len(periods)} periods were INVALID, the last one because of "
                f"{periods[-1].outcome.reason}"
            )
        failed = [period for period in counted if period.outcome.verdict is not Verdict.PASS]
        rows = [_row(period, lag=self.settings.placement == "shared") for period in periods]
        invalid = len(periods) - len(counted)
        figures = {
            "periods": float(len(periods)),
            JUDGED: float(len(counted)),
            "failed_periods": float(len(failed)),
            "invalid_periods": float(invalid),
            "lost_percent": _lost_percent(counted),
        }
        least, most = (100 * number / len(periods) for number in (len(failed), len(failed) + invalid))
        value = 100 * len(failed) / len(counted)
        if invalid:
            figures |= dict(zip(STABILITY.sampled_between or (), (least, most), strict=True))
        notes = [
            *_undecided(invalid, len(periods), least, most),
            *_failures(failed, figures),
            *self._counts(periods),
            *self._trends(rows, figures),
        ]
        if len(periods) < self.settings.periods and self.runner.interrupted:
            text = f"the user ended the trial after {len(periods)} of {self.settings.periods} periods"
            notes.append(Note("ended early", text))
        measured = self.measurement(value, figures=figures, notes=notes, series=rows)
        return replace(measured, upper=max(value, most)) if invalid else measured

    def notes(self, _measurements: Sequence[Measurement]) -> Sequence[Note]:
        text = f"{written(self.rate)} {self.settings.rate_unit}, in periods of {self.settings.trial_seconds:g} s"
        return [Note("method", text)]

    def _periods(self) -> list[Period]:
        """Run the trial; where phase 1 did not establish the connections, it ends after one period and begins again."""
        settings = self.settings
        for _ in range(settings.invalid_repeats + 1):
            plan = settings.periods_plan(self.preparation.rate, self.rate, self._number())
            periods = self.runner.run_periods(plan, self.rate, self._are_established)
            first = self.preparation.judge(periods[0].outcome)
            if self._are_established(first):
                if len(periods) < settings.periods and not self.runner.interrupted:
                    text = f"{len(periods)} of {settings.periods} periods fitted into the time"
                    self.repetition_notes.append(Note("time used up", text))
                return periods
            self._attempts.append(Attempt(self.rate, short=False, outcome=first))
            if self.preparation.hopeless or self.runner.interrupted:
                break
        why = "; ".join(filter(None, (first.reason, self.preparation.remedy)))
        raise BrokenError(f"{STABILITY}: phase 1 could not establish the connections: {why}")

    def _are_established(self, outcome: Trial) -> bool:
        phase1, tolerance = outcome.phase1, self.settings.loss_tolerance
        return outcome.failed_phase != 1 and phase1.received_frames >= (1 - tolerance) * phase1.intended_frames

    def _number(self) -> int:
        """Number of periods that fit into the time that is left."""
        left, settings = self.runner.budget.left, self.settings
        if left is None:
            return settings.periods
        before = seconds_before_phase2(settings.periods_plan(self.preparation.rate, self.rate, 1))
        each = settings.trial_seconds + PAUSE_SECONDS
        if left < before + each:
            raise TimeUpError(f"{left:.1f} s are left, a trial of one period takes {before + each:.1f} s")
        return max(1, min(int((left - before) / each), settings.periods))

    def _counts(self, periods: Sequence[Period]) -> list[Note]:
        """Return a note on connections that the device forgot, or opened beyond those of phase 1."""
        counts = [period.outcome.table_count for period in periods if period.outcome.table_count is not None]
        stored = periods[0].outcome.stored
        if not counts or self.settings.stateless or min(counts) == max(counts) == stored:
            return []
        text = f"the device's own count was {min(counts)} to {max(counts)}, phase 1 established {stored} connections"
        return [Note("device", text)]

    def _trends(self, rows: Sequence[Row], figures: dict[str, float]) -> list[Note]:
        """Add the figures of each quantity's trend, and return notes on those that are significant."""
        notes = []
        for quantity in _QUANTITIES:
            judged = [row for row in rows if quantity.always or row["verdict"] != Verdict.INVALID]
            kept = [row for row in judged if isinstance(row.get(quantity.name), int | float)]
            values = [float(row[quantity.name] or 0.0) for row in kept]
            trend = mann_kendall(values)
            if trend is None:
                continue
            step = step_of(values)
            change = trend.slope * (len(values) - 1) if step is None else step.change
            figures[f"{quantity.name}_tau"] = trend.tau
            figures[f"{quantity.name}_p"] = trend.probability
            figures[f"{quantity.name}_change"] = change
            if trend.is_significant and abs(change) >= self._least_change(quantity.name, values):
                how = "with time" if step is None else f"at once, after {kept[step.place - 1]['seconds']} s"
                of = " in all" if step is None else ""
                text = (
                    f"{quantity.text} {'rose' if change > 0 else 'fell'} {how}, by {written(abs(change))} "
                    f"{quantity.unit}{of} (Mann-Kendall test: tau {trend.tau:.2f}, p {written(trend.probability)})"
                )
                notes.append(Note("device", text, value=change))
        return notes

    def _least_change(self, name: str, values: Sequence[float]) -> float:
        """Least change of a quantity over the trial that a note reports."""
        least: Mapping[str, float] = {
            "lag_ms": 1000 * max(LAG_SHARE * self.settings.trial_seconds, LEAST_LAG_SECONDS),
            "free_mib": LEAST_MEMORY_CHANGE * max(values),
        }
        return least.get(name, 0.0)


def _undecided(invalid: int, periods: int, least: float, most: float) -> list[Note]:
    """Return a doubt where so many periods were not judged that the others say little of the trial.

    Of all periods `least` to `most` % may have failed.
    """
    if invalid <= MOST_INVALID * periods:
        return []
    text = (
        f"{invalid} of {periods} periods were INVALID, and only {periods - invalid} judged: of all periods between "
        f"{written(least)} % and {written(most)} % may have failed"
    )
    return [Note("undecided", text)]


def _lost_percent(periods: Sequence[Period]) -> float:
    """Share of the frames of all directions that was lost and not excused, in %."""
    outcomes = [period.outcome for period in periods]
    offered = sum(counts.offered_frames for outcome in outcomes for counts in outcome.phase2.values())
    lost = sum(counts.lost for outcome in outcomes for counts in outcome.phase2.values())
    excused = sum(sum(outcome.excused_by_direction.values()) for outcome in outcomes)
    return 100 * (lost - excused) / offered if offered else 0.0


def _failures(failed: Sequence[Period], figures: dict[str, float]) -> list[Note]:
    """Add the figures of the first failure and of the worst period, and return notes on them."""
    if not failed:
        return []
    outcomes = [period.outcome for period in failed]
    missing = [worst_percent(shortfall, outcome, outcome.excused_by_direction) for outcome in outcomes]
    first, least = failed[0], failed[missing.index(max(missing))]
    figures["first_failure_seconds"] = first.seconds
    figures["worst_shortfall_percent"], figures["worst_seconds"] = max(missing), least.seconds
    text = (
        f"the first failed period ended after {first.seconds:.1f} s ({first.outcome.reason}); the worst one after "
        f"{least.seconds:.1f} s ({least.outcome.reason})"
    )
    return [Note("device", text, len(failed))]


def _row(period: Period, *, lag: bool) -> Row:
    """Return the row of a period; `lag`: an overloaded device makes the tester late, and loses nothing."""
    outcome, streams = period.outcome, period.outcome.phase2.values()
    row: dict[str, float | str | None] = {
        "seconds": round(period.seconds, 3),
        "verdict": str(outcome.verdict),
        "lost_frames": float(sum(counts.lost for counts in streams)),
        "lost_percent": worst_percent(lost_share, outcome, outcome.excused_by_direction),
        "late_frames": float(sum(counts.late for counts in streams)),
    }
    if lag:
        row["lag_ms"] = max(max(counts.final_lag_seconds, counts.settled_lag_seconds) for counts in streams) * 1000
    row["connections"] = None if outcome.table_count is None else float(outcome.table_count)
    row["free_mib"] = None if period.free_octets is None else round(period.free_octets / _MIB, 3)
    return row


PROCEDURE = Procedure(
    STABILITY,
    settings=StabilitySettings,
    start=_Stability,
    profiles={
        "quick": {"trial_seconds": 1.0, "most_seconds": None, "hours": 0.005},
        "standard": {"trial_seconds": 1.0, "most_seconds": None, "repeat": 1},
        "rfc": {"trial_seconds": 1.0, "repeat": 1, "hours": 24.0},
    },
)
