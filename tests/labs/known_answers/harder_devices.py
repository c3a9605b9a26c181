# SPDX-License-Identifier: Apache-2.0
"""Further devices of known truth: that hide their limit, miscount, do not answer, stand still, or are not ours."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.labs.burner import burning
from tests.labs.external import count_new, external_nat, opened_by
from tests.labs.known_answers.devices import (
    RECIPES,
    RING,
    Changing,
    Device,
    Home,
    Known,
    Logbook,
    NotOnTimeError,
    Ruled,
    Standing,
    in_background,
)

from natgauge.agreement.generated import TrialRequest, TrialResult
from natgauge.labs.netns.lab import NetnsLab
from natgauge.tester.own_rates import HighestRates
from natgauge.trial.bench import Bench
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.question import ask
from natgauge.trials import Direction, phase2_of
from natgauge.words import Verdict

WIRE_NAME = "known-wire"
#: How a lab names the rings before a device's cores.
RING_PLACE = "card ring"
#: A sender that stood still for a larger share of a trial sends the rest in bursts, which a short ring may lose.
MOST_STALLED = 0.1


@dataclass(frozen=True, kw_only=True)
class Refusing(Device):
    """Keeps so many connections and refuses every further one; nobody is told how many.

    Attributes:
        limit: so many.
        work: rules that match nothing and that only the first frame of a connection goes through, so that opening one
            takes the device's core some time.
    """

    recipe: str | Path = RECIPES / "refuses-new.toml"
    placement: Literal["shared", "isolated"] = "isolated"
    limit: int
    work: int = 0

    @contextmanager
    def acting(self, home: Home, measurer: LabMeasurer) -> Iterator[Standing]:
        """Tells nothing: the limit says it."""
        home.must(f"""
{{
    echo 'table ip known {{
        set held {{ typeof ip saddr . udp sport . udp dport; flags dynamic; size {self.limit}; }}
        chain working {{'
    yes 'udp sport 1 drop' | head -n {self.work}
    echo '}}
        chain opening {{
            jump working
            add @held {{ ip saddr . udp sport . udp dport }} accept
            drop
        }}
        chain forward {{
            type filter hook forward priority filter;
            ct state new jump opening
        }}
    }}'
}} | nft -f -
""")
        yield home.standing(measurer, dict)


@dataclass(frozen=True, kw_only=True)
class FailingControls(Ruled):
    """One of whose commands in five fails by chance.

    Attributes:
        seed: of the chances.
    """

    recipe: str | Path = RECIPES / "answers-now-and-then.toml"
    seed: int = 20261123

    @contextmanager
    def acting(self, home: Home, measurer: LabMeasurer) -> Iterator[Standing]:
        """Tells "failed_commands"."""
        with super().acting(home, measurer):
            home.must(f'echo {self.seed} > "$NG_WORK/chance"; : > "$NG_WORK/failed"')

            def tell() -> Known:
                return {"failed_commands": float(len(home.device.run('cat "$NG_WORK/failed"').stdout.split()))}

            yield home.standing(measurer, tell)


@dataclass(frozen=True, kw_only=True)
class Degrading(Ruled):
    """Gets one rule more every few seconds of a trial; each rule drops every k-th of the frames that reach it.

    Attributes:
        every: k.
        period_seconds: time between two rules, and before the first one.
    """

    rules: str = ""
    placement: Literal["shared", "isolated"] = "isolated"
    every: int
    period_seconds: float

    @contextmanager
    def acting(self, home: Home, measurer: LabMeasurer) -> Iterator[Standing]:
        """Tells "first_rule_s" after phase 1 began, and "lost_percent", the share that all rules drop together."""
        added: list[float] = []

        def degrade(ended: threading.Event) -> None:
            while not ended.wait(self.period_seconds):
                # The tester's checks before the trial need no rules.
                if home.logbook.phase1_began is not None:
                    home.must(f"nft add rule ip known leaving numgen inc mod {self.every} 0 drop")
                    added.append(time.monotonic())

        def tell() -> Known:
            assert home.logbook.phase1_began is not None
            return {
                "first_rule_s": added[0] - home.logbook.phase1_began,
                "lost_percent": 100 * (1 - (1 - 1 / self.every) ** len(added)),
            }

        with super().acting(home, measurer), in_background(degrade):
            yield home.standing(measurer, tell)


@dataclass(frozen=True, kw_only=True)
class Interrupted(Changing):
    """A core that something else takes again and again, at real-time priority, beside what is done to every k-th frame.

    Attributes:
        burnt_ms: for so long.
        period_ms: once in so many milliseconds.
    """

    placement: Literal["shared", "isolated"] = "isolated"
    burnt_ms: float
    period_ms: float

    @contextmanager
    def acting(self, home: Home, measurer: LabMeasurer) -> Iterator[Standing]:
        """Tells "acted_frames", and "ring_frames", those of the last trial that found the ring before its core full."""
        assert isinstance(home.lab, NetnsLab)
        with (
            super().acting(home, measurer) as standing,
            burning(home.lab.device_cpus[0], self.burnt_ms, self.period_ms),
        ):

            def tell() -> Known:
                trial = home.logbook.trials[-1]
                if self.ring < RING:
                    _refuse_bursts(trial["result"])
                lost = sum(count for place, count in trial["dropped"].items() if place.endswith(RING_PLACE))
                return {**standing.tell(), "ring_frames": float(lost)}

            yield home.standing(measurer, tell)


@dataclass(frozen=True, kw_only=True)
class Burnt(Device):
    """A device whose core is taken again and again.

    Attributes:
        burnt_ms: for so long each time.
        period_ms: from one time to the next.
    """

    placement: Literal["shared", "isolated"] = "isolated"
    burnt_ms: float
    period_ms: float

    @contextmanager
    def acting(self, home: Home, measurer: LabMeasurer) -> Iterator[Standing]:
        """Tells nothing: the times say it."""
        assert isinstance(home.lab, NetnsLab)
        with burning(home.lab.device_cpus[0], self.burnt_ms, self.period_ms):
            yield home.standing(measurer, dict)


def _refuse_bursts(result: TrialResult) -> None:
    """Refuse a trial whose sender stood still for long: it sends the rest in bursts, which a short ring may lose."""
    counts = phase2_of(result)[Direction.INITIATOR]
    stalled = counts.stalled_seconds or 0.0
    if stalled > MOST_STALLED * counts.nominal_seconds:
        raise NotOnTimeError(f"the sender stood still for {stalled:.3f} s")


@dataclass(frozen=True, kw_only=True)
class Elsewhere(Device):
    """A NAT44 that is not ours, behind ports that the tester was told: it forgets connections after a time only.

    Attributes:
        timeout: after which it does, in seconds.
    """

    timeout: int = 10

    @contextmanager
    def stand(self, metric: str, settings: Mapping[str, object]) -> Iterator[Standing]:
        """Tells "opened_connections", those new to the device in all trials that passed, by its own count."""
        with external_nat(WIRE_NAME, str(self.recipe), self.timeout) as (lab, ports):
            choices = {"connections": self.connections, "seed": 1, "device_timeout": self.timeout, **ports, **settings}
            question = ask(metric, self.recipe, choices)
            logbook = Logbook()
            bench = Bench(question.cell, logbook, rates=HighestRates(self.highest_rate, self.highest_rate))
            planned = bench.plan(question.metric, question.settings)
            (device,) = lab.devices
            count_new(device)

            def tell() -> Known:
                opened = opened_by(device)
                passed = [trial["request"] for trial in logbook.trials if trial["verdict"] is Verdict.PASS]
                return {"opened_connections": float(sum(opened[_port_of(request)] for request in passed))}

            with bench:
                yield Standing(planned, bench.ready(planned, logbook).measurer, logbook, tell)


def _port_of(request: TrialRequest) -> int:
    """The destination port that a trial has for itself."""
    ports = request.initiator.destination_ports
    assert ports.first == ports.last
    return ports.first
