# SPDX-License-Identifier: Apache-2.0
"""Comparisons by slices without labs: an engine of known costs answers their rounds, whatever the gateways are."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.engine_check import changed
from tests.unit.fake_engine import CLEAN
from tests.unit.fake_measurer import SETTINGS

from natgauge.agreement.generated import ComparisonRequest, ComparisonResult
from natgauge.comparisons import compare
from natgauge.comparisons.by_slices import BySlices, RunningGateway
from natgauge.errors import BrokenError
from natgauge.tester.cable import CableLab
from natgauge.trial import rounds
from natgauge.trial.bench import Bench
from natgauge.trial.requests import Requests, pacing

#: ns a frame beyond the tester's own, by what an engine's contestant is called.
COSTS = {
    "nftables-nat44": 2000.0,
    "iptables-nat44": 2200.0,
    "map-e": 2800.0,
    "ds-lite": 3400.0,
    "jool-nat64": 4000.0,
    "plain": 800.0,
    "cable": 0.0,
    # Labels.
    "base": 2000.0,
    "this change": 2200.0,
}


class Engine:
    """Answers rounds.

    Attributes:
        wrong: counts of the gateway that spoils frames, by their places in its result; it has 20,000 connections.
        spoils: what the name of that gateway is.
        counted: connections that each gateway counts after a round; None = it does not tell.
        noise: of slices, a share.
        interrupted: slices of each block in which the core was taken away.
        labs: what happened to the labs and in them, in order.
        enters: is called before the labs of a round are made, and may raise; `leaves` when they are undone.
    """

    def __init__(self) -> None:
        self.rounds: list[ComparisonRequest] = []
        self.wrong: dict[str, int] = {}
        self.spoils = "iptables-nat44"
        self.counted: int | None = None
        self.noise = 0.01
        self.costs = dict(COSTS)
        self.labs: list[str] = []
        self.interrupted = 0
        self.enters: Callable[[], object] = lambda: None
        self.leaves: Callable[[], object] = lambda: None
        self._random = random.Random(1)  # noqa: S311 - a simulation

    def __call__(self, request: ComparisonRequest, **_others: object) -> ComparisonResult:
        self.rounds.append(request)
        self.labs.append("round")
        contestants = [self.counts(one.name, one.trial.connections) for one in request.contestants]
        blocks = [
            self._block(quantity, request)
            for quantity in ("new", "up", "down", "both")
            for _ in range(getattr(request.slices, quantity))
        ]
        document = {"version": 1, "engine": "fake", "contestants": contestants, "blocks": blocks, "wall_ns": 1}
        return ComparisonResult.model_validate(document)

    def _block(self, quantity: str, request: ComparisonRequest) -> dict[str, Any]:
        order = self._random.sample(range(len(request.contestants)), len(request.contestants))
        names = [request.contestants[at].name for at in [*order, *reversed(order)]]
        speed = self._random.uniform(1, 1.7)
        ns = [round((self._cost(name) + 300) * request.slices.frames * speed) for name in names]
        return {"quantity": quantity, "order": order, "ns": ns, "waited": 0, "interrupted": self.interrupted}

    def _cost(self, name: str) -> float:
        cost = next(cost for start, cost in self.costs.items() if name.startswith(start))
        return cost * math.exp(self._random.gauss(0, self.noise))

    def counts(self, name: str, connections: int) -> Any:
        """What it counts of a contestant."""
        streams = ("new", "initiator", "responder")
        stream = {"made_frames": connections, "received_frames": connections, **CLEAN}
        rest = dict.fromkeys(("remapped", "damaged_unmarked", "foreign", "refused_frames", "offered_frames"), 0)
        document = {
            **{one: {**stream} for one in streams},
            **rest,
            "name": name,
            "mark": 1,
            "stored": connections,
            "gateway_macs": ["", ""],
        }
        return changed(document, *(self.wrong.items() if name == self.spoils and connections == 20_000 else ()))


@contextmanager
def timed() -> Iterator[Engine]:
    """Have an engine of known costs in place of labs, gateways and the real one."""
    engine = Engine()

    def enter(_: BySlices) -> None:
        engine.enters()
        engine.labs.append("made")

    def leave(*_: object) -> None:
        engine.leaves()
        engine.labs.append("undone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "check_host", lambda: None)
        patch.setattr(rounds, "compare", engine)
        patch.setattr(BySlices, "__enter__", enter)
        patch.setattr(BySlices, "__exit__", leave)
        patch.setattr(RunningGateway, "started", property(lambda standing: _Ready(standing, engine)))
        yield engine


@contextmanager
def failing_in(folder: str) -> Iterator[None]:
    """Have gateways without labs, of which those in this folder do not start, and then cannot be undone."""

    def ready(bench: Bench, *_: object, **_others: object) -> None:
        if bench.recipe.origin.parent.name == folder:
            raise BrokenError("gateway on device gateway: start failed")

    def leave(_bench: Bench, _kind: object = None, error: BaseException | None = None, *_: object) -> None:
        if error is None:
            raise BrokenError("gateway: cannot be undone")
        error.add_note("gateway: cannot be undone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "check_host", lambda: None)
        patch.setattr(Bench, "__enter__", lambda bench: bench)
        patch.setattr(Bench, "__exit__", leave)
        patch.setattr(Bench, "ready", ready)
        patch.setattr(CableLab, "__enter__", lambda lab: lab)
        patch.setattr(CableLab, "__exit__", lambda *_: None)
        yield


class _Ready:
    """Stands in for a started gateway: its requests are written, nothing runs."""

    device = log = None

    def __init__(self, standing: RunningGateway, engine: Engine) -> None:
        self.measurer = _Measurer(standing.bench, engine)


class _Measurer:
    log = None
    asking = staticmethod(lambda question: question())

    def __init__(self, bench: Bench, engine: Engine) -> None:
        self._bench = bench
        self.device = None if engine.counted is None else _Table(engine.counted)
        self.number = 0
        self.settings = SimpleNamespace(udp_timeout=None)

    def request(self, plan: Any) -> Any:
        bench, around = self._bench, self._bench.address_plan
        constants = replace(
            SETTINGS,
            initiator_family=around.inside.family,
            responder_family=around.outside.family,
            translated=around.translated,
            pool=around.pool,
            sender_cpus=bench.lab.sender_cpus,
            watch_cpus=(),
            seed=bench.seed,
        )
        requests = Requests(constants, bench.traffic, bench.lab.initiator, bench.lab.responder)
        return requests.of(plan, self.number, pacing(plan, bench.lab.placement))


class _Table:
    """A gateway's table, which says that it has so many connections."""

    empties = False

    def __init__(self, connections: int) -> None:
        self.count = lambda: connections

    def found_changed(self) -> str:
        return ""
