# SPDX-License-Identifier: Apache-2.0
"""Reset time (RFC 6201, required by RFC 8219 section 7.7): how long a restarted device forwards no frames.

docs/method/recovery.md has the method. A restarted device has lost its connections. Frames of the Initiator come
through as soon as it forwards again, but frames of the Responder only after a frame of the Initiator has opened their
connection again. So there are two instants, and both are reported.

There are two methods: time stamps (longest silence at the receiver, RFC 6201 section 3.2) and loss (lost frames / the
offered rate). If single frames are lost in addition, or connections come back one by one, the second result is longer.
A silence that lost no frame is none of a reset: frames were late, or seldom. Nor is one that a stall of this host
explains or hides, unless the stall began while the device was restarted: such a trial is repeated.

After a failover nothing opens a connection again, so a frame of the Responder arrives only if the other gateway has its
connection with the same outside address and port. All connections have equally many frames, so the share of the frames
that arrive after the silence is that of connections that survive. Where a loss is tolerated, a trial without the
command has the share that arrives anyway.

The trial is meant to lose frames, so its verdict is FAIL, and the counts give the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from natgauge.errors import BrokenError
from natgauge.figure_text import at_most, in_percent, number, with_noun
from natgauge.inputs.input import Text, chosen, wrong
from natgauge.measurer import Ability
from natgauge.metrics.catalogue import RESET
from natgauge.notes import Note
from natgauge.procedures.kit.frame_counts import LEAST_CHANCE
from natgauge.procedures.kit.held_connections import (
    ABOUT_LOAD,
    HeldConnections,
    ThroughputShareSettings,
    throughput_of,
)
from natgauge.procedures.kit.phases import ABOUT_TRIAL_SECONDS, Phase1Settings, Phase2Settings
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.results import Measurement
from natgauge.procedures.kit.runner import TrialRunner, Tried, at_one_load, until_decided
from natgauge.trials import Direction, Restart, Trial, TrialPlan
from natgauge.words import LimitedBy, origin

if TYPE_CHECKING:
    from natgauge.agreement.generated import StreamCounts

#: RFC 6201 section 4.1: traffic flows for 15 s before the reset.
RFC_BEFORE_SECONDS = 15.0
#: RFC 6201 section 4.3: the power is off for at least 15 s.
RFC_POWER_OFF_SECONDS = 15.0
ResetKind = Literal["process", "system", "hardware", "power", "failover"]
#: Each kind in words, with its section of RFC 6201.
_IN_WORDS: Final[dict[ResetKind, str]] = {
    "process": "reset of a process (RFC 6201 section 4.2.2, optional)",
    "system": "reset of the operating system (RFC 6201 section 4.2.1)",
    "hardware": "reset of the hardware (RFC 6201 section 4.1)",
    "power": "interruption of the power (RFC 6201 section 4.3)",
    "failover": "takeover by another gateway (in no standard)",
}
#: Silences that end this near to the end of the trial mean that nothing came back.
TAIL_SHARE = 0.05
#: Frames of each connection, on average, after the last lost one, that show that all survived.
FRAMES_EACH = 5
#: The instant of a command is known to a few ms.
EARLY_SECONDS = 0.01
#: Of two runs of a command the outage may begin earlier or later by this share of the time from the command to it.
UNSTEADY_SHARE = 0.5
#: A silence as long as this share of the other run's outage, at least, may be an outage.
SAME_SHARE = 0.5
#: Share of the frames of a silence that may not be lost: those under way at its ends.
MISSING_SHARE = 0.1
#: A larger share of an outage may not be that of stalls.
STALLED_SHARE = 0.1
#: A stall may lose frames that were due so long before it, and for its own length after it (see `lost_in_stalls`).
BEFORE_STALL_SECONDS = 0.001


@dataclass(frozen=True, kw_only=True)
class ResetSettings(ThroughputShareSettings, Phase2Settings, Phase1Settings):
    """Settings of the reset time; `trial_seconds` is the length of the whole phase 2.

    RFC 6201 requires 15 s of frames before the reset.
    """

    trial_seconds: float = field(default=12.0, metadata=ABOUT_TRIAL_SECONDS)
    before_seconds: float = chosen(2.0, "duration of traffic before the reset", "s", (0.1, 3600))
    load: float = field(default=0.5, metadata=ABOUT_LOAD)
    reset_kind: ResetKind = chosen("process", "part of the device that is reset, or failover to another one")
    reset_command: str | None = chosen(
        None,
        "shell command on this host that resets the device, or moves the traffic to the other one",
        type=Text("CMD"),
        moves_figures=False,
        default="natgauge restarts its process",
    )
    power_off_seconds: float = chosen(
        0.0, "time for which the reset command has the power off, subtracted", "s", (0, 3600)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.foreground_share < 1:
            raise wrong(
                "foreground_share",
                f"{in_percent(self.foreground_share)}: native IPv6 may come through while nothing is translated, and "
                "would end the silence; leave it out",
            )
        if self.before_seconds >= self.trial_seconds:
            raise wrong(
                "before_seconds",
                f"{self.before_seconds:g} s leave nothing of the trial's {self.trial_seconds:g} s; give more trial "
                "seconds",
            )
        if self.reset_command is None and self.reset_kind != "process":
            raise wrong(
                "reset_kind",
                f"{self.reset_kind}: natgauge resets a process only; give --reset-command, a shell command on "
                "this host",
            )
        if self.reset_command is not None and not self.reset_command.strip():
            raise wrong("reset_command", "is empty; name a shell command, or leave it out")
        if self.power_off_seconds and self.reset_kind != "power":
            raise wrong(
                "power_off_seconds",
                f"{self.power_off_seconds:g}: a reset of the {self.reset_kind} leaves the power on; leave it out, or "
                "give --reset-kind power",
            )
        if self.before_seconds + self.power_off_seconds >= self.trial_seconds:
            raise wrong(
                "power_off_seconds",
                f"{self.power_off_seconds:g} s leave nothing of the {self.trial_seconds:g} s of the trial after "
                f"{self.before_seconds:g} s before the reset; give more trial seconds",
            )

    def needs(self) -> frozenset[Ability]:
        """A restart while frames flow, and when none came."""
        restart = set() if self.reset_command is not None else {Ability.RESTART_IN_TRIAL}
        return super().needs() | restart | {Ability.LOSS_TIMES}

    def notes(self) -> list[Note]:
        """None: RFC 6201 requires no length of the trial, but one of the time before the reset."""
        return []

    def reset_plan(self, phase1_rate: float, rate: float) -> TrialPlan:
        """A trial in which the device is restarted."""
        plan = self.plan(phase1_rate, rate, self.trial_seconds)
        return replace(
            plan,
            restart_at_seconds=self.before_seconds,
            restart_command=self.reset_command,
            record_loss_times=True,
            at_rate=True,
        )


class _ResetTime(HeldConnections[ResetSettings]):
    """The time in ms, of the direction that returns later."""

    def __init__(self, runner: TrialRunner, settings: ResetSettings) -> None:
        super().__init__(runner, settings)
        self.rate = throughput_of(self, settings) * settings.load

    def once(self, _known: float | None) -> Measurement:
        # The restart is meant to lose frames. A stall after it loses frames of a device that is back.
        tried = until_decided(self._restarted, at_one_load(self.settings.invalid_repeats), self._decides)
        outcome, resets = tried.outcome, self._resets(tried.outcome)
        restart = _restart_of(outcome)
        off = self.settings.power_off_seconds
        figures: dict[str, float] = {"restart_ms": (restart.ended - restart.began) * 1000}
        silences, outages = list[float](), list[Outage]()
        notes = _repeats(tried)
        lost = any(_interrupted(counts, resets[direction]) for direction, counts in outcome.phase2.items())
        notes += _strays(outcome, resets) if lost else [self._no_outage(outcome, resets)]
        for direction, counts in outcome.phase2.items():
            who, name, reset = origin(direction), direction.value, resets[direction]
            if lost and not _interrupted(counts, reset):
                # The other direction was interrupted for longer than the gap between two frames, this one was not.
                silence = _Span(reset.began, reset.began)
            else:
                silence = _silence(who, counts, reset)
                notes += _late(who, counts, reset)
            if silence.seconds < off:
                raise BrokenError(
                    f"{RESET}: the silence {who} lasted {silence.seconds:.3g} s, less than the power was off, "
                    f"{off:g} s; see what the reset command does"
                )
            silences.append(silence.seconds - off)
            if silence.seconds > 0:
                outages.append(Outage(silence.begin - reset.began, silence.seconds, lost=lost))
            figures[f"silence_ms_from_{name}"] = silences[-1] * 1000
            if lost:
                figures[f"back_after_ms_from_{name}"] = (silence.end - reset.began - off) * 1000
            figures[f"loss_ms_from_{name}"] = (counts.lost / reset.rate - off) * 1000
            figures[f"untranslated_frames_from_{name}"] = float(counts.untranslated)
            if counts.untranslated:
                text = f"{counts.untranslated} frames {who} left the device untranslated while it was reset"
                notes.append(Note("device", text, counts.untranslated))
        if self.settings.reset_kind == "failover":
            # From outside it may last until frames from inside have opened the connections again.
            share = self._surviving_share(min(outages or [_NO_OUTAGE], key=lambda each: each.seconds))
            if isinstance(share, Note):
                notes.append(share)
            else:
                figures["surviving_percent"] = share * 100
        # A silence of frames that were only late is the tester's or its host's: the outage was no longer.
        limit: LimitedBy = "device" if lost and tried.decided else "host"
        return self.measurement(max(silences) * 1000, limited_by=limit, figures=figures, notes=notes)

    def _restarted(self) -> Trial:
        return self.must(self.rate, self.settings.reset_plan(self.preparation.rate, self.rate), 1)

    def _resets(self, outcome: Trial) -> dict[Direction, _Reset]:
        rates = dict(zip(Direction, self.settings.rates(self.rate), strict=True))
        restart = _restart_of(outcome)
        over, stalls = self.settings.trial_seconds, tuple(_stalls_apart(outcome, restart))
        return {each: _Reset(restart.began, restart.ended, over, rates[each], stalls) for each in outcome.phase2}

    def _decides(self, outcome: Trial) -> bool:
        """Whether no stall explains the outage of a direction."""
        resets = self._resets(outcome)
        return not any(_is_of_stalls(counts, resets[direction]) for direction, counts in outcome.phase2.items())

    @property
    def _gap_ms(self) -> float:
        """Time between two frames of a direction, of two directions the longer one."""
        return 1000 / min(rate for rate in self.settings.rates(self.rate) if rate)

    def _no_outage(self, outcome: Trial, resets: Mapping[Direction, _Reset]) -> Note:
        """Return what a takeover says in which no outage was seen; BrokenError of a reset, which has one."""
        lost = sum(counts.lost for each, counts in outcome.phase2.items() if _loses_after(counts, resets[each]))
        if self.settings.reset_kind != "failover":
            none = _not_lost(outcome, resets, "reset")
            most = f"less than the {number(self._gap_ms)} ms between two frames"
            if lost:
                longest = max(_longest_ms(counts, resets[each]) for each, counts in outcome.phase2.items())
                most = f"at most {at_most(longest)} ms"
            raise BrokenError(
                f"{RESET}: {none}, so it did not interrupt, or for {most}; see what the reset "
                "command does, or send faster (--throughput-rate)"
            )
        took = "within the longest silence" if lost else "without loss"
        text = (
            f"{_not_lost(outcome, resets, 'command')}: another gateway took over {took}, or the command moved nothing"
        )
        return Note("device", text)

    def _surviving_share(self, outage: Outage) -> float | Note:
        """Return the share of the connections that still let frames of the Responder in after a failover."""
        settings, rate = self.settings, self.rate
        outcome = self._of_responder(settings.reset_plan(self.preparation.rate, rate), settings.trial_seconds)
        usual = self._usual_share() if settings.loss_tolerance else 1.0
        return surviving_share(outcome, settings.trial_seconds, rate, outage, usual)

    def _of_responder(self, plan: TrialPlan, seconds: float) -> Trial:
        """Run a trial in which the Responder alone sends."""
        # One side sends all frames, however they are shared otherwise.
        down = replace(self.settings, directions="down", down_share=0.5).phase2(self.rate, seconds)
        return self.must(self.rate, replace(plan, phase2=down), 1)

    def _usual_share(self) -> float:
        """Return the share of the Responder's frames that arrive while nothing is moved."""
        seconds = self.settings.before_seconds
        plan = self.settings.plan(self.preparation.rate, self.rate, seconds)
        counts = self._of_responder(plan, seconds).phase2[Direction.RESPONDER]
        if not counts.received_frames:
            raise BrokenError(f"{RESET}: nothing came from the Responder while nothing was moved")
        return counts.received_frames / counts.offered_frames

    def notes(self, _measurements: Sequence[Measurement]) -> Sequence[Note]:
        settings, before = self.settings, self.settings.before_seconds
        by = "by natgauge" if settings.reset_command is None else "by the user's command"
        off = f", which was off for {settings.power_off_seconds:g} s (subtracted)" * (settings.reset_kind == "power")
        text = (
            f"{number(self.rate)} {settings.rate_unit}, so times are known to {number(self._gap_ms)} "
            f"ms; {_IN_WORDS[settings.reset_kind]} {by}{off}"
        )
        notes = [Note("method", text)]
        if settings.reset_kind == "power" and settings.power_off_seconds < RFC_POWER_OFF_SECONDS:
            text = (
                f"the power was off for {settings.power_off_seconds:g} s; RFC 6201 section 4.3 requires "
                f"{RFC_POWER_OFF_SECONDS:g} s"
            )
            notes.append(Note("settings", text))
        if before < RFC_BEFORE_SECONDS:
            text = f"{before:g} s before the reset; RFC 6201 section 4 requires {RFC_BEFORE_SECONDS:g} s"
            notes.append(Note("settings", text))
        return notes


