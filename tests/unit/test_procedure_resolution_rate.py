# SPDX-License-Identifier: Apache-2.0
"""Resolution rate: DNS queries through simulated gateways of known truth, and what it asks of the traffic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import simulated_lab
from tests.unit.golden import Golden
from tests.unit.simulated import Gateway

from natgauge.errors import BrokenError, UsageError

N = 1600


def measured(truth: Gateway | None = None, /, **others: Any) -> simulated_lab.Measured:
    return simulated_lab.measure("resolution-rate", truth, **{"connections": N, "connection_rate": 1e5, **others})


def measure(truth: Gateway | None = None, /, **others: Any) -> Any:
    return measured(truth, **others).result


def of_server(truth: Gateway, **others: Any) -> simulated_lab.Measured:
    """Of a DNS64 server, which has no phase 1 of connections."""
    return measured(truth, gateway=simulated_lab.DNS64, connection_rate=None, **others)


@given(st.floats(5e3, 7e6), st.sampled_from(["isolated", "shared"]))
@settings(max_examples=8)
def test_a_hard_cliff_is_found_within_error_and_tolerance(cliff: float, placement: Any) -> None:
    result = measure(Gateway(forwards=cliff, placement=placement), trial_seconds=10.0)
    one = result.repetitions[0]
    assert one.upper is not None
    # A device that loses a ten-thousandth passes; one in `shared` placement may be late by a thousandth.
    assert one.value <= cliff * 1.0012
    assert cliff < one.upper * 1.0001
    assert one.upper - one.value <= 0.01 * one.upper * (1 + 1e-9)
    assert result.limited_by == "device"


def test_the_initiator_alone_sends_and_every_frame_is_a_query_with_the_limits_of_the_draft(golden: Golden) -> None:
    device = Gateway(forwards=300_000)
    result = measure(device, query="a")
    for plan in device.plans:
        assert plan.phase2 is not None
        assert (plan.query, plan.phase2.responder_rate, plan.frame_timeout_seconds) == ("a", 0.0, 0.25)
    assert result.unit == "queries/s"
    golden(result.notes)


def test_connections_are_opened_at_a_safe_rate_that_plain_frames_found() -> None:
    device = Gateway(establishes=200_000, forwards=300_000)
    measure(device, connection_rate=None)
    plain = [plan for plan in device.plans if plan.query is None]
    assert plain
    assert all(plan.phase2 is None for plan in plain)


@pytest.mark.parametrize(("share", "found"), [(0.00005, True), (0.0005, False)])
def test_a_loss_at_every_rate_counts_beyond_one_in_ten_thousand(share: float, *, found: bool) -> None:
    result = measure(Gateway(forwards=300_000, loses_share=share))
    assert (result.median > 200_000) is found


def test_wrong_answers_count_like_lost_ones_and_are_named() -> None:
    device = Gateway(forwards=300_000, answers_wrong=0.0005)
    found = measured(device)
    assert found.median < 200_000
    assert any("with wrong content" in trial["reason"] for trial in found.trials if trial["verdict"] == "FAIL")
    assert found.notes("come back with wrong content at every rate")
    assert not found.notes("are lost")
    assert measure(Gateway(forwards=300_000, answers_wrong=0.00005)).median > 200_000


def test_a_share_and_a_time_of_ones_own() -> None:
    device = Gateway(forwards=300_000, loses_share=0.0005)
    result = measure(device, loss_tolerance=0.001, frame_timeout_seconds=1.0)
    assert result.median > 200_000
    assert {plan.frame_timeout_seconds for plan in device.plans} == {1.0}


def test_without_a_state_table_there_is_no_phase_1() -> None:
    device = Gateway(forwards=300_000)
    measure(device, gateway=simulated_lab.ROUTING, stateless=True, connection_rate=None)
    assert all(plan.stateless and plan.query == "aaaa" for plan in device.plans)


def test_names_for_a_cache_are_asked_for_first_and_slowly() -> None:
    device = Gateway(forwards=300_000)
    found = of_server(device, cached_share=0.5, aaaa_share=0.25)
    assert found.plans("stateless") == {True}
    assert found.plans("phase1_rate") == {1_000}
    assert (found.plans("cached_share"), found.plans("aaaa_share")) == ({0.5}, {0.25})
    assert found.notes("asked for the cached names once")
    requests = [trial["request"] for trial in found.trials]
    shares = {(one["frame"].get("aaaa_share"), one["frame"].get("cached_share")) for one in requests if one["phase2"]}
    assert (0.25, 0.5) in shares


def test_a_device_that_cannot_even_fill_its_cache_gets_the_names_more_slowly() -> None:
    device = Gateway(forwards=300_000, establishes=600)
    of_server(device, cached_share=1)
    assert min(plan.phase1_rate for plan in device.plans if plan.has_phase1) == 500


def test_a_cache_that_cannot_be_filled_is_not_told_as_connections() -> None:
    with pytest.raises(BrokenError, match=r"could not fill the device's cache .* queries/s at last"):
        of_server(Gateway(establishes=1), cached_share=1)


@pytest.mark.parametrize(
    ("kind", "others", "far_side", "held_against"),
    [
        (None, {}, "; far side: the tester itself", []),
        # RFC 8219 section 9 is about DNS64 servers alone; and a server of its own data has no far side.
        ("dns64", {}, "; far side: knot", ["60 s", "20"]),
        ("dns64", {"frame_timeout_seconds": 1.5}, "; far side: knot", ["60 s", "20", "1 s"]),
        ("dns", {}, "", []),
    ],
)
def test_only_the_trials_of_a_dns64_server_are_held_against_the_rfc(
    kind: str | None, others: dict[str, Any], far_side: str, held_against: list[str], tmp_path: Path
) -> None:
    gateway = simulated_lab.NAT44
    if kind is not None:
        gateway = tmp_path / simulated_lab.DNS64.name
        gateway.write_text(simulated_lab.DNS64.read_text().replace('kind = "dns64"', f'kind = "{kind}"'))
    rate = 1e5 if kind is None else None
    found = measured(Gateway(forwards=300_000), gateway=gateway, connection_rate=rate, **others)
    texts = [note["text"] for note in found.document["notes"] if note["word"] == "method"]
    (text,) = [text for text in texts if text.startswith("queries of type AAAA, answered right within")]
    assert text.partition(" s")[2] == far_side
    rules = {
        "60 s": "trials of 2 s; RFC 8219 section 9.2 requires 60 s",
        "20": "RFC 8219 section 9.2 requires 20",
        "1 s": "RFC 8219 section 9.2 allows 1 s",
    }
    assert [name for name, rule in rules.items() if found.notes(rule)] == held_against


def test_the_tester_may_be_the_limit() -> None:
    result = measure(Gateway(forwards=1e9, ceiling=2e6))
    assert (result.median, result.limited_by) == (2e6, "tester")


def test_a_table_too_small_gives_0_for_its_own_reason(golden: Golden) -> None:
    result = measure(Gateway(table_size=1000), connection_rate=None)
    assert result.median == 0.0
    golden(result.notes)


def test_a_real_server_gets_the_queries_no_faster_in_phase_1_than_any_can() -> None:
    truth = Gateway(forwards=300_000)
    found = measured(truth, far_side="knot")
    assert found.plans("handed_on") == {True}
    assert found.plans("phase1_rate") == {10_000}
    assert found.notes("answered right within 0.25 s; far side: knot")
    own = measured(truth)
    assert (own.plans("handed_on"), own.plans("phase1_rate")) == ({False}, {50_000})


def test_a_type_that_is_none_of_ours_is_refused() -> None:
    with pytest.raises(UsageError, match="query"):
        measure(query="mx")


def test_queries_have_their_own_length() -> None:
    found = measured(Gateway(), connection_rate=None)
    frames = [trial["request"]["frame"] for trial in found.trials]
    assert {(frame["size"], frame["side"]) for frame in frames if frame.get("query")} == {(114, "initiator")}
    assert any(frame.get("query") is None for frame in frames)
