# SPDX-License-Identifier: Apache-2.0
"""Every gateway on a bench of its own, with the real engine: what is counted, in which direction, and beside what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

import pytest
from tests.labs.test_measure import GATEWAYS, left_behind, machine_settings

from natgauge.bench.bench import Bench
from natgauge.bench.question import ask
from natgauge.campaigns.store import Memory
from natgauge.host.cpus import usable_cpus
from natgauge.measurer import Verdict
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.trials import StreamCounts, TrialResult

CONNECTIONS = 3000
#: tayga handles about a hundred thousand frames/s; a rough search is enough to see that everything fits together.
QUICK: Mapping[str, Any] = {"repeat": 1, "error": "30%", "confirm": False, "invalid_repeats": 3}
PHASE2: Mapping[str, Any] = {**QUICK, "trial_seconds": 0.2, "connection_rate": 20_000.0}
ROUTES_IPV6_TOO = ("nftables-nat44", "tayga-nat64", "tayga-siit")

pytestmark = [pytest.mark.slow, pytest.mark.alone]


@pytest.fixture(scope="module")
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A gateway, started once for all tests of it; the host is as it was when they end."""
    before, settings = left_behind(), machine_settings()
    asked = ask("throughput", request.param, {"connections": CONNECTIONS, "lab_name": "e2e"})
    with Bench(replace(asked.cell, background=request.param in ROUTES_IPV6_TOO)) as made:
        yield made
    assert left_behind() == before
    after = machine_settings()
    assert settings is None or after is None or after == settings


def on(*gateways: str) -> pytest.MarkDecorator:
    """For these gateways; one bench serves all tests of a gateway."""
    return pytest.mark.parametrize("bench", gateways, indirect=True, scope="module")


def measured(bench: Bench, metric: str, **settings: Any) -> tuple[MeasurementResult, list[Mapping[str, Any]]]:
    """A result, and its trials that passed."""
    kept = Memory()
    result = bench.ready(bench.plan(metric, settings), kept).run()
    passed = [trial for trial in kept.trials if trial["verdict"] is Verdict.PASS]
    assert result.summary.median > 0
    assert passed
    return result, passed


def opened(bench: Bench) -> int | None:
    """Connections by the device's own count after each trial with a phase 1."""
    return CONNECTIONS if bench.recipe.stateful else None


def phase2_of(trial: Mapping[str, Any]) -> dict[str, StreamCounts]:
    """Counts of the directions that were active."""
    result = trial["result"]
    assert isinstance(result, TrialResult)
    assert result.phase2 is not None
    both = {"initiator": result.phase2.initiator, "responder": result.phase2.responder}
    return {side: counts for side, counts in both.items() if counts is not None}


@on(*GATEWAYS)
def test_it_is_measured_and_its_own_count_agrees(bench: Bench) -> None:
    _, passed = measured(bench, "connection-rate", **QUICK)
    for trial in passed:
        result = trial["result"]
        assert trial["device_count_after"] == opened(bench)
        assert result.state_table.stored == CONNECTIONS
        assert result.phase1.received_frames == CONNECTIONS
        assert result.phase1.untranslated == 0


@on("nftables-nat44", "tayga-nat64")
@pytest.mark.parametrize("directions", ["both", "up", "down"])
def test_throughput_counts_the_directions_that_were_asked_for(
    bench: Bench, directions: Literal["both", "up", "down"]
) -> None:
    result, passed = measured(bench, "throughput", directions=directions, **PHASE2)
    active = {"both": {"initiator", "responder"}, "up": {"initiator"}, "down": {"responder"}}[directions]
    assert all(set(phase2_of(trial)) == active for trial in passed)
    figures = result.figures
    assert figures["frames_per_second_total"] == pytest.approx(
        len(active) * figures["frames_per_second_each_direction"]
    )


@pytest.mark.skipif(len(usable_cpus()) < 2, reason="an isolated device needs a core of its own")
def test_the_queue_before_a_process_makes_it_no_faster_where_it_shares_the_senders_core() -> None:
    # The queue holds all of these: without a time limit they pass at thirty times what tayga does.
    found = {}
    for placement in ("isolated", "shared"):
        asked = {"connections": CONNECTIONS, "lab_name": "e2e-turns", "placement": placement}
        with Bench(ask("connection-rate", "tayga-nat64", asked).cell) as made:
            result, passed = measured(made, "connection-rate", **QUICK)
        found[placement] = result.summary.median
        assert all(trial["plan"].frame_timeout_seconds for trial in passed)
    assert found["shared"] < 3 * found["isolated"]


def test_a_stateless_translator_is_measured_without_a_phase_1_and_maps_every_address() -> None:
    # 512 addresses beyond 198.18.0.255: a carry that went wrong would be seen.
    sources = {"source_addresses": "2001:2::2-2001:2::201", "connections": CONNECTIONS, "lab_name": "e2e-siit"}
    with Bench(ask("throughput", "tayga-siit", sources).cell) as made:
        _, passed = measured(made, "throughput", stateless=True, trial_seconds=0.2, **QUICK)
    for trial in passed:
        assert trial["result"].phase1 is None
        mapped = trial["request"].responder.destination_addresses
        assert (mapped.first, mapped.last) == ("198.18.0.2", "198.18.2.1")
        for counts in phase2_of(trial).values():
            assert (counts.untranslated, counts.mistranslated) == (0, 0)
            assert counts.received_frames == counts.offered_frames


def test_a_clat_is_measured_alone_from_ipv4_to_ipv6() -> None:
    sources = {"source_addresses": "10.0.0.2-10.0.2.1", "connections": CONNECTIONS, "lab_name": "e2e-clat"}
    with Bench(ask("throughput", "tayga-clat", sources).cell) as made:
        _, passed = measured(made, "throughput", stateless=True, trial_seconds=0.2, **QUICK)
        _, opening = measured(made, "connection-rate", **QUICK)
    for trial in passed:
        request = trial["request"]
        assert (request.initiator.destination_addresses.first, request.responder.addresses.first) == (
            "198.19.0.2",
            "2001:2:0:1::c613:2",
        )
        mapped = request.responder.destination_addresses
        assert (mapped.first, mapped.last) == ("2001:2:0:9::2", "2001:2:0:9::201")
        for counts in phase2_of(trial).values():
            assert (counts.untranslated, counts.mistranslated) == (0, 0)
            assert counts.received_frames == counts.offered_frames
    for trial in opening:
        assert trial["result"].state_table.stored == CONNECTIONS


@on(*ROUTES_IPV6_TOO)
def test_native_ipv6_goes_by_beside_the_frames_under_test(bench: Bench) -> None:
    _, passed = measured(bench, "throughput", foreground_share=0.9, **PHASE2)
    for trial in passed:
        assert trial["device_count_after"] == opened(bench), "a background frame opens no connection"
        for counts in phase2_of(trial).values():
            assert counts.made_frames is not None
            assert counts.background_frames == counts.made_frames // 10
            assert counts.background_received == counts.background_frames
