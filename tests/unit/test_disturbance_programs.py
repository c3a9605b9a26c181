# SPDX-License-Identifier: Apache-2.0
"""What the programs beside the lab tests conclude from their measurements; they themselves need root and minutes."""

from __future__ import annotations

import pytest
from tests.labs.invalid_share import Found, cause_of, holes_in

from natgauge.words import Verdict


@pytest.mark.parametrize(
    ("loads", "holes"),
    [
        ([100.0, 90.0, 80.0], ()),
        ([100.0, 80.0], (90.0,)),
        ([90.0, 70.0], (100.0, 80.0)),
        ([100.0, 90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 20.0, 10.0, 2.5], (5.0,)),
        ([], ()),
    ],
)
def test_a_hole_is_a_load_between_others_without_a_figure(loads: list[float], holes: tuple[float, ...]) -> None:
    assert holes_in(loads) == holes


@pytest.mark.parametrize(
    ("verdicts", "holes", "good"),
    [
        ({Verdict.PASS: 18, Verdict.INVALID: 2}, (), True),
        ({Verdict.PASS: 8, Verdict.INVALID: 2}, (), False),
        ({Verdict.PASS: 8}, (90.0,), False),
        ({}, (), False),
    ],
)
def test_few_invalid_trials_and_no_hole_are_good(
    verdicts: dict[str, int],
    holes: tuple[float, ...],
    good: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    found = Found("throughput of nat", verdicts, {}, holes, "40,000 frames/s")
    assert found.good is good
    assert next(iter(found.lines())).startswith("  " if good else "! ")


def test_causes_are_told_without_their_figures() -> None:
    one, other = (
        {"limited_by": "host", "reason": f"phase 2: {lost} of 40000 frames lost, CPU 1 stalled for {lost}.5 ms"}
        for lost in (3, 17)
    )
    assert cause_of(one) == cause_of(other) == "host: phase N: N of N frames lost, CPU N stalled for N ms"
