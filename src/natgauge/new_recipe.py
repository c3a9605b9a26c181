# SPDX-License-Identifier: Apache-2.0
"""A recipe for an nftables rule set that a router runs: the file as it is, and what its names are in a lab."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Final

from natgauge import file_access
from natgauge.errors import UsageError, shortened
from natgauge.gateways.recipe import FILE_IN_FOLDER, LONGEST_NAME, LONGEST_TITLE, NAME
from natgauge.gateways.rule_sets import (
    DEFINED,
    INSIDE4,
    NETWORK,
    OUTSIDE4,
    SED,
    AcceptedPorts,
    accepted_ports,
    edit,
    inside_network,
    interfaces,
    is_in,
    networks_in,
    other_interfaces,
    other_networks,
    selecting,
    without_words,
)
from natgauge.gateways.toml_layers import NAMED_FILE
from natgauge.labs.common.addresses import OUTSIDE
from natgauge.plain_text import one_line
from natgauge.words import listed

#: The rule set's file next to the recipe.
RULES: Final = "rules.nft"
_FILE: Final = file_access.FileKind("--from-nft", "name a rule set's file", 1 << 20)
_TRANSLATES: Final = re.compile(r"\b(?:masquerade|snat)\b")
#: What a rule translates to, a name that stands for it, a range of addresses, and one of ports.
_TARGET: Final = re.compile(r"\bsnat\s+(?:ip\s+)?to\s+([^\s;]+)")
_MASQUERADE: Final = re.compile(r"\bmasquerade\b(?:\s+to\s+([^\s;]+))?")
_ADDRESS: Final = re.compile(r"\d+(?:\.\d+){3}")
#: Where hosts behind a NAT are (RFC 1918, RFC 6598).
_PRIVATE: Final = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))
_RANGE: Final = re.compile(rf"{_ADDRESS.pattern}-{_ADDRESS.pattern}")
_PORTS: Final = re.compile(r"(\d+)(?:-(\d+))?")
_INCLUDES: Final = re.compile(r"^\s*include\b", re.MULTILINE)
_FLOW_TABLE: Final = re.compile(r"\bflowtable\b")
#: Time-outs that rules give to connections, in place of the kernel's.
_TIME_OUTS: Final = re.compile(r"\bct\s+timeout\s+set\b")
#: What stands for the variables of a lab while nft is asked.
_TRIED: Final = {
    "NG_INSIDE": "inside",
    "NG_OUTSIDE": "outside",
    NETWORK: str(INSIDE4),
    "NG_OUTSIDE_ADDRESS4": str(OUTSIDE["ipv4"].device.ip),
}
_SECONDS: Final = 20.0
#: A forward chain whose policy drops.
_DROPS: Final = re.compile(r"\bhook\s+forward\b[^{}]*?\bpolicy\s+drop\b")
_TRANSPORTS: Final = ("udp", "icmp", "tcp")
#: Ports of which the first that is accepted is the first of a recipe, and the one that is the last.
_PREFERRED: Final = (443, 80)
_DNS: Final = "53"
_TITLE: Final = "Rules of {}: Linux NAT44 with nftables"

#: What a recipe that is made here begins with.
_MADE_BY: Final = b"# Made by: natgauge gateways new "

_RECIPE: Final = '''\
# Made by: {made_by}
# In a lab the interfaces and addresses of {rules}, which stays as it was, have other names.
name = "{name}"
title = {title}
kind = "nat44"
initiator_family = "ipv4"
responder_family = "ipv4"
stateful = true
source = "translated"
transports = {transports}
extends = {extends}
{limits}
[[needs]]
programs = ["nft"]
package = "nftables"

[verbs]
start = """
{sed} {edits} \\\\
    "$NG_RECIPE_FOLDER/{rules}" | nft -f -
