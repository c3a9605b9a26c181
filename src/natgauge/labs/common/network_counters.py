# SPDX-License-Identifier: Apache-2.0
"""Counters of a network stack, by the names of nstat(8) and conntrack(8), and those of its queues, by netlink."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from natgauge.host import process_files
from natgauge.labs.common.namespaces import inside
from natgauge.labs.contract import NetworkCounters

#: Columns of /proc/net/softnet_stat (net/core/net-procfs.c).
_SOFTNET: Final = ("processed", "dropped", "time_squeeze")
#: Beginning of the names of its counters.
_BACKLOG: Final = "softnet"
_Counts = Iterator[tuple[str, int]]


def read_counters(netns: str) -> Counter[str]:
    """Return the counters of a namespace, those of `softnet` of the whole machine; missing files are left out.

    Those of queueing disciplines and TUN interfaces are named as `read_queues` does.
    """

    def read() -> dict[str, list[str]]:
        texts = {}
        for name in FILES:
            # thread-self: /proc/net is /proc/self/net, the main thread's namespace.
            with suppress(OSError):
                texts[name] = Path("/proc/thread-self/net", name).read_text(encoding="ascii").splitlines()
        return texts

    texts, queues = inside(netns, lambda: (read(), read_queues()))
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
    """Return the counters in the lines of some of `FILES`; rows of several CPUs are added up."""
    counters: Counter[str] = Counter()
    for name, lines in texts.items():
        for counter, count in FILES[name](lines):
            counters[counter] += count
    return counters


def _groups(lines: Sequence[str]) -> _Counts:
    """Yield the counters of snmp or netstat: for each group a line of names, and a line of values."""
    for names, values in pairwise(line.split() for line in lines):
        if names[0] == values[0]:
            yield from zip((names[0].rstrip(":") + name for name in names[1:]), map(int, values[1:]), strict=False)


def _pairs(lines: Sequence[str]) -> _Counts:
    """Yield the counters of snmp6: a name and a value in each line."""
    yield from ((name, int(value)) for name, value in map(str.split, lines))


def _conntrack(lines: Sequence[str]) -> _Counts:
    """Yield the counters of stat/nf_conntrack: names, then a row for each CPU; `entries` is no counter."""
    rows = _rows("conntrack", lines[0].split(), lines[1:]) if lines else ()
    yield from (each for each in rows if each[0] != "conntrack entries")


def _rows(prefix: str, names: Sequence[str], rows: Sequence[str]) -> _Counts:
    """Yield counters of a row for each CPU."""
    for row in rows:
        yield from ((f"{prefix} {name}", int(value, 16)) for name, value in zip(names, row.split(), strict=False))


#: Files below /proc/net, and how they are read.
FILES: Final[Mapping[str, Callable[[Sequence[str]], _Counts]]] = {
    "snmp": _groups,
    "netstat": _groups,
    "snmp6": _pairs,
    "softnet_stat": partial(_rows, _BACKLOG, _SOFTNET),
    "stat/nf_conntrack": _conntrack,
}


#: With more interfaces than this (such as one for each subscriber) reading them takes longer than a short trial.
MOST_INTERFACES: Final = 64
#: Handles of disciplines at the top: TC_H_ROOT and TC_H_INGRESS (linux/pkt_sched.h). They count what those below drop.
_AT_TOP: Final = (0xFFFFFFFF, 0xFFFFFFF1)
#: Processes by TUN interface and namespace, as far as they were found.
_names: dict[tuple[str, int], str] = {}


def read_queues() -> dict[str, int]:
    """Return the counters of the calling thread's namespace; empty where it has too many interfaces.

    `qdisc INTERFACE KIND`: frames that the discipline dropped. `tun INTERFACE:PROCESS in`, `out`, `dropped`: packets
    that the process read, that it wrote, and that found the interface's queue full.
    """
    with suppress(OSError, NetlinkError), IPRoute() as routes:
        interfaces = Path("/proc/thread-self/net/dev").read_text(encoding="ascii").count("\n")
        links = {link["index"]: link for link in routes.get_links()} if interfaces <= MOST_INTERFACES else {}
        return dict([*_disciplines(routes, links), *_tuns(links)]) if links else {}
    return {}


#: A discipline at the top in the output of `tc -s qdisc show`, and the frames that it dropped.
_SHOWN: Final = re.compile(
    r"^qdisc (?P<kind>\S+) \S+ dev (?P<interface>\S+) (?:root|ingress_block|parent ffff:fff1|ingress)\b.*\n"
    r"(?:.*\n)*? Sent .*\(dropped (?P<drops>\d+),",
    re.MULTILINE,
)


def queues_shown(text: str) -> dict[str, int]:
    """Return the counters of queueing disciplines, as `read_queues` names them, from `tc -s qdisc show`."""
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
    for process in _holders(process_files.HeldTun(interface, namespace)):
        with suppress(OSError):
            name = process_files.name_of(process).replace(" ", "-")
            return _names.setdefault((interface, namespace), name)
    return "process"


def _holders(wanted: process_files.HeldTun) -> Iterator[Path]:
    """Yield the folders in /proc of the processes that have this TUN interface open."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and wanted in process_files.held_tuns(process):
            yield process
