# SPDX-License-Identifier: Apache-2.0
"""A kind of lab in one file: a router of the kernel between two veths, which nobody can run snippets on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from natgauge.inputs.input import chosen
from natgauge.labs.common import namespaces
from natgauge.labs.common.addresses import INSIDE, NAT64_PREFIX, OUTSIDE
from natgauge.labs.common.links import MTU, End, VethCable, drop_counters, make, prepare_namespace
from natgauge.labs.contract import Device, DeviceCores, ExternalDevice, Ground, Kind, LabCounters, LabNeeds, Link, Port
from natgauge.words import Placement


@dataclass(frozen=True, kw_only=True)
class Options:
    """What may be chosen."""

    hops: int = chosen(64, "Hop limit of the router")
    emulated: bool = chosen(False, "The router is said to be emulated")


class PlainLab:
    """Two namespaces: ours with both ports, and the router's."""

    placement: Placement = "external"
    devices: Sequence[Device] = ()
    external: ExternalDevice | None = None
    server: Device | None = None
    sender_cpus: tuple[int, ...] = (0,)
    device_cpus: tuple[int, ...] = ()
    device_cores = DeviceCores()
    grace_seconds = 0.1
    virtual = True
    is_reused = False
    changes_machine = False

    def __init__(self, name: str, options: Options, _need: LabNeeds) -> None:
        self.name, self.hops, self.router = name, options.hops, f"ng-{name}-router"
        self.emulated = options.emulated
        sides = (INSIDE["ipv4"], OUTSIDE["ipv4"])
        self.cables: list[VethCable] = []
        ports: list[Port] = []
        for at, side in enumerate(sides):
            own = End(f"ng-{name}-tester", f"port{at}", f"02:00:00:00:0{at}:01")
            peer = End(self.router, f"link{at}", f"02:00:00:00:0{at}:02", (side.device,))
            self.cables.append(VethCable((own, peer), 100 + at))
            ports.append(Port(own.interface, own.netns, peer.mac, str(side.device.ip)))
        self.initiator, self.responder = ports
        inside, outside = (Link(side.device.network, side.device.ip, side.host(0)) for side in sides)
        self.ground = Ground(inside, outside, MTU, NAT64_PREFIX)

    def __enter__(self) -> Self:
        for name in (self.initiator.netns or "", self.router):
            namespaces.create(name)
            namespaces.inside(name, partial(prepare_namespace, forwards=name == self.router))
        for cable in self.cables:
            make(cable)
        namespaces.inside(self.router, lambda: namespaces.write_sysctls({"net/ipv4/ip_default_ttl": self.hops}))
        return self

    def __exit__(self, *_: object) -> None:
        namespaces.delete([self.initiator.netns or "", self.router])

    def dropped(self) -> Mapping[str, int]:
        """By the router's interface."""
        return {f"router {name}": dropped.received for name, dropped in drop_counters(self.router).items()}

    def counters(self) -> LabCounters:
        """The drops alone."""
        return LabCounters(self.dropped())

    def keep(self) -> None:
        raise NotImplementedError

    def parameters(self) -> Mapping[str, Any]:
        """The hop limit."""
        return {"hops": self.hops}


KIND = Kind("a plain router", Options, PlainLab)
