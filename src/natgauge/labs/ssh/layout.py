# SPDX-License-Identifier: Apache-2.0
"""Layout of a chain of devices on another machine: a namespace each, with the machine's own interfaces at both ends.

This module makes text only: shell scripts that make and undo the layout. They change nothing in the machine's own
namespace except these two interfaces. The machine's connections, including natgauge's own, are not a device's.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from natgauge.labs.common.links import End, VethCable, silence, sysctls_of_namespace
from natgauge.labs.ssh.facts import VIRTUAL, RemoteFacts
from natgauge.labs.ssh.remote import DIRECTORY

#: Of the machine's namespaces that are ours. Not `natgauge.labs.common.namespaces.PREFIX`: the machine may be this one.
PREFIX: Final = "natgauge-"
#: Between devices, with room for what translators and tunnels add to a frame of any MTU a port has.
_INNER_MTU: Final = 9700


@dataclass(frozen=True, slots=True)
class Layout:
    """A chain on another machine.

    Attributes:
        ends: ends of each device, towards the Initiator and the Responder, with its namespace over there.
    """

    names: tuple[str, ...]
    ends: tuple[tuple[End, End], ...]
    interfaces: tuple[str, str]

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Namespaces of the devices."""
        return tuple(inside.netns for inside, _ in self.ends)

    def make(self, facts: RemoteFacts) -> str:
        """Return the script that makes the layout; it may run again after an interruption."""
        text, of_namespace = ["set -eu"], sysctls_of_namespace(forwards=True)
        for netns in self.namespaces:
            text += [f"ip netns add {netns} 2> /dev/null || ip netns exec {netns} true", _sysctls(netns, of_namespace)]
            text.append(f"ip -n {netns} link set lo up")
        for name, netns in zip(self.interfaces, (self.namespaces[0], self.namespaces[-1]), strict=True):
            text.append(f"! ip link show {name} > /dev/null 2>&1 || ip link set {name} netns {netns}")
        for (_, left), (right, _) in zip(self.ends, self.ends[1:], strict=False):
            text.append(
                f"ip -n {left.netns} link show {left.interface} > /dev/null 2>&1 || "
                f"ip link add {left.interface} netns {left.netns} mtu {_INNER_MTU} type veth "
                f"peer name {right.interface} netns {right.netns} mtu {_INNER_MTU}"
            )
        for pair in self.ends:
            text += [_configured(end, facts.drivers.get(end.interface, "veth")) for end in pair]
        return "\n".join(text)

    def undo(self, facts: RemoteFacts) -> str:
        """Return the script that undoes the layout, also where it is incomplete."""
        text = []
        for netns in self.namespaces:
            text += [
                f"for process in $(ip netns pids {netns} 2> /dev/null); do",
                '    kill -s KILL "$process" 2> /dev/null || true',
                "done",
            ]
        for name, netns in zip(self.interfaces, (self.namespaces[0], self.namespaces[-1]), strict=True):
            # Back to where we log in, which need not be the machine's first namespace: $$ is a process there.
            text.append(f"! ip -n {netns} link show {name} > /dev/null 2>&1 || ip -n {netns} link set {name} netns $$")
        text += [f"! ip netns pids {netns} > /dev/null 2>&1 || ip netns del {netns}" for netns in self.namespaces]
        for name in self.interfaces:
            text += [_restored(path, value) for path, value in facts.sysctls.get(name, {}).items()]
            if facts.drivers.get(name) in VIRTUAL and name in facts.offloads:
                text.append(f"! ip link show {name} > /dev/null 2>&1 || ethtool -K {name} tx on > /dev/null 2>&1")
            if facts.interfaces[name].up:
                text.append(f"! ip link show {name} > /dev/null 2>&1 || ip link set {name} up")
        return "\n".join(text)


def layout(lab: str, names: Sequence[str], cables: Sequence[VethCable], interfaces: tuple[str, str]) -> Layout:
    """The chain of a lab of namespaces, laid on another machine."""
    homes = [f"{PREFIX}{lab}-{name}" for name in names]
    ends = [
        [replace(cables[at].ends[1], netns=home), replace(cables[at + 1].ends[0], netns=home)]
        for at, home in enumerate(homes)
    ]
    ends[0][0] = replace(ends[0][0], interface=interfaces[0])
    ends[-1][1] = replace(ends[-1][1], interface=interfaces[1])
    return Layout(tuple(names), tuple((first, second) for first, second in ends), interfaces)


def private_directory(device: str) -> str:
    """Return the directory of a device's files on the machine."""
    return f"{DIRECTORY}/{device}"


def _sysctls(netns: str, values: Mapping[str, int]) -> str:
    """Return lines that set sysctls. Keys that the kernel lacks are left out: the feature is missing as well."""
    lines = [f"[ ! -e /proc/sys/{key} ] || echo {value} > /proc/sys/{key}" for key, value in values.items()]
    return f"ip netns exec {netns} /bin/sh -euc {shlex.quote('; '.join(lines))}"


def _restored(path: str, value: str) -> str:
    """Return a line that gives a setting below /proc/sys/net its value back, where it has another one.

    The kernel may refuse it, as `addr_gen_mode` 2 without the secret that the interface had: what follows is undone.
    """
    file = f"/proc/sys/net/{path}"
    return f'[ ! -e {file} ] || [ "$(cat {file})" = {value} ] || echo {value} > {file} || true'


def _configured(end: End, driver: str) -> str:
    values = {**silence(end.interface), f"net/ipv6/conf/{end.interface}/disable_ipv6": int(not end.speaks_ipv6)}
    enter = f"ip -n {end.netns}"
    text = [_sysctls(end.netns, values)]
    text += [f"{enter} addr replace {address} dev {end.interface} nodad" for address in end.addresses]
    text += [f"{enter} route replace local {network} dev lo" for network in end.pool]
    text.append(f"{enter} link set {end.interface} up")
    text += [f"{enter} route replace {network} via {via} dev {end.interface}" for network, via in end.routes]
    if driver in VIRTUAL:
        # No card finishes the checksum of what the device itself makes.
        text.append(f"ip netns exec {end.netns} ethtool -K {end.interface} tx off > /dev/null")
    return "\n".join(text)
