# SPDX-License-Identifier: Apache-2.0
"""A gateway's log during trials: emptied before each, read when it has ended, and compared with the connections."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from natgauge.agreement.generated import TrialRequest, TrialResult
from natgauge.agreement.trial import all_connections
from natgauge.errors import BrokenError, NatgaugeError, OverrunError, UsageError
from natgauge.gateways.logging_ways import LoggingWay
from natgauge.labs.contract import Device
from natgauge.log_counts import LogCounts, LogError
from natgauge.readings import Readings
from natgauge.trial.log_join import MOST_LOGGED, ListedConnection, join, listed

#: A log with a line for each connection that has not grown for this long has ended.
_COMPLETE_SECONDS: Final = 0.05
_LOOK_SECONDS: Final = 0.02
#: A log that grows for longer than this after a trial is given up.
_LONGEST_SECONDS: Final = 60.0
#: A stall spoils what was due this long before it, as for lost frames.
_BEFORE_NS: Final = 1_000_000
#: What tells the connections of records apart (`natgauge.log_counts.GROUPS`).
_ENDS: Final = ("source", "source_port", "destination", "destination_port")
#: Octets of a log that one snippet prints; less than `bounded_output.MOST_OCTETS`.
_CHUNK: Final = 3 << 20


@dataclass(frozen=True, slots=True)
class LoggedTrial:
    """A trial's request, and what reads the log when the engine has answered it; None without a log.

    `begin` empties the log; call it when the device's table is empty, because a gateway may log ends as well.
    """

    begin: Callable[[], None]
    request: TrialRequest
    counts: Callable[[TrialResult], LogCounts | None]

    def compared(self, result: TrialResult) -> tuple[LogCounts | None, LogError | None]:
        """Return how the log agrees with the trial's connections, or why nobody knows."""
        try:
            return self.counts(result), None
        except OverrunError as error:
            return None, LogError(str(error), "tester")
        except NatgaugeError as error:
            return None, LogError(str(error), "host")


class LogSource(Protocol):
    """Where the records of a log are."""

    def empty(self) -> None:
        """Forget all records so far."""

    def size(self) -> int:
        """Octets of all records so far, as the device wrote or sent them."""

    def text(self) -> str:
        """Return all records so far, a line each."""

    def confirm_unhindered(self) -> None:
        """Raise OverrunError where natgauge took records so slowly that the device may lack some for that."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file named `records` to which a device appends its records, a line each; `name` is the way of logging."""

    device: Device
    name: str
    records: str

    def empty(self) -> None:
        """Forget all records so far."""
        self._run(f': > "$NG_WORK/{self.records}"')

    def size(self) -> int:
        """Octets of all records so far."""
        if self._file is None:
            return int(self._run(f'wc -c < "$NG_WORK/{self.records}"'))
        with self._reading():
            return self._file.stat().st_size

    def text(self) -> str:
        """Return all records so far."""
        if self._file is not None:
            with self._reading():
                return self._file.read_text(encoding="utf-8", errors="replace")
        starts = range(0, self.size(), _CHUNK)
        parts = (f'tail -c +{at + 1} "$NG_WORK/{self.records}" | head -c {_CHUNK}' for at in starts)
        return "".join(map(self._run, parts))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BrokenError(f"logging {self.name}: {self._file} cannot be read ({error.strerror})") from error

    def confirm_unhindered(self) -> None:
        """Do nothing: nobody waits for who reads a file."""

    def _run(self, snippet: str) -> str:
        result = self.device.run(snippet)
        if result.status:
            raise BrokenError(f"logging {self.name}: {self.records} cannot be read: {result.said}")
        return result.stdout

    @property
    def _file(self) -> Path | None:
        """The log as a file of this machine; None where the device has another one."""
        folder = self.device.environment.get("NG_WORK", "")
        return Path(folder) / self.records if self.device.machine.has_tester_files and folder else None


