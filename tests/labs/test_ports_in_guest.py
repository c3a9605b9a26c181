# SPDX-License-Identifier: Apache-2.0
"""The tester inside a machine with network cards of its own: multi-queue virtio-net and vmxnet3, of Linux 6.12.

Two machines: the tester's, with all kinds of ports, and a gateway's, whose two cards are cabled to two of them.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.labs.machine import Card, Machine, hubbed, network, tapped

from natgauge.labs.vm.qemu import PROGRAM
from natgauge.labs.wire.port_state import driver_facts

pytestmark = [
    pytest.mark.slow("boots two machines in an emulator"),
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        "NATGAUGE_TEST_GUEST" not in os.environ, reason="machines are emulated for minutes: make test-guest"
    ),
    pytest.mark.skipif(
        shutil.which(PROGRAM) is None or shutil.which("apt-get") is None,
        reason="qemu-system-x86 is not installed (make test-guest installs it), or this is no Debian",
    ),
]
#: Twice the processors of a machine: XDP programs take a further queue for each of them.
QUEUES = 4
CABLES = {"pair": ("a0", "a1"), "plain": ("f0", "f1"), "inside": ("t0", "g0"), "outside": ("t1", "g1")}
STUBBORN = "virtio-net-pci,ctrl_guest_offloads=off"
DRIVERS = {"mq0": "virtio_net", "one0": "virtio_net", "vmx0": "vmxnet3"}
PORTS: tuple[Card, ...] = (
    tapped("mq0", "a0", QUEUES),
    tapped("mq1", "a1", QUEUES),
    hubbed("one0", 0),
    hubbed("one1", 0),
    hubbed("vmx0", 1, "vmxnet3"),
    hubbed("vmx1", 1, "vmxnet3"),
    tapped("fix0", "f0", QUEUES, STUBBORN),
    tapped("fix1", "f1", QUEUES, STUBBORN),
    hubbed("old0", 2, "e1000"),
    tapped("in", "t0", QUEUES),
    tapped("out", "t1", QUEUES),
)
#: Leaves an XDP program attached, as another program would.
ATTACH = f"""
{sys.executable} - <<'PROGRAM'
import socket
from pyroute2 import IPRoute
from natgauge.tester import port_probe
with IPRoute() as routes:
    port_probe._attach(routes, socket.if_nametoindex("mq0"), port_probe._load())
PROGRAM
"""
GATEWAYS = (tapped("in", "g0", QUEUES), tapped("out", "g1", QUEUES))
GATEWAY = """
ip addr add 10.0.0.1/16 dev in
ip addr add 198.19.0.1/16 dev out
sysctl -q net.ipv4.ip_forward=1
nft -f - <<'RULES'
table ip nat {
    chain postrouting { type nat hook postrouting priority srcnat; oifname out masquerade; }
}
RULES
"""


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Machine]]:
    """The tester's machine and the gateway's."""
    folder = tmp_path_factory.mktemp("machines")
    # Not named like a lab: `natgauge lab clean` of another user of this host deletes unregistered namespaces of labs.
    with network(f"tests-ports-{os.getpid()}", CABLES, QUEUES) as netns, ExitStack() as stack:
        tester = Machine("tester", netns, folder / "tester", PORTS)
        gateway = Machine(
            "gateway", netns, folder / "gateway", (tapped("in", "g0", QUEUES), tapped("out", "g1", QUEUES))
        )
        for machine in (tester, gateway):
            machine.start()
            stack.callback(machine.end)
        for machine in (tester, gateway):
            machine.await_boot()
        gateway.sh(GATEWAY)
        yield tester, gateway


@pytest.fixture
def tester(machines: tuple[Machine, Machine]) -> Machine:
    return machines[0]


def probed(machine: Machine, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit status, and what `natgauge probe` says of the ports."""
    done = machine.natgauge("probe", *words, "--json")
    assert done.out, done.err
    return done.status, json.loads(done.out)["ports"]


#: Probes of two cabled ports, of which one must lose no frame.
TRIES = 4


def of(port: dict[str, Any], word: str) -> list[dict[str, Any]]:
    return [finding for finding in port["findings"] if finding["name"] == word]


