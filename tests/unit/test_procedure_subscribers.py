# SPDX-License-Identifier: Apache-2.0
"""Subscribers and mixed load against simulated gateways of known truth."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests import simulated_lab
from tests.plans import OneTrial, PlanOfTrial
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.made_results import kept, made
from tests.unit.simulated import ABLE
from tests.unit.simulated_subscribers import (
    FRAME_BOUND,
    NEW_BOUND,
    Blocks,
    Capped,
    Forgetful,
    Mixed,
    Untold,
    Wide,
    doubts_of,
    engine_needs,
    measure,
    profile,
)

import natgauge
from natgauge.errors import BrokenError, UsageError


def refused(folder: Path, metric: str, gateway: str, choices: Mapping[str, Any]) -> UsageError:
    """The refusal of a measurement; one that is not refused for its choices finds no folder for its results."""
    (folder / "file").touch()
    with pytest.raises(UsageError) as caught:
        natgauge.measure(metric, gateway, results=folder / "file", **choices)
    assert "\n" not in str(caught.value)
    return caught.value


def accepted(folder: Path, metric: str, gateway: str, choices: Mapping[str, Any]) -> bool:
    """Whether the choices of a measurement are not refused."""
    return str(refused(folder, metric, gateway, choices)).startswith("results: cannot write")


def traffic(file: str, **choices: Any) -> dict[str, Any]:
    """What a result says of the traffic of a profile's subscribers."""
    given = {"connection_rate": 1e5, "most_seconds": 60, **choices}
    document = simulated_lab.measure("subscribers", Mixed(opens=100, carries=1000), subscriber=file, **given).document
    found: dict[str, Any] = document["parameters"]["traffic"]
    return found


@pytest.mark.parametrize(
    ("each", "number", "ended"), [(NEW_BOUND, 1000, "new connections"), (FRAME_BOUND, 5000, "frames")]
)
def test_the_kind_of_load_that_ends_it_is_named(
    tmp_path: Path, each: tuple[float, float, float], number: int, ended: str
) -> None:
    file = profile(tmp_path, *each)
    found = measure("subscribers", Mixed(opens=1000, carries=10_000), subscriber=file)
    assert found.summary.median == pytest.approx(number, rel=0.006)
    assert found.summary.median <= number < (found.measurements[0].upper or 0)
    assert found.limited_by == ended
    assert found.figures["connections_per_second"].median == found.summary.median * each[0]
    assert found.figures["frames_per_second_total"].median == found.summary.median * 2


@pytest.mark.parametrize(
    ("forgets", "replied", "down", "entries", "chosen"),
    [
        (60, None, 1, 6, {}),
        # Frames both ways keep an entry for their own time-out.
        (30, 120, 1, 12, {}),
        (30, 120, 0, 3, {}),
        # More than half of the entries are opened in phase 2; phase 1 opened all of them, too.
        (60, None, 1, 6, {"trial_seconds": 40.0, "most_seconds": None}),
    ],
)
def test_a_table_ends_it_by_the_entries_that_its_time_out_makes(
    *, tmp_path: Path, forgets: int, replied: int | None, down: float, entries: int, chosen: dict[str, Any]
) -> None:
    truth = Mixed(table_size=50_000, forgets=forgets, replied=replied)
    found = measure("subscribers", truth, subscriber=profile(tmp_path, 0.1, 1, down), **chosen)
    assert found.summary.median == pytest.approx(50_000 / entries, rel=0.006)
    assert found.limited_by == "table"
    assert found.measurements[0].cause is not None
    assert found.measurements[0].cause.kind == "table"


@pytest.mark.parametrize(("forgets", "held", "entries"), [(120, 43.7, 45.6), (30, 18.1, 20.0), (None, 18.1, None)])
def test_open_connections_are_those_of_the_trials_and_table_entries_those_that_left_as_well(
    tmp_path: Path, forgets: int | None, held: float, entries: float | None
) -> None:
    """Seen: 45.6 open connections of each subscriber, where the trials had 43.7."""
    file = profile(tmp_path, 0.38, 10, 10, connections=20)
    truth = Mixed(opens=100, forgets=forgets)
    found = measure("subscribers", truth, subscriber=file, trial_seconds=5.0)
    number = found.summary.median
    passed = [each.outcome for each in found.measurements[0].attempts if each.load == number and not each.short]
    assert found.figures["open_connections"].median == passed[-1].plan.connections
    assert found.figures["open_connections"].median == pytest.approx(held * number, abs=1)
    if entries is None:
        assert "table_entries" not in found.figures
    else:
        assert found.figures["table_entries"].median == pytest.approx(entries * number, abs=1)


@pytest.mark.parametrize(
    ("new", "down", "forgets", "entries", "opened"),
    [
        (0.38, 10, 30, 45.6, "45.6 that it opens in 120 s"),
        (0.38, 0, 60, 22.8, "22.8 that it opens in 60 s"),
        (0.1, 10, 30, 20, "12 that it opens in 120 s"),
        (0.1, 10, None, None, ""),
        (0.0, 10, 30, None, ""),
    ],
)
def test_how_long_the_device_keeps_what_left_is_told_with_the_entries_that_follow(
    *, tmp_path: Path, new: float, down: float, forgets: int | None, entries: float | None, opened: str
) -> None:
    """Seen: 45.6 and 114 entries of each subscriber, ranked without a word."""
    file = profile(tmp_path, new, 10, down, connections=20)
    truth = Mixed(opens=100, carries=1e5, forgets=forgets, replied=None if forgets is None else 120)
    notes = [note.text for note in measure("subscribers", truth, subscriber=file).notes]
    said = f"each subscriber fills {entries} table entries, the larger of the 20 of its profile and the {opened}: "
    assert [note.startswith(said) for note in notes if "table entries" in note] == [True] * (entries is not None)


