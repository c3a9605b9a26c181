# SPDX-License-Identifier: Apache-2.0
"""The rows of a report, described once: label, unit, and how the value is read from a result.

First come the rows of RFC 9693 section 6 and those needed to read the figures, then every parameter that moves a figure
and differs between results of one metric, then the comparisons.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Final, Literal

from pydantic import JsonValue

from natgauge.analysis import derived
from natgauge.analysis.contrast import search_error
from natgauge.analysis.derived import Bound, ByLoad, Comparison, DerivedRow, by_load, derived_rows, rows_of_halves
from natgauge.analysis.unit_frames import (
    MIXES,
    bits_of_unit,
    frames_in_all,
    limiting_device,
    mix_of,
    mix_text,
    own_size,
    own_work,
    sending_of,
    unit_with_direction,
)
from natgauge.errors import UsageError
from natgauge.figure_text import at_least, at_most, in_full, number, of_whole
from natgauge.interval_text import Written, with_ends, within
from natgauge.metrics import declared, figures
from natgauge.metrics.catalogue import (
    CONNECTIONS_COUNTED,
    CONNECTIONS_EXPECTED,
    FORGETS,
    KEPT,
    KEPT_LEAST,
    KEPT_MOST,
    OWN,
    RATIO,
    TESTER,
    WITHIN_TOLERANCE,
    WITHOUT_LOSS,
)
from natgauge.metrics.metric import (
    CORE_IMBALANCE,
    ESTABLISHED,
    IDLE_CORES,
    IN_ALL,
    MICROJOULES_PER_CONNECTION,
    MICROJOULES_PER_FRAME,
    OCTETS_PER_CONNECTION,
    OPEN_CONNECTIONS,
    TABLE_ENTRIES,
    WATTS,
)
from natgauge.readings import LOG_FIGURES
from natgauge.records.comparison import FRAME_OF
from natgauge.records.measurement import SHARE_OF_LINK, Result
from natgauge.records.parameters import describe, separated
from natgauge.reports import main_figure
from natgauge.statistics.summary import VALUES_FOR_PERCENTILES, FigureSummary
from natgauge.words import SENDING


@dataclass(frozen=True, slots=True)
class Bounded:
    """A number that the true value does not exceed ("<=") or reaches (">=")."""

    bound: Bound
    value: float

    def __str__(self) -> str:
        """Return the number with all digits, as in CSV."""
        return f"{self.bound} {self.value!r}"


@dataclass(frozen=True, slots=True)
class Ranged:
    """A median over repetitions, and the smallest and the largest value."""

    median: float
    minimum: float
    maximum: float


Cell = str | float | Bounded | Ranged | None

#: The parameter whose row has the connections that were opened.
_SESSIONS: Final = "connections"
#: No number of connections is so large.
_BEYOND: Final = 2**64
#: The most characters of a parameter in a table for people.
_WIDEST: Final = 32


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A row with its cells.

    Attributes:
        unit: unit of the cells; empty where they have none, or different units.
        cells: one value per result; None = no value.
        detail: what follows the label where people read it, not in CSV and JSON; empty = nothing.
        head: name of the column in CSV and JSON, where programs know it by another one; empty = the label.
    """

    label: str
    unit: str
    cells: tuple[Cell, ...]
    text: Callable[[Cell], str]
    measured: bool = False
    own: tuple[str, ...] = ()
    detail: str = ""
    head: str = ""

    @property
    def heading(self) -> str:
        """Label with its detail and unit."""
        return self._with_unit(f"{self.label}{self.detail}")

    @property
    def name(self) -> str:
        """Label of the row for programs."""
        return self.head or self.label

    @property
    def column(self) -> str:
        """Name of the column in CSV: label with unit."""
        return self._with_unit(self.name)

    def _with_unit(self, name: str) -> str:
        return f"{name} ({self.unit})" if self.unit else name

    @property
    def printed(self) -> list[str]:
        """Cells as printed text."""
        own = self.own or [printed(cell, self.text, ends=True) for cell in self.cells]
        return ["-" if cell is None else _with_value(text, cell) for cell, text in zip(self.cells, own, strict=True)]


