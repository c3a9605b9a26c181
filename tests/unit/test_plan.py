# SPDX-License-Identifier: Apache-2.0
"""From what the user asks for to four tuples and frames, and every refusal on the way."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulated_lab import NAT44, simulated
from tests.unit.golden import Golden

import natgauge
from natgauge.errors import UsageError

MAXIMUM_CONNECTIONS = 2**31


@dataclass(frozen=True, slots=True)
class Around:
    """A gateway, and what its lab knows of the traffic.

    Attributes:
        ground: of the lab, as of `Simulation`.
    """

    kind: str = "nat44"
    families: tuple[str, str] = ("ipv4", "ipv4")
    source: str = "translated"
    mapping: str = ""
    ground: Mapping[str, int | str] = field(default_factory=lambda: {"pool": "198.19.0.1"})

    def recipe(self, folder: Path) -> Path:
        text = NAT44.read_text().replace('"nat44"', f'"{self.kind}"').replace('"translated"', f'"{self.source}"')
        for side, family in zip(("initiator", "responder"), self.families, strict=True):
            text = text.replace(f'{side}_family = "ipv4"', f'{side}_family = "{family}"')
        limits = "[limits]\ntakes_vlans = true\n\n[verbs]"
        if self.mapping:
            limits = limits.replace("\n\n", f'\nmapping = "{self.mapping}"\npool_ports = [1024, 65535]\n\n')
        text = text.replace('["udp", "tcp"]', '["udp", "icmp", "tcp"]').replace("[verbs]", limits)
        file = folder / NAT44.name
        file.write_text(text)
        return file


SOME = Around()
NAT64 = Around("nat64", ("ipv6", "ipv4"))
SIIT = Around("siit", ("ipv6", "ipv4"), "mapped", ground={"mapped": "198.18.0.2-198.18.2.4"})
ROUTED = Around("routing", source="unchanged", ground={})
ROUTED6 = Around("routing", ("ipv6", "ipv6"), "unchanged", ground={})
NARROW, WIDE = (Around("routing", source="unchanged", ground={"mtu": mtu}) for mtu in (1500, 9000))
NO_REUSE = Around(mapping="endpoint-independent")


def measured(around: Around, asked: Mapping[str, Any]) -> tuple[Any, Any]:
    """The result, and what its first trial asks of the engine."""
    with tempfile.TemporaryDirectory() as folder, simulated() as simulation:
        simulation.ground = around.ground
        recipe, choices = around.recipe(Path(folder)), {"repeat": 1, "error": "50%", "seed": 1, **asked}
        found = natgauge.measure("connection-rate", recipe, lab="simulated", results=folder, **choices)
        lines = (found.folder / "trials.jsonl").read_text().splitlines()
        return found.document(), json.loads(lines[0])["request"]


def _flat(request: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Everything by its whole name, and ranges as users write them."""
    for name, one in request.items():
        if isinstance(one, dict) and {"first", "last"} <= set(one):
            yield before + name, f"{one['first']}-{one['last']}" if one["first"] != one["last"] else str(one["first"])
        elif isinstance(one, dict):
            yield from _flat(one, f"{before}{name}.")
        else:
            yield before + name, one


def refusal(around: Around, asked: Mapping[str, Any]) -> str:
    with pytest.raises(UsageError) as caught:
        measured(around, asked)
    message = str(caught.value)
    assert "\n" not in message
    return message


