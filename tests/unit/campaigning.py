# SPDX-License-Identifier: Apache-2.0
"""Campaigns on simulated gateways, which can be killed at any moment."""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.simulated import Gateway

from natgauge import Result
from natgauge.campaigns import campaign as campaigns
from natgauge.campaigns.campaign import RunOrder, run
from natgauge.campaigns.state import CampaignState
from natgauge.cli import run as command_line
from natgauge.errors import BrokenError, HostError, UsageError
from natgauge.host.settings import OccupiedError
from natgauge.inputs.question import Cell, Question
from natgauge.measurements.measure import Prepared
from natgauge.measurer import Ability, Measurer, TearDown
from natgauge.paired.slices import RoundPlan, TimedRound
from natgauge.records.parameters import Parameters
from natgauge.records.store import plain
from natgauge.trial.bench import Bench
from natgauge.trial.controls import Observer
from natgauge.trial.lab_measurer import Recorder
from natgauge.trial.planned import Planned
from natgauge.trial.question import command
from natgauge.trials import Period

PLAN = """
name = "small"
gateways = ["nftables-nat44", "linux-ipv4"]
profile = "quick"
repetitions = 2
seed = 5

[series]
connections = [1000, 2000]

[[measure]]
metric = "throughput"
error = "30%"

[[measure]]
metric = "connection-rate"
error = "30%"
"""
#: One measurement of one device, in three repetitions.
ONE_CONNECTION_RATE = """
name = "small"
gateways = ["linux-ipv4"]
profile = "quick"
repetitions = 3
seed = 5

[traffic]
connections = 1000

[[measure]]
metric = "connection-rate"
error = "30%"
"""


#: A plan with the profile of a subscriber beside it, and what this has.
OF_SUBSCRIBERS = """
name = "small"
gateways = ["nftables-nat44"]
profile = "quick"
repetitions = 2
seed = 5

[[measure]]
metric = "subscribers"
subscriber = "mine.toml"
error = "50%"
"""
SUBSCRIBER = (Path(__file__).parent / "subscriber_without_churn.toml").read_text()
OTHER_SUBSCRIBER = SUBSCRIBER.replace("up_frames_per_second = 1", "up_frames_per_second = 2")


def occupied() -> HostError:
    """What another natgauge of this machine, which relies on a setting of it, is the reason of."""
    return OccupiedError("table_size: another natgauge relies on it")


class Killed(BaseException):
    """The process ended here."""


class Dies:
    """Whatever wants to know whether it lives; after its last moment nothing of it does anything any more.

    `by`: what ends it.
    """

    def __init__(self, after: int | None = None, *, by: BaseException | None = None) -> None:
        self.left = after
        self.by = by

    def moment(self) -> bool:
        """Whether this was the last moment."""
        if self.left is None:
            return False
        self.left -= 1
        if self.left < 0:
            raise self.by or Killed()
        return self.left == 0


@dataclass
class Goes:
    """Makes the gateway of a cell until none is left of it; then the device is gone."""

    left: int

    def __call__(self, _cell: Cell) -> Gateway:
        self.left -= 1
        if self.left < 0:
            raise BrokenError("the device is gone")
        return Gateway(establishes=30_000, forwards=60_000)


@dataclass
class Benches:
    """Makes benches with simulated gateways.

    Attributes:
        gateway: makes the gateway of a cell.
        trials: the trials that gateways were asked for, by cell's N and device.
        cells: in the order they were visited.
        killed: is asked before each trial.
        refuses: the metric that no device is fit for.
        breaks: raised when the device of this name is made ready.
        own_part: what is found of the tester's own part after each repetition in turn; nothing after the last one.
        timed: what was known each time the tester's own part was measured.
        place: further parameters of the place, such as cores of the device's own.
        settings: further settings, such as the server that answers.
    """

    gateway: Callable[[Cell], Gateway] = lambda _cell: Gateway(establishes=30_000, forwards=60_000)
    trials: Counter[tuple[str, int | None]] = field(default_factory=Counter)
    cells: list[tuple[str, int | None]] = field(default_factory=list)
    killed: Dies = field(default_factory=Dies)
    refuses: str = ""
    breaks: Mapping[str, Exception] = field(default_factory=dict)
    own_part: list[Mapping[str, float]] = field(default_factory=list)
    timed: list[set[str]] = field(default_factory=list)
    place: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, cell: Cell, _observer: Observer) -> Simulated:
        return Simulated(self, cell)


class Simulated:
    """A bench on which a simulated gateway stands; what can be measured is decided by the real one."""

    def __init__(self, benches: Benches, cell: Cell) -> None:
        self.benches = benches
        self.cell = cell
        self.name = (str(cell.gateway), cell.traffic.connections)

    def plan(self, metric: str, asked: Mapping[str, object]) -> Planned:
        return Bench(self.cell).plan(metric, asked)

    def prepare(self, planned: Planned, recorder: Recorder) -> Prepared:
        if str(self.cell.gateway) in self.benches.breaks:
            raise self.benches.breaks[str(self.cell.gateway)]
        if planned.procedure.metric == self.benches.refuses:
            raise UsageError("UDP time-out: too short for it")
        question = Question(metric=planned.procedure.metric, cell=self.cell, settings=planned.chosen)
        parameters = Parameters.grouped(
            settings={**plain(planned.settings.parameters()), **self.benches.settings},
            place={"command": command(question), **self.benches.place},
            device={"gateway": str(self.cell.gateway)},
        )
        return Prepared(
            Recorded(self, recorder), parameters, {"gateway": str(self.cell.gateway)}, self.own_part, planned
        )

    def own_part(self, known: Collection[str]) -> Mapping[str, float]:
        """What the test says, without what is known."""
        self.benches.timed.append(set(known))
        found = self.benches.own_part.pop(0) if self.benches.own_part else {}
        return {name: value for name, value in found.items() if name not in known}

    def __enter__(self) -> Self:
        self.benches.cells.append(self.name)
        return self

    def __exit__(self, *_exception: object) -> None: ...