def printed(cell: Cell, text: Callable[[Cell], str], *, ends: bool) -> str:
    """Return a cell's text, of a range as a figure with its interval, by both `ends`; `text` formats a single value.

    Beside medians "±" is where another run is expected, which a range of what was measured is not.
    """
    if not isinstance(cell, Ranged):
        return text(cell)
    if text is in_full:
        # Of what is counted, a rounded number hides what a few are missing.
        return f"{in_full(cell.median)} ({in_full(cell.minimum)} to {in_full(cell.maximum)})"
    return (with_ends if ends else within)(cell.median, cell.minimum, cell.maximum)


@dataclass(frozen=True, slots=True)
class _Described:
    """A row before it is filled."""

    label: str
    read: Callable[[Result], Cell]
    unit: str = ""
    text: Callable[[Cell], str] = str
    measured: bool = False
    in_unit: bool = False
    detail: Callable[[Sequence[Result]], str] = lambda _results: ""
    head: str = ""

    def filled(self, results: Sequence[Result]) -> ResultRow:
        cells = tuple(self.read(result) for result in results)
        own = tuple(map(_of_result, results, cells)) if self.in_unit else ()
        return ResultRow(self.label, self.unit, cells, self.text, self.measured, own, self.detail(results), self.head)


def _with_value(text: str, cell: Cell) -> str:
    """A cell's text with its figure; a range has two figures, and stays a text."""
    if isinstance(cell, Bounded):
        return Written(text, cell.value, cell.bound)
    return Written(text, cell) if isinstance(cell, int | float) else text


def _of_result(result: Result, cell: Cell) -> str:
    """A value in the unit of its result, with the digits of the median."""
    return main_figure.value(result, cell) if isinstance(cell, int | float) else str(cell)


#: Labels of rows in the unit of their result.
IN_UNIT: Final = frozenset(
    {
        "error of the search", "median", "1st percentile", "99th percentile", "minimum", "maximum", "mean",
        "standard deviation",
    }
)  # fmt: skip
#: Unit of the rate of all directions together.
UNIT_IN_ALL: Final = "frames/s all directions together"
#: What rates of frames of several results refer to.
_EACH_THAT_SENDS: Final = "of each direction that sends"


def unit_of(result: Result) -> str:
    """Return the unit; that of frames and of their rate includes the direction."""
    return unit_with_direction(result.metric, result.unit, result.parameters)


def unit_of_frames(result: Result) -> str:
    """Return the unit of a rate of frames of each direction that sends."""
    return f"frames/s {sending_of(result.parameters)}"


def unit_of_all(results: Sequence[Result]) -> str:
    """Return the unit of rates of frames of several results."""
    units = {unit_of_frames(result) for result in results}
    return units.pop() if len(units) == 1 else f"frames/s {_EACH_THAT_SENDS}"


#: The unit of a rate of frames where both directions have the same.
_EACH: Final = f"frames/s {SENDING['both']}"


#: The whole of shares, by their unit.
_WHOLE: Final = {"%": 100.0, "of 1": 1.0}


def _text_in(unit: str) -> Callable[[Cell], str]:
    """Return how a figure in this unit is written."""
    return partial(of_whole, whole=_WHOLE[unit]) if unit in _WHOLE else number


def _gbits(result: Result, part: Literal["wire", "packets"]) -> Cell:
    """The median in Gbit/s of its busier direction; None where it is no rate of known frames."""
    bits = bits_of_unit(result.metric, result.parameters)
    return None if bits is None else result.median * getattr(bits, part) / 1e9


def _of_bits(results: Sequence[Result]) -> str:
    """Which bits rows of `_gbits` count, as the end of a label: what holds for each result that has some."""
    left_out = set(_left_out(results)) - {None}
    return f", busier direction{left_out.pop() if len(left_out) == 1 else ''}"


def _left_out(results: Sequence[Result]) -> list[str | None]:
    """The frames that are not in the bits of each result, as the end of a sentence; None where it has no bits."""
    every = (bits_of_unit(result.metric, result.parameters) for result in results)
    return [None if bits is None else bits.left_out for bits in every]


def unlike_bits(results: Sequence[Result]) -> list[str]:
    """Return what the bits of each result lack, in words; empty where that is nothing, or the label says it."""
    left_out = _left_out(results)
    is_said = len(set(left_out) - {None}) == 1
    what = "Gbit/s on the wire and of IP packets are"
    return ["" if is_said or not each else f"{what}{each.removeprefix(',')}" for each in left_out]


