# SPDX-License-Identifier: Apache-2.0
"""A full table in a sentence: how many connections were refused, and how many working ones thrown out."""

from __future__ import annotations

import pytest

from natgauge.causes.full_table import FullTable


@pytest.mark.parametrize(
    ("table", "thrown_out", "numbers"),
    [
        (
            FullTable(19_968, 18_731, 16_384, {"early_drop": 4585, "drop": 2305, "insert_failed": 0}),
            2347,
            "1,237 2,347",
        ),
        (FullTable(20_000, 16_384, 16_384, {"drop": 3616}), 0, "3,616"),
        (FullTable(20_000, 20_000, 16_384, {}), 3616, "3,616"),
        (FullTable(10, 10, 12, {}), 0, ""),
    ],
)
def test_refused_and_thrown_out_connections_are_told_apart(table: FullTable, thrown_out: int, numbers: str) -> None:
    assert table.thrown_out == thrown_out
    text = str(table)
    assert all(number in text for number in numbers.split())
    assert "insert_failed" not in text
