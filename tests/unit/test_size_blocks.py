# SPDX-License-Identifier: Apache-2.0
"""Subscribers of a gateway that gives each of them a block or a set of ports: nobody has a port without one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.golden import Golden
from tests.unit.made_results import made

from natgauge.analysis.sizing import (
    Fits,
    Sizing,
    SubscriberLimit,
    Subscribers,
    addresses_for,
    gives_blocks,
    sizings,
    takes_addresses,
)
from natgauge.gateways.device_settings import DeviceSettings
from natgauge.gateways.port_sets import PortSets
from natgauge.gateways.recipe import load
from natgauge.gateways.toml_layers import BUILT_IN
from natgauge.host import machine
from natgauge.measurements.prepared import parameters_of
from natgauge.port_blocks import PortBlocks
from natgauge.records.measurement import Result
from natgauge.reports.sizing.answer import exit_status, text
from natgauge.reports.sizing.document import document
from natgauge.tester.highest import HighestRates
from natgauge.trial.bench import Bench, Ready
from natgauge.trial.question import ask

#: Blocks as those of cgn-port-blocks, of cgn-deterministic, and the sets of map-e.
ON_DEMAND = {"size": 128, "each": 2, "counts_connections": True}
ODD = {"size": 500, "each": 2, "counts_connections": True}
COMPUTED = {"size": 1008, "deterministic": True}
SETS = {"size": 2048, "first_port": 2048}
A_FRAME = 66 * 8 / 1e6


def capacity(connections: float = 1e6, *, limited_by: str = "table", **parameters: Any) -> Result:
    return made(
        [connections, connections],
        metric="table-capacity",
        unit="connections",
        limited_by=limited_by,
        parameters={"gateway": "cgn", **parameters},
    )


def frames(**parameters: Any) -> Result:
    traffic = {"directions": "both", "frame_octets": {"initiator": 84}}
    return made([1e6, 1e6], parameters={"gateway": "cgn", **traffic, **parameters})


def sized_once(results: list[Result], asked: Subscribers) -> Sizing:
    (sizing,) = sizings(results, asked)
    return sizing


def of_blocks(sizing: Sizing) -> SubscriberLimit:
    (limit,) = (limit for limit in sizing.limits if limit.ended == "port blocks")
    return limit


def fits(result: Result, number: int, **asked: Any) -> Fits:
    wanted = Subscribers(number, **asked)
    return sized_once([result], wanted).fits(number)


@pytest.mark.parametrize(
    ("blocks", "connections", "addresses", "most"),
    [
        (ON_DEMAND, 60, None, 504),
        (ON_DEMAND, 128, None, 504),
        (ON_DEMAND, 129, None, 252),
        (ON_DEMAND, 256, None, 252),
        (ON_DEMAND, 60, 4, 2016),
        # 129 blocks an address, and both blocks of a host are of one address (RFC 6888 REQ-2).
        (ODD, 600, None, 64),
        (ODD, 600, 2, 128),
        (COMPUTED, 60, None, 64),
        (COMPUTED, 1008, 10, 640),
    ],
)
def test_addresses_times_blocks_is_the_most_subscribers(
    blocks: Mapping[str, Any], connections: float, addresses: int | None, most: int
) -> None:
    """Seen: 600 subscribers on one address, whose blocks are 504."""
    for had, asked in ((addresses, None), (None, addresses), (2, addresses or 1)):
        parameters: dict[str, Any] = {"port_blocks": blocks, **({} if had is None else {"outside_addresses": had})}
        result = capacity(**parameters)
        each = {"connections": connections, "outside_addresses": asked}
        assert [fits(result, number, **each) for number in (most, most + 1)] == ["carries", "does not carry"]


def test_addresses_are_enough_for_hosts_whose_blocks_are_of_one_address() -> None:
    asked = Subscribers(129, connections=600)
    assert addresses_for(sized_once([capacity(port_blocks=ODD)], asked)) == 3


def test_a_limit_of_blocks_is_named_with_what_to_change(golden: Golden) -> None:
    result = capacity(port_blocks=ON_DEMAND)
    for number, connections in ((504, 60), (600, 60), (600, 200)):
        asked = Subscribers(number, connections=connections)
        golden(text([sized_once([result], asked)], asked))


def test_a_subscriber_with_more_connections_than_its_blocks_have_ports_is_not_carried(golden: Golden) -> None:
    result = capacity(port_blocks=ON_DEMAND)
    for addresses in (None, 1000):
        asked = Subscribers(1, connections=257, outside_addresses=addresses)
        sizing = sized_once([result], asked)
        assert (sizing.fits(1), addresses_for(sizing)) == ("does not carry", None)
        golden(text([sizing], asked))


def test_connections_to_several_endpoints_may_share_ports_so_that_natgauge_cannot_tell(golden: Golden) -> None:
    result = capacity(port_blocks=COMPUTED)
    assert [fits(result, number, connections=1009) for number in (1, 64, 65)] == [
        "cannot tell", "cannot tell", "does not carry"
    ]  # fmt: skip
    asked = Subscribers(10, connections=2000)
    golden(text([sized_once([result], asked)], asked))
    several = capacity(port_blocks={"size": 128, "each": 4})
    assert [fits(several, number, connections=300) for number in (168, 169, 504, 505)] == [
        "carries", "cannot tell", "cannot tell", "does not carry"
    ]  # fmt: skip


def test_blocks_limit_subscribers_of_whom_only_bits_are_asked() -> None:
    result = frames(port_blocks=ON_DEMAND)
    assert [fits(result, number, megabits=A_FRAME) for number in (504, 505)] == ["carries", "does not carry"]
    sizing = sized_once([result], Subscribers(505, megabits=A_FRAME))
    assert addresses_for(sizing) == 2


def test_outside_addresses_limit_what_gives_blocks_also_where_nothing_of_connections_is_asked() -> None:
    asked = Subscribers(505, megabits=A_FRAME, outside_addresses=2)
    assert takes_addresses(sized_once([frames(port_blocks=ON_DEMAND)], asked))
    assert not takes_addresses(sized_once([frames()], asked))


@pytest.mark.parametrize(("number", "status"), [(504, 0), (505, 1)])
def test_the_document_and_the_status_have_the_limit_of_blocks(number: int, status: int) -> None:
    asked = Subscribers(number, connections=60)
    sizing = sized_once([capacity(port_blocks=ON_DEMAND)], asked)
    (gateway,) = document([sizing], asked)["gateways"]
    assert gateway["limits"][0] == {
        "ended": "port blocks",
        "unit": "blocks",
        "each": 1,
        "all": number,
        "measured": [504.0, 504.0],
        "subscribers": [504.0, 504.0],
        "both_ways_busy": None,
        "one_way_idle": None,
        "answer": "carries" if status == 0 else "does not carry",
        "metric": None,
        "result": None,
        "table_connections": None,
        "frames": None,
    }
    assert gateway["least_outside_addresses"] == math.ceil(number / 504)
    assert exit_status([sizing], number) == status


def test_results_with_other_numbers_of_addresses_or_other_sets_have_an_answer_each() -> None:
    results = [capacity(port_blocks=ON_DEMAND, outside_addresses=number) for number in (2, 4)]
    found = sizings(results, Subscribers(1, connections=1))
    assert [of_blocks(sizing).subscribers.upper for sizing in found] == [1008, 2016]
    sets = [
        frames(kind="map-e", psid_length=length, port_blocks={"size": size, "first_port": size}, shared_addresses=2)
        for length, size in ((5, 2048), (4, 4096))
    ]
    found = sizings(sets, Subscribers(1, megabits=A_FRAME))
    assert [of_blocks(sizing).subscribers.upper for sizing in found] == [62, 30]


def test_a_pool_or_a_block_that_ended_a_capacity_says_nothing_of_the_table() -> None:
    """600 hosts open few connections each until one of them gets no block."""
    for limited_by in ("port pool", "port block"):
        result = capacity(30_240.0, limited_by=limited_by, port_blocks=ON_DEMAND)
        sizing = sized_once([result], Subscribers(1, connections=60))
        assert {limit.ended: limit.subscribers.upper for limit in sizing.limits} == {
            "open connections": math.inf,
            "port blocks": 504,
        }
        assert [fits(result, number, connections=60) for number in (504, 505)] == ["carries", "does not carry"]


@pytest.mark.parametrize(
    "result",
    [
        capacity(64_000.0, limited_by="port block", source_address_count=64),
        frames(kind="map-e", psid_length=5, connections=64_000, source_address_count=64),
        frames(kind="map-e", port_blocks=SETS, connections=64_000, source_address_count=64),
        frames(port_blocks={"of": "a later version"}, connections=64_000, source_address_count=64),
    ],
)
def test_beyond_the_subscribers_measured_nothing_can_be_told_of_blocks_whose_number_is_not_known(
    result: Result, golden: Golden
) -> None:
    need = {"connections": 1.0} if result.metric == "table-capacity" else {"megabits": A_FRAME}
    asked = Subscribers(65, **need)  # type: ignore[arg-type]
    assert [fits(result, number, **need) for number in (64, 65, 1_000)] == ["carries", "cannot tell", "cannot tell"]
    sizing = sized_once([result], asked)
    assert exit_status([sizing], 65) == 5
    golden(text([sizing], asked).splitlines()[2:4])


def test_what_fewer_hosts_kept_is_told_once_beside_blocks_whose_number_is_not_known() -> None:
    result = capacity(64_000.0, limited_by="device", kind="map-e", source_address_count=64)
    asked = Subscribers(65, connections=1000)
    said = text([sized_once([result], asked)], asked)
    assert said.count("table-capacity, which no full table ended, had 64 inside hosts") == 1
    assert said.count("no result says how many port blocks it has") == 1


def test_no_number_of_outside_addresses_follows_from_sets_whose_size_is_not_known() -> None:
    """They were reckoned as if each connection of any subscriber took a port of its own."""
    asked = Subscribers(100, connections=2000, outside_addresses=2)
    kinds: list[dict[str, Any]] = [{}, {"kind": "map-e", "psid_length": 5}]
    plain, old = (sized_once([capacity(**kind)], asked) for kind in kinds)
    assert [addresses_for(sizing) for sizing in (plain, old)] == [4, None]
    ports = [[limit for limit in sizing.limits if limit.ended == "outside ports"] for sizing in (plain, old)]
    assert [len(limits) for limits in ports] == [1, 0]
    without = Subscribers(100, connections=2000)
    assert "Outside addresses" not in text([sized_once([capacity(kind="map-e")], without)], without)
    (gateway,) = document([old], asked)["gateways"]
    assert gateway["least_outside_addresses"] is None


def test_no_block_is_sure_for_more_connections_than_hosts_had_or_where_a_host_got_none() -> None:
    full = capacity(64_000.0, limited_by="port block", source_address_count=64)
    asked = Subscribers(1, connections=1001)
    assert of_blocks(sized_once([full], asked)).subscribers.lower == 0
    none_left = capacity(64_000.0, limited_by="port pool", kind="map-e", source_address_count=64)
    assert of_blocks(sized_once([none_left], Subscribers(1, connections=1))).subscribers.lower == 0


def test_sets_have_the_addresses_that_are_asked_for_or_those_of_the_rule() -> None:
    known = frames(kind="map-e", port_blocks=SETS, shared_addresses=10)
    assert [fits(known, number, megabits=A_FRAME) for number in (310, 311)] == ["carries", "does not carry"]
    old = frames(kind="map-e", port_blocks=SETS)
    for result in (known, old):
        asked = {"megabits": A_FRAME, "outside_addresses": 2}
        assert [fits(result, number, **asked) for number in (62, 63)] == ["carries", "does not carry"]


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
