# SPDX-License-Identifier: Apache-2.0
"""`natgauge probe` on real ports: what it says of each misconfiguration, and frames across a cable."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from threading import Timer
from typing import Any

import pytest
from tests.labs.program import command_line

from natgauge.agreement.generated import Phase1
from natgauge.agreement.process import run
from natgauge.agreement.trial import phase1_of
from natgauge.labs.common.namespaces import PREFIX, inside
from natgauge.labs.netns.lab import NetnsLab
from natgauge.labs.wire.lab import port_lock
from natgauge.tester.cable import untranslated_request

pytestmark = pytest.mark.waits

NAMESPACE = f"{PREFIX}probe-{os.getpid()}"
#: A process that has loaded what these programs need, and runs each in a copy of itself: to load it takes longest.
FORKING = """
import contextlib, io, json, os, sys
import natgauge.tester.port_probe, pyroute2
for line in sys.stdin:
    if other := os.fork():
        os.waitpid(other, 0)
        continue
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(json.loads(line), {})
    print(json.dumps(printed.getvalue()), flush=True)
    os._exit(0)
"""
#: The process, while there is one.
there: list[subprocess.Popen[str]] = []


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def _ports() -> Iterator[None]:
    """A namespace with three cables of two veths each, a tap that no program holds, and a process there."""
    ip("netns", "add", NAMESPACE)
    try:
        for name, other in (("left", "right"), ("top", "bottom"), ("dotted.5", "far.5")):
            ip("-n", NAMESPACE, "link", "add", name, "type", "veth", "peer", "name", other)
        ip("-n", NAMESPACE, "tuntap", "add", "dev", "tap", "mode", "tap")
        for name in ("left", "right", "top", "bottom", "dotted.5", "far.5", "tap"):
            ip("netns", "exec", NAMESPACE, "sysctl", "-q", f"net/ipv6/conf/{name}/disable_ipv6=1")
            ip("-n", NAMESPACE, "link", "set", name, "up")
        command = ["ip", "netns", "exec", NAMESPACE, sys.executable, "-c", FORKING]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as forking:
            there.append(forking)
            yield
            there.clear()
    finally:
        ip("netns", "del", NAMESPACE)


def run_there(program: str) -> str:
    """What a program prints that runs in the namespace, in a process of its own."""
    process = there[0]
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps(program), file=process.stdin, flush=True)
    return str(json.loads(process.stdout.readline()))


def probed(*words: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit status, and what `--json` prints of the ports."""
    printed, status = run_there(f"from natgauge.cli import run; print(run({['probe', *words, '--json']}))").splitlines()
    return int(status), json.loads(printed)["ports"]


def obstacles(port: dict[str, Any]) -> dict[str, str]:
    return {finding["name"]: finding["mend"] for finding in port["findings"] if finding["state"] == "obstacle"}


def shell(line: str) -> None:
    """Run a line in the namespace as somebody who pastes it does."""
    ip("netns", "exec", NAMESPACE, "sh", "-c", line)


@pytest.mark.usefixtures("_ports")
def test_a_cable_of_veths_carries_the_tester_both_ways() -> None:
    status, ports = probed("left", "right")
    assert (status, [port["usable"] for port in ports]) == (0, [True, True])
    for port in ports:
        (cable,) = (finding for finding in port["findings"] if finding["name"] == "cable")
        assert cable["state"] == "ok"
        assert "1000 of 1000 from left to right, 1000 of 1000 from right to left" in cable["what"]


@pytest.mark.usefixtures("_ports")
def test_veths_whose_other_ends_take_no_frame_are_named_each_with_its_command() -> None:
    """The other end of each veth has neither GRO nor an XDP program, so the veth accepts nothing from the tester."""
    try:
        status, ports = probed("left", "top")
        assert (status, [port["usable"] for port in ports]) == (3, [False, False])
        assert obstacles(ports[0]) == {"XDP": "ethtool -K right gro on"}
        assert obstacles(ports[1]) == {"XDP": "ethtool -K bottom gro on"}
        shell(obstacles(ports[0])["XDP"])
        status, ports = probed("left", "top")
        assert (status, [port["usable"] for port in ports]) == (3, [True, False])
        shell(obstacles(ports[1])["XDP"])
        status, ports = probed("left", "top")
    finally:
        for name in ("right", "bottom"):
            shell(f"ethtool -K {name} gro off")
    assert (status, [port["usable"] for port in ports]) == (0, [True, True])
    (cable,) = (finding for finding in ports[0]["findings"] if finding["name"] == "cable")
    assert cable["what"].startswith("no frame arrived (0 of 1000 from left to top, 0 of 1000 from top to left)")


