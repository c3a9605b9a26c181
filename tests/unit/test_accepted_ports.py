# SPDX-License-Identifier: Apache-2.0
"""Rules that let only some connections go: which ports nft's print accepts, and traffic that is sent there."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.simulated_lab import NAT44, Measured, measure
from tests.unit.conftest import Ran
from tests.unit.golden import Golden
from tests.unit.listed import shown
from tests.unit.routers import have_nft, new, nft_prints
from tests.unit.simulated import Gateway

from natgauge.cli import run
from natgauge.errors import BrokenError, UsageError

Rule: TypeAlias = Sequence[Mapping[str, Any]]
ACCEPT: Mapping[str, Any] = {"accept": None}
DROP: Mapping[str, Any] = {"drop": None}
ESTABLISHED: Rule = [
    {"vmap": {"key": {"ct": {"key": "state"}}, "data": {"set": [["established", ACCEPT], ["invalid", DROP]]}}}
]
ALL = "1-65535"
NFTABLES = Path(__file__).parents[2] / "src" / "natgauge" / "gateways" / "recipes" / "nftables-nat44.toml"


def match(left: Mapping[str, Any], right: object, op: str = "==") -> Mapping[str, Any]:
    """A comparison of a rule."""
    return {"match": {"op": op, "left": left, "right": right}}


def meta(key: str, right: object, op: str = "==") -> Mapping[str, Any]:
    return match({"meta": {"key": key}}, right, op)


def field(protocol: str, name: str, right: object, op: str = "==") -> Mapping[str, Any]:
    return match({"payload": {"protocol": protocol, "field": name}}, right, op)


def dport(protocol: str, right: object, op: str = "==") -> Mapping[str, Any]:
    return field(protocol, "dport", right, op)


#: A rule set that translates, and names the networks of the rules below.
ROUTER = """\
define LAN = 192.168.1.0/24
define GUESTS = 192.168.50.0/24
define HOST = 192.168.1.51
define WIDE = 10.0.0.0/8
table ip nat {
    chain post {
        type nat hook postrouting priority srcnat;
        iifname "lan0" oifname "wan0" ip saddr { $LAN, $GUESTS } masquerade
    }
}
"""


@pytest.fixture(autouse=True)
def elsewhere(in_an_empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recipes are files of this folder, and nobody asks nft: that takes root."""
    assert in_an_empty_folder.is_dir()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Makes a gateway of `ROUTER`, whose rules nft prints so; its recipe, and what was told."""
    have_nft(tmp_path / "programs of root", monkeypatch)
    number = iter(range(100))

    def of(prints: str) -> tuple[Any, str]:
        nft_prints(prints)
        name = f"router{next(number)}"
        assert new(name, text=ROUTER) == 0
        told = capsys.readouterr().err
        return shown(f"./{name}"), told

    return of


@pytest.fixture
def seen(made: Callable[..., Any]) -> Callable[..., str]:
    """What is accepted, as text: ports by protocol, "-" = none, "?" = not known, nothing = as many as a trial needs."""

    def of(*rules: Rule, policy: str = "drop", more: Sequence[Mapping[str, Any]] = (), hook: str = "forward") -> str:
        recipe, told = made(printed(*rules, policy=policy, more=more, hook=hook))
        texts = {name: "-" for name in ("udp", "tcp", "icmp") if name not in recipe["transports"]}
        if "accepts no new connection" in told or "accepts new connections to the outside only from" in told:
            return "udp:- tcp:- icmp:-"
        if unknown := re.search(r"whether its forward chain accepts (.*) is not known", told):
            texts |= {name: "?" for name in ("udp", "tcp", "icmp") if name.upper() in unknown[1]}
        for name, ports in recipe["limits"]["destination_ports"].items():
            ends = (one.partition("-") for one in ports.split(","))
            (port, end), *others = [(int(first), int(last or first)) for first, _, last in ends]
            # A usual port comes first, also where it is in a range.
            is_within = port == end and any(first <= port <= last for first, last in others)
            pairs = sorted(others if is_within else [(port, end), *others])
            texts[name] = ",".join(f"{first}-{last}" for first, last in pairs)
        return " ".join(f"{name}:{texts[name]}" for name in ("udp", "tcp", "icmp") if name in texts)

    return of


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
        ([[meta("iifname", "inside"), meta("oifname", "outs*"), *WEB]], "udp:- tcp:80-80,443-443 icmp:-"),
        ([[meta("iifname", "outside"), *WEB]], "udp:- tcp:- icmp:-"),
        ([[meta("iifname", "outside", "!="), *WEB]], "udp:- tcp:80-80,443-443 icmp:-"),
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
def test_ports_that_a_chain_accepts_are_found(rules: list[Rule], found: str, seen: Callable[..., str]) -> None:
    assert seen(*rules) == found


def test_sets_maps_and_other_chains_are_looked_up(seen: Callable[..., str]) -> None:
    sets = [named("web", [80, {"range": [8000, 8001]}, {"elem": {"val": 443, "comment": "x"}}])]
    assert seen([dport("tcp", "@web"), ACCEPT], more=sets) == "udp:- tcp:80-80,443-443,8000-8001 icmp:-"
    maps = [
        named("by", [["inside", {"jump": {"target": "out"}}]], "map"),
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


def test_only_what_frames_of_trials_would_miss_is_named(seen: Callable[..., str]) -> None:
    assert seen([dport("tcp", 7), DROP], policy="accept") == "tcp:1-6,8-65535"
    assert seen([dport("tcp", {"set": [25, 60000]}), DROP], policy="accept") == ""
    # A chain of the router's own packets.
    assert seen(policy="drop", hook="input") == ""


def test_all_chains_must_accept(seen: Callable[..., str]) -> None:
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
        ([(meta("oifname", "outside1"), *FROM_LAN, ACCEPT)], ()),
        ([(*FROM_LAN, {"drop": None}), (*FROM_LAN, ACCEPT)], ()),
        ([], ()),
    ],
)
def test_sources_from_which_alone_rules_accept_are_named(
    rules: list[Rule], sources: tuple[str, ...], made: Callable[..., Any]
) -> None:
    """Of a chain that accepts the network of a house it was said that it accepts no connection."""
    # Rules of two chains, so that no network is the only one.
    both = chain("guests", (field("ip", "saddr", GUESTS), MASQUERADE[0]))
    _, told = made(printed(*rules, more=both))
    only = re.search(r"accepts new connections to the outside only from (.*?), which no lab has", told)
    assert re.findall(r"[\d./-]+\d", only[1] if only else "") == [*sources]
    assert ("accepts no new connection" in told) == (not sources)


@pytest.mark.parametrize(
    ("rules", "network"),
    [
        ([(*FROM_LAN, ACCEPT)], "192.168.1.0/24"),
        ([(meta("iifname", "inside"), *FROM_LAN, ACCEPT)], "192.168.1.0/24"),
        ([(meta("iifname", "inside"), {"jump": {"target": "out"}})], "192.168.1.0/24"),
        ([by_map(meta("iifname", ""), ["inside", {"jump": {"target": "out"}}])], "192.168.1.0/24"),
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
def test_the_inside_network_is_the_only_source_that_rules_let(
    rules: list[Rule], network: str | None, made: Callable[..., Any]
) -> None:
    assert inside_of(made(printed(*rules, more=chain("out", (*FROM_LAN, ACCEPT))))[0]) == network


def inside_of(recipe: Any) -> str | None:
    """The network of the rules in whose place that of the lab is put."""
    (snippet,) = (one for one in recipe["verbs"]["start"] if "NG_RECIPE_FOLDER" in one)
    edits = [edit.replace("\\", "") for edit in snippet.split(" -e ") if "NG_INITIATOR_NETWORK4" in edit]
    networks = ("192.168.1.0/24", "192.168.50.0/24", "192.168.1.51", "10.0.0.0/8")
    found = next((network for network in networks for edit in edits if network in edit), None)
    assert (found is None) == (not edits)
    return found


def test_the_inside_network_is_that_of_rules_that_translate_and_not_of_those_for_the_router(
    made: Callable[..., Any],
) -> None:
    translating = printed((*FROM_LAN, *MASQUERADE), hook="postrouting")
    assert inside_of(made(translating)[0]) == "192.168.1.0/24"
    assert inside_of(made(printed((*FROM_LAN, ACCEPT), hook="input"))[0]) is None


BOTH = 'udp = "443,53", tcp = "80,8000-8080"'


def written(name: str, ports: str = BOTH, transports: str = '["udp", "icmp", "tcp"]') -> str:
    """The path of a recipe with these ports, whose rules name one."""
    own = NAT44.read_text().replace('"simulated"', f'"{name}"').replace('["udp", "tcp"]', transports)
    more = f'[limits]\ndestination_ports = {{ {ports} }}\n\n[environment]\nRULES = "udp dport 443 accept"\n\n[verbs]'
    Path(f"{name}.toml").write_text(own.replace("[verbs]", more))
    return f"./{name}.toml"


def told_by(command: str) -> str:
    """What a device with the kernel's NAT44 prints."""
    if "timeout" in command:
        return "\n".join(["120"] * command.count("/proc/sys/net/netfilter/"))
    return "0" if "nf_conntrack_count" in command else ""


