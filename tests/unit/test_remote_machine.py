# SPDX-License-Identifier: Apache-2.0
"""What a machine reached over ssh tells of itself, what is taken from it and run there, and how all is undone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.absent import absent
from tests.unit import fake_ethtool
from tests.unit.golden import Golden

from natgauge.errors import BrokenError, HostError, NatgaugeError, UsageError
from natgauge.host import recorded
from natgauge.host.programs import sections_of
from natgauge.labs.common.links import queues_shown
from natgauge.labs.contract import CommandResult
from natgauge.labs.netns.lab import NetnsLab
from natgauge.labs.ssh import bsd, remote
from natgauge.labs.ssh import facts as layouts
from natgauge.labs.ssh import lab as segments
from natgauge.labs.ssh.facts import RemoteFacts, layout, read, refuse_unfit, script
from natgauge.labs.ssh.lab import Segment, SystemWork
from natgauge.labs.ssh.remote import RemoteDevice, RemoteMachine, SshHost, end_orphans, explained

TEXT = r"""
Welcome to the router!
== user
0
== system
Linux
== kernel
6.1.0-56-amd64
== cpu
AMD EPYC 9354P
== cpus
0-3
== missing
== namespaces
yes
== links
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000\
2: eno1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000\
3: eno1.7@eno1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default qlen 1000\
4: ens1f0: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN mode DEFAULT group default qlen 1000\
5: ens1f1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP mode DEFAULT group default qlen 1000\
6: ens2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq master br0 state UP mode DEFAULT group default qlen 1000\
7: ens3: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000\
8: br0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default qlen 1000\
9: veth0@if4: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default qlen 1000\
== addresses
1: lo    inet 127.0.0.1/8 scope host lo\       valid_lft forever preferred_lft forever
3: eno1.7    inet 10.9.0.5/24 brd 10.9.0.255 scope global eno1.7\       valid_lft forever preferred_lft forever
7: ens3    inet6 2001:db8::7/64 scope global \       valid_lft forever preferred_lft forever
5: ens1f1    inet6 fe80::1/64 scope link \       valid_lft forever preferred_lft forever
== server
10.9.0.5
== routes
10.9.0.1 dev eno1.7 src 10.9.0.5 uid 0 \    cache
default via 10.7.0.1 dev br0 proto static
== driver ens1f0
ice
== offload ens1f0
tx-checksumming: on
== driver ens1f1
virtio_net
== offload ens1f1
"""
GOOD = ("ens1f0", "ens1f1")


@pytest.fixture
def facts() -> RemoteFacts:
    """A router with two free ports."""
    return read(TEXT)


def test_all_is_understood(facts: RemoteFacts) -> None:
    assert (facts.user, facts.system, facts.kernel) == (0, "Linux", "6.1.0-56-amd64")
    assert (facts.cpu, facts.cpus, facts.missing, facts.namespaces) == ("AMD EPYC 9354P", (0, 1, 2, 3), (), True)
    assert facts.management == {"eno1.7", "eno1", "br0", "ens2"}
    assert facts.drivers == {"ens1f0": "ice", "ens1f1": "virtio_net"}
    assert facts.offloads == {"ens1f0"}
    assert not facts.interfaces["ens1f0"].up
    assert facts.interfaces["ens1f1"].up
    assert facts.interfaces["ens1f1"].mtu == 9000
    assert facts.interfaces["ens1f1"].addresses == ()
    assert facts.interfaces["ens3"].addresses == ("2001:db8::7/64",)
    assert facts.interfaces["veth0"].parent == "if4"


@pytest.mark.parametrize(
    ("change", "interface", "mtu"),
    [
        # What the machine needs for itself.
        *(({}, interface, 1500) for interface in ("eno1", "eno1.7", "br0", "ens2", "ens3", "ens9")),
        # A port in a bridge, and one that carries a VLAN.
        *(({"management": frozenset({"ens3"})}, interface, 1500) for interface in ("ens2", "eno1")),
        # A shorter MTU than the tester's.
        ({}, "ens1f0", 9000),
        # A machine that cannot be worked on.
        ({"system": "NetBSD"}, "ens1f0", 1500),
        ({"user": 1000}, "ens1f0", 1500),
        ({"missing": ("ip",)}, "ens1f0", 1500),
        ({"namespaces": False}, "ens1f0", 1500),
    ],
)
def test_what_cannot_be_taken_of_a_machine_is_refused_and_free_interfaces_are_not(
    facts: RemoteFacts, change: dict[str, Any], interface: str, mtu: int, golden: Golden
) -> None:
    refuse_unfit(facts, "ssh host r", GOOD, 1500)
    with golden.raises((UsageError, HostError)):
        refuse_unfit(replace(facts, **change), "ssh host r", (interface, "ens1f1"), mtu)


@pytest.mark.parametrize("interface", ["ens3", "ens1f1"])
def test_the_interface_of_a_connection_by_a_link_local_address_is_not_taken(interface: str) -> None:
    """Several interfaces may have the address, and a free one has it, too; OpenSSH appends the name of the one."""
    text = TEXT.replace("== server\n10.9.0.5\n", f"== server\nfe80::1%{interface}\n")
    found = read("\n".join(line for line in text.splitlines() if not line.startswith("10.9.0.1 ")))
    assert interface in found.management
    with pytest.raises(UsageError, match="the one by which the machine is reached"):
        refuse_unfit(found, "ssh host r", (interface, "ens1f0"), 1500)


SYSCTLS = """
== sysctls ens1f0
ipv4/conf/ens1f0/rp_filter:2
ipv6/conf/ens1f0/disable_ipv6:1
ipv6/conf/ens1f0/accept_ra:0
ipv6/conf/ens1f0/forwarding:$(reboot)
ipv6/conf/../../../kernel/panic:1
== sysctls ens1f1
"""


def test_settings_that_an_interface_loses_on_its_way_are_given_back(tmp_path: Path) -> None:
    facts = read(TEXT + SYSCTLS)
    assert facts.sysctls == {
        "ens1f0": {
            "ipv4/conf/ens1f0/rp_filter": "2", "ipv6/conf/ens1f0/disable_ipv6": "1", "ipv6/conf/ens1f0/accept_ra": "0",
        },
    }  # fmt: skip
    # As the kernel makes them anew, but for one that is right by itself, and one that this kernel has no more.
    values = {"ipv4/conf/ens1f0/rp_filter": "0", "ipv6/conf/ens1f0/accept_ra": "0", "ipv6/conf/ens1f0/autoconf": "1"}
    for path, value in values.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{value}\n")
    (tmp_path / "ip").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "ip").chmod(0o755)
    plan = NetnsLab("x", initiator_family="ipv4", responder_family="ipv4")
    text = layout("x", ("gateway",), plan.cables, GOOD).undo(facts).replace("/proc/sys/net", str(tmp_path))
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["/bin/sh", "-eu", "-c", text], env=environment, check=True)
    found = {path: (tmp_path / path).read_text().strip() for path in values}
    assert found == {**values, "ipv4/conf/ens1f0/rp_filter": "2"}
    assert not (tmp_path / "ipv6/conf/ens1f0/disable_ipv6").exists()


def test_every_linux_tells_the_settings_of_an_interface() -> None:
    done = subprocess.run(["/bin/sh", "-c", script(["lo"])], capture_output=True, text=True, check=True)
    lines = sections_of(done.stdout)["sysctls lo"]
    assert {"ipv4/conf/lo/rp_filter", "ipv4/conf/lo/forwarding"} <= {line.partition(":")[0] for line in lines}


def test_a_machine_that_tells_nothing_is_refused() -> None:
    with pytest.raises(NatgaugeError, match="unknown system"):
        refuse_unfit(read(""), "ssh host r", GOOD, 1500)


OPENBSD = """
lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 33224
        inet 127.0.0.1 netmask 0xff000000
        inet6 ::1 prefixlen 128
        inet6 fe80::1%lo0 prefixlen 64 scopeid 0x5
