# SPDX-License-Identifier: Apache-2.0
"""Native IPv6 beside the frames under test: which share becomes which pattern, who routes it, and who cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.fake_engine import FakeEngine
from tests.unit.golden import Golden
from tests.unit.test_measurer import SETTINGS
from tests.unit.test_measurer_trials import PLAN, measurer
from tests.unit.test_measurer_verbs import WIRE, check

from natgauge.errors import UsageError
from natgauge.labs.netns.lab import BACKGROUND_HOSTS, NetnsLab
from natgauge.measurer import Ability

ROUTED = replace(SETTINGS, background=BACKGROUND_HOSTS)


@pytest.mark.parametrize(("share", "pattern"), [(0.9, (10, 9)), (0.5, (2, 1)), (0.1, (10, 1)), (1 / 3, (3, 1))])
def test_of_n_frames_m_are_under_test(share: float, pattern: tuple[int, int]) -> None:
    engine = FakeEngine()
    measurer(engine, settings=ROUTED).measure(replace(PLAN, foreground_share=share))
    background = engine.requests[-1].background
    assert background is not None
    assert (background.n, background.m) == pattern
    assert background.initiator_addresses.first != background.responder_addresses.first


def test_without_a_share_there_is_no_background() -> None:
    engine = FakeEngine()
    measurer(engine, settings=ROUTED).measure(PLAN)
    assert engine.requests[-1].background is None


def test_only_where_the_device_routes_it_the_tester_can_do_it() -> None:
    assert Ability.BACKGROUND in measurer(FakeEngine(), settings=ROUTED).abilities
    assert Ability.BACKGROUND not in measurer(FakeEngine()).abilities


def test_a_measurement_makes_a_lab_that_routes_it_only_when_asked() -> None:
    asked = check("throughput", "nftables-nat44", foreground_share=0.9)[0].lab
    plain = check("throughput", "nftables-nat44")[0].lab
    assert isinstance(asked, NetnsLab)
    assert isinstance(plain, NetnsLab)
    assert (asked.background, plain.background) == (True, False)
    # The recipe's own world stays as it was.
    assert asked.devices[0].environment == plain.devices[0].environment


@pytest.mark.parametrize(
    "others",
    [
        {"gateway": "nftables-nat66"},
        WIRE,
        {"foreground_share": 0.0},
        {"foreground_share": 1.5},
        {"metric": "connection-rate"},
    ],
)
def test_what_cannot_be_is_refused_in_one_line(others: dict[str, Any], golden: Golden) -> None:
    question: dict[str, Any] = {"metric": "throughput", "gateway": "nftables-nat44", "foreground_share": 0.9, **others}
    with golden.raises(UsageError):
        check(**question)


def test_a_chain_of_devices_does_not_route_it(golden: Golden) -> None:
    with golden.raises(UsageError):
        NetnsLab("x", initiator_family="ipv4", responder_family="ipv4", devices=("one", "two"), background=True)
