# SPDX-License-Identifier: Apache-2.0
"""Gateways with several outside addresses: where they lie, what recipes make of them, and the ports that they have."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.unit.golden import Golden
from tests.unit.made_results import made

from natgauge.analysis.conditions import figure_of, unlike_conditions
from natgauge.analysis.sizing import Subscribers, sizings
from natgauge.cli import run
from natgauge.comparisons.request import read_gateways
from natgauge.errors import UsageError
from natgauge.gateways.recipe import available, load
from natgauge.labs.common.links import End
from natgauge.labs.netns.lab import NetnsLab
from natgauge.labs.ssh.layout import layout
from natgauge.reports.sizing.answer import text
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask

POOL = "198.19.128.0-198.19.128.3"
#: A recipe that names its outside addresses itself.
OWN = """
name = "own"
title = "a pool of its own"
kind = "nat44"
initiator_family = "ipv4"
responder_family = "ipv4"
stateful = true
source = "translated"
extends = ["linux-ipv4", "conntrack"]
[limits]
pool4 = "{}"
[verbs]
check = "true"
version = "true"
start = "true"
stop = "true"
"""


def bench(gateway: str = "nftables-nat44", **choices: object) -> Bench:
    return Bench(ask("connection-rate", gateway, choices).cell)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "own.toml"


@pytest.mark.parametrize("gateway", ["nftables-nat44", "jool-nat64", "464xlat-tayga", "ds-lite", "aftr"])
def test_a_pool_is_at_the_last_device_and_translations_are_checked_against_it(gateway: str) -> None:
    made_ = bench(gateway, outside_addresses=4)
    assert str(made_.address_plan.pool) == POOL
    assert made_.lab.parameters()["outside_addresses"] == 4
    *before, last = made_.lab.devices
    told = {name: last.environment[name] for name in ("NG_POOL4_FIRST", "NG_POOL4_LAST", "NG_POOL4")}
    assert told == {
        "NG_POOL4_FIRST": "198.19.128.0",
        "NG_POOL4_LAST": "198.19.128.3",
        "NG_POOL4": "198.19.128.0/30",
    }
    for device in before:
        own_address = device.environment["NG_OUTSIDE_ADDRESS4"]
        assert device.environment["NG_POOL4_FIRST"] == device.environment["NG_POOL4_LAST"] == own_address


def routed(lab: NetnsLab) -> list[tuple[End, str]]:
    ends = [end for cable in lab.cables for end in cable.ends]
    return [(end, str(network)) for end in ends for network in end.pool]


def test_the_outside_interface_of_the_last_device_has_the_pool_in_namespaces_and_over_ssh() -> None:
    chosen = {"initiator_family": "ipv4", "responder_family": "ipv4", "devices": ("a", "b")}
    lab = NetnsLab("x", **chosen, pool="198.19.128.0-198.19.128.2")  # type: ignore[arg-type]
    assert [(end.netns, end.interface, network) for end, network in routed(lab)] == [
        ("ng-x-b", "outside", "198.19.128.0/31"),
        ("ng-x-b", "outside", "198.19.128.2/32"),
    ]
    laid = layout("x", ["a", "b"], lab.cables, ("eth0", "eth1"))
    assert [end.pool for pair in laid.ends for end in pair if end.pool] == [routed(lab)[0][0].pool]
    assert NetnsLab("x", **lab.settings).pool == lab.pool


def test_one_outside_address_changes_nothing() -> None:
    usual, one = bench(), bench(outside_addresses=1)
    assert one.lab.parameters() == usual.lab.parameters()
    assert one.lab.devices == usual.lab.devices
    assert str(one.address_plan.pool) == str(usual.address_plan.pool) == "198.19.0.1"


def rules(gateway: str, tmp_path: Path, **choices: object) -> str:
    """The commands with which a recipe translates, as the programs get them."""
    programs = tmp_path / "bin"
    programs.mkdir(exist_ok=True)
    for name in ("nft", "iptables", "jool"):
        (programs / name).write_text('#!/bin/sh\necho "${0##*/}" "$@"\n[ "$1" != -f ] || cat\n')
        (programs / name).chmod(0o755)
    device = bench(gateway, **choices).lab.devices[-1]
    recipe = load(gateway).of_devices(1)[-1]
    snippet = next(one for one in recipe.verbs.start if any(word in one for word in ("POOL4", "pool4")))
    environment = {**recipe.environment, **device.environment, "PATH": f"{programs}:{os.environ['PATH']}"}
    return answer_of(snippet, environment)


def answer_of(snippet: str, environment: Mapping[str, str]) -> str:
    """What the commands of a snippet print."""
    shell = shutil.which("sh") or "/bin/sh"
    answer = subprocess.run([shell, "-eu", "-c", snippet], env=environment, capture_output=True, text=True, check=True)
    return answer.stdout


@pytest.mark.parametrize("gateway", ["nftables-nat44", "iptables-nat44", "tayga-iptables-nat64", "jool-nat64"])
def test_a_recipe_has_the_rules_of_one_address_or_those_of_a_pool(gateway: str, tmp_path: Path, golden: Golden) -> None:
    golden(f"{rules(gateway, tmp_path)}\n{rules(gateway, tmp_path, outside_addresses=4)}")


@pytest.mark.parametrize(("number", "named"), [(1, "198.19.0.1"), (4, "198.19.128.0 - 198.19.128.3")])
def test_a_pool_of_vpp_is_a_range(number: int, named: str, tmp_path: Path) -> None:
    (tmp_path / "threads").write_text("1\n")
    device = bench("vpp-nat44-ed", outside_addresses=number).lab.devices[-1]
    given = {"NG_WORK": str(tmp_path), "NG_SOURCE_ADDRESSES": "1", "PATH": os.environ["PATH"]}
    answer_of(load("vpp-nat44-ed").verbs.start[-1], {**device.environment, **given})
    assert f"nat44 add address {named}\n" in (tmp_path / "setup.cli").read_text()


def test_ports_of_all_outside_addresses_count() -> None:
    one_endpoint = {"destination_ports": "7", "source_addresses": "10.0.0.2-10.0.0.6"}
    assert bench(**one_endpoint, outside_addresses=4, connections=4 * 64_512).traffic.connections == 4 * 64_512
    for number, connections in ((4, 4 * 64_512 + 1), (1, 64_513)):
        with pytest.raises(UsageError, match=str(number * 64_512)):
            bench(**one_endpoint, outside_addresses=number, connections=connections)


@pytest.mark.parametrize(
    "text",
    [
        "198.19.0.1-198.19.0.4", "198.19.255.254-198.19.255.255", "10.0.7.1-10.0.7.4", "192.0.2.0-192.0.2.3",
        "203.0.0.0-203.0.255.255", "224.0.0.1-224.0.0.4", "203.0.113.4-203.0.113.1", "203.0.113", "198.19.0.0",
    ],
)  # fmt: skip
def test_a_recipes_own_pool_overlaps_nothing_of_the_lab(text: str, own: Path, golden: Golden) -> None:
    own.write_text(OWN.format(text))
    with golden.raises(UsageError):
        bench(str(own))


def test_a_recipe_may_name_its_pool(own: Path, golden: Golden) -> None:
    own.write_text(OWN.format("203.0.113.1-203.0.113.4"))
    for choices in ({}, {"outside_addresses": 4}):
        made_ = bench(str(own), **choices)
        assert str(made_.address_plan.pool) == "203.0.113.1-203.0.113.4"
        assert made_.lab.parameters()["outside_addresses"] == 4
        assert made_.lab.devices[0].environment["NG_POOL4"] == "203.0.113.1/32 203.0.113.2/31 203.0.113.4/32"
    with golden.raises(UsageError):
        bench(str(own), outside_addresses=2)


@pytest.mark.parametrize(
    ("target", "pool"),
    [
        ("203.0.113.1-203.0.113.4 persistent", "203.0.113.1-203.0.113.4"),
        ("203.0.113.1-203.0.113.4:1024-65535", "203.0.113.1-203.0.113.4"),
        ("203.0.113.0/30", "203.0.113.0-203.0.113.3"),
        ("$POOL", "203.0.113.8-203.0.113.9"),
        ("203.0.113.1", "203.0.113.1"),
        ("203.0.113.1:1024-65535", "203.0.113.1"),
        ("203.0.113.1-203.0.113.4\noifname wan1 masquerade", None),
        ("ip saddr map { 192.0.2.1 : 203.0.113.1 }", None),
    ],
)
def test_the_range_that_rules_translate_to_is_the_pool_of_their_gateway(
    target: str, pool: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    Path("router.conf").write_text(
        "define POOL = 203.0.113.8-203.0.113.9\ntable ip nat {\nchain post {\n"
        f"type nat hook postrouting priority 100;\niifname lan0 oifname wan0 snat to {target}\n}}\n}}\n"
    )
    names = ["--inside", "lan0", "--outside", "wan0"]
    assert run(["gateways", "new", "mine", "--from-nft", "router.conf", *names]) == 0
    assert load("./mine").pool4 == pool


def test_rules_with_two_ranges_make_no_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    ranges = ("203.0.113.1-203.0.113.4", "203.0.113.9-203.0.113.12")
    Path("router.conf").write_text("iifname lan0\n" + "".join(f"oifname wan0 snat to {each}\n" for each in ranges))
    assert run(["gateways", "new", "mine", "--from-nft", "router.conf", "--inside", "lan0", "--outside", "wan0"]) == 2
    golden(capsys.readouterr().err)


def test_gateways_that_can_have_a_pool_are_known_by_their_recipes() -> None:
    taking = {name for name in available() if load(name).takes_pool}
    assert {"nftables-nat44", "iptables-nat44", "jool-nat64", "tayga-nat64", "vpp-nat44-ed", "ds-lite"} <= taking
    assert not taking & {"linux-ipv4", "nftables-nat66", "docker-nat44", "map-t", "tayga-siit", "pasta-nat44"}


def test_figures_with_other_numbers_of_outside_addresses_are_told_apart() -> None:
    one, four = made(), made(parameters={"outside_addresses": 4})
    (condition,) = unlike_conditions([figure_of(one), figure_of(four)])
    assert condition.parameters == ("outside_addresses",)


def test_gateways_of_a_comparison_may_have_pools_of_their_own() -> None:
    names = ["nftables-nat44:outside_addresses=2", "nftables-nat44"]
    compared = read_gateways(names, {"outside_addresses": 4}, unlike=False)
    assert [one.question.cell.lab.outside_addresses for one in compared] == [2, 4]


def test_a_capacity_that_ports_limited_is_a_lower_bound_for_other_numbers_of_addresses() -> None:
    kept = made([258_048.0], metric="table-capacity", unit="connections", limited_by="port pool",
        parameters={"outside_addresses": 4})  # fmt: skip
    for number, most in ((None, 258_048.0), (4, 258_048.0), (8, 258_048.0), (1, 64_512.0)):
        (sizing,) = sizings([kept], Subscribers(1, connections=1.0, outside_addresses=number))
        (limit,) = [each for each in sizing.limits if each.ended == "open connections"]
        assert (limit.subscribers.lower, limit.subscribers.upper) == (most, float("inf"))


@pytest.mark.parametrize("number", [None, 1])
def test_ports_that_ended_a_capacity_are_what_to_change_and_no_table(number: int | None) -> None:
    kept = made([50_000.0] * 3, metric="table-capacity", unit="connections", limited_by="port pool",
        parameters={"outside_addresses": 1})  # fmt: skip
    asked = Subscribers(60_000, connections=1.0, outside_addresses=number)
    (sizing,) = sizings([kept], asked)
    assert sizing.fits(60_000) == "does not carry"
    said = text([sizing], asked)
    assert "To change: outside ports: more outside addresses" in said
    assert "larger table" not in said


def test_a_capacity_that_blocks_limited_is_a_lower_bound_because_more_subscribers_have_more_blocks() -> None:
    kept = made([1024.0], metric="table-capacity", unit="connections", limited_by="port block",
        parameters={"outside_addresses": 4})  # fmt: skip
    (sizing,) = sizings([kept], Subscribers(1, connections=1.0, outside_addresses=4))
    (limit,) = [each for each in sizing.limits if each.ended == "open connections"]
    assert (limit.subscribers.lower, limit.subscribers.upper) == (1024.0, float("inf"))
