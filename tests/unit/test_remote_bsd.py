# SPDX-License-Identifier: Apache-2.0
"""A machine with OpenBSD or FreeBSD in the `ssh` lab: what it tells is understood, and what is made there is undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.far_system import FarDevice, far_device

from natgauge.errors import HostError, UsageError
from natgauge.labs.contract import CommandResult
from natgauge.labs.netns.lab import NetnsLab
from natgauge.labs.ssh import bsd
from natgauge.labs.ssh.facts import RemoteFacts, refuse_unfit
from natgauge.labs.ssh.layout import Layout, layout
from natgauge.labs.ssh.machine import RemoteDevice, RemoteMachine
from natgauge.labs.ssh.openssh import SshHost
from natgauge.labs.ssh.segment import work_of
from natgauge.words import Family

OPENBSD = r"""
OpenBSD 7.6 (GENERIC.MP) #338
== user
0
== system
OpenBSD
== kernel
7.6
== missing
== cpu
AMD EPYC 9354P
== processors
4
== interfaces
lo0: flags=2008049<UP,LOOPBACK,RUNNING,MULTICAST,LRO> mtu 32768
	index 4 priority 0 llprio 3
	groups: lo
	inet6 ::1 prefixlen 128
	inet6 fe80::1%lo0 prefixlen 64 scopeid 0x4
	inet 127.0.0.1 netmask 0xff000000
bge0: flags=808843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,AUTOCONF4> mtu 1500
	lladdr 52:54:00:12:34:56
	media: Ethernet autoselect (1000baseT full-duplex)
	status: active
ix0: flags=8802<BROADCAST,SIMPLEX,MULTICAST> mtu 1500
	lladdr 52:54:00:12:34:57
	inet6 fe80::5054:ff:fe12:3457%ix0 prefixlen 64 scopeid 0x2
ix1: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> mtu 9000
ix2: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> mtu 1500
	inet6 2001:db8::7 prefixlen 64
ix3: flags=8943<UP,BROADCAST,RUNNING,PROMISC,SIMPLEX,MULTICAST> mtu 1500
vlan7: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> mtu 1500
	encap: vnetid 7 parent bge0 txprio packet rxprio outer
	inet 10.9.0.5 netmask 0xffffff00 broadcast 10.9.0.255
bridge0: flags=41<UP,RUNNING> mtu 1500
	priority 32768 hellotime 2 fwddelay 15 maxage 20 holdcnt 6 proto rstp
	ix3 flags=3<LEARNING,DISCOVER>
== server
10.9.0.5
== routes
   route to: 10.9.0.1
destination: 10.9.0.0
       mask: 255.255.255.0
  interface: vlan7
 if address: 10.9.0.5
"""
FREEBSD = """
== user
0
== system
FreeBSD
== kernel
14.1-RELEASE
== missing
== cpu
AMD EPYC 9354P
== processors
8
== interfaces
em0: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
	options=4e504bb<RXCSUM,TXCSUM,VLAN_MTU,VLAN_HWTAGGING>
	ether 52:54:00:12:34:56
	inet 10.9.0.5 netmask 0xffffff00 broadcast 10.9.0.255
	nd6 options=29<PERFORMNUD,IFDISABLED,AUTO_LINKLOCAL>
em1: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
	nd6 options=29<PERFORMNUD,IFDISABLED,AUTO_LINKLOCAL>
em2: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
	laggproto lacp
em3: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
em0.7: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
	vlan: 7 vlanproto: 802.1q vlanpcp: 0 parent interface: em0
lagg0: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
	laggport: em2 flags=1c<ACTIVE,COLLECTING,DISTRIBUTING>
bridge0: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
	member: em3 flags=143<LEARNING,DISCOVER,AUTOEDGE,AUTOPTP>
== server
10.9.0.5
== routes
  interface: em0
