# SPDX-License-Identifier: Apache-2.0
"""A rule set that drops by policy and accepts by port: its recipe says where frames go, and what is printed works."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from natgauge.cli import run
from natgauge.comparisons.compare import compare
from natgauge.errors import BrokenError
from natgauge.gateways.recipe import load

RULES = """\
table inet filter {
    set web { type inet_service; elements = { 80, 443 }; }
    chain forward {
        type filter hook forward priority filter; policy drop;
        ip saddr 203.0.113.0/24 drop
        ct state vmap { established : accept, related : accept, invalid : drop }
        iifname "lan0" oifname "wan0" jump out
        iifname "wan0" oifname "lan0" ct status dnat accept
        counter
    }
    chain out {
        ip saddr 192.168.10.0/24 tcp dport @web accept
        meta l4proto udp th dport { 53, 443 } accept
    }
}
table ip nat {
    chain post { type nat hook postrouting priority srcnat; oifname "wan0" masquerade; }
}
"""


def test_what_a_new_recipe_prints_can_be_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("router.conf").write_text(RULES)
    names = ["--inside", "lan0", "--outside", "wan0"]
    assert run(["gateways", "new", "mine", "--from-nft", "router.conf", *names]) == 0
    said, noted = capsys.readouterr()
    assert noted.startswith("natgauge: router.conf: 192.168.10.0/24 ")
    mine = load("./mine")
    assert (mine.destination_ports, mine.transports) == ({"udp": "443,53", "tcp": "443,80"}, ("udp", "tcp"))
    command = shlex.split(said.partition("try it: ")[2])[1:]
    for transport in ([], ["--transport", "tcp"]):
        short = ["--quantities", "new", "--connections", "2000", "--most-seconds", "1", "--json"]
        assert run([*command, *transport, *short, "--results", "results"]) == 11
        compared = json.loads(capsys.readouterr().out)
        assert [each["parameters"]["traffic"]["destination_ports"] for each in compared["gateways"]] == ["443-443"] * 3
        assert [each["unmatched"] for each in compared["gateways"]] == [[], ["203.0.113.0/24"], []]


@pytest.mark.parametrize(
    ("old", "new", "told", "ports"),
    [
        # In both places, in one of them, and where the ports are the cause.
        ("192.168.10.0/24", "192.168.20.0/24", ["in the place of 192.168.10.0/24", "from 192.168.20.0/24"], False),
        (
            "192.168.10.0/24 udp",
            "192.168.20.0/24 udp",
            ["only from 192.168.20.0/24", "other rules name 192.168.10.0/24"],
            False,
        ),
        ("443, 7000", "443, 7099", ["only to ports 443 and 7099"], True),
        ("dport {", "dport { {", ["nftables.conf:5"], False),
    ],
)
def test_what_a_change_of_the_rules_broke_is_named(
    old: str, new: str, told: list[str], *, ports: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules of a pull request that dropped all frames were said to want other ports."""
    monkeypatch.chdir(tmp_path)
    rules = """\
table inet filter {
    chain input { type filter hook input priority filter; tcp dport 22 accept; }
    chain forward { type filter hook forward priority filter; policy drop;
        ct state established accept
        ip saddr 192.168.10.0/24 udp dport { 443, 7000 } iifname lan0 oifname wan0 accept
    }
    chain post { type nat hook postrouting priority srcnat; oifname wan0 ip saddr 192.168.10.0/24 masquerade; }
}
"""
    Path("nftables.conf").write_text(rules)
    names = ["--from-nft", "nftables.conf", "--inside", "lan0", "--outside", "wan0", "--beside"]
    assert run(["gateways", "new", "gateway", *names]) == 0
    changed = rules.replace(old, new)
    assert changed != rules
    Path("nftables.conf").write_text(changed)
    with pytest.raises(BrokenError) as raised:
        compare("nftables-nat44", "./gateway.toml", connections=2000, most_seconds=1, destination_ports="7000")
    assert all(text in str(raised.value) for text in told)
    assert ("--destination-ports" in str(raised.value)) == ports
