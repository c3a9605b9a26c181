# SPDX-License-Identifier: Apache-2.0
"""What a machine reached over ssh tells of itself, what is taken from it, and how its settings are undone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit import fake_ethtool
from tests.unit.golden import Golden

from natgauge.errors import BrokenError, HostError, NatgaugeError, UsageError
from natgauge.host.sections import sections_of
from natgauge.host.tuning import recorded
from natgauge.labs.common.network_counters import queues_shown
from natgauge.labs.contract import CommandResult
from natgauge.labs.netns.lab import NetnsLab
from natgauge.labs.ssh import bsd
from natgauge.labs.ssh import layout as layouts
from natgauge.labs.ssh import segment as segments
from natgauge.labs.ssh.facts import RemoteFacts, read, refuse_unfit, script
from natgauge.labs.ssh.layout import layout
from natgauge.labs.ssh.openssh import SshHost
from natgauge.labs.ssh.remote import RemoteDevice, RemoteMachine
from natgauge.labs.ssh.segment import Segment, SystemWork

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
    remote: Any = Answers()
    blueprint = NetnsLab("x", initiator_family="ipv4", responder_family="ipv4", devices=("gateway",))
    laid = layout("x", ("gateway",), blueprint.cables, ("bridge0", "bridge1"))

    def changed(*_: str) -> None:
        pytest.fail("it is changed")

    segment = Segment(remote, laid, (), RemoteMachine(remote, changed), changed, recorded, {})
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
    device = RemoteDevice(
        "gateway", "natgauge-x-gateway", "a", "b", {"A": "1"}, here, RemoteMachine(here, lambda *_: None)
    )
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
