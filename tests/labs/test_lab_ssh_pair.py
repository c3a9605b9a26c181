# SPDX-License-Identifier: Apache-2.0
"""A chain on two machines over ssh: each device on its own machine, both given back, whatever happens to one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.absent import absent
from tests.labs.datagrams import Datagram
from tests.labs.far import SSHD, TIMEOUT, FarPair, await_room, far_pair
from tests.labs.wire import Tap

from natgauge import cleaning
from natgauge.errors import UsageError
from natgauge.gateways.gateway import Chain, Gateway
from natgauge.gateways.limits import DeviceDemand
from natgauge.gateways.recipe import load
from natgauge.labs import kinds, ssh
from natgauge.labs.common.addresses import INSIDE, OUTSIDE
from natgauge.labs.contract import Lab, LabNeeds

pytestmark = [
    TIMEOUT,
    pytest.mark.calm,
    pytest.mark.slow("starts two sshd, and makes and undoes a chain on two machines over ssh"),
    pytest.mark.skipif(absent(SSHD), reason="openssh-server is not installed: make test installs it"),
]
FLOWS = 20
#: Of the machines' interfaces at the tester's ports (tests/labs/far.py).
MACS = ("02:00:00:00:00:02", "02:00:00:00:02:01")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarPair]:
    with far_pair("sshpair", tmp_path_factory.mktemp("pair")) as pair:
        yield pair


@pytest.fixture(autouse=True)
def room() -> None:
    # natgauge wants room for more connections than there are.
    await_room(FLOWS + 1024)


def lab_on(pair: FarPair, **others: Any) -> Lab:
    chosen = {name: value for name, value in {**pair.chosen, **others}.items() if name != "lab"}
    need = LabNeeds(families=("ipv4", "ipv4"), devices=("ce", "pe"))
    lab: Lab = kinds.get("ssh").plan("sshpair", ssh.SshOptions(**chosen), need)
    return lab


def test_a_chain_on_two_machines_forwards_and_is_given_back(pair: FarPair) -> None:
    recipe = load("464xlat-tayga")
    with lab_on(pair) as lab:
        known = lab.parameters()
        assert known["cores_of_devices"] == "each its own"
        assert lab.device_cores.count == len(lab.devices[0].environment["NG_CPUS"].split(","))
        places = {place for place in lab.dropped() if not place.startswith(("initiator", "responder"))}
        assert {place.split(" ")[0] for place in places} == {"ce", "pe"}
        assert {"ce backlog", "pe backlog"} <= places
        players = [Gateway(one, device) for one, device in zip(recipe.of_devices(0), lab.devices, strict=True)]
        with Chain(players, recipe.holder) as chain:
            chain.start(DeviceDemand(connections=FLOWS, phase1_seconds=5))
            ports = (
                replace(port, gateway_mac=mac) for port, mac in zip((lab.initiator, lab.responder), MACS, strict=True)
            )
            with Tap(next(ports)) as initiator, Tap(next(ports)) as responder:
                for device, tap, side, interface in (
                    (lab.devices[0], initiator, INSIDE["ipv4"], lab.devices[0].inside),
                    (lab.devices[1], responder, OUTSIDE["ipv4"], lab.devices[1].outside),
                ):
                    host = f"{side.host(0)} lladdr {tap.mac.hex(':')}"
                    assert device.run(f"ip neigh replace {host} dev {interface} nud permanent").status == 0
                source, server = INSIDE["ipv4"].host(0), OUTSIDE["ipv4"].host(0)
                sent = [Datagram(source, 2000 + number, server, 7, b"%04d" % number) for number in range(FLOWS)]
                # What is on its way while the machines look for each other waits.
                initiator.send(sent[:1])
                assert len(responder.receive(1)) == 1
                initiator.send(sent[1:])
                seen = responder.receive(FLOWS - 1)
                assert len(seen) == FLOWS - 1
                responder.send(one.reply() for one in seen)
                assert {one.payload for one in initiator.receive(FLOWS - 1)} == {one.payload for one in sent[1:]}
            assert chain.count() == FLOWS
            assert chain.strays() == {}
        network = lab.counters().network or {}
        assert {name: counters["IpInReceives"] >= FLOWS for name, counters in network.items()} == {
            "ce": True,
            "pe": True,
        }
    assert pair.left() == []


def test_a_machine_that_cannot_be_used_leaves_nothing_on_the_other_one(pair: FarPair) -> None:
    with pytest.raises(UsageError, match="interface far7 does not exist there"):
        lab_on(pair, device_outside="ce=far1,pe=far7").__enter__()
    assert pair.left() == []


def test_labs_of_killed_runs_are_undone_on_both_machines(pair: FarPair) -> None:
    lab = lab_on(pair)
    lab.__enter__()
    assert len(pair.left()) > 2
    # As a killed run leaves it: the register says where things were made.
    register = lab._register  # type: ignore[attr-defined]
    for segment in lab._segments:  # type: ignore[attr-defined]
        segment.remote.close()
    lab._ports.down()  # type: ignore[attr-defined]
    register.release()
    done = cleaning.clean(["sshpair"])
    assert sum("gave back far0 and far1 of far" in str(line) for line in done) == 2
    assert pair.left() == []
    assert (
        subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout.count("pair-ce") == 0
    )
