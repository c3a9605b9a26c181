# SPDX-License-Identifier: Apache-2.0
"""What `ifconfig` prints on OpenBSD and FreeBSD is understood, as far as their own documentation shows it.

The samples are quoted from the OpenBSD FAQ (6.2.1) and the FreeBSD Handbook ("Link Aggregation and Failover").
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.golden import Golden

from natgauge.errors import UsageError
from natgauge.host.tuning import recorded
from natgauge.labs.netns.lab import NetnsLab
from natgauge.labs.ssh import bsd
from natgauge.labs.ssh.facts import RemoteFacts, refuse_unfit
from natgauge.labs.ssh.layout import layout
from natgauge.labs.ssh.openssh import SshHost
from natgauge.labs.ssh.remote import RemoteMachine
from natgauge.labs.ssh.segment import Segment

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


def facts(system: str, ifconfig: str, server: str = "") -> RemoteFacts:
    return bsd.read(told(system, ifconfig, server))


def test_openbsds_interfaces_are_understood() -> None:
    found = facts("OpenBSD", OPENBSD, server="10.0.0.38")
    assert {name: (one.up, one.mtu, one.addresses) for name, one in found.interfaces.items()} == {
        "lo0": (True, 33224, ("127.0.0.1", "::1")),
        "lo1": (False, 33224, ()),
        "fxp0": (True, 1500, ("10.0.0.38",)),
        "bridge0": (False, 1500, ()),
        "bridge1": (False, 1500, ()),
    }
    assert (found.system, found.cpus, found.namespaces) == ("OpenBSD", (0, 1, 2, 3), False)
    assert found.management == {"fxp0"}
    assert found.without_ipv6 == frozenset()


def test_the_interface_of_a_connection_by_a_link_local_address_is_not_taken() -> None:
    assert facts("OpenBSD", OPENBSD, server="fe80::204:acff:fedd:396a%fxp0").management == {"fxp0"}


def test_freebsds_interfaces_are_understood() -> None:
    found = facts("FreeBSD", FREEBSD)
    assert {name: (one.up, one.mtu, one.addresses, one.master) for name, one in found.interfaces.items()} == {
        "bge0": (True, 1500, (), "lagg0"),
        "lagg0": (True, 1500, (), None),
    }
    assert found.without_ipv6 == {"bge0"}


@pytest.mark.parametrize(
    ("found", "interface", "devices"),
    [
        (facts("OpenBSD", OPENBSD, "10.0.0.38"), "fxp0", ("gateway",)),
        (facts("OpenBSD", OPENBSD), "fxp0", ("gateway",)),
        (facts("FreeBSD", FREEBSD), "bge0", ("gateway",)),
        (facts("OpenBSD", OPENBSD), "lo1", ("ce", "br")),
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
        """Answer what the lab asks first: which system it is, and then its facts."""
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
