# SPDX-License-Identifier: Apache-2.0
"""Virtual cables between namespaces, how each of their ends is set, and the counters of the stacks behind them.

Counters of a network stack have the names of nstat(8) and conntrack(8); those of its queues are read by netlink.
"""

from __future__ import annotations

import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Network, IPv6Interface
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pyroute2 import IPRoute
from pyroute2.ethtool.ioctl import EthtoolError, IoctlEthtool
from pyroute2.netlink.exceptions import NetlinkError

from natgauge.errors import BrokenError, HostError
from natgauge.host import process_files
from natgauge.host.machine import online_cpus
from natgauge.labs.common.namespaces import inside, write_sysctls
from natgauge.labs.contract import NetworkCounters
from natgauge.words import Address, Family, Interface, Network

#: Octets of an IP packet on every cable. A live frame has at most 3408 octets with its Ethernet header, a translator
#: adds up to 20 to that, and XDP on a veth requires at most 3504.
MTU: Final = 3498

_NO_DUPLICATE_CHECK = 0x02  # IFA_F_NODAD
#: Table of the namespace's own addresses (RT_TABLE_LOCAL), and the number of its loopback interface.
_LOCAL: Final = 255
LOOPBACK: Final = 1


@dataclass(frozen=True, slots=True)
class End:
    """One end of a cable.

    Attributes:
        addresses: IP addresses with prefix lengths; a tester port has none.
        pool: further IPv4 networks whose every address is the namespace's own.
        routes: networks behind the other end, each with that end's address; not its own network.
    """

    netns: str
    interface: str
    mac: str
    addresses: tuple[Interface, ...] = ()
    pool: tuple[IPv4Network, ...] = ()
    routes: tuple[tuple[Network, Address], ...] = ()

    @property
    def speaks_ipv6(self) -> bool:
        """Whether IPv6 is used on this end."""
        return any(isinstance(address, IPv6Interface) for address in self.addresses)


@dataclass(frozen=True, slots=True)
class VethCable:
    """Two ends.

    Attributes:
        index: interface number of the first end, from 100; the second gets a small one from the kernel. Two ends of
            one number would look like a physical interface to the kernel, which reports their carrier a second late.
    """

    ends: tuple[End, End]
    index: int


def sysctls_of_namespace(*, forwards: bool) -> Mapping[str, int]:
    """Return the settings of a namespace, still empty, so that interfaces made in it never speak by themselves."""
    return {
        "net/ipv4/ip_forward": int(forwards),
        "net/ipv6/conf/all/forwarding": int(forwards),
        # An end gets IPv6 only when it is known to use it.
        "net/ipv6/conf/default/disable_ipv6": 1,
        "net/ipv4/conf/all/rp_filter": 0,
        "net/ipv4/conf/default/rp_filter": 0,
    }


def silence(interface: str) -> Mapping[str, int]:
    """Return the settings of an interface by which it never speaks by itself."""
    ipv6 = f"net/ipv6/conf/{interface}"
    return {
        f"net/ipv4/conf/{interface}/rp_filter": 0,
        f"{ipv6}/accept_dad": 0,
        f"{ipv6}/dad_transmits": 0,
        f"{ipv6}/accept_ra": 0,
        f"{ipv6}/autoconf": 0,
        f"{ipv6}/router_solicitations": 0,
    }


def prepare_namespace(*, forwards: bool) -> None:
    """Give the calling thread's namespace these settings, and bring its loopback up."""
    write_sysctls(sysctls_of_namespace(forwards=forwards))
    with IPRoute() as routes:
        routes.link("set", index=1, state="up")


def make(cable: VethCable) -> None:
    """Lay a cable between two namespaces and bring both ends up."""
    left, right = cable.ends
    # The sender's core number chooses the queue, so there is one for each core up to the highest.
    queues = max(online_cpus()) + 1
    try:
        inside(left.netns, lambda: _lay(cable, queues))
        for step in (_configure, _bring_up, _wait_running):
            for end in cable.ends:
                inside(end.netns, partial(step, end))
    except (NetlinkError, OSError) as error:
        what = f"cable {left.netns} {left.interface} to {right.netns} {right.interface}"
        raise HostError(f"{what}: the kernel refuses ({error})") from error