TWO_SOURCES = {"source_addresses": "10.0.0.2-10.0.0.3", "destination_ports": "1"}
#: What is asked for, the gateway, and what is asked of the engine; None = nothing.
PLANNED: list[tuple[dict[str, Any], Around, dict[str, Any]]] = [
    # A number alone takes wide source ports, and as few destination ports as needed.
    (
        {"connections": 100_000},
        SOME,
        {
            "initiator.source_ports": "1024-65535",
            "initiator.destination_ports": "1-2",
            "connections": 100_000,
            "initiator.source_addresses": "10.0.0.2",
            "responder.addresses": "198.19.0.2",
        },
    ),
    ({}, SOME, {"connections": 100_000}),
    # Ranges alone use the whole space, and source ports alone go to one destination port.
    (
        {
            "source_ports": "2000-2999",
            "destination_ports": "80-81",
            "source_addresses": "10.0.0.2-10.0.0.5",
            "destination_addresses": "198.19.0.2-198.19.0.4",
        },
        SOME,
        {"connections": 1000 * 2 * 4 * 3},
    ),
    ({"source_ports": "2000-2999"}, SOME, {"connections": 1000, "initiator.destination_ports": "1"}),
    # A single port is a range of one.
    ({"source_ports": " 53 ", "destination_ports": "7-9"}, SOME, {"connections": 3, "initiator.source_ports": "53"}),
    # An initiator behind NAT64 writes the responder inside the prefix.
    (
        {"destination_addresses": "198.19.0.2-198.19.0.9"},
        NAT64,
        {
            "initiator.destination_addresses": "2001:2:0:1::c613:2-2001:2:0:1::c613:9",
            "responder.addresses": "198.19.0.2-198.19.0.9",
        },
    ),
    # One behind a stateless translator has an address outside for each of its own.
    ({"source_addresses": "2001:2::2-2001:2::104"}, SIIT, {"translation.pool": "198.18.0.2-198.18.1.4"}),
    ({}, SIIT, {"translation.pool": "198.18.0.2"}),
    ({}, NAT64, {"translation.pool": "198.19.0.1", "frame.size": 84}),
    # Equal mixes are one mix, and each direction may have its own.
    (
        {"frame_sizes": "1518:2, 64:14,594:8"},
        SOME,
        {"frame.frame_sizes": "64:7,594:4,1518:1", "frame.down_frame_sizes": None, "frame.size": 64},
    ),
    (
        {"frame_size": 100, "down_frame_sizes": "594:1"},
        SOME,
        {"frame.frame_sizes": "100:1", "frame.down_frame_sizes": "594:1"},
    ),
    # Tags are part of the size, and the least frame is longer by them.
    (
        {"initiator_vlan": "9.100", "responder_vlan": "7"},
        SOME,
        {"frame.size": 72, "frame.initiator_vlan": "9.100", "frame.responder_vlan": "7"},
    ),
    ({"responder_vlan": "7", "frame_side": "responder"}, SOME, {"frame.size": 68}),
    (
        {"connections": 1000, "initiator_vlan": "4090+", "source_addresses": "10.0.0.2-10.0.0.6"},
        SOME,
        {"frame.size": 68},
    ),
    # A port takes one tag more than its MTU says.
    *(
        ({"frame_size": largest, "initiator_vlan": vlan}, NARROW, {"frame.size": largest})
        for vlan, largest in ((None, 1518), ("100", 1522), ("9.100", 1522))
    ),
    ({"frame_size": 3412}, WIDE, {"frame.size": 3412}),
    ({}, ROUTED6, {"frame.size": 84}),
    ({"frame_size": 64, "frame_side": "responder"}, NAT64, {"frame.size": 64}),
    # Nobody asked for all four tuples: those that the outside ports hold. Half of them were silently left out.
    (TWO_SOURCES, SOME, {"connections": 64_512}),
    (TWO_SOURCES, ROUTED, {"connections": 129_024}),
    # Echo requests have identifiers in place of source ports, and one sequence number.
    (
        {"transport": "icmp"},
        SOME,
        {"connections": 64_512, "initiator.source_ports": "1024-65535", "initiator.destination_ports": "1"},
    ),
    ({"transport": "tcp"}, SOME, {"connections": 100_000, "frame.size": 88}),
]


@pytest.mark.parametrize(("asked", "around", "planned"), PLANNED)
def test_what_is_asked_for_becomes(asked: dict[str, Any], around: Around, planned: dict[str, Any]) -> None:
    request = dict(_flat(measured(around, asked)[1]))
    planned = {**planned, "frame.transport": asked.get("transport", "udp")}
    assert {name: request.get(name) for name in planned} == planned


