# SPDX-License-Identifier: Apache-2.0
"""Validation of connections (RFC 9693 section 4.6), and whether a number of them is kept (RFC 9693 section 4.9).

One trial: the table is empty, the Initiator opens N connections at R, then in phase 2 the Responder sends one frame
through each at r. It passes when all N frames of both phases arrive. Asking each one once, and no one twice, makes the
count exact whatever a full device throws out: the first, the last or the oldest.

A failed validation has three causes that look the same (RFC 9693 section 4.9): R was too high, r was too high, or the
table is full. The device's own count distinguishes them, and by a second trial at half of r.

A frame that is lost before the device has opened its connection looks like one that a full table refused. The rate is
distinguished from the table by opening the same connections much slower: a table keeps the same number, however fast
they came, a queue or a slow device loses fewer. A table that is proved full that way keeps that number of any more
connections, too, so it is not proved again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

from natgauge.causes.cause import FULL
from natgauge.errors import BrokenError
from natgauge.figure_text import number as written
from natgauge.inputs.input import chosen, paced
from natgauge.measurer import Ability
from natgauge.notes import Note
from natgauge.procedures.kit.rate_search import FIRST_TRIAL_SECONDS
from natgauge.procedures.kit.results import Attempt
from natgauge.procedures.kit.runner import Bounds, TrialRunner, in_search, until_decided
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.trials import Direction, Phase2Plan, Trial, TrialPlan
from natgauge.words import OF_PORTS, LimitedBy, Verdict

Cause = Literal[
    "R too high", "r too high", "R or r too high", "table full", "ports used up", "connections missing", "unknown"
]

#: The second trial asks at this share of r.
SLOWER_SHARE = 0.5
#: A rate of validation that is no more than this share of the throughput is not what fails.
SAFE_SHARE_OF_DOWNLOAD = 0.5


@dataclass(frozen=True, kw_only=True)
class ValidationSettings(TrialSettings):
    """Settings of a measurement that asks every connection after it was established."""

    alpha: float = chosen(0.8, "validation rate, as a share of the connection rate", "share", (0.01, 1))
    download_rate: float | None = chosen(
        None,
        "throughput from the Responder; the validation rate stays below half of it",
        "frames/s",
        partial(paced, unit="frames/s"),
    )

    @property
    def phase2_seconds(self) -> float:
        """Seconds of queries after the first phase 1; later trials are compared with the time-outs before they run."""
        return FIRST_TRIAL_SECONDS / self.alpha

    @property
    def most_asked(self) -> float:
        """The highest r, in frames/s, that the device safely forwards, as known before a trial; infinite = unknown."""
        return math.inf if self.download_rate is None else self.download_rate * SAFE_SHARE_OF_DOWNLOAD

    def asking_rate(self, establishing: float, most: float) -> float:
        """The rate r, in frames/s, that follows connections established at R per second; no more than `most`."""
        return min(self.alpha * establishing, most)


def validation_plan(settings: TrialSettings, connections: int, establishing: float, asking: float) -> TrialPlan:
    """A trial that establishes `connections` at R = `establishing` and asks each once at r = `asking`."""
    phase2 = Phase2Plan(initiator_rate=0.0, responder_rate=asking, seconds=connections / asking, reading_order="once")
    return replace(settings.phase1_plan(establishing), connections=connections, phase2=phase2)


def validation_cause(failed: Trial, slower: Trial | None, connections: int) -> Cause:
    """Return the reason why a validation failed.

    `slower` is the outcome of the same trial with phase 2 at half the rate; None = there was none, which leaves open
    whether R or r was too high.
    """
    # Where every frame was forwarded and yet not every connection is there, no rate of asking brings one back.
    missing = failed.failed_phase == 2 and failed.table_count is not None and failed.table_count < connections
    slower_failed = slower is not None and slower.verdict is Verdict.FAIL
    rules: tuple[tuple[bool, Cause], ...] = (
        (failed.limited_by == "table", "table full"),
        (failed.limited_by in OF_PORTS, "ports used up"),
        (failed.failed_phase == 1, "R too high"),
        (slower is not None and slower.verdict is Verdict.PASS, "r too high"),
        (missing, "connections missing"),
        (slower is not None and slower_failed and slower.failed_phase == 1, "R too high"),
        (slower is not None and slower_failed and _lost(slower) >= _lost(failed) / 2, "R too high"),
        (slower is None and failed.failed_phase == 2, "R or r too high"),
    )
    return next((why for applies, why in rules if applies), "unknown")


def _lost(outcome: Trial) -> int:
    counts = outcome.phase2.get(Direction.RESPONDER)
    return 0 if counts is None else counts.lost


#: Rates below this, in connections/s, are not tried.
LEAST_RATE = 10.0
#: Further validations, after the first and the slower one, where the device's own count has all connections.
MORE_ASKINGS = 3
#: After a failure the rate is divided by this factor, again while more connections are kept, at most this often.
SLOWER = 4.0
MOST_SLOWER = 4
#: Two trials kept the same number where they differ by no more than this share, or by one.
SAME_SHARE = 0.001


class CollapsedError(Exception):
    """The device is gone; it was restarted, or cannot be."""


class UndecidedError(Exception):
    """No trial showed whether the connections are kept."""

    def __init__(self, reason: str, limited_by: LimitedBy) -> None:
        super().__init__(reason)
        self.limited_by = limited_by


class _Proved(NamedTuple):
    """A table that kept only `kept` of `connections`, however slowly they were opened."""

    connections: int
    kept: int

    def keeps(self, kept: int, of: int) -> bool:
        """Whether `kept` of another number of connections fits the same table and is clearly fewer than all."""
        off = abs(kept - self.kept)
        return off <= max(1.0, SAME_SHARE * self.kept) and of - self.kept > 2 * off


class CapacityTrials:
    """Trials that open connections and send one query over each."""

    def __init__(self, runner: TrialRunner, settings: ValidationSettings) -> None:
        self._runner = runner
        self._settings = settings
        self._most_asked = settings.most_asked
        self.attempts: list[Attempt] = []
        self.notes: list[Note] = []
        self.bounds = Bounds()
        #: Connections that the table kept when it was last full; None = it was never full.
        self.full_at: int | None = None
        self._proved: _Proved | None = None

    @property
    def last(self) -> Trial:
        """Outcome of the last trial; there must be one."""
        return self.attempts[-1].outcome

    def surely_full(self, count: int) -> bool:
        """Whether the last trial failed for the table, at any rate.

        A table counts as full from a little below its limit on, so it also seems to be where connections that just fit
        came too fast, and a few of them were lost.
        """
        if self._proved is not None and self._proved.keeps(_kept(self.last, count), count):
            return True
        return self.last.limited_by == "table" and _kept(self.last, count) < (1 - 2 * SAME_SHARE) * count

    def kept(self, count: int) -> int:
        """Number of connections that the last trial kept, of that many."""
        return _kept(self.last, count)

    @property
    def most_kept(self) -> int:
        """The most connections that were surely there at the end of a trial; 0 where no trial tells."""
        judged = [each.outcome for each in self.attempts if each.outcome.verdict in (Verdict.PASS, Verdict.FAIL)]
        # Of a full table that evicts, each connection was forwarded as it was opened.
        sure = [each for each in judged if each.table_count is not None or Direction.RESPONDER in each.phase2]
        return max((_kept(each, each.phase1.intended_frames) for each in sure), default=0)

    def slowness_kept_no_more(self, count: int) -> bool:
        """Whether the last trial kept no more connections than a much faster earlier trial with the same number."""
        before = self._kept_faster(count, self.attempts[-1].load)
        return before is not None and _as_few(before, _kept(self.last, count), count)

    def passes(self, count: int, rate: float) -> bool:
        """Whether all connections are established at this rate and answer; queries slow down if they fail."""
        asking = self._settings.asking_rate(rate, self._most_asked)
        outcome = self._valid(validation_plan(self._settings, count, rate, asking), rate)
        if outcome.verdict is Verdict.PASS:
            return True
        if outcome.verdict is Verdict.COLLAPSED:
            self._recover(count, outcome)
            raise CollapsedError(outcome.reason)
        slower, half = None, asking * SLOWER_SHARE
        if outcome.failed_phase == 2 and (outcome.table_count is None or outcome.table_count >= count):
            # All are there by the device's own count, or it has none: the asking may be what fails.
            slow = validation_plan(self._settings, count, rate, half)
            slower = self._valid(slow, rate)
            if _holds_all(slower, count):
                slower = self._repeated(slow, slower)
        if validation_cause(outcome, slower, count) != "r too high":
            return False
        self._most_asked = half
        text = f"asking at more than {written(half)} frames/s loses frames, so nothing is asked faster"
        self.notes.append(Note("search", text))
        return True

    def fault(self, count: int) -> tuple[LimitedBy, str]:
        """Return why the last trial did not keep all connections: the limit, as in a trial's outcome, and figures."""
        limit, figures = self._fault(count)
        if limit in FULL:
            self.full_at = _kept(self.last, count)
        return limit, figures

    def _fault(self, count: int) -> tuple[LimitedBy, str]:
        if self.last.limited_by == "log":
            # Every connection was kept, so neither the table nor a slower rate is the question.
            return "log", self.last.reason
        rate = self.attempts[-1].load
        before, kept = self._kept_faster(count, rate), _kept(self.last, count)
        for slower in range(MOST_SLOWER + 1):
            if slower:
                rate = max(rate / SLOWER, LEAST_RATE)
                if self.passes(count, rate):
                    return "device", f"kept when opened at {written(rate)}/s, but not faster"
                before, kept = kept, _kept(self.last, count)
            if (limit := self.last.limited_by) is not None and limit in FULL:
                return limit, self.last.reason
            if self._proved is not None and self._proved.keeps(kept, count):
                proved = f"as many as of {self._proved.connections}, which was no more by opening them slower"
                return "table", f"{kept} kept, {proved}"
            if before is not None and _as_few(before, kept, count):
                sentence = f"{kept} kept, no more by opening them at {written(rate)}/s"
                if _holds_all(self.last, count):
                    return "device", sentence
                self._proved = _Proved(count, kept)
                return "table", sentence
        reason = f"of {count} connections {kept} were kept when opened at {written(rate)}/s, and fewer the faster"
        raise UndecidedError(reason, "device")

    def _kept_faster(self, count: int, rate: float) -> int | None:
        """Return the number kept by an earlier trial whose rate was higher by a factor large enough to compare."""
        for attempt in reversed(self.attempts):
            outcome = attempt.outcome
            if outcome.phase1.intended_frames != count:
                return None
            if outcome.verdict is Verdict.FAIL and attempt.load >= SLOWER * rate:
                return _kept(outcome, count)
        return None

    def _repeated(self, plan: TrialPlan, failed: Trial) -> Trial:
        """The last of further trials; a frame that the device spoils now and then must not pass for a full table."""
        for _ in range(MORE_ASKINGS):
            failed = self._valid(plan, plan.phase1_rate)
            if not _holds_all(failed, plan.connections):
                return failed
        text = (
            f"{plan.connections} connections count as too many although the device's own count had them all: "
            f"{failed.reason}; a loss tolerance may be what this device needs"
        )
        self.notes.append(Note("search", text))
        return failed

    def _valid(self, plan: TrialPlan, rate: float) -> Trial:
        """Try until a trial measures the device."""

        def kept() -> Trial:
            outcome = self._runner.run(plan, rate, self.bounds)
            self.attempts.append(Attempt(rate, short=False, outcome=outcome))
            return outcome

        tried = until_decided(kept, in_search(self._settings.invalid_repeats))
        if not tried.decided:
            sentence = f"with {plan.connections} connections {tried.sentence()}"
            raise UndecidedError(sentence, tried.outcome.limited_by or "host")
        return tried.outcome

    def _recover(self, count: int, outcome: Trial) -> None:
        """Restart the collapsed device (RFC 9693 section 4.9 counts a collapse as an unacceptable drop)."""
        self.notes.append(Note("device", f"the device collapsed with {count} connections: {outcome.reason}"))
        runner = self._runner
        if Ability.RESTART not in runner.measurer.abilities:
            raise BrokenError(
                f"{runner.metric}: the device collapsed with {count} connections, and it cannot be restarted here"
            )
        runner.measurer.restart()


def _holds_all(outcome: Trial, count: int) -> bool:
    """Whether a failed validation is none of the table's fault: the device's own count has every connection."""
    failed = outcome.verdict is Verdict.FAIL and outcome.failed_phase == 2
    return failed and outcome.table_count is not None and outcome.table_count >= count


def _as_few(before: int, now: int, count: int) -> bool:
    """Whether opening connections slower kept no more of them, and not just a last few that were missing."""
    return now - before <= max(1.0, SAME_SHARE * before) and count - now > (count - before) / 2


def _kept(outcome: Trial, count: int) -> int:
    """Connections there were at the end: opened, answering, and in the device's own count where it has one."""
    answered = outcome.phase2.get(Direction.RESPONDER)
    known = [
        outcome.phase1.received_frames,
        None if answered is None else answered.received_frames,
        outcome.table_count,
    ]
    return min((number for number in known if number is not None), default=count)
