# SPDX-License-Identifier: Apache-2.0
"""The picture of README.md and the page on costs have the figures of the page of the runs."""

from __future__ import annotations

import re

from tools.cost_picture import PICTURE, ROOT, costs, drawn, more


def test_the_picture_is_that_of_the_stored_runs() -> None:
    assert PICTURE.read_text(encoding="utf-8") == drawn(costs())


def test_the_page_on_costs_has_the_ratios_of_the_stored_runs() -> None:
    page = (ROOT / "docs" / "what-gateways-cost.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `([a-z0-9-]+)`[^|]*\| (\+\d+ %|\d+ times) \| (\+\d+ %) \| (\+\d+ %) \|$", page, re.MULTILINE
    )
    assert {name: tuple(ratios) for name, *ratios in rows} == {
        name: tuple(map(more, cost)) for name, cost in costs().items() if name != "nftables-nat44"
    }


def test_a_ratio_from_two_on_is_a_number_of_times() -> None:
    assert [more(ratio) for ratio in (1.119, 1.444, 20.08)] == ["+12 %", "+44 %", "20 times"]