def _lay(cable: VethCable, queues: int) -> None:
    left, right = cable.ends
    shape = {"num_tx_queues": queues, "num_rx_queues": queues, "mtu": MTU}
    peer = {"ifname": right.interface, "address": right.mac, "net_ns_fd": right.netns, **shape}
    with IPRoute() as routes:
        routes.link("add", ifname=left.interface, index=cable.index, kind="veth", address=left.mac, peer=peer, **shape)


def _configure(end: End) -> None:
    """Silence an end, set its off-loads and give it its addresses, while it is still down."""
    write_sysctls(_sysctls(end))
    # A packet that the device itself makes would reach the tester with an unfinished checksum.
    _set_offload(end.interface, "tx-checksumming", wanted=False)
    # GRO is what gives a veth the NAPI that frames redirected to its peer need; distinct test frames are not merged.
    _set_offload(end.interface, "generic-receive-offload", wanted=True)
    with IPRoute() as routes:
        index = _index(routes, end)
        for address in end.addresses:
            flags = _NO_DUPLICATE_CHECK if isinstance(address, IPv6Interface) else 0
            routes.addr("add", index=index, address=str(address.ip), prefixlen=address.network.prefixlen, flags=flags)
        for network in end.pool:
            # One route for all of them; the kernel answers ARP for them, too.
            routes.route("add", dst=str(network), oif=LOOPBACK, table=_LOCAL, type="local", scope="host")


def _sysctls(end: End) -> Mapping[str, int]:
    ipv6 = f"net/ipv6/conf/{end.interface}"
    # The kernel has a faster path to confirmed neighbours. By default it waits 5 s before it confirms an announced
    # neighbour, and confirms it again every 30 s; until then routing took 9 % longer per frame. So an end asks for a
    # neighbour at once, and then relies on the answer for a day.
    neighbours = {
        f"net/{family}/neigh/{end.interface}/{name}": value
        for family in (("ipv4", "ipv6") if end.speaks_ipv6 else ("ipv4",))
        for name, value in (("delay_first_probe_time", 0), ("base_reachable_time_ms", 86_400_000))
    }
    return {
        **silence(end.interface),
        f"net/ipv4/conf/{end.interface}/arp_notify": 0,
        f"{ipv6}/ndisc_notify": 0,
        # A link-local address made of the MAC: a router's neighbour solicitations come from it.
        f"{ipv6}/addr_gen_mode": 0,
        # The repetition of the first multicast report is put off past every measurement (largest value, in ms).
        f"{ipv6}/mldv1_unsolicited_report_interval": 2_000_000_000,
        f"{ipv6}/mldv2_unsolicited_report_interval": 2_000_000_000,
        f"{ipv6}/disable_ipv6": int(not end.speaks_ipv6),
        **neighbours,
    }


def _index(routes: IPRoute, end: End) -> int:
    return int(routes.link_lookup(ifname=end.interface)[0])


def _bring_up(end: End) -> None:
    with IPRoute() as routes:
        index = _index(routes, end)
        routes.link("set", index=index, state="up")
        for network, gateway in end.routes:
            routes.route("add", dst=str(network), gateway=str(gateway), oif=index)


def _wait_running(end: End) -> None:
    """Wait until the kernel calls an end operational: IPv6 does not speak before."""
    deadline = time.monotonic() + 5.0
    with IPRoute() as routes:
        index = _index(routes, end)
        while routes.get_links(index)[0].get_attr("IFLA_OPERSTATE") != "UP":
            if time.monotonic() > deadline:
                raise BrokenError(f"interface {end.interface} in namespace {end.netns}: has no carrier after 5 s")
            time.sleep(0.005)