MISCONFIGURED = [
    ("ip link set {port} down", "ip link set {port} up", "link"),
    ("ip link set {peer} down", "ip link set {peer} up", "link"),
    ("ip addr add 192.0.2.1/24 dev {port}", "ip addr flush dev {port}", "addresses"),
    (
        "sysctl -q net/ipv6/conf/{port}/disable_ipv6=0 && ip addr add 2001:db8::1/64 dev {port}",
        "sysctl -q net/ipv6/conf/{port}/disable_ipv6=1",
        "addresses",
    ),
    ("ip link set {port} mtu 9000", "ip link set {port} mtu 1500", "MTU"),
    ("ip link set {port} mtu 1400", "ip link set {port} mtu 1500", "MTU"),
    (
        "ip link add bridge type bridge && ip link set {port} master bridge",
        "ip link set {port} nomaster && ip link del bridge",
        "bond",
    ),
]


@pytest.mark.calm
@pytest.mark.usefixtures("_ports")
@pytest.mark.parametrize(("make", "undo", "word"), MISCONFIGURED)
def test_a_misconfigured_port_is_usable_after_the_command_that_is_named(make: str, undo: str, word: str) -> None:
    """Also if a name has a dot, by which sysctl parts its words."""
    port, peer = "dotted.5", "far.5"
    shell(make.format(port=port, peer=peer))
    try:
        status, (found,) = probed(port)
        assert (status, list(obstacles(found))) == (3, [word]), found["findings"]
        shell(obstacles(found)[word])
        assert probed(port)[0] == 0
    finally:
        shell(undo.format(port=port, peer=peer))


@pytest.mark.calm
@pytest.mark.usefixtures("_ports")
@pytest.mark.parametrize(
    ("above", "undo"),
    [
        (None, "ip route del default"),
        ("ip link add above type bridge && ip link set left master above", "ip link del above"),
        # A VLAN names the interface below it in the same way.
        ("ip link add link left name above type macvlan", "ip link del above"),
    ],
)
def test_no_command_is_named_for_a_port_that_carries_the_default_route(above: str | None, undo: str) -> None:
    shell("ip addr add 192.0.2.1/24 dev left")
    try:
        if above is not None:
            shell(f"{above} && ip addr add 198.51.100.1/24 dev above && ip link set above up")
        shell(f"ip route add default via {'192.0.2.9' if above is None else '198.51.100.9'}")
        status, (left,) = probed("left")
        other_status, _ = probed("right")
    finally:
        shell(f"{undo}; ip addr flush dev left")
    assert (status, other_status) == (3, 0)
    assert {"default route", "addresses"} <= set(obstacles(left))
    assert [finding["mend"] for finding in left["findings"] if finding["mend"] is not None] == []
    assert probed("left")[0] == 0


ATTACH = """
import socket, struct, time
from pyroute2 import IPRoute
from natgauge.labs.wire.port_state import bpf
from natgauge.tester import port_probe

mode, index, program = {mode}, socket.if_nametoindex("left"), port_probe._load()
if mode:
    with IPRoute() as routes:
        routes.link("set", index=index, IFLA_XDP=dict(attrs=[("IFLA_XDP_FD", program), ("IFLA_XDP_FLAGS", mode)]))
else:
    # BPF_LINK_CREATE for BPF_XDP: attached while this process runs.
    done, _ = bpf(28, struct.pack("IIII", program, index, 37, 0))
    assert done >= 0
    print("attached", flush=True)
    time.sleep(60)
"""


@pytest.mark.calm
@pytest.mark.usefixtures("_ports")
@pytest.mark.parametrize(("mode", "word"), [(4, "xdp"), (2, "xdpgeneric")])
def test_an_attached_program_is_named_and_the_command_for_its_mode_detaches_it(mode: int, word: str) -> None:
    run_there(ATTACH.format(mode=mode))
    try:
        status, ports = probed("left", "right")
        assert (status, [port["usable"] for port in ports]) == (3, [False, True])
        assert obstacles(ports[0]) == {"XDP": f"ip link set left {word} off"}
        (what,) = (found["what"] for found in ports[0]["findings"] if found["state"] == "obstacle")
        assert re.match(rf"has BPF program \d+ attached \({word}\); ", what)
        shell(obstacles(ports[0])["XDP"])
        assert probed("left", "right")[0] == 0
    finally:
        shell(f"ip link set left {word} off")


