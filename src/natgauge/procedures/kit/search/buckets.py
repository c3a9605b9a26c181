# SPDX-License-Identifier: Apache-2.0
"""Connections that a device accepts at once, beyond its rate: the token bucket of a policer, or a queue behind it.

The buffer in front of what writes a device's log is one, too: records that find no room there are lost.

Of N connections at a rate X, a device of the lasting rate r with a bucket of B loses N (1 - r/X) - B. So the highest
rate without loss is R = r N / (N - B), which falls with N, and a trial at X loses the share (1 - b) (1 - R/X), with
b = B/N. An overloaded device without a bucket loses 1 - R/X. A device that only hesitates now and then forwards more
under overload, too; a quarter of the connections at a rate above R shows the difference: a bucket holds them.

The search knows R within its error only. Two trials at rates X < Y that are far apart know better: r is the difference
of their losses over N (1/X - 1/Y).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from natgauge.figure_text import number as written
from natgauge.notes import Note
from natgauge.procedures.kit.result.frame_counts import deciding_counts
from natgauge.procedures.kit.result.results import Attempt
from natgauge.trials import Trial
from natgauge.words import Verdict

#: Failed trials from this multiple of the answer on are looked at: close above it next to nothing is lost anyway.
ABOVE: Final = 1.05
#: From this multiple on, they show the size of a bucket well; where there are none, a trial at the other one does.
CLEAR: Final = 1.5
FAR: Final = 2.0
#: Two trials whose rates are this multiple of each other show the lasting rate.
APART: Final = 1.25
#: Smallest and largest share of the connections that a bucket may hold; beyond it a loss is rare, not the bucket's.
LEAST_SHARE: Final = 0.1
MOST_SHARE: Final = 0.9
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

    def note(self, unit: str) -> Note:
        """Return a note of what lasts."""
        rate, connections = self.trial
        held = written(self.share * self.connections)
        who = f"the device takes about {held} connections at once, beyond its rate, as a token bucket does"
        if self.of_log:
            who = f"the buffer of the device's log holds about {held} connections that are not yet written"
        text = (
            f"{who}: {connections:,} of them passed at {written(rate)} {unit}. With {self.connections:,} "
            f"connections that raises the rate; about {written(self.lasting)} {unit} last"
        )
        return Note("bucket", text, value=self.rate / self.lasting - 1)


def clearer(attempts: Iterable[Attempt], rate: float) -> float | None:
    """Return the rate of a trial of all connections whose losses show the size of a bucket; None where none is needed.

    Close above the answer the losses are few, and the error of the search is part of them. The trials are of a search
    for a rate of phase 1; `rate` is the highest that passed, > 0.
    """
    fastest = max(_failed(attempts, rate), key=lambda attempt: attempt.load, default=None)
    if fastest is None or fastest.load >= CLEAR * rate or _share(fastest, rate) < LEAST_SHARE:
        return None
    return FAR * rate


def _share(failed: Attempt, rate: float) -> float:
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


def suspected(attempts: Iterable[Attempt], rate: float) -> Bucket | None:
    """Return the bucket that the losses of the fastest failed trial suggest; None where they suggest none."""
    failed = [attempt for attempt in _failed(attempts, rate) if attempt.load >= ABOVE * rate]
    if not failed:
        return None
    fastest = max(failed, key=lambda attempt: attempt.load)
    share, of_log = _share(fastest, rate), fastest.outcome.limited_by == "log"
    if not LEAST_SHARE <= share <= MOST_SHARE:
        return None
    number, lasting = fastest.outcome.phase1.offered_frames, (1 - share) * rate
    slowest = min(failed, key=lambda attempt: attempt.load)
    if fastest.load >= APART * slowest.load:
        more = _lost(fastest.outcome) - _lost(slowest.outcome)
        found = more / (number * (1 / slowest.load - 1 / fastest.load))
        holds = 1 - found / fastest.load - _lost(fastest.outcome) / number
        # A device that is no plain bucket has other losses.
        if 0 < found < rate and LEAST_SHARE <= holds <= MOST_SHARE:
            share, lasting = holds, found
    return Bucket(rate, number, share, lasting, of_log=of_log)
