# SPDX-License-Identifier: Apache-2.0
"""The other generators: how each is started on one core, and what it really delivers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.place import (
    INITIATOR,
    INITIATOR_ADDRESS,
    RESPONDER_ADDRESS,
    TESTER,
    Place,
)

HERE = Path(__file__).parent
FIRST_FRAME_SECONDS = 15.0
SETTLE_SECONDS = 0.5
STOP_SECONDS = 5.0


class PeerError(Exception):
    """A generator did not start or delivered nothing; the message says what it said."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One generator.

    Attributes:
        name: as shown in the table.
        program: the command that must exist.
        package: the Debian package that brings it.
        command: arguments, from the gateway's MAC, the CPU and a folder for temporary files.
        routable: whether its frames can pass a router.
        note: what a reader must know about the figure.
        environment: set for it, from the folder of temporary files.
    """

    name: str
    program: str
    package: str
    command: Callable[[str, int, Path], Sequence[str]]
    routable: bool
    note: str
    environment: Callable[[Path], dict[str, str]] = field(default=lambda _: {})


def _trafgen(gateway: str, cpu: int, folder: Path) -> Sequence[str]:
    """One fixed 64-octet frame (60 without FCS), the mapped ring, no qdisc: its quickest mode."""
    octets = ", ".join("0x" + octet for octet in gateway.split(":"))
    source, destination = (address.replace(".", ", ") for address in (INITIATOR_ADDRESS, RESPONDER_ADDRESS))
    configuration = folder / "trafgen.cfg"
    configuration.write_text(
        f"{{ {octets}, 2, 0, 0, 0, 0, 2, c16(0x0800), 0x45, 0, c16(46), c16(0), c16(0x4000), 64, 17, csumip(14, 33), "
        f"{source}, {destination}, c16(1024), c16(1), c16(26), c16(0), fill(0x41, 18) }}\n"
    )
    return [
        *("taskset", "-c", str(cpu), "trafgen", "--dev", INITIATOR, "--conf", str(configuration)),
        *("--cpus", "1", "--notouch-irq", "--no-sock-mem", "--no-cpu-stats"),
    ]


def _xdp_trafficgen(gateway: str, cpu: int, _: Path) -> Sequence[str]:
    return ["taskset", "-c", str(cpu), "xdp-trafficgen", "udp", "-m", gateway, "-t", "1", INITIATOR]


def _testpmd(device: str) -> Callable[[str, int, Path], Sequence[str]]:
    def command(gateway: str, cpu: int, _: Path) -> Sequence[str]:
        return [
            *("dpdk-testpmd", "--no-huge", "-m", "512", "--no-pci", "--no-telemetry", "--file-prefix", "ngbench"),
            *("--lcores", f"(0,1)@{cpu}", "--vdev", device, "--"),
            *("--forward-mode=txonly", "--txpkts=60", "--burst=64", "--total-num-mbufs=16384", "--no-mlockall"),
            f"--eth-peer=0,{gateway}",
            f"--tx-ip={INITIATOR_ADDRESS},{RESPONDER_ADDRESS}",
        ]

    return command


def _with_shim(folder: Path) -> dict[str, str]:
    """Build the small library that lets Debian 12's xdp-trafficgen start on a newer kernel."""
    library = folder / "xdp_trafficgen_shim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, HERE / "xdp_trafficgen_shim.c", "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


PEERS = (
    Peer(
        "xdp-trafficgen (udp)",
        "xdp-trafficgen",
        "xdp-tools",
        _xdp_trafficgen,
        routable=False,
        note="one fixed IPv6 frame, hop limit 1, so no router passes it; started through xdp_trafficgen_shim.c",
        environment=_with_shim,
    ),
    Peer("trafgen", "trafgen", "netsniff-ng", _trafgen, routable=True, note="one fixed frame"),
    Peer(
        "dpdk-testpmd, net_af_packet",
        "dpdk-testpmd",
        "dpdk-dev",
        _testpmd(f"net_af_packet0,iface={INITIATOR},qdisc_bypass=1"),
        routable=True,
        note="txonly, source port varies; no huge pages",
    ),
    Peer(
        "dpdk-testpmd, net_af_xdp",
        "dpdk-testpmd",
        "dpdk-dev",
        _testpmd(f"net_af_xdp0,iface={INITIATOR}"),
        routable=True,
        note="txonly; veth has no zero copy, so frames are copied; no huge pages",
    ),
)


def delivered_rate(peer: Peer, place: Place, cpu: int, seconds: float, sink: Path) -> float:
    """Frames/s that arrived at the Responder's port while `peer` sent for `seconds`.

    Raises:
        PeerError: it is not installed, did not start, or nothing arrived.
    """
    if shutil.which(peer.program) is None:
        raise PeerError(f"{peer.program} is not installed (Debian package {peer.package})")
    with TemporaryDirectory() as name, place.sink(sink):
        folder = Path(name)
        with (folder / "log").open("w+") as log:
            process = subprocess.Popen(
                ["ip", "netns", "exec", TESTER, *peer.command(place.ends.initiator_gateway, cpu, folder)],
                stdin=subprocess.PIPE,  # testpmd ends when its input does
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | peer.environment(folder),
                process_group=0,
            )
            try:
                _await_first_frame(process, place)
                return _rate(place, seconds)
            except PeerError as error:
                log.seek(0)
                said = [line for line in log.read().splitlines() if line.strip()]
                raise PeerError(f"{error}: {said[-1].strip() if said else 'it said nothing'}") from None
            finally:
                _stop(process)


def _await_first_frame(process: subprocess.Popen[bytes], place: Place) -> None:
    before = place.delivered()
    end = time.monotonic() + FIRST_FRAME_SECONDS
    while place.delivered() == before:
        if process.poll() is not None:
            raise PeerError(f"ended with status {process.returncode}")
        if time.monotonic() > end:
            raise PeerError(f"delivered nothing in {FIRST_FRAME_SECONDS:.0f} s")
        time.sleep(0.1)
    time.sleep(SETTLE_SECONDS)


def _rate(place: Place, seconds: float) -> float:
    started, before = time.monotonic(), place.delivered()
    time.sleep(seconds)
    after, ended = place.delivered(), time.monotonic()
    if after == before:
        raise PeerError("delivered nothing while it was measured")
    return (after - before) / (ended - started)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue
