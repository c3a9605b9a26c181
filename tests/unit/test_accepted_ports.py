# SPDX-License-Identifier: Apache-2.0
"""Rules that let only some connections go: which ports nft's print accepts, and traffic that is sent there."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.test_new_recipe import BESIDE, new
from tests.unit.test_new_recipe import rules as translating

from natgauge.cli import run
from natgauge.comparisons.request import ComparedGateway, read_gateways, traffic_of_rules
from natgauge.errors import UsageError
from natgauge.gateways.accepted_ports import AcceptedPorts, Protocol, accepted_ports, inside_network
from natgauge.gateways.named_networks import having
from natgauge.gateways.recipe import digest, load, rules_of
from natgauge.gateways.rule_names import edit, edits_in, lost, unmatched
from natgauge.gateways.toml_layers import BUILT_IN
from natgauge.trial.bench import Bench
from natgauge.trial.forwarding import causes
from natgauge.trial.question import ask, command

Rule = Sequence[Mapping[str, Any]]
ACCEPT: Mapping[str, Any] = {"accept": None}
DROP: Mapping[str, Any] = {"drop": None}
ESTABLISHED: Rule = [
    {"vmap": {"key": {"ct": {"key": "state"}}, "data": {"set": [["established", ACCEPT], ["invalid", DROP]]}}}
]
ALL = "1-65535"


def match(left: Mapping[str, Any], right: object, op: str = "==") -> Mapping[str, Any]:
    """A comparison of a rule."""
    return {"match": {"op": op, "left": left, "right": right}}


def meta(key: str, right: object, op: str = "==") -> Mapping[str, Any]:
    return match({"meta": {"key": key}}, right, op)


def field(protocol: str, name: str, right: object, op: str = "==") -> Mapping[str, Any]:
    return match({"payload": {"protocol": protocol, "field": name}}, right, op)


def dport(protocol: str, right: object, op: str = "==") -> Mapping[str, Any]:
    return field(protocol, "dport", right, op)


def seen(*rules: Rule, policy: str = "drop", more: Sequence[Mapping[str, Any]] = (), hook: str = "forward") -> str:
    """What is accepted, as text: ports by protocol, "-" = none, "?" = not known, nothing = as many as a trial needs."""
    return shown(accepted_ports(printed(*rules, policy=policy, more=more, hook=hook), "lan0", "wan0"))


def printed(*rules: Rule, policy: str = "drop", more: Sequence[Mapping[str, Any]] = (), hook: str = "forward") -> str:
    """What nft prints of these rules."""
    table = {"family": "inet", "table": "filter"}
    kind = "filter" if hook != "postrouting" else "nat"
    base = {**table, "name": "main", "type": kind, "hook": hook, "prio": 0, "policy": policy}
    entries = [
        {"metainfo": {}},
        {"table": {"family": "inet", "name": "filter"}},
        {"chain": base},
        *more,
        *({"rule": {**table, "chain": "main", "expr": list(rule)}} for rule in rules),
    ]
    return json.dumps({"nftables": entries})


def shown(found: AcceptedPorts) -> str:
    texts = {name: ",".join(f"{first}-{last}" for first, last in ranges) for name, ranges in found.ports.items()}
    texts |= dict.fromkeys(found.refused, "-") | dict.fromkeys(found.unknown, "?")
    return " ".join(f"{name}:{texts[name]}" for name in ("udp", "tcp", "icmp") if name in texts)


def chain(name: str, *rules: Rule) -> list[Mapping[str, Any]]:
    """A chain that others jump to."""
    table = {"family": "inet", "table": "filter"}
    return [
        {"chain": {**table, "name": name}},
        *({"rule": {**table, "chain": name, "expr": list(rule)}} for rule in rules),
    ]


def named(name: str, elements: Sequence[object], kind: str = "set") -> Mapping[str, Any]:
    return {kind: {"family": "inet", "table": "filter", "name": name, "elem": list(elements)}}


WEB: Rule = [dport("tcp", {"set": [80, 443]}), ACCEPT]


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        ([], "udp:- tcp:- icmp:-"),
        ([[ACCEPT]], ""),
        ([ESTABLISHED, WEB], "udp:- tcp:80-80,443-443 icmp:-"),
        ([WEB, [dport("udp", 443), ACCEPT], [meta("l4proto", "icmp"), ACCEPT]], "udp:443-443 tcp:80-80,443-443"),
        ([[dport("tcp", {"range": [8000, 8080]}), ACCEPT]], "udp:- tcp:8000-8080 icmp:-"),
        ([[dport("udp", 1023, ">"), ACCEPT]], "udp:1024-65535 tcp:- icmp:-"),
        # Of both, and those of other protocols, interfaces and directions.
        ([[meta("l4proto", {"set": ["tcp", "udp"]}), dport("th", 443), ACCEPT]], "udp:443-443 tcp:443-443 icmp:-"),
        ([[field("ip", "protocol", 17), dport("th", 53), ACCEPT]], "udp:53-53 tcp:- icmp:-"),
        ([[meta("iifname", "lan0"), meta("oifname", "wan*"), *WEB]], "udp:- tcp:80-80,443-443 icmp:-"),
        ([[meta("iifname", "wan0"), *WEB]], "udp:- tcp:- icmp:-"),
        ([[meta("iifname", "wan0", "!="), *WEB]], "udp:- tcp:80-80,443-443 icmp:-"),
        ([[match({"ct": {"key": "status"}}, "dnat", "in"), ACCEPT]], "udp:- tcp:- icmp:-"),
        ([[match({"ct": {"key": "state"}}, ["established", "new"], "in"), *WEB]], "udp:- tcp:80-80,443-443 icmp:-"),
        ([[field("ip", "saddr", "192.168.7.5"), *WEB]], "udp:- tcp:- icmp:-"),
        ([[field("ip", "saddr", {"prefix": {"addr": "10.0.0.0", "len": 8}}), ACCEPT]], ""),
        ([[field("ip6", "saddr", "::1"), ACCEPT]], "udp:- tcp:- icmp:-"),
        # A rule before it has the last word.
        ([[dport("tcp", 80), DROP], WEB], "udp:- tcp:443-443 icmp:-"),
        ([[dport("tcp", 80), {"counter": {"packets": 4, "bytes": 9}}], WEB], "udp:- tcp:80-80,443-443 icmp:-"),
        # What is not known leaves it open, unless the rest says the same.
        ([[meta("mark", 7), *WEB]], "udp:- tcp:? icmp:-"),
        ([[meta("mark", 7), *WEB], WEB], "udp:- tcp:80-80,443-443 icmp:-"),
        ([[meta("mark", 7), DROP], WEB], "udp:- tcp:? icmp:-"),
        ([[{"limit": {"rate": 5}}, ACCEPT]], "udp:? tcp:? icmp:?"),
        ([[{"log": None}, {"limit": {"rate": 5}}]], "udp:- tcp:- icmp:-"),
        (
            [[{"vmap": {"key": {"payload": {"protocol": "tcp", "field": "dport"}}, "data": {"set": [[22, ACCEPT]]}}}]],
            "udp:- tcp:22-22 icmp:-",
        ),
    ],
)  # fmt: skip
def test_ports_that_a_chain_accepts_are_found(rules: list[Rule], found: str) -> None:
    assert seen(*rules) == found


def test_sets_maps_and_other_chains_are_looked_up() -> None:
    sets = [named("web", [80, {"range": [8000, 8001]}, {"elem": {"val": 443, "comment": "x"}}])]
    assert seen([dport("tcp", "@web"), ACCEPT], more=sets) == "udp:- tcp:80-80,443-443,8000-8001 icmp:-"
    maps = [
        named("by", [["lan0", {"jump": {"target": "out"}}]], "map"),
        *chain("out", WEB, [{"return": None}], [ACCEPT]),
    ]
    by: Rule = [{"vmap": {"key": {"meta": {"key": "iifname"}}, "data": "@by"}}]
    assert seen(by, [dport("udp", 53), ACCEPT], more=maps) == "udp:53-53 tcp:80-80,443-443 icmp:-"
    # After `goto` the policy decides.
    assert seen([{"goto": {"target": "out"}}], [ACCEPT], more=chain("out", WEB)) == "udp:- tcp:80-80,443-443 icmp:-"
    both: Rule = [
        match({"concat": [{"meta": {"key": "l4proto"}}, {"payload": {"protocol": "th", "field": "dport"}}]},
              {"set": [{"concat": ["tcp", 22]}, {"concat": ["udp", {"range": [5, 7]}]}]}),
        ACCEPT,
    ]  # fmt: skip
    assert seen(both) == "udp:5-7 tcp:22-22 icmp:-"
    assert seen([{"jump": {"target": "main"}}]) == "udp:? tcp:? icmp:?"


def test_only_what_frames_of_trials_would_miss_is_named() -> None:
    assert seen([dport("tcp", 7), DROP], policy="accept") == "tcp:1-6,8-65535"
    assert seen([dport("tcp", {"set": [25, 60000]}), DROP], policy="accept") == ""
    # A chain of the router's own packets.
    assert seen(policy="drop", hook="input") == ""


def test_all_chains_must_accept() -> None:
    second = {"chain": {"family": "ip", "table": "raw", "name": "x", "type": "filter", "hook": "forward", "prio": -5,
                        "policy": "drop"}}  # fmt: skip
    rule = {"rule": {"family": "ip", "table": "raw", "chain": "x", "expr": [dport("tcp", {"set": [443, 22]}), ACCEPT]}}
    assert seen(WEB, more=[second, rule]) == "udp:- tcp:443-443 icmp:-"


LAN, GUESTS = ({"prefix": {"addr": address, "len": 24}} for address in ("192.168.1.0", "192.168.50.0"))


def by_map(asked: Mapping[str, Any], *elements: object) -> Rule:
    """A rule with a verdict for each value of what is asked."""
    return ({"vmap": {"key": asked["match"]["left"], "data": {"set": [*elements]}}},)


SOME = {"range": ["192.168.1.51", "192.168.1.55"]}
FROM_LAN: Rule = (field("ip", "saddr", LAN),)
MASQUERADE: Rule = ({"masquerade": None},)


@pytest.mark.parametrize(
    ("rules", "sources"),
    [
        ([(*FROM_LAN, ACCEPT)], ("192.168.1.0/24",)),
        ([(field("ip", "saddr", {"set": [LAN, GUESTS]}), ACCEPT)], ("192.168.1.0/24", "192.168.50.0/24")),
        ([(field("ip", "saddr", "192.168.1.51"), ACCEPT)], ("192.168.1.51",)),
        ([(field("ip", "saddr", SOME), ACCEPT)], ("192.168.1.51-192.168.1.55",)),
        # From there nothing is accepted either.
        ([(*FROM_LAN, {"drop": None})], ()),
        ([(meta("oifname", "wan1"), *FROM_LAN, ACCEPT)], ()),
        ([(*FROM_LAN, {"drop": None}), (*FROM_LAN, ACCEPT)], ()),
        ([], ()),
    ],
)
def test_sources_from_which_alone_rules_accept_are_named(rules: list[Rule], sources: tuple[str, ...]) -> None:
    """Of a chain that accepts the network of a house it was said that it accepts no connection."""
    found = accepted_ports(printed(*rules), "lan0", "wan0")
    assert found.refused == {"udp", "tcp", "icmp"}
    assert dict(found.sources) == dict.fromkeys(("udp", "tcp", "icmp"), sources)


@pytest.mark.parametrize(
    ("rules", "network"),
    [
        ([(*FROM_LAN, ACCEPT)], "192.168.1.0/24"),
        ([(meta("iifname", "lan0"), *FROM_LAN, ACCEPT)], "192.168.1.0/24"),
        ([(meta("iifname", "lan0"), {"jump": {"target": "out"}})], "192.168.1.0/24"),
        ([by_map(meta("iifname", ""), ["lan0", {"jump": {"target": "out"}}])], "192.168.1.0/24"),
        ([by_map(meta("iifname", ""), ["guests", {"jump": {"target": "out"}}])], None),
        ([by_map(field("ip", "saddr", 0), [LAN, {"accept": None}])], "192.168.1.0/24"),
        ([by_map(field("ip", "saddr", 0), [LAN, {"drop": None}])], None),
        # A host of the network is no other source.
        ([(*FROM_LAN, ACCEPT), (field("ip", "saddr", "192.168.1.51"), ACCEPT)], "192.168.1.0/24"),
        ([(*FROM_LAN, ACCEPT), (field("ip", "saddr", "192.168.2.51"), ACCEPT)], None),
        ([(*FROM_LAN, ACCEPT), (field("ip", "saddr", GUESTS), ACCEPT)], None),
        ([(field("ip", "saddr", {"set": [LAN, GUESTS]}), ACCEPT)], None),
        ([(*FROM_LAN, ACCEPT), (field("ip", "saddr", SOME), ACCEPT)], None),
        # Guests come from elsewhere, and a list of what is dropped names no network of subscribers.
        ([(*FROM_LAN, ACCEPT), (meta("iifname", "guests"), field("ip", "saddr", GUESTS), ACCEPT)], "192.168.1.0/24"),
        ([(meta("iifname", "guests"), {"jump": {"target": "out"}})], None),
        ([(field("ip", "saddr", GUESTS), {"drop": None}), (*FROM_LAN, ACCEPT)], "192.168.1.0/24"),
        ([(field("ip", "saddr", LAN, "!="), ACCEPT)], None),
        ([(field("ip", "daddr", LAN), ACCEPT)], None),
        ([(field("ip", "saddr", "192.168.1.51"), ACCEPT)], None),
        # The hosts of a lab are in it.
        ([(field("ip", "saddr", {"prefix": {"addr": "10.0.0.0", "len": 8}}), ACCEPT)], None),
        ([], None),
    ],
)  # fmt: skip
def test_the_inside_network_is_the_only_source_that_rules_let(rules: list[Rule], network: str | None) -> None:
    more = chain("out", (*FROM_LAN, ACCEPT))
    found = inside_network(printed(*rules, more=more), "lan0", "wan0")
    assert (None if found is None else str(found)) == network


def test_the_inside_network_is_that_of_rules_that_translate_and_not_of_those_for_the_router() -> None:
    assert (
        str(inside_network(printed((*FROM_LAN, *MASQUERADE), hook="postrouting"), "lan0", "wan0")) == "192.168.1.0/24"
    )
    assert inside_network(printed((*FROM_LAN, ACCEPT), hook="input"), "lan0", "wan0") is None


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
    """Recipes are files of this folder, and nobody asks nft: that takes root."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


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
    old: str, golden: Golden
) -> None:
    """A network was renamed in a pull request, and ports of the rules were said to be the cause."""
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