def sent(gateway: str, metric: str = "connection-rate", **choices: Any) -> Measured:
    return measure(metric, Gateway(), gateway=Path(gateway), error="50%", **choices)


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
    choices: dict[str, Any], transport: str, ports: str | None
) -> None:
    found = sent(written("mine"), **choices)
    request, command = found.trials[0]["request"], found.document["parameters"]["place"]["command"]
    assert request["frame"]["transport"] == transport
    first, _, last = (ports or "1").partition("-")
    assert request["initiator"]["destination_ports"] == {"first": int(first), "last": int(last or first)}
    # What is recorded is what a user would have said: the command says it again.
    assert (f"--destination-ports {ports}" in command) == (ports is not None)


def test_a_gateway_without_udp_is_asked_for_what_it_carries() -> None:
    mine = written("mine", 'tcp = "22"', '["tcp"]')
    request = sent(mine).trials[0]["request"]
    assert (request["frame"]["transport"], request["initiator"]["destination_ports"]["first"]) == ("tcp", 22)
    with pytest.raises(UsageError):
        sent(mine, transport="udp")


def test_a_metric_with_a_transport_of_its_own_goes_to_the_ports_of_that() -> None:
    mine = written("mine")
    for metric, port in (("transaction-rate", 80), ("resolution-rate", 53)):
        rates = {"connection_rate": 1e5} if metric == "resolution-rate" else {}
        request = sent(mine, metric, connections=1000, **rates).trials[-1]["request"]
        assert request["initiator"]["destination_ports"] == {"first": port, "last": port}


