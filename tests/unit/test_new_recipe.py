# SPDX-License-Identifier: Apache-2.0
"""A recipe of an existing rule set: its own names become those of a lab, and everything else stays as it is."""

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
from tests.unit.golden import Golden
from tests.unit.listed import shown
from tests.unit.routers import PORTS, have_nft, new, nft_prints

from natgauge.cli import run

#: Expressions of a rule, as nft prints them.
Rule: TypeAlias = Sequence[Mapping[str, Any]]

RULES = """\
define LAN = 192.168.1.0/24
table ip nat {
    chain post {
        type nat hook postrouting priority 100;
        iifname lan0 oifname { "wan0" } counter # lan0.100 is another one, and so is xlan0
        oifname "wan0" ip saddr $LAN snat to 203.0.113.1
        oifname "wan0.7" snat to 203.0.113.10
    }
}
"""
IN_A_LAB = """\
define LAN = 198.18.0.0/16
table ip nat {
    chain post {
        type nat hook postrouting priority 100;
        iifname inside oifname { "outside" } counter # lan0.100 is another one, and so is xlan0
        oifname "outside" ip saddr $LAN snat to 198.19.0.1
        oifname "wan0.7" snat to 203.0.113.10
    }
}
"""
NAMES = [
    "--inside",
    "lan0",
    "--outside",
    "wan0",
    "--inside-network",
    "192.168.1.0/24",
    "--outside-address",
    "203.0.113.1",
]


LAB = {
    "NG_INSIDE": "inside", "NG_OUTSIDE": "outside", "NG_INITIATOR_NETWORK4": "198.18.0.0/16",
    "NG_OUTSIDE_ADDRESS4": "198.19.0.1",
}  # fmt: skip


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks nft: that takes root."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    Path("router.conf").write_text(RULES)


@pytest.fixture
def nft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has root's nft print a forward chain with these rules; `of_lab`: where the rules name the network of a lab."""

    def prints(*own: Rule, policy: str = "drop", of_lab: Sequence[Rule] | None = None) -> None:
        nft_prints(printed(*own, policy=policy), None if of_lab is None else printed(*of_lab, policy=policy))
        have_nft(tmp_path / f"programs of root {len(list(tmp_path.iterdir()))}", monkeypatch)

    return prints


def printed(*rules: Rule, policy: str) -> str:
    """What nft prints of a forward chain."""
    table = {"family": "inet", "table": "filter"}
    base = {**table, "name": "forward", "type": "filter", "hook": "forward", "prio": 0, "policy": policy}
    of_rules = [{"rule": {**table, "chain": "forward", "expr": [*rule]}} for rule in rules]
    return json.dumps({"nftables": [{"chain": base}, *of_rules]})


def accepting(*matched: tuple[str, str, object]) -> Rule:
    """A rule that accepts what has these values in fields of protocols."""
    return [
        *(
            {"match": {"op": "==", "left": {"payload": {"protocol": protocol, "field": name}}, "right": right}}
            for protocol, name, right in matched
        ),
        {"accept": None},
    ]


def from_networks(*networks: str) -> list[Rule]:
    """Rules that accept each of these networks."""
    split = [network.split("/") for network in networks]
    return [accepting(("ip", "saddr", {"prefix": {"addr": address, "len": int(bits)}})) for address, bits in split]


