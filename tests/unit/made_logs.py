# SPDX-License-Identifier: Apache-2.0
"""Connections as the engine lists them, and the records of a gateway that logs them."""

from __future__ import annotations

import struct
from functools import cache
from ipaddress import ip_address
from typing import Any

#: What conntrack 1.4.7 prints with -E -e NEW -o timestamp.
UDP = (
    "[{at:.6f}]\t    [NEW] udp      17 30 src={inside} dst=198.19.0.2 sport={port} dport={remote} [UNREPLIED] "
    "src=198.19.0.2 dst={outside} sport={remote} dport={seen}"
)
START = 1_764_179_000
#: Of the engine's list: a connection every ms; a record follows after a quarter.
_ENTRY = struct.Struct(">QHHHH16s16s16s")


@cache
def octets(address: str) -> bytes:
    packed = ip_address(address).packed
    return bytes(16 - len(packed)) + packed


def entry(
    number: int, *, source: str = "10.0.0.2", port: int | None = None, seen: int | None = None, known: int = 1,
    outside: str = "198.19.0.1", remote: int = 1, destination: str = "198.19.0.2",
) -> bytes:  # fmt: skip
    port = 1024 + number if port is None else port
    due = START * 10**9 + number * 10**6
    places = (octets(source), octets(destination), octets(outside))
    return _ENTRY.pack(due, port, remote, port if seen is None else seen, known, *places)


def record(number: int, *, at: float | None = None, **others: Any) -> str:
    port = others.pop("port", 1024 + number)
    fields = {"inside": "10.0.0.2", "outside": "198.19.0.1", "port": port, "seen": port, "remote": 1, **others}
    return UDP.format(at=START + number / 1000 + 0.00025 if at is None else at, **fields)
