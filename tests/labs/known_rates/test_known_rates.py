# SPDX-License-Identifier: Apache-2.0
"""`compare --by rates` never says a wrong ratio of gateways whose rates are known, however few the connections are."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pytest
from tests.labs.known_rates.__main__ import EXPECTED, OTHERS, compared

pytestmark = [
    pytest.mark.slow("makes three labs and searches each gateway at least once: half a minute"),
    pytest.mark.alone,
    pytest.mark.soak,  # test_compare.py compares by rates in `make test`
]


# Below, `make soak` asks the same of the gateway that drops.
@pytest.mark.parametrize("other", ["queues", "drops"])
def test_too_few_connections_are_refused_in_the_first_round(other: str) -> None:
    """2,000 connections are established within 0.1 s, a tenth of which a frame may wait."""
    found = compared(other, 2_000, most_seconds=300.0)
    assert found.refused
    assert "connections: 2000 of" in found.text
    assert "choose at least" in found.text


#: Most seconds of a comparison, by N: two rounds of three searches, or a few more.
SECONDS = {20_000: 150.0, 200_000: 900.0}
#: Two rounds make an interval, and the first searches begin near their end (see the tool).
SOON: Mapping[str, Any] = {"level": "50%", "expected": EXPECTED}


@pytest.mark.timeout(1800)
# What a queue holds counts less and less with more connections; of a gateway that drops, more change nothing.
@pytest.mark.parametrize(("other", "connections"), [("drops", 20_000), ("queues", 20_000), ("queues", 200_000)])
def test_a_known_ratio_is_found(other: str, connections: int) -> None:
    found = compared(other, connections, most_seconds=SECONDS[connections], **SOON)
    sys.stdout.write(f"\n{other}, N = {connections:,}: {found.word}: {found.low} to {found.high}: {found.text}\n")
    assert not found.refused, found.text
    # Without an interval nothing is wrong, and nothing is found.
    assert found.answered, found.text
    assert found.right, found.text


@pytest.mark.timeout(300)
@pytest.mark.parametrize("other", OTHERS)
def test_a_wide_interval_holds_the_known_ratio_where_another_question_is_asked(other: str) -> None:
    found = compared(other, 2_000, most_seconds=60.0, fail_above="3%", **SOON)
    assert not found.refused
    assert found.answered, found.text
    assert found.right, found.text
