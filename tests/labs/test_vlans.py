# SPDX-License-Identifier: Apache-2.0
"""VLAN tags through a real gateway: on either side, twice, one for each subscriber; and a gateway that forgets them."""

from __future__ import annotations

import json
import os
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final

import pytest
from tests.labs.known_costs.devices import program
from tests.labs.nat44 import variant

import natgauge
from natgauge.errors import BrokenError, HostError, NatgaugeError, UsageError
from natgauge.labs.common.addresses import INSIDE

SOURCE: Final = Path(__file__).with_name("vlans") / "tags.bpf.c"
#: Programs of tc in place of the interfaces of VLANs that a kernel may lack.
_RECIPE: Final = """
[limits]
takes_vlans = true

[verbs]
start = '''
put() {{
    ethtool -K "$1" txvlan off tx-vlan-stag-hw-insert off
    tc qdisc replace dev "$1" clsact
    tc filter replace dev "$1" ingress pref 1 handle 1 bpf da obj "$2" sec in
    tc filter replace dev "$1" egress pref 1 handle 1 bpf da obj "$2" sec out
}}
[ -z "${{NG_INSIDE_VLAN:-}}" ] || put "$NG_INSIDE" {inside}
[ -z "${{NG_OUTSIDE_VLAN:-}}" ] || put "$NG_OUTSIDE" {outside}
'''
stop = '''
for interface in "$NG_INSIDE" "$NG_OUTSIDE"; do tc qdisc del dev "$interface" clsact 2> /dev/null || true; done
'''
"""


def gateway(folder: Path, inside: str, outside: str) -> Path:
    """NAT44 with these tags, written as natgauge's options."""
    compiled = {}
    for side, text in {"inside": inside, "outside": outside}.items():
        service, _, vlan = text.removesuffix("+").rpartition(".")
        first = int(IPv4Address(int(INSIDE["ipv4"].host(0)))) if text.endswith("+") else 0
        own = folder / side
        own.mkdir()
        compiled[side] = program(own, SOURCE, SERVICE=service or 0, VLAN=vlan or 0, FIRST=first)
    return variant(folder, "vlans", _RECIPE.format(**compiled))


def measured(gateway: Path, folder: Path, **options: Any) -> dict[str, Any]:
    """A rough throughput."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    result = natgauge.measure(
        "throughput",
        gateway,
        connections=2000,
        repeat=1,
        profile="quick",
        error="50%",
        trial_seconds=0.2,
        lab_name=f"vlans{worker}",
        results=folder / "results",
        **options,
    )
    document: dict[str, Any] = result.document()
    return document


@pytest.mark.parametrize(
    ("inside", "outside", "more", "octets"),
    [
        pytest.param("100", "", {}, {"initiator": 68, "responder": 64}, marks=pytest.mark.soak),
        ("9.100", "200", {}, {"initiator": 72, "responder": 68}),
        ("100+", "", {"source_addresses": "10.0.0.2-10.0.0.33"}, {"initiator": 68, "responder": 64}),
        pytest.param(
            "9.4000", "200", {"frame_size": 1522}, {"initiator": 1522, "responder": 1518}, marks=pytest.mark.soak
        ),
        pytest.param("7", "7", {"transport": "tcp"}, {"initiator": 92, "responder": 92}, marks=pytest.mark.soak),
    ],
)
def test_frames_pass_a_gateway_with_vlans(
    tmp_path: Path, inside: str, outside: str, more: dict[str, Any], octets: dict[str, int]
) -> None:
    options = {"initiator_vlan": inside or None, "responder_vlan": outside or None, **more}
    document = measured(gateway(tmp_path, inside, outside), tmp_path, **options)
    assert document["median"] > 0
    traffic = document["parameters"]["traffic"]
    assert traffic["frame_octets"] == octets
    assert (traffic.get("initiator_vlan"), traffic.get("responder_vlan")) == (inside or None, outside or None)
    files = (tmp_path / "results").rglob("trials.jsonl")
    trials = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert any(trial["verdict"] == "PASS" for trial in trials)


def test_a_gateway_that_loses_the_tag_is_found(tmp_path: Path) -> None:
    tagging = gateway(tmp_path, "100", "200")
    text = tagging.read_text()
    assert "sec out" in text
    tagging.write_text(text.replace('[ -z "${NG_OUTSIDE_VLAN:-}" ] ||', "true ||"))
    with pytest.raises(NatgaugeError, match=r"VLAN") as refused:
        measured(tagging, tmp_path, initiator_vlan="100", responder_vlan="200")
    assert isinstance(refused.value, BrokenError | HostError)


def test_a_gateway_that_takes_no_vlans_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="takes_vlans") as refused:
        measured(Path("nftables-nat44"), tmp_path, initiator_vlan="100")
    assert refused.value.at == "initiator_vlan"
    assert not (tmp_path / "results").exists()
