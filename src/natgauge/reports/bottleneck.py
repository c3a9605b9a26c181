# SPDX-License-Identifier: Apache-2.0
"""What limited a result, in words: one place for text, page and difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from natgauge.records.measurement import Result
from natgauge.words import LimitedBy

#: Bottlenecks in words.
_BOTTLENECKS: Final[Mapping[LimitedBy, str]] = {
    "device": "the device",
    "table": "the device's connection tracking table, which was full",
    "port pool": "the pool of outside ports",
    "tester": "the tester, not the device",
    "host": "disturbances of this host, not the device",
    "server": "the real server, not the device",
    "time": "the available time",
}


def bottleneck(result: Result) -> str:
    """Return what limited a result, as a noun: its cause where it has one, and whether that is a guess."""
    return (result.cause.words if result.cause is not None else "") or _BOTTLENECKS[result.limited_by]
