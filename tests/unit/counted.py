# SPDX-License-Identifier: Apache-2.0
"""Counts of a stream for tests, of which only what is named happened: the one place that knows their type's fields."""

from __future__ import annotations

from typing import Any

from natgauge.agreement import MessageCounts, Silence, StreamCounts, stream_of
from natgauge.agreement.generated import LateDelay
from natgauge.late_delays import LateDelays


def make_counts(intended: int, offered: int, received: int, **others: Any) -> StreamCounts:
    """Counts of a stream; names as in `StreamCounts`, but times are in seconds (`nominal_seconds`)."""
    return stream_of(**_named({"intended": intended, "offered": offered, "received": received, **others}))


def change_counts(counts: StreamCounts, **others: Any) -> StreamCounts:
    """The same counts, but for what is named."""
    return counts.model_copy(update=_named(others))


def arrivals(name: Any, received: int, wrong: int = 0) -> MessageCounts:
    """Arrivals of one message."""
    return MessageCounts(name=name, received=received, wrong=wrong)


def _named(given: dict[str, Any]) -> dict[str, Any]:
    return dict(_field(name, value) for name, value in given.items())


def _field(name: str, value: Any) -> tuple[str, Any]:
    if name in {"intended", "offered", "received"}:
        return f"{name}_frames", value
    if name.endswith("_seconds"):
        return f"{name.removesuffix('_seconds')}_ns", round(value * 1e9)
    if name == "longest_silence" and value is not None:
        return name, Silence(from_ns=round(value[0] * 1e9), to_ns=round(value[1] * 1e9))
    if name == "messages":
        return name, list(value)
    if name == "late_delays":
        return "late_delay", value and _late(value)
    return name, value


def _late(delays: LateDelays) -> LateDelay:
    return LateDelay(
        minimum_ns=round(delays.least * 1e9),
        maximum_ns=round(delays.largest * 1e9),
        sum_ns=round(delays.mean * delays.frames * 1e9),
    )
