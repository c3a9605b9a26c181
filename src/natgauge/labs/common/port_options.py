# SPDX-License-Identifier: Apache-2.0
"""Options that several kinds of labs have: the tester's cores, and two existing ports of this machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from natgauge.inputs.checks import in_range, wrong
from natgauge.inputs.cores import MOST_CORES, CoreList
from natgauge.inputs.input import described
from natgauge.inputs.types import Text
from natgauge.labs.common.boot import BootCommand

_DAY_SECONDS: Final = 86_400


@dataclass(frozen=True, kw_only=True, slots=True)
class SenderOptions:
    """Options of the tester."""

    sender_cores: tuple[int, ...] | None = field(
        default=None,
        metadata=described(
            "Cores of the tester", type=CoreList(), label="sender CPUs", parameter="sender_cpus", moves_figures=False
        ),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PortOptions(SenderOptions):
    """Options of a tester that uses two existing ports, and of the machine between them."""

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
    device_cores: int | None = field(
        default=None,
        metadata=described(
            "Number of cores of the device",
            check=partial(in_range, lowest=1, highest=MOST_CORES),
            label="device cores",
            default="ssh: the processors online; wire: not known",
        ),
    )
    boot_seconds: float = field(
        default=600.0,
        metadata=described(
            "Longest time for the device to come back after the command that restarts it",
            "s",
            partial(in_range, lowest=1, highest=_DAY_SECONDS, unit="s"),
            label="time limit of the device's restart",
            moves_figures=False,
        ),
    )
    boot_settle_seconds: float = field(
        default=30.0,
        metadata=described(
            "Pause after the device has come back",
            "s",
            partial(in_range, lowest=0, highest=_DAY_SECONDS, unit="s"),
            label="pause after the device's restart",
            moves_figures=False,
        ),
    )

    def boot(self, name: str, command: str | None) -> BootCommand | None:
        """Return a command that restarts the device, with these times; None without a command."""
        if command is None:
            return None
        if not command.strip():
            raise wrong(name.replace(" ", "_"), "is empty; name a shell command, or leave it out")
        return BootCommand(name, command, self.boot_seconds, self.boot_settle_seconds)
