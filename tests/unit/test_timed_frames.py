# SPDX-License-Identifier: Apache-2.0
"""Slices: the same frames through a gateway, plain forwarding and a cable; and why frames cannot be timed."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from tests.unit.golden import Golden

from natgauge.agreement.generated import Frame
from natgauge.gateways.recipe import load
from natgauge.inputs.question import MIXES, RANGES, TrafficOptions
from natgauge.tester.cable import CableLab
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask, reasons_not_timed
from natgauge.trial.requests import traffic_frame
from natgauge.trial.rounds import forwarding_of, over_cable
from natgauge.words import Family, Placement

#: Every option of the traffic that shapes a frame, with a value that is not its default.
FRAME_OPTIONS = {"frame_size": 300, "frame_side": "responder", "transport": "icmp"}
#: Mixes of sizes are in place of one.
MIXED = {"frame_sizes": "104:7,594:4,1518:1", "down_frame_sizes": "594:1", "frame_side": "responder"}
#: Plain forwarding and cable have no tags, which the gateway takes and adds.
TAGS = {"initiator_vlan", "responder_vlan"}
#: Options that choose four tuples, and the number and order of connections.
OTHERS = {*RANGES, "addresses", "connections", "subscribers", "order"}


def test_every_option_of_the_traffic_and_every_field_of_the_frame_is_judged_here() -> None:
    """A new one that shapes a frame belongs to `FRAME_OPTIONS`, and to what plain forwarding and cable get."""
    assert {item.name for item in fields(TrafficOptions)} == OTHERS | set(FRAME_OPTIONS) | set(MIXES) | TAGS
    plain = traffic_frame(Bench(ask("throughput", "linux-ipv4", FRAME_OPTIONS).cell).traffic, ("ipv4", "ipv4"))
    unchosen = {name for name in Frame.model_fields if name not in plain.model_fields_set}
    # Slices have no queries, and their TCP connections are open: only a metric itself asks for others.
    asked = {"query", "handed_on", "resolved", "answer", "aaaa_share", "cached_share"}
    assert unchosen == {*asked, "closing", "half_open", *MIXES, *TAGS}
    defaults = traffic_frame(Bench(ask("throughput", "linux-ipv4", {}).cell).traffic, ("ipv4", "ipv4"))
    same = [name for name in plain.model_fields_set if getattr(plain, name) == getattr(defaults, name)]
    assert same == []


@pytest.mark.parametrize(("gateway", "family"), [("nftables-nat44", "ipv4"), ("linux-ipv6", "ipv6")])
@pytest.mark.parametrize("options", [{}, FRAME_OPTIONS, MIXED])
def test_plain_forwarding_and_cable_get_the_gateways_frames(
    gateway: str, family: Family, options: dict[str, Any]
) -> None:
    bench = Bench(ask("throughput", gateway, {"connections": 1000, **options}).cell)
    (frames,) = bench.timed_frames
    forwarding = Bench(forwarding_of(frames, {}))
    cable = over_cable(frames, CableLab("unused"), 0).trial
    own = [traffic_frame(each.traffic, (family, family)) for each in (bench, forwarding)]
    # Both sides have one family, so a size is the same on either.
    gateways, forwarded, cabled = ({**one.model_dump(), "side": None} for one in (*own, cable.frame) if one is not None)
    assert gateways == forwarded == cabled
    least = 104 if "frame_sizes" in options else 64 if family == "ipv4" else 84
    assert gateways["size"] == options.get("frame_size", least)
    assert [gateways[name] for name in MIXES] == [options.get(name) for name in MIXES]
    assert {cable.initiator.family, cable.responder.family} == {forwarding.address_plan.inside.family} == {family}
    assert cable.connections == forwarding.traffic.connections == bench.traffic.connections == 1000


def test_plain_forwarding_of_a_tagged_gateway_has_its_frames_without_tags() -> None:
    ports = {
        "initiator_port": "a",
        "initiator_gateway": "10.0.0.1",
        "responder_port": "b",
        "responder_gateway": "198.19.0.1",
    }
    options = {"lab": "wire", **ports, "initiator_vlan": "9.100", "frame_size": 1522}
    (frames,) = Bench(ask("throughput", "nftables-nat44", options).cell).timed_frames
    assert (frames.octets, frames.frames.initiator_vlan) == (1514, None)


@pytest.mark.parametrize(
    ("options", "sizes"), [({}, (84, 64)), ({"frame_size": 300, "frame_side": "responder"}, (320, 300))]
)
def test_between_two_families_each_has_plain_forwarding_and_a_cable(
    options: dict[str, Any], sizes: tuple[int, int]
) -> None:
    bench = Bench(ask("throughput", "jool-nat64", {"connections": 1000, **options}).cell)
    assert [(frames.family, frames.octets) for frames in bench.timed_frames] == [("ipv6", sizes[0]), ("ipv4", sizes[1])]
    octets = traffic_frame(bench.traffic, ("ipv6", "ipv4"))
    mixed = Bench(ask("throughput", "jool-nat64", {"frame_sizes": "84:7,614:4"}).cell)
    assert [frames.frames.frame_sizes for frames in mixed.timed_frames] == ["84:7,614:4", "64:7,594:4"]
    for frames in bench.timed_frames:
        # The payload is that of the gateway's frames.
        assert bench.octets_on(frames.family) == over_cable(frames, CableLab("unused"), 0).trial.frame.size
        assert Bench(forwarding_of(frames, {})).octets_on(frames.family) == frames.octets
    assert octets.size in sizes


def reasons(recipe: str, placement: Placement = "shared", cpus: tuple[int, ...] = (0,)) -> list[str]:
    return reasons_not_timed("x", placement, cpus, own_processes=load(recipe).own_processes)


@pytest.mark.parametrize("recipe", ["nftables-nat44", "jool-nat64"])
def test_a_gateway_in_the_senders_context_on_one_core_can_be_timed(recipe: str) -> None:
    assert reasons(recipe) == []
    assert reasons(recipe, cpus=()) == []


@pytest.mark.parametrize(
    ("recipe", "placement", "cpus"),
    [
        ("nftables-nat44", "isolated", (0,)),
        ("nftables-nat44", "external", (0,)),
        ("nftables-nat44", "shared", (0, 1)),
        ("tayga-nat64", "shared", (0,)),
        # In the guest of `--lab vm`.
        ("jool-nat64", "external", (0,)),
    ],
)
def test_each_reason_names_the_gateway(
    recipe: str, placement: Placement, cpus: tuple[int, ...], golden: Golden
) -> None:
    (found,) = reasons(recipe, placement, cpus)
    golden(found)


def test_all_reasons_are_told_at_once() -> None:
    found = reasons("tayga-nat64", "isolated", (0, 1))
    assert [one.split()[1] for one in found] == ["works", "placement", "cores"]
    # No placement helps a gateway with processes of its own.
    assert "use --placement" not in found[1]
