# SPDX-License-Identifier: Apache-2.0
"""Every gateway on a bench of its own, with the real engine: what is counted, in which direction, and beside what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest
from tests.labs.program import own
from tests.labs.rough import SLOW_RATES
from tests.labs.test_measure import NAME, left_behind, machine_settings
from tests.labs.trying import passing
from tests.plans import PlanOfTrial

from natgauge.agreement.generated import StreamCounts, TrialResult
from natgauge.host.machine import usable_cpus
from natgauge.procedures.kit.results import MeasurementResult
from natgauge.records.store import Memory
from natgauge.trial.bench import Bench
from natgauge.trial.question import ask
from natgauge.trials import Phase2Plan
from natgauge.words import Verdict

CONNECTIONS = 1000
#: One of each kind: a router and a NAT of the kernel, a chain of two devices. A translator that is a process is below.
KINDS = ("linux-ipv6", "nftables-nat44", "ds-lite")
FURTHER = (
    "linux-ipv4", "iptables-nat44", "nftables-nat66", "iptables-nat66", "tayga-nat64", "tayga-siit", "nftables-nptv6",
    "tayga-iptables-nat64", "464xlat-tayga",
)  # fmt: skip
#: A rough search is enough to see that everything fits together.
QUICK: Mapping[str, Any] = {"repeat": 1, "error": "50%", "confirm": False, "invalid_repeats": 100}
PHASE2: Mapping[str, Any] = {**QUICK, "trial_seconds": 0.2, "connection_rate": 20_000.0}
#: Rates that each of these gateways keeps up with on a busy host, in frames/s of each direction and in connections/s.
FORWARDING_RATE, OPENING_RATE, SECONDS = 2000.0, 5000.0, 0.5
ROUTES_IPV6_TOO = ("nftables-nat44", "tayga-nat64", "tayga-siit")

soak = pytest.mark.soak


@pytest.fixture(scope="module")
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A gateway, started once for all tests of it; the host is as it was when they end."""
    before, settings = left_behind(), machine_settings()
    asked = ask("throughput", request.param, {"connections": CONNECTIONS, "lab_name": NAME})
    # A search that may go no higher than a slow tester ends at once: these tests judge counts, not rates.
    with Bench(replace(asked.cell, background=request.param in ROUTES_IPV6_TOO), rates=SLOW_RATES) as made:
        yield made
    assert left_behind() == before
    after = machine_settings()
    assert settings is None or after is None or after == settings


def on(*gateways: str, further: Sequence[str] = ()) -> pytest.MarkDecorator:
    """For these gateways, in `make soak` for further ones; one bench serves all tests of a gateway."""
    more = [pytest.param(name, marks=soak) for name in further]
    return pytest.mark.parametrize("bench", [*gateways, *more], indirect=True, scope="module")


def measured(bench: Bench, metric: str, **settings: Any) -> tuple[MeasurementResult, list[Mapping[str, Any]]]:
    """A result, and its trials that passed."""
    kept = Memory()
    result = bench.ready(bench.plan(metric, settings), kept).run()
    passed = [trial for trial in kept.trials if trial["verdict"] is Verdict.PASS]
    assert result.summary.median > 0
    assert passed
    return result, passed


def tried(bench: Bench, metric: str, phase2: Phase2Plan | None = None, **settings: Any) -> Mapping[str, Any]:
    """A trial of this metric that passed, at a rate that the gateway keeps up with."""
    kept = Memory()
    measurer = bench.ready(bench.plan(metric, settings), kept).measurer
    passing(measurer, PlanOfTrial(CONNECTIONS, OPENING_RATE, phase2, stateless=bool(settings.get("stateless"))))
    return kept.trials[-1]


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


@on(*KINDS, further=FURTHER)
def test_it_is_measured_and_its_own_count_agrees(bench: Bench) -> None:
    trial = tried(bench, "connection-rate")
    result = trial["result"]
    assert trial["device_count_after"] == opened(bench)
    assert result.state_table.stored == CONNECTIONS
    assert result.phase1.received_frames == CONNECTIONS
    assert result.phase1.untranslated == 0


@on("nftables-nat44", further=["tayga-nat64"])
@pytest.mark.parametrize("directions", ["both", "down", pytest.param("up", marks=soak)])
def test_throughput_counts_the_directions_that_were_asked_for(
    bench: Bench, directions: Literal["both", "up", "down"]
) -> None:
    result, passed = measured(bench, "throughput", directions=directions, **PHASE2)
    active = {"both": {"initiator", "responder"}, "up": {"initiator"}, "down": {"responder"}}[directions]
    assert all(set(phase2_of(trial)) == active for trial in passed)
    figures = {name: one.median for name, one in result.figures.items()}
    assert figures["frames_per_second_total"] == pytest.approx(
        len(active) * figures["frames_per_second_each_direction"]
    )


