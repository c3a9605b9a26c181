# SPDX-License-Identifier: Apache-2.0
"""Mixed load: the highest frame rate over open connections while new ones are opened and the oldest leave.

docs/method/mixed-load.md has the method. A series over `new_rate` is the throughput at several rates of new
connections: what one costs the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from natgauge.errors import UsageError
from natgauge.figure_text import in_full, number
from natgauge.inputs.input import MOST_RATE, chosen, in_range, wrong
from natgauge.measurer import Ability
from natgauge.metrics.catalogue import MIXED_LOAD, NEW_SHARE
from natgauge.notes import Note
from natgauge.procedures.kit.binary_search import SearchSpan
from natgauge.procedures.kit.held_connections import FIRST_RATE, LEAST_FRAMES, unprepared
from natgauge.procedures.kit.mixed_loads import LEAST_OPEN, CombinedLoad, MixedLoad, MixedSettings, prepared
from natgauge.procedures.kit.procedure import Answered, Procedure
from natgauge.procedures.kit.results import Measurement
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.readings import leaving, most_new
from natgauge.subscriber_profiles import ROUND_TRIP_SECONDS
from natgauge.words import Transport, sending

#: Largest share of a limit that is surely no more than it.
_JUST_BELOW: Final = 1 - 1e-9
_LEAST_NEW: Final = 0.0001


@dataclass(frozen=True, kw_only=True)
class MixedLoadSettings(MixedSettings):
    """Settings of the mixed load; `new_share` None = 1 %, or what `new_rate` says."""

    new_rate: float | None = chosen(
        None,
        "new connections at every frame rate",
        "connections/s",
        partial(in_range, lowest=0, highest=MOST_RATE, unit="connections/s"),
        default="a share of the frames",
        group="traffic",
    )
    new_share: float | None = chosen(
        None,
        "new connections for each frame",
        "share",
        (_LEAST_NEW, 0.5),
        default="1%, without a new rate",
        group="traffic",
    )
    life_seconds: float | None = chosen(
        None,
        "time for which each connection is open",
        "s",
        (ROUND_TRIP_SECONDS, 86_400.0),  # a day
        default="all connections are open at every rate",
        group="traffic",
    )
    transport: Transport = "udp"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.new_rate is None:
            return
        if self.new_share is not None:
            raise wrong(
                "new_share",
                f"{self.new_share:g}, but new rate is {self.new_rate:g} connections/s at every frame rate; leave one "
                "of both out",
            )
        if not self.new_rate and self.floods:
            raise wrong(
                "flood_share", f"{self.flood_share:g} of all new connections, but none is new; leave one of both out"
            )
        if not self.new_rate and self.life_seconds is not None:
            raise wrong("life_seconds", "no connection is new, so none leaves; leave it out")
        self._refuse_few_four_tuples(0.0, "new_rate")

    def refuse_unlike(self, sources: int, timeout: int | None) -> None:
        """Refuse ranges without a four tuple for a new connection, and too few open ones to be replaced."""
        super().refuse_unlike(sources, timeout)
        self._refuse_few_open()
        if self.new_rate is None:
            self._refuse_few_four_tuples(1 / ((self.new_share or NEW_SHARE) * self.trial_seconds), "connections")

    def _refuse_few_four_tuples(self, rate: float, at: str) -> None:
        """Refuse ranges that are too narrow for the least load, at a frame rate that opens connections."""
        load = self.load(rate)
        needed = math.ceil(load.four_tuples(self.trial_seconds))
        if needed > self.space:
            raise UsageError(
                f"{at.replace('_', ' ')}: {load.new:g} new connections/s for {self.trial_seconds:g} s take {needed} "
                f"four tuples with those that are open at first, the ranges hold {self.space}; name more "
                "--destination-ports, or give fewer connections",
                at=at,
            )

    @property
    def most_new(self) -> float:
        """The most connections/s that the open ones can be replaced by; infinite where these grow in number as well."""
        return math.inf if self.life_seconds is not None else most_new(self.connections)

    def _refuse_few_open(self) -> None:
        """Refuse fewer connections than can be replaced, or more new ones/s than they can be replaced by."""
        if self.new_rate == 0 or self.life_seconds is not None:
            return
        if self.connections < LEAST_OPEN:
            raise wrong(
                "connections",
                f"{self.connections}, but fewer than {LEAST_OPEN} open ones cannot be replaced while some get frames; "
                "give more",
            )
        if self.new_rate is not None and self.new_rate > self.most_new:
            raise wrong(
                "new_rate",
                f"{self.new_rate:g} connections/s, but {self.connections} open ones can be replaced by no more than "
                f"{self.most_new:,.0f}/s while some get frames; give a lower one, or more connections",
            )

    def needs(self) -> frozenset[Ability]:
        """Connections that come and go, unless none is new."""
        return super().needs() | (set() if self.new_rate == 0 else {Ability.CHURN})

    @property
    def held_at_least(self) -> int:
        """N, or all that are opened at every frame rate: those that left are in the table until their time-out."""
        return max(self.connections, math.ceil(self.load(0.0).four_tuples(self.trial_seconds)))

    def held_at_most(self, top: float) -> int:
        """The same at the highest frame rate that the tester sends, and that there are four tuples for."""
        highest = math.ceil(self.load(top / 2).four_tuples(self.trial_seconds))
        return max(self.held_at_least, min(self.space, highest))

    def most_opened(self, top: float, sources: int, timeout: int | None) -> int:  # noqa: ARG002 - of other loads
        """All that are open at first or later, at the highest frame rate."""
        return self.held_at_most(top)

    def fewer_by(self, most: int) -> Mapping[str, Mapping[str, Any]]:
        """What decides how many are open, and how many are new, too."""
        by: dict[str, Mapping[str, Any]] = {"fewer connections": {"connections": LEAST_OPEN}}
        if self.life_seconds is not None:
            by["a shorter --life-seconds"] = {"life_seconds": ROUND_TRIP_SECONDS}
        if self.new_rate is None:
            by["a lower --new-share"] = {"new_share": _LEAST_NEW}
        else:
            by["a lower --new-rate"] = {"new_rate": 1.0}
        return {**super().fewer_by(most), **by}

    def load(self, rate: float) -> CombinedLoad:
        """The load at a frame rate of each direction."""
        new = self.new_rate if self.new_rate is not None else (self.new_share or NEW_SHARE) * 2 * rate
        held = self.connections if self.life_seconds is None else new * self.life_seconds
        return CombinedLoad(new=new, open=held, up=rate, down=rate, leave=leaving(self.transport))

    def notes(self) -> list[Note]:
        """Return what was opened beside the frames."""
        share = f"{number(self.new_share or NEW_SHARE)} new connections for each frame"
        new = share if self.new_rate is None else f"{in_full(self.new_rate)} new connections/s at every frame rate"
        life = (
            "all open connections stay that many"
            if self.life_seconds is None
            else f"each open for {self.life_seconds:g} s"
        )
        return [*super().notes(), Note("method", f"{new}, {life}; no RFC defines this load")]


def _start(runner: TrialRunner, settings: MixedLoadSettings) -> _MixedLoad | Answered:
    preparation = prepared(runner, settings, grows=settings.life_seconds is not None)
    return unprepared(preparation, {}) or _MixedLoad(runner, settings, preparation)


class _MixedLoad(MixedLoad[MixedLoadSettings]):
    """The highest rate in frames/s of each direction."""

    def load_of(self, rate: float) -> CombinedLoad:
        return self.settings.load(rate)

    @property
    def top(self) -> float:
        """The same, where the open connections can be replaced by as many new ones."""
        settings = self.settings
        if settings.new_rate is not None:
            return super().top
        # The last bits must not make it one more.
        most = _JUST_BELOW * settings.most_new / settings.load(1.0).new
        return min(super().top, most)

    @property
    def ended_by_ranges(self) -> str:
        if self.top == super().top:
            return super().ended_by_ranges
        return (
            f"the {self.settings.connections} open connections ended the search, not the device: no more than "
            f"{self.settings.most_new:,.0f}/s can replace them while some get frames; give more --connections"
        )

    def search_once(self, known: float | None) -> Measurement:
        """Search once, with a note where so few connections live at once that more were open."""
        repetition, seconds = super().search_once(known), self.settings.trial_seconds
        load = self.load_of(repetition.value)
        first = load.at_first(seconds)
        if not load.opens(seconds) or first <= math.ceil(load.open):
            return repetition
        text = (
            f"{first} connections were open instead of {number(load.open)}, each for {number(first / load.new)} s: "
            "with fewer, none would get frames while they are replaced"
        )
        return repetition.adding(Note("method", text))

    def span(self) -> SearchSpan:
        top = self.top
        return SearchSpan(
            top=top,
            floor=min(top, LEAST_FRAMES / self.settings.trial_seconds),
            start=min(top, FIRST_RATE),
            unit=f"{MIXED_LOAD.unit} {sending('both')}",
            tester_top=self.top_of_tester,
        )


PROCEDURE = Procedure(MIXED_LOAD, settings=MixedLoadSettings, start=_start, profiles={"rfc": {"repeat": 10}})
