# SPDX-License-Identifier: Apache-2.0
"""What another machine tells of itself is understood, and nothing that it needs for itself is taken from it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.golden import Golden

from natgauge.errors import HostError, NatgaugeError, UsageError
from natgauge.host.sections import sections_of
from natgauge.labs.netns.lab import NetnsLab
from natgauge.labs.ssh.facts import RemoteFacts, read, refuse_unfit, script
from natgauge.labs.ssh.layout import layout

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


@pytest.mark.parametrize("change", [{"system": "NetBSD"}, {"user": 1000}, {"missing": ("ip",)}, {"namespaces": False}])
def test_a_machine_that_cannot_be_worked_on_is_refused(
    facts: RemoteFacts, change: dict[str, object], golden: Golden
) -> None:
    with golden.raises(HostError):
        refuse_unfit(replace(facts, **change), "ssh host r", GOOD, 1500)  # type: ignore[arg-type]


def test_a_machine_that_tells_nothing_is_refused() -> None:
    with pytest.raises(NatgaugeError, match="unknown system"):
        refuse_unfit(read(""), "ssh host r", GOOD, 1500)
