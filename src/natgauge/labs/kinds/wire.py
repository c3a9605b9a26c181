# SPDX-License-Identifier: Apache-2.0
"""`--lab wire`: two existing ports; the device between them is not ours to touch."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from natgauge.errors import UsageError
from natgauge.host.cpus import cpu_list
from natgauge.labs.contract import Kind, Need, Port
from natgauge.options import choice

if TYPE_CHECKING:
    from natgauge.labs.wire import WireLab


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What the user names: both ports, and the device's MAC or IP address on each link.

    Attributes:
        initiator_port: interface on the Initiator's side.
        initiator_gateway: MAC or IP address of the device on that link.
        initiator_netns: namespace that holds the port; None = our own.
        responder_port: as for the Initiator.
        responder_gateway: as for the Initiator.
        responder_netns: as for the Initiator.
        sender_cores: the tester's; None = the first usable one.
        allow_addresses: the ports may carry IP addresses.
    """

    initiator_port: str | None = field(
        default=None, metadata=choice("The tester's port on the Initiator's side", "IFACE")
    )
    initiator_gateway: str | None = field(default=None, metadata=choice("The device on that link", "MAC|IP"))
    initiator_netns: str | None = field(default=None, metadata=choice("Namespace that holds the port", "NETNS"))
    responder_port: str | None = field(
        default=None, metadata=choice("The tester's port on the Responder's side", "IFACE")
    )
    responder_gateway: str | None = field(default=None, metadata=choice("The device on that link", "MAC|IP"))
    responder_netns: str | None = field(default=None, metadata=choice("Namespace that holds the port", "NETNS"))
    sender_cores: str | Sequence[int] | None = field(default=None, metadata=choice("The tester's cores", "LIST"))
    allow_addresses: bool = field(default=False, metadata=choice("The ports may carry IP addresses"))


def plan(name: str, options: Options, need: Need) -> WireLab:
    """Two ports; they are looked at when the lab is entered.

    Raises:
        UsageError: a port, gateway or core is missing or wrong.
    """
    # What may be chosen is known without what looks at ports.
    from natgauge.labs.wire import WireLab  # noqa: PLC0415

    return WireLab(
        _port("initiator", options.initiator_port, options.initiator_gateway, options.initiator_netns),
        _port("responder", options.responder_port, options.responder_gateway, options.responder_netns),
        name=name,
        families=need.families,
        sender_cpus=cpu_list(options.sender_cores),
        allow_addresses=options.allow_addresses,
    )


def _port(side: str, interface: str | None, gateway: str | None, netns: str | None) -> Port:
    if interface is None:
        raise UsageError(f"--{side}-port is missing; the wire lab needs both ports and the device's address on each")
    if gateway is None:
        raise UsageError(f"--{side}-gateway is missing; the wire lab needs the port and the device's address on it")
    if gateway.count(":") == 5 and all(len(part) == 2 for part in gateway.split(":")):
        return Port(interface, netns, gateway.lower(), None)
    try:
        address = ipaddress.ip_address(gateway)
    except ValueError:
        raise UsageError(f"{side} gateway: {gateway!r} is neither a MAC nor an IP address") from None
    return Port(interface, netns, None, str(address))


KIND = Kind(summary="two existing ports, the device is not ours", options=Options, plan=plan)
