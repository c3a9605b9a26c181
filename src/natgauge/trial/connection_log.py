# SPDX-License-Identifier: Apache-2.0
"""A gateway's log during trials: emptied before each, read when it has ended, and compared with the connections.

The comparison finds records that are lost, wrong, duplicate, late or not readable. It is pure: it uses no clock, no lab
and no engine. The tester's own list says which connections there were.
"""

from __future__ import annotations

import math
import os
import re
import struct
import time
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from itertools import chain, islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from natgauge.agreement.generated import TrialRequest, TrialResult
from natgauge.agreement.trial import all_connections
from natgauge.errors import BrokenError, NatgaugeError, OverrunError, UsageError
from natgauge.gateways.logs import SESSION_EVENTS, LoggingWay
from natgauge.labs.contract import Device
from natgauge.readings import LogCounts, LogError, Readings
from natgauge.statistics.summary import percentile

#: The most connections whose log is compared: their list and their log take about 1.5 GiB.
MOST_LOGGED: Final = 1 << 22
#: An entry of the engine's list (engine/src/connections.rs).
_ENTRY: Final = struct.Struct(">QHHHH16s16s16s")
_LEARNED, _TAKEN_OVER = 1, 2

#: Time within which an outside port that two subscribers had cannot be told apart: clocks of logs and of complaints
#: have seconds (RFC 6302 section 2).
SAME_SECONDS: Final = 1.0

#: Kinds of records: of a connection, of an outside port of an inside one (RFC 8158: BIB), and of a block of them. A log
#: may have each kind of the same connection.
SESSION: Final = 1
BINDING: Final = 2
BLOCK: Final = 4

#: Address in 16 octets, and port.
Endpoint = tuple[bytes, int]
#: Sort keys: of an outside source with its connection, and of a connection.
_OUTSIDE: Final = itemgetter(0)
_DUE: Final = attrgetter("due")
#: Octets of a line that could not be read, as an example.
_SHOWN: Final = 100
#: A log with a line for each connection that has not grown for this long has ended.
_COMPLETE_SECONDS: Final = 0.05
_LOOK_SECONDS: Final = 0.02
#: A log that grows for longer than this after a trial is given up.
_LONGEST_SECONDS: Final = 60.0
#: A stall spoils what was due this long before it, as for lost frames.
_BEFORE_NS: Final = 1_000_000
#: What tells the connections of records apart (`natgauge.gateways.logs.GROUPS`).
_ENDS: Final = ("source", "source_port", "destination", "destination_port")
#: Octets of a log that one snippet prints; less than `bounded_output.MOST_OCTETS`.
_CHUNK: Final = 3 << 20


@dataclass(slots=True)
class ListedConnection:
    """A connection that the tester opened.

    Attributes:
        due: time at which the frame that opens it was due, s since 1970.
        outside: its outside source; None = the tester does not know it.
        expected: whether the log must have it, True where the Responder received its opening.
        named: True where a record is of it, also one with wrong values.
        found: kinds of right records of it, bits of `SESSION`, `BINDING` and `BLOCK`.
    """

    due: float
    source: Endpoint
    destination: Endpoint
    outside: Endpoint | None
    expected: bool
    named: bool = False
    found: int = 0


def listed(octets: bytes, *, all_learned: bool, has_ports: bool = True) -> list[ListedConnection]:
    """Return the connections of the engine's list, each four tuple once.

    Args:
        all_learned: whether every opening arrived, so that also those whose entry was taken over must be in the log.
        has_ports: whether the destination's port identifies a connection: with ICMP it is a sequence number.
    """
    connections: dict[tuple[Endpoint, Endpoint], ListedConnection] = {}
    for due, port, remote_port, outside_port, known, source, destination, outside in _ENTRY.iter_unpack(octets):
        ends = (source, port), (destination, remote_port if has_ports else 0)
        expected = known == _LEARNED or (known == _TAKEN_OVER and all_learned)
        seen = (outside, outside_port) if known == _LEARNED else None
        if ends in connections:
            connections[ends].expected |= expected
        else:
            connections[ends] = ListedConnection(due / 1e9, *ends, seen, expected)
    return list(connections.values())


