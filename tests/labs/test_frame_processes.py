# SPDX-License-Identifier: Apache-2.0
"""Each way in which a process gets frames of a namespace is found, also where its opener has ended."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from tests.labs.program import own

from natgauge.cleaning import has_ended
from natgauge.labs.common import namespaces
from natgauge.labs.common.device import frame_processes

NAME = own("e2e-frames")
NETNS = f"{namespaces.PREFIX}{NAME}"
#: Opens, and leaves the rest to a child, as daemons do.
FORKS = """
import fcntl, os, socket, struct, subprocess, sys, time
{opens}
opener = os.getpid()
if os.fork():
    os._exit(0)
while os.getppid() == opener:
    time.sleep(0.001)
print(os.getpid(), flush=True)
sys.stdin.read()
"""
QUEUE = """
held = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
held.bind((0, 0))
command = struct.pack("=HHBBH", 8, 1, 1, 0, socket.htons(2))  # NFQA_CFG_CMD: NFQNL_CFG_CMD_BIND, IPv4
head = struct.pack("=IHHII", 16 + 4 + len(command), 3 << 8 | 2, 5, 1, 0) + struct.pack("=BBH", 0, 0, socket.htons(7))
held.send(head + command)
assert struct.unpack_from("=i", held.recv(4096), 16) == (0,)
"""
#: Made in a namespace of its own, from which the interface is moved.
MOVED_TUN = """
import ctypes
assert ctypes.CDLL(None).unshare(0x40000000) == 0
held = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(held, 0x400454CA, struct.pack("16sH", b"lo7", 0x1001))
subprocess.run(["ip", "link", "set", "lo7", "netns", sys.argv[1]], check=True)
"""
OPENS = {
    "packet": "held = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))",
    "raw": "held = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)",
    "xdp": "held = socket.socket(44, socket.SOCK_RAW)",
    "queue": QUEUE,
    "moved tun": MOVED_TUN,
}


@pytest.fixture(scope="module")
def netns() -> Iterator[str]:
    namespaces.create(NETNS)
    yield NETNS
    namespaces.delete([NETNS])


@contextmanager
def process(netns: str, opens: str) -> Iterator[int]:
    """A process that got what another one opened in the namespace; its number."""
    command = ["ip", "netns", "exec", netns, "python3", "-c", FORKS.format(opens=opens), netns]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        line = parent.stdout.readline()
        assert line, "it could not open it"
        yield int(line)
        parent.communicate()
        until = time.monotonic() + 20
        while not has_ended(int(line)):
            assert time.monotonic() < until
            time.sleep(0.01)


@pytest.mark.parametrize("way", OPENS)
def test_a_child_that_inherits_the_way_is_found(netns: str, way: str) -> None:
    with process(netns, OPENS[way]) as pid:
        assert frame_processes(netns, "") == {pid: "python3"}
    assert frame_processes(netns, "") == {}


def test_sockets_that_get_no_frames_of_others_are_none(netns: str) -> None:
    with ExitStack() as stack:
        for opens in ("held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)", "held = open('/dev/net/tun', 'rb')"):
            stack.enter_context(process(netns, opens))
        assert frame_processes(netns, "") == {}
