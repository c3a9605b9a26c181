# SPDX-License-Identifier: Apache-2.0
"""From what the user asks for to four tuples and frames, and every refusal on the way."""

from __future__ import annotations

import ipaddress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.golden import Golden

from natgauge.cli.generator import ValueType
from natgauge.errors import UsageError
from natgauge.inputs.input import Input
from natgauge.inputs.question import TrafficOptions
from natgauge.labs.contract import Addresses, Link
from natgauge.procedures import get
from natgauge.setup.traffic import AddressPlan, Range, make_plan
from natgauge.setup.traffic.ranges import parse_ports
from natgauge.trial.bench import Bench
from natgauge.trial.planned import Planned
from natgauge.trial.question import ask
from natgauge.trial.requests import traffic_frame
from natgauge.words import DEFAULT_CONNECTIONS, MAXIMUM_CONNECTIONS


def link(network: str, device: str, tester: str) -> Link:
    return Link(ipaddress.ip_network(network), ipaddress.ip_address(device), ipaddress.ip_address(tester))


def pool(first: str, last: str | None = None) -> Addresses:
    return Addresses(ipaddress.ip_address(first), ipaddress.ip_address(last or first))


INSIDE4 = link("10.0.0.0/16", "10.0.0.1", "10.0.0.2")
OUTSIDE4 = link("198.19.0.0/16", "198.19.0.1", "198.19.0.2")
INSIDE6 = link("2001:2::/64", "2001:2::1", "2001:2::2")
NAT44 = AddressPlan(INSIDE4, OUTSIDE4, pool=pool("198.19.0.1"), mtu=3498)
NAT64 = AddressPlan(
    INSIDE6, OUTSIDE4, prefix=ipaddress.IPv6Network("2001:2:0:1::/96"), pool=pool("198.19.0.1"), mtu=3498
)
SIIT = replace(NAT64, translated=False, pool=None, mapped=pool("198.18.0.2", "198.18.2.4"))


def refusal(options: TrafficOptions, around: AddressPlan = NAT44) -> str:
    with pytest.raises(UsageError) as caught:
        make_plan(options, around)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_number_alone_takes_wide_source_ports_and_as_few_destination_ports_as_needed() -> None:
    plan = make_plan(TrafficOptions(connections=100_000), NAT44)
    assert plan.source_ports == Range(1024, 65535)
    assert plan.destination_ports == Range(1, 2)
    assert plan.connections == 100_000
    assert str(plan.source_addresses) == "10.0.0.2"
    assert str(plan.responder_addresses) == "198.19.0.2"


@pytest.mark.parametrize(
    "hosts", [{"subscribers": 5000}, {"source_addresses": "10.0.0.2-10.0.19.137"}, {"subscribers": 2}]
)
@pytest.mark.parametrize("outside", ["198.19.0.10", "198.19.0.13"])
def test_hosts_that_share_outside_addresses_leave_half_of_their_ports_free(hosts: dict[str, Any], outside: str) -> None:
    """Seen: 300,000 connections of 5,000 subscribers filled 93 % of the ports, and were lost at every rate."""
    around = replace(NAT44, pool=pool("198.19.0.10", outside))
    plan = make_plan(TrafficOptions(connections=300_000, **hosts), around)
    assert around.pool is not None
    free = around.pool.count * 64_512 * plan.destination_ports.count / plan.connections
    assert 2 <= free < 3, "but no more than that"


@given(st.integers(min_value=1, max_value=MAXIMUM_CONNECTIONS))
def test_a_number_alone_always_fits_and_wastes_less_than_one_destination_port(connections: int) -> None:
    plan = make_plan(TrafficOptions(connections=connections), NAT44)
    assert plan.connections == connections <= plan.space < connections + 64512


def test_nothing_asked_for_is_the_default_number() -> None:
    assert make_plan(TrafficOptions(), NAT44).connections == DEFAULT_CONNECTIONS


def test_ranges_alone_use_the_whole_space() -> None:
    options = TrafficOptions(
        source_ports="2000-2999",
        destination_ports="80-81",
        source_addresses="10.0.0.2-10.0.0.5",
        destination_addresses="198.19.0.2-198.19.0.4",
    )
    assert make_plan(options, NAT44).connections == 1000 * 2 * 4 * 3


def test_source_ports_alone_go_to_one_destination_port() -> None:
    plan = make_plan(TrafficOptions(source_ports="2000-2999"), NAT44)
    assert (plan.connections, plan.destination_ports) == (1000, Range(1, 1))


def test_more_destination_ports_are_no_remedy_where_no_port_serves_several_of_them() -> None:
    many = TrafficOptions(connections=100_000, source_addresses="10.0.0.2-10.0.0.3", destination_ports="1")
    assert refusal(many).endswith("use more destination ports or addresses")
    assert refusal(many, replace(NAT44, reuses_ports=False)).endswith("use fewer connections")


