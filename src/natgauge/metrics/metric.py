# SPDX-License-Identifier: Apache-2.0
"""The declaration of a metric: all that is known of it without measuring, for who measures, stores or shows it.

Figures that results of several metrics have are named here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

#: The rate of all directions together, frames/s.
IN_ALL: Final = "frames_per_second_total"
#: New connections of a load of several kinds; those that are open at a time, while frames flow; all that the device's
#: table holds at the end of a trial, those that left as well; the bits of its IP packets.
CONNECTIONS_PER_SECOND: Final = "connections_per_second"
OPEN_CONNECTIONS: Final = "open_connections"
TABLE_ENTRIES: Final = "table_entries"
GIGABITS: Final = "gigabits_per_second"
#: The length of the trial behind an answer, in seconds.
TRIAL_SECONDS: Final = "trial_seconds"
#: Frames of the device's busiest core divided by the mean of all cores; 1 = even.
CORE_IMBALANCE: Final = "core_imbalance"
#: Number of the device's cores that did next to nothing.
IDLE_CORES: Final = "idle_cores"
#: Octets of a connection in the kernel of the device's machine.
OCTETS_PER_CONNECTION: Final = "octets_per_connection"
#: Mean power of the device in the trials at the highest load that passed, in W, and its energy for a frame or, where
#: trials only open connections, for a connection: phases, pauses and what the device takes when idle are included.
WATTS: Final = "watts"
MICROJOULES_PER_FRAME: Final = "microjoules_per_frame"
MICROJOULES_PER_CONNECTION: Final = "microjoules_per_connection"
#: Connections that the device itself calls open, after the trial that gave the value.
ESTABLISHED: Final = "established"
#: Name of a figure before the device's name: lost frames that the device's rings and interfaces dropped, in percent.
LOST_PERCENT_AT: Final = "lost_percent_at_"
#: Of a search that loss at every rate ended: the connections that a device kept that holds a limited number of them;
#: or the share, and the highest rate at which no more than that was lost.
HELD_FIGURE: Final = "connections_held"
SHARE_FIGURE: Final = "share_lost_at_every_rate"
HIGHEST_FIGURE: Final = "highest_rate_with_that_share"

#: Which of two values a user would rather have.
Better = Literal["higher", "lower"]
#: Setting that demands a value of a metric, by the values that are better.
THRESHOLDS: Final[Mapping[Better, str]] = {"higher": "at_least", "lower": "at_most"}
#: What one unit of a rate consists of: the frames that open a connection; a frame of each direction; a query and its
#: answer; all segments of a TCP connection that is opened, used once and closed; the segments that close it; a frame of
#: both directions, beside connections that are opened; a subscriber's frames, beside those that it opens.
Counted = Literal["opening", "frames", "queries", "transaction", "closing", "load", "subscriber"]
#: What a network takes of a gateway: connections that it opens a second, that are open, and frames a second.
Resource = Literal["new connections", "open connections", "frames"]
#: Parameters with the tester's own highest rates.
TESTER_RATES: Final = frozenset({"tester_highest_phase1_rate", "tester_highest_phase2_rate"})

#: Turn of a metric that no other one builds on.
USUAL_TURN: Final = 2


@dataclass(frozen=True, slots=True)
class Criterion:
    """What a passing trial had to do, as the end of a sentence with the value.

    Attributes:
        strict: where no frame of a passing trial may be lost; "{within}" is the time limit of the metric's definition.
        tolerant: where a share may be lost; "{lost}" is that share, "{kept}" the rest.
    """

    strict: str = ""
    tolerant: str = ", where a passing trial may lose up to {lost} of its frames"


@dataclass(frozen=True, slots=True)
class DeclaredFigure:
    """A further figure of a metric's results.

    Attributes:
        name: its name in records, with its unit.
        label: label of its row in tables; empty = other rows show it, or none does.
        unit: unit of its row.
        answer: what an answer in words says of it; "{}" is its median, "{range}" the range over the repetitions,
            "{periods}" and "{judged}" the numbers of periods and of those that were judged, "{loss}" what a passing
            trial may lose, "{unit}" the unit of a rate of frames, "{first}" what the first delay of a connection is of,
            "{had}" how many repetitions have the figure, where not all do. Empty = nothing.
        answer_of_few: the same where a repetition timed too few frames for that answer; "{frames}" is their number.
        is_tried: whether a trial was run with it: of an even number of repetitions the mean of the middle two would be
            a value that no trial had.
        is_counted: whether it is a number of things, which is written in full.
    """

    name: str
    label: str = ""
    unit: str = ""
    answer: str = ""
    answer_of_few: str = ""
    is_tried: bool = False
    is_counted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric. The modules of `natgauge.metrics` declare them.

    Attributes:
        name: its name, as on the command line.
        unit: unit of its values.
        summary: one line.
        title: plain name, as the title of a page and of a chart; empty = the name.
        source: section of the standard that defines it.
        term: what that standard calls it; empty = it has no word of its own.
        better: which values are better; None where neither is, and a change is only a change. It says also which way a
            limit of the tester or the host moved a value: "higher" makes it a lower bound, "lower" an upper one, and of
            None, such as a ratio of two rates, nothing is known.
        does: what a device does that has a value, as the predicate of a sentence; "{value}" is the value with its unit,
            "{number}" the value alone, "{opened}" the connections that drawn frames open, "{later}" which of two
            directions it is of. Empty = reports print metric and value.
        does_where: the same where a parameter has a value, by both; of several the first.
        does_stateless: the same where none of these holds and the device keeps no connections; empty = it is the same.
        criterion: what a passing trial had to do, which follows the value in a sentence.
        best: what the device with the best of several values does, as the predicate of a sentence, and what that with
            the better of two does, which "than" and the other one follow; None = reports name the metric.
        value_figure: name of the figure that is the value itself; empty = no figure is.
        figures: further figures that a table or an answer shows.
        sampled_between: names of the figures that say between which values the sample of one repetition, the bucket of
            its percentile, INVALID periods or single lost frames let its value be; where one alone is known, the other
            is not. None = the value has no such ends.
        traffic: options of the traffic that are chosen so where the user names none of its ranges, by name.
        moved_by: parameters that move the figure of this metric, but not of others: `TESTER_RATES` of a metric whose
            trials are sent at the tester's highest rate. Results that differ in one are not compared.
        phase: phase of a trial that the value is about: 1 opens connections, 2 sends frames over open ones.
        is_bounded: whether the tester's highest rate of this phase bounds the value.
        counts: what a unit of the value consists of; None = the value is no rate of frames.
        sends_data: whether its TCP connections transport data, and so frames of the chosen size.
        without_frames: whether the device does what is measured while no frame arrives.
        measures_loss: whether its procedure tolerates a loss in phase 1 that every rate has.
        follows_host: whether the value moves with the speed of the machine on which the device works.
        resource: what its value is the most of; None = it says nothing of how many subscribers a gateway carries.
        shows_memory: whether it fills the connection tracking table, so that the memory of a connection is an answer.
        series_rates: what the rates of its series over loads are; empty = frames/s of each direction that sends.
        draws_loss: whether its series over loads is drawn as a curve of loss.
        turn: turn in a lab where several metrics are measured: a lower one comes first, and others use its value.
    """

    name: str
    unit: str
    summary: str
    title: str = ""
    source: str
    term: str = ""
    better: Better | None = None
    does: str = ""
    does_where: Mapping[tuple[str, str | float], str] = field(default_factory=dict)
    does_stateless: str = ""
    criterion: Criterion = field(default_factory=Criterion)
    best: tuple[str, str] | None = None
    value_figure: str = ""
    figures: tuple[DeclaredFigure, ...] = ()
    sampled_between: tuple[str, str] | None = None
    traffic: Mapping[str, object] = field(default_factory=dict)
    moved_by: frozenset[str] = frozenset()
    phase: Literal[1, 2] = 2
    is_bounded: bool = False
    counts: Counted | None = None
    sends_data: bool = True
    without_frames: bool = False
    measures_loss: bool = False
    follows_host: bool = True
    resource: Resource | None = None
    shows_memory: bool = False
    series_rates: str = ""
    draws_loss: bool = False
    turn: int = USUAL_TURN

    @property
    def plain_name(self) -> str:
        """The title, or the name as words."""
        return self.title or f"{self.name[:1].upper()}{self.name[1:].replace('-', ' ')}"

    @property
    def name_in_sentence(self) -> str:
        """The plain name within a sentence; abbreviations stay."""
        name = self.plain_name
        return name if name[1:2].isupper() else f"{name[:1].lower()}{name[1:]}"

    @property
    def cited(self) -> str:
        """The standard's term, or else the plain name, with the section that defines it."""
        return f"{self.term or self.plain_name}{f' ({self.source})' if self.source else ''}"

    def __str__(self) -> str:
        return self.name
