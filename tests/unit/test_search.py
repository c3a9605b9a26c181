# SPDX-License-Identifier: Apache-2.0
"""The search against devices of known truth, as plain functions from load to verdict."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans import OneTrial
from tests.unit.counted import make_counts, make_outcome
from tests.unit.golden import Golden
from tests.unit.made_results import made

from natgauge.inputs.measuring_types import SearchError
from natgauge.procedures.kit.binary_search import SearchPlan, search
from natgauge.procedures.kit.results import Measurement
from natgauge.procedures.kit.runner import MOST_LOST_REPEATS, TESTER_REPEATS, Bounds, OutlastedError, TimeUpError
from natgauge.reports.main_figure import statement_of
from natgauge.words import LimitedBy, Verdict

TOP = 16e6
ONE_PERCENT = SearchError(share=0.01)


def outcome(verdict: Verdict, limited_by: LimitedBy | None = None) -> OneTrial:
    return make_outcome(verdict, "simulated", make_counts(100, 100, 100), limited_by=limited_by)


PASS, FAIL = outcome(Verdict.PASS), outcome(Verdict.FAIL, "device")
FULL_TABLE = outcome(Verdict.FAIL, "table")
SLOW_TESTER, DISTURBED = outcome(Verdict.INVALID, "tester"), outcome(Verdict.INVALID, "host")
COLLAPSED = outcome(Verdict.COLLAPSED, "device")
#: It could not begin: the device did not come back.
GONE = make_outcome(Verdict.COLLAPSED, "simulated", limited_by="device")
#: Most frames of it were lost while a core stalled.
SWAMPED = make_outcome(Verdict.INVALID, "simulated", make_counts(100, 100, 10), limited_by="host", excused=True)


def plan(
    *,
    top: float = TOP,
    start: float = 50_000,
    floor: float = 100,
    error: SearchError = ONE_PERCENT,
    **others: float,
) -> SearchPlan:
    bounds = {"top": top, "start": min(start, top), "floor": min(floor, top)}
    return SearchPlan(**bounds, error=error, unit="frames/s", **others)  # type: ignore[arg-type]


def find(
    device: Callable[[float], OneTrial], asked: SearchPlan, forwarded: Callable[[], float | None] = lambda: None
) -> Measurement:
    """Search a device that knows nothing of short trials."""

    def trial(load: float, _short: bool, _bounds: Bounds) -> OneTrial:  # noqa: FBT001 - the search's signature
        return device(load)

    return search(asked, trial, lambda _outcome: forwarded())


def cliff(at: float) -> Callable[[float], OneTrial]:
    return lambda load: PASS if load <= at else FAIL


def scripted(*verdicts: OneTrial) -> Callable[[float], OneTrial]:
    """Answer from a list, whatever the load; then pass."""
    answers: Iterator[OneTrial] = iter(verdicts)
    return lambda _load: next(answers, PASS)


def supported(found: Measurement) -> bool:
    """Whether a passing trial of full length stands behind the value, or it is 0."""
    return found.value == 0 or any(
        one.load == found.value and not one.short and one.outcome.verdict is Verdict.PASS for one in found.attempts
    )


rates = st.floats(min_value=1.0, max_value=1e8)
errors = st.one_of(
    st.floats(min_value=1e-4, max_value=0.5).map(lambda share: SearchError(share=share)),
    st.floats(min_value=10.0, max_value=1e6).map(lambda rate: SearchError(rate=rate)),
)


@given(cliff_at=rates, top=rates, start=rates, floor=st.floats(1.0, 1e4), error=errors, estimate=rates)
@settings(max_examples=300)
def test_a_hard_cliff_is_found_within_the_error(  # noqa: PLR0917 - hypothesis hands them over by name
    cliff_at: float, top: float, start: float, floor: float, error: SearchError, estimate: float
) -> None:
    """Whatever cliff, ceiling, start, error and (even wrong) estimate: bounds around the cliff, both really tried."""
    lowest = min(floor, top)
    asked = plan(top=top, start=min(max(start, lowest), top), floor=lowest, error=error)
    found = find(cliff(cliff_at), asked, lambda: estimate)
    assert found.value <= cliff_at
    assert supported(found)
    tried = {one.load for one in found.attempts}
    if found.upper is None:
        assert found.value == top
        assert found.limited_by == "tester"
    else:
        assert found.upper > cliff_at
        assert found.upper in tried
        if found.value:
            assert found.upper - found.value <= error.width(found.upper) * (1 + 1e-9)
        else:
            assert cliff_at < lowest * (1 + 1e-9) or found.upper == lowest
    halvings = math.log2(max(top / error.width(lowest), 2))
    assert len(found.attempts) <= 2 * math.log2(1e8) + halvings + 10


def test_a_top_that_passes_is_really_tried_and_names_the_tester() -> None:
    found = find(cliff(1e9), plan())
    assert (found.value, found.upper, found.limited_by, found.error) == (TOP, None, "tester", None)
    assert sum(one.load == TOP for one in found.attempts) == 2


def test_nothing_passes() -> None:
    found = find(cliff(0), plan())
    assert (found.value, found.upper, found.limited_by) == (0, 100, "device")
    assert any("no trial passed" in note.text for note in found.notes)


def test_near_the_testers_own_rate_the_tester_limits() -> None:
    found = find(cliff(0.95 * TOP), plan())
    assert found.limited_by == "tester"
    assert find(cliff(0.8 * TOP), plan()).limited_by == "device"


@given(at=st.floats(1e3, 1e7), disturbances=st.lists(st.booleans(), max_size=300))
@settings(max_examples=100)
def test_disturbed_trials_never_move_the_answer(at: float, disturbances: list[bool]) -> None:
    """INVALID trials of the host, fewer in a row than the limit, change nothing but the number of trials."""
    pending = iter(disturbances)
    in_a_row = 0

    def device(load: float) -> OneTrial:
        nonlocal in_a_row
        in_a_row = in_a_row + 1 if next(pending, False) and in_a_row < 10 else 0
        return DISTURBED if in_a_row else cliff(at)(load)

    calm, found = find(cliff(at), plan()), find(device, plan())
    assert (found.value, found.upper, found.limited_by) == (calm.value, calm.upper, calm.limited_by)
    assert found.trials[Verdict.PASS] == calm.trials[Verdict.PASS]
    assert found.trials[Verdict.FAIL] == calm.trials[Verdict.FAIL]


@pytest.mark.parametrize("at", [999.0, 12_345.0, 700_123.0])
def test_loads_of_a_search_in_steps_are_multiples_of_the_step(at: float) -> None:
    found = find(cliff(at), plan(step=250.0, floor=250, start=50_000))
    assert all(one.load % 250 == 0 for one in found.attempts)
    assert found.upper is not None
    assert found.upper - found.value <= max(250, 0.01 * found.upper)
    assert found.value <= at < found.upper


def test_a_slow_tester_bounds_the_search_and_is_named(golden: Golden) -> None:
    found = find(lambda load: PASS if load <= 800_000 else SLOW_TESTER, plan())
    assert found.value == 800_000
    assert found.limited_by == "tester"
    assert found.trials[Verdict.FAIL] == 0
    golden(found.notes)
    assert sum(one.load == found.upper for one in found.attempts) == 1 + TESTER_REPEATS


def test_a_host_that_is_always_disturbed_is_named_and_the_limit_of_repeats_holds() -> None:
    found = find(lambda _load: DISTURBED, plan(invalid_repeats=4, most_trials=1000))
    assert (found.value, found.limited_by) == (0, "host")
    assert all(sum(one.load == load for one in found.attempts) == 5 for load in {a.load for a in found.attempts})


def test_where_stalls_excuse_most_of_a_loss_lower_loads_are_tried_before_a_load_is_given_up(golden: Golden) -> None:
    """Seen: a process of the device took the sender's core, and the minute was over before a lower load was tried."""
    found = find(lambda load: PASS if load <= 20_000 else SWAMPED, plan(confirm=False))
    assert found.value == pytest.approx(20_000, rel=0.01)
    assert (found.limited_by, found.trials[Verdict.FAIL]) == ("host", 0)
    times = Counter(one.load for one in found.attempts if one.outcome is SWAMPED)
    assert found.upper is not None
    assert times.pop(found.upper) == 11
    assert set(times.values()) == {1 + MOST_LOST_REPEATS}
    golden(found.notes)


