# SPDX-License-Identifier: Apache-2.0
"""Resolution rate: the highest rate of DNS queries through the device that are answered, right and in time.

docs/method/resolution-rate.md has the method (draft-lencse-v6ops-transition-scalability-05 section 5). A DNS64 server
has no connections, so there is no phase 1, unless names are to be in its cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from natgauge.figure_text import number
from natgauge.inputs.input import FileText, chosen
from natgauge.measurer import Ability
from natgauge.metrics.catalogue import RESOLUTION_RATE
from natgauge.metrics.metric import TRIAL_SECONDS
from natgauge.notes import Note
from natgauge.procedures.kit.binary_search import SearchSpan
from natgauge.procedures.kit.held_connections import FIRST_RATE, LEAST_FRAMES, HeldRate, unprepared
from natgauge.procedures.kit.phases import ABOUT_TRIAL_SECONDS, RFC_TRIAL_SECONDS, Phase1Settings, Preparation, prepare
from natgauge.procedures.kit.procedure import Answered, Procedure
from natgauge.procedures.kit.rate_search import SearchSettings, top_rate
from natgauge.procedures.kit.results import repetitions_note
from natgauge.procedures.kit.runner import TrialRunner
from natgauge.procedures.kit.settings import ABOUT_FRAME_TIMEOUT, ABOUT_LOSS_TOLERANCE
from natgauge.trials import Phase2Plan, TrialPlan
from natgauge.words import TESTER, Query

#: The draft's: 99.99 % of the queries.
LOSS_TOLERANCE = 0.0001
ANSWER_SECONDS = 0.25
#: RFC 8219 section 9.2: at most so long.
RFC_ANSWER_SECONDS = 1.0
RFC_REPETITIONS = 20
#: Queries/s that fill the cache of a device: any server answers as many, whose names it does not know.
FILLING_RATE = 1000.0
#: A real server answers the queries of phase 1, too: no faster than this, so that it is phase 2 that is found too fast.
SERVER_PHASE1_RATE = 10_000.0


@dataclass(frozen=True, kw_only=True)
class ResolutionRateSettings(Phase1Settings, SearchSettings):
    """Settings of the resolution rate. RFC 8219 section 9.2 requires trials of 60 s of a DNS64 server."""

    loss_tolerance: float = field(default=LOSS_TOLERANCE, metadata=ABOUT_LOSS_TOLERANCE)
    frame_timeout_seconds: float | None = field(default=ANSWER_SECONDS, metadata=ABOUT_FRAME_TIMEOUT)
    trial_seconds: float = field(default=2.0, metadata=ABOUT_TRIAL_SECONDS)
    query: Query = chosen("aaaa", "record type of the DNS queries", label="DNS queries of type", group="traffic")
    far_side: str = chosen(
        TESTER,
        "DNS server: tester, or a real server behind the device (knot, nsd)",
        type=FileText("NAME|FILE", or_name=True),
    )
    stateless: bool = chosen(False, "skip phase 1, for devices without connection tracking", group="traffic")
    aaaa_share: float = chosen(
        0.0, "DNS64: share of names that have an AAAA record of their own", "share", (0.0, 1.0), group="traffic"
    )
    cached_share: float = chosen(
        0.0, "DNS64: share of queries for one of N names that phase 1 asked for", "share", (0.0, 1.0), group="traffic"
    )

    def needs(self) -> frozenset[Ability]:
        """Queries, a server where one is to answer, and no state table where there is no phase 1."""
        needed = {Ability.QUERIES} | ({Ability.STATELESS} if self.stateless else set())
        return super().needs() | needed | ({Ability.REAL_SERVER} if self.handed_on else set())

    @property
    def handed_on(self) -> bool:
        """Whether a real server answers the queries, in place of the tester's own far side."""
        return self.far_side != TESTER

    @property
    def has_phase1(self) -> bool:
        """Whether connections are established at all."""
        return not self.stateless

    @property
    def unused(self) -> dict[str, str]:
        """Names for a cache are asked for at the connection rate, although no phase 1 opens connections."""
        filling = {"connection_rate"} if self.cached_share else set()
        return {name: why for name, why in super().unused.items() if name not in filling}

    @property
    def phase2_seconds(self) -> float:
        """Seconds of queries, as the user chose."""
        return self.trial_seconds

    def queries_notes(self, *, answers_itself: bool) -> list[Note]:
        """Return notes on the criterion of a passing trial, and on trials of a DNS64 server shorter than the RFC's.

        A device that answers itself has a far side only where it is a DNS64 server, which asks a real one.
        """
        limit = "" if self.frame_timeout_seconds is None else f" within {self.frame_timeout_seconds:g} s"
        far_side = self.far_side if self.handed_on else "" if answers_itself else "the tester itself"
        text = f"queries of type {self.query.upper()}, answered right{limit}"
        notes = [Note("method", f"{text}; far side: {far_side}" if far_side else text)]
        if not (answers_itself and self.handed_on):
            return notes
        if self.trial_seconds < RFC_TRIAL_SECONDS:
            text = f"trials of {self.trial_seconds:g} s; RFC 8219 section 9.2 requires {RFC_TRIAL_SECONDS:g} s"
            notes.append(Note("settings", text))
        if self.frame_timeout_seconds is None or self.frame_timeout_seconds > RFC_ANSWER_SECONDS:
            text = f"time for an answer:{limit or ' not limited'}; RFC 8219 section 9.2 allows {RFC_ANSWER_SECONDS:g} s"
            notes.append(Note("settings", text))
        return [*notes, *repetitions_note(self, RFC_REPETITIONS, "RFC 8219 section 9.2")]

    def plan(self, phase1_rate: float, rate: float, seconds: float) -> TrialPlan:
        """Return the trial with `rate` queries/s in phase 2, for `seconds`."""
        return replace(
            self.phase1_plan(phase1_rate),
            phase2=Phase2Plan(initiator_rate=rate, responder_rate=0.0, seconds=seconds),
            stateless=self.stateless,
            query=self.query,
            handed_on=self.handed_on,
            aaaa_share=self.aaaa_share,
            cached_share=self.cached_share,
        )


