# SPDX-License-Identifier: Apache-2.0
"""The device's own count in a phase 2 with churn, and the count that is expected."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from natgauge.agreement.generated import TrialRequest
from natgauge.agreement.trial import nominal_seconds
from natgauge.churn import IDLE_DRAWS, Churn, CountInChurn, expected_count, kept_after
from natgauge.errors import NatgaugeError
from natgauge.trial.command_retries import CommandRetries
from natgauge.trial.protocols import DeviceControl
from natgauge.trial.requests import TrialConstants
from natgauge.trials import Restart, Trial

#: Names of closing segments in recipes.
_CLOSED_BY: Final = {"fin": "fin", "reset": "rst"}


@dataclass(slots=True)
class Counting:
    """Reads the device's count once; a device that does not answer does not end the trial.

    Attributes:
        expires: whether the time of a connection may be over by then. To leave these out, Linux walks through its
            table, which takes the device's core for 10 ms and more: frames were lost then, and the host was blamed.
            So such a count is read when no frames flow any more.
    """

    device: DeviceControl
    asking: CommandRetries
    churn: Churn
    expires: bool
    _count: int | None = field(default=None, init=False)

    def __call__(self) -> None:
        """Read the count."""
        try:
            self._count = self.device.count_unexpired() if self.expires else self.device.count()
        except NatgaugeError as error:
            self.asking.failures.append(str(error))

    def read(self, times: Restart) -> CountInChurn | None:
        """Return the count; None where the device does not report it."""
        # Connections come, or those that left are forgotten.
        changing = self.churn.new_per_second * (times.ended - times.began)
        return None if self._count is None else CountInChurn(times.ended, self._count, changing=changing)


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
