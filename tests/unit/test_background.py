# SPDX-License-Identifier: Apache-2.0
"""Native IPv6 beside the frames under test: which share becomes which pattern, who routes it, and who cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.fake_engine import FakeEngine
from tests.unit.test_measurer import SETTINGS
from tests.unit.test_measurer_trials import PLAN, measurer
from tests.unit.test_measurer_verbs import WIRE, check

from natgauge.labs.netns.lab import BACKGROUND_HOSTS, NetnsLab
from natgauge.measurer import Ability

ROUTED = replace(SETTINGS, background=BACKGROUND_HOSTS)
#: The tester's hosts on a wire, on both sides.
NATIVE = {"initiator_background": "2001:db8:b1::2-2001:db8:b1::9", "responder_background": "2001:db8:b2::2"}


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
    # The recipe's own world stays as it was, but for what a NAT66 must leave alone.
    more = {"NG_BACKGROUND_NETWORKS6": "2001:2:0:b1::/64 2001:2:0:b2::/64"}
    assert asked.devices[0].environment == {**plain.devices[0].environment, **more}


def test_each_device_of_a_chain_has_a_route_to_it() -> None:
    asked = check("throughput", "ds-lite", foreground_share=0.9)[0].lab
    assert isinstance(asked, NetnsLab)
    ends = [end for cable in asked.cables for end in cable.ends]
    routed = {(end.netns, end.interface): {str(to): str(via) for to, via in end.routes} for end in ends if end.routes}
    inside, outside = "2001:2:0:b1::/64", "2001:2:0:b2::/64"
    assert routed == {
        ("ng-default-b4", "outside"): {outside: "2001:2:0:64::2"},
        ("ng-default-aftr", "inside"): {inside: "2001:2:0:64::1"},
        ("ng-default-aftr", "outside"): {outside: "2001:2:0:65::2"},
        ("ng-default-nat", "inside"): {inside: "2001:2:0:65::1"},
    }
    assert all(end.speaks_ipv6 for end in ends if not end.netns.endswith("tester"))


def test_on_a_wire_the_user_names_its_hosts() -> None:
    bench, _ = check("throughput", "nftables-nat44", **WIRE, **NATIVE, device_timeout=10, foreground_share=0.9)
    assert bench.lab.ground.background is not None
    assert list(map(str, bench.lab.ground.background)) == list(NATIVE.values())
    assert NATIVE.items() <= bench.lab.parameters().items()


@pytest.mark.parametrize("gateway", ["nftables-nat66", "464xlat-tayga", "map-e", "lw4o6", "lwaftr", "tayga-nat64"])
def test_it_is_asked_beside_every_technology(gateway: str) -> None:
    bench, planned = check("throughput", gateway, foreground_share=0.5)
    assert bench.lab.ground.background == BACKGROUND_HOSTS
    assert planned.settings.parameters()["foreground_share"] == 0.5
