# SPDX-License-Identifier: Apache-2.0
"""What another machine tells of itself is understood, and nothing that it needs for itself is taken from it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.golden import Golden

from natgauge.errors import HostError, NatgaugeError, UsageError
from natgauge.labs.ssh.facts import RemoteFacts, read, refuse_unfit

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


def test_free_interfaces_are_taken(facts: RemoteFacts) -> None:
    refuse_unfit(facts, "ssh host r", GOOD, 1500)


@pytest.mark.parametrize("interface", ["eno1", "eno1.7", "br0", "ens2", "ens3", "ens9"])
def test_what_the_machine_needs_for_itself_is_refused(facts: RemoteFacts, interface: str, golden: Golden) -> None:
    with golden.raises(UsageError):
        refuse_unfit(facts, "ssh host r", (interface, "ens1f1"), 1500)


def test_a_port_in_a_bridge_and_one_that_carries_a_vlan_are_refused(facts: RemoteFacts, golden: Golden) -> None:
    elsewhere = replace(facts, management=frozenset({"ens3"}))
    for interface in ("ens2", "eno1"):
        with golden.raises(UsageError):
            refuse_unfit(elsewhere, "ssh host r", (interface, "ens1f1"), 1500)


def test_a_shorter_mtu_than_the_testers_is_refused(facts: RemoteFacts, golden: Golden) -> None:
    with golden.raises(UsageError):
        refuse_unfit(facts, "ssh host r", GOOD, 9000)


@pytest.mark.parametrize("change", [{"system": "NetBSD"}, {"user": 1000}, {"missing": ("ip",)}, {"namespaces": False}])
def test_a_machine_that_cannot_be_worked_on_is_refused(
    facts: RemoteFacts, change: dict[str, object], golden: Golden
) -> None:
    with golden.raises(HostError):
        refuse_unfit(replace(facts, **change), "ssh host r", GOOD, 1500)  # type: ignore[arg-type]


def test_a_machine_that_tells_nothing_is_refused() -> None:
    with pytest.raises(NatgaugeError, match="unknown system"):
        refuse_unfit(read(""), "ssh host r", GOOD, 1500)