def _mean_octets(result: Result) -> Cell:
    """The mean octets of a frame of a mix on its busier direction's link; None where all frames have one size."""
    bits = bits_of_unit(result.metric, result.parameters) if mix_of(result.parameters) else None
    return None if bits is None else bits.frame_octets


def _clipped(value: Cell) -> str:
    """Cut a text that would make the table too wide; CSV has the whole text."""
    shown = str(value)
    return shown if len(shown) <= _WIDEST else f"{shown[: _WIDEST - 3]}..."


def _parameter(name: str) -> Callable[[Result], Cell]:
    return lambda result: _cell(result.parameter(name))


def _figure(name: str) -> Callable[[Result], Cell]:
    """Return a reader of a figure that only some metrics have."""
    return lambda result: ranged(result.figures.get(name))


def ranged(summary: FigureSummary | None) -> Cell:
    """Return the median of a figure, with the range where there are several values; None without the figure."""
    if summary is None or summary.count == 1:
        return None if summary is None else summary.median
    return Ranged(summary.median, summary.minimum, summary.maximum)


def _statistic(name: str, least: int = 1) -> Callable[[Result], Cell]:
    """Return a reader of a statistic of the repetitions; it reads None of fewer than `least`."""
    return lambda result: getattr(result, name) if len(result.values) >= least else None


def _cell(value: JsonValue) -> Cell:
    if value is None or isinstance(value, str | int | float):
        return str(value).lower() if isinstance(value, bool) else value
    return separated(value)


def opened_by_draws(result: Result) -> int | None:
    """Return the connections that drawn frames opened, by the device or on average; None = no such number is known."""
    opened = result.figures.get(CONNECTIONS_COUNTED, result.figures.get(CONNECTIONS_EXPECTED))
    return None if opened is None else round(opened.median)


def open_at_once(result: Result) -> Cell:
    """Return the connections that a trial has at a time: N, or those of the value where N is a range of four tuples.

    None where the value has no such number, as where no load passed.
    """
    if declared(result.metric).counts != "subscriber" and not result.number("life_seconds"):
        return _cell(result.parameter(_SESSIONS))
    figure = result.figures.get(OPEN_CONNECTIONS)
    return None if figure is None else round(figure.median) or None


def _sessions(result: Result) -> Cell:
    opened = opened_by_draws(result)
    return open_at_once(result) if opened is None else opened


def _number_of_entries(result: Result) -> float | None:
    """Return how many entries they fill, those that left included; None = not known, or more than a record may have."""
    filled = result.figures.get(TABLE_ENTRIES)
    sessions = _sessions(result) if filled is None else filled.median
    return float(sessions) if isinstance(sessions, int | float) and abs(sessions) < _BEYOND else None


def _ratio(
    above: str, below: str, compute: Callable[[float, float], float] = operator.truediv
) -> Callable[[Result], Cell]:
    both = (above, below)

    def read(result: Result) -> Cell:
        upper, lower = (_number_of_entries(result) if name == _SESSIONS else result.number(name) for name in both)
        return compute(upper, lower) if upper and lower else None

    return read


def doubt_words(result: Result) -> str:
    """Return the words of all doubts, each once."""
    return ", ".join(dict.fromkeys(doubt.word for doubt in result.doubts))


def _many(value: Cell) -> str:
    """Return the number of doubts; the doubts themselves are below the table."""
    return str(str(value).count(",") + 1)


#: Labels of figures of delays that have a second value without the frames due in stalls.
_OF_DELAYS: Final[Mapping[str, str]] = {
    "typical_latency": "typical latency",
    "worst_case_latency": "worst case latency",
    "pdv": "packet delay variation",
    "ipdv_spread": "inter packet delay variation",
}


#: Ends of the names of a delay figure, and what they add to its label, and to its head in CSV.
_DELAYS_OF: Final = (
    ("_us", "", ""),
    ("_without_stalls_us", " without stalls", " without stalls"),
    ("_us_from_initiator", f" of frames {SENDING['up']}", " of frames from the Initiator"),
    ("_us_from_responder", f" of frames {SENDING['down']}", " of frames from the Responder"),
)
#: Heads of the costs of quantities in CSV.
_COST_HEADS: Final[Mapping[str, str]] = {"up": "frame from the Initiator", "down": "frame from the Responder"}


def _delays() -> Iterator[_Described]:
    """Yield the rows of each delay figure: of all frames, without frames that stalls delayed, and by direction."""
    for figure, name in _OF_DELAYS.items():
        for end, of, head in _DELAYS_OF:
            read = _figure(f"{figure}{end}")
            yield _Described(f"{name}{of}", read, "us", text=number, measured=True, head=f"{name}{head}")


#: Label of each figure of a series over loads, its unit, and what the load is a share of, by column and name.
_OVER_LOADS: Final[Mapping[tuple[str, str], tuple[str, str, str]]] = {
    ("offered_percent", "lost_percent"): ("loss", "%", "the highest load"),
    ("offered_percent", "shortfall_percent"): ("frames not forwarded", "%", "the highest load"),
    **{("load_percent", f"{name}_us"): (label, "us", "the throughput") for name, label in _OF_DELAYS.items()},
}
#: The figure of a series that is left out, by placement: lost frames are part of those not forwarded.
_WITHOUT: Final = {"shared": "lost_percent", "isolated": "shortfall_percent"}


def _over_loads(results: Sequence[Result]) -> Iterator[ResultRow]:
    """Yield a row for each figure at each load; figures at the load of the result's value have rows already."""
    series = [by_load(result) for result in results]
    for (column, name), (label, unit, full) in _OVER_LOADS.items():

        def cell(result: Result, loads: ByLoad | None, load: float, column: str = column, name: str = name) -> Cell:
            if loads is None or loads.column != column or load == loads.of_value:
                return None
            return None if name == _WITHOUT.get(result.placement) else ranged(loads.at.get(load, {}).get(name))

        every = {load for loads in series if loads and loads.column == column for load in loads.at}
        for load in sorted(every, reverse=True):
            cells = tuple(cell(result, loads, load) for result, loads in zip(results, series, strict=True))
            yield ResultRow(f"{label} at {load:g} % of {full}", unit, cells, _text_in(unit), measured=True)


def _of_metrics() -> Iterator[_Described]:
    """Yield the rows of the figures that metrics declare with a label."""
    for figure in figures().values():
        if figure.label:
            text = in_full if figure.is_counted else _text_in(figure.unit)
            read = _figure(figure.name)
            if figure.name == KEPT:
                read, text = kept, partial(_with_bound, text=text)
            yield _Described(figure.label, read, figure.unit, text=text, measured=True)


def kept(result: Result) -> Cell:
    """Return the share that is kept beside a flood, or what both searches of each repetition leave of it."""
    figure = result.figures.get(KEPT)
    if figure is None:
        return None
    least, most = (
        own if own is not None and own.count == figure.count else None
        for own in (result.figures.get(name) for name in (KEPT_LEAST, KEPT_MOST))
    )
    if least is not None and most is not None:
        return Ranged(figure.median, least.minimum, most.maximum)
    if most is not None:
        return Bounded("<=", most.maximum)
    return None if least is None else Bounded(">=", least.minimum)


def _with_bound(cell: Cell, text: Callable[[Cell], str] = number) -> str:
    """A bound, rounded outward, and any other cell as `text` writes it."""
    if not isinstance(cell, Bounded):
        return text(cell)
    return f"{cell.bound} {(at_most if cell.bound == '<=' else at_least)(cell.value)}".lstrip()


def _costs() -> Iterator[_Described]:
    for quantity, name in FRAME_OF.items():
        for figure, unit in ((RATIO, "x forwarding"), (OWN, "ns"), (TESTER, "ns")):
            of = "tester's own part of a " if figure == TESTER else "cost of a "
            head = of + _COST_HEADS.get(quantity, name)
            read = _figure(f"{quantity}_{figure}")
            yield _Described(of + name, read, unit, text=number, measured=True, head=head)


