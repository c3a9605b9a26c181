# SPDX-License-Identifier: Apache-2.0
"""A recipe whose rules let only some connections go says to which ports: whatever asks for its traffic sends there."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.golden import Golden

from natgauge.cli import run
from natgauge.comparisons.request import ComparedGateway, read_gateways, traffic_of_rules
from natgauge.errors import UsageError
from natgauge.gateways.accepted_ports import AcceptedPorts, Protocol
from natgauge.gateways.recipe import digest, load
from natgauge.gateways.toml_layers import BUILT_IN
from natgauge.trial.bench import Bench
from natgauge.trial.forwarding import causes
from natgauge.trial.question import ask, command

#: What rules that accept by port add to those of natgauge's own gateway.
MORE = """
[limits]
destination_ports = {{ {ports} }}

[verbs]
start = "nft add rule ip natgauge forward udp dport 443 accept"
"""
BOTH = 'udp = "443,53", tcp = "80,8000-8080"'


def written(name: str, ports: str = BOTH, transports: str = '["udp", "icmp", "tcp"]') -> str:
    """The path of a recipe with these ports."""
    own = (BUILT_IN / "nftables-nat44.toml").read_text().replace("nftables-nat44", name, 1)
    own = own.replace('["udp", "icmp", "tcp"]', transports)
    Path(f"{name}.toml").write_text(own + MORE.format(ports=ports))
    return f"./{name}.toml"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recipes are files of this folder."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("choices", "transport", "ports"),
    [
        ({}, "udp", "443"),
        ({"transport": "tcp"}, "tcp", "80"),
        ({"transport": "icmp"}, "icmp", None),
        ({"destination_ports": "7-9"}, "udp", "7-9"),
        ({"transport": "tcp", "destination_ports": "7-9"}, "tcp", "7-9"),
    ],
)
def test_frames_go_to_the_first_ports_that_the_rules_accept_unless_the_user_chose_others(
    choices: dict[str, object], transport: str, ports: str | None
) -> None:
    question = ask("throughput", written("mine"), choices)
    traffic = question.cell.traffic
    assert (traffic.transport, traffic.destination_ports) == (transport, ports)
    # What is recorded is what a user would have said: the command says it again.
    assert (f"--destination-ports {ports}" in command(question)) == (ports is not None)


def test_a_gateway_without_udp_is_asked_for_what_it_carries() -> None:
    mine = written("mine", 'tcp = "22"', '["tcp"]')
    traffic = ask("throughput", mine, {}).cell.traffic
    assert (traffic.transport, traffic.destination_ports) == ("tcp", "22")
    with pytest.raises(UsageError):
        Bench(ask("throughput", mine, {"transport": "udp"}).cell)


def test_a_metric_with_a_transport_of_its_own_goes_to_the_ports_of_that() -> None:
    mine = written("mine")
    assert ask("transaction-rate", mine, {}).cell.traffic.destination_ports == "80"
    assert ask("resolution-rate", mine, {}).cell.traffic.destination_ports == "53"
    # As where a user names ports, these make the number of connections.
    assert Bench(ask("subscribers", mine, {}).cell).traffic.connections == 64_512


def test_a_command_says_the_usual_transport_again_where_the_recipe_has_another_one() -> None:
    question = ask("throughput", written("mine", 'tcp = "22"', '["tcp", "icmp"]'), {"transport": "icmp"})
    words = shlex.split(command(question))
    assert words[words.index("--transport") + 1] == "icmp"
    both = written("both", 'tcp = "22"')
    assert "--transport" not in command(ask("throughput", both, {}))


@pytest.mark.parametrize("ports", ['udp = "0"', 'udp = "9-8"', 'udp = "443,"', 'udp = "70000"', 'icmp = "7"'])
def test_what_are_no_ports_is_refused(ports: str) -> None:
    with pytest.raises(UsageError, match="destination_ports"):
        load(written("mine", ports))


def test_other_ports_make_another_recipe() -> None:
    """A campaign that goes on must not go on with other traffic."""
    assert digest(load(written("mine"))) != digest(load(written("mine", 'udp = "53,443"')))


def ports(gateways: list[ComparedGateway]) -> list[str | None]:
    """The ports that the frames of each gateway go to."""
    return [gateway.question.cell.traffic.destination_ports for gateway in gateways]


def test_gateways_that_are_compared_have_the_same_traffic(golden: Golden) -> None:
    mine, other = written("mine"), written("other", 'udp = "53"')
    # The baseline's rules accept everything.
    plain = read_gateways(["nftables-nat44", mine], {}, unlike=False)
    assert ports(plain) == ["443", "443"]
    assert traffic_of_rules(plain) is None
    # A change of the ports: both have the traffic of the base, and this is said.
    unlike = read_gateways([mine, other], {}, unlike=False)
    assert ports(unlike) == ["443", "443"]
    golden(traffic_of_rules(unlike) or "")
    # The user's own go first, for all or for one.
    named = read_gateways([mine, other], {"destination_ports": "9"}, unlike=False)
    assert ports(named) == ["9", "9"]
    assert traffic_of_rules(named) is None
    own = read_gateways([mine, f"{other}:destination_ports=53"], {}, unlike=False)
    assert ports(own) == ["443", "53"]
    assert traffic_of_rules(own) is None
    assert "--destination-ports 443" in unlike[1].alone("up", "shared")


def test_a_gateway_that_forwards_nothing_is_told_with_its_frames_and_what_to_choose(golden: Golden) -> None:
    mine = written("mine")
    for gateway, choices in ((mine, {"destination_ports": "7"}), ("nftables-nat44", {"transport": "icmp"})):
        golden(Bench(ask("throughput", gateway, choices).cell).dropped_traffic(None))


def accepting(
    ports: Mapping[Protocol, tuple[tuple[int, int], ...]] | None = None,
    *refused: Protocol,
    sources: tuple[str, ...] = (),
) -> AcceptedPorts:
    """What forward chains accept; `sources`: from where alone they accept what a lab's hosts may not send."""
    return AcceptedPorts(ports or {}, frozenset(refused), frozenset(), dict.fromkeys(refused, sources))