class _Filling(Preparation):
    """A phase 1 that asks for the names which are to be in the device's cache."""

    does: ClassVar[str] = "fill the device's cache"
    unit: ClassVar[str] = "queries/s"

    def notes(self) -> list[Note]:
        return [Note("phase 1", f"asked for the cached names once, {number(self.rate)} a second")]


def _start(runner: TrialRunner, settings: ResolutionRateSettings) -> _ResolutionRate | Answered:
    if settings.cached_share:
        rate = FILLING_RATE if settings.connection_rate is None else settings.connection_rate
        return _ResolutionRate(runner, settings, _Filling(rate, rate))
    preparation = prepare(runner, settings)
    if answered := unprepared(preparation, _figures(settings)):
        return answered
    if settings.handed_on and settings.has_phase1:
        preparation.rate = min(preparation.rate, SERVER_PHASE1_RATE)
    return _ResolutionRate(runner, settings, preparation)


class _ResolutionRate(HeldRate[ResolutionRateSettings]):
    """The highest rate in queries/s."""

    def load(self, rate: float, seconds: float) -> TrialPlan:
        return self.settings.plan(self.preparation.rate, rate, seconds)

    def phase1_notes(self) -> Sequence[Note]:
        asked = self.settings.queries_notes(answers_itself=self.runner.measurer.answers_itself)
        return [*super().phase1_notes(), *asked]

    def figures(self, _value: float) -> dict[str, float]:
        return _figures(self.settings)

    def span(self) -> SearchSpan:
        settings = self.settings
        return SearchSpan(
            top=top_rate(self.runner.measurer),
            floor=LEAST_FRAMES / settings.trial_seconds,
            start=FIRST_RATE if settings.stateless else self.preparation.rate,
            unit=RESOLUTION_RATE.unit,
        )


def _figures(settings: ResolutionRateSettings) -> dict[str, float]:
    return {TRIAL_SECONDS: settings.trial_seconds}


PROCEDURE = Procedure(RESOLUTION_RATE, settings=ResolutionRateSettings, start=_start)
