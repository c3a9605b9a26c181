# SPDX-License-Identifier: Apache-2.0
"""Loads of new connections, open connections and frames at once, and which of them a device does not carry.

A trial opens connections in phase 1, and in phase 2 sends frames to the open ones while new ones are opened and the
oldest leave. The highest load that passes is searched as any rate is. What ended the search is what the failed trials
lost; where they lost both, or nothing, the load that failed is tried with half of the new connections, and with half of
the frames: what must become less so that it passes is what ended it.

Beside a flood, notes say what the others keep of the load, and what they lose.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from natgauge.causes.cause import FULL, of_share
from natgauge.errors import BrokenError
from natgauge.ethernet import FRAME_OVERHEAD, frames_of_new, tag_octets
from natgauge.figure_text import number
from natgauge.inputs.input import chosen, wrong
from natgauge.inputs.measuring_types import parse_frame_sizes
from natgauge.metrics.catalogue import (
    FLOOD,
    FLOOD_LOST,
    FRAMES_LOST,
    KEPT,
    KEPT_LEAST,
    KEPT_MOST,
    NEW_LOST,
    WITHOUT_FLOOD,
)
from natgauge.metrics.metric import (
    CONNECTIONS_PER_SECOND,
    GIGABITS,
    HELD_FIGURE,
    HIGHEST_FIGURE,
    IN_ALL,
    OPEN_CONNECTIONS,
    SHARE_FIGURE,
    TABLE_ENTRIES,
    TRIAL_SECONDS,
)
from natgauge.notes import Note, NoteWord, known
from natgauge.procedures.kit import queues
from natgauge.procedures.kit.frame_counts import lost_of_due, lost_of_sent
from natgauge.procedures.kit.held_connections import HeldRate
from natgauge.procedures.kit.losses import MOST_MISSED
from natgauge.procedures.kit.phases import (
    ABOUT_TRIAL_SECONDS,
    LEAST_TRIAL_SECONDS,
    MOST_FAILED_PREPARATIONS,
    SAFE_SHARE,
    Phase1Settings,
    Preparation,
    prepare,
)
from natgauge.procedures.kit.procedure import NEAR, with_cause
from natgauge.procedures.kit.rate_search import SearchSettings, top_rate
from natgauge.procedures.kit.results import Attempt, Measurement, verdict_counts
from natgauge.procedures.kit.runner import TIME, Bounds, TimeUpError, TrialRunner, at_one_load, until_decided
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.readings import LEAST_GUARD_SECONDS, Churn
from natgauge.trials import Phase2Plan, Trial, TrialPlan
from natgauge.words import NO_DEVICE, Leave, LimitedBy, Verdict

if TYPE_CHECKING:
    from natgauge.agreement.generated import Frame, StreamCounts


#: What may end the search without the flood instead of the device, with the doubt that says so.
_NO_LEAST: Final[Mapping[LimitedBy, NoteWord]] = {
    "tester": "tester limited",
    "host": "host limited",
    "ranges": "range limited",
}


def beside_flood(
    alone: Measurement, tried: Sequence[Attempt], beside: Measurement, *, wanted: float, flood: float
) -> Measurement:
    """Return the load beside a flood, with what it is of the load without, and what `tried` lost at that one.

    Args:
        alone: the search without the flood, with a value above 0.
        wanted: connections/s of the flood, >= `flood`, those that could be sent.
    """
    attempts = (*(replace(each, is_aside=True) for each in alone.attempts), *tried, *beside.attempts)
    shares = {KEPT: beside.value / alone.value}
    if (most := _upper(alone)) is not None:
        shares[KEPT_LEAST] = beside.value / most
    if (most := _upper(beside)) is not None:
        shares[KEPT_MOST] = most / alone.value
    figures = {FLOOD: flood, WITHOUT_FLOOD: alone.value, **shares}
    less = (
        f"{wanted:,.0f} connections/s of one host are more than its four tuples, or half of the tester's frames, "
        f"allow; it opened {flood:,.0f}: name more --destination-ports"
    )
    notes = [*([Note("search", less)] if flood < wanted else []), *_of_first(alone)]
    every = replace(beside, attempts=attempts, trials=verdict_counts(attempts))
    return every.adding(*notes, **figures, **_lost_at(tried))


def _upper(searched: Measurement) -> float | None:
    """The lowest load that was too high for the device; None where something else may have been the reason."""
    hidden = any(note.grade == "answer" and known(note.word).leaves == "at least" for note in searched.notes)
    return None if hidden or searched.limited_by in NO_DEVICE - {TIME} else searched.upper


def _of_first(alone: Measurement) -> Iterator[Note]:
    """Yield what is known of the load without the flood; its doubts are about the share, and not about the value."""
    by = alone.limited_by
    if (word := _NO_LEAST.get(by)) is not None:
        text = f"the {by} ended the search, not the device, which may keep a smaller share: no least share is known"
        yield _without(Note(word, text))
    yield from map(_without, alone.notes)


def _without(note: Note) -> Note:
    grade = "interval" if note.grade == "answer" else note.grade
    return replace(note, text=f"without the flood: {note.text}", grade=grade)


def _lost_at(tried: Sequence[Attempt]) -> dict[str, float]:
    """What the others lost in the last of these trials, and how much of the flood was; empty where it was INVALID."""
    outcome = tried[-1].outcome if tried else None
    if outcome is None or outcome.verdict is Verdict.INVALID or outcome.flood is None:
        return {}
    counted = {NEW_LOST: [outcome.openings], FRAMES_LOST: outcome.phase2.values(), FLOOD_LOST: [outcome.flood]}
    return {name: 100 * lost_of_due(streams) for name, streams in counted.items()}


#: A connection gets frames from so long after its opening until so long before it leaves, in seconds, or for half of
#: its life.
GUARD_SECONDS: Final = 0.1
_GUARD_SHARE: Final = 0.25
#: The fewest connections of a trial in which connections leave. From so many on some get frames, although a quarter of
#: them (rounded up) and one more are too young for these, and as many are about to leave.
LEAST_OPEN: Final = 7
#: The fewest openings of a trial in which connections are opened.
_LEAST_OPENINGS: Final = 2.0
#: Where phase 2 opens nearly as many as the table holds, connections are open for so long, in s.
_LEAST_LIFE: Final = 1.0
#: Where nobody knows how long the device keeps them, phase 1 opens this share of the table's at least.
_LEAST_SHARE: Final = 0.5
#: The most connections of the first connection rate.
_FIRST: Final = 10_000
#: A table has room for this share of the connections that it can hold, even beside those of the trial before.
ROOM: Final = 0.5
#: Where a table or ports are full all the same, this share of the connections is tried next, down to so few unless a
#: metric has loads with fewer.
_FEWER: Final = 0.25
_FEWEST: Final = 100
#: Two numbers of connections that phase 1 kept are the same up to this factor, and less than all below this share.
_SAME: Final = 1.02
_NOT_ALL: Final = 0.98
#: So few of the connections, as a share, are what a device loses that finds no free port now and then.
_FEW_LOST: Final = 0.005
#: Verdicts on trials that reached phase 2, unless it says that phase 1 failed.
_OF_PHASE_2: Final = frozenset({Verdict.PASS, Verdict.FAIL})
#: A load so high that its numbers are no matter of rounding.
_MANY: Final = 1e6
#: Of two shares of lost frames, the smaller one is at least this part of the other where they are alike.
_ALIKE: Final = 0.5


@dataclass(frozen=True, slots=True)
class CombinedLoad:
    """What a device is to carry at once: connections/s, connections in its table, and frames/s over open ones.

    Attributes:
        kept: seconds for which the device keeps a connection that left, where `open` counts all that its table holds at
            the end of a trial; infinite = not known. None = `open` counts those that are open at a time.
        flood: connections/s that one further host opens, whatever the multiple; 0 = none does.
    """

    new: float
    open: float
    up: float
    down: float
    leave: Leave = "silent"
    kept: float | None = None
    flood: float = 0.0

    @property
    def frames(self) -> float:
        """Frames/s of both directions."""
        return self.up + self.down

    @property
    def made(self) -> float:
        """Frames/s that the tester makes for it, with those that open and close connections."""
        return self.frames + self.new * frames_of_new(is_tcp=self.leave != "silent")

    def times(self, multiple: float) -> CombinedLoad:
        """A multiple of it."""
        new, held, up, down = (multiple * each for each in (self.new, self.open, self.up, self.down))
        return replace(self, new=new, open=held, up=up, down=down)

    def at_first(self, seconds: float) -> int:
        """Number of connections that phase 1 opens for a trial of so many seconds."""
        return max(self._least_open, round(self._at_first(seconds)))

    @property
    def _least_open(self) -> int:
        return LEAST_OPEN if self.new or self.flood else 1

    def beyond(self, seconds: float) -> float:
        """Number of connections that the table holds beyond `open` at the end of such a trial; 0 = none."""
        return max(0.0, self._at_first(seconds) + self.left(seconds) - self.open)

    def _at_first(self, seconds: float) -> float:
        if self.kept is None:
            return self.open
        least = _LEAST_SHARE * self.open if math.isinf(self.kept) else min(self.open, _LEAST_LIFE * self.new)
        return max(self.open - self.left(seconds), least)

    def left(self, seconds: float) -> float:
        """Number of connections that left in such a phase 2, and that the table still holds at its end."""
        return self.new * min(seconds, self.kept or 0.0)

    def opens(self, seconds: float) -> bool:
        """Whether a phase 2 of so many seconds surely opens a connection."""
        return self.new * seconds >= _LEAST_OPENINGS

    def four_tuples(self, seconds: float) -> float:
        """Number of four tuples that a trial of so many seconds takes."""
        return self.at_first(seconds) + self.new * seconds

    def plan(self, settings: TrialSettings, phase1_rate: float, seconds: float, most: float = math.inf) -> TrialPlan:
        """Return the trial of this load; of its connections phase 1 opens no more than `most`."""
        connections = round(max(self._least_open, min(self.at_first(seconds), most)))
        churn, new, flood = None, self.new, self.flood
        if flood:
            # Without openings there is none.
            new, flood = max(new, _LEAST_OPENINGS / seconds), max(flood, _LEAST_OPENINGS / seconds)
        if flood or self.opens(seconds):
            # Whole milliseconds.
            most = math.floor(1000 * min(GUARD_SECONDS, _GUARD_SHARE * connections / new)) / 1000
            guard = max(LEAST_GUARD_SECONDS, most)
            churn = Churn(new_per_second=new, leave=self.leave, guard_seconds=guard, flood_per_second=flood)
        # A direction has a frame at least. At a rate below one in a trial, phase 2 would last until it is due.
        up, down = (max(rate, 1 / seconds) if rate else 0.0 for rate in (self.up, self.down))
        phase2 = Phase2Plan(initiator_rate=up, responder_rate=down, seconds=seconds, churn=churn)
        return replace(settings.phase1_plan(phase1_rate), connections=connections, phase2=phase2)


@dataclass(frozen=True, kw_only=True)
class MixedSettings(Phase1Settings, SearchSettings):
    """Settings of a measurement with such loads; `four_tuples` are those of the traffic, None = N."""

    trial_seconds: float = field(default=2.0, metadata=ABOUT_TRIAL_SECONDS)
    four_tuples: int | None = chosen(None, "four tuples to open connections with", group="traffic", default="N")
    flood_share: float | None = chosen(
        None,
        "share of all new connections that one further host opens; the loss of the others is measured",
        "share",
        (0.01, 0.999),
        default="no host does",
        group="traffic",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order == "with-replacement":
            raise wrong(
                "order", "with-replacement draws four tuples twice, so new ones cannot be counted; choose another"
            )

    @property
    def floods(self) -> bool:
        """Whether one host opens more than its share."""
        return self.flood_share is not None

    @property
    def fills_table(self) -> bool:
        """A flood may fill the table, whose size is the device's own then."""
        return self.floods

    def notes(self) -> list[Note]:
        """Return what the flood is, if there is one."""
        if self.flood_share is None:
            return super().notes()
        text = (
            f"{self.flood_share:.4g} of all new connections are of one host, at the rate that goes with the load "
            "without it; its own losses decide nothing"
        )
        return [*super().notes(), Note("method", text)]

    def as_run(self) -> Self:
        """Return these settings, with a time limit for each frame where there are queues before the device."""
        return queues.with_wait_limit(self, self.trial_seconds, self.error)

    @property
    def phase2_seconds(self) -> float:
        """Seconds of phase 2, as the user chose."""
        return self.trial_seconds

    def fewer_by(self, most: int) -> Mapping[str, Mapping[str, Any]]:
        """The ranges, which a search at high loads may use up, and the time for which new ones are opened."""
        ranges = f"ranges of at most {most} four tuples (fewer connections, where you named no range)"
        return {ranges: {"four_tuples": most}, "shorter --trial-seconds": {"trial_seconds": LEAST_TRIAL_SECONDS}}

    @property
    def space(self) -> int:
        """Number of four tuples."""
        return self.four_tuples or self.connections