@dataclass(frozen=True, slots=True)
class Outage:
    """The outage of the first trial of a failover, in the direction in which it was shorter.

    Attributes:
        after: seconds from the start of the command to the outage; a few ms below 0 where both were at once.
        seconds: from its beginning to its end, > 0.
        lost: False where that trial lost no frame after the command in either direction.
    """

    after: float
    seconds: float
    lost: bool


#: Of a takeover in which the tester saw no silence at all.
_NO_OUTAGE: Final = Outage(0.0, EARLY_SECONDS, lost=False)


def surviving_share(outcome: Trial, seconds: float, rate: float, first: Outage, usual: float = 1.0) -> float | Note:
    """Return the share of the connections that let the Responder's frames in after a failover, 0 to 1.

    The Responder sends for `seconds` at `rate`. Where no connection survives, no arrival ends the outage: it is taken
    to be where it was in the first trial. A note is the reason why the share is not known. `usual` is the share of the
    frames that arrives where nothing is moved, above 0.
    """
    counts = outcome.phase2[Direction.RESPONDER]
    received = counts.received_frames / usual
    restart, silence, last = outcome.restart or Restart(0.0, 0.0), _longest(counts), _last_lost(counts)
    is_known = _knows_when(counts)
    if is_known and first.lost and last < restart.began:
        text = "what survives is not known: the reset command interrupted nothing when it ran again; let it move back"
        return Note("device", text)
    # Losses that end do not end connections: each has had several frames since.
    if is_known and seconds - last > FRAMES_EACH * outcome.plan.connections / rate:
        return 1.0
    begin = restart.began + max(first.after, 0.0)
    end, doubt = begin + first.seconds, EARLY_SECONDS + max(first.after, 0.0) * UNSTEADY_SHARE
    latest = max(begin + doubt, restart.ended)
    # Elsewhere, or much shorter, the longest silence is the tester's.
    if silence and begin - doubt <= silence.begin <= latest and silence.seconds >= SAME_SHARE * first.seconds:
        begin, end = silence.begin, silence.end
    elif received <= rate * latest:
        return 0.0
    elif begin > restart.ended + EARLY_SECONDS:
        return Note(
            "device", "what survives is not known: the outage began some time after the reset command had ended"
        )
    after = rate * (seconds - end)
    return min(max((received - rate * begin) / after, 0.0), 1.0) if after > 0 else 0.0


