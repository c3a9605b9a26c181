# SPDX-License-Identifier: Apache-2.0
"""What a measurer answered, as the journal keeps it, and a measurer that answers from there as long as it can.

Procedures decide by nothing but the answers of their measurer and the time they have left. So a repetition that was
killed is led to the same point by the answers it had, without a trial, and goes on from there with the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from natgauge.errors import BrokenError, HostError, NatgaugeError, UsageError
from natgauge.measurer import Ability, CountAt, Delays, Direction, Measurer, TearDown, TrialOutcome, TrialPlan, Verdict
from natgauge.records.store import plain
from natgauge.slices import CostPlan, CostRound

_ANSWERS: Final[Mapping[str, Any]] = {
    "measure": TrialOutcome,
    "empty_timed": TearDown,
    "watch_count": tuple[CountAt, ...],
    "restart": None,
    "own_delays": dict[Direction, Delays],
    "costs": CostRound,
}
#: What looks at the connections that the trial before left in the device.
_OF_TRIAL_BEFORE: Final = frozenset({"empty_timed", "watch_count"})
_ERRORS: Final[Mapping[str, type[NatgaugeError]]] = {kind.__name__: kind for kind in (BrokenError, UsageError)}


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One answer of a measurer.

    Attributes:
        call: the measurer's method.
        plan: it was asked about, plain; None where it takes none.
        answer: plain.
        seconds: since the repetition began.
        raised: name and text of the error instead of an answer; None = there was none.
    """

    call: str
    plan: Any
    answer: Any
    seconds: float
    raised: tuple[str, str] | None = None


class ReplayError(Exception):
    """The answers in the journal are not those to what is asked now; the text says what differs."""


@cache
def _adapter(call: str) -> TypeAdapter[Any]:
    return TypeAdapter(_ANSWERS[call])


class ReplayingMeasurer(Measurer):
    """Answers from the journal first, then asks the device and has each answer journaled.

    Attributes:
        replayed: answers given from the journal so far.
        passed: plan of the last trial that passed, whether it was run now or in an earlier session.
    """

    def __init__(  # noqa: PLR0913 - how the repetition began, each by its name
        self,
        known: Sequence[RecordedCall],
        live: Measurer,
        *,
        highest_rate: float,
        abilities: frozenset[Ability],
        ring: int | None = None,
        keep: Callable[[RecordedCall], None],
    ) -> None:
        """Take the answers so far.

        Args:
            known: in the order they were given.
            live: performs trials.
            highest_rate: as it was when the repetition began.
            abilities: as they were when the repetition began.
            ring: as it was when the repetition began.
            keep: is given each new answer, and raises NatgaugeError where it cannot be kept.
        """
        self._known = list(known)
        self._live = live
        self._highest_rate = highest_rate
        self._abilities = abilities
        self._ring = ring
        self._keep = keep
        self.replayed = 0
        self.passed: TrialPlan | None = None
        self._offset = 0.0
        self._live_since = time.monotonic()

    @property
    def replaying(self) -> bool:
        """Whether the next answer is one from the journal."""
        return self.replayed < len(self._known)

    @property
    def abilities(self) -> frozenset[Ability]:
        """As they were when the repetition began."""
        return self._abilities

    @property
    def highest_rate(self) -> float:
        """As it was when the repetition began."""
        return self._highest_rate

    @property
    def ring(self) -> int | None:
        """As it was when the repetition began."""
        return self._ring

    def clock(self) -> float:
        """Seconds of the repetition, without those between two sessions."""
        if self.replaying:
            return self._offset
        return self._offset + time.monotonic() - self._live_since

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """Run one trial, or give the outcome it had."""
        found: TrialOutcome = self._ask("measure", lambda live: live.measure(plan), plan)
        self.passed = plan if found.verdict is Verdict.PASS else self.passed
        return found

    def empty_timed(self) -> TearDown:
        """Empty the device's table, or tell how long that took."""
        found: TearDown = self._ask("empty_timed", lambda live: live.empty_timed())
        return found

    def watch_count(self, interval_seconds: float, longest_seconds: float) -> tuple[CountAt, ...]:
        """Watch the device's count, or tell what was seen."""
        found: tuple[CountAt, ...] = self._ask(
            "watch_count", lambda live: live.watch_count(interval_seconds, longest_seconds)
        )
        return found

    def restart(self) -> None:
        """Start the device anew, unless that is over."""
        self._ask("restart", lambda live: live.restart())

    def own_delays(self, plan: TrialPlan) -> dict[Direction, Delays]:
        """The tester's own delays, measured now or then."""
        found: dict[Direction, Delays] = self._ask("own_delays", lambda live: live.own_delays(plan), plan)
        return found

    def costs(self, plan: CostPlan) -> CostRound:
        """What frames cost the device, timed now or then."""
        found: CostRound = self._ask("costs", lambda live: live.costs(plan), plan)
        return found

    def _ask(self, call: str, ask: Callable[[Measurer], Any], plan: TrialPlan | CostPlan | None = None) -> Any:
        asked = plain(plan)
        if self.replaying:
            return self._again(call, asked)
        if call in _OF_TRIAL_BEFORE:
            self._restore(self._live)
        # From here on the device's state is that of this session.
        self._known, self.replayed, self._offset = [], 0, self.clock()
        self._live_since = time.monotonic()
        try:
            answer = ask(self._live)
        except HostError:
            raise
        except NatgaugeError as error:
            self._keep(RecordedCall(call, asked, None, self.clock(), (_kind(error), str(error))))
            raise
        self._keep(RecordedCall(call, asked, plain(answer), self.clock()))
        return answer

    def _again(self, call: str, asked: Any) -> Any:
        one = self._known[self.replayed]
        if (one.call, one.plan) != (call, asked):
            raise ReplayError(f"answer {self.replayed + 1} of the journal is to {one.call}, another one is asked now")
        self.replayed += 1
        self._offset = one.seconds
        self._live_since = time.monotonic()
        if one.raised is not None:
            raise _ERRORS[one.raised[0]](one.raised[1])
        try:
            return _adapter(call).validate_python(one.answer)
        except ValidationError as error:
            raise ReplayError(f"answer {self.replayed} of the journal is none to {call}: {error.errors()[0]}") from None

    def _restore(self, live: Measurer) -> None:
        """Bring the device to where the last trial had left it, if that trial was one of an earlier session."""
        if not self._known or self._known[-1].call != "measure":
            return
        last = self._known[-1]
        before: TrialOutcome = _adapter("measure").validate_python(last.answer)
        outcome = live.measure(TypeAdapter(TrialPlan).validate_python(last.plan))
        if (outcome.verdict, outcome.stored) != (before.verdict, before.stored):
            raise ReplayError("the trial before the interruption ended otherwise when it was run again")


def _kind(error: NatgaugeError) -> str:
    return next((name for name, kind in _ERRORS.items() if isinstance(error, kind)), BrokenError.__name__)
