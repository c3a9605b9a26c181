# SPDX-License-Identifier: Apache-2.0
"""Many results at a glance: every one in its place, with what may be wrong with it, and few ones without a table."""

from __future__ import annotations

import pytest
from tests.unit.made_campaign import rate
from tests.unit.made_results import made

from natgauge.reports.html import charts
from natgauge.reports.html.charts import ChartAxis
from natgauge.reports.html.metrics_table import FEW, Entry, metrics_tables

SERIES = [
    rate(dut, middle * cores, cores, connections)
    for dut, middle in (("nat", 1e5), ("linux-ipv4", 3e5))
    for connections in (25_000, 100_000)
    for cores in (2, 1)
]


def test_each_result_stands_where_its_device_and_its_point_meet() -> None:
    (table,) = metrics_tables(SERIES)
    assert table.title == "connection-rate (connections/s)"
    assert table.head == ("N = 25,000, 1 core", "N = 25,000, 2 cores", "N = 100,000, 1 core", "N = 100,000, 2 cores")
    assert [dut for dut, _ in table.rows] == ["nat", "linux-ipv4"]
    columns = [[[entry.column for entry in place] for place in places] for _, places in table.rows]
    assert columns == [[[2], [1], [4], [3]], [[6], [5], [8], [7]]]


def test_few_results_need_no_table() -> None:
    assert metrics_tables(SERIES[:FEW]) == []


def test_a_median_never_stands_without_its_doubt() -> None:
    wide = made([80.0, 100.0, 110.0], median=100.0, parameters={"dut": "wide"}, error=1.0)
    coarse = made([99.0, 100.0, 101.0], median=100.0, parameters={"dut": "coarse"}, error=7.0)
    lone = made([100.0], parameters={"dut": "lone"}, doubts=[{"word": "single repetition", "text": "there is one"}])
    (table,) = metrics_tables([wide, coarse, lone, *([lone] * FEW)])
    assert table.head == ("median",)
    found = {dut: places[0] for dut, places in table.rows}
    assert found["wide"] == (Entry(1, "100", "±20.0%", 0),)
    assert found["coarse"] == (Entry(2, "100", "±7.0%", 0),)
    # Results that nothing tells apart stand beside each other: none is hidden.
    assert found["lone"] == tuple(Entry(column, "100", "", 1) for column in range(3, 4 + FEW))


def test_frames_of_two_families_are_read_beside_each_other_and_sizes_of_one_device_are_not() -> None:
    sizes = [(dut, size) for dut in ("nat", "other") for size in (64, 128)]
    results = [made([1.0], parameters={"dut": dut, "frame_size": size}) for dut, size in [*sizes, *sizes]]
    (table,) = metrics_tables(results)
    assert table.head == ("64 octets", "128 octets")
    families = [made([1.0], parameters={"dut": f"nat-{size}", "frame_size": size}) for size in (64, 84) * FEW]
    assert metrics_tables(families)[0].head == ("median",)


@pytest.mark.parametrize(("limits", "far"), [([350.0, 1e6], [1e6]), ([1e5, 1e6], [1e5, 1e6]), ([120.0], [])])
def test_a_limit_at_the_edge_stands_beyond_all_that_is_drawn_where_it_is(limits: list[float], far: list[float]) -> None:
    points = [{"label": str(at), "value": 125.0, "tip": ""} for at in range(len(limits))]
    rows = [{"label": str(at), "value": limit, "tip": str(limit)} for at, limit in enumerate(limits)]
    spec = charts.strip(points, points, rows, ChartAxis("rate"), charts.WIDE)
    drawn = [one for layer in spec["layer"] for one in layer["data"]["values"] if "far" in one]
    assert {float(one["tip"]) for one in drawn if one["far"]} == set(far)
    inside = [one["value"] for one in drawn if not one["far"]]
    assert all(one["value"] > max([125.0, *inside]) for one in drawn if one["far"])
    assert inside == [limit for limit in limits if limit not in far]
