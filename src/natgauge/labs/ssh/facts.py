# SPDX-License-Identifier: Apache-2.0
"""Facts of another machine, whether two of its interfaces can become a device, and the layout of a chain of them.

To look at facts changes nothing there. A layout has a namespace for each device, with the machine's own interfaces at
both ends. It is text only: shell scripts that make and undo it. They change nothing in the machine's own namespace
except these two interfaces. The machine's connections, including natgauge's own, are not a device's.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from natgauge.errors import HostError, UsageError
from natgauge.host.machine import CACHES_SCRIPT, caches_in
from natgauge.host.programs import SECTION, sections_of
from natgauge.inputs.measuring_types import parse_cores
from natgauge.labs.common.links import End, VethCable, silence, sysctls_of_namespace
from natgauge.labs.ssh.remote import DIRECTORY

#: Programs that natgauge needs on a remote machine, by family of systems, each with its Debian package on Linux.
PROGRAMS: Final[Mapping[str, Mapping[str, str]]] = {
    "Linux": {"ip": "iproute2", **dict.fromkeys(("env", "readlink", "cat", "wc"), "coreutils")},
    "BSD": dict.fromkeys(("ifconfig", "route", "sysctl", "env", "readlink", "cat", "wc"), "base system"),
}
#: Systems whose machines can be worked on, as `uname -s` calls them.
_SYSTEMS: Final = ("Linux", "OpenBSD", "FreeBSD")
#: Drivers that leave checksums unfinished, because no wire follows.
VIRTUAL: Final = frozenset({"veth", "virtio_net", "tun", "xen_netfront", "netvsc", "hv_netvsc"})
#: Settings of an interface below /proc/sys/net. The kernel sets them anew when it goes to another namespace, and back.
_SYSCTLS: Final = (
    *(f"ipv4/conf/{{}}/{name}" for name in ("arp_announce", "arp_filter", "arp_ignore", "forwarding", "proxy_arp")),
    *(f"ipv4/conf/{{}}/{name}" for name in ("accept_redirects", "log_martians", "rp_filter", "send_redirects")),
    *(f"ipv6/conf/{{}}/{name}" for name in ("accept_dad", "accept_ra", "accept_redirects", "addr_gen_mode")),
    *(f"ipv6/conf/{{}}/{name}" for name in ("autoconf", "dad_transmits", "disable_ipv6", "forwarding", "proxy_ndp")),
    *(f"ipv6/conf/{{}}/{name}" for name in ("router_solicitations", "use_tempaddr")),
)


@dataclass(frozen=True, slots=True)
class RemoteInterface:
    """One interface of the machine."""

    name: str
    up: bool
    mtu: int
    master: str | None
    parent: str | None
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RemoteFacts:
    """Facts that a machine reported.

    Attributes:
        cpu: model of its first processor; empty where the system does not report it.
        cpus: processors that are online; empty where the system does not report them.
        caches: octets of the processors' data caches by level, such as "L2"; empty where they are not known.
        sysctls: settings of each interface that was asked for, by their paths below /proc/sys/net.
    """

    user: int
    system: str
    kernel: str
    cpu: str
    cpus: tuple[int, ...]
    missing: tuple[str, ...]
    interfaces: Mapping[str, RemoteInterface]
    management: frozenset[str]
    namespaces: bool = False
    drivers: Mapping[str, str] = field(default_factory=dict)
    offloads: frozenset[str] = frozenset()
    caches: Mapping[str, int] = field(default_factory=dict)
    without_ipv6: frozenset[str] = frozenset()
    sysctls: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def common_script(programs: Iterable[str]) -> str:
    """Return the beginning of the script that reads the facts of any system."""
    return f"""
echo '{SECTION}user'; id -u
echo '{SECTION}system'; uname -s
echo '{SECTION}kernel'; uname -r
echo '{SECTION}missing'; for name in {" ".join(programs)}; do command -v "$name" > /dev/null || echo "$name"; done"""


def script(interfaces: Sequence[str]) -> str:
    """Shell text that prints what `read` reads; what a machine does not have it passes over."""
    names = shlex.join(interfaces)
    sysctls = " ".join(f'"{path.format("$interface")}"' for path in _SYSCTLS)
    return f"""{common_script(PROGRAMS["Linux"])}
