# SPDX-License-Identifier: Apache-2.0
"""Options of several kinds of labs: the tester's cores, two existing ports of this machine, and a device's restart."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from natgauge.errors import HostError
from natgauge.inputs.input import Text, chosen, wrong
from natgauge.inputs.measuring_types import MOST_CORES, CoreList
from natgauge.labs.common.shell import run_of_user

#: Pause between two looks at a device that boots.
_POLL_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class BootCommand:
    """A shell command on the tester's host, and its times.

    Attributes:
        seconds: longest time from the start of the command until the device is back, > 0.
        settle_seconds: pause before the device is used, >= 0.
    """

    name: str
    command: str
    seconds: float
    settle_seconds: float

    def run(self, cores: int | None, is_back: Callable[[], str] = lambda: "") -> float:
        """Run the command, wait until the device is back, and let it settle.

        Args:
            cores: number of cores of the device; None = as many as it has.
            is_back: returns an empty text when the device is back, and otherwise why not; it is called repeatedly.

        Returns:
            Seconds from the start of the command until the device was back, without the time to settle.
        """
        begun = time.monotonic()
        environment = {**os.environ, **({} if cores is None else {"NG_CORES": str(cores)})}
        remedy = "see to it, or give it more --boot-seconds"
        run_of_user(self.command, self.seconds, f"{self.name}: {self.command!r}", environment, remedy=remedy)
        while reason := is_back():
            if time.monotonic() - begun >= self.seconds:
                raise HostError(
                    f"{self.name}: the device was not back {self.seconds:g} s after {self.command!r} began ({reason}); "
                    "see to it by hand, or give it more --boot-seconds"
                )
            time.sleep(_POLL_SECONDS)
        needed = time.monotonic() - begun
        time.sleep(self.settle_seconds)
        return needed

    def parameters(self) -> dict[str, Any]:
        """The command and the time to settle, by the names of the options."""
        return {self.name.replace(" ", "_"): self.command, "boot_settle_seconds": self.settle_seconds}


_DAY_SECONDS: Final = 86_400
#: Options that name an interface, or a network namespace.
INTERFACE: Final[Mapping[str, Any]] = {"type": Text("IFACE"), "moves_figures": False}
NAMESPACE: Final[Mapping[str, Any]] = {"type": Text("NETNS"), "moves_figures": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class SenderOptions:
    """Options of the tester."""

    sender_cores: tuple[int, ...] | None = chosen(
        None, "Cores of the tester", type=CoreList(), label="sender CPUs", parameter="sender_cpus", moves_figures=False
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PortOptions(SenderOptions):
    """Options of a tester that uses two existing ports, and of the machine between them."""

    initiator_port: str | None = chosen(None, "Port of the tester on the Initiator's side", **INTERFACE)
    initiator_netns: str | None = chosen(None, "Network namespace of the Initiator port", **NAMESPACE)
    responder_port: str | None = chosen(None, "Port of the tester on the Responder's side", **INTERFACE)
    responder_netns: str | None = chosen(None, "Network namespace of the Responder port", **NAMESPACE)
    allow_addresses: bool = chosen(False, "Accept ports that have IP addresses")
    device_cores: int | None = chosen(
        None,
        "Number of cores of the device",
        check=(1, MOST_CORES),
        label="device cores",
        default="ssh: the processors online; wire: not known",
    )
    boot_seconds: float = chosen(
        600.0,
        "Longest time for the device to come back after the command that restarts it",
        "s",
        (1, _DAY_SECONDS),
        label="time limit of the device's restart",
        moves_figures=False,
    )
    boot_settle_seconds: float = chosen(
        30.0,
        "Pause after the device has come back",
        "s",
        (0, _DAY_SECONDS),
        label="pause after the device's restart",
        moves_figures=False,
    )

    def boot(self, name: str, command: str | None) -> BootCommand | None:
        """Return a command that restarts the device, with these times; None without a command."""
        if command is None:
            self._refuse_times(name)
            return None
        if not command.strip():
            raise wrong(name.replace(" ", "_"), "is empty; name a shell command, or leave it out")
        return BootCommand(name, command, self.boot_seconds, self.boot_settle_seconds)

    def _refuse_times(self, command: str) -> None:
        """Refuse times of a restart that no command makes."""
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name in ("boot_seconds", "boot_settle_seconds") and value != item.default:
                option = command.replace(" ", "-")
                raise wrong(
                    item.name, f"{value:g} s, but nothing restarts the device; give --{option}, or leave it out"
                )