def of_lab(folder: str, **others: str) -> str:
    """The rule set of a recipe as a lab gives it to nft."""
    (snippet,) = [one for one in shown(f"./{folder}")["verbs"]["start"] if "NG_RECIPE_FOLDER" in one]
    done = subprocess.run(  # noqa: S602 - our own snippet
        snippet.replace("| nft -f -", ""),
        shell=True,
        env={"NG_RECIPE_FOLDER": folder, "PATH": os.environ["PATH"], **LAB, **others},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_names_of_the_router_become_those_of_the_lab_and_nothing_else_does(tmp_path: Path) -> None:
    assert new("mine", *NAMES) == 0
    recipe = shown("./mine")
    assert (recipe["name"], recipe["kind"]) == ("mine", "nat44")
    assert (tmp_path / "mine" / "rules.nft").read_text() == RULES
    assert of_lab("mine") == IN_A_LAB


def rules(*translating: str, before: str = "") -> str:
    """A rule set with these rules of translation."""
    lines = "".join(f'        iifname "lan0" oifname "wan0" {rule}\n' for rule in translating)
    hook = "type nat hook postrouting priority srcnat;"
    return f"{before}table ip nat {{\n    chain post {{\n        {hook}\n{lines}    }}\n}}\n"


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        (RULES, ["mine", "--inside", "lan9", "--outside", "wan0"], "lan0, wan0"),
        # Interfaces that a definition names are listed.
        (
            RULES.replace("iifname lan0", "iifname $inner").replace("define", 'define inner = "lan0"\ndefine', 1),
            ["mine", "--inside", "lan9", "--outside", "wan0"],
            "lan0, wan0",
        ),
        (RULES, ["mine", "--inside", "wan0", "--outside", "wan0"], ""),
        (RULES, ["Mine", *PORTS], ""),
        (RULES, ["mine-", *PORTS], ""),
        (RULES, ["m" * 65, *PORTS], ""),
        (RULES.replace("snat", "dnat"), ["mine", *PORTS], ""),
        # Words of rules translate nothing.
        (rules('accept comment "to masquerade, snat to 203.0.113.7"'), ["mine", *PORTS], "masquerade or snat"),
        # The time-outs of the kernel were checked and raised, and such a connection has others.
        (rules('ct timeout set "short"', "masquerade"), ["mine", *PORTS], "ct timeout set"),
        (f'include "/etc/more.nft"\n{RULES}', ["mine", *PORTS], ""),
        (None, ["mine", *PORTS], ""),
        (RULES, ["gateway", "--beside", "--into", "git", *NAMES], ""),
    ],
)
def test_what_makes_no_gateway_is_refused_in_one_line_and_nothing_is_made(
    text: str | None, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("router.conf").unlink() if text is None else Path("router.conf").write_text(text)
    assert new(*words) == 2
    shown = capsys.readouterr()
    assert (shown.out, len(shown.err.splitlines())) == ("", 1)
    assert says in shown.err
    assert [path.name for path in Path().iterdir() if path.name != "router.conf"] == []


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        (rules("masquerade to :10000-19999 random"), (10_000, 19_999)),
        (rules("snat to 203.0.113.1:10000-19999"), (10_000, 19_999)),
        (rules("snat ip to 203.0.113.1-203.0.113.4:7000"), (7000, 7000)),
        (rules("snat to $WAN:$PORTS", before="define WAN = 203.0.113.1\ndefine PORTS = 2000-2999\n"), (2000, 2999)),
        (rules("meta l4proto tcp masquerade to :2000-2999", "meta l4proto udp masquerade to :2000-2999"), (2000, 2999)),
        # Rules without ports, with other ones, or that are not understood.
        (rules("masquerade"), (1024, 65_535)),
        (rules("meta l4proto { tcp, udp } masquerade to :2000-2999", "masquerade"), (1024, 65_535)),
        (rules("snat to 203.0.113.1:2000-2999", "snat to 203.0.113.1:3000-3999"), (1024, 65_535)),
        (rules("snat ip addr . port to ip saddr map @sets", "masquerade to :2000-2999"), (1024, 65_535)),
        (rules("snat to 203.0.113.1:2000-99999"), (1024, 65_535)),
    ],
)
def test_ports_that_all_rules_translate_to_are_those_of_the_gateway(text: str, ports: tuple[int, int]) -> None:
    """A rule set with 10,000 outside ports was planned and sized as one with 64,512."""
    assert new("mine", text=text) == 0
    assert shown("./mine")["limits"]["pool_ports"] == [*ports]


def test_an_address_with_ports_becomes_the_labs_too() -> None:
    """It was called absent from the file where ports stand behind it."""
    text = rules("snat to 203.0.113.1:10000-19999")
    assert new("mine", *PORTS, "--outside-address", "203.0.113.1", text=text) == 0
    limits = shown("./mine")["limits"]
    assert ("pool4" in limits, limits["pool_ports"]) == (False, [10_000, 19_999])
    assert "snat to 198.19.0.1:10000-19999" in of_lab("mine")


