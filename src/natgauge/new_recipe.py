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

from natgauge import foreign
from natgauge.errors import UsageError, shortened
from natgauge.gateways.accepted_ports import AcceptedPorts, accepted_ports
from natgauge.gateways.named_networks import networks_in, without_words
from natgauge.gateways.recipe import FILE_IN_FOLDER, LONGEST_NAME, LONGEST_TITLE, NAME
from natgauge.gateways.toml_layers import NAMED_FILE
from natgauge.labs.common.addresses import INSIDE, OUTSIDE
from natgauge.plain_text import one_line
from natgauge.words import listed

#: The rule set's file next to the recipe.
RULES: Final = "rules.nft"
_FILE: Final = foreign.FileKind("--from-nft", "name a rule set's file", 1 << 20)
#: Characters of names and addresses: a name within a longer one is another name.
_WITHIN: Final = "A-Za-z0-9_.:/-"
_INTERFACE: Final = re.compile(r"\b[io]if(?:name)?\s+(?:!=\s*|==\s*|vmap\s*)?(?:\{([^}]*)\}|\"?(\$?[A-Za-z0-9_.*-]+))")
_TRANSLATES: Final = re.compile(r"\b(?:masquerade|snat)\b")
#: What a rule translates to, a name that stands for it, a range of addresses, and one of ports.
_TARGET: Final = re.compile(r"\bsnat\s+(?:ip\s+)?to\s+([^\s;]+)")
_MASQUERADE: Final = re.compile(r"\bmasquerade\b(?:\s+to\s+([^\s;]+))?")
_DEFINED: Final = re.compile(r"^\s*define\s+(\w+)\s*=\s*([^\s;]+)", re.MULTILINE)
_ADDRESS: Final = re.compile(r"\d+(?:\.\d+){3}")
#: Where the inside of a lab and the outside of it are.
_INSIDE, _OUTSIDE = (IPv4Network(str(side["ipv4"].device.network)) for side in (INSIDE, OUTSIDE))
#: Where hosts behind a NAT are (RFC 1918, RFC 6598).
_PRIVATE: Final = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))
#: Part of the sed of a recipe, behind which a further edit stands.
_SED: Final = "sed -E"
#: What a rule does not match, so that it matches all that a lab has.
_LEFT_OUT: Final = re.compile(r"(?<=!=)\s*(?:\{[^}]*\}|\S+)")
#: What packets get, by a rule or as the value of an element of a map.
_GIVEN: Final = re.compile(
    r"\b(?:[sd]nat|tproxy|dup)\s+(?:ip\s+)?(?:prefix\s+|addr\s*\.\s*port\s+)?(?:to\s+)?[$\d][^\s;}]*"
    r"|\bip\s+[sd]addr\s+set\s+[^\s;}]+|:\s*(?:\$\w+|[\d./-]+)"
)
#: Definitions, sets and maps, which rules name.
_NAMED: Final = re.compile(
    r"\b(?:define\s+(\w+)\s*=\s*(?:\{[^}]*\}|[^\s;]+)|(?:set|map)\s+(\w+)\s*\{(?:[^{}]|\{[^{}]*\})*\})"
)
#: Interfaces that each lab has by these names.
_EVERYWHERE: Final = frozenset({"lo"})
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
    "NG_INITIATOR_NETWORK4": str(_INSIDE),
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
    """A recipe that is not written yet: the text of its file, the rule set, and what nobody could tell of it."""

    name: str
    recipe: str
    rules: str
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
                is_made = foreign.read_octets(file, _FILE).startswith(_MADE_BY)
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
    rules = foreign.read_text(source, _FILE)
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
        if not re.search(_alone(own), code):
            there = ", ".join(_interfaces(code)) or "none"
            raise UsageError(f"{own}: is not in {source}; the interfaces named there: {there}", at="from_nft")
    if _TIME_OUTS.search(code):
        raise UsageError(
            f"{source}: gives connections time-outs of its own (ct timeout set), which natgauge neither reads nor "
            "sets; name a copy of the file without these rules",
            at="from_nft",
        )
    edits = " ".join(_edit(own, variable) for own, variable in names.items())
    accepted, warnings = _accepted(code, _parsed(source, rules, edits))
    limits = "".join(
        f"{line}\n" for line in (*_pool_of(source, code, names), *_ports_of(code), *_destination_ports_of(accepted))
    )
    if not _TRANSLATES.search(code):
        raise UsageError(f"{source}: has no rule with masquerade or snat, so it translates nothing", at="from_nft")
    written = edits.replace("\\", r"\\")
    title = _title(source)
    fragments = ["linux-ipv4", "conntrack", *(["flow-table"] if _FLOW_TABLE.search(code) else [])]
    text = _RECIPE.format(
        name=name,
        # A comment of TOML has no line breaks or controls.
        made_by=one_line(made_by),
        title=title,
        transports=json.dumps([one for one in _TRANSPORTS if one not in accepted.refused]),
        rules=source.name if beside else RULES,
        sed=_SED,
        edits=written,
        extends=json.dumps(fragments),
        limits=f"\n[limits]\n{limits}" if limits else "",
    )
    return NewRecipe(name, text, rules, warnings)


