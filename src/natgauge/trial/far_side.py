# SPDX-License-Identifier: Apache-2.0
"""A real server as far side: started behind the devices, checked, and measured without the devices."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Self

from natgauge.errors import NatgaugeError, UsageError
from natgauge.gateways import far_side
from natgauge.gateways.gateway import Gateway
from natgauge.gateways.limits import DeviceDemand
from natgauge.inputs.question import TrafficOptions
from natgauge.labs.common.addresses import INSIDE, OUTSIDE, LinkSide
from natgauge.labs.common.cable import CableLab
from natgauge.labs.contract import Addresses, Device, Lab, Link
from natgauge.setup.address_plan import AddressPlan
from natgauge.setup.traffic import TrafficPlan, make_plan
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.observer import Unread
from natgauge.trial.planned import Planned
from natgauge.trial.protocols import ServerControl
from natgauge.words import TESTER, Address, Family

#: A server listens on each of its addresses, with a socket for each of its cores.
MOST_ADDRESSES: Final = 64
#: How long the server alone may be measured, in seconds.
ALONE_SECONDS: Final = 120.0
#: Connections of the server's own measurement: one address has this number of unprivileged ports.
_ALONE_CONNECTIONS: Final = 64_512


def refuse(name: str, lab: Lab, traffic: TrafficPlan) -> None:
    """Refuse an unknown server, or a server that cannot run in this lab.

    Args:
        name: name of the far side: the tester itself, a server's name, or a file.
    """
    if name == TESTER:
        return
    server = far_side.load(name)
    if traffic.tunnelled and traffic.tested_edges is not None:
        raise UsageError(
            f"far side {server.name}: the device sends IPv4 in IPv6 to a relay, which only the tester emulates; leave "
            "it out, or choose a whole chain",
            at="far_side",
        )
    count = traffic.responder_addresses.count
    if count > MOST_ADDRESSES:
        raise UsageError(
            f"destination addresses: {count}, but a real server listens on {MOST_ADDRESSES} at most; use fewer",
            at="destination_addresses",
        )
    if lab.server is not None and not lab.server.environment["NG_CPUS"]:
        cores = ",".join(map(str, sorted({*lab.sender_cpus, *lab.device_cpus})))
        remedy = "it needs a core of its own"
        if lab.placement != "shared":
            remedy = "leave one out of --cores, or let it share one of the device's with --server-cores"
        raise UsageError(
            f"far side {server.name}: the sender's and the device's cores ({cores}) are all there are; {remedy}",
            at="far_side",
        )


class FarSide:
    """A real server of a lab. Use it as a context manager: it runs inside the `with` block."""

    def __init__(self, name: str, home: Device, family: Family, addresses: Addresses) -> None:
        """Plan the server; nothing is started."""
        self.name = name
        self.cpus = home.environment["NG_CPUS"]
        every = (addresses.first + index for index in range(addresses.count))
        variables = {
            "NG_FAMILY": family,
            "NG_ADDRESSES": " ".join(map(str, every)),
            "NG_GATEWAY": str(OUTSIDE[family].device.ip),
            "NG_ZONE_NAME": far_side.ZONE_NAME,
            "NG_ZONE": far_side.zone(),
        }
        self._played = Gateway(far_side.load(name).with_variables(variables), home)

    def __enter__(self) -> Self:
        """Start the server, and wait until it is ready."""
        self._played.prepare(DeviceDemand(connections=1, phase1_seconds=1.0))
        try:
            self._played.start()
        except BaseException as error:
            self._played.__exit__(type(error), error)
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._played.__exit__(*exception)  # type: ignore[arg-type] # handed on as it came

    @property
    def version(self) -> str:
        """Version that the server reports, for the result's parameter `server_version`."""
        return ", ".join(self._played.version())

    def refused(self) -> Mapping[str, int]:
        """Number of queries not answered as they should be so far, by cause; losses before its sockets included."""
        return self._played.faults()

    def confirm_ready(self) -> None:
        """Check that the server is still running."""
        self._played.confirm_ready()


def rate_alone(measurer: LabMeasurer, planned: Planned, family: Family) -> float | None:
    """Repeat a measurement on a cable between the tester and the same server, without the device.

    Returns:
        The highest rate, queries/s; None = there was no server, or its rate could not be measured.
    """
    server = measurer.server
    if server is None:
        return None
    measurer.observer.stage(f"measuring {server.name} alone, without a device")
    try:
        return _rate_alone(measurer, server, planned, family) or None
    except NatgaugeError as error:
        # What was measured before is worth more than this; the result says that it is not known.
        measurer.observer.stage(f"{server.name} alone could not be measured: {error}")
        return None


def _rate_alone(measurer: LabMeasurer, server: ServerControl, planned: Planned, family: Family) -> float:
    traffic = _traffic_alone(family, measurer.traffic.connections)
    constants = replace(
        measurer.settings,
        initiator_family=family,
        responder_family=family,
        translated=False,
        pool=None,
        table_limit=None,
        udp_timeout=None,
        ring=None,
    )
    changes: dict[str, Any] = {
        "connections": traffic.connections,
        "placement": "shared",
        "own_processes": False,
        "repeat": 1,
        "most_seconds": ALONE_SECONDS,
        # It opens no connections, so any rate of phase 1 is safe that its queries are.
        "connection_rate": measurer.highest_rate,
    }
    settings = replace(planned.settings, **changes)
    cpus = tuple(int(cpu) for cpu in server.cpus.split(","))
    with CableLab(f"server-{os.getpid()}", cpus) as cable:
        assert cable.server is not None  # noqa: S101 - it was given cores
        with FarSide(server.name, cable.server, family, traffic.responder_addresses) as other:
            cabled = LabMeasurer(
                place=cable,
                device=None,
                traffic=traffic,
                settings=constants,
                recorder=Unread(),
                observer=measurer.observer,
                server=other,
            )
            return planned.procedure.measure(cabled, settings).summary.median


def _traffic_alone(family: Family, connections: int) -> TrafficPlan:
    around = AddressPlan(_link(INSIDE[family]), _link(OUTSIDE[family]), translated=False)
    number = min(connections, _ALONE_CONNECTIONS)
    return make_plan(TrafficOptions(connections=number, destination_ports="53"), around)


def _link(side: LinkSide) -> Link:
    first: Address = side.host(0)
    return Link(side.device.network, side.device.ip, first)