def test_a_rule_set_with_a_flow_table_is_counted_and_needs_its_module_as_the_built_in_gateway_does() -> None:
    """Its first trial was refused, because the table still counted connections that it had removed."""
    offloading = rules("masquerade", before="# flowtable ft\n")
    assert new("plain", text=offloading) == 0
    plain = shown("./plain")
    assert (plain["limits"]["count_lag"], plain["modules"]) == (0, [])
    table = "table ip fast { flowtable ft { hook ingress priority 0; devices = { lan0, wan0 }; } }\n"
    assert new("fast", text=offloading + table) == 0
    made, built_in = shown("./fast"), shown("nftables-flowtable-nat44")
    assert made["limits"]["count_lag"] == built_in["limits"]["count_lag"] == 3
    assert made["modules"] == built_in["modules"]
    assert [module["name"] for module in made["modules"]] == ["nf_flow_table"]


DROPPING = """\
table inet filter {
    chain forward { type filter hook forward priority filter; policy drop;
        iifname lan0 oifname wan0 tcp dport { 53, 80, 443 } accept
        iifname lan0 oifname wan0 udp dport 8000-8080 accept
        iifname lan0 oifname wan0 udp dport 53 accept
    }
    chain post { type nat hook postrouting priority srcnat; oifname wan0 masquerade; }
}
"""


OF_ICMP = accepting(("ip", "protocol", "icmp"))
WEB = {"set": [53, 80, 443]}