class Recorded(Measurer):
    """A simulated gateway whose trials are recorded, and which remembers what its last trial left."""

    def __init__(self, stand: Simulated, recorder: Recorder) -> None:
        self.stand = stand
        self.gateway = stand.benches.gateway(stand.cell)
        self.recorder = recorder
        self.held = 0

    @property
    def abilities(self) -> frozenset[Ability]:
        """Its table can be emptied; the gateway has others."""
        return frozenset({Ability.EMPTY_TIMED}) | self.gateway.abilities

    @property
    def highest_rate(self) -> float:
        return self.gateway.highest_rate

    @property
    def ring(self) -> int | None:
        return self.gateway.ring

    def measure(self, plan: PlanOfTrial) -> OneTrial:
        self.stand.benches.killed.moment()
        self.stand.benches.trials[self.stand.name] += 1
        outcome = self.gateway.measure(plan)
        self.held = outcome.stored
        self.recorder.add_trial({"verdict": outcome.verdict, "plan": plan})
        return outcome

    def periods(self, plan: PlanOfTrial, heard: Callable[[Period], bool]) -> tuple[Period, ...]:
        """Run a trial of many periods in no time."""

        def recorded(period: Period) -> bool:
            self.recorder.add_trial({"verdict": period.outcome.verdict, "plan": period.outcome.plan})
            return heard(period)

        return self.gateway.periods(plan, recorded)

    def costs(self, plan: RoundPlan) -> TimedRound:
        """Run a round of slices in no time."""
        self.stand.benches.killed.moment()
        self.recorder.add_round({"seed": plan.seed})
        return self.gateway.costs(plan)

    def empty_timed(self) -> TearDown:
        self.stand.benches.killed.moment()
        held, self.held = self.held, 0
        return TearDown(0.001 + held / 1e6, held, 0)


def campaign(folder: Path, benches: Benches, *, plan: str = PLAN, **order: Any) -> CampaignState:
    """Run the plan, or go on with it where it has begun."""
    path = folder / "small.toml"
    path.write_text(plan)
    out = folder / "out"
    resume = (out / "campaign.json").exists()
    return run(RunOrder(plan=path, out=out, resume=resume, **order), make_bench=benches)[1]


@pytest.fixture
def simulated_benches(in_an_empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Benches:
    """Those that command lines in an empty folder measure campaigns on."""
    del in_an_empty_folder
    made = Benches()
    monkeypatch.setattr(campaigns, "run", partial(run, make_bench=made))
    return made


def journal_dies(patch: pytest.MonkeyPatch, dies: Dies, *, octets: int) -> None:
    """The process ends while a line of the journal is written, of which so many octets reach the disk."""

    def write(file: int, line: bytes) -> None:
        if dies.moment():
            os.write(file, line[:octets])
            raise Killed
        os.write(file, line)

    patch.setattr("natgauge.campaigns.journal.write", write)


def asked(folder: Path) -> dict[tuple[str, int], list[Any]]:
    """The plans of the trials of each repetition that counts, by its result and its number."""
    found: dict[tuple[str, int], list[Any]] = {}
    for path in sorted((folder / "out" / "results").glob("[!.]*/trials.jsonl")):
        for line in map(json.loads, path.read_text().splitlines()):
            found.setdefault((path.parent.name, line["repetition"]), []).append(line["plan"])
    return found


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test cuts the power."""
    monkeypatch.setattr("os.fsync", lambda _file: None)


def progress(folder: Path) -> Any:
    """What `natgauge status --json` prints of the campaign."""
    with redirect_stdout(io.StringIO()) as printed:
        assert command_line(["status", "--json", str(folder / "out")]) == 0
    return json.loads(printed.getvalue(), object_hook=lambda fields: SimpleNamespace(**fields))


def not_ended(folder: Path) -> str:
    """What `natgauge report` says of measurements that have not ended; empty where all have."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as printed:
        assert command_line(["report", str(folder / "out")]) == 0
    return printed.getvalue().removeprefix(f"natgauge: {folder / 'out'}: ").rstrip("\n")


def events(folder: Path, event: str) -> list[Any]:
    """The lines of the journal with this event."""
    lines = map(json.loads, (folder / "out" / "journal.jsonl").read_text().splitlines())
    return [line for line in lines if line["event"] == event]


def summaries(folder: Path) -> dict[str, Result]:
    """Every result by the name of its folder; what has not ended is in folders that begin with a dot."""
    paths = sorted((folder / "out" / "results").glob("[!.]*/summary.json"))
    return {path.parent.name: Result.from_document(json.loads(path.read_text())) for path in paths}


def results(folder: Path) -> dict[str, Any]:
    """What every results folder says, by its name, without times and places."""
    documents = {name: result.document() for name, result in summaries(folder).items()}
    return {name: (one["median"], one["trials"], one["repetitions"], one["notes"]) for name, one in documents.items()}
