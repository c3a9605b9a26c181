# SPDX-License-Identifier: Apache-2.0
"""Checks of what made a search's bounds: which are made, what they show, and what is said of those that were not."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from tests.plans import PlanOfTrial
from tests.unit.counted import make_counts, make_outcome
from tests.unit.golden import Golden

from natgauge.causes.cause import Cause
from natgauge.inputs.measuring_types import SearchError
from natgauge.late_delays import LateDelays
from natgauge.procedures.kit.binary_search import Bracket, Load, SearchPlan, search
from natgauge.procedures.kit.losses import RARE_ABOVE, Faults, PermanentLoss, Reason, Through, bucket_suspected, clearer
from natgauge.procedures.kit.results import Attempt, Measurement
from natgauge.procedures.kit.runner import Bounds, TimeBudget, TimeUpError, nominal_seconds, nothing_passed
from natgauge.trials import Direction, Phase2Plan, RateStep, Trial

FRAMES = 1_000_000


def searched(*, time_ends: bool) -> Measurement:
    """Of a device that can do 410 and loses a frame up to 420; no trial shows what is a little above the bound."""
    failed: set[float] = set()

    def trial(rate: float, _short: bool, _bounds: Bounds) -> Trial:  # noqa: FBT001 - the search's signature
        if any(math.isclose(rate, RARE_ABOVE * load) for load in failed):
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


def test_what_a_first_failure_forwarded_is_believed_and_that_of_a_later_one_only_where_it_is_lower() -> None:
    """A device that loses a frame now and then forwards nearly all at rates that are too high, too."""
    bracket = Bracket(1000.0, SearchError(rate=10.0))
    found = [bracket.below(Load(1000.0, fails=1, forwarded=rate)) for rate in (990.0, 990.0, 500.0, None, 990.0)]
    assert found == [
        (986.0, False),
        (pytest.approx(1000 / 1.2), False),
        (496.0, True),
        (pytest.approx(1000 / 1.8), True),
        (500.0, True),
    ]


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
        shows = any(math.isclose(rate, RARE_ABOVE * load) for load in failed)
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


@pytest.mark.parametrize("has_fewer", [False, True])
def test_only_a_search_that_can_try_fewer_connections_looks_for_those_that_a_device_takes_at_once(
    has_fewer: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    def trial(rate: float, _short: bool, _bounds: Bounds) -> Trial:  # noqa: FBT001 - the search's signature
        return PASSED if rate <= 100_000 else failed_of(int(FRAMES * (1 - 100_000 / rate) / 2))

    plan = SearchPlan(top=16e6, start=90_000, floor=100, error=SearchError(share=0.01), unit="frames/s")
    found = search(plan, trial, lambda _outcome: None, (lambda *_: NOTHING_SAID) if has_fewer else None)
    assert any(note.word == "bucket" for note in found.notes) is has_fewer


SHARE = PermanentLoss(kind="lost", share=0.5, lowest=1e3, highest=8e3, passed=False, phase1=True, kept=500, frames=1000)
SMALL, SMALLER = replace(SHARE, share=0.01), replace(SHARE, share=0.002)
MORE, COUNTED = replace(SHARE, more=Through(700, 2e3)), replace(SHARE, counted=600)


@pytest.mark.parametrize(
    ("loss", "verdict", "bad", "reason", "checked", "trials"),
    [
        (SHARE, "PASS", 0, Reason.NUMBER, 40, 1),
        (SHARE, "FAIL", 10, Reason.SHARE, 40, 1),
        (SHARE, "FAIL", 30, Reason.SHARE, 40, 1),
        # Neither all of them nor the share.
        (SHARE, "FAIL", 9, Reason.UNKNOWN, 0, 1),
        (SHARE, "FAIL", 31, Reason.UNKNOWN, 0, 1),
        # Nothing of the frames, or of a device that works.
        (SHARE, "FAIL", 0, Reason.UNKNOWN, 0, 1),
        (SHARE, "COLLAPSED", 20, Reason.UNKNOWN, 0, 1),
        (SHARE, None, 0, Reason.UNKNOWN, 0, 1),
        (MORE, "PASS", 0, Reason.UNKNOWN, 40, 1),
        (MORE, "FAIL", 20, Reason.UNKNOWN, 40, 1),
        (COUNTED, "PASS", 0, Reason.UNKNOWN, 40, 1),
        (COUNTED, "FAIL", 20, Reason.SHARE, 40, 1),
        # 4.5 are expected of 450, so a single trial that loses none shows nothing; and 5 of them none of 0.9 each.
        (SMALL, "PASS", 0, Reason.NUMBER, 450, 2),
        (SMALLER, "PASS", 0, Reason.UNKNOWN, 0, 0),
        (replace(SHARE, phase1=False), "PASS", 0, Reason.UNKNOWN, 0, 0),
        (replace(SHARE, kind="late"), "PASS", 0, Reason.UNKNOWN, 0, 0),
    ],
)
def test_trials_of_fewer_connections_show_the_reason_of_a_loss_at_every_rate(  # noqa: PLR0917 - a table
    loss: PermanentLoss, verdict: str | None, bad: int, reason: Reason, checked: int, trials: int
) -> None:
    asked = list[tuple[float, int]]()

    def fewer(rate: float, connections: int) -> Trial | None:
        asked.append((rate, connections))
        counts = make_counts(connections, connections, connections - bad)
        return None if verdict is None else make_outcome(verdict, "loss", counts, limited_by="device", failed_phase=1)

    found = loss.explained(fewer)
    assert (found.reason, found.checked, len(asked)) == (reason, checked, trials)
    assert set(asked) <= {(8e3, checked or 40)}
    assert found.bad_of_checked == (bad / 40 if checked else 0)


@pytest.mark.parametrize(
    ("cause", "word"),
    [
        (None, "table inferred"),
        (Cause("not known", limit=2000), "loss at every rate"),
        (Cause("table", "seen", limit=500), "loss at every rate"),
        (Cause("port pool", "guess"), "loss at every rate"),
    ],
)
def test_a_number_that_a_device_holds_is_told_with_what_is_known_of_its_cause(
    cause: Cause | None, word: str, golden: Golden
) -> None:
    note = replace(SHARE, reason=Reason.NUMBER, checked=40, causes=() if cause is None else (cause,)).note("frames/s")
    assert note.word == word
    golden(note.text)


def late_at(*rates: float) -> list[tuple[float, Trial]]:
    """Trials at these rates of which no frame came back in time."""
    counts = make_counts(100, 100, 0, late=100)
    return [(rate, make_outcome("FAIL", "late", counts, limited_by="device", failed_phase=1)) for rate in rates]


def passed(rate: float, frames: int) -> tuple[float, Trial]:
    return rate, make_outcome("PASS", phase1=make_counts(frames, frames, frames))


@pytest.mark.parametrize(
    ("seen", "suspected", "proven"),
    [
        ([], False, False),
        (late_at(1e3), True, False),
        (late_at(1e3, 7.9e3), True, False),
        (late_at(1e3, 7.93e3), True, True),
        (late_at(1e3, 4e3, 8e3), True, True),
        ([*late_at(1e3, 8e3), passed(2e3, 19)], True, True),
        ([*late_at(1e3, 8e3), passed(2e3, 20)], False, False),
        ([*late_at(1e3, 8e3), (500.0, failed_of(1))], False, False),
        ([*late_at(1e3, 8e3), (2e3, failed_of(1))], True, True),
    ],
)
def test_a_delay_at_every_rate_is_one_of_all_frames_of_the_slowest_trials(
    seen: list[tuple[float, Trial]], *, suspected: bool, proven: bool
) -> None:
    faults = Faults()
    for rate, outcome in seen:
        faults.add(rate, outcome)
    for found, is_late in ((faults.suspected(), suspected), (faults.proven(), proven)):
        assert (found is not None and found.kind == "late") is is_late


def lossy(*lost: int, limited_by: str = "device") -> list[tuple[float, Trial]]:
    """Failed trials at 200 frames/s, which last long enough, at twice as many ..."""
    counts = [make_counts(1000, 1000, 1000 - number) for number in lost]
    outcomes = (make_outcome("FAIL", "loss", each, limited_by=limited_by, failed_phase=1) for each in counts)
    return [(200.0 * 2**at, outcome) for at, outcome in enumerate(outcomes)]


@pytest.mark.parametrize(
    ("seen", "proven"),
    [
        (lossy(10, 9, 11, 10), True),
        (lossy(2, 3, 2, 3), True),
        (lossy(10, 9, 11, 10, limited_by="server"), False),
        # Fewer frames may have had other reasons; fewer trials, or rates nearer to each other, prove nothing.
        (lossy(2, 2, 2, 3), False),
        (lossy(10, 10, 10), False),
        # An overload loses a larger share, the higher the rate is.
        (lossy(10, 20, 40, 80), False),
        # One that passed had too few frames, or it should have lost some.
        ([*lossy(10, 10, 10, 10), passed(600.0, 250)], True),
        ([*lossy(10, 10, 10, 10), passed(600.0, 251)], False),
        ([*lossy(100, 100, 100, 100), passed(600.0, 40)], True),
        ([*lossy(100, 100, 100, 100), passed(600.0, 50)], False),
        # Of fewer frames that came through the share is not known.
        (lossy(980, 980, 980, 980), True),
        (lossy(981, 981, 981, 981), False),
    ],
)
def test_a_loss_at_every_rate_is_proven_by_trials_that_one_share_explains(
    seen: list[tuple[float, Trial]], *, proven: bool
) -> None:
    faults = Faults()
    for rate, outcome in seen:
        faults.add(rate, outcome)
    found = faults.proven()
    assert (found is not None) is proven
    if found is not None:
        assert (found.kind, found.lowest, found.highest, found.passed) == ("lost", 200.0, 1600.0, len(seen) > 4)


@pytest.mark.parametrize(
    ("share", "delays"),
    [
        (1.0, None),
        (0.5, LateDelays(100, 0.03, 0.05, 0.04)),
        (1.0, LateDelays(100, 0.03, 0.05, 0.04, limit=0.02)),
    ],
)
def test_late_frames_are_told_with_their_delays(share: float, delays: LateDelays | None, golden: Golden) -> None:
    golden(replace(SHARE, kind="late", share=share, late_delays=delays).note("frames/s").text)


def failing(*trials: tuple[float, float], limited_by: str = "device") -> list[Attempt]:
    """Failed trials: rates, and the shares of a million connections that were lost."""
    counts = [make_counts(10**6, 10**6, round(10**6 * (1 - lost))) for _, lost in trials]
    outcomes = (make_outcome("FAIL", "loss", each, limited_by=limited_by, failed_phase=1) for each in counts)
    return [Attempt(rate, short=False, outcome=one) for (rate, _), one in zip(trials, outcomes, strict=True)]


@pytest.mark.parametrize(
    ("failed", "share", "lasting"),
    [
        # Half of what an overload without a bucket loses.
        (failing((2e5, 0.25)), 0.5, 5e4),
        # Of N connections N (1 - r/X) - B are lost: r = 40,000/s and B = 0.55 N.
        (failing((1.5e5, 0.18333333), (2e5, 0.25)), 0.55, 4e4),
        (failing((1.6e5, 0.2), (2e5, 0.25)), 0.55, 4e4),
        # Rates so near to each other show no more than one of them.
        (failing((1.61e5, 0.2), (2e5, 0.25)), 0.5, 5e4),
        # Their losses are not those of a bucket.
        (failing((1.5e5, 0.25), (2e5, 0.25)), 0.5, 5e4),
        (failing((1.5e5, 0.01), (2e5, 0.25)), 0.5, 5e4),
        (failing((2e5, 0.44)), 0.12, 8.8e4),
        (failing((2e5, 0.06)), 0.88, 1.2e4),
    ],
)
def test_a_bucket_is_suspected_by_what_failed_trials_lost(failed: list[Attempt], share: float, lasting: float) -> None:
    bucket = bucket_suspected(failed, 1e5)
    assert bucket is not None
    assert (bucket.share, bucket.lasting) == pytest.approx((share, lasting), rel=1e-5)
    assert bucket.trial == (1.25e5, 250_000)


@pytest.mark.parametrize(
    "failed",
    [[], failing((2e5, 0.46)), failing((2e5, 0.04)), failing((1.04e5, 0.02)), failing((2e5, 0.25), limited_by="table")],
)
def test_none_is_suspected_by_what_an_overload_or_a_rare_loss_explains(failed: list[Attempt]) -> None:
    assert bucket_suspected(failed, 1e5) is None


@pytest.mark.parametrize(
    ("failed", "rate"),
    [
        ([], None),
        (failing((1.4e5, 0.1)), 2e5),
        (failing((1.4e5, 0.27)), None),
        (failing((1.5e5, 0.1)), None),
        (failing((1.2e5, 0.1), (1.4e5, 0.1)), 2e5),
        (failing((1.2e5, 0.1), (1.6e5, 0.1)), None),
    ],
)
def test_a_clearer_trial_is_wanted_where_all_that_hint_at_a_bucket_are_near(
    failed: list[Attempt], rate: float | None
) -> None:
    assert clearer(failed, 1e5) == rate


#: Options that are advised.
TIME_HELPS = "--most-seconds"


def attempts(*trials: tuple[float, int]) -> list[Attempt]:
    """Trials of 20,000 frames: load, and lost frames; without one they passed."""
    made = []
    for load, lost in trials:
        counts = make_counts(intended=20_000, offered=20_000, received=20_000 - lost)
        verdict = "FAIL" if lost else "PASS"
        made.append(Attempt(load, short=False, outcome=make_outcome(verdict, "", counts)))
    return made


def test_rare_loss_is_named_where_a_much_faster_trial_was_overloaded_and_one_passed_by_chance(golden: Golden) -> None:
    """Seen with a loss of 1 in 100,000 and a trial beyond the device's rate: the advice was more time."""
    seen = attempts((11_153, 2), (10_595, 1), (89_227, 4_758), (31_547, 1), (53_055, 2), (6_566, 1), (18_664, 0))
    error = str(nothing_passed(6_566, "transactions/s", seen, TimeUpError("8.2 s of 40 s are left")))
    golden(error)


