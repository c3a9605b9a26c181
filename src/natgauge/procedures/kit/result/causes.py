# SPDX-License-Identifier: Apache-2.0
"""The cause of a repetition: that of the loads which the device failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, get_args

from natgauge.causes.cause import Cause, DeviceLimit, most_frequent
from natgauge.causes.counters import facts_of
from natgauge.procedures.kit.result.results import Attempt, Measurement
from natgauge.words import LimitedBy, Verdict

_OF_DEVICE: Final = get_args(DeviceLimit)
#: Loads up to this multiple of the lowest one that failed decide as well: one trial may have failed for the host.
NEAR: Final = 1.25


def with_cause(measurement: Measurement) -> Measurement:
    """Return the repetition with its cause, and with the limit that follows from it, where the device limited it."""
    if measurement.limited_by not in _OF_DEVICE:
        return replace(measurement, cause=None)
    # A rule that drops a frame now and then lets slow trials pass, too: they are short of frames, not of rate.
    rare = any(note.word == "rare loss" for note in measurement.notes)
    cause = measurement.cause or _deciding(measurement.attempts, measurement.limited_by, rare=rare)
    return measurement if cause is None else replace(measurement, cause=cause, limited_by=cause.limited_by)


def _deciding(attempts: Sequence[Attempt], limited_by: LimitedBy, *, rare: bool) -> Cause | None:
    """Return the cause of the lowest loads that the device failed; None = no failed trial has one.

    Where the limit of the repetition is known, only trials with that limit decide. Where the loss is rare, no rate is
    the reason.
    """
    failed = [each for each in attempts if each.outcome.verdict is Verdict.FAIL and each.outcome.cause is not None]
    if limited_by != "device":
        failed = [each for each in failed if each.outcome.limited_by == limited_by] or failed
    lowest = min((each.load for each in failed), default=0.0)
    deciding = [each for each in failed if each.load <= NEAR * lowest]
    causes = [each.outcome.cause for each in deciding if each.outcome.cause is not None]
    if not causes:
        return None
    frames = max(each.outcome.phase1.intended for each in deciding)
    passed = not rare and any(
        each.outcome.verdict is Verdict.PASS and each.load < lowest and each.outcome.phase1.intended >= frames
        for each in attempts
    )
    return of_search(causes, passed=passed)


def of_search(causes: Iterable[Cause], *, passed: bool) -> Cause:
    """Return the cause of the loads that a search found too high.

    The causes, at least one, are those of the failed trials at the lowest of these loads; `passed` tells whether a
    lower rate of as many connections passed.
    """
    cause = most_frequent(causes)
    if cause.kind == "host limit" and passed:
        # Fewer connections in the same time: the hosts kept equal numbers because they opened them at equal rates.
        named = facts_of(cause.counter).cause if cause.counter else "not known"
        cause = replace(cause, kind=named, each_host=cause.each_host if named == "rule" else None)
    if cause.kind == "rule" and passed:
        return replace(cause, kind="rate limit", remedy="rules with a rate or a quota (`limit`, `hashlimit`, `police`)")
    return cause
