# SPDX-License-Identifier: Apache-2.0
"""Names in an nftables rule set of a router: what a recipe puts in their place in a lab, and what no lab has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from typing import Final

from natgauge.gateways.named_networks import networks_in, without_words
from natgauge.gateways.recipe import Recipe
from natgauge.gateways.toml_layers import contents
from natgauge.labs.common.addresses import INSIDE, OUTSIDE

#: Part of the start of a recipe, behind which its edits stand.
SED: Final = "sed -E"
NETWORK: Final = "NG_INITIATOR_NETWORK4"
#: Variables of a lab that an edit puts in the place of a name, each in words.
IN_WORDS: Final[Mapping[str, str]] = {
    "NG_INSIDE": "inside interface",
    "NG_OUTSIDE": "outside interface",
    NETWORK: "inside network",
    "NG_OUTSIDE_ADDRESS4": "outside address",
}
#: Where the inside of a lab and the outside of it are.
INSIDE4, OUTSIDE4 = (IPv4Network(str(side["ipv4"].device.network)) for side in (INSIDE, OUTSIDE))
DEFINED: Final = re.compile(r"^\s*define\s+(\w+)\s*=\s*([^\s;]+)", re.MULTILINE)
#: Characters of names and addresses: a name within a longer one is another name.
_WITHIN: Final = "A-Za-z0-9_.:/-"
_ADDRESS: Final = re.compile(r"\d+(?:\.\d+){3}")
_INTERFACE: Final = re.compile(r"\b[io]if(?:name)?\s+(?:!=\s*|==\s*|vmap\s*)?(?:\{([^}]*)\}|\"?(\$?[A-Za-z0-9_.*-]+))")
#: An edit as `edit` writes it: the name, as a pattern, and the variable.
_EDIT: Final = re.compile(rf"-e 's@\(\^\|\[\^{re.escape(_WITHIN)}\]\)(\S+?)\(\[\^[^\]]+\]\|\$\)@\\1'\"\$(\w+)\"'\\2@g'")
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


def edit(own: str, variable: str) -> str:
    """Arguments of sed that put a variable of a lab in the place of a name."""
    pattern = re.sub(r"([.\[\](){}*+?^$|\\])", r"\\\1", own)
    return f"-e 's@(^|[^{_WITHIN}]){pattern}([^{_after(own)}]|$)@\\1'\"${variable}\"'\\2@g'"


def edits_in(snippet: str) -> dict[str, str]:
    """Return the names that edits of a snippet replace, each with its variable."""
    return {re.sub(r"\\(.)", r"\1", pattern): variable for pattern, variable in _EDIT.findall(snippet)}


def is_in(own: str, code: str) -> bool:
    """Whether rules have a name where its edit finds it."""
    return re.search(rf"(^|[^{_WITHIN}]){re.escape(own)}([^{_after(own)}]|$)", code, re.MULTILINE) is not None


def _after(own: str) -> str:
    """Characters that make a longer name of this one where they follow it; ports follow an address."""
    return _WITHIN.replace(":", "") if _ADDRESS.fullmatch(own) else _WITHIN


def edited(recipe: Recipe) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Yield, for each device whose recipe edits files of rules, the edits as `edits_in` has them, and the files."""
    for part in recipe.of_devices(1):
        snippet = "\n".join(part.verbs.pieces("start"))
        if edits := edits_in(snippet):
            files = contents(snippet, part.origin.parent)
            yield edits, {name: octets.decode(errors="replace") for name, octets in files.items()}


def lost(recipe: Recipe) -> dict[str, str]:
    """Return the names that the recipe replaces and no rule of its files has any more, each with its variable."""
    return {
        own: variable
        for edits, files in edited(recipe)
        for own, variable in edits.items()
        if not is_in(own, _used("\n".join(map(without_words, files.values()))))
    }


def unmatched(recipe: Recipe) -> list[str]:
    """Return interfaces, networks and hosts that rules of edited files match, and that no lab has."""
    found: dict[str, None] = {}
    for edits, files in edited(recipe):
        for text in files.values():
            code = selecting(without_words(text))
            found |= dict.fromkeys([*other_interfaces(code, edits), *other_networks(code, edits)])
    return [*found]


def other_interfaces(code: str, names: Mapping[str, str]) -> list[str]:
    """Return the interfaces in rules that no lab has; `names` have those of the lab in their place."""
    return [name for name in interfaces(code) if name not in {*names, *_EVERYWHERE}]


def other_networks(code: str, names: Mapping[str, str]) -> dict[str, tuple[IPv4Network, ...]]:
    """Return the networks and hosts in rules that no lab has, as they are written there."""
    named = networks_in(code).items()
    return {name: networks for name, networks in named if name not in names and all(map(_is_foreign, networks))}


def _is_foreign(network: IPv4Network) -> bool:
    """Whether addresses of hosts are meant, and no lab has one of them."""
    is_of_hosts = not (network.is_multicast or network.is_loopback or network.is_link_local or network.is_reserved)
    is_of_hosts = is_of_hosts and network.network_address.packed[0] != 0
    return is_of_hosts and not (network.overlaps(INSIDE4) or network.overlaps(OUTSIDE4))


def selecting(code: str) -> str:
    """Return what rules match: not what they leave out or give packets, and no definition or set that is not named."""
    return _used(_LEFT_OUT.sub("{}", _GIVEN.sub(" ", code)))


def _used(code: str) -> str:
    """Return rules without definitions, sets and maps that no rule names."""

    def named(found: re.Match[str]) -> str:
        return found[0] if re.search(rf"[$@]{found[1] or found[2]}\b", code) else ""

    return _NAMED.sub(named, code)


def interfaces(code: str) -> dict[str, None]:
    """Names of the interfaces in rules, in their order, also of those that a definition names."""
    defined = {name: value.strip('"') for name, value in DEFINED.findall(code)}
    # Of a map each element begins with its name.
    every = (
        each.partition(":")[0].strip(' \t\n"')
        for several, one in _INTERFACE.findall(code)
        for each in (several or one).split(",")
    )
    named = (defined.get(name.removeprefix("$"), name) for name in every)
    return dict.fromkeys(name for name in named if re.fullmatch(r"\$?(?=.*[A-Za-z0-9])[A-Za-z0-9_.*-]+", name))