def test_what_rules_name_of_the_traffic_is_found_in_snippets_and_in_files() -> None:
    text = translating("ip saddr { 198.18.0.0/15, 0.0.0.0/0 } drop", "masquerade")
    assert new("one", text=text) == 0
    addresses = IPv4Address("10.0.0.2"), IPv4Address("198.19.0.2")
    assert having(rules_of(load("./one")), addresses) == ["198.18.0.0/15"]
    assert having(rules_of(load("nftables-nat44")), addresses) == []
    assert having("a 10.0.0.1-10.0.0.9 # 10.0.0.0/16\n198.19.0.2:7 1.198.19.0.2 x10.0.0.2", addresses) == [
        "10.0.0.1-10.0.0.9", "198.19.0.2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "own", ["lan0", "br-lan.7", "eth*", "192.168.1.0/24", "203.0.113.1", "a+b", "x$y", "w|z", "{q}", "2001:db8::/32"]
)
def test_an_edit_of_a_recipe_can_be_read_back(own: str) -> None:
    snippet = f"sed -E {edit(own, 'NG_INSIDE')} {edit('wan0', 'NG_OUTSIDE')} file"
    assert edits_in(snippet) == {own: "NG_INSIDE", "wan0": "NG_OUTSIDE"}


LOSING = """\
define LAN = 192.168.1.0/24
table ip nat {
    set hosts { type ipv4_addr; elements = { 192.168.1.51, 192.168.1.52 } }
    chain post {
        type nat hook postrouting priority 100;
        iifname lan0 oifname "wan0" ip saddr $LAN snat to 203.0.113.1
        iifname "guests" ip daddr @hosts drop
    }
}
"""


