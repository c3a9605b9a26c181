# SPDX-License-Identifier: Apache-2.0
"""What is told of a wire's links: medium, speed, theoretical maximum, flow control; and what a result's share is."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from tests.simulated_lab import NAT44, Measured, measure, simulated
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

FIBRE = {"port_drivers": "ixgbe", "port_firmware": "1", "media": "FIBRE", "link_speeds": 10_000, "flow_control": "off"}
COPPER = {**FIBRE, "port_drivers": "igb", "media": "Twisted Pair", "link_speeds": 1000}


def wired(*links: dict[str, Any]) -> dict[str, Any]:
    """What a wire of two such links tells."""
    return {"ports": ["a", "b"], **{name: [links[0][name], links[-1][name]] for name in FIBRE}}


def measured(forwards: float, *links: dict[str, Any], metric: str = "throughput", **choices: Any) -> Measured:
    """What a gateway that forwards so many frames/s is measured to be, by a tester that is faster than any link."""
    return measure(metric, Gateway(forwards=forwards, ceiling=1e8), place={"links": wired(*links)}, **choices)


@pytest.mark.parametrize(
    ("links", "chosen", "most"),
    [
        ((FIBRE,), {}, 14_880_952),
        ((FIBRE,), {"frame_size": 84}, 12_019_230),
        # From IPv6 to IPv4, frames of 84 octets leave with 64.
        ((FIBRE,), {"frame_size": 84, "kind": "nat64"}, 12_019_230),
        ((FIBRE, COPPER), {"frame_size": 1518}, 81_274),
        ((FIBRE, {**FIBRE, "link_speeds": None}), {}, None),
    ],
)
def test_the_slower_link_and_the_larger_frame_decide(
    links: tuple[dict[str, Any], ...], chosen: dict[str, Any], most: int | None, tmp_path: Path
) -> None:
    gateway = tmp_path / "simulated.toml"
    text = NAT44.read_text()
    if chosen.get("kind") == "nat64":
        text = text.replace('"nat44"', '"nat64"').replace('initiator_family = "ipv4"', 'initiator_family = "ipv6"')
    gateway.write_text(text)
    chosen = {name: value for name, value in chosen.items() if name != "kind"}
    told = measured(1000, *links, gateway=gateway, **chosen).document["parameters"]["place"]["theoretical_maximum"]
    assert (told if told is None else int(told)) == most


def doubts(found: Measured) -> list[Any]:
    """The doubts about the links."""
    return [one for one in found.document["doubts"] if one["word"] in {"link limited", "flow control"}]


def told(found: Measured) -> list[str]:
    """What the command line says of the links, and of their part in the result."""
    words = ("Bottleneck", "Links", "theoretical", "link limited")
    return [line for line in found.said.splitlines() if any(word in line for word in words)]


def test_a_lab_without_links_has_no_theoretical_maximum() -> None:
    assert "theoretical_maximum" not in measure("throughput", Gateway(forwards=1000)).result.parameters.place


def test_whatever_a_link_is_moves_the_figure(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    changes = {"port_drivers": "ice", "port_firmware": "2", "media": "Direct Attach Copper", "link_speeds": 25_000}
    first = stored(tmp_path / "first", wired(FIBRE), ran)
    for name, value in {**changes, "flow_control": "sent"}.items():
        second = stored(tmp_path / name, wired({**FIBRE, name: value}), ran)
        (found,) = json.loads(ran(["diff", "--json", str(first), str(second)], status=5).out)["comparisons"]
        assert found["outcome"] == "not compared"
        golden(found["why"])


def stored(folder: Path, place: dict[str, Any], ran: Ran, repeat: int = 1) -> Path:
    """The folder of the results of a throughput."""
    words = ["measure", "throughput", "--lab", "simulated", "--gateway", str(NAT44), "--repeat", str(repeat)]
    with simulated() as simulation:
        simulation.start = lambda _lab: Gateway(forwards=1000)
        simulation.links = place
        ran([*words, "--seed", "7", "--results", str(folder)])
    return folder


def test_remarks_on_ports_are_notes_of_the_result_and_no_condition(tmp_path: Path, ran: Ran) -> None:
    """Nothing read the remarks, so no reader of a result saw them."""
    remark = "port a: receives no frames that are redirected"
    of_lab = measured(1000, FIBRE)
    place = {**wired(FIBRE), "port_remarks": [remark]}
    with_remark = measure("throughput", Gateway(forwards=1000, ceiling=1e8), place={"links": place})
    assert not of_lab.notes(remark)
    assert [note["word"] for note in with_remark.document["notes"] if note["text"] == remark] == ["tester"]
    for number, each in enumerate((wired(FIBRE), place)):
        stored(tmp_path / str(number), each, ran, repeat=4)
    (found,) = json.loads(ran(["diff", "--json", str(tmp_path / "0"), str(tmp_path / "1")]).out)["comparisons"]
    assert found["outcome"] == "no difference seen"


def test_the_share_of_the_link_is_told_in_text_json_table_and_csv(tmp_path: Path, ran: Ran, golden: Golden) -> None:
    found = measured(3_720_238, FIBRE)
    share = found.figure("share_of_theoretical_maximum")
    assert share == pytest.approx(found.median / 14_880_952.38)
    assert share == pytest.approx(0.25, rel=0.01)
    assert doubts(found) == []
    golden(told(found))
    place = stored(tmp_path / "1", wired(FIBRE), ran, repeat=2)
    (row,) = csv.DictReader(ran(["report", str(place), "--format", "csv"]).out.splitlines())
    assert float(row["share of theoretical maximum"]) == pytest.approx(float(row["median"]) / 14_880_952.38)
    golden([name for name in row if "theoretical" in name])


def test_the_share_of_the_link_is_that_of_the_busier_direction(golden: Golden) -> None:
    found = measured(14_800_000, FIBRE, down_share=0.8)
    share = found.figure("share_of_theoretical_maximum")
    assert share == pytest.approx(1.6 * found.median / 14_880_952.38)
    assert [one["word"] for one in doubts(found)] == ["link limited"]
    golden(told(found))


def test_each_link_is_told_where_they_differ_and_none_where_there_are_none(golden: Golden) -> None:
    golden(told(measured(1000, FIBRE, {**COPPER, "link_speeds": None})))
    assert "Links" not in measure("throughput", Gateway(forwards=1000)).said


@pytest.mark.parametrize("metric", ["latency", "tear-down-rate"])
def test_what_is_no_rate_of_frames_has_no_share_of_the_link(metric: str, golden: Golden) -> None:
    found = measured(1e6, FIBRE, metric=metric)
    assert "share_of_theoretical_maximum" not in found.document["figures"]
    assert doubts(found) == []
    golden(told(found))


def test_a_full_link_is_not_the_devices_limit(golden: Golden) -> None:
    (doubt,) = doubts(measured(1_487_000, COPPER))
    assert doubt["word"] == "link limited"
    golden(doubt["text"])
    assert doubts(measured(1_457_000, COPPER)) == []


def test_flow_control_is_a_doubt_of_each_port_with_the_command_that_ends_it(golden: Golden) -> None:
    found = measured(1000, {**FIBRE, "flow_control": "received"}, FIBRE)
    (doubt,) = doubts(found)
    assert doubt["word"] == "flow control"
    golden(doubt["text"])
    assert doubt["text"] in found.said
    both = doubts(measured(1000, {**FIBRE, "flow_control": "sent"}))
    assert [one["word"] for one in both] == ["flow control"] * 2
    assert doubts(measured(1000, {**FIBRE, "flow_control": "not known"})) == []