@pytest.mark.parametrize(
    "trials",
    [
        [(40_000, 10_000), (35_000, 2_857), (30_500, 10), (30_100, 1)],
        [(40_000, 1), (35_000, 1), (30_500, 1)],
        [(80_000, 1), (40_000, 1)],
        [(80_000, 1), (40_000, 1), (35_000, 1), (20_000, 400)],
    ],
)
def test_an_overload_or_too_few_trials_are_no_rare_loss(trials: list[tuple[float, int]]) -> None:
    error = str(nothing_passed(trials[-1][0], "", attempts(*trials), TimeUpError("the time is used up")))
    assert "loss-tolerance" not in error


def test_a_trial_begins_only_where_it_fits(golden: Golden) -> None:
    now = [0.0]
    budget = TimeBudget(10.0, clock=lambda: now[0])
    plan = PlanOfTrial(connections=10, phase1_rate=1.0)
    budget.allow(plan)
    now[0] = 1.0
    with golden.raises(TimeUpError):
        budget.allow(plan)
    now[0] = 11.0
    with golden.raises(TimeUpError):
        budget.allow(PlanOfTrial(connections=1, phase1_rate=1e6))
    assert budget.left == 0
    assert TimeBudget(None).left is None


def test_the_time_of_a_trial_is_that_of_both_phases_and_of_a_step() -> None:
    phase2 = Phase2Plan(1.0, 0.0, 3.0, step=RateStep(0.5, 4.0))
    assert nominal_seconds(PlanOfTrial(10, 5.0, phase2)) == 2 + 3 + 4
    assert nominal_seconds(PlanOfTrial(10, 5.0, phase2, stateless=True)) == 7


