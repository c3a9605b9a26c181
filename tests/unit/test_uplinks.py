# SPDX-License-Identifier: Apache-2.0
"""Interfaces with the default route, and what is below them, in the words of netlink."""

from __future__ import annotations

from typing import Any

import pytest

from natgauge.host.uplinks import uplinks


class Message(dict[str, Any]):
    """A message, or a nested attribute, as pyroute2 gives it."""

    def get_attr(self, name: str) -> Any:
        """Return an attribute; None = it has none of this name."""
        return self.get(name)


class Routes:
    """A kernel with a default route, and with interfaces above one another."""

    def __init__(self, route: dict[str, Any], *links: dict[str, Any]) -> None:
        self.route = Message(route)
        self.links = [Message(link) for link in links]

    def get_default_routes(self) -> list[Message]:
        return [self.route]

    def get_links(self) -> list[Message]:
        return self.links


CARDS = ({"index": 2, "IFLA_MASTER": 4}, {"index": 3, "IFLA_MASTER": 4})
BOND, VLAN = {"index": 4}, {"index": 5, "IFLA_LINK": 4}
VETH = {"index": 5, "IFLA_LINK": 2, "IFLA_LINKINFO": Message(IFLA_INFO_KIND="veth")}
FAR = {"index": 5, "IFLA_LINK": 2, "IFLA_LINK_NETNSID": 0}


@pytest.mark.parametrize(
    ("route", "links", "found"),
    [
        ({"RTA_OIF": 2}, [{"index": 2}, {"index": 3}], {2}),
        ({"RTA_OIF": 5}, [*CARDS, BOND, VLAN], {2, 3, 4, 5}),
        ({"RTA_OIF": 4}, [*CARDS, BOND, VLAN], {2, 3, 4}),
        ({"RTA_MULTIPATH": [{"oif": 2}, {"oif": 3}]}, [{"index": 2}, {"index": 3}], {2, 3}),
        ({"RTA_OIF": 5}, [{"index": 2}, VETH], {5}),
        ({"RTA_OIF": 5}, [{"index": 2}, FAR], {5}),
    ],
)
def test_a_port_below_a_bond_or_a_vlan_with_the_default_route_is_an_uplink(
    route: dict[str, Any], links: list[dict[str, Any]], found: set[int]
) -> None:
    assert uplinks(Routes(route, *links)) - {None} == found
