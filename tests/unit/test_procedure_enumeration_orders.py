# SPDX-License-Identifier: Apache-2.0
"""The comparison of orders of enumeration (RFC 9693 section 4.4) against arithmetic and a simulated gateway."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from tests import simulated_lab
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

from natgauge.errors import BrokenError, UsageError
from natgauge.procedures.kit.measure.draws import expected_connections, expected_new

N = 100_000
#: N four tuples.
SPACE = {"source_ports": "1024-51023", "destination_ports": "1-2"}


def measure(truth: Gateway | None = None, /, **others: Any) -> Any:
    return simulated_lab.measure("enumeration-orders", truth, **{"connections": N, **SPACE, **others}).result


def test_as_many_draws_as_four_tuples_hit_63_percent_and_end_with_37_percent_new_ones() -> None:
    assert expected_connections(4_000_000, 4_000_000) / 4_000_000 == pytest.approx(1 - 1 / math.e, abs=1e-6)
    assert expected_new(4_000_000, 4_000_000) == pytest.approx(1 / math.e, abs=1e-6)
    assert expected_connections(10, 1) == 1
    assert expected_connections(1, 10) == pytest.approx(1)


def test_the_expectation_is_what_draws_come_to() -> None:
    chance = random.Random(7)  # noqa: S311 - a simulation
    drawn = {chance.randrange(20_000) for _ in range(30_000)}
    assert len(drawn) == pytest.approx(expected_connections(30_000, 20_000), rel=0.01)


def test_each_order_has_its_rate_and_its_connections(golden: Golden) -> None:
    result = measure(Gateway(establishes=3e5))
    assert result.median == pytest.approx(63.2, abs=0.1)
    assert result.figures["ending_new_percent"].median == pytest.approx(100 * math.exp(-0.99), abs=0.5)
    for order in ("permutation", "increasing", "decreasing"):
        assert result.figures[f"created_percent_{order}"].median == 100
        assert result.figures[f"rate_{order}"].median == pytest.approx(3e5, rel=0.011)
    (rows,) = (one.series for one in result.repetitions)
    assert [row["order"] for row in rows] == ["permutation", "increasing", "decreasing", "with-replacement"]
    golden(result.notes)


def test_a_larger_space_is_hit_twice_less_often() -> None:
    assert measure(Gateway(four_tuples=4 * N), destination_ports="1-8").median == pytest.approx(88.5, abs=0.1)


def test_more_draws_than_four_tuples_open_nearly_all_of_them(golden: Golden) -> None:
    """The third column of Table 23 of Lencse, Shima, Cho: ten draws for each four tuple."""
    gateway = Gateway(establishes=3e5, table_size=N + 1000)
    result = measure(gateway, draws=10 * N)
    (rows,) = (one.series for one in result.repetitions)
    named = {row["order"]: row for row in rows}
    figures = ("frames", "connections", "connections_expected")
    assert [named["permutation"][name] for name in figures] == [N, N, N]
    assert [named["with-replacement"][name] for name in figures] == pytest.approx([10 * N, 99_995, 99_995.46], abs=1)
    assert result.figures["rate_with_replacement"].median == pytest.approx(3e5, rel=0.011)
    assert result.figures["ending_new_percent"].median == pytest.approx(100 * math.exp(-9.9), abs=0.003)
    drawn = {plan.connections for plan in gateway.plans if plan.order == "with-replacement"}
    assert drawn == {10 * N, 10 * N - N // 5}
    golden(result.notes)


def test_connections_of_draws_that_the_device_does_not_count_are_no_figure(golden: Golden) -> None:
    with golden.raises(BrokenError):
        measure(gateway=simulated_lab.ROUTING)


def test_a_table_too_small_is_told(golden: Golden) -> None:
    with golden.raises(BrokenError):
        measure(Gateway(table_size=N // 2))


def test_bad_settings_are_refused_in_one_line(golden: Golden) -> None:
    with golden.raises(UsageError):
        measure(draws=0)
