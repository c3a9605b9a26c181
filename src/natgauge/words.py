# SPDX-License-Identifier: Apache-2.0
"""Words that all packages share: families, sides, queries, orders, placements, verdicts, costs, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from typing import Final, Literal

#: Address family of one side of a device.
Family = Literal["ipv4", "ipv6"]
FAMILIES: Final[tuple[Family, ...]] = ("ipv4", "ipv6")

#: The tester's two ends (RFC 9693 section 3): the Initiator opens connections, the Responder answers.
Side = Literal["initiator", "responder"]

#: What test frames are: UDP datagrams; ICMP echo requests and replies, whose identifier is the Initiator's port; or TCP
#: segments, after a handshake in phase 1.
Transport = Literal["udp", "icmp", "tcp"]
#: Record type of a DNS query (RFC 1035, RFC 3596).
Query = Literal["a", "aaaa"]
#: The segment with which the Initiator begins to close a TCP connection.
Close = Literal["fin", "rst"]
#: How open connections leave in phase 2: without a further frame, or closed by the Initiator.
Leave = Literal["silent", "fin", "reset"]
#: State of the TCP connections that a trial leaves: open; SYN and SYN-ACK without an ACK; closed by both FINs; reset.
TcpState = Literal["established", "half-open", "fin", "rst"]
#: Most octets of a request; with its headers, and those of a tunnel, it fits into a packet of 1500 octets.
MOST_REQUEST_OCTETS: Final = 1360
#: Ports that a NAT can assign on one outside address, for one remote endpoint: the unprivileged ones, from 1024 on
#: (RFC 4787 section 4.2.1).
OUTSIDE_PORTS: Final = 65_536 - 1024
#: Outside addresses that a lab can route to a gateway.
MOST_OUTSIDE_ADDRESSES: Final = 1 << 14
#: Frames of a stream that arrived in another form than that of test frames, the worst first: the name of their count in
#: results, and what is said of them.
WRONG_FRAMES: Final[Mapping[str, str]] = {
    "untranslated": "untranslated",
    "mistranslated": "mistranslated",
    "damaged": "damaged",
    "fragments": "fragmented",
    "tagged": "with a wrong VLAN tag",
    "untagged": "with too few VLAN tags",
    "without_checksum": "without a UDP checksum",
}
#: Sides for readers: of the gateway, as RFC 4787 has them. A frame is "from inside" or "from outside" wherever people
#: read of it; inputs, records and the heads of CSV have `up` and `down`, or the tester's end.
SIDES: Final[Mapping[str, str]] = {"initiator": "inside", "responder": "outside"}
#: Where the frames of a rate of phase 2 come from, by the directions that send.
SENDING: Final[Mapping[str, str]] = {
    "both": "in each direction",
    "up": f"from {SIDES['initiator']}",
    "down": f"from {SIDES['responder']}",
}
#: How phase 1 enumerates the four tuples (RFC 9693 section 4.4).
Order = Literal["permutation", "increasing", "decreasing", "with-replacement"]
#: The order whose frames draw their four tuples, so that some open no connection.
DRAWN: Final[Order] = "with-replacement"

#: How the Responder reads its state table in phase 2 (RFC 9693 section 4.10); "once": one frame per connection.
ReadingOrder = Literal["pseudorandom", "increasing", "once"]

#: Cores that run the device: the sender's core, its own cores, or another machine.
Placement = Literal["shared", "isolated", "external"]
#: Division of the cores among the devices of a chain: each has cores of its own, and as many as each other device.
EACH_ITS_OWN: Final = "each its own"

#: The far side that answers queries if there is no real server.
TESTER: Final = "tester"
#: The share of the time-out in which the far side of a DNS64 server must answer alone (RFC 8219 section 9.2).
PROOF_SHARE: Final = 0.25


class Verdict(StrEnum):
    """Outcome of one trial.

    PASS and FAIL are about the device. INVALID is about the tester, its host or the connection over which the device is
    controlled: the trial is repeated and never counted for or against the device. COLLAPSED: the device forwards no
    frame any more.
    """

    PASS = "PASS"
    FAIL = "FAIL"
    INVALID = "INVALID"
    COLLAPSED = "COLLAPSED"


#: Where a parameter of a result is stored: the procedure's settings; frames and four tuples; lab, cores, machine and
#: tester; the device under test.
Group = Literal["settings", "traffic", "place", "device"]

#: Limits of a result: the gateway, its connection tracking table, its outside ports, those of a subscriber, its log,
#: the tester, the machine, the time and the ranges (connections, hosts, ports) that the measurement was given, the real
#: server behind the gateway; of a load of several kinds, the one that the gateway did not carry.
LimitedBy = Literal[
    "device", "table", "port pool", "port block", "log", "tester", "host", "time", "ranges", "server",
    "new connections", "frames",
]  # fmt: skip
#: Limits of outside ports: of all of them, and of those that a subscriber may have.
OF_PORTS: Final = frozenset[LimitedBy]({"port pool", "port block"})
#: What a gateway does not do faster: all of it, its log, or a kind of its load.
OF_SPEED: Final = frozenset[LimitedBy]({"device", "log", "new connections", "frames"})
#: What ends a search before the gateway does: its value is a bound.
NO_DEVICE: Final = frozenset[LimitedBy]({"tester", "host", "server", "time", "ranges"})

#: What ended the search for a rate of a comparison instead of the gateway.
SearchLimitedBy = Literal["the tester", "the host", "the server", "the link", "rare loss", "the time"]

#: Frames whose cost is measured: the first of a connection; frames over an established connection from the Initiator,
#: from the Responder, or from both in turn.
Quantity = Literal["new", "up", "down", "both"]
QUANTITIES: Final[tuple[Quantity, ...]] = ("new", "up", "down", "both")
#: N of RFC 9693 section 4: what an index of 31 bits counts.
MAXIMUM_CONNECTIONS: Final = 2**31
#: N of a trial where nobody says another.
DEFAULT_CONNECTIONS: Final = 100_000

#: Names in a list; of more, their number.
MOST_NAMES: Final = 4

Address = IPv4Address | IPv6Address
Interface = IPv4Interface | IPv6Interface
Network = IPv4Network | IPv6Network


def origin(side: str) -> str:
    """Return where the frames come from that a side sends, in words."""
    return f"from {SIDES.get(side, side)}"


def sending(directions: object, *, is_balanced: bool = True) -> str:
    """Return where the frames of a rate of phase 2 come from, in words; of unequal directions it is their mean."""
    return SENDING.get(str(directions), SENDING["both"]) if is_balanced else "on average of both directions"


def enumerated(names: Sequence[str]) -> str:
    """Return names as a sentence has them, such as "a, b and c"; empty without any."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def few(names: Sequence[str]) -> list[str]:
    """Return names; of more than four, the first three and the number of the others."""
    more = len(names) - MOST_NAMES
    return list(names) if more <= 0 else [*names[: MOST_NAMES - 1], f"{more + 1} more"]


def listed(names: Sequence[str]) -> str:
    """Return a few names as a sentence has them, such as "a, b, c and 2 more"."""
    return enumerated(few(names))
