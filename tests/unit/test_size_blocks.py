# SPDX-License-Identifier: Apache-2.0
"""What the arithmetic of subscribers rests on: blocks and sets of ports that are recorded, and bits of a unit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.made_results import made

from natgauge.analysis.sizing import (
    gives_blocks,
)
from natgauge.analysis.unit_frames import Way, bits_of_unit
from natgauge.gateways.device_settings import DeviceSettings
from natgauge.gateways.port_sets import PortSets
from natgauge.gateways.recipe import load
from natgauge.gateways.toml_layers import BUILT_IN
from natgauge.host import machine
from natgauge.measurements.prepared import parameters_of
from natgauge.port_blocks import PortBlocks
from natgauge.records.parameters import Parameters
from natgauge.tester.highest import HighestRates
from natgauge.trial.bench import Bench, Ready
from natgauge.trial.question import ask


@given(st.integers(0, 15), st.integers(0, 6))
def test_sets_as_blocks_have_the_same_number_and_size(length: int, offset: int) -> None:
    if length + offset > 16 or (not length and not offset):
        return
    sets = PortSets(network="198.18.0.0/16", psid_length=length, psid_offset=offset)
    assert (sets.blocks.size, sets.blocks.per_address) == (sets.ports, sets.per_address)


def test_gateways_that_give_blocks_or_sets_are_known_by_their_kind_or_by_what_is_recorded() -> None:
    names = [path.stem for path in BUILT_IN.glob("*.toml")]
    for recipe in map(load, names):
        device = DeviceSettings(recipe.name, ("1",), 100, {})
        if recipe.kind in ("softwire", "dns", "dns64"):
            continue
        bench = Bench(ask("throughput", recipe.name, {"connections": 100}).cell)
        planned = bench.plan("throughput", {})
        measurer: Any = SimpleNamespace(server=None)
        ready = Ready(planned, measurer, device, HighestRates(1, 1))
        recorded = parameters_of(bench, ready, machine.facts())
        blocks = recorded.get("port_blocks")
        limits, sets = recipe.limits.port_blocks, recipe.port_sets if recipe.shares_addresses else None
        assert (blocks is not None) == (limits is not None or sets is not None), recipe.name
        result = made([1.0], parameters=recorded.flat())
        assert gives_blocks(result) == (blocks is not None), recipe.name
        old = {name: value for name, value in recorded.flat().items() if name != "port_blocks"}
        assert gives_blocks(made([1.0], parameters=old)) == (sets is not None), recipe.name
        if limits is not None:
            assert PortBlocks.model_validate(blocks) == limits
        if sets is not None:
            assert recorded.get("shared_addresses") == sets.shared_addresses


@pytest.mark.parametrize(
    ("metric", "traffic", "octets", "frames", "way"),
    [
        ("throughput", {"frame_size": 64, "directions": "both"}, 64, 1, "each"),
        ("throughput", {"frame_size": 1518, "directions": "down"}, 1518, 1, "one"),
        ("throughput", {"frame_size": 64, "directions": "both", "down_share": 0.75}, 96, 1.5, "busier"),
        ("throughput", {"frame_octets": {"initiator": 84, "responder": 64}, "directions": "up"}, 84, 1, "one"),
        ("connection-rate", {"frame_size": 64}, 64, 1, "one"),
        # SYN of 78 octets and ACK of 70 from the Initiator.
        ("connection-rate", {"transport": "tcp"}, 148, 2, "busier"),
    ],
)
def test_bits_are_those_of_the_busier_direction(
    metric: str, traffic: dict[str, Any], octets: float, frames: float, way: Way
) -> None:
    bits = bits_of_unit(metric, Parameters.grouped(traffic=traffic))
    assert bits is not None
    assert (bits.wire, bits.packets) == (8 * (octets + 20 * frames), 8 * (octets - 18 * frames))
    assert (bits.frames, bits.way) == (frames, way)


@pytest.mark.parametrize(("vlan", "tags"), [(None, 0), ("100", 4), ("9.100", 8), ("9.100+", 8)])
def test_vlan_tags_are_on_the_wire_and_no_part_of_packets(vlan: str | None, tags: int) -> None:
    octets = {"initiator": 1518 + tags, "responder": 1518}
    traffic: dict[str, Any] = {"directions": "up", "frame_octets": octets, "initiator_vlan": vlan}
    bits = bits_of_unit("throughput", Parameters.grouped(traffic=traffic))
    assert bits is not None
    assert (bits.wire, bits.packets, bits.frame_octets) == (8 * (1538 + tags), 8 * 1500, 1518)


def test_what_is_no_rate_of_known_frames_has_no_bits() -> None:
    assert bits_of_unit("table-capacity", Parameters.grouped(traffic={"frame_size": 64})) is None
    assert bits_of_unit("throughput", Parameters.grouped(traffic={})) is None
