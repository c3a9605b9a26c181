# SPDX-License-Identifier: Apache-2.0
"""What a netns lab is planned to be, also with native IPv6 beside the frames, and which plans are refused."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.fake_engine import FakeEngine
from tests.unit.fake_measurer import SETTINGS
from tests.unit.golden import Golden
from tests.unit.test_measurer_trials import PLAN, measurer
from tests.unit.test_measurer_verbs import WIRE, check

from natgauge.errors import UsageError
from natgauge.host import machine
from natgauge.labs.contract import Lab, Port
from natgauge.labs.netns import lab
from natgauge.labs.netns.lab import BACKGROUND_HOSTS, NetnsLab
from natgauge.labs.wire.lab import WireLab
from natgauge.measurer import Ability


@pytest.fixture(autouse=True)
def _four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (machine, lab):
        monkeypatch.setattr(module, "usable_cpus", lambda: (0, 1, 2, 3))


def _lab(**changes: Any) -> NetnsLab:
    return NetnsLab(**({"initiator_family": "ipv4", "responder_family": "ipv4"} | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "Bad"},
        {"name": ""},
        {"name": "../x"},
        {"name": "x" * 33},
        {"name": "-x"},
        {"initiator_family": "ipx"},
        {"devices": ()},
        {"devices": ["d"] * 66},
        {"devices": ("a", "a")},
        {"devices": ("tester",)},
        {"devices": ("a-b",)},
        {"placement": "elsewhere"},
        {"sender_cpus": ()},
        {"sender_cpus": (9,)},
        {"sender_cpus": (0,), "device_cpus": (1,)},
        {"placement": "isolated", "sender_cpus": (0, 1), "device_cpus": (1, 2)},
        {"placement": "isolated", "sender_cpus": (0, 1, 2, 3)},
        {"ring": 0},
        {"ring": 16385},
        {"hosts": 0},
    ],
)
def test_bad_plans_are_refused_in_one_line(changes: dict[str, Any], golden: Golden) -> None:
    with pytest.raises(UsageError) as refusal:
        _lab(**changes)
    golden(str(refusal.value))
    assert "\n" not in str(refusal.value)


def test_shared_devices_work_on_the_senders_cores_and_isolated_ones_on_the_others() -> None:
    shared = _lab(sender_cpus=(2, 3))
    assert shared.device_cpus == shared.sender_cpus == (2, 3)
    assert shared.devices[0].environment["NG_CPUS"] == "2,3"
    assert _lab(placement="isolated", sender_cpus=(1,)).device_cpus == (0, 2, 3)


def test_the_environment_of_a_nat64() -> None:
    (device,) = _lab(name="x", initiator_family="ipv6").devices
    assert device.environment == {
        "NG_NAME": "x-gateway",
        "NG_WORK": "/run/natgauge/labs/x/gateway",
        "NG_CPUS": "0",
        "NG_INSIDE": "inside",
        "NG_OUTSIDE": "outside",
        "NG_NAT64_PREFIX": "2001:2:0:1::/96",
        "NG_MAPPED_NETWORK4": "198.18.0.0/16",
        "NG_INSIDE_ADDRESS6": "2001:2::1",
        "NG_INSIDE_PEER6": "2001:2::2",
        "NG_OUTSIDE_PEER4": "198.19.0.2",
        "NG_OUTSIDE_ADDRESS4": "198.19.0.1",
        "NG_POOL4_FIRST": "198.19.0.1",
        "NG_POOL4_LAST": "198.19.0.1",
        "NG_POOL4": "198.19.0.1/32",
        "NG_INITIATOR_NETWORK6": "2001:2::/64",
        "NG_RESPONDER_NETWORK4": "198.19.0.0/16",
    }


def test_a_chain_is_joined_by_links_of_both_families() -> None:
    first, second = _lab(devices=("clat", "plat")).devices
    for version in "46":
        assert first.environment[f"NG_OUTSIDE_ADDRESS{version}"] == second.environment[f"NG_INSIDE_PEER{version}"]
        assert first.environment[f"NG_OUTSIDE_PEER{version}"] == second.environment[f"NG_INSIDE_ADDRESS{version}"]
    assert "NG_INSIDE_ADDRESS6" not in first.environment
    assert first.environment["NG_RESPONDER_NETWORK4"] == second.environment["NG_RESPONDER_NETWORK4"]


def test_every_end_has_a_mac_of_its_own_and_ports_know_their_peers() -> None:
    lab = _lab(devices=("a", "b", "c"))
    ends = [end for cable in lab._cables() for end in cable.ends]
    assert len({end.mac for end in ends}) == len(ends) == 8
    assert (lab.initiator.gateway_mac, lab.responder.gateway_mac) == (ends[1].mac, ends[-2].mac)
    assert (lab.initiator.gateway_address, lab.responder.gateway_address) == ("10.0.0.1", "198.19.0.1")
    assert all(not end.addresses for end in ends if end.netns == lab.tester)


def test_settings_make_the_same_lab_again() -> None:
    lab = _lab(name="x", devices=("a", "b"), placement="isolated", sender_cpus=(1,), ring=64, hosts=9)
    again = NetnsLab("x", **lab.settings)
    assert again.settings == lab.settings
    assert again.devices == lab.devices


def test_labs_are_what_the_seam_asks_for() -> None:
    one, other = (Port(name, None, "02:00:00:00:00:01", None) for name in ("ngnone0", "ngnone1"))
    labs: list[Lab] = [_lab(), WireLab(one, other)]
    assert [lab.placement for lab in labs] == ["shared", "external"]


def test_a_lab_that_is_not_up_has_no_register() -> None:
    lab = _lab()
    lab.down()
    with pytest.raises(RuntimeError, match="not up"):
        lab.keep()


@pytest.mark.parametrize(
    ("core", "mask"),
    [(0, "1"), (31, "80000000"), (32, "1,00000000"), (63, "80000000,00000000"), (64, "1,00000000,00000000")],
)
def test_the_queue_of_each_core_gets_the_mask_that_the_kernel_reads(tmp_path: Path, core: int, mask: str) -> None:
    queue = tmp_path / "net" / "inside" / "queues" / f"tx-{core}"
    beyond = queue.with_name("tx-65")
    for folder in (queue, beyond, tmp_path / "net" / "outside" / "queues" / "tx-0"):
        folder.mkdir(parents=True)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "nproc").write_text("#!/bin/sh\necho 65\n")
    (programs / "nproc").chmod(0o755)
    snippet = lab._ONE_QUEUE_PER_CPU.replace("/sys/class/net", str(tmp_path / "net"))
    environment = {"NG_INSIDE": "inside", "NG_OUTSIDE": "outside", "PATH": f"{programs}:{os.environ['PATH']}"}
    subprocess.run(["/bin/sh", "-eu", "-c", snippet], env=environment, check=True)
    assert (queue / "xps_cpus").read_text() == mask
    assert not any(beyond.iterdir()), "this machine has no such core"


# Native IPv6 beside the frames under test: which share becomes which pattern, who routes it, and who cannot.

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


def test_without_a_share_there_is_no_background_and_only_where_the_device_routes_it_the_tester_can_do_it() -> None:
    engine = FakeEngine()
    routed = measurer(engine, settings=ROUTED)
    routed.measure(PLAN)
    assert engine.requests[-1].background is None
    assert Ability.BACKGROUND in routed.abilities
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