@pytest.mark.parametrize(("back", "times"), [(50, 11), (49, 3)])
def test_only_the_loss_of_more_than_a_half_puts_a_load_off(back: int, times: int) -> None:
    excused = make_outcome(Verdict.INVALID, "simulated", make_counts(100, 100, back), limited_by="host", excused=True)
    found = find(lambda load: PASS if load <= 20_000 else excused, plan(confirm=False))
    assert [one.load == 50_000 for one in found.attempts].index(False) == times


@pytest.mark.parametrize("answer", [90_000, 300_000])
def test_a_load_that_was_put_off_is_tried_again_once_the_loads_below_it_pass(answer: int) -> None:
    swamped = iter([SWAMPED] * 5)
    found = find(lambda load: next(swamped, PASS) if load == 50_000 else cliff(answer)(load), plan(confirm=False))
    assert found.value == pytest.approx(answer, rel=0.01)
    assert (found.limited_by, found.trials[Verdict.INVALID]) == ("device", 5)
    assert not any("could not be decided" in note.text for note in found.notes)


@pytest.mark.parametrize("trials", range(1, 19))
def test_where_the_time_is_over_a_load_that_was_put_off_is_no_bound(trials: int) -> None:
    """Nothing is known of it; what passed below it is a bound."""
    answers = itertools.count()

    def device(load: float) -> OneTrial:
        if next(answers) == trials:
            raise TimeUpError("the time is used up")
        return PASS if load <= 20_000 else SWAMPED

    if trials <= 2 * (1 + MOST_LOST_REPEATS):
        with pytest.raises(TimeUpError, match=r"^the time is used up$"):
            find(device, plan())
        return
    found = find(device, plan(error=SearchError(share=0.2)))
    assert (found.upper, found.limited_by) == (None, "time")
    assert 12_500 <= found.value <= 20_000


