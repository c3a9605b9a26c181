# SPDX-License-Identifier: Apache-2.0
"""Outside addresses of gateways, and blocks of their ports: where they lie, rule sets, refusals, causes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.golden import Golden
from tests.unit.made_results import made
from tests.unit.test_host_limits import OPENED
from tests.unit.test_host_limits import made as trial_of

from natgauge.analysis.conditions import figure_of, unlike_conditions
from natgauge.analysis.sizing import Subscribers, gives_blocks, sizings
from natgauge.causes.cause import Cause
from natgauge.causes.hops import TableState, cause_of, hops_of
from natgauge.cli import run
from natgauge.comparisons.request import read_gateways
from natgauge.errors import UsageError
from natgauge.gateways.port_sets import PortSets
from natgauge.gateways.preparation import DeviceSettings
from natgauge.gateways.recipe import available, load
from natgauge.gateways.toml_layers import BUILT_IN
from natgauge.host import machine
from natgauge.labs.common.links import End
from natgauge.labs.netns.lab import NetnsLab
from natgauge.labs.ssh.facts import layout
from natgauge.measurements.measure import parameters_of
from natgauge.port_blocks import PortBlocks
from natgauge.reports.sizing.answer import text
from natgauge.tester.own_rates import HighestRates
from natgauge.trial.bench import Bench, Ready
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
    assert "To raise the limit of outside ports: more outside addresses" in said
    assert "larger table" not in said


def test_a_capacity_that_blocks_limited_is_a_lower_bound_because_more_subscribers_have_more_blocks() -> None:
    kept = made([1024.0], metric="table-capacity", unit="connections", limited_by="port block",
        parameters={"outside_addresses": 4})  # fmt: skip
    (sizing,) = sizings([kept], Subscribers(1, connections=1.0, outside_addresses=4))
    (limit,) = [each for each in sizing.limits if each.ended == "open connections"]
    assert (limit.subscribers.lower, limit.subscribers.upper) == (1024.0, float("inf"))


FIRST_OF_POOL = IPv4Address("198.19.128.0")
GATEWAYS = ("cgn-deterministic", "cgn-port-blocks")
#: A rule set of a user with blocks of its own, as CGNs on nftables have it.
OWN_BLOCKS = """
name = "own"
title = "blocks of a user's rule set"
kind = "nat44"
initiator_family = "ipv4"
responder_family = "ipv4"
stateful = true
source = "translated"
extends = ["linux-ipv4", "conntrack", "port-blocks", "computed-blocks"]
[limits.port_blocks]
{}
"""


def plan(gateway: str | Path, metric: str = "connection-rate", **choices: object) -> Bench:
    """What is planned, before anything starts."""
    question = ask(metric, gateway, choices)
    bench = Bench(question.cell)
    bench.plan(metric, question.settings)
    return bench


def test_host_k_has_block_k() -> None:
    """RFC 7422 section 2: (65536 - 1024) / 64 ports for each of 64 hosts on an address, in order."""
    blocks = PortBlocks(size=1008, deterministic=True)
    assert blocks.per_address == 64
    assert blocks.of(0, FIRST_OF_POOL) == (FIRST_OF_POOL, 1024, 2031)
    assert blocks.of(63, FIRST_OF_POOL) == (FIRST_OF_POOL, 64_528, 65_535)
    assert blocks.of(64, FIRST_OF_POOL) == (FIRST_OF_POOL + 1, 1024, 2031)


@pytest.mark.parametrize("size", [1, 100, 1008, 4032, 64_512])
def test_every_port_is_of_one_block_or_of_none(size: int) -> None:
    blocks = PortBlocks(size=size)
    every = [blocks.of(host, FIRST_OF_POOL) for host in range(2 * blocks.per_address)]
    used = [(block.address, port) for block in every for port in range(block.first, block.last + 1)]
    assert len(used) == len({*used}) == 2 * blocks.per_address * size
    assert {address for address, _ in used} == {FIRST_OF_POOL, FIRST_OF_POOL + 1}
    assert min(port for _, port in used) >= 1024
    assert max(port for _, port in used) <= 65_535


def started(gateway: str | Path, tmp_path: Path, **variables: str) -> tuple[str, list[str]]:
    """What a recipe gives to nft, and the elements of its blocks."""
    (tmp_path / "nft").write_text('#!/bin/sh\necho "${0##*/}" "$@"\n[ "$1" != -f ] || cat\n')
    (tmp_path / "nft").chmod(0o755)
    recipe = load(gateway)
    assert recipe.limits.port_blocks
    device = Bench(ask("connection-rate", gateway, {"outside_addresses": 2}).cell).lab.devices[-1]
    environment = {
        **recipe.environment,
        **device.environment,
        **recipe.limits.port_blocks.environment(),
        "NG_WORK": str(tmp_path),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        **variables,
    }
    text = "".join(answer_of(piece, environment) for piece in recipe.verbs.start)
    return text, (tmp_path / "blocks").read_text().splitlines()


@pytest.mark.parametrize("gateway", GATEWAYS)
def test_the_rules_have_the_blocks_of_the_arithmetic(gateway: str, tmp_path: Path, golden: Golden) -> None:
    text, elements = started(gateway, tmp_path)
    blocks = load(gateway).limits.port_blocks
    assert blocks
    keys = [str(IPv4Address("10.0.0.2") + k) if blocks.deterministic else str(k + 1) for k in range(len(elements))]
    expected = [blocks.of(host, FIRST_OF_POOL) for host in range(2 * blocks.per_address)]
    made_ = [f"{key} : {one.address} . {one.first}-{one.last}," for key, one in zip(keys, expected, strict=True)]
    assert elements == made_
    golden("\n".join(line for line in text.splitlines() if line not in elements[1:-1]))


def test_no_host_outside_of_the_inside_network_has_a_block(tmp_path: Path) -> None:
    _, elements = started("cgn-deterministic", tmp_path, NG_INITIATOR_NETWORK4="10.0.0.0/27")
    assert [line.split()[0] for line in (elements[0], elements[-1])] == ["10.0.0.2", "10.0.0.30"]


def test_the_declared_blocks_of_det44_are_those_that_vpp_computes(tmp_path: Path) -> None:
    """VPP counts addresses from the first one of the inside prefix (snat_det_add_map, snat_det_forward)."""
    recipe = load("vpp-det44")
    device = Bench(ask("connection-rate", "vpp-det44", {"connections": 1000}).cell).lab.devices[-1]
    given = {"NG_WORK": str(tmp_path), "PATH": os.environ["PATH"]}
    answer_of(recipe.verbs.start[-1], {**device.environment, **given})
    (line,) = (tmp_path / "nat.cli").read_text().splitlines()
    found = re.fullmatch(r"det44 add in (\S+) out (\S+)/32", line)
    assert found
    assert (tmp_path / "empty.cli").read_text().splitlines() == [f"{line} del", line]
    inside, outside = IPv4Network(found[1]), IPv4Address(found[2])
    each = 64_512 // inside.num_addresses
    blocks, hosts = recipe.limits.port_blocks, recipe.limits.source_addresses
    assert blocks
    assert hosts == blocks.per_address
    for k in range(hosts):
        address = IPv4Address("10.0.0.2") + k
        first = 1024 + each * (int(address) - int(inside.network_address))
        assert address in inside
        assert blocks.of(k, outside) == (outside, first, first + each - 1)


def test_more_hosts_than_det44_serves_are_not_told_to_take_more_outside_addresses() -> None:
    with pytest.raises(UsageError, match="it serves at most 62; use fewer addresses") as refused:
        plan("vpp-det44", connections=2000, source_addresses="10.0.0.2-10.0.0.64")
    assert "--outside-addresses" not in str(refused.value)


def test_half_of_a_hosts_block_stays_free_where_natgauge_chooses_the_ports() -> None:
    bench = plan("cgn-deterministic", connections=100_000, source_addresses="10.0.0.2-10.0.0.65")
    assert bench.traffic.destination_ports.count == -(-100_000 // (64 * 504))


def test_a_search_for_the_capacity_may_use_up_the_blocks() -> None:
    plan("cgn-port-blocks", "table-capacity", connections=3000, source_addresses="10.0.0.2-10.0.0.5")


def test_more_subscribers_than_blocks_are_refused_where_each_is_counted() -> None:
    """Their first trials opened connections of all addresses, and the pool refused them at every rate."""
    hosts = "10.0.0.2-10.0.3.233"
    plan("cgn-port-blocks", "table-capacity", connections=3000, source_addresses=hosts)
    with pytest.raises(UsageError, match="1000 inside hosts need a block of 128 ports each"):
        plan("cgn-port-blocks", "subscribers", source_addresses=hosts)
    plan("cgn-port-blocks", "subscribers", source_addresses=hosts, outside_addresses=2)


@pytest.mark.parametrize("gateway", [*GATEWAYS, "vpp-det44"])
def test_subscribers_that_would_share_the_block_of_one_host_are_refused(gateway: str, golden: Golden) -> None:
    """Seen: vpp-det44 carried 5 subscribers, and the bottleneck was the port block."""
    with golden.raises(UsageError) as refused:
        plan(gateway, "subscribers")
    assert refused.value.at == "source_addresses"
    # As it says.
    plan(gateway, "subscribers", subscribers=9)
    plan(gateway, "subscribers", source_addresses="10.0.0.2-10.0.0.10")


def test_hosts_that_need_two_blocks_each_are_refused_where_there_is_one_for_each() -> None:
    """300 hosts of 129 connections each passed, and the two blocks of a host are of one address, which has 504."""
    hosts = "10.0.0.2-10.0.1.45"
    plan("cgn-port-blocks", connections=300 * 128, source_addresses=hosts)
    with pytest.raises(UsageError, match="need 2 blocks of 128 ports for each host") as refused:
        plan("cgn-port-blocks", connections=300 * 129, source_addresses=hosts)
    assert "1 outside address has them for 252 hosts" in str(refused.value)
    assert "(--outside-addresses 2)" in str(refused.value)
    plan("cgn-port-blocks", connections=300 * 129, source_addresses=hosts, outside_addresses=2)


@pytest.mark.parametrize(("hosts", "each"), [(400, 250), (400, 256), (400, 120), (64, 17)])
def test_no_host_draws_more_connections_than_its_blocks_have_ports(hosts: int, each: int) -> None:
    """Of 400 hosts with 250 connections each on average, a third had more than the 256 ports of their blocks."""
    addresses = f"10.0.0.2-{IPv4Address('10.0.0.1') + hosts}"
    traffic = plan("cgn-port-blocks", connections=hosts * each, source_addresses=addresses, outside_addresses=2).traffic
    most = PortBlocks.most_of_host(traffic.connections, hosts, traffic.space // hosts)
    blocks = PortBlocks(size=128, each=2)
    assert blocks.each_for(most) == blocks.each_for(each)
    # Where there is room for chance, source ports are many (RFC 9693 section 4.1).
    assert (traffic.source_ports.count == 64_512) == (each == 17)


def test_source_ports_that_give_a_host_too_many_connections_by_chance_are_refused(golden: Golden) -> None:
    hosts = "10.0.0.2-10.0.1.145"
    chosen: dict[str, Any] = {"connections": 100_000, "source_addresses": hosts, "outside_addresses": 2}
    with golden.raises(UsageError) as refused:
        plan("cgn-port-blocks", **chosen, source_ports="1024-2023", destination_ports="1")
    assert refused.value.at == "source_ports"
    plan("cgn-port-blocks", **chosen, source_ports="1024-1279", destination_ports="1")


@pytest.mark.parametrize(
    "table",
    [
        "size = 0", "size = 64513", "size = 600\nfirst_port = 65000", "size = 100\neach = 2\ndeterministic = true",
        "size = 100\neach = 65", "sizes = 100", 'size = "100"',
    ],
)  # fmt: skip
def test_blocks_that_cannot_be_are_refused(table: str, tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "own.toml").write_text(OWN_BLOCKS.format(table))
    with golden.raises(UsageError) as refused:
        load(tmp_path / "own.toml")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["nftables-nat66", "linux-ipv4", "aftr", "map-e-ce", "unchanged"])
def test_blocks_are_refused_of_gateways_whose_hosts_have_none(name: str, tmp_path: Path, golden: Golden) -> None:
    """An audit of NAT66 ended in a traceback, and snippets of kinds with port sets lacked these in `$NG_PSID_FIRST`."""
    text = OWN_BLOCKS.partition("[limits")[0].replace('"translated"', '"unchanged"').replace("own", name)
    if name != "unchanged":
        text = (BUILT_IN / f"{name}.toml").read_text()
    (tmp_path / f"{name}.toml").write_text(f"{text}\n[limits.port_blocks]\nsize = 256\n")
    with golden.raises(UsageError) as refused:
        load(tmp_path / f"{name}.toml")
    assert "\n" not in str(refused.value)


REFUSED = {"IpInReceives": 4000, "IpForwDatagrams": 2000, "IpOutTransmits": 2000, "conntrack insert_failed": 2000}


def cause(stored: tuple[int, ...], outside: tuple[str, ...], **others: Any) -> Cause:
    """The cause of a trial whose hosts kept connections on outside ports such as "0:1024-1151 1:7-9"."""
    record = trial_of(OPENED, stored, REFUSED)
    for counts, said in zip(record["result"]["state_table"]["by_source"], outside, strict=True):
        counts["outside"] = [
            {"address": f"198.19.128.{address}", "first": int(first), "last": int(last)}
            for address, first, last in (one.replace("-", ":").split(":") for one in said.split())
        ]
    record["request"]["translation"] = {"pool": {"first": "198.19.128.0", "last": "198.19.128.1"}}
    return cause_of(hops_of({**record, **others}), TableState(2000, 262_144), opens=True)


@pytest.mark.parametrize(
    ("stored", "outside", "kind"),
    [
        # Each has a range of its own of one address.
        ((500, 500, 500, 500), ("0:1024-1523", "0:1524-2023", "0:2024-2523", "0:2524-3023"), "port block"),
        ((500, 983, 1007, 994), ("0:1024-1523", "0:2000-2999", "0:3000-4099", "1:1-999"), "port block"),
        ((256, 900, 1007, 994), ("0:1024-1151 0:1408-1535", "0:2000-2999", "0:3000-4099", "1:1-999"), "port block"),
        # Their ports lie between each other.
        ((500, 500, 500, 500), ("0:1024-3000", "0:1025-3001", "0:1030-2990", "0:1024-2999"), "port pool"),
        # Hosts without a port are those that lost most.
        ((1016, 900, 0, 0), ("0:1024-2039", "0:2040-2939", "", ""), "port pool"),
        # Each has an address for itself, or the ports are not known.
        ((500, 500, 1007, 994), ("0:1024-1523", "1:1024-1523", "", ""), "port pool"),
        ((500, 500, 500, 500), ("", "", "", ""), "port pool"),
        ((500, 500, 1007, 994), ("0:1-40000", "0:40001-65535", "1:1-1007", "1:2000-3000"), "port pool"),
    ],
)  # fmt: skip
def test_ports_of_hosts_tell_a_full_block_from_a_full_pool(
    stored: tuple[int, ...], outside: tuple[str, ...], kind: str, golden: Golden
) -> None:
    found = cause(stored, outside)
    assert (found.kind, found.limited_by, found.certainty) == (kind, kind, "seen")
    golden(found.words)


@pytest.mark.parametrize(("counter", "kind"), [("port_blocks_used_up", "port block"), ("no_port_block", "port pool")])
def test_refusals_that_a_gateway_counts_name_the_block_or_the_pool(counter: str, kind: str, golden: Golden) -> None:
    network: Mapping[str, Any] = {"gateway": {**REFUSED, "conntrack insert_failed": 0}}
    found = cause((500, 500, 0, 0), ("", "", "", ""), network_counters=network, device_faults={counter: 2000})
    assert (found.kind, found.counter) == (kind, counter)
    golden(found.words)


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