def obstacles(port: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {finding["name"]: finding for finding in port["findings"] if finding["state"] == "obstacle"}


@pytest.mark.parametrize("ports", [("mq0", "mq1"), ("one0", "one1"), ("vmx0", "vmx1")])
def test_cabled_ports_carry_the_tester_both_ways(tester: Machine, ports: tuple[str, str]) -> None:
    # Where this host stalls, frames come in a burst, and an emulated port loses some. Then a warning is right.
    for _ in range(TRIES):
        status, reports = probed(tester, *ports)
        assert (status, [report["usable"] for report in reports]) == (0, [True, True]), reports
        if all(of(report, "cable")[0]["state"] == "ok" for report in reports):
            break
    for report in reports:
        assert report["driver"] == DRIVERS[ports[0]]
        (cable,) = of(report, "cable")
        assert cable["state"] == "ok"
        for here, far in (ports, ports[::-1]):
            assert f"1000 of 1000 from {here} to {far}" in cable["what"]


@pytest.mark.parametrize(
    ("make", "undo", "port", "word", "what", "mend"),
    [
        ("ip link set mq0 down", "ip link set mq0 up", "mq0", "link", "is down", "ip link set mq0 up"),
        ("ip link set mq0 mtu 9000", "ip link set mq0 mtu 1500", "mq0", "MTU", "9000", "ip link set mq0 mtu 1500"),
        ("ip link set vmx0 mtu 9000", "ip link set vmx0 mtu 1500", "vmx0", "MTU", "9000", "ip link set vmx0 mtu 1500"),
        ("true", "true", "fix0", "XDP", "first); start the guest with ctrl_guest_offloads=on", None),
        ("true", "true", "old0", "XDP", "has no XDP (e1000)", None),
        # With a program attached, this card would end the machine with a panic.
        ("ethtool -L mq0 combined 4", "ethtool -L mq0 combined 2", "mq0", "queues", "has 4 queues for 2 cores, of 4",
         "ethtool -L mq0 combined 2"),
        ("ip link add bond0 type bond; ip link set mq0 down; ip link set mq0 master bond0; ip link set bond0 up",
         "ip link del bond0; ip link set mq0 up", "mq0", "bond", "belongs to bond0", "ip link set mq0 nomaster"),
        (ATTACH, "ip link set mq0 xdp off", "mq0", "XDP", "attached (xdp); end what attached it",
         "ip link set mq0 xdp off"),
        ("ip tuntap add tap0 mode tap; ip link set tap0 up", "ip link del tap0", "tap0", "link", "no carrier", None),
    ],
)  # fmt: skip
def test_a_misconfigured_port_is_not_usable_for_the_reason_that_the_driver_has(  # noqa: PLR0917 - one per column
    tester: Machine, make: str, undo: str, port: str, word: str, what: str, mend: str | None
) -> None:
    tester.sh(make)
    try:
        status, (report,) = probed(tester, port)
    finally:
        tester.sh(undo)
    assert (status, report["usable"]) == (3, False)
    assert list(obstacles(report)) == [word]
    assert what in obstacles(report)[word]["what"]
    assert (obstacles(report)[word]["mend"] or "").startswith(mend or "")


def test_the_table_of_drivers_has_the_largest_mtu_that_a_driver_accepts(tester: Machine) -> None:
    """And the driver refuses one octet more."""
    for port in ("mq0", "vmx0"):
        largest = driver_facts(DRIVERS[port]).most_mtu  # type: ignore[union-attr] # it is in the table
        for mtu, refused in ((largest, False), (largest + 1, True)):  # type: ignore[operator] # likewise
            asked = (
                f"{sys.executable} -c \"from natgauge.tester import port_probe; print(port_probe.refusal('{port}'))\""
            )
            reason = tester.sh(f"ip link set {port} mtu {mtu}; {asked}; ip link set {port} mtu 1500")
            assert (reason.strip() != "None") == refused, reason


def test_ports_that_are_one_port_are_refused(tester: Machine) -> None:
    done = tester.natgauge("probe", "mq0", "mq0")
    assert (done.status, done.out) == (2, "")
    assert "is named twice" in done.err


@pytest.mark.parametrize("connections", [500, 1])
def test_a_gateway_on_another_machine_is_measured(machines: tuple[Machine, Machine], connections: int) -> None:
    tester, gateway = machines
    done = tester.natgauge(
        *("measure", "throughput", "--gateway", "nftables-nat44", "--lab", "wire", "--json"),
        *("--initiator-port", "in", "--initiator-gateway", "10.0.0.1"),
        *("--responder-port", "out", "--responder-gateway", "198.19.0.1", "--pool", "198.19.0.1"),
        *("--connections", str(connections), "--device-timeout", "180", "--connection-rate", "2000"),
        *("--profile", "quick", "--repeat", "1", "--error", "50%", "--no-confirm", "--trial-seconds", "0.5"),
        *("--frame-timeout", "1", "--most-seconds", "150", "--results", f"results-{connections}"),
        seconds=600,
    )
    assert done.status == 0, done.err
    answer = json.loads(done.out)
    # For the page of results (pytest -rA).
    print(f"{connections} connections: {answer['median']} {answer['unit']}, trials {answer['trials']}")  # noqa: T201 - see above
    assert answer["median"] > 0
    place = answer["parameters"]["place"]
    assert place["port_drivers"] == ["virtio_net", "virtio_net"]
    assert place["port_queues"] == ["combined 2", "combined 2"]
    assert "functional" in {doubt["word"] for doubt in answer["doubts"]}
    table = gateway.sh("cat /proc/sys/net/netfilter/nf_conntrack_count")
    assert int(table) >= connections