lo1: flags=8008<LOOPBACK,MULTICAST> mtu 33224
fxp0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> mtu 1500
        address: 00:04:ac:dd:39:6a
        media: Ethernet autoselect (100baseTX full-duplex)
        status: active
        inet 10.0.0.38 netmask 0xffffff00 broadcast 10.0.0.255
        inet6 fe80::204:acff:fedd:396a%fxp0 prefixlen 64 scopeid 0x1
bridge0: flags=0<> mtu 1500
bridge1: flags=0<> mtu 1500
"""
FREEBSD = """
bge0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500
        options=19b<RXCSUM,TXCSUM,VLAN_MTU,VLAN_HWTAGGING,VLAN_HWCSUM,TSO4>
        ether 00:21:70:da:ae:37
        inet6 fe80::221:70ff:feda:ae37%bge0 prefixlen 64 scopeid 0x2
        nd6 options=29<PERFORMNUD,IFDISABLED,AUTO_LINKLOCAL>
        media: Ethernet autoselect (1000baseT <full-duplex>)
        status: active
lagg0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500
        options=8<VLAN_MTU>
        ether 00:21:70:da:ae:37
        media: Ethernet autoselect
        status: active
        laggproto failover
        laggport: wlan0 flags=0<>
        laggport: bge0 flags=5<MASTER,ACTIVE>
