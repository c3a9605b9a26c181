# SPDX-License-Identifier: Apache-2.0
"""`natgauge probe` on real ports: what it says of each misconfiguration, and frames across a cable."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from threading import Timer
from typing import Any

import pytest
from tests.labs.program import command_line

from natgauge.labs.common.namespaces import PREFIX
from natgauge.labs.netns.lab import NetnsLab
from natgauge.tester.cable import untranslated_request
from natgauge.trials import Phase1, phase1_of, run

NAMESPACE = f"{PREFIX}probe-{os.getpid()}"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def _ports() -> Iterator[None]:
    """A namespace with two cables of two veths each, and a tap that nobody reads."""
    ip("netns", "add", NAMESPACE)
    try:
        for name, other in (("left", "right"), ("top", "bottom")):
            ip("-n", NAMESPACE, "link", "add", name, "type", "veth", "peer", "name", other)
        ip("-n", NAMESPACE, "tuntap", "add", "dev", "tap", "mode", "tap")
        for name in ("left", "right", "top", "bottom", "tap"):
            ip("netns", "exec", NAMESPACE, "sysctl", "-q", f"net.ipv6.conf.{name}.disable_ipv6=1")
            ip("-n", NAMESPACE, "link", "set", name, "up")
        yield
    finally:
        ip("netns", "del", NAMESPACE)


def probed(*words: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit status, and what `--json` prints of the ports."""
    command = ["ip", "netns", "exec", NAMESPACE, *command_line(["probe", *words, "--json"])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["ports"]


def obstacles(port: dict[str, Any]) -> dict[str, str]:
    return {finding["word"]: finding["mend"] for finding in port["findings"] if finding["state"] == "obstacle"}


@pytest.mark.usefixtures("_ports")
def test_a_cable_of_veths_carries_the_tester_both_ways() -> None:
    status, ports = probed("left", "right")
    assert (status, [port["usable"] for port in ports]) == (0, [True, True])
    for port in ports:
        (cable,) = (finding for finding in port["findings"] if finding["word"] == "cable")
        assert cable["state"] == "ok"
        assert "1000 of 1000 from left to right, 1000 of 1000 from right to left" in cable["what"]


@pytest.mark.usefixtures("_ports")
def test_ports_that_take_no_frame_of_the_tester_are_not_usable() -> None:
    """The other end of each veth has no XDP program, so the veth accepts nothing."""
    status, ports = probed("left", "top")
    (cable,) = (finding for finding in ports[0]["findings"] if finding["word"] == "cable")
    assert (status, cable["state"]) == (3, "obstacle")
    assert "left" in cable["what"]


@pytest.mark.usefixtures("_ports")
@pytest.mark.parametrize(
    ("make", "undo", "word", "mend"),
    [
        ("link set left down", "link set left up", "link", "ip link set left up"),
        ("addr add 192.0.2.1/24 dev left", "addr flush dev left", "addresses", "ip addr flush dev left"),
        ("link set left mtu 9000", "link set left mtu 1500", "MTU", "ip link set left mtu 1500"),
        ("link set left mtu 1400", "link set left mtu 1500", "MTU", "ip link set left mtu 1500"),
    ],
)
def test_a_misconfigured_port_is_not_usable_and_the_command_that_mends_it_is_named(
    make: str, undo: str, word: str, mend: str
) -> None:
    ip("-n", NAMESPACE, *make.split())
    try:
        status, (port,) = probed("left")
    finally:
        ip("-n", NAMESPACE, *undo.split())
    assert (status, port["usable"]) == (3, False)
    assert list(obstacles(port)) == [word]
    assert obstacles(port)[word].startswith(mend)
    assert probed("left")[0] == 0


@pytest.mark.usefixtures("_ports")
def test_a_port_that_another_program_uses_is_not_usable_until_its_xdp_program_is_detached() -> None:
    attach = """
import socket
from pyroute2 import IPRoute
from natgauge.labs.wire import xdp
with IPRoute() as routes:
    xdp._attach(routes, socket.if_nametoindex("left"), xdp._load())
"""
    ip("netns", "exec", NAMESPACE, sys.executable, "-c", attach)
    try:
        status, ports = probed("left", "right")
    finally:
        ip("-n", NAMESPACE, "link", "set", "left", "xdp", "off")
    assert (status, [port["usable"] for port in ports]) == (3, [False, True])
    assert obstacles(ports[0]) == {"XDP": "ip link set left xdp off"}
    assert probed("left", "right")[0] == 0


@pytest.mark.usefixtures("_ports")
@pytest.mark.parametrize(("name", "word"), [("lo", "XDP"), ("tap", "link")])
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