@pytest.mark.parametrize(
    ("truth", "connections", "new", "each", "carried", "ended"),
    [
        # A table smaller than the first connections, told or not.
        (Mixed(table_size=3000, forgets=30), 20_000, 0.1, 1, 1000, "table"),
        (Untold(table_size=3000, forgets=30), 20_000, 0.1, 1, 1000, "table"),
        # A limit that is no table.
        (Capped(table_size=2000), 100_000, 0, 1, 2000, "device"),
        # A block that a few subscribers fill.
        (Untold(table_size=128), 100_000, 0, 10, 12, "table"),
    ],
)
def test_what_the_first_connections_do_not_fit_in_is_no_reason_to_carry_nobody(
    *, tmp_path: Path, truth: Mixed, connections: int, new: float, each: int, carried: int, ended: str
) -> None:
    file = profile(tmp_path, new, 1, 1, connections=each)
    chosen: dict[str, Any] = {"connection_rate": None, "trial_seconds": 1.0}
    found = measure("subscribers", truth, connections=connections, subscriber=file, **chosen)
    assert found.summary.median == pytest.approx(carried, rel=0.01)
    assert found.limited_by == ended


@pytest.mark.parametrize("rate", [None, 1e5])
def test_a_table_whose_limit_nobody_told_ends_the_search_as_any_other(
    tmp_path: Path, rate: float | None, golden: Golden
) -> None:
    """The search doubled its loads beyond the table, and ended there with an error."""
    truth = Untold(table_size=3000, forgets=30, knows_limit=False)
    file = profile(tmp_path, 0.1, 1, 1)
    found = measure("subscribers", truth, connections=50_000, subscriber=file, connection_rate=rate, trial_seconds=1.0)
    assert found.summary.median == pytest.approx(1000, rel=0.01)
    assert found.limited_by == "table"
    cause = found.measurements[0].cause
    assert cause is not None
    assert cause.is_doubtful
    # A slower phase 1 was tried at one load, and is of no use at the others.
    slowed = [plan.phase1_rate for plan in truth.plans if plan.phase2 is not None]
    assert sum(each < max(slowed) for each in slowed) <= 4
    golden([note for note in found.measurements[0].notes if note.word == "table inferred"])


def test_a_life_is_searched_below_a_table_whose_limit_nobody_told() -> None:
    truth = Untold(table_size=3000, knows_limit=False)
    found = measure("mixed-load", truth, new_share=0.05, life_seconds=3.0, four_tuples=500_000)
    # 3 s of life and 2 s of openings.
    assert found.figures["connections_per_second"].median == pytest.approx(600, rel=0.01)


#: More connections than the first connection rate is measured with, at every frame rate.
MANY: dict[str, Any] = {"connections": 50_000, "four_tuples": 200_000, "new_rate": 100.0, "connection_rate": None}


def test_a_table_whose_limit_nobody_told_may_be_too_small_for_every_frame_rate() -> None:
    truth = Untold(table_size=20_000, knows_limit=False)
    found = measure("mixed-load", truth, **MANY)
    assert (found.summary.median, found.limited_by) == (0, "table")
    assert len([plan for plan in truth.plans if plan.phase2 is not None]) <= 30


def test_no_lower_frame_rate_is_tried_where_all_have_the_connections_that_cannot_be_opened() -> None:
    def becomes(gateway: Any, plan: PlanOfTrial) -> None:
        gateway.establishes = 1e6 if plan.connections <= 10_000 else 10.0

    truth = Untold(knows_limit=False, becomes=becomes)
    with pytest.raises(BrokenError, match="phase 1 cannot establish"):
        measure("mixed-load", truth, **MANY)
    assert len([plan for plan in truth.plans if plan.phase2 is not None]) == 5


@pytest.mark.parametrize("rate", [None, 1e5])
@pytest.mark.parametrize("room", [12_000, 8000])
def test_a_few_connections_that_clash_at_any_pace_end_the_search_above_those_that_do_not(
    tmp_path: Path, room: int, rate: float | None
) -> None:
    """A source NAT that looks for a free port gives up now and then, long before its ports are used up."""

    def becomes(gateway: Any, plan: PlanOfTrial) -> None:
        lost = 10 + len(gateway.plans) * 7 % 12
        gateway.table_size = plan.connections - lost if plan.connections > room else 2**40

    truth = Untold(knows_limit=False, becomes=becomes)
    found = measure("subscribers", truth, connection_rate=rate, subscriber=profile(tmp_path, 0, 1, 1, connections=10))
    assert found.summary.median == pytest.approx(room / 10, rel=0.006)
    assert found.limited_by == "device"


@pytest.mark.parametrize("lost", [0.01, 0.1])
def test_a_device_that_loses_a_share_at_every_rate_holds_no_number_of_connections(tmp_path: Path, lost: float) -> None:
    truth = Untold(loses_share=lost, knows_limit=False)
    with pytest.raises(BrokenError, match="phase 1 cannot establish"):
        measure("subscribers", truth, subscriber=profile(tmp_path, 0.1, 1, 1))
    assert len(truth.plans) <= 12


@pytest.mark.parametrize("rate", [None, 1e5])
def test_a_small_share_that_is_lost_at_every_rate_is_no_number_of_clashes(tmp_path: Path, rate: float | None) -> None:
    truth = Untold(loses_share=0.001, knows_limit=False)
    found = measure("subscribers", truth, connection_rate=rate, subscriber=profile(tmp_path, 0.1, 1, 1))
    assert found.summary.median == 0
    assert [note for note in found.measurements[0].notes if note.word == "loss at every rate"]
    assert len(truth.plans) <= 20


def test_trials_tell_what_ended_it_where_both_kinds_are_lost(tmp_path: Path) -> None:
    file = profile(tmp_path, 1, 1, 1)
    found = measure("subscribers", Mixed(carries=3000, counts_openings=True), subscriber=file)
    assert found.summary.median == pytest.approx(1000, rel=0.006)
    assert found.limited_by == "frames"