def test_a_command_says_the_usual_transport_again_where_the_recipe_has_another_one() -> None:
    def words(gateway: str, **choices: Any) -> list[str]:
        return shlex.split(sent(gateway, **choices).document["parameters"]["place"]["command"])

    found = words(written("mine", 'tcp = "22"', '["tcp", "icmp"]'), transport="icmp")
    assert found[found.index("--transport") + 1] == "icmp"
    assert "--transport" not in words(written("both", 'tcp = "22"'))


@pytest.mark.parametrize("ports", ['udp = "0"', 'udp = "9-8"', 'udp = "443,"', 'udp = "70000"', 'icmp = "7"'])
def test_what_are_no_ports_is_refused(ports: str, ran: Ran) -> None:
    (said,) = ran(["gateways", "show", written("mine", ports)], status=2).err.splitlines()
    assert "destination_ports" in said


def test_other_ports_make_another_recipe() -> None:
    """A campaign that goes on must not go on with other traffic."""
    digests = []
    for ports in (BOTH, BOTH, 'udp = "53,443"'):
        found = sent(written("mine", ports), destination_ports="53")
        digests.append(found.document["parameters"]["device"]["recipe_digest"])
    assert digests[0] == digests[1] != digests[2]


def refusal(gateway: str, accepting: str = '{"nftables": []}', **choices: Any) -> str:
    """What is told of a gateway that forwards nothing, and whose device has these rules."""

    def prints(command: str) -> str:
        return accepting if "list ruleset" in command else told_by(command)

    truth = Gateway(probed=lambda _: False, prints=prints)
    # A gateway of a rule set has its rules in a file of this machine.
    place = {"log": Path("connections.log").absolute()}
    with pytest.raises(BrokenError) as caught:
        measure("connection-rate", truth, gateway=Path(gateway), place=place, **choices)
    return str(caught.value)


