# SPDX-License-Identifier: Apache-2.0
"""What is said of one comparison of gateways whose rates are known."""

from __future__ import annotations

import pytest
from tests.labs.known_rates.__main__ import TRUTH, Found


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