MixedT = TypeVar("MixedT", bound=MixedSettings)


class MixedLoad(HeldRate[MixedT]):
    """The highest of a row of loads, by a number that grows with them."""

    #: Connections/s of the host that floods, in the search at hand.
    flood = 0.0
    #: The load of the repetition before without the flood.
    known_alone: float | None = None
    #: The most connections that phase 1 kept at all of its rates; None = it kept all, or fewer at higher rates.
    held: int | None = None
    #: The last rate of a phase 1 that opened all connections; None = there was none.
    _safe_rate: float | None = None
    #: Connections kept by each phase 1 that failed since then.
    _kept: tuple[int, ...] = ()

    @property
    def ended_by_ranges(self) -> str:
        """What ends the search where neither device nor tester does, in words."""
        return "the four tuples ended the search, not the device: name more --destination-ports"

    @abstractmethod
    def load_of(self, rate: float) -> CombinedLoad:
        """The load of this number, 0 or more."""

    @property
    def top_of_tester(self) -> float:
        """The highest load that the tester can send beside what does not grow with it."""
        none, many = (load.made for load in map(self.load_of, (0.0, _MANY)))
        left = max(1.0, top_rate(self.runner.measurer) - self.flood - none)
        return _MANY * left / (many - none)

    @property
    def top(self) -> float:
        """The highest load that the tester can send, and that there are four tuples for."""
        seconds, top = self.settings.trial_seconds, self.top_of_tester
        none, many = (self.load_of(each).four_tuples(seconds) for each in (0.0, _MANY))
        return min(top, _MANY * max(0.0, self.settings.space - none) / (many - none)) if many > none else top

    def load(self, rate: float, seconds: float) -> TrialPlan:
        """The trial that tries this load for so long."""
        return self.plan_of(self.flooded(rate), seconds)

    def flooded(self, rate: float) -> CombinedLoad:
        """The load of this number beside the flood."""
        return replace(self.load_of(rate), flood=self.flood)

    def plan_of(self, load: CombinedLoad, seconds: float) -> TrialPlan:
        """The trial of a load for so long."""
        return load.plan(self.settings, self.preparation.rate, seconds)

    def trial(self, rate: float, seconds: float, bounds: Bounds) -> Trial:
        """Try a load for so long; of a table that is full already in phase 1 a lower load is the remedy."""
        outcome = self.preparation.run(self.runner, self.load(rate, seconds), rate, bounds)
        if outcome.limited_by in FULL or self._is_beyond_held(outcome):
            return self._judged(rate, seconds, self._too_many(outcome))
        judged = self.preparation.judge(outcome)
        if outcome.verdict in _OF_PHASE_2 and outcome.failed_phase != 1:
            self._safe_rate, self._kept = self.preparation.rate, ()
        elif judged.verdict is Verdict.INVALID and outcome.verdict is Verdict.FAIL:
            self._kept = (*self._kept, _kept(outcome))
        if not self.preparation.hopeless:
            return self._judged(rate, seconds, judged)
        self._infer_held(outcome)
        return self._judged(rate, seconds, self._too_many(outcome))

    def _infer_held(self, outcome: Trial) -> None:
        """Take a load whose phase 1 fails at every rate for one with too many connections, and search below it.

        Where the failed ones kept the same number, that is the reason. BrokenError where they did not, and no lower
        load has fewer connections, or none were ever opened, and these were more than a few; and where that number was
        another one before.
        """
        number, most = outcome.plan.connections, max(self._kept)
        are_alike = len(self._kept) > MOST_FAILED_PREPARATIONS and most <= _SAME * min(self._kept)
        is_number = are_alike and most < _NOT_ALL * number
        has_opened = self._safe_rate is not None or self.preparation.rough is not None
        loses_few = number - min(self._kept) <= _FEW_LOST * number
        has_fewer = self.load_of(0.0).at_first(self.settings.trial_seconds) < number
        if not (is_number or ((has_opened or loses_few) and has_fewer)) or (self.held is not None and not has_opened):
            why = "; ".join(filter(None, (outcome.reason, self.preparation.remedy)))
            raise BrokenError(f"{self.runner.metric}: phase 1 cannot establish the connections: {why}")
        self.held = most if is_number else self.held
        # A slower phase 1 was no remedy, and would only take longer.
        self.preparation.resume(self._safe_rate or SAFE_SHARE * self.preparation.connection_rate)
        self._kept = ()

    def _is_beyond_held(self, outcome: Trial) -> bool:
        """Whether phase 1 kept no more than the number that slower ones before it kept, too."""
        if self.held is None or outcome.verdict is not Verdict.FAIL or outcome.failed_phase != 1:
            return False
        return self.held <= _SAME * _kept(outcome) <= _SAME * _SAME * self.held

    def _too_many(self, outcome: Trial) -> Trial:
        """Return the outcome so that the search goes on below it; the cause keeps the word."""
        if outcome.limited_by in FULL or self.held is None:
            return replace(outcome, limited_by="device")
        causes = [] if outcome.cause is None else [outcome.cause]
        return replace(outcome, limited_by="device", cause=of_share(causes, kept=self.held, is_number=True))

    def _judged(self, rate: float, seconds: float, outcome: Trial) -> Trial:
        self.judged.append(Attempt(rate, seconds < self.settings.phase2_seconds, outcome))
        return outcome

    def _forwarded(self, outcome: Trial) -> float | None:
        """The load of which the device carried the smallest share."""
        tried = next((each.load for each in reversed(self.judged) if each.outcome is outcome), None)
        shares = [each.received_frames / each.offered_frames for each in _streams(outcome) if each.offered_frames]
        return None if tried is None or not shares else tried * min(shares)

    def figures(self, value: float) -> dict[str, float]:
        """Return the load of this number by its kinds."""
        load, seconds = self.load_of(value), self.settings.phase2_seconds
        # Phase 1 opens as many as stay open: those that leave are replaced.
        held = float(self.load(value, seconds).connections) if value else load.open
        figures = {OPEN_CONNECTIONS: held, IN_ALL: load.frames, TRIAL_SECONDS: seconds}
        if load.kept is not None and math.isfinite(load.kept):
            # Where nobody knows how long the device keeps those that left, nobody knows how many entries there are.
            figures[TABLE_ENTRIES] = held + load.left(seconds)
        if value or not load.new:
            # Where no load passed, new connections that do not grow with it passed in none.
            figures[CONNECTIONS_PER_SECOND] = load.new
        frame = next((each.outcome.request.frame for each in self.judged if each.outcome.request), None)
        if frame is not None:
            overhead = FRAME_OVERHEAD + tag_octets(getattr(frame, f"{frame.side}_vlan"))
            up, down = (_mean_octets(frame, down) - overhead for down in (False, True))
            figures[GIGABITS] = 8e-9 * (up * load.up + down * load.down)
        return figures

    def search_once(self, known: float | None) -> Measurement:
        """Search once, without a flood and then beside it where there is one."""
        share = self.settings.flood_share
        if share is None:
            return self._search_once(known)
        self.flood = 0.0
        alone = self._search_once(self.known_alone)
        if not alone.value:
            return alone
        self.known_alone = alone.value
        wanted = max(_LEAST_OPENINGS, share / (1 - share) * self.load_of(alone.value).new)
        self.flood = min(wanted, self._most_flood)
        tried: list[Attempt] = []
        self._passes(self.flooded(alone.value), alone.value, tried)
        return beside_flood(alone, tried, self._search_once(known or alone.value), wanted=wanted, flood=self.flood)

    @property
    def _most_flood(self) -> float:
        """The most connections/s that one host can open, of half of the frames that the tester can send."""
        measurer, seconds = self.runner.measurer, self.settings.trial_seconds
        return min(top_rate(measurer) / 2, math.floor(self.settings.space / measurer.hosts) / seconds)

    def _search_once(self, known: float | None) -> Measurement:
        """Search once, and find out what ended it."""
        repetition = with_cause(super().search_once(known))
        if repetition.limited_by == "ranges":
            repetition = repetition.adding(Note("search", self.ended_by_ranges))
        load, seconds = self.load_of(repetition.value), self.settings.trial_seconds
        if repetition.value and load.new and not load.opens(seconds):
            text = f"trials of {seconds:g} s opened no connection: {number(load.new)}/s are too few; use longer trials"
            repetition = repetition.adding(Note("method", text))
        cause = repetition.cause
        if self.held is not None and cause is not None and cause.kind == "table" and cause.is_doubtful:
            text = (
                f"phase 1 opened no more than about {self.held:,} connections at any of its rates; no limit is known, "
                "so that is probably that of the device's table"
            )
            repetition = repetition.adding(Note("table inferred", text))
        if repetition.limited_by != "device":
            return repetition
        ended_by, notes, tried = self._ended_by(repetition)
        if load.new and not repetition.value and (passed := self._fewer_new(repetition, ended_by, tried)):
            # Their loss is alike at every frame rate, so it looks like one that no rate cures.
            text = f"{number(load.new)} new connections/s are too many at every frame rate: {number(passed)} passed"
            repetition = _without_loss_at_every_rate(repetition)
            ended_by, notes = "new connections", [Note("search", text)]
        attempts = (*repetition.attempts, *tried)
        ended = replace(repetition, limited_by=ended_by, attempts=attempts, trials=verdict_counts(attempts))
        return ended.adding(*notes)

    def _ended_by(self, repetition: Measurement) -> tuple[LimitedBy, list[Note], list[Attempt]]:
        """Return what ended the search, with a note where that cannot be told, and the trials that it took."""
        deciding = _lowest_failed(repetition)
        rate = max((each.load for each in deciding), default=0.0)
        load = self.flooded(rate)
        if all(each.outcome.failed_phase == 1 for each in deciding):
            # The number of connections, not what phase 2 adds to them.
            return "device", [], []
        if not load.new:
            return "frames", [], []
        streams = [stream for each in deciding for stream in each.outcome.phase2.values()]
        opened, frames = lost_of_sent([each.outcome.openings for each in deciding]), lost_of_sent(streams)
        if bool(opened) != bool(frames):
            return ("new connections" if opened else "frames"), [], []
        relieved = (replace(load, new=load.new / 2), replace(load, up=load.up / 2, down=load.down / 2))
        tried: list[Attempt] = []
        passes = [self._passes(each, rate, tried) for each in relieved]
        if passes == [True, False]:
            return "new connections", [], tried
        if passes == [False, True] or (passes == [True, True] and frames > _ALIKE * opened):
            # Where either helps, and both are lost alike, the device takes an opening for a frame.
            return "frames", [], tried
        words = {True: "passed", False: "failed", None: "could not be decided"}
        text = (
            "whether new connections or frames ended the search cannot be told: at "
            f"{number(rate)} {self.span().unit} a trial with half of the new connections {words[passes[0]]}, and one "
            f"with half of the frames {words[passes[1]]}"
        )
        return "device", [Note("search", text)], tried

    def _fewer_new(self, repetition: Measurement, ended_by: LimitedBy, tried: list[Attempt]) -> float | None:
        """How many new connections/s pass where those that are as many at every frame rate do not; None = none do.

        They are still so many that a loss which no rate cures would show. The trials are added to `tried`.
        """
        deciding, seconds = _lowest_failed(repetition), self.settings.trial_seconds
        rate = max((each.load for each in deciding), default=0.0)
        load, lost = self.flooded(rate), lost_of_sent([each.outcome.openings for each in deciding])
        fewer = load.new / 2 if tried else load.new
        if any(each.outcome.verdict is Verdict.PASS for each in tried):
            return fewer if ended_by == "new connections" else None
        passes: bool | None = False
        while passes is False and fewer / 2 * seconds * lost >= MOST_MISSED:
            fewer /= 2
            passes = self._passes(replace(load, new=fewer), rate, tried)
        return fewer if passes else None

    def _passes(self, load: CombinedLoad, rate: float, tried: list[Attempt]) -> bool | None:
        """Whether a load passes; None = no trial measured the device, or the time is over."""

        def kept() -> Trial:
            plan = self.plan_of(load, self.settings.phase2_seconds)
            outcome = self.preparation.judge(self.runner.run(plan, rate, Bounds()))
            tried.append(Attempt(rate, short=False, outcome=outcome, is_aside=True))
            return outcome

        try:
            found = until_decided(kept, at_one_load(self.settings.invalid_repeats))
        except TimeUpError:
            return None
        return found.outcome.verdict is Verdict.PASS if found.decided else None