class SubscribersBlock(NamedTuple):
    """Outside ports of a subscriber.

    Attributes:
        port: the inside port whose they are; None = every one.
        at: time of the record, s since 1970; None = not known.
    """

    subscriber: bytes
    port: int | None
    outside: bytes
    first: int
    last: int
    at: float | None

    def precedes(self, due: float) -> bool:
        """Whether its record is surely older than a connection that was due at this time, s since 1970."""
        return self.at is not None and self.at < due - SAME_SECONDS


class Blocks:
    """The blocks that records gave to subscribers, and the connections of a trial that they cover."""

    def __init__(self, connections: Iterable[ListedConnection]) -> None:
        self._taken: list[SubscribersBlock] = []
        self._known: dict[tuple[bytes, int | None], list[tuple[Endpoint, ListedConnection]]] = {}
        self._unknown: dict[tuple[bytes, int | None], list[ListedConnection]] = {}
        #: When the first was due, and those without a record of their session, in the order of opening: by inside port
        #: and outside port, and by inside port those whose outside port is not known.
        self._waiting: dict[tuple[object, ...], tuple[float, deque[ListedConnection]]] = {}
        for connection in connections:
            for key in ((connection.source[0], None), connection.source):
                if connection.outside is None:
                    self._unknown.setdefault(key, []).append(connection)
                else:
                    self._known.setdefault(key, []).append((connection.outside, connection))
        for those in self._known.values():
            those.sort(key=_OUTSIDE)

    def take(self, block: SubscribersBlock) -> list[ListedConnection]:
        """Return the connections that a block covers, as far as their outside sources are known.

        Of those that are not known, with churn, it covers all of its subscriber. The number of its ports is no bound: a
        port is given again when a connection has expired, and can be of several connections to different destinations.

        Blocks are given as connections open, so one that covers none is wrong, or of an earlier trial: each trial has
        the same four tuples.
        """
        self._taken.append(block)
        covered = [*self._seen(block), *self._unknown.get(block[:2], [])]
        return [] if block.precedes(min(map(_DUE, covered), default=0.0)) else covered

    def take_one(self, block: SubscribersBlock) -> tuple[ListedConnection | None, bool]:
        """Return the next connection of a port without a record of its session, and whether the port had any by then.

        Records of sessions do not always name the destination: there is one of each all the same.
        """
        self._taken.append(block)
        if block[:4] not in self._waiting:
            self._waiting[block[:4]] = _queue(self._seen(block))
        if block[:2] not in self._waiting:
            self._waiting[block[:2]] = _queue(self._unknown.get(block[:2], []))
        had_any = False
        for first, waiting in (self._waiting[block[:4]], self._waiting[block[:2]]):
            had_any |= math.isfinite(first) and not block.precedes(first)
            while waiting and waiting[0].found & SESSION:
                waiting.popleft()
            if waiting and not block.precedes(waiting[0].due):
                return waiting.popleft(), True
        return None, had_any

    def _seen(self, block: SubscribersBlock) -> list[ListedConnection]:
        """Those that the tester saw from the ports of a block."""
        whose = self._known.get(block[:2], [])
        low = bisect_left(whose, (block.outside, block.first), key=_OUTSIDE)
        high = bisect_right(whose, (block.outside, block.last), key=_OUTSIDE)
        return [connection for _, connection in whose[low:high]]

    def shared(self) -> int:
        """Number of blocks with ports that another subscriber's block had within a second, or at a time not known."""
        number, outside, last = 0, b"", -1
        # Those of each subscriber, at times not known and at known ones: one port can have many of one subscriber.
        given: dict[bytes, tuple[list[SubscribersBlock], list[SubscribersBlock]]] = {}
        for block in sorted(self._taken, key=lambda block: (block.outside, block.first)):
            if block.outside != outside or block.first > last:
                outside, last = block.outside, -1
                given = {}
            number += any(
                other.last >= block.first
                for subscriber, (untimed, timed) in given.items()
                if subscriber != block.subscriber
                for other in chain(untimed, timed if block.at is None else _within_a_second(timed, block.at))
            )
            untimed, timed = given.setdefault(block.subscriber, ([], []))
            if block.at is None:
                untimed.append(block)
            else:
                insort(timed, block, key=_time)
            last = max(last, block.last)
        return number


