# SPDX-License-Identifier: Apache-2.0
"""Elementary trials of two packaged generators: trafgen (netsniff-ng) opens connections, iperf3 forwards datagrams.

trafgen does not receive, so the kernel's counter of the Responder's port counts its frames. iperf3 has sockets at both
ends, so its turn gives the ports addresses, and moves the Responder's port into a namespace of its own.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.place import (
    DEVICE_INSIDE_ADDRESS,
    DEVICE_OUTSIDE_ADDRESS,
    INITIATOR,
    INITIATOR_ADDRESS,
    RESPONDER,
    RESPONDER_ADDRESS,
    TESTER,
    sh,
)
from benchmarks.second_opinion.siitperf import Opening

_FAR: Final = "ngbench-far"
#: Datagrams of 18 octets make frames of 64 octets with FCS.
_PAYLOAD: Final = 18
#: Wait for the last frames of a trial, in seconds.
_GRACE: Final = 0.3
#: Largest difference between the rate asked for and the rate at which the generator sent.
RATE_TOLERANCE: Final = 0.01


class PackagedError(Exception):
    """A packaged generator did not do its trial; the message has its last lines."""


def trafgen(opening: Opening, gateway_mac: str, cpu: int) -> tuple[int, float]:
    """Open connections with trafgen; return the frames that arrived, and the rate at which trafgen says it sent.

    trafgen sleeps a fixed time after each frame, so it sends more slowly than asked for.

    Raises:
        PackagedError: trafgen failed.
    """
    last = opening.first_port + opening.connections - 1
    mac = sh(f"cat /sys/class/net/{INITIATOR}/address", netns=TESTER).strip()
    frame = (
        f"{{ eth(da={gateway_mac}, sa={mac}), ipv4(ttl=64, sa={INITIATOR_ADDRESS}, da={RESPONDER_ADDRESS}), "
        f"udp(sp=dinc({opening.first_port}, {last}), dp={opening.destination_port}), fill(0x41, {_PAYLOAD}) }}\n"
    )
    before = _arrived()
    with TemporaryDirectory() as folder:
        configuration = Path(folder) / "frame.cfg"
        configuration.write_text(frame)
        options = [
            *("--dev", INITIATOR, "--conf", str(configuration), "--num", str(opening.connections)),
            # Its --rate sends in bursts, which the gateway's bucket does not hold; its --gap sleeps between two frames.
            *("--gap", f"{1_000_000 // opening.rate}us", "--cpus", "1", "--notouch-irq", "--no-sock-mem"),
        ]
        done = subprocess.run(
            ["ip", "netns", "exec", TESTER, "taskset", "-c", str(cpu), "trafgen", *options],
            capture_output=True,
            text=True,
            check=False,
        )
    time.sleep(_GRACE)
    took = re.search(r"(\d+) sec, (\d+) usec", done.stdout + done.stderr)
    if done.returncode != 0 or took is None:
        raise PackagedError(f"trafgen, status {done.returncode}: {_last_lines(done)}")
    return _arrived() - before, (opening.connections - 1) / (int(took[1]) + int(took[2]) / 1e6)


@contextmanager
def sockets() -> Iterator[None]:
    """Give both ports addresses and a route, the Responder's in a namespace of its own; undo that afterwards."""
    sh(f"ip netns add {_FAR}")
    try:
        sh(f"ip link set {RESPONDER} netns {_FAR}", netns=TESTER)
        for port, netns, address, router in (
            (INITIATOR, TESTER, INITIATOR_ADDRESS, DEVICE_INSIDE_ADDRESS),
            (RESPONDER, _FAR, RESPONDER_ADDRESS, DEVICE_OUTSIDE_ADDRESS),
        ):
            sh(f"ip address add {address}/24 dev {port}", netns=netns)
            sh(f"ip link set {port} up", netns=netns)
            sh(f"ip route add default via {router}", netns=netns)
        yield
    finally:
        sh(f"ip address flush dev {INITIATOR}", netns=TESTER)
        sh(f"ip address flush dev {RESPONDER}", netns=_FAR)
        sh(f"ip link set {RESPONDER} netns {TESTER}", netns=_FAR)
        sh(f"ip link set {RESPONDER} up", netns=TESTER)
        sh(f"ethtool -K {RESPONDER} gro on tx off", netns=TESTER)
        sh(f"ip netns delete {_FAR}")


def iperf3(rate: int, seconds: int) -> tuple[int, int, float]:
    """Send datagrams with `iperf3 -u` between `sockets`; return its counts of sent and arrived ones, and seconds.

    Raises:
        PackagedError: iperf3 failed.
    """
    server = subprocess.Popen(
        ["ip", "netns", "exec", _FAR, "iperf3", "-s", "-1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(_GRACE)
        options = [
            *("-u", "-c", RESPONDER_ADDRESS, "-l", str(_PAYLOAD), "-t", str(seconds), "-J", "--pacing-timer", "250"),
            *("-b", str(rate * _PAYLOAD * 8)),
        ]
        done = subprocess.run(
            ["ip", "netns", "exec", TESTER, "iperf3", *options], capture_output=True, text=True, check=False
        )
        try:
            total: dict[str, Any] = json.loads(done.stdout)["end"]["sum"]
        except (ValueError, KeyError):
            raise PackagedError(f"iperf3, status {done.returncode}: {_last_lines(done)}") from None
        return total["packets"], total["packets"] - total["lost_packets"], total["seconds"]
    finally:
        server.terminate()
        server.wait()


def _arrived() -> int:
    return int(sh(f"cat /sys/class/net/{RESPONDER}/statistics/rx_packets", netns=TESTER))


def _last_lines(done: subprocess.CompletedProcess[str]) -> str:
    return " | ".join((done.stdout + done.stderr).strip().splitlines()[-3:])
