# SPDX-License-Identifier: Apache-2.0
"""What a host that floods takes from the others, of simulated gateways of known truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_settings import stored_alone
from tests.unit.simulated_subscribers import NEW_BOUND, Counting, Flooded, Metered, measure, profile

import natgauge
from natgauge.errors import UsageError


def each_limited() -> Flooded:
    """A gateway whose hosts may open 1,000 connections/s each."""
    return Flooded(opens=1000, per_host=True)


def medians(found: Any) -> dict[str, float]:
    return {name: figure.median for name, figure in found.figures.items()}


def test_with_a_limit_for_each_host_the_others_lose_nothing() -> None:
    found = measure("mixed-load", each_limited(), four_tuples=500_000, new_share=0.05, flood_share=0.9)
    figures = medians(found)
    assert found.summary.median == pytest.approx(10_000, rel=0.006)
    assert figures["load_without_flood"] == pytest.approx(10_000, rel=0.006)
    assert figures["kept_share"] == pytest.approx(1, abs=0.006)
    assert figures["kept_least_share"] <= 1 <= figures["kept_most_share"]
    assert figures["flood_per_second"] == pytest.approx(9 * 1000, rel=0.006)
    assert (figures["new_lost_beside_flood_percent"], figures["frames_lost_beside_flood_percent"]) == (0, 0)
    assert figures["flood_lost_percent"] == pytest.approx(100 * (1 - 1 / 9), rel=0.01)


def test_a_limit_of_all_hosts_together_is_used_up_by_the_flood() -> None:
    found = measure("mixed-load", Flooded(opens=1000), four_tuples=500_000, new_share=0.05, flood_share=0.5)
    figures = medians(found)
    assert found.summary.median == 0
    assert (figures["kept_share"], figures["load_without_flood"] > 9900) == (0, True)
    assert figures["new_lost_beside_flood_percent"] == pytest.approx(50, abs=0.5)


def test_a_table_that_the_flood_fills_has_no_room_for_the_others() -> None:
    chosen: dict[str, Any] = {"connections": 10_000, "four_tuples": 200_000, "new_rate": 1000.0, "flood_share": 0.9}
    found = measure("mixed-load", Flooded(table_size=20_000, carries=100_000), **chosen)
    figures = medians(found)
    # 10,000 entries are left for 20,000 openings in 2 s.
    assert figures["new_lost_beside_flood_percent"] == pytest.approx(50, abs=0.5)
    assert (found.summary.median, found.limited_by) == (0, "table")
    apart = measure("mixed-load", Flooded(table_size=20_000, carries=100_000, per_host=True), **chosen)
    assert medians(apart)["kept_share"] == pytest.approx(1, abs=0.006)


def test_a_flood_that_takes_time_costs_the_others_that_time() -> None:
    truth = Flooded(carries=100_000, counts_openings=True, busy=True)
    found = measure("mixed-load", truth, connections=50_000, four_tuples=200_000, new_rate=1000.0, flood_share=0.9)
    figures = medians(found)
    assert figures["load_without_flood"] == pytest.approx(49_500, rel=0.006)
    assert found.summary.median == pytest.approx(45_000, rel=0.006)
    assert figures["kept_least_share"] <= 45_000 / 49_500 <= figures["kept_most_share"]
    assert figures["kept_most_share"] - figures["kept_least_share"] < 0.025


def test_subscribers_beside_a_flood_are_counted_too(tmp_path: Path) -> None:
    file = profile(tmp_path, *NEW_BOUND)
    found = measure("subscribers", each_limited(), subscriber=file, flood_share=0.8)
    assert found.summary.median == pytest.approx(1000, rel=0.006)
    assert medians(found)["kept_share"] == pytest.approx(1, abs=0.006)
    assert medians(found)["flood_per_second"] == pytest.approx(4000, rel=0.006)


def test_a_host_opens_no_more_than_it_has_four_tuples(golden: Golden) -> None:
    found = measure("mixed-load", each_limited(), four_tuples=150_000, new_share=0.05, flood_share=0.99)
    assert medians(found)["flood_per_second"] == 75_000
    golden([note.text for note in found.notes if note.word in {"search", "method"}])


def test_what_a_flood_alone_lost_is_no_limit_of_the_others() -> None:
    """Its counter made the port pool the bottleneck, so nothing asked whether frames or connections ended it."""
    truth = Counting(opens=1000, per_host=True)
    found = measure("mixed-load", truth, four_tuples=500_000, new_share=0.05, flood_share=0.9)
    assert found.summary.median == pytest.approx(10_000, rel=0.006)
    assert found.limited_by == "new connections"


def test_a_flood_before_devices_whose_subscribers_share_addresses_is_refused(tmp_path: Path) -> None:
    # What is not refused finds no folder for its results, and touches nothing.
    (tmp_path / "file").touch()
    with pytest.raises(UsageError) as refused:
        natgauge.measure("mixed-load", "lw4o6", results=tmp_path / "file", flood_share=0.5)
    assert refused.value.at == "flood_share"


def test_a_load_that_the_tester_ended_leaves_no_least_share_and_a_doubt_says_so(golden: Golden) -> None:
    """0.21 was told as the least share of a device of which nobody knows what it carries without the flood."""
    truth = Flooded(opens=12_000, ceiling=210_000)
    chosen: dict[str, Any] = {"connections": 100_000, "connection_rate": 1e5, "error": "0.5%", "four_tuples": 500_000}
    found = stored_alone("mixed-load", truth, **chosen, new_share=0.05, flood_share=0.5)
    figures = medians(found)
    assert found.limited_by == "new connections"
    assert figures["load_without_flood"] == pytest.approx(100_000)
    assert figures["kept_share"] == pytest.approx(0.2, rel=0.01)
    assert "kept_least_share" not in figures
    assert figures["kept_most_share"] > 0.2
    golden([str(doubt) for doubt in found.doubts if doubt.word == "tester limited"])
    assert {doubt.grade for doubt in found.notes if doubt.word == "tester limited"} == {"interval"}


def test_the_power_beside_a_flood_is_that_of_the_load_that_passes_beside_it() -> None:
    """It was that of the load that passes without it: there the loads are higher."""
    truth = Metered(carries=100_000, counts_openings=True, busy=True)
    found = measure("mixed-load", truth, connections=50_000, four_tuples=200_000, new_rate=1000.0, flood_share=0.9)
    assert medians(found)["load_without_flood"] > found.summary.median
    assert medians(found)["watts"] == pytest.approx(found.summary.median)


def test_half_of_a_load_that_failed_is_no_load_that_passed() -> None:
    """Its trials tell what ended the search; the power of half of the frames was told as that of all."""
    truth = Metered(carries=100_000, counts_openings=True)
    found = measure("mixed-load", truth, connections=50_000, four_tuples=200_000, new_share=0.01)
    (repetition,) = found.measurements
    asides = [each for each in repetition.attempts if each.is_aside]
    assert [each.outcome.verdict for each in asides] == ["FAIL", "PASS"]
    assert {each.load > repetition.value for each in asides} == {True}
    assert medians(found)["watts"] == pytest.approx(found.summary.median + 1000)
    # They are trials all the same.
    assert sum(found.trials.values()) == len(repetition.attempts)