def _queue(connections: Iterable[ListedConnection]) -> tuple[float, deque[ListedConnection]]:
    waiting = deque(sorted(connections, key=_DUE))
    return (waiting[0].due if waiting else math.inf), waiting


def _time(block: SubscribersBlock) -> float:
    return block.at or 0.0


def _within_a_second(blocks: list[SubscribersBlock], at: float) -> Iterator[SubscribersBlock]:
    """Those of the blocks, in the order of their times, that were given within a second."""
    first, end = bisect_right(blocks, at - SAME_SECONDS, key=_time), bisect_left(blocks, at + SAME_SECONDS, key=_time)
    return islice(blocks, first, end)


def join(  # noqa: PLR0913 - the log, and what is known of it
    connections: Iterable[ListedConnection],
    log: str,
    pattern: re.Pattern[str],
    *,
    grace: float,
    has_ports: bool = True,
    timed: bool = True,
    stalls: Sequence[tuple[float, float]] = (),
    ignored: re.Pattern[str] | None = None,
) -> LogCounts:
    """Return how a log agrees with the connections of a trial.

    Args:
        grace: seconds after which a record is late.
        stalls: times, seconds since 1970, for whose connections a missing record is excused.
        timed: False = the times of the log and of the tester are of clocks that cannot be compared.
        ignored: of lines that `pattern` does not match and that are not unreadable; None = each of them is.
    """
    return _Join(list(connections), pattern, grace, has_ports, timed).of(log, stalls, ignored)


@dataclass(slots=True)
class _Join:
    """Counts of one log.

    Attributes:
        ends: connections by source and destination; and by the latter's address alone, where records name only that.
    """

    connections: list[ListedConnection]
    pattern: re.Pattern[str]
    grace: float
    has_ports: bool
    timed: bool
    ends: dict[bool, dict[tuple[Endpoint, Endpoint], list[ListedConnection]]] = field(default_factory=dict)
    blocks: Blocks | None = None
    wrong: int = 0
    duplicate: int = 0
    late: int = 0
    ambiguous: int = 0
    names_outside: bool = False
    has_fractions: bool = False
    delays: list[float] = field(default_factory=list)
    users: dict[tuple[Endpoint, Endpoint], tuple[bytes, float]] = field(default_factory=dict)

    def of(self, log: str, stalls: Sequence[tuple[float, float]], ignored: re.Pattern[str] | None) -> LogCounts:
        records, unparsed, first = 0, 0, ""
        for line in log.splitlines():
            found = self.pattern.search(line)
            if found is None and ignored is not None and ignored.search(line):
                continue
            if found is None or not self._take(found.groupdict()):
                unparsed += 1
                first = first or line[:_SHOWN]
            else:
                records += 1
        expected = [connection for connection in self.connections if connection.expected]
        lost = [connection.due for connection in expected if not connection.named]
        return LogCounts(
            connections=len(expected),
            records=records,
            octets=len(log.encode()),
            lost=len(lost),
            wrong=self.wrong,
            duplicate=self.duplicate,
            late=self.late,
            excused=sum(any(begin <= due <= end for begin, end in stalls) for due in lost),
            unparsed=unparsed,
            unparsed_line=first,
            ambiguous=self.ambiguous + (0 if self.blocks is None else self.blocks.shared()),
            outside_named=self.names_outside if records else "outside" in self.pattern.groupindex,
            delay_p50_ms=self._delay(50),
            delay_p999_ms=self._delay(99.9),
        )

    def _delay(self, percent: float) -> float | None:
        """Return a percentile of the delays in ms; None = no record has a time, or all times are whole seconds."""
        return percentile(self.delays, percent) * 1000 if self.has_fractions else None

    def _between(self, source: Endpoint, destination: Endpoint, *, names_port: bool) -> list[ListedConnection]:
        """Return the connections between two ends; without a name of its port, to any port of the destination."""
        names_port &= self.has_ports
        if (known := self.ends.get(names_port)) is None:
            known = self.ends[names_port] = {}
            for each in self.connections:
                end = each.destination if names_port else (each.destination[0], 0)
                known.setdefault((each.source, end), []).append(each)
        return known.get((source, destination if names_port else (destination[0], 0)), [])

    def _take(self, record: Mapping[str, str | None]) -> bool:
        """Count a record; false = its fields are no addresses, ports or times."""
        try:
            source, named = _endpoint(record["source"], record.get("source_port")), record.get("outside")
            port = record.get("outside_port") or record.get("source_port")
            outside = None if named is None else _endpoint(named, port)
            at = _seconds(record) if self.timed else None
            if record.get("destination") is None:
                self._take_without_destination(_block(record, source, outside, at), record.get("event"))
                return True
            destination = _endpoint(record["destination"], record.get("destination_port"))
        except ValueError:
            return False
        self.names_outside |= outside is not None
        those = self._between(source, destination, names_port=record.get("destination_port") is not None)
        if at is not None and those and at < those[0].due - SAME_SECONDS:
            # Every trial has the same four tuples: this one came late, from an earlier trial.
            those = []
        right = [each for each in those if outside is None or each.outside in (None, outside)]
        fresh = next((each for each in right if not each.found & SESSION), None)
        self._count([] if fresh is None else [fresh], SESSION, at, is_known=bool(right))
        meant = None if right else next((each for each in those if not each.named), None)
        if meant is not None:
            meant.named = True
        if outside is not None and those:
            self._use(outside, destination, source[0], those[0].due if at is None else at)
        return True

    def _take_without_destination(self, block: SubscribersBlock, event: str | None) -> None:
        """Count a record without a destination: of a session, or of all connections of a subscriber on some ports."""
        self.names_outside = True
        if self.blocks is None:
            self.blocks = Blocks(self.connections)
        if block.port is not None and event in SESSION_EVENTS:
            fresh, is_known = self.blocks.take_one(block)
            self._count([] if fresh is None else [fresh], SESSION, block.at, is_known=is_known)
        else:
            kind = BLOCK if block.port is None else BINDING
            covered = self.blocks.take(block)
            self._count([each for each in covered if not each.found & kind], kind, block.at, is_known=bool(covered))

    def _count(self, fresh: Sequence[ListedConnection], kind: int, at: float | None, *, is_known: bool) -> None:
        """Count a record of connections that had none of its kind; without any it is a duplicate, or wrong."""
        if not fresh and is_known:
            self.duplicate += 1
        elif not fresh:
            self.wrong += 1
        elif at is not None:
            self.has_fractions |= not at.is_integer()
            delay = at - min(map(_DUE, fresh))
            self.delays.append(delay)
            self.late += delay > self.grace
        for connection in fresh:
            connection.found |= kind
            connection.named = True

    def _use(self, outside: Endpoint, remote: Endpoint, subscriber: bytes, at: float) -> None:
        """Note who had an outside tuple, and count one that another subscriber had just before."""
        earlier = self.users.get((outside, remote))
        if earlier is not None and earlier[0] != subscriber and abs(at - earlier[1]) < SAME_SECONDS:
            self.ambiguous += 1
        self.users[outside, remote] = subscriber, at


