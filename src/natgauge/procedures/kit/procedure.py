# SPDX-License-Identifier: Apache-2.0
"""Definition of a metric, and the steps of its measurement: refuse, start, repeat, note, make the result.

A running measurement is the part specific to a metric, and the repetitions of whatever is measured several times.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Protocol, TypeVar, get_args

from natgauge.causes.cause import Cause, DeviceLimit, Kind, facts_of, most_frequent
from natgauge.errors import BrokenError, NatgaugeError, UsageError
from natgauge.inputs.input import Amount, Input, Percent, inputs_of, one_of, spoken, wrong
from natgauge.measurer import Ability, Measurer
from natgauge.metrics.metric import THRESHOLDS, Metric
from natgauge.notes import Note, NoteWord
from natgauge.procedures.kit.results import (
    Attempt,
    Measurement,
    MeasurementResult,
    command_failures_note,
    disturbed_note,
    make_result,
    with_device_figures,
    zero_checksum_note,
)
from natgauge.procedures.kit.runner import (
    TIME,
    EventHandler,
    GoneError,
    TimeBudget,
    TimeUpError,
    TrialRunner,
    ignore,
    stopped,
    unheard,
)
from natgauge.procedures.kit.settings import COMMON, DECIDED_ELSEWHERE, Defaults, Profile, Repeat, TrialSettings
from natgauge.statistics.summary import median_interval
from natgauge.words import DEFAULT_CONNECTIONS, OF_SPEED, LimitedBy, Order, Placement, Transport, Verdict

#: Half the width of the median's interval, as a share of the median, at which "auto" stops repeating.
NARROW = 0.025
#: Coverage of that interval. It is looked at after each repetition, and one that is narrow by chance ends them. With
#: 95 % here, the interval that results state missed the median of up to 8 % of simulated series (normal and uniform
#: values that spread by 2 to 5 %); with 98 % it missed that of 5 % at most.
AUTO_CONFIDENCE = 0.98

SettingsT = TypeVar("SettingsT", bound=TrialSettings)


class Repetitions(ABC, Generic[SettingsT]):
    """A metric's own part of a measurement. The constructor measures what the first repetition requires."""

    def __init__(self, runner: TrialRunner, settings: SettingsT) -> None:
        self.runner = runner
        self.settings = settings

    @abstractmethod
    def once(self, known: float | None) -> Measurement:
        """Measure once; `known` is the value of the previous repetition, None = there is none."""

    def notes(self, measurements: Sequence[Measurement]) -> Sequence[Note]:  # noqa: ARG002 - for those that have some
        """Return facts about this metric that a reader must know; called after the last repetition."""
        return ()

    def phase1_notes(self) -> Sequence[Note]:
        """Return notes on how connections were established; called after the last repetition."""
        return ()


@dataclass(frozen=True, slots=True)
class Answered:
    """Replaces repetitions where the result is known before the first one, and no repetition would change it."""

    measurement: Measurement
    notes: Sequence[Note]


class Repeated(Protocol):
    """A metric of a gateway, or a cell of a campaign: `lacks` a repetition of a number, from 1, or `measure` it."""

    def lacks(self, number: int) -> bool: ...  # noqa: D102
    def measure(self, number: int) -> None: ...  # noqa: D102


def in_rounds(most: int, turns: Callable[[int], Iterable[Repeated]]) -> None:
    """Measure what lacks repetitions, in at most so many rounds; `turns` returns all in the order of a round.

    A measurement is a run of one, and a campaign is a run of many that take turns.
    """
    for number in range(1, most + 1):
        for each in turns(number):
            if each.lacks(number):
                each.measure(number)


@dataclass(slots=True)
class Series:
    """The repetitions of one metric of one gateway, in one go.

    A device that is gone after some repetitions ends them, and so does a further repetition that cannot begin, for
    example because its lab cannot be made. A repetition that the time cut off counts only where there is no other: its
    value is no more than a bound. What ends the first repetition is raised. `once` gets the answer of the repetition
    before, or None.
    """

    runner: TrialRunner
    times: Repeat
    once: Callable[[float | None], Measurement]
    done: list[Measurement] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    has_ended: bool = False

    def lacks(self, number: int) -> bool:
        """Whether the repetition is requested, and may begin."""
        enough = is_enough([repetition.value for repetition in self.done], self.times, self.runner.repetitions)
        return len(self.done) < number and not (self.has_ended or enough)

    def measure(self, number: int) -> None:
        """Measure once more."""
        known, begun = self.done[-1].value or None if self.done else None, False
        repetition: Measurement | None = None
        try:
            self.runner.start_repetition(number)
            begun = True
            repetition = self.once(known)
            why = next((note.text for note in repetition.notes if note.word == "undecided"), "")
        except TimeUpError as error:
            why = str(error)
            if not self.done:
                repetition = stopped(self.runner.attempts, error)
        except NatgaugeError as error:
            if not self.done or (begun and not isinstance(error, GoneError)):
                raise
            self._end("ended early", f": {error}")
            return
        if repetition is None or (self.done and repetition.limited_by == TIME):
            self._end("time used up", f"; of the next one is known: {why}")
        else:
            self.done.append(repetition)
            self.has_ended = repetition.limited_by == TIME

    def _end(self, word: NoteWord, why: str) -> None:
        self.has_ended = True
        self.notes.append(Note(word, f"repetitions after {len(self.done)} of {self.runner.repetitions} at most{why}"))


