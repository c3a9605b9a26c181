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
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask

N = 1600


def measure(truth: Gateway | None = None, /, **others: Any) -> Any:
    given = {"connections": N, "connection_rate": 1e5, **others}
    return simulated_lab.measure("resolution-rate", truth, **given).result


def queried(kind: str | None, folder: Path) -> simulated_lab.Measured:
    """What is measured of a gateway (None), or of a DNS server of this kind."""
    given: dict[str, Any] = {"connections": N}
    if kind is None:
        given["connection_rate"] = 1e5
    else:
        text = simulated_lab.DNS64.read_text().replace('kind = "dns64"', f'kind = "{kind}"')
        (folder / simulated_lab.DNS64.name).write_text(text)
        given["gateway"] = folder / simulated_lab.DNS64.name
    return simulated_lab.measure("resolution-rate", Gateway(forwards=300_000), **given)


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
    found = simulated_lab.measure("resolution-rate", device, connections=N, connection_rate=1e5)
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
    found = simulated_lab.measure(
        "resolution-rate", device, gateway=simulated_lab.DNS64, connections=N, cached_share=0.5, aaaa_share=0.25
    )
    assert found.plans("stateless") == {True}
    assert found.plans("phase1_rate") == {1_000}
    assert (found.plans("cached_share"), found.plans("aaaa_share")) == ({0.5}, {0.25})
    assert found.notes("asked for the cached names once")
    requests = [trial["request"] for trial in found.trials]
    shares = {(one["frame"].get("aaaa_share"), one["frame"].get("cached_share")) for one in requests if one["phase2"]}
    assert (0.25, 0.5) in shares


def test_a_device_that_cannot_even_fill_its_cache_gets_the_names_more_slowly() -> None:
    device = Gateway(forwards=300_000, establishes=600)
    simulated_lab.measure("resolution-rate", device, gateway=simulated_lab.DNS64, connections=N, cached_share=1)
    assert min(plan.phase1_rate for plan in device.plans if plan.has_phase1) == 500


def test_a_cache_that_cannot_be_filled_is_not_told_as_connections() -> None:
    with pytest.raises(BrokenError, match=r"could not fill the device's cache .* queries/s at last"):
        simulated_lab.measure(
            "resolution-rate", Gateway(establishes=1), gateway=simulated_lab.DNS64, connections=N, cached_share=1
        )


@pytest.mark.parametrize("given", [None, 1.5])
def test_more_time_for_an_answer_than_the_rfc_allows_is_noted(given: float | None) -> None:
    found = simulated_lab.measure(
        "resolution-rate", Gateway(forwards=300_000), gateway=simulated_lab.DNS64, connections=N,
        **({} if given is None else {"frame_timeout_seconds": given}),
    )  # fmt: skip
    assert bool(found.notes("RFC 8219 section 9.2 allows 1 s")) is (given is not None)


@pytest.mark.parametrize("gateway", [None, "dns64", "dns"])
def test_only_the_trials_of_a_dns64_server_are_held_against_the_rfc(gateway: str | None, tmp_path: Path) -> None:
    """RFC 8219 section 9 is about DNS64 servers alone."""
    found = queried(gateway, tmp_path)
    for text in ("trials of 2 s; RFC 8219 section 9.2 requires 60 s", "RFC 8219 section 9.2 requires 20"):
        assert bool(found.notes(text)) is (gateway == "dns64")


@pytest.mark.parametrize(
    ("gateway", "far_side"), [(None, "; far side: the tester itself"), ("dns64", "; far side: knot"), ("dns", "")]
)
def test_a_server_of_its_own_data_has_no_far_side(gateway: str | None, far_side: str, tmp_path: Path) -> None:
    texts = [note["text"] for note in queried(gateway, tmp_path).document["notes"] if note["word"] == "method"]
    (text,) = [text for text in texts if text.startswith("queries of type AAAA, answered right within")]
    assert text.partition(" s")[2] == far_side


def test_the_tester_may_be_the_limit() -> None:
    result = measure(Gateway(forwards=1e9, ceiling=2e6))
    assert (result.median, result.limited_by) == (2e6, "tester")


def test_a_table_too_small_gives_0_for_its_own_reason(golden: Golden) -> None:
    result = measure(Gateway(table_size=1000), connection_rate=None)
    assert result.median == 0.0
    golden(result.notes)


def test_a_real_server_gets_the_queries_no_faster_in_phase_1_than_any_can() -> None:
    truth = Gateway(forwards=300_000)
    found = simulated_lab.measure("resolution-rate", truth, connections=N, connection_rate=1e5, far_side="knot")
    assert found.plans("handed_on") == {True}
    assert found.plans("phase1_rate") == {10_000}
    assert found.notes("answered right within 0.25 s; far side: knot")
    own = simulated_lab.measure("resolution-rate", truth, connections=N, connection_rate=1e5)
    assert (own.plans("handed_on"), own.plans("phase1_rate")) == ({False}, {50_000})


def test_a_type_that_is_none_of_ours_is_refused() -> None:
    with pytest.raises(UsageError, match="query"):
        measure(query="mx")


def test_queries_have_their_own_length() -> None:
    found = simulated_lab.measure("resolution-rate", Gateway(), connections=N)
    frames = [trial["request"]["frame"] for trial in found.trials]
    assert {(frame["size"], frame["side"]) for frame in frames if frame.get("query")} == {(114, "initiator")}
    assert any(frame.get("query") is None for frame in frames)


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
