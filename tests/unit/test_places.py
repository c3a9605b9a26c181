# SPDX-License-Identifier: Apache-2.0
"""Labs from names: cores, ports, and what they fix for the traffic."""

from __future__ import annotations

import pytest

from natgauge.bench import places
from natgauge.bench.places import PlaceOptions, WirePort, choose_cores, idlest_core, surroundings, with_idle_core
from natgauge.duts.recipe import load
from natgauge.errors import UsageError
from natgauge.host.cpus import usable_cpus


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four cores; 2 is the idlest, 1 does nothing but work."""
    readings = iter([{0: 100, 1: 50, 2: 70, 3: 0}, {0: 105, 1: 50, 2: 89, 3: 19}])
    monkeypatch.setattr(places, "_idle_ticks", lambda: next(readings))
    monkeypatch.setattr(places, "usable_cpus", lambda: (0, 1, 2, 3))


@pytest.mark.usefixtures("busy")
def test_the_sender_gets_the_least_busy_core_and_the_first_of_equals() -> None:
    assert idlest_core((0, 1, 2, 3), 0.0) == 2


@pytest.mark.usefixtures("busy")
def test_only_cores_that_may_be_used_are_considered() -> None:
    assert idlest_core((0, 1), 0.0) == 0


def test_real_cores_are_read() -> None:
    assert set(usable_cpus()) <= set(places._idle_ticks())


@pytest.mark.parametrize(
    "options", [PlaceOptions(cores="0"), PlaceOptions(sender_cores=(1,)), PlaceOptions(kind="wire")]
)
def test_cores_that_were_chosen_stay(options: PlaceOptions) -> None:
    assert with_idle_core(options) == options


def test_in_shared_placement_the_devices_cores_are_the_senders() -> None:
    assert choose_cores(PlaceOptions(cores="0,1")) == ((0, 1), (0, 1))
    assert choose_cores(PlaceOptions(placement="shared", sender_cores=(1,))) == ((1,), None)


@pytest.mark.usefixtures("busy")
def test_an_isolated_device_leaves_the_sender_a_core() -> None:
    assert choose_cores(PlaceOptions(placement="isolated", sender_cores=(1,))) == ((1,), None)


@pytest.mark.parametrize(
    ("gateway", "mac", "address"),
    [
        ("02:00:00:00:00:AB", "02:00:00:00:00:ab", None),
        ("10.0.0.1", None, "10.0.0.1"),
        ("2001:2::1", None, "2001:2::1"),
    ],
)
def test_a_wire_ports_gateway_is_a_mac_or_an_address(gateway: str, mac: str | None, address: str | None) -> None:
    port = WirePort("eth1", gateway).as_port("initiator")
    assert (port.gateway_mac, port.gateway_address) == (mac, address)


def test_a_wire_ports_gateway_that_is_neither_is_named() -> None:
    with pytest.raises(UsageError, match="initiator gateway: 'router'"):
        WirePort("eth1", "router").as_port("initiator")


def test_a_nat64_has_a_prefix_and_a_pool_of_the_devices_outside_address() -> None:
    around = surroundings(PlaceOptions(), load("tayga-nat64"))
    assert (around.inside.family, around.outside.family) == ("ipv6", "ipv4")
    assert around.prefix is not None
    assert str(around.pool) == "198.19.0.1"
    assert around.mapped is None
    routed = surroundings(PlaceOptions(), load("linux-ipv4"))
    assert (routed.prefix, routed.pool, routed.translated) == (None, None, False)


def test_a_stateless_translator_maps_host_for_host() -> None:
    around = surroundings(PlaceOptions(), load("tayga-siit"))
    assert (around.translated, around.pool, str(around.mapped)) == (False, None, "198.18.0.2-198.18.255.254")
    assert str(around.prefix) == "2001:2:0:1::/96"


def test_what_a_foreign_translator_maps_to_is_not_known_so_any_source_is_right() -> None:
    initiator, responder = WirePort("ngnone0", "2001:2::1"), WirePort("ngnone1", "198.19.0.1")
    options = PlaceOptions(kind="wire", initiator_port=initiator, responder_port=responder)
    around = surroundings(options, load("tayga-siit"))
    assert (around.translated, around.pool, around.mapped) == (True, None, None)


def test_a_foreign_devices_pool_is_not_known() -> None:
    port = WirePort("ngnone0", "10.0.0.1")
    options = PlaceOptions(kind="wire", initiator_port=port, responder_port=port)
    around = surroundings(options, load("nftables-nat44"))
    assert around.pool is None
    assert around.mtu == 1500
