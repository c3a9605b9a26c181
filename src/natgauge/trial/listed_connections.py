# SPDX-License-Identifier: Apache-2.0
"""The connections of a trial, as the engine lists them: what a log must have, and what a record covers."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right, insort
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

#: Address in 16 octets, and port.
Endpoint = tuple[bytes, int]


@dataclass(slots=True)
class ListedConnection:
    """A connection that the tester opened.

    Attributes:
        due: time at which the frame that opens it was due, s since 1970.
        outside: its outside source; None = the tester does not know it.
        expected: whether the log must have it, True where the Responder received its opening.
    """

    due: float
    source: Endpoint
    destination: Endpoint
    outside: Endpoint | None
    expected: bool
    named: bool = False
    found: bool = False


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


class Blocks:
    """The blocks that records gave to subscribers, and the connections of a trial that they cover."""

    def __init__(self, connections: Iterable[ListedConnection]) -> None:
        self._taken: list[SubscribersBlock] = []
        self._known: dict[tuple[bytes, int | None], list[tuple[Endpoint, ListedConnection]]] = {}
        self._unknown: dict[tuple[bytes, int | None], list[ListedConnection]] = {}
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
        whose = self._known.get(block[:2], [])
        low = bisect_left(whose, (block.outside, block.first), key=_outside)
        high = bisect_right(whose, (block.outside, block.last), key=_outside)
        covered = [*(connection for _, connection in whose[low:high]), *self._unknown.get(block[:2], [])]
        began = min((connection.due for connection in covered), default=0.0)
        return [] if block.at is not None and block.at < began - SAME_SECONDS else covered

    def shared(self) -> int:
        """Number of blocks with ports that another subscriber's block had within a second, or at a time not known."""
        number, outside, last = 0, b"", -1
        timed, untimed = list[SubscribersBlock](), list[SubscribersBlock]()
        for block in sorted(self._taken, key=lambda block: (block.outside, block.first)):
            if block.outside != outside or block.first > last:
                outside, last = block.outside, -1
                timed, untimed = [], []
            near = chain(untimed, timed if block.at is None else _within_a_second(timed, block.at))
            number += any(other.subscriber != block.subscriber and other.last >= block.first for other in near)
            if block.at is None:
                untimed.append(block)
            else:
                insort(timed, block, key=_time)
            last = max(last, block.last)
        return number


def _time(block: SubscribersBlock) -> float:
    return block.at or 0.0


def _within_a_second(blocks: list[SubscribersBlock], at: float) -> Iterator[SubscribersBlock]:
    """Those of the blocks, in the order of their times, that were given within a second."""
    first, end = bisect_right(blocks, at - SAME_SECONDS, key=_time), bisect_left(blocks, at + SAME_SECONDS, key=_time)
    return islice(blocks, first, end)


def _outside(known: tuple[Endpoint, ListedConnection]) -> Endpoint:
    return known[0]
