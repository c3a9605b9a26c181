# SPDX-License-Identifier: Apache-2.0
"""The delays of late frames are said with their numbers, the reason, and the option to raise."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.golden import Golden
from tests.unit.test_trials import STREAM

from natgauge.agreement.generated import StreamCounts
from natgauge.late_delays import LateDelays, merged

LATE = LateDelays(frames=1000, least=0.148, largest=0.152, mean=0.15, limit=0.1)
NUMBERS = "150 ms on average after they were sent (least 148, largest 152 ms)"
FIRST = NUMBERS.replace("they were", "the first was").removesuffix(")")
LAST = "the last of a connection's {} messages arrived"
CLOSED = "after the receivers had closed or behind too many later frames"
OPTION = "a longer --grace-seconds keeps the receivers open"


@pytest.mark.parametrize(
    "delays",
    [
        LATE,
        replace(LATE, limit=None),
        replace(LATE, limit=0.149),
        replace(LATE, limit=0.2),
        LateDelays(frames=1, least=1.5, largest=1.5, mean=1.5, limit=0.0105),
        replace(LATE, messages=3),
        LateDelays(frames=1, least=0.28, largest=0.28, mean=0.28, limit=0.02, messages=7),
    ],
)
def test_a_sentence_tells_delay_reason_and_option(delays: LateDelays, golden: Golden) -> None:
    golden(str(delays))


def stream(late: int, *messages: str, **more: object) -> StreamCounts:
    arrivals = [{"name": name, "received": 0, "wrong": 0} for name in messages]
    sent = {"intended_frames": 1000, "intended_rate": 1000.0, "made_frames": 1000, "offered_frames": 1000}
    given = {**STREAM, **sent, "received_frames": 0, "late": late, "messages": arrivals}
    return StreamCounts.model_validate({**given, **more})


DELAY = {"minimum_ns": 148_000_000, "maximum_ns": 152_000_000, "sum_ns": 150_000_000_000}


@pytest.mark.parametrize("messages", [("syn",), ("syn", "syn-ack", "ack")])
def test_the_engines_sum_becomes_a_mean_and_the_plans_limit_is_known(messages: tuple[str, ...]) -> None:
    counts = stream(1000, *messages, late_delay=DELAY)
    assert counts.late_delays(0.1) == replace(LATE, messages=len(messages))


def test_results_without_the_delays_have_late_frames_all_the_same() -> None:
    counts = stream(1000)
    assert (counts.late, counts.late_delays(0.1)) == (1000, None)


def test_delays_of_several_streams_are_those_of_all_their_frames() -> None:
    few = LateDelays(frames=100, least=0.2, largest=0.4, mean=0.3, limit=0.1)
    both = merged([LATE, few])
    assert both is not None
    assert (both.frames, both.least, both.largest, both.limit) == (1100, 0.148, 0.4, 0.1)
    assert both.mean == pytest.approx((1000 * 0.15 + 100 * 0.3) / 1100)


def test_without_a_delay_of_some_late_frames_there_is_none_of_all() -> None:
    assert merged([LATE, None]) is None
    assert merged([]) is None