#: Labels and units of parameters that have a row of their own, by name, in the order of the rows.
_OWN_ROWS: Final[Mapping[str, tuple[str, str]]] = {
    "connections": ("number of sessions", ""),
    "source_address_count": ("source addresses", ""),
    "source_port_count": ("source ports", ""),
    "destination_address_count": ("destination addresses", ""),
    "destination_port_count": ("destination ports", ""),
    "frame_size": ("frame size", "octets"),
    "frame_sizes": ("mix of frame sizes", "octets"),
    "down_frame_sizes": ("mix of the Responder's frame sizes", "octets"),
    "hash_size": ("hash table size", ""),
    "table_size": ("connection table limit", ""),
    FORGETS: ("time until a connection that left is forgotten", "s"),
}
#: What is read in these rows instead of the parameter.
_READ: Final[Mapping[str, Callable[[Result], Cell]]] = {
    _SESSIONS: _sessions,
    "frame_size": lambda result: _cell(own_size(result.parameters)),
}
#: How cells of these rows are written where not as numbers in full.
_TEXTS: Final[Mapping[str, Callable[[Cell], str]]] = dict.fromkeys(MIXES, partial(mix_text, unit=""))
#: Caches that a connection tracking table may fit into; the first level is smaller than any table of interest.
CACHES: Final = ("L2", "L3")


def filling(result: Result, level: str) -> float | None:
    """Return the number of connections whose memory equals the caches of a level; None where one is not known."""
    octets, caches = result.figures.get(OCTETS_PER_CONNECTION), result.parameter("device_caches")
    size = caches.get(level) if isinstance(caches, dict) else None
    return size / octets.median if octets is not None and isinstance(size, int | float) else None


#: Rows of a gateway's log, and of its power meter: figure, label and unit.
_FURTHER: Final = (
    *((figure.name, figure.label, figure.unit) for figure in LOG_FIGURES),
    (WATTS, "power of the device", "W"),
    (MICROJOULES_PER_FRAME, "energy of a frame", "uJ"),
    (MICROJOULES_PER_CONNECTION, "energy of a connection", "uJ"),
)


def _limiting_device(result: Result) -> str | None:
    """Return the name of the device that limited a chain; None = not known, or a single device."""
    limit = limiting_device({name: figure.median for name, figure in result.figures.items()})
    return None if limit is None else limit[0]


def _threshold(result: Result) -> str | None:
    """The value that was demanded, with the verdict."""
    of = result.threshold
    return None if of is None else f"{of.setting.replace('_', ' ')} {in_full(of.value)}: {of.verdict}"


def _cause(result: Result) -> str | None:
    """Return the kind of the cause, and whether it is a guess; None = it has none."""
    if result.cause is None:
        return None
    return f"{result.cause.kind} (a guess)" if result.cause.is_doubtful else result.cause.kind


def own_share(result: Result) -> float | None:
    """Return the share of the time of a rate that is the tester's own work on the device's core; None = not known."""
    rate = frames_in_all(result.median, result.figures, result.parameters)
    work = own_work(result.metric, rate, result.parameters)
    return None if work is None else work.share


def _own_percent(result: Result) -> float | None:
    share = own_share(result)
    return None if share is None else 100 * share


#: Labels of the rates without loss, or within what was tolerated, of a series over loads.
_RATES_OF_LOSS: Final = {
    WITHOUT_LOSS: "highest rate without loss",
    WITHIN_TOLERANCE: "highest rate within the tolerated loss",
}


def _rate_of_loss(result: Result, name: str) -> Cell:
    """The highest rate without loss, or within what was tolerated; a tolerance decides which."""
    if (main_figure.tolerance(result) is None) != (name == WITHOUT_LOSS):
        return None
    return ranged(result.figures.get(name, result.figures.get(WITHOUT_LOSS)))


def _of_some(result: Result) -> str | None:
    """Return the figures that only some repetitions have, with the number of these; None where there are none."""
    of = len(result.repetitions)
    labels = {each.name: each.label for each in figures().values()} | _RATES_OF_LOSS
    some = [
        f"{labels[name]}: {figure.count} of {of}"
        for name, figure in result.figures.items()
        if labels.get(name) and figure.count < of
    ]
    return "; ".join(some) or None


def _tolerated(result: Result) -> str | None:
    """Return the share of its frames that a passing trial may lose; None where that is none."""
    lost = main_figure.tolerance(result)
    return None if lost is None else main_figure.percent(lost)


def experiments(result: Result) -> float:
    """Return the number of experiments: of a tear-down by a command its deletions, or else the repetitions."""
    deletions = result.figures.get("full_seconds")
    return len(result.repetitions) if deletions is None else deletions.count