def is_enough(values: Sequence[float], times: Repeat, most: int) -> bool:
    """Whether these are all repetitions that are requested: "auto" ends once the median is well known."""
    return len(values) >= most or (isinstance(times, str) and well_known(values))


def well_known(values: Sequence[float]) -> bool:
    """Whether the median's confidence interval (98 %, at least seven values) is as narrow as `NARROW` requires."""
    interval = median_interval(values, AUTO_CONFIDENCE)
    if interval is None or interval.coverage < AUTO_CONFIDENCE:
        return False
    return (interval.upper - interval.lower) / 2 <= NARROW * abs(statistics.median(values))


@dataclass(frozen=True, slots=True)
class Procedure(Generic[SettingsT]):
    """The measurement of a metric. A module of `natgauge.procedures` that has a `PROCEDURE` adds one.

    `start` makes the metric's own part of a measurement, usually a class; NatgaugeError where nothing can be measured.
    """

    declared: Metric
    settings: type[SettingsT]
    start: Callable[[TrialRunner, SettingsT], Repetitions[SettingsT] | Answered]
    profiles: Defaults = field(default_factory=dict)

    @property
    def metric(self) -> str:
        """Name of the metric, as on the command line."""
        return self.declared.name

    @property
    def unit(self) -> str:
        """Unit of its values."""
        return self.declared.unit

    def inputs(self) -> tuple[Input, ...]:
        """Return all settings in order."""
        return inputs_of(self.settings)

    def own_inputs(self) -> tuple[Input, ...]:
        """Return the settings that the user gives as the metric's own; settings of its own class come first."""
        known = {input_.name: input_ for input_ in self.inputs() if input_.name not in DECIDED_ELSEWHERE}
        for better, name in THRESHOLDS.items():
            if self.declared.better != better:
                del known[name]
            else:
                known[name] = replace(known[name], type=Amount(unit=self.unit))
        names = [name for each in self.settings.__mro__ for name in vars(each).get("__annotations__", {})]
        return tuple(known[name] for name in dict.fromkeys(names) if name in known)

    def lacks(self, name: str) -> str:
        """Return the reason why the metric has no setting of this name, and what to do."""
        own, better = THRESHOLDS.get(self.declared.better or "higher"), self.declared.better
        if name not in THRESHOLDS.values():
            return f"the metric {self.metric} has no such setting; leave it out"
        if better is None:
            return f"the metric {self.metric} has no threshold, because neither value is better; leave it out"
        return f"{better} values of the metric {self.metric} are better; use {spoken(str(own))}, or leave it out"

    def taken(self, choices: Mapping[str, object]) -> dict[str, Any]:
        """Return the chosen settings by name, as values of their types, not checked; texts such as "1%" are read."""
        known = {input_.name: input_ for input_ in self.own_inputs()}
        for name in choices:
            if name not in known:
                raise wrong(name, self.lacks(name))
        taken = {name: None if value is None else known[name].typed(value) for name, value in choices.items()}
        for name, value in taken.items():
            if isinstance(value, Percent) and self.unit != "%":
                raise wrong(name, f"{value:g}% is a share, and values of the metric {self.metric} are in {self.unit}")
        return taken

    def refuse_unable(self, able: frozenset[Ability], settings: SettingsT) -> None:
        """Refuse a measurement that needs what the tester cannot do here, before anything starts."""
        missing = sorted(settings.needs() - able)
        if missing:
            named = " and ".join(missing)
            raise UsageError(f"metric {self.metric}: this tester lacks {named}; choose another metric or setting")

    def measure(  # noqa: PLR0913 - what only few callers give, each by its name
        self,
        measurer: Measurer,
        settings: SettingsT,
        observe: EventHandler = ignore,
        budget: TimeBudget | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        begins: Callable[[int], Measurer | None] = unheard,
        may_be_cut: bool = True,
    ) -> MeasurementResult:
        """Measure the number of repetitions that the settings require.

        `budget` is the remaining time of a measurement that needs this metric first; None = the limit in the settings,
        by `clock`, in s. `begins` is called before each repetition with its number, from 1, and returns a measurer for
        it, or None for the same one; its duration counts as time of the measurement. An error that it raises ends the
        measurement; after the first repetition, the finished repetitions are the result. `may_be_cut`: the user may end
        a trial of several periods early, and its periods so far are the repetition.
        """
        self.refuse_unable(measurer.abilities, settings)
        settings = settings.as_run()
        time_budget = TimeBudget(settings.most_seconds, clock) if budget is None else budget
        runner = TrialRunner(
            measurer,
            self.metric,
            settings.most_repetitions,
            observe,
            budget=time_budget,
            begins=begins,
            may_be_cut=may_be_cut,
        )
        try:
            measurements, notes = self._measured(runner, settings)
        except TimeUpError as error:
            if budget is not None:
                raise
            remedy = f"; {error.remedy}" if error.remedy else ""
            raise BrokenError(f"{self.metric}: no result: {error}{runner.trials_text}{remedy}") from None
        result = make_result(self.metric, self.unit, settings.parameters(), measurements, notes)
        return replace(result, first=tuple(runner.first))

    def once(
        self,
        measurer: Measurer,
        settings: SettingsT,
        known: float | None,
        observe: EventHandler = ignore,
        budget: TimeBudget | None = None,
    ) -> Measurement:
        """Measure a single repetition, for callers that measure several devices in turn.

        The repetition has all notes that the result of `measure` has for a single one. `known` is the value of an
        earlier repetition; None = there was none. `budget` is as of `measure`. Raises TimeUpError where the time ended
        before a first bound.
        """
        self.refuse_unable(measurer.abilities, settings)
        settings = settings.as_run()
        time_budget = TimeBudget(settings.most_seconds) if budget is None else budget
        runner = TrialRunner(measurer, self.metric, observe=observe, budget=time_budget)
        try:
            started = self.start(runner, settings)
        except TimeUpError as error:
            return stopped(runner.attempts, error)
        if isinstance(started, Answered):
            return _with_notes(started.measurement, started.notes)
        try:
            repetition = with_cause(with_device_figures(started.once(known)))
        except TimeUpError as error:
            repetition = stopped(runner.attempts, error)
        return _with_notes(repetition, self._notes(started, settings, [repetition]))

    def _measured(self, runner: TrialRunner, settings: SettingsT) -> tuple[list[Measurement], list[Note]]:
        started = self.start(runner, settings)
        if isinstance(started, Answered):
            return [started.measurement], [*started.notes]
        series = Series(runner, settings.repeat, started.once)
        in_rounds(runner.repetitions, lambda _number: [series])
        measurements = [with_cause(with_device_figures(repetition)) for repetition in series.done]
        return measurements, [*self._notes(started, settings, measurements), *series.notes]

    def _notes(
        self, started: Repetitions[SettingsT], settings: SettingsT, measurements: Sequence[Measurement]
    ) -> list[Note]:
        own = started.notes(measurements)
        notes = [*own, *started.phase1_notes(), *settings.notes()]
        notes += zero_checksum_note(settings, measurements)
        return [*notes, *disturbed_note(measurements), *command_failures_note(measurements)]


