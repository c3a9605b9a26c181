# SPDX-License-Identifier: Apache-2.0
"""Losses that mislead a search for a rate: permanent ones, rare ones, and those that a bucket holds back.

Permanent loss: a share of the frames is lost or damaged however slowly they are sent. A search would go down step by
step and never end. An overloaded device is different: it forwards a constant number of frames/s at any offered rate, so
its loss share falls with the rate. Permanent loss has the same share over a wide span of rates, within the uncertainty
of counting few bad frames.

If phase 1 loses the frames, a device that holds a limited number of connections looks the same. Fewer connections
distinguish the two: it has room for them, but a device that loses a share loses the same share of fewer connections.
Neither is said where a trial of as many connections had surely more of them through. A count of the device that is
surely larger than the number disproves that it holds only so many.
What limits the number is not said here, but by the causes of the trials (`natgauge.causes`): a full table, the outside
ports, a rule.

A trial may pass by chance although the share predicts one or two lost frames: it had too few frames. A trial that
passed with many frames disproves permanent loss.

Rare loss: a few frames in a million, which a search takes for the limit of the rate. Of a rate x % above its limit an
overloaded device loses x %. Where the failed trials above the answer lost next to nothing of that, no overload was what
they failed for: the loss has another reason than the rate, and how far down the search went is a matter of chance.

Such a loss can also make the upper bound by itself, twice in a row, with no failed trial close above it. Where the
trials at the upper bound lost fewer frames than any but an unlikely overload does, one more trial a little above it
shows the reason: an overloaded device loses a share there that nobody overlooks.

A bucket: connections that a device accepts at once, beyond its rate, as the token bucket of a policer, or a queue
behind it. The buffer in front of what writes a device's log is one, too: records that find no room there are lost.

Of N connections at a rate X, a device of the lasting rate r with a bucket of B loses N (1 - r/X) - B. So the highest
rate without loss is R = r N / (N - B), which falls with N, and a trial at X loses the share (1 - b) (1 - R/X), with
b = B/N. An overloaded device without a bucket loses 1 - R/X. A device that only hesitates now and then forwards more
under overload, too; a quarter of the connections at a rate above R shows the difference: a bucket holds them.

Of far more connections than a bucket holds, far faster than its lasting rate, all but B are lost at any rate, as in a
permanent loss. So this is said only where one of the trials lasted long enough for connections beyond B.

The search knows R within its error only. Two trials at rates X < Y that are far apart know better: r is the difference
of their losses over N (1/X - 1/Y).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from natgauge.causes.cause import Cause, of_share
from natgauge.figure_text import in_percent, with_noun
from natgauge.figure_text import number as written
from natgauge.late_delays import LateDelays, merged
from natgauge.metrics.metric import HELD_FIGURE, HIGHEST_FIGURE, SHARE_FIGURE
from natgauge.notes import Note, NoteWord
from natgauge.procedures.kit.frame_counts import (
    deciding_counts,
    deviation,
    explains,
    frames_of,
    least_to_most,
    lost_at_most,
    lost_more_connections,
)
from natgauge.procedures.kit.results import Attempt, failed_by_device
from natgauge.trials import Trial
from natgauge.words import WRONG_FRAMES, LimitedBy, Verdict

if TYPE_CHECKING:
    from natgauge.agreement.generated import StreamCounts


#: The rates of the failed trials span this factor at least. An overloaded device loses nothing at an eighth of a rate
#: at which it loses less than 7/8.
SPAN: Final = 8.0
#: Rates that are to lie so far apart may lie a little closer, as quotients are not exact.
BELOW: Final = 0.99
LEAST_TRIALS: Final = 4
#: The slowest trial that opens connections lasts so long, seconds: a bucket with a low lasting rate shows that rate.
LEAST_SECONDS: Final = 5.0
#: Least number of bad frames in all: fewer may have had other reasons.
LEAST_BAD: Final = 10
#: Least number of frames that came through in each failed trial: that they are as large a share at every rate is what
#: excludes an overload, and of fewer the share is not known well enough. Wrong frames are no matter of overload.
LEAST_GOOD: Final = 20
#: With this expected number of bad frames, the probability of none at all is 1 %.
MOST_MISSED: Final = 4.6
#: A passing trial had too few frames to prove anything if it had at most this share of the frames of a failed one.
FEW_FRAMES: Final = 0.25

#: This share of the connections kept at every rate is opened alone: other hosts may hold a few entries.
FEWER_SHARE: Final = 0.9
#: Fewer connections are enough once this number of bad ones is expected among them.
ENOUGH_BAD: Final = 20
#: With a small share it takes several trials of fewer connections until some must be lost; no more than these are run.
MOST_CHECKS: Final = 5

#: Frames that came back later than they may, which a longer time limit cures.
LATE: Final = "late"
#: Messages that came back with another content than that of a right answer: an overloaded server may refuse so, too.
WRONG_CONTENT: Final = "wrong_content"
#: Connections whose record in the device's log is missing or wrong.
UNLOGGED: Final = "unlogged"
#: Trials of which no frame came back in time: of a device that is only overloaded the first frames find no queue.
LEAST_LATE_TRIALS: Final = 2
#: Words of the notes on it.
WORDS: Final[tuple[NoteWord, NoteWord]] = ("loss at every rate", "late at every rate")
#: What may be wrong with a frame, as it is said; the worst first. Lost comes last: a frame that came back wrong is
#: lost, too.
_KINDS: Final[Mapping[str, str]] = {
    **{name: f"come back {said}" for name, said in WRONG_FRAMES.items()},
    "duplicates": "come back twice",
    WRONG_CONTENT: "come back with wrong content",
    "unkept": "are forwarded, but their connections are not kept",
    LATE: "come back later than the time limit for a frame",
    "lost": "are lost",
    UNLOGGED: "have no right record in the device's log",
}
#: Kinds of which the share that came through says whether an overload explains it.
_OVERLOADED: Final = frozenset({"lost", "unkept", LATE, UNLOGGED, WRONG_CONTENT})


@dataclass(frozen=True, slots=True)
class _Seen:
    """Observations of one trial; `bad` is empty where it failed for another reason than its frames.

    `opens`: whether its rate is that of the frames that decided it, which open connections.
    """

    rate: float
    frames: int
    failed: bool
    phase1: bool
    opens: bool
    bad: Mapping[str, int]
    cause: Cause | None = None
    late_delays: LateDelays | None = None
    count: int | None = None


class Through(NamedTuple):
    """Frames that came through in a trial, and its rate."""

    frames: int
    rate: float


#: What limits a trial whose frames, or their records, say what is bad at its rate.
_OF_DEVICE: Final = frozenset[LimitedBy]({"device", "log"})

#: Runs one trial of fewer connections (their number) at a rate; None = none could be run, or none spoke of the device.
Fewer = Callable[[float, int], Trial | None]


class Reason(Enum):
    """Reason for a share of bad frames at every rate."""

    SHARE = "the device loses this share"
    NUMBER = "the device holds only so many connections"
    UNKNOWN = "one of the two"


@dataclass(frozen=True, slots=True)
class PermanentLoss:
    """A share of the frames that is bad at every rate.

    Attributes:
        slow_enough: the highest rate of a trial that shows the lasting rate of a bucket; infinite = none is needed.
        late_delays: delays of the late frames of the failed trials; None = not known.
        more: the most that came through in a trial of as many frames, where this loss does not explain it; None = none.
        counted: the most connections that the device counted, where they are surely more than it kept; None = they
            are not, or it does not count.
    """

    kind: str
    share: float
    lowest: float
    highest: float
    passed: bool
    phase1: bool
    slow_enough: float = math.inf
    kept: int = 0
    frames: int = 0
    reason: Reason = Reason.UNKNOWN
    checked: int = 0
    bad_of_checked: float = 0.0
    causes: tuple[Cause, ...] = ()
    late_delays: LateDelays | None = None
    more: Through | None = None
    counted: int | None = None

    @property
    def cause(self) -> Cause | None:
        """Its one cause, as all who tell it derive it; None = no trial has one."""
        is_number = self.reason is Reason.NUMBER
        return of_share(self.causes, kept=self.kept, is_number=is_number) if self.causes or is_number else None

    @property
    def lasted(self) -> bool:
        """Whether one of the trials was slow enough."""
        return BELOW * self.lowest <= self.slow_enough

    @property
    def figures(self) -> dict[str, float]:
        """Return the number that the device holds, or the share and the highest rate of lost frames."""
        if self.reason is Reason.NUMBER:
            return {HELD_FIGURE: float(self.kept)}
        return {SHARE_FIGURE: self.share, HIGHEST_FIGURE: self.highest} if self.kind == "lost" else {}

    def note(self, unit: str) -> Note:
        """Return a note of the observations, with their figures."""
        if self.reason is Reason.NUMBER:
            return self._number(unit)
        if self.kind == LATE:
            return Note("late at every rate", self._late(unit))
        share = in_percent(self.share)
        text = (
            f"{share} of the {'connections' if self.kind == UNLOGGED else 'frames'} {_KINDS[self.kind]} at every rate "
            f"from {written(self.lowest)} to {written(self.highest)} {unit}; no rate without loss exists above "
            f"{written(self.lowest)} {unit}"
        )
        if self.passed:
            text += "; trials that passed had too few frames to show it"
        if self.reason is Reason.SHARE:
            text += (
                f"; of {self.checked:,} new connections alone {in_percent(self.bad_of_checked)} showed the same, so it "
                "is no full table"
            )
        elif self.checked:
            alone = in_percent(self.bad_of_checked) if self.bad_of_checked else "none"
            text += (
                f"; of {self.checked:,} new connections alone {alone} showed the same, but {self._against(unit)}"
                f"{'' if self._because else ': why is not known'}"
            )
        elif self.may_be_number:
            text += "; a device that holds only so many connections looks the same"
        return Note("loss at every rate", f"{text}{self._because}")

    def _against(self, unit: str) -> str:
        """What contradicts the reason that fewer connections show."""
        if self.more is not None:
            return f"{self.more.frames:,} of {self.frames:,} came through at {written(self.more.rate)} {unit}"
        return f"the device counted {self.counted:,} connections, more than the {self.kept:,} that came through"

    def _number(self, unit: str) -> Note:
        """Return a note of a device that holds only so many connections, with what limits them."""
        text = (
            f"the device keeps about {self.kept:,} connections: of {self.frames:,} it kept no more at every rate from "
            f"{written(self.lowest)} to {written(self.highest)} {unit}, and of {self.checked:,} alone it kept all"
        )
        cause = self.cause
        if cause is not None and cause.kind == "table" and cause.is_doubtful:
            return Note("table inferred", f"{text}; no limit is known, so that is probably its table's")
        if cause is None or cause.limit is None or cause.kind != "not known":
            return Note("loss at every rate", f"{text}{self._because}")
        room = f"its connection tracking table may hold {cause.limit:,}, so it is not full"
        return Note("loss at every rate", f"{text}; {room}; what limits them is not known")

    def _late(self, unit: str) -> str:
        """The observations of late frames; they came back, so it is no loss and no full table."""
        delays = self.late_delays
        which = "no frame came back" if self.share == 1 else f"{in_percent(1 - self.share)} of the frames came back"
        in_time = "in time" if delays is not None and delays.limit is None else "within the time limit"
        who = "the device, or the way through it, delays frames"
        much = (
            f"{who} by more than the limit; a longer --frame-timeout-seconds measures its rate"
            if delays is None
            else f"{delays}; {who}; with more time its rate is measured"
        )
        return (
            f"{which} {in_time}, and the others came back later, at every rate from {written(self.lowest)} to "
            f"{written(self.highest)} {unit}: {much}, and queues may then raise it by more"
        )

    @property
    def _because(self) -> str:
        """The cause as a part of a sentence; empty = not known."""
        cause = self.cause
        return "" if cause is None or cause.kind == "not known" or not cause.words else f"; cause: {cause.words}"

    @property
    def may_be_number(self) -> bool:
        """Whether a device that holds only so many connections would look the same."""
        return self.phase1 and self.kind in ("lost", "unkept")

    def explained(self, fewer: Fewer) -> PermanentLoss:
        """Return this loss with its reason, where trials with fewer connections show the reason."""
        count = min(int(self.kept * FEWER_SHARE), math.ceil(ENOUGH_BAD / self.share))
        expected = count * self.share
        if not self.may_be_number or MOST_CHECKS * expected < MOST_MISSED:
            return self
        bad = trials = 0
        while trials * expected < MOST_MISSED:
            # As fast as the share was seen: the faster, the sooner it is over.
            outcome = fewer(self.highest, count)
            if outcome is None:
                return self
            trials += 1
            if outcome.verdict is Verdict.PASS:
                continue
            bad += _bad_of(self.kind, outcome, [outcome.phase1])
            if not bad or outcome.verdict is not Verdict.FAIL:
                return self
        checked = replace(self, checked=count, bad_of_checked=bad / (trials * count))
        if self.more is not None or (not bad and self.counted is not None):
            return checked
        if not bad:
            return replace(checked, reason=Reason.NUMBER)
        alike = abs(bad - trials * expected) <= deviation(trials * expected, self.share)
        return replace(checked, reason=Reason.SHARE) if alike else self


@dataclass(slots=True)
class Faults:
    """Bad frames in the trials of a search, in the order of their rates."""

    _seen: list[_Seen] = field(default_factory=list)
    #: How long the slowest trial of a proven loss lasts, in seconds; 0 = no trial can be so slow.
    least_seconds: float = LEAST_SECONDS

    def add(self, rate: float, outcome: Trial) -> None:
        """Take a trial into account; one that is INVALID says nothing."""
        if outcome.verdict is not Verdict.INVALID:
            self._seen.append(_seen(rate, outcome))
            self._seen.sort(key=lambda seen: seen.rate)

    def suspected(self) -> PermanentLoss | None:
        """Return the loss that at least the two lowest failed trials share, even if their rates are close together."""
        return self._alike(2) or self._late(1, 1.0)

    @property
    def highest_rate(self) -> float:
        """Highest rate tried; there must be one."""
        return self._seen[-1].rate

    def proven(self) -> PermanentLoss | None:
        """The share that no rate cures, where the trials prove it."""
        if (late := self._late(LEAST_LATE_TRIALS, SPAN * BELOW)) is not None:
            return late
        alike = self._alike(LEAST_TRIALS, SPAN, LEAST_BAD)
        return alike if alike is not None and alike.lasted else None

    def _late(self, trials: int, span: float) -> PermanentLoss | None:
        """A delay beyond the time limit, of the failed trials from which no frame came back in time."""
        failed = [trial for trial in self._seen if trial.failed]
        late = [trial for trial in failed if trial.bad.get(LATE, 0) == trial.frames > 0]
        passed = any(not trial.failed and trial.frames >= LEAST_GOOD for trial in self._seen)
        if passed or len(late) < trials or late[0] is not failed[0] or late[-1].rate < span * late[0].rate:
            return None
        return _incurable_of(late, late, LATE, late, 0.0)

    def _alike(self, trials: int, span: float = 1.0, bad: int = 1) -> PermanentLoss | None:
        """The longest run of trials, from the lowest rate on, that is alike in one kind of fault."""
        for kind in _KINDS:
            for number in range(len(self._seen), trials - 1, -1):
                run = self._seen[:number]
                failed = [trial for trial in run if trial.failed]
                if len(failed) < trials or failed[-1].rate < span * failed[0].rate:
                    break
                if sum(trial.bad.get(kind, 0) for trial in failed) >= bad and _agree(run, kind):
                    return _incurable_of(run, failed, kind, self._seen, self.least_seconds)
        return None


def _seen(rate: float, outcome: Trial) -> _Seen:
    failed = outcome.verdict is not Verdict.PASS
    of_phase1 = outcome.failed_phase == 1 or not outcome.phase2
    # Connections that were all opened would make shares of lost frames alike that are not.
    streams = frames_of(outcome)
    frames_tell = not failed or (
        # Frames of connections that were not opened are a share, too, but none that the device loses of its frames.
        outcome.verdict is Verdict.FAIL and outcome.limited_by in _OF_DEVICE and not lost_more_connections(outcome)
    )
    bad = {kind: _bad_of(kind, outcome, streams) for kind in _KINDS} if frames_tell else {}
    late = merged(counts.late_delays(outcome.plan.frame_timeout_seconds) for counts in streams if counts.late)
    frames = sum(counts.due_frames for counts in streams)
    opens = of_phase1 and (outcome.plan.phase2 is None or outcome.plan.phase1_rate == rate)
    return _Seen(rate, frames, failed, of_phase1, opens, bad, outcome.cause, late, outcome.table_count)


def _bad_of(kind: str, outcome: Trial, streams: Sequence[StreamCounts]) -> int:
    if kind == LATE:
        late, due = _bad(streams, LATE), sum(counts.due_frames for counts in streams)
        # All of a trial whose frames came back, but none in time: a queue that is full loses some as well.
        return due if late >= LEAST_GOOD and not any(counts.received_frames for counts in streams) else late
    if kind == UNLOGGED:
        log = outcome.readings.log
        # The log is that of the whole trial: after a phase 2 that opens connections, its frames are no measure of it.
        return 0 if log is None or outcome.failed_phase == 2 else log.faulty
    if kind != "unkept":
        return _bad(streams, kind)
    if outcome.failed_phase != 1 or outcome.table_count is None:
        return 0
    return max(outcome.stored - outcome.table_count, 0)


def _bad(streams: Sequence[StreamCounts], kind: str) -> int:
    return sum(getattr(counts, kind) or 0 for counts in streams)


def _share(run: Sequence[_Seen], kind: str) -> float:
    frames = sum(trial.frames for trial in run)
    return min(sum(trial.bad.get(kind, 0) for trial in run) / frames, 1.0) if frames else 0.0


def _agree(run: Sequence[_Seen], kind: str) -> bool:
    """Whether one share explains every trial."""
    share = _share(run, kind)
    few = FEW_FRAMES * max(trial.frames for trial in run if trial.failed)
    for trial in run:
        expected, bad = trial.frames * share, trial.bad.get(kind, 0)
        if trial.failed and (bad == 0 or (kind in _OVERLOADED and trial.frames - bad < LEAST_GOOD)):
            return False
        if bad == 0 and (expected > MOST_MISSED or trial.frames > few):
            return False
        if bad and abs(bad - expected) > deviation(expected, share):
            return False
    return True


def no_more_than(counts: StreamCounts, share: float) -> bool:
    """Whether this share explains the number of lost frames, and none came back wrong."""
    wrong = sum(_bad([counts], kind) for kind in _KINDS if kind not in _OVERLOADED)
    return wrong == 0 and explains(share, counts.lost, counts.due_frames)


def _incurable_of(
    run: Sequence[_Seen], failed: Sequence[_Seen], kind: str, every: Sequence[_Seen], least_seconds: float
) -> PermanentLoss:
    kept, frames = min((trial.frames - trial.bad[kind], trial.frames) for trial in failed)
    share = _share(run, kind)
    doubt = deviation(frames * share, share)
    alike = [trial for trial in every if trial.frames == frames]
    through = [Through(trial.frames - trial.bad[kind], trial.rate) for trial in alike if kind in trial.bad]
    counts = [trial.count for trial in alike if trial.count is not None]
    more, counted = max(through), max(counts, default=0)
    must_last = least_seconds > 0 and kind in _OVERLOADED and all(trial.opens for trial in failed)
    return PermanentLoss(
        kind=kind,
        share=share,
        lowest=failed[0].rate,
        highest=failed[-1].rate,
        passed=len(failed) < len(run),
        phase1=all(trial.phase1 for trial in failed),
        slow_enough=frames / least_seconds if must_last else math.inf,
        kept=kept,
        frames=frames,
        causes=tuple(trial.cause for trial in failed if trial.cause is not None),
        late_delays=merged(trial.late_delays for trial in failed) if kind == LATE else None,
        more=more if more.frames > frames * (1 - share) + doubt else None,
        counted=counted if counted > kept + doubt else None,
    )


#: Trials from this multiple of the upper bound on are looked at.
RARE_ABOVE: Final = 1.005
#: A trial that lost no more than this share of what an overload would have lost was not overloaded.
MOST_RARE_SHARE: Final = 0.1
#: Trials at the upper bound that lost no more than this share of what the error of the search allows an overload to
#: lose there, or no more than a frame or two: one overload in a hundred does so by chance.
LEAST_RARE_SHARE: Final = 0.01
FEW: Final = 2
#: In `shared` placement an overload slows the sending down, by more than this.
SLOWED: Final = 1.001


def rare_loss_note(attempts: Iterable[Attempt], upper: float | None, unit: str) -> list[Note]:
    """Return a note on the loss of failed trials that overload cannot explain.

    `upper` is the lowest rate that the search found too high, None = none.
    """
    if upper is None:
        return []
    # Queues before the device take up most of what a short trial loses.
    failed = [each for each in failed_by_device(attempts) if each.load >= RARE_ABOVE * upper and not each.short]
    rare = [attempt for attempt in failed if _is_rare(attempt.outcome, 1 - upper / attempt.load)]
    if not rare or 2 * len(rare) < len(failed):
        return []
    counts = [stream for attempt in rare for stream in deciding_counts(attempt.outcome)]
    lost, due = sum(stream.lost for stream in counts), sum(stream.due_frames for stream in counts)
    overload = sum(
        stream.due_frames * (1 - upper / attempt.load) * _whole_share(attempt.outcome)
        for attempt in rare
        for stream in deciding_counts(attempt.outcome)
    )
    rates = least_to_most([attempt.load for attempt in rare])
    text = (
        f"{lost:,} of {due:,} frames were lost in {len(rare)} of {with_noun(len(failed), 'failed trials')} at {rates} "
        f"{unit}, where a device that can do {written(upper)} {unit} loses {written(overload)} frames: the loss has "
        "another reason than the rate, and the answer may be far too low"
    )
    return [Note("rare loss", text)]


class Shown(NamedTuple):
    """Lowest rate that an overloaded device failed, as far as is known; a note where the loss has another reason."""

    upper: float
    notes: tuple[Note, ...] = ()


def rare_loss_suspected(attempts: Iterable[Attempt], upper: float, error: float) -> float | None:
    """Return the rate of a trial that shows why the trials at the upper bound failed; None where overload is plain.

    `upper` is the lowest rate that the device failed, > 0; `error` is that of the search there, as a share.
    """
    failed = [
        attempt.outcome
        for attempt in attempts
        if math.isclose(attempt.load, upper) and attempt.outcome.verdict is Verdict.FAIL
    ]
    if failed and all(outcome.limited_by == "device" and _is_few(outcome, error) for outcome in failed):
        return RARE_ABOVE * upper
    return None


def rare_loss_untried(attempts: Iterable[Attempt], upper: float | None, error: float, unit: str) -> list[Note]:
    """Return a note where no trial could show the reason of the loss at its upper bound."""
    if not upper or rare_loss_suspected(attempts, upper, error) is None:
        return []
    text = (
        f"every trial that failed at {written(upper)} {unit} lost only a few frames, and no valid trial of a "
        "faster one showed whether the rate is the reason; the answer may be far too low"
    )
    return [Note("rare loss", text)]


def rare_loss_shown(outcome: Trial, load: float, upper: float, unit: str) -> Shown:
    """Return what a trial at the rate that `suspected` returned, `load`, shows of the loss at the upper bound."""
    streams, passed = deciding_counts(outcome), outcome.verdict is Verdict.PASS
    failed = outcome.verdict is Verdict.FAIL and outcome.limited_by == "device"
    if not passed and not (failed and _is_rare(outcome, 1 - upper / load)):
        return Shown(upper=load if failed else upper)
    then = "passed" if passed else f"lost no more than {sum(counts.lost for counts in streams):,}"
    text = (
        f"every trial that failed at {written(upper)} {unit} lost only a few frames, and one at {written(load)} {unit} "
        f"{then}: the loss has another reason than the rate, and the answer may be far too low"
    )
    return Shown(upper, (Note("rare loss", text),))


def _whole_share(outcome: Trial) -> float:
    """Share of the frames that decided a trial that were sent while all groups of its connections sent."""
    phase2 = outcome.plan.phase2
    if phase2 is None or phase2.modifiers is None or outcome.failed_phase == 1:
        return 1.0
    return phase2.modifiers.whole_share(phase2.seconds)


def _is_few(outcome: Trial, error: float) -> bool:
    """Whether a trial lost fewer frames than any but an unlikely overload by the error of the search."""
    return lost_at_most(outcome, LEAST_RARE_SHARE * error * _whole_share(outcome), FEW)


def _is_rare(outcome: Trial, overload: float) -> bool:
    """Whether next to nothing was lost of what an overload loses (share of the frames), and nothing waited."""
    streams = deciding_counts(outcome)
    slowed = any(counts.late or counts.busy_seconds > SLOWED * counts.nominal_seconds for counts in streams)
    return not slowed and lost_at_most(outcome, MOST_RARE_SHARE * overload * _whole_share(outcome))


#: Failed trials from this multiple of the answer on are looked at: close above it next to nothing is lost anyway.
BUCKET_ABOVE: Final = 1.05
#: From this multiple on, they show the size of a bucket well; where there are none, a trial at the other one does.
CLEAR: Final = 1.5
FAR: Final = 2.0
#: Two trials whose rates are this multiple of each other show the lasting rate.
APART: Final = 1.25
#: Smallest and largest share of the connections that a bucket may hold; beyond it a loss is rare, not the bucket's.
LEAST_BUCKET_SHARE: Final = 0.1
MOST_BUCKET_SHARE: Final = 0.9
#: The trial that shows it: a share of the connections, and a multiple of the answer. A bucket of a sixteenth of the
#: connections passes it, a device without one loses a fifth.
FEWER: Final = 0.25
FASTER: Final = 1.25


@dataclass(frozen=True, slots=True)
class Bucket:
    """A suspected bucket: the highest rate without loss, R; N; the share of the connections that it holds, b; and r.

    `of_log`: records of connections are what it holds.
    """

    rate: float
    connections: int
    share: float
    lasting: float
    of_log: bool = False

    @property
    def trial(self) -> tuple[float, int]:
        """Rate and number of connections of the trial that shows whether there is one."""
        return FASTER * self.rate, max(1, int(FEWER * self.connections))

    def note(self, unit: str, *, is_shown: bool) -> Note:
        """Return a note of what lasts; `is_shown`: the trial that shows a bucket was run."""
        rate, connections = self.trial
        held = written(self.share * self.connections)
        who = f"the device takes about {held} connections at once, beyond its rate, as a token bucket does"
        if self.of_log:
            who = f"the buffer of the device's log holds about {held} connections that are not yet written"
        seen = f"{connections:,} of them passed at {written(rate)} {unit}"
        if not is_shown:
            seen = "the losses above the answer are such, but no trial of fewer connections could show it"
        text = (
            f"{who}: {seen}. With {self.connections:,} connections that raises the rate; about "
            f"{written(self.lasting)} {unit} last"
        )
        return Note("bucket", text, value=self.rate / self.lasting - 1)


def clearer(attempts: Iterable[Attempt], rate: float) -> float | None:
    """Return the rate of a trial of all connections whose losses show the size of a bucket; None where none is needed.

    Close above the answer the losses are few, and the error of the search is part of them. The trials are of a search
    for a rate of phase 1; `rate` is the highest that passed, > 0.
    """
    fastest = max(_failed(attempts, rate), key=lambda attempt: attempt.load, default=None)
    if fastest is None or fastest.load >= CLEAR * rate or _share_of_bucket(fastest, rate) < LEAST_BUCKET_SHARE:
        return None
    return FAR * rate


def _share_of_bucket(failed: Attempt, rate: float) -> float:
    """The share of the connections that a bucket holds, by the losses at a rate above the answer."""
    counts = failed.outcome.phase1
    return 1 - _lost(failed.outcome) / counts.offered_frames / (1 - rate / failed.load)


def _lost(failed: Trial) -> int:
    """Connections of phase 1 that the device, or its log, had no room for."""
    log = failed.readings.log
    return failed.phase1.lost if failed.limited_by != "log" or log is None else log.lost


def _failed(attempts: Iterable[Attempt], rate: float) -> list[Attempt]:
    """Trials above a rate of which phase 1 lost what the device limited, or its log where that limits the rate."""
    above = [attempt for attempt in attempts if attempt.outcome.verdict is Verdict.FAIL and attempt.load > rate]
    slowest = min(above, key=lambda attempt: attempt.load, default=None)
    by = "log" if slowest is not None and slowest.outcome.limited_by == "log" else "device"
    return [
        attempt
        for attempt in above
        if attempt.outcome.limited_by == by
        and deciding_counts(attempt.outcome) == [attempt.outcome.phase1]
        and _lost(attempt.outcome)
    ]


def bucket_suspected(attempts: Iterable[Attempt], rate: float) -> Bucket | None:
    """Return the bucket that the losses of the fastest failed trial suggest; None where they suggest none."""
    failed = [attempt for attempt in _failed(attempts, rate) if attempt.load >= BUCKET_ABOVE * rate]
    if not failed:
        return None
    fastest = max(failed, key=lambda attempt: attempt.load)
    share, of_log = _share_of_bucket(fastest, rate), fastest.outcome.limited_by == "log"
    if not LEAST_BUCKET_SHARE <= share <= MOST_BUCKET_SHARE:
        return None
    number, lasting = fastest.outcome.phase1.offered_frames, (1 - share) * rate
    slowest = min(failed, key=lambda attempt: attempt.load)
    if fastest.load >= APART * slowest.load:
        more = _lost(fastest.outcome) - _lost(slowest.outcome)
        found = more / (number * (1 / slowest.load - 1 / fastest.load))
        holds = 1 - found / fastest.load - _lost(fastest.outcome) / number
        # A device that is no plain bucket has other losses.
        if 0 < found < rate and LEAST_BUCKET_SHARE <= holds <= MOST_BUCKET_SHARE:
            share, lasting = holds, found
    return Bucket(rate, number, share, lasting, of_log=of_log)
