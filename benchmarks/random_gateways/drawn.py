# SPDX-License-Identifier: Apache-2.0
"""Random gateways whose truth is known: what they do, what disturbs them, and how they are measured."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.unit.simulated import Gateway, in_slices
from tests.unit.simulated_kinds import Delaying, Policed

from natgauge.measurer import Ability
from natgauge.words import Placement

#: One-sided standard score at which both of two independent draws pass in half of the cases: the median of the lesser.
_LESSER_OF_TWO: Final = 0.5449
#: Metrics whose trials send in both directions, each with a draw of its own.
_TWO_WAYS: Final = frozenset({"throughput"})
#: Metrics to draw from.
_METRICS: Final = (
    "connection-rate", "connection-rate", "validated-connection-rate", "transaction-rate", "resolution-rate",
    "throughput", "throughput", "mlrsearch", "table-capacity",
)  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """A gateway, its truth, and how it is measured.

    Attributes:
        kind: what is special about the gateway, or about the host.
        metric: what is measured.
        gateway: of the simulation.
        truth: the value that the metric has; None = the gateway has none.
        noise: standard deviation of the truth from trial to trial, as a share.
        connections: N.
        asked: settings of the metric.
    """

    kind: str
    metric: str
    gateway: Gateway
    truth: float
    noise: float
    connections: int
    asked: Mapping[str, Any]

    def __str__(self) -> str:
        """As a line of a list of faults."""
        plain = Gateway(placement=self.gateway.placement)
        names = ("establishes", "forwards", "placement", "queue", "noise", "rare_loss", "disturbed", "loses_share",
                 "real_ceiling", "collapses_above", "table_size", "when_full", "seed")  # fmt: skip
        given = {name: getattr(self.gateway, name) for name in names}
        special = {name: value for name, value in given.items() if value != getattr(plain, name)}
        return (
            f"{self.kind}, {self.metric}, N {self.connections}, {dict(self.asked)}, truth {self.truth:,.1f}: {special}"
        )


@dataclass
class _Draw:
    """What is drawn for one gateway, step by step."""

    dice: random.Random
    metric: str
    placement: Placement
    capacity: float
    connections: int
    given: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)
    truth: float = 0.0
    noise: float = 0.0
    made: Callable[..., Gateway] = Gateway


def _plain(draw: _Draw) -> None:
    """Nothing is special."""


def _noise(draw: _Draw) -> None:
    """Each trial has a rate of its own."""
    draw.noise = draw.given["noise"] = draw.dice.choice((0.001, 0.003, 0.01))
    draw.asked["repeat"] = draw.dice.choice((3, 4, 6, 8))
    if draw.metric in _TWO_WAYS or draw.metric == "mlrsearch":
        draw.truth *= 1 - _LESSER_OF_TWO * draw.noise


def _rare(draw: _Draw) -> None:
    """Trials lose a frame now and then."""
    draw.given["rare_loss"] = draw.dice.choice((0.02, 0.1, 0.3))


def _disturbed(draw: _Draw) -> None:
    """Trials are disturbed, and lose a frame by that: only a card's ring can lose frames for a stall."""
    draw.placement = draw.given["placement"] = "isolated"
    draw.given["disturbed"] = draw.dice.choice((0.05, 0.2, 0.5))


def _queue(draw: _Draw) -> None:
    """Frames wait before the device."""
    draw.placement = draw.given["placement"] = "isolated"
    draw.given["queue"] = draw.dice.choice((64, 512, 4096))


def _tolerance(draw: _Draw) -> None:
    """The device loses a share at every rate, and the search tolerates more than that."""
    lost, tolerated = draw.dice.choice(((0.0, 0.001), (0.0, 0.05), (0.001, 0.01), (0.01, 0.05)))
    draw.given["loses_share"], draw.asked["loss_tolerance"] = lost, tolerated
    if draw.placement == "isolated":
        draw.truth /= 1 - tolerated + lost


def _share(draw: _Draw) -> None:
    """The device loses a share at every rate, and the search tolerates none; what its table holds is another matter."""
    is_table = draw.metric == "table-capacity"
    # Of a smaller share of a table's connections thousands of trials are simulated.
    draw.given["loses_share"] = draw.dice.choice((0.01, 0.1) if is_table else (0.001, 0.01, 0.1))
    if is_table:
        return
    draw.connections = max(draw.connections, 20_000)
    draw.truth = 0.0


def _bucket(draw: _Draw) -> None:
    """A policer lets some connections pass at once; its own rate is the one that lasts."""
    draw.placement = draw.given["placement"] = "isolated"
    burst = int(draw.connections * draw.dice.uniform(0.15, 0.7))
    draw.made = lambda **given: Policed(lasting=draw.capacity, burst=burst, **given)
    draw.given |= {"establishes": 20 * draw.capacity, "forwards": 20 * draw.capacity}


def _slow_bucket(draw: _Draw) -> None:
    """Rules against floods let few connections pass in a second; where slices foretell a rate, it is another one."""
    draw.truth = 10 ** draw.dice.uniform(1.7, 3.5)
    draw.connections = int(draw.truth * draw.dice.uniform(8, 30))
    burst = int(draw.connections * draw.dice.uniform(0.15, 0.7))
    draw.made = lambda **given: Policed(lasting=draw.truth, burst=burst, **given)
    if draw.placement == "shared":
        draw.given["abilities"] = in_slices().abilities