def test_a_device_that_only_gets_late_is_not_said_to_lack_either_kind(tmp_path: Path, golden: Golden) -> None:
    class Busy(Mixed):
        def trial(self, plan: PlanOfTrial) -> OneTrial:
            phase2 = plan.phase2
            if phase2 is not None and phase2.churn is not None:
                # Each opening takes as long as two frames, and all take one core.
                work = 2 * phase2.churn.new_per_second + phase2.initiator_rate + phase2.responder_rate
                self.forwards = phase2.initiator_rate * min(1.0, 2e5 / work)
            return Mixed.trial(self, plan)

    file = profile(tmp_path, 1, 1, 1)
    found = measure("subscribers", Busy(), placement="shared", four_tuples=400_000, subscriber=file)
    assert found.summary.median == pytest.approx(50_000, rel=0.011)
    assert found.limited_by == "device"
    golden([note.text for note in found.notes if note.word == "search"])


def test_more_subscribers_than_there_are_edges_or_addresses_are_refused_with_the_option_that_gives_more(
    tmp_path: Path, golden: Golden
) -> None:
    """Seen: "give more --source-addresses", which devices whose subscribers share addresses refuse."""
    with pytest.raises(UsageError) as caught:
        measure("subscribers", Mixed(addresses=300), subscriber=profile(tmp_path, 0.1, 1, 1), most_subscribers=301)
    assert caught.value.at == "most_subscribers"
    chosen = {"subscriber": "household", "most_subscribers": 11, "connections": 1000}
    for gateway, hosts in (
        ("lw4o6", {"subscribers": 10}),
        ("map-t-br", {"subscribers": 10}),
        ("nftables-nat44", {"subscribers": 10}),
        ("nftables-nat44", {"source_addresses": "10.0.0.2-10.0.0.11"}),
    ):
        golden(str(refused(tmp_path, "subscribers", gateway, {**chosen, **hosts})))
        # As it says.
        more = {"subscribers": 11} if "subscribers" in hosts else {"source_addresses": "10.0.0.2-10.0.0.12"}
        assert accepted(tmp_path, "subscribers", gateway, {**chosen, **more})


def test_a_trial_has_an_address_for_each_of_its_subscribers_and_no_others(tmp_path: Path) -> None:
    truth = Mixed(addresses=300, carries=100 * 200)
    found = measure("subscribers", truth, subscriber=profile(tmp_path, 0.1, 100, 100))
    assert found.summary.median == 100
    attempts = found.measurements[0].attempts
    assert len({each.load for each in attempts}) > 3
    assert [each.outcome.plan.sources for each in attempts] == [each.load for each in attempts]


@pytest.mark.parametrize(
    ("truth", "connections"),
    [(Mixed(addresses=300), 600), (Mixed(addresses=300), 60_000), (Wide(addresses=300), 60_000)],
    ids=["each uses all", "each uses few", "each has more than it needs"],
)
def test_how_few_source_ports_several_addresses_use_is_told(
    tmp_path: Path, truth: Mixed, connections: int, golden: Golden
) -> None:
    """Seen: the ports 1024 to 65535 were reported, where every trial used the first one."""
    file = profile(tmp_path, 0.0, 1, 1, connections=2)
    found = measure("subscribers", truth, connections=connections, subscriber=file)
    told = [note.text for note in found.notes if note.text.startswith("each subscriber had")]
    assert bool(told) == (connections > 600)
    golden(told)


def test_each_address_gets_no_more_connections_than_a_subscriber_has(tmp_path: Path) -> None:
    """All were drawn over all addresses: each of them had too few to show that its block is too small."""
    file = profile(tmp_path, 0.1, 1, 1, connections=300)
    found = measure("subscribers", Blocks(addresses=100), subscriber=file)
    assert found.summary.median == 0
    assert measure("subscribers", Blocks(addresses=100, ports=302), subscriber=file).summary.median == 100


def test_the_first_connection_rate_fills_no_block_that_the_subscribers_leave_room_in(tmp_path: Path) -> None:
    file = profile(tmp_path, 0.1, 1, 1, connections=20)
    truth = Blocks(addresses=20)
    found = measure("subscribers", truth, connections=20_000, connection_rate=None, subscriber=file)
    assert found.summary.median == 20
    assert max(plan.connections for plan in truth.plans) <= 20 * 20


def test_addresses_with_too_few_four_tuples_for_a_subscriber_each_are_refused(tmp_path: Path) -> None:
    file = profile(tmp_path, 0.1, 1, 1, connections=20)
    said = "a subscriber takes 20, each of the 100 of the traffic has 10 four tuples; give at least 2000 connections"
    with pytest.raises(UsageError, match=said) as caught:
        measure("subscribers", Mixed(addresses=100), connections=1000, subscriber=file)
    assert caught.value.at == "connections"
    measure("subscribers", Mixed(addresses=100), connections=2000, subscriber=file)


def test_no_trial_asks_more_of_an_address_than_its_four_tuples(tmp_path: Path) -> None:
    truth = Mixed(addresses=300)
    measure("subscribers", truth, connections=600, subscriber=profile(tmp_path, 0.1, 1, 1))
    planned = [plan for plan in truth.plans if plan.phase2 is not None]
    assert planned
    for plan in planned:
        assert plan.sources is not None
        assert plan.connections + plan.opened_in_phase2 <= 2 * plan.sources


def test_a_device_that_ends_near_the_last_address_is_not_said_to_be_the_tester(tmp_path: Path) -> None:
    truth = Mixed(addresses=300, carries=290 * 200)
    found = measure("subscribers", truth, subscriber=profile(tmp_path, 0.1, 100, 100))
    assert found.summary.median == pytest.approx(290, abs=2)
    assert found.limited_by == "frames"
    assert not [note for note in found.measurements[0].notes if note.word == "tester"]


