# SPDX-License-Identifier: Apache-2.0
"""What is said of one comparison of gateways whose rates are known."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext

import pytest
from tests.labs.known_rates import __main__
from tests.labs.known_rates.__main__ import EXPECTED, FAST, OTHERS, SLOW, TRUTH, Found, compared
from tests.labs.known_rates.devices import QUEUE
from tests.unit.test_comparison_rates import FIRST, World, world

__all__ = ["world"]


@pytest.mark.parametrize(
    ("low", "high", "answered", "right", "word"),
    [
        (TRUTH - 0.1, TRUTH + 0.1, True, True, "right"),
        (TRUTH + 0.1, TRUTH + 0.2, True, False, "WRONG"),
        (None, None, False, True, "open"),
    ],
)
def test_a_comparison_without_an_interval_is_neither_wrong_nor_an_answer(
    low: float | None, high: float | None, word: str, *, answered: bool, right: bool
) -> None:
    found = Found(low, high, "", refused=False)
    assert (found.answered, found.right, found.word) == (answered, right, word)


def test_a_refused_comparison_says_so() -> None:
    assert Found(None, None, "too few connections", refused=True).word == "refused"


@pytest.mark.parametrize("connections", [20_000, 200_000])
@pytest.mark.parametrize("other", OTHERS)
def test_few_rounds_at_a_low_level_hold_the_ratio_of_constant_rates(
    other: str, connections: int, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bounds of each search hold the rate, so the narrower interval of few rounds has to hold the ratio."""
    monkeypatch.setattr(__main__, "policing", lambda *_: FIRST)
    monkeypatch.setitem(OTHERS, other, lambda *_: FIRST)
    queue = {"queue": QUEUE} if other == "queues" else {}
    world.gateways = [
        {"establishes": float(FAST)},
        {"establishes": float(SLOW), **queue},
        {"establishes": float(FAST)},
    ]
    # The clock of this world says 100 s for each round that is in its folder of results.
    monkeypatch.setattr(tempfile, "TemporaryDirectory", lambda: nullcontext("results"))
    found = compared(other, connections, most_seconds=500.0, level="50%", expected=EXPECTED)
    assert (found.word, found.low is not None) == ("right", True), found.text
    assert "; 5 rounds, " in found.text
    # Each of the three gateways of the five rounds begins near the rate that it was told, or where it ended.
    first = [one.plans[0].phase1_rate for one in world.started]
    assert first[:3] == [pytest.approx(EXPECTED, rel=0.05)] * 3
    assert all(0.92 * SLOW < rate <= FAST * 1.06 for rate in first[3:])
