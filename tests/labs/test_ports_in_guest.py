# SPDX-License-Identifier: Apache-2.0
"""The tester inside a machine with network cards of its own: multi-queue virtio-net, vmxnet3 and igb, of Linux 6.12.

Two machines: the tester's, with all kinds of ports, and a gateway's, whose two cards are cabled to two of them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.labs.machine import Card, Machine, hubbed, network, newer_qemu, tapped

from natgauge.labs.common.shell import last_words
from natgauge.labs.vm.lab import PROGRAM
from natgauge.labs.wire.port_state import driver_facts

pytestmark = [
    pytest.mark.slow("boots two machines in an emulator"),
    pytest.mark.timeout(1800),
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
CABLES = {
    "pair": ("a0", "a1"),
    "plain": ("f0", "f1"),
    "inside": ("t0", "g0"),
    "outside": ("t1", "g1"),
    "igbinside": ("t2", "g2"),
    "igboutside": ("t3", "g3"),
}
STUBBORN = "virtio-net-pci,ctrl_guest_offloads=off"
#: Of the ports that can carry the tester.
DRIVERS = {
    "mq0": "virtio_net",
    "one0": "virtio_net",
    "vmx0": "vmxnet3",
    "igb0": "igb",
    "in": "virtio_net",
    "igbin": "igb",
}
#: The two ports of an 82576 are functions of one slot; its virtual functions have the slots 16 and 17 further on.
IGB = [(f"igb,addr={slot}.0,multifunction=on", f"igb,addr={slot}.1") for slot in ("0c", "0e")]
IGB_PORTS = (
    hubbed("igb0", 3, IGB[0][0]),
    hubbed("igb1", 3, IGB[0][1]),
    tapped("igbin", "t2", QUEUES, IGB[1][0]),
    tapped("igbout", "t3", QUEUES, IGB[1][1]),
)
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
{sys.executable} - PORT <<'PROGRAM'
import socket
import sys
from pyroute2 import IPRoute
from natgauge.tester import port_probe
with IPRoute() as routes:
    port_probe._attach(routes, socket.if_nametoindex(sys.argv[1]), port_probe._load())
PROGRAM
"""
#: A gateway for each kind of cards, in a namespace of its own.
GATEWAYS = (tapped("in", "g0", QUEUES), tapped("out", "g1", QUEUES))
IGB_GATEWAYS = (tapped("igbin", "g2", QUEUES, IGB[1][0]), tapped("igbout", "g3", QUEUES, IGB[1][1]))
GATEWAY = """
ip netns add IN
ip link set IN netns IN
ip link set OUT netns IN
ip netns exec IN /bin/sh -eu <<'COMMANDS'
ip link set IN up
ip link set OUT up
ip addr add 10.0.0.1/16 dev IN
ip addr add 198.19.0.1/16 dev OUT
sysctl -q net.ipv4.ip_forward=1
nft add table ip nat
nft 'add chain ip nat post { type nat hook postrouting priority srcnat; }'
nft add rule ip nat post oifname OUT masquerade
COMMANDS
"""


@pytest.fixture(scope="module")
def without_igb() -> str:
    """Why no machine has cards igb; empty = they have."""
    try:
        newer_qemu()
    except subprocess.CalledProcessError as error:
        return f"no QEMU of Debian 13 can be had: {last_words(error.stderr)}"
    return ""