@pytest.mark.parametrize(
    ("truth", "chosen", "carried"),
    [
        (Mixed(), {"most_subscribers": 100}, 100),
        (Mixed(addresses=300), {"most_subscribers": 100}, 100),
        # Each has an address.
        (Mixed(addresses=300), {}, 300),
        (Mixed(), {"connections": 5000}, 4999),
    ],
)
def test_what_ended_a_search_that_no_device_ended_is_named(
    tmp_path: Path, truth: Mixed, chosen: dict[str, Any], carried: int, golden: Golden
) -> None:
    found = measure("subscribers", truth, subscriber=profile(tmp_path, 0.1, 1, 1), **chosen)
    assert (found.summary.median, found.measurements[0].upper) == (carried, None)
    assert found.limited_by == "ranges"
    golden([note.text for note in found.measurements[0].notes])
    assert {"tester limited", "range limited"} & {doubt.word for doubt in doubts_of(found)} == {"range limited"}


@pytest.mark.parametrize(
    ("new", "forgets", "has_table", "doubted"),
    [(0.1, None, True, True), (0.1, 60, True, False), (0.0, None, True, False), (0.1, None, False, False)],
)
def test_a_time_out_that_nobody_knows_is_a_doubt_about_the_answer(
    tmp_path: Path, new: float, forgets: int | None, *, has_table: bool, doubted: bool
) -> None:
    truth = Mixed(forwards=5000, forgets=forgets, abilities=ABLE if has_table else frozenset())
    found = measure("subscribers", truth, subscriber=profile(tmp_path, new, 1, 1))
    doubts = [doubt for doubt in doubts_of(found) if doubt.word == "time-out unknown"]
    assert [doubt.grade for doubt in doubts] == ["answer"] * doubted


def test_a_profile_without_new_connections_is_a_throughput(tmp_path: Path) -> None:
    found = measure("subscribers", Mixed(forwards=5000), subscriber=profile(tmp_path, 0, 1, 1, connections=3))
    assert found.summary.median == pytest.approx(5000, rel=0.006)
    assert found.limited_by == "frames"


def test_no_trial_opens_more_connections_than_there_are_four_tuples_for(tmp_path: Path) -> None:
    truth = Mixed(forgets=30)
    measure("subscribers", truth, connections=20_000, subscriber=profile(tmp_path, 0.2, 1, 1, connections=2))
    churned = [plan for plan in truth.plans if plan.phase2 is not None and plan.phase2.churn is not None]
    assert churned
    for plan in churned:
        assert plan.phase2 is not None
        assert plan.phase2.churn is not None
        churn = plan.phase2.churn
        assert plan.connections + churn.openings(plan.phase2.seconds) <= 20_000
        assert plan.connections >= engine_needs(churn)


@pytest.mark.parametrize(("up", "down"), [(0.02, 1.0), (0.02, 0.03), (0.02, 0.0)])
def test_no_phase_2_waits_for_a_frame_that_is_due_after_it(tmp_path: Path, up: float, down: float) -> None:
    """Seen: a direction of 0.02 frames/s had a phase 2 of 50 s in place of 2 s, and the openings of 50 s."""
    truth = Mixed()
    found = measure("subscribers", truth, subscriber=profile(tmp_path, 0.0, up, down), most_subscribers=10)
    assert found.summary.median == 10
    phases = [plan.phase2 for plan in truth.plans if plan.phase2 is not None]
    assert phases
    for phase2 in phases:
        assert (phase2.responder_rate > 0) == (down > 0)
        for rate in (phase2.initiator_rate, phase2.responder_rate):
            assert rate == 0 or phase2.frames(rate) / rate <= phase2.seconds + 1e-9


def planned_churn(truth: Mixed) -> list[tuple[int, Any]]:
    """The trials in which connections leave: how many are open, and how they are replaced."""
    phases = [(plan.connections, plan.phase2) for plan in truth.plans if plan.phase2 is not None]
    found = [(number, phase2.churn) for number, phase2 in phases if phase2.churn is not None]
    assert found
    return found


@pytest.mark.parametrize(
    ("metric", "truth", "chosen"),
    [
        ("mixed-load", Mixed(forwards=15_000), {"new_share": 0.0001, "life_seconds": 1.0}),
        ("mixed-load", Mixed(forwards=2_000), {"life_seconds": 0.1}),
        ("mixed-load", Mixed(), {"connections": 10, "four_tuples": 10_000_000}),
        ("subscribers", Mixed(forwards=15), {"subscriber": (1.0, 10.0, 10.0)}),
    ],
)
def test_no_trial_has_fewer_connections_than_the_engine_replaces(
    tmp_path: Path, metric: str, truth: Mixed, chosen: dict[str, Any]
) -> None:
    if "subscriber" in chosen:
        chosen = {"subscriber": profile(tmp_path, *chosen["subscriber"], connections=5)}
    assert measure(metric, truth, **chosen).summary.median > 0
    assert all(number >= engine_needs(churn) for number, churn in planned_churn(truth))


def test_the_open_connections_that_end_a_search_are_named(golden: Golden) -> None:
    found = measure("mixed-load", Mixed(), connections=10, four_tuples=10_000_000)
    (one,) = found.measurements
    assert (one.upper, one.limited_by) == (None, "ranges")
    assert one.figures["connections_per_second"] == pytest.approx(3000)
    golden([note.text for note in one.notes if note.word == "search"])


def test_more_open_connections_than_a_life_has_are_told(golden: Golden) -> None:
    found = measure("mixed-load", Mixed(forwards=15_000), new_share=0.0001, life_seconds=1.0)
    golden([note.text for note in found.measurements[0].notes if note.word == "method"])


