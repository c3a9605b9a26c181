# SPDX-License-Identifier: Apache-2.0
"""From what the user asks for to four tuples and frames, and every refusal on the way."""

from __future__ import annotations

import ipaddress
from dataclasses import replace
from operator import attrgetter
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


ROUTED6 = AddressPlan(INSIDE6, link("2001:2:0:8000::/64", "2001:2:0:8000::1", "2001:2:0:8000::2"), mtu=3498)
NARROW, WIDE = AddressPlan(INSIDE4, OUTSIDE4, mtu=1500), AddressPlan(INSIDE4, OUTSIDE4, mtu=9000)
TWO_SOURCES = {"source_addresses": "10.0.0.2-10.0.0.3", "destination_ports": "1"}
#: What is asked for, the networks around it, and what is planned.
PLANNED: list[tuple[dict[str, Any], AddressPlan, dict[str, Any]]] = [
    # A number alone takes wide source ports, and as few destination ports as needed.
    (
        {"connections": 100_000},
        NAT44,
        {
            "source_ports": Range(1024, 65535),
            "destination_ports": Range(1, 2),
            "connections": 100_000,
            "source_addresses": "10.0.0.2",
            "responder_addresses": "198.19.0.2",
        },
    ),
    ({}, NAT44, {"connections": DEFAULT_CONNECTIONS}),
    # Ranges alone use the whole space, and source ports alone go to one destination port.
    (
        {
            "source_ports": "2000-2999",
            "destination_ports": "80-81",
            "source_addresses": "10.0.0.2-10.0.0.5",
            "destination_addresses": "198.19.0.2-198.19.0.4",
        },
        NAT44,
        {"connections": 1000 * 2 * 4 * 3},
    ),
    ({"source_ports": "2000-2999"}, NAT44, {"connections": 1000, "destination_ports": Range(1, 1)}),
    # An initiator behind NAT64 writes the responder inside the prefix.
    (
        {"destination_addresses": "198.19.0.2-198.19.0.9"},
        NAT64,
        {
            "destination_addresses": "2001:2:0:1::c613:2-2001:2:0:1::c613:9",
            "responder_addresses": "198.19.0.2-198.19.0.9",
        },
    ),
    # One behind a stateless translator has an address outside for each of its own.
    ({"source_addresses": "2001:2::2-2001:2::104"}, SIIT, {"mapped_addresses": "198.18.0.2-198.18.1.4"}),
    ({}, SIIT, {"mapped_addresses": "198.18.0.2"}),
    ({}, NAT64, {"mapped_addresses": None, "frame_size": 84}),
    # Equal mixes are one mix, and each direction may have its own.
    (
        {"frame_sizes": "1518:2, 64:14,594:8"},
        NAT44,
        {"frames.frame_sizes": "64:7,594:4,1518:1", "frames.down_frame_sizes": None, "frame_size": 64},
    ),
    (
        {"frame_size": 100, "down_frame_sizes": "594:1"},
        NAT44,
        {"frames.frame_sizes": "100:1", "frames.down_frame_sizes": "594:1"},
    ),
    # Tags are part of the size, and the least frame is longer by them.
    (
        {"initiator_vlan": "9.100", "responder_vlan": "7"},
        NAT44,
        {"frame_size": 72, "tag_octets": {"initiator": 8, "responder": 4}},
    ),
    ({"responder_vlan": "7", "frame_side": "responder"}, NAT44, {"frame_size": 68}),
    (
        {"connections": 1000, "initiator_vlan": "4090+", "source_addresses": "10.0.0.2-10.0.0.6"},
        NAT44,
        {"frame_size": 68},
    ),
    # A port takes one tag more than its MTU says.
    *(
        ({"frame_size": largest, "initiator_vlan": vlan}, NARROW, {"frame_size": largest})
        for vlan, largest in ((None, 1518), ("100", 1522), ("9.100", 1522))
    ),
    ({"frame_size": 3412}, WIDE, {"frame_size": 3412}),
    ({}, ROUTED6, {"frame_size": 84}),
    ({"frame_size": 64, "frame_side": "responder"}, NAT64, {"frame_size": 64}),
    # Nobody asked for all four tuples: those that the outside ports hold. Half of them were silently left out.
    (TWO_SOURCES, NAT44, {"connections": 64_512}),
    (TWO_SOURCES, AddressPlan(INSIDE4, OUTSIDE4, translated=False), {"connections": 129_024}),
    # Echo requests have identifiers in place of source ports, and one sequence number.
    (
        {"transport": "icmp"},
        NAT44,
        {"connections": 64_512, "source_ports.count": 64_512, "destination_ports.count": 1},
    ),
    ({"transport": "tcp"}, NAT44, {"connections": 100_000, "frame_size": 88}),
]


