# SPDX-License-Identifier: Apache-2.0
"""Checks of a search's bounds that could not be made: the result says so, and its bounds stay."""

from __future__ import annotations

import math

import pytest
from tests.unit.counted import make_counts, make_outcome

from natgauge.inputs.measuring_types import SearchError
from natgauge.procedures.kit.events import Bounds
from natgauge.procedures.kit.result.results import Measurement
from natgauge.procedures.kit.search.binary_search import SearchPlan, search
from natgauge.procedures.kit.search.rare_loss import ABOVE
from natgauge.procedures.kit.time_budget import TimeUpError
from natgauge.trials import Trial

FRAMES = 1_000_000


def searched(*, time_ends: bool) -> Measurement:
    """Of a device that can do 410 and loses a frame up to 420; no trial shows what is a little above the bound."""
    failed: set[float] = set()

    def trial(rate: float, _short: bool, _bounds: Bounds) -> Trial:  # noqa: FBT001 - the search's signature
        if any(math.isclose(rate, ABOVE * load) for load in failed):
            if time_ends:
                raise TimeUpError("the time of 60 s is used up")
            return make_outcome("INVALID", "a stall", limited_by="host")
        if rate <= 410:
            return make_outcome("PASS", phase1=make_counts(FRAMES, FRAMES, FRAMES))
        failed.add(rate)
        lost = 1 if rate <= 420 else int(FRAMES * (1 - 410 / rate))
        counts = make_counts(FRAMES, FRAMES, FRAMES - lost)
        return make_outcome("FAIL", "loss", phase1=counts, limited_by="device", failed_phase=1)

    plan = SearchPlan(top=10_000, start=100, floor=1, error=SearchError(share=0.05), unit="frames/s", invalid_repeats=2)
    return search(plan, trial, lambda _outcome: None)


@pytest.mark.parametrize("time_ends", [False, True])
def test_a_bound_of_few_lost_frames_that_no_faster_trial_explained_is_doubtful(
    time_ends: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    found = searched(time_ends=time_ends)
    assert (found.value, found.upper) == (400, 412.5)
    assert "rare loss" in [note.word for note in found.notes]


def test_a_search_whose_bounds_were_tried_again_does_not_say_that_this_was_left_out() -> None:
    found = searched(time_ends=True)
    (said,) = [note.text for note in found.notes if note.word == "time used up"]
    assert "final bounds" not in said
    assert said.startswith("trials that show whether the rate alone made the bounds left out: ")


def failed_of(lost: int) -> Trial:
    counts = make_counts(FRAMES, FRAMES, FRAMES - lost)
    return make_outcome("FAIL", "loss", phase1=counts, limited_by="device", failed_phase=1)


PASSED = make_outcome("PASS", phase1=make_counts(FRAMES, FRAMES, FRAMES))
NOTHING_SAID = make_outcome("INVALID", "a stall", limited_by="host")


def test_a_load_that_failed_and_then_passes_does_not_outweigh_the_lower_ones_that_failed() -> None:
    """The trial that is to show the size of a bucket was at the tester's highest rate, which had failed."""
    top, tried = 130_000, list[float]()

    def trial(rate: float, _short: bool, _bounds: Bounds) -> Trial:  # noqa: FBT001 - the search's signature
        tried.append(rate)
        if rate <= 100_000 or tried.count(top) > 1:
            return PASSED
        return failed_of(int(FRAMES * (1 - 100_000 / rate) / 2))

    plan = SearchPlan(top=top, start=65_000, floor=100, error=SearchError(share=0.01), unit="frames/s")
    found = search(plan, trial, lambda _outcome: None, lambda *_: NOTHING_SAID)
    assert tried.count(top) == 2
    assert tried[-1] == top
    assert found.value == pytest.approx(100_000, rel=0.011)
    assert found.upper == pytest.approx(100_000, rel=0.011)
    assert "contradictions" not in [note.word for note in found.notes]


def test_what_a_trial_showed_of_bounds_that_no_longer_count_explains_no_later_ones() -> None:
    """The later bound failed for a frame or two as well, and the result did not say that nothing explained these."""
    limit, failed = 100_000.0, set[float]()

    def trial(rate: float, _short: bool, _bounds: Bounds) -> Trial:  # noqa: FBT001 - the search's signature
        nonlocal limit
        if rate >= 180_000:
            # From now on the device does more.
            limit = 300_000.0
        if rate <= limit:
            return PASSED
        shows = any(math.isclose(rate, ABOVE * load) for load in failed)
        failed.add(rate)
        few = rate <= 1.0102 * limit and not shows
        return failed_of(1 if few else int(FRAMES * (1 - limit / rate) / 2))

    plan = SearchPlan(
        top=16e6, start=50_000, floor=100, error=SearchError(share=0.01), unit="frames/s", expected=100_000
    )
    found = search(plan, trial, lambda _outcome: None, lambda *_: NOTHING_SAID)
    words = [note.word for note in found.notes]
    assert "contradictions" in words
    assert found.value == pytest.approx(300_000, rel=0.011)
    assert "rare loss" in words
