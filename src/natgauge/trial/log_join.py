# SPDX-License-Identifier: Apache-2.0
"""The connections of a trial next to the records of a gateway's log: lost, wrong, duplicate, late, not readable.

Pure: it uses no clock, no lab and no engine. The tester's own list says which connections there were.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

from natgauge.log_counts import LogCounts
from natgauge.statistics.order_statistics import percentile

#: The most connections whose log is compared: their list and their log take about 1.5 GiB.
MOST_LOGGED: Final = 1 << 22
#: An entry of the engine's list (engine/src/connections.rs).
_ENTRY: Final = struct.Struct(">QHHHH16s16s16s")
_LEARNED, _TAKEN_OVER = 1, 2
#: Time within which an outside port that two subscribers had cannot be told apart: clocks of logs and of complaints
#: have seconds (RFC 6302 section 2).
SAME_SECONDS: Final = 1.0
#: Octets of a line that could not be read, as an example.
_SHOWN: Final = 100

#: Address in 16 octets, and port.
_Endpoint = tuple[bytes, int]


@dataclass(slots=True)
class ListedConnection:
    """A connection that the tester opened.

    Attributes:
        due: time at which the frame that opens it was due, s since 1970.
        outside: its outside source; None = the tester does not know it.
        expected: whether the log must have it, True where the Responder received its opening.
    """

    due: float
    source: _Endpoint
    destination: _Endpoint
    outside: _Endpoint | None
    expected: bool
    named: bool = False
    found: bool = False


def listed(octets: bytes, *, all_learned: bool, has_ports: bool = True) -> list[ListedConnection]:
    """Return the connections of the engine's list, each four tuple once.

    Args:
        all_learned: whether every opening arrived, so that also those whose entry was taken over must be in the log.
        has_ports: whether the destination's port identifies a connection: with ICMP it is a sequence number.
    """
    connections: dict[tuple[_Endpoint, _Endpoint], ListedConnection] = {}
    for due, port, remote_port, outside_port, known, source, destination, outside in _ENTRY.iter_unpack(octets):
        ends = (source, port), (destination, remote_port if has_ports else 0)
        expected = known == _LEARNED or (known == _TAKEN_OVER and all_learned)
        seen = (outside, outside_port) if known == _LEARNED else None
        if ends in connections:
            connections[ends].expected |= expected
        else:
            connections[ends] = ListedConnection(due / 1e9, *ends, seen, expected)
    return list(connections.values())


def join(  # noqa: PLR0913 - the log, and what is known of it
    connections: Iterable[ListedConnection],
    log: str,
    pattern: re.Pattern[str],
    *,
    grace: float,
    has_ports: bool = True,
    timed: bool = True,
    stalls: Sequence[tuple[float, float]] = (),
) -> LogCounts:
    """Return how a log agrees with the connections of a trial.

    Args:
        grace: seconds after which a record is late.
        stalls: times, seconds since 1970, for whose connections a missing record is excused.
        timed: False = the times of the log and of the tester are of clocks that cannot be compared.
    """
    return _Join(connections, pattern, grace, has_ports=has_ports, timed=timed).of(log, stalls)


class _Join:
    """Counts of one log."""

    def __init__(
        self,
        connections: Iterable[ListedConnection],
        pattern: re.Pattern[str],
        grace: float,
        *,
        has_ports: bool,
        timed: bool,
    ) -> None:
        self._pattern, self._grace, self._timed = pattern, grace, timed
        self._names_port = has_ports and "destination_port" in pattern.groupindex
        self._connections: dict[tuple[_Endpoint, _Endpoint], list[ListedConnection]] = {}
        for connection in connections:
            self._connections.setdefault(self._key(connection.source, connection.destination), []).append(connection)
        self._wrong = self._duplicate = self._late = self._ambiguous = 0
        self._delays: list[float] = []
        self._users: dict[tuple[_Endpoint, _Endpoint], tuple[bytes, float]] = {}

    def of(self, log: str, stalls: Sequence[tuple[float, float]]) -> LogCounts:
        records, unparsed, first = 0, 0, ""
        for line in log.splitlines():
            found = self._pattern.search(line)
            if found is None or not self._take(found.groupdict()):
                unparsed += 1
                first = first or line[:_SHOWN]
            else:
                records += 1
        every = [connection for those in self._connections.values() for connection in those]
        expected = [connection for connection in every if connection.expected]
        lost = [connection.due for connection in expected if not connection.named]
        return LogCounts(
            connections=len(expected),
            records=records,
            octets=len(log.encode()),
            lost=len(lost),
            wrong=self._wrong,
            duplicate=self._duplicate,
            late=self._late,
            excused=sum(any(begin <= due <= end for begin, end in stalls) for due in lost),
            unparsed=unparsed,
            unparsed_line=first,
            ambiguous=self._ambiguous,
            outside_named="outside" in self._pattern.groupindex,
            delay_p50_ms=self._delay(50),
            delay_p999_ms=self._delay(99.9),
        )

    def _delay(self, percent: float) -> float | None:
        """Return a percentile of the delays in ms; None = no record has a time."""
        return percentile(self._delays, percent) * 1000 if self._delays else None

    def _key(self, source: _Endpoint, destination: _Endpoint) -> tuple[_Endpoint, _Endpoint]:
        return source, destination if self._names_port else (destination[0], 0)

    def _take(self, record: Mapping[str, str | None]) -> bool:
        """Count a record; false = its fields are no addresses, ports or times."""
        try:
            source = _endpoint(record["source"], record["source_port"])
            destination = _endpoint(record["destination"], record.get("destination_port"))
            named = record.get("outside")
            outside = None if named is None else _endpoint(named, record.get("outside_port") or record["source_port"])
            at = _seconds(record) if self._timed else None
        except ValueError:
            return False
        those = self._connections.get(self._key(source, destination), [])
        if at is not None and those and at < those[0].due - SAME_SECONDS:
            # Every trial has the same four tuples: this one came late, from an earlier trial.
            those = []
        right = [each for each in those if outside is None or each.outside in (None, outside)]
        fresh = next((each for each in right if not each.found), None)
        if fresh is not None:
            fresh.found = fresh.named = True
            self._time(fresh, at)
        elif right:
            self._duplicate += 1
        else:
            self._wrong += 1
            meant = next((each for each in those if not each.named), None)
            if meant is not None:
                meant.named = True
        if outside is not None and those:
            self._use(outside, destination, source[0], those[0].due if at is None else at)
        return True

    def _time(self, connection: ListedConnection, at: float | None) -> None:
        if at is not None:
            delay = at - connection.due
            self._delays.append(delay)
            self._late += delay > self._grace

    def _use(self, outside: _Endpoint, remote: _Endpoint, subscriber: bytes, at: float) -> None:
        """Note who had an outside tuple, and count one that another subscriber had just before."""
        earlier = self._users.get((outside, remote))
        if earlier is not None and earlier[0] != subscriber and abs(at - earlier[1]) < SAME_SECONDS:
            self._ambiguous += 1
        self._users[outside, remote] = subscriber, at


def _endpoint(address: str | None, port: str | None) -> _Endpoint:
    number = int(port or 0)
    if not 0 <= number <= 0xFFFF:
        raise ValueError(f"{number} is no port")
    return _octets(address or ""), number


@lru_cache(maxsize=1 << 16)
def _octets(text: str) -> bytes:
    """Return an address in 16 octets; IPv4 in the last four of them."""
    address = ip_address(text)
    return address.packed if isinstance(address, IPv6Address) else bytes(12) + address.packed


def _seconds(record: Mapping[str, str | None]) -> float | None:
    """Return the time of a record in s since 1970; None = it has none."""
    time = record.get("time")
    return None if time is None else float(time) + int(record.get("microseconds") or 0) / 1e6
