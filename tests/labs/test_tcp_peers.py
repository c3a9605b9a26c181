# SPDX-License-Identifier: Apache-2.0
"""Programs on the kernel's TCP and natgauge open as many connections through a gateway, by the same segments."""

from __future__ import annotations

import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.labs.hosts import captured, hosts
from tests.labs.test_tcp import handshake, opening
from tests.plans import PlanOfTrial

from natgauge.labs.common.device import NamespaceDevice
from natgauge.labs.contract import Device

N: Final = 500
SERVER: Final = "198.19.0.2"
#: What a segment of the handshake is, without its numbers and its time. TTL and DF differ: RFC 2544 appendix C.2.6.4.4
#: gives test frames a TTL of 10.
SHAPE: Final = (
    "ip.dsfield", "ip.len", "tcp.flags", "tcp.window_size_value", "tcp.urgent_pointer",
    "tcp.option_kind", "tcp.options.mss_val", "tcp.options.wscale.shift",
)  # fmt: skip


def shapes(file: Path) -> list[set[tuple[str, ...]]]:
    """The shapes of the first, second and third segments of all connections in a capture."""
    command = ["tshark", "-r", str(file), "-T", "fields", "-E", "occurrence=a"]
    command += [word for field in ("tcp.stream", *SHAPE) for word in ("-e", field)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    streams: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for stream, *shape in (line.split("\t") for line in printed.splitlines()):
        streams[stream].append(tuple(shape))
    assert len(streams) == N
    return [{segments[place] for segments in streams.values()} for place in range(len(handshake(N)))]


def entries(device: Device) -> int:
    """TCP connections in the device's own table that both sides confirmed."""
    found = device.run("conntrack -L -p tcp 2>/dev/null | grep -c ASSURED || true")
    assert found.status == 0, found.stderr
    return int(found.stdout)


def run(netns: str, *command: str) -> str:
    """Run a program in a namespace and return what it prints."""
    whole = ["ip", "netns", "exec", netns, *command]
    return subprocess.run(whole, check=True, capture_output=True, text=True, timeout=60).stdout


def opens(netns: str, counter: str) -> int:
    """A counter of TCP in a namespace (RFC 4022: tcpActiveOpens, tcpPassiveOpens)."""
    printed = run(netns, "cat", "/proc/net/snmp").splitlines()
    names, values = (line.split()[1:] for line in printed if line.startswith("Tcp:"))
    return int(dict(zip(names, values, strict=True))[counter])


@contextmanager
def web_server(netns: str, folder: Path) -> Iterator[None]:
    (folder / "index.html").write_text("natgauge\n")
    command = ["ip", "netns", "exec", netns, "busybox", "httpd", "-f", "-p", f"{SERVER}:80", "-h", str(folder)]
    server = subprocess.Popen(command)
    try:
        while not run(netns, "ss", "-Hltn", "sport", "=", ":80"):
            assert server.poll() is None, "httpd ended"
            time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.wait()


@pytest.mark.slow("captures and reads the handshakes of both")
def test_kernel_peers_open_as_many_connections_with_the_same_segments(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.pcap", tmp_path / "theirs.pcap"
    with opening("nftables-nat44") as (bench, measurer):
        device = bench.lab.devices[0]
        assert isinstance(device, NamespaceDevice)
        # A late sender opens each connection, too, so the verdict does not matter.
        with captured(device.netns, device.inside, ours):
            outcome = measurer.measure(PlanOfTrial(N, 1_000.0))
        assert (tuple(outcome.phase1.messages), outcome.readings.established) == (handshake(N), N)
        assert entries(device) == N
        assert device.run("conntrack -F").status == 0
        with hosts(bench.lab.name, ["10.0.0.2"], [SERVER], "10.0.0.1") as (near, far), web_server(far, tmp_path):
            # The window scale follows from it; this is the value of a machine of any usual size.
            for name in (near, far):
                run(name, "sysctl", "-qw", "net.ipv4.tcp_rmem=4096 131072 6291456")
            before = opens(near, "ActiveOpens"), opens(far, "PassiveOpens")
            with captured(device.netns, device.inside, theirs):
                said = run(near, "ab", "-n", str(N), f"http://{SERVER}/")
            assert re.search(rf"Complete requests:\s+{N}\nFailed requests:\s+0\n", said), said
            assert (opens(near, "ActiveOpens") - before[0], opens(far, "PassiveOpens") - before[1]) == (N, N)
            assert entries(device) == N
    assert shapes(ours) == shapes(theirs)
