# SPDX-License-Identifier: Apache-2.0
"""Requirements of DNS queries on the traffic."""

from __future__ import annotations

from typing import Final

from natgauge.errors import UsageError
from natgauge.ethernet import QUERY_OCTETS

#: Port of DNS servers (RFC 1035 section 4.2.1).
PORT: Final = 53


def refuse_unlike(metric: str, first_port: int, last_port: int, frame_size: int | None) -> None:
    """Refuse traffic that cannot consist of queries.

    Args:
        frame_size: the user's choice; None = not chosen.
    """
    if (first_port, last_port) != (PORT, PORT):
        raise UsageError(
            f"destination ports: {first_port}-{last_port}, but {metric} sends DNS queries; use {PORT} alone, and no "
            "more connections than the other ranges hold",
            at="destination_ports",
        )
    if frame_size is not None:
        raise UsageError(
            f"frame size: {frame_size}, but {metric} sends DNS queries, which have {QUERY_OCTETS['ipv4']} octets over "
            f"IPv4 and {QUERY_OCTETS['ipv6']} over IPv6; leave it out",
            at="frame_size",
        )
