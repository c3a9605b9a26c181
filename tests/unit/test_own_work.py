# SPDX-License-Identifier: Apache-2.0
"""In `shared` placement the tester's own work is in each rate: they say how much; shares of forwarding are bounds."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.simulated_lab import measure
from tests.unit.conftest import Reported
from tests.unit.golden import Golden
from tests.unit.made_results import made
from tests.unit.pages import tables_of, words_of
from tests.unit.simulated import Gateway

from natgauge import Result

#: The tester's highest rate in frames/s in all directions together.
TOP = 6.5e6
TOPS = {"tester_highest_phase1_rate": 5e6, "tester_highest_phase2_rate": TOP, "sender_cores": 1}
OWN = "tester's own work in the rate"


def cells(name: str, said: Any) -> list[Any]:
    """A row of a report; empty where no result has a value."""
    return next((row["cells"] for row in said["table"]["rows"] if row["row"] == name), [])


def doubts(said: Any) -> dict[str, str]:
    return {one["word"]: one["text"] for one in said["doubts"]}


@pytest.mark.parametrize(
    ("metric", "asked", "truth"),
    [
        ("throughput", {"directions": "both"}, {"forwards": 360_000.0}),
        ("throughput", {"directions": "up"}, {"forwards": 1_675_471.0}),
        ("connection-rate", {}, {"establishes": 500_000.0}),
    ],
)
def test_a_shared_rate_says_what_of_it_is_the_testers_own_work(
    metric: str, asked: dict[str, Any], truth: dict[str, Any], golden: Golden, reported: Reported
) -> None:
    gateway = Gateway(placement="shared", ceiling=TOP, **truth)
    measured = measure(metric, gateway, connections=100_000, **asked)
    (note,) = (note for note in measured.document["notes"] if note["word"] == "tester")
    assert note["value"] == pytest.approx(measured.median * (2 if asked == {"directions": "both"} else 1) / TOP)
    assert cells(OWN, reported(measured.result)) == [pytest.approx(100 * note["value"])]
    golden([note["text"], *re.findall(r"\(the tester's own work.*?\)", measured.said)])


def test_the_testers_work_is_that_of_the_frames_of_the_rate(reported: Reported) -> None:
    """The tester opens connections at another highest rate than it sends frames."""
    opened = made([500_000.0] * 2, metric="connection-rate", unit="connections/s", parameters=TOPS)
    sent = made([360_000.0] * 2, figures={"frames_per_second_total": 720_000.0}, parameters=TOPS)
    assert cells(OWN, reported(opened, sent)) == pytest.approx([10.0, 100 * 720_000 / TOP])


@pytest.mark.parametrize(
    ("metric", "given"),
    [
        ("connection-rate", {"placement": "isolated"}),
        ("connection-rate", {"tester_highest_phase1_rate": None}),
        ("expiry", {}),
    ],
)
def test_nothing_is_said_where_the_testers_work_is_elsewhere_or_not_known(
    metric: str, given: dict[str, Any], reported: Reported
) -> None:
    found = made([500_000.0] * 2, metric=metric, unit="connections/s", parameters={**TOPS, **given})
    assert cells("metric", reported(found)) == [metric]
    assert cells(OWN, reported(found)) == []
    assert "own work" not in reported(found, html=True)


def test_a_rate_of_a_device_with_cores_of_its_own_has_no_note_on_the_testers_work() -> None:
    measured = measure("connection-rate", Gateway(establishes=500_000.0, ceiling=TOP), connections=100_000)
    assert measured.document["parameters"]["place"]["tester_highest_phase1_rate"] == TOP
    assert "tester" not in measured.words()
    assert "own work" not in measured.said


@pytest.mark.parametrize(
    ("placement", "rate", "bound"), [("shared", 560.0, "<="), ("isolated", 560.0, ""), ("shared", 1300.0, ">=")]
)
def test_a_share_of_forwarding_that_contains_the_testers_work_is_a_bound(
    placement: str, rate: float, bound: str, golden: Golden, reported: Reported
) -> None:
    """0.56 of plain forwarding was told as exact, where the device's own frames cost 2.5 times as much."""
    forwarding, nat = (
        made([value] * 4, parameters={"gateway": gateway, "kind": kind, "placement": placement})
        for gateway, kind, value in (("linux-ipv4", "routing", 1000.0), ("nat", "nat44", rate))
    )
    said = reported(forwarding, nat)
    value = pytest.approx(rate / 10)
    assert cells("share of plain forwarding", said) == [None, {"bound": bound, "value": value} if bound else value]
    golden(" ".join(one["text"] for one in said["answers"]))


