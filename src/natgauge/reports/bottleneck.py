# SPDX-License-Identifier: Apache-2.0
"""What limited a result, in words: one place for text, page and difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from natgauge.records.measurement import Result
from natgauge.reports import doubtful
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
    """Return what limited a result, as a noun: what a grave doubt names, and its cause with the word of a guess.

    A loss has a cause; a link, single lost frames and a delay are one.
    """
    cause = result.cause.words if result.cause is not None else ""
    doubt = doubtful.bottleneck(result)
    if doubt is None:
        return cause or _BOTTLENECKS[result.limited_by]
    if doubt.has_cause and cause and result.cause is not None and result.cause.kind != "not known":
        return f"{doubt.limit}: {cause}"
    return doubt.limit