@pytest.mark.usefixtures("_ports")
def test_a_program_behind_a_bpf_link_is_named_with_the_link_which_ip_cannot_detach() -> None:
    command = ["ip", "netns", "exec", NAMESPACE, sys.executable, "-c", ATTACH.format(mode=0)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "attached\n"
            _, (left,) = probed("left")
            with pytest.raises(subprocess.CalledProcessError):
                shell("ip link set left xdp off")
        finally:
            holder.kill()
    (what,) = (found["what"] for found in left["findings"] if found["state"] == "obstacle")
    found = re.search(r"by BPF link (\d+); end the process that holds the link", what)
    assert found is not None
    assert obstacles(left) == {"XDP": f"bpftool link detach id {found[1]}"}
    assert probed("left")[0] == 0


@pytest.mark.usefixtures("_ports")
@pytest.mark.parametrize(("place", "name"), [(NAMESPACE, None), (None, NAMESPACE)], ids=["in it", "named"])
def test_a_port_that_a_measurement_uses_is_left_to_it(place: str | None, name: str | None) -> None:
    """A measurement names the namespace of its ports, or runs in it."""
    lock = inside(place, lambda: port_lock("left", name))
    lock.take()
    try:
        run_there(ATTACH.format(mode=4))
        status, (left,) = probed("left")
        again, (without,) = probed("left", "--no-frames")
    finally:
        shell("ip link set left xdp off")
        lock.release()
    assert (status, again) == (3, 3)
    for port in (left, without):
        assert obstacles(port) == {"XDP": None}
        assert [finding["mend"] for finding in port["findings"] if finding["mend"] is not None] == []
        assert f"natgauge uses it (process {os.getpid()})" in json.dumps(port)
    assert probed("left")[0] == 0


@pytest.mark.usefixtures("_ports")
def test_a_port_of_the_same_name_in_another_namespace_is_another_port() -> None:
    lock = port_lock("left", None)
    lock.take()
    try:
        assert probed("left")[0] == 0
    finally:
        lock.release()


def test_a_port_of_a_lab_that_is_in_use_is_left_to_it() -> None:
    with NetnsLab("probe-lab", initiator_family="ipv4", responder_family="ipv4") as lab:
        command = command_line(["probe", lab.initiator.interface, "--json"])
        done = subprocess.run(
            ["ip", "netns", "exec", str(lab.initiator.netns), *command], capture_output=True, text=True, check=False
        )
    assert done.returncode == 3, done.stderr
    (port,) = json.loads(done.stdout)["ports"]
    assert obstacles(port) == {"XDP": None}
    assert f"natgauge uses it (process {os.getpid()})" in port["findings"][0]["what"]
    assert [finding["mend"] for finding in port["findings"] if finding["mend"] is not None] == []


@pytest.mark.usefixtures("_ports")
def test_a_tap_without_a_program_says_so_and_has_no_queues_to_set() -> None:
    _, (tap,) = probed("tap")
    (what,) = (finding["what"] for finding in tap["findings"] if finding["state"] == "obstacle")
    assert what.startswith("has no carrier: no program holds this tap; start")
    assert [finding["what"] for finding in tap["findings"] if finding["what"].startswith("queues")] == []


@pytest.mark.usefixtures("_ports")
@pytest.mark.parametrize(("name", "word"), [("lo", "link"), ("lo", "XDP"), ("tap", "link")])
def test_a_port_without_xdp_or_without_a_link_is_not_usable(name: str, word: str) -> None:
    status, (port,) = probed(name)
    assert status == 3
    assert word in obstacles(port)


def test_a_trial_waits_for_a_link_that_comes_back() -> None:
    """Some drivers take the link down and up when a program is attached or detached, thus between two trials."""
    with NetnsLab("late-link", initiator_family="ipv4", responder_family="ipv4") as lab:
        request = untranslated_request(
            lab.initiator,
            lab.responder,
            family="ipv4",
            frame_size=64,
            connections=100,
            phase1=Phase1(rate=10_000.0, grace_ms=50),
            phase2=None,
            sender_cpus=lab.sender_cpus,
        )
        (device,) = lab.devices
        assert device.run("ip link set inside down").status == 0
        later = Timer(0.5, device.run, ["ip link set inside up"])
        later.start()
        try:
            result = run(request)
        finally:
            later.join()
    assert phase1_of(result).offered_frames == 100
