# SPDX-License-Identifier: Apache-2.0
"""What an nftables rule set of a router says: the names in it, the networks, and the ports that it lets through.

Names and networks are found in the text of the rules, with what a recipe puts in their place in a lab. Ports, and the
networks that rules name as sources, are found in what `nft --json` prints. There each rule is asked about one packet,
from the inside to the outside of a lab. What is asked of it may not be known (its mark, the time of the day): then both
answers are followed, and the verdict on the packet is what all of them agree on.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, summarize_address_range
from typing import Any, Final, Literal

from natgauge.gateways.recipe import Recipe
from natgauge.gateways.recipe_model import LAST_PORT
from natgauge.gateways.toml_layers import contents
from natgauge.labs.common.addresses import INSIDE, OUTSIDE
from natgauge.words import Address

_NETWORK_ADDRESS: Final = r"\d{1,3}(?:\.\d{1,3}){3}"
_NAMED_NETWORK: Final = re.compile(rf"(?<![\w.])({_NETWORK_ADDRESS})(?:/(\d+)|-({_NETWORK_ADDRESS}))?(?![\w/]|\.\d)")
#: A comment of rules, of shell and of TOML; a comment or a log's text that nftables stores with a rule.
_WORDS: Final = re.compile(r"\b(?:comment|prefix)\s+\"[^\"\n]*\"|#.*")


def without_words(text: str) -> str:
    """Return rules without comments and the texts of logs, which name addresses and interfaces that no rule uses."""
    return _WORDS.sub("", text)


def networks_in(text: str) -> dict[str, tuple[IPv4Network, ...]]:
    """Return the networks, addresses and ranges of addresses that rules name, as they are written there, each once.

    Everything (0.0.0.0/0) is none, and what is no network is left out.
    """
    found: dict[str, tuple[IPv4Network, ...]] = {}
    for each in _NAMED_NETWORK.finditer(without_words(text)):
        first, length, last = each.groups()
        try:
            if last is None:
                networks = [IPv4Network(f"{first}/{length or 32}", strict=False)]
            else:
                networks = [*summarize_address_range(IPv4Address(first), IPv4Address(last))]
        except ValueError:
            continue
        if all(network.prefixlen for network in networks):
            found[each[0]] = tuple(networks)
    return found


def having(text: str, addresses: Collection[Address]) -> list[str]:
    """Return what rules name that has one of these addresses."""
    return [
        name
        for name, networks in networks_in(text).items()
        if any(address in network for address in addresses for network in networks)
    ]


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
_DEFINITIONS: Final = re.compile(
    r"\b(?:define\s+(\w+)\s*=\s*(?:\{[^}]*\}|[^\s;]+)|(?:set|map)\s+(\w+)\s*\{(?:[^{}]|\{[^{}]*\})*\})"
)


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
    return [name for name in interfaces(code) if name not in names and name != "lo"]


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

    return _DEFINITIONS.sub(named, code)


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


# Rule sets as `nft --json` prints them


Protocol = Literal["udp", "tcp", "icmp"]
#: What rules do with a packet; "next" = they leave it to what follows.
Verdict = Literal["accept", "drop", "next", "return"]

_PROTOCOLS: Final[tuple[Protocol, ...]] = ("udp", "tcp", "icmp")
#: Numbers of the protocols, which rules may have in place of names.
_NUMBERS: Final[Mapping[int, Protocol]] = {17: "udp", 6: "tcp", 1: "icmp"}
#: Ports to which trials and audits send where none are chosen; rules that accept these need not be told.
_USUAL: Final = ((1, 16), (7_000, 20_000))
#: Families whose chains IPv4 packets pass.
_FAMILIES: Final = frozenset({"ip", "inet"})
#: As deep as the kernel lets chains jump.
_DEEPEST: Final = 16
_ENDS: Final[Mapping[str, Verdict]] = {
    "accept": "accept", "drop": "drop", "reject": "drop", "return": "return", "continue": "next", "queue": "drop",
}  # fmt: skip
_ORDERS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip
#: What lets a packet go on, or translates it.
_LETTING: Final = frozenset({"accept", "jump", "goto", "masquerade", "snat"})
_SOURCE: Final[Any] = {"payload": {"protocol": "ip", "field": "saddr"}}
#: Family, table and name of a chain or a set.
_Name = tuple[str, str, str]
#: First and last ports.
_Ranges = tuple[tuple[int, int], ...]
#: Sources as rules name them, each with one of its hosts.
_Sources = Iterable[tuple[str, IPv4Address]]
#: Value of what a packet does not have, so that no rule that asks about it matches.
_OTHER: Final = object()


@dataclass(frozen=True, slots=True)
class AcceptedPorts:
    """What the forward chains of a rule set let through from the inside to the outside.

    Attributes:
        ports: by protocol, the only ports that it goes to, as ranges; protocols without go to any port.
        sources: by refused protocol, the networks and hosts from which it is accepted, and which no lab has.
        elsewhere: networks and hosts that rules accept or translate as sources, and that no lab has.
    """

    ports: Mapping[Protocol, _Ranges]
    refused: frozenset[Protocol]
    unknown: frozenset[Protocol]
    sources: Mapping[Protocol, tuple[str, ...]] = field(default_factory=dict)
    elsewhere: tuple[str, ...] = ()


def accepted_ports(ruleset: str, inside: str, outside: str) -> AcceptedPorts:
    """Return what rules accept that `nft --json list ruleset` has printed, from one of its interfaces to another."""
    rules = _Rules.read(ruleset)
    ports: dict[Protocol, _Ranges] = {}
    refused, unknown = set[Protocol](), set[Protocol]()
    sources: dict[Protocol, tuple[str, ...]] = {}
    for protocol in _PROTOCOLS:
        found: dict[Verdict | None, list[tuple[int, int]]] = {}
        ranges = rules.ranges() if protocol != "icmp" else [(1, 1)]
        for first, last in ranges:
            found.setdefault(rules.verdict(_Packet(protocol, first, inside, outside)), []).append((first, last))
        accepted = _joined(found.get("accept", ()))
        if None in found and not accepted:
            unknown.add(protocol)
        elif not accepted:
            refused.add(protocol)
            others = {
                named: [_Packet(protocol, first, inside, outside, address) for first, _ in ranges]
                for named, address in rules.sources(rules.forward, inside, outside).items()
            }
            sources[protocol] = tuple(
                named for named, packets in others.items() if any(rules.verdict(one) == "accept" for one in packets)
            )
        elif protocol != "icmp" and not all(
            any(low <= first and last <= high for low, high in accepted) for first, last in _USUAL
        ):
            ports[protocol] = accepted
    named = rules.sources([*rules.forward, *rules.translating], inside, outside)
    return AcceptedPorts(ports, frozenset(refused), frozenset(unknown), sources, tuple(filter(_is_elsewhere, named)))


def inside_network(ruleset: str, inside: str, outside: str) -> IPv4Network | None:
    """Return the only network from which rules accept or translate what goes from one interface to another.

    None = they name none, or several, or hosts elsewhere, or a lab's own hosts are in it.
    """
    rules = _Rules.read(ruleset)
    named = [*rules.sources([*rules.forward, *rules.translating], inside, outside)]
    if any("-" in one for one in named):
        return None
    every = [IPv4Network(one) for one in named]
    networks = [one for one in every if one.num_addresses > 1]
    if len(networks) != 1 or not all(one.subnet_of(networks[0]) for one in every):
        return None
    return networks[0] if _is_elsewhere(str(networks[0])) else None


def _is_elsewhere(named: str) -> bool:
    """Whether no host of a lab is in a network, a range or a host."""
    first, _, last = named.partition("-")
    host = IPv4Address(str(INSIDE["ipv4"].host(0)))
    return not (IPv4Address(first) <= host <= IPv4Address(last) if last else host in IPv4Network(first))


def _joined(ranges: Iterable[tuple[int, int]]) -> _Ranges:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and joined[-1][1] + 1 == first:
            joined[-1] = joined[-1][0], last
        else:
            joined.append((first, last))
    return tuple(joined)


class _Packet:
    """The first packet of a connection: what rules may ask about."""

    def __init__(
        self, protocol: Protocol, port: int, inside: str, outside: str, source: IPv4Address | None = None
    ) -> None:
        """Of ICMP it is an echo request, and the port is none; None = it comes from a host of a lab."""
        has_ports = protocol != "icmp"
        self.protocol = protocol
        self._values: dict[tuple[object, object], object] = {
            ("meta", "iif"): inside,
            ("meta", "iifname"): inside,
            ("meta", "oif"): outside,
            ("meta", "oifname"): outside,
            ("meta", "l4proto"): protocol,
            ("meta", "nfproto"): "ipv4",
            ("meta", "protocol"): "ip",
            ("ct", "state"): "new",
            ("ct", "direction"): "original",
            # A rule that asks about it means translated connections from the outside.
            ("ct", "status"): "",
            ("ip", "protocol"): protocol,
            ("ip", "saddr"): source or INSIDE["ipv4"].host(0),
            ("ip", "daddr"): OUTSIDE["ipv4"].host(0),
            ("th", "dport"): port if has_ports else _OTHER,
            **({(protocol, "dport"): port} if has_ports else {("icmp", "type"): "echo-request"}),
        }

    def value(self, left: Any) -> object:
        """What a rule asks about; None = not known."""
        if not isinstance(left, dict) or len(left) != 1:
            return None
        ((kind, what),) = left.items()
        if kind == "concat":
            values = tuple(self.value(part) for part in what)
            return None if None in values else values
        asked = (what.get("protocol"), what.get("field")) if kind == "payload" else (kind, what.get("key"))
        is_other = kind == "payload" and asked[0] not in (None, self.protocol, "ip", "th", "ether", "vlan")
        return self._values.get(asked, _OTHER if is_other else None)


@dataclass(frozen=True, slots=True)
class _Rules:
    """Chains with their rules, base chains that filter or translate, and sets, each by family, table and name."""

    chains: Mapping[_Name, Sequence[Sequence[Any]]]
    base: Sequence[tuple[_Name, Verdict]]
    sets: Mapping[_Name, Sequence[Any]]
    ports: frozenset[int]
    translating: Sequence[_Name] = ()

    @classmethod
    def read(cls, ruleset: str) -> _Rules:
        chains: dict[_Name, list[Sequence[Any]]] = {}
        base: list[tuple[int, _Name, Verdict]] = []
        sets: dict[_Name, Sequence[Any]] = {}
        translating: list[_Name] = []
        for entry in json.loads(ruleset)["nftables"]:
            ((kind, what),) = entry.items()
            if what.get("family") not in _FAMILIES:
                continue
            if kind == "chain":
                name = what["family"], what["table"], what["name"]
                chains.setdefault(name, [])
                if what.get("hook") == "forward" and what.get("type") == "filter":
                    base.append((what["prio"], name, "drop" if what.get("policy") == "drop" else "accept"))
                if what.get("hook") == "postrouting" and what.get("type") == "nat":
                    translating.append(name)
            elif kind == "rule":
                chains.setdefault((what["family"], what["table"], what["chain"]), []).append(what["expr"])
            elif kind in ("set", "map"):
                sets[what["family"], what["table"], what["name"]] = what.get("elem", [])
        ports = frozenset(number for part in (*chains.values(), *sets.values()) for number in _numbers(part))
        return cls(chains, [(name, policy) for _, name, policy in sorted(base)], sets, ports, translating)

    @property
    def forward(self) -> list[_Name]:
        """The base chains of the hook `forward`."""
        return [name for name, _ in self.base]

    def sources(self, chains: Iterable[_Name], inside: str, outside: str) -> dict[str, IPv4Address]:
        """Return networks, ranges and hosts that are accepted or translated as sources, each with one of its hosts."""
        packet = _Packet("udp", 1, inside, outside)
        return {named: host for name in chains for named, host in self._sources(packet, name, 0)}

    def _sources(self, packet: _Packet, name: _Name, depth: int) -> _Sources:
        table = name[:2]
        for rule in self.chains.get(name, ()) if depth <= _DEEPEST else ():
            named: list[tuple[str, IPv4Address]] = []
            for statement in rule:
                ((kind, what),) = statement.items()
                if kind != "match":
                    ends = self._ends(packet, what, table) if kind == "vmap" else [([], statement)]
                    for more, verdict in ends:
                        yield from self._let(packet, [*named, *more], verdict, table, depth)
                elif what["left"] == _SOURCE and what["op"] in ("==", "in"):
                    right = what["right"]
                    is_set = not isinstance(right, str) or right.startswith("@")
                    named += _hosts(self._elements(right, table) if is_set else [right])
                elif _is_interface(what["left"]) and self._matches(packet, what, table) is False:
                    break

    def _ends(
        self, packet: _Packet, what: Mapping[str, Any], table: tuple[str, str]
    ) -> Iterator[tuple[_Sources, Mapping[str, Any]]]:
        """Yield the verdicts of a map, each with the sources that it is for."""
        is_source, of_interfaces = what["key"] == _SOURCE, _is_interface(what["key"])
        for key, verdict in self._elements(what["data"], table):
            if not of_interfaces or self._is_one_of(packet.value(what["key"]), key, table) is not False:
                yield _hosts([key]) if is_source else [], verdict

    def _let(
        self, packet: _Packet, named: _Sources, verdict: Mapping[str, Any], table: tuple[str, str], depth: int
    ) -> _Sources:
        """Yield the sources of a rule that lets them, and those of the chain that it jumps to."""
        ((kind, what),) = verdict.items()
        if kind in _LETTING:
            yield from named
        if kind in ("jump", "goto"):
            yield from self._sources(packet, (*table, what["target"]), depth + 1)

    def ranges(self) -> list[tuple[int, int]]:
        """Ranges of ports that the rules can only treat alike: no number that they name is within one."""
        starts = sorted({1, *(each for each in self.ports), *(each + 1 for each in self.ports)})
        starts = [start for start in starts if 1 <= start <= LAST_PORT]
        return list(zip(starts, [start - 1 for start in starts[1:]] + [LAST_PORT], strict=True))

    def verdict(self, packet: _Packet) -> Verdict | None:
        """The verdict of all base chains; None = not known."""
        every = set[Verdict]({"accept"})
        for name, policy in self.base:
            own = {policy if one in ("next", "return") else one for one in self._chain(packet, name, 0)}
            if own == {"drop"}:
                return "drop"
            every |= own
        return "accept" if every == {"accept"} else None

    def _chain(self, packet: _Packet, name: _Name, depth: int) -> set[Verdict]:
        """The verdicts that a chain may have on a packet; "next" = none of its rules has one."""
        if depth > _DEEPEST or name not in self.chains:
            return {"accept", "drop"}
        found: set[Verdict] = {"next"}
        for rule in self.chains[name]:
            found = found - {"next"} | self._rule(packet, rule, name[:2], depth)
            if "next" not in found:
                break
        return found

    def _rule(self, packet: _Packet, rule: Sequence[Any], table: tuple[str, str], depth: int) -> set[Verdict]:
        """The verdicts that a rule may have; "next" = it has none, or does not match."""
        may_not: set[Verdict] = set()
        for statement in rule:
            ((kind, what),) = statement.items()
            if kind == "match":
                holds = self._matches(packet, what, table)
                if holds is False:
                    return {"next"}
                may_not |= set() if holds else {"next"}
            elif kind == "limit" or (kind == "xt" and what is not None):
                may_not |= {"next"}
            elif kind == "vmap":
                return may_not | self._mapped(packet, what, table, depth)
            elif kind in _ENDS or kind in ("jump", "goto"):
                return may_not | self._ended(packet, statement, table, depth)
        return {"next"}

    def _ended(self, packet: _Packet, statement: Mapping[str, Any], table: tuple[str, str], depth: int) -> set[Verdict]:
        ((kind, what),) = statement.items()
        if kind in ("jump", "goto"):
            own = self._chain(packet, (*table, what["target"]), depth + 1)
            # After `goto` nothing of this chain follows.
            last: Verdict = "next" if kind == "jump" else "return"
            return {last if one in ("next", "return") else one for one in own}
        return {_ENDS[kind]}

    def _mapped(self, packet: _Packet, what: Mapping[str, Any], table: tuple[str, str], depth: int) -> set[Verdict]:
        """The verdicts of a map: that of its first key that matches."""
        found: set[Verdict] = set()
        for key, verdict in self._elements(what["data"], table):
            holds = self._is_one_of(packet.value(what["key"]), key, table)
            if holds is False:
                continue
            found |= self._ended(packet, verdict, table, depth)
            if holds:
                return found
        return found | {"next"}

    def _matches(self, packet: _Packet, what: Mapping[str, Any], table: tuple[str, str]) -> bool | None:
        """Whether a packet matches; None = not known."""
        value = packet.value(what["left"])
        if value is _OTHER:
            return False
        right, holds = what["right"], self._is_one_of(value, what["right"], table)
        if what["op"] in ("==", "in"):
            return holds
        if what["op"] == "!=":
            return None if holds is None else not holds
        compare = _ORDERS.get(what["op"])
        return compare(value, right) if compare and isinstance(value, int) and isinstance(right, int) else None

    def _is_one_of(self, value: object, right: object, table: tuple[str, str]) -> bool | None:
        """Whether a value is one of those that a rule names; None = not known."""
        if value is None:
            return None
        if value is _OTHER:
            return False
        match right:
            case {"set": _} | [*_]:
                every = [self._is_one_of(value, each, table) for each in self._elements(right, table)]
            case str() if right.startswith("@"):
                if (*table, right[1:]) not in self.sets:
                    return None
                every = [self._is_one_of(value, each, table) for each in self._elements(right, table)]
            case _:
                return _is(value, right)
        return True if True in every else None if None in every else False

    def _elements(self, right: Any, table: tuple[str, str]) -> Sequence[Any]:
        if isinstance(right, str):
            right = self.sets.get((*table, right.removeprefix("@")), [])
        elements = right["set"] if isinstance(right, dict) and "set" in right else right
        return elements if isinstance(elements, list) else [elements]


def _is(value: object, right: Any) -> bool | None:
    """Whether a value is what a rule names; None = not known."""
    if isinstance(right, dict) and "elem" in right:
        return _is(value, right["elem"]["val"])
    if isinstance(value, IPv4Address):
        return _has(right, value)
    if isinstance(value, tuple):
        parts = right.get("concat", ()) if isinstance(right, dict) else ()
        every = [_is(own, part) for own, part in zip(value, parts, strict=False)]
        return None if len(parts) != len(value) else False if False in every else None if None in every else True
    if isinstance(value, int):
        first, last = right["range"] if isinstance(right, dict) and "range" in right else (right, right)
        return first <= value <= last if isinstance(first, int) and isinstance(last, int) else None
    if isinstance(right, str):
        return fnmatchcase(str(value), right) if right.endswith("*") else value == right
    return _NUMBERS.get(right) == value if isinstance(right, int) else None


def _has(right: Any, address: IPv4Address) -> bool | None:
    """Whether a rule names a network or a range with an address; None = not known."""
    try:
        match right:
            case {"prefix": {"addr": first, "len": length}}:
                return address in IPv4Network(f"{first}/{length}", strict=False)
            case {"range": [first, last]}:
                return IPv4Address(first) <= address <= IPv4Address(last)
            case str():
                return address == IPv4Address(right)
    except ValueError:
        pass
    return None


def _is_interface(left: Any) -> bool:
    return isinstance(left, dict) and left.get("meta", {}).get("key") in ("iif", "iifname", "oif", "oifname")


def _hosts(elements: Iterable[Any]) -> list[tuple[str, IPv4Address]]:
    """Return networks, ranges and hosts of IPv4 that a rule names, each with one of its hosts."""
    found: list[tuple[str, IPv4Address]] = []
    for element in elements:
        match element:
            case {"elem": {"val": value}}:
                found += _hosts([value])
            case {"set": [*several]}:
                found += _hosts(several)
            case {"prefix": {"addr": str(first), "len": int(length)}}:
                network = IPv4Network(f"{first}/{length}", strict=False)
                found.append((str(network), network[network.num_addresses // 2]))
            case {"range": [str(first), str(last)]}:
                found.append((f"{first}-{last}", IPv4Address(first)))
            case str() if element[:1].isdigit():
                found.append((element, IPv4Address(element)))
    return found


def _numbers(part: object) -> Iterator[int]:
    """Yield every number in rules and sets: each may be a port, and none of others does harm."""
    match part:
        case int():
            yield part
        case dict():
            for each in part.values():
                yield from _numbers(each)
        case list() | tuple():
            for each in part:
                yield from _numbers(each)