@pytest.mark.parametrize(
    "accepted",
    [
        accepting(None, "udp", "tcp", "icmp", sources=("192.168.2.0/24",)),
        accepting({"tcp": ((80, 80), (443, 443))}, "udp"),
        accepting(None, "udp", "tcp", "icmp"),
        accepting({"udp": ((443, 443), (8000, 8080))}),
    ],
    ids=["source", "transport", "nothing", "ports"],
)
def test_the_rule_that_drops_the_frames_is_told_where_the_device_says_it(
    accepted: AcceptedPorts, golden: Golden
) -> None:
    bench = Bench(ask("throughput", "nftables-nat44", {}).cell)
    (cause,) = causes(bench.recipe, bench.traffic, accepted)
    golden(cause)


def test_no_rule_is_told_that_lets_the_frames() -> None:
    """Rules for the router named ports, and were said to drop what is forwarded."""
    mine = written("mine")
    bench = Bench(ask("throughput", mine, {}).cell)
    for accepted in (accepting(), accepting({"udp": ((443, 443),)}), accepting(None, "tcp")):
        assert causes(bench.recipe, bench.traffic, accepted) == []
        assert "--destination-ports" not in bench.dropped_traffic(accepted)
    assert "--destination-ports" in bench.dropped_traffic(None)
    assert "192.168.2.0/24" in bench.dropped_traffic(replace(accepting(), elsewhere=("192.168.2.0/24",)))


@pytest.mark.parametrize("old", ["192.168.1.0/24", "lan0", "wan0"])
def test_a_name_that_rules_no_longer_have_is_the_cause_with_the_line_that_makes_the_recipe_again(
    old: str, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network was renamed in a pull request, and ports of the rules were said to be the cause."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    rules = "table ip nat { chain post { type nat hook postrouting priority srcnat;\n"
    rules += 'iifname lan0 oifname "wan0" ip saddr 192.168.1.0/24 masquerade\n} }\n'
    Path("rules of mine").mkdir()
    file = Path("rules of mine/nftables.conf")
    file.write_text(rules)
    names = ["--inside", "lan0", "--outside", "wan0", "--inside-network", "192.168.1.0/24"]
    assert run(["gateways", "new", "gateway", "--from-nft", str(file), "--beside", *names]) == 0
    file.write_text(rules.replace(old, "10.9.0.0/16" if "/" in old else "br0"))
    bench = Bench(ask("throughput", "rules of mine/gateway.toml", {}).cell)
    (cause,) = causes(bench.recipe, bench.traffic, accepting(None, "udp"))
    golden(cause)
    removed, again = cause.partition("again: ")[2].split(" && ")
    subprocess.run(removed, shell=True, check=True)  # noqa: S602 - our own line
    assert run([word.replace("NAME", "br0") for word in shlex.split(again)[1:]]) == 0
    renewed = Bench(ask("throughput", "rules of mine/gateway.toml", {}).cell)
    assert causes(renewed.recipe, renewed.traffic, accepting()) == []
