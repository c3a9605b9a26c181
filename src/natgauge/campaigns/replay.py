# SPDX-License-Identifier: Apache-2.0
"""Resume a repetition that was killed: replay the outcomes in its journal, then measure.

The decisions of a procedure depend only on the outcomes of its measurer and on the remaining time. With the same
outcomes it reaches the same state without a trial. Replay saves at most one repetition: for frame loss a minute in
profile `quick`, 20 in `rfc`, hours with 100 million connections (docs/campaigns.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from natgauge.errors import BrokenError, HostError, NatgaugeError, UsageError
from natgauge.measurer import Ability, CountAt, Delays, Direction, Measurer, Period, TearDown, TrialOutcome, TrialPlan
from natgauge.paired.slices import RoundPlan, TimedRound
from natgauge.records.store import plain
from natgauge.words import Verdict

_ANSWERS: Final[Mapping[str, Any]] = {
    "measure": TrialOutcome,
    "periods": tuple[Period, ...],
    "empty_timed": TearDown,
    "watch_count": tuple[CountAt, ...],
    "restart": None,
    "own_delays": dict[Direction, Delays],
    "costs": TimedRound,
}
#: Calls about the connections that the trial before left in the device.
_OF_TRIAL_BEFORE: Final = frozenset({"empty_timed", "watch_count"})
_ERRORS: Final[Mapping[str, type[NatgaugeError]]] = {kind.__name__: kind for kind in (BrokenError, UsageError)}


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One recorded call of a measurer.

    Attributes:
        plan: its argument as plain data; None if the method takes no plan.
        raised: name and text of the error that was raised; None = the call returned.
    """

    call: str
    plan: Any
    answer: Any
    seconds: float
    raised: tuple[str, str] | None = None


class ReplayError(Exception):
    """The calls in the journal differ from the procedure's present calls; the text states the difference."""


@cache
def _adapter(call: str) -> TypeAdapter[Any]:
    return TypeAdapter(_ANSWERS[call])