def failing_at(load: float, **outcome: Any) -> Attempt:
    return Attempt(load, short=False, outcome=make_outcome("FAIL", "lost", **outcome))


def ended(*every: Attempt, unit: str = "frames/s") -> TimeUpError:
    """The error after these attempts, of which the first was at the lowest load."""
    return nothing_passed(every[0].load, unit, list(every), TimeUpError("end"))


def test_frames_to_connections_that_were_not_opened_are_lost_frames_of_all_that_were_due(golden: Golden) -> None:
    """60,000 of 40,000 frames were said to be lost."""
    down = {Direction.RESPONDER: make_counts(100_000, 40_000, 40_000, unopened=60_000)}
    golden(str(ended(failing_at(1000.0, phase2=down))))
    few = {Direction.RESPONDER: make_counts(1000, 999, 999, unopened=1)}
    assert "rare loss" in str(ended(*(failing_at(load, phase2=few) for load in (1.0, 2.0, 4.0))))


def test_the_error_says_what_changes_a_rare_loss_of_a_known_cause(golden: Golden) -> None:
    counts = make_counts(20_000, 20_000, 19_999)
    cause = Cause("checksum", "seen", hop="out", remedy="--zero-checksum accept", frames=1, lost=1)
    golden(str(ended(*(failing_at(load, phase1=counts, cause=cause) for load in (1000.0, 2000.0, 4000.0)))))


def test_more_time_is_not_advised_where_the_slowest_trial_failed_for_a_cause_that_no_rate_changes(
    golden: Golden,
) -> None:
    """Seen of Open vSwitch: it found no free port for 1 % of 200,000 connections, and fast trials overloaded it."""
    ports = Cause("port pool", "seen", hop="gateway", remedy="more outside ports", frames=200, lost=200)
    process = Cause("process", "seen", hop="gateway", remedy="a lower rate", frames=9_000, lost=9_000)
    slow = failing_at(1000.0, phase1=make_counts(20_000, 20_000, 19_800), cause=ports)
    fast = failing_at(9000.0, phase1=make_counts(20_000, 20_000, 11_000), cause=process)
    error = ended(slow, fast, unit="connections/s")
    golden(str(error))
    assert not error.remedy
    assert ports.remedy in str(error)
    # An overload has another answer at a lower rate.
    assert TIME_HELPS in ended(fast, unit="connections/s").remedy