"""


def told(system: str, ifconfig: str, server: str = "") -> str:
    """What a machine answers to the script of questions."""
    return f"== user\n0\n== system\n{system}\n== processors\n4\n== interfaces{ifconfig}== server\n{server}\n"


def told_by(system: str, ifconfig: str, server: str = "") -> RemoteFacts:
    return bsd.read(told(system, ifconfig, server))


def test_interfaces_of_bsds_are_understood() -> None:
    found = told_by("OpenBSD", OPENBSD, server="10.0.0.38")
    assert {name: (one.up, one.mtu, one.addresses) for name, one in found.interfaces.items()} == {
        "lo0": (True, 33224, ("127.0.0.1", "::1")),
        "lo1": (False, 33224, ()),
        "fxp0": (True, 1500, ("10.0.0.38",)),
        "bridge0": (False, 1500, ()),
        "bridge1": (False, 1500, ()),
    }
    assert (found.system, found.cpus, found.namespaces) == ("OpenBSD", (0, 1, 2, 3), False)
    # The interface of a connection by a link-local address is not taken, either.
    by_link_local = told_by("OpenBSD", OPENBSD, server="fe80::204:acff:fedd:396a%fxp0")
    assert found.management == by_link_local.management == {"fxp0"}
    assert found.without_ipv6 == frozenset()
    found = told_by("FreeBSD", FREEBSD)
    assert {name: (one.up, one.mtu, one.addresses, one.master) for name, one in found.interfaces.items()} == {
        "bge0": (True, 1500, (), "lagg0"),
        "lagg0": (True, 1500, (), None),
    }
    assert found.without_ipv6 == {"bge0"}


@pytest.mark.parametrize(
    ("found", "interface", "devices"),
    [
        (told_by("OpenBSD", OPENBSD, "10.0.0.38"), "fxp0", ("gateway",)),
        (told_by("OpenBSD", OPENBSD), "fxp0", ("gateway",)),
        (told_by("FreeBSD", FREEBSD), "bge0", ("gateway",)),
        (told_by("OpenBSD", OPENBSD), "lo1", ("ce", "br")),
    ],
)
def test_what_cannot_be_a_device_is_refused(
    found: RemoteFacts, interface: str, devices: tuple[str, ...], golden: Golden
) -> None:
    with golden.raises(UsageError):
        refuse_unfit(found, "ssh host r", (interface, "bridge0"), 1500, devices)


class Answers:
    """A connection to a machine that answers questions, and that nothing may change."""

    host = SshHost("far")

    def ask(self, snippet: str) -> str:
        """Answer what the lab asks first: which system it is, and then its told_by."""
        return "OpenBSD\n" if snippet == "uname -s" else told("OpenBSD", OPENBSD)


def test_tuning_of_such_a_machine_is_refused_before_anything_changes(golden: Golden) -> None:
    far_machine: Any = Answers()
    blueprint = NetnsLab("x", initiator_family="ipv4", responder_family="ipv4", devices=("gateway",))
    laid = layout("x", ("gateway",), blueprint.cables, ("bridge0", "bridge1"))

    def changed(*_: str) -> None:
        pytest.fail("it is changed")

    segment = Segment(far_machine, laid, (), RemoteMachine(far_machine, changed), changed, recorded, {})
    with golden.raises(UsageError):
        segment.lay(1500, None, tunes=True)


class Here:
    """A machine that is this one."""

    host = SshHost("far")

    def __init__(self) -> None:
        self.fails: HostError | None = None

    def run(
        self, snippet: str, _seconds: float, *, variables: Mapping[str, str] | None = None, netns: str | None = None
    ) -> CommandResult:
        assert netns in {None, "natgauge-x-gateway"}
        if self.fails:
            raise self.fails
        done = subprocess.run(
            ["/bin/sh", "-eu", "-c", snippet], capture_output=True, text=True, check=False, env=dict(variables or {})
        )
        return CommandResult(done.returncode, done.stdout, done.stderr, 0.0)


class Bootable(Here):
    """One that a lab takes, and that forgets all of it when it is booted."""

    forgotten: Callable[[], None] | None = None

    def take(self) -> None:
        """Nobody else wants it."""

    def ask(self, _script: str) -> str:
        """What every script is told."""
        return "Linux\n"


@pytest.fixture
def log() -> list[tuple[str, str]]:
    """What was written down."""
    return []


@pytest.fixture
def machine(log: list[tuple[str, str]]) -> RemoteMachine:
    here: Any = Here()
    return RemoteMachine(here, lambda undo, says: log.append((undo, says)))


def undone(log: list[tuple[str, str]]) -> None:
    for undo, _ in reversed(log):
        subprocess.run(["/bin/sh", "-eu", "-c", undo], check=True)


def test_a_setting_is_read_written_and_restored(
    machine: RemoteMachine, log: list[tuple[str, str]], tmp_path: Path, golden: Golden
) -> None:
    paths = [tmp_path / "max", tmp_path / "buckets"]
    for path, value in zip(paths, (100, 50), strict=True):
        path.write_text(f"{value}\n")
    machine._remember = lambda undo, says: log.append((undo, f"{says}; it is {[path.read_text() for path in paths]}"))
    setting = machine.setting("table", [str(path) for path in paths], None)
    assert setting.available()
    assert setting.read() == 50
    assert setting.values() == dict(zip(paths, (100, 50), strict=True))
    setting.write(700)
    setting.write(900)
    assert setting.values() == dict.fromkeys(paths, 900)
    # The first value counts, however often it was set; it is written down before it changes.
    golden([says for _, says in log])
    undone(log)
    assert [path.read_text() for path in paths] == ["100\n", "50\n"]


def test_files_of_one_name_in_several_folders_are_all_read_and_restored(
    machine: RemoteMachine, log: list[tuple[str, str]], tmp_path: Path
) -> None:
    paths = [tmp_path / folder / "max" for folder in "ab"]
    for path, value in zip(paths, (100, 900), strict=True):
        path.parent.mkdir()
        path.write_text(f"{value}\n")
    setting = machine.setting("table", [str(path) for path in paths], None)
    assert setting.read() == 100
    setting.write(1000)
    paths[0].write_text("300\n")
    assert "was 1000" in setting.found_changed()
    undone(log)
    assert [path.read_text() for path in paths] == ["100\n", "900\n"]


def test_a_setting_that_is_not_there_or_refuses_is_told_in_one_line(
    machine: RemoteMachine, tmp_path: Path, golden: Golden
) -> None:
    setting = machine.setting("table", [str(tmp_path / "none")], "no_such_module_of_anybody")
    assert not setting.available()
    with golden.raises(HostError):
        setting.read()
    (tmp_path / "text").write_text("words\n")
    with pytest.raises(HostError, match="cannot be read"):
        machine.setting("table", [str(tmp_path / "text")], None).read()
    # A number that nobody may change.
    with golden.raises(HostError):
        machine.setting("table", ["/proc/sys/kernel/cap_last_cap"], None).write(5)
    with golden.raises(HostError):
        setting.write(5)


def test_free_memory_and_object_caches_are_that_machines_and_a_machine_that_is_gone_does_not_answer(
    machine: RemoteMachine, golden: Golden
) -> None:
    assert machine.free_octets() > 0
    if os.access("/proc/slabinfo", os.R_OK):
        assert any(cache.objects for cache in machine.object_caches().values())
    here: Any = Here()
    here.fails = HostError("ssh host far: refuses connections")
    with golden.raises(HostError):
        RemoteMachine(here, lambda *_: None).object_caches()


def test_a_machine_that_is_gone_is_a_device_that_does_not_answer(golden: Golden) -> None:
    here: Any = Here()
    machine = RemoteMachine(here, lambda *_: None)
    device = RemoteDevice("gateway", "natgauge-x-gateway", "a", "b", {"A": "1"}, machine)
    assert device.run('echo "$A$B"', environment={"B": "2"}).stdout == "12\n"
    here.fails = HostError("ssh host far: refuses connections")
    with golden.raises(BrokenError):
        device.run("true")


def test_a_chain_has_the_machines_interfaces_at_its_ends_only() -> None:
    names = ("ce", "pe")
    plan = NetnsLab("x", initiator_family="ipv4", responder_family="ipv4", devices=names)
    laid = layout("x", names, plan.cables, ("ens1", "ens2"))
    assert laid.namespaces == ("natgauge-x-ce", "natgauge-x-pe")
    assert [[end.interface for end in pair] for pair in laid.ends] == [["ens1", "outside"], ["inside", "ens2"]]


def test_neighbour_limits_are_raised_again_after_a_reboot_of_the_machine(
    log: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = tmp_path / "gc_thresh3"
    limit.write_text("1024\n")
    facts = read(TEXT)
    work = SystemWork(lambda _: "", lambda _: facts, lambda *_: "true", lambda *_: "true")
    monkeypatch.setattr(segments, "work_of", lambda _system: work)
    monkeypatch.setattr(layouts, "DIRECTORY", str(tmp_path / "device"))
    plan = NetnsLab("x", initiator_family="ipv4", responder_family="ipv4")
    here: Any = Bootable()

    def remember(undo: str, says: str) -> None:
        log.append((undo, says))

    laid = layout("x", ("gateway",), plan.cables, GOOD)
    segment = Segment(here, laid, (), RemoteMachine(here, remember), remember, None, {str(limit): 4000})
    segment.lay(1500, None, tunes=False)
    assert limit.read_text() == "4000\n"
    limit.write_text("1024\n")
    here.forgotten()
    assert limit.read_text() == "4000\n"
    undone(log)
    assert limit.read_text() == "1024\n"


# Queueing disciplines: those at the top, and what they dropped.

QUEUES = """\
qdisc noqueue 0: dev lo root refcnt 2
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc tbf 8001: dev eth1 root refcnt 2 rate 20Mbit burst 16Kb lat 4.3s
 Sent 18400 bytes 400 pkt (dropped 305, overlimits 12 requeues 0)
 backlog 0b 0p requeues 0
