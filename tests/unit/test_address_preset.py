# SPDX-License-Identifier: Apache-2.0
"""The preset of many addresses, and the doubt about one pair of addresses."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.simulated import Gateway
from tests.unit.test_measurer_verbs import check

from natgauge import doubts
from natgauge.procedures import get
from natgauge.records.parameters import Parameters

#: Hosts of a /16 without its network, its device and its broadcast address.
HOSTS = 65_533


@pytest.mark.parametrize(
    ("gateway", "first", "last"),
    [
        ("nftables-nat44", "10.0.0.2", "10.0.255.254"),
        ("nftables-nat66", "2001:2::2", "2001:2::fffe"),
        ("tayga-nat64", "2001:2::2", "2001:2::fffe"),
        ("464xlat-tayga", "10.0.0.2", "10.0.255.254"),
    ],
)
def test_all_hosts_of_both_networks_are_used_and_the_connections_stay(gateway: str, first: str, last: str) -> None:
    traffic = check("connection-rate", gateway, addresses="draft")[0].traffic
    assert (str(traffic.source_addresses.first), str(traffic.source_addresses.last)) == (first, last)
    assert (traffic.sources, traffic.responder_addresses.count) == (HOSTS, HOSTS)
    assert traffic.connections == check("connection-rate", gateway)[0].traffic.connections


def test_the_lab_has_room_for_the_neighbours() -> None:
    lab: Any = check("connection-rate", "nftables-nat44", addresses="draft")[0].lab
    assert lab.hosts == 2 * HOSTS


def pairs_doubted(
    hashes: list[str | None] | None, counts: tuple[int, int] = (1, 1), cores: int | None = 4, **traffic: Any
) -> int:
    """Number of doubts about the pair of addresses of a result with these parameters."""
    procedure = get("connection-rate")
    measured = procedure.measure(Gateway(), procedure.settings(connections=1000, placement="isolated", repeat=2))
    place: dict[str, Any] = {
        "device_cores": cores,
        "placement": "external",
        **({} if hashes is None else {"device_flow_hash": hashes}),
    }
    traffic |= dict(zip(("source_address_count", "destination_address_count"), counts, strict=True))
    found = doubts.find(measured, Parameters.grouped(place=place, traffic=traffic))
    return len([one for one in found if one.word == "one address pair"])


IPV4 = {"initiator_family": "ipv4", "responder_family": "ipv4"}
NAT64 = {"initiator_family": "ipv6", "responder_family": "ipv4"}


@pytest.mark.parametrize(
    ("hashes", "traffic", "number"),
    [
        (["sd, sdfn", "sdfn, sdfn"], IPV4, 1),
        # Of IPv6 the inside hashes ports, and no frame there is of IPv4.
        (["sd, sdfn", "sdfn, sdfn"], NAT64, 0),
        (["sdfn, sd", "sdfn, sdfn"], NAT64, 1),
        (["sdfn, sdfn", "sd, sdfn"], NAT64, 1),
        (["sdfn, sdfn", "sdfn, sd"], NAT64, 0),
        # Of the families nothing is known, or the interface reports one hash only.
        (["sd, sdfn", "sdfn, sdfn"], {}, 1),
        (["sd", "sdfn"], NAT64, 1),
        # The hash of TCP is not read.
        (["sd, sd", "sd, sd"], {**IPV4, "transport": "tcp"}, 0),
        # ICMP has no ports.
        (["sdfn, sdfn", "sdfn, sdfn"], {**IPV4, "transport": "icmp"}, 1),
        ([None, None], {**IPV4, "transport": "icmp"}, 1),
    ],
)
def test_the_hash_of_the_frames_of_each_side_is_judged(
    hashes: list[str | None], traffic: dict[str, Any], number: int
) -> None:
    assert pairs_doubted(hashes, **traffic) == number


@pytest.mark.parametrize(
    ("hashes", "counts", "cores", "number"),
    [
        (["sdfn, sdfn", "sd"], (1, 1), None, 1),
        (["sd, sd", "sd, sd"], (1, 2), 4, 0),
        (["sd, sd", "sd, sd"], (2, 1), 4, 0),
        (["sd, sd", "sd, sd"], (1, 1), 1, 0),
        (["sdfn, sdfn", "sdfn, sdfn"], (1, 1), 4, 0),
        ([None, None], (1, 1), 4, 0),
        (None, (1, 1), 4, 0),
    ],
)
def test_one_pair_of_addresses_is_doubted_where_the_device_hashes_nothing_else(
    hashes: list[str | None] | None, counts: tuple[int, int], cores: int | None, number: int
) -> None:
    assert pairs_doubted(hashes, counts, cores) == number