@pytest.mark.parametrize("gateway", ["nftables-nat44", pytest.param("tayga-iptables-nat64", marks=soak)])
def test_a_gateway_may_be_stopped_and_started_before_each_trial(gateway: str) -> None:
    asked = {"connections": CONNECTIONS, "lab_name": "e2e-restart", "emptying": "restart"}
    with Bench(ask("connection-rate", gateway, asked).cell, rates=SLOW_RATES) as made:
        for _ in range(2):
            assert tried(made, "connection-rate")["device_count_after"] == CONNECTIONS
        assert made.device is not None
        assert made.device.settings().emptying == "restart"


@soak
@pytest.mark.alone
@pytest.mark.slow("starts a process anew for each trial of two searches")
@pytest.mark.skipif(len(usable_cpus()) < 2, reason="an isolated device needs a core of its own")
def test_the_queue_before_a_process_makes_it_no_faster_where_it_shares_the_senders_core() -> None:
    # The queue holds all of these: without a time limit they pass at thirty times what tayga does.
    found = {}
    for placement in ("isolated", "shared"):
        asked = {"connections": CONNECTIONS, "lab_name": "e2e-turns", "placement": placement}
        with Bench(ask("connection-rate", "tayga-nat64", asked).cell) as made:
            result, passed = measured(made, "connection-rate", **{**QUICK, "error": "30%"})
        found[placement] = result.summary.median
        assert all(trial["plan"].frame_timeout_seconds for trial in passed)
    assert found["shared"] < 3 * found["isolated"]


BOTH_WAYS = Phase2Plan(FORWARDING_RATE, FORWARDING_RATE, SECONDS)


def everything_came_through(trial: Mapping[str, Any]) -> None:
    """Every frame of phase 2, translated as it should be."""
    for counts in phase2_of(trial).values():
        assert (counts.untranslated, counts.mistranslated) == (0, 0)
        assert counts.received_frames == counts.offered_frames == FORWARDING_RATE * SECONDS


@pytest.mark.slow("the translator is a process that starts anew before the trial")
def test_a_stateless_translator_is_measured_without_a_phase_1_and_maps_every_address() -> None:
    # 512 addresses beyond 198.18.0.255: a carry that went wrong would be seen.
    sources = {"source_addresses": "2001:2::2-2001:2::201", "connections": CONNECTIONS, "lab_name": own("e2e-siit")}
    with Bench(ask("throughput", "tayga-siit", sources).cell) as made:
        trial = tried(made, "throughput", BOTH_WAYS, stateless=True)
    assert trial["result"].phase1 is None
    mapped = trial["request"].responder.destination_addresses
    assert (mapped.first, mapped.last) == ("198.18.0.2", "198.18.2.1")
    everything_came_through(trial)


@soak
@pytest.mark.slow("the translator is a process that starts anew before each of two trials")
def test_a_clat_is_measured_alone_from_ipv4_to_ipv6() -> None:
    sources = {"source_addresses": "10.0.0.2-10.0.2.1", "connections": CONNECTIONS, "lab_name": own("e2e-clat")}
    with Bench(ask("throughput", "tayga-clat", sources).cell) as made:
        trial = tried(made, "throughput", BOTH_WAYS, stateless=True)
        opening = tried(made, "connection-rate")
    request = trial["request"]
    assert (request.initiator.destination_addresses.first, request.responder.addresses.first) == (
        "198.19.0.2",
        "2001:2:0:1::c613:2",
    )
    mapped = request.responder.destination_addresses
    assert (mapped.first, mapped.last) == ("2001:2:0:9::2", "2001:2:0:9::201")
    everything_came_through(trial)
    assert opening["result"].state_table.stored == CONNECTIONS


@on("nftables-nat44", further=["tayga-nat64", "tayga-siit"])
def test_native_ipv6_goes_by_beside_the_frames_under_test(bench: Bench) -> None:
    _, passed = measured(bench, "throughput", foreground_share=0.9, **PHASE2)
    for trial in passed:
        assert trial["device_count_after"] == opened(bench), "a background frame opens no connection"
        for counts in phase2_of(trial).values():
            assert counts.background_frames == counts.made_frames // 10
            assert counts.background_received == counts.background_frames