@pytest.mark.parametrize("failing", [math.inf, 70_000])
@pytest.mark.parametrize("trials", range(9, 19))
def test_where_the_trials_are_at_their_end_a_load_that_was_put_off_is_no_bound(
    trials: int, failing: float, golden: Golden
) -> None:
    """Seen: its bounds were called as near as asked, and nobody had tried the upper one to the end."""

    def device(load: float) -> OneTrial:
        return PASS if load <= 20_000 else SWAMPED if load < failing else FAIL

    found = find(device, plan(start=80_000, error=SearchError(share=0.2), most_trials=trials))
    assert (found.upper, found.limited_by) == (None if failing == math.inf else 80_000, "host")
    assert 12_500 <= found.value <= 20_000
    (note,) = (note for note in found.notes if note.word == "ended early")
    if trials == 18:
        golden(note.text)


def test_a_third_collapse_at_a_load_that_was_put_off_is_its_failure() -> None:
    answers = [COLLAPSED, COLLAPSED, *[SWAMPED] * 3, PASS, COLLAPSED]
    found = find(scripted(*answers), plan(start=400_000, error=SearchError(share=0.5)))
    assert len(found.attempts) == len(answers)
    assert (found.value, found.upper) == (50_000, 100_000)
    assert "ended early" not in {note.word for note in found.notes}