def test_a_gateway_that_forwards_nothing_is_told_with_its_frames_and_what_to_choose(golden: Golden) -> None:
    mine = written("mine")
    # Nobody can ask a device without nft.
    golden(refusal(mine, "", destination_ports="7"))
    golden(refusal(str(NFTABLES), "", transport="icmp"))


FROM_ELSEWHERE: Rule = (field("ip", "saddr", {"prefix": {"addr": "192.168.2.0", "len": 24}}), ACCEPT)


@pytest.mark.parametrize(
    "accepted",
    [
        printed(FROM_ELSEWHERE),
        printed(WEB),
        printed(),
        printed([dport("udp", {"set": [443, {"range": [8000, 8080]}]}), ACCEPT]),
    ],
    ids=["source", "transport", "nothing", "ports"],
)
def test_the_rule_that_drops_the_frames_is_told_where_the_device_says_it(accepted: str, golden: Golden) -> None:
    golden(refusal(str(NFTABLES), accepted))


@pytest.mark.parametrize(
    "accepted",
    [
        printed(policy="accept"),
        printed([dport("udp", 443), ACCEPT]),
        printed([dport("tcp", {"range": [1, 65535]}), DROP], policy="accept"),
    ],
    ids=["all", "its port", "no other transport"],
)
def test_no_rule_is_told_that_lets_the_frames(accepted: str) -> None:
    """Rules for the router named ports, and were said to drop what is forwarded."""
    mine = written("mine")
    assert "forward chain" not in refusal(mine, accepted)
    assert "--destination-ports" not in refusal(mine, accepted)
    assert "--destination-ports" in refusal(mine, "")


def test_a_source_of_translating_rules_that_no_lab_has_is_told() -> None:
    elsewhere = printed((*FROM_ELSEWHERE[:1], *MASQUERADE), hook="postrouting", policy="accept")
    assert "accept or translate from 192.168.2.0/24, which no lab has" in refusal(written("mine"), elsewhere)


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
    told = refusal("rules of mine/gateway.toml", printed([dport("tcp", 22), ACCEPT]))
    golden(told)
    removed, again = told.partition("again: ")[2].split(" && ")
    subprocess.run(removed, shell=True, check=True)  # noqa: S602 - our own line
    assert run([word.replace("NAME", "br0") for word in shlex.split(again)[1:]]) == 0
    assert "make the recipe again" not in refusal("rules of mine/gateway.toml")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("ip saddr { 198.18.0.0/15, 0.0.0.0/0 } drop", "198.18.0.0/15"),
        ("a 10.0.0.1-10.0.0.9 # 10.0.0.0/16\n198.19.0.2:7 1.198.19.0.2 x10.0.0.2", "10.0.0.1-10.0.0.9, 198.19.0.2"),
        ("ip saddr { 192.0.2.0/24, 198.19.0.2 } drop", "198.19.0.2"),
        ("masquerade", ""),
    ],
)
def test_what_rules_name_of_the_traffic_is_told_of_snippets_and_of_files(text: str, named: str) -> None:
    def told(gateway: str) -> str:
        return refusal(gateway, "").partition("its rules name ")[2].partition(", where")[0]

    environment = f"[environment]\nRULES = {json.dumps(text)}\n\n[verbs]"
    Path(NAT44.name).write_text(NAT44.read_text().replace("[verbs]", environment))
    assert told(NAT44.name) == named
    assert new("one", text=f'table ip nat {{ chain c {{ iifname lan0 oifname "wan0" masquerade; {text} }} }}') == 0
    assert told(str(Path("one").absolute())) == named


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
BESIDE = ["gateway", "--beside", "--inside", "lan0", "--outside", "wan0", "--inside-network", "192.168.1.0/24"]
BESIDE += ["--outside-address", "203.0.113.1"]


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
    assert re.findall(r"in the place of (\S+), which no rule", refusal("./gateway.toml")) == names