def prepared(
    runner: TrialRunner, settings: MixedSettings, most: int = _FIRST, least: int = _FEWEST, *, grows: bool
) -> Preparation:
    """Find a safe rate of phase 1 with few of the connections: what a full table refuses is searched later.

    `most` is the most connections of any trial, where no address may have more than its share of these. `least` is the
    fewest for which a rate is looked for. `grows`: lower loads have fewer connections, so that a rate of fewer helps
    where a device loses a few of them at every rate, once.
    """
    limit = runner.measurer.table_limit
    room = _FIRST if limit is None else max(1, math.floor(ROOM * limit))
    connections = min(settings.connections, _FIRST, most, room)
    while True:
        found = prepare(runner, replace(settings, connections=connections))
        if found.rate or found.rough is None:
            return found
        # Whatever the cause, a device that holds only so many connections has a rate of fewer.
        held = found.rough.figures.get(HELD_FIGURE)
        if held is None and found.rough.limited_by not in FULL:
            if not grows or not _loses_few(found.rough.measurements[0]):
                return found
            grows = False
        fewer = max(least, math.floor(_FEWER * connections if held is None else ROOM * held.median))
        if fewer >= connections:
            return found
        connections = fewer


def _loses_few(repetition: Measurement) -> bool:
    """Whether the device lost some connections at the lowest rates of a phase 1 alone, but no more than a few."""
    lost = lost_of_sent(each.outcome.phase1 for each in _lowest_failed(repetition))
    return 0 < lost <= _FEW_LOST


