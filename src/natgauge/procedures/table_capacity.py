# SPDX-License-Identifier: Apache-2.0
"""Connection tracking table capacity (RFC 9693 section 4.9): the largest number of connections that are all kept.

docs/method/table-capacity.md has the method, and how it differs from the standard's pseudo code. Validation
(`kit.validation`) decides whether C connections fit. The rate reveals a device that slows down at its limit: C is safe
while its validated connection rate R is at least a set share of the last safe one. The last safe rate itself is tried
first, because a search that never tries its upper end reduces it a bit with each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from natgauge.causes.cause import FULL, Cause, FullTable, of_share
from natgauge.errors import BrokenError
from natgauge.inputs.input import chosen, whole, wrong
from natgauge.metrics.catalogue import TABLE_CAPACITY
from natgauge.notes import Note
from natgauge.procedures.kit import queues, validation
from natgauge.procedures.kit.procedure import Procedure, Repetitions
from natgauge.procedures.kit.rate_search import top_rate
from natgauge.procedures.kit.results import Measurement, tolerance_note, verdict_counts
from natgauge.procedures.kit.runner import Bounds, TimeUpError, TrialRunner
from natgauge.procedures.kit.settings import ABOUT_REPEAT, Repeat
from natgauge.records.repetition import Row
from natgauge.trials import Trial
from natgauge.words import OF_PORTS, LimitedBy, TcpState

#: Without a C0 from the user the search starts at this share of the connections that there are four tuples for.
FIRST_SHARE = 1 / 64
#: A trial that keeps more than this multiple of a number of connections shows that this number was not too many.
CLEARLY_MORE = 1.02
#: A share of the last safe rate that surely is no overload.
COMFORTABLE_SHARE = 0.7
#: Shortest trial of a search, as a share of the time that frames may wait: shorter trials cannot measure a rate.
SHORTEST_SHARE = 0.25
#: In `shared` placement nothing waits, but the sender may be 0.2 ms late, and a batch.
SHARED_WAIT_SECONDS = 0.001

_CHECK_DROP = (0.01, 0.99)


@dataclass(frozen=True, kw_only=True)
class TableCapacitySettings(validation.ValidationSettings):
    """Settings of the table capacity; `connections` is the most that is ever tried, the number of four tuples."""

    repeat: Repeat = field(default=1, metadata=ABOUT_REPEAT)
    state: TcpState = chosen(
        "established", "state of the TCP connections that fill the table: established or half-open", group="traffic"
    )
    safe_connections: int | None = chosen(
        None, "C0, a number of connections that the table can hold", "connections", default="1/64 of the connections"
    )
    method: Literal["quick", "full"] = chosen(
        "quick", "one trial for each number of connections (quick), or a search for its rate (full)"
    )
    beta: float = chosen(0.1, "unacceptable drop of the rate in the exponential search", "share", _CHECK_DROP)
    gamma: float = chosen(0.5, "unacceptable drop of the rate in the final search", "share", _CHECK_DROP)
    capacity_error: int = chosen(1, "largest error of the capacity", "connections")
    rate_error: float = chosen(0.1, "largest error of a searched rate", "share", (0.001, 0.5))

    fills_table = True

    def as_run(self) -> TableCapacitySettings:
        """Return these settings, with a time limit for each frame where there are queues before the device."""
        return queues.with_wait_limit(self)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.safe_connections is not None:
            whole("safe connections", self.safe_connections, 1, self.connections)
        if self.state not in {"established", "half-open"}:
            raise wrong("state", f"{self.state} connections are closed, and no query shows them; choose half-open")
        whole("capacity error", self.capacity_error, 1, self.connections, "connections")
        if self.order == "with-replacement":
            raise wrong("order", "with-replacement draws four tuples twice, so they cannot be counted; choose another")

    @property
    def half_open(self) -> bool:
        """Whether connections stay half-open."""
        return self.state == "half-open"

    @property
    def first(self) -> int:
        """C0, the first number of connections."""
        return self.safe_connections or max(1, int(self.connections * FIRST_SHARE))


class _Rate(NamedTuple):
    """The searched rate of a number of connections, in 1/s, and what the device surely does (see `queues`)."""

    rate: float
    least: float


def _step(  # noqa: PLR0913 - the columns of a row
    stage: str, connections: int, rate: _Rate, needed: float = 0.0, *, decided: str, why: str = ""
) -> Row:
    """Return the row of a decision on one number of connections, and of the trial that decided it."""
    return {
        "stage": stage,
        "connections": float(connections),
        "rate": rate.rate,
        "rate_at_least": rate.least,
        "rate_needed": needed,
        "decided": decided,
        "why": why,
    }


class _TableCapacity(Repetitions[TableCapacitySettings]):
    """The capacity in connections; each repetition is independent of the one before."""

    def once(self, _known: float | None) -> Measurement:
        return _Capacity(self.runner, self.settings).once()

    def notes(self, _measurements: Sequence[Measurement]) -> Sequence[Note]:
        settings = self.settings
        method = (
            f"method {settings.method}, C0 {settings.first}, alpha {settings.alpha:g}, beta {settings.beta:g}, "
            f"gamma {settings.gamma:g}"
        )
        return [Note("method", method), *tolerance_note(settings.loss_tolerance)]


class _Capacity:
    """Runs one repetition."""

    def __init__(self, runner: TrialRunner, settings: TableCapacitySettings) -> None:
        self._top_rate = top_rate(runner.measurer)
        self._settings = settings
        self._trials = validation.CapacityTrials(runner, settings)
        self._notes: list[Note] = []
        self._steps: list[Row] = []
        self._rate = _Rate(self._top_rate, 0.0)
        self._safe = 0
        self._unsafe: int | None = None
        self._decided = True
        self._limit: LimitedBy = "ranges"

    def once(self) -> Measurement:
        first_rate = self._first()
        figures = {"first_connections": float(self._safe), "first_rate": first_rate}
        self._exponential()
        figures |= {"exponential_safe": float(self._safe), "exponential_safe_rate": self._rate.rate}
        if self._unsafe is not None:
            figures["exponential_unsafe"] = float(self._unsafe)
            self._notes += full_note([attempt.outcome for attempt in self._trials.attempts])
            self._binary()
            self._try_more()
            if self._is_contradicted and self._limit not in ("log", *OF_PORTS):
                self._limit = "device" if self._limit == "table" else self._limit
                text = (
                    f"a trial kept {self._trials.most_kept:,} connections, so what was lost of {self._unsafe:,} was "
                    "not for want of room in a table: the device may lose a share at every rate, or limit each host"
                )
                self._notes.append(Note("rare loss", text))
        elif self._decided:
            text = (
                f"all {self._safe} connections that were tried at most were kept: the capacity may be higher; give "
                "more --connections"
            )
            self._notes.append(Note("search", text))
        return Measurement(
            value=float(self._safe),
            upper=None if self._unsafe is None else float(self._unsafe),
            limited_by=self._limit,
            trials=verdict_counts(self._trials.attempts),
            attempts=tuple(self._trials.attempts),
            figures=figures,
            notes=(*self._notes, *self._trials.notes),
            series=tuple(self._steps),
            cause=self._cause(),
        )

    def _cause(self) -> Cause | None:
        """Return why the device keeps no more connections; None where their number is not what limits it."""
        if self._limit not in FULL or self._trials.full_at is None:
            return None
        outcomes = [attempt.outcome for attempt in self._trials.attempts]
        refused = [each.cause for each in outcomes if each.cause and each.phase1.intended_frames >= (self._unsafe or 0)]
        # Late frames are a matter of the rate, and no rate cures this.
        not_late = [cause for cause in refused if cause.kind not in {"late", "slow"}]
        return of_share(not_late, kept=self._trials.full_at, is_number=True)

    # The three stages

    def _first(self) -> float:
        """R0: the validated rate of C0. A C0 that nobody chose, and that does not fit, gives way to a smaller one."""
        count = self._settings.first
        while not (rate := self._rate_of_first(count)):
            if self._trials.last.limited_by == "log":
                raise BrokenError(
                    f"{TABLE_CAPACITY}: the log lacked some of C0 = {count} connections at every rate; see what writes "
                    f"it, or tolerate the share that it lacks (--log-tolerance): {self._trials.last.reason}"
                )
            fewer = self._trials.kept(count) // 2
            if self._settings.safe_connections is not None or fewer == 0:
                raise BrokenError(
                    f"{TABLE_CAPACITY}: C0 = {count} connections were not kept at any rate, but C0 must surely fit; "
                    f"give fewer safe connections: {self._trials.last.reason}"
                )
            self._notes.append(Note("method", f"{count} connections were not kept at any rate, so C0 is {fewer}"))
            count = fewer
        self._take("C0", count, rate)
        return rate

    def _rate_of_first(self, count: int) -> float:
        try:
            return self._search(count, self._top(count), 0.0)
        except validation.CollapsedError as error:
            raise BrokenError(
                f"{TABLE_CAPACITY}: the device collapsed with C0 = {count} connections; {error}"
            ) from None
        except validation.UndecidedError as error:
            raise BrokenError(f"{TABLE_CAPACITY}: {error}") from None

    def _few_fit(self, count: int) -> bool:
        """Whether the device kept some of C0, and as few when they came slower."""
        return self._trials.kept(count) > 0 and self._trials.slowness_kept_no_more(count)

    def _exponential(self) -> None:
        """Double C until it is unsafe or undecided, or the four tuples are used up."""
        most, quick = self._settings.connections, self._settings.method == "quick"
        while self._safe < most and self._decide("exponential", min(2 * self._safe, most), self._settings.beta):
            if quick and not self._settled(self._safe):
                self._search_again("rate")
        if quick and self._unsafe is not None and self._safe > self._settings.first:
            # Gamma refers to a rate that was searched, not to one that was merely enough.
            self._search_again("rate of the last safe")

    def _search_again(self, stage: str) -> None:
        try:
            rate = self._search(self._safe, self._top(self._safe), 0.0)
        except (validation.CollapsedError, validation.UndecidedError):
            rate = 0.0
        if rate:
            self._take(stage, self._safe, rate)
        else:
            text = f"the rate of {self._safe} connections could not be searched; an earlier one is used"
            self._notes.append(Note("search", text))

    def _binary(self) -> None:
        while self._decided and self._unsafe is not None and self._unsafe - self._safe > self._settings.capacity_error:
            self._decide("binary", self._between(self._safe, self._unsafe), self._settings.gamma)

    def _try_more(self) -> None:
        """Where even C0 was too many, try twice as many: a device that loses a share keeps more of these."""
        first = self._settings.first
        if self._limit == "table" and self._unsafe is not None and self._unsafe <= first < self._settings.connections:
            with suppress(validation.CollapsedError, validation.UndecidedError, TimeUpError):
                self._trials.passes(min(2 * first, self._settings.connections), self._rate.rate)

    @property
    def _is_contradicted(self) -> bool:
        """Whether a trial kept more connections than those that are said to be too many."""
        return self._unsafe is not None and self._trials.most_kept > CLEARLY_MORE * self._unsafe

    def _between(self, safe: int, unsafe: int) -> int:
        """Return the next number to try: the middle, or, if quick, the number that a full table kept, then one more."""
        kept = self._trials.full_at if self._settings.method == "quick" else None
        likely = () if kept is None else (kept, kept + 1)
        return next((count for count in likely if safe < count < unsafe), (safe + unsafe) // 2)

    # Rates

    @property
    def _wait(self) -> float:
        """Longest time, in seconds, for which the device may hold frames that still count as forwarded."""
        return self._settings.frame_timeout_seconds or SHARED_WAIT_SECONDS

    def _top(self, count: int) -> float:
        """The highest rate worth a trial: the last safe one, once it is the device's own."""
        if self._settled(self._safe):
            return self._rate.rate
        return min(self._top_rate, count / (SHORTEST_SHARE * self._wait))

    def _settled(self, count: int) -> bool:
        """Whether the searched rate is the device's own within the error, and not caused by queues before it."""
        return count > 0 and self._rate.least >= (1 - self._settings.rate_error) * self._rate.rate

    def _take(self, stage: str, count: int, rate: float) -> None:
        """Note the searched rate of a C that is safe by that."""
        self._safe, self._rate = count, self._rate_of(count, rate)
        self._steps.append(_step(stage, count, self._rate, decided="safe"))

    def _rate_of(self, count: int, rate: float) -> _Rate:
        return _Rate(rate, queues.least_rate_with_queues(count, rate, self._wait) if rate else 0.0)

    # One number of connections

    def _decide(self, stage: str, count: int, share: float) -> bool:
        """Decide whether `count` connections are safe; otherwise note them as lowest unsafe number or undecided."""
        needed = share * self._rate.least
        self._trials.bounds = self._bounds()
        rate, why = 0.0, ""
        try:
            rate = self._quick(count, needed) if self._settings.method == "quick" else self._full(count, needed)
            decided = "safe" if rate else "unsafe"
            if not rate:
                self._limit, why = self._trials.fault(count)
        except validation.CollapsedError as error:
            decided, why, self._limit = "collapsed", str(error), "device"
        except validation.UndecidedError as error:
            decided, why, self._limit = "undecided", str(error), error.limited_by
            self._decided = False
            known = f"between {self._safe} and {self._unsafe}" if self._unsafe else f"{self._safe} or more"
            self._notes.append(Note("undecided", f"the capacity is {known} connections; {error}"))
        self._steps.append(_step(stage, count, self._rate_of(count, rate), needed, decided=decided, why=why))
        if rate:
            self._safe = count
        elif decided != "undecided":
            self._unsafe = count
        return bool(rate)

    def _quick(self, count: int, needed: float) -> float:
        """Return a rate, at least `needed`, at which `count` connections are kept; 0 if there is none.

        A comfortable rate is tried first, because its trial is shorter. A pass proves more than is needed. A fail
        proves nothing unless the table was full, so a much slower rate then separates a full table from a rate that is
        too high.
        """
        comfortable = COMFORTABLE_SHARE * self._rate.least
        for rate in (comfortable, comfortable / validation.SLOWER):
            if rate > needed:
                if self._passes_if_sent(count, rate):
                    return rate
                if self._is_full(count):
                    return 0.0
        return needed if self._trials.passes(count, needed) else 0.0

    def _is_full(self, count: int) -> bool:
        """Whether the last trial failed because the table was full, as far as this and earlier trials show."""
        trials = self._trials
        return trials.last.limited_by == "table" or trials.surely_full(count) or trials.slowness_kept_no_more(count)

    def _full(self, count: int, needed: float) -> float:
        """The searched rate for that number, which further shares refer to; 0 when it is below what is needed."""
        rate = self._search(count, self._top(count), needed)
        if rate < needed:
            return 0.0
        self._rate = self._rate_of(count, rate)
        return rate

    def _search(self, count: int, top: float, floor: float) -> float:
        """The highest validated rate for that number, not above `top`; 0 when even less than `floor` fails.

        The top itself is tried first. Below it the search halves until its bounds are near enough; a failure at or
        below the floor already decides.
        """
        lower, upper = 0.0, top
        rate = top
        while rate >= validation.LEAST_RATE:
            if self._passes_if_sent(count, rate):
                lower = rate
                if rate == top:
                    break
            else:
                upper = rate
                if rate <= floor or self._trials.surely_full(count):
                    break
                if not self._safe and self._settings.safe_connections is None and self._few_fit(count):
                    # A smaller C0 costs less than trials that become slower and slower.
                    break
            if upper - lower <= self._settings.rate_error * upper:
                break
            rate = (lower + upper) / 2
        return lower

    def _passes_if_sent(self, count: int, rate: float) -> bool:
        """Whether that number is kept at this rate; what the tester cannot send is not."""
        try:
            return self._trials.passes(count, rate)
        except validation.UndecidedError as error:
            if error.limited_by != "tester":
                raise
            return False

    def _bounds(self) -> Bounds:
        lower = float(self._safe) or None
        if self._unsafe is None or self._is_contradicted:
            return Bounds(lower)
        left = max(1, ((self._unsafe - self._safe) // self._settings.capacity_error).bit_length())
        return Bounds(lower, float(self._unsafe), left)


def full_note(outcomes: Iterable[Trial]) -> list[Note]:
    """Return what a full table did with further connections; empty where no count of the device shows it."""
    full = [outcome for outcome in outcomes if outcome.limited_by == "table" and outcome.table_count is not None]
    if not full:
        return []
    last = full[-1]
    counts = last.phase1
    forwarded = counts.intended_frames - counts.lost
    table = FullTable(counts.intended_frames, forwarded, last.table_count or 0, last.readings.faults)
    return [Note("device", str(table), value=float(table.thrown_out))]


PROCEDURE = Procedure(
    TABLE_CAPACITY,
    settings=TableCapacitySettings,
    start=_TableCapacity,
    profiles={
        "quick": {"rate_error": 0.2},
        "standard": {"repeat": 3},
        # RFC 9693: ten experiments (section 6), the pseudo code to the letter (section 4.9).
        "rfc": {"method": "full", "repeat": 10},
    },
)
