# SPDX-License-Identifier: Apache-2.0
"""Metrics beyond rate and throughput, on a real gateway whose truth is known by its settings or by arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks import connection_memory

import natgauge

GATEWAY = "nftables-nat44"
#: Known answers hold these metrics against devices of known truth (`known_answers`); here they are asked as users do.
soak = pytest.mark.soak
whole = pytest.mark.slow("a whole measurement of a large table")


def measure(metric: str, folder: Path, **others: Any) -> natgauge.Result:
    given: dict[str, Any] = {"profile": "quick", "results": folder, "lab_name": "metrics", **others}
    return natgauge.measure(metric, GATEWAY, **given)


@pytest.mark.alone
@pytest.mark.parametrize(
    "connections", [10_000, *(pytest.param(one, marks=[soak, whole]) for one in (100_000, 1_000_000))]
)
def test_the_memory_of_a_connection_is_what_slabinfo_says(connections: int) -> None:
    """Read outside of natgauge before and after the trial; alone, because the caches are those of the whole machine."""
    found = connection_memory.measured(connections, "metrics")
    assert found.natgauge == pytest.approx(found.objects, rel=connection_memory.NEAR), found


@soak
@whole
@pytest.mark.alone
def test_a_full_table_takes_longer_to_empty_than_an_empty_one(tmp_path: Path) -> None:
    found = measure("tear-down-rate", tmp_path, connections=50_000, connection_rate=100_000.0)
    figures = {name: one.median for name, one in found.figures.items()}
    assert figures["full_seconds"] > figures["empty_seconds"] > 0
    assert found.median == pytest.approx(50_000 / figures["difference_seconds"])


def test_latency_stands_beside_the_testers_own(tmp_path: Path) -> None:
    found = measure(
        "latency",
        tmp_path,
        connections=1000,
        connection_rate=50_000.0,
        throughput_rate=20_000.0,
        trial_seconds=0.5,
        loads="100%",
        invalid_repeats=30,
    )
    figures = {name: one.median for name, one in found.figures.items()}
    assert 0 < figures["minimum_us"] <= figures["typical_latency_us"] <= figures["worst_case_latency_us"]
    assert figures["worst_case_latency_us"] <= figures["maximum_us"]
    assert any("the tester's own part" in note.text for note in found.notes)
