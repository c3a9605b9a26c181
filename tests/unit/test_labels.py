# SPDX-License-Identifier: Apache-2.0
"""Results of one gateway are named by what their records differ in, whatever that is."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.made_results import made

from natgauge.records.measurement import Result
from natgauge.records.parameters import describe
from natgauge.reports.answers import answers
from natgauge.reports.labels import names_of, point_of


def of(gateway: str = "x", **parameters: Any) -> Result:
    return made([100.0], parameters={"gateway": gateway, "connections": 1000, **parameters})


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("device_cores", (1, 2), ("1 core", "2 cores")),
        ("order", ("permutation", "increasing"), ("permutation", "increasing")),
        ("source_address_count", (1, 64), ("1", "64")),
        ("frame_size", (64, 1518), ("64 octets", "1,518 octets")),
        ("down_share", (0.5, 0.25), ("50 %", "25 %")),
        ("an_input_of_tomorrow", ("old", "new"), ("old", "new")),
    ],
)
def test_any_input_in_which_results_differ_names_them(
    name: str, values: tuple[Any, Any], words: tuple[str, str]
) -> None:
    results = [of(**{name: value}) for value in values]
    for named, word in zip(names_of(results), words, strict=True):
        assert named.startswith("x, ")
        assert word in named
        assert "run" not in named
    sentences = " ".join(one.text for one in answers(results))
    assert all(word in sentences for word in words)


def test_results_that_differ_in_nothing_are_numbered_as_runs() -> None:
    results = [of(), of(), of("y")]
    assert names_of(results) == ["x, run 1", "x, run 2", "y"]
    assert [point_of(result, results) for result in results] == ["run 1", "run 2", ""]


def test_what_grows_with_an_axis_is_named_only_where_it_also_differs_without_it() -> None:
    grown = [of(connections=count, table_size=2 * count) for count in (1000, 2000)]
    assert names_of(grown) == ["x, 1,000 connections", "x, 2,000 connections"]
    both = [*grown, of(connections=2000, table_size=9000)]
    label = describe("table_size").label
    assert all(label in name for name in names_of(both)[1:])
    assert len(set(names_of(both))) == len(both)


def test_facts_of_the_host_name_results_only_where_no_input_does() -> None:
    assert "kernel" not in " ".join(names_of([of(kernel="6.1", alpha=1), of(kernel="6.2", alpha=2)]))
    assert "6.2" in names_of([of(kernel="6.1"), of(kernel="6.2")])[1]


def test_settings_of_different_gateways_are_not_named() -> None:
    assert names_of([of("x", hash_size=1), of("y", hash_size=2)]) == ["x", "y"]