def test_the_mean_of_a_mix_is_that_of_its_frames() -> None:
    traffic = measured(SOME, {"frame_sizes": "64:7,594:4,1518:1"})[0]["parameters"]["traffic"]
    assert traffic["mean_frame_octets"]["down"]["responder"] == pytest.approx(361.83333)


REFUSED: list[tuple[dict[str, Any], Around]] = [
    # Source addresses that a stateless translator does not map.
    *(({"source_addresses": text}, SIIT) for text in ("2001:2::3-2001:2::9", "2001:2::2-2001:2::206", "2001:2::ff")),
    # Mixes in another form, and with more sizes or weights than the engine takes.
    *(
        ({"frame_sizes": text}, SOME)
        for text in (
            *("", "64", "64,594", "64=7", "64:7;594:4", "x:1", "64:1.5", "64:-1"),
            *("64:0,594:1", "64:7,594:4,64:1", "64:1001,594:1", ",".join(f"{64 + at}:1" for at in range(9))),
        )
    ),
    ({"frame_sizes": "64:7,3400:1", "frame_side": "responder"}, NAT64),
    # VLANs that no frame has.
    *(
        ({"initiator_vlan": text}, SOME)
        for text in ("", "0", "4095", "x", "1.2.3", "1.", "+", "1 ", "-1", "0.5", "9.4095")
    ),
    ({"responder_vlan": "9+"}, SOME),
    ({"initiator_vlan": "4090+", "source_addresses": "10.0.0.2-10.0.0.7"}, SOME),
    ({"initiator_vlan": "9.100", "frame_size": 71}, SOME),
    ({"responder_vlan": "9.100", "frame_size": 3405}, SOME),
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
    ({**TWO_SOURCES, "connections": 129_024}, SOME),
    ({**TWO_SOURCES, "connections": 100_000}, SOME),
    ({**TWO_SOURCES, "connections": 100_000}, NO_REUSE),
    ({"transport": "icmp", "destination_ports": "1-2"}, SOME),
    ({"transport": "icmp", "connections": 64_513}, SOME),
    # TCP frames have a longer header, and each four tuple is opened once.
    ({"transport": "tcp", "frame_size": 87}, SOME),
    ({"transport": "tcp", "order": "with-replacement"}, SOME),
    # A space beyond the largest number needs a number.
    ({"destination_ports": "1-65535"}, SOME),
]


@pytest.mark.parametrize(("asked", "around"), REFUSED)
def test_what_no_frame_or_address_can_have_is_refused_in_one_line(
    asked: dict[str, Any], around: Around, golden: Golden
) -> None:
    golden(refusal(around, asked))


@pytest.mark.parametrize(
    "hosts", [{"subscribers": 5000}, {"source_addresses": "10.0.0.2-10.0.19.137"}, {"subscribers": 2}]
)
@pytest.mark.parametrize("outside", ["198.19.0.10", "198.19.0.13"])
def test_hosts_that_share_outside_addresses_leave_half_of_their_ports_free(hosts: dict[str, Any], outside: str) -> None:
    """Seen: 300,000 connections of 5,000 subscribers filled 93 % of the ports, and were lost at every rate."""
    around = replace(SOME, ground={"pool": f"198.19.0.10-{outside}"})
    request = dict(_flat(measured(around, {"connections": 300_000, **hosts})[1]))
    addresses = {"198.19.0.10": 1, "198.19.0.13": 4}[outside]
    last = int(request["initiator.destination_ports"].rpartition("-")[2])
    free = addresses * 64_512 * last / request["connections"]
    assert 2 <= free < 3, "but no more than that"


@given(st.integers(min_value=1, max_value=MAXIMUM_CONNECTIONS))
@settings(max_examples=20, deadline=None)
def test_a_number_alone_always_fits_and_wastes_less_than_one_destination_port(connections: int) -> None:
    request = dict(_flat(measured(SOME, {"connections": connections})[1]))
    first, _, last = request["initiator.source_ports"].partition("-")
    sources, destinations = (
        int(last or first) - int(first) + 1,
        int(request["initiator.destination_ports"].rpartition("-")[2]),
    )
    assert request["connections"] == connections <= sources * destinations < connections + 64_512
