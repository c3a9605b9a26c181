# SPDX-License-Identifier: Apache-2.0
"""The cause of a search: what the failed trials at the lowest loads have, and what other loads say of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from natgauge.causes.cause import Cause, most_frequent
from natgauge.causes.hops import facts_of


def of_search(causes: Iterable[Cause], *, passed: bool) -> Cause:
    """Return the cause of the loads that a search found too high.

    Args:
        causes: causes of the failed trials at the lowest of these loads; at least one.
        passed: whether a lower rate of as many connections passed.
    """
    cause = most_frequent(causes)
    if cause.kind == "host limit" and passed:
        # Fewer connections in the same time: the hosts kept equal numbers because they opened them at equal rates.
        named = facts_of(cause.counter).cause if cause.counter else "not known"
        cause = replace(cause, kind=named, each_host=cause.each_host if named == "rule" else None)
    if cause.kind == "rule" and passed:
        return replace(cause, kind="rate limit", remedy="rules with a rate or a quota (`limit`, `hashlimit`, `police`)")
    return cause