def _set_offload(interface: str, name: str, *, wanted: bool) -> None:
    """Switch an off-load, named as in ethtool(8), and read it back."""
    refusal = f"interface {interface}: {name} cannot be switched {'on' if wanted else 'off'}"
    try:
        with closing(IoctlEthtool(interface)) as tool:
            tool.set_offload_flag(name, wanted)
            flag = tool.get_offload_flags()[name]
    except EthtoolError as error:
        raise HostError(f"{refusal} ({type(error).__name__})") from error
    if flag is not wanted:
        raise HostError(refusal)


@dataclass(frozen=True, slots=True)
class Dropped:
    """Frames an interface dropped so far, received and sent."""

    received: int
    sent: int

    def at(self, place: str) -> dict[str, int]:
        """Return the numbers by the names of the lab's counters: "initiator port received" and so on."""
        return {f"{place} received": self.received, f"{place} sent": self.sent}


def drop_counters(netns: str | None) -> Mapping[str, Dropped]:
    """Drop counters of all interfaces of a namespace (None = ours) but the loopback."""
    # thread-self: /proc/net is /proc/self/net, the main thread's namespace.
    text = inside(netns, lambda: Path("/proc/thread-self/net/dev").read_text())
    try:
        return read_drops(text)
    except ValueError as error:
        raise BrokenError(f"namespace {netns or 'of the host'}: drop counters cannot be read ({error})") from error


def link_attribute(netns: str | None, interface: str, name: str) -> Any:
    """Return an attribute of an interface in a namespace (None = ours); None where there is no such interface."""

    def read() -> Any:
        # Not of /sys, which shows the namespace it was mounted in.
        with IPRoute() as routes:
            return next((link.get_attr(name) for link in routes.get_links(ifname=interface)), None)

    return inside(netns, read)


def carrier_losses(netns: str | None, interface: str) -> int:
    """Number of times that an interface lost its carrier since it exists; 0 where it or its namespace is gone."""
    try:
        return link_attribute(netns, interface, "IFLA_CARRIER_DOWN_COUNT") or 0
    except (BrokenError, NetlinkError, OSError):
        return 0


def read_drops(text: str) -> Mapping[str, Dropped]:
    """Drop counters by interface, without the loopback, of a text as /proc/net/dev has it."""
    counters = {}
    for line in text.splitlines()[2:]:
        interface, _, figures = line.partition(":")
        if interface.strip() == "lo":
            continue
        columns = figures.split()
        try:
            counters[interface.strip()] = Dropped(received=int(columns[3]), sent=int(columns[11]))
        except (IndexError, ValueError):
            raise ValueError(repr(line)) from None
    return counters


#: Number of each limit of a neighbour table, its least value for each host, and the kernel's own value (arp(7)). The
#: highest limit is set first: the kernel requires the lower ones below it.
_NEIGHBOUR_LIMITS: Final = ((3, 4, 1024), (2, 3, 512), (1, 2, 128))


def neighbour_limits(families: Iterable[Family], hosts: int) -> Iterator[tuple[str, int]]:
    """Each limit's file, and the least value that it needs for this number of hosts (arp(7): gc_thresh1 to 3)."""
    for family in set(families):
        for number, factor, _ in _NEIGHBOUR_LIMITS:
            yield _limit_file(family, number), hosts * factor


def exceeds_neighbour_limits(hosts: int) -> bool:
    """Whether this number of hosts needs a higher limit than the kernel's own."""
    return any(hosts * factor > usual for _, factor, usual in _NEIGHBOUR_LIMITS)


def refuse_neighbour_limits(least: Mapping[str, int], hosts: int) -> None:
    """Refuse limits, by their files, that are too low for the hosts and that this network namespace cannot raise."""
    present = _shown_neighbour_limits()
    for path, wanted in least.items():
        # Of a table with more neighbours than gc_thresh1 the kernel forgets only those that nobody used for a minute.
        if not path.endswith("1") and (now := present.get(path, wanted)) < wanted:
            raise HostError(
                f"{path}: is {now}, the tester's {hosts} addresses need {wanted}, and only the machine's first network "
                "namespace can raise it; use fewer addresses, or start the container with --network host"
            )


