# SPDX-License-Identifier: Apache-2.0
"""The cost of a frame beside plain forwarding, on simulated gateways whose costs are known, on a host that changes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_settings import alone
from tests.unit.simulated import FORWARDING_NS, TESTER_NS, Gateway, in_slices

from natgauge.errors import BrokenError, UsageError

LOST = "up: 511 of 512 frames came back"
#: Frames that come before a slice of new connections.
LEAD_FRAMES = 64


def measured(gateway: Gateway, **more: Any) -> Any:
    return alone("cost", gateway, **{"connections": 100_000, **more})


def gateway(**more: Any) -> Gateway:
    """2,500 ns for a new connection, 2,000 ns for a frame up, and 1,600 ns down."""
    return in_slices(**{"establishes": 4e5, "forwards": 5e5, "forwards_down": 6.25e5, "slice_noise": 0.05, **more})


@pytest.mark.parametrize("seed", range(1, 6))
def test_the_ratio_to_forwarding_is_found_though_the_host_changes_from_block_to_block(seed: int) -> None:
    found = measured(gateway(seed=seed), repeat=3)
    forwarding = FORWARDING_NS - TESTER_NS
    for quantity, cost in (("new", 2500.0), ("up", 2000.0), ("down", 1600.0)):
        share = (cost - TESTER_NS) / forwarding
        assert found.figures[f"{quantity}_ratio_to_forwarding"].median == pytest.approx(share, rel=0.05)
        assert found.figures[f"{quantity}_ratio_low"].median < found.figures[f"{quantity}_ratio_high"].median
    held = [
        one.figures["up_ratio_low"] <= (2000.0 - TESTER_NS) / forwarding <= one.figures["up_ratio_high"]
        for one in found.measurements
    ]
    assert sum(held) >= len(held) - 1


def test_nanoseconds_are_the_devices_own_and_the_testers_stand_beside() -> None:
    found = measured(gateway(slice_noise=0.0))
    assert found.figures["up_ns"].median == pytest.approx(2000.0 - TESTER_NS)
    assert found.figures["up_tester_ns"].median == pytest.approx(TESTER_NS)
    assert found.figures["up_forwarding_ns"].median == pytest.approx(FORWARDING_NS - TESTER_NS)
    rows = found.measurements[0].series
    assert [row["frames"] for row in rows] == ["new", "up", "down", "both"]
    assert rows[1]["device_ns"] == pytest.approx(2000.0 - TESTER_NS)


@pytest.mark.parametrize(("asked", "value"), [("new,up", "up"), ("new", "new"), ("both,new", "both"), (None, "both")])
def test_the_value_is_that_of_the_last_quantity_asked_for(asked: str | None, value: str) -> None:
    found = measured(gateway(), quantities=asked)
    assert found.summary.median == found.figures[f"{value}_ratio_to_forwarding"].median
    assert (found.unit, found.limited_by) == ("x forwarding", "device")


def test_each_round_has_another_order_of_visits_and_new_connections_fit_into_n() -> None:
    device, another = gateway(), gateway(seed=1_000)
    measured(device, connections=5_000, repeat=2, rounds=3)
    measured(another, connections=5_000, rounds=3)
    # Seen: all repetitions and cells of campaigns, and all runs, had the same orders.
    assert len({plan.seed for plan in (*device.rounds, *another.rounds)}) == 9
    for plan in device.rounds:
        assert not plan.alone
        assert 0 < plan.blocks["new"] * 2 * (LEAD_FRAMES + plan.frames) <= 5_000


@pytest.mark.parametrize(
    ("faults", "more"),
    [([{0: LOST}] * 3, {}), ([{1: LOST}] * 3, {}), ([{2: LOST}] * 3, {})]
    # Seen: it went on for ever, for no place was void in three rounds in a row.
    + [([{number % 3: LOST} for number in range(1000)], {"rounds": rounds}) for rounds in (3, 20)],
    ids=["the device", "forwarding", "the cable", "each in turn, 3 rounds", "each in turn, 20 rounds"],
)
def test_places_that_stay_void_end_a_cost_in_one_line(
    faults: list[dict[int, str]], more: dict[str, int], golden: Golden
) -> None:
    """Of a place beside the device, the device is not to blame."""
    device = gateway(faults=faults)
    with golden.raises(BrokenError) as caught:
        measured(device, **more)
    assert "\n" not in str(caught.value)
    assert len(device.rounds) == (9 if more else 3)


def test_a_void_round_is_repeated_and_told(golden: Golden) -> None:
    device = gateway(faults=[{0: LOST}])
    found = measured(device, rounds=3)
    assert len(device.rounds) == 4
    golden(found.notes)


def test_a_lost_frame_at_each_place_in_turn_ends_nothing_and_is_no_part_of_the_figures(golden: Golden) -> None:
    """Seen: three void rounds in a row ended a cost although no place was void twice."""
    disturbed, quiet = gateway(faults=[{place: "up: 1 of 2 frames came back"} for place in range(3)]), gateway()
    found = measured(disturbed, rounds=3)
    assert len(disturbed.rounds) == 6
    said = {note.text for note in found.notes if "is void" in note.text}
    golden(said)
    later = measured(quiet, repeat=2, rounds=3).measurements[1]
    for name in ("both_ratio_to_forwarding", "both_ratio_low", "both_ratio_high"):
        assert found.measurements[0].figures[name] == later.figures[name]


def test_a_cost_takes_at_most_twice_the_rounds_that_were_asked_for() -> None:
    device = gateway(faults=[{number // 2 % 3: "lost"} if number % 2 else {} for number in range(1000)])
    found = measured(device, rounds=20)
    assert len(device.rounds) == 39
    assert found.summary.median > 0


def without_work(place: int) -> Gateway:
    """In the second round this place takes as long as the cable: 0 the device, 1 forwarding."""

    def takes(number: int, work: tuple[float, float, float]) -> tuple[float, ...]:
        return tuple(work[2] if at == place and number == 2 else each for at, each in enumerate(work))

    return in_slices(establishes=4e5, forwards=5e5, takes=takes)


def test_a_round_in_which_forwarding_has_no_work_above_the_testers_own_has_no_cost_and_that_is_one_line(
    golden: Golden,
) -> None:
    with golden.raises(BrokenError) as caught:
        measured(without_work(1))
    assert "\n" not in str(caught.value)


def test_a_round_in_which_the_device_has_none_gives_a_bound() -> None:
    found = measured(without_work(0))
    assert found.limited_by == "tester"
    assert found.figures["both_ratio_low"].median == 0.0
    assert (
        found.figures["both_ratio_high"].median
        == found.summary.median
        > found.figures["both_ratio_to_forwarding"].median
    )


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_device_as_cheap_as_the_cable_costs_at_most_what_noise_hides(seed: int, golden: Golden) -> None:
    rate = 1e9 / TESTER_NS
    found = measured(gateway(establishes=rate, forwards=rate, forwards_down=rate, seed=seed), quantities="up")
    # Slices differ by 5 %, so a median of many blocks by far less than a tenth of plain forwarding.
    assert 0 < found.summary.median < 0.1
    assert (found.limited_by, found.figures["up_ratio_low"].median) == ("tester", 0.0)
    (note,) = (note.text for note in found.notes if "does not show above the tester's own" in note.text)
    golden(note)


def test_between_two_families_forwarding_is_the_mean_and_the_interval_holds_either_cable(golden: Golden) -> None:
    """Between IPv6 and IPv4 it has plain forwarding and a cable of each, 200 ns apart."""

    def takes(_number: int, work: tuple[float, float, float]) -> tuple[float, ...]:
        device, forwarding, cable = work
        return device, forwarding + 100, forwarding - 100, cable + 100, cable - 100

    device = in_slices(forwards=5e5, takes=takes)
    found = measured(device, quantities="up")
    forwarding, own = FORWARDING_NS - TESTER_NS, 2000.0 - TESTER_NS
    figures = {name: summary.median for name, summary in found.figures.items()}
    assert figures["up_ratio_to_forwarding"] == pytest.approx(own / forwarding)
    assert (figures["up_ratio_low"], figures["up_ratio_high"]) == pytest.approx(
        ((own - 100) / forwarding, (own + 100) / forwarding)
    )
    assert (figures["up_ns"], figures["up_tester_ns"]) == pytest.approx((own, TESTER_NS))
    assert figures["up_forwarding_ns"] == pytest.approx(forwarding)
    golden(found.notes)


def test_few_connections_leave_new_ones_out_and_say_so(golden: Golden) -> None:
    found = measured(gateway(), connections=1_000, repeat=3)
    assert "new_ns" not in found.figures
    golden(found.notes)
    with golden.raises(UsageError):
        measured(gateway(), connections=1_151, quantities="new")


def test_a_tester_that_cannot_time_frames_is_refused(golden: Golden) -> None:
    with golden.raises(UsageError):
        measured(Gateway(placement="shared"))