qdisc fq_codel 0: dev eth0 parent :1 limit 10240p flows 1024 quantum 1514
 Sent 7 bytes 1 pkt (dropped 9, overlimits 0 requeues 0)
  maxpacket 0 drop_overlimit 9 new_flow_count 0 ecn_mark 0
qdisc mq 0: dev eth0 root
 Sent 7 bytes 1 pkt (dropped 9, overlimits 0 requeues 0)
qdisc clsact ffff: dev eth0 parent ffff:fff1
 Sent 0 bytes 0 pkt (dropped 4, overlimits 0 requeues 0)
"""


def test_disciplines_at_the_top_are_read_and_those_below_are_not_counted_twice() -> None:
    assert queues_shown(QUEUES) == {
        "qdisc lo noqueue": 0,
        "qdisc eth1 tbf": 305,
        "qdisc eth0 mq": 9,
        "qdisc eth0 clsact": 4,
    }
    assert queues_shown("") == queues_shown("tc: not found\n") == {}


# Settings of a machine that devices run on.

DEVICE_PORTS = ("eth1", "eth2")
#: A card with four of eight queues that hashes addresses alone, and one whose driver has nothing to choose.
DEVICE_CARDS: dict[str, Any] = {
    "eth1": {"most": {"combined": 8}, "queues": {"combined": 4}, "hash": {"udp4": "sd", "udp6": "sdfn"}},
    "eth2": {},
}


class DeviceMachine:
    """A device_machine with a stand-in for ethtool and for the folder of its processors."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "ethtool.json").write_text(json.dumps(DEVICE_CARDS))
        shutil.copy(fake_ethtool.__file__, folder / "fake.py")
        (folder / "ethtool").write_text(f'#!/bin/sh\n{sys.executable} -I -S {folder}/fake.py "$@" && echo\n')
        (folder / "ip").write_text("#!/bin/sh\n")
        for program in ("ethtool", "ip"):
            (folder / program).chmod(0o755)
        for cpu, governor in enumerate(("powersave", "performance")):
            place = folder / f"cpu{cpu}" / "cpufreq"
            place.mkdir(parents=True)
            (place / "scaling_governor").write_text(f"{governor}\n")
            (place / "scaling_available_governors").write_text("performance powersave\n")
        (folder / "online").write_text("0-1\n")

    def run(self, script: str, *options: str) -> str:
        """Run shell text there; the lab runs what changes something with `-eu`."""
        text = script.replace("/sys/devices/system/cpu", str(self.folder))
        path = f"{self.folder}:{os.environ['PATH']}"
        done = subprocess.run(
            ["/bin/sh", *options], input=text, env={"PATH": path}, capture_output=True, text=True, check=True
        )
        return done.stdout.replace(str(self.folder), "/sys/devices/system/cpu")

    def now(self) -> str:
        return self.run(recorded.script(DEVICE_PORTS))