def _planned(result: Result) -> float | None:
    """Return the experiments that were requested, where some of them are missing."""
    planned = result.planned_repetitions * (result.number("sample") or 1)
    return planned if planned > experiments(result) else None


def _link_maximum(result: Result, *, of_units: bool) -> Cell:
    """What the links carry at most: in the unit of the value, or frames/s in each direction."""
    is_of_units = main_figure.counts_units(result) or unit_of_frames(result) != _EACH
    return _cell(result.parameter("theoretical_maximum")) if is_of_units == of_units else None


#: Rows of every table, before the figures that metrics declare and behind them.
_BEFORE: Final = (
    _Described("gateway", lambda result: result.gateway),
    _Described("metric", lambda result: result.metric),
    _Described("placement", lambda result: result.placement),
    *(
        _Described(label, _READ.get(name, _parameter(name)), unit, text=_TEXTS.get(name, in_full))
        for name, (label, unit) in _OWN_ROWS.items()
    ),
    _Described("sessions per hash", _ratio(_SESSIONS, "hash_size", derived.connections_per_bucket), text=number),
    _Described("table limit per hash", _ratio("table_size", "hash_size"), text=number),
    _Described("table limit per session", _ratio("table_size", _SESSIONS, derived.table_per_connection), text=number),
    _Described("a passing trial may lose", _tolerated),
    _Described("goal of MLRsearch", main_figure.goals),
    _Described("frames of", main_figure.transport),
    _Described("number of experiments", experiments, text=in_full),
    _Described("experiments planned", _planned, text=in_full),
    _Described("error of the search", search_error, text=number, measured=True),
    _Described("unit", unit_of),
    _Described("median", _statistic("median"), text=number, measured=True, in_unit=True),
    _Described("threshold", _threshold, measured=True),
    _Described("1st percentile", _statistic("p1"), text=number, measured=True, in_unit=True),
    _Described("99th percentile", _statistic("p99"), text=number, measured=True, in_unit=True),
    # With fewer values the extremes are these percentiles.
    _Described("minimum", _statistic("minimum", VALUES_FOR_PERCENTILES), text=number, measured=True, in_unit=True),
    _Described("maximum", _statistic("maximum", VALUES_FOR_PERCENTILES), text=number, measured=True, in_unit=True),
    _Described("mean", _statistic("mean", 2), text=number, measured=True, in_unit=True),
    _Described("standard deviation", _statistic("standard_deviation", 2), text=number, measured=True),
    _Described("all directions", _figure(IN_ALL), "frames/s", text=number, measured=True),
    _Described("mean frame size", _mean_octets, "octets", text=number),
    _Described("on the wire", partial(_gbits, part="wire"), "Gbit/s", text=number, measured=True, detail=_of_bits),
    _Described("of IP packets", partial(_gbits, part="packets"), "Gbit/s", text=number, measured=True, detail=_of_bits),
    *_delays(),
    *(
        _Described(label, partial(_rate_of_loss, name=name), f"frames/s {_EACH_THAT_SENDS}", text=number, measured=True)
        for name, label in _RATES_OF_LOSS.items()
    ),
    _Described("established", _figure(ESTABLISHED), "connections", text=number, measured=True),
)
_BEHIND: Final = (
    _Described("figures that only some repetitions have", _of_some, measured=True),
    *(
        _Described(label, partial(_link_maximum, of_units=of_units), unit, text=number)
        for label, unit, of_units in (
            ("theoretical maximum", "frames/s in each direction", False),
            ("theoretical maximum in the unit of the median", "", True),
        )
    ),
    _Described("share of theoretical maximum", _figure(SHARE_OF_LINK), text=_text_in("of 1"), measured=True),
    _Described("memory of a connection", _figure(OCTETS_PER_CONNECTION), "octets", text=number, measured=True),
    *(
        _Described(
            f"connections that fill the {level} cache", partial(filling, level=level), text=number, measured=True
        )
        for level in CACHES
    ),
    *(_Described(label, _figure(name), unit, text=_text_in(unit), measured=True) for name, label, unit in _FURTHER),
    _Described("bottleneck", lambda result: result.limited_by, measured=True),
    _Described("cause", _cause, measured=True),
    _Described("bottleneck device", _limiting_device, measured=True),
    _Described("core imbalance", _figure(CORE_IMBALANCE), "busiest / mean", text=number, measured=True),
    _Described("idle cores of the device", _figure(IDLE_CORES), text=number, measured=True),
    _Described(
        "tester's receiver on device cores", _parameter("receiver_ns"), "ns a frame", text=number, measured=True
    ),
    _Described("tester's own work in the rate", _own_percent, "%", text=_text_in("%"), measured=True),
    *_costs(),
    _Described("doubts", lambda result: doubt_words(result) or None, text=_many, measured=True),
)
#: Parameters that other rows show already.
_SHOWN: Final = frozenset({"gateway", "placement", "device_cores", "loss_tolerance", "transport"})