"""
check = "nft list ruleset | grep -q -e masquerade -e snat"
version = "nft --version"
stop = "nft flush ruleset"
'''


@dataclass(frozen=True, slots=True)
class NewRecipe:
    """A recipe that is not written yet: the text of its file, the rule set, and what nobody could tell of it.

    Attributes:
        names: interfaces, networks and addresses of the file, each with its variable in a lab, such as "NG_INSIDE".
        found: the network among them that nobody named; None = there is none.
        only_from: networks and hosts from which alone its forward chains accept connections, and which no lab has;
            empty = they accept none; None = they accept connections of a lab, or nobody could tell.
    """

    name: str
    recipe: str
    rules: str
    names: Mapping[str, str]
    found: str | None = None
    only_from: tuple[str, ...] | None = None
    warnings: tuple[str, ...] = ()

    def write_beside(self, source: Path) -> Path:
        """Write the recipe into the folder of its rule set; return it."""
        file = source.parent / f"{self.name}.toml"
        try:
            file.touch(exist_ok=False)
            file.write_text(self.recipe, encoding="utf-8")
        except FileExistsError:
            is_made = False
            with suppress(UsageError):
                is_made = file_access.read_octets(file, _FILE).startswith(_MADE_BY)
            remedy = f", or first remove it: rm {shlex.quote(str(file))}" if is_made else ""
            raise UsageError(f"{file}: is there already; choose another name{remedy}", at="name") from None
        except OSError as error:
            raise UsageError(f"{file}: cannot be made ({error.strerror}); leave --beside out", at="beside") from error
        return file

    def write(self, folder: Path) -> Path:
        """Write both files into a new folder; return it."""
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            # Nothing but what was made here is named for removal.
            is_made = folder.is_dir() and {each.name for each in folder.iterdir()} == {RULES, FILE_IN_FOLDER}
            remedy = f", or first remove it: rm -r {shlex.quote(str(folder))}" if is_made else ""
            raise UsageError(f"{folder}: is there already; choose another name{remedy}", at="name") from None
        except OSError as error:
            raise UsageError(
                f"{folder}: cannot be made ({error.strerror}); choose another --into", at="into"
            ) from error
        (folder / RULES).write_text(self.rules, encoding="utf-8")
        (folder / FILE_IN_FOLDER).write_text(self.recipe, encoding="utf-8")
        return folder


def from_nft(name: str, source: Path, names: Mapping[str, str], made_by: str, *, beside: bool = False) -> NewRecipe:
    """Return a recipe for a rule set.

    Args:
        names: interfaces, networks and addresses of the file, each with its variable in a lab, such as "NG_INSIDE".
        beside: whether it names the file itself, which is in its folder, in place of a copy.
    """
    if not re.fullmatch(NAME, name) or len(name) > LONGEST_NAME:
        raise UsageError(
            f'name: "{name}": use 1 to {LONGEST_NAME} of a-z, 0-9 and "-", with a letter or digit at both ends',
            at="name",
        )
    rules = file_access.read_text(source, _FILE)
    if beside and not NAMED_FILE.fullmatch(source.name):
        raise UsageError(
            f"{source}: its name has characters that no recipe can name; rename it, or leave --beside out",
            at="from_nft",
        )
    code = without_words(rules)
    if _INCLUDES.search(code):
        raise UsageError(
            f"{source}: includes other files; write one file of all rules with `nft -s list ruleset > rules.nft`",
            at="from_nft",
        )
    for own in names:
        if not is_in(own, code):
            there = ", ".join(interfaces(code)) or "none"
            raise UsageError(f"{own}: is not in {source}; the interfaces named there: {there}", at="from_nft")
    if _TIME_OUTS.search(code):
        raise UsageError(
            f"{source}: gives connections time-outs of its own (ct timeout set), which natgauge neither reads nor "
            "sets; name a copy of the file without these rules",
            at="from_nft",
        )
    edits = _edits(names)
    ruleset = _parsed(source, rules, edits)
    found = None if ruleset is None or NETWORK in names.values() else _inside_in(code, ruleset)
    if found is not None:
        names = {**names, found: NETWORK}
        edits = _edits(names)
        ruleset = _parsed(source, rules, edits)
    accepted, only_from, warnings = _accepted(code, ruleset)
    limits = "".join(
        f"{line}\n" for line in (*_pool_of(source, code, names), *_ports_of(code), *_destination_ports_of(accepted))
    )
    if not _TRANSLATES.search(code):
        raise UsageError(f"{source}: has no rule with masquerade or snat, so it translates nothing", at="from_nft")
    fragments = ["linux-ipv4", "conntrack", *(["flow-table"] if _FLOW_TABLE.search(code) else [])]
    text = _RECIPE.format(
        name=name,
        # A comment of TOML has no line breaks or controls.
        made_by=one_line(made_by),
        title=_title(source),
        transports=json.dumps([one for one in _TRANSPORTS if one not in accepted.refused]),
        rules=source.name if beside else RULES,
        sed=SED,
        edits=edits.replace("\\", r"\\"),
        extends=json.dumps(fragments),
        limits=f"\n[limits]\n{limits}" if limits else "",
    )
    return NewRecipe(name, text, rules, names, found, only_from, warnings)


def _edits(names: Mapping[str, str]) -> str:
    return " ".join(edit(own, variable) for own, variable in names.items())


def _inside_in(code: str, ruleset: str) -> str | None:
    """Return the inside network as the rules write it, where it is the only source that they let through."""
    network = inside_network(ruleset, _TRIED["NG_INSIDE"], _TRIED["NG_OUTSIDE"])
    written = [name for name, networks in networks_in(code).items() if networks == (network,) and is_in(name, code)]
    return written[0] if len(written) == 1 else None


def unlike_lab(made: NewRecipe, again: str) -> Iterator[str]:
    """Yield what rules name that is another thing in a lab, or nothing, with what to change.

    Args:
        again: the command line that makes the recipe anew, where more options may follow.
    """
    if made.found is not None:
        yield (
            f"{made.found} is taken for your inside network: its rules let no other source to the outside; for another "
            "one add --inside-network NETWORK"
        )
    code = selecting(without_words(made.rules))
    foreign_ones = other_networks(code, made.names)
    asked = [] if NETWORK in made.names.values() else _inside_among(foreign_ones, made.only_from)
    if made.only_from:
        network = f"; if {asked[0]} is your inside network: {again} --inside-network {asked[0]}" if asked else ""
        yield (
            f"its forward chain accepts new connections to the outside only from {listed(made.only_from)}, which no "
            f"lab has{network}"
        )
    elif made.only_from is not None:
        yield "its forward chain accepts no new connection from the inside to the outside, so no frame comes through"
    yield from made.warnings
    if others := other_interfaces(code, made.names):
        yield (
            f"names interfaces that no lab has ({', '.join(others)}), whose rules match nothing there; put the inside "
            "or the outside interface in their place where that matters"
        )
    told = asked[:1] if made.only_from else []
    if unnamed := [name for name in foreign_ones if name not in told]:
        remedy = f"; if one is your inside network: {again} --inside-network {asked[0]}" if asked and not told else ""
        yield f"names networks or hosts that no lab has ({', '.join(unnamed)}), whose rules match nothing there{remedy}"
    yield from (
        f"names {name}, which has the lab's outside, {OUTSIDE4}: a rule that drops it drops the test traffic; "
        f"{_without_outside(name, networks)}"
        for name, networks in networks_in(code).items()
        if name not in made.names and any(map(OUTSIDE4.overlaps, networks))
    )


def _inside_among(named: Mapping[str, Sequence[IPv4Network]], only_from: Sequence[str] | None) -> list[str]:
    """Return those of these networks that may be the inside one; where the rules accept some sources, of these."""
    chosen = [name for name, networks in named.items() if "/" in name and str(networks[0]) in (only_from or ())]
    return chosen or [name for name in named if "/" in name and any(map(named[name][0].subnet_of, _PRIVATE))]


def _without_outside(name: str, networks: Sequence[IPv4Network]) -> str:
    """What to do where rules name networks that have the outside of a lab."""
    rest = [*networks[0].address_exclude(OUTSIDE4)] if networks[0].supernet_of(OUTSIDE4) else []
    if len(networks) == len(rest) == 1:
        return f"in a lab, let the rules name the rest: behind {SED} in the recipe add -e 's@{name}@{rest[0]}@g'"
    return "make the recipe of a copy of the file without it"


def _title(source: Path) -> str:
    """Return the title as TOML writes it: the name of the file, cut where the title would be too long."""
    room = LONGEST_TITLE - len(_TITLE.format(""))
    name = one_line(source.name)
    # Of what can be printed JSON and TOML have the same strings.
    return json.dumps(_TITLE.format(name if len(name) <= room else f"{name[: room - 3]}..."), ensure_ascii=False)


def _targets(code: str) -> set[str]:
    """What the rules with snat translate to, names replaced by what they stand for."""
    defined = dict(DEFINED.findall(code))
    parts = (target.partition(":") for target in _TARGET.findall(code))
    return {
        f"{defined.get(addresses.removeprefix('$'), addresses)}{between}{defined.get(ports.removeprefix('$'), ports)}"
        for addresses, between, ports in parts
    }


def _pool_of(source: Path, code: str, names: Mapping[str, str]) -> list[str]:
    """Return the line of a recipe's limits with the addresses that the rules translate to.

    There is none where they translate to the lab's own address: that of an interface, or a named one.
    """
    targets = _targets(code)
    if "masquerade" in code or {target.partition(":")[0] for target in targets} & names.keys():
        return []
    pools = dict.fromkeys(each for target in sorted(targets) if (each := _addresses_in(target)))
    chosen = [each for each in pools if "-" in each] or list(pools)
    if len(chosen) > 1:
        raise UsageError(
            f"{source}: translates to {' and to '.join(chosen)}, and a lab has one range of outside addresses; write a "
            "file with one, or name one address with --outside-address",
            at="from_nft",
        )
    return [f'pool4 = "{each}" # the outside addresses that the rules name' for each in chosen]


def _ports_of(code: str) -> list[str]:
    """Return the line of a recipe's limits with the ports that the rules translate to, where all name the same ones."""
    masquerading = _MASQUERADE.findall(code)
    named = {target.partition(":")[2] for target in (*_targets(code), *masquerading)}
    is_every = len(_TARGET.findall(code)) + len(masquerading) == len(_TRANSLATES.findall(code))
    found = _PORTS.fullmatch(named.pop()) if is_every and len(named) == 1 else None
    if found is None:
        return []
    first, last = int(found[1]), int(found[2] or found[1])
    is_range = 0 < first <= last < 1 << 16
    return [f"pool_ports = [{first}, {last}] # the outside ports that the rules name"] if is_range else []