def _block(
    record: Mapping[str, str | None], inside: Endpoint, outside: Endpoint | None, at: float | None
) -> SubscribersBlock:
    """Return the outside ports of a record without a destination: a block, or the one port of an inside port."""
    first, last = record.get("first_port"), record.get("last_port")
    if outside is not None and first and last and _port(first) <= _port(last):
        return SubscribersBlock(inside[0], None, outside[0], _port(first), _port(last), at)
    if outside is not None and record.get("source_port") and record.get("outside_port"):
        return SubscribersBlock(*inside, *outside, outside[1], at)
    raise ValueError("neither a destination nor outside ports")


def _endpoint(address: str | None, port: str | None) -> Endpoint:
    return _octets(address or ""), _port(port)


def _port(text: str | None) -> int:
    number = int(text or 0)
    if not 0 <= number <= 0xFFFF:
        raise ValueError(f"{number} is no port")
    return number


@lru_cache(maxsize=1 << 16)
def _octets(text: str) -> bytes:
    """Return an address in 16 octets; IPv4, also as sockets of IPv6 write it (::ffff:a.b.c.d), in the last four."""
    address = ip_address(text)
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is None:
            return address.packed
        address = address.ipv4_mapped
    return bytes(12) + address.packed


def _seconds(record: Mapping[str, str | None]) -> float | None:
    """Return the time of a record in s since 1970; None = it has none."""
    time = record.get("time")
    return None if time is None else float(time) + int(record.get("microseconds") or 0) / 1e6


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