echo '{SECTION}cpu'; sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2> /dev/null | sed -n 1p
echo '{SECTION}cpus'; cat /sys/devices/system/cpu/online 2> /dev/null
echo '{SECTION}caches'; ({CACHES_SCRIPT})
echo '{SECTION}namespaces'; ip netns list > /dev/null 2>&1 && echo yes
echo '{SECTION}links'; ip -o link show 2> /dev/null
echo '{SECTION}addresses'; ip -o addr show 2> /dev/null
set -- ${{SSH_CONNECTION:-}}
echo '{SECTION}server'; echo "${{3:-}}"
echo '{SECTION}routes'
[ -z "${{1:-}}" ] || ip -o route get "$1" 2> /dev/null
ip -o route show default 2> /dev/null; ip -o -6 route show default 2> /dev/null
for interface in {names}; do
    echo "{SECTION}driver $interface"; ethtool -i "$interface" 2> /dev/null | sed -n 's/^driver: //p'
    echo "{SECTION}offload $interface"; ethtool -k "$interface" 2> /dev/null | grep '^tx-checksumming: on'
    echo "{SECTION}sysctls $interface"; (cd /proc/sys/net && grep -s . {sysctls})
done
:
"""


def read(text: str) -> RemoteFacts:
    """Return the facts of a machine from the script's output on Linux."""
    sections = sections_of(text)
    addresses = [match for line in sections.get("addresses", []) if (match := _ADDRESS.match(line))]
    links = {link.name: link for line in sections.get("links", []) if (link := _link(line, addresses))}
    server, scope = server_of(sections)
    reached = {match[1] for line in sections.get("routes", []) if (match := re.search(r" dev (\S+)", line))}
    reached |= {address[1] for address in addresses if server and address[2] == server}
    reached |= {scope} if scope else set()
    of_links = {name: first(sections, f"driver {name}") for name in links}
    online = first(sections, "cpus")
    cpus = parse_cores(online) if online else ()
    return replace(
        common_facts(sections, cpus, links, reached),
        namespaces="yes" in sections.get("namespaces", ()),
        caches=caches_in("\n".join(sections.get("caches", ())), cpus),
        drivers={name: driver for name, driver in of_links.items() if driver},
        offloads=frozenset(name for name in links if sections.get(f"offload {name}")),
        sysctls={name: _sysctls(name, lines) for name in links if (lines := sections.get(f"sysctls {name}"))},
    )