@pytest.mark.parametrize(
    ("chosen", "at"),
    [
        ({"connections": 6}, "connections"),
        ({"connections": 6, "new_rate": 100.0}, "connections"),
        ({"connections": 10, "new_rate": 3001.0}, "new_rate"),
    ],
)
def test_open_connections_that_cannot_be_replaced_are_refused_before_anything_starts(
    chosen: dict[str, Any], at: str, tmp_path: Path, golden: Golden
) -> None:
    ports = {"destination_ports": "1-4"}
    error = refused(tmp_path, "mixed-load", "nftables-nat44", {**ports, **chosen})
    assert error.at == at
    golden(str(error))
    # One connection more, or one new connection less, is enough.
    enough = {"connections": 7} if at == "connections" else {"connections": 10, "new_rate": 3000.0}
    assert accepted(tmp_path, "mixed-load", "nftables-nat44", {**ports, **enough})


def test_without_new_connections_any_number_is_open() -> None:
    truth = Mixed(forwards=5000)
    assert measure("mixed-load", truth, connections=2, new_rate=0.0).limited_by == "frames"
    assert {plan.connections for plan in truth.plans} == {2}


@pytest.mark.parametrize(("new", "frames"), [(0.0, 200_000), (1000.0, 190_000), (10_000.0, 100_000)])
def test_new_connections_cost_frames_along_the_surface(new: float, frames: float) -> None:
    class Costly(Mixed):
        def trial(self, plan: PlanOfTrial) -> OneTrial:
            churn = None if plan.phase2 is None else plan.phase2.churn
            self.carries = 200_000.0 - 10 * (0 if churn is None else churn.new_per_second)
            self.forwards = 100_000 if churn is None else 1e9
            return Mixed.trial(self, plan)

    found = measure("mixed-load", Costly(), new_rate=new, connections=50_000, four_tuples=100_000)
    assert 2 * found.summary.median == pytest.approx(frames, rel=0.006)
    assert found.figures["connections_per_second"].median == new
    assert found.limited_by == "frames"


def test_the_testers_highest_load_has_room_for_new_connections_that_do_not_grow_with_it() -> None:
    found = measure("mixed-load", Mixed(forwards=1e9, ceiling=4e6), new_rate=1e6, four_tuples=10_000_000)
    assert (found.summary.median, found.limited_by) == (1.5e6, "tester")


def test_a_life_makes_the_open_connections_follow_the_frames() -> None:
    found = measure("mixed-load", Mixed(opens=1000), new_share=0.05, life_seconds=3.0)
    assert found.figures["connections_per_second"].median == pytest.approx(1000, rel=0.006)
    assert found.figures["open_connections"].median == pytest.approx(3000, rel=0.006)
    assert found.figures["frames_per_second_total"].median == pytest.approx(20_000, rel=0.006)
    assert found.limited_by == "new connections"


def test_refused_openings_are_no_rare_loss_of_the_frames_that_were_not_sent_for_them() -> None:
    """100,000 connections are open, and 200 more of 2,200 are not: the 110 frames to these are no tenth of 9 %."""
    found = measure("mixed-load", Mixed(opens=1000), four_tuples=200_000)
    assert found.summary.median == pytest.approx(50_000, rel=0.006)
    assert found.limited_by == "new connections"
    assert not {note.word for note in found.notes} & {"rare loss", "loss at every rate"}


def test_a_share_that_frames_and_openings_lose_alike_is_lost_at_every_rate() -> None:
    class Lossy(Mixed):
        def trial(self, plan: PlanOfTrial) -> OneTrial:
            phase2 = plan.phase2
            if phase2 is not None and phase2.churn is not None:
                frames = phase2.initiator_rate + phase2.responder_rate
                self.carries = 0.99 * (frames + phase2.churn.new_per_second)
            return Mixed.trial(self, plan)

    found = measure("mixed-load", Lossy(counts_openings=True), four_tuples=200_000)
    (note,) = [note for note in found.notes if note.word == "loss at every rate"]
    assert note.text.startswith("1 % of the frames are lost at every rate")


MANY_OPENINGS: dict[str, Any] = {"new_rate": 1e5, "connections": 100_000, "four_tuples": 1_000_000}


@pytest.mark.parametrize(("opens", "passes"), [(80_000, "50 k"), (20_000, "12.5 k")])
@pytest.mark.parametrize("loses_frames", [False, True])
def test_too_many_new_connections_at_every_frame_rate_are_no_loss_that_no_rate_cures(
    *, opens: int, passes: str, loses_frames: bool, golden: Golden
) -> None:
    """A trial with fewer new connections had passed, and "a loss that no rate cures" was the bottleneck."""

    class Policer(Mixed):
        def trial(self, plan: PlanOfTrial) -> OneTrial:
            phase2 = plan.phase2
            if loses_frames and phase2 is not None and phase2.churn is not None:
                # Those of connections that it did not let in.
                share = min(1.0, self.opens / phase2.churn.new_per_second)
                self.carries = share * (phase2.initiator_rate + phase2.responder_rate)
            return Mixed.trial(self, plan)

    found = measure("mixed-load", Policer(opens=opens), **MANY_OPENINGS)
    (one,) = found.measurements
    assert (found.summary.median, found.limited_by) == (0, "new connections")
    assert not {"connections_per_second", "share_lost_at_every_rate"} & set(found.figures)
    golden([str(note) for note in one.notes])
    assert any(note.text.endswith(f": {passes} passed") for note in one.notes)


@pytest.mark.parametrize("frames", [0.8, 1.0])
def test_openings_of_which_a_share_is_lost_at_any_number_of_them_are_a_loss_at_every_rate(frames: float) -> None:
    class Unlucky(Mixed):
        def trial(self, plan: PlanOfTrial) -> OneTrial:
            phase2 = plan.phase2
            if phase2 is not None and phase2.churn is not None:
                self.opens = 0.8 * phase2.churn.new_per_second
                self.carries = frames * (phase2.initiator_rate + phase2.responder_rate)
            return Mixed.trial(self, plan)

    found = measure("mixed-load", Unlucky(), **MANY_OPENINGS)
    assert found.summary.median == 0
    notes = found.measurements[0].notes
    assert any(note.word == "loss at every rate" for note in notes) == (frames < 1)
    assert not any("too many" in note.text for note in notes)


