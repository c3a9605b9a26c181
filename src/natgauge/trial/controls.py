# SPDX-License-Identifier: Apache-2.0
"""Commands to a device during trials: their retries, and its own count in a phase 2 with churn.

A connection may be lost while a command runs, or a command of the user may fail once. So a command that only reads, or
whose repetition does no harm, is tried several times before it counts as failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from natgauge.agreement.generated import TrialRequest
from natgauge.agreement.trial import nominal_seconds
from natgauge.churn import IDLE_DRAWS, Churn, CountInChurn, expected_count, kept_after
from natgauge.errors import BrokenError, NatgaugeError, NotEmptyError, UsageError
from natgauge.trial.protocols import DeviceControl
from natgauge.trial.requests import TrialConstants
from natgauge.trials import Phase2Plan, Trial

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


#: Names of closing segments in recipes.
_CLOSED_BY: Final = {"fin": "fin", "reset": "rst"}


def counted(
    phase2: Phase2Plan, device: DeviceControl, asking: CommandRetries, *, began: float, expires: bool
) -> CountInChurn | None:
    """Read the device's count after the last frame; None where it does not answer, which does not end the trial.

    While frames flowed the reading would take the device's core: Linux walks through its table for 10 ms and more, in
    order to leave out connections whose time is over. Frames were lost then, and the host was blamed.

    Args:
        began: start of phase 2, which had churn, by the clock of `time.monotonic`.
        expires: False = no connection's time is over, so that the device need not walk through its table.
    """
    reads = time.monotonic()
    try:
        exact = device.count_unexpired() if expires else None
        count = device.count() if exact is None else exact
    except NatgaugeError as error:
        asking.failures.append(str(error))
        return None
    ends = time.monotonic()
    # Connections are forgotten meanwhile, or, where the next one would have to come for that, not since the last frame.
    changing = ends - (began + phase2.seconds if expires and exact is None else reads)
    fresh = 0.0 if phase2.churn is None else phase2.churn.new_per_second
    return None if count is None else CountInChurn(ends - began, count, changing=fresh * changing)


def kept_seconds(churn: Churn, device: DeviceControl, settings: TrialConstants) -> float | None:
    """Return the shortest time for which a device keeps a connection that left; None = not known."""
    if churn.leave == "silent":
        return settings.udp_timeout
    return device.lingering().get(_CLOSED_BY[churn.leave])


def with_expected(trial: Trial, keeps: float | None, settings: TrialConstants) -> Trial:
    """Return the trial with the number of connections that the device should have counted, if its time-out is known.

    `keeps` is that of `kept_seconds`.
    """
    phase2, reading = trial.plan.phase2, trial.readings.count_in_churn
    if phase2 is None or phase2.churn is None or reading is None:
        return trial
    # Frames from the Responder, too, keep a connection for longer.
    is_replied = phase2.churn.leave == "silent" and phase2.responder_rate > 0
    timeout = settings.replied_timeout if is_replied else keeps
    if timeout is None or phase2.churn.flood_per_second:
        # How many of the flood's connections a device keeps is what a trial shows.
        return trial
    connections, rate = trial.plan.connections, phase2.initiator_rate + phase2.responder_rate
    expected = expected_count(
        phase2.churn,
        connections=connections,
        kept=kept_after(phase2.churn, connections=connections, rate=rate, timeout=timeout),
        seconds=reading.seconds,
        until=phase2.seconds,
    )
    return replace(trial, readings=replace(trial.readings, count_in_churn=replace(reading, expected=expected)))


def needed_seconds(request: TrialRequest) -> float:
    """Return the seconds for which a device must keep a connection without a frame.

    Without churn that is the trial. With churn it is phase 1, and the time for which an open connection may get no
    frame, because the others leave in turn.
    """
    phase2 = request.phase2
    if phase2 is None or phase2.churn is None:
        return nominal_seconds(request)
    streams = [stream for stream in (phase2.initiator, phase2.responder) if stream is not None]
    idle = IDLE_DRAWS * request.connections / sum(stream.rate for stream in streams)
    # No connection is without a frame for longer than the trial lasts.
    return min(nominal_seconds(request), nominal_seconds(request.model_copy(update={"phase2": None})) + idle)