@pytest.mark.parametrize("trials", [1, 2, 4])
def test_where_the_trials_are_at_their_end_a_device_that_passed_all_is_not_the_limit(trials: int) -> None:
    """Seen: "limited by the device", which had passed whatever was tried."""
    found = find(lambda _load: PASS, plan(start=1000, most_trials=trials))
    assert (len(found.attempts), found.upper, found.limited_by) == (trials, None, "ranges")
    assert found.value == max(one.load for one in found.attempts)
    assert [note.word for note in found.notes] == ["ended early"]
    result = made([found.value], limited_by=found.limited_by, doubts=[{**asdict(found.notes[0]), "grade": "answer"}])
    assert (statement_of(result).lower, statement_of(result).upper) == (found.value, math.inf)


def test_a_device_that_is_gone_before_a_load_failed_is_the_limit() -> None:
    """Seen: the highest rate of the tester had passed, said a note, and no trial had been anywhere near it."""
    found = find(lambda load: PASS if load < 200_000 else GONE, plan())
    assert (found.value, found.upper, found.limited_by) == (100_000, None, "device")
    assert [note.word for note in found.notes] == ["ended early"]


def test_a_search_of_loads_that_are_all_put_off_has_no_answer_and_ends() -> None:
    found = find(lambda _load: SWAMPED, plan(floor=10_000, invalid_repeats=4))
    assert (found.value, found.limited_by) == (0, "host")
    times = Counter(one.load for one in found.attempts)
    assert times[min(times)] == 5
    assert all(number == 1 + MOST_LOST_REPEATS for load, number in times.items() if load > min(times))


def test_a_load_that_a_short_trial_put_off_is_tried_again_at_full_length() -> None:
    asked = plan(error=SearchError(share=0.5), short_probes=True, confirm=False)
    found = find(lambda load: PASS if load <= 20_000 else SWAMPED, asked)
    assert (found.value, found.upper, found.limited_by) == (12_500, 25_000, "host")
    assert [one.short for one in found.attempts if one.load == 25_000] == [True] * 3 + [False] * 8


@pytest.mark.parametrize(
    ("device", "value", "limited_by"),
    [
        (lambda load: SLOW_TESTER if load < 60_000 else cliff(200_000)(load), 200_000, "device"),
        (lambda load: DISTURBED if load < 60_000 else cliff(200_000)(load), 0, "host"),
        (lambda load: PASS if load <= 100_000 else SLOW_TESTER, 100_000, "tester"),
        (lambda load: SLOW_TESTER if load < 60_000 else FAIL, 0, "device"),
        (lambda _load: SLOW_TESTER, 0, "tester"),
    ],
)
def test_of_bursts_only_the_short_ones_are_what_the_tester_cannot_send_in_time(
    device: Callable[[float], OneTrial], value: float, limited_by: LimitedBy
) -> None:
    found = find(device, plan(whole=True))
    assert found.value == pytest.approx(value, rel=0.011)
    assert found.limited_by == limited_by


def test_a_load_that_failed_is_not_put_off_by_trials_that_verify_it() -> None:
    asked = plan(start=300_000, confirm=False, loss_verifications=1)
    found = find(scripted(FAIL, *[SWAMPED] * 3), asked)
    assert (found.upper, found.limited_by) == (300_000, "device")
    assert not any("could not be decided" in note.text for note in found.notes)


def test_a_device_limit_below_the_testers_is_still_the_devices() -> None:
    """Undecided loads above do not hide a real FAIL below."""

    def device(load: float) -> OneTrial:
        return SLOW_TESTER if load > 1e6 else cliff(300_000)(load)

    found = find(device, plan())
    assert found.limited_by == "device"
    assert found.value == pytest.approx(300_000, rel=0.01)


def test_a_false_pass_at_the_end_is_found_by_confirming() -> None:
    """The load passes once by luck and fails the next two times: the answer lies below it, and the note says why."""
    lucky = iter([True])

    def device(load: float) -> OneTrial:
        return PASS if load > 500_000 and next(lucky, False) else cliff(500_000)(load)

    found = find(device, plan(start=450_000))
    assert found.value <= 500_000
    assert found.value == pytest.approx(500_000, rel=0.01)
    assert any(note.word == "contradictions" for note in found.notes)