@pytest.fixture
def device_machine(tmp_path: Path) -> DeviceMachine:
    return DeviceMachine(tmp_path)


SET_THERE = {
    "device_governor": "performance, powersave",
    "device_queues": ["combined 4", None],
    "device_flow_hash": ["sd, sdfn", None],
}


def test_a_machine_without_such_settings_reports_none() -> None:
    assert recorded.values("", DEVICE_PORTS) == {
        "device_governor": None,
        "device_queues": [None, None],
        "device_flow_hash": [None, None],
    }
    assert list(recorded.changes("", DEVICE_PORTS)) == []


def test_they_are_set_for_measuring_and_restored(device_machine: DeviceMachine, golden: Golden) -> None:
    found = device_machine.now()
    assert recorded.values(found, DEVICE_PORTS) == SET_THERE
    changes = list(recorded.changes(found, DEVICE_PORTS))
    golden([what for what, _, _ in changes])
    for _, sets, _ in changes:
        device_machine.run(sets, "-eu")
    tuned = device_machine.now()
    assert recorded.values(tuned, DEVICE_PORTS) == {
        "device_governor": "performance",
        "device_queues": ["combined 2", None],
        "device_flow_hash": ["sdfn, sdfn", None],
    }
    assert list(recorded.changes(tuned, DEVICE_PORTS)) == []
    for _, _, undoes in reversed(changes):
        device_machine.run(undoes, "-eu")
    assert recorded.values(device_machine.now(), DEVICE_PORTS) == SET_THERE


