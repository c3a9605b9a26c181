# SPDX-License-Identifier: Apache-2.0
"""Commands to a device that are asked again: one that fails once says nothing of the device, only of the way to it.

A connection may be lost while a command runs, or a command of the user may fail once. So a command that only looks, or
whose repetition does no harm, is tried several times before anything follows from its failure.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from natgauge.errors import BrokenError, NatgaugeError, NotEmptyError, UsageError

#: Seconds before each further try. A lost connection is made anew at once; a machine under load may need longer.
PAUSES: Final = (0.1, 0.5, 2.0)
#: No further try begins after so many seconds: a command that hangs has a time limit of a minute or two of its own.
MOST_SECONDS: Final = 30.0

AnswerT = TypeVar("AnswerT")


class SilentControlsError(BrokenError):
    """The device's controls did not answer, however often they were asked."""


@dataclass(slots=True)
class Asking:
    """Asks a device, and asks again where a command fails.

    Attributes:
        sleep: waits before a further try; the tests hand in their own.
        clock: seconds, monotonic.
        failures: what failed since `begin`, in words, one for each try.
    """

    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    failures: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """Count failures from here on."""
        self.failures.clear()

    def __call__(self, command: Callable[[], AnswerT]) -> AnswerT:
        """What the command answers, at the first try or at a later one.

        Raises:
            SilentControlsError: every try failed.
            NotEmptyError: the device answered that its table is not empty; another try is not needed to know that.
            UsageError: the device cannot be asked that.
        """
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
