# SPDX-License-Identifier: Apache-2.0
"""The words all storeys share, each defined once: families, sides, queries, orders, placements, costs, bounds."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from typing import Final, Literal

#: What one side of a device speaks.
Family = Literal["ipv4", "ipv6"]
FAMILIES: Final[tuple[Family, ...]] = ("ipv4", "ipv6")

#: The tester's two ends (RFC 9693 section 3): the Initiator opens connections, the Responder answers.
Side = Literal["initiator", "responder"]

#: What a DNS query asks for (RFC 1035, RFC 3596).
Query = Literal["a", "aaaa"]
#: Octets of a query's frame with FCS: its name carries what tells queries apart, so it is as long as it is.
QUERY_OCTETS: Final[Mapping[Family, int]] = {"ipv4": 114, "ipv6": 134}

#: How phase 1 enumerates the four tuples (RFC 9693 section 4.4).
Order = Literal["permutation", "increasing", "decreasing", "with-replacement"]

#: How the Responder reads its state table in phase 2 (RFC 9693 section 4.10); "once": one frame per connection.
ReadingOrder = Literal["pseudorandom", "increasing", "once"]

#: Where the device's work is done: on the sender's core, on cores of its own, or on a machine of its own.
Placement = Literal["shared", "isolated", "external"]

#: Who answers queries where no real server does.
TESTER: Final = "tester"

#: What a figure is limited by: the gateway, its connection tracking table, its outside ports, the tester, the machine,
#: the time that the measurement was given, the real server behind the gateway.
LimitedBy = Literal["device", "table", "port pool", "tester", "host", "time", "server"]

#: Which frames cost a device something: the first of a connection; those of a standing one from the Initiator, from the
#: Responder, from either in turn.
Quantity = Literal["new", "up", "down", "both"]
QUANTITIES: Final[tuple[Quantity, ...]] = ("new", "up", "down", "both")
#: The same for people.
FRAME_OF: Final[Mapping[Quantity, str]] = {
    "new": "new connection",
    "up": "frame up",
    "down": "frame down",
    "both": "frame, both ways",
}

#: N of RFC 9693 section 4: what an index of 31 bits counts.
MAXIMUM_CONNECTIONS: Final = 2**31

Address = IPv4Address | IPv6Address
Interface = IPv4Interface | IPv6Interface
Network = IPv4Network | IPv6Network
