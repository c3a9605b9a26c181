# SPDX-License-Identifier: Apache-2.0
"""What a measurer uses and commands: protocols of lab, device, server and observer, and retries of a device's commands.

A connection may be lost while a command runs, or a command of the user may fail once. So a command that only reads, or
whose repetition does no harm, is tried several times before it counts as failed. In a phase 2 with churn, the device's
own count is compared with the expected one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeVar

from natgauge.agreement.generated import Progress, TrialRequest
from natgauge.agreement.trial import nominal_seconds
from natgauge.delays import Delays
from natgauge.device_work import ObjectCaches
from natgauge.errors import BrokenError, NatgaugeError, NotEmptyError, UsageError
from natgauge.labs.contract import Device, LabCounters, Port
from natgauge.procedures.kit.runner import Event
from natgauge.readings import IDLE_DRAWS, Churn, CountInChurn, expected_count, kept_after
from natgauge.setup.setup import SilentStages, Stages
from natgauge.trial.requests import TrialConstants
from natgauge.trials import Phase2Plan, Trial
from natgauge.words import Placement


class Place(Protocol):
    """A lab, as far as the measurer uses it."""

    placement: Placement
    initiator: Port
    responder: Port
    devices: Sequence[Device]

    def counters(self) -> LabCounters:
        """Frames dropped so far, by place of the lab, and work so far of each core of the devices."""


class DeviceControl(Protocol):
    """Controls of a device, as far as the measurer uses them; what has a body need not be known."""

    @property
    def empties(self) -> bool:
        """Whether the device has connections that can be emptied."""

    @property
    def counts(self) -> bool:
        """Whether the device reports its number of connections."""

    def empty(self) -> None:
        """Empty the connection tracking table; BrokenError: it is not empty afterwards."""

    def empty_timed(self) -> float:
        """Empty the table with one command, and return the command's seconds, timed on the device."""

    def count(self) -> int | None:
        """Number of connections in the table; None where the device does not report it."""

    def count_established(self) -> int | None:
        """Number of open TCP connections in the table; None where the device does not report it."""
        return None

    def count_unexpired(self) -> int | None:
        """Number of connections whose time is not over; None where the device cannot distinguish them."""
        return None

    def lingering(self) -> Mapping[str, int]:
        """Seconds for which the device keeps a closed TCP connection, by "fin" or "rst"; empty where not known."""
        return {}

    def free_octets(self) -> int | None:
        """Octets of available memory of the device's machine; None where it is not known."""
        return None

    def strays(self) -> Mapping[str, int]:
        """Number of connections by name of the stateless part that holds them; only values above 0."""
        return {}

    def faults(self) -> Mapping[str, int]:
        """Number of frames that the device refused so far, by its own names of causes; empty where not reported."""
        return {}

    def outlive(self, seconds: float) -> int | None:
        """Raise the UDP time-out above `seconds`; return it in s, None where natgauge cannot or may not raise it."""
        del seconds
        return None

    def object_caches(self) -> ObjectCaches:
        """Object caches of the kernel that holds the table; empty where they are not known."""
        return {}

    def found_changed(self) -> str:
        """Global setting of the device's machine that others changed since it was set, in words; empty = none."""
        return ""

    def confirm_ready(self) -> None:
        """Check that the device is still running; BrokenError: it is not."""

    def restart(self) -> None:
        """Restart the device with the same settings; BrokenError: it does not become ready again."""

    def restart_under_load(self) -> None:
        """Stop and start the device while frames flow; BrokenError: it does not become ready again."""


class ServerControl(Protocol):
    """Controls of a real server behind the device."""

    name: str
    cpus: str

    @property
    def version(self) -> str:
        """Version that the server reports."""

    def refused(self) -> Mapping[str, int]:
        """Number of queries not answered as they should be so far, by cause."""

    def confirm_ready(self) -> None:
        """Check that the server is still running; BrokenError: it is not."""


class OwnDelays(Protocol):
    """A function that measures the tester's own delays."""

    def __call__(self, rate: float, seconds: float, *, batch: int, variation: bool) -> Delays:
        """Send at `rate` frames/s for `seconds`, up to `batch` frames together; `variation`: differences, too."""


class Observer(Stages, Protocol):
    """Receives progress. Its methods must return quickly and never raise."""

    def running(self, progress: Progress) -> None:
        """The engine reports the progress of the present trial."""

    def event(self, event: Event) -> None:
        """A trial of a procedure starts or has ended."""


class Silent(SilentStages):
    """Ignores all progress."""

    def running(self, progress: Progress) -> None:
        """Ignore the progress."""

    def event(self, event: Event) -> None:
        """Ignore the event."""


class Unread:
    """A recorder that discards trials. Neighbour devices use it, because their trials are not part of the result."""

    def add_trial(self, trial: Mapping[str, object]) -> None:
        """Discard the trial."""

    def add_round(self, comparison_round: Mapping[str, object]) -> None:
        """Discard the round."""


#: Seconds before each further try. A lost connection is made again at once; a machine under load may need longer.
PAUSES: Final = (0.1, 0.5, 2.0)
#: Seconds after which no further try begins: a command that hangs has a time limit of a minute or two of its own.
MOST_SECONDS: Final = 30.0

AnswerT = TypeVar("AnswerT")


class SilentControlsError(BrokenError):
    """The device's controls answered none of several tries."""


@dataclass(slots=True)
class CommandRetries:
    """Runs commands of a device, and retries a command that fails; `clock` is monotonic, in seconds."""

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

    def once(self, command: Callable[[], AnswerT], unknown: AnswerT) -> AnswerT:
        """Return the answer of a single try, or `unknown` where it fails, which the trial's outcome reports."""
        try:
            return command()
        except NatgaugeError as error:
            self.failures.append(str(error))
            return unknown


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