def server_of(sections: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """Return the address at which the machine was reached, and the interface that a link-local one names (RFC 4007)."""
    address, _, interface = first(sections, "server").partition("%")
    return address, interface


def _sysctls(interface: str, lines: Iterable[str]) -> dict[str, str]:
    """Return the settings of an interface from lines "path:value"; what else the machine says is passed over."""
    own = {path.format(interface) for path in _SYSCTLS}
    said = (line.rpartition(":") for line in lines)
    return {path: value for path, _, value in said if path in own and re.fullmatch(r"-?\d+", value)}


def common_facts(
    sections: Mapping[str, Sequence[str]],
    cpus: tuple[int, ...],
    interfaces: Mapping[str, RemoteInterface],
    reached: set[str],
) -> RemoteFacts:
    """Return the facts that any system reports alike; `reached`: interfaces by which the machine is reached."""
    user = first(sections, "user")
    return RemoteFacts(
        user=int(user) if user.isdigit() else -1,
        system=first(sections, "system"),
        kernel=first(sections, "kernel"),
        cpu=first(sections, "cpu"),
        cpus=cpus,
        missing=tuple(line.strip() for line in sections.get("missing", ())),
        interfaces=interfaces,
        management=frozenset(_with_parents(reached, interfaces)),
    )


def refuse_unfit(
    facts: RemoteFacts, where: str, interfaces: Sequence[str], mtu: int, devices: Sequence[str] = ()
) -> None:
    """Refuse a machine that cannot be used, and interfaces that must not be used."""
    if facts.system not in _SYSTEMS:
        raise HostError(
            f"{where}: runs {facts.system or 'an unknown system'}, and devices can be on {', '.join(_SYSTEMS)} only; "
            "measure it by --lab wire, with --empty-command"
        )
    if facts.user != 0:
        raise HostError(f"{where}: we are user {facts.user} there, and devices need root; log in as root")
    for name in facts.missing:
        package = PROGRAMS["Linux"].get(name)
        mends = f"run there: apt-get install {package}" if facts.system == "Linux" else "it is of the base system"
        raise HostError(f'{where}: program "{name}" is missing there; {mends}')
    if facts.system == "Linux" and not facts.namespaces:
        raise HostError(f"{where}: its `ip` or its kernel supports no network namespaces; install iproute2 there")
    if facts.system != "Linux" and len(devices) > 1:
        raise UsageError(
            f"{where}: runs {facts.system}, which has room for one device, and the chain has {', '.join(devices)}; "
            "use a machine with Linux"
        )
    for name in interfaces:
        _refuse_interface(facts, where, name, mtu)


def _refuse_interface(facts: RemoteFacts, where: str, name: str, mtu: int) -> None:
    link = facts.interfaces.get(name)
    if link is None:
        interfaces = ", ".join(sorted(set(facts.interfaces) - {"lo"})) or "none"
        raise UsageError(f"{where}: interface {name} does not exist there; there are {interfaces}")
    if name in facts.management:
        raise UsageError(
            f"{where}: interface {name} is the one by which the machine is reached; a test would cut it off, use "
            "another"
        )
    users = [other.name for other in facts.interfaces.values() if other.parent == name]
    users += [] if link.master is None else [link.master]
    if users:
        raise UsageError(f"{where}: interface {name} is in use by {users[0]}; use another")
    if link.addresses:
        own = link.addresses[0]
        mend = f"ip addr flush dev {name}" if facts.system == "Linux" else f"ifconfig {name} {own} delete"
        raise UsageError(f"{where}: interface {name} carries IP address {own}; use another, or run there: {mend}")
    if link.mtu < mtu:
        raise UsageError(
            f"{where}: interface {name} has MTU {link.mtu}, the tester's ports have {mtu}; make them the same"
        )


#: "2: eth0    inet 10.0.0.5/24 brd 10.0.0.255 scope global eth0\ ..."
_ADDRESS: Final = re.compile(r"\d+:\s+(\S+)\s+inet6?\s+([^\s/]+)(/\d+)?.*?\sscope (\S+)")
#: "3: eth1.5@eth1: <BROADCAST,MULTICAST,UP> mtu 1500 qdisc noop master br0 state UP ..."
_LINK: Final = re.compile(r"\d+:\s+([^\s:@]+)(?:@([^\s:]+))?:\s+<([^>]*)>\s+mtu (\d+)(.*)")


def _link(line: str, addresses: Sequence[re.Match[str]]) -> RemoteInterface | None:
    match = _LINK.match(line)
    if match is None:
        return None
    master = re.search(r" master (\S+)", match[5])
    own = [
        f"{address[2]}{address[3] or ''}" for address in addresses if address[1] == match[1] and address[4] != "link"
    ]
    return RemoteInterface(
        name=match[1],
        up="UP" in match[3].split(","),
        mtu=int(match[4]),
        master=master[1] if master else None,
        parent=match[2],
        addresses=tuple(own),
    )


def _with_parents(names: set[str], links: Mapping[str, RemoteInterface]) -> set[str]:
    """Return the names with the interfaces below them and the interfaces that belong to them."""
    related, before = set(names), set[str]()
    while related != before:
        before = set(related)
        related |= {link.parent for link in links.values() if link.name in before and link.parent is not None}
        related |= {link.name for link in links.values() if link.master in before}
    return related


def first(sections: Mapping[str, Sequence[str]], name: str) -> str:
    """The first line under a heading; empty where there is none."""
    return next(iter(sections.get(name, ())), "").strip()


#: Of the machine's namespaces that are ours. Not `natgauge.labs.common.namespaces.PREFIX`: the machine may be this one.
PREFIX: Final = "natgauge-"
#: Between devices, with room for what translators and tunnels add to a frame of any MTU a port has.
_INNER_MTU: Final = 9700


@dataclass(frozen=True, slots=True)
class Layout:
    """A chain on another machine; of each device the ends towards Initiator and Responder, with its namespace there."""

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
            text += [
                f"ip netns add {netns} 2> /dev/null || ip netns exec {netns} true",
                _set_sysctls(netns, of_namespace),
            ]
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


def _set_sysctls(netns: str, values: Mapping[str, int]) -> str:
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
    text = [_set_sysctls(end.netns, values)]
    text += [f"{enter} addr replace {address} dev {end.interface} nodad" for address in end.addresses]
    text += [f"{enter} route replace local {network} dev lo" for network in end.pool]
    text.append(f"{enter} link set {end.interface} up")
    text += [f"{enter} route replace {network} via {via} dev {end.interface}" for network, via in end.routes]
    if driver in VIRTUAL:
        # No card finishes the checksum of what the device itself makes.
        text.append(f"ip netns exec {end.netns} ethtool -K {end.interface} tx off > /dev/null")
    return "\n".join(text)
