# SPDX-License-Identifier: Apache-2.0
"""The user's command that restarts a device with a number of cores, and the wait until the device has settled."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from natgauge.errors import HostError
from natgauge.labs.common.shell import run_of_user

#: Variable of the command's environment with the number of cores.
CORES_VARIABLE: Final = "NG_CORES"
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
        self._run_command(cores)
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

    def _run_command(self, cores: int | None) -> None:
        environment = {**os.environ, **({} if cores is None else {CORES_VARIABLE: str(cores)})}
        result = run_of_user(self.command, self.seconds, f"{self.name}: {self.command!r}", environment)
        if result is None:
            raise HostError(
                f"{self.name}: {self.command!r} did not end within {self.seconds:g} s; see to it, or give it more "
                "--boot-seconds"
            )
        if result.status:
            raise HostError(f"{self.name}: {self.command!r} failed: {result.said or f'exit status {result.status}'}")
