# SPDX-License-Identifier: Apache-2.0
"""Options that nothing takes beside others are given to nobody; command lines with them are in the golden inputs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.simulated_lab import DNS64, NAT44, ROUTING, Simulation, simulated
from tests.unit.conftest import Ran
from tests.unit.golden import Golden

import natgauge
from natgauge.errors import HostError, UsageError

PLAN = """
name = "small"
gateways = ["{gateway}"]
profile = "quick"
repetitions = 1
[lab]
lab = "simulated"
[traffic]
connections = 1000
"""
LATENCY = """
[series]
{series}
[[measure]]
metric = "latency"
tags = 1000
trial_seconds = 120.0
"""
RATES = """
[[measure]]
metric = "connection-rate"
[[measure]]
metric = "throughput"
[[measure]]
metric = "throughput"
stateless = true
"""


@pytest.fixture
def simulation(in_an_empty_folder: Path) -> Iterator[Simulation]:
    del in_an_empty_folder
    with simulated() as made:
        yield made


@pytest.mark.usefixtures("simulation")
def test_what_only_some_values_of_a_series_take_is_given_to_these(ran: Ran, golden: Golden) -> None:
    """Plans with such a series were refused."""
    path = Path("x.toml")
    path.write_text(PLAN.format(gateway="simulated") + LATENCY.format(series='way = ["every-frame", "rfc8219"]'))
    ran(["run", "x.toml"])
    results = [json.loads(summary.read_text()) for summary in sorted(Path("results").glob("*/results/*/summary.json"))]
    commands = [result["parameters"]["place"]["command"] for result in results]
    assert ["--tags" in command for command in commands] == [False, True]
    path.write_text(PLAN.format(gateway="simulated") + LATENCY.format(series='order = ["increasing", "decreasing"]'))
    golden(ran(["plan", "check", "x.toml"], 2).err)


@pytest.mark.usefixtures("simulation")
def test_the_connection_rate_of_a_round_is_given_only_to_what_takes_one(ran: Ran) -> None:
    Path("x.toml").write_text(PLAN.format(gateway="simulated-routing") + RATES)
    ran(["run", "x.toml"])
    lines = map(json.loads, Path("results/small/journal.jsonl").read_text().splitlines())
    given = {line["measurement"]: [*line["given"]] for line in lines if line["event"] == "repetition"}
    assert given == {"connection-rate": [], "throughput": ["connection_rate"], "throughput-2": []}


class ReachedError(HostError):
    """The lab would be made now: nothing was refused before."""


@pytest.fixture
def reached(simulation: Simulation) -> None:
    def reach(_lab: str) -> None:
        raise ReachedError("here")

    simulation.enters = reach


@pytest.mark.usefixtures("reached")
@pytest.mark.parametrize(
    ("metric", "gateway", "choices"),
    [
        ("throughput", ROUTING, {"connection_rate": 20_000}),
        # Names for a cache are asked for at this rate.
        ("resolution-rate", DNS64, {"connection_rate": 2_000, "cached_share": 0.5}),
        ("latency", NAT44, {"way": "rfc8219", "trial_seconds": 120.0, "tags": 1000}),
        ("frame-loss", NAT44, {"placement": "shared", "throughput_rate": 1e5}),
        # What a profile chooses was not asked for.
        ("tear-down-rate", NAT44, {"tear_down_by": "fin", "transport": "tcp", "profile": "quick"}),
        ("tear-down-rate", NAT44, {"profile": "quick"}),
        ("throughput", NAT44, {"search": "mlrsearch", "confirm": False}),
    ],
)
def test_an_option_that_something_takes_is_not_refused(metric: str, gateway: Path, choices: dict[str, Any]) -> None:
    with pytest.raises(ReachedError):
        natgauge.measure(metric, gateway, lab="simulated", **choices)


@pytest.mark.parametrize(
    "choices", [{"seed": 1}, {"grace_seconds": 1.0}, {"power_command": "meter"}, {"log_tolerance": 0.01}]
)
def test_an_audit_refuses_options_of_trials(choices: dict[str, Any], golden: Golden) -> None:
    with golden.raises(UsageError):
        natgauge.audit("nftables-nat44", **choices)


def test_a_comparison_by_slices_takes_the_frames_of_a_slice(golden: Golden) -> None:
    """Those that were chosen need more connections than the usual ones."""
    with golden.raises(UsageError) as refused:
        natgauge.compare("nftables-nat44", "iptables-nat44", by="slices", slice_frames=256, connections=1500)
    assert refused.value.at == "connections"