def test_what_is_gone_is_not_restored(device_machine: DeviceMachine) -> None:
    """A core was taken away, and an interface was removed."""
    changes = list(recorded.changes(device_machine.now(), DEVICE_PORTS))
    shutil.rmtree(device_machine.folder / "cpu0")
    (device_machine.folder / "ip").write_text("#!/bin/sh\nexit 1\n")
    (device_machine.folder / "ethtool").write_text("#!/bin/sh\nexit 9\n")
    for _, _, undoes in changes:
        device_machine.run(undoes, "-eu")
    assert not (device_machine.folder / "cpu0").exists()


# What is run there, in every shell that one may find there; and what `ssh` says, in one line.

TOKEN = "tester:lab:0123"
SHELLS = ["dash", "busybox sh", "mksh", "bash"]


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a lab on a machine that this lab has taken."""
    folder = tmp_path / "natgauge-device"
    folder.mkdir()
    for name, end in (("DIRECTORY", ""), ("_LOCK", ".lock"), ("_CLOSING", ".closing")):
        monkeypatch.setattr(remote, name, f"{folder}{end}")
    Path(f"{folder}.lock").symlink_to(TOKEN)
    return folder


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    """One that is installed here."""
    if absent(request.param.split()[0]):
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


def said_by(shell: str, script: str) -> CommandResult:
    """What a machine with this shell answers."""
    began = time.perf_counter()
    done = subprocess.run(
        [*shell.split(), "-s"],
        input=script.replace("/bin/sh", shell),
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr, time.perf_counter() - began)


def answered(shell: str, snippet: str, number: int = 1, **variables: str) -> CommandResult:
    """What a snippet answers on a machine that is this lab's."""
    variables = {"PATH": os.environ["PATH"], **variables}
    answer = remote._unwrapped(said_by(shell, remote.wrapped(snippet, TOKEN, number, variables)))
    assert answer is not None
    return answer


def test_a_snippet_leaves_its_status_its_output_and_its_errors(shell: str, far: Path) -> None:
    says = "a 'b' \"c\" $d `e` \\ \nf"
    began = time.perf_counter()
    answer = answered(shell, 'echo "$NG_SAYS"; echo "it\'s wrong" >&2; exit 7', NG_SAYS=says)
    assert (answer.status, answer.stdout, answer.stderr) == (7, f"{says}\n", "it's wrong\n")
    assert 0 < answer.seconds <= time.perf_counter() - began
    answer = answered(shell, "false\necho went on")
    assert (answer.status, answer.stdout) == (1, ""), "it ends at its first failure"
    assert list(far.iterdir()) == []


