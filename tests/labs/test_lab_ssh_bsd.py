# SPDX-License-Identifier: Apache-2.0
"""The `ssh` lab on a machine that answers as OpenBSD or FreeBSD does: a real sshd, and stand-ins for the commands."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.absent import absent
from tests.labs.far import SSHD, TIMEOUT, FarMachine, far_machine, unchanged
from tests.unit.far_system import FarDevice, far_device

from natgauge.cleaning import cleanup
from natgauge.errors import HostError, UsageError
from natgauge.gateways.gateway import Gateway
from natgauge.gateways.limits import DeviceDemand
from natgauge.gateways.recipe import load
from natgauge.labs import kinds, ssh
from natgauge.labs.common.links import MTU
from natgauge.labs.contract import Lab, LabNeeds
from natgauge.labs.ssh import remote

pytestmark = [
    TIMEOUT,
    pytest.mark.soak,  # unit/test_remote_bsd.py and unit/test_far_recipes.py play each verb of each recipe
    pytest.mark.slow("plays gateways over ssh with a Python process for each of their commands"),
    pytest.mark.skipif(absent(SSHD), reason="openssh-server is not installed: make test installs it"),
]
PLAN = DeviceDemand(connections=2000, phase1_seconds=5, after_seconds=5, remote_endpoints=2)
#: One of each system, with each of its two packet filters; every verb of all four has unit tests.
RECIPES = ("openbsd-pf-nat44", "freebsd-ipfw-nat64")
OTHERS = ("openbsd-pf-nat64", "freebsd-pf")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarMachine]:
    """One for all tests."""
    with far_machine("bsdfar", tmp_path_factory.mktemp("far")) as machine:
        for name in ("far0", "far1"):
            # The tester's ports want a carrier, and the stand-ins touch no real interface.
            subprocess.run(["ip", "-n", machine.name, "link", "set", name, "up"], check=True)
        yield machine


@pytest.fixture
def far(machine: FarMachine) -> Iterator[FarMachine]:
    """The machine, on which nothing may be left, whatever the test did."""
    with unchanged(machine):
        yield machine


def standing_in(folder: Path, system: str, monkeypatch: pytest.MonkeyPatch) -> FarDevice:
    """Put that system's commands before all others over there."""
    device = far_device(folder, system)
    interfaces = device.state["interfaces"]
    # As long as the tester's ports, which are veths of natgauge's.
    device.change(interfaces={name: {**interfaces[name], "mtu": MTU} for name in ("em1", "em2")})
    monkeypatch.setattr(remote, "PATH", f"{folder / 'bin'}:{remote.PATH}")
    return device


def lab_on(far: FarMachine, recipe: str, **others: Any) -> Lab:
    played = load(recipe)
    chosen = {**far.chosen, "device_inside": "em1", "device_outside": "em2", **others}
    del chosen["lab"]
    need = LabNeeds(families=(played.initiator_family, played.responder_family))
    lab: Lab = kinds.get("ssh").plan("sshbsd", ssh.SshOptions(**chosen), need)
    return lab


@pytest.mark.parametrize("name", [*RECIPES, *OTHERS])
def test_a_gateway_is_played_there_and_the_machine_is_as_it_was(
    name: str, far: FarMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = load(name)
    there = standing_in(tmp_path, recipe.system, monkeypatch)
    before = there.state
    with lab_on(far, name) as lab:
        (device,) = lab.devices
        assert device.machine.system == recipe.system
        assert device.machine.free_octets() == 600_000 * 4096
        assert lab.parameters()["device_kernel"] == f"{recipe.system} 7.6"
        assert lab.device_cores.count == 4
        assert {place for place in lab.dropped() if place.startswith("gateway")} == set()
        with Gateway(recipe, device) as gateway:
            gateway.prepare(PLAN)
            gateway.start()
            assert gateway.count() == 0
            assert gateway.version() == (f"{recipe.system} 7.6",)
            assert there.state["interfaces"]["em2"]["inet"] == "198.19.0.1"
    after = there.state
    for state in (before, after):
        state["pf"].pop("forgotten_at")
        state["pf"].pop("skip")
        state["sysctl"].pop("net.inet.ip.fw.nat64_direct_output", None)
        state.pop("kenv", None)
    assert after == before


@pytest.mark.parametrize("name", RECIPES)
def test_what_a_gateway_left_that_nobody_stopped_is_undone_when_the_machine_is_given_back(
    name: str, far: FarMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = load(name)
    there = standing_in(tmp_path, recipe.system, monkeypatch)
    with lab_on(far, name) as lab:
        gateway = Gateway(recipe, lab.devices[0])
        gateway.prepare(PLAN)
        gateway.start()
        assert there.state["sysctl"]["net.inet.ip.forwarding"] == "1"
    state = there.state
    assert state["sysctl"]["net.inet.ip.forwarding"] == "0"
    assert not state["pf"]["enabled"]
    assert (state["modules"], state["ipfw"]) == ([], {"rules": {}, "instances": {}})
    assert "inet" not in state["interfaces"]["em1"]
    assert [lab for lab in cleanup.status() if lab.name == "sshbsd"] == []


def test_what_the_machine_needs_and_what_it_cannot_do_is_refused(
    far: FarMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = standing_in(tmp_path, "OpenBSD", monkeypatch)
    before = there.state
    with pytest.raises(UsageError, match="interface em0 is the one by which the machine is reached"):
        lab_on(far, "openbsd-pf-nat44", device_inside="em0").__enter__()
    with pytest.raises(UsageError, match=r"^tune device: ssh host \S+ runs OpenBSD; only Linux is tuned, leave it"):
        lab_on(far, "openbsd-pf-nat44", tune_device=True).__enter__()
    with lab_on(far, "openbsd-pf-nat44") as lab, pytest.raises(HostError, match=r"a gateway of Linux.* runs OpenBSD"):
        Gateway(load("nftables-nat44"), lab.devices[0]).prepare(PLAN)
    assert there.state == before
