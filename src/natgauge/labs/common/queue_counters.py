# SPDX-License-Identifier: Apache-2.0
"""Frames that queueing disciplines dropped, and packets that processes took from TUN interfaces, by netlink."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from natgauge.host import process_files

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
        links = {link["index"]: link for link in routes.get_links()} if _are_few() else {}
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


def _are_few() -> bool:
    lines = Path("/proc/thread-self/net/dev").read_text(encoding="ascii").count("\n")
    return lines <= MOST_INTERFACES


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