@dataclass(frozen=True, slots=True)
class _Reset:
    """Start and end of the restart command, end of the trial, frames/s of a direction, and stalls apart from it.

    All times are in seconds of phase 2.
    """

    began: float
    ended: float
    over: float
    rate: float
    stalls: Sequence[tuple[float, float]]

    @property
    def left(self) -> float:
        return self.over - self.began


@dataclass(frozen=True, slots=True)
class _Span:
    """Beginning and end of an outage, in seconds of phase 2; `by_loss`: its length is that of sending what was lost."""

    begin: float
    end: float
    by_loss: bool = False

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def _restart_of(outcome: Trial) -> Restart:
    if outcome.restart is None:
        raise BrokenError(f"{RESET}: the device was not restarted in the trial")
    return outcome.restart


def _stalls_apart(outcome: Trial, restart: Restart) -> Iterator[tuple[float, float]]:
    """Yield when stalls may have lost frames, in seconds of phase 2.

    What is between the beginning and the end of the restart is left out: the restart may stall the device's cores.
    """
    stalls = [stall for cpu in outcome.cpus for stall in cpu.longest_stalls if stall.phase == "phase2"]
    last = -math.inf
    for stall in sorted(stalls, key=lambda each: each.from_ns):
        begin, end = stall.from_ns / 1e9, stall.to_ns / 1e9
        if begin > restart.ended + EARLY_SECONDS or end < restart.began - EARLY_SECONDS:
            # A pause of the host stalls all cores at once, and loses its frames once.
            begin, end = max(begin - BEFORE_STALL_SECONDS, last), end + (end - begin)
            if end > begin:
                yield begin, end
                last = end


