# SPDX-License-Identifier: Apache-2.0
"""Settings of a port as natgauge reads and sets them, and as ethtool(8) shows them: on a veth and a tap."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from natgauge.errors import HostError
from natgauge.host import network_ports
from natgauge.host.recorded import settings_of
from natgauge.labs.common import namespaces
from natgauge.labs.common.links import prepare_namespace

NETNS = f"{namespaces.PREFIX}ethtool"
VETH, TAP = "left", "tapped"


def inside(*command: str) -> str:
    """The output of a program in the namespace."""
    done = subprocess.run(["ip", "netns", "exec", NETNS, *command], capture_output=True, text=True, check=False)
    return done.stdout


@pytest.fixture
def ports() -> Iterator[None]:
    namespaces.create(NETNS)
    try:
        namespaces.inside(NETNS, lambda: prepare_namespace(forwards=False))
        inside(
            "ip", "link", "add", VETH, "numrxqueues", "4", "numtxqueues", "4", "type", "veth", "peer", "name", "right"
        )
        inside("ip", "tuntap", "add", TAP, "mode", "tap", "multi_queue")
        yield
    finally:
        namespaces.delete([NETNS])


def read(port: str, part: network_ports.Part) -> dict[str, str] | None:
    return namespaces.inside(NETNS, lambda: network_ports.read(port, part))


def write(port: str, part: network_ports.Part, **values: str) -> None:
    namespaces.inside(NETNS, lambda: network_ports.write(port, part, values))


def shown(port: str) -> tuple[dict[str, str], dict[str, str]]:
    """The largest and the present numbers of queues as ethtool shows them."""
    parts = inside("ethtool", "-l", port).split("Current hardware settings:")
    found = (
        {kind.lower(): number for kind, number in re.findall(r"^(\w+):\s+(\d+)$", part, re.MULTILINE)} for part in parts
    )
    most, now = found
    return most, now


@pytest.mark.calm
@pytest.mark.usefixtures("ports")
def test_queues_are_those_that_ethtool_shows_and_what_is_set_is_shown_there() -> None:
    most, now = shown(VETH)
    assert (read(VETH, "most queues"), read(VETH, "queues")) == (most, now)
    write(VETH, "queues", rx="2", tx="3")
    assert shown(VETH)[1] == {"rx": "2", "tx": "3"} == read(VETH, "queues")
    assert namespaces.inside(NETNS, lambda: settings_of(VETH))["queues"] == "rx 2 tx 3"
    # No program holds the tap.
    assert read(TAP, "queues") == {"combined": "0"}


@pytest.mark.calm
@pytest.mark.usefixtures("ports")
def test_offloads_are_those_that_ethtool_shows_and_what_is_set_is_shown_there() -> None:
    other = {"rxvlan": "rx-vlan-offload", "lro": "large-receive-offload"}
    lines = {name: other.get(name, name) for name in network_ports.OFFLOADS}
    output = inside("ethtool", "-k", VETH)
    expected = {name: re.findall(rf"^{line}: (.*)$", output, re.MULTILINE)[0] for name, line in lines.items()}
    assert read(VETH, "offloads") == expected
    assert expected["rxvlan"] == "on"
    write(VETH, "offloads", rxvlan="off")
    assert "rx-vlan-offload: off" in inside("ethtool", "-k", VETH)
    assert read(VETH, "offloads") == {**expected, "rxvlan": "off"}


@pytest.mark.calm
@pytest.mark.usefixtures("ports")
def test_what_a_driver_lacks_is_absent_and_cannot_be_set() -> None:
    lacking: tuple[network_ports.Part, ...] = ("coalescing", "pause", "eee", "hash")
    for part in lacking:
        assert read(VETH, part) is None, part
    for part, name in (("pause", "rx"), ("eee", "eee"), ("coalescing", "adaptive-rx")):
        with pytest.raises(
            HostError, match=rf"^port left: {part} cannot be set to {name} off \(Operation not supported\)$"
        ):
            write(VETH, part, **{name: "off"})
    with pytest.raises(HostError, match="port left: hash cannot be set to udp4 sdfn"):
        write(VETH, "hash", udp4="sdfn")
    with pytest.raises(HostError, match="port left: queues cannot be set to rx 99"):
        write(VETH, "queues", rx="99")
    with pytest.raises(HostError, match=r"port absent: queues cannot be read \(No such device\)"):
        read("absent", "queues")