@dataclass(slots=True)
class ConnectionLog:
    """The log of a gateway.

    Attributes:
        grace: seconds after which a record is late.
        tolerance: share of the connections that a passing trial's log may lack.
        collector: what the device sends its records to; None = it writes them to a file.
        pending: True = frames that belong to no trial with a log may have records that are still to come.
    """

    device: Device
    name: str
    way: LoggingWay
    grace: float
    tolerance: float = 0.0
    collector: LogSource | None = None
    sleep: Callable[[float], None] = time.sleep
    pending: bool = True
    _read: int = field(default=-1, init=False)
    _grows: bool = field(default=True, init=False)

    def begin(self) -> None:
        """Wait for records of what was before the trial, whose four tuples are the same, and empty the log.

        Those are records of earlier frames, and of the ends of connections that the emptied table had. Where nothing
        came before the trial before, the wait is short.
        """
        self._ended(None if self.pending or self._grows or self._source.size() != self._read else 0)
        if not self.pending:
            self._grows = self._source.size() != self._read
        self.pending = False
        self._source.empty()

    def forget(self) -> None:
        """Empty the log without waiting for anything, where nobody compares what comes to it."""
        self._source.empty()

    def counts(self, request: TrialRequest, octets: bytes, result: TrialResult) -> LogCounts:
        """Return how the log agrees with a trial's connections, when it has ended; `octets` = the engine's list."""
        openings = None if result.phase2 is None else result.phase2.openings
        opened = [counts for counts in (result.phase1, openings) if counts is not None]
        all_learned = all(counts.received_frames >= counts.offered_frames for counts in opened)
        has_ports = request.frame.transport != "icmp"
        known = listed(octets, all_learned=all_learned, has_ports=has_ports)
        self._ended(sum(connection.expected for connection in known))
        self._read = self._source.size()
        # Another machine has another clock.
        timed = result.clock.steps == 0 and self.device.machine.has_tester_files
        counts = join(
            known,
            self._source.text(),
            self.way.pattern,
            grace=self.grace,
            has_ports=has_ports,
            timed=timed,
            stalls=_stalls(known, request.connections, result),
            ignored=self.way.ignored,
        )
        if counts.exceeds(self.tolerance):
            self._source.confirm_unhindered()
        return replace(counts, octets=self._read)

    def refuse_empty(self, read: Readings) -> None:
        """Refuse a log that has no right record of connections that were forwarded: every trial would fail."""
        error = read.device_error or (read.log_error and read.log_error.text)
        if read.log is None and error:
            raise BrokenError(error)
        if read.log is None or read.log.lost + read.log.wrong < read.log.connections:
            return
        raise BrokenError(
            f"logging {self.name}: {read.log.words}; see whether the gateway logs into {self.way.records}, and what "
            f"{'elements it exports' if self.way.record is None else '`record` of its recipe reads'}"
        )

    def _ended(self, lines: int | None) -> None:
        """Wait until the log does not grow any more; for a shorter time where it has these lines, None = not known."""
        began = grown = time.monotonic()
        size, counted = -1, False
        while (now := time.monotonic()) - grown < self.way.quiet_seconds:
            self.sleep(_LOOK_SECONDS)
            if (found := self._source.size()) != size:
                size, grown, counted = found, time.monotonic(), False
            elif lines is not None and not counted and now - grown >= _COMPLETE_SECONDS:
                counted = True
                if lines == 0 or self._has(lines, self._source.text()):
                    return
            if now - began > _LONGEST_SECONDS:
                raise BrokenError(
                    f"logging {self.name}: the log still grows after {now - began:.0f} s; see what writes it"
                )

    def _has(self, connections: int, text: str) -> bool:
        """Whether records name so many different connections: a connection can have more lines than one."""
        lines = text.splitlines()
        if len(lines) < connections:
            return False
        pattern = self.way.pattern
        ends = [name for name in _ENDS if name in pattern.groupindex]
        named = {found.group(*ends) for line in lines if (found := pattern.search(line))}
        # A log may have records of ports, too, which name no destination.
        to = ends.index("destination") if "destination" in ends else None
        of_ports = 0 if to is None else sum(each[to] is None for each in named)
        return max(of_ports, len(named) - of_ports) >= connections

    @property
    def _source(self) -> LogSource:
        return self.collector or LogFile(self.device, self.name, self.way.records)


def _stalls(known: Sequence[ListedConnection], opened: int, result: TrialResult) -> list[tuple[float, float]]:
    """Return the stalls of all cores, each with its length after it: the sender catches up then, and makes bursts.

    `opened` connections are of phase 1; those of phase 2 follow in the list.
    """
    starts = {"phase1": known[0].due} if known else {}
    if len(known) > opened:
        starts["phase2"] = known[opened].due
    return [
        (
            starts[stall.phase] + (stall.from_ns - _BEFORE_NS) / 1e9,
            starts[stall.phase] + (2 * stall.to_ns - stall.from_ns) / 1e9,
        )
        for cpu in result.cpus
        for stall in cpu.longest_stalls
        if stall.phase in starts
    ]


def refuse_long_log(number: int, fewer: Callable[[int], str] = lambda _: "fewer connections") -> None:
    """Refuse trials of so many connections beside a log, where these are more than are compared.

    `fewer` returns what to choose so that they are no more than a number, in words.
    """
    if number > MOST_LOGGED:
        raise UsageError(
            f"logging: {number} connections in a trial, and logs of at most {MOST_LOGGED} are compared; choose "
            f"{fewer(MOST_LOGGED)}",
            at="connections",
        )


@contextmanager
def logged_trial(log: ConnectionLog | None, request: TrialRequest) -> Iterator[LoggedTrial]:
    """Yield what empties the log, and the request of a trial with a list of its connections.

    The list is in memory, and nothing holds it when natgauge was killed. Without a log the request is as it was.
    """
    if log is None or request.phase1 is None:
        yield LoggedTrial(lambda: None, request, lambda _: None)
        return
    refuse_long_log(all_connections(request))
    with os.fdopen(os.memfd_create("natgauge-connections", os.MFD_CLOEXEC), "rb") as file:
        path = f"/proc/{os.getpid()}/fd/{file.fileno()}"
        asked = request.model_copy(update={"connections_file": path})
        yield LoggedTrial(log.begin, asked, lambda result: log.counts(request, file.read(), result))
