# SPDX-License-Identifier: Apache-2.0
"""A machine of the `ssh` lab that runs OpenBSD or FreeBSD: how it is looked at, and how its interfaces become a device.

It has neither `ip` nor /proc, and no place that a device could have to itself: the machine is the device. So there is
one of them, what is set there is undone piece by piece, and what a gateway changes beyond that it writes down in its
private directory, in files "undo.*", each of which a shell can run (docs/recipes.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from natgauge.host.programs import SECTION, sections_of
from natgauge.labs.ssh.facts import (
    PROGRAMS,
    Layout,
    RemoteFacts,
    RemoteInterface,
    common_facts,
    common_script,
    first,
    private_directory,
    server_of,
)
from natgauge.words import Interface

#: Duplicates of an IPv6 address are looked for during a second, in which it cannot be used.
_TENTATIVE_SECONDS: Final = 5

#: "em0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> mtu 1500", with a metric before the MTU on FreeBSD.
_INTERFACE: Final = re.compile(r"(\S+): flags=[0-9a-f]+<([^>]*)>.*? mtu (\d+)")
_ADDRESS: Final = re.compile(r"\s+inet6?\s+([0-9A-Fa-f.:]+)(%\S+)?[\s/]")
#: A VLAN's: "encap: vnetid 7 parent em0 ..." on OpenBSD, "vlan: 7 ... parent interface: em0" on FreeBSD.
_PARENT: Final = re.compile(r"\s+(?:encap|vlan): .*\bparent (?:interface: )?(\w+)")
#: Of a bridge, trunk or aggregate: "em1 flags=3<LEARNING,DISCOVER>", "trunkport em1 ...", "member: em1 ...".
_MEMBER: Final = re.compile(r"\s+(?:(?:trunkport|laggport:|member:) (\w+)|(\w+) flags=)")


def script(_interfaces: Sequence[str]) -> str:
    """Shell text that prints what `read` reads."""
    return f"""{common_script(PROGRAMS["BSD"])}
echo '{SECTION}cpu'; sysctl -n hw.model
echo '{SECTION}processors'; sysctl -n hw.ncpuonline 2> /dev/null || sysctl -n hw.ncpu
echo '{SECTION}interfaces'; ifconfig -a
set -- ${{SSH_CONNECTION:-}}
echo '{SECTION}server'; echo "${{3:-}}"
echo '{SECTION}routes'
[ -z "${{1:-}}" ] || route -n get "$1" 2> /dev/null
route -n get default 2> /dev/null; route -n get -inet6 default 2> /dev/null
:
"""


def read(text: str) -> RemoteFacts:
    """Return the facts of a machine from the script's output on OpenBSD or FreeBSD."""
    sections = sections_of(text)
    blocks = _by_interface(sections.get("interfaces", ()))
    interfaces = _interfaces(blocks)
    routes = "\n".join(sections.get("routes", ()))
    reached = set(re.findall(r"^\s*interface: (\S+)", routes, re.MULTILINE))
    server, scope = server_of(sections)
    reached |= {scope} if scope else set()
    reached |= {interface.name for interface in interfaces.values() if server and server in interface.addresses}
    count = first(sections, "processors")
    cpus = tuple(range(int(count))) if count.isdigit() else ()
    # FreeBSD turns IPv6 off on interfaces for which rc.conf(5) asks for none.
    without = (name for name, told in blocks.items() if re.search(r"nd6 options.*IFDISABLED", "\n".join(told)))
    return replace(common_facts(sections, cpus, interfaces, reached), without_ipv6=frozenset(without))


def make(laid: Layout, facts: RemoteFacts) -> str:
    """Return shell text that gives the interfaces the device's addresses; it may run again after an interruption."""
    (pair,) = laid.ends
    text = ["set -eu"]
    for end in pair:
        if end.interface in facts.without_ipv6 and end.speaks_ipv6:
            text.append(f"ifconfig {end.interface} inet6 -ifdisabled")
        text += [f"ifconfig {end.interface} {_named(each, with_length=True)} alias" for each in end.addresses]
        text.append(f"ifconfig {end.interface} up")
        text += [f"route -n add -inet6 {network} {via}" for network, via in end.routes]
    if any(end.speaks_ipv6 for end in pair):
        condition = " || ".join(f"ifconfig {end.interface} | grep -q tentative" for end in pair)
        text.append(f"tries={_TENTATIVE_SECONDS}")
        text.append(f'while [ "$tries" -gt 0 ] && {{ {condition}; }}; do sleep 1; tries=$((tries - 1)); done')
    return "\n".join(text)


def undo(laid: Layout, facts: RemoteFacts) -> str:
    """Return shell text that undoes `make` and the gateway's changes, also where these are incomplete."""
    (pair,) = laid.ends
    text = [
        f"for file in {private_directory(laid.names[0])}/undo.*; do",
        '    [ ! -e "$file" ] || /bin/sh -eu "$file"',
        "done",
    ]
    for end in pair:
        text += [f"route -n delete -inet6 {each} {via} > /dev/null 2>&1 || true" for each, via in end.routes]
        text += [f"ifconfig {end.interface} {_named(each)} delete 2> /dev/null || true" for each in end.addresses]
        if end.interface in facts.without_ipv6 and end.speaks_ipv6:
            text.append(f"ifconfig {end.interface} inet6 ifdisabled 2> /dev/null || true")
        if not facts.interfaces[end.interface].up:
            text.append(f"ifconfig {end.interface} down 2> /dev/null || true")
    return "\n".join(text)


def _named(address: Interface, *, with_length: bool = False) -> str:
    """Return the address in the form of ifconfig(8) of both systems."""
    if address.version == 4:
        return f"inet {address}" if with_length else f"inet {address.ip}"
    return f"inet6 {address.ip} prefixlen {address.network.prefixlen}" if with_length else f"inet6 {address.ip}"


def _interfaces(blocks: Mapping[str, Sequence[str]]) -> Mapping[str, RemoteInterface]:
    interfaces: dict[str, RemoteInterface] = {}
    masters: dict[str, str] = {}
    for name, (flags, mtu, *below) in blocks.items():
        addresses = [match for line in below if (match := _ADDRESS.match(line)) and not match[1].startswith("fe80")]
        parents = [match[1] for line in below if (match := _PARENT.match(line))]
        masters |= {match[1] or match[2]: name for line in below if (match := _MEMBER.match(line))}
        interfaces[name] = RemoteInterface(
            name=name,
            up="UP" in flags.split(","),
            mtu=int(mtu),
            master=None,
            parent=parents[0] if parents else None,
            addresses=tuple(address[1] for address in addresses),
        )
    return {name: replace(interface, master=masters.get(name)) for name, interface in interfaces.items()}


def _by_interface(lines: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Return the flags, the MTU and the indented lines of each interface."""
    blocks: dict[str, list[str]] = {}
    block: list[str] = []
    for line in lines:
        if begun := _INTERFACE.match(line):
            block = blocks[begun[1]] = [begun[2], begun[3]]
        else:
            block.append(line)
    return blocks
