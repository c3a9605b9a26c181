# SPDX-License-Identifier: Apache-2.0
"""Connection tracking table capacity (RFC 9693 section 4.9): the most connections that are all kept.

Validation (section 4.6) decides whether C connections fit: they are established and afterwards each is asked once. So
it does not matter what a full device does, whether it refuses the new, throws out the least recently used or the
oldest: one of the C does not answer. A device that slows down at its limit is found by the rate: C is safe while its
validated connection rate R has not dropped below a share of the last safe one.

1. C0 surely fits; its rate R0 is searched.
2. Exponential search: C doubles until R < beta * R of the last safe C, or the device collapses.
3. Binary search between the last safe and the first unsafe C, with gamma in place of beta, until they are at most
   `capacity_error` apart. The answer is the highest safe C, a number of connections that really was kept.

Where this leaves the standard's pseudo code: the interval ends the search at `<=` E, because whole numbers are never
nearer than 1; the last safe rate is itself tried first, since a search that never tries its upper end lowers it a bit
with each step. `method` "quick" decides each C with a trial or two at a rate that it must not fall below, instead of
a search for its rate; the rates that these shares refer to stay those that were fully searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, get_args

from natgauge.errors import BrokenError, UsageError
from natgauge.measurer import Ability, TrialOutcome, TrialPlan, Verdict
from natgauge.procedures.kit import validation
from natgauge.procedures.kit.events import Bounds
from natgauge.procedures.kit.invalid_trials import at_one_load, until_decided
from natgauge.procedures.kit.notes import tolerance_note
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.rate_search import top_rate
from natgauge.procedures.kit.repetitions import Repetitions
from natgauge.procedures.kit.results import Attempt, Measurement, Row, verdict_counts
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.procedures.kit.settings import ABOUT_REPEAT, Repeat, about
from natgauge.procedures.kit.values import in_range, one_of, whole

METRIC = "table-capacity"
UNIT = "connections"
Method = Literal["quick", "full"]

#: Without a C0 from the user the search starts at this share of the connections that there are four tuples for.
FIRST_SHARE = 1 / 64
#: Rates below this, in connections/s, are not tried.
LEAST_RATE = 10.0
#: A share of the last safe rate that surely is no overload.
COMFORTABLE_SHARE = 0.7
#: Further validations, after the first and the slower one, where the device's own count has all connections.
MORE_ASKINGS = 3

_CHECK_DROP = partial(in_range, lowest=0.01, highest=0.99)


@dataclass(frozen=True, kw_only=True)
class Settings(validation.ValidationSettings):
    """Settings of the table capacity; `connections` is the most that is ever tried, the number of four tuples.

    Attributes:
        repeat: of the whole measurement.
        safe_connections: C0, surely below the capacity; None = 1/64 of the connections, at least 1.
        method: "quick" decides a C with one trial, "full" searches its rate as the standard does.
        beta: a rate below this share of the last safe one is an unacceptable drop, in the exponential search.
        gamma: the same in the final binary search; both 0.01 to 0.99.
        capacity_error: E, the most by which the highest safe and the lowest unsafe C may differ, at least 1.
        rate_error: e, error of the searched rates as a share, 0.001 to 0.5.
    """

    repeat: Repeat = field(default=1, metadata=ABOUT_REPEAT)
    safe_connections: int | None = field(
        default=None, metadata=about("C0, a number of connections that surely fits", "connections")
    )
    method: Method = field(
        default="quick",
        metadata=about(
            "how a number of connections is decided: quick or full", check=partial(one_of, allowed=get_args(Method))
        ),
    )
    beta: float = field(
        default=0.1, metadata=about("unacceptable drop of the rate, exponential search", "share", _CHECK_DROP)
    )
    gamma: float = field(
        default=0.5, metadata=about("unacceptable drop of the rate, final search", "share", _CHECK_DROP)
    )
    capacity_error: int = field(default=1, metadata=about("error of the capacity", "connections"))
    rate_error: float = field(
        default=0.1,
        metadata=about("error of the searched rates", "share", partial(in_range, lowest=0.001, highest=0.5)),
    )

    def __post_init__(self) -> None:
        """Refuse what does not fit the connections, and four tuples that cannot be counted."""
        super().__post_init__()
        if self.safe_connections is not None:
            whole("safe connections", self.safe_connections, 1, self.connections)
        whole("capacity error", self.capacity_error, 1, self.connections, "connections")
        if self.order == "with-replacement":
            raise UsageError(
                "order: with-replacement draws four tuples twice, so they cannot be counted; choose another"
            )

    @property
    def fills_table(self) -> bool:
        """It does."""
        return True

    @property
    def first(self) -> int:
        """C0."""
        return self.safe_connections or max(1, int(self.connections * FIRST_SHARE))


class _CollapsedError(Exception):
    """The device is gone; it was started anew, or cannot be."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One number of connections that was decided."""

    stage: str
    connections: int
    rate: float
    needed: float
    decided: str

    def row(self) -> Row:
        return {
            "stage": self.stage,
            "connections": float(self.connections),
            "rate": self.rate,
            "rate_needed": self.needed,
            "decided": self.decided,
        }