def _addresses_in(target: str) -> str:
    """Return the address or the range "A-B" that a rule translates to; empty for a map."""
    addresses = target.partition(":")[0]
    if _RANGE.fullmatch(addresses):
        return addresses
    try:
        network = IPv4Network(addresses, strict=False)
    except ValueError:
        return ""
    return str(network[0]) if network.num_addresses == 1 else f"{network[0]}-{network[-1]}"


def _accepted(code: str, ruleset: str | None) -> tuple[AcceptedPorts, tuple[str, ...] | None, tuple[str, ...]]:
    """Return what the forward chains accept, `only_from` as of `NewRecipe`, and what nobody could tell.

    Args:
        ruleset: what nft prints of the rules; None = nobody asked it.
    """
    everything = AcceptedPorts({}, frozenset(), frozenset())
    remedy = "if they accept only some ports, name these in the recipe: destination_ports, below [limits]"
    if ruleset is None:
        drops = "its forward chain drops by its policy, and only root can ask nft what its rules accept"
        return everything, None, (f"{drops}; {remedy}",) if _DROPS.search(code) else ()
    accepted = accepted_ports(ruleset, _TRIED["NG_INSIDE"], _TRIED["NG_OUTSIDE"])
    if accepted.refused.issuperset(_TRANSPORTS):
        return everything, tuple(dict.fromkeys(one for each in accepted.sources.values() for one in each)), ()
    named = listed([one.upper() for one in _TRANSPORTS if one in accepted.unknown])
    return accepted, None, (f"whether its forward chain accepts {named} is not known; {remedy}",) if named else ()


