# SPDX-License-Identifier: Apache-2.0
"""Resolution rate: DNS queries through simulated gateways of known truth, and what it asks of the traffic."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.counted import arrivals, make_counts, make_trial
from tests.unit.fake_engine import FakeEngine
from tests.unit.simulated import Gateway
from tests.unit.test_measurer import AROUND, SETTINGS, FakeLab, Recorder

from natgauge.agreement import StreamCounts
from natgauge.errors import UsageError
from natgauge.inputs.question import TrafficOptions
from natgauge.measurer import Ability, Direction, Judgement, Phase2Plan, TrialPlan
from natgauge.procedures.kit.result.results import MeasurementResult
from natgauge.procedures.resolution_rate import PROCEDURE, SERVER_PHASE1_RATE, ResolutionRateSettings
from natgauge.readings import Readings
from natgauge.setup.traffic import make_plan
from natgauge.trial.bench import Bench
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.question import ask
from natgauge.verdicts import Limits, judge
from natgauge.words import Placement, Verdict

N = 1600
ABLE = frozenset({Ability.QUERIES, Ability.STATELESS})


def gateway(**others: Any) -> Gateway:
    return Gateway(abilities=ABLE, **others)


def measure(device: Gateway, **others: Any) -> MeasurementResult:
    given = {"repeat": 1, "connection_rate": 1e5, **others}
    return PROCEDURE.measure(device, ResolutionRateSettings(connections=N, placement=device.placement, **given))


@given(st.floats(5e3, 7e6), st.sampled_from(["isolated", "shared"]))
@settings(max_examples=40)
def test_a_hard_cliff_is_found_within_error_and_tolerance(cliff: float, placement: str) -> None:
    result = measure(gateway(forwards=cliff, placement=placement), trial_seconds=10.0)
    one = result.measurements[0]
    assert one.upper is not None
    # A device that loses a ten-thousandth passes; one in `shared` placement may be late by a thousandth.
    assert one.value <= cliff * 1.0012
    assert cliff < one.upper * 1.0001
    assert one.upper - one.value <= 0.01 * one.upper * (1 + 1e-9)
    assert result.limited_by == "device"


def test_the_initiator_alone_sends_and_every_frame_is_a_query_with_the_limits_of_the_draft() -> None:
    device = gateway(forwards=300_000)
    result = measure(device, query="a")
    for plan in device.plans:
        assert plan.phase2 is not None
        assert (plan.query, plan.phase2.responder_rate) == ("a", 0.0)
        assert (plan.loss_tolerance, plan.frame_timeout_seconds) == (0.0001, 0.25)
    assert result.unit == "queries/s"
    assert any("type A, answered right within 0.25 s" in note.text for note in result.notes)
    assert any("up to 0.010% of the frames could be lost" in note.text for note in result.notes)


def test_connections_are_opened_at_a_safe_rate_that_plain_frames_found() -> None:
    device = gateway(establishes=200_000, forwards=300_000)
    measure(device, connection_rate=None)
    plain = [plan for plan in device.plans if plan.query is None]
    assert plain
    assert all(plan.phase2 is None for plan in plain)


@pytest.mark.parametrize(("share", "found"), [(0.00005, True), (0.0005, False)])
def test_a_loss_at_every_rate_counts_beyond_one_in_ten_thousand(share: float, *, found: bool) -> None:
    result = measure(gateway(forwards=300_000, loses_share=share))
    assert (result.summary.median > 200_000) is found


def test_wrong_answers_count_like_lost_ones_and_are_named() -> None:
    device = gateway(forwards=300_000, answers_wrong=0.0005)
    assert measure(device).summary.median < 200_000
    failed = [outcome for outcome in device.outcomes if outcome.verdict is Verdict.FAIL]
    assert any("with wrong content" in outcome.reason for outcome in failed)
    assert measure(gateway(forwards=300_000, answers_wrong=0.00005)).summary.median > 200_000


def test_a_share_and_a_time_of_ones_own() -> None:
    device = gateway(forwards=300_000, loses_share=0.0005)
    result = measure(device, loss_tolerance=0.001, frame_timeout_seconds=1.0)
    assert result.summary.median > 200_000
    assert {plan.frame_timeout_seconds for plan in device.plans} == {1.0}


def test_without_a_state_table_there_is_no_phase_1() -> None:
    device = gateway(forwards=300_000)
    measure(device, stateless=True, connection_rate=None)
    assert all(plan.stateless and plan.query == "aaaa" for plan in device.plans)


def test_the_tester_may_be_the_limit() -> None:
    result = measure(gateway(forwards=1e9, ceiling=2e6))
    assert (result.summary.median, result.limited_by) == (2e6, "tester")


def test_a_table_too_small_gives_0_for_its_own_reason() -> None:
    result = measure(gateway(table_size=1000), connection_rate=None)
    assert result.summary.median == 0.0
    assert any("phase 2 was not tried" in note.text for note in result.notes)


def test_a_tester_that_cannot_ask_refuses() -> None:
    with pytest.raises(UsageError, match="lacks DNS queries and their answers"):
        measure(Gateway())


def test_a_real_server_gets_the_queries_no_faster_in_phase_1_than_any_can() -> None:
    device = Gateway(abilities=ABLE | {Ability.REAL_SERVER}, forwards=300_000)
    result = measure(device, far_side="knot")
    assert all(plan.handed_on and plan.phase1_rate <= SERVER_PHASE1_RATE for plan in device.plans)
    assert any("answered right within 0.25 s by knot" in note.text for note in result.notes)
    own = gateway(forwards=300_000)
    measure(own)
    assert all(not plan.handed_on and plan.phase1_rate == 50_000 for plan in own.plans)


def test_without_a_place_for_a_server_there_is_none() -> None:
    with pytest.raises(UsageError, match="lacks a place for a real server behind the device"):
        measure(gateway(), far_side="knot")


def test_a_type_that_is_none_of_ours_is_refused() -> None:
    with pytest.raises(UsageError, match="query"):
        ResolutionRateSettings(connections=N, placement="shared", query="mx")  # type: ignore[arg-type]


def answered(phase2: StreamCounts, placement: Placement, tolerance: float = 0.0001, **read: Any) -> Judgement:
    """What is said of a stateless trial of queries with these counts and readings."""
    plan = TrialPlan(N, 1.0, Phase2Plan(1.0, 0.0, 1.0), stateless=True, loss_tolerance=tolerance)
    return judge(make_trial(plan, phase2={Direction.INITIATOR: phase2}, readings=Readings(**read)), Limits(placement))


def test_a_wrong_answer_is_told_apart_from_a_lost_one() -> None:
    phase2 = make_counts(
        intended=1000, offered=1000, received=990, messages=(arrivals("query", 996), arrivals("response", 990, 4))
    )
    found = answered(phase2, "shared")
    assert (found.verdict, found.limited_by) == (Verdict.FAIL, "device")
    assert "4 with wrong content of 1000 frames, 10 lost in all" in found.reason
    assert answered(phase2, "shared", tolerance=0.01).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("received", "late", "dropped", "limited_by"),
    [(900, 0, 100, "server"), (890, 10, 100, "server"), (900, 0, 50, "device"), (900, 100, 0, "device")],
)
def test_what_a_server_did_not_read_in_time_is_not_the_devices(
    received: int, late: int, dropped: int, limited_by: str
) -> None:
    phase2 = make_counts(intended=1000, offered=1000, received=received, late=late)
    found = answered(phase2, "isolated", server_refused={"socket": dropped})
    assert (found.verdict, found.limited_by) == (Verdict.FAIL, limited_by)
    assert (f"{dropped} at the server's sockets" in found.reason) is (dropped > 0)


def test_the_engine_is_asked_for_queries_of_their_own_length() -> None:
    traffic = make_plan(TrafficOptions(connections=100, destination_ports="53"), AROUND)
    measurer = LabMeasurer(FakeLab(), None, traffic, SETTINGS, Recorder(), runner=FakeEngine())
    request = measurer.request(TrialPlan(100, 500.0, Phase2Plan(2000.0, 0.0, 0.5), query="aaaa"))
    assert (request.frame.size, request.frame.side, request.frame.query) == (114, "initiator", "aaaa")
    assert measurer.request(TrialPlan(100, 500.0)).frame.query is None
    asked = TrialPlan(100, 500.0, Phase2Plan(2000.0, 0.0, 0.5), query="aaaa", handed_on=True)
    assert (request.frame.handed_on, measurer.request(asked).frame.handed_on) == (False, True)


def test_queries_go_to_port_53_over_1600_connections_unless_told_otherwise() -> None:
    cell = ask("resolution-rate", "nftables-nat44", {}).cell
    assert (cell.traffic.destination_ports, cell.traffic.connections) == ("53", 1600)
    own = ask("resolution-rate", "nftables-nat44", {"source_ports": "2000-2999"}).cell
    assert (own.traffic.destination_ports, own.traffic.connections) == ("53", None)
    # The draft's number is the same for every technology: a customer has 2048 ports.
    for gateway in ("map-t", "map-e", "lw4o6", "ds-lite", "464xlat-tayga"):
        assert Bench(ask("resolution-rate", gateway, {}).cell).traffic.connections == 1600
    smaller = ask("resolution-rate", "map-t", {"psid_length": 6}).cell
    assert (smaller.traffic.destination_ports, smaller.traffic.connections) == ("53", None)
    assert Bench(smaller).traffic.connections == 512
    several = ask("resolution-rate", "map-t", {"psid_length": 6, "subscribers": 2}).cell
    assert several.traffic.connections == 1600
    other = ask("throughput", "nftables-nat44", {}).cell
    assert (other.traffic.destination_ports, other.traffic.connections) == (None, None)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        (
            {"destination_ports": "53-54"},
            "destination ports: 53-54, but resolution-rate sends DNS queries; use 53 alone",
        ),
        ({"frame_size": 128}, "frame size: 128, but resolution-rate sends DNS queries, which have 114 octets"),
    ],
)
def test_traffic_that_queries_cannot_be_is_refused(choices: dict[str, object], words: str) -> None:
    question = ask("resolution-rate", "nftables-nat44", choices)
    with pytest.raises(UsageError, match=words):
        Bench(question.cell).plan("resolution-rate", {})
