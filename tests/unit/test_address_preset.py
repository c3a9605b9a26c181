# SPDX-License-Identifier: Apache-2.0
"""The preset of many addresses, and the doubt about one pair of addresses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.simulated_lab import NAT44, measure
from tests.unit.conftest import Ran
from tests.unit.made_results import kept, made

#: Hosts of a /16 without its network, its device and its broadcast address.
HOSTS = 65_533
DEFAULT_CONNECTIONS = 100_000


@pytest.mark.parametrize(
    ("kind", "families", "first", "last"),
    [
        ("nat44", ("ipv4", "ipv4"), "10.0.0.2", "10.0.255.254"),
        ("nat66", ("ipv6", "ipv6"), "2001:2::2", "2001:2::fffe"),
        ("nat64", ("ipv6", "ipv4"), "2001:2::2", "2001:2::fffe"),
    ],
)
def test_all_hosts_of_both_networks_are_used_and_the_connections_stay(
    kind: str, families: tuple[str, str], first: str, last: str, tmp_path: Path
) -> None:
    text = NAT44.read_text().replace('"nat44"', f'"{kind}"')
    for side, family in zip(("initiator", "responder"), families, strict=True):
        text = text.replace(f'{side}_family = "ipv4"', f'{side}_family = "{family}"')
    gateway = tmp_path / NAT44.name
    gateway.write_text(text)
    draft = measure("table-capacity", gateway=gateway, addresses="draft")
    traffic = draft.document["parameters"]["traffic"]
    assert traffic["source_addresses"] == f"{first}-{last}"
    assert (traffic["source_address_count"], traffic["destination_address_count"]) == (HOSTS, HOSTS)
    assert traffic["connections"] == DEFAULT_CONNECTIONS
    hosts = {trial["request"]["responder"]["addresses"]["last"] for trial in draft.trials}
    assert hosts == {traffic["destination_addresses"].partition("-")[2]}


def pairs_doubted(
    ran: Ran,
    folder: Path,
    hashes: list[str | None] | None,
    *,
    counts: tuple[int, int] = (1, 1),
    cores: int | None = 4,
    **traffic: Any,
) -> int:
    """Number of doubts about the pair of addresses of a result with these parameters."""
    place = {"device_cores": cores, "placement": "external", "lab_kind": "ssh", "device_flow_hash": hashes}
    traffic |= dict(zip(("source_address_count", "destination_address_count"), counts, strict=True))
    result = made([1e5, 1e5], metric="connection-rate", unit="connections/s", parameters={**place, **traffic})
    found = json.loads(ran(["report", str(kept(folder, result)), "--format", "json"]).out)["doubts"]
    return sum(doubt["word"] == "one address pair" for doubt in found)


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
    hashes: list[str | None], traffic: dict[str, Any], number: int, tmp_path: Path, ran: Ran
) -> None:
    assert pairs_doubted(ran, tmp_path, hashes, **traffic) == number


@pytest.mark.parametrize(
    ("hashes", "others", "number"),
    [
        (["sdfn, sdfn", "sd"], {"cores": None}, 1),
        (["sd, sd", "sd, sd"], {}, 1),
        (["sd, sd", "sd, sd"], {"counts": (1, 2)}, 0),
        (["sd, sd", "sd, sd"], {"counts": (2, 1)}, 0),
        (["sd, sd", "sd, sd"], {"cores": 1}, 0),
        (["sdfn, sdfn", "sdfn, sdfn"], {}, 0),
        ([None, None], {}, 0),
        (None, {}, 0),
    ],
)
def test_one_pair_of_addresses_is_doubted_where_the_device_hashes_nothing_else(
    hashes: list[str | None] | None, others: dict[str, Any], number: int, tmp_path: Path, ran: Ran
) -> None:
    assert pairs_doubted(ran, tmp_path, hashes, **others) == number
