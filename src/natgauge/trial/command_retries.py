# SPDX-License-Identifier: Apache-2.0
"""Retries of commands to a device: a single failure may be caused by the connection to the device.

A connection may be lost while a command runs, or a command of the user may fail once. So a command that only reads, or
whose repetition does no harm, is tried several times before it counts as failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from natgauge.errors import BrokenError, NatgaugeError, NotEmptyError, UsageError

#: Seconds before each further try. A lost connection is made again at once; a machine under load may need longer.
PAUSES: Final = (0.1, 0.5, 2.0)
#: Seconds after which no further try begins: a command that hangs has a time limit of a minute or two of its own.
MOST_SECONDS: Final = 30.0

AnswerT = TypeVar("AnswerT")


class SilentControlsError(BrokenError):
    """The device's controls answered none of several tries."""


@dataclass(slots=True)
class CommandRetries:
    """Runs commands of a device, and retries a command that fails.

    Attributes:
        clock: monotonic clock, seconds.
    """

    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    failures: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """Begin a trial: `failures` are those of its own commands."""
        self.failures.clear()

    def __call__(self, command: Callable[[], AnswerT]) -> AnswerT:
        """Return the answer of a command, from the first try that succeeds."""
        latest = self.clock() + MOST_SECONDS
        for pause in (*PAUSES, None):
            try:
                return command()
            except (UsageError, NotEmptyError):
                raise
            except NatgaugeError as error:
                self.failures.append(str(error))
                if pause is None or self.clock() > latest:
                    raise SilentControlsError(str(error)) from error
            self.sleep(pause)
        raise AssertionError("the last try answers or raises")