def _lowest_failed(repetition: Measurement) -> list[Attempt]:
    failed = [each for each in repetition.deciding if each.outcome.verdict is Verdict.FAIL]
    lowest = min((each.load for each in failed), default=0.0)
    return [each for each in failed if each.load <= NEAR * lowest]


def _without_loss_at_every_rate(repetition: Measurement) -> Measurement:
    of_loss = {SHARE_FIGURE, HIGHEST_FIGURE}
    return replace(
        repetition,
        figures={name: each for name, each in repetition.figures.items() if name not in of_loss},
        notes=tuple(note for note in repetition.notes if note.word != "loss at every rate"),
    )


def _kept(outcome: Trial) -> int:
    """Number of connections that phase 1 opened, and that the device still had after it, as far as it tells."""
    count = outcome.table_count
    return outcome.stored if count is None else min(outcome.stored, count)


def _mean_octets(frame: Frame, down: bool) -> float:  # noqa: FBT001 - a direction
    mix = (frame.down_frame_sizes if down else None) or frame.frame_sizes
    return frame.size if mix is None else parse_frame_sizes("frame_sizes", mix).mean


def _streams(outcome: Trial) -> Iterator[StreamCounts]:
    yield outcome.phase1
    yield from outcome.phase2.values()
    if outcome.openings is not None:
        yield outcome.openings
