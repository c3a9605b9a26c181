# SPDX-License-Identifier: Apache-2.0
"""A kind of lab without a network: tests enter natgauge by its public functions, with a gateway of known truth.

Everything between `natgauge.measure(...)` and the engine is real: questions, plans, the driver of recipes, searches,
verdicts, doubts, records and reports. Simulated are the lab, the device that takes a recipe's commands, the tester's
own highest rates, and the engine. A gateway's truth is a `tests.unit.simulated.Gateway`:

    measured = measure("throughput", Gateway(forwards=5e5), trial_seconds=10)
    assert measured.document["median"] == pytest.approx(5e5, rel=0.01)

`simulated()` is a `with` block in which the kind of lab `simulated` exists for every function, and for the command line
(`--lab simulated --gateway FILE`, with a recipe of `gateways/`). It makes a gateway for each lab in which one is
started, so that a campaign or a comparison has several.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pytest
from tests.added import added
from tests.simulated_lab import engine
from tests.simulated_lab.lab import CLOCK, COMMANDS, ENTERS, GROUNDS, LABS, LINKS, LOGS, STARTS
from tests.unit.recorded_delays import recorded
from tests.unit.simulated import TESTER_NS, Gateway

import natgauge
from natgauge.analysis.contrast import spans
from natgauge.cli import audit as _audit_command  # noqa: F401 - has its options before there is this kind of lab
from natgauge.cli import measure as measure_command
from natgauge.host import machine
from natgauge.procedures.kit.procedure import Procedure
from natgauge.reports import answers, text
from natgauge.tester.own_rates import HighestRates
from natgauge.trial.connection_log import ConnectionLog
from natgauge.trial.lab_measurer import LabMeasurer

if TYPE_CHECKING:
    from natgauge.delays import Delays
    from natgauge.records.measurement import Result

_READ: Final = machine.facts
_FOLDER: Final = Path(__file__).parent
_GATEWAYS: Final = _FOLDER / "gateways"
#: Recipes of a gateway with connections, of one without, of one whose
#: table has a limit that natgauge reads, and of one that keeps closed connections for two minutes.
NAT44, ROUTING = _GATEWAYS / "simulated.toml", _GATEWAYS / "simulated-routing.toml"
DNS64: Final = _GATEWAYS / "simulated-dns64.toml"
LIMITED: Final = _GATEWAYS / "simulated-limited.toml"
LINGERING: Final = _GATEWAYS / "simulated-lingering.toml"


@dataclass(frozen=True, slots=True)
class Measured:
    """What `natgauge.measure` returned and stored.

    Attributes:
        document: JSON of the result.
        result: the same with every trial of every repetition.
        trials: the lines of `trials.jsonl`.
        commands: what the device ran, in order.
        slept: every pause in seconds, in order; none of them took time.
    """

    document: Any
    result: Result
    trials: list[Any]
    commands: list[str]
    slept: list[float]

    @property
    def median(self) -> float:
        return float(self.document["median"])

    @property
    def limited_by(self) -> str:
        return str(self.document["limited_by"])

    @property
    def repetitions(self) -> list[Any]:
        """Each with its value, its upper bound and its trials."""
        return list(self.document["repetitions"])

    @property
    def bounds(self) -> tuple[float, float | None]:
        """Value and upper bound of the first repetition."""
        first = self.repetitions[0]
        return first["value"], first["upper"]

    def figure(self, name: str) -> float:
        """Median of a further figure."""
        return float(self.document["figures"][name]["median"])

    def notes(self, words: str) -> bool:
        """Whether a note or a doubt says this."""
        return any(words in note["text"] for note in [*self.document["notes"], *self.document["doubts"]])

    @property
    def answer(self) -> str:
        """The sentence that answers the question."""
        return answers.one(self.result).text

    @property
    def said(self) -> str:
        """What the command line says of the result: its answer with all that it rests on, and the table."""
        return f"{text.verdict(self.result)}\n{text.table([self.result])}"

    @property
    def span(self) -> tuple[float, float]:
        """The ends between which the figure of the one repetition is."""
        (span,) = spans(self.result)
        return span.lower, span.upper

    def words(self) -> set[str]:
        """The words of all notes and doubts."""
        return {note["word"] for note in [*self.document["notes"], *self.document["doubts"]]}

    def plans(self, name: str) -> set[Any]:
        """Every value that the trials had of an input of a trial: `connections`, `phase2.seconds`."""
        first, _, second = name.partition(".")
        values = [trial["plan"][first] for trial in self.trials]
        return set(values) if not second else {value[second] for value in values if value is not None}


@dataclass(slots=True)
class Simulation:
    """Gateways that are started.

    Attributes:
        start: makes the gateway that is started in the lab of a name.
        enters: is called with the name of each lab before it is made, and may raise.
        ceiling: the tester's own highest rate, frames/s.
        ground: what is known of the traffic in its labs: `mtu`, and `pool` and `mapped` as addresses "A-B".
        log: the file of this machine to which devices log; None = they are on other machines.
        links: what each lab tells of its ports and links, by the names of parameters.
        slept: every pause in seconds, in order.
    """

    start: Callable[[str], Gateway] = lambda _lab: Gateway()
    enters: Callable[[str], None] = lambda _lab: None
    ceiling: float = 16e6
    ground: Mapping[str, int | str] = field(default_factory=dict)
    log: Path | None = None
    links: Mapping[str, Any] = field(default_factory=dict)
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        CLOCK.sleep(seconds)


def measure(
    metric: str,
    truth: Gateway | None = None,
    *,
    gateway: Path = NAT44,
    place: Mapping[str, Any] = MappingProxyType({}),
    **choices: Any,
) -> Measured:
    """Measure a gateway of this truth once by `natgauge.measure`; it knows its trials afterwards (`Gateway.plans`).

    Args:
        place: attributes of `Simulation`.
        choices: of `natgauge.measure`; `repeat` is 1, and placement and seed are those of the truth unless chosen.
    """
    truth = Gateway() if truth is None else truth
    given = {"repeat": 1, "placement": truth.placement, "seed": truth.seed, **choices}
    with tempfile.TemporaryDirectory() as folder, simulated() as simulation:
        simulation.start, simulation.ceiling = lambda _lab: truth, truth.ceiling
        for name, value in place.items():
            setattr(simulation, name, value)
        answer = natgauge.measure(metric, gateway, lab="simulated", results=folder, **given)
        lines = (answer.folder / "trials.jsonl").read_text().splitlines()
        commands = COMMANDS.pop()
        return Measured(answer.document(), answer, list(map(json.loads, lines)), commands, simulation.slept)


@contextmanager
def simulated() -> Iterator[Simulation]:
    """Have the kind of lab `simulated` for as long as the block lasts."""
    simulation = Simulation()
    with pytest.MonkeyPatch.context() as patch, added({"labs": _FOLDER / "kinds"}):
        patch.setenv("NATGAUGE_GATEWAYS", str(_GATEWAYS))
        patch.setattr(os, "fsync", lambda _file: None)
        for module in ("measurements.measure", "setup.setup", "comparisons.compare"):
            patch.setattr(f"natgauge.{module}.check_host", lambda: None)
        patch.setitem(Procedure.measure.__kwdefaults__, "clock", CLOCK.monotonic)  # type: ignore[arg-type]
        measurer = partial(LabMeasurer, runner=engine.run, sleep=simulation.sleep)
        patch.setattr("natgauge.trial.bench.LabMeasurer", measurer)
        patch.setattr(
            "natgauge.trial.bench.highest_rates",
            lambda *_frames: HighestRates(simulation.ceiling, simulation.ceiling),
        )
        patch.setattr("natgauge.trial.bench.own_delays", _own_delays)
        patch.setattr("natgauge.trial.lab_measurer.time", CLOCK)
        patch.setattr("natgauge.trial.connection_log.time", CLOCK)
        patch.setattr("natgauge.trial.bench.ConnectionLog", partial(ConnectionLog, sleep=simulation.sleep))
        patch.setattr("natgauge.gateways.gateway.time", CLOCK)
        patch.setattr("natgauge.trial.trial_run.RestartInTrial", engine.Restarting)
        patch.setattr("natgauge.trial.trial_run.carrier_losses", _carrier_losses)
        patch.setattr("natgauge.trial.trial_run.counts_taken", lambda *_port: False)
        patch.setattr("natgauge.host.capabilities.ControlGroups._groups", lambda *_controller: ())
        patch.setattr("natgauge.host.machine.facts", _facts)
        STARTS.append(lambda name: simulation.start(name))  # noqa: PLW0108 - a test sets `start` later
        ENTERS.append(lambda name: simulation.enters(name))  # noqa: PLW0108 - as above
        GROUNDS.append(lambda: simulation.ground)
        LINKS.append(lambda: simulation.links)
        LOGS.append(lambda: simulation.log)
        try:
            yield simulation
        finally:
            LOGS.pop()
            GROUNDS.pop()
            LINKS.pop()
            ENTERS.pop()
            STARTS.pop()
            LABS.clear()
            # Commands that were made in the block would offer this kind of lab for ever.
            measure_command._command_of.cache_clear()


@cache
def _facts(*, host_name: bool = False) -> Mapping[str, object]:
    """Facts of this machine, read once."""
    return _READ(host_name=host_name)


def _own_delays(*_frames: object, **_others: object) -> Delays:
    return recorded([TESTER_NS / 1e9] * 100)


def _carrier_losses(_netns: str | None, interface: str) -> int:
    truth = LABS[interface].device.truth if interface in LABS else None
    return 0 if truth is None else truth.downs