def _repeats(tried: Tried) -> list[Note]:
    """Return notes on trials that were repeated because of stalls."""
    notes = []
    if tried.trials > 1:
        times = tried.trials - 1
        text = f"{times} trials were repeated, because stalls may have lost the frames of their outage, or hid it"
        notes.append(Note("trials", text, times))
    if not tried.decided:
        text = "stalls may have lost the frames of the outage, or hid it, in every trial: it may be shorter, or none"
        notes.append(Note("trials", text))
    return notes


def _is_of_stalls(counts: StreamCounts, reset: _Reset) -> bool:
    """Whether stalls apart from the restart explain a part of the outage of a direction that is too large, or hide it.

    More frames than the longest silence can have lost were not lost in a row, so the outage is a shorter one.
    """
    found, longest = _lost_span(counts, reset) if _loses_after(counts, reset) else None, _longest(counts)
    if found is None or longest is None:
        return False
    if found.by_loss and found.seconds > longest.seconds and not _is_stray(found, counts, reset):
        # A silence until the end of the trial is none between two arrivals.
        return found.end < (1 - TAIL_SHARE) * reset.over
    explained = sum(max(0.0, min(end, found.end) - max(begin, found.begin)) for begin, end in reset.stalls)
    if explained > STALLED_SHARE * found.seconds:
        return True
    if found.by_loss and _late_seconds(counts) > EARLY_SECONDS:
        # It is placed by when its last frame was due.
        return True
    # Where it is known by its lost frames alone, those of a stall elsewhere are among them.
    in_stalls = counts.lost_in_stalls or 0 if reset.stalls and found.by_loss else 0
    return in_stalls > STALLED_SHARE * counts.lost