def row_of(name: str) -> str:
    """Return the heading of the row that shows a parameter."""
    label, unit = _OWN_ROWS.get(name, ("gateway", "") if name == "gateway" else (describe(name).heading, ""))
    return f"{label} ({unit})" if unit else label


def rows(results: Sequence[Result]) -> list[ResultRow]:
    """Return every row, rows without any value included."""
    if not results:
        raise UsageError("report: no results to show")
    derived = compared_rows(results)
    missing = tuple("; ".join(uncompared(derived, column, results)) or None for column in range(len(results)))
    return [
        *(row.filled(results) for row in (*_BEFORE, *_of_metrics(), *_BEHIND)),
        *_over_loads(results),
        *_differing(results),
        _Described("device cores", lambda result: result.device_cores or None).filled(results),
        *(
            ResultRow(row.name, row.unit, tuple(map(_compared, row.comparisons)), _with_bound, measured=True)
            for row in derived
        ),
        ResultRow("not compared", "", missing, str),
    ]


def compared_rows(results: Sequence[Result]) -> list[DerivedRow]:
    """Return the rows of figures that follow from comparisons of the results."""
    return [*derived_rows(results), *rows_of_halves(results)]


def column_of(number: int, result: Result) -> str:
    """Return the heading of a result's column; `number` from 1."""
    return f"column {number}, {result.gateway}"


def uncompared(
    derived: Sequence[DerivedRow],
    column: int,
    results: Sequence[Result],
    called: Callable[[int, Result], str] = column_of,
) -> list[str]:
    """Return the missing comparisons of a result with others of the right kind, and the reasons.

    Args:
        column: index of the result, from 0.
        called: returns the name of a result in the table, from its number, from 1.
    """
    names: dict[str, list[str]] = {}
    for row in derived:
        comparison = row.comparisons[column]
        if not comparison.doubt:
            continue
        other = comparison.other
        partner = "" if other is None else f" with {called(other + 1, results[other])}"
        names.setdefault(f"not compared{partner}: {comparison.doubt}", []).append(row.name)
    return [f"{', '.join(named)} {doubt}" for doubt, named in names.items()]


def references(derived: Sequence[DerivedRow]) -> list[str]:
    """Return notes on the references of the comparisons, each once."""
    notes = (comparison.note for row in derived for comparison in row.comparisons)
    return list(dict.fromkeys(note for note in notes if note))


def _compared(comparison: Comparison) -> Cell:
    if comparison.value is None or not comparison.bound:
        return comparison.value
    return Bounded(comparison.bound, comparison.value)


def _differing(results: Sequence[Result]) -> list[ResultRow]:
    """Return rows of parameters that move a figure and differ between otherwise similar results."""
    names = dict.fromkeys(name for result in results for _, name, _ in result.parameters.items())
    return [
        _Described(describe(name).heading, _parameter(name), text=_clipped).filled(results)
        for name in names
        if name not in _SHOWN
        and name not in _OWN_ROWS
        and any(_differs(name, first, second) for first, second in combinations(results, 2))
    ]


def _differs(name: str, first: Result, second: Result) -> bool:
    """Whether results of a metric have different values; for a parameter of the device, results of the same device."""
    if first.metric != second.metric or not describe(name).moves_figure_of(first.metric):
        return False
    mine, its = first.parameter(name), second.parameter(name)
    ours = name in {**first.parameters.device, **second.parameters.device}
    return mine != its and (not ours or first.gateway == second.gateway)
