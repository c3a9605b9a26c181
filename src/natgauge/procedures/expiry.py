# SPDX-License-Identifier: Apache-2.0
"""Expiry rate: how fast a device rids itself of connections that time out; docs/method/tear-down.md has the method.

The rate is taken between 90 % and 10 % of N, so that neither the spread of the time-outs' starts nor the last
stragglers count.

A device may count a connection that has timed out until it inspects its table. Linux does so about once a minute, so
the count must be read for that much longer than the time-outs, and the rate is that of the inspection. It depends on
when the inspection falls, so one repetition says nothing of another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from natgauge.errors import BrokenError
from natgauge.figure_text import in_percent, number
from natgauge.inputs.input import chosen, wrong
from natgauge.measurer import Ability, CountAt
from natgauge.metrics.catalogue import EXPIRY
from natgauge.notes import Note
from natgauge.procedures.kit.held_connections import HeldConnections
from natgauge.procedures.kit.phases import Phase1Settings, left_in
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.results import Measurement
from natgauge.procedures.kit.runner import TimeUpError
from natgauge.procedures.kit.settings import ABOUT_REPEAT, Repeat
from natgauge.trials import Trial
from natgauge.words import Close, TcpState, Verdict

#: The rate is taken between these shares of N.
FROM_SHARE, TO_SHARE = 0.9, 0.1
#: A fall that lasts as long as the opening of its connections, but for this share, may be that of exact timers.
AS_OPENED = 0.1
#: Of fewer connections the rate is that of the moments at which they were opened.
LEAST_CONNECTIONS = 100


@dataclass(frozen=True, kw_only=True)
class ExpirySettings(Phase1Settings):
    """Settings of the expiry rate. Other transports than TCP are always "established"."""

    repeat: Repeat = field(default=1, metadata=ABOUT_REPEAT)
    state: TcpState = chosen(
        "established",
        "state in which TCP connections time out: established, half-open, closed by FINs (fin) or reset (rst)",
        group="traffic",
    )
    watch_seconds: float = chosen(120.0, "longest time of observing the connection count", "s", (1, 86_400))
    interval_seconds: float = chosen(0.1, "time between two readings of the connection count", "s", (0.01, 60))
    waits_for_expiry = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.connections < LEAST_CONNECTIONS:
            raise wrong(
                "connections",
                f"{self.connections}: the expiry of so few says when each was opened, not how fast the device forgets; "
                f"give {LEAST_CONNECTIONS} or more",
            )

    @property
    def half_open(self) -> bool:
        """Whether connections stay half-open."""
        return self.state == "half-open"

    @property
    def close(self) -> Close | None:
        """The segment with which the Initiator closes connections; None = they are not closed."""
        return self.state if self.state in {"fin", "rst"} else None

    @property
    def lasting_state(self) -> TcpState:
        """The state that times out."""
        return self.state

    def needs(self) -> frozenset[Ability]:
        """The device's own count, again and again."""
        return super().needs() | {Ability.WATCH_COUNT}


class _Expiry(HeldConnections[ExpirySettings]):
    """Runs a repetition; the value is the rate of expiry in connections/s."""

    def once(self, _known: float | None) -> Measurement:
        settings, rate = self.settings, self.preparation.rate
        outcome = self.must(rate, left_in(settings.state, settings.phase1_plan(rate), rate), 1)
        if outcome.verdict is not Verdict.PASS:
            raise BrokenError(f"{EXPIRY}: not all connections are {settings.state}: {outcome.reason}")
        left = self.runner.budget.left
        watched = settings.watch_seconds if left is None else min(settings.watch_seconds, left)
        readings = self.runner.measurer.watch_count(settings.interval_seconds, watched)
        if readings[0].count <= FROM_SHARE * settings.connections:
            raise BrokenError(
                f"{EXPIRY}: {readings[0].count} of {settings.connections} connections were left when the watch began, "
                "so their expiry was not seen; give a longer time-out, or fewer connections"
            )
        rows = [{"seconds": reading.seconds, "count": float(reading.count)} for reading in readings]
        high, low = (share * settings.connections for share in (FROM_SHARE, TO_SHARE))
        begun, ended = (
            next((at for at, reading in enumerate(readings) if reading.count <= level), None) for level in (high, low)
        )
        if begun is None or ended is None:
            remaining = f"{readings[-1].count} of {settings.connections} connections were left"
            if watched < settings.watch_seconds:
                raise TimeUpError(f"{remaining} when the time was over")
            raise BrokenError(
                f"{EXPIRY}: {remaining} after {readings[-1].seconds:.1f} s; give shorter time-outs or watch longer"
            )
        begin, end = _crossing(readings, begun, high), _crossing(readings, ended, low)
        figures = {"first_tenth_seconds": begin, "last_tenth_seconds": end, "watched_seconds": readings[-1].seconds}
        fallen = high - low
        # Between two readings the count may have fallen at any moment.
        longest = readings[ended].seconds - readings[begun - 1].seconds
        shortest = readings[ended - 1].seconds - readings[begun].seconds
        figures["rate_lowest"] = fallen / longest
        begun_in, taken, notes = fallen * _interval(outcome), end - begin, list[Note]()
        if shortest <= 0:
            taken = longest
            text = (
                f"the count fell from {in_percent(FROM_SHARE)} to {in_percent(TO_SHARE)} within {longest:.2g} s, in "
                "which it was read too seldom to see how fast; the rate is at least this"
            )
            notes.append(Note("between readings", text))
        elif abs(taken - begun_in) <= AS_OPENED * begun_in:
            text = (
                f"the connections expired as fast as the tester began their time-outs, {number(fallen / begun_in)} "
                "connections/s: exact timers do that, and the device may be faster"
            )
            notes.append(Note("as fast as opened", text))
        else:
            figures["rate_highest"] = fallen / shortest
        return self.measurement(fallen / taken, figures=figures, notes=notes, series=rows)


def _interval(outcome: Trial) -> float:
    """Return the time in s between two connections' frames of the phase in which their time-outs began."""
    counts = next(iter(outcome.phase2.values()), outcome.phase1)
    return counts.sending_seconds / max(1, counts.offered_frames)


def _crossing(readings: Sequence[CountAt], at: int, level: float) -> float:
    """Return the time in s at which the count fell to `level`: on the line from the reading before `at` to that one."""
    before, after = readings[at - 1], readings[at]
    share = (before.count - level) / (before.count - after.count)
    return before.seconds + share * (after.seconds - before.seconds)


PROCEDURE = Procedure(
    EXPIRY,
    settings=ExpirySettings,
    start=_Expiry,
    profiles={"quick": {"most_seconds": 240.0}, "standard": {"repeat": 3}, "rfc": {"repeat": 10}},
)