def _destination_ports_of(accepted: AcceptedPorts) -> list[str]:
    """Return the line of a recipe's limits with the ports that the forward chains accept; none = all."""
    texts = [f'{protocol} = "{_preferred(ranges)}"' for protocol, ranges in accepted.ports.items()]
    why = "# new connections to other ports the forward chain drops"
    return [f"destination_ports = {{ {', '.join(texts)} }} {why}"] if texts else []


def _preferred(ranges: Sequence[tuple[int, int]]) -> str:
    """Return ports as text: first one to which frames of tests are like those of users, last that of DNS."""
    texts = [f"{first}" if first == last else f"{first}-{last}" for first, last in ranges]
    usual = [str(port) for port in _PREFERRED if any(first <= port <= last for first, last in ranges)][:1]
    late = [text for text in texts if text == _DNS]
    return ",".join(dict.fromkeys([*usual, *(text for text in texts if text not in late), *late]))


def _parsed(source: Path, rules: str, edits: str) -> str | None:
    """Return the rules as JSON, and refuse what nft cannot parse; None = nobody can be asked.

    Only root can ask nft, in a namespace of its own that has both interfaces.
    """
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "ip", "nft"))):
        return None
    # What cannot be loaded here, as for a module that is missing, is checked nevertheless.
    asked = (
        f"rules=$({SED} {edits}); ip link add inside type veth peer name outside; "
        'printf "%s\\n" "$rules" | nft --check --file - || exit; '
        '{ printf "%s\\n" "$rules" | nft --file - && nft --json list ruleset; } 2> /dev/null || true'
    )
    try:
        ended = subprocess.run(
            ["unshare", "--net", "sh", "-c", asked],
            env={**os.environ, **_TRIED}, input=rules, capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    if ended.returncode:
        said = (ended.stderr.strip().splitlines() or ["no reason"])[0].removeprefix("/dev/stdin:")
        raise UsageError(f"{source}: nft cannot read it: line {shortened(said)}", at="from_nft")
    return ended.stdout or None