class ReplayingMeasurer(Measurer):
    """Replays the calls in the journal, then measures and records each further call.

    Attributes:
        passed: plan of the last trial that passed, in this session or an earlier one.
    """

    def __init__(  # noqa: PLR0913 - properties of the repetition, each by its name
        self,
        known: Sequence[RecordedCall],
        live: Measurer,
        *,
        highest_rate: float,
        abilities: frozenset[Ability],
        ring: int | None = None,
        seed: int = 0,
        keep: Callable[[RecordedCall], None],
    ) -> None:
        """Take the calls so far, and the measurer's properties at the beginning of the repetition.

        Args:
            known: the recorded calls, in order.
        """
        self._known = list(known)
        self._live = live
        self._highest_rate = highest_rate
        self._abilities = abilities
        self._ring = ring
        self._seed = seed
        self._keep = keep
        self.replayed = 0
        self.passed: TrialPlan | None = None
        self._offset = 0.0
        self._live_since = time.monotonic()

    @property
    def replaying(self) -> bool:
        """Whether the next call is in the journal."""
        return self.replayed < len(self._known)

    @property
    def abilities(self) -> frozenset[Ability]:
        """Abilities when the repetition began."""
        return self._abilities

    @property
    def highest_rate(self) -> float:
        """The tester's highest rate when the repetition began, frames/s."""
        return self._highest_rate

    @property
    def ring(self) -> int | None:
        """Length of the device's ring when the repetition began."""
        return self._ring

    @property
    def seed(self) -> int:
        """Seed when the repetition began."""
        return self._seed

    @property
    def lingering_seconds(self) -> int | None:
        """Time for which the live device keeps a closed connection, in s: a setting, which no answer depends on."""
        return self._live.lingering_seconds

    def clock(self) -> float:
        """Seconds of the repetition, without the time between sessions."""
        if self.replaying:
            return self._offset
        return self._offset + time.monotonic() - self._live_since

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """Run one trial, or replay its outcome."""
        outcome: TrialOutcome = self._ask("measure", lambda live: live.measure(plan), plan)
        self.passed = plan if outcome.verdict is Verdict.PASS else self.passed
        return outcome

    def periods(self, plan: TrialPlan, heard: Callable[[Period], bool]) -> tuple[Period, ...]:
        """Run one trial with several periods, or replay all of its periods."""
        replayed = self.replaying
        periods: tuple[Period, ...] = self._ask("periods", lambda live: live.periods(plan, heard), plan)
        for period in periods if replayed else ():
            heard(period)
        if any(period.outcome.verdict is Verdict.PASS for period in periods):
            self.passed = plan
        return periods

    @property
    def may_be_cut(self) -> bool:
        """False: a campaign that is resumed runs the whole trial again."""
        return False

    def empty_timed(self) -> TearDown:
        """Empty the device's table, or replay its duration."""
        tear_down: TearDown = self._ask("empty_timed", lambda live: live.empty_timed())
        return tear_down

    def watch_count(self, interval_seconds: float, longest_seconds: float) -> tuple[CountAt, ...]:
        """Watch the device's count, or replay the readings."""
        readings: tuple[CountAt, ...] = self._ask(
            "watch_count", lambda live: live.watch_count(interval_seconds, longest_seconds)
        )
        return readings

    def restart(self) -> None:
        """Restart the device, unless it is replayed."""
        self._ask("restart", lambda live: live.restart())

    def own_delays(self, plan: TrialPlan) -> dict[Direction, Delays]:
        """Measure the tester's own delays, or replay them."""
        delays: dict[Direction, Delays] = self._ask("own_delays", lambda live: live.own_delays(plan), plan)
        return delays

    def costs(self, plan: RoundPlan) -> TimedRound:
        """Time the cost of frames, or replay it."""
        cost_round: TimedRound = self._ask("costs", lambda live: live.costs(plan), plan)
        return cost_round

    def _ask(self, call: str, ask: Callable[[Measurer], Any], plan: TrialPlan | RoundPlan | None = None) -> Any:
        plain_plan = plain(plan)
        if self.replaying:
            return self._again(call, plain_plan)
        if call in _OF_TRIAL_BEFORE:
            self._restore(self._live)
        # From here on the device's state is that of the present session.
        self._known, self.replayed, self._offset = [], 0, self.clock()
        self._live_since = time.monotonic()
        try:
            answer = ask(self._live)
        except HostError:
            raise
        except NatgaugeError as error:
            self._keep(RecordedCall(call, plain_plan, None, self.clock(), (_kind(error), str(error))))
            raise
        self._keep(RecordedCall(call, plain_plan, plain(answer), self.clock()))
        return answer

    def _again(self, call: str, plain_plan: Any) -> Any:
        recorded = self._known[self.replayed]
        if (recorded.call, recorded.plan) != (call, plain_plan):
            raise ReplayError(
                f"call {self.replayed + 1} of the journal is {recorded.call}, the procedure makes another one now"
            )
        self.replayed += 1
        self._offset = recorded.seconds
        self._live_since = time.monotonic()
        if recorded.raised is not None:
            raise _ERRORS[recorded.raised[0]](recorded.raised[1])
        try:
            return _adapter(call).validate_python(recorded.answer)
        except ValidationError as error:
            raise ReplayError(
                f"call {self.replayed} of the journal has no answer to {call}: {error.errors()[0]}"
            ) from None

    def _restore(self, live: Measurer) -> None:
        """Repeat the last trial if an earlier session made it: the device's table is empty after a restart."""
        if not self._known or self._known[-1].call != "measure":
            return
        last = self._known[-1]
        try:
            before: TrialOutcome = _adapter("measure").validate_python(last.answer)
            plan = TypeAdapter(TrialPlan).validate_python(last.plan)
        except ValidationError as error:
            raise ReplayError(f"the last trial of the journal cannot be repeated: {error.errors()[0]}") from None
        outcome = live.measure(plan)
        if (outcome.verdict, outcome.stored) != (before.verdict, before.stored):
            raise ReplayError("the last trial before the interruption had another outcome when it was repeated")


def _kind(error: NatgaugeError) -> str:
    return next((name for name, kind in _ERRORS.items() if isinstance(error, kind)), BrokenError.__name__)
