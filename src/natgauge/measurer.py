# SPDX-License-Identifier: Apache-2.0
"""The interface between procedures and the bench: a procedure requests trials, and gets counts and a verdict.

A procedure uses nothing else: it imports no lab, no device and no engine. The real measurer is in `natgauge.trial`; the
tests use simulated gateways.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from natgauge.delays import Delays
from natgauge.errors import UsageError
from natgauge.paired.slices import RoundPlan, TimedRound
from natgauge.trials import Direction, Period, Trial, TrialPlan


class Ability(StrEnum):
    """An ability that some measurers lack. A procedure names those it needs, and is refused before anything starts."""

    EMPTY_TIMED = "timing how long the device takes to empty its table"
    WATCH_COUNT = "watching the device's own count fall"
    RESTART = "restarting the device"
    RESTART_IN_TRIAL = "restarting the device in the middle of a trial (without a reset command)"
    VARIATION = "differences between the delays of consecutive frames"
    LOSS_TIMES = "the sending times of lost frames"
    RATE_STEP = "a change of the rate in the middle of phase 2"
    TAGGED_DELAYS = "timing only a few tagged frames from a given time on"
    STATELESS = "trials without a state table"
    OWN_DELAYS = "the tester's own delay"
    COSTS = "timing the frames of a device that works on the sender's core"
    QUERIES = "DNS queries and their answers"
    REAL_SERVER = "a place for a real server behind the device (such as `--lab netns` has)"
    PERIODS = "trials of many periods over the same connections"
    BACKGROUND = "native IPv6 in addition to the frames under test"
    CHURN = "new connections during phase 2"


class OutlastingError(UsageError):
    """The device would forget connections during a trial, and its time-out cannot be raised; the trial was not run."""


@dataclass(frozen=True, slots=True)
class TearDown:
    """Duration of emptying the device's table, in wall seconds timed on the device, and its counts before and after."""

    seconds: float
    count_before: int | None
    count_after: int | None


@dataclass(frozen=True, slots=True)
class CountAt:
    """A reading of the device's own count, and its time in seconds since the first reading began."""

    seconds: float
    count: int


class Measurer(ABC):
    """Performs trials for a procedure.

    A measurer implements `highest_rate` and `measure`, and lists further abilities in `abilities`. A method of an
    ability raises UsageError unless the measurer implements it, and NatgaugeError where the host, the lab or the device
    fails.
    """

    __slots__ = ()

    @property
    def abilities(self) -> frozenset[Ability]:
        """Abilities in addition to plain trials."""
        return frozenset()

    @property
    @abstractmethod
    def highest_rate(self) -> float:
        """The tester's own highest rate of such frames, frames/s of all directions together; limit of searches."""

    @property
    def ring(self) -> int | None:
        """Capacity of the queue before each core of the device, in frames, > 0; None = not known, or no queue."""
        return None

    @property
    def seed(self) -> int:
        """Seed of the pseudorandom choices of this repetition, 0 to 2**64 - 1."""
        return 0

    @property
    def timeout_seconds(self) -> int | None:
        """Seconds for which the device keeps a connection that fell silent or got a FIN; None = not known."""
        return None

    @property
    def replied_timeout_seconds(self) -> int | None:
        """The same for a connection that had frames both ways for some time, which is kept no shorter."""
        return self.timeout_seconds

    @property
    def table_limit(self) -> int | None:
        """The most connections that the device's table holds; None = not known."""
        return None

    @property
    def hosts(self) -> int:
        """Number of the Initiator's addresses."""
        return 1

    def four_tuples_of_each(self, plan: TrialPlan) -> int:
        """Return the four tuples that each of the plan's `sources` has in its trial, at least those that it needs."""
        return plan.of_each_source

    @property
    def answers_itself(self) -> bool:
        """Whether the device answers the queries itself, as a DNS server does, instead of handing them on."""
        return False

    @property
    def lingering_seconds(self) -> int | None:
        """Time for which the device keeps a connection that the trials close, in s; None = not known."""
        return None

    @abstractmethod
    def measure(self, plan: TrialPlan) -> Trial:
        """Run one trial: the device's table is emptied first, and its own count is read after phase 1."""

    def periods(self, plan: TrialPlan, heard: Callable[[Period], bool]) -> tuple[Period, ...]:
        """Run one trial with several periods of phase 2; an error of the device's controls does not end it.

        `heard` is called with each period as it ends, and returns whether the trial continues.
        """
        del plan, heard
        raise _unable(Ability.PERIODS)

    def empty_timed(self) -> TearDown:
        """Empty the device's table with one command, and time the command (RFC 9693 section 4.8)."""
        raise _unable(Ability.EMPTY_TIMED)

    def watch_count(self, interval_seconds: float, longest_seconds: float) -> tuple[CountAt, ...]:
        """Read the device's count repeatedly until it is 0 or the time is over; at least once.

        Both times are in seconds: a reading begins every `interval_seconds` > 0, and none after `longest_seconds` >= 0.
        """
        del interval_seconds, longest_seconds
        raise _unable(Ability.WATCH_COUNT)

    def restart(self) -> None:
        """Restart the device with the same settings, e.g. after it collapsed."""
        raise _unable(Ability.RESTART)

    def own_delays(self, plan: TrialPlan) -> dict[Direction, Delays]:
        """Measure the tester's own delays: the same frames at the same rates, its two ports joined without a device."""
        del plan
        raise _unable(Ability.OWN_DELAYS)

    def costs(self, plan: RoundPlan) -> TimedRound:
        """Time the device's work for a frame, in one round of slices; the table is emptied first."""
        del plan
        raise _unable(Ability.COSTS)


def _unable(ability: Ability) -> UsageError:
    return UsageError(f"this tester lacks {ability}; choose another metric or setting")
