# SPDX-License-Identifier: Apache-2.0
"""A real server as far side: started behind the devices, and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from natgauge.errors import UsageError
from natgauge.gateways import far_side
from natgauge.gateways.gateway import Gateway
from natgauge.gateways.limits import DeviceDemand
from natgauge.labs.common.addresses import OUTSIDE
from natgauge.labs.contract import Addresses, Device, Lab
from natgauge.setup.traffic import TrafficPlan
from natgauge.words import TESTER, Family

#: A server listens on each of its addresses, with a socket for each of its cores.
MOST_ADDRESSES: Final = 64


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

    def __init__(
        self, name: str, home: Device, family: Family, addresses: Addresses, *, with_aaaa: bool = True
    ) -> None:
        """Plan the server; nothing is started.

        Args:
            with_aaaa: whether its names have IPv6 addresses, too.
        """
        self.name = name
        self.cpus = home.environment["NG_CPUS"]
        every = map(addresses.at, range(addresses.count))
        variables = {
            "NG_FAMILY": family,
            "NG_GATEWAY": str(OUTSIDE[family].device.ip),
            **far_side.variables(every, with_aaaa=with_aaaa),
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
