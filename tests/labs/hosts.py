# SPDX-License-Identifier: Apache-2.0
"""Ordinary hosts in place of the tester: packaged programs talk through the device with the kernel's own stack."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from natgauge.labs.common import namespaces


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


@contextmanager
def hosts(lab: str, inside: Sequence[str], outside: Sequence[str], gateway: str) -> Iterator[tuple[str, str]]:
    """Give the tester's two ports IPv4 addresses in namespaces of their own; yield the two namespaces.

    The port outside does not come back: the lab can be removed afterwards, and nothing else.

    Args:
        lab: name of the lab.
        inside: addresses of the host inside, each of a network of 16 bits.
        outside: addresses of the host outside.
        gateway: the device's address inside.
    """
    near, far = f"ng-{lab}-tester", f"ng-{lab}-far"
    namespaces.create(far)
    try:
        ip("-n", near, "link", "set", "ng0r", "netns", far)
        for name, port, addresses in ((far, "ng0r", outside), (near, "ng0i", inside)):
            for address in addresses:
                ip("-n", name, "address", "add", f"{address}/16", "dev", port)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", port, "up", "mtu", "1500")
        ip("-n", near, "route", "add", "default", "via", gateway)
        yield near, far
    finally:
        namespaces.delete([far])


def capturing(netns: str, interface: str, file: Path, wanted: str) -> subprocess.Popen[bytes]:
    """A program that captures the wanted packets on an interface; it has begun to."""
    # tshark says that it captures before it does; tcpdump says so when it has its socket.
    # Its buffer reserves the longest captured length (-s) for each packet, and by default has room for 256 of them.
    options = ["-U", "--immediate-mode", "-s", "2048", "-B", "16384"]
    command = ["tcpdump", *options, "-i", interface, "-w", str(file), wanted]
    process = subprocess.Popen(
        ["ip", "netns", "exec", netns, *command], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    assert process.stderr is not None
    while b"listening on" not in (line := process.stderr.readline()):
        assert line, "tcpdump ended"
    return process


@contextmanager
def captured(netns: str, interface: str, file: Path) -> Iterator[None]:
    """All TCP packets on an interface while the context lasts."""
    process = capturing(netns, interface, file, "tcp")
    yield
    # The program reads what the kernel holds for it, and ends at a signal without the rest.
    sizes = [-1, file.stat().st_size]
    while sizes[-1] != sizes[-2]:
        time.sleep(1)
        sizes.append(file.stat().st_size)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)


def until(happens: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until something happens, for this time at most."""
    deadline = time.monotonic() + seconds
    while not happens() and time.monotonic() < deadline:
        time.sleep(0.02)