def test_an_initiator_behind_nat64_writes_the_responder_inside_the_prefix() -> None:
    plan = make_plan(TrafficOptions(destination_addresses="198.19.0.2-198.19.0.9"), NAT64)
    assert str(plan.destination_addresses) == "2001:2:0:1::c613:2-2001:2:0:1::c613:9"
    assert str(plan.responder_addresses) == "198.19.0.2-198.19.0.9"
    assert plan.destination_addresses.count == plan.responder_addresses.count


def test_an_initiator_behind_a_stateless_translator_has_an_address_outside_for_each_of_its_own() -> None:
    options = TrafficOptions(source_addresses="2001:2::2-2001:2::104")
    plan = make_plan(options, SIIT)
    assert str(plan.mapped_addresses) == "198.18.0.2-198.18.1.4"
    assert str(make_plan(TrafficOptions(), SIIT).mapped_addresses) == "198.18.0.2"
    assert make_plan(TrafficOptions(), NAT64).mapped_addresses is None


@pytest.mark.parametrize("sources", ["2001:2::3-2001:2::9", "2001:2::2-2001:2::206", "2001:2::ff"])
def test_source_addresses_that_a_stateless_translator_does_not_map_are_refused(sources: str, golden: Golden) -> None:
    message = refusal(TrafficOptions(source_addresses=sources), SIIT)
    golden(message)


#: Mixes in another form, and with more sizes or weights than the engine takes.
NO_MIXES = [
    *("", "64", "64,594", "64=7", "64:7;594:4", "x:1", "64:1.5", "64:-1"),
    *("64:0,594:1", "64:7,594:4,64:1", "64:1001,594:1", ",".join(f"{64 + at}:1" for at in range(9))),
]


@pytest.mark.parametrize("text", NO_MIXES)
def test_a_mix_in_another_form_is_refused_in_one_line_that_names_it(text: str, golden: Golden) -> None:
    golden(refusal(TrafficOptions(frame_sizes=text)))


def test_equal_mixes_are_one_mix_and_each_direction_may_have_its_own() -> None:
    plan = make_plan(TrafficOptions(frame_sizes="1518:2, 64:14,594:8"), NAT44)
    assert (plan.frames.frame_sizes, plan.frames.down_frame_sizes) == ("64:7,594:4,1518:1", None)
    assert plan.mixes["down"].mean == pytest.approx(361.83333)
    assert plan.frame_size == 64
    plan = make_plan(TrafficOptions(frame_size=100, down_frame_sizes="594:1"), NAT44)
    assert (plan.frames.frame_sizes, plan.frames.down_frame_sizes) == ("100:1", "594:1")
    message = refusal(TrafficOptions(frame_sizes="64:7,3400:1", frame_side="responder"), NAT64)
    assert "3420 octets on the initiator side" in message


@pytest.mark.parametrize(
    "options",
    [
        *({"initiator_vlan": text} for text in ("", "0", "4095", "x", "1.2.3", "1.", "+", "1 ", "-1", "0.5", "9.4095")),
        {"responder_vlan": "9+"},
        {"initiator_vlan": "4090+", "source_addresses": "10.0.0.2-10.0.0.7"},
        {"initiator_vlan": "9.100", "frame_size": 71},
        {"responder_vlan": "9.100", "frame_size": 3405},
    ],
)
def test_vlans_that_no_frame_has_are_refused_in_one_line(options: dict[str, Any], golden: Golden) -> None:
    golden(refusal(TrafficOptions(**options)))


def test_tags_are_part_of_the_size_and_the_least_frame_is_longer_by_them() -> None:
    plan = make_plan(TrafficOptions(initiator_vlan="9.100", responder_vlan="7"), NAT44)
    assert (plan.frame_size, plan.tag_octets) == (72, {"initiator": 8, "responder": 4})
    plan = make_plan(TrafficOptions(responder_vlan="7", frame_side="responder"), NAT44)
    assert plan.frame_size == 68
    assert (
        make_plan(
            TrafficOptions(connections=1000, initiator_vlan="4090+", source_addresses="10.0.0.2-10.0.0.6"), NAT44
        ).frame_size
        == 68
    )


@pytest.mark.parametrize(("vlan", "largest"), [(None, 1518), ("100", 1522), ("9.100", 1522)])
def test_a_port_takes_one_tag_more_than_its_mtu_says(vlan: str | None, largest: int) -> None:
    narrow = AddressPlan(INSIDE4, OUTSIDE4, mtu=1500)
    assert make_plan(TrafficOptions(frame_size=largest, initiator_vlan=vlan), narrow).frame_size == largest
    assert str(largest) in refusal(TrafficOptions(frame_size=largest + 1, initiator_vlan=vlan), narrow)


def test_ipv6_frames_have_at_least_84_octets() -> None:
    around = AddressPlan(INSIDE6, link("2001:2:0:8000::/64", "2001:2:0:8000::1", "2001:2:0:8000::2"), mtu=3498)
    assert make_plan(TrafficOptions(), around).frame_size == 84
    assert "84" in refusal(TrafficOptions(frame_size=83), around)