#: As many openings as frames of one direction: of 3 frames, two are over open connections.
MIXED = {"frames_per_second_total": 2e6, "connections_per_second": 1e6}


def mixed(
    metric: str = "mixed-load", figures: dict[str, float] = MIXED, unit: str = "frames/s", **given: Any
) -> Result:
    return made([1e6] * 2, metric=metric, unit=unit, figures=figures, parameters={**TOPS, **given})


def test_the_testers_work_for_openings_is_in_a_rate_of_frames_beside_them(reported: Reported) -> None:
    """A third of the frames was left out, and so was a third of the tester's work."""
    assert cells(OWN, reported(mixed(placement="shared"))) == [pytest.approx(100 * 3e6 / TOP)]
    gateway = Gateway(placement="shared", ceiling=TOP, forwards=1e6, establishes=1e6)
    measured = measure("mixed-load", gateway, connections=100_000)
    frames, openings = (measured.figure(name) for name in MIXED)
    assert openings > 0
    (note,) = (note for note in measured.document["notes"] if note["word"] == "tester")
    assert note["value"] == pytest.approx((frames + openings) / TOP)


@pytest.mark.parametrize(
    ("figures", "transport", "frames", "share"),
    [
        (MIXED, "udp", "3 x 100 ns", "7.50 %"),
        ({**MIXED, "flood_per_second": 5e5}, "udp", "3.5 x 100 ns", "8.75 %"),
        (MIXED, "tcp", "8 x 100 ns", "20 %"),
    ],
)
def test_the_receivers_run_for_each_frame_that_opens_or_closes_a_connection_too(
    figures: dict[str, float], transport: str, frames: str, share: str, reported: Reported
) -> None:
    given: dict[str, Any] = {"placement": "isolated", "device_cores": 4, "receiver_ns": 100.0, "transport": transport}
    text = doubts(reported(mixed("subscribers", figures, "subscribers", **given)))["tester on device cores"]
    assert f"{frames} of 4,000 ns a subscriber: that alone makes the rate {share} too low" in text


def test_a_load_near_the_highest_that_was_tried_is_so_with_its_openings(golden: Golden, reported: Reported) -> None:
    tops: dict[str, Any] = {
        "tester_highest_phase1_rate": None,
        "tester_highest_phase2_rate": None,
        "search_top_phase2_rate": 3.2e6,
    }
    golden(doubts(reported(mixed(placement="external", lab_kind="wire", **tops)))["tester unknown"])


@pytest.mark.parametrize("directions", ["both", None])
@pytest.mark.parametrize(
    ("figures", "given", "limit"),
    [
        # Half of the most frames in each direction.
        ({"frames_per_second_total": 2e6}, {}, "3.25 M"),
        # A third of them, beside as many openings.
        (MIXED, {}, "2.17 M"),
        (MIXED, {"new_rate": 1e6}, "2.75 M"),
        ({**MIXED, "flood_per_second": 5e5}, {}, "2 M"),
    ],
)
def test_the_testers_limit_of_a_mixed_load_is_where_all_its_frames_are_the_testers_most(
    figures: dict[str, float], given: dict[str, Any], limit: str, directions: str | None, reported: Reported
) -> None:
    page = reported(mixed(figures=figures, directions=directions, **given), html=True)
    (drawn, *_) = (rows for rows in tables_of(page, f"Data of {MIXED_LOAD}"))
    assert dict(zip(*([*map(words_of, row)] for row in drawn), strict=True))["tester's own limit"] == limit


#: Title of the figure.
MIXED_LOAD = "Mixed load (frames/s in each direction)"
