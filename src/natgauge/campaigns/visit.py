# SPDX-License-Identifier: Apache-2.0
"""One visit of a cell: a bench is made, and each measurement of the cell that lacks a repetition gets one.

A visit knows nothing of the journal beyond the lines it hands on, so it may be made here or on another machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from natgauge.bench.bench import Planned
from natgauge.bench.seeds import in_repetition
from natgauge.bench.watch import Watch
from natgauge.campaigns.answers import StaleError
from natgauge.campaigns.cells import Asked, Point, accepts
from natgauge.campaigns.course import Running
from natgauge.campaigns.recording import with_beside
from natgauge.campaigns.stand import Set, Stand, Stands
from natgauge.campaigns.state import Repetition, State
from natgauge.campaigns.store import Memory
from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.procedures.kit.incurable import INCURABLE
from natgauge.procedures.kit.phase1 import CONNECTION_RATE
from natgauge.results.comparing import shown
from natgauge.results.parameters import Parameters

#: A connection rate that these limited is one that the device does; what is limited by time is a bound only.
_KNOWN_LIMITS: Final = frozenset({"device", "tester"})
#: The parameter that tells the device's version.
_VERSION: Final = "version"
#: What of a worker must be the same for a repetition to be gone on with.
_SAME_WORKER: Final = ("like", "cores")


class Note(Protocol):
    """Keeps a line of the journal and takes it into the state."""

    def __call__(self, event: str, *, sync: bool = True, **fields: object) -> None:
        """One line; `sync`: nothing may follow before it is kept."""


def is_open(state: State, point: Point, asked: Asked) -> bool:
    """Whether there is still something to measure."""
    course = state.course(point.name, asked.name)
    broken = state.broken(point.name, point.device, asked.name)
    return not (broken or course.folder or course.is_done(asked.repeat, asked.most_repetitions))


def pending(state: State, point: Point, round_number: int) -> list[Asked]:
    """The measurements of a cell that lack the repetition of this round."""
    return [
        asked
        for asked in point.asked
        if is_open(state, point, asked) and not _ended_in(state, point, asked, round_number)
    ]


def _ended_in(state: State, point: Point, asked: Asked, round_number: int) -> bool:
    return len(state.course(point.name, asked.name).ended) >= round_number


@dataclass(frozen=True, kw_only=True, slots=True)
class Visit:
    """One visit.

    Attributes:
        point: the cell.
        round_number: from 1.
        state: as far as it concerns the cell, kept up to date by `note`.
        note: keeps a line of the journal.
        stands: makes benches.
        facts: of this machine.
        watch: is told what happens.
        worker: which one of several this is, as `natgauge.campaigns.spread.worker` describes it; None = there is only
            this process.
    """

    point: Point
    round_number: int
    state: State
    note: Note
    stands: Stands
    facts: Mapping[str, object]
    watch: Watch
    worker: Mapping[str, Any] | None = None

    def run(self) -> None:
        """Make it; a moment's disturbance may be all that was wrong, a device that fails on two benches is broken.

        Raises:
            HostError: this host cannot do it, or a line cannot be kept.
            NatgaugeError: a lab cannot be made.
        """
        first = self._on_bench()
        if first and self._on_bench():
            self.note("broken", scope="device", device=self.point.device, cell=self.point.name, cause=first)

    def _on_bench(self) -> str:
        """Measure on a bench made for it; why the device did not come up or forward, or nothing."""
        cell = self.point.cell
        with self.stands(in_repetition(cell, cell.options.seed, self.round_number), self.watch) as stand:
            for asked in pending(self.state, self.point, self.round_number):
                # What breaks in one measurement may break those that follow.
                if not is_open(self.state, self.point, asked):
                    continue
                if cause := self._measure(stand, asked):
                    self.note("device-failed", cell=self.point.name, measurement=asked.name, cause=cause)
                    return cause
        return ""

    def _measure(self, stand: Stand, asked: Asked) -> str:
        """One repetition; what breaks is noted with its cause.

        Returns:
            Why the device did not come up or forward; empty = it did.
        """
        where: dict[str, Any] = {"cell": self.point.name, "measurement": asked.name}
        while True:
            recorder = Memory()
            under_way = self._under_way(asked)
            given = self._given(asked) if under_way is None else under_way.begun["given"]
            try:
                planned = _single(stand, asked, given)
                ready = stand.set(planned, recorder)
            except BrokenError as error:
                return self._cause(error)
            except (HostError, UsageError) as error:
                # What a program or the memory lacks is lacking for all metrics; a limit may be too small for one alone.
                scope = "cell" if isinstance(error, HostError) else "measurement"
                self.note("broken", scope=scope, device=self.point.device, **where, cause=self._cause(error))
                return ""
            self._refuse_other_version(ready)
            if under_way is None:
                under_way = self._begin(asked, given, ready)
            running = Running(
                note=self.note,
                where=where,
                planned=planned,
                ready=ready,
                recorder=recorder,
                watch=self.watch,
                most=asked.most_repetitions,
            )
            try:
                running.run(under_way)
            except StaleError as error:
                self.note("repetition-redone", **where, repetition=under_way.number, cause=str(error))
                self.watch.stage(f"{asked.name}: repetition {under_way.number} is begun anew: {error}")
                self._begin(asked, given, ready)
                continue
            except HostError:
                raise
            except (BrokenError, UsageError) as error:
                cause = self._cause(error)
                self.note("broken", scope="measurement", device=self.point.device, **where, cause=cause)
            return ""

    def _refuse_other_version(self, ready: Set) -> None:
        """Repetitions of one result are of one device. Of several workers each has its own; such a result is `mixed`.

        Raises:
            HostError: the device's version is another one than in an earlier repetition of the cell.
        """
        if self.worker is not None:
            return
        now = ready.parameters.get(_VERSION)
        for asked in self.point.asked:
            for earlier in self.state.course(self.point.name, asked.name).repetitions:
                was = Parameters.model_validate(earlier.begun["parameters"]).get(_VERSION)
                if was != now:
                    raise HostError(
                        f"campaign: {self.point.device} is of version {shown(now)} now, it was {shown(was)} in earlier "
                        "repetitions, which would not be of one device; install that one again, or begin anew: --out"
                    )

    def _cause(self, error: Exception) -> str:
        """Why something broke, and where."""
        return str(error) if self.worker is None else f"worker {self.worker['name']}: {error}"

    def _under_way(self, asked: Asked) -> Repetition | None:
        """The repetition to go on with; one that was begun elsewhere is begun anew, for its trials were another's."""
        found = self.state.course(self.point.name, asked.name).under_way
        if found is None:
            return None
        before, now = found.begun.get("worker") or {}, self.worker or {}
        if all(before.get(name) == now.get(name) for name in _SAME_WORKER):
            return found
        cause = "it was begun on other cores or another machine"
        self.note(
            "repetition-redone", cell=self.point.name, measurement=asked.name, repetition=found.number, cause=cause
        )
        return None

    def _begin(self, asked: Asked, given: Mapping[str, Any], ready: Set) -> Repetition:
        course = self.state.course(self.point.name, asked.name)
        worker: dict[str, Any] = {} if self.worker is None else {"worker": self.worker}
        self.note(
            "repetition",
            cell=self.point.name,
            measurement=asked.name,
            repetition=len(course.ended) + 1,
            given=given,
            parameters=with_beside(ready.parameters, self.worker).model_dump(mode="json"),
            machine=self.facts,
            device=ready.device,
            highest_rate=ready.measurer.highest_rate,
            ring=ready.measurer.ring,
            abilities=sorted(ability.value for ability in ready.measurer.abilities),
            **worker,
        )
        return course.repetitions[-1]

    def _given(self, asked: Asked) -> dict[str, float]:
        """The connection rate of this round, where one was found: a safe phase 1 need not be searched again."""
        if not accepts(asked, "connection_rate"):
            return {}
        for other in self.point.asked:
            ended = self.state.course(self.point.name, other.name).ended
            if other.metric == CONNECTION_RATE and len(ended) == self.round_number:
                measured = ended[-1].measured
                value, limit = measured["summary"]["median"], measured["measurements"][0]["limited_by"]
                curable = not any(note.startswith(INCURABLE) for note in measured["notes"])
                if value > 0 and limit in _KNOWN_LIMITS and curable:
                    return {"connection_rate": value}
        return {}


def _single(stand: Stand, asked: Asked, given: Mapping[str, Any]) -> Planned:
    return stand.plan(asked.metric, {**asked.settings, **given, "repeat": 1})