def test_the_size_of_a_nat64_frame_is_checked_on_both_sides() -> None:
    assert make_plan(TrafficOptions(), NAT64).frame_size == 84
    assert make_plan(TrafficOptions(frame_size=64, frame_side="responder"), NAT64).frame_size == 64
    message = refusal(TrafficOptions(frame_size=3400, frame_side="responder"), NAT64)
    assert "3420" in message
    assert "initiator" in message


def test_a_frame_larger_than_the_labs_mtu_is_refused(golden: Golden) -> None:
    narrow = AddressPlan(INSIDE4, OUTSIDE4, mtu=1500)
    assert make_plan(TrafficOptions(frame_size=1518), narrow).frame_size == 1518
    message = refusal(TrafficOptions(frame_size=9216), narrow)
    golden(message)
    wide = AddressPlan(INSIDE4, OUTSIDE4, mtu=9000)
    golden(refusal(TrafficOptions(frame_size=9216), wide))
    assert make_plan(TrafficOptions(frame_size=3412), wide).frame_size == 3412


def test_more_sources_than_the_outside_address_has_ports_are_refused() -> None:
    options = TrafficOptions(source_addresses="10.0.0.2-10.0.0.3", destination_ports="1")
    message = refusal(replace(options, connections=129_024))
    assert "129024" in message
    assert "64512" in message
    # Nobody asked for all four tuples: those that the outside ports hold. Half of them were silently left out.
    assert make_plan(options, NAT44).connections == 64_512
    routed = AddressPlan(INSIDE4, OUTSIDE4, translated=False)
    assert make_plan(options, routed).connections == 129024


def test_echo_requests_have_identifiers_in_place_of_source_ports_and_one_sequence_number(golden: Golden) -> None:
    plan = make_plan(TrafficOptions(transport="icmp"), NAT44)
    assert (plan.connections, plan.source_ports.count, plan.destination_ports.count) == (64_512, 64_512, 1)
    assert traffic_frame(plan, ("ipv4", "ipv4")).transport == "icmp"
    assert traffic_frame(make_plan(TrafficOptions(), NAT44), ("ipv4", "ipv4")).transport == "udp"
    two = TrafficOptions(transport="icmp", destination_ports="1-2")
    golden(refusal(two))
    assert "64512 four tuples" in refusal(TrafficOptions(transport="icmp", connections=64_513))


def test_tcp_frames_have_a_longer_header_and_each_four_tuple_is_opened_once(golden: Golden) -> None:
    plan = make_plan(TrafficOptions(transport="tcp"), NAT44)
    assert (plan.connections, plan.frame_size) == (100_000, 88)
    assert traffic_frame(plan, ("ipv4", "ipv4")).transport == "tcp"
    golden(refusal(TrafficOptions(transport="tcp", frame_size=87)))
    golden(refusal(TrafficOptions(transport="tcp", order="with-replacement")))


@pytest.mark.parametrize(("transport", "files"), [("udp", "udp_timeout"), ("icmp", "icmp"), ("tcp", "tcp_timeout")])
def test_each_transport_has_time_outs_of_its_own(transport: str, files: str) -> None:
    for gateway in ("nftables-nat44", "464xlat-tayga"):
        recipe = Bench(ask("throughput", gateway, {"transport": transport, "connections": 100}).cell).recipe
        for one in (recipe, recipe.of_devices(recipe.length)[recipe.holder]):
            assert one.knobs.udp_timeout is not None
            assert all(f"nf_conntrack_{files}" in path for path in one.knobs.udp_timeout.paths)


def test_a_space_beyond_the_largest_number_needs_a_number() -> None:
    message = refusal(TrafficOptions(destination_ports="1-65535"))
    assert "2^31" in message
    assert "--connections" in message


def test_a_rate_is_checked_once_between_the_command_line_and_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    check = Input.checked

    def counted(self: Input, value: Any) -> Any:
        checked.append(self.name)
        return check(self, value)

    monkeypatch.setattr(Input, "checked", counted)
    (described,) = [one for one in get("throughput").own_inputs() if one.name == "connection_rate"]
    rate = ValueType(described.type).convert("5000", None, None)
    planned = planned_of("throughput", {"connection_rate": rate})
    assert (rate, planned.settings.parameters()["connection_rate"], planned.chosen) == (
        5000,
        5000,
        {"connection_rate": 5000},
    )
    assert checked.count("connection_rate") == 1


def planned_of(metric: str, choices: dict[str, object]) -> Planned:
    question = ask(metric, "nftables-nat44", choices)
    return Bench(question.cell).plan(metric, question.settings)


def test_a_single_port_is_a_range_of_one() -> None:
    assert parse_ports("source ports", " 53 ") == Range(53, 53)