REFUSED = {
    "an unknown key": "[subscriber]\nconnections = 1\nnew_per_secnd = 1",
    "a word": "[subscriber]\nconnections = 'many'\nnew_per_second = 1",
    "not a number": "[subscriber]\nconnections = nan\nnew_per_second = 1",
    "a truth value": "[subscriber]\nconnections = true\nnew_per_second = 1",
    "below nothing": "[subscriber]\nconnections = 1\nnew_per_second = -1",
    "no connections": "[subscriber]\nnew_per_second = 1",
    "no table": "connections = 1",
    "a list": "subscriber = [1]",
    "another table": "[subscriber]\nconnections = 1\nnew_per_second = 1\n[more]",
    "no TOML": "[subscriber",
    "a life below a round trip": "[subscriber]\nconnections = 0.0001\nnew_per_second = 1",
    "nothing at all": "[subscriber]\nconnections = 1\nnew_per_second = 0",
    "bits without a size": "[subscriber]\nconnections = 1\nnew_per_second = 1\nup_bits_per_second = 100",
    "bits unlike the frames": "[subscriber]\nconnections = 1\nnew_per_second = 1\nup_bits_per_second = 100\n"
    "up_frames_per_second = 10\nup_frame_sizes = 64",
    "sizes without weights": "[subscriber]\nconnections = 1\nnew_per_second = 1\nup_frame_sizes = '64,594'",
    "no sizes": "[subscriber]\nconnections = 1\nnew_per_second = 1\nup_frame_sizes = []",
    "sizes of no size": "[subscriber]\nconnections = 1\nnew_per_second = 1\nup_frame_sizes = [[64, 1]]",
    "a size twice": "[subscriber]\nconnections = 1\nnew_per_second = 1\ndown_frame_sizes = '64:7,64:4'",
    "a size that is too large": "[subscriber]\nconnections = 1\nnew_per_second = 1\ndown_frame_sizes = '64:7,9000:4'",
    "a size that is too small": "[subscriber]\nconnections = 1\nnew_per_second = 1\nup_frame_sizes = [594, 63]",
    "a size that is too small for TCP": "[subscriber]\nconnections = 1\nnew_per_second = 1\ntransport = 'tcp'\n"
    "up_frame_sizes = 87",
    "fewer connections than none": "[subscriber]\nconnections = -20\nnew_per_second = 1",
    "a key twice": "[subscriber]\nconnections = 1\nnew_per_second = 1\nconnections = 2\n",
    "a layer of no bits": "[subscriber]\nconnections = 1\nnew_per_second = 1\nbits = 'wire'",
    "a transport": "[subscriber]\nconnections = 1\nnew_per_second = 1\ntransport = 'SCTP'",
    "more connections than can be multiplied": "[subscriber]\nconnections = 1e308\nnew_per_second = 1",
    "fewer connections than can be divided by": "[subscriber]\nconnections = 1e-300\nnew_per_second = 0\n"
    "up_frames_per_second = 1",
    "fewer frames than can be divided by": "[subscriber]\nconnections = 1\nnew_per_second = 0\n"
    "up_frames_per_second = 1e-310",
    "a layer": "[subscriber]\nconnections = 1\nnew_per_second = 1\nbits = 'ethernet'",
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_profile_that_is_none_is_refused_in_a_line_with_file_and_key(
    tmp_path: Path, golden: Golden, what: str
) -> None:
    path = tmp_path / "profile.toml"
    path.write_text(REFUSED[what])
    error = refused(tmp_path, "subscribers", "nftables-nat44", {"subscriber": str(path)})
    assert error.at == "subscriber"
    golden(str(error).replace(str(tmp_path), ""))


@pytest.mark.parametrize(
    "name", ["", "nobody", "/nowhere/profile.toml", "/dev/zero", "/proc/version", "a" * 5000, "a\0", "a\0.toml"]
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    assert refused(tmp_path, "subscribers", "nftables-nat44", {"subscriber": name}).at == "subscriber"


@pytest.mark.parametrize(
    ("more", "frames"),
    [
        ("up_frame_sizes = 64\ndown_frame_sizes = 64\nup_bits_per_second = 3680\n", 10),
        ("up_frame_sizes = 64\nup_bits_per_second = 3680\nbits = 'wire'\n", 3680 / (8 * 84)),
        # Of a mix those of its mean frame: 7 with 46 and 4 with 576 octets of IP packets.
        ("up_frame_sizes = '64:7,594:4'\nup_bits_per_second = 21_008\n", 11),
    ],
)
def test_bits_are_those_of_packets_or_of_the_wire(tmp_path: Path, more: str, frames: float) -> None:
    file = tmp_path / "profile.toml"
    file.write_text(f"[subscriber]\nconnections = 1\nnew_per_second = 1\n{more}")
    assert traffic(str(file))["subscriber_rates"]["up"] == pytest.approx(frames)


@pytest.mark.parametrize(
    ("sizes", "frames"),
    [
        ("", {"frame_size": 64, "frame_sizes": None}),
        ("up_frame_sizes = 594", {"frame_size": 594, "frame_sizes": None}),
        ("down_frame_sizes = '594'", {"frame_size": 594, "frame_sizes": None}),
        ("up_frame_sizes = '1518:1, 64:7,594:4'", {"frame_sizes": "64:7,594:4,1518:1", "down_frame_sizes": None}),
        ("up_frame_sizes = [64, 1518]", {"frame_sizes": "64:1,1518:1", "down_frame_sizes": None}),
        ("up_frame_sizes = ['64:7', '1518:1']", {"frame_sizes": "64:7,1518:1", "down_frame_sizes": None}),
        ("up_frame_sizes = [594]", {"frame_size": 594, "frame_sizes": None}),
        ("up_frame_sizes = 64\ndown_frame_sizes = 1518", {"frame_sizes": "64:1", "down_frame_sizes": "1518:1"}),
    ],
)
def test_sizes_of_a_profile_are_those_of_the_frames(tmp_path: Path, sizes: str, frames: dict[str, Any]) -> None:
    found = traffic(profile(tmp_path, 1, 1, 1, more=sizes))
    assert {name: found.get(name) for name in frames} == frames


def test_the_profile_decides_transport_and_size_of_the_traffic(tmp_path: Path) -> None:
    sizes = "up_frame_sizes = 594\ndown_frame_sizes = 594\ntransport = 'TCP'\n"
    file = profile(tmp_path, 1, 1, 1, more=sizes)
    found = traffic(file)
    assert (found["transport"], found["frame_size"]) == ("tcp", 594)
    for other in ({"transport": "udp"}, {"frame_size": 128}):
        assert refused(tmp_path, "subscribers", "nftables-nat44", {"subscriber": file, **other}).at in other


@pytest.mark.parametrize(
    ("sizes", "other"),
    [
        ("", {"frame_size": 128}),
        ("", {"frame_sizes": "64:1,1518:1"}),
        ("", {"down_frame_sizes": "1518:1"}),
        ("up_frame_sizes = 594\n", {"frame_sizes": "594:1"}),
        ("up_frame_sizes = 594\n", {"down_frame_sizes": "1518:1"}),
        ("up_frame_sizes = '64:7,594:4'\n", {"frame_size": 594}),
        ("up_frame_sizes = '64:7,594:4'\n", {"frame_sizes": "64:7,594:5"}),
        ("up_frame_sizes = '64:7,594:4'\n", {"down_frame_sizes": "1518:1"}),
        ("up_frame_sizes = 64\ndown_frame_sizes = 1518\n", {"down_frame_sizes": "64:1"}),
    ],
)
def test_no_option_replaces_the_frames_of_the_profile(
    tmp_path: Path, sizes: str, other: dict[str, Any], golden: Golden
) -> None:
    """Seen: mixes replaced the profile's frames, whose bits the result went on to name."""
    file = profile(tmp_path, 1, 1, 1, more=sizes)
    error = refused(tmp_path, "subscribers", "nftables-nat44", {"subscriber": file, **other})
    assert error.at in other
    golden(error)


def test_a_mix_that_is_the_profiles_in_another_form_is_taken(tmp_path: Path) -> None:
    file = profile(tmp_path, 1, 1, 1, more="up_frame_sizes = '64:7,594:4'\n")
    for same in ({"frame_sizes": "594:8, 64:14"}, {"down_frame_sizes": "64:7,594:4"}):
        assert accepted(tmp_path, "subscribers", "nftables-nat44", {"subscriber": file, **same})


def test_connections_that_the_device_forgets_while_they_are_open_are_refused(tmp_path: Path, golden: Golden) -> None:
    file = profile(tmp_path, 0.1, 1, 1, connections=100)
    with pytest.raises(UsageError) as caught:
        measure("subscribers", Mixed(forgets=60), subscriber=file)
    assert caught.value.at == "subscriber"
    golden(str(caught.value).replace(str(tmp_path), ""))


@pytest.mark.parametrize("ways", [(0.5, 0.5), (1.0, 0.0)])
def test_a_connection_with_frames_both_ways_may_be_silent_for_as_long_as_the_device_keeps_such(
    tmp_path: Path, ways: tuple[float, float]
) -> None:
    """Each was measured against the time-out of a connection that had frames one way only."""
    file, truth = profile(tmp_path, 0.02, *ways, connections=2), Mixed(forgets=30, replied=120, carries=1000)
    if ways[1]:
        assert measure("subscribers", truth, subscriber=file).summary.median == pytest.approx(1000, rel=0.006)
        return
    with pytest.raises(UsageError, match=r"without a frame for 60 s, but the device forgets it after 30 s"):
        measure("subscribers", truth, subscriber=file)


def test_subscribers_whose_phase_1_outlasts_the_time_out_end_the_search_above_those_that_passed(
    tmp_path: Path, golden: Golden
) -> None:
    """Loads had passed for a short time, and there was no result."""
    truth = Forgetful(forgets=30)
    found = measure("subscribers", truth, connection_rate=1000.0, subscriber=profile(tmp_path, 0, 1, 1))
    (one,) = found.measurements
    # 500 connections/s for 30 s.
    assert one.value == pytest.approx(15_000, rel=0.006)
    assert one.value < 15_000
    assert (one.upper, one.limited_by) == (None, "time")
    golden([str(note) for note in one.notes])


def test_a_device_that_fails_below_the_subscribers_that_outlast_its_time_out_ends_the_search(tmp_path: Path) -> None:
    truth = Forgetful(forgets=30, forwards=10_000)
    found = measure("subscribers", truth, connection_rate=1000.0, subscriber=profile(tmp_path, 0, 1, 1))
    assert found.summary.median == pytest.approx(10_000, rel=0.006)
    assert (found.measurements[0].upper or 0) > 10_000
    assert found.limited_by == "frames"


def test_the_profile_of_a_carrier_is_measured_with_the_time_outs_of_linux() -> None:
    truth = Mixed(forgets=30, replied=120, carries=2278)
    assert measure("subscribers", truth, subscriber="cgn-snapshot").summary.median == pytest.approx(1000, rel=0.006)


def test_frames_keep_a_connection_that_lives_longer_than_the_time_out(tmp_path: Path) -> None:
    file = profile(tmp_path, 0.01, 10, 10, connections=1)
    assert measure("subscribers", Mixed(forgets=60, forwards=10_000), subscriber=file).limited_by == "frames"


@pytest.mark.parametrize("truth", range(1, 8))
def test_of_few_subscribers_each_number_is_tried_once_or_twice(tmp_path: Path, truth: int) -> None:
    gateway = Mixed(carries=2000 * truth)
    found = measure("subscribers", gateway, subscriber=profile(tmp_path, 1, 1000, 1000, connections=20))
    (one,) = found.measurements
    assert (one.value, one.upper) == (truth, truth + 1)
    assert len(gateway.plans) < 25


def test_the_record_names_what_ended_it_and_the_profile_that_was_meant(tmp_path: Path) -> None:
    file = profile(tmp_path, *NEW_BOUND)
    choices: dict[str, Any] = {"subscriber": file, "connection_rate": 1e5, "connections": 100_000, "repeat": 2}
    measured = simulated_lab.measure("subscribers", Mixed(opens=1000, carries=10_000), **choices)
    assert measured.median == pytest.approx(1000, rel=0.011)
    assert measured.limited_by == "new connections"
    parameters = measured.document["parameters"]
    assert (
        parameters["traffic"]["subscriber_profile"]
        == "1 connections, 1 new/s, 1 frames/s up, 1 down, least frames, udp"
    )
    assert natgauge.Result.model_validate(measured.document).limited_by == "new connections"


@pytest.mark.parametrize(
    ("chosen", "at"),
    [
        ({"udp_timeout": 60}, "subscriber"),
        ({"most_subscribers": 100_000}, "most_subscribers"),
        ({"most_subscribers": 9, "source_addresses": "10.0.0.2-10.0.0.9"}, "most_subscribers"),
        ({"connections": 50, "source_ports": "2000-2049"}, "connections"),
        ({"frame_size": 128, "sized": True}, "frame_size"),
        ({"sizes": 63}, "subscriber"),
        ({"sizes": 3413}, "subscriber"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_starts(tmp_path: Path, chosen: dict[str, Any], at: str) -> None:
    size = chosen.pop("sizes", 64 if chosen.pop("sized", False) else None)
    more = "" if size is None else f"up_frame_sizes = {size}\n"
    file = profile(tmp_path, 0.1, 1, 1, connections=100, more=more)
    assert refused(tmp_path, "subscribers", "nftables-nat44", {"subscriber": file, **chosen}).at == at


def test_the_time_out_of_an_established_connection_is_not_that_of_one_that_was_closed(tmp_path: Path) -> None:
    """Seen: one subscriber was said to take 72,000 connections, those that it opens in an idle time-out of 7200 s."""
    chosen = {"connections": 50_000, "udp_timeout": 7200}
    tcp = profile(tmp_path, 10, 1, 1, connections=10, more="transport = 'tcp'\n")
    assert accepted(tmp_path, "subscribers", "nftables-nat44", {"subscriber": tcp, **chosen})
    udp = profile(tmp_path, 10, 1, 1, connections=10)
    error = str(refused(tmp_path, "subscribers", "nftables-nat44", {"subscriber": udp, **chosen}))
    assert re.search(r"1 subscriber takes \d+, the ranges hold 64512 four tuples", error)


@pytest.mark.parametrize("sizes", ["up_frame_sizes = 64\n", "up_frame_sizes = 594\ndown_frame_sizes = 64\n"])
def test_sizes_of_a_profile_that_the_gateway_cannot_have_are_refused_with_the_file(
    tmp_path: Path, sizes: str, golden: Golden
) -> None:
    """Seen: the refusal named options of frame sizes, which nobody had given."""
    file = profile(tmp_path, 0.1, 1, 1, more=sizes)
    error = refused(tmp_path, "subscribers", "jool-nat64", {"subscriber": file})
    assert error.at == "subscriber"
    golden(str(error).replace(str(tmp_path), ""))
    assert refused(tmp_path, "throughput", "jool-nat64", {"frame_size": 64}).at == "frame_size"


def test_a_table_too_small_for_what_phase_2_opens_is_refused_before_anything_starts(
    tmp_path: Path, golden: Golden
) -> None:
    chosen = {"connections": 100_000, "new_rate": 50_000.0, "destination_ports": "1-20", "table_size": 150_000}
    golden(refused(tmp_path, "mixed-load", "nftables-nat44", chosen))


def test_a_table_with_room_is_not_filled_for_minutes(tmp_path: Path, golden: Golden) -> None:
    truth = Mixed(opens=1000, establishes=1000, forgets=30, table_size=262_144)
    found = measure("subscribers", truth, connection_rate=1000.0, subscriber=profile(tmp_path, *NEW_BOUND))
    assert found.summary.median == pytest.approx(1000, rel=0.006)
    assert found.limited_by == "new connections"
    assert max(plan.connections / plan.phase1_rate for plan in truth.plans) <= 11
    golden([note.text for note in found.measurements[0].notes if note.word == "method"])


@pytest.mark.parametrize("limited_by", ["new connections", "frames"])
def test_a_report_names_the_kind_of_load_before_its_cause(
    limited_by: str, tmp_path: Path, ran: Ran, golden: Golden
) -> None:
    rule = {"kind": "rate limit", "certainty": "seen", "hop": "rules", "frames": 9, "lost": 9}
    for cause in (rule, None):
        once: dict[str, Any] = {
            "value": 1.0,
            "upper": None,
            "error": None,
            "limited_by": limited_by,
            "cause": cause,
            "trials": {"PASS": 1},
            "figures": {},
            "series": [],
        }
        changed: dict[str, Any] = {"limited_by": limited_by, "cause": cause, "repetitions": [once]}
        result = made(metric="subscribers", unit="subscribers", **changed)
        said = ran(["report", str(kept(tmp_path / str(cause is None), result))]).out
        golden([line for line in said.splitlines() if line.startswith("Bottleneck")])


def test_a_trial_too_short_for_a_new_connection_has_none_and_says_so(tmp_path: Path, golden: Golden) -> None:
    truth = Mixed(forwards=50)
    found = measure("subscribers", truth, subscriber=profile(tmp_path, 0.01, 10, 10, connections=5))
    assert found.summary.median == 5
    for plan in truth.plans:
        phase2 = plan.phase2
        if phase2 is not None and phase2.churn is not None:
            assert phase2.churn.openings(phase2.seconds) >= 1
    golden([note.text for note in found.measurements[0].notes if note.word == "method"])
