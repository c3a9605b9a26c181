# SPDX-License-Identifier: Apache-2.0
"""Latency and delay variation (RFC 8219 section 7) against simulated gateways of known delays."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from tests.unit.simulated import Gateway

from natgauge.errors import BrokenError, UsageError
from natgauge.measurer import Ability, Counts, Delays, Direction, TrialOutcome, TrialPlan, Variation, Verdict
from natgauge.procedures import ipdv, latency, pdv
from natgauge.procedures.kit.delay_metrics import Timing, read
from natgauge.procedures.kit.results import MeasurementResult

N = 1000
US = 1e-6
VARIATION = frozenset({Ability.VARIATION})


def measure(metric: ModuleType, gateway: Gateway, **others: Any) -> MeasurementResult:
    given = {"repeat": 1, "connection_rate": 1e5, "throughput_rate": 1e5, "trial_seconds": 0.1, **others}
    result: MeasurementResult = metric.PROCEDURE.measure(
        gateway, metric.Settings(connections=N, placement=gateway.placement, **given)
    )
    return result


def test_typical_is_the_median_and_worst_case_the_percentile() -> None:
    delays = [*([10 * US] * 1500), *([40 * US] * 497), *([900 * US] * 3)]
    result = measure(latency, Gateway(delays=delays))
    assert result.summary.median == pytest.approx(10)
    assert result.figures["worst_case_latency_us"] == pytest.approx(900)
    assert result.figures["maximum_us"] == pytest.approx(900)
    assert result.figures["typical_latency_us_from_responder"] == pytest.approx(10)


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
    assert any(note.endswith("one search within 2%, trials of 2 s") for note in told.notes)
    told = measure(latency, literal, profile="rfc", **asked)
    assert any(note.endswith("one search within 0.1%, trials of 60 s") for note in told.notes)
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
        latency.Settings(connections=N, placement="shared", way="rfc8219", trial_seconds=119.0)
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
    assert any("the tester's own part" in note and "is 2 us; it is not subtracted" in note for note in told.notes)
    assert told.summary.median == pytest.approx(10)
    assert any("was not measured" in note for note in measure(latency, Gateway()).notes)


def test_packet_delay_variation_is_beyond_the_smallest_delay() -> None:
    delays = [*([20 * US] * 999), *([10 * US] * 998), *([250 * US] * 3)]
    result = measure(pdv, Gateway(delays=delays))
    assert result.summary.median == pytest.approx(240)
    assert result.figures["minimum_delay_us"] == pytest.approx(10)


def test_inter_packet_delay_variation_of_the_rfcs_example() -> None:
    """Delays 20, 10, 20, 25, 20 again and again: differences -10, 10, 5, -5, and 0 where they start again."""
    delays = [20 * US, 10 * US, 20 * US, 25 * US, 20 * US]
    gateway = Gateway(delays=delays, abilities=VARIATION)
    result = measure(ipdv, gateway)
    figures = result.figures
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

    counts = Counts(intended=1, offered=1, received=1)
    outcome = TrialOutcome(
        Verdict.PASS,
        "",
        counts,
        phase2=dict.fromkeys(Direction, counts),
        delays={Direction.INITIATOR: delays(-3 * US, US), Direction.RESPONDER: delays(-9 * US, 4 * US)},
    )
    found = read(outcome, Timing("ipdv", "ipdv_spread_us", ipdv.read))
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
    assert any("at 100% frames were lost" in note for note in result.notes)


def test_a_device_that_is_gone_has_no_latency() -> None:
    with pytest.raises(BrokenError, match="collapsed"):
        measure(latency, Gateway(collapses_above=5e4))


def test_a_host_that_disturbs_every_trial_gives_no_latency() -> None:
    with pytest.raises(BrokenError, match="3 trials were INVALID"):
        measure(latency, Gateway(disturbed=1.0), invalid_repeats=2)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("loads", "", "loads: '' is no list of percentages"),
        ("loads", "100%,fast", "loads: '100%,fast' is no list"),
        ("loads", "110%", "loads: 110.0 is outside of 0.1 to 100 %"),
        ("loads", "50,50", "names a share twice"),
        ("way", "some", "way: 'some' is unknown; choose one of every-frame, rfc8219"),
        ("tags", 100, "tags: 100 is outside of 500 to 1000000 frames"),
        ("trial_seconds", 0, "trial seconds: 0"),
    ],
)
def test_bad_settings_are_refused_in_one_line(name: str, value: Any, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        latency.Settings(**{"connections": N, "placement": "shared", name: value})
    assert says in str(caught.value)