def _knows_when(counts: StreamCounts) -> bool:
    """Whether it is known when the last frame was lost; where some frames were not made, the engine does not know."""
    return counts.last_lost_ns is not None or not counts.lost


def _loses_after(counts: StreamCounts, reset: _Reset) -> bool:
    """Whether frames of a direction were lost after the reset, as far as the trial knows."""
    if not _knows_when(counts):
        return True
    return counts.lost > 0 and _last_lost(counts) > reset.began - EARLY_SECONDS


def _last_lost(counts: StreamCounts) -> float:
    """Return when the last lost frame was sent at the latest, in seconds of phase 2.

    It is known when it was due; arrivals and the command have the time of the clock, by which a sender may be late.
    """
    return (counts.last_lost_ns or 0) / 1e9 + _late_seconds(counts)


def _late_seconds(counts: StreamCounts) -> float:
    return counts.worst_lag_ns / 1e9


def _interrupted(counts: StreamCounts, reset: _Reset) -> bool:
    """Whether frames of a direction were lost in an outage after the reset, as far as the trial knows."""
    if not _loses_after(counts, reset):
        return False
    span = _lost_span(counts, reset)
    return span is None or not _knows_when(counts) or not _is_stray(span, counts, reset)


def _is_stray(span: _Span, counts: StreamCounts, reset: _Reset) -> bool:
    """Whether lost frames are no outage: not next to the reset, and no more in a row than chance loses.

    Where the place is only assumed, and none was seen, so are few frames.
    """
    if span.begin <= reset.ended + EARLY_SECONDS and span.end >= reset.began - EARLY_SECONDS:
        return False
    if span.by_loss and span.seconds < EARLY_SECONDS:
        return True
    longest = _longest(counts) or span
    in_a_row = min(round(longest.seconds * reset.rate) - 1, counts.lost)
    return counts.offered_frames * (counts.lost / counts.offered_frames) ** in_a_row >= LEAST_CHANCE


def _longest_ms(counts: StreamCounts, reset: _Reset) -> float:
    """Return the longest outage that a direction without a seen one may have had: all its losses in a row."""
    span = _longest(counts)
    return 1000 * min((counts.lost + 1) / reset.rate, math.inf if span is None else span.seconds)