def _with_notes(repetition: Measurement, notes: Iterable[Note]) -> Measurement:
    return replace(repetition, notes=tuple(dict.fromkeys([*notes, *repetition.notes])))


_OF_DEVICE: Final = OF_SPEED | {*get_args(DeviceLimit)}
#: Kinds of causes of an overload.
_OF_RATE: Final = frozenset[Kind]({"late", "slow"})
#: Loads up to this multiple of the lowest one that failed decide as well: one trial may have failed for the host.
NEAR: Final = 1.25


def with_cause(measurement: Measurement) -> Measurement:
    """Return the repetition with its cause, and with the limit that follows from it, where the device limited it."""
    if measurement.limited_by not in _OF_DEVICE:
        return replace(measurement, cause=None)
    # A rule that drops a frame now and then lets slow trials pass, too: they are short of frames, not of rate.
    rare = any(note.word == "rare loss" for note in measurement.notes)
    cause = measurement.cause or _deciding(measurement.deciding, measurement.limited_by, rare=rare)
    if cause is None:
        return measurement
    limited_by = measurement.limited_by
    is_known = limited_by != "device" and limited_by in OF_SPEED and cause.limited_by == "device"
    notes = tuple(_named(note, cause) for note in measurement.notes)
    return replace(measurement, cause=cause, limited_by=limited_by if is_known else cause.limited_by, notes=notes)