@pytest.fixture(autouse=True)
def cards(request: pytest.FixtureRequest, without_igb: str) -> None:
    """Skip a test of cards that the machines have not: the ports are in its name."""
    if without_igb and "igb" in request.node.name:
        pytest.skip(without_igb)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory, without_igb: str) -> Iterator[tuple[Machine, Machine]]:
    """The tester's machine and the gateway's."""
    # The cards with an address are first: QEMU gives the others what is free.
    ports, gateways, qemu = (
        (PORTS, GATEWAYS, (PROGRAM,))
        if without_igb
        else ((*IGB_PORTS, *PORTS), (*IGB_GATEWAYS, *GATEWAYS), newer_qemu())
    )
    folder = tmp_path_factory.mktemp("machines")
    # Not named like a lab: `natgauge lab clean` of another user of this host deletes unregistered namespaces of labs.
    with network(f"tests-ports-{os.getpid()}", CABLES, QUEUES) as netns, ExitStack() as stack:
        tester = Machine("tester", netns, folder / "tester", ports, qemu=qemu)
        gateway = Machine("gateway", netns, folder / "gateway", gateways, qemu=qemu)
        for machine in (tester, gateway):
            machine.start()
            stack.callback(machine.end)
        for machine in (tester, gateway):
            machine.await_boot()
        for machine in (tester, gateway):
            for card in machine.cards:
                if card.device.startswith("igb"):
                    # A stall of this host lasts longer than the usual 256 frames.
                    machine.sh(f"ethtool -G {card.name} rx 4096 tx 4096")
        for inside, outside in zip(gateways[::2], gateways[1::2], strict=True):
            gateway.sh(GATEWAY.replace("IN", inside.name).replace("OUT", outside.name))
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


def cabled(machine: Machine, *ports: str) -> list[dict[str, Any]]:
    """What `natgauge probe` says of two cabled ports, once no frame is lost.

    Where this host stalls, frames come in a burst, and an emulated port loses some. Then a finding is right.
    """
    for _ in range(TRIES):
        status, reports = probed(machine, *ports)
        assert {word for report in reports for word in obstacles(report)} <= {"cable"}, reports
        if all(of(report, "cable")[0]["state"] == "ok" for report in reports):
            break
    assert (status, [report["usable"] for report in reports]) == (0, [True, True]), reports
    assert [of(report, "cable")[0]["state"] for report in reports] == ["ok", "ok"], reports
    return reports


@pytest.mark.parametrize(
    "ports",
    [("mq0", "mq1"), ("one0", "one1"), ("vmx0", "vmx1"), ("igb0", "igb1")],
    ids=str,
)
def test_cabled_ports_carry_the_tester_both_ways(tester: Machine, ports: tuple[str, str]) -> None:
    for report in cabled(tester, *ports):
        assert report["driver"] == DRIVERS[ports[0]]
        (cable,) = of(report, "cable")
        for here, far in (ports, ports[::-1]):
            assert f"1000 of 1000 from {here} to {far}" in cable["what"]


def misconfigured(port: str) -> list[tuple[str, str, str, str, str, str]]:
    """What makes a port of any driver unusable, what undoes that, and what `probe` says of it."""
    up, mtu, detach = f"ip link set {port} up", f"ip link set {port} mtu 1500", f"ip link set {port} xdp off"
    bond = (
        f"ip link add bond0 type bond; ip link set {port} down; ip link set {port} master bond0; ip link set bond0 up"
    )
    return [
        (f"ip link set {port} down", up, port, "link", "is down", up),
        (f"ip link set {port} mtu 9000", mtu, port, "MTU", "9000", mtu),
        (bond, f"ip link del bond0; {up}", port, "bond", "belongs to bond0", f"ip link set {port} nomaster"),
        (ATTACH.replace("PORT", port), detach, port, "XDP", "attached (xdp); end what attached it", detach),
    ]


