# SPDX-License-Identifier: Apache-2.0
"""Which ports the forward chains of a rule set accept, from what nft prints of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from natgauge.gateways.accepted_ports import AcceptedPorts, accepted_ports, inside_network

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
