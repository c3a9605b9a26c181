# SPDX-License-Identifier: Apache-2.0
"""What a link carries and how often receivers run are counted in frames; of a TCP connection there are several."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.made_results import made

from natgauge.analysis.unit_frames import bits_of_unit, frames_in_all, frames_of, is_of_frames, most_units
from natgauge.figure_text import number
from natgauge.measurements.record import make
from natgauge.metrics import declared
from natgauge.procedures.kit.results import Measurement, make_result
from natgauge.procedures.subscribers import SubscribersSettings
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters
from natgauge.reports.rows import rows
from natgauge.reports.text import table, verdict
from natgauge.words import Verdict

GIGABIT = 1e9 / 8
#: Octets of a frame on the link: preamble and gap are 20 (RFC 5180 appendix A.1).
SYN, ACK, GAP = 78, 70, 20
SIDES = ("initiator", "responder")


#: Frames of 64 octets up and of 1518 down, a mix of both, and nine of ten frames native IPv6.
SHORT_UP = {"mean_frame_octets": {"up": dict.fromkeys(SIDES, 64), "down": dict.fromkeys(SIDES, 1518)}}
MIX = {
    "least_frame_octets": dict.fromkeys(SIDES, 64),
    "mean_frame_octets": dict.fromkeys(("up", "down"), dict.fromkeys(SIDES, 791)),
}
NATIVE = {"foreground_share": 0.1, "initiator_family": "ipv4", "responder_family": "ipv4"}
SOFTWIRE = {"frame_octets": {"initiator": 64, "responder": 104}}
#: What a subscriber takes a second.
RATES = {"up": 100.0, "down": 400.0, "new": 1.0}


def asked(**given: Any) -> Parameters:
    return Parameters.grouped(settings={"link_speeds": [1000, 1000], "placement": "external", **given})


@pytest.mark.parametrize(
    ("metric", "given", "most"),
    [
        ("connection-rate", {"frame_size": 64}, GIGABIT / 84),
        ("connection-rate", {"transport": "tcp", "frame_size": 1518}, GIGABIT / (SYN + ACK + 2 * GAP)),
        (
            "connection-rate",
            {"transport": "tcp", "initiator_family": "ipv6", "responder_family": "ipv4"},
            GIGABIT / (SYN + ACK + 40 + 2 * GAP),
        ),
        (
            "transaction-rate",
            {"transport": "tcp", "close": "fin", "request_octets": 0},
            GIGABIT / (SYN + 3 * ACK + 4 * GAP),
        ),
        (
            "transaction-rate",
            {"transport": "tcp", "close": "rst", "request_octets": 1000},
            GIGABIT / (SYN + ACK + 1000 + ACK + 3 * GAP),
        ),
        ("resolution-rate", {"query": "aaaa", "frame_size": 114}, GIGABIT / (114 + 28 + GAP)),
        ("resolution-rate", {"query": "a", "frame_size": 114}, GIGABIT / (114 + 16 + GAP)),
        ("throughput", {"directions": "both", "frame_size": 64}, GIGABIT / 84),
        ("throughput", {"directions": "both", "down_share": 0.8, "frame_size": 64}, GIGABIT / 84 / 1.6),
        ("throughput", {"directions": "up", **SHORT_UP}, GIGABIT / 84),
        ("throughput", {"directions": "both", **SHORT_UP}, GIGABIT / (1518 + GAP)),
        ("throughput", {"directions": "both", "frame_size": 64, "modifiers": "broadcast"}, 0.99 * GIGABIT / 84),
        ("throughput", {"directions": "both", "frame_size": 64, **NATIVE}, GIGABIT / (0.1 * 84 + 0.9 * 104)),
        # The B4 element's outer frames have 104 octets, native ones 84.
        ("throughput", {"directions": "both", **SOFTWIRE, **NATIVE}, GIGABIT / (0.1 * 124 + 0.9 * 104)),
        ("mixed-load", {"frame_size": 64}, GIGABIT / (84 + 0.02 * 84)),
        ("mixed-load", {"frame_size": 64, "new_share": 0.25}, GIGABIT / (84 + 0.5 * 84)),
        ("mixed-load", {"frame_size": 64, "new_rate": 200_000.0}, GIGABIT / 84 - 200_000),
        ("mixed-load", {"new_rate": 0.0, **SHORT_UP}, GIGABIT / (1518 + GAP)),
        # Connections are opened by the shortest frames.
        ("mixed-load", {"new_rate": 1e5, **MIX}, (GIGABIT - 1e5 * 84) / (791 + GAP)),
        (
            "mixed-load",
            {"new_rate": 1e5, "transport": "tcp", "frame_size": 88},
            (GIGABIT - 1e5 * (SYN + 3 * ACK + 4 * GAP)) / (88 + GAP),
        ),
        ("subscribers", {"frame_size": 64, "subscriber_rates": RATES}, GIGABIT / (400 * 84)),
        ("subscribers", {"frame_size": 64, "subscriber_rates": {**RATES, "new": 350.0}}, GIGABIT / (450 * 84)),
        ("subscribers", {"frame_size": 64}, None),
        ("tear-down-rate", {"tear_down_by": "rst", "transport": "tcp"}, GIGABIT / (ACK + GAP)),
        ("tear-down-rate", {"tear_down_by": "command"}, None),
        ("latency", {"frame_size": 64}, None),
        ("connection-rate", {}, None),
        # Of a record of a stranger one side may be missing.
        ("throughput", {"directions": "both", "frame_octets": {"responder": 64}, **NATIVE}, None),
    ],
)
def test_a_link_carries_so_many(metric: str, given: dict[str, Any], most: float | None) -> None:
    found = most_units(metric, asked(**given))
    assert found == (None if most is None else pytest.approx(most))


@pytest.mark.parametrize(
    ("metric", "given", "wire", "way"),
    [
        ("mixed-load", SHORT_UP, 8 * (1518 + GAP), "busier"),
        ("mixed-load", {"frame_size": 64}, 8 * 84, "each"),
        ("throughput", {"directions": "both", "frame_size": 64, **NATIVE}, 816, "each"),
        ("subscribers", {"frame_size": 64, "subscriber_rates": RATES}, 400 * 8 * 84, "busier"),
    ],
)
def test_bits_are_those_of_the_busier_direction_and_of_all_kinds_of_frames(
    metric: str, given: dict[str, Any], wire: float, way: str
) -> None:
    """A mixed load was one of upward frames, and native IPv6 had the octets of the frames under test."""
    bits = bits_of_unit(metric, asked(**given))
    assert bits is not None
    assert bits.wire == pytest.approx(wire)
    assert bits.way == way


def test_octets_in_a_tunnel_are_those_that_the_bench_recorded() -> None:
    sizes = {"initiator": 110, "responder": 70}
    frames = frames_of("connection-rate", asked(transport="tcp", segment_octets=sizes))
    assert [frame.octets["initiator"] for frame in frames] == [118, 118, 110]


def result(metric: str, value: float, unit: str, **given: Any) -> Result:
    one = Measurement(value, value, "device", {Verdict.PASS: 1, Verdict.INVALID: 0})
    return make(make_result(metric, unit, {}, [one, one]), asked(**given))


@pytest.mark.parametrize(
    ("metric", "unit", "given"),
    [
        ("connection-rate", "connections/s", {"transport": "tcp", "frame_size": 88}),
        ("transaction-rate", "transactions/s", {"transport": "tcp", "close": "fin", "request_octets": 0}),
        ("resolution-rate", "queries/s", {"query": "aaaa", "frame_size": 114}),
        ("subscribers", "subscribers", {"frame_size": 64, "subscriber_rates": RATES}),
    ],
)
def test_a_full_link_is_the_links_and_one_that_is_not_full_is_not(
    metric: str, unit: str, given: dict[str, Any]
) -> None:
    """A connection was taken for one frame: a full link was the device, and a third of a link was called full."""
    most = most_units(metric, asked(**given))
    assert most is not None
    full, part = (result(metric, share * most, unit, **given) for share in (0.99, 0.6))
    assert "link limited" in {doubt.word for doubt in full.doubts}
    assert "link limited" not in {doubt.word for doubt in part.doubts}
    assert part.figures["share_of_theoretical_maximum"].median == pytest.approx(0.6)
    shown = result(metric, 0.6 * most, unit, media=["copper"] * 2, port_drivers=["igb"] * 2, flow_control=["off"] * 2,
                   **given)  # fmt: skip
    assert f"theoretical maximum is {number(most)} {unit}; the result is 60 % of it" in verdict(shown)
    assert number(most) in table([shown])


def test_a_link_that_is_full_of_drawn_frames_is_not_said_to_be_full_of_connections() -> None:
    given: dict[str, Any] = {"order": "with-replacement", "connections": 1000, "frame_size": 64}
    most = most_units("connection-rate", asked(**given))
    assert most is not None
    found = result("connection-rate", most, "connections/s", **given)
    (text,) = [doubt.text for doubt in found.doubts if doubt.word == "link limited"]
    assert text.startswith("the link carries no more than 1.49 M frames/s of this size; ")


@pytest.mark.parametrize(
    ("metric", "unit", "given", "share", "says"),
    [
        ("connection-rate", "connections/s", {"transport": "udp"}, "1 %", "100 ns of 10 us a frame"),
        ("connection-rate", "connections/s", {"transport": "tcp"}, "3 %", "3 x 100 ns of 10 us a connection"),
        (
            "transaction-rate",
            "transactions/s",
            {"transport": "tcp", "close": "fin", "request_octets": 0},
            "7 %",
            "7 x 100 ns of 10 us a transaction",
        ),
        ("resolution-rate", "queries/s", {"query": "aaaa"}, "2 %", "2 x 100 ns of 10 us a query"),
        # A server answers itself, and a DNS64 server asks the far side for what it does not know.
        ("resolution-rate", "queries/s", {"query": "aaaa", "kind": "dns"}, "1 %", "1 x 100 ns of 10 us a query"),
        ("resolution-rate", "queries/s", {"query": "aaaa", "kind": "dns64"}, "3 %", "3 x 100 ns of 10 us a query"),
        ("resolution-rate", "queries/s", {"query": "a", "kind": "dns64"}, "2 %", "2 x 100 ns of 10 us a query"),
        (
            "resolution-rate",
            "queries/s",
            {"query": "aaaa", "kind": "dns64", "aaaa_share": 0.2, "cached_share": 0.5},
            "1.9 %",
            "1.9 x 100 ns of 10 us a query",
        ),
        (
            "resolution-rate",
            "queries/s",
            {"query": "aaaa", "kind": "dns64", "cached_share": 1.0},
            "1 %",
            "1 x 100 ns of 10 us a query",
        ),
    ],
)
def test_receivers_run_once_for_each_message(
    metric: str, unit: str, given: dict[str, Any], share: str, says: str
) -> None:
    found = result(metric, 100_000, unit, **{**given, "placement": "isolated", "receiver_ns": 100.0, "device_cores": 1})
    (text,) = [doubt.text for doubt in found.doubts if doubt.word == "tester on device cores"]
    assert f"{says}: that alone makes the rate {share} too low" in text


@pytest.mark.parametrize(
    ("metric", "unit", "given", "said"),
    [
        ("throughput", "frames/s", {"directions": "up", **SHORT_UP}, "1.49 M frames/s from inside"),
        (
            "throughput",
            "frames/s",
            {"directions": "both", "down_share": 0.8, "frame_size": 64},
            "930 k frames/s on average of both directions",
        ),
        ("mixed-load", "frames/s", {"frame_size": 64, "new_rate": 2e5}, "1.29 M frames/s in each direction"),
        ("frame-loss", "%", {"directions": "up", **SHORT_UP}, "1.49 M frames/s from inside"),
    ],
)
def test_the_maximum_that_is_said_is_the_one_of_which_the_result_is_a_share(
    metric: str, unit: str, given: dict[str, Any], said: str
) -> None:
    """The parameter was the maximum of the largest frames of both directions, whichever of them were sent."""
    ports: dict[str, Any] = {"media": ["copper"] * 2, "port_drivers": ["igb"] * 2, "flow_control": ["off"] * 2}
    found = result(metric, 600_000.0, unit, **ports, **given)
    assert f"Their theoretical maximum is {said}" in verdict(found)
    share = found.figures.get("share_of_theoretical_maximum")
    assert share is None or share.median == pytest.approx(600_000.0 / float(found.number("theoretical_maximum") or 0))


@pytest.mark.parametrize(
    ("metric", "value", "figures", "is_near"),
    [
        ("subscribers", 500.0, {"frames_per_second_total": 900_000.0}, True),
        ("subscribers", 500.0, {"frames_per_second_total": 600_000.0}, False),
        # What opens connections is sent, too.
        ("mixed-load", 3e5, {"frames_per_second_total": 6e5, "connections_per_second": 2.5e5}, True),
        ("mixed-load", 3e5, {"frames_per_second_total": 6e5, "connections_per_second": 1e5}, False),
    ],
)
def test_a_load_near_the_highest_that_was_tried_may_be_the_testers(
    metric: str, value: float, figures: dict[str, float], *, is_near: bool
) -> None:
    one = Measurement(value, value, "device", {Verdict.PASS: 1, Verdict.INVALID: 0}, figures=figures)
    parameters = asked(frame_size=64, subscriber_rates=RATES, search_top_phase2_rate=1e6)
    found = make(make_result(metric, declared(metric).unit, {}, [one, one]), parameters)
    (doubt,) = [doubt for doubt in found.doubts if doubt.word == "tester unknown"]
    assert ("may be the tester's" in doubt.text) == is_near


@pytest.mark.parametrize(
    ("metric", "given", "each"),
    [
        ("mixed-load", {"new_rate": 1e5}, 1),
        ("mixed-load", {"new_rate": 1e5, "transport": "tcp"}, 6),
        ("subscribers", {"subscriber_rates": RATES}, 1),
        ("subscribers", {"subscriber_rates": RATES, "transport": "tcp"}, 6),
    ],
)
def test_cores_and_links_have_equally_many_frames_of_a_new_connection(
    metric: str, given: dict[str, Any], each: int
) -> None:
    one = Measurement(1.0, 1.0, "device", {}, figures={"frames_per_second_total": 0.0, "connections_per_second": 10.0})
    made = make_result(metric, declared(metric).unit, {}, [one, one])
    parameters = asked(frame_size=64, **given)
    assert frames_in_all(1.0, made.figures, parameters) == pytest.approx(10.0 * each)


def test_a_subscribers_rates_are_those_of_its_profile() -> None:
    settings = SubscribersSettings(connections=1_000_000, placement="external")
    profile = settings.profile_of_one
    assert settings.parameters()["subscriber_rates"] == {
        "up": profile.up,
        "down": profile.down,
        "new": profile.new_per_second,
    }


def test_a_flood_takes_its_part_of_the_link() -> None:
    one = Measurement(1e5, 1e5, "device", {Verdict.PASS: 1, Verdict.INVALID: 0}, figures={"flood_per_second": 3e5})
    found = make(make_result("mixed-load", "frames/s", {}, [one, one]), asked(frame_size=64, new_rate=2e5))
    assert found.number("theoretical_maximum") == pytest.approx(GIGABIT / 84 - 5e5)


def test_a_profile_of_one_direction_counts_subscribers_all_the_same() -> None:
    """Seen: the most subscribers that a link carries stood in the row of frames/s in each direction."""
    parameters = {"subscriber_rates": {"down": 10.0}, "directions": "both", "theoretical_maximum": 500}
    result = made([100.0], metric="subscribers", unit="subscribers", parameters=parameters)
    assert not is_of_frames(result.metric, result.parameters)
    shown = {row.heading: row.printed[0] for row in rows([result])}
    assert shown["theoretical maximum in the unit of the median"] == "500"
    assert shown["theoretical maximum (frames/s in each direction)"] == "-"
