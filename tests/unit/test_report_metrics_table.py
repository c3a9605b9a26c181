# SPDX-License-Identifier: Apache-2.0
"""Results at a glance: every one in its place, with the doubts that could change the answer."""

from __future__ import annotations

from tests.unit.made_campaign import rate
from tests.unit.made_results import made

from natgauge.reports.html.metrics_table import Entry, metrics_tables

SERIES = [
    rate(gateway, middle * cores, cores, connections)
    for gateway, middle in (("nat", 1e5), ("linux-ipv4", 3e5))
    for connections in (25_000, 100_000)
    for cores in (2, 1)
]


def test_each_result_stands_where_its_device_and_its_point_meet() -> None:
    (table,) = metrics_tables(SERIES)
    assert table.title == "New connections per second (connections/s)"
    assert table.head == (
        "25,000 connections, 1 core",
        "25,000 connections, 2 cores",
        "100,000 connections, 1 core",
        "100,000 connections, 2 cores",
    )
    assert [gateway for gateway, _ in table.rows] == ["nat", "linux-ipv4"]
    columns = [[[entry.column for entry in place] for place in places] for _, places in table.rows]
    assert columns == [[[2], [1], [4], [3]], [[6], [5], [8], [7]]]


def test_a_median_never_stands_without_its_doubt() -> None:
    wide = made([80.0, 100.0, 110.0], median=100.0, parameters={"gateway": "wide"}, error=1.0)
    coarse = made([99.0, 100.0, 101.0], median=100.0, parameters={"gateway": "coarse"}, error=7.0)
    lone = made([100.0], parameters={"gateway": "lone"}, doubts=[{"word": "drift", "text": "it rose"}])
    (table,) = metrics_tables([wide, coarse, lone, *([lone] * 6)])
    assert table.head == ("median",)
    found = {gateway: places[0] for gateway, places in table.rows}
    assert found["wide"] == (Entry(1, "100", "", "79 to 111 (3 repetitions and the search error)", ()),)
    assert found["coarse"] == (Entry(2, "100.0", "", "± 8.0 % (3 repetitions and the search error)", ()),)
    # Results that nothing tells apart stand beside each other: none is hidden.
    assert found["lone"] == tuple(
        Entry(column, "100", "†", "1 repetition, no interval", ("drift",), f"run {column - 2}")
        for column in range(3, 10)
    )


def test_frames_of_two_families_are_read_beside_each_other_and_sizes_of_one_device_are_not() -> None:
    sizes = [(gateway, size) for gateway in ("nat", "other") for size in (64, 128)]
    results = [made([1.0], parameters={"gateway": gateway, "frame_size": size}) for gateway, size in [*sizes, *sizes]]
    (table,) = metrics_tables(results)
    assert table.head == ("64 octets", "128 octets")
    families = [made([1.0], parameters={"gateway": f"nat-{size}", "frame_size": size}) for size in (64, 84) * 6]
    assert metrics_tables(families)[0].head == ("median",)
