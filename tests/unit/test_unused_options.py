# SPDX-License-Identifier: Apache-2.0
"""Options that nothing takes beside others are given to nobody; command lines with them are in the golden inputs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.golden import Golden
from tests.unit.test_campaign_plan import cells
from tests.unit.test_measurer_verbs import check

from natgauge.audits.request import LONG_WAIT_SECONDS, audit_request
from natgauge.campaigns.cells import lacks_rate
from natgauge.campaigns.plan import PlanError
from natgauge.comparisons.request import CompareOptions, read_gateways, with_usual_options
from natgauge.errors import UsageError


def test_what_only_some_values_of_a_series_take_is_given_to_these(golden: Golden) -> None:
    """Plans with such a series were refused."""
    measure = [{"metric": "latency", "tags": 1000, "trial_seconds": 120.0}]
    gateways, series = ["nftables-nat44"], {"way": ["every-frame", "rfc8219"]}
    (cell,) = cells(gateways=gateways, series=series, measure=measure)
    every, sampled = (each.planned.chosen for each in cell.measurements)
    assert ("tags" in every, sampled["tags"]) == (False, 1000)
    with golden.raises(PlanError):
        cells(gateways=gateways, series={"order": ["increasing", "decreasing"]}, measure=measure)


@pytest.mark.parametrize(
    ("metric", "gateway", "choices"),
    [
        ("throughput", "linux-ipv4", {"connection_rate": 20_000}),
        # Names for a cache are asked for at this rate.
        ("resolution-rate", "unbound-dns64", {"connection_rate": 2_000, "cached_share": 0.5}),
        ("latency", "nftables-nat44", {"way": "rfc8219", "trial_seconds": 120.0, "tags": 1000}),
        ("frame-loss", "nftables-nat44", {"placement": "shared", "throughput_rate": 1e5}),
        # What a profile chooses was not asked for.
        ("tear-down-rate", "nftables-nat44", {"tear_down_by": "fin", "transport": "tcp", "profile": "quick"}),
        ("tear-down-rate", "nftables-nat44", {"profile": "quick"}),
        ("throughput", "nftables-nat44", {"search": "mlrsearch", "confirm": False}),
    ],
)
def test_an_option_that_something_takes_is_not_refused(metric: str, gateway: str, choices: dict[str, Any]) -> None:
    check(metric, gateway, **choices)


@pytest.mark.parametrize(
    "choices", [{"seed": 1}, {"grace_seconds": 1.0}, {"power_command": "meter"}, {"log_tolerance": 0.01}]
)
def test_an_audit_refuses_options_of_trials(choices: dict[str, Any], golden: Golden) -> None:
    with golden.raises(UsageError):
        audit_request("nftables-nat44", choices)


def test_a_wait_that_is_longer_than_long_stays() -> None:
    waits = [audit_request("nftables-nat44", {"long": True, **chosen})[1].wait for chosen in ({}, {"wait": 9000.0})]
    assert waits == [LONG_WAIT_SECONDS, 9000.0]


def test_a_comparison_by_slices_takes_the_frames_of_a_slice() -> None:
    gateways = read_gateways(["nftables-nat44", "iptables-nat44"], {}, unlike=False)
    assert with_usual_options(CompareOptions(by="slices", slice_frames=256), gateways).slice_frames == 256


def test_the_connection_rate_of_a_round_is_given_only_to_what_takes_one() -> None:
    measure = [{"metric": "throughput"}, {"metric": "throughput", "stateless": True}]
    for point in cells(gateways=["linux-ipv4"], device={}, measure=measure):
        taken = {each.planned.settings.has_phase1: lacks_rate(each) for each in point.measurements}
        assert taken == {True: True, False: False}
