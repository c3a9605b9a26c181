# SPDX-License-Identifier: Apache-2.0
"""Interfaces by which this machine reaches all others: a change of one may cut it off."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from natgauge.errors import HostError


def uplinks(routes: IPRoute) -> set[Any]:
    """Return the indices of the interfaces of default routes, and of the interfaces below these."""
    interfaces = set()
    for route in routes.get_default_routes():
        hops = route.get_attr("RTA_MULTIPATH") or ()
        interfaces |= {route.get_attr("RTA_OIF"), *(hop["oif"] for hop in hops)}
    lower = set(_lower_interfaces(routes))
    while further := {below for above, below in lower if above in interfaces} - interfaces:
        interfaces |= further
    return interfaces


def _lower_interfaces(routes: IPRoute) -> Iterator[tuple[int, int]]:
    """Yield an interface and one below it: a bond or bridge and its port, a VLAN and its card."""
    for link in routes.get_links():
        if master := link.get_attr("IFLA_MASTER"):
            yield master, link["index"]
        info = link.get_attr("IFLA_LINKINFO")
        # The other end of a veth is not below it.
        is_veth = info is not None and info.get_attr("IFLA_INFO_KIND") == "veth"
        if (below := link.get_attr("IFLA_LINK")) and not is_veth and link.get_attr("IFLA_LINK_NETNSID") is None:
            yield link["index"], below


def uplink_names() -> frozenset[str]:
    """Return the names of the uplinks of the calling thread's network namespace; HostError if they cannot be read."""
    try:
        with IPRoute() as routes:
            found = uplinks(routes)
            return frozenset(str(link.get_attr("IFLA_IFNAME")) for link in routes.get_links() if link["index"] in found)
    except (NetlinkError, OSError) as error:
        reason = os.strerror(error.code) if isinstance(error, NetlinkError) else error.strerror
        raise HostError(f"default routes: cannot be read ({reason})") from error
