# SPDX-License-Identifier: Apache-2.0
"""What a search for a gateway's rate leaves in a comparison: a rate that it surely does, one that it failed, doubts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.counted import change_counts, change_trial
from tests.unit.golden import Golden
from tests.unit.made_settings import settings_of
from tests.unit.simulated import Gateway
from tests.unit.test_rare_loss import LosesAFew

from natgauge.comparisons.by_rates import Searched, most_too_high, refuse_too_few
from natgauge.comparisons.method import Subject, estimate_of
from natgauge.comparisons.request import ComparisonGoal
from natgauge.errors import BrokenError, UsageError
from natgauge.inputs.measuring_types import SearchError
from natgauge.metrics.metric import TRIAL_SECONDS
from natgauge.notes import Note
from natgauge.paired.ratios import PlaceKind, Void, VoidRounds, ratio_of
from natgauge.procedures import get
from natgauge.procedures.kit.rate_search import (
    Length,
    ShortTrialsError,
    late_note,
    length_of_connections,
    length_of_trials,
    most_late_share,
    refuse_short,
    top_rate,
)
from natgauge.procedures.kit.results import Attempt, Measurement
from natgauge.procedures.kit.runner import TimeUpError
from natgauge.records.comparison import RatioEstimate
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
    figures = {TRIAL_SECONDS: connections / value} if value else {}
    return Measurement(value, upper, limited_by, trials, figures=figures)


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
    figure = estimate_of(subject, ratio_of(other, lossy, 0.05), 1.0, ComparisonGoal(0.95, 0.05, None))
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


NONE = measured(0.0, 500.0)


def by_turns(number: int, *, without: int, none: Measurement = NONE) -> Searched:
    """So many searches, of which every second one passed no rate until there are enough of those."""
    found = measured(100_000, 102_000)
    return searched(*[none if at % 2 and at < 2 * without else found for at in range(number)])


def told(baseline: Searched, other: Searched) -> tuple[RatioEstimate, float, float]:
    found = ratio_of(baseline, other, 0.05)
    assert found is not None
    failures = "; ".join(one.failures for one in (baseline, other) if one.failures)
    subject = Subject("gateway", "new", other.nanoseconds, None, found.number, (*baseline.limits, *other.limits))
    figure = estimate_of(subject, found, 1.0, ComparisonGoal(0.95, 0.05, 0.10), failures)
    return figure, found.lower, found.upper


def test_a_gateway_that_passes_no_rate_in_some_rounds_is_not_as_fast_as_in_the_others(golden: Golden) -> None:
    """In 5 of 13 rounds it fails outright; the 8 others alone would say that there is no difference."""
    flawless, flawed = by_turns(13, without=0), by_turns(13, without=5)
    figure, lower, upper = told(flawless, flawed)
    assert (figure.verdict, figure.above, figure.blocks) == ("undecided", None, 13)
    assert 0.9 < lower < 1
    assert upper == math.inf
    golden(figure.text)
    figure, lower, upper = told(flawed, flawless)
    assert (figure.verdict, figure.above) == ("undecided", False)
    assert (lower, figure.ratio) == (0, None)
    assert 1 < upper < 1.1
    golden(figure.text)
    # One of 13 is within what order statistics leave out.
    figure, _, upper = told(flawless, by_turns(13, without=1))
    assert figure.above is False
    assert figure.ratio == pytest.approx(1)
    assert upper < 1.1


def test_a_gateway_that_passes_no_rate_in_most_rounds_costs_more() -> None:
    flawed = searched(*[NONE] * 7, measured(100_000, 102_000), *[NONE] * 4)
    figure, lower, _ = told(by_turns(12, without=0), flawed)
    assert (figure.verdict, figure.above) == ("costs more", True)
    assert lower > 100


def test_rounds_in_which_neither_passes_a_rate_say_nothing_and_are_counted() -> None:
    first, other = by_turns(13, without=5), by_turns(13, without=5)
    figure, lower, upper = told(first, other)
    assert (figure.verdict, lower, upper, figure.blocks) == ("undecided", 0, math.inf, 13)


def overloaded(_number: int, trial: Any) -> Any:
    """More than 10,000 connections/s are lost."""
    received = int(trial.phase1.offered_frames * 10_000 / trial.plan.phase1_rate)
    return change_trial(trial, phase1=change_counts(trial.phase1, received=received))


def leaking(_number: int, trial: Any) -> Any:
    """Half of the frames are lost in an overload, and a few below it."""
    lost = trial.phase1.offered_frames // 2 if trial.plan.phase1_rate > 150_000 else 2
    return change_trial(trial, phase1=change_counts(trial.phase1, received=trial.phase1.offered_frames - lost))


@pytest.mark.parametrize(("alters", "failed"), [(overloaded, True), (leaking, False)])
def test_where_the_time_ends_before_a_rate_passes_the_lowest_that_an_overload_failed_is_known(
    alters: Callable[[int, Any], Any],
    failed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    with pytest.raises(TimeUpError) as raised:
        RATE.once(Gateway(alters=alters), replace(settings(100_000), most_seconds=4.0), None)
    assert math.isfinite(raised.value.failed) is failed


@pytest.mark.parametrize("limited_by", ["host", "tester", "time"])
def test_a_search_that_something_else_voided_says_nothing_of_the_gateway(limited_by: LimitedBy) -> None:
    none = measured(0.0, None if limited_by == "time" else 500.0, limited_by)
    flawed = by_turns(13, without=5, none=none)
    assert flawed.rounds.count(None) == 5
    figure, _, upper = told(by_turns(13, without=0), flawed)
    assert (figure.above, figure.blocks) == (False, 8)
    assert upper < 1.1


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
    texts = {doubt.word: doubt.text for doubt in searched(*cut_off).doubts}
    golden(texts["undecided"])
    assert "single repetition" not in texts
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


@pytest.mark.parametrize("length", [length_of_connections(64), length_of_trials(0.00100005)], ids=["N", "T"])
def test_a_rate_that_the_tolerated_lag_may_have_made_is_refused_with_the_least_length_that_would_do(
    length: Length, golden: Golden
) -> None:
    rate, seconds, error = 64_000.0, 0.001, SearchError(share=0.01)
    with golden.raises(ShortTrialsError) as said:
        refuse_short(seconds, rate, error, length)
    assert said.value.least_rate == pytest.approx(rate * seconds / (seconds + LEAST_LAG_SECONDS))
    longer = seconds * said.value.enough / length.amount
    assert most_late_share(longer, error) <= 0.01 < most_late_share(0.95 * longer, error)
    # A twentieth is told, and not refused.
    refuse_short(20 * LEAST_LAG_SECONDS, rate, error, length)
    with pytest.raises(ShortTrialsError):
        refuse_short(19.9 * LEAST_LAG_SECONDS, rate, error, length)
    refuse_short(seconds, rate, SearchError(share=0.2), length)


@pytest.mark.parametrize(
    ("seconds", "grade"), [(0.004, "answer"), (0.0041, "interval"), (0.02, None), (0.0199, "interval")]
)
def test_a_lag_is_told_where_it_says_more_than_the_error_of_the_search(seconds: float, grade: str | None) -> None:
    notes = late_note(seconds, 1e5, SearchError(share=0.01), "use longer trials")
    assert [(note.grade, note.value) for note in notes] == ([(grade, LEAST_LAG_SECONDS / seconds)] if grade else [])


@pytest.mark.parametrize("top", [0.0, -1.0, math.inf, math.nan])
def test_a_tester_without_a_highest_rate_searches_for_none(top: float) -> None:
    with pytest.raises(BrokenError):
        top_rate(Gateway(ceiling=top))
    assert top_rate(Gateway(ceiling=0.5)) > 0


def test_one_repetition_for_a_comparison_is_under_the_same_rule() -> None:
    with pytest.raises(ShortTrialsError):
        RATE.once(Gateway(establishes=354_000.0, placement="shared"), settings(100, "shared"), None)


# What costs and comparisons share: void rounds are noted, and three in a row end a measurement.


def test_three_void_rounds_in_a_row_end_it_and_a_void_round_is_noted_with_its_gateway(golden: Golden) -> None:
    voids = VoidRounds("compare", "search", lambda _: "see what it does")
    voids.judge("a", "")
    for _ in range(2):
        voids.judge("b (new)", "no rate passed")
    golden(voids.notes)
    with golden.raises(BrokenError):
        voids.judge("b (new)", "no rate passed")


def test_a_valid_round_and_those_of_others_begin_the_count_again() -> None:
    voids = VoidRounds("cost", "round", lambda _: "see")
    for _ in range(5):
        voids.judge("a", "lost")
        voids.judge("b", "lost")
        voids.judge("a", "lost")
        voids.judge("a", "")
        voids.judge("b", "")
    assert len(voids.notes) == 15


def test_a_ratio_that_lacks_more_rounds_than_it_has_ends_it_with_the_remedy_of_the_place_without_a_gateway(
    golden: Golden,
) -> None:
    voids = VoidRounds("compare", "round", lambda _: "see the gateway")
    for _ in range(9):
        voids.judge_ratio("b", {})
        voids.judge_ratio("b", {"cable": Void("cable", "lost"), "a": Void("gateway", "late")})
    with golden.raises(BrokenError):
        voids.judge_ratio("b", {"a": Void("gateway", "late")})


def test_gateways_that_are_void_in_turn_end_it_with_the_remedy_of_gateways(golden: Golden) -> None:
    voids = VoidRounds("compare", "search", lambda _: "see what it does")
    for number in range(8):
        voids.judge_ratio("b (up)", {"ab"[number % 2]: Void("gateway", "no rate passed")})
    voids.judge_ratio("c (up)", {})
    with golden.raises(BrokenError):
        voids.judge_ratio("b (up)", {"a": Void("gateway", "no rate passed")})


def test_a_few_void_rounds_of_a_ratio_end_nothing() -> None:
    voids = VoidRounds("compare", "round", lambda _: "see")
    for _ in range(8):
        voids.judge_ratio("b", {"b": Void("gateway", "lost")})
    for _ in range(8):
        voids.judge_ratio("b", {})
    for _ in range(1000):
        voids.judge_ratio("b", {})
        voids.judge_ratio("b", {"b": Void("gateway", "lost")})


@pytest.mark.parametrize(("kind", "remedy"), [("cable", "natgauge selftest"), ("plain forwarding", "linux-ipv4")])
def test_a_place_without_a_gateway_has_a_remedy_of_its_own(kind: PlaceKind, remedy: str) -> None:
    voids = VoidRounds("cost", "round", lambda _: "see the gateway")
    for _ in range(2):
        voids.judge(kind, "lost", kind)
    with pytest.raises(BrokenError, match=remedy) as caught:
        voids.judge(kind, "lost", kind)
    assert "see the gateway" not in str(caught.value)