"""


def test_openbsd_is_understood() -> None:
    facts = bsd.read(OPENBSD)
    assert (facts.user, facts.system, facts.kernel, facts.cpu) == (0, "OpenBSD", "7.6", "AMD EPYC 9354P")
    assert (facts.cpus, facts.missing, facts.namespaces) == ((0, 1, 2, 3), (), False)
    assert facts.management == {"vlan7", "bge0"}
    assert facts.interfaces["ix0"].addresses == ()
    assert not facts.interfaces["ix0"].up
    assert facts.interfaces["ix1"].mtu == 9000
    assert facts.interfaces["ix2"].addresses == ("2001:db8::7",)
    assert facts.interfaces["ix3"].master == "bridge0"
    assert facts.interfaces["vlan7"].parent == "bge0"
    assert facts.without_ipv6 == frozenset()
    refuse_unfit(facts, "ssh host r", ("ix0", "ix1"), 1500, ("gateway",))


def test_freebsd_is_understood() -> None:
    facts = bsd.read(FREEBSD)
    assert facts.management == {"em0"}
    assert facts.without_ipv6 == {"em0", "em1"}
    assert {name: one.master for name, one in facts.interfaces.items() if one.master} == {
        "em2": "lagg0",
        "em3": "bridge0",
    }
    assert facts.interfaces["em0.7"].parent == "em0"


@pytest.mark.parametrize(
    ("interfaces", "devices", "why"),
    [
        (("bge0", "ix1"), ("gateway",), "interface bge0 is the one by which the machine is reached"),
        (("vlan7", "ix1"), ("gateway",), "interface vlan7 is the one by which the machine is reached"),
        (
            ("ix2", "ix1"),
            ("gateway",),
            "carries IP address 2001:db8::7; use another, or run there: ifconfig ix2 2001:db8::7 delete",
        ),
        (("ix3", "ix1"), ("gateway",), "interface ix3 is in use by bridge0"),
        (("ix9", "ix1"), ("gateway",), "interface ix9 does not exist there; there are bge0, bridge0, ix0"),
        (("ix0", "ix1"), ("ce", "pe"), "runs OpenBSD, which has room for one device, and the chain has ce, pe"),
    ],
)
def test_what_cannot_be_is_refused(interfaces: tuple[str, str], devices: tuple[str, ...], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        refuse_unfit(bsd.read(OPENBSD), "ssh host r", interfaces, 1500, devices)


def test_a_program_that_is_missing_is_no_package() -> None:
    facts = bsd.read(OPENBSD.replace("== missing\n", "== missing\nroute\n"))
    with pytest.raises(HostError, match='program "route" is missing there; it is of the base system'):
        refuse_unfit(facts, "ssh host r", ("ix0", "ix1"), 1500)


class Far:
    """A connection to such a machine."""

    host = SshHost("far")

    def __init__(self, device: FarDevice) -> None:
        self.device = device

    def run(self, snippet: str, seconds: float, *, variables: Any = None, netns: str | None = None) -> CommandResult:
        """As `natgauge.labs.ssh.remote.Remote.run`."""
        assert netns is None, "there are none"
        return self.device.run(snippet, environment=variables, timeout=seconds)


def laid(
    folder: Path, system: str, family: Family, monkeypatch: pytest.MonkeyPatch
) -> tuple[FarDevice, Layout, RemoteFacts]:
    """A machine, the plan of its one device, and what it told of itself."""
    device = far_device(folder, system, SSH_CONNECTION="10.9.0.1 50000 10.9.0.5 22")
    monkeypatch.setattr("natgauge.labs.ssh.layout.DIRECTORY", str(folder))
    blueprint = NetnsLab("x", initiator_family=family, responder_family="ipv4", devices=("work",))
    # Whatever a machine does not tell is passed over.
    looked = device.run("set +eu\n" + work_of(system).script(("em1", "em2")))
    assert looked.status == 0, looked.stderr
    return device, layout("x", ("work",), blueprint.cables, ("em1", "em2")), work_of(system).read(looked.stdout)


@pytest.mark.parametrize("system", ["OpenBSD", "FreeBSD"])
@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_a_machine_is_looked_at_made_a_device_and_given_back(
    system: str, family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, plan, facts = laid(tmp_path, system, family, monkeypatch)
    refuse_unfit(facts, "ssh host far", plan.interfaces, 1500, plan.names)
    assert (facts.system, facts.cpu, len(facts.cpus)) == (system, "Some CPU @ 3 GHz", 4)
    assert facts.management == {"em0"}
    before = device.state
    for _ in range(2):
        made = device.run(work_of(system).make(plan, facts))
        assert made.status == 0, made.stderr
    interfaces = device.state["interfaces"]
    assert interfaces["em1"]["inet" if family == "ipv4" else "inet6"] == (
        "10.0.0.1" if family == "ipv4" else "2001:2::1"
    )
    assert interfaces["em2"]["inet"] == "198.19.0.1"
    assert interfaces["em2"]["up"]
    assert interfaces["em0"] == before["interfaces"]["em0"], "the management interface is left alone"
    # What a gateway that was killed wrote down before it changed it.
    device.run("sysctl net.inet.ip.forwarding=1 > /dev/null")
    (device.work / "undo.forwarding").write_text("sysctl net.inet.ip.forwarding=0 > /dev/null\n")
    for _ in range(2):
        undone = device.run(f"set -eu\n{work_of(system).undo(plan, facts)}")
        assert undone.status == 0, undone.stderr
    assert device.state == before


def test_what_a_gateway_wrote_down_and_cannot_be_undone_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, plan, facts = laid(tmp_path, "OpenBSD", "ipv4", monkeypatch)
    (device.work / "undo.pf").write_text("pfctl -q -f /nowhere/at/all\n")
    assert device.run(f"set -eu\n{work_of('OpenBSD').undo(plan, facts)}").status != 0


def test_its_memory_is_what_is_free_or_inactive(tmp_path: Path) -> None:
    far: Any = Far(far_device(tmp_path, "OpenBSD"))
    machine = RemoteMachine(far, lambda *_: None)
    machine.system = "OpenBSD"
    assert machine.free_octets() == 600_000 * 4096
    (tmp_path / "bin" / "vmstat").unlink()
    with pytest.raises(HostError, match="prints no free pages"):
        machine.free_octets()
    device = RemoteDevice("gateway", None, "em1", "em2", {}, far, machine)
    assert device.run("uname -s").stdout == "OpenBSD\n"


def test_systems_that_nobody_knows_are_looked_at_as_linux_is() -> None:
    assert work_of("SunOS") is work_of("Linux")
    assert work_of("NetBSD").read("== system\nNetBSD\n").system == "NetBSD"