def _shown_neighbour_limits() -> dict[str, int]:
    """Return the present limits by their files, as every network namespace can ask for them (rtnetlink(7))."""
    families: dict[int, Family] = {socket.AF_INET: "ipv4", socket.AF_INET6: "ipv6"}
    found = {}
    with suppress(OSError, NetlinkError), IPRoute() as routes:
        for table in routes.get_ntables():
            for number, _, _ in _NEIGHBOUR_LIMITS:
                value = table.get_attr(f"NDTA_THRESH{number}")
                # The answer has the parameters of each interface, too.
                if value is not None and table["family"] in families:
                    found[_limit_file(families[table["family"]], number)] = int(value)
    return found


def _limit_file(family: Family, number: int) -> str:
    return f"/proc/sys/net/{family}/neigh/default/gc_thresh{number}"


#: Columns of /proc/net/softnet_stat (net/core/net-procfs.c).
_SOFTNET: Final = ("processed", "dropped", "time_squeeze")
#: Beginning of the names of its counters.
_BACKLOG: Final = "softnet"
_Counts = Iterator[tuple[str, int]]


def read_counters(netns: str) -> Counter[str]:
    """Return the counters of a namespace, those of `softnet` of the whole machine; missing files are left out.

    Those of queueing disciplines and TUN interfaces are named as `_read_queues` does.
    """

    def read() -> dict[str, list[str]]:
        texts = {}
        for name in COUNTER_FILES:
            # thread-self: /proc/net is /proc/self/net, the main thread's namespace.
            with suppress(OSError):
                texts[name] = Path("/proc/thread-self/net", name).read_text(encoding="ascii").splitlines()
        return texts

    texts, queues = inside(netns, lambda: (read(), _read_queues()))
    counters = counters_of(texts)
    counters.update(queues)
    return counters


def of_one_machine(counters: NetworkCounters, devices: int) -> NetworkCounters:
    """Return the counters of all devices on a machine, of which there are so many, as far as they were read.

    Of several, each has those of the whole machine, the backlogs of its processors: they stand once, by no device.
    """
    # Without any, none were read: an entry for the machine would say that its kernel was.
    if devices < 2 or not counters:
        return counters
    whole = {name: events for name, events in next(iter(counters.values())).items() if _is_of_machine(name)}
    return {"": whole} | {
        device: {name: events for name, events in own.items() if not _is_of_machine(name)}
        for device, own in counters.items()
    }


def _is_of_machine(name: str) -> bool:
    return name.startswith(f"{_BACKLOG} ")


def counters_of(texts: Mapping[str, Sequence[str]]) -> Counter[str]:
    """Return the counters in the lines of some of `COUNTER_FILES`; rows of several CPUs are added up."""
    counters: Counter[str] = Counter()
    for name, lines in texts.items():
        for counter, count in COUNTER_FILES[name](lines):
            counters[counter] += count
    return counters


def _groups(lines: Sequence[str]) -> _Counts:
    """Yield the counters of snmp or netstat: for each group a line of names, and a line of values."""
    for names, values in pairwise(line.split() for line in lines):
        if names[0] == values[0]:
            yield from zip((names[0].rstrip(":") + name for name in names[1:]), map(int, values[1:]), strict=False)


def _conntrack(lines: Sequence[str]) -> _Counts:
    """Yield the counters of stat/nf_conntrack: names, then a row for each CPU; `entries` is no counter."""
    rows = _rows("conntrack", lines[0].split(), lines[1:]) if lines else ()
    yield from (each for each in rows if each[0] != "conntrack entries")


def _rows(prefix: str, names: Sequence[str], rows: Sequence[str]) -> _Counts:
    """Yield counters of a row for each CPU."""
    for row in rows:
        yield from ((f"{prefix} {name}", int(value, 16)) for name, value in zip(names, row.split(), strict=False))


