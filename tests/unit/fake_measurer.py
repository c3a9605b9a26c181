# SPDX-License-Identifier: Apache-2.0
"""The real measurer between a stand-in for the engine, a lab whose counters a test moves, and a device of few words."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pytest
from tests.plans import PlanOfTrial
from tests.unit.fake_engine import FakeEngine

from natgauge.agreement.generated import TrialRequest, TrialResult
from natgauge.device_work import CoreWork, ObjectCache, ObjectCaches
from natgauge.errors import BrokenError
from natgauge.inputs.question import TrafficOptions
from natgauge.labs.contract import Addresses, Device, LabCounters, Link, Port
from natgauge.records.store import plain
from natgauge.setup.traffic import AddressPlan, TrafficPlan, make_plan
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.requests import TrialConstants
from natgauge.trials import Direction, Phase2Plan, RateStep
from natgauge.words import Placement


class FakeLab:
    """Two ports and drop counters that the test moves."""

    placement: Placement = "shared"
    initiator = Port("ng0i", "ng-x-tester", "02:00:00:00:00:01", "10.0.0.1")
    responder = Port("ng0r", "ng-x-tester", "02:00:00:00:00:02", "198.19.0.1")
    devices: Sequence[Device] = ()

    def __init__(self) -> None:
        self.drops = {"initiator port received": 5, "gateway inside received": 3}
        #: Frames and busy seconds of each device core.
        self.work: dict[int, tuple[int, float]] = {}

    def counters(self) -> LabCounters:
        return LabCounters(self.drops, {core: CoreWork(*each) for core, each in self.work.items()})


class Isolated(FakeLab):
    """The same with queues before the device."""

    placement: Placement = "isolated"


class Guest(FakeLab):
    """A guest plugged into taps."""

    placement: Placement = "external"
    initiator = replace(FakeLab.initiator, tap=True)
    responder = replace(FakeLab.responder, tap=True)


class FakeTable:
    """A device whose table holds what the last request opened; it can be told to do nothing more."""

    empties = False
    counts = False

    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine
        self.emptied = 0
        self.held = 7
        self.dead = False
        #: What its time-out can be raised to; None = it cannot be.
        self.timeout: int | None = None

    def outlive(self, seconds: float) -> int | None:
        """Raise the time-out as far as it goes."""
        return self.timeout if self.timeout and self.timeout > seconds else None

    def empty(self) -> None:
        self.emptied += 1
        self.held = 0

    def empty_timed(self) -> float:
        raise NotImplementedError

    def strays(self) -> Mapping[str, int]:
        return {}

    def found_changed(self) -> str:
        return ""

    def object_caches(self) -> ObjectCaches:
        """A table of 320 octets a connection, and what the rest of the machine holds."""
        return {"conntrack": ObjectCache(self.count(), 256), "extension": ObjectCache(500 + self.count(), 64)}

    def confirm_ready(self) -> None:
        if self.dead:
            raise BrokenError("device: gone")

    def restart(self) -> None:
        raise NotImplementedError

    def restart_under_load(self) -> None:
        raise NotImplementedError

    def count(self) -> int:
        if self.dead:
            raise BrokenError("device: gone")
        if self.engine.requests and self.held == 0 and len(self.engine.requests) == self.emptied:
            return self.engine.requests[-1].connections
        return self.held

    def free_octets(self) -> int:
        return 1 << 30

    def faults(self) -> Mapping[str, int]:
        """Grows by two with every trial."""
        return {"insert_failed": 2 * len(self.engine.requests), "drop": 0}


class Recorder:
    """Keeps trials in memory."""

    def __init__(self) -> None:
        self.trials: list[Mapping[str, Any]] = []
        self.rounds: list[Mapping[str, Any]] = []

    def add_trial(self, trial: Mapping[str, object]) -> None:
        self.trials.append(plain(trial))

    def add_round(self, comparison_round: Mapping[str, object]) -> None:
        self.rounds.append(plain(comparison_round))


def link(network: str, device: str, tester: str) -> Link:
    return Link(ipaddress.ip_network(network), ipaddress.ip_address(device), ipaddress.ip_address(tester))


AROUND = AddressPlan(
    link("10.0.0.0/16", "10.0.0.1", "10.0.0.2"), link("198.19.0.0/16", "198.19.0.1", "198.19.0.2"), mtu=3498
)

SETTINGS = TrialConstants(
    initiator_family="ipv4",
    responder_family="ipv4",
    translated=True,
    pool=None,
    sender_cpus=(0,),
    watch_cpus=(1,),
    seed=42,
    first_mark=0xFFFF_FFFF,
    grace_seconds=0.25,
    table_limit=None,
    udp_timeout=None,
    highest_phase1_rate=10e6,
    highest_phase2_rate=16e6,
)

UP, DOWN = Direction.INITIATOR, Direction.RESPONDER
Measuring: TypeAlias = LabMeasurer
#: A thousand connections, and nothing after that.
OPENED = PlanOfTrial(1000, 500.0)

TRAFFIC = make_plan(TrafficOptions(connections=1000), AROUND)


def no_time(_seconds: float) -> None:
    """Wait for nothing."""


def measurer(engine: FakeEngine, **others: Any) -> LabMeasurer:
    return LabMeasurer(
        place=others.pop("place", FakeLab()),
        device=others.pop("device", FakeTable(engine)),
        traffic=others.pop("traffic", TRAFFIC),
        settings=others.pop("settings", SETTINGS),
        recorder=others.pop("recorder", Recorder()),
        runner=others.pop("runner", engine),
        sleep=others.pop("sleep", no_time),
        **others,
    )


@dataclass(frozen=True, slots=True)
class Spoiling:
    """Hands on to a fake engine; so many frames of phase 1 also come back wrong."""

    engine: FakeEngine
    how: str
    frames: int

    def __call__(self, request: TrialRequest, *others: Any) -> TrialResult:
        result = self.engine(request, *others)
        assert result.phase1 is not None
        return result.model_copy(update={"phase1": result.phase1.model_copy(update={self.how: self.frames})})


def with_phase2(up: float, down: float, seconds: float, *, phase1_rate: float = 500.0, **others: Any) -> PlanOfTrial:
    """A thousand connections, and frames over them; `others`: of `Phase2Plan`."""
    return PlanOfTrial(1000, phase1_rate, Phase2Plan(up, down, seconds, **others))


def stepped(plan: PlanOfTrial, share: float, seconds: float) -> PlanOfTrial:
    """The same, in whose phase 2 the rates change by this share for so long."""
    assert plan.phase2 is not None
    return replace(plan, phase2=replace(plan.phase2, step=RateStep(share, seconds)))


def traffic_of(**options: Any) -> TrafficPlan:
    """Traffic with these options around a device."""
    return make_plan(TrafficOptions(**options), AROUND)


def addresses(first: str, last: str) -> Addresses:
    """The addresses from the first to the last."""
    return Addresses(ipaddress.ip_address(first), ipaddress.ip_address(last))


def counted(drops: Mapping[str, int]) -> LabCounters:
    """The counters of a lab with these drops."""
    return LabCounters(dict(drops))


def counting_taken(port: str, patch: pytest.MonkeyPatch) -> None:
    """Have the driver of this port alone count as dropped what a receiver took."""
    patch.setattr("natgauge.trial.trial_run.counts_taken", lambda _netns, name: name == port)
