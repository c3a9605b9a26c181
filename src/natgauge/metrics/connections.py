# SPDX-License-Identifier: Apache-2.0
"""Metrics of connections: how fast a device opens, uses, closes and forgets them, and how many it holds."""

from __future__ import annotations

from typing import Final

from natgauge.metrics.metric import DeclaredFigure, Metric

#: Connections that drawn frames open: as many as are expected, and as many as the device counted.
CONNECTIONS_EXPECTED: Final = "connections_expected"
CONNECTIONS_COUNTED: Final = "connections_counted"

CONNECTION_RATE: Final = Metric(
    name="connection-rate",
    unit="connections/s",
    summary="highest rate at which every new connection is established",
    title="New connections per second",
    source="RFC 9693 section 4.5",
    term="Maximum connection establishment rate",
    better="higher",
    does="opens {value}",
    does_where={("order", "with-replacement"): "forwards {value}, which open {opened} connections/s"},
    does_stateless="forwards the first frames of {value}",
    best=("opens most connections", "opens more connections"),
    resource="new connections",
    phase=1,
    is_bounded=True,
    counts="opening",
    sends_data=False,
    shows_memory=True,
    turn=0,
)

VALIDATED_CONNECTION_RATE: Final = Metric(
    name="validated-connection-rate",
    unit="connections/s",
    summary="highest rate at which every new connection is established and then forwards replies",
    title="New connections per second, each with a reply",
    source="RFC 9693 section 4.6",
    better="higher",
    does="opens {value}, each of which then forwards a reply",
    does_where={
        ("order", "with-replacement"): "forwards {value}, which open {opened} connections/s that then forward replies"
    },
    does_stateless="forwards the first frames of {value}, and a reply of each",
    best=("opens most validated connections", "opens more validated connections"),
    figures=(
        DeclaredFigure("validation_rate", is_tried=True),
        DeclaredFigure("alpha", is_tried=True),
    ),
    resource="new connections",
    phase=1,
    is_bounded=True,
    # Its rate is that of phase 1.
    counts="opening",
    shows_memory=True,
)

#: Entries that closed connections fill in the device's table where this rate lasts, by the device's own time-out.
LINGERING_ENTRIES: Final = "lingering_entries"

TRANSACTION_RATE: Final = Metric(
    name="transaction-rate",
    unit="transactions/s",
    summary="highest rate at which TCP connections are opened, used once and closed",
    title="TCP transactions per second",
    source="RFC 9693 section 4.5, applied to TCP",
    better="higher",
    does="completes {value}",
    best=("completes most transactions", "completes more transactions"),
    figures=(DeclaredFigure(LINGERING_ENTRIES, "entries of closed connections", "connections"),),
    traffic={"transport": "tcp"},
    phase=1,
    is_bounded=True,
    counts="transaction",
    sends_data=False,
)

#: Connections that the device's table has after those were closed.
ENTRIES_LEFT: Final = "entries_left"

TEAR_DOWN_RATE: Final = Metric(
    name="tear-down-rate",
    unit="connections/s",
    summary="rate at which connections are torn down when the device's table is cleared, or by FINs or resets of TCP",
    title="Connections closed per second",
    source="RFC 9693 section 4.8",
    term="Connection tear-down rate",
    better="higher",
    does="tears down {value}",
    best=("tears down connections fastest", "tears down connections faster"),
    figures=(
        DeclaredFigure("full_seconds", "emptying a full table", "s", answer="emptying a full table takes {} s{range}"),
        DeclaredFigure("empty_seconds", "emptying an empty table", "s", answer="an empty one {} s{range}"),
        DeclaredFigure("difference_seconds", "deletion of the connections", "s"),
        DeclaredFigure(ENTRIES_LEFT, "entries left after closing", "connections"),
    ),
    sampled_between=("rate_lowest", "rate_highest"),
    phase=1,
    counts="closing",
    sends_data=False,
    without_frames=True,
    shows_memory=True,
)

EXPIRY: Final = Metric(
    name="expiry",
    unit="connections/s",
    summary="rate at which connections expire",
    title="Connections that expire per second",
    source="RFC 9693 section 4.8 (its command replaced by the device's time-outs)",
    does="lets {value} expire",
    sampled_between=("rate_lowest", "rate_highest"),
    phase=1,
    sends_data=False,
    without_frames=True,
    follows_host=False,
)

ENUMERATION_ORDERS: Final = Metric(
    name="enumeration-orders",
    unit="%",
    summary="connections created and connection rate, for each enumeration order of phase 1",
    title="New connections by enumeration order",
    source="RFC 9693 section 4.4",
    does="creates connections with {value} of the frames whose four tuples are drawn with replacement",
    moved_by=frozenset({"connection_rate_timeout_seconds"}),
    sends_data=False,
    follows_host=False,
)

TABLE_CAPACITY: Final = Metric(
    name="table-capacity",
    unit="connections",
    summary="highest number of connections that the device can hold",
    title="Connections held at once",
    source="RFC 9693 section 4.9",
    term="Connection tracking table capacity",
    better="higher",
    does="keeps {value}",
    best=("keeps most connections", "keeps more connections"),
    figures=(
        DeclaredFigure("first_connections", "C0, first connections"),
        DeclaredFigure("first_rate", "R0, rate of C0", "connections/s"),
        DeclaredFigure("exponential_safe", "CS, safe connections"),
        DeclaredFigure("exponential_safe_rate", "RS, rate of CS", "connections/s"),
        DeclaredFigure("exponential_unsafe", "CT, unsafe connections"),
    ),
    resource="open connections",
    shows_memory=True,
    follows_host=False,
)