@pytest.mark.parametrize(
    ("make", "undo", "port", "word", "what", "mend"),
    [
        ("ip link set vmx0 mtu 9000", "ip link set vmx0 mtu 1500", "vmx0", "MTU", "9000", "ip link set vmx0 mtu 1500"),
        ("true", "true", "fix0", "XDP", "first); start the guest with ctrl_guest_offloads=on", None),
        ("true", "true", "old0", "XDP", "has no XDP (e1000)", None),
        # With a program attached, this card would end the machine with a panic.
        ("ethtool -L mq0 combined 4", "ethtool -L mq0 combined 2", "mq0", "queues", "has 4 queues for 2 cores, of 4",
         "ethtool -L mq0 combined 2"),
        ("ip tuntap add tap0 mode tap; ip link set tap0 up", "ip link del tap0", "tap0", "link", "no carrier", None),
        *misconfigured("mq0"),
        *misconfigured("igb0"),
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
    if port in DRIVERS:
        # So it was what was made. And a link that negotiates its speed is not called one without a carrier.
        assert probed(tester, port)[0] == 0
    assert (status, report["usable"]) == (3, False)
    assert list(obstacles(report)) == [word]
    assert what in obstacles(report)[word]["what"]
    assert (obstacles(report)[word]["mend"] or "").startswith(mend or "")


def test_senders_of_an_igb_card_share_the_queues_that_there_are(tester: Machine) -> None:
    tester.sh("ethtool -L igb0 combined 1")
    try:
        cabled(tester, "igb0", "igb1")
    finally:
        tester.sh("ethtool -L igb0 combined 2")


def test_an_igb_port_is_usable_while_its_link_negotiates_its_speed(tester: Machine) -> None:
    """The driver takes the link down when a program is detached: `probe` then found no carrier."""
    program = "from natgauge.tester import port_probe as p; p.refusal('igb0'); print(p.probe(['igb0'])[0].usable)"
    assert tester.sh(f'{sys.executable} -c "{program}"') == "True\n"


@pytest.mark.parametrize("port", ["mq0", "vmx0", "igb0"])
def test_the_table_of_drivers_has_the_largest_mtu_that_a_driver_accepts(tester: Machine, port: str) -> None:
    """And the driver refuses one octet more."""
    largest = driver_facts(DRIVERS[port]).most_mtu  # type: ignore[union-attr] # it is in the table
    for mtu, refused in ((largest, False), (largest + 1, True)):  # type: ignore[operator] # likewise
        asked = f"{sys.executable} -c \"from natgauge.tester import port_probe; print(port_probe.refusal('{port}'))\""
        reason = tester.sh(f"ip link set {port} mtu {mtu}; {asked}; ip link set {port} mtu 1500")
        assert (reason.strip() != "None") == refused, reason


def test_ports_that_are_one_port_are_refused(tester: Machine) -> None:
    done = tester.natgauge("probe", "mq0", "mq0")
    assert (done.status, done.out) == (2, "")
    assert "is named twice" in done.err


THROUGHPUT = ("throughput", "--connection-rate", "2000", "--no-confirm", "--trial-seconds", "0.1")
RATE = ("connection-rate",)


@pytest.mark.parametrize(
    ("ports", "metric", "connections"),
    [
        (("in", "out"), THROUGHPUT, 500),
        (("in", "out"), THROUGHPUT, 1),
        (("igbin", "igbout"), THROUGHPUT, 500),
        (("igbin", "igbout"), RATE, 500),
    ],
    ids=str,
)
def test_a_gateway_on_another_machine_is_measured(
    machines: tuple[Machine, Machine], ports: tuple[str, str], metric: tuple[str, ...], connections: int
) -> None:
    tester, gateway = machines
    inside, outside = ports
    done = tester.natgauge(
        *("measure", *metric, "--gateway", "nftables-nat44", "--lab", "wire", "--json"),
        *("--initiator-port", inside, "--initiator-gateway", "10.0.0.1"),
        *("--responder-port", outside, "--responder-gateway", "198.19.0.1", "--pool", "198.19.0.1"),
        *("--connections", str(connections), "--device-timeout", "180"),
        *("--profile", "quick", "--repeat", "1", "--error", "50%"),
        # A trial with igb lasts 8 to 13 s, most of them until the links are up again.
        *("--frame-timeout", "1", "--most-seconds", "600", "--results", f"results-{inside}-{metric[0]}-{connections}"),
        seconds=1500,
    )
    assert done.status == 0, done.err
    answer = json.loads(done.out)
    # For the page of results (pytest -rA).
    print(f"{inside}, {metric[0]}, {connections} connections: {answer['median']} {answer['unit']}, {answer['trials']}")  # noqa: T201 - see above
    assert answer["median"] > 0
    place = answer["parameters"]["place"]
    assert place["port_drivers"] == [DRIVERS[inside]] * 2
    assert place["port_queues"] == ["combined 2", "combined 2"]
    assert "functional" in {doubt["word"] for doubt in answer["doubts"]}
    table = gateway.sh(f"ip netns exec {inside} cat /proc/sys/net/netfilter/nf_conntrack_count")
    assert int(table) >= connections
