# SPDX-License-Identifier: Apache-2.0
"""Octets of the test frames, broadcasts among them, and the frames that a link of Ethernet carries at most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from natgauge.words import Family, Query, Transport

#: Preamble and gap between frames, in octets (RFC 5180 appendix A.1).
BETWEEN_FRAMES: Final = 20
#: Octets of a frame that are no part of its packet, and that an MTU leaves out: Ethernet's header and the FCS.
FRAME_OVERHEAD: Final = 18
#: Octets with FCS of the shortest frame over IPv4: Ethernet's minimum, and with TCP 24 more for a header with time
#: stamps. The IPv6 frame with the same payload has 20 octets more (RFC 8219 section 5.1.1 explains why 64 is impossible
#: with IPv6), and that of IPv4 in IPv6 40.
LEAST_OCTETS: Final[Mapping[Transport, int]] = {"udp": 64, "icmp": 64, "tcp": 88}
#: Octets with FCS of a TCP segment without data over IPv4, whatever the frame size: that of a SYN or SYN-ACK, which has
#: the options of a Linux host, and that of any later one.
OPENING_OCTETS: Final = 78
SEGMENT_OCTETS: Final = 70
#: Live frames are at most one page with its head and tail room: 3408 octets, plus FCS. A program for multi-buffer
#: frames changes nothing: BPF_PROG_RUN refuses more octets, and bpf_xdp_adjust_tail has no page to add (Linux 6.18).
LARGEST_FRAME: Final = 3412
#: The reason, in messages.
ONE_PAGE: Final = "a frame is made in one page of memory, for the kernel's live-frames mode has no multi-buffer XDP"
#: Octets of an IP header of each family.
IP_HEADER: Final[Mapping[Family, int]] = {"ipv4": 20, "ipv6": 40}
#: Octets of a query's frame with FCS: its name contains the identification of the query.
QUERY_OCTETS: Final[Mapping[Family, int]] = {"ipv4": 114, "ipv6": 134}
#: Octets that a response has more than its query: one record (RFC 1035 section 4.1.3, RFC 3596 section 2.2).
ANSWER_OCTETS: Final[Mapping[Query, int]] = {"a": 16, "aaaa": 28}
#: In place of one frame in so many, each side sends a broadcast (RFC 2544 section 11.1).
BROADCAST_EVERY: Final = 100

#: Octets of a VLAN tag (IEEE 802.1Q).
_TAG_OCTETS: Final = 4


def tag_octets(vlan: object) -> int:
    """Octets of the VLAN tags of a side's frames, "100" or "9.100", also as a whole number; None = it has none."""
    return 0 if vlan is None else _TAG_OCTETS * (1 + str(vlan).count("."))


def theoretical_maximum(megabits: int, octets: float) -> float:
    """Frames/s of one direction at the minimum gap (RFC 5180 appendix A.1)."""
    return megabits * 1e6 / (8 * (octets + BETWEEN_FRAMES))


def frames_of_new(*, is_tcp: bool) -> int:
    """Return the frames of both sides that open a connection while another leaves, by TCP with a FIN.

    By TCP they are three that open it and three that close the other. The tester's senders make only the first of each,
    and its receivers the others, which takes it as long.
    """
    return 6 if is_tcp else 1
