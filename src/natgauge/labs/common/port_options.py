# SPDX-License-Identifier: Apache-2.0
"""Options that several kinds of labs have: the tester's cores, and two existing ports of this machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from natgauge.inputs.input import described
from natgauge.inputs.types import CoreList, Text


@dataclass(frozen=True, kw_only=True, slots=True)
class SenderOptions:
    """Options of the tester.

    Attributes:
        sender_cores: cores of the tester's senders; None = the first usable one.
    """

    sender_cores: tuple[int, ...] | None = field(
        default=None,
        metadata=described(
            "Cores of the tester", type=CoreList(), label="sender CPUs", parameter="sender_cpus", moves_figures=False
        ),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PortOptions(SenderOptions):
    """Options of a tester that uses two existing ports.

    Attributes:
        initiator_port: interface on the Initiator's side.
        initiator_netns: namespace that holds the port; None = the caller's own.
        responder_port: interface on the Responder's side.
        responder_netns: namespace that holds the port; None = the caller's own.
        allow_addresses: the ports may carry IP addresses.
    """

    initiator_port: str | None = field(
        default=None,
        metadata=described("Port of the tester on the Initiator's side", type=Text("IFACE"), moves_figures=False),
    )
    initiator_netns: str | None = field(
        default=None,
        metadata=described("Network namespace of the Initiator port", type=Text("NETNS"), moves_figures=False),
    )
    responder_port: str | None = field(
        default=None,
        metadata=described("Port of the tester on the Responder's side", type=Text("IFACE"), moves_figures=False),
    )
    responder_netns: str | None = field(
        default=None,
        metadata=described("Network namespace of the Responder port", type=Text("NETNS"), moves_figures=False),
    )
    allow_addresses: bool = field(default=False, metadata=described("Accept ports that have IP addresses"))
