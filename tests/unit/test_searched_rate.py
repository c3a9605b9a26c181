# SPDX-License-Identifier: Apache-2.0
"""What a search for a gateway's rate leaves in a comparison: a rate that it surely does, one that it failed, doubts."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.made_settings import settings_of
from tests.unit.simulated import Gateway
from tests.unit.test_rare_loss import LosesAFew

from natgauge.comparisons.estimates import Subject, estimate_of
from natgauge.comparisons.request import ComparisonGoal
from natgauge.comparisons.searched import Searched, most_too_high, ratio_of, refuse_too_few
from natgauge.errors import UsageError
from natgauge.metrics.shared_figures import TRIAL_SECONDS
from natgauge.notes import Note
from natgauge.procedures import get
from natgauge.procedures.kit.result.results import Attempt, Measurement
from natgauge.records.parameters import Parameters
from natgauge.trials import LAG_SHARE, LEAST_LAG_SECONDS
from natgauge.words import LimitedBy, Placement, Verdict

RATE = get("connection-rate")
#: Without what only a lab can tell.
ASKED: dict[str, Any] = {"profile": "quick", "error": "2%"}


def settings(connections: int, placement: Placement = "isolated", *, own_processes: bool = False) -> Any:
    return settings_of(
        RATE,
        ASKED,
        connections=connections,
        placement=placement,
        own_processes=own_processes,
        order="permutation",
        four_tuples=connections,
    ).as_run()


def measured(
    value: float, upper: float | None, limited_by: LimitedBy = "device", connections: int = 100_000
) -> Measurement:
    trials = {Verdict.PASS: 3, Verdict.FAIL: 3, Verdict.INVALID: 0, Verdict.COLLAPSED: 0}
    return Measurement(value, upper, limited_by, trials, figures={TRIAL_SECONDS: connections / value})


def searched(*found: Measurement, connections: int = 100_000, **place: Any) -> Searched:
    one = Searched("gateway", "new")
    asked = settings(connections)
    parameters = Parameters.grouped(settings=asked.parameters(), place={"placement": "isolated", **place})
    for each in found:
        one.add(RATE, asked, parameters, each)
    return one


def test_the_gateway_surely_does_what_passed_without_what_queues_may_have_added() -> None:
    (bounds,) = searched(measured(200_000, 203_000)).bounds
    # W = 20 ms of N / R = 0.5 s.
    assert bounds.lower == pytest.approx(200_000 / 1.04)
    assert (bounds.passed, bounds.upper, bounds.limit) == (200_000, 203_000, "")


@pytest.mark.parametrize(
    ("limited_by", "upper", "says"),
    [
        ("tester", 203_000, "the tester"),
        ("tester", None, "the tester"),
        ("host", 203_000, "the host"),
        ("server", 203_000, "the server"),
        ("time", None, "the time"),
        ("time", 260_000, ""),
        ("table", 203_000, ""),
        ("device", 203_000, ""),
    ],
)
def test_only_what_the_gateway_failed_is_an_upper_bound(limited_by: LimitedBy, upper: float | None, says: str) -> None:
    one = searched(measured(200_000, upper, limited_by))
    (bounds,) = one.bounds
    assert bounds.limit == says
    assert bounds.upper == (math.inf if says else upper)
    assert [limit.limited_by for limit in one.limits] == ([says] if says else [])
    assert (one.nanoseconds is None) is bool(says)


def test_a_rate_that_fills_the_link_is_at_least_so_high(golden: Golden) -> None:
    one = searched(measured(200_000, 203_000), link_speeds=[1000, 1000], frame_size=599)
    golden(one.limits[0].text)
    assert "link limited" in [doubt.word for doubt in one.doubts]


def failed(one: Measurement) -> list[Attempt]:
    return [attempt for attempt in one.attempts if attempt.outcome.verdict == "FAIL"]


def test_a_bound_that_rare_loss_made_is_not_the_gateways_own(golden: Golden) -> None:
    """A gateway of 1,000,000/s that loses 5 frames in a million would cost several times as much as one of 500,000."""
    asked = settings(100_000)
    searches = [RATE.once(LosesAFew(seed=seed), asked, None) for seed in range(20)]
    # All but those that find the loss to be the same at every rate.
    rare = [one for one in searches if one.value and one.upper is not None and one.upper < 400_000]
    # Where nothing failed but the bound itself, an overload by 1 % would explain it.
    rare = [one for one in rare if any(each.load > 1.005 * (one.upper or 0.0) for each in failed(one))]
    lossy, other = searched(*rare), searched(*[measured(500_000, 505_000)] * len(rare))
    assert len(rare) >= 8
    assert {(one.upper, one.limit) for one in lossy.bounds} == {(math.inf, "rare loss")}
    (limit,) = lossy.limits
    golden(limit.text)
    subject = Subject("lossy", "new", lossy.nanoseconds, None, len(rare), lossy.limits)
    figure = estimate_of(subject, ratio_of(other, lossy, 0.05), None, ComparisonGoal(0.95, 0.05, None))
    assert (figure.verdict, figure.ratio) == ("undecided", None)
    assert limit.text in figure.text


def test_one_limited_search_of_many_leaves_the_rate_known() -> None:
    one = searched(*[measured(200_000, 203_000)] * 4, measured(150_000, 153_000, "host"))
    (limit,) = one.limits
    assert (limit.limited_by, limit.searches, limit.of) == ("the host", 1, 5)
    assert one.nanoseconds == pytest.approx(5_000, rel=0.02)


def test_the_interval_of_a_ratio_holds_all_that_both_bounds_allow() -> None:
    first, other = searched(*[measured(200_000, 204_000)] * 8), searched(*[measured(100_000, 102_000)] * 8)
    found = ratio_of(first, other, 0.05)
    assert found is not None
    assert found.value == pytest.approx(2)
    assert found.lower == pytest.approx(200 / 102 / 1.04)
    assert found.upper == pytest.approx(204 / 100 * 1.02)


@pytest.mark.parametrize(
    ("placement", "own_processes", "share"),
    [
        ("isolated", False, 0.02 / 0.5),
        ("external", False, 0.02 / 0.5),
        ("shared", False, LAG_SHARE),
        ("shared", True, LAG_SHARE + 0.02 / 0.5),
    ],
)
def test_queues_and_tolerated_lag_raise_a_rate_where_there_are_any(
    placement: Placement,
    own_processes: bool,  # noqa: FBT001 - a parameter of the test
    share: float,
) -> None:
    asked = settings(100_000, placement, own_processes=own_processes)
    found = most_too_high(measured(200_000, 203_000), asked)
    assert found == pytest.approx(share)
    assert most_too_high(Measurement(0.0, 100.0, "device", {}), asked) == 0


def test_the_lag_that_is_tolerated_counts_where_trials_are_shorter_still() -> None:
    asked = settings(2_000, "shared")
    assert most_too_high(measured(200_000, 203_000, connections=2_000), asked) == pytest.approx(
        LEAST_LAG_SECONDS / 0.01
    )


def test_doubts_are_told_once_each_and_none_of_a_single_repetition_where_there_are_several(golden: Golden) -> None:
    notes = [Note("undecided", f"above {rate} connections/s: the time is used up") for rate in (1, 2, 3)]
    cut_off = [Measurement(200_000, None, "time", measured(1, 2).trials, notes=(note,)) for note in notes]
    told = {doubt.word: doubt.text for doubt in searched(*cut_off).doubts}
    golden(told["undecided"])
    assert "single repetition" not in told
    assert "single repetition" in {doubt.word for doubt in searched(cut_off[0]).doubts}


def test_a_search_in_a_comparison_has_the_notes_of_a_measurement(golden: Golden) -> None:
    asked = settings(10_000)
    once = RATE.once(Gateway(establishes=200_000, forwards=1e7), asked, None)
    result = RATE.measure(Gateway(establishes=200_000, forwards=1e7), asked)
    assert set(result.notes) - set(once.notes) <= {note for note in result.notes if note.word == "repetitions"}
    golden(once.notes)


GOAL = ComparisonGoal(level=0.95, resolve=0.05, fail_above=None)
FEW = {"gateway": 10_000}


def short(value: float, upper: float) -> Searched:
    return searched(measured(value, upper, connections=10_000), connections=10_000)


def test_so_few_connections_that_queues_decide_are_refused_with_a_number_that_would_do(golden: Golden) -> None:
    # W = 20 ms of 50 ms.
    with golden.raises(UsageError) as one:
        refuse_too_few(short(200_000, 203_000), short(200_000, 203_000), FEW, GOAL)
    number = int(str(one.value).partition("choose at least ")[2].split()[0].replace(",", ""))
    enough = searched(measured(200_000, 203_000, connections=number), connections=number)
    refuse_too_few(enough, enough, {"gateway": number}, GOAL)


@pytest.mark.parametrize(
    ("first", "other", "goal"),
    [
        # Another question, which a wide interval may answer.
        ((200_000, 203_000), (200_000, 203_000), ComparisonGoal(level=0.95, resolve=0.05, fail_above=0.03)),
        # No more connections make the search itself any finer.
        ((200_000, 203_000), (200_000, 203_000), ComparisonGoal(level=0.95, resolve=0.005, fail_above=None)),
        # A tenth of the cost: as a share of the larger cost, the interval is narrow.
        ((20_000, 20_300), (200_000, 203_000), GOAL),
    ],
)
def test_few_connections_are_kept_where_they_may_answer_or_more_would_not(
    first: tuple[float, float], other: tuple[float, float], goal: ComparisonGoal
) -> None:
    refuse_too_few(short(*first), short(*other), FEW, goal)