def test_a_false_fail_at_the_end_is_found_by_confirming(golden: Golden) -> None:
    """One unlucky FAIL far below the cliff does not stay: the upper bound is tried again and the search goes on."""
    unlucky = iter([True])

    def device(load: float) -> OneTrial:
        return FAIL if load > 300_000 and next(unlucky, False) else cliff(900_000)(load)

    found = find(device, plan())
    assert found.value == pytest.approx(900_000, rel=0.01)
    golden(found.notes)
    assert find(device, plan(confirm=False)).value > 0


def test_loss_verification_forgives_rare_loss() -> None:
    asked = plan(start=TOP, confirm=False, loss_verifications=2)
    assert find(scripted(FAIL, FAIL, PASS), asked).value == TOP
    stricter = plan(start=TOP, confirm=False, loss_verifications=1)
    assert find(scripted(FAIL, FAIL, PASS), stricter).value < TOP


def test_a_full_table_is_recognised_in_few_trials() -> None:
    found = find(lambda _load: FULL_TABLE, plan(start=1e6, confirm=False))
    assert (found.value, found.limited_by) == (0, "table")
    assert len(found.attempts) == 2


def test_a_device_that_collapses_is_not_tried_again_there() -> None:
    asked = plan(start=150_000)
    found = find(lambda load: PASS if load <= 390_000 else (COLLAPSED if load > 500_000 else FAIL), asked)
    assert found.value == pytest.approx(390_000, rel=0.01)
    collapsed = [one.load for one in found.attempts if one.outcome.verdict is Verdict.COLLAPSED]
    assert collapsed == [600_000]
    assert any("collapsed" in note.text for note in found.notes)


def test_a_load_that_collapsed_the_device_is_confirmed_as_any_other() -> None:
    asked = plan(start=300_000, error=SearchError(share=0.5))
    found = find(lambda load: PASS if load <= 300_000 else COLLAPSED, asked)
    assert [one.load for one in found.attempts] == [300_000, 600_000, 300_000, 600_000]
    assert (found.value, found.upper) == (300_000, 600_000)


@pytest.mark.parametrize("trial", range(6))
def test_a_single_collapse_that_the_load_did_not_cause_does_not_bound_the_answer(trial: int) -> None:
    answers = itertools.count()
    found = find(
        lambda load: COLLAPSED if next(answers) == trial else (PASS if load <= 390_000 else FAIL), plan(start=150_000)
    )
    assert found.value == pytest.approx(390_000, rel=0.02)


def test_a_contradiction_that_cannot_be_settled_counts_against_the_load() -> None:
    """It passed once and failed once, and every third trial is INVALID: no steady answer stands behind that load."""
    answers = iter([PASS, FAIL])

    def device(load: float) -> OneTrial:
        return next(answers, DISTURBED) if load > 500_000 else PASS

    found = find(device, plan(start=TOP, invalid_repeats=2))
    assert found.value == pytest.approx(500_000, rel=0.01)


def test_an_estimate_far_too_low_does_not_throw_the_search_down() -> None:
    """An overloaded device may forward next to nothing; one guess goes down 16 times at most."""
    found = find(cliff(2e6), plan(start=TOP), lambda: 1.0)
    assert [one.load for one in found.attempts][:2] == [TOP, TOP / 16]


def test_a_device_that_keeps_collapsing_ends_the_search(golden: Golden) -> None:
    found = find(lambda load: PASS if load <= 100_000 else COLLAPSED, plan())
    assert found.trials[Verdict.COLLAPSED] == 3
    assert found.value <= 100_000
    (note,) = (note for note in found.notes if note.word == "ended early")
    golden(note.text)