def _collapse(draw: _Draw) -> None:
    """The device dies of a load, which may be below its rate."""
    dies = draw.capacity * draw.dice.uniform(0.5, 1.5)
    draw.given["collapses_above"] = dies
    draw.truth = min(draw.truth, dies)


def _late_tester(draw: _Draw) -> None:
    """The tester cannot send as fast as it says."""
    ways = 2 if draw.metric in ("throughput", "mlrsearch") else 1
    limit = draw.capacity * draw.dice.uniform(0.5, 1.5)
    draw.given["real_ceiling"] = limit * ways


def _slow_tester(draw: _Draw) -> None:
    """The tester's own highest rate is below that of the device."""
    ways = 2 if draw.metric in ("throughput", "mlrsearch") else 1
    draw.given["ceiling"] = draw.capacity * draw.dice.uniform(0.3, 0.9) * ways


def _delay(draw: _Draw) -> None:
    """The device delays each frame by more than the time limit."""
    draw.placement = draw.given["placement"] = "isolated"
    draw.made = Delaying


def _little_time(draw: _Draw) -> None:
    """The time is over before the search is."""
    draw.asked["most_seconds"] = draw.dice.choice((20.0, 40.0, 60.0))


def _small_table(draw: _Draw) -> None:
    """The table holds fewer connections than are opened."""
    draw.given |= {"table_size": int(draw.connections * draw.dice.uniform(0.2, 0.95)),
                   "knows_limit": draw.dice.random() < 0.5}  # fmt: skip
    draw.truth = 0.0


Kind = Callable[[_Draw], None]
_RATES: Final = frozenset(_METRICS) - {"table-capacity"}
_PHASE1: Final = frozenset({"connection-rate", "transaction-rate"})
#: Kinds of gateways, and the metrics for which the simulation can make them.
KINDS: Final[Mapping[str, tuple[Kind, frozenset[str]]]] = {
    "plain": (_plain, frozenset(_METRICS)),
    "noise": (_noise, frozenset(_METRICS)),
    "rare loss": (_rare, frozenset(_METRICS)),
    "disturbed": (_disturbed, frozenset(_METRICS)),
    "queue": (_queue, frozenset(_METRICS)),
    "tolerance": (_tolerance, _RATES - {"mlrsearch"}),
    "loss at every rate": (_share, frozenset(_METRICS) - {"resolution-rate"}),
    "bucket": (_bucket, _PHASE1),
    "slow bucket": (_slow_bucket, _PHASE1),
    "collapse": (_collapse, _RATES),
    "late tester": (_late_tester, _RATES),
    "slow tester": (_slow_tester, _RATES),
    "delay": (_delay, _RATES - {"resolution-rate"}),
    "little time": (_little_time, _RATES),
    "small table": (_small_table, _PHASE1),
}


def drawn(seed: int, number: int) -> Drawn:
    """Return gateway `number` of a seed; the same numbers give the same gateway."""
    dice = random.Random(f"{seed} {number}")  # noqa: S311 - a simulation
    kind = dice.choice(list(KINDS))
    make, metrics = KINDS[kind]
    metric = dice.choice([one for one in _METRICS if one in metrics])
    placement: Placement = dice.choice(("isolated", "isolated", "shared"))
    capacity, connections = 10 ** dice.uniform(4.3, 6.2), int(10 ** dice.uniform(3.7, 5.3))
    draw = _Draw(dice, metric, placement, capacity, connections, truth=capacity)
    draw.given = {"establishes": capacity, "forwards": capacity, "placement": placement, "seed": dice.randrange(10**6)}
    draw.asked = {"repeat": dice.choice((1, 3, 4))}
    if dice.random() < 0.25:
        draw.asked["profile"] = "quick"
    _of_metric(draw)
    make(draw)
    name = "throughput" if metric == "mlrsearch" else metric
    return Drawn(kind, name, draw.made(**draw.given), draw.truth, draw.noise, draw.connections, draw.asked)


def _of_metric(draw: _Draw) -> None:
    """What a metric needs of its gateway, and its truth."""
    dice = draw.dice
    if draw.metric in ("connection-rate", "validated-connection-rate", "transaction-rate"):
        draw.given["forwards"] = draw.capacity * dice.choice((2, 5))
    if draw.metric == "resolution-rate":
        draw.given |= {"abilities": frozenset({Ability.QUERIES}), "establishes": draw.capacity * dice.choice((1, 2))}
    if draw.metric == "mlrsearch":
        draw.asked |= {"search": "mlrsearch", "goals": dice.choice(("rfc2544", "ndr-pdr"))}
    if draw.metric == "table-capacity":
        size = int(10 ** dice.uniform(3, 4.8))
        draw.truth, draw.connections = float(size), int(size * dice.uniform(1.1, 8))
        draw.given |= {"table_size": size, "knows_limit": dice.random() < 0.4, "knows_count": dice.random() < 0.7,
                       "when_full": dice.choice(("refuse", "refuse", "evict"))}  # fmt: skip