def _strays(outcome: Trial, resets: Mapping[Direction, _Reset]) -> Iterator[Note]:
    """Yield notes on directions that lost frames after the reset, but not in an outage."""
    for direction, counts in outcome.phase2.items():
        reset = resets[direction]
        if _loses_after(counts, reset) and not _interrupted(counts, reset):
            none, most = _not_lost(outcome, {direction: reset}, "reset"), at_most(_longest_ms(counts, reset))
            yield Note("device", f"{origin(direction)}: {none}, or one of at most {most} ms")


def _late(who: str, counts: StreamCounts, reset: _Reset) -> Iterator[Note]:
    """Yield a note on an outage that was seen some time after the command: the command may not be its cause."""
    span = _lost_span(counts, reset) if _interrupted(counts, reset) else None
    if span is not None and not span.by_loss and span.begin > reset.ended + EARLY_SECONDS:
        after = number(1000 * (span.begin - reset.ended))
        yield Note("device", f"the outage {who} began {after} ms after the command, and may have another cause")


def _not_lost(outcome: Trial, resets: Mapping[Direction, _Reset], what: str) -> str:
    """Say that no outage was seen after what was done, with the number of frames that were lost all the same."""
    losing = [(outcome.phase2[each], reset) for each, reset in resets.items()]
    losing = [(counts, reset) for counts, reset in losing if _loses_after(counts, reset)]
    frames = sum(counts.lost for counts, _ in losing)
    if not frames:
        return f"no frame was lost after the {what}"
    lost = with_noun(frames, "frames were lost", "frame was lost")
    spans = [_lost_span(counts, reset) for counts, reset in losing]
    # Where the tester's silence is the longest one, it is not known how they were lost.
    seen = ", but not in a row next to it" * all(span is not None and not span.by_loss for span in spans)
    return f"no outage was seen after the {what} ({lost}{seen})"


def _longest(counts: StreamCounts) -> _Span | None:
    """Return the longest silence of a direction; None = all was."""
    silence = counts.longest_silence
    return None if silence is None else _Span(silence.from_ns / 1e9, silence.to_ns / 1e9)


def _lost_span(counts: StreamCounts, reset: _Reset) -> _Span | None:
    """Return where frames of a direction were lost after the reset; None = all was silence."""
    longest = _longest(counts)
    if longest is None:
        return None
    by_loss, last_lost = counts.lost / reset.rate, _last_lost(counts)
    is_short = (1 - MISSING_SHARE) * longest.seconds > by_loss + 2 / reset.rate
    is_late = longest.end < reset.began or is_short or longest.begin > last_lost
    if is_late and _knows_when(counts):
        # The frames of this silence were late, not lost: the tester or its host stalled.
        late = _late_seconds(counts)
        return _Span(last_lost - by_loss - (late if late > EARLY_SECONDS else 0.0), last_lost, by_loss=True)
    return longest


def _silence(who: str, counts: StreamCounts, reset: _Reset) -> _Span:
    """Return the silence of the reset.

    Of a direction without an outage after the reset, it is the longest one: the outage was no longer.
    """
    interrupted = _interrupted(counts, reset)
    found = _lost_span(counts, reset) if interrupted else _longest(counts)
    if found is None:
        raise BrokenError(f"{RESET}: nothing came {who}")
    if not interrupted:
        return found
    # A silence that nothing ends is none between two arrivals, but it loses all that is sent after the reset.
    if found.end >= (1 - TAIL_SHARE) * reset.over or counts.lost >= (1 - TAIL_SHARE) * reset.left * reset.rate:
        raise BrokenError(
            f"{RESET}: frames {who} were not back {number(reset.left)} s after the reset; give more trial seconds"
        )
    if found.end < reset.began - EARLY_SECONDS:
        raise BrokenError(f"{RESET}: the longest silence {who} was before the reset: it did not interrupt")
    return found


PROCEDURE = Procedure(
    RESET,
    settings=ResetSettings,
    start=_ResetTime,
    profiles={
        "quick": {"trial_seconds": 12.0},
        "standard": {"trial_seconds": 30.0, "before_seconds": 5.0, "repeat": 5},
        # RFC 6201 section 4: 15 s before the reset.
        "rfc": {"trial_seconds": 60.0, "before_seconds": RFC_BEFORE_SECONDS},
    },
)