@pytest.mark.parametrize(("asked", "around", "planned"), PLANNED)
def test_what_is_asked_for_becomes(asked: dict[str, Any], around: AddressPlan, planned: dict[str, Any]) -> None:
    plan = make_plan(TrafficOptions(**asked), around)
    found = {name: attrgetter(name)(plan) for name in planned}
    assert {name: str(one) if name.endswith("_addresses") and one else one for name, one in found.items()} == planned
    transport = asked.get("transport", "udp")
    assert traffic_frame(plan, ("ipv4", "ipv4")).transport == transport


def test_the_mean_of_a_mix_is_that_of_its_frames() -> None:
    assert make_plan(TrafficOptions(frame_sizes="64:7,594:4,1518:1"), NAT44).mixes["down"].mean == pytest.approx(
        361.83333
    )


REFUSED: list[tuple[dict[str, Any], AddressPlan]] = [
    # Source addresses that a stateless translator does not map.
    *(({"source_addresses": text}, SIIT) for text in ("2001:2::3-2001:2::9", "2001:2::2-2001:2::206", "2001:2::ff")),
    # Mixes in another form, and with more sizes or weights than the engine takes.
    *(
        ({"frame_sizes": text}, NAT44)
        for text in (
            *("", "64", "64,594", "64=7", "64:7;594:4", "x:1", "64:1.5", "64:-1"),
            *("64:0,594:1", "64:7,594:4,64:1", "64:1001,594:1", ",".join(f"{64 + at}:1" for at in range(9))),
        )
    ),
    ({"frame_sizes": "64:7,3400:1", "frame_side": "responder"}, NAT64),
    # VLANs that no frame has.
    *(
        ({"initiator_vlan": text}, NAT44)
        for text in ("", "0", "4095", "x", "1.2.3", "1.", "+", "1 ", "-1", "0.5", "9.4095")
    ),
    ({"responder_vlan": "9+"}, NAT44),
    ({"initiator_vlan": "4090+", "source_addresses": "10.0.0.2-10.0.0.7"}, NAT44),
    ({"initiator_vlan": "9.100", "frame_size": 71}, NAT44),
    ({"responder_vlan": "9.100", "frame_size": 3405}, NAT44),
    # Frames that are too large for one side, or too small.
    *(
        ({"frame_size": largest + 1, "initiator_vlan": vlan}, NARROW)
        for vlan, largest in ((None, 1518), ("100", 1522), ("9.100", 1522))
    ),
    ({"frame_size": 9216}, NARROW),
    ({"frame_size": 9216}, WIDE),
    ({"frame_size": 83}, ROUTED6),
    ({"frame_size": 3400, "frame_side": "responder"}, NAT64),
    # More four tuples than the outside address has ports; more destination ports help only where a port serves several.
    ({**TWO_SOURCES, "connections": 129_024}, NAT44),
    ({**TWO_SOURCES, "connections": 100_000}, NAT44),
    ({**TWO_SOURCES, "connections": 100_000}, replace(NAT44, reuses_ports=False)),
    ({"transport": "icmp", "destination_ports": "1-2"}, NAT44),
    ({"transport": "icmp", "connections": 64_513}, NAT44),
    # TCP frames have a longer header, and each four tuple is opened once.
    ({"transport": "tcp", "frame_size": 87}, NAT44),
    ({"transport": "tcp", "order": "with-replacement"}, NAT44),
    # A space beyond the largest number needs a number.
    ({"destination_ports": "1-65535"}, NAT44),
]


@pytest.mark.parametrize(("asked", "around"), REFUSED)
def test_what_no_frame_or_address_can_have_is_refused_in_one_line(
    asked: dict[str, Any], around: AddressPlan, golden: Golden
) -> None:
    golden(refusal(TrafficOptions(**asked), around))


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


@pytest.mark.parametrize(("transport", "files"), [("udp", "udp_timeout"), ("icmp", "icmp"), ("tcp", "tcp_timeout")])
def test_each_transport_has_time_outs_of_its_own(transport: str, files: str) -> None:
    for gateway in ("nftables-nat44", "464xlat-tayga"):
        recipe = Bench(ask("throughput", gateway, {"transport": transport, "connections": 100}).cell).recipe
        for one in (recipe, recipe.of_devices(recipe.length)[recipe.holder]):
            assert one.knobs.udp_timeout is not None
            assert all(f"nf_conntrack_{files}" in path for path in one.knobs.udp_timeout.paths)


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
