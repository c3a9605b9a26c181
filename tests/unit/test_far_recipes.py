# SPDX-License-Identifier: Apache-2.0
"""Gateways of systems that we do not have: every verb of theirs against commands that answer as the real ones do."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.unit.far_system import SHELLS, FarDevice, far_device, installed, lives
from tests.unit.made_machine import Memory

from natgauge.errors import BrokenError, HostError
from natgauge.gateways import gateway as driver
from natgauge.gateways.gateway import Gateway
from natgauge.gateways.limits import DeviceDemand
from natgauge.gateways.recipe import Recipe, available, load
from natgauge.gateways.recipe_model import Verbs
from natgauge.host.this_machine import ThisMachine
from natgauge.inputs.question import DeviceOptions
from natgauge.labs.common.device import NamespaceDevice

PLAN = DeviceDemand(connections=200_000, phase1_seconds=50, after_seconds=50, source_addresses=4, remote_endpoints=50)
ADDRESSES = {
    "NG_NAME": "x-gateway", "NG_CPUS": "0-3", "NG_INITIATOR_NETWORK4": "10.0.0.0/16",
    "NG_INITIATOR_NETWORK6": "2001:2::/64",
    "NG_RESPONDER_NETWORK4": "198.19.0.0/16", "NG_INSIDE_ADDRESS4": "10.0.0.1", "NG_INSIDE_ADDRESS6": "2001:2::1",
    "NG_OUTSIDE_ADDRESS4": "198.19.0.1", "NG_NAT64_PREFIX": "2001:2:0:1::/96",
}  # fmt: skip
RECIPES = {one.name: one for (path,) in available().values() if (one := load(path)).system != "Linux"}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return installed(request.param)


@pytest.fixture(params=RECIPES)
def recipe(request: pytest.FixtureRequest) -> Recipe:
    return RECIPES[request.param]


@pytest.fixture
def device(recipe: Recipe, shell: str, tmp_path: Path) -> FarDevice:
    return far_device(tmp_path, recipe.system, shell, **ADDRESSES)


def connect(device: FarDevice, count: int) -> None:
    """Let so many connections go through."""
    ipfw = device.state["ipfw"]
    if "natgauge" in ipfw["instances"]:
        ipfw["instances"]["natgauge"] |= {"created": count + 5, "deleted": 5}
        device.change(ipfw=ipfw)
    else:
        device.change(pf={"states": count})


def whole(device: FarDevice) -> dict[str, Any]:
    """All that a gateway could change, but for counters."""
    state = device.state
    for name in ("states", "forgotten", "forgotten_at", "counters", "skip"):
        del state["pf"][name]
    state["sysctl"].pop("net.inet.ip.fw.nat64_direct_output", None)
    state.pop("kenv", None)
    return state


def test_the_four_of_the_field_are_there() -> None:
    assert set(RECIPES) == {"openbsd-pf-nat44", "openbsd-pf-nat64", "freebsd-pf", "freebsd-ipfw-nat64"}


def test_every_shell_reads_every_snippet(recipe: Recipe, shell: str) -> None:
    knobs = [text for knob in recipe.knobs.named().values() for text in (knob.read, knob.write) if text]
    for text in [*(piece for verb in Verbs.model_fields for piece in recipe.verbs.pieces(verb)), *knobs]:
        read = subprocess.run([*shell.split(), "-n"], input=text, capture_output=True, text=True, check=False)
        assert (read.returncode, read.stderr) == (0, ""), text


@pytest.mark.parametrize(("recipe", "shell"), lives({name: one.system for name, one in RECIPES.items()}), indirect=True)
def test_a_whole_life(recipe: Recipe, device: FarDevice) -> None:
    before = whole(device)
    with Gateway(recipe, device) as gateway:
        gateway.prepare(PLAN)
        assert whole(device) == before, "preparing changes nothing"
        gateway.start()
        assert gateway.count() == 0
        connect(device, 1234)
        assert gateway.count() == 1234
        gateway.empty()
        assert gateway.count() == 0
        assert gateway.version() == (f"{recipe.system} 7.6",)
        assert all(isinstance(number, int) for number in gateway.faults().values())
        assert gateway.empty_timed() > 0
        gateway.confirm_ready()
        settings = gateway.settings()
        assert settings.knobs["udp_timeout"] == 230
        assert settings.found["udp_timeout"] == (120 if "ipfw" in recipe.name else 30)
        assert device.state["sysctl"]["net.inet.ip.forwarding"] == "1"
        gateway.restart_under_load()
        assert gateway.settings().knobs == settings.knobs
    assert whole(device) == before
    assert list(device.work.iterdir()) == []


@pytest.mark.parametrize("name", [name for name in RECIPES if "pf-" in name or name.endswith("pf")])
def test_pf_has_room_for_the_plan_and_touches_no_other_interface(name: str, tmp_path: Path) -> None:
    recipe = load(name)
    if "table_size" not in recipe.knobs.named():
        pytest.skip("it has no limit of states")
    device = far_device(tmp_path, recipe.system, **ADDRESSES)
    with Gateway(recipe, device) as gateway:
        gateway.prepare(PLAN)
        gateway.start()
        pf = device.state["pf"]
        assert pf["limit"] == gateway.settings().knobs["table_size"] == 212_500
        assert gateway.settings().found["table_size"] == 100_000
        assert {pf["timeouts"][f"udp.{what}"] for what in ("first", "single", "multiple")} == {230}
        assert pf["timeouts"]["adaptive.start"] == 0
        assert pf["skip"] == ["lo0", "em0"]
        device.change(pf={"counters": {"memory": 7, "match": 9}})
        assert gateway.faults()["memory"] == 7
        assert "match" not in gateway.faults()
        connect(device, 9)
        began = gateway.count()
        device.change(pf={"purge_seconds": 600})
        gateway.empty_timed()
        assert (began, gateway.count()) == (9, 9), "the stand-in counts forgotten states until the purge"
        device.change(pf={"purge_seconds": 0})
        assert gateway.count() == 0


def test_a_limit_that_was_asked_for_is_set_and_one_that_is_looked_for_is_left(tmp_path: Path) -> None:
    recipe = load("openbsd-pf-nat44")
    device = far_device(tmp_path, recipe.system, **ADDRESSES)
    filling = DeviceDemand(connections=50_000, phase1_seconds=5, remote_endpoints=50, fills_table=True)
    with Gateway(recipe, device) as gateway:
        gateway.prepare(filling)
        gateway.start()
        assert gateway.settings().knobs["table_size"] == 100_000
    with Gateway(recipe, device, DeviceOptions(table_size=4000)) as gateway:
        gateway.prepare(filling)
        gateway.start()
        assert device.state["pf"]["limit"] == 4000


def test_a_firewall_of_the_machines_own_is_left_alone(recipe: Recipe, tmp_path: Path) -> None:
    device = far_device(tmp_path, recipe.system, **ADDRESSES)
    if "ipfw" in recipe.name:
        device.change(ipfw={"rules": {"2": "deny ip from any to any"}})
        device.replace(modules=["ipfw", "ipfw_nat64"])
        says = "rules of this machine's own under the numbers 1 to 4; renumber them: 00002 deny"
    else:
        device.change(pf={"enabled": True, "rules": ["block all"]})
        device.replace(modules=["pf"])
        says = "pf is on, with rules of this machine's own; turn it off for the measurement: pfctl -d"
    before = whole(device)
    gateway = Gateway(recipe, device)
    gateway.prepare(PLAN)
    with pytest.raises(BrokenError, match=says):
        gateway.start()
    gateway.stop()
    assert whole(device) == before


def test_a_start_over_an_interrupted_one_remembers_what_was_there_before_that(recipe: Recipe, tmp_path: Path) -> None:
    device = far_device(tmp_path, recipe.system, **ADDRESSES)
    before = whole(device)
    killed = Gateway(recipe, device)
    killed.prepare(PLAN)
    killed.start()
    with Gateway(recipe, device) as gateway:
        gateway.prepare(PLAN)
        gateway.start()
        assert gateway.count() == 0
    assert whole(device) == before


def test_a_gateway_that_was_turned_off_does_not_stand_any_more(recipe: Recipe, tmp_path: Path) -> None:
    device = far_device(tmp_path, recipe.system, **ADDRESSES)
    gateway = Gateway(recipe, device)
    gateway.prepare(PLAN)
    gateway.start()
    device.change(pf={"enabled": False}, ipfw={"rules": {}})
    with pytest.raises(BrokenError, match="is not ready any more"):
        gateway.confirm_ready()


def test_a_count_that_lags_is_waited_for_and_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = load("openbsd-pf-nat44")
    device = far_device(tmp_path, recipe.system, **ADDRESSES)
    gateway = Gateway(recipe, device)
    gateway.prepare(PLAN)
    gateway.start()
    connect(device, 5)
    gateway.empty()
    hasty = recipe.model_copy(update={"limits": recipe.limits.model_copy(update={"count_lag": 0})})
    monkeypatch.setattr(driver, "_EMPTY_TRIES", 1)
    other = Gateway(hasty, device)
    other.prepare(PLAN)
    connect(device, 5)
    with pytest.raises(BrokenError, match="5 connections are left"):
        other.empty()


def test_it_is_refused_on_another_system(recipe: Recipe, tmp_path: Path) -> None:
    here = NamespaceDevice("gateway", "ng-none", "a", "b", {}, ThisMachine(Memory()))
    with pytest.raises(
        HostError, match=f"is a gateway of {recipe.system}, and device gateway runs Linux; use --lab ssh"
    ):
        Gateway(recipe, here).prepare(PLAN)
    there = far_device(tmp_path, recipe.system)
    with pytest.raises(HostError, match=f"linux-ipv4: is a gateway of Linux, and device gateway runs {recipe.system}"):
        Gateway(load("linux-ipv4"), there).prepare(PLAN)


def test_a_program_of_the_base_system_is_no_package(recipe: Recipe, tmp_path: Path) -> None:
    device = far_device(tmp_path, recipe.system)
    (tmp_path / "bin" / "ifconfig").unlink()
    with pytest.raises(
        HostError, match=f'"ifconfig" is missing on device gateway; it is of the base system of {recipe.system}'
    ):
        Gateway(recipe, device).prepare(PLAN)
