# SPDX-License-Identifier: Apache-2.0
"""A chain whose devices are on several machines: which machine has which devices, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from natgauge.core_work import CoreWork
from natgauge.errors import BrokenError, UsageError
from natgauge.labs import ssh
from natgauge.labs.contract import DeviceCores, LabNeeds
from natgauge.labs.ssh import openssh, remote
from natgauge.labs.ssh.facts import RemoteFacts
from natgauge.labs.ssh.lab import RemoteLab
from natgauge.labs.ssh.openssh import SshHost
from natgauge.labs.ssh.segment import numbered_apart
from natgauge.procedures.kit.result.device_figures import imbalance

PAIR = LabNeeds(families=("ipv4", "ipv4"), devices=("ce", "pe"))
THREE = LabNeeds(families=("ipv4", "ipv4"), devices=("nat", "ce", "br"))
CHOSEN: Mapping[str, Any] = {
    "ssh_host": "ce=root@a,pe=ssh://root@b:2222",
    "device_inside": "eth1",
    "device_outside": "ce=eth2,pe=eth3",
    "initiator_port": "ngnone0",
    "responder_port": "ngnone1",
}


def planned(need: LabNeeds = PAIR, **changes: Any) -> RemoteLab:
    return ssh.plan("x", ssh.SshOptions(**{**CHOSEN, **changes}), need)


def facts(cpus: tuple[int, ...], kernel: str = "6.1") -> RemoteFacts:
    return RemoteFacts(
        user=0, system="Linux", kernel=kernel, cpu="some", cpus=cpus, missing=(), namespaces=True, interfaces={},
        management=frozenset(),
    )  # fmt: skip


def test_each_device_is_on_its_own_machine() -> None:
    lab = planned()
    first, second = lab._segments
    assert [str(segment.host) for segment in lab._segments] == ["root@a", "ssh://root@b:2222"]
    assert (first.layout.names, first.layout.interfaces) == (("ce",), ("eth1", "eth2"))
    assert (second.layout.names, second.layout.interfaces) == (("pe",), ("eth1", "eth3"))
    # The link between the machines has the addresses of a link between devices.
    ce, pe = lab.devices
    for version in "46":
        assert ce.environment[f"NG_OUTSIDE_PEER{version}"] == pe.environment[f"NG_INSIDE_ADDRESS{version}"]
    assert [str(address) for address in first.layout.ends[0][1].addresses] == ["192.0.2.1/30", "2001:2:0:64::1/64"]
    assert [str(address) for address in second.layout.ends[0][0].addresses] == ["192.0.2.2/30", "2001:2:0:64::2/64"]
    assert "type veth" not in first.layout.make(facts((0,)))


def test_neighbouring_devices_share_a_machine() -> None:
    lab = planned(
        THREE,
        ssh_host="nat=root@a,ce=root@a,br=root@b",
        device_outside="eth2",
        device_inside="nat=eth1,ce=none,br=eth7",
    )
    first, second = lab._segments
    assert (first.layout.names, first.layout.interfaces) == (("nat", "ce"), ("eth1", "eth2"))
    assert (second.layout.names, second.layout.interfaces) == (("br",), ("eth7", "eth2"))
    assert first.layout.make(facts((0,))).count("type veth") == 1
    (alone,) = planned(THREE, ssh_host="root@a", device_outside="eth2", device_inside="eth1")._segments
    assert alone.layout.names == ("nat", "ce", "br")


@pytest.mark.parametrize(
    ("need", "changes", "said"),
    [
        (PAIR, {"ssh_host": "ce=root@a,aftr=root@b"}, "ssh host: aftr is no device; the chain has ce, pe"),
        (PAIR, {"ssh_host": "ce=root@a"}, "ssh host: pe has none; the chain has ce, pe, name one for each"),
        (PAIR, {"ssh_host": "ce=root@a,ce=root@b"}, "device ce is named twice"),
        (PAIR, {"device_outside": "ce=eth2"}, "device outside: pe has none"),
        (PAIR, {"device_inside": "eth2"}, "ssh host root@a: interface eth2 is named for both sides"),
        (PAIR, {"ssh_host": "ce=root@a,pe=-oX"}, "ssh host: '-oX' is none"),
        (THREE, {"ssh_host": "nat=root@a,ce=root@b,br=root@a", "device_outside": "eth2"}, "that are no neighbours"),
        (LabNeeds(families=("ipv4", "ipv4")), {}, "ssh host: ce is no device; the only device is gateway"),
    ],
)
def test_machines_that_cannot_be_are_refused_in_one_line(need: LabNeeds, changes: Mapping[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as error:
        planned(need, **changes)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_the_cores_and_facts_of_the_machines_are_recorded() -> None:
    lab = planned()
    assert lab.device_cores == DeviceCores()
    first, second = lab._segments
    first.facts, second.facts = facts((0, 1)), facts((0, 1))
    first.settings, second.settings = {"device_queues": ["2", "2"]}, {"device_queues": ["2", "2"]}
    known = lab.parameters()
    assert lab.device_cores == DeviceCores(2)
    assert (known["cores_of_devices"], known["device_kernel"], known["device_queues"]) == (
        "each its own",
        "6.1",
        ["2", "2"],
    )
    second.facts = facts((0, 1, 2, 3), "6.9")
    known = lab.parameters()
    assert lab.device_cores == DeviceCores(6)
    assert known["cores_of_devices"] == {"ce": 2, "pe": 4}
    assert known["device_kernel"] == {"ce": "6.1", "pe": "6.9"}


def test_cores_of_several_machines_are_judged_apart() -> None:
    work = numbered_apart(
        [("ce", {0: CoreWork(3000), 1: CoreWork(3000)}), ("pe", {core: CoreWork(1500) for core in range(4)})]
    )
    assert len(work) == 6
    assert imbalance(work) == 1.0


def test_what_was_done_on_each_machine_is_undone_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that cannot be given back does not keep the other one."""
    given: list[tuple[str, str, list[str]]] = []

    def give_back(host: SshHost, token: str, undo: list[str]) -> bool:
        given.append((str(host), token, undo))
        if str(host) == "root@a":
            raise BrokenError("ssh host root@a: gone")
        return True

    monkeypatch.setattr(remote, "give_back", give_back)
    monkeypatch.setattr(openssh, "end_orphans", lambda _control: None)
    lab = planned()
    settings = lab._settings()
    items = [{"undo": text, "says": text, "at": at} for text, at in (("x", "0"), ("y", "1"), ("z", "0"))]
    with pytest.raises(BrokenError, match="root@a: gone"):
        ssh.undo(tmp_path, settings, items)
    first, second = settings["tokens"]
    assert first != second, "one machine by two names is not taken twice"
    assert given == [("root@a", first, ["x", "z"]), ("ssh://root@b:2222", second, ["y"])]
