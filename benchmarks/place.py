# SPDX-License-Identifier: Apache-2.0
"""Where the contenders run: a veth cable, or a namespace that forwards IPv4 between two veths.

Every contender finds the same interfaces, addresses and neighbour entries. Plain `ip` builds them, not natgauge's own
labs, so nothing of the tester is part of the place it is compared in.
"""

from __future__ import annotations

import subprocess
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

TESTER = "ngbench-tester"
DEVICE = "ngbench-device"
INITIATOR = "ngb-i"
RESPONDER = "ngb-r"
DEVICE_INSIDE = "ngb-in"
DEVICE_OUTSIDE = "ngb-out"

INITIATOR_ADDRESS = "10.0.0.2"
DEVICE_INSIDE_ADDRESS = "10.0.0.1"
DEVICE_OUTSIDE_ADDRESS = "198.19.0.1"
RESPONDER_ADDRESS = "198.19.0.2"
QUEUES = 2


def sh(command: str, *, netns: str | None = None) -> str:
    """Run one command and return its standard output.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    prefix = ["ip", "netns", "exec", netns] if netns else []
    return subprocess.run([*prefix, *command.split()], check=True, text=True, stdout=subprocess.PIPE).stdout


@dataclass(frozen=True, slots=True)
class Ends:
    """The MAC addresses a sender must write: `initiator_gateway` is where frames from the Initiator go."""

    initiator_gateway: str
    responder_gateway: str


class Place(AbstractContextManager["Place"]):
    """Two tester ports in one namespace, joined directly (`forwards` False) or by a forwarding namespace."""

    def __init__(self, *, forwards: bool) -> None:
        self.forwards = forwards
        self.name = "linux-ipv4" if forwards else "cable"

    def __enter__(self) -> Self:
        self._remove()
        sh(f"ip netns add {TESTER}")
        try:
            if self.forwards:
                self._forwarding()
            else:
                _veth(INITIATOR, TESTER, RESPONDER, TESTER)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._remove()

    @property
    def ends(self) -> Ends:
        """The gateways' MAC addresses as the interfaces have them now."""
        if self.forwards:
            return Ends(_mac(DEVICE_INSIDE, DEVICE), _mac(DEVICE_OUTSIDE, DEVICE))
        return Ends(_mac(RESPONDER, TESTER), _mac(INITIATOR, TESTER))

    @contextmanager
    def sink(self, program: Path) -> Iterator[None]:
        """Drop what arrives at the Responder's port, counted by veth."""
        sh(f"ip link set dev {RESPONDER} xdpdrv obj {program} sec xdp", netns=TESTER)
        try:
            yield
        finally:
            sh(f"ip link set dev {RESPONDER} xdpdrv off", netns=TESTER)

    def delivered(self) -> int:
        """Frames that XDP has seen at the Responder's port so far."""
        lines = sh(f"ethtool -S {RESPONDER}", netns=TESTER).splitlines()
        return sum(int(line.split(":")[1]) for line in lines if "rx_queue" in line and "xdp_packets" in line)

    def _forwarding(self) -> None:
        sh(f"ip netns add {DEVICE}")
        _veth(INITIATOR, TESTER, DEVICE_INSIDE, DEVICE)
        _veth(RESPONDER, TESTER, DEVICE_OUTSIDE, DEVICE)
        sh("sysctl -qw net.ipv4.ip_forward=1", netns=DEVICE)
        for interface, address, neighbour, port in (
            (DEVICE_INSIDE, DEVICE_INSIDE_ADDRESS, INITIATOR_ADDRESS, INITIATOR),
            (DEVICE_OUTSIDE, DEVICE_OUTSIDE_ADDRESS, RESPONDER_ADDRESS, RESPONDER),
        ):
            sh(f"ip address add {address}/24 dev {interface}", netns=DEVICE)
            sh(f"ip neigh add {neighbour} lladdr {_mac(port, TESTER)} dev {interface}", netns=DEVICE)

    @staticmethod
    def _remove() -> None:
        for netns in (TESTER, DEVICE):
            subprocess.run(["ip", "netns", "delete", netns], check=False, stderr=subprocess.DEVNULL)


def _veth(one: str, one_netns: str, two: str, two_netns: str) -> None:
    queues = f"numtxqueues {QUEUES} numrxqueues {QUEUES}"
    sh(f"ip link add {one} netns {one_netns} {queues} type veth peer name {two} netns {two_netns} {queues}")
    for interface, netns in ((one, one_netns), (two, two_netns)):
        sh(f"sysctl -qw net.ipv6.conf.{interface}.disable_ipv6=1", netns=netns)
        sh(f"ip link set {interface} up", netns=netns)
        # A frame redirected into a veth arrives only when the peer polls. GRO makes it poll, but the kernel offers the
        # way to the other end only when GRO is turned on while the interface is up.
        sh(f"ethtool -K {interface} gro on tx off", netns=netns)


def _mac(interface: str, netns: str) -> str:
    return sh(f"cat /sys/class/net/{interface}/address", netns=netns).strip()