@pytest.mark.parametrize(
    ("old", "changed", "names"),
    [
        ("", "", []),
        ("192.168.1.0/24", "192.168.2.0/24", ["192.168.1.0/24"]),
        # It stays where nothing uses it.
        ("$LAN", "192.168.2.0/24", ["192.168.1.0/24"]),
        ("iifname lan0", "iifname lan1", ["lan0"]),
        ("iifname lan0", "# iifname lan0\n        iifname lan1", ["lan0"]),
        ("203.0.113.1", "203.0.113.2", ["203.0.113.1"]),
        ("snat to 203.0.113.1", "masquerade", ["203.0.113.1"]),
    ],
)
def test_a_name_that_the_recipe_replaces_and_no_rule_has_any_more_is_found(
    old: str, changed: str, names: list[str]
) -> None:
    assert new(*BESIDE, text=LOSING) == 0
    Path("router.conf").write_text(LOSING.replace(old, changed))
    assert [*lost(load("./gateway.toml"))] == names


def test_what_a_recipe_leaves_unmatched_is_what_its_warning_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert new(*BESIDE, text=LOSING) == 0
    found = unmatched(load("./gateway.toml"))
    assert found == ["guests", "192.168.1.51", "192.168.1.52"]
    warned = capsys.readouterr().err
    assert all(name in warned for name in found)
    Path("router.conf").write_text(LOSING.replace("$LAN", "192.168.2.0/24"))
    assert unmatched(load("./gateway.toml")) == [*found, "192.168.2.0/24"]
    # Nothing is known of rules that have variables of their own.
    assert unmatched(load("nftables-nat44")) == []