@pytest.mark.usefixtures("far")
def test_a_snippet_sees_nothing_of_the_login_and_no_input(shell: str) -> None:
    snippet = "cat; env | cut -d= -f1 | sort | grep -v -e '^_$' -e '^PWD$' -e '^SHLVL$' -e '^OLDPWD$' | tr '\\n' ' '"
    assert answered(shell, snippet, LC_ALL="C").stdout.split() == ["LC_ALL", "PATH"]


@pytest.mark.usefixtures("far")
def test_what_a_snippet_leaves_running_does_not_hold_the_answer_up(shell: str) -> None:
    began = time.perf_counter()
    answer = answered(shell, "sleep 60 & echo $!")
    os.kill(int(answer.stdout), 9)
    assert time.perf_counter() - began < 30


def test_nothing_runs_on_a_machine_that_is_not_this_labs(shell: str, far: Path) -> None:
    Path(f"{far}.lock").unlink()
    said = said_by(shell, remote.wrapped(f"touch {far}/made", TOKEN, 1, {"PATH": os.environ["PATH"]}))
    assert remote._unwrapped(said) is None
    assert remote._NOT_OURS in said.stdout
    assert list(far.iterdir()) == []


def test_a_running_snippet_is_ended_with_what_it_began(shell: str, far: Path) -> None:
    text = remote.wrapped("sleep 61 & sleep 62", TOKEN, 5, {"PATH": os.environ["PATH"]})
    process = subprocess.Popen(
        [*shell.split(), "-s"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    )
    assert process.stdin is not None
    process.stdin.write(text.replace("/bin/sh", shell).encode())
    process.stdin.close()
    deadline = time.monotonic() + 20
    while not _has_text(far / "run.5") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert said_by(shell, remote._grouped(remote._kill_running("5"))).status == 0
    assert process.wait(20) == -9
    assert not (far / "run.5").exists()
    while (left := _members(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left == []


def test_a_snippet_whose_connection_was_lost_leaves_no_number_of_a_process(shell: str, far: Path) -> None:
    text = remote.wrapped(f"echo y > {far}.made", TOKEN, 5, {"PATH": os.environ["PATH"]})
    nobody, lost = os.pipe()
    os.close(nobody)
    subprocess.run(
        [*shell.split(), "-s"],
        input=text.replace("/bin/sh", shell).encode(),
        stdout=lost,
        stderr=subprocess.DEVNULL,
        check=False,
        start_new_session=True,
        timeout=60,
    )
    os.close(lost)
    assert Path(f"{far}.made").read_text() == "y\n"
    assert list(far.iterdir()) == []


def test_a_later_process_of_the_number_of_a_snippet_lives(shell: str, far: Path) -> None:
    later = subprocess.Popen(["sleep", "63"], start_new_session=True)
    (far / "run.5").write_text(f"{later.pid} 1\n")
    assert said_by(shell, remote._grouped(remote._kill_running("5"))).status == 0
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            later.wait(0.3)
    finally:
        later.kill()
        later.wait()
    assert list(far.iterdir()) == []


def _members(group: int) -> list[str]:
    """Processes of a group that live."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, pgrp = path.read_text().rpartition(")")[2].split()[:3]
            found += [path.parent.name] if int(pgrp) == group and state != "Z" else []
    return found


def _has_text(path: Path) -> bool:
    return path.exists() and path.read_text().strip() != ""


def test_a_machine_that_another_lab_has_is_refused_with_what_frees_it(
    far: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = remote.Remote(SshHost("router"), "another:lab:4567", far.parent / "control")
    monkeypatch.setattr(late._connection, "run", lambda script, _seconds: said_by("sh", script))
    # The register of a tester that was rebooted is gone, and with it the way to undo anything.
    with pytest.raises(HostError, match=r"natgauge on tester \(lab lab\); .*if tester was rebooted .*reboot router$"):
        late.take()


def test_one_machine_by_two_names_is_taken_once(far: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of what was made there would never be undone."""
    Path(f"{far}.lock").unlink()
    names = ("router", "10.0.0.1")
    one, other = (remote.Remote(SshHost(name), f"{TOKEN}:{at}", far.parent / name) for at, name in enumerate(names))
    for each in (one, other):
        monkeypatch.setattr(each._connection, "run", lambda script, _seconds: said_by("sh", script))
    for _ in range(2):
        one.take()
    with pytest.raises(HostError, match=r"ssh host 10\.0\.0\.1: is taken by this lab already, by another name or way"):
        other.take()


def test_a_clock_without_nanoseconds_or_one_that_was_set_is_not_believed() -> None:
    for began, ended in (("1700000000%N", "1700000001%N"), ("", ""), ("2" + "0" * 18, "1" + "0" * 18)):
        text = f"natgauge-answer 0 {began} {ended}\n{remote._BETWEEN}out"
        answer = remote._unwrapped(CommandResult(0, text, "", 0.25))
        assert answer == CommandResult(0, "out", "", 0.25)


@pytest.mark.parametrize(
    "said",
    [
        "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n",
        "Host key verification failed.\n",
        "root@far: Permission denied (publickey,password).\n",
        "ssh: Could not resolve hostname nowhere.invalid: Name or service not known\n",
        "ssh: connect to host 127.0.0.1 port 9: Connection refused\n",
        "ssh: connect to host 192.0.2.1 port 22: Connection timed out\n",
        "something\nelse\n\n",
    ],
)
def test_what_ssh_says_becomes_one_line(said: str, golden: Golden) -> None:
    line = explained(SshHost("root@far"), said)
    assert line.startswith("ssh host root@far: ")
    golden(line)
    assert "\n" not in line


@pytest.mark.parametrize(
    ("name", "config", "said"),
    [
        *((name, None, "ssh host") for name in ("", "-oProxyCommand=touch /tmp/x", "a b", "-")),
        ("far", "/nowhere/config", "ssh config"),
        *((name, None, None) for name in ("far", "root@far.example", "ssh://root@[2001:db8::1]:2222", "10.0.0.1")),
    ],
)
def test_destinations_of_every_form_are_taken_and_what_is_none_is_refused(
    name: str, config: str | None, said: str | None
) -> None:
    host = SshHost(name, config)
    with pytest.raises(UsageError, match=said) if said else nullcontext():
        assert host.checked() == host


def test_a_machine_is_given_back_step_by_step_and_only_by_the_lab_that_has_it(
    shell: str, far: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(remote, "run_once", lambda _host, script, _seconds: said_by(shell, script))
    log = far.parent / "log"
    steps = [f"echo first >> {log}", "exit 9", f"echo last >> {log}"]
    assert remote.give_back(SshHost("far"), "another:lab:4567", steps) is False
    assert not log.exists()
    with golden.raises(BrokenError):
        remote.give_back(SshHost("far"), TOKEN, steps)
    # All others were tried, and nothing new can be made there; the next try begins where this one stopped.
    assert log.read_text() == "first\nlast\n"
    said = said_by(shell, remote.wrapped(f"touch {far}/made", TOKEN, 1, {"PATH": os.environ["PATH"]}))
    assert remote._unwrapped(said) is None
    assert remote.give_back(SshHost("far"), TOKEN, [steps[0]]) is True
    assert list(far.parent.iterdir()) == [log]


def test_what_a_killed_process_left_of_a_connection_is_ended(tmp_path: Path) -> None:
    ours, other = tmp_path / "ssh", tmp_path / "ssh2"
    script = "import time; print(flush=True); time.sleep(60)"
    left, kept = (
        subprocess.Popen([sys.executable, "-c", script, f"-oControlPath={control}"], stdout=subprocess.PIPE)
        for control in (ours, other)
    )
    for each in (left, kept):
        # Before it runs, its command line may not be there yet.
        assert each.stdout is not None
        with each.stdout:
            assert each.stdout.readline()
    end_orphans(ours)
    assert left.wait(10) != 0
    assert kept.poll() is None
    kept.kill()
    kept.wait()


def test_a_connection_of_another_container_with_the_same_path_lives(tmp_path: Path) -> None:
    """It has a /run of its own, and its processes are visible here (docker run --pid=host)."""
    control = tmp_path / "run" / "ssh"
    control.parent.mkdir()
    sleeping = f"exec {sys.executable} -c 'import time; time.sleep(60)' -oControlPath={control}"
    script = f"mount -t tmpfs none {control.parent} && echo mounted && {sleeping}"
    unshare = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    command = [*unshare, "sh", "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as other:
        try:
            assert other.stdout is not None
            if other.stdout.readline() != b"mounted\n":
                pytest.skip("no mount namespace can be made here")
            deadline = time.monotonic() + 20
            while f"-oControlPath={control}" not in _arguments(other.pid) and time.monotonic() < deadline:
                time.sleep(0.01)
            end_orphans(control)
            with pytest.raises(subprocess.TimeoutExpired):
                other.wait(0.3)
        finally:
            other.kill()


def _arguments(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