@pytest.mark.parametrize(
    ("policy", "accepted", "declared"),
    [
        ("accept", [], ({}, ["udp", "icmp", "tcp"])),
        (
            "drop",
            [accepting(("tcp", "dport", WEB)), accepting(("udp", "dport", {"set": [53, {"range": [8000, 8080]}]}))],
            ({"udp": "8000-8080,53", "tcp": "443,80,53"}, ["udp", "tcp"]),
        ),
        (
            "drop",
            [accepting(("tcp", "dport", {"range": [1, 1000]})), OF_ICMP],
            ({"tcp": "443,1-1000"}, ["icmp", "tcp"]),
        ),
    ],
)
def test_ports_that_the_rules_accept_are_those_of_the_recipe(
    policy: str,
    accepted: list[Rule],
    declared: tuple[dict[str, str], list[str]],
    nft: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    nft(*accepted, policy=policy)
    assert new("mine", text=DROPPING) == 0
    assert capsys.readouterr().err == ""
    recipe = shown("./mine")
    assert (recipe["limits"]["destination_ports"], recipe["transports"]) == declared


def test_what_nobody_can_tell_of_the_accepted_ports_is_told(
    nft: Callable[..., None], capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    # Chains of the router itself drop nothing that is forwarded.
    assert new("other", text=DROPPING.replace("hook forward", "hook input")) == 0
    assert capsys.readouterr().err == ""
    limited: Rule = [{"limit": {"rate": 5}}, *accepting(("ip", "protocol", "tcp"))]
    answers: list[list[Rule] | None] = [None, [limited, accepting(("ip", "protocol", "udp")), OF_ICMP], []]
    for number, found in enumerate(answers):
        if found is not None:
            nft(*found)
        assert new(f"mine{number}", text=DROPPING) == 0
        (said,) = capsys.readouterr().err.splitlines()
        golden(said)
        assert shown(f"./mine{number}")["transports"] == ["udp", "icmp", "tcp"]


def test_a_second_try_says_how_the_first_one_is_removed(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["mine", "--into", "my routers", *NAMES]
    assert new(*asked) == 0
    capsys.readouterr()
    assert new(*asked) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.endswith("rm -r 'my routers/mine'")
    subprocess.run(said.partition("remove it: ")[2], shell=True, check=True)  # noqa: S602 - our own line
    assert new(*asked) == 0
    # What somebody keeps there, too, or nothing of ours, is not named for removal.
    Path("my routers/mine/notes").touch()
    Path("theirs").mkdir()
    capsys.readouterr()
    assert new(*asked) == new("theirs", *NAMES) == 2
    assert "rm " not in capsys.readouterr().err
    assert list(Path("theirs").iterdir()) == []


BESIDE = ["gateway", "--beside", *NAMES]


def test_a_recipe_beside_its_rule_set_names_the_file_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """An author edited a copied recipe by hand, so that it named the rule set of the repository."""
    Path("git").mkdir()
    assert new(*BESIDE, text=RULES, file="git/router.conf") == 0
    assert capsys.readouterr().out.startswith("./git/gateway.toml; ")
    assert sorted(path.name for path in Path("git").iterdir()) == ["gateway.toml", "router.conf"]
    assert shown("git/gateway.toml")["name"] == "gateway"
    (made_by,) = [line for line in Path("git/gateway.toml").read_text().splitlines() if line.startswith("# Made by: ")]
    named = ["gateways", "new", "gateway", "--from-nft", "git/router.conf"]
    assert made_by.split()[3:] == ["natgauge", *named, *NAMES, "--beside"]
    Path("git/router.conf").write_text(f"{RULES}# one more\n")
    assert of_lab("git") == f"{IN_A_LAB}# one more\n"


def test_a_recipe_beside_its_rule_set_replaces_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("gateway.toml").write_text("mine\n")
    assert new(*BESIDE) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "rm " not in said
    assert Path("gateway.toml").read_text() == "mine\n"
    Path("gateway.toml").unlink()
    assert new(*BESIDE) == 0
    capsys.readouterr()
    assert new(*BESIDE) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.endswith("remove it: rm gateway.toml")


@pytest.mark.parametrize("file", ["my rules.nft", "$(id).nft", "rules."])
def test_what_cannot_be_beside_its_rule_set_is_refused_and_nothing_is_made(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(file).write_text(RULES)
    before = sorted(Path().iterdir())
    assert new(*BESIDE, file=file) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert sorted(Path().iterdir()) == before


def test_a_name_that_is_not_the_files_is_told_with_the_line_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    assert new("mine", *NAMES) == 0
    Path("gateway.toml").write_text(Path("mine/gateway.toml").read_text())
    capsys.readouterr()
    assert run(["gateways", "show", "./gateway.toml"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    (line,) = re.findall(r'write (name = "[a-z]+")', said)
    Path("gateway.toml").write_text(Path("mine/gateway.toml").read_text().replace('name = "mine"', line))
    assert run(["gateways", "show", "./gateway.toml"]) == 0


ROUTER = """\
define LAN = 192.168.1.0/24
table inet router {
    chain input {
        type filter hook input priority 0;
        iifname vmap { "lo" : accept, "lan0" : jump services, "guests" : drop }
        # iifname "old0" drop
    }
    chain post {
        type nat hook postrouting priority srcnat;
        iifname { "lan0", "lan1" } oifname "wan0" ip saddr $LAN masquerade
        oifname "wan0" ip saddr 203.0.113.7 masquerade
        oifname "wan0" ip saddr 192.168.50.0/24 masquerade
    }
}
"""


def test_what_no_lab_has_is_told_with_what_to_change(capsys: pytest.CaptureFixture[str]) -> None:
    """Seen: rules for the network of a house translated nothing in the lab, and nothing had said so.

    What the warning then said to add was refused, because the folder was there.
    """
    for name, more in (("one", []), ("two", ["--beside"]), ("three", ["--into", "my routers"])):
        assert new(name, *PORTS, *more, text=ROUTER) == 0
        interfaces, networks = capsys.readouterr().err.splitlines()
        assert "(guests, lan1)" in interfaces
        assert "(192.168.1.0/24, 203.0.113.7, 192.168.50.0/24)" in networks
        removed, again = networks.rpartition("inside network: ")[2].split(" && ")
        subprocess.run(removed, shell=True, check=True)  # noqa: S602 - our own line
        assert run(shlex.split(again)[1:]) == 0
        others, networks = capsys.readouterr().err.splitlines()
        assert others == interfaces
        assert "(203.0.113.7, 192.168.50.0/24)" in networks
        assert "--inside-network" not in networks
        file = {"two": "two.toml", "three": "my routers/three/gateway.toml"}.get(name, f"{name}/gateway.toml")
        assert "$NG_INITIATOR_NETWORK4" in Path(file).read_text()
    assert new("four", text=rules("masquerade")) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "written", ["192.168.1.0/24", "192.168.1.1/24"], ids=["as nft prints it", "with the router's address"]
)
def test_the_only_network_that_the_rules_let_becomes_that_of_the_lab(
    written: str, nft: Callable[..., None], capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    """Nobody told a new user of --inside-network, and almost every router's rules name their network."""
    text = rules("masquerade", before=f"define LAN = {written}\n").replace("wan0", "wan0 ip saddr $LAN")
    nft(*from_networks("192.168.1.0/24"), of_lab=from_networks("10.0.0.0/16"))
    assert new("mine", text=text) == 0
    said, (noted,) = (text.splitlines() for text in capsys.readouterr())
    assert "try it: " in said[0]
    assert f" {written} " in noted
    golden(noted)
    assert "define LAN = 198.18.0.0/16\n" in of_lab("mine")


@pytest.mark.parametrize("beside", [[], ["--beside"]])
def test_a_chain_that_accepts_no_host_of_a_lab_is_told_first_with_the_command_that_mends_it(
    beside: list[str], nft: Callable[..., None], capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    """It was said to accept no connection, and then to be tried."""
    before = "define LAN = 192.168.1.0/24\ndefine GUESTS = 192.168.50.0/24\n"
    lines = "ip saddr $LAN masquerade", "ip saddr $GUESTS masquerade", "ip saddr 203.0.113.0/24 drop"
    own, lab = (from_networks(network, "192.168.50.0/24") for network in ("192.168.1.0/24", "10.0.0.0/16"))
    nft(*own, of_lab=lab)
    assert new("mine", *PORTS, *beside, text=rules(*lines, before=before)) == 0
    said, (first, *others) = (text.splitlines() for text in capsys.readouterr())
    assert "try" not in said[0]
    golden("\n".join([first, *others]))
    assert sum("--inside-network" in line for line in (first, *others)) == 1
    removed, again = first.rpartition("inside network: ")[2].split(" && ")
    subprocess.run(removed, shell=True, check=True)  # noqa: S602 - our own line
    assert run(shlex.split(again)[1:]) == 0
    assert "try it: " in capsys.readouterr().out


def test_each_network_and_host_that_no_lab_has_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    ours = "192.0.2.128/25, 203.0.113.0/26, 192.168.10.30-192.168.10.39, 192.168.30.1"
    # Nothing matches what is translated to; the others are no hosts, or everybody.
    text = (
        rules("snat to 198.51.100.7")
        + "table ip more { set s { type ipv4_addr; flags interval; elements = { 192.0.2.128/25, 203.0.113.0/26 } }\n"
        + "chain c { ip saddr @s accept; ip saddr { 0.0.0.0/0, 127.0.0.0/8, 224.0.0.0/4, 240.0.0.0/4 } accept\n"
        + "tcp dport 80 dnat to 192.168.10.20; ip daddr 192.168.10.30-192.168.10.39 accept\n"
        + "dnat ip to tcp dport map { 22 : 192.168.20.1 }; dnat to ip saddr map { 192.168.30.1 : 192.168.31.1 } } }"
        + " # 192.168.99.0/24\n"
    )
    assert new("one", text=text) == 0
    (said,) = capsys.readouterr().err.splitlines()
    assert f"({ours})" in said
    assert "--inside-network" not in said


def test_rules_that_name_the_outside_of_a_lab_are_told_with_an_edit_that_spares_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each list of bogons has the networks of benchmarks, and dropped the test traffic without a word before."""
    bogons = "    set s { type ipv4_addr; flags interval; elements = { 198.18.0.0/15 } }\n    chain"
    text = rules("masquerade", "ip saddr @s drop").replace("    chain", bogons)
    assert new("one", text=text) == 0
    (said,) = capsys.readouterr().err.splitlines()
    behind, edit = said.partition("behind ")[2].split(" in the recipe add ")
    recipe = Path("one/gateway.toml")
    recipe.write_text(recipe.read_text().replace(behind, f"{behind} {edit}"))
    spared = text.replace("198.18.0.0/15", "198.18.0.0/16")
    assert of_lab("one", NG_INSIDE="lan0", NG_OUTSIDE="wan0") == spared
    for name, other in (("two", "198.19.7.0/24"), ("three", "198.19.7.1-198.19.7.9"), ("four", "198.0.0.0/8")):
        assert new(name, text=text.replace("198.18.0.0/15", other)) == 0
        (said,) = capsys.readouterr().err.splitlines()
        assert other in said
        assert "without it" in said


@pytest.mark.parametrize(
    "rule",
    [
        # No rule matches what packets get, or a text.
        "tcp dport 80 dnat to 192.168.7.20",
        "dnat ip to 192.168.7.20:80",
        "dnat to $WEB",
        "dnat to 192.168.7.20-192.168.7.29",
        "dnat to tcp dport map { 22 : 192.168.7.20, 80 : $WEB }",
        "dnat ip addr . port to tcp dport map { 22 : 192.168.7.20 . 22 }",
        "dnat to tcp dport map @servers",
        "snat to 203.0.113.7",
        "tproxy to 192.168.7.20:99",
        "dup to 192.168.7.20",
        "ip daddr set 192.168.7.20 masquerade",
        'log prefix "for 192.168.7.20 # iifname guests " masquerade',
        'masquerade comment "192.168.7.0/24, iifname guests"',
        # A lab's inside is 10.0.0.0/16.
        "ip saddr 10.0.0.0/8 masquerade",
        "ip saddr 10.0.0.0/24 masquerade",
        "ip saddr 10.0.0.2 masquerade",
        # What is left out is in no lab, so that all of a lab is chosen.
        "ip saddr != 192.168.7.0/24 masquerade",
        "ip saddr != { 192.168.7.0/24, 192.168.8.0/24 } masquerade",
        "ip saddr != $GUESTS masquerade",
        "ip saddr != @guests masquerade",
        'meta iifname != "guests" masquerade',
        'iifname != { "guests", "old" } masquerade',
        'iifname . oifname { "lan0" . "wan0" } masquerade',
    ],
)
def test_rules_that_match_in_a_lab_are_not_said_to_match_nothing(rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = "define GUESTS = { 192.168.7.0/24, 192.168.8.0/24 }\ndefine WEB = 192.168.7.20\n"
    named = "    set guests { type ipv4_addr; flags interval; elements = { 192.168.7.0/24 } }\n"
    named += "    map servers { type inet_service : ipv4_addr; elements = { 22 : 192.168.7.20 } }\n"
    masquerading = [rule] if "masquerade" in rule else [rule, "masquerade"]
    text = rules(*masquerading, before=before).replace("    chain", f"{named}    chain")
    assert new("one", text=text) == 0
    assert capsys.readouterr().err == ""
    others = "ip saddr $GUESTS masquerade", "ip saddr @guests masquerade", "ip saddr 10.1.0.0/16 masquerade"
    for number, other in enumerate(others):
        text = rules(rule, other, before=before).replace("    chain", f"{named}    chain")
        assert new(f"other{number}", text=text) == 0
        assert "match nothing there" in capsys.readouterr().err


@pytest.mark.parametrize(
    "file", ["r" * 200, "a/" * 60 + "router.conf", "back\\slash", 'quo"te', "new\nline", "tab\tand\x7fdel"]
)
def test_a_recipe_of_a_file_with_any_name_can_be_read(file: str) -> None:
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    assert new("mine", *NAMES, text=RULES, file=file) == 0
    title = shown("./mine")["title"]
    assert title.startswith("Rules of ")
    assert title.endswith(": Linux NAT44 with nftables")
    assert Path(file).name[:4] in title or "\n" in file or "\t" in file


@pytest.mark.parametrize("name", ["m" * 64, "m"])
def test_the_longest_and_the_shortest_name_are_those_of_gateways(name: str) -> None:
    assert new(name, *NAMES) == 0
    assert shown(f"./{name}")["name"] == name
