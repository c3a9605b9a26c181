# SPDX-License-Identifier: Apache-2.0
"""A real server as far side, measured without the devices."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Final

from natgauge.errors import NatgaugeError
from natgauge.inputs.question import TrafficOptions
from natgauge.labs.common.addresses import INSIDE, OUTSIDE, LinkSide
from natgauge.labs.contract import Link
from natgauge.setup.traffic import AddressPlan, TrafficPlan, make_plan
from natgauge.tester.cable_lab import CableLab
from natgauge.trial.lab_measurer import LabMeasurer
from natgauge.trial.observer import Unread
from natgauge.trial.planned import Planned
from natgauge.trial.protocols import ServerControl
from natgauge.trial.resolvers import SHARES
from natgauge.trial.server import FarSide
from natgauge.words import OUTSIDE_PORTS, Address, Family

#: How long the server alone may be measured, in seconds.
ALONE_SECONDS: Final = 120.0
#: The most seconds of its trials, so that a search ends in time.
ALONE_TRIAL_SECONDS: Final = 2.0
#: The share of the time-out in which it must answer.
PROOF_SHARE: Final = 0.25


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
