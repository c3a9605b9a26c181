# SPDX-License-Identifier: Apache-2.0
"""Views print the same figures of stored results as before: text, table, page and `diff`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.example_figures import CAMPAIGN, FIGURES, PAIRS, figures, names

BEFORE = json.loads(FIGURES.read_text())


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return figures(tmp_path_factory.mktemp("examples"))


@pytest.mark.parametrize("name", [*names(), CAMPAIGN, *(f"{first} and {second}" for first, second in PAIRS)])
def test_every_figure_of_a_stored_result_is_printed_as_before(name: str, today: dict[str, Any]) -> None:
    """After an intended change: `python -m tests.unit.example_figures`."""
    for view, expected in BEFORE[name].items():
        assert today[name][view] == expected, view


def test_the_examples_are_of_each_kind_and_have_figures() -> None:
    assert len(names()) >= 10
    assert set(BEFORE) == {*names(), CAMPAIGN, *(f"{first} and {second}" for first, second in PAIRS)}
    assert all(len(view) > 0 for of_name in BEFORE.values() for view in of_name.values() if not isinstance(view, int))