def _named(note: Note, cause: Cause) -> Note:
    """Return a note on rare loss with its cause, and what changes that; other notes as they are."""
    if note.word != "rare loss" or cause.kind in ("not known", "slow"):
        return note
    remedy = f"; what changes it: {cause.remedy}" if cause.remedy else ""
    return replace(note, text=f"{note.text}; cause: {cause.words}{remedy}")


def _deciding(attempts: Sequence[Attempt], limited_by: LimitedBy, *, rare: bool) -> Cause | None:
    """Return the cause of the lowest loads that the device failed; None = no failed trial has one.

    Where the limit of the repetition is known, only trials with that limit decide. Where the loss is rare, no rate is
    the reason, so those that were only too late tell less.
    """
    failed = [each for each in attempts if each.outcome.verdict is Verdict.FAIL and each.outcome.cause is not None]
    if limited_by not in OF_SPEED:
        failed = [each for each in failed if each.outcome.limited_by == limited_by] or failed
    lowest = min((each.load for each in failed), default=0.0)
    deciding = [each for each in failed if each.load <= NEAR * lowest]
    causes = [each.outcome.cause for each in deciding if each.outcome.cause is not None]
    if rare:
        causes = [cause for cause in causes if cause.kind not in _OF_RATE] or causes
    if not causes:
        return None
    frames = max(each.outcome.phase1.intended_frames for each in deciding)
    passed = not rare and any(
        each.outcome.verdict is Verdict.PASS and each.load < lowest and each.outcome.phase1.intended_frames >= frames
        for each in attempts
    )
    return of_search(causes, passed=passed)


def of_search(causes: Iterable[Cause], *, passed: bool) -> Cause:
    """Return the cause of the loads that a search found too high.

    The causes, at least one, are those of the failed trials at the lowest of these loads; `passed` tells whether a
    lower rate of as many connections passed.
    """
    cause = most_frequent(causes)
    if cause.kind == "host limit" and passed:
        # Fewer connections in the same time: the hosts kept equal numbers because they opened them at equal rates.
        named = facts_of(cause.counter).cause if cause.counter else "not known"
        cause = replace(cause, kind=named, each_host=cause.each_host if named == "rule" else None)
    if cause.kind == "rule" and passed:
        return replace(cause, kind="rate limit", remedy="rules with a rate or a quota (`limit`, `hashlimit`, `police`)")
    return cause


def make_settings(  # noqa: PLR0913 - what is decided elsewhere, each by its name
    procedure: Procedure[SettingsT],
    chosen: Mapping[str, Any],
    *,
    connections: int,
    placement: Placement,
    own_processes: bool = False,
    order: Order,
    four_tuples: int,
    transport: Transport = "udp",
) -> SettingsT:
    """Return the settings: what the user chose, as `Procedure.taken` returns it, and the profile's for all others."""
    values = with_profile(procedure, chosen)
    own = {item.name for item in dataclasses.fields(procedure.settings)}
    values |= {name: each for name, each in (("four_tuples", four_tuples), ("transport", transport)) if name in own}
    settings = procedure.settings(
        connections=connections, placement=placement, own_processes=own_processes, order=order, **values
    )
    seconds = None if "most_seconds" in chosen else _more_time(procedure, values, connections)
    return settings if seconds is None else dataclasses.replace(settings, most_seconds=seconds)


def with_profile(procedure: Procedure[Any], choices: Mapping[str, object]) -> dict[str, Any]:
    """Return the given settings, with values of their profile for all other settings."""
    named = choices.get("profile", "default")
    one_of("profile", str(named), get_args(Profile))
    profile: Profile = next(profile for profile in get_args(Profile) if profile == named)
    names = {item.name for item in dataclasses.fields(procedure.settings)}
    defaults = {**COMMON[profile], **procedure.profiles.get(profile, {})}
    return {**{name: value for name, value in defaults.items() if name in names}, **choices}


def _more_time(procedure: Procedure[Any], values: Mapping[str, Any], connections: int) -> float | None:
    """A profile's time is for its own trials; longer ones, more connections and repetitions get as much more."""
    usual: dict[str, Any] = {item.name: item.default for item in dataclasses.fields(procedure.settings)}
    usual |= with_profile(procedure, {"profile": values.get("profile", "default")})
    if usual["most_seconds"] is None:
        return None

    def times(name: str) -> float:
        chosen, other = values.get(name), usual.get(name)
        return max(1.0, chosen / other) if isinstance(chosen, int | float) and isinstance(other, int | float) else 1.0

    # A trial opens its connections, and then it sends.
    share = (times("trial_seconds") + max(1.0, connections / DEFAULT_CONNECTIONS) - 1) * times("repeat")
    return usual["most_seconds"] * share if share > 1 else None