#: Files below /proc/net, and how they are read.
COUNTER_FILES: Final[Mapping[str, Callable[[Sequence[str]], _Counts]]] = {
    "snmp": _groups,
    "netstat": _groups,
    "snmp6": lambda lines: ((name, int(value)) for name, value in map(str.split, lines)),
    "softnet_stat": partial(_rows, _BACKLOG, _SOFTNET),
    "stat/nf_conntrack": _conntrack,
}


#: With more interfaces than this (such as one for each subscriber) reading them takes longer than a short trial.
_MOST_INTERFACES: Final = 64
#: Handles of disciplines at the top: TC_H_ROOT and TC_H_INGRESS (linux/pkt_sched.h). They count what those below drop.
_AT_TOP: Final = (0xFFFFFFFF, 0xFFFFFFF1)
#: Processes by TUN interface and namespace, as far as they were found.
_names: dict[tuple[str, int], str] = {}


def _read_queues() -> dict[str, int]:
    """Return the counters of the calling thread's namespace; empty where it has too many interfaces.

    `qdisc INTERFACE KIND`: frames that the discipline dropped. `tun INTERFACE:PROCESS in`, `out`, `dropped`: packets
    that the process read, that it wrote, and that found the interface's queue full.
    """
    with suppress(OSError, NetlinkError), IPRoute() as routes:
        interfaces = Path("/proc/thread-self/net/dev").read_text(encoding="ascii").count("\n")
        links = {link["index"]: link for link in routes.get_links()} if interfaces <= _MOST_INTERFACES else {}
        return dict([*_disciplines(routes, links), *_tuns(links)]) if links else {}
    return {}


#: A discipline at the top in the output of `tc -s qdisc show`, and the frames that it dropped.
_SHOWN: Final = re.compile(
    r"^qdisc (?P<kind>\S+) \S+ dev (?P<interface>\S+) (?:root|ingress_block|parent ffff:fff1|ingress)\b.*\n"
    r"(?:.*\n)*? Sent .*\(dropped (?P<drops>\d+),",
    re.MULTILINE,
)


def queues_shown(text: str) -> dict[str, int]:
    """Return the counters of queueing disciplines, as `_read_queues` names them, from `tc -s qdisc show`."""
    found = _SHOWN.finditer(text)
    return {f"qdisc {each['interface']} {each['kind']}": int(each["drops"]) for each in found}


def _disciplines(routes: IPRoute, links: dict[int, Any]) -> Iterator[tuple[str, int]]:
    for discipline in routes.get_qdiscs():
        link, statistics = links.get(discipline["index"]), discipline.get_attr("TCA_STATS2")
        queue = None if statistics is None else statistics.get_attr("TCA_STATS_QUEUE")
        if link is not None and queue is not None and discipline["parent"] in _AT_TOP:
            yield f"qdisc {link.get_attr('IFLA_IFNAME')} {discipline.get_attr('TCA_KIND')}", int(queue["drops"])


def _tuns(links: dict[int, Any]) -> Iterator[tuple[str, int]]:
    namespace = Path("/proc/thread-self/ns/net").stat().st_ino
    for link in links.values():
        information, counts = link.get_attr("IFLA_LINKINFO"), link.get_attr("IFLA_STATS64")
        if information is None or counts is None or information.get_attr("IFLA_INFO_KIND") != "tun":
            continue
        interface = link.get_attr("IFLA_IFNAME")
        name = f"tun {interface}:{_process_of(interface, namespace)}"
        yield f"{name} in", int(counts["tx_packets"])
        yield f"{name} out", int(counts["rx_packets"])
        yield f"{name} dropped", int(counts["tx_dropped"])


def _process_of(interface: str, namespace: int) -> str:
    """Return the name of the process that holds a TUN interface open; "process" = it was not found."""
    if (known := _names.get((interface, namespace))) is not None:
        return known
    wanted = process_files.HeldTun(interface, namespace)
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and wanted in process_files.held_tuns(process):
            with suppress(OSError):
                name = process_files.name_of(process).replace(" ", "-")
                return _names.setdefault((interface, namespace), name)
    return "process"
