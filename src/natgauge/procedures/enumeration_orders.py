# SPDX-License-Identifier: Apache-2.0
"""Orders of enumeration compared: what RFC 9693 section 4.4 asks of phase 1, and what happens without it.

Phase 1 must open a new connection with every frame, so its four tuples must all differ: a pseudorandom permutation
does that, and so does counting. Independent random draws do not: of S four tuples, N draws hit S * (1 - (1 - 1/S)^N),
for N = S a share of 1 - 1/e = 63.2 %, and of the last frames only 1/e = 36.8 % open a connection. So the rate that is
measured with draws is a mixture of opening and forwarding.

For each order the connection rate is searched, and a trial at a safe share of it counts the connections that there
really are, by the device's own count. The share of new connections among the last frames of the draws comes from a
second trial with a few frames less and the same seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import get_args

from natgauge.errors import BrokenError
from natgauge.measurer import Measurer, TrialOutcome
from natgauge.procedures import connection_rate
from natgauge.procedures.loaded import Loaded
from natgauge.procedures.preparation import SAFE_SHARE, EstablishingSettings, Preparation
from natgauge.procedures.procedure import Procedure
from natgauge.procedures.progress import Observer, TrialRunner, ignore
from natgauge.procedures.rates import disturbed_note, repeat
from natgauge.procedures.results import Measurement, MeasurementResult, make_result
from natgauge.procedures.settings import RateSettings, about, inner, refuse_unable, whole
from natgauge.words import Order

METRIC = "enumeration-orders"
UNIT = "%"
DRAWN: Order = "with-replacement"
#: The last frames of the draws: enough to count new ones among them, few enough to be the end.
ENDING_SHARE = 0.02


@dataclass(frozen=True, kw_only=True)
class Settings(EstablishingSettings, RateSettings):
    """Settings of the comparison.

    Attributes:
        four_tuples: S, how many there are to draw from; None = as many as connections.
    """

    four_tuples: int | None = field(
        default=None, metadata=about("four tuples there are to draw from; as many as connections when not given")
    )

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        super().__post_init__()
        if self.four_tuples is not None:
            whole("four tuples", self.four_tuples, self.connections, 2**32)

    @property
    def measures_connection_rate(self) -> bool:
        """With each order."""
        return True

    @property
    def space(self) -> int:
        """S."""
        return self.four_tuples or self.connections


def expected_connections(draws: int, space: int) -> float:
    """How many of `space` four tuples so many independent draws hit on average."""
    return -space * math.expm1(draws * math.log1p(-1 / space)) if space > 1 else 1.0


def expected_new(draws: int, space: int) -> float:
    """Probability that the draw after so many others hits a new one."""
    return math.exp(draws * math.log1p(-1 / space)) if space > 1 else 0.0


def run(measurer: Measurer, settings: Settings, observe: Observer = ignore) -> MeasurementResult:
    """Compare the orders; the value is the share of connections that draws with replacement created, in %.

    Raises:
        BrokenError: an order establishes no connections at any rate, or no trial speaks of the device.
        NatgaugeError: a trial could not be run at all.
    """
    refuse_unable(measurer.abilities, METRIC, settings)
    runner = TrialRunner(measurer, METRIC, settings.most_repetitions, observe)
    measurements = repeat(runner, settings.repeat, lambda _: _once(runner, settings, observe))
    created = expected_connections(settings.connections, settings.space) / settings.connections
    ending = expected_new(settings.connections, settings.space)
    note = (
        f"expected of {settings.connections} draws out of {settings.space} four tuples: {created:.1%} create a "
        f"connection, of the last ones {ending:.1%}"
    )
    return make_result(METRIC, UNIT, settings.parameters(), measurements, [note, *disturbed_note(measurements)])


def _once(runner: TrialRunner, settings: Settings, observe: Observer) -> Measurement:
    rows = []
    figures: dict[str, float] = {}
    ready = Loaded(runner, settings, Preparation(1.0, 1.0))
    for order in get_args(Order):
        ordered = replace(settings, order=order)
        rate = _rate(runner.measurer, ordered, observe)
        ready.preparation = Preparation(rate * SAFE_SHARE, rate)
        created = _created(_loaded(ready, ordered, settings.connections))
        name = order.replace("-", "_")
        figures |= {f"rate_{name}": rate, f"created_percent_{name}": 100 * created / settings.connections}
        rows.append({"order": order, "rate": rate, "connections": float(created)})
        if order == DRAWN:
            last = max(1, round(ENDING_SHARE * settings.connections))
            earlier = settings.connections - last
            before = _created(_loaded(ready, ordered, earlier)) if earlier else 0
            figures["ending_new_percent"] = 100 * (created - before) / last
    return ready.measurement(figures["created_percent_with_replacement"], figures=figures, series=rows)


def _loaded(ready: Loaded, settings: Settings, frames: int) -> TrialOutcome:
    rate = ready.preparation.rate
    return ready.must(rate, replace(settings.phase1_plan(rate), connections=frames))


def _created(outcome: TrialOutcome) -> int:
    """Connections there are, by the device's own word where it has one."""
    return outcome.stored if outcome.table_count is None else outcome.table_count


def _rate(measurer: Measurer, settings: Settings, observe: Observer) -> float:
    asked = inner(
        connection_rate.Settings,
        settings,
        error=settings.error,
        loss_verifications=settings.loss_verifications,
        confirm=settings.confirm,
    )
    found = connection_rate.run(measurer, asked, observe)
    if found.summary.median == 0:
        raise BrokenError(f"{METRIC}: order {settings.order}: no connections at any rate: {'; '.join(found.notes)}")
    return found.summary.median


PROCEDURE = Procedure(
    metric=METRIC,
    unit=UNIT,
    summary="connections really created, and rates, with each order of phase 1",
    source="RFC 9693 section 4.4",
    settings=Settings,
    run=run,
)
