# SPDX-License-Identifier: Apache-2.0
"""Simulated gateways of known truth for subscribers: new connections in phase 2, and a host that floods them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.plans import OneTrial, PlanOfTrial
from tests.unit.counted import change_counts, make_counts
from tests.unit.made_settings import alone
from tests.unit.simulated import Gateway, reading

from natgauge.doubts import find
from natgauge.measurer import Ability, OutlastingError
from natgauge.notes import Note
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.readings import Churn, CountInChurn, Energy
from natgauge.records.parameters import Parameters
from natgauge.verdicts import Limits

#: Of a subscriber: new connections a second and frames a second up and down, of which the first or the others end it.
NEW_BOUND, FRAME_BOUND = (1.0, 1.0, 1.0), (0.1, 1.0, 1.0)


@dataclass(slots=True)
class Mixed(Gateway):
    """A gateway that opens no more than `opens` connections/s, and forwards `carries` frames/s of open ones in all.

    Attributes:
        opens: connections/s, exactly.
        carries: frames/s of both directions together.
        counts_openings: whether the frames that open connections are among those.
        forgets: its time-out in s; None = not known.
        replied: the same of a connection that had frames both ways; None = the same number.
    """

    opens: float = 1e9
    carries: float = 1e9
    counts_openings: bool = False
    forgets: int | None = None
    replied: int | None = None
    addresses: int = 1
    abilities: frozenset[Ability] = frozenset({Ability.CHURN})

    @property
    def timeout_seconds(self) -> int | None:
        return self.forgets

    @property
    def replied_timeout_seconds(self) -> int | None:
        return self.replied or self.forgets

    @property
    def table_limit(self) -> int:
        return self.table_size

    @property
    def hosts(self) -> int:
        return self.addresses

    def trial(self, plan: PlanOfTrial) -> OneTrial:
        """A trial whose openings are those of phase 2."""
        trial = super(Mixed, self).trial(plan)
        phase2 = plan.phase2
        if phase2 is None or phase2.churn is None or trial.result is None or trial.result.phase2 is None:
            return trial
        new, frames = phase2.churn.new_per_second, phase2.initiator_rate + phase2.responder_rate
        kept = min(1.0, self.carries / (frames + (new if self.counts_openings else 0.0)))
        number = int(new * phase2.seconds)
        room = max(0, self.table_size - plan.connections)
        opened = min(int(number * min(1.0, self.opens / new) * (kept if self.counts_openings else 1.0)), room)
        # Each of those that are open is replaced in time, so more and more of them were not opened.
        turns = number / plan.connections
        unopened = (1 - opened / max(1, number)) * (turns / 2 if turns <= 1 else 1 - 1 / (2 * turns))
        openings = make_counts(number, number, opened, nominal_seconds=phase2.seconds, sending_seconds=phase2.seconds)
        streams: dict[str, Any] = {"openings": openings}
        for way in ("initiator", "responder"):
            counts = getattr(trial.result.phase2, way)
            if counts is not None:
                missing = int(counts.offered_frames * unopened) if way == "responder" else 0
                back = min(int(counts.received_frames * kept), counts.offered_frames - missing)
                sent = counts.offered_frames - missing
                streams[way] = change_counts(counts, offered=sent, received=back, unopened=missing)
        counted = trial.result.phase2.model_copy(update=streams)
        result = trial.result.model_copy(update={"phase2": counted})
        held = CountInChurn(phase2.seconds, min(plan.connections + number, self.table_size))
        return reading(replace(trial, result=result), count_in_churn=held)


class Untold(Mixed):
    """A gateway of whose table nobody knows how many connections it holds."""

    @property
    def table_limit(self) -> None:  # type: ignore[override]
        return None


class Capped(Untold):
    """A gateway that holds fewer connections than its table has room for, as a rule for each host makes it."""

    def limits(self) -> Limits:
        return Limits(262_144)


class Forgetful(Mixed):
    """A gateway whose time-out nobody can raise, so that trials with a longer phase 1 are not run."""

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        if plan.connections / plan.phase1_rate >= (self.forgets or math.inf):
            raise OutlastingError("UDP timeout: a trial takes too long; give it a longer time-out")
        return Mixed.measure(self, plan)


@dataclass(slots=True)
class Blocks(Mixed):
    """A gateway that gives `ports` to each of the hosts that a trial has."""

    ports: int = 256

    def trial(self, plan: PlanOfTrial) -> OneTrial:
        self.table_size = self.ports * (plan.sources or self.addresses)
        return Mixed.trial(self, plan)


class Wide(Mixed):
    """Each of its addresses has a four tuple more than it needs."""

    def four_tuples_of_each(self, plan: PlanOfTrial) -> int:
        return plan.of_each_source + 1


@dataclass(slots=True)
class Flooded(Mixed):
    """A gateway whose limits are of all hosts together, or of each host.

    Attributes:
        per_host: whether `opens` and `table_size` are of each host.
        busy: whether each opening, those of the flood included, takes the time of a frame.
    """

    per_host: bool = False
    busy: bool = False

    def trial(self, plan: PlanOfTrial) -> OneTrial:
        """A trial in which the flood takes from the others what it shares with them."""
        trial = Mixed.trial(self, plan)
        churn = None if plan.phase2 is None else plan.phase2.churn
        if plan.phase2 is None or churn is None or not churn.flood_per_second or trial.openings is None:
            return trial
        assert trial.result is not None
        assert trial.result.phase2 is not None
        seconds, fresh, flood = plan.phase2.seconds, churn.new_per_second, churn.flood_per_second
        sent, number = int(flood * seconds), trial.openings.intended_frames
        of_all = fresh if self.per_host else fresh + flood
        room = self.table_size - plan.connections
        own = flood if self.per_host else of_all
        table = self.table_size if self.per_host else room
        came = int(sent * min(1.0, self.opens / own, table / (own * seconds)))
        opened = int(number * min(1.0, self.opens / of_all, max(0, room) / (of_all * seconds)))
        work = plan.phase2.initiator_rate + plan.phase2.responder_rate + fresh + flood
        busy = min(1.0, self.carries / work) if self.busy else 1.0

        def counts(intended: int, received: float) -> Any:
            return make_counts(intended, intended, int(received), nominal_seconds=seconds, sending_seconds=seconds)

        streams: dict[str, Any] = {
            "openings": counts(number, opened * busy),
            "flood": counts(sent, came * busy),
        }
        for way in ("initiator", "responder"):
            stream = getattr(trial.result.phase2, way)
            kept = stream.intended_frames * busy if self.busy else stream.received_frames
            streams[way] = change_counts(stream, received=int(kept))
        result = trial.result.model_copy(update={"phase2": trial.result.phase2.model_copy(update=streams)})
        held = min(self.table_size, plan.connections + opened + (0 if self.per_host else came))
        return reading(replace(trial, result=result), count_in_churn=CountInChurn(seconds, held))


class Counting(Flooded):
    """Its kernel counts the entries that could not be made for the flood."""

    __slots__ = ()

    def trial(self, plan: PlanOfTrial) -> OneTrial:
        """The same trial, with the counter."""
        trial = Flooded.trial(self, plan)
        lost = 0 if trial.flood is None else trial.flood.lost
        return reading(trial, network_counters={"gateway": {"conntrack insert_failed": lost}})


class Metered(Flooded):
    """Its meter shows as many watts as the Initiator sends frames/s, and 1 kW more where there is no flood."""

    __slots__ = ()

    def trial(self, plan: PlanOfTrial) -> OneTrial:
        trial, phase2 = Flooded.trial(self, plan), plan.phase2
        if phase2 is None:
            return trial
        flooded = phase2.churn is not None and phase2.churn.flood_per_second
        watts = phase2.initiator_rate + (0 if flooded else 1000)
        return reading(trial, energy=Energy(watts * phase2.seconds, phase2.seconds))


def profile(folder: Path, new: float, up: float, down: float, *, connections: float = 1.0, more: str = "") -> str:
    """The path of a profile's file."""
    path = folder / "profile.toml"
    path.write_text(
        f"[subscriber]\nconnections = {connections}\nnew_per_second = {new}\nup_frames_per_second = {up}\n"
        f"down_frames_per_second = {down}\n{more}"
    )
    return str(path)


def measure(metric: str, truth: Mixed, **chosen: Any) -> MeasurementResult:
    """Measure once."""
    truth.abilities |= {Ability.CHURN}
    truth.placement = chosen.pop("placement", "isolated")
    given = {"connections": 100_000, "connection_rate": 1e5, "error": "0.5%", **chosen}
    return alone(metric, truth, **given)


def doubts_of(found: MeasurementResult) -> Sequence[Note]:
    """Doubts of what was measured, of a lab of which nothing is known."""
    return find(found, Parameters())


def engine_needs(churn: Churn) -> int:
    """The fewest open connections that the engine takes: of those that are guarded at both ends, and one."""
    guarded = math.ceil(churn.new_per_second * round(1000 * churn.guard_seconds) / 1000) + 1
    return 2 * guarded + 1
