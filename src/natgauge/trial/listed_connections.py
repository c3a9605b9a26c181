# SPDX-License-Identifier: Apache-2.0
"""The connections of a trial, as the engine lists them: what a log must have, and what a record covers."""

from __future__ import annotations

import math
import struct
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, NamedTuple

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
            those.sort(key=_outside)

    def take(self, block: SubscribersBlock) -> list[ListedConnection]:
        """Return the connections that a block covers, as far as their outside sources are known.

        Of those that are not known, with churn, it covers all of its subscriber. The number of its ports is no bound: a
        port is given again when a connection has expired, and can be of several connections to different destinations.

        Blocks are given as connections open, so one that covers none is wrong, or of an earlier trial: each trial has
        the same four tuples.
        """
        self._taken.append(block)
        covered = [*self._seen(block), *self._unknown.get(block[:2], [])]
        return [] if block.precedes(min(map(_due, covered), default=0.0)) else covered

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
        low = bisect_left(whose, (block.outside, block.first), key=_outside)
        high = bisect_right(whose, (block.outside, block.last), key=_outside)
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


def _due(connection: ListedConnection) -> float:
    return connection.due


def _queue(connections: Iterable[ListedConnection]) -> tuple[float, deque[ListedConnection]]:
    waiting = deque(sorted(connections, key=_due))
    return (waiting[0].due if waiting else math.inf), waiting


def _time(block: SubscribersBlock) -> float:
    return block.at or 0.0


def _within_a_second(blocks: list[SubscribersBlock], at: float) -> Iterator[SubscribersBlock]:
    """Those of the blocks, in the order of their times, that were given within a second."""
    first, end = bisect_right(blocks, at - SAME_SECONDS, key=_time), bisect_left(blocks, at + SAME_SECONDS, key=_time)
    return islice(blocks, first, end)


def _outside(known: tuple[Endpoint, ListedConnection]) -> Endpoint:
    return known[0]
