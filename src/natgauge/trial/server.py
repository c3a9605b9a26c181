# SPDX-License-Identifier: Apache-2.0
"""Who answers DNS queries: a real server as far side, which is measured alone as well, or the device itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Self

from natgauge.errors import NatgaugeError, UsageError
from natgauge.gateways import far_side
from natgauge.gateways.gateway import Gateway
from natgauge.gateways.limits import DeviceDemand
from natgauge.gateways.recipe import Kind, Recipe
from natgauge.inputs.input import percent, wrong
from natgauge.inputs.question import TrafficOptions
from natgauge.labs.common.addresses import INSIDE, OUTSIDE, LinkSide
from natgauge.labs.contract import Addresses, Device, Lab, Link
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.settings import TrialSettings
from natgauge.setup.traffic import AddressPlan, TrafficPlan, make_plan
from natgauge.tester.cable import CableLab
from natgauge.trial.controls import ServerControl, Unread
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.planned import Planned
from natgauge.words import OUTSIDE_PORTS, PROOF_SHARE, TESTER, Address, Family

#: A server listens on each of its addresses, with a socket for each of its cores.
MOST_ADDRESSES: Final = 64
#: What differs from the resolution rate through a gateway: every query is answered, within 1 s (RFC 8219 section 9.2),
#: and no connection has to be opened before.
_ANSWERED: Final[Mapping[str, Any]] = {"stateless": True, "loss_tolerance": 0.0, "frame_timeout_seconds": 1.0}
#: Shares of names and queries, by which the trials of a DNS64 server differ (RFC 8219 section 9.2).
SHARES: Final = ("aaaa_share", "cached_share")
#: Settings of each kind that the user did not choose. A DNS64 server asks an authoritative one (RFC 8219 section 9.1).
_SETTINGS: Final[Mapping[Kind, Mapping[str, Any]]] = {
    "dns64": {**_ANSWERED, "far_side": "knot"},
    "dns": {**_ANSWERED, "far_side": TESTER},
}
#: How long the server alone may be measured, in seconds.
ALONE_SECONDS: Final = 120.0
#: The most seconds of its trials, so that a search ends in time.
ALONE_TRIAL_SECONDS: Final = 2.0


def refuse_server(name: str, lab: Lab, traffic: TrafficPlan) -> None:
    """Refuse an unknown server (a name or a file), or a server that cannot run in this lab."""
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
        """Plan the server; nothing is started. `with_aaaa`: its names have IPv6 addresses, too."""
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


def settings_of_kind(recipe: Recipe, procedure: Procedure[Any], chosen: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the user's settings, and those that the kind of device decides where the user did not.

    The metric must be one with queries.
    """
    if not recipe.answers_queries:
        return chosen
    if all(input_.name != "query" for input_ in procedure.own_inputs()):
        raise UsageError(
            f"{procedure.metric}: {recipe.name} answers DNS queries and forwards no frames; measure its resolution-rate"
        )
    return {**_SETTINGS[recipe.kind], **chosen}


def refuse_unanswered(recipe: Recipe, settings: TrialSettings) -> None:
    """Refuse settings that a device cannot be measured with because it answers queries itself."""
    parameters = settings.parameters()
    for name in SHARES:
        if parameters.get(name) and not recipe.asks_server:
            raise wrong(name, f"{percent(parameters[name])}, but {recipe.name} is no DNS64 server; leave it out")
    if parameters.get("aaaa_share") and settings.query == "a":
        raise wrong("aaaa_share", "queries of type A have the same answer, whichever names have AAAA; leave it out")
    if not recipe.answers_queries:
        return
    if settings.has_phase1:
        raise UsageError(f"stateless: {recipe.name} keeps no connections; leave it out", at="stateless")
    if recipe.asks_server and settings.far_side == TESTER:
        raise UsageError(
            f"far side {TESTER}: {recipe.name} asks an authoritative server; choose knot or nsd", at="far_side"
        )
    if not recipe.asks_server and settings.far_side != TESTER:
        raise UsageError(
            f"far side {settings.far_side}: {recipe.name} asks no other server; leave it out", at="far_side"
        )


def rate_alone(measurer: LabMeasurer, planned: Planned, family: Family) -> float | None:
    """Return the highest rate in queries/s of the same server on a cable to the tester, without the device.

    None = there was no server, or its rate could not be measured.
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
        answers={},
    )
    changes: dict[str, Any] = {
        "connections": traffic.connections,
        "placement": "shared",
        "own_processes": False,
        **dict.fromkeys(SHARES, 0.0),
        **_proof(measurer, planned),
        "repeat": 1,
        "most_seconds": ALONE_SECONDS,
        "trial_seconds": min(planned.settings.phase2_seconds, ALONE_TRIAL_SECONDS),
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


def _proof(measurer: LabMeasurer, planned: Planned) -> dict[str, float]:
    """Return the settings that prove a DNS64's tester: a quarter of the time-out (RFC 8219 section 9.2)."""
    limit = planned.settings.frame_timeout_seconds
    return {"frame_timeout_seconds": limit * PROOF_SHARE} if measurer.settings.answers and limit else {}


def _traffic_alone(family: Family, connections: int) -> TrafficPlan:
    around = AddressPlan(_link(INSIDE[family]), _link(OUTSIDE[family]), translated=False)
    number = min(connections, OUTSIDE_PORTS)
    return make_plan(TrafficOptions(connections=number, destination_ports="53"), around)


def _link(side: LinkSide) -> Link:
    first: Address = side.host(0)
    return Link(side.device.network, side.device.ip, first)
