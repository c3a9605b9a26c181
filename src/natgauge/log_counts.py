# SPDX-License-Identifier: Apache-2.0
"""What a gateway's log of a trial has and lacks, and the figures that follow from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from natgauge.figure_text import with_noun
from natgauge.words import LimitedBy


@dataclass(frozen=True, slots=True)
class LogCounts:
    """A gateway's log of one trial, next to the connections that it must have.

    Lost are connections that no record names. Lines that are no records are unparsed.

    Attributes:
        wrong: records that name a connection with another outside tuple, or a connection that there was not.
        excused: part of lost, at least 0: connections that were due during a stall, or for its length after it.
        late: right records that were written later than the grace after their connection was due; at least so many
            where records have whole seconds, which are up to 1 s too early.
        ambiguous: records whose outside tuple another subscriber had towards the same remote endpoint within a second.
        outside_named: whether the records name outside tuples; without them none leads back to a subscriber.
        delay_p50_ms: median of the time from a connection to its record; None = the records have no time,
            or whole seconds.
        delay_p999_ms: 99.9th percentile of the same.
    """

    connections: int
    records: int
    octets: int
    lost: int
    wrong: int = 0
    duplicate: int = 0
    late: int = 0
    excused: int = 0
    unparsed: int = 0
    unparsed_line: str = ""
    ambiguous: int = 0
    outside_named: bool = True
    delay_p50_ms: float | None = None
    delay_p999_ms: float | None = None

    @property
    def faulty(self) -> int:
        """Connections without a record, and records that lead to another one than they should."""
        return self.lost + self.wrong

    @property
    def is_odd(self) -> bool:
        """Whether anything but one right record for each connection was found."""
        return bool(self.faulty or self.duplicate or self.late or self.unparsed or self.ambiguous)

    def exceeds(self, tolerance: float) -> bool:
        """Whether more is missing or wrong than a share of the connections."""
        return self.faulty > tolerance * self.connections

    @property
    def words(self) -> str:
        """The counts, those of faults where they are not 0, as a part of a sentence."""
        faults = {
            "without a record": self.lost,
            "wrong": self.wrong,
            "twice": self.duplicate,
            "late": self.late,
            "with an outside port that another subscriber had within a second": self.ambiguous,
            f"unreadable, such as {self.unparsed_line!r}": self.unparsed,
        }
        found = ", ".join(f"{number:,} {name}" for name, number in faults.items() if number)
        records = with_noun(f"{self.records:,}", "records")
        connections = with_noun(f"{self.connections:,}", "connections")
        return f"the log has {records} for {connections}{found and ': '}{found}"


class LogError(NamedTuple):
    """Why a log was not compared with a trial's connections.

    `limited_by` is "tester" where natgauge took the records too slowly: fewer a second it can take.
    """

    text: str
    limited_by: LimitedBy


class LogFigure(NamedTuple):
    """A figure of the log in the deciding trial, which has connections, with the label and the unit of its row.

    `of` returns None where it is not known.
    """

    name: str
    label: str
    unit: str
    of: Callable[[LogCounts], float | None]


#: Every such figure, in the order of the rows.
LOG_FIGURES: Final = (
    LogFigure(
        "log_records_per_connection", "log records of a connection", "", lambda log: log.records / log.connections
    ),
    LogFigure("log_octets_per_connection", "log of a connection", "octets", lambda log: log.octets / log.connections),
    LogFigure("log_delay_p50_ms", "median delay of a log record", "ms", lambda log: log.delay_p50_ms),
    LogFigure(
        "log_delay_p999_ms", "99.9th percentile of the delay of a log record", "ms", lambda log: log.delay_p999_ms
    ),
    LogFigure(
        "log_lost_percent", "connections without a log record", "%", lambda log: 100 * log.lost / log.connections
    ),
    LogFigure("log_wrong", "wrong log records", "", lambda log: float(log.wrong)),
)
