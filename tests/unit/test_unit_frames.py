# SPDX-License-Identifier: Apache-2.0
"""What a link carries and how often receivers run are counted in frames; of a TCP connection there are several."""

from __future__ import annotations

from typing import Any

import pytest

from natgauge.analysis.unit_frames import frames_of, most_units
from natgauge.figure_text import number
from natgauge.measurements.making import make
from natgauge.procedures.kit.result.results import Measurement, make_result
from natgauge.records.measurement import Result
from natgauge.records.parameters import Parameters
from natgauge.reports.text import table, verdict
from natgauge.words import Verdict

GIGABIT = 1e9 / 8
#: Octets of a frame on the link: preamble and gap are 20 (RFC 5180 appendix A.1).
SYN, ACK, GAP = 78, 70, 20


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
        ("tear-down-rate", {"tear_down_by": "rst", "transport": "tcp"}, GIGABIT / (ACK + GAP)),
        ("tear-down-rate", {"tear_down_by": "command"}, None),
        ("latency", {"frame_size": 64}, None),
        ("connection-rate", {}, None),
    ],
)
def test_a_link_carries_so_many(metric: str, given: dict[str, Any], most: float | None) -> None:
    found = most_units(metric, asked(**given))
    assert found == (None if most is None else pytest.approx(most))


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


@pytest.mark.parametrize(
    ("metric", "unit", "given", "share", "says"),
    [
        ("connection-rate", "connections/s", {"transport": "udp"}, "1 %", "100 ns of 10 k ns a frame"),
        ("connection-rate", "connections/s", {"transport": "tcp"}, "3 %", "3 x 100 ns of 10 k ns a connection"),
        (
            "transaction-rate",
            "transactions/s",
            {"transport": "tcp", "close": "fin", "request_octets": 0},
            "7 %",
            "7 x 100 ns of 10 k ns a transaction",
        ),
        ("resolution-rate", "queries/s", {"query": "aaaa"}, "2 %", "2 x 100 ns of 10 k ns a query"),
    ],
)
def test_receivers_run_once_for_each_message(
    metric: str, unit: str, given: dict[str, Any], share: str, says: str
) -> None:
    found = result(metric, 100_000, unit, **{**given, "placement": "isolated", "receiver_ns": 100.0, "device_cores": 1})
    (text,) = [doubt.text for doubt in found.doubts if doubt.word == "tester on device cores"]
    assert f"{says}: that alone makes the rate {share} too low" in text
