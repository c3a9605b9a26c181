# SPDX-License-Identifier: Apache-2.0
"""A forwarding device between two hosts, in namespaces; frames of our own making go in, and what comes out is seen.

Nothing of the tester is used here, so what these tests prove can be held against it.
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest
from tests.labs.datagrams import Datagram, parse

from natgauge.labs.common import namespaces

LEFT_MAC = "02:00:00:00:00:01"
DEVICE_LEFT_MAC = "02:00:00:00:00:02"
DEVICE_RIGHT_MAC = "02:00:00:00:00:03"
RIGHT_MAC = "02:00:00:00:00:04"

_SO_TIMESTAMPNS = 35
_ALL_PROTOCOLS = 3
_BUFFER = 32 << 20
_QUIET_SECONDS = 0.2
_HOSTS = {4: ("198.18.0.2", "198.19.0.2"), 6: ("2001:2::2", "2001:2:0:1::2")}


class Capture:
    """What arrives at an interface, from now on."""

    def __init__(self, handle: socket.socket) -> None:
        self._handle = handle

    def frames(self) -> list[bytes]:
        """All that came, once nothing has come for a while."""
        return [frame for frame, _ in self._arrivals()]

    def datagrams(self) -> list[Datagram]:
        """All UDP that came, once nothing has come for a while."""
        parsed = (parse(frame, arrived) for frame, arrived in self._arrivals())
        return [datagram for datagram in parsed if datagram]

    def _arrivals(self) -> Iterator[tuple[bytes, int]]:
        self._handle.settimeout(_QUIET_SECONDS)
        while True:
            try:
                frame, controls, _, address = self._handle.recvmsg(65536, 256)
            except TimeoutError:
                return
            seconds, nanoseconds = struct.unpack("qq", controls[0][2])
            if address[2] != socket.PACKET_OUTGOING:
                yield frame, seconds * 10**9 + nanoseconds


@dataclass(frozen=True, slots=True)
class Wire:
    """left (l0) -- (d0) device (d1) -- (r0) right; the device forwards IPv4 and IPv6."""

    left: str
    device: str
    right: str

    def datagrams(self, count: int, *, family: int = 4, payload_octets: int = 40) -> list[Datagram]:
        """Different datagrams from left to right, numbered from 0 in their first 8 octets; ports repeat never."""
        source, destination = map(ipaddress.ip_address, _HOSTS[family])
        filling = bytes(range(payload_octets - 8))
        return [
            Datagram(
                source, 1024 + number % 60000, destination, 7 + number // 60000, number.to_bytes(8, "big") + filling
            )
            for number in range(count)
        ]

    @contextmanager
    def capture(self, netns: str, interface: str) -> Iterator[Capture]:
        """See everything that arrives at an interface."""

        def listen() -> socket.socket:
            handle = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            handle.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_RCVBUFFORCE", 33), _BUFFER)
            handle.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            handle.bind((interface, _ALL_PROTOCOLS))
            return handle

        with namespaces.inside(netns, listen) as handle:
            yield Capture(handle)

    def send(self, frames: Sequence[bytes], gap_seconds: float = 0.0, cpu: int | None = None) -> list[int]:
        """Send frames from the left host as they are; returns when (ns of CLOCK_REALTIME) each was handed over.

        With `cpu`, from that CPU and in such haste that no ordinary thread gets to run there meanwhile.
        """
        return namespaces.inside(self.left, lambda: _send("l0", frames, gap_seconds, cpu))

    def send_datagrams(self, datagrams: Sequence[Datagram], gap_seconds: float = 0.0) -> list[int]:
        """Send datagrams from the left host to the device; see `send`."""
        return self.send([datagram.frame(LEFT_MAC, DEVICE_LEFT_MAC) for datagram in datagrams], gap_seconds)

    def through(self, datagrams: Sequence[Datagram]) -> list[Datagram]:
        """Send datagrams through the device; what arrives at the right host, without the times."""
        with self.capture(self.right, "r0") as capture:
            self.send_datagrams(datagrams)
            return [datagram.differs() for datagram in capture.datagrams()]


def _send(interface: str, frames: Sequence[bytes], gap_seconds: float, cpu: int | None) -> list[int]:
    if cpu is not None:  # of this thread only, which ends after this
        os.sched_setaffinity(0, {cpu})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    times = []
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as handle:
        handle.bind((interface, 0))
        for frame in frames:
            times.append(time.clock_gettime_ns(time.CLOCK_REALTIME))
            handle.send(frame)
            if gap_seconds:
                time.sleep(gap_seconds)
    return times


def _ip(*words: str, netns: str | None = None) -> None:
    place = ["-n", netns] if netns else []
    subprocess.run(["ip", *place, *words], check=True, capture_output=True, text=True)


def _cable(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    """Lay a cable; each end is (namespace, interface, MAC)."""
    queues = ("numtxqueues", str(os.cpu_count()), "numrxqueues", str(os.cpu_count()))
    ends = [("netns", netns, "name", interface, "address", mac) for netns, interface, mac in (one, other)]
    _ip("link", "add", *ends[0], *queues, "type", "veth", "peer", *ends[1], *queues)
    for netns, interface, _ in (one, other):
        namespaces.inside(netns, lambda: namespaces.write_sysctls({f"net/ipv6/conf/{interface}/accept_dad": 0}))  # noqa: B023 - called at once
        _ip("link", "set", interface, "up", netns=netns)


def _make_forward(wire: Wire) -> None:
    switches = {"net/ipv4/ip_forward": 1, "net/ipv6/conf/all/forwarding": 1}
    namespaces.inside(wire.device, lambda: namespaces.write_sysctls(switches))
    for interface, addresses in (
        ("d0", ("198.18.0.1/24", "2001:2::1/64")),
        ("d1", ("198.19.0.1/24", "2001:2:0:1::1/64")),
    ):
        for address in addresses:
            _ip("address", "add", address, "dev", interface, netns=wire.device)
    for _, host in _HOSTS.values():
        _ip("neighbour", "add", host, "lladdr", RIGHT_MAC, "dev", "d1", "nud", "permanent", netns=wire.device)


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    """Two hosts with a forwarding device between them."""
    if os.geteuid():
        pytest.skip("root is needed")
    # Not the prefix of natgauge's own, so that a "lab clean" elsewhere lets them be.
    names = [f"truth-{os.getpid()}-{role}" for role in ("left", "device", "right")]
    with ExitStack() as undo:
        for name in names:
            namespaces.create(name)
            undo.callback(namespaces.delete, [name])
        made = Wire(*names)
        quiet = {"net/ipv6/conf/default/disable_ipv6": 1}
        for host in (made.left, made.right):
            namespaces.inside(host, lambda: namespaces.write_sysctls(quiet))
        _cable((made.left, "l0", LEFT_MAC), (made.device, "d0", DEVICE_LEFT_MAC))
        _cable((made.device, "d1", DEVICE_RIGHT_MAC), (made.right, "r0", RIGHT_MAC))
        _make_forward(made)
        yield made


class Programs:
    """BPF programs of certain names that were loaded since this was made; others on this machine do not matter."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._before = self._loaded()

    def _loaded(self) -> set[int]:
        answer = subprocess.run(["bpftool", "--json", "prog", "list"], check=True, capture_output=True, text=True)
        return {program["id"] for program in json.loads(answer.stdout) if program.get("name") in self._names}

    def new(self) -> set[int]:
        """Numbers of those that are loaded now and were not then."""
        return self._loaded() - self._before

    def await_unloaded(self, programs: set[int], seconds: float = 5.0) -> None:
        """The kernel frees programs some milliseconds after their last user."""
        until = time.monotonic() + seconds
        while programs & self._loaded():
            assert time.monotonic() < until, "programs are still loaded"
            time.sleep(0.02)


@pytest.fixture
def loaded() -> Callable[..., Programs]:
    """Watch BPF programs of the names it is called with."""
    return Programs