def unlike_lab(made: NewRecipe, names: Mapping[str, str], again: str) -> Iterator[str]:
    """Yield what rules name that is another thing in a lab, or nothing, with what to change.

    Args:
        again: the command line that makes the recipe anew, where more options may follow.
    """
    yield from made.warnings
    code = _selecting(without_words(made.rules))
    if others := [name for name in _interfaces(code) if name not in {*names, *_EVERYWHERE}]:
        yield (
            f"names interfaces that no lab has ({', '.join(others)}), whose rules match nothing there; put the inside "
            "or the outside interface in their place where that matters"
        )
    named = {name: networks for name, networks in networks_in(code).items() if name not in names}
    foreign_ones = [name for name, networks in named.items() if all(map(_is_foreign, networks))]
    if foreign_ones:
        inside = [name for name in foreign_ones if "/" in name and any(map(named[name][0].subnet_of, _PRIVATE))]
        inside = [] if "NG_INITIATOR_NETWORK4" in names.values() else inside
        remedy = f"; if one is your inside network: {again} --inside-network {inside[0]}" if inside else ""
        yield (
            f"names networks or hosts that no lab has ({', '.join(foreign_ones)}), whose rules match nothing "
            f"there{remedy}"
        )
    yield from (
        f"names {name}, which has the lab's outside, {_OUTSIDE}: a rule that drops it drops the test traffic; "
        f"{_without_outside(name, networks)}"
        for name, networks in named.items()
        if any(map(_OUTSIDE.overlaps, networks))
    )


def _is_foreign(network: IPv4Network) -> bool:
    """Whether addresses of hosts are meant, and no lab has one of them."""
    is_of_hosts = not (network.is_multicast or network.is_loopback or network.is_link_local or network.is_reserved)
    is_of_hosts = is_of_hosts and network.network_address.packed[0] != 0
    return is_of_hosts and not (network.overlaps(_INSIDE) or network.overlaps(_OUTSIDE))


def _without_outside(name: str, networks: Sequence[IPv4Network]) -> str:
    """What to do where rules name networks that have the outside of a lab."""
    rest = [*networks[0].address_exclude(_OUTSIDE)] if networks[0].supernet_of(_OUTSIDE) else []
    if len(networks) == len(rest) == 1:
        return f"in a lab, let the rules name the rest: behind {_SED} in the recipe add -e 's@{name}@{rest[0]}@g'"
    return "make the recipe of a copy of the file without it"


def _selecting(code: str) -> str:
    """Return what rules match: not what they leave out or give packets, and no definition or set that is not named."""
    kept = _LEFT_OUT.sub("{}", _GIVEN.sub(" ", code))

    def named(found: re.Match[str]) -> str:
        return found[0] if re.search(rf"[$@]{found[1] or found[2]}\b", kept) else ""

    return _NAMED.sub(named, kept)


def _title(source: Path) -> str:
    """Return the title as TOML writes it: the name of the file, cut where the title would be too long."""
    room = LONGEST_TITLE - len(_TITLE.format(""))
    name = one_line(source.name)
    # Of what can be printed JSON and TOML have the same strings.
    return json.dumps(_TITLE.format(name if len(name) <= room else f"{name[: room - 3]}..."), ensure_ascii=False)


def _interfaces(code: str) -> dict[str, None]:
    """Names of the interfaces in rules, in their order, also of those that a definition names."""
    defined = {name: value.strip('"') for name, value in _DEFINED.findall(code)}
    # Of a map each element begins with its name.
    every = (
        each.partition(":")[0].strip(' \t\n"')
        for several, one in _INTERFACE.findall(code)
        for each in (several or one).split(",")
    )
    named = (defined.get(name.removeprefix("$"), name) for name in every)
    return dict.fromkeys(name for name in named if re.fullmatch(r"\$?(?=.*[A-Za-z0-9])[A-Za-z0-9_.*-]+", name))


def _targets(code: str) -> set[str]:
    """What the rules with snat translate to, names replaced by what they stand for."""
    defined = dict(_DEFINED.findall(code))
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


def _accepted(code: str, ruleset: str | None) -> tuple[AcceptedPorts, tuple[str, ...]]:
    """Return what the forward chains accept, and what nobody could tell of it.

    Args:
        ruleset: what nft prints of the rules; None = nobody asked it.
    """
    everything = AcceptedPorts({}, frozenset(), frozenset())
    remedy = "if they accept only some ports, name these in the recipe: destination_ports, below [limits]"
    if ruleset is None:
        drops = "its forward chain drops by its policy, and only root can ask nft what its rules accept"
        return everything, (f"{drops}; {remedy}",) if _DROPS.search(code) else ()
    accepted = accepted_ports(ruleset, _TRIED["NG_INSIDE"], _TRIED["NG_OUTSIDE"])
    if accepted.refused.issuperset(_TRANSPORTS):
        nothing = (
            "its forward chain accepts no new connection from the inside to the outside, so no frame comes through"
        )
        return everything, (nothing,)
    named = listed([one.upper() for one in _TRANSPORTS if one in accepted.unknown])
    return accepted, (f"whether its forward chain accepts {named} is not known; {remedy}",) if named else ()


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
        f"rules=$({_SED} {edits}); ip link add inside type veth peer name outside; "
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


def _alone(own: str) -> str:
    return rf"(^|[^{_WITHIN}]){re.escape(own)}([^{_after(own)}]|$)"


def _after(own: str) -> str:
    """Characters that make a longer name of this one where they follow it; ports follow an address."""
    return _WITHIN.replace(":", "") if _ADDRESS.fullmatch(own) else _WITHIN


def _edit(own: str, variable: str) -> str:
    """Arguments of sed that put a variable of a lab in the place of a name."""
    pattern = re.sub(r"([.\[\](){}*+?^$|\\])", r"\\\1", own)
    return f"-e 's@(^|[^{_WITHIN}]){pattern}([^{_after(own)}]|$)@\\1'\"${variable}\"'\\2@g'"
