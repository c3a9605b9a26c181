# SPDX-License-Identifier: Apache-2.0
"""The tester's own cable without a network: nothing is behind its ports, and engines of known speed run its trials."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest
from tests.simulated_lab import NAT44, simulated
from tests.simulated_lab.lab import SimulatedLab
from tests.unit.fake_engine import CLEAN, FakeEngine

import natgauge
from natgauge.agreement.generated import ComparisonRequest, ComparisonResult, TrialRequest, TrialResult
from natgauge.labs.contract import Port
from natgauge.tester import own_rates
from natgauge.tester.cable import CableTester
from natgauge.tester.own_rates import FloorTester


class FakeCable:
    """Two ports that nothing is behind."""

    initiator = Port("a", "ng-x", "02:00:00:00:00:02", None)
    responder = Port("b", "ng-x", "02:00:00:00:00:01", None)

    def __init__(self, _name: str = "") -> None: ...
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None: ...


class FloorEngine:
    """Takes so many ns for a frame of the tester's and of the floor's, while the host's speed wanders.

    Attributes:
        lost: frames of the tester's that are lost; `floor_lost`: of the floor's.
        apart: by so much of its time the tester is slower in each round than in the one before.
        answered: so many blocks it answers with; None = as many as it was asked for.
        requests: what it was asked, in order.
    """

    def __init__(self, tester: float = 400, floor: float = 160, **changes: Any) -> None:
        self.costs = (tester, floor)
        self.lost = self.floor_lost = 0
        self.apart = 0.0
        self.answered: int | None = None
        self.requests: list[ComparisonRequest] = []
        self._random = random.Random(1)  # noqa: S311 - a host that wanders, no secret
        for name, value in changes.items():
            setattr(self, name, value)

    def __call__(self, request: ComparisonRequest, *, seconds: float) -> ComparisonResult:
        """Answer a round."""
        tester, floor = self.costs
        costs = (tester * (1 + self.apart * len(self.requests)), floor)
        self.requests.append(request)
        assert request.limits is not None
        assert request.limits.seconds is not None
        assert request.limits.seconds < seconds
        blocks = []
        for at in range(request.slices.both if self.answered is None else self.answered):
            order = (at % 2, 1 - at % 2)
            speed = self._random.uniform(0.5, 2)
            took = [request.slices.frames * costs[who] * speed for who in (*order, *reversed(order))]
            # What drifts within a block cancels.
            took = [ns * (1 + 0.01 * place) for place, ns in enumerate(took)]
            ns = [round(one) for one in took]
            blocks.append({"quantity": "both", "order": order, "ns": ns, "waited": 0, "interrupted": 0})
        frames = 2 * request.slices.frames * request.slices.both
        stream = {**CLEAN, "made_frames": frames, "received_frames": frames}
        none = {**CLEAN, "made_frames": 0, "received_frames": 0}
        counts: dict[str, Any] = {
            **dict.fromkeys(("mark", "remapped", "damaged_unmarked", "foreign", "refused_frames"), 0),
            "name": "cable",
            "new": none,
            "initiator": {**stream, "received_frames": frames - self.lost},
            "responder": none,
            "stored": 100_000,
            "offered_frames": frames,
            "gateway_macs": ("", ""),
        }
        answer = {
            "version": 1,
            "engine": "fake",
            "contestants": [counts],
            "floor": {"made_frames": frames, "received_frames": frames - self.floor_lost},
            "blocks": blocks,
            "wall_ns": 1,
        }
        return ComparisonResult.model_validate(answer)


@contextmanager
def cable(folder: Path, engine: FakeEngine, floor: Callable[..., ComparisonResult]) -> Iterator[None]:
    """Have the self-test's trials run by these engines for as long as the block lasts."""
    (folder / "natgauge-engine").touch(mode=0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NATGAUGE_PROGRAMS", str(folder))
        patch.setattr(own_rates, "CableLab", FakeCable)
        patch.setattr(own_rates, "CableTester", partial(CableTester, runner=engine))
        patch.setattr(own_rates, "FloorTester", partial(FloorTester, run=floor))
        yield


class OwnCable:
    """A machine whose tester measures its own highest rates.

    Attributes:
        speeds: of each time, frames/s; without any it is a million faster each time.
        folder: where it has `natgauge-engine`, its memory `natgauge/selftest.json`, and what the kernel says of its
            compiler of programs, `bpf_jit_enable`.
        requests: of all trials on the cable, in order.
        facts: what is known of the machine.
        cores: that the tester sends from.
        is_disturbed: its trials are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.speeds: list[float] = []
        self.requests: list[TrialRequest] = []
        self.facts: dict[str, Any] = {}
        self.cores: tuple[int, ...] = (0,)
        self.is_disturbed = False
        (folder / "natgauge-engine").write_text("one build")
        (folder / "natgauge-engine").chmod(0o755)

    def run(self, request: TrialRequest) -> TrialResult:
        """Run a trial on the cable; it takes four to find the rates."""
        fastest = self.speeds[self.times] if self.speeds else 1e6 * (1 + self.times)
        self.requests.append(request)
        return FakeEngine(fastest=fastest, lost_in_stalls=0 if self.is_disturbed else None)(request)

    @property
    def times(self) -> int:
        """How often the rates were measured."""
        return len(self.requests) // 4

    def rate(self, metric: str = "connection-rate", *, gateway: Path = NAT44, **choices: Any) -> float:
        """What a measurement knows of the tester's highest rate of phase 1, frames/s."""
        choices = {"repeat": 1, "lab": "simulated", "placement": "isolated", "seed": 1, **choices}
        with simulated(), pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(self.folder))
            patch.setenv("NATGAUGE_PROGRAMS", str(self.folder))
            patch.setattr("natgauge.trial.bench.highest_rates", own_rates.highest_rates)
            patch.setattr(own_rates, "CableLab", FakeCable)
            patch.setattr(own_rates, "CableTester", partial(CableTester, runner=self.run))
            patch.setattr(own_rates, "facts", lambda: self.facts)
            patch.setattr(own_rates, "_JIT", self.folder / "bpf_jit_enable")
            patch.setattr(SimulatedLab, "sender_cpus", self.cores)
            answer = natgauge.measure(metric, gateway, results=self.folder / "results", **choices)
        rate: float = answer.document()["parameters"]["place"]["tester_highest_phase1_rate"]
        return rate