class _TableCapacity(Repetitions[Settings]):
    """The capacity in connections; each repetition knows nothing of the one before."""

    def once(self, _known: float | None) -> Measurement:
        return _Capacity(self.runner, self.settings).once()

    def notes(self, _measurements: Sequence[Measurement]) -> Sequence[str]:
        settings = self.settings
        method = (
            f"method {settings.method}, C0 {settings.first}, alpha {settings.alpha:g}, beta {settings.beta:g}, "
            f"gamma {settings.gamma:g}"
        )
        return [method, *tolerance_note(settings)]


class _Capacity:
    """One repetition."""

    def __init__(self, runner: TrialRunner, settings: Settings) -> None:
        self._runner = runner
        self._settings = settings
        self._validation = settings.validation()
        self._attempts: list[Attempt] = []
        self._notes: list[str] = []
        self._steps: list[_Step] = []
        self._safe = 0
        self._unsafe: int | None = None
        self._limit = "device"

    def once(self) -> Measurement:
        """Search, and tell every step."""
        first_rate = self._first()
        safe_rate = self._exponential(first_rate)
        figures = {"first_rate": first_rate, "exponential_safe": float(self._safe), "exponential_safe_rate": safe_rate}
        if self._unsafe is not None:
            figures["exponential_unsafe"] = float(self._unsafe)
            self._binary(safe_rate)
        else:
            self._limit = "tester"
            self._notes.append(
                f"all {self._safe} connections that there are four tuples for were kept: the capacity may be higher; "
                "give more connections"
            )
        return Measurement(
            value=float(self._safe),
            upper=None if self._unsafe is None else float(self._unsafe),
            limited_by=self._limit,
            trials=verdict_counts(self._attempts),
            attempts=tuple(self._attempts),
            figures=figures,
            notes=tuple(self._notes),
            series=tuple(step.row() for step in self._steps),
        )

    # The three stages

    def _first(self) -> float:
        """R0: the validated rate of C0."""
        count = self._settings.first
        try:
            rate = self._search(count, top_rate(self._runner.measurer), 0.0)
        except _CollapsedError as error:
            raise BrokenError(f"{METRIC}: the device collapsed with C0 = {count} connections; {error}") from None
        if rate == 0:
            raise BrokenError(
                f"{METRIC}: C0 = {count} connections were not kept at any rate, but C0 must surely fit; "
                f"give fewer safe connections: {self._attempts[-1].outcome.reason}"
            )
        self._steps.append(_Step("C0", count, rate, 0.0, "safe"))
        self._safe = count
        return rate

    def _exponential(self, first_rate: float) -> float:
        """Double C until it is unsafe or the four tuples are used up; the searched rate of the last safe one."""
        rate, most = first_rate, self._settings.connections
        while self._safe < most:
            tested = min(2 * self._safe, most)
            found = self._decide("exponential", tested, rate, self._settings.beta)
            if found is None:
                self._unsafe = tested
                break
            rate, self._safe = found, tested
        if self._settings.method == "quick" and self._unsafe is not None and self._safe > self._settings.first:
            # Gamma refers to a rate that was searched, not to one that was merely enough.
            rate = self._searched_again(rate)
        return rate

    def _searched_again(self, rate: float) -> float:
        try:
            found = self._search(self._safe, rate, 0.0)
        except _CollapsedError:
            found = 0.0
        if found:
            self._steps.append(_Step("rate of the last safe", self._safe, found, 0.0, "safe"))
            return found
        self._notes.append(f"the rate of {self._safe} connections could not be searched; that of C0 is used")
        return rate

    def _binary(self, safe_rate: float) -> None:
        """Narrow the interval; both its ends were tried."""
        rate = safe_rate
        while self._unsafe is not None and self._unsafe - self._safe > self._settings.capacity_error:
            tested = (self._safe + self._unsafe) // 2
            found = self._decide("binary", tested, rate, self._settings.gamma)
            if found is None:
                self._unsafe = tested
            else:
                rate, self._safe = found, tested

    # One number of connections

    def _decide(self, stage: str, count: int, safe_rate: float, share: float) -> float | None:
        """The rate that further shares refer to when so many connections are safe, None when they are not."""
        needed = share * safe_rate
        try:
            if self._settings.method == "quick":
                found, next_rate = self._quick(count, safe_rate, needed), safe_rate
                kept = found > 0
            else:
                found = next_rate = self._search(count, safe_rate, needed)
                kept = found >= needed
            decided = "safe" if kept else "unsafe"
        except _CollapsedError:
            found, next_rate, kept, decided = 0.0, 0.0, False, "collapsed"
        self._steps.append(_Step(stage, count, found, needed, decided))
        return next_rate if kept else None

    def _quick(self, count: int, safe_rate: float, needed: float) -> float:
        """A rate, no lower than needed, at which so many are kept; 0 when they are not.

        A comfortable rate is tried first, as it is over sooner: to pass it proves more than is needed. To fail it
        proves nothing, unless the table was full.
        """
        for rate in sorted({max(needed, COMFORTABLE_SHARE * safe_rate), needed}, reverse=True):
            if self._passes(count, rate):
                return rate
            if self._attempts[-1].outcome.limited_by == "table":
                break
        return 0.0

    def _search(self, count: int, top: float, floor: float) -> float:
        """The highest validated rate for so many connections, not above `top`; 0 when even less than `floor` fails.

        The top itself is tried first. Below it the search halves until its bounds are near enough; a failure at or
        below the floor already decides.
        """
        lower, upper = 0.0, top
        rate = top
        while rate >= LEAST_RATE:
            if self._passes(count, rate):
                lower = rate
                if rate == top:
                    break
            else:
                upper = rate
                if rate <= floor or self._attempts[-1].outcome.limited_by == "table":
                    break
            if upper - lower <= self._settings.rate_error * upper:
                break
            rate = (lower + upper) / 2
        return lower

    def _passes(self, count: int, rate: float) -> bool:
        """Whether all are established at this rate and answer afterwards; the asking slows down where it is at fault.

        Raises:
            _CollapsedError: the device is gone; it was started anew.
            BrokenError: no trial speaks of the device, or it cannot be started anew.
        """
        plan = validation.plan(self._settings, count, rate, self._validation.rate(rate))
        outcome = self._valid(plan, rate)
        if outcome.verdict is Verdict.PASS:
            return True
        if outcome.verdict is Verdict.COLLAPSED:
            self._recover(count, outcome)
            raise _CollapsedError(outcome.reason)
        slower = None
        if outcome.failed_phase == 2 and (outcome.table_count is None or outcome.table_count >= count):
            # All are there by the device's own count, or it has none: the asking may be what fails.
            slow = validation.slower(plan)
            slower = self._valid(slow, rate)
            if _holds_all(slower, count):
                slower = self._asked_again(slow, slower)
        why = validation.cause(outcome, slower, count)
        if why == "r too high" and plan.phase2 is not None:
            most = plan.phase2.responder_rate * validation.SLOWER_SHARE
            self._validation = replace(self._validation, most=most)
            self._notes.append(f"asking at more than {most:.0f} frames/s loses frames, so nothing is asked faster")
            return True
        self._limit = "table" if why == "table full" else "device"
        return False

    def _asked_again(self, plan: TrialPlan, failed: TrialOutcome) -> TrialOutcome:
        """The last of further trials; a frame that the device spoils now and then must not pass for a full table."""
        for _ in range(MORE_ASKINGS):
            failed = self._valid(plan, plan.phase1_rate)
            if not _holds_all(failed, plan.connections):
                return failed
        self._notes.append(
            f"{plan.connections} connections count as too many although the device's own count had them all: "
            f"{failed.reason}; a loss tolerance may be what this device needs"
        )
        return failed

    def _valid(self, plan: TrialPlan, rate: float) -> TrialOutcome:
        """Try until a trial speaks of the device.

        Raises:
            BrokenError: none did.
        """

        def kept() -> TrialOutcome:
            outcome = self._runner.run(plan, rate, self._bounds())
            self._attempts.append(Attempt(rate, short=False, outcome=outcome))
            return outcome

        tried = until_decided(kept, at_one_load(self._settings.invalid_repeats))
        if not tried.decided:
            raise BrokenError(f"{METRIC}: with {plan.connections} connections {tried.told()}")
        return tried.outcome

    def _recover(self, count: int, outcome: TrialOutcome) -> None:
        """Start the collapsed device anew (RFC 9693 section 4.9 counts a collapse as an unacceptable drop)."""
        self._notes.append(f"the device collapsed with {count} connections: {outcome.reason}")
        self._limit = "device"
        measurer = self._runner.measurer
        if Ability.RESTART not in measurer.abilities:
            raise BrokenError(
                f"{METRIC}: the device collapsed with {count} connections, and it cannot be restarted here"
            )
        measurer.restart()

    def _bounds(self) -> Bounds:
        lower = float(self._safe) or None
        upper = None if self._unsafe is None else float(self._unsafe)
        left = None
        if self._unsafe is not None:
            left = max(1, ((self._unsafe - self._safe) // self._settings.capacity_error).bit_length())
        return Bounds(lower, upper, left)


def _holds_all(outcome: TrialOutcome, count: int) -> bool:
    """Whether a failed validation is none of the table's fault: the device's own count has every connection."""
    failed = outcome.verdict is Verdict.FAIL and outcome.failed_phase == 2
    return failed and outcome.table_count is not None and outcome.table_count >= count


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    summary="the most connections that the device keeps",
    source="RFC 9693 section 4.9",
    settings=Settings,
    start=_TableCapacity,
    profiles={
        "quick": {"rate_error": 0.2},
        "standard": {"repeat": 3},
        # RFC 9693: ten experiments (section 6), the pseudo code to the letter (section 4.9).
        "rfc": {"method": "full", "repeat": 10},
    },
)