@given(st.sets(st.integers(0, 40), max_size=20), errors)
@settings(max_examples=100)
def test_a_non_monotonic_device_gets_a_supported_answer_between_a_pass_and_a_fail(
    bad: set[int], error: SearchError
) -> None:
    """Any pattern of good and bad bands: the answer passed, the bound above it failed, and they are near."""

    def device(load: float) -> OneTrial:
        return FAIL if int(load / 400_000) in bad else PASS

    found = find(device, plan(error=error))
    assert supported(found)
    assert device(found.value).verdict is Verdict.PASS or found.value == 0
    if found.upper is not None:
        assert device(found.upper).verdict is Verdict.FAIL
        assert found.value == 0 or found.upper - found.value <= error.width(found.upper) * (1 + 1e-9)


@given(st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_a_device_that_throws_dice_ends_the_search_with_a_supported_answer(dice: random.Random) -> None:
    found = find(lambda _load: dice.choice([PASS, FAIL, DISTURBED, SLOW_TESTER]), plan(most_trials=150))
    assert supported(found)
    assert len(found.attempts) <= 150
    assert sum(found.trials.values()) == len(found.attempts)


@pytest.mark.parametrize("confirm", [True, False])
@pytest.mark.parametrize("top", [1.5e6, TOP])
def test_the_answer_of_a_search_with_probes_passed_at_full_length(top: float, *, confirm: bool) -> None:
    """A device that holds 2 M for a short time and 1 M for long: probes are not the answer."""
    asked = SearchPlan(
        top=top, start=100_000, floor=100, error=ONE_PERCENT, unit="frames/s", short_probes=True, confirm=confirm
    )

    def trial(load: float, short: bool, _bounds: Bounds) -> OneTrial:  # noqa: FBT001 - the search's signature
        return cliff(2e6 if short else 1e6)(load)

    found = search(asked, trial, lambda _outcome: None)
    assert found.value == pytest.approx(1e6, rel=0.01)
    assert found.value <= 1e6
    assert supported(found)
    assert any(one.short for one in found.attempts)


def test_the_forwarding_rate_of_a_failed_trial_saves_trials() -> None:
    asked = plan(start=TOP)
    told, untold = find(cliff(700_000), asked, lambda: 700_000.0), find(cliff(700_000), asked)
    assert len(told.attempts) < len(untold.attempts)
    assert told.value == pytest.approx(untold.value, rel=0.011)


def test_bounds_and_the_estimate_of_trials_left_shrink_towards_the_end() -> None:
    seen: list[Bounds] = []

    def trial(load: float, _short: bool, bounds: Bounds) -> OneTrial:  # noqa: FBT001 - the search's signature
        seen.append(bounds)
        return cliff(700_000)(load)

    found = search(plan(), trial, lambda _outcome: None)
    assert (seen[0].lower, seen[0].upper) == (None, None)
    # Until a trial fails: 6 halvings of half of all rates, 3 trials to find the bounds, 2 to confirm them.
    assert [bounds.trials_left for bounds in seen] == [11] * 5 + [8, 7, 6, 5, 4, 3, 2, 2]
    lowers = [bounds.lower for bounds in seen if bounds.lower is not None]
    assert lowers == sorted(lowers)
    assert (seen[-1].lower, seen[-1].upper) == (found.value, found.upper)


def test_bounds_that_are_far_apart_leave_the_trials_that_find_near_ones() -> None:
    seen: list[int | None] = []

    def trial(load: float, _short: bool, bounds: Bounds) -> OneTrial:  # noqa: FBT001 - the search's signature
        seen.append(bounds.trials_left)
        return cliff(2e6)(load)

    search(plan(start=TOP), trial, lambda _outcome: 1.0)
    # A sixteenth passes, and then doubled loads, up to the last one that fails.
    assert seen[:7] == [11, 11, 11, 11, 8, 8, 7]


def test_where_the_time_is_over_before_the_bounds_are_tried_again_they_stay_and_it_is_told(golden: Golden) -> None:
    tried: set[float] = set()

    def device(load: float) -> OneTrial:
        if load in tried:
            raise TimeUpError("the time is used up")
        tried.add(load)
        return cliff(700_000)(load)

    found = find(device, plan())
    assert (found.value, found.upper, found.limited_by) == (700_000, 706_250, "device")
    golden(found.notes)


def test_where_the_time_is_over_a_load_that_stayed_invalid_is_no_upper_bound(golden: Golden) -> None:
    """The device passed 100,000; nobody knows what it does with 200,000, at which all trials were disturbed."""

    def device(load: float) -> OneTrial:
        if load not in (50_000, 100_000, 200_000):
            raise TimeUpError("the time is used up")
        return DISTURBED if load == 200_000 else PASS

    found = find(device, plan())
    assert (found.value, found.upper, found.limited_by) == (100_000, None, "time")
    golden(found.notes)


def test_a_load_that_passed_a_short_trial_and_outlasts_the_time_out_in_full_is_searched_below() -> None:
    tried: list[float] = []

    def trial(load: float, short: bool, _bounds: Bounds) -> OneTrial:  # noqa: FBT001 - the search's signature
        if load > (90_000 if short else 40_000):
            raise OutlastedError("it takes too long")
        tried.append(load)
        return PASS

    found = search(plan(short_probes=True), trial, lambda _outcome: None)
    assert found.value == pytest.approx(40_000, rel=0.011)
    assert (found.upper, found.limited_by) == (None, "time")
    assert max(tried) > 40_000


def test_a_load_that_the_tester_is_too_slow_for_bounds_a_search_in_which_a_higher_one_was_too_long() -> None:
    """It was no bound any more, and the search said that the highest load had passed."""

    def device(load: float) -> OneTrial:
        if load > 150_000:
            raise OutlastedError("it takes too long")
        return PASS if load <= 140_000 else SLOW_TESTER

    found = find(device, plan())
    assert found.value == pytest.approx(140_000, rel=0.011)
    assert found.upper == pytest.approx(140_000, rel=0.011)
    assert (found.limited_by, found.trials[Verdict.FAIL]) == ("tester", 0)
    assert not any("passed: the device may do more" in note.text for note in found.notes)


def test_a_short_trial_that_passed_does_not_show_that_lower_loads_have_shorter_full_ones() -> None:
    """All lower loads passed short trials, one after the other, and none had a full one."""
    tried: list[float] = []

    def trial(load: float, short: bool, _bounds: Bounds) -> OneTrial:  # noqa: FBT001 - the search's signature
        if not short:
            raise OutlastedError("it takes too long")
        tried.append(load)
        return cliff(90_000)(load)

    with pytest.raises(TimeUpError):
        search(plan(short_probes=True), trial, lambda _outcome: None)
    assert tried == [50_000, 100_000]


def test_a_load_that_failed_and_outlasts_the_time_out_when_it_is_verified_has_failed() -> None:
    tried: set[float] = set()

    def device(load: float) -> OneTrial:
        if load in tried:
            raise OutlastedError("it takes too long")
        tried.add(load)
        return cliff(300_000)(load)

    found = find(device, plan(start=TOP, confirm=False, loss_verifications=1))
    assert found.value == pytest.approx(300_000, rel=0.011)
    assert (found.upper, found.limited_by) == (min(load for load in tried if load > 300_000), "device")


@pytest.mark.parametrize("is_gentle", [False, True])
def test_no_search_has_a_result_of_loads_that_all_outlast_the_time_out(*, is_gentle: bool) -> None:
    """As of connections: the lower the rate, the longer is the trial. At last every load outlasts it."""

    def device(load: float) -> OneTrial:
        if is_gentle or load < 20_000:
            raise OutlastedError("it takes too long")
        return FAIL

    with pytest.raises(OutlastedError if is_gentle else TimeUpError):
        find(device, plan())
