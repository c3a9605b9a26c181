# SPDX-License-Identifier: Apache-2.0
"""Latency and delay variation (RFC 8219 section 7) against simulated gateways of known delays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import pytest
from tests.unit.counted import make_counts
from tests.unit.simulated import Gateway

from natgauge.doubts import find
from natgauge.errors import BrokenError, UsageError
from natgauge.measurements.making import make
from natgauge.measurer import Ability, Delays, Direction, TrialOutcome, TrialPlan, Variation
from natgauge.procedures import ipdv, latency, pdv
from natgauge.procedures.kit.events import Event
from natgauge.procedures.kit.measure.delay_metrics import MOST_STALLED, Timing, read
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.records.parameters import Parameters
from natgauge.reports.text import verdict
from natgauge.words import Placement, Verdict

N = 1000
US = 1e-6
VARIATION = frozenset({Ability.VARIATION})


def measure(metric: ModuleType, gateway: Gateway, **others: Any) -> MeasurementResult:
    given = {"repeat": 1, "connection_rate": 1e5, "throughput_rate": 1e5, "trial_seconds": 2.0, **others}
    result: MeasurementResult = metric.PROCEDURE.measure(
        gateway, metric.PROCEDURE.settings(connections=N, placement=gateway.placement, **given)
    )
    return result


def test_typical_is_the_median_and_worst_case_the_percentile() -> None:
    delays = [*([10 * US] * 1500), *([40 * US] * 497), *([900 * US] * 3)]
    result = measure(latency, Gateway(delays=delays))
    assert result.summary.median == pytest.approx(10)
    assert result.figures["worst_case_latency_us"].median == pytest.approx(900)
    assert result.figures["maximum_us"].median == pytest.approx(900)
    assert result.figures["typical_latency_us_from_responder"].median == pytest.approx(10)


@dataclass(slots=True)
class _HeldUp(Gateway):
    """A core stands still in timed trials, so many of 1,000 timed frames are due then and are 25 ms late.

    Attributes:
        held: frames in each timed trial, the last one also in all later ones; None = nobody knows how many.
    """

    held: Sequence[int | None] = (0,)
    timed: int = 0

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """Disturbed where frames were due in stalls."""
        if not plan.record_delays:
            return Gateway.measure(self, plan)
        held = self.held[min(self.timed, len(self.held) - 1)]
        self.timed += 1
        late = 25 if held is None else held
        self.delays = [*([10 * US] * (1000 - late)), *([25_000 * US] * late)]
        outcome = Gateway.measure(self, plan)
        # The simulation times 2,000 frames.
        due = None if held is None else 2 * held
        delays = {direction: replace(one, due_in_stalls=due) for direction, one in outcome.delays.items()}
        return replace(outcome, delays=delays, disturbed=late > 0)


def stalls_doubt(result: MeasurementResult) -> list[str]:
    return [doubt.text for doubt in find(result, Parameters()) if doubt.word == "frames in stalls"]


@pytest.mark.parametrize("metric", [latency, pdv, ipdv])
def test_a_timed_trial_whose_percentile_is_the_hosts_is_repeated(metric: ModuleType) -> None:
    """Published: a worst case of 25 ms of a gateway that needs 10 us, since one core was away for 50 ms of 2 s."""
    gateway = _HeldUp(held=[25, 2, 0], abilities=VARIATION)
    result = measure(metric, gateway, loads="100%")
    assert result.trials["INVALID"] == 2
    assert max(one.median for name, one in result.figures.items() if name.endswith("_us")) == pytest.approx(10, abs=10)
    assert not stalls_doubt(result)


@dataclass(slots=True)
class _SlowNowAndThen(Gateway):
    """Of 2,000 timed frames one takes 500 us, all others 20 us; and a core stands still for 4 ms.

    Attributes:
        stalled: frames that each timed trial delays by that, the last one also those of all later ones.
        timed: trials so far.
    """

    stalled: Sequence[int] = (0,)
    timed: int = 0

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """Disturbed where frames were due in stalls."""
        due = self.stalled[min(self.timed, len(self.stalled) - 1)]
        self.timed += 1
        self.delays = [*([20 * US] * (1999 - due)), 500 * US, *([4_000 * US] * due)]
        outcome = Gateway.measure(self, plan)
        delays = {direction: replace(one, due_in_stalls=due) for direction, one in outcome.delays.items()}
        return replace(outcome, delays=delays, disturbed=due > 0)


@pytest.mark.parametrize("metric", [latency, pdv])
def test_few_frames_in_stalls_that_push_the_devices_own_tail_into_a_percentile_repeat_the_trial(
    metric: ModuleType,
) -> None:
    """Seen: a worst case of 500 us in place of 20 us without a doubt, for 0.1 % of the frames may be due in stalls."""
    result = measure(metric, _SlowNowAndThen(stalled=[2, 0]), loads="100%")
    assert result.trials["INVALID"] == 1
    assert (result.figures.get("worst_case_latency_us") or result.figures["delay_99_9_us"]).median == pytest.approx(20)
    assert not stalls_doubt(result)


def test_a_variation_that_moves_by_no_more_than_a_bucket_of_its_delays_repeats_no_trial() -> None:
    """99.9th percentiles of 101.0 and 100.5 us are one delay; beyond a minimum of 100 us they differ by half."""

    class _Steady(_SlowNowAndThen):
        __slots__ = ()

        def measure(self, plan: TrialPlan) -> TrialOutcome:
            outcome = Gateway.measure(self, plan)
            delays = {direction: replace(one, due_in_stalls=2) for direction, one in outcome.delays.items()}
            return replace(outcome, delays=delays, disturbed=True)

    delays = [*([100 * US] * 1990), *([100.5 * US] * 7), *([101 * US] * 3)]
    result = measure(pdv, _Steady(delays=delays), loads="100%")
    assert result.trials["INVALID"] == 0
    assert result.figures["pdv_without_stalls_us"].median == pytest.approx(0.5)
    assert result.summary.median == pytest.approx(1)


def test_where_every_trial_pushes_the_tail_both_figures_are_told() -> None:
    result = measure(latency, _SlowNowAndThen(stalled=[2]), loads="100%")
    (doubt,) = stalls_doubt(result)
    assert "worst_case_latency_us_from_initiator is 500, and 20 without as many of the slowest frames" in doubt
    assert doubt.startswith("at 100 % of the throughput ")
    assert result.figures["worst_case_latency_without_stalls_us"].median == pytest.approx(20)
    # The doubt speaks of figures that the result has.
    assert result.figures["worst_case_latency_us_from_initiator"].median == pytest.approx(500)
    assert result.figures["worst_case_latency_without_stalls_us_from_initiator"].median == pytest.approx(20)


def test_the_maximum_and_the_mean_are_told_without_stalls_but_repeat_no_trial() -> None:
    result = measure(latency, _SlowNowAndThen(stalled=[1]), loads="100%")
    assert result.trials["INVALID"] == 0
    figures = {name: one.median for name, one in result.figures.items() if name.startswith(("maximum", "mean"))}
    assert figures["maximum_us"] == pytest.approx(4_000)
    assert figures["maximum_without_stalls_us"] == pytest.approx(500)
    assert figures["mean_us"] == pytest.approx((1998 * 20 + 500 + 4_000) / 2000)
    assert figures["mean_without_stalls_us"] == pytest.approx((1998 * 20 + 500) / 1999)


def test_a_trial_that_counts_as_the_best_of_several_is_among_them_once() -> None:
    gateway = _HeldUp(held=[25, 30, 40, 50])
    result = measure(latency, gateway, loads="100%")
    (attempts,) = (one.attempts for one in result.measurements)
    assert [attempt.outcome.verdict for attempt in attempts] == [Verdict.PASS, *([Verdict.INVALID] * MOST_STALLED)]
    due = [attempt.outcome.delays[Direction.INITIATOR].due_in_stalls for attempt in attempts]
    assert due == [50, 60, 80, 100]


def test_whoever_watches_sees_which_trials_are_repeated_and_why() -> None:
    """Before, four trials of one load were shown as PASS, one after the other."""
    seen: list[TrialOutcome] = []
    settings = latency.LatencySettings(
        connections=N, placement="isolated", repeat=1, connection_rate=1e5, throughput_rate=1e5, trial_seconds=0.1,
        loads="100%",
    )  # fmt: skip

    def observe(event: Event) -> None:
        if event.outcome is not None and event.plan.record_delays:
            seen.append(event.outcome)

    latency.PROCEDURE.measure(_HeldUp(held=[25, 0]), settings, observe)
    assert [outcome.verdict for outcome in seen] == [Verdict.INVALID, Verdict.PASS]
    assert seen[0].reason == "2.50% of the timed frames were due while a core was stalled"


@dataclass(slots=True)
class _ThenTooSlow(_HeldUp):
    """After the first timed trial the tester is too slow for every one."""

    def measure(self, plan: TrialPlan) -> TrialOutcome:
        """INVALID from the second timed trial on."""
        outcome = _HeldUp.measure(self, plan)
        return outcome if self.timed < 2 else replace(outcome, verdict=Verdict.INVALID, limited_by="tester")


def test_a_trial_with_stalls_counts_where_all_others_say_nothing_for_another_reason() -> None:
    result = measure(latency, _ThenTooSlow(held=[25]), loads="100%", invalid_repeats=2)
    assert result.trials == {"PASS": 1, "FAIL": 0, "INVALID": 2, "COLLAPSED": 0}
    assert result.figures["worst_case_latency_without_stalls_us"].median == pytest.approx(10)
    (doubt,) = stalls_doubt(result)
    assert "in the only trial that measured the device: worst_case_latency_us_from_initiator is 2.5e+04, and" in doubt


@pytest.mark.parametrize(
    ("placement", "seconds", "doubts"), [("isolated", 0.5, 1), ("isolated", 2.0, 0), ("shared", 0.5, 0)]
)
def test_trials_so_short_that_an_unseen_stall_can_be_the_percentile_are_doubted(
    placement: Placement, seconds: float, doubts: int
) -> None:
    result = measure(latency, Gateway(placement=placement), trial_seconds=seconds)
    assert sum("shorter than 2 ms, which is not seen" in text for text in stalls_doubt(result)) == doubts


def test_frames_above_a_percentile_do_not_move_it_but_an_extreme() -> None:
    assert measure(latency, _HeldUp(held=[1]), loads="100%").trials["INVALID"] == 0
    assert measure(ipdv, _HeldUp(held=[1], abilities=VARIATION), loads="100%").trials["INVALID"] == MOST_STALLED


@pytest.mark.parametrize(("metric", "headline"), [(latency, "worst_case_latency"), (pdv, "pdv"), (ipdv, "ipdv_spread")])
def test_where_every_trial_is_held_up_the_best_one_counts_with_both_figures_and_a_doubt(
    metric: ModuleType, headline: str
) -> None:
    gateway = _HeldUp(held=[30, 25, 40, 50], abilities=VARIATION)
    result = measure(metric, gateway, loads="100%")
    assert (gateway.timed, result.trials["INVALID"]) == (MOST_STALLED + 1, MOST_STALLED)
    (doubt,) = stalls_doubt(result)
    assert "2.50% of the timed frames were due while a core was stalled, in the best of 4 trials" in doubt
    assert "the names of figures without them say without_stalls" in doubt
    assert result.figures[f"{headline}_us"].median >= 24_990
    assert 0 <= result.figures[f"{headline}_without_stalls_us"].median <= 10
    text = verdict(make(result, Parameters()))
    assert f"{headline.replace('_', ' ')} us" in text
    assert f"{headline.replace('_', ' ')} without stalls us" in text
    assert "frames in stalls" in text


def test_stalls_too_many_to_remember_may_have_held_up_every_frame() -> None:
    result = measure(latency, _HeldUp(held=[None]), loads="100%")
    assert result.trials["INVALID"] == MOST_STALLED
    (doubt,) = stalls_doubt(result)
    assert "an unknown part of the timed frames" in doubt
    # There are no such figures.
    assert "without_stalls" not in doubt
    assert "worst_case_latency_without_stalls_us" not in result.figures


def test_the_loads_of_one_measurement_are_repeated_each_for_itself() -> None:
    gateway = _HeldUp(held=[25, 25, 0, 25, 25, 0])
    result = measure(latency, gateway, loads="100%,50%")
    (rows,) = (one.series for one in result.measurements)
    assert [row["worst_case_latency_us"] for row in rows] == pytest.approx([10, 10])
    assert not stalls_doubt(result)


def test_where_the_time_ends_in_the_repeats_the_trial_that_there_was_counts() -> None:
    gateway = _HeldUp(held=[25])
    settings = latency.LatencySettings(
        connections=N, placement="isolated", repeat=1, connection_rate=1e5, throughput_rate=1e5, most_seconds=4.5
    )
    result = latency.PROCEDURE.measure(gateway, settings, clock=gateway.clock)
    assert gateway.timed == 2
    assert result.figures["worst_case_latency_without_stalls_us"].median == pytest.approx(10)
    assert stalls_doubt(result)
    assert any("the loads 90 %, 50 %, 10 % left out" in note.text for note in result.notes)


def test_each_load_has_its_own_trial_and_row() -> None:
    gateway = Gateway()
    (rows,) = (one.series for one in measure(latency, gateway).measurements)
    assert [row["load_percent"] for row in rows] == [100, 90, 50, 10]
    assert [plan.phase2.initiator_rate for plan in gateway.plans if plan.phase2] == pytest.approx([1e5, 9e4, 5e4, 1e4])
    assert all(plan.record_delays for plan in gateway.plans)


def test_the_throughput_is_measured_first_where_it_is_not_given() -> None:
    gateway = Gateway(establishes=2e5, forwards=3e5)
    measure(latency, gateway, connection_rate=None, throughput_rate=None, loads="100%")
    last = gateway.plans[-1]
    assert last.phase2 is not None
    assert 0.97 * 3e5 <= last.phase2.initiator_rate <= 3e5
    assert sum(plan.record_delays for plan in gateway.plans) == 1


def test_the_throughput_that_is_measured_first_is_told_and_literal_where_the_profile_is() -> None:
    """`rfc` took it from a search of 2 s trials within 2 %; RFC 2544 section 24 wants 60 s."""
    quick, literal = Gateway(forwards=3e5), Gateway(forwards=3e5)
    asked: dict[str, Any] = {"throughput_rate": None, "loads": "100%", "trial_seconds": 120.0}
    told = measure(latency, quick, **asked)
    assert any(note.text.endswith("one search within 2%, trials of 2 s") for note in told.notes)
    told = measure(latency, literal, profile="rfc", **asked)
    assert any(note.text.endswith("one search within 0.1%, trials of 60 s") for note in told.notes)
    searched = [plan.phase2.seconds for plan in literal.plans if plan.phase2 and not plan.record_delays]
    assert max(searched) == 60
    last = literal.plans[-1].phase2
    assert last is not None
    assert 0.999 * 3e5 <= last.initiator_rate <= 3e5


def test_the_literal_way_times_500_tags_after_the_first_minute_of_two() -> None:
    gateway = Gateway(abilities=frozenset({Ability.TAGGED_DELAYS}))
    measure(latency, gateway, way="rfc8219", trial_seconds=120.0, loads="100%")
    (plan,) = gateway.plans
    assert plan.phase2 is not None
    assert (plan.phase2.seconds, plan.delays_from_seconds, plan.delay_samples) == (120, 60, 500)
    with pytest.raises(UsageError, match=r"trial seconds \(way rfc8219\): 119.0 is outside of 120 to 3600"):
        latency.LatencySettings(connections=N, placement="shared", way="rfc8219", trial_seconds=119.0)
    with pytest.raises(UsageError, match="latency: this tester lacks timing only a few tagged frames"):
        measure(latency, Gateway(), way="rfc8219", trial_seconds=120.0)


class _Looped(Gateway):
    """Its tester knows its own delay."""

    def own_delays(self, plan: TrialPlan) -> dict[Direction, Delays]:
        """Both ways the same."""
        del plan
        return dict.fromkeys(Direction, Delays(1, 2 * US, 2 * US, 2 * US, 0, ((2 * US, 2 * US, 1),)))


def test_the_testers_own_delay_stands_beside_the_result() -> None:
    told = measure(latency, _Looped(abilities=frozenset({Ability.OWN_DELAYS})))
    (own,) = (note for note in told.notes if note.word == "own delay")
    assert own.value == pytest.approx(2)
    assert "is 2 us; it is not subtracted" in own.text
    assert told.summary.median == pytest.approx(10)
    assert any("was not measured" in note.text for note in measure(latency, Gateway()).notes)


def test_packet_delay_variation_is_beyond_the_smallest_delay() -> None:
    delays = [*([20 * US] * 999), *([10 * US] * 998), *([250 * US] * 3)]
    result = measure(pdv, Gateway(delays=delays))
    assert result.summary.median == pytest.approx(240)
    assert result.figures["minimum_delay_us"].median == pytest.approx(10)


def test_inter_packet_delay_variation_of_the_rfcs_example() -> None:
    """Delays 20, 10, 20, 25, 20 again and again: differences -10, 10, 5, -5, and 0 where they start again."""
    delays = [20 * US, 10 * US, 20 * US, 25 * US, 20 * US]
    gateway = Gateway(delays=delays, abilities=VARIATION)
    result = measure(ipdv, gateway)
    figures = {name: one.median for name, one in result.figures.items()}
    assert all(plan.record_variation and plan.record_delays for plan in gateway.plans)
    assert figures["ipdv_minimum_us"] == pytest.approx(-10)
    assert figures["ipdv_maximum_us"] == pytest.approx(10)
    assert figures["ipdv_median_us"] == pytest.approx(0, abs=1e-6)
    assert result.summary.median == pytest.approx(20)


def test_of_two_directions_the_difference_farther_from_0_is_shown() -> None:
    def delays(*differences: float) -> Delays:
        buckets = tuple((one, one, 1) for one in differences)
        variation = Variation(len(buckets), min(differences), max(differences), buckets)
        return Delays(1, US, US, US, 0, ((US, US, 1),), variation)

    counts = make_counts(intended=1, offered=1, received=1)
    outcome = TrialOutcome(
        Verdict.PASS,
        "",
        counts,
        phase2=dict.fromkeys(Direction, counts),
        delays={Direction.INITIATOR: delays(-3 * US, US), Direction.RESPONDER: delays(-9 * US, 4 * US)},
    )
    found = read(outcome, Timing("ipdv", "ipdv_spread_us", ipdv.read, ipdv.EXTREMES))
    assert (found["ipdv_minimum_us"], found["ipdv_maximum_us"]) == pytest.approx((-9, 4))
    assert found["ipdv_spread_us"] == pytest.approx(13)
    assert found["ipdv_minimum_us_from_initiator"] == pytest.approx(-3)


def test_differences_need_a_tester_that_records_them() -> None:
    with pytest.raises(UsageError, match="ipdv: this tester lacks differences between the delays of consecutive"):
        measure(ipdv, Gateway())
    gateway = Gateway()
    with pytest.raises(UsageError):
        measure(ipdv, gateway)
    assert not gateway.plans


def test_frames_lost_at_a_load_are_told() -> None:
    result = measure(latency, Gateway(forwards=9e4), loads="100%,50%")
    (rows,) = (one.series for one in result.measurements)
    assert [row["verdict"] for row in rows] == ["FAIL", "PASS"]
    assert rows[0]["lost_percent"] == pytest.approx(10, rel=0.01)
    assert any("at 100% frames were lost" in note.text for note in result.notes)


def test_a_device_that_is_gone_has_no_latency() -> None:
    with pytest.raises(BrokenError, match="collapsed"):
        measure(latency, Gateway(collapses_above=5e4))


def test_a_host_that_disturbs_every_trial_gives_no_latency() -> None:
    with pytest.raises(BrokenError, match="3 trials were INVALID"):
        measure(latency, Gateway(disturbed=1.0), invalid_repeats=2)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("loads", "", "loads: '' is no list of shares"),
        ("loads", "100%,fast", "loads: '100%,fast' is no list"),
        ("loads", "110%", "loads: '110%' is outside of 0.1% to 100%"),
        ("loads", "50%,0.5", "names a share twice"),
        ("way", "some", "way: 'some' is unknown; choose one of every-frame, rfc8219"),
        ("tags", 100, "tags: 100 is outside of 500 to 1000000 frames"),
        ("trial_seconds", 0, "trial seconds: 0"),
    ],
)
def test_bad_settings_are_refused_in_one_line(name: str, value: Any, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        latency.LatencySettings(**{"connections": N, "placement": "shared", name: value})
    assert says in str(caught.value)
