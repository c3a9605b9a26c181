# SPDX-License-Identifier: Apache-2.0
"""What traffic must be like whose frames are DNS queries."""

from __future__ import annotations

from typing import Final

from natgauge.errors import UsageError
from natgauge.words import QUERY_OCTETS

#: Where they go (RFC 1035 section 4.2.1).
PORT: Final = 53


def refuse_unlike(metric: str, first_port: int, last_port: int, frame_size: int | None) -> None:
    """Refuse traffic that queries cannot be.

    Args:
        metric: that sends them.
        first_port: of the destination ports.
        last_port: of them.
        frame_size: as the user chose it; None = he did not.

    Raises:
        UsageError: other ports than the DNS has, or a size is asked for.
    """
    if (first_port, last_port) != (PORT, PORT):
        raise UsageError(
            f"destination ports: {first_port}-{last_port}, but {metric} sends DNS queries; use {PORT} alone, and no "
            "more connections than the other ranges hold"
        )
    if frame_size is not None:
        raise UsageError(
            f"frame size: {frame_size}, but {metric} sends DNS queries, which have {QUERY_OCTETS['ipv4']} octets over "
            f"IPv4 and {QUERY_OCTETS['ipv6']} over IPv6; leave it out"
        )
