# SPDX-License-Identifier: Apache-2.0
"""Bits of a rate: those of its frames on the wire, and of the packets in them, in the busier direction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.conftest import Ran
from tests.unit.made_results import kept, made

#: A median of so many has as many Gbit/s as one of them has bits.
GIGA = 1e9


def bits(ran: Ran, folder: Path, metric: str, traffic: dict[str, Any], unit: str = "frames/s") -> tuple[Any, Any, Any]:
    """Bits of one of a rate on the wire and of its packets, and the mean octets of a mix; None where none are known."""
    result = made([GIGA], metric=metric, unit=unit, parameters=traffic)
    rows = json.loads(ran(["report", str(kept(folder, result)), "--format", "json"]).out)["table"]["rows"]
    cells = {row["row"]: row["cells"][0] for row in rows}
    return cells.get("on the wire"), cells.get("of IP packets"), cells.get("mean frame size")


@pytest.mark.parametrize(
    ("traffic", "sizes", "way"),
    [
        ({"frame_size": 64, "directions": "both"}, (64, 1), ""),
        ({"frame_size": 1518, "directions": "down"}, (1518, 1), ""),
        ({"directions": "both", "down_share": 0.75}, (96, 1.5), " in the busier direction"),
        ({"frame_octets": {"initiator": 84, "responder": 64}, "directions": "up"}, (84, 1), ""),
    ],
)
def test_bits_are_those_of_the_busier_direction(
    traffic: dict[str, Any], sizes: tuple[float, float], way: str, tmp_path: Path, ran: Ran
) -> None:
    octets, frames = sizes
    wire, packets, _ = bits(ran, tmp_path, "throughput", traffic)
    assert (wire, packets) == (8 * (octets + 20 * frames), 8 * (octets - 18 * frames))
    answer, *_ = ran(["report", str(tmp_path)]).out.splitlines()
    assert answer.rpartition(" of IP packets")[2] == f"{way}."


@pytest.mark.parametrize(
    ("traffic", "octets", "frames"),
    [
        ({"frame_size": 64}, 64, 1),
        # SYN of 78 octets and ACK of 70 from the Initiator.
        ({"transport": "tcp"}, 148, 2),
    ],
)
def test_bits_of_a_connection_are_those_of_the_frames_that_open_it(
    traffic: dict[str, Any], octets: float, frames: float, tmp_path: Path, ran: Ran
) -> None:
    wire, packets, _ = bits(ran, tmp_path, "connection-rate", traffic, "connections/s")
    assert (wire, packets) == (8 * (octets + 20 * frames), 8 * (octets - 18 * frames))


@pytest.mark.parametrize(("vlan", "tags"), [(None, 0), ("100", 4), ("9.100", 8), ("9.100+", 8)])
def test_vlan_tags_are_on_the_wire_and_no_part_of_packets(
    vlan: str | None, tags: int, tmp_path: Path, ran: Ran
) -> None:
    means = {"up": {"initiator": 1518 + tags, "responder": 1518}}
    traffic = {
        "directions": "up",
        "frame_sizes": f"{1518 + tags}:1",
        "mean_frame_octets": means,
        "initiator_vlan": vlan,
    }
    assert bits(ran, tmp_path, "throughput", traffic) == (8 * (1538 + tags), 8 * 1500, 1518)


def test_what_is_no_rate_of_known_frames_has_no_bits(tmp_path: Path, ran: Ran) -> None:
    assert bits(ran, tmp_path / "one", "table-capacity", {"frame_size": 64}, "connections") == (None, None, None)
    assert bits(ran, tmp_path / "two", "throughput", {"frame_size": None}) == (None, None, None)
